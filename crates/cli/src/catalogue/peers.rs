//! Those of other crates.

use super::{DEFAULT_VARIANT, Entry, Make, Makers, Maps, Ranges, Variant};
use crate::contender::held::{MapKey, MapValue};
use crate::contender::peers::{
    BtreeMapRwLock, ConcurrentMap, Congee, CrossbeamSkiplist, Ferntree, Masstree, Peer,
    SccTreeIndex,
};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Subject;
use std::sync::Arc;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        map::<BtreeMaps>(),
        map::<SkipMaps>(),
        word_only::<Congee>(),
        map::<TreeIndexes>(),
        both::<Masstree<u64>, Masstree<[u8]>>(),
        both::<ConcurrentMap<u64>, ConcurrentMap<[u8]>>(),
        both::<Ferntree<u64>, Ferntree<[u8]>>(),
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
    let mut entry = both::<G::Map<u64, u64>, G::Map<[u8], u64>>();
    entry.variants[0].own.maps = Maps {
        word_arc: Some(make::<G::Map<u64, Arc<[u8]>>>()),
        bytes_arc: Some(make::<G::Map<[u8], Arc<[u8]>>>()),
        string: Some(make::<G::Map<str, u64>>()),
        string_arc: Some(make::<G::Map<str, Arc<[u8]>>>()),
    };
    entry
}

fn both<W: Peer<Key = u64>, B: Peer<Key = [u8]>>() -> Entry {
    let makers = Makers { word: Some(make::<W>()), bytes: Some(make::<B>()), ..Makers::default() };
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
