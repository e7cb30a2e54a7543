//! Those of other crates.

use super::{AnyMaker, DEFAULT_VARIANT, Entry, Maker, Nodes, Variant};
use crate::contender::held::{MapKey, MapValue};
use crate::contender::peers::{
    BtreeMapRwLock, ConcurrentMap, Congee, CrossbeamSkiplist, Ferntree, Masstree, Peer,
    SccTreeIndex,
};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::types::{KeyType, Types, ValueType};
use silvics::Options;
use std::sync::Arc;

/// The constructors of a peer that holds words: for each key type that it takes, its map.
macro_rules! constructors {
    ($($($key:ident)|+ => $map:ty),+) => {
        |types, nodes| match (types.key, types.value, nodes) {
            $(($(KeyType::$key)|+, ValueType::U64, Nodes::Pooled) => Some(maker::<$map>()),)+
            _ => None,
        }
    };
}

pub(super) fn entries() -> Vec<Entry> {
    vec![
        map::<BtreeMaps>(),
        map::<SkipMaps>(),
        entry::<Congee>(constructors!(U64 => Congee)),
        map::<TreeIndexes>(),
        entry::<Masstree<[u8]>>(
            constructors!(U64 => Masstree<u64>, Bytes | String => Masstree<[u8]>),
        ),
        entry::<ConcurrentMap<[u8]>>(
            constructors!(U64 => ConcurrentMap<u64>, Bytes | String => ConcurrentMap<[u8]>),
        ),
        entry::<Ferntree<[u8]>>(
            constructors!(U64 => Ferntree<u64>, Bytes | String => Ferntree<[u8]>),
        ),
    ]
}

/// Maps from any keys to any values.
trait Generic {
    /// One of them.
    type Map<K: MapKey<Bench: BenchKey> + ?Sized, V: MapValue>: Peer<Key = K::Bench>;
}

/// Declares them.
macro_rules! generic {
    ($($family:ident = $map:ident;)*) => {$(
        struct $family;
        impl Generic for $family {
            type Map<K: MapKey<Bench: BenchKey> + ?Sized, V: MapValue> = $map<K, V>;
        }
    )*};
}

generic! {
    BtreeMaps = BtreeMapRwLock;
    SkipMaps = CrossbeamSkiplist;
    TreeIndexes = SccTreeIndex;
}

fn map<G: Generic>() -> Entry {
    entry::<G::Map<[u8], u64>>(|types, nodes| {
        (nodes == Nodes::Pooled).then(|| match types.key {
            KeyType::U64 => with_values::<G, u64>(types.value),
            KeyType::U128 => with_values::<G, u128>(types.value),
            KeyType::Bytes => with_values::<G, [u8]>(types.value),
            KeyType::String => with_values::<G, str>(types.value),
        })
    })
}

fn with_values<G: Generic, K: MapKey<Bench: BenchKey> + ?Sized>(value: ValueType) -> AnyMaker {
    match value {
        ValueType::U64 => maker::<G::Map<K, u64>>(),
        ValueType::Arc => maker::<G::Map<K, Arc<[u8]>>>(),
    }
}

/// A peer. `P` is one of its maps, whose facts hold for all of them.
fn entry<P: Peer>(make: fn(Types, Nodes) -> Option<AnyMaker>) -> Entry {
    Entry {
        name: format!("peer:{}", P::NAME),
        origin: P::CRATE,
        paper: P::PAPER,
        topology: P::TOPOLOGY,
        sync: P::SYNC,
        groups: &["peers", "default"],
        max_key_bytes: P::MAX_KEY_BYTES,
        variants: vec![Variant {
            name: DEFAULT_VARIANT,
            make,
            objects: &[],
            oversights: &[],
            lookups_only: false,
        }],
    }
}

fn maker<P: Peer<Key: BenchKey>>() -> AnyMaker {
    let subject = |_: &Options| Ok(Subject::of(P::default()));
    Maker { subject, scans: P::SCANS, verify: None, inspect: None }.into()
}
