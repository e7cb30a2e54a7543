//! Our indexes: one entry for each row of the table of structures, and `map`.

use super::{Advice, AnyMaker, DEFAULT_VARIANT, Entry, Make, Maker, Nodes, Variant, foreign};
use crate::contender::Upserts;
use crate::contender::forms::Form;
use crate::contender::held::{MapKey, MapValue, OurKey};
use crate::contender::map::OurMap;
use crate::contender::ordmap::{Function, Order, OurOrdMap};
use crate::contender::ours::{
    ByRange, Freezing, MapEnds, NoScans, Of, Otherwise as _, Ours, Recorded as RecordedBy, ScanBy,
    Shape,
};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::types::{KeyType, Types, ValueType};
use silvics::bst::bronson::build::Restarting2;
use silvics::map::{MapIndex, Value};
use silvics::ord::Natural;
use silvics::structures::At;
use silvics::{
    Batches, BronsonTree, Check, CountedMap, Create, Key, Lookup, Map, Objects, Options, Placement,
    Pooled, Recorded, Shared,
};
use silvics_testkit::TestKey;
use silvics_testkit::mapped::{Mapped, MappedKey};
use silvics_testkit::ordmapped::{OrdKey, OrdMapped};
use silvics_testkit::verify;
use std::sync::Arc;

const ORIGIN: &str = concat!("silvics ", env!("CARGO_PKG_VERSION"));

/// The key types of the command that a type of index takes.
macro_rules! key_types {
    (u64_keys) => {
        KeyType::U64
    };
    (u128_keys) => {
        KeyType::U128
    };
    (byte_keys) => {
        KeyType::Bytes | KeyType::String
    };
}

/// How a structure with this capability scans.
macro_rules! scan_by {
    (points) => {
        NoScans
    };
    (scans) => {
        ByRange<verify::AllScans>
    };
    (ends) => {
        ByRange<verify::ScansAndEnds>
    };
    (atomic) => {
        ByRange<verify::RangesRead>
    };
    (updates) => {
        ByRange<verify::RangesUpdated>
    };
}

/// The entries of the table of structures: [`silvics::for_each_structure`].
macro_rules! table {
    (() $({
        ident: $structure:ident, name: $name:literal, groups: [$($group:literal),*],
        caps: $caps:ident, paper: $paper:literal, topology: $topology:literal,
        sync: $sync:literal, progress: $progress:literal, scans: $scans:literal,
        page: $page:literal, checked: $checked:literal, max_key_bytes: $max:expr,
        builds: { $({
            ident: $build:ident, name: $build_name:literal,
            oversights: [$($oversight:literal),*], runs: $runs:ident, faults: $faults:ident,
            types: { $first:ident: $index:ty, $($keys:ident: $other:ty,)* }
        })+ }
    })+) => {
        vec![$(Entry {
            name: $name.into(),
            origin: ORIGIN,
            paper: $paper,
            topology: $topology,
            sync: $sync,
            groups: &["ours", $($group),*],
            max_key_bytes: $max,
            upserts: Upserts::Any,
            variants: vec![$(Variant {
                name: $build_name,
                make: |types, nodes| match (types.key, types.value) {
                    (key_types!($first), ValueType::U64) => {
                        Some(table!(@ maker $caps $index, nodes))
                    }
                    $((key_types!($keys), ValueType::U64) => {
                        Some(table!(@ maker $caps $other, nodes))
                    })*
                    _ => None,
                },
                objects: <$index>::OBJECTS,
                oversights: &[$($oversight),*],
                lookups_only: false,
                advice: advice($build_name),
                rust: Some(|key| match key {
                    key_types!($first) => Some(stringify!($index)),
                    $(key_types!($keys) => Some(stringify!($other)),)*
                    #[allow(unreachable_patterns)]
                    _ => None,
                }),
            }),+],
        }),+]
    };
    (@ maker $caps:ident $index:ty, $nodes:ident) => {
        match $nodes {
            Nodes::Pooled => {
                let shape = Of::<At<$index, Pooled>>::INDEX.shape();
                maker::<At<$index, Pooled>, At<$index, Recorded<Pooled>>, scan_by!($caps), _>(shape)
            }
            Nodes::Shared => {
                let shape = Of::<At<$index, Shared>>::INDEX.shape();
                maker::<At<$index, Shared>, At<$index, Recorded<Shared>>, scan_by!($caps), _>(shape)
            }
        }
    };
}

/// Whether a build is advised to users of another build of its structure.
fn advice(build: &str) -> Advice {
    match build {
        "fixed" => Advice::First,
        "baseline" | "shifted" => Advice::Never,
        _ => Advice::Next,
    }
}

pub(super) fn entries() -> Vec<Entry> {
    let mut entries = silvics::for_each_structure!((table));
    for entry in &mut entries {
        if entry.name == "occ-avl-2" {
            entry.variants.push(frozen());
        }
    }
    let blocks = entries.iter().find(|entry| entry.name == "blocks");
    let map = blocks.map(map);
    entries.extend(map);
    let foreign = [foreign::versioned(), foreign::multimap(), foreign::skipmap()];
    entries.extend(std::iter::once(ordmap()).chain(foreign));
    entries
}

/// `occ-avl-2:unsafe`: a tree that takes lookups only, once it is loaded.
fn frozen() -> Variant {
    Variant {
        name: "unsafe",
        make: |types, nodes| (types == Types::words(KeyType::U64)).then(|| freezing(nodes)),
        objects: BronsonTree::<Pooled, Restarting2>::OBJECTS,
        oversights: &[],
        lookups_only: true,
        advice: Advice::Never,
        rust: None,
    }
}

/// `Map`, over the indexes that it has by default: `words` for integers, `blocks` for byte strings.
fn map(blocks: &Entry) -> Entry {
    let Entry { origin, max_key_bytes, .. } = *blocks;
    Entry {
        name: "map".into(),
        origin,
        paper: "those of words and blocks",
        topology: "words for integers, blocks for byte strings",
        sync: "as in words and blocks",
        max_key_bytes,
        upserts: Upserts::Any,
        groups: &["ours"],
        variants: vec![
            over_index(DEFAULT_VARIANT, |types, nodes| {
                (nodes == Nodes::Pooled).then(|| match types.key {
                    KeyType::U64 => mapped::<u64>(types.value),
                    KeyType::U128 => mapped::<u128>(types.value),
                    KeyType::Bytes => mapped::<[u8]>(types.value),
                    KeyType::String => mapped::<str>(types.value),
                })
            }),
            over_index("counted", |types, nodes| {
                (nodes == Nodes::Pooled).then(|| match types.key {
                    KeyType::U64 => counted::<u64, CountedMap<u64, u64>>(types.value),
                    KeyType::U128 => counted::<u128, CountedMap<u128, u64>>(types.value),
                    KeyType::Bytes => counted::<[u8], CountedMap<Vec<u8>, u64>>(types.value),
                    KeyType::String => counted::<str, CountedMap<String, u64>>(types.value),
                })
            }),
        ],
    }
}

/// A variant of a map, whose objects are those of its index.
fn over_index(name: &'static str, make: fn(Types, Nodes) -> Option<AnyMaker>) -> Variant {
    Variant {
        name,
        make,
        objects: &[],
        oversights: &[],
        lookups_only: false,
        advice: Advice::Next,
        rust: None,
    }
}

/// A map and its index.
trait Over {
    type Index;
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Over for Map<K, V, I> {
    type Index = I;
}

/// `Map` over an index that also counts its keys: that of `C`.
fn counted<K, C: Over>(value: ValueType) -> AnyMaker
where
    K: OurKey<Bench: BenchKey> + ?Sized,
    C::Index: MapIndex<Key = <K::Ours as Key>::Form> + 'static,
    Maker<K::Bench>: Into<AnyMaker>,
{
    type Of<K, V, C> = OurMap<K, V, <C as Over>::Index>;
    let subject: Make<K::Bench> = match value {
        ValueType::U64 => |options| Of::<K, u64, C>::with_options(options).map(Subject::of),
        ValueType::Arc => |options| Of::<K, Arc<[u8]>, C>::with_options(options).map(Subject::of),
    };
    Maker { subject, scans: true, adapts: false, verify: None, inspect: None }.into()
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
        adapts: false,
        verify: Some(<MapEnds as RecordedBy<Mapped<K::Bench>>>::verify),
        inspect: None,
    }
}

/// `OrdMap`: keys in the order of their type, or in that of a function.
fn ordmap() -> Entry {
    Entry {
        name: "ordmap".into(),
        origin: ORIGIN,
        paper: "that of lfca-tree",
        topology: "lfca-tree, with keys in the nodes if they are integers",
        sync: "as in lfca-tree",
        max_key_bytes: None,
        upserts: Upserts::Any,
        groups: &["ours"],
        variants: vec![
            over_index(DEFAULT_VARIANT, |types, nodes| {
                (nodes == Nodes::Pooled).then(|| match types.key {
                    KeyType::U64 => ordered::<u64, Natural>(types.value),
                    KeyType::U128 => ordered::<u128, Natural>(types.value),
                    KeyType::Bytes => ordered::<[u8], Natural>(types.value),
                    KeyType::String => ordered::<str, Natural>(types.value),
                })
            }),
            over_index("function", |types, nodes| {
                (nodes == Nodes::Pooled).then(|| match types.key {
                    KeyType::U64 => ordered::<u64, Function<u64>>(types.value),
                    KeyType::U128 => ordered::<u128, Function<u128>>(types.value),
                    KeyType::Bytes => ordered::<[u8], Function<[u8]>>(types.value),
                    KeyType::String => ordered::<str, Function<str>>(types.value),
                })
            }),
        ],
    }
}

fn ordered<K, C: Order<K>>(value: ValueType) -> AnyMaker
where
    K: MapKey<Bench: BenchKey + OrdKey + TestKey> + ?Sized,
{
    match value {
        ValueType::U64 => ord_maker::<K, u64, C>().into(),
        ValueType::Arc => ord_maker::<K, Arc<[u8]>, C>().into(),
    }
}

fn ord_maker<K, V: MapValue, C: Order<K>>() -> Maker<K::Bench>
where
    K: MapKey<Bench: BenchKey + OrdKey + TestKey> + ?Sized,
{
    Maker {
        subject: |options| OurOrdMap::<K, V, C>::with_options(options).map(Subject::of),
        scans: true,
        adapts: false,
        verify: Some(<MapEnds as RecordedBy<OrdMapped<K::Bench>>>::verify),
        inspect: None,
    }
}

/// The constructors of an index `I`. `R` is the index in a placement that records reads, and `A`
/// the type of [`Of::shape`].
fn maker<I, R, S, A>(_: A) -> AnyMaker
where
    I: Create + Batches + Check + Objects + Lookup<Key: Form> + 'static,
    R: Create + Batches + Check + Objects + Lookup<Key = I::Key> + 'static,
    S: ScanBy<I> + RecordedBy<I>,
    A: Shape<I>,
{
    let maker: Maker<<I::Key as Form>::Drawn> = Maker {
        subject: |options| Ok(Subject::of(Ours::<I, S, A>::that(I::with_options(options)?))),
        scans: S::SCANS,
        adapts: A::ADAPTS,
        verify: Some(<S as RecordedBy<I>>::verify),
        inspect: Some(|options| Ok(Box::new(R::with_options(options)?))),
    };
    maker.into()
}

fn freezing(nodes: Nodes) -> AnyMaker {
    match nodes {
        Nodes::Pooled => freezing_in::<Pooled>().into(),
        Nodes::Shared => freezing_in::<Shared>().into(),
    }
}

fn freezing_in<P: Placement>() -> Maker<u64> {
    let subject = |options: &Options| Ok(Subject::of(Freezing::<P>::with_options(options)?));
    Maker { subject, scans: false, adapts: false, verify: None, inspect: None }
}
