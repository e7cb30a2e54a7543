//! Ours.

use super::{Advice, AnyMaker, DEFAULT_VARIANT, Entry, Maker, Nodes, Variant};
use crate::contender::held::{MapValue, OurKey};
use crate::contender::map::OurMap;
use crate::contender::ours::{ByRange, Freezing, NoScans, Ours, Recorded as RecordedBy, ScanBy};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::types::{KeyType, Types, ValueType};
use silvics::art::ArtKey;
use silvics::bst::bronson::build::{self as bronson, Baseline2, Fixed2, Restarting, Restarting2};
use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::ellen::build as ellen;
use silvics::bst::natarajan::build as natarajan;
use silvics::bst::ticket::build as ticket;
use silvics::{
    ArtTree, Batches, BronsonTree, Check, CitrusTree, Create, DrachslerTree, EllenTree, HowleyTree,
    Lookup, NatarajanTree, Objects, Options, Placement, Pooled, RamachandranTree, Recorded, Shared,
    SkipList, TicketTree,
};
use silvics_testkit::TestKey;
use silvics_testkit::mapped::{Mapped, MappedKey};
use std::marker::PhantomData;
use std::sync::Arc;

/// The constructors of a structure: for each key type that it takes, its family.
macro_rules! constructors {
    ($scans:ty: $($($key:ident)|+ => $family:ty),+) => {
        |types: Types, nodes: Nodes| match (types.key, types.value) {
            $(($(KeyType::$key)|+, ValueType::U64) => Some(maker::<$family, $scans>(nodes)),)+
            _ => None,
        }
    };
}

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

/// A tree of the study: its name, paper, shape and builds.
fn tree(
    name: &str,
    paper: &'static str,
    topology: &'static str,
    sync: &'static str,
    variants: Vec<Variant>,
) -> Entry {
    let name = name.into();
    let (groups, max_key_bytes) = (&["ours", "bst"][..], None);
    Entry { name, origin: ORIGIN, paper, topology, sync, groups, max_key_bytes, variants }
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
        bronson::<Fixed>("fixed", &[]).advised_first(),
        bronson::<Baseline>("baseline", &[MUTEX, PADDING, SCATTERED]).never_advised(),
    ];
    Entry { groups: LEADING, ..tree("occ-avl", BRONSON, AVL, OPTIMISTIC, variants) }
}

fn occ_avl_2() -> Entry {
    let variants = vec![
        bronson::<Fixed2>("fixed", &[]).advised_first(),
        bronson::<Baseline2>("baseline", &[]).never_advised(),
        bronson::<Restarting2>("ret", &[]),
        Variant {
            name: "unsafe",
            make: |types, nodes| (types == Types::words(KeyType::U64)).then(|| freezing(nodes)),
            objects: BronsonTree::<Pooled, Restarting2>::OBJECTS,
            oversights: &[],
            lookups_only: true,
            advice: Advice::Never,
        },
    ];
    tree("occ-avl-2", BRONSON, AVL, OPTIMISTIC, variants)
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
        natarajan::<natarajan::Fixed>("fixed", &[]).advised_first(),
        natarajan::<natarajan::Baseline>("baseline", &[]).never_advised(),
        natarajan::<natarajan::Shifted>("shifted", &[]).never_advised(),
        natarajan::<natarajan::Collocated>("collocated", &[]),
    ];
    Entry { groups: LEADING, ..tree("edge-ext-lf", NATARAJAN, EXTERNAL, EDGES, variants) }
}

fn edge_ext_lf_2() -> Entry {
    let variants = vec![
        natarajan::<natarajan::Fixed2>("fixed", &[]).advised_first(),
        natarajan::<natarajan::Baseline2>("baseline", &[PADDING]).never_advised(),
    ];
    tree("edge-ext-lf-2", NATARAJAN, EXTERNAL, EDGES, variants)
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
        ticket::<ticket::Fixed>("fixed", &[]).advised_first(),
        ticket::<ticket::Baseline>("baseline", &[PADDING]).never_advised(),
    ];
    let paper = "David, Guerraoui and Trigonakis, ASPLOS 2015";
    tree("ticket", paper, EXTERNAL, "versioned locks on edges", variants)
}

fn ticket<B: ticket::Build>(name: &'static str, oversights: &'static [&'static str]) -> Variant {
    build::<Ticket<B>, ByRange>(name, oversights)
}

const HEAVY: &str = "heavy traversal";

fn ext_lf() -> Entry {
    let variants = vec![
        ellen::<ellen::Compact>("compact", &[]),
        ellen::<ellen::Fixed>("fixed", &[]).advised_first(),
        ellen::<ellen::Baseline>("baseline", &[PADDING, HEAVY]).never_advised(),
    ];
    let paper = "Ellen, Fatourou, Ruppert and van Breugel, PODC 2010";
    tree("ext-lf", paper, EXTERNAL, "lock-free, descriptors", variants)
}

fn ellen<B: ellen::Build>(name: &'static str, oversights: &'static [&'static str]) -> Variant {
    build::<Ellen<B>, ByRange>(name, oversights)
}

fn int_lf() -> Entry {
    let variants = vec![
        build::<Howley<Fixed>, NoScans>("fixed", &[]).advised_first(),
        build::<Howley<Baseline>, NoScans>("baseline", &[PADDING]).never_advised(),
    ];
    let (paper, sync) = ("Howley and Jones, SPAA 2012", "lock-free, descriptors");
    tree("int-lf", paper, INTERNAL, sync, variants)
}

fn edge_int_lf() -> Entry {
    let variants = vec![
        build::<Ramachandran<Fixed>, NoScans>("fixed", &[]).advised_first(),
        build::<Ramachandran<Baseline>, NoScans>("baseline", &[HEAVY]).never_advised(),
    ];
    let paper = "Ramachandran and Mittal, ICDCN 2015";
    tree("edge-int-lf", paper, INTERNAL, EDGES, variants)
}

fn log_int() -> Entry {
    let variants = vec![
        build::<Drachsler<Fixed>, ByRange>("fixed", &[]).advised_first(),
        build::<Drachsler<Baseline>, ByRange>("baseline", &[PADDING, SCATTERED]).never_advised(),
    ];
    let (paper, sync) = ("Drachsler, Vechev and Yahav, PPoPP 2014", "fine locks, ordered list");
    tree("log-int", paper, INTERNAL, sync, variants)
}

fn citrus() -> Entry {
    let variants = vec![
        build::<Citrus<Fixed>, NoScans>("fixed", &[]).advised_first(),
        build::<Citrus<Baseline>, NoScans>("baseline", &[MUTEX]).never_advised(),
    ];
    let (paper, sync) = ("Arbel and Attiya, PODC 2014", "fine locks, RCU");
    tree("citrus", paper, INTERNAL, sync, variants)
}

const INTERNAL: &str = "internal binary search tree";

fn art() -> Entry {
    Entry {
        name: "art".into(),
        origin: ORIGIN,
        paper: "Leis, Kemper and Neumann, ICDE 2013; Leis, Scheibner, Kemper and Neumann, DaMoN 2016",
        topology: "adaptive radix tree",
        sync: "version locks, wait-free lookups",
        groups: &["ours", "default"],
        max_key_bytes: Some(64 << 10),
        variants: vec![Variant {
            make: constructors!(ByRange:
                U64 => Tries<u64>, U128 => Tries<u128>, Bytes | String => Tries<[u8]>),
            ..build::<Tries<u64>, ByRange>(DEFAULT_VARIANT, &[])
        }],
    }
}

fn skiplist() -> Entry {
    Entry {
        name: "skiplist".into(),
        origin: ORIGIN,
        paper: "Fraser 2004; Herlihy, Lev and Shavit 2007",
        topology: "skip list, keys inline",
        sync: "lock-free",
        groups: &["ours", "default"],
        max_key_bytes: None,
        variants: vec![Variant {
            make: constructors!(ByRange: U64 => Lists<u64>, Bytes | String => Lists<[u8]>),
            ..build::<Lists<u64>, ByRange>(DEFAULT_VARIANT, &[])
        }],
    }
}

/// `Map`, over the index that it has by default.
fn map() -> Entry {
    Entry {
        name: "map".into(),
        groups: &["ours"],
        variants: vec![Variant {
            name: DEFAULT_VARIANT,
            make: |types, nodes| {
                (nodes == Nodes::Pooled).then(|| match types.key {
                    KeyType::U64 => mapped::<u64>(types.value),
                    KeyType::U128 => mapped::<u128>(types.value),
                    KeyType::Bytes => mapped::<[u8]>(types.value),
                    KeyType::String => mapped::<str>(types.value),
                })
            },
            objects: &[],
            oversights: &[],
            lookups_only: false,
            advice: Advice::Next,
        }],
        ..art()
    }
}

fn mapped<K>(value: ValueType) -> AnyMaker
where
    K: OurKey<Bench: BenchKey + MappedKey + TestKey> + ?Sized,
{
    match value {
        ValueType::U64 => map_maker::<K, u64>().into(),
        ValueType::Arc => map_maker::<K, Arc<[u8]>>().into(),
    }
}

fn map_maker<K, V: MapValue>() -> Maker<K::Bench>
where
    K: OurKey<Bench: BenchKey + MappedKey + TestKey> + ?Sized,
{
    Maker {
        subject: |options| OurMap::<K, V>::with_options(options).map(Subject::of),
        scans: true,
        verify: Some(<NoScans as RecordedBy<Mapped<K::Bench>>>::verify),
        inspect: None,
    }
}

/// An index, wherever its nodes live.
trait Family: 'static {
    /// Its keys.
    type Key: BenchKey + ?Sized;
    /// The index.
    type Index<P: Placement>: Create + Batches + Lookup<Key = Self::Key> + Objects + Check + 'static;
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
impl<K: ArtKey + BenchKey + ?Sized> Family for Tries<K> {
    type Key = K;
    type Index<P: Placement> = ArtTree<K, P>;
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

impl Variant {
    fn advised_first(self) -> Self {
        Self { advice: Advice::First, ..self }
    }

    fn never_advised(self) -> Self {
        Self { advice: Advice::Never, ..self }
    }
}

/// A variant over words, in every placement.
fn build<F, S>(name: &'static str, oversights: &'static [&'static str]) -> Variant
where
    F: Family<Key = u64>,
    S: ScansIn<F, Pooled> + ScansIn<F, Shared>,
{
    let objects = F::Index::<Pooled>::OBJECTS;
    let make = constructors!(S: U64 => F);
    Variant { name, make, objects, oversights, lookups_only: false, advice: Advice::Next }
}

/// How the indexes of a family scan in a placement.
trait ScansIn<F: Family, P: Placement>: ScanBy<F::Index<P>> + RecordedBy<F::Index<P>> {}
impl<F: Family, P: Placement, S: ScanBy<F::Index<P>> + RecordedBy<F::Index<P>>> ScansIn<F, P>
    for S
{
}

/// The constructors of a family in a place.
fn maker<F: Family, S: ScansIn<F, Pooled> + ScansIn<F, Shared>>(nodes: Nodes) -> AnyMaker {
    match nodes {
        Nodes::Pooled => maker_in::<F, S, Pooled>().into(),
        Nodes::Shared => maker_in::<F, S, Shared>().into(),
    }
}

fn maker_in<F: Family, S: ScansIn<F, P>, P: Placement>() -> Maker<F::Key> {
    Maker {
        subject: |options| {
            let index = F::Index::<P>::with_options(options)?;
            Ok(Subject::of(Ours::<F::Index<P>, S>::new(index)))
        },
        scans: S::SCANS,
        verify: Some(<S as RecordedBy<F::Index<P>>>::verify),
        inspect: Some(|options| Ok(Box::new(F::Index::<Recorded<P>>::with_options(options)?))),
    }
}

fn freezing(nodes: Nodes) -> AnyMaker {
    match nodes {
        Nodes::Pooled => freezing_in::<Pooled>().into(),
        Nodes::Shared => freezing_in::<Shared>().into(),
    }
}

fn freezing_in<P: Placement>() -> Maker<u64> {
    let subject = |options: &Options| Ok(Subject::of(Freezing::<P>::with_options(options)?));
    Maker { subject, scans: false, verify: None, inspect: None }
}
