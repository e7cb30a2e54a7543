//! The catalogue's entries of peers: the ordered maps of other crates.

use super::{Advice, AnyMaker, DEFAULT_VARIANT, Entry, Maker, Nodes, Variant, Verify};
use crate::contender::peers::{
    ArcticMap, Artmap, BtreeMapMutex, BtreeMapRwLock, ConcurrentMap, Congee, CrossbeamSkiplist,
    Ferntree, Masstree, Peer, Recorded, SccTreeIndex, recorded::verify,
};
use crate::contender::skipmap::OurSkipMap;
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::types::{KeyType, Types, ValueType};
use silvics::Options;
use silvics_testkit::TestKey;
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

/// The entry of a peer that is generic over its keys and values.
macro_rules! map {
    ($map:ident) => {
        entry::<$map<[u8]>>(|types, nodes| {
            (nodes == Nodes::Pooled).then(|| match (types.key, types.value) {
                (KeyType::U64, ValueType::U64) => recorded::<$map<u64>>(),
                (KeyType::U64, ValueType::Arc) => maker::<$map<u64, Arc<[u8]>>>(),
                (KeyType::U128, ValueType::U64) => recorded::<$map<u128>>(),
                (KeyType::U128, ValueType::Arc) => maker::<$map<u128, Arc<[u8]>>>(),
                (KeyType::Bytes, ValueType::U64) => recorded::<$map<[u8]>>(),
                (KeyType::Bytes, ValueType::Arc) => maker::<$map<[u8], Arc<[u8]>>>(),
                (KeyType::String, ValueType::U64) => maker::<$map<str>>(),
                (KeyType::String, ValueType::Arc) => maker::<$map<str, Arc<[u8]>>>(),
            })
        })
    };
}

/// `SkipMap`, which is driven as `crossbeam-skiplist` is.
pub(super) fn skipmap() -> Entry {
    let entry = map!(OurSkipMap);
    Entry { name: OurSkipMap::<u64>::NAME.into(), groups: &["ours"], ..entry }
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
    ]
}

/// The entry of a peer. `P` is one of its maps, whose facts hold for all of them.
fn entry<P: Peer>(make: fn(Types, Nodes) -> Option<AnyMaker>) -> Entry {
    Entry {
        name: format!("peer:{}", P::NAME),
        origin: P::CRATE,
        paper: P::PAPER,
        topology: P::TOPOLOGY,
        sync: P::SYNC,
        groups: &["peers", "default"],
        max_key_bytes: P::MAX_KEY_BYTES,
        upserts: P::UPSERTS,
        variants: vec![Variant {
            name: DEFAULT_VARIANT,
            make,
            objects: &[],
            oversights: &[],
            lookups_only: false,
            advice: Advice::Next,
        }],
    }
}

/// The constructor of a peer whose histories are not recorded.
fn maker<P: Peer<Key: BenchKey>>() -> AnyMaker {
    let subject = |_: &Options| Ok(Subject::of(P::default()));
    Maker { subject, scans: P::SCANS, adapts: false, verify: None, inspect: None }.into()
}

/// The constructor of a peer whose histories `verify` records.
fn recorded<P: Recorded<Key: BenchKey + TestKey>>() -> AnyMaker {
    let subject = |_: &Options| Ok(Subject::of(P::default()));
    let verify = Some(verify::<P> as Verify);
    Maker { subject, scans: P::SCANS, adapts: false, verify, inspect: None }.into()
}
