//! The catalogue's entries of peers: the ordered maps of other crates.

use super::foreign::{entry, maker, map, recorded};
use super::{Entry, Nodes};
use crate::contender::peers::{
    ArcticMap, Artmap, ArtmapVersioned, BtreeMapMutex, BtreeMapRwLock, ConcurrentMap, Congee,
    CrossbeamSkiplist, Ferntree, Masstree, SccTreeIndex,
};
use crate::flags::types::{KeyType, ValueType};
use std::sync::Arc;

/// The constructors of a peer whose values are words, for each key type that it takes.
macro_rules! constructors {
    ($($($key:ident)|+ => $maker:ident $map:ty),+) => {
        |types, nodes| match (types.key, types.value, nodes) {
            $(($(KeyType::$key)|+, ValueType::U64, Nodes::Pooled) => Some($maker::<$map>()),)+
            _ => None,
        }
    };
}

/// An entry that takes no writes once it is loaded.
fn lookups_only(mut entry: Entry) -> Entry {
    for variant in &mut entry.variants {
        variant.lookups_only = true;
    }
    Entry { groups: &["peers"], ..entry }
}

pub(super) fn entries() -> Vec<Entry> {
    vec![
        map!(BtreeMapRwLock),
        Entry { groups: &["peers"], ..map!(BtreeMapMutex) },
        map!(CrossbeamSkiplist),
        entry::<Congee>(constructors!(U64 => recorded Congee)),
        map!(SccTreeIndex),
        entry::<Masstree<[u8]>>(
            constructors!(U64 => recorded Masstree<u64>, Bytes | String => recorded Masstree<[u8]>),
        ),
        entry::<ConcurrentMap<[u8]>>(
            constructors!(U64 => recorded ConcurrentMap<u64>, Bytes | String => recorded ConcurrentMap<[u8]>),
        ),
        entry::<Ferntree<[u8]>>(
            constructors!(U64 => recorded Ferntree<u64>, Bytes | String => maker Ferntree<[u8]>),
        ),
        entry::<ArcticMap<[u8]>>(constructors!(
            U64 => recorded ArcticMap<u64>, U128 => recorded ArcticMap<u128>, Bytes | String => recorded ArcticMap<[u8]>
        )),
        map!(Artmap),
        lookups_only(entry::<ArtmapVersioned<[u8]>>(constructors!(
            U64 => maker ArtmapVersioned<u64>,
            U128 => maker ArtmapVersioned<u128>,
            Bytes | String => maker ArtmapVersioned<[u8]>
        ))),
    ]
}
