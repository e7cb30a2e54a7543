//! Every index the command knows.

use crate::bench::subject::Subject;
use crate::keys::KeyType;
use silvics::{AllocError, Options};
use silvics_layout::NodeLayout;
use silvics_testkit::clock::Clock;
use silvics_testkit::verify;
use std::sync::LazyLock;

/// An index of ours, or a peer.
pub struct Entry {
    /// As it is named on the command line.
    pub name: String,
    /// Where it comes from: the crate and its version for a peer.
    pub origin: &'static str,
    /// Where the algorithm was published; empty if nowhere.
    pub paper: &'static str,
    /// The shape.
    pub topology: &'static str,
    /// How threads get along.
    pub sync: &'static str,
    /// Whether it can scan, by key type.
    pub ranges: Ranges,
    /// Which groups, beside `all`, it belongs to.
    pub groups: &'static [&'static str],
    /// The longest byte key it takes, if there is a limit.
    pub max_key_bytes: Option<usize>,
    /// Its variants, the default one first.
    pub variants: Vec<Variant>,
}

/// A variant of an index: the same algorithm with another policy.
pub struct Variant {
    /// Its name after the colon.
    pub name: &'static str,
    /// With a pool per object kind; a peer the way it always is.
    pub own: Makers,
    /// With everything from the global allocator, where that can be chosen.
    pub shared: Option<Makers>,
    /// What it allocates: first what a search passes through. Of a peer nothing is known.
    pub objects: &'static [NodeLayout],
    /// What the study found to be amiss with it.
    pub oversights: &'static [&'static str],
    /// Whether nothing can be written once it is loaded.
    pub lookups_only: bool,
}

/// For which key types an index can scan.
#[derive(Clone, Copy, Default)]
pub struct Ranges {
    /// For 64-bit words.
    pub word: bool,
    /// For byte strings.
    pub bytes: bool,
}

/// Constructors, by key type.
#[derive(Clone, Copy, Default)]
pub struct Makers {
    /// For 64-bit words.
    pub word: Option<Make<u64>>,
    /// For byte strings.
    pub bytes: Option<Make<[u8]>>,
    /// What records and checks histories, by the same.
    pub verify_word: Option<Verify>,
    /// For byte strings.
    pub verify_bytes: Option<Verify>,
}

/// Records and checks histories.
pub type Verify = fn(&verify::Plan, &Clock) -> verify::Report;

/// A constructor.
pub type Make<K> = fn(&Options) -> Result<Subject<K>, AllocError>;

/// The name of the only variant of an index without any.
pub const DEFAULT_VARIANT: &str = "default";

impl Entry {
    /// Whether it is a structure of another crate.
    pub fn is_peer(&self) -> bool {
        self.groups.contains(&"peers")
    }

    /// The key types it takes, by name.
    pub fn keys(&self) -> Vec<&'static str> {
        [KeyType::U64, KeyType::Bytes]
            .into_iter()
            .filter(|&key_type| self.takes(key_type))
            .map(KeyType::name)
            .collect()
    }

    /// The key types it can scan, by name.
    pub fn ranges(&self) -> Vec<&'static str> {
        let scanned = [KeyType::U64, KeyType::Bytes].into_iter().filter(|&t| self.scans(t));
        scanned.map(KeyType::name).collect()
    }

    /// Whether it can scan keys of a type.
    pub fn scans(&self, key_type: KeyType) -> bool {
        match key_type {
            KeyType::U64 => self.ranges.word,
            KeyType::Bytes => self.ranges.bytes,
        }
    }

    /// Whether it takes keys of a type.
    pub fn takes(&self, key_type: KeyType) -> bool {
        self.variants.iter().any(|variant| match key_type {
            KeyType::U64 => variant.own.word.is_some(),
            KeyType::Bytes => variant.own.bytes.is_some(),
        })
    }

    /// Where its nodes can live, by name. Peers place theirs themselves.
    pub fn placements(&self) -> Vec<&'static str> {
        let can_share = self.variants.iter().any(|variant| variant.shared.is_some());
        match (self.is_peer(), can_share) {
            (true, _) => vec!["own"],
            (false, true) => vec!["pooled", "shared", "size-class"],
            (false, false) => vec!["pooled"],
        }
    }
}

/// All of them, ours first.
pub fn all() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let entries = ours::entries();
        #[cfg(feature = "peers")]
        let entries = [entries, peers::entries()].into_iter().flatten().collect();
        entries
    });
    &ALL
}

mod ours {
    use super::{DEFAULT_VARIANT, Entry, Make, Makers, Ranges, Variant, Verify};
    use crate::bench::subject::Subject;
    use crate::keys::BenchKey;
    use crate::ours::{ByRange, Freezing, NoScans, Ours, Recorded, ScanBy};
    use silvics::bst::bronson::build::{
        self as bronson, Baseline2, Fixed2, Restarting, Restarting2,
    };
    use silvics::bst::build::{Baseline, Fixed};
    use silvics::bst::ellen::build as ellen;
    use silvics::bst::natarajan::build as natarajan;
    use silvics::bst::ticket::build as ticket;
    use silvics::{
        BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree, Objects,
        OrderedIndex, Placement, Pooled, RamachandranTree, Shared, SkipList, TicketTree,
    };

    const ORIGIN: &str = concat!("silvics ", env!("CARGO_PKG_VERSION"));

    pub(super) fn entries() -> Vec<Entry> {
        vec![
            edge_ext_lf(),
            edge_ext_lf_2(),
            ticket_tree(),
            ext_lf(),
            occ_avl(),
            occ_avl_2(),
            log_int(),
            citrus(),
            int_lf(),
            edge_int_lf(),
            skiplist(),
        ]
    }

    /// The groups of a tree that the default comparison has.
    const LEADING: &[&str] = &["ours", "bst", "default"];

    /// Scans of words.
    const WORDS: Ranges = Ranges { word: true, bytes: false };

    /// A tree of the study: its name, paper, shape and builds.
    fn tree(
        name: &str,
        paper: &'static str,
        topology: &'static str,
        sync: &'static str,
        ranges: Ranges,
        variants: Vec<Variant>,
    ) -> Entry {
        let name = name.into();
        let (groups, max_key_bytes) = (&["ours", "bst"][..], None);
        Entry {
            name,
            origin: ORIGIN,
            paper,
            topology,
            sync,
            ranges,
            groups,
            max_key_bytes,
            variants,
        }
    }

    const BRONSON: &str = "Bronson, Casper, Chafi and Olukotun, PPoPP 2010";
    const AVL: &str = "partially external relaxed AVL tree";
    const OPTIMISTIC: &str = "fine locks, optimistic lookups";
    const MUTEX: &str = "lock of 40 bytes";
    const PADDING: &str = "padding";
    const SCATTERED: &str = "scattered fields";

    fn occ_avl() -> Entry {
        let variants = vec![
            bronson::<Restarting>("restarting", &[]),
            bronson::<Fixed>("fixed", &[]),
            bronson::<Baseline>("baseline", &[MUTEX, PADDING, SCATTERED]),
        ];
        let none = Ranges::default();
        Entry { groups: LEADING, ..tree("occ-avl", BRONSON, AVL, OPTIMISTIC, none, variants) }
    }

    fn occ_avl_2() -> Entry {
        let variants = vec![
            bronson::<Fixed2>("fixed", &[]),
            bronson::<Baseline2>("baseline", &[]),
            bronson::<Restarting2>("ret", &[]),
            Variant {
                name: "unsafe",
                own: Makers { word: Some(freezing::<Pooled>()), ..Makers::default() },
                shared: Some(Makers { word: Some(freezing::<Shared>()), ..Makers::default() }),
                objects: BronsonTree::<Pooled, Restarting2>::OBJECTS,
                oversights: &[],
                lookups_only: true,
            },
        ];
        tree("occ-avl-2", BRONSON, AVL, OPTIMISTIC, Ranges::default(), variants)
    }

    fn bronson<B: bronson::Build>(
        name: &'static str,
        oversights: &'static [&'static str],
    ) -> Variant {
        build::<BronsonTree<Pooled, B>, BronsonTree<Shared, B>, NoScans>(name, oversights)
    }

    const NATARAJAN: &str = "Natarajan and Mittal, PPoPP 2014";
    const EXTERNAL: &str = "external binary search tree";
    const EDGES: &str = "lock-free, marks on edges";

    fn edge_ext_lf() -> Entry {
        let variants = vec![
            natarajan::<natarajan::Compact>("compact", &[]),
            natarajan::<natarajan::Fixed>("fixed", &[]),
            natarajan::<natarajan::Baseline>("baseline", &[]),
            natarajan::<natarajan::Shifted>("shifted", &[]),
            natarajan::<natarajan::Collocated>("collocated", &[]),
        ];
        Entry {
            groups: LEADING,
            ..tree("edge-ext-lf", NATARAJAN, EXTERNAL, EDGES, WORDS, variants)
        }
    }

    fn edge_ext_lf_2() -> Entry {
        let variants = vec![
            natarajan::<natarajan::Fixed2>("fixed", &[]),
            natarajan::<natarajan::Baseline2>("baseline", &[PADDING]),
        ];
        tree("edge-ext-lf-2", NATARAJAN, EXTERNAL, EDGES, WORDS, variants)
    }

    fn natarajan<B: natarajan::Build>(
        name: &'static str,
        oversights: &'static [&'static str],
    ) -> Variant {
        build::<NatarajanTree<Pooled, B>, NatarajanTree<Shared, B>, ByRange>(name, oversights)
    }

    fn ticket_tree() -> Entry {
        let variants = vec![
            ticket::<ticket::Compact>("compact", &[]),
            ticket::<ticket::Fixed>("fixed", &[]),
            ticket::<ticket::Baseline>("baseline", &[PADDING]),
        ];
        let paper = "David, Guerraoui and Trigonakis, ASPLOS 2015";
        tree("ticket", paper, EXTERNAL, "versioned locks on edges", WORDS, variants)
    }

    fn ticket<B: ticket::Build>(
        name: &'static str,
        oversights: &'static [&'static str],
    ) -> Variant {
        build::<TicketTree<Pooled, B>, TicketTree<Shared, B>, ByRange>(name, oversights)
    }

    const HEAVY: &str = "heavy traversal";

    fn ext_lf() -> Entry {
        let variants = vec![
            ellen::<ellen::Compact>("compact", &[]),
            ellen::<ellen::Fixed>("fixed", &[]),
            ellen::<ellen::Baseline>("baseline", &[PADDING, HEAVY]),
        ];
        let paper = "Ellen, Fatourou, Ruppert and van Breugel, PODC 2010";
        tree("ext-lf", paper, EXTERNAL, "lock-free, descriptors", WORDS, variants)
    }

    fn ellen<B: ellen::Build>(name: &'static str, oversights: &'static [&'static str]) -> Variant {
        build::<EllenTree<Pooled, B>, EllenTree<Shared, B>, ByRange>(name, oversights)
    }

    fn int_lf() -> Entry {
        let variants = vec![
            build::<HowleyTree<Pooled, Fixed>, HowleyTree<Shared, Fixed>, NoScans>("fixed", &[]),
            build::<HowleyTree<Pooled, Baseline>, HowleyTree<Shared, Baseline>, NoScans>(
                "baseline",
                &[PADDING],
            ),
        ];
        let (paper, sync) = ("Howley and Jones, SPAA 2012", "lock-free, descriptors");
        tree("int-lf", paper, INTERNAL, sync, Ranges::default(), variants)
    }

    fn edge_int_lf() -> Entry {
        let variants = vec![
            build::<RamachandranTree<Pooled, Fixed>, RamachandranTree<Shared, Fixed>, NoScans>(
                "fixed",
                &[],
            ),
            build::<RamachandranTree<Pooled, Baseline>, RamachandranTree<Shared, Baseline>, NoScans>(
                "baseline",
                &[HEAVY],
            ),
        ];
        let paper = "Ramachandran and Mittal, ICDCN 2015";
        tree("edge-int-lf", paper, INTERNAL, EDGES, Ranges::default(), variants)
    }

    fn log_int() -> Entry {
        let variants = vec![
            build::<DrachslerTree<Pooled, Fixed>, DrachslerTree<Shared, Fixed>, ByRange>(
                "fixed",
                &[],
            ),
            build::<DrachslerTree<Pooled, Baseline>, DrachslerTree<Shared, Baseline>, ByRange>(
                "baseline",
                &[PADDING, SCATTERED],
            ),
        ];
        let (paper, sync) = ("Drachsler, Vechev and Yahav, PPoPP 2014", "fine locks, ordered list");
        tree("log-int", paper, INTERNAL, sync, WORDS, variants)
    }

    fn citrus() -> Entry {
        let variants = vec![
            build::<CitrusTree<Pooled, Fixed>, CitrusTree<Shared, Fixed>, NoScans>("fixed", &[]),
            build::<CitrusTree<Pooled, Baseline>, CitrusTree<Shared, Baseline>, NoScans>(
                "baseline",
                &[MUTEX],
            ),
        ];
        let (paper, sync) = ("Arbel and Attiya, PODC 2014", "fine locks, RCU");
        tree("citrus", paper, INTERNAL, sync, Ranges::default(), variants)
    }

    const INTERNAL: &str = "internal binary search tree";

    fn skiplist() -> Entry {
        let default = Variant {
            own: Makers {
                bytes: Some(make::<SkipList<[u8], Pooled>, ByRange>()),
                verify_bytes: Some(verifier::<SkipList<[u8], Pooled>, ByRange>()),
                ..words::<SkipList<u64, Pooled>, ByRange>()
            },
            shared: Some(Makers {
                bytes: Some(make::<SkipList<[u8], Shared>, ByRange>()),
                verify_bytes: Some(verifier::<SkipList<[u8], Shared>, ByRange>()),
                ..words::<SkipList<u64, Shared>, ByRange>()
            }),
            ..build::<SkipList<u64, Pooled>, SkipList<u64, Shared>, ByRange>(DEFAULT_VARIANT, &[])
        };
        Entry {
            name: "skiplist".into(),
            origin: ORIGIN,
            paper: "Fraser 2004; Herlihy, Lev and Shavit 2007",
            topology: "skip list, keys inline",
            sync: "lock-free",
            ranges: Ranges { word: true, bytes: true },
            groups: &["ours", "default"],
            max_key_bytes: None,
            variants: vec![default],
        }
    }

    /// A variant over words: `I` with a pool per kind, `J` from the global allocator.
    fn build<I, J, S>(name: &'static str, oversights: &'static [&'static str]) -> Variant
    where
        I: OrderedIndex<Key = u64> + Objects + 'static,
        J: OrderedIndex<Key = u64> + 'static,
        S: ScanBy<I> + Recorded<I> + ScanBy<J> + Recorded<J>,
    {
        let (own, shared) = (words::<I, S>(), Some(words::<J, S>()));
        Variant { name, own, shared, objects: I::OBJECTS, oversights, lookups_only: false }
    }

    fn words<I, S>() -> Makers
    where
        I: OrderedIndex<Key = u64> + 'static,
        S: ScanBy<I> + Recorded<I>,
    {
        let (word, verify_word) = (Some(make::<I, S>()), Some(verifier::<I, S>()));
        Makers { word, verify_word, ..Makers::default() }
    }

    fn verifier<I, S: Recorded<I>>() -> Verify {
        S::verify
    }

    fn make<I, S>() -> Make<I::Key>
    where
        I: OrderedIndex<Key: BenchKey> + 'static,
        S: ScanBy<I>,
    {
        |options| Ok(Subject::of(Ours::<I, S>::new(I::with_options(options)?)))
    }

    fn freezing<P: Placement>() -> Make<u64> {
        |options| Ok(Subject::of(Freezing::<P>::with_options(options)?))
    }
}

#[cfg(feature = "peers")]
mod peers {
    use super::{DEFAULT_VARIANT, Entry, Make, Makers, Ranges, Variant};
    use crate::bench::subject::Subject;
    use crate::keys::BenchKey;
    use crate::peers::{
        BtreeMapRwLock, ConcurrentMap, Congee, CrossbeamSkiplist, Ferntree, Masstree, Peer,
        SccTreeIndex,
    };

    pub(super) fn entries() -> Vec<Entry> {
        vec![
            both::<BtreeMapRwLock<u64>, BtreeMapRwLock<[u8]>>(),
            both::<CrossbeamSkiplist<u64>, CrossbeamSkiplist<[u8]>>(),
            word_only::<Congee>(),
            both::<SccTreeIndex<u64>, SccTreeIndex<[u8]>>(),
            both::<Masstree<u64>, Masstree<[u8]>>(),
            both::<ConcurrentMap<u64>, ConcurrentMap<[u8]>>(),
            both::<Ferntree<u64>, Ferntree<[u8]>>(),
        ]
    }

    fn both<W: Peer<Key = u64>, B: Peer<Key = [u8]>>() -> Entry {
        let makers =
            Makers { word: Some(make::<W>()), bytes: Some(make::<B>()), ..Makers::default() };
        entry::<B>(makers, Ranges { word: W::SCANS, bytes: B::SCANS })
    }

    fn word_only<W: Peer<Key = u64>>() -> Entry {
        let makers = Makers { word: Some(make::<W>()), ..Makers::default() };
        entry::<W>(makers, Ranges { word: W::SCANS, bytes: false })
    }

    fn entry<P: Peer>(own: Makers, ranges: Ranges) -> Entry {
        Entry {
            name: format!("peer:{}", P::NAME),
            origin: P::CRATE,
            paper: P::PAPER,
            topology: P::TOPOLOGY,
            sync: P::SYNC,
            ranges,
            groups: &["peers", "default"],
            max_key_bytes: P::MAX_KEY_BYTES,
            variants: vec![Variant {
                name: DEFAULT_VARIANT,
                own,
                shared: None,
                objects: &[],
                oversights: &[],
                lookups_only: false,
            }],
        }
    }

    fn make<P: Peer<Key: BenchKey>>() -> Make<P::Key> {
        |_| Ok(Subject::of(P::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_every_entry_can_be_made() {
        let names: HashSet<&str> = all().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), all().len());
        for entry in all() {
            assert!(!entry.keys().is_empty(), "{}", entry.name);
            assert!(!entry.topology.is_empty() && !entry.sync.is_empty());
            for variant in &entry.variants {
                for makers in [Some(variant.own), variant.shared].into_iter().flatten() {
                    let options = Options::default();
                    if let Some(make) = makers.word {
                        assert!(make(&options).is_ok());
                    }
                    if let Some(make) = makers.bytes {
                        assert!(make(&options).is_ok());
                    }
                }
            }
        }
    }
}
