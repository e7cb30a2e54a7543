//! Those of other crates.

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
