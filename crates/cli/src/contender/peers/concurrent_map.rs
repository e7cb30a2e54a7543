//! The `concurrent-map` crate: a lock-free B+ tree whose writers copy the leaf they change.
//!
//! # How it is driven
//! A `ConcurrentMap` is `Send` but not `Sync`, and its docs ask for a clone per thread. So every
//! session is a clone with its own reclamation state, and there is nothing to refresh. Fan-out and
//! garbage buffer keep their defaults. `insert` is `cas` from absent, the documented way to create
//! a value uniquely; it was level with the map's `insert` or ahead.
//!
//! # Keys
//! A byte string is an `Arc<[u8]>` in a newtype with a least value, which the docs ask of custom
//! keys. A writer clones every key of its leaf, and the docs advise an `Arc` if that is costly.
//! With `Vec<u8>` a mix with half updates ran at 0.6 of the speed; lookups were level.
//!
//! # Scans
//! `range`, which also looks up the far end of the range before it starts.

use super::key::PeerKey;
use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session};
use concurrent_map::Minimum;
use parking_lot::Mutex;
use silvics::AllocError;
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

/// A key that `concurrent-map` can store.
pub trait StoredKey: PeerKey {
    /// The stored type.
    type Stored: Clone + Minimum + Ord + Borrow<Self> + Send + Sync + 'static;
    /// Copies a key into the stored type.
    fn store(key: Self::Ref<'_>) -> Self::Stored;
    /// Returns the key behind a stored one.
    fn stored(stored: &Self::Stored) -> Self::Ref<'_>;
}

impl StoredKey for u64 {
    type Stored = u64;

    #[inline(always)]
    fn store(key: u64) -> u64 {
        key
    }
    #[inline(always)]
    fn stored(stored: &u64) -> u64 {
        *stored
    }
}

/// A shared byte string with a least value.
#[derive(Clone)]
pub struct SharedBytes(Option<Arc<[u8]>>);

impl Minimum for SharedBytes {
    const MIN: Self = Self(None);
}

impl Borrow<[u8]> for SharedBytes {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SharedBytes {}

impl PartialOrd for SharedBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SharedBytes {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let (bytes, others): (&[u8], &[u8]) = (self.borrow(), other.borrow());
        bytes.cmp(others)
    }
}

impl StoredKey for [u8] {
    type Stored = SharedBytes;

    #[inline]
    fn store(key: &[u8]) -> SharedBytes {
        SharedBytes(Some(key.into()))
    }
    #[inline]
    fn stored(stored: &SharedBytes) -> &[u8] {
        stored.borrow()
    }
}

type Map<K> = concurrent_map::ConcurrentMap<<K as StoredKey>::Stored, u64>;

/// `concurrent_map::ConcurrentMap`.
pub struct ConcurrentMap<K: StoredKey + ?Sized> {
    /// The handle that sessions are cloned from; it is `Send` but not `Sync`.
    map: Mutex<Map<K>>,
}

impl<K: StoredKey + ?Sized> Default for ConcurrentMap<K> {
    fn default() -> Self {
        Self { map: Mutex::new(Map::<K>::new()) }
    }
}

impl<K: StoredKey + ?Sized> Peer for ConcurrentMap<K> {
    const NAME: &'static str = "concurrent-map";
    const CRATE: &'static str = "concurrent-map 5.0.37";
    const PAPER: &'static str = "";
    const TOPOLOGY: &'static str = "B+ tree";
    const SYNC: &'static str = "lock-free, copy on write";
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: StoredKey + ?Sized> Contender for ConcurrentMap<K> {
    type Key = K;
    type Session<'a> = ConcurrentMapSession<K>;

    fn session(&self) -> ConcurrentMapSession<K> {
        ConcurrentMapSession { map: self.map.lock().clone() }
    }
}

impl<K: StoredKey + ?Sized> Recorded for ConcurrentMap<K> {
    fn write(session: &mut Self::Session<'_>, key: K::Ref<'_>, write: Write) -> Option<Op> {
        let map = &session.map;
        let cas = |key, expected: Option<u64>, new| {
            let result = map.cas(K::store(key), expected.as_ref(), new);
            result.map(|_| ()).map_err(|failure| failure.actual)
        };
        Some(match write {
            Write::TryInsert { value } => {
                let outcome = match cas(key, None, Some(value)) {
                    Err(Some(present)) => Err(present),
                    Ok(()) | Err(None) => Ok(()),
                };
                Op::TryInsert { value, outcome }
            }
            Write::Insert { value } => Op::Insert { value, old: map.insert(K::store(key), value) },
            Write::Remove => Op::Remove { old: map.remove(K::lend(&key)) },
            Write::CompareExchange { expected, new } => {
                Op::CompareExchange { expected, new, outcome: cas(key, expected, new) }
            }
        })
    }
}

/// A thread's session: its own handle of the map.
pub struct ConcurrentMapSession<K: StoredKey + ?Sized> {
    map: Map<K>,
}

impl<K: StoredKey + ?Sized> Session for ConcurrentMapSession<K> {
    type Key = K;
    type Lent = K;

    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        self.map.get(K::lend(&key))
    }

    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Ok(self.map.cas(K::store(key), None::<&u64>, Some(value)).is_ok())
    }

    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Ok(self.map.insert(K::store(key), value).is_none())
    }

    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.map.remove(K::lend(&key)).is_some())
    }

    fn scan(
        &mut self,
        from: K::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(K::Ref<'_>, u64),
    ) -> usize {
        let range = (Included(K::lend(&from)), Unbounded);
        let mut seen = 0;
        for (key, value) in self.map.range::<K, _>(range).take(limit) {
            visit(K::stored(&key), value);
            seen += 1;
        }
        seen
    }
}
