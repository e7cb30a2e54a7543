//! `silvics::MultiMap` as a contender, with one value for each key.

use super::held::{MapValue, OurKey};
use super::peer::Peer;
use super::{Contender, Session, Upserts, visited};
use crate::interrupt;
use silvics::map::DefaultIndex;
use silvics::multi::{Inserted, MultiView, Sorted};
use silvics::{AllocError, IndexKey, MultiMap, Options, PoolStats};
use silvics_testkit::clock::Clock;
use silvics_testkit::lists::{Makers, multi, verify_lists};
use silvics_testkit::verify;
use silvics_testkit::versions::NumberedKey;
use std::ops::Bound::{Included, Unbounded};

/// A map with keys that `K` stands for and values of type `V`.
pub struct OurMultiMap<K: OurKey + ?Sized, V: MapValue = u64> {
    map: MultiMap<K::Ours, V>,
}

impl<K: OurKey + ?Sized, V: MapValue> OurMultiMap<K, V> {
    /// An empty map.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        Ok(Self { map: MultiMap::with_options(options)? })
    }
}

impl<K: OurKey + ?Sized, V: MapValue> Default for OurMultiMap<K, V> {
    fn default() -> Self {
        Self { map: MultiMap::new() }
    }
}

impl<K: OurKey + ?Sized, V: MapValue + Ord> Peer for OurMultiMap<K, V> {
    const NAME: &'static str = "multimap";
    const CRATE: &'static str = concat!("silvics ", env!("CARGO_PKG_VERSION"));
    const PAPER: &'static str = "those of words and blocks";
    const TOPOLOGY: &'static str = "as map, with a tree of values for each key that has several";
    const SYNC: &'static str = "as in words and blocks; lists by exchange";
    const SCANS: bool = true;
    /// An insert adds a value to those of the key.
    const UPSERTS: Upserts = Upserts::None;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: OurKey + ?Sized, V: MapValue + Ord> Contender for OurMultiMap<K, V> {
    type Key = K::Bench;
    type Session<'a> = MultiSession<'a, K, V>;

    fn session(&self) -> MultiSession<'_, K, V> {
        MultiSession { view: self.map.pin() }
    }

    /// As [`OurMap::bytes`](super::map::OurMap).
    fn bytes(&self) -> Option<usize> {
        V::IS_IN_MAP.then(|| self.map.bytes())
    }

    fn pooled_bytes(&self) -> usize {
        self.map.bytes()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.map.pool_stats()
    }
}

/// Records histories of maps with keys of type `K`, and checks them.
pub fn verify<K: NumberedKey>(plan: &verify::Plan, clock: &Clock) -> verify::Report {
    let makers = Makers {
        sorted: &multi::<K, Sorted, DefaultIndex<K>>,
        inserted: &multi::<K, Inserted, DefaultIndex<K>>,
    };
    verify_lists(plan, clock, makers, interrupt::pending_beat)
}

/// A thread's session: the map pinned.
pub struct MultiSession<'a, K: OurKey + ?Sized, V: MapValue> {
    view: MultiView<'a, K::Ours, V, Sorted, DefaultIndex<K::Ours>>,
}

impl<K: OurKey + ?Sized, V: MapValue + Ord> Session for MultiSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.view.first_of(K::lend(&key)).map(|value| value.word())
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let added = self.view.try_insert(K::lend(&key), V::hold(value));
        Ok(added.map_err(|rejected| rejected.error)?.is_added())
    }

    fn upsert(&mut self, _: <K::Bench as IndexKey>::Ref<'_>, _: u64) -> Result<bool, AllocError> {
        Ok(false) // see `UPSERTS`: never called
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.view.try_remove_all(K::lend(&key))? > 0)
    }

    #[inline]
    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let entries = self.view.range((Included(K::lend(&from)), Unbounded)).take(limit);
        visited(entries, |key, value| visit(K::lent(key), value.word()))
    }

    #[inline]
    fn refresh(&mut self) {
        self.view.repin();
    }
}
