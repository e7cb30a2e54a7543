//! `std::collections::BTreeMap` under `parking_lot::RwLock`: the choice of a program that uses none
//! of the crates compared here, and the alternative that crossbeam-skiplist's docs name. And the
//! same under `parking_lot::Mutex`.
//!
//! # How it is driven
//! Each operation takes the lock once: shared for `get` and `scan`, exclusive for `insert` and
//! `remove`. A mutex is always exclusive. `insert` goes through the entry API and so leaves a
//! present key as it is. A session keeps nothing between calls, because a kept lock would exclude
//! the other threads. Byte strings are `Vec<u8>`, made before the lock is taken and, if the API
//! allows it, dropped after its release.
//!
//! The locks are `parking_lot`'s, which are fair now and then, so that readers cannot keep a writer
//! out for ever; that of `std` gives no such promise.
//!
//! # Scans
//! A scan keeps the lock to its end, so it is a snapshot: the only one among the peers.

use crate::contender::held::{MapKey, MapValue};
use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session};
use parking_lot::{Mutex, RwLock};
use silvics::{AllocError, IndexKey};
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::{Included, Unbounded};
use std::ops::{Deref, DerefMut};

/// `RwLock<BTreeMap>`.
pub type BtreeMapRwLock<K, V = u64> = BtreeMapUnder<ReadersWriter, K, V>;
/// `Mutex<BTreeMap>`.
pub type BtreeMapMutex<K, V = u64> = BtreeMapUnder<Exclusive, K, V>;

/// A lock over a map.
pub trait Locking: Send + Sync + 'static {
    /// The name of the peer.
    const NAME: &'static str;
    /// See [`Peer::SYNC`].
    const SYNC: &'static str;
    /// The lock with what it protects.
    type Of<T: Default + Send + Sync>: Default + Send + Sync;

    /// Locks for reading.
    fn read<T: Default + Send + Sync>(lock: &Self::Of<T>) -> impl Deref<Target = T>;
    /// Locks for writing.
    fn write<T: Default + Send + Sync>(lock: &Self::Of<T>) -> impl DerefMut<Target = T>;
}

/// A readers–writer lock.
pub struct ReadersWriter;

impl Locking for ReadersWriter {
    const NAME: &'static str = "btreemap-rwlock";
    const SYNC: &'static str = "one readers-writer lock";
    type Of<T: Default + Send + Sync> = RwLock<T>;

    #[inline]
    fn read<T: Default + Send + Sync>(lock: &RwLock<T>) -> impl Deref<Target = T> {
        lock.read()
    }

    #[inline]
    fn write<T: Default + Send + Sync>(lock: &RwLock<T>) -> impl DerefMut<Target = T> {
        lock.write()
    }
}

/// A mutex.
pub struct Exclusive;

impl Locking for Exclusive {
    const NAME: &'static str = "btreemap-mutex";
    const SYNC: &'static str = "one mutex";
    type Of<T: Default + Send + Sync> = Mutex<T>;

    #[inline]
    fn read<T: Default + Send + Sync>(lock: &Mutex<T>) -> impl Deref<Target = T> {
        lock.lock()
    }

    #[inline]
    fn write<T: Default + Send + Sync>(lock: &Mutex<T>) -> impl DerefMut<Target = T> {
        lock.lock()
    }
}

/// A `BTreeMap` under a lock.
pub struct BtreeMapUnder<L: Locking, K: MapKey + ?Sized, V: MapValue = u64> {
    map: L::Of<BTreeMap<K::Owned, V>>,
}

impl<L: Locking, K: MapKey + ?Sized, V: MapValue> Default for BtreeMapUnder<L, K, V> {
    fn default() -> Self {
        Self { map: Default::default() }
    }
}

impl<L: Locking, K: MapKey + ?Sized, V: MapValue> Peer for BtreeMapUnder<L, K, V> {
    const NAME: &'static str = L::NAME;
    const CRATE: &'static str = "std, parking_lot 0.13";
    const PAPER: &'static str = "Bayer and McCreight 1972";
    const TOPOLOGY: &'static str = "B-tree";
    const SYNC: &'static str = L::SYNC;
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<L: Locking, K: MapKey + ?Sized, V: MapValue> Contender for BtreeMapUnder<L, K, V> {
    type Key = K::Bench;
    type Session<'a> = BtreeMapSession<'a, L, K, V>;

    fn session(&self) -> Self::Session<'_> {
        BtreeMapSession { map: &self.map }
    }
}

impl<L: Locking, K: MapKey + ?Sized> Recorded for BtreeMapUnder<L, K> {
    fn write(
        session: &mut Self::Session<'_>,
        key: <K::Bench as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op> {
        let map = session.map;
        Some(match write {
            Write::TryInsert { value } => {
                let outcome = match L::write(map).entry(K::own(key)) {
                    Entry::Vacant(entry) => {
                        entry.insert(value);
                        Ok(())
                    }
                    Entry::Occupied(entry) => Err(*entry.get()),
                };
                Op::TryInsert { value, outcome }
            }
            Write::Insert { value } => {
                let old = L::write(map).insert(K::own(key), value);
                Op::Insert { value, old }
            }
            Write::Remove => Op::Remove { old: L::write(map).remove(K::lend(&key)) },
            Write::CompareExchange { .. } => return None,
        })
    }
}

/// A thread's session: it keeps nothing between calls.
pub struct BtreeMapSession<'a, L: Locking, K: MapKey + ?Sized, V: MapValue> {
    map: &'a L::Of<BTreeMap<K::Owned, V>>,
}

impl<L: Locking, K: MapKey + ?Sized, V: MapValue> Session for BtreeMapSession<'_, L, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        L::read(self.map).get(K::lend(&key)).map(V::word)
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        let key = K::own(key);
        match L::write(self.map).entry(key) {
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
        let old = L::write(self.map).insert(K::own(key), V::hold(value));
        Ok(old.is_none())
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        // Bound first, so that the owned key is dropped after the lock is released.
        let removed = L::write(self.map).remove_entry(K::lend(&key));
        Ok(removed.is_some())
    }

    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let map = L::read(self.map);
        let range = (Included(K::lend(&from)), Unbounded);
        let mut seen = 0;
        for (key, value) in map.range::<K, _>(range).take(limit) {
            visit(K::show(key), value.word());
            seen += 1;
        }
        seen
    }
}
