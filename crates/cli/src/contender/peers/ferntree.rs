//! The `ferntree` crate: a B+ tree with optimistic lock coupling.
//!
//! # How it is driven
//! Through `Tree`, whose nodes have 64 entries. Lookups call `get_optimistic`, which writes
//! nothing; `get` takes a shared lock on the leaf. With optimistic lookups the docs require all
//! writes to go through `insert_defer` and `remove_defer`, which also say whether the key was
//! present. For integers these do what the plain ones do. Every call pins an epoch of its own,
//! because the crate offers no guard to keep. Byte strings are `Vec<u8>`, looked up by slice.
//!
//! # Scans
//! `raw_iter` and `seek`, then `for_each_in_leaf`: the documented way to read many entries, half as
//! fast again as `next` for a hundred. `next` moves from leaf to leaf, and reads short rests.
//!
//! # Known faults of version 0.7.0
//! A removal that merges two leaves clones a key of a node that another thread may change
//! meanwhile (`find_parent`). With byte strings the clone may read any address: a run of our tests
//! was aborted there.
//!
//! Two threads that insert the same new key into a full leaf may both learn that they inserted it,
//! and one value is lost. After the split the second thread finds the key present and returns as if
//! it had inserted (`RawExclusiveIter::insert_here`). No documented call avoids this. `silvics
//! verify --index peer:ferntree` finds it in seconds; with keys drawn from a hundred thousand or
//! more it is too rare to occur in a benchmark.

use super::key::PeerKey;
use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session};
use ferntree::{OptimisticRead, Tree};
use silvics::AllocError;
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::borrow::Borrow;

/// The least number of missing entries for which a scan reads the rest of a leaf at once: half a
/// leaf.
const BULK: usize = 32;

/// A key that `ferntree` can store.
pub trait StoredKey: PeerKey {
    /// The stored type.
    type Stored: Clone + Ord + OptimisticRead + Borrow<Self> + Send + Sync;
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

impl StoredKey for [u8] {
    type Stored = Vec<u8>;

    #[inline]
    fn store(key: &[u8]) -> Vec<u8> {
        key.into()
    }
    #[inline]
    fn stored(stored: &Vec<u8>) -> &[u8] {
        stored
    }
}

/// `ferntree::Tree`.
pub struct Ferntree<K: StoredKey + ?Sized> {
    tree: Tree<K::Stored, u64>,
}

impl<K: StoredKey + ?Sized> Default for Ferntree<K> {
    fn default() -> Self {
        Self { tree: Tree::new() }
    }
}

impl<K: StoredKey + ?Sized> Peer for Ferntree<K> {
    const NAME: &'static str = "ferntree";
    const CRATE: &'static str = "ferntree 0.7.0";
    const PAPER: &'static str = "Leis, Haubenschild, Kemper and Neumann, ICDE 2018";
    const TOPOLOGY: &'static str = "B+ tree";
    const SYNC: &'static str = "optimistic lock coupling";
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: StoredKey + ?Sized> Contender for Ferntree<K> {
    type Key = K;
    type Session<'a> = FerntreeSession<'a, K>;

    fn session(&self) -> Self::Session<'_> {
        FerntreeSession { tree: &self.tree }
    }
}

/// Histories of byte strings are not recorded: the writes that return a value free removed keys at
/// once, while optimistic lookups may still read them.
impl Recorded for Ferntree<u64> {
    fn write(session: &mut Self::Session<'_>, key: u64, write: Write) -> Option<Op> {
        match write {
            Write::Insert { value } => {
                Some(Op::Insert { value, old: session.tree.insert(key, value) })
            }
            Write::Remove => Some(Op::Remove { old: session.tree.remove(&key) }),
            Write::TryInsert { .. } | Write::CompareExchange { .. } => None,
        }
    }
}

/// A thread's session: it keeps nothing between calls.
pub struct FerntreeSession<'a, K: StoredKey + ?Sized> {
    tree: &'a Tree<K::Stored, u64>,
}

impl<K: StoredKey + ?Sized> Session for FerntreeSession<'_, K> {
    type Key = K;
    type Lent = K;

    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        self.tree.get_optimistic(K::lend(&key))
    }

    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Ok(!self.tree.insert_defer(K::store(key), value))
    }

    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        self.insert(key, value)
    }

    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.tree.remove_defer(K::lend(&key)))
    }

    fn scan(
        &mut self,
        from: K::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(K::Ref<'_>, u64),
    ) -> usize {
        let mut entries = self.tree.raw_iter();
        entries.seek(K::lend(&from));
        let mut seen = 0;
        while seen < limit {
            if limit - seen >= BULK {
                entries.for_each_in_leaf(|key, value| {
                    if seen < limit {
                        visit(K::stored(key), *value);
                        seen += 1;
                    }
                });
            }
            // The next entry, or the step to the next leaf.
            if seen < limit {
                let Some((key, value)) = entries.next() else {
                    break;
                };
                visit(K::stored(key), *value);
                seen += 1;
            }
        }
        seen
    }
}
