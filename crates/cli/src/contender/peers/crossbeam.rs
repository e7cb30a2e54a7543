//! The `crossbeam-skiplist` crate: the lock-free skip list that most Rust databases begin with.
//!
//! # How it is driven
//! Through `SkipList`, the documented base of `SkipMap`. Its methods take a guard, which a session
//! keeps and repins in `refresh`. `SkipMap` pins in every call, and counts references to every
//! entry that it returns. The two were level within the noise on a million keys; the base is used
//! because it cannot be the slower one. Guards belong to the default collector, as in `SkipMap`.
//!
//! # Answers
//! * `insert` is `compare_insert` with a comparison that never replaces. The entry that it returns
//!   shows whether the key was absent: the entry is new, unless it holds the value that the
//!   comparison saw last. Their addresses distinguish the two, because no node is freed under the
//!   guard and so no new node takes the address of an old one. (`get_or_insert_with` calls its
//!   closure before it knows the answer, so the closure proves nothing.)
//! * `remove` is `get`, then [`Entry::remove`](crossbeam_skiplist::base::Entry::remove), which says
//!   whether this call removed the entry. `SkipList::remove` and `SkipMap::remove` of version 0.1.3
//!   return the entry to every thread that met it before it was unlinked: two threads that removed
//!   the same 120 000 keys were given 132 971 entries. The second descent of `get` and `remove`
//!   reads nodes that were just read, and its cost was not measurable.

use crate::contender::held::{MapKey, MapValue};
use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session, Upserts};
use crossbeam_epoch::{self as epoch, Guard};
use crossbeam_skiplist::SkipList;
use crossbeam_skiplist::base::Entry;
use silvics::{AllocError, IndexKey};
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::cell::Cell;
use std::ops::Bound::{Included, Unbounded};
use std::ptr;

/// `crossbeam_skiplist::SkipList`.
pub struct CrossbeamSkiplist<K: MapKey + ?Sized, V: MapValue = u64> {
    list: SkipList<K::Owned, V>,
}

impl<K: MapKey + ?Sized, V: MapValue> Default for CrossbeamSkiplist<K, V> {
    fn default() -> Self {
        Self { list: SkipList::new(epoch::default_collector().clone()) }
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Peer for CrossbeamSkiplist<K, V> {
    const NAME: &'static str = "crossbeam-skiplist";
    const CRATE: &'static str = "crossbeam-skiplist 0.1.3";
    const PAPER: &'static str = "";
    const TOPOLOGY: &'static str = "skip list";
    const SYNC: &'static str = "lock-free";
    const SCANS: bool = true;
    /// An upsert removes the old entry and inserts another. If two threads upsert one key, neither
    /// knows whether the key was there.
    const UPSERTS: Upserts = Upserts::OfPresentKeys;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: MapKey + ?Sized, V: MapValue> Contender for CrossbeamSkiplist<K, V> {
    type Key = K::Bench;
    type Session<'a> = CrossbeamSession<'a, K, V>;

    fn session(&self) -> Self::Session<'_> {
        CrossbeamSession { list: &self.list, guard: epoch::pin() }
    }
}

impl<K: MapKey + ?Sized> Recorded for CrossbeamSkiplist<K> {
    fn write(
        session: &mut Self::Session<'_>,
        key: <K::Bench as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op> {
        match write {
            Write::TryInsert { value } => {
                let outcome = session.put_if_absent(key, value, u64::clone);
                Some(Op::TryInsert { value, outcome })
            }
            Write::Remove => {
                let entry = session.list.get(K::lend(&key), &session.guard);
                // Another thread may remove the entry first: then the key is absent.
                let old = entry.filter(Entry::remove).map(|entry| *entry.value());
                Some(Op::Remove { old })
            }
            Write::Insert { .. } | Write::CompareExchange { .. } => None,
        }
    }
}

/// A thread's session: a pinned guard.
pub struct CrossbeamSession<'a, K: MapKey + ?Sized, V: MapValue> {
    list: &'a SkipList<K::Owned, V>,
    guard: Guard,
}

impl<K: MapKey + ?Sized, V: MapValue> CrossbeamSession<'_, K, V> {
    /// Inserts the entry if the key is absent. Otherwise fails with the result of `read` on the
    /// present value.
    #[inline(always)]
    fn put_if_absent<R>(
        &self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: V,
        read: impl FnOnce(&V) -> R,
    ) -> Result<(), R> {
        let present = Cell::new(ptr::null());
        let keep = |old: &V| {
            present.set(ptr::from_ref(old));
            false
        };
        let entry = self.list.compare_insert(K::own(key), value, keep, &self.guard);
        let inserted = !ptr::eq(entry.value(), present.get());
        let outcome = if inserted { Ok(()) } else { Err(read(entry.value())) };
        entry.release(&self.guard);
        outcome
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Session for CrossbeamSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.list.get(K::lend(&key), &self.guard).map(|entry| entry.value().word())
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        Ok(self.put_if_absent(key, V::hold(value), |_| ()).is_ok())
    }

    #[inline]
    fn upsert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        self.list.insert(K::own(key), V::hold(value), &self.guard).release(&self.guard);
        Ok(false) // see `UPSERTS`
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        let entry = self.list.get(K::lend(&key), &self.guard);
        Ok(entry.is_some_and(|entry| entry.remove()))
    }

    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let range = (Included(K::lend(&from)), Unbounded);
        let mut seen = 0;
        for entry in self.list.range::<K, _>(range, &self.guard).take(limit) {
            visit(K::show(entry.key()), entry.value().word());
            seen += 1;
        }
        seen
    }

    #[inline]
    fn refresh(&mut self) {
        self.guard.repin();
    }
}
