//! `std::collections::BTreeMap` under `parking_lot::RwLock`: the choice of a program that uses none
//! of the crates compared here, and the alternative that crossbeam-skiplist's docs name.
//!
//! # How it is driven
//! Each operation takes the lock once: shared for `get` and `scan`, exclusive for `insert` and
//! `remove`. `insert` goes through the entry API and so leaves a present key as it is. A session
//! keeps nothing between calls, because a kept lock would exclude the other threads. Byte strings
//! are `Vec<u8>`, made before the lock is taken and, if the API allows it, dropped after its
//! release.
//!
//! The lock is `parking_lot`'s, which is fair now and then, so that readers cannot keep a writer
//! out for ever; that of `std` gives no such promise.
//!
//! # Scans
//! A scan keeps the shared lock to its end, so it is a snapshot: the only one among the peers.

use super::peer::Peer;
use super::recorded::Recorded;
use crate::contender::held::{MapKey, MapValue};
use crate::contender::{Contender, Session};
use parking_lot::RwLock;
use silvics::{AllocError, IndexKey};
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::{Included, Unbounded};

/// `RwLock<BTreeMap>`.
pub struct BtreeMapRwLock<K: MapKey + ?Sized, V: MapValue = u64> {
    map: RwLock<BTreeMap<K::Owned, V>>,
}

impl<K: MapKey + ?Sized, V: MapValue> Default for BtreeMapRwLock<K, V> {
    fn default() -> Self {
        Self { map: RwLock::default() }
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Peer for BtreeMapRwLock<K, V> {
    const NAME: &'static str = "btreemap-rwlock";
    const CRATE: &'static str = "std, parking_lot 0.13";
    const PAPER: &'static str = "Bayer and McCreight 1972";
    const TOPOLOGY: &'static str = "B-tree";
    const SYNC: &'static str = "one readers-writer lock";
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: MapKey + ?Sized, V: MapValue> Contender for BtreeMapRwLock<K, V> {
    type Key = K::Bench;
    type Session<'a> = BtreeMapSession<'a, K, V>;

    fn session(&self) -> Self::Session<'_> {
        BtreeMapSession { map: &self.map }
    }
}

impl<K: MapKey + ?Sized> Recorded for BtreeMapRwLock<K> {
    fn write(
        session: &mut Self::Session<'_>,
        key: <K::Bench as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op> {
        let map = session.map;
        Some(match write {
            Write::TryInsert { value } => {
                let outcome = match map.write().entry(K::own(key)) {
                    Entry::Vacant(entry) => {
                        entry.insert(value);
                        Ok(())
                    }
                    Entry::Occupied(entry) => Err(*entry.get()),
                };
                Op::TryInsert { value, outcome }
            }
            Write::Insert { value } => {
                let old = map.write().insert(K::own(key), value);
                Op::Insert { value, old }
            }
            Write::Remove => Op::Remove { old: map.write().remove(K::lend(&key)) },
            Write::CompareExchange { .. } => return None,
        })
    }
}

/// A thread's session: it keeps nothing between calls.
pub struct BtreeMapSession<'a, K: MapKey + ?Sized, V: MapValue> {
    map: &'a RwLock<BTreeMap<K::Owned, V>>,
}

impl<K: MapKey + ?Sized, V: MapValue> Session for BtreeMapSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.map.read().get(K::lend(&key)).map(V::word)
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let key = K::own(key);
        match self.map.write().entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(V::hold(value));
                Ok(true)
            }
            Entry::Occupied(_) => Ok(false),
        }
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        // Bound first, so that the value is dropped after the lock is released.
        let old = self.map.write().insert(K::own(key), V::hold(value));
        Ok(old.is_none())
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        // Bound first, so that the owned key is dropped after the lock is released.
        let removed = self.map.write().remove_entry(K::lend(&key));
        Ok(removed.is_some())
    }

    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let map = self.map.read();
        let range = (Included(K::lend(&from)), Unbounded);
        let mut seen = 0;
        for (key, value) in map.range::<K, _>(range).take(limit) {
            visit(K::show(key), value.word());
            seen += 1;
        }
        seen
    }
}
