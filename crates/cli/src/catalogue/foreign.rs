//! The entries of maps that are driven through the traits of peers: peers, our `SkipMap`, which is
//! driven as `crossbeam-skiplist` is, and our `VersionedMap` and `MultiMap`.

use super::{Advice, AnyMaker, DEFAULT_VARIANT, Entry, Make, Maker, Nodes, Variant, Verify};
use crate::contender::held::{MapValue, OurKey};
use crate::contender::multimap::{self, OurMultiMap};
use crate::contender::peer::Peer;
use crate::contender::recorded::{Recorded, verify};
use crate::contender::skipmap::OurSkipMap;
use crate::contender::versioned::{self, OurVersioned};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use crate::flags::types::{KeyType, Types, ValueType};
use silvics::Options;
use silvics_testkit::TestKey;
use std::sync::Arc;

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

#[cfg(feature = "peers")]
pub(super) use map;

/// `SkipMap`.
pub(super) fn skipmap() -> Entry {
    let entry = map!(OurSkipMap);
    Entry { name: OurSkipMap::<u64>::NAME.into(), groups: &["ours"], ..entry }
}

/// `VersionedMap`.
pub(super) fn versioned() -> Entry {
    let entry = entry::<OurVersioned<[u8]>>(|types, nodes| {
        (nodes == Nodes::Pooled).then(|| match (types.key, types.value) {
            (KeyType::U64, ValueType::U64) => versions::<u64, u64>(Some(versioned::verify::<u64>)),
            (KeyType::U64, ValueType::Arc) => versions::<u64, Arc<[u8]>>(None),
            (KeyType::U128, ValueType::U64) => {
                versions::<u128, u64>(Some(versioned::verify::<u128>))
            }
            (KeyType::U128, ValueType::Arc) => versions::<u128, Arc<[u8]>>(None),
            (KeyType::Bytes, ValueType::U64) => {
                versions::<[u8], u64>(Some(versioned::verify::<Vec<u8>>))
            }
            (KeyType::Bytes, ValueType::Arc) => versions::<[u8], Arc<[u8]>>(None),
            (KeyType::String, ValueType::U64) => versions::<str, u64>(None),
            (KeyType::String, ValueType::Arc) => versions::<str, Arc<[u8]>>(None),
        })
    });
    Entry { name: OurVersioned::<u64>::NAME.into(), groups: &["ours"], ..entry }
}

/// `MultiMap`.
pub(super) fn multimap() -> Entry {
    let entry = entry::<OurMultiMap<[u8]>>(|types, nodes| {
        (nodes == Nodes::Pooled).then(|| match types.key {
            KeyType::U64 => multi::<u64>(types.value, Some(multimap::verify::<u64>)),
            KeyType::U128 => multi::<u128>(types.value, Some(multimap::verify::<u128>)),
            KeyType::Bytes => multi::<[u8]>(types.value, Some(multimap::verify::<Vec<u8>>)),
            KeyType::String => multi::<str>(types.value, None),
        })
    });
    Entry { name: OurMultiMap::<u64>::NAME.into(), groups: &["ours"], ..entry }
}

fn multi<K>(value: ValueType, verify: Option<Verify>) -> AnyMaker
where
    K: OurKey<Bench: BenchKey> + ?Sized,
    Maker<K::Bench>: Into<AnyMaker>,
{
    let subject: Make<K::Bench> = match value {
        ValueType::U64 => |options| OurMultiMap::<K, u64>::with_options(options).map(Subject::of),
        ValueType::Arc => {
            |options| OurMultiMap::<K, Arc<[u8]>>::with_options(options).map(Subject::of)
        }
    };
    Maker { subject, scans: true, adapts: false, verify, inspect: None }.into()
}

fn versions<K, V: MapValue>(verify: Option<Verify>) -> AnyMaker
where
    K: OurKey<Bench: BenchKey> + ?Sized,
    Maker<K::Bench>: Into<AnyMaker>,
{
    let subject = |options: &Options| OurVersioned::<K, V>::with_options(options).map(Subject::of);
    Maker { subject, scans: true, adapts: false, verify, inspect: None }.into()
}

/// The entry of a peer. `P` is one of its maps, whose facts hold for all of them.
pub(super) fn entry<P: Peer>(make: fn(Types, Nodes) -> Option<AnyMaker>) -> Entry {
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
            rust: None,
        }],
    }
}

/// The constructor of a peer whose histories are not recorded.
pub(super) fn maker<P: Peer<Key: BenchKey>>() -> AnyMaker {
    let subject = |_: &Options| Ok(Subject::of(P::default()));
    Maker { subject, scans: P::SCANS, adapts: false, verify: None, inspect: None }.into()
}

/// The constructor of a peer whose histories `verify` records.
pub(super) fn recorded<P: Recorded<Key: BenchKey + TestKey>>() -> AnyMaker {
    let subject = |_: &Options| Ok(Subject::of(P::default()));
    let verify = Some(verify::<P> as Verify);
    Maker { subject, scans: P::SCANS, adapts: false, verify, inspect: None }.into()
}
