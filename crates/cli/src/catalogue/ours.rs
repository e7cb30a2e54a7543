//! Ours.

use super::{DEFAULT_VARIANT, Entry, Inspect, Make, Makers, Maps, Ranges, Variant, Verify};
use crate::contender::held::{MapValue, OurKey};
use crate::contender::map::OurMap;
use crate::contender::ours::{ByRange, Freezing, NoScans, Ours, Recorded as RecordedBy, ScanBy};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use silvics::bst::bronson::build::{self as bronson, Baseline2, Fixed2, Restarting, Restarting2};
use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::ellen::build as ellen;
use silvics::bst::natarajan::build as natarajan;
use silvics::bst::ticket::build as ticket;
use silvics::{
    ArtTree, BronsonTree, Check, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree,
    Objects, OrderedIndex, Placement, Pooled, RamachandranTree, Recorded, Shared, SkipList,
    TicketTree,
};
use silvics_testkit::mapped::Mapped;
use std::marker::PhantomData;
use std::sync::Arc;

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
        art(),
        map(),
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
    Entry { name, origin: ORIGIN, paper, topology, sync, ranges, groups, max_key_bytes, variants }
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

fn bronson<B: bronson::Build>(name: &'static str, oversights: &'static [&'static str]) -> Variant {
    build::<Bronson<B>, NoScans>(name, oversights)
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
    Entry { groups: LEADING, ..tree("edge-ext-lf", NATARAJAN, EXTERNAL, EDGES, WORDS, variants) }
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
    build::<Natarajan<B>, ByRange>(name, oversights)
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

fn ticket<B: ticket::Build>(name: &'static str, oversights: &'static [&'static str]) -> Variant {
    build::<Ticket<B>, ByRange>(name, oversights)
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
    build::<Ellen<B>, ByRange>(name, oversights)
}

fn int_lf() -> Entry {
    let variants = vec![
        build::<Howley<Fixed>, NoScans>("fixed", &[]),
        build::<Howley<Baseline>, NoScans>("baseline", &[PADDING]),
    ];
    let (paper, sync) = ("Howley and Jones, SPAA 2012", "lock-free, descriptors");
    tree("int-lf", paper, INTERNAL, sync, Ranges::default(), variants)
}

fn edge_int_lf() -> Entry {
    let variants = vec![
        build::<Ramachandran<Fixed>, NoScans>("fixed", &[]),
        build::<Ramachandran<Baseline>, NoScans>("baseline", &[HEAVY]),
    ];
    let paper = "Ramachandran and Mittal, ICDCN 2015";
    tree("edge-int-lf", paper, INTERNAL, EDGES, Ranges::default(), variants)
}

fn log_int() -> Entry {
    let variants = vec![
        build::<Drachsler<Fixed>, ByRange>("fixed", &[]),
        build::<Drachsler<Baseline>, ByRange>("baseline", &[PADDING, SCATTERED]),
    ];
    let (paper, sync) = ("Drachsler, Vechev and Yahav, PPoPP 2014", "fine locks, ordered list");
    tree("log-int", paper, INTERNAL, sync, WORDS, variants)
}

fn citrus() -> Entry {
    let variants = vec![
        build::<Citrus<Fixed>, NoScans>("fixed", &[]),
        build::<Citrus<Baseline>, NoScans>("baseline", &[MUTEX]),
    ];
    let (paper, sync) = ("Arbel and Attiya, PODC 2014", "fine locks, RCU");
    tree("citrus", paper, INTERNAL, sync, Ranges::default(), variants)
}

const INTERNAL: &str = "internal binary search tree";

fn art() -> Entry {
    Entry {
        name: "art".into(),
        origin: ORIGIN,
        paper: "Leis, Kemper and Neumann, ICDE 2013; Leis, Scheibner, Kemper and Neumann, DaMoN 2016",
        topology: "adaptive radix tree",
        sync: "version locks, wait-free lookups",
        ranges: Ranges { word: true, bytes: true },
        groups: &["ours", "default"],
        max_key_bytes: Some(64 << 10),
        variants: vec![with_both::<Tries<u64>, Tries<[u8]>>()],
    }
}

fn skiplist() -> Entry {
    Entry {
        name: "skiplist".into(),
        origin: ORIGIN,
        paper: "Fraser 2004; Herlihy, Lev and Shavit 2007",
        topology: "skip list, keys inline",
        sync: "lock-free",
        ranges: Ranges { word: true, bytes: true },
        groups: &["ours", "default"],
        max_key_bytes: None,
        variants: vec![with_both::<Lists<u64>, Lists<[u8]>>()],
    }
}

/// `Map`, over the index that it has by default.
fn map() -> Entry {
    let maps = Maps {
        word_arc: Some(mapped::<u64, Arc<[u8]>>()),
        bytes_arc: Some(mapped::<[u8], Arc<[u8]>>()),
        string: Some(mapped::<str, u64>()),
        string_arc: Some(mapped::<str, Arc<[u8]>>()),
    };
    let (word, bytes) = (Some(mapped::<u64, u64>()), Some(mapped::<[u8], u64>()));
    Entry {
        name: "map".into(),
        groups: &["ours"],
        variants: vec![Variant {
            name: DEFAULT_VARIANT,
            own: Makers {
                word,
                bytes,
                maps,
                verify_word: Some(<NoScans as RecordedBy<Mapped<u64>>>::verify),
                verify_bytes: Some(<NoScans as RecordedBy<Mapped<[u8]>>>::verify),
                ..Makers::default()
            },
            shared: None,
            objects: &[],
            oversights: &[],
            lookups_only: false,
        }],
        ..art()
    }
}

fn mapped<K: OurKey<Bench: BenchKey> + ?Sized, V: MapValue>() -> Make<K::Bench> {
    |options| OurMap::<K, V>::with_options(options).map(Subject::of)
}

/// The default variant of an index with both types of keys.
fn with_both<W, B>() -> Variant
where
    W: Family<Key = u64>,
    B: Family<Key = [u8]>,
    ByRange: ScansIn<W, Pooled> + ScansIn<W, Shared> + ScansIn<B, Pooled> + ScansIn<B, Shared>,
{
    Variant {
        own: both::<W, B, Pooled>(),
        shared: Some(both::<W, B, Shared>()),
        ..build::<W, ByRange>(DEFAULT_VARIANT, &[])
    }
}

fn both<W, B, P: Placement>() -> Makers
where
    W: Family<Key = u64>,
    B: Family<Key = [u8]>,
    ByRange: ScansIn<W, P> + ScansIn<B, P>,
{
    Makers {
        bytes: Some(make::<B, ByRange, P>()),
        verify_bytes: Some(verifier::<B, ByRange, P>()),
        inspect_bytes: Some(inspected::<B, P>()),
        ..words::<W, ByRange, P>()
    }
}

/// An index, wherever its nodes live.
trait Family: 'static {
    /// Its keys.
    type Key: BenchKey + ?Sized;
    /// The index.
    type Index<P: Placement>: OrderedIndex<Key = Self::Key> + Objects + Check + 'static;
}

/// Declares families: each type with its builds.
macro_rules! families {
    ($($family:ident = $index:ident<$build:path>;)*) => {
        $(
            struct $family<B>(PhantomData<B>);
            impl<B: $build> Family for $family<B> {
                type Key = u64;
                type Index<P: Placement> = $index<P, B>;
            }
        )*
    };
}

families! {
    Bronson = BronsonTree<bronson::Build>;
    Citrus = CitrusTree<silvics::bst::citrus::build::Build>;
    Drachsler = DrachslerTree<silvics::bst::drachsler::build::Build>;
    Ellen = EllenTree<ellen::Build>;
    Howley = HowleyTree<silvics::bst::howley::build::Build>;
    Natarajan = NatarajanTree<natarajan::Build>;
    Ramachandran = RamachandranTree<silvics::bst::ramachandran::build::Build>;
    Ticket = TicketTree<ticket::Build>;
}

/// Radix trees with keys of a type.
struct Tries<K: ?Sized>(PhantomData<fn(&K)>);
impl Family for Tries<u64> {
    type Key = u64;
    type Index<P: Placement> = ArtTree<u64, P>;
}
impl Family for Tries<[u8]> {
    type Key = [u8];
    type Index<P: Placement> = ArtTree<[u8], P>;
}

/// Skip lists with keys of a type.
struct Lists<K: ?Sized>(PhantomData<fn(&K)>);
impl Family for Lists<u64> {
    type Key = u64;
    type Index<P: Placement> = SkipList<u64, P>;
}
impl Family for Lists<[u8]> {
    type Key = [u8];
    type Index<P: Placement> = SkipList<[u8], P>;
}

/// A variant over words, in every placement.
fn build<F, S>(name: &'static str, oversights: &'static [&'static str]) -> Variant
where
    F: Family<Key = u64>,
    S: ScansIn<F, Pooled> + ScansIn<F, Shared>,
{
    let (own, shared) = (words::<F, S, Pooled>(), Some(words::<F, S, Shared>()));
    let objects = F::Index::<Pooled>::OBJECTS;
    Variant { name, own, shared, objects, oversights, lookups_only: false }
}

/// How the indexes of a family scan in a placement.
trait ScansIn<F: Family, P: Placement>: ScanBy<F::Index<P>> + RecordedBy<F::Index<P>> {}
impl<F: Family, P: Placement, S: ScanBy<F::Index<P>> + RecordedBy<F::Index<P>>> ScansIn<F, P>
    for S
{
}

fn words<F: Family<Key = u64>, S: ScansIn<F, P>, P: Placement>() -> Makers {
    Makers {
        word: Some(make::<F, S, P>()),
        verify_word: Some(verifier::<F, S, P>()),
        inspect_word: Some(inspected::<F, P>()),
        ..Makers::default()
    }
}

fn verifier<F: Family, S: ScansIn<F, P>, P: Placement>() -> Verify {
    <S as RecordedBy<F::Index<P>>>::verify
}

fn make<F: Family, S: ScansIn<F, P>, P: Placement>() -> Make<F::Key> {
    |options| Ok(Subject::of(Ours::<F::Index<P>, S>::new(F::Index::<P>::with_options(options)?)))
}

/// An index that tells what its operations read.
fn inspected<F: Family, P: Placement>() -> Inspect<F::Key> {
    |options| Ok(Box::new(F::Index::<Recorded<P>>::with_options(options)?))
}

fn freezing<P: Placement>() -> Make<u64> {
    |options| Ok(Subject::of(Freezing::<P>::with_options(options)?))
}
