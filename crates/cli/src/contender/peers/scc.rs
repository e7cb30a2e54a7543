//! The `scc` crate's `TreeIndex`: a B+ tree with lock-free lookups and scans.
//!
//! # How it is driven
//! Lookups call `peek` under a guard that the session keeps: the documented way to read without a
//! lock (`read_sync` takes a shared lock on the leaf). `refresh` drops the guard before it takes
//! another, because guards nest and the thread would stay pinned otherwise. `insert_sync` is
//! put-if-absent. It and `remove_sync` take guards of their own, which is cheap inside the
//! session's guard. Byte strings are `Vec<u8>`, looked up by slice; `Arc<[u8]>`, which the crate's
//! docs use, was level.
//!
//! # Scans
//! `range`, under the session's guard.

use crate::contender::held::{MapKey, MapValue};
use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session, Upserts};
use scc::{Guard, TreeIndex};
use silvics::{AllocError, IndexKey};
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::ops::Bound::{Included, Unbounded};

/// `scc::TreeIndex`.
pub struct SccTreeIndex<K: MapKey + ?Sized, V: MapValue = u64> {
    tree: TreeIndex<K::Owned, V>,
}

impl<K: MapKey + ?Sized, V: MapValue> Default for SccTreeIndex<K, V> {
    fn default() -> Self {
        Self { tree: TreeIndex::new() }
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Peer for SccTreeIndex<K, V> {
    const NAME: &'static str = "scc";
    const CRATE: &'static str = "scc 3.8.8";
    const PAPER: &'static str = "";
    const TOPOLOGY: &'static str = "B+ tree";
    const SYNC: &'static str = "lock-free reads, locks to split and merge";
    const SCANS: bool = true;
    /// A value is not replaced, and removing the old one first would let others miss the key.
    const UPSERTS: Upserts = Upserts::None;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: MapKey + ?Sized, V: MapValue> Contender for SccTreeIndex<K, V> {
    type Key = K::Bench;
    type Session<'a> = SccSession<'a, K, V>;

    fn session(&self) -> Self::Session<'_> {
        SccSession { tree: &self.tree, guard: Some(Guard::new()) }
    }
}

impl<K: MapKey + ?Sized> Recorded for SccTreeIndex<K> {
    fn write(
        session: &mut Self::Session<'_>,
        key: <K::Bench as IndexKey>::Ref<'_>,
        write: Write,
    ) -> Option<Op> {
        match write {
            // A refused insertion does not tell the value present.
            Write::TryInsert { value } => {
                session.tree.insert_sync(K::own(key), value).ok()?;
                Some(Op::TryInsert { value, outcome: Ok(()) })
            }
            Write::Remove => {
                let mut old = None;
                let note = |value: &u64| {
                    old = Some(*value);
                    true
                };
                let removed = session.tree.remove_if_sync(K::lend(&key), note);
                Some(Op::Remove { old: old.filter(|_| removed) })
            }
            Write::Insert { .. } | Write::CompareExchange { .. } => None,
        }
    }
}

/// A thread's session: a guard.
pub struct SccSession<'a, K: MapKey + ?Sized, V: MapValue> {
    tree: &'a TreeIndex<K::Owned, V>,
    /// `None` only inside `refresh`.
    guard: Option<Guard>,
}

impl<K: MapKey + ?Sized, V: MapValue> SccSession<'_, K, V> {
    #[inline(always)]
    fn guard(&self) -> &Guard {
        self.guard.as_ref().expect("only refresh takes it")
    }
}

impl<K: MapKey + ?Sized, V: MapValue> Session for SccSession<'_, K, V> {
    type Key = K::Bench;
    type Lent = K::Bench;

    #[inline]
    fn get(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Option<u64> {
        self.tree.peek(K::lend(&key), self.guard()).map(V::word)
    }

    #[inline]
    fn insert(
        &mut self,
        key: <K::Bench as IndexKey>::Ref<'_>,
        value: u64,
    ) -> Result<bool, AllocError> {
        Ok(self.tree.insert_sync(K::own(key), V::hold(value)).is_ok())
    }

    #[inline]
    fn upsert(
        &mut self,
        _key: <K::Bench as IndexKey>::Ref<'_>,
        _value: u64,
    ) -> Result<bool, AllocError> {
        unreachable!("the catalogue says that it has none")
    }

    #[inline]
    fn remove(&mut self, key: <K::Bench as IndexKey>::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.tree.remove_sync(K::lend(&key)))
    }

    fn scan(
        &mut self,
        from: <K::Bench as IndexKey>::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(<K::Bench as IndexKey>::Ref<'_>, u64),
    ) -> usize {
        let range = (Included(K::lend(&from)), Unbounded);
        let mut seen = 0;
        for (key, value) in self.tree.range::<K, _>(range, self.guard()).take(limit) {
            visit(K::show(key), value.word());
            seen += 1;
        }
        seen
    }

    #[inline]
    fn refresh(&mut self) {
        self.guard = None;
        self.guard = Some(Guard::new());
    }
}
