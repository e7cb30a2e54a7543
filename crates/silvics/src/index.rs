//! The contract that every index meets. The contract of each method is written here, once.
//!
//! # Guarantees common to all methods
//!
//! * **Linearizable.** Every point operation takes effect at one moment between its call and its
//!   return; each structure's module docs name that moment per method and outcome. Ranges and
//!   cursors promise less and say so ([`OrderedScan`]).
//! * **Every key and every value is legal**: no sentinel is taken from the 2^64 values or from the
//!   key space.
//! * **A failed allocation is an error, not a panic.** A method that returns an [`AllocError`] has
//!   left the index as it was. Before it gives up, it flushes its domain once. The error of a batch
//!   says how many entries are done.
//! * **Batches** are calls one after the other. Each is linearizable, and the batch as a whole is
//!   not atomic. The structure may descend to several keys at once, so that their cache misses
//!   overlap.
//! * **Guards.** Nodes are read under a [`Guard`] of the index's [`Domain`]; pin once for many
//!   operations, and for at most some milliseconds, since nothing retired meanwhile can be freed.
//!   A guard of another domain is harmless: the operation pins its own.
//! * **Lookups write nothing** that another thread could read, with three exceptions. Lookups of
//!   `citrus` announce themselves in a cache line of the calling thread ([`crate::bst::citrus`]). A
//!   lookup of `ca-tree` or of a Patricia trie that writers disturb several times takes locks
//!   ([`crate::ca`], [`crate::patricia`]). So does each lookup of a trie whose policy is
//!   hand-over-hand locking.

use crate::batch::insert_in_groups;
use crate::domain::{Domain, Guard};
use crate::encoding::{ByteKey, IndexKey};
use crate::error::{CompareExchangeError, InsertManyError, TryInsertError, Violation};
use crate::update::Update;
use silvics_layout::{NodeLayout, Placed};
use silvics_pool::{AllocError, Budget, Config, Heap, Pages, PoolStats, Tuning};
use silvics_sync::counter::Counting;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// How a key of index `I` is passed.
pub type KeyRef<'a, I> = <<I as Lookup>::Key as IndexKey>::Ref<'a>;

/// An owned key of index `I`.
pub type OwnedKey<I> = <<I as Lookup>::Key as IndexKey>::Owned;

/// How an index is set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The pages that the index's pools request.
    pub pages: Pages,
    /// The most bytes that the index may hold from the system; `None` for no limit. A `budget`
    /// takes precedence.
    pub memory_limit: Option<usize>,
    /// The budget that the index shares with others. [`Lookup::bytes`] then returns the bytes of
    /// all of them. `None` for a budget of its own.
    pub budget: Option<Arc<Budget>>,
    /// The domain through which the index reclaims memory. By default it is [`Domain::shared`], or
    /// a domain of its own if the index has a memory limit: a writer at its limit must not fail
    /// because of a pin of another index.
    pub domain: Option<Domain>,
    /// Whether the threads that insert and remove keys share one count of them.
    pub counting: Counting,
    /// The layout of slots in the index's pools, and the growth of pools.
    pub tuning: Tuning,
    /// The heap of an index that is placed in [`Shared`](crate::Shared); `None` for the global
    /// allocator. Pools have memory of their own.
    pub heap: Option<Arc<dyn Heap>>,
}

impl Options {
    /// The domain to use, and the pools' configuration.
    pub(crate) fn prepare(&self) -> (Domain, Config) {
        let own_budget = || Arc::new(Budget::new(self.memory_limit));
        let budget = self.budget.clone().unwrap_or_else(own_budget);
        let mut config = Config::of_budget(self.pages, budget);
        config.tuning = self.tuning;
        if let Some(heap) = &self.heap {
            config.heap = Arc::clone(heap);
        }
        let limited = config.budget.limit().is_some();
        let domain = || if limited { Domain::new() } else { Domain::shared() };
        (self.domain.clone().unwrap_or_else(domain), config)
    }

    /// The index's budget. Makes one with the memory limit if the options have none.
    pub(crate) fn shared_budget(&mut self) -> Arc<Budget> {
        let limit = self.memory_limit;
        Arc::clone(self.budget.get_or_insert_with(|| Arc::new(Budget::new(limit))))
    }
}

/// Indexes that are made from [`Options`].
pub trait Create: Sized {
    /// Makes an empty index. Fails if its first nodes cannot be allocated.
    fn with_options(options: &Options) -> Result<Self, AllocError>;
}

/// A concurrent map from keys to 8-byte words, ordered by key: the part that reads.
///
/// This trait, [`OrderedIndex`] and [`Batches`] are object-safe: [`crate::dynamic`] builds on that.
pub trait Lookup: Send + Sync {
    /// The type of the keys.
    type Key: IndexKey + ?Sized;

    /// The domain whose guards the operations take.
    fn domain(&self) -> &Domain;

    /// Returns the value of `key`, `None` if it is absent. Takes no lock and writes no memory that
    /// another thread reads, except for the structures that the [module](self) lists. (A lookup of
    /// [`BronsonTree`](crate::BronsonTree) waits while a rotation moves the node that it stands at,
    /// and one of [`CaTree`](crate::CaTree) for a writer of its base node.)
    fn get(&self, key: KeyRef<'_, Self>, guard: &Guard) -> Option<u64>;

    /// The number of keys that are present. It is exact while no thread writes; otherwise each
    /// concurrent operation may or may not be counted. O(threads).
    fn len(&self) -> usize;

    /// The number of keys at one moment during the call, as far as it is counted: each operation
    /// changes the count once, after it takes effect and before it returns. `None` if other threads
    /// have inserted or removed keys during each of 1000 attempts, or if the index cannot tell.
    ///
    /// An attempt reads a cache line of each thread twice, and succeeds if no key is inserted or
    /// removed within this time. It writes nothing. With [`Counting::Single`] there is one line.
    fn len_snapshot(&self) -> Option<usize> {
        None
    }

    /// Whether [`Lookup::len`] is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the index holds from the system, exactly: live, retired and free slots, slab
    /// and region headers, thread caches. O(1).
    fn bytes(&self) -> usize;

    /// One entry for each pool: the objects in it, their addresses and their pages. O(slabs).
    fn pool_stats(&self) -> Vec<PoolStats>;
}

/// The verbs that write to an index. All of them are uses of [`OrderedIndex::update`].
pub trait OrderedIndex: Lookup {
    /// Applies `verb` to `key` in one atomic step. Returns the value that the key had before,
    /// `None` if it was absent. The writing verbs below are uses of this one, with its
    /// linearization points.
    fn update(
        &self,
        key: KeyRef<'_, Self>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError>;

    /// Put-if-absent: inserts `key` with `value` unless the key is present. A present value is
    /// returned in [`TryInsertError::Occupied`].
    #[inline]
    fn try_insert(
        &self,
        key: KeyRef<'_, Self>,
        value: u64,
        guard: &Guard,
    ) -> Result<(), TryInsertError> {
        let found = self.update(key, Update::TryInsert(value), guard)?;
        found.map_or(Ok(()), |present| Err(TryInsertError::Occupied(present)))
    }

    /// Upsert: gives `key` the value `value`. Returns the value it replaced, `None` if the key was
    /// absent.
    #[inline]
    fn insert(
        &self,
        key: KeyRef<'_, Self>,
        value: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.update(key, Update::Insert(value), guard)
    }

    /// Removes `key` and returns its value, `None` if it was absent. Some structures allocate to
    /// remove: a descriptor, or a copy of a relocated node.
    #[inline]
    fn remove(&self, key: KeyRef<'_, Self>, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.update(key, Update::Remove, guard)
    }

    /// Brings `key` from state `expected` to state `new` in one step; `None` is the state
    /// *absent*. So `(None, Some(v))` inserts, `(Some(u), Some(v))` replaces, `(Some(u), None)`
    /// removes, and `(None, None)` asserts absence. If the key is found in any other state, the
    /// error is [`CompareExchangeError::Mismatch`].
    #[inline]
    fn compare_exchange(
        &self,
        key: KeyRef<'_, Self>,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<(), CompareExchangeError> {
        let found = self.update(key, Update::CompareExchange { expected, new }, guard)?;
        if found == expected { Ok(()) } else { Err(CompareExchangeError::Mismatch(found)) }
    }

    /// Returns memory to the system and returns the number of bytes: the slabs without an object
    /// in use, after it has freed the retired objects that no guard protects. It finds the objects
    /// that this thread or a joined one retired and those of sealed batches. The free slots that
    /// other living threads cache stay, and so does each slab that holds one. Objects are not
    /// moved, with one exception: if removals from a [`BlockTree`](crate::BlockTree) at its memory
    /// limit had to leave empty blocks behind, the call unlinks these and merges small blocks.
    ///
    /// Call it after most of an index was removed, and not under a guard. O(slabs + ended threads);
    /// with the exception, O(entries). Writers that need a new slab wait meanwhile. An index
    /// without pools returns 0.
    fn shrink(&self) -> usize {
        0
    }
}

/// Operations on many keys. A structure may descend to several keys at once, so that their cache
/// misses overlap.
///
/// A batch is not atomic: each of its operations is linearizable by itself.
pub trait Batches: OrderedIndex {
    /// Looks up every key of `keys` and writes its value to the same position in `values`; the
    /// shorter slice decides how many. The lookups take effect in any order. Keys may be repeated.
    fn get_many(&self, keys: &[KeyRef<'_, Self>], values: &mut [Option<u64>], guard: &Guard) {
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(<Self::Key as IndexKey>::shorten(*key), guard);
        }
    }

    /// Calls [`OrderedIndex::insert`] for every entry of `entries`, in order. If a key occurs
    /// twice, the later entry replaces the earlier one. The value that an entry replaced is written
    /// to the same position in `replaced`, which may be shorter (even `&mut []`) or longer;
    /// positions beyond the entries stay as they are. Returns how many of the keys were absent.
    ///
    /// If an allocation fails, [`InsertManyError::done`] is the number of the entry it failed for:
    /// all entries before it are inserted, and their positions in `replaced` are written; that
    /// entry and those behind it are not inserted. A panic has the same effect, without the number.
    ///
    /// The guard is held throughout, so the size of a batch decides how long a pin lasts.
    fn insert_many(
        &self,
        entries: &[(KeyRef<'_, Self>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let insert = |key, value| self.insert(key, value, guard);
        insert_in_groups(entries, replaced, usize::MAX, |_| (), insert)
    }
}

/// Ranges and cursors, for structures whose topology allows them.
///
/// # Guarantee under concurrent writes
/// Keys come in strictly ascending (descending) order, none twice. A key present during the whole
/// scan is seen; one absent during the whole scan is not; one inserted or removed meanwhile may or
/// may not be seen. Each value was the key's value at some moment during the scan. A structure
/// that promises more says so.
pub trait OrderedScan: Lookup {
    /// An ascending scan under a guard.
    type Range<'g>: Iterator<Item = (KeyRef<'g, Self>, u64)>
    where
        Self: 'g;
    /// A descending scan under a guard.
    type RangeRev<'g>: Iterator<Item = (KeyRef<'g, Self>, u64)>
    where
        Self: 'g;
    /// A position that owns what it needs.
    type Cursor: Cursor<Key = Self::Key>;

    /// The entries of `range` in ascending order. An empty range (start past end) has none.
    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::Range<'g>;

    /// The entries of `range` in descending order.
    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g>;

    /// The entries whose keys begin with `prefix`, in ascending order: all of them, if it is empty.
    ///
    /// ```
    /// use silvics::{ArtTree, Lookup, Options, OrderedIndex, OrderedScan};
    ///
    /// let tree: ArtTree<[u8]> = ArtTree::with_options(&Options::default())?;
    /// let guard = tree.domain().pin();
    /// for (key, value) in [("/etc", 1), ("/etc/hosts", 2), ("/usr", 3)] {
    ///     tree.insert(key.as_bytes(), value, &guard)?;
    /// }
    /// let below: Vec<u64> = tree.prefix(b"/etc/", &guard).map(|(_, value)| value).collect();
    /// assert_eq!(below, [2]);
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    fn prefix<'g>(
        &'g self,
        prefix: &'g [u8],
        guard: &'g Guard,
    ) -> impl Iterator<Item = (KeyRef<'g, Self>, u64)>
    where
        Self: Lookup<Key: ByteKey>,
    {
        let start = Bound::Included(Self::Key::of_bytes(prefix));
        let from = self.range((start, Bound::Unbounded), guard);
        from.take_while(move |(key, _)| {
            Self::Key::starts_with(<Self::Key as IndexKey>::shorten(*key), prefix)
        })
    }

    /// A cursor, before the first entry, that keeps the index alive.
    fn cursor(self: &Arc<Self>) -> Self::Cursor;
}

/// The ranks of keys, for an index that counts them ([`crate::counts`]).
///
/// A result is exact if no key is inserted or removed meanwhile. Otherwise it differs from the
/// exact one at the beginning of the call by at most the number of insertions and removals that
/// overlap the call. A call counts the keys of those neighbourhoods anew in which keys came or went
/// since the last call; then it takes O(log n + n / 2²⁵ + 100) steps and a scan of some 20 keys.
pub trait OrderStatistics: OrderedScan {
    /// The number of keys that are smaller than `key`, which need not be present.
    fn rank<'g>(&'g self, key: KeyRef<'g, Self>, guard: &'g Guard) -> usize;

    /// The entry whose key has `number` smaller keys, or `None` if there are fewer keys.
    fn nth<'g>(&'g self, number: usize, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)>;

    /// The number of keys in a range. An empty range (start past end) has none.
    fn count<'g, R: RangeBounds<KeyRef<'g, Self>>>(&'g self, range: R, guard: &'g Guard) -> usize;
}

/// The first and last entry, for structures that can find them atomically.
///
/// Each method is linearizable: the entry it returns was the first (last) of the whole index at its
/// linearization point. A walk to the first entry that it finds is not enough: while the walk
/// passes A, another thread inserts C before D and removes A. The walk then finds D, which was
/// never the first entry.
pub trait OrderedEnds: OrderedIndex {
    /// The entry with the smallest key.
    fn first<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)>;
    /// The entry with the largest key.
    fn last<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)>;
    /// Removes the entry with the smallest key and returns it.
    fn pop_first<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError>;
    /// Removes the entry with the largest key and returns it.
    fn pop_last<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError>;
}

/// Atomic reads of ranges.
pub trait AtomicRanges: OrderedScan + OrderedIndex {
    /// The entries of `range` as they were at one moment during the call, in ascending order:
    /// linearizable with all other methods. An empty range (start past end) has none.
    ///
    /// O(log n + entries). Fails if there is no memory for the list of entries.
    ///
    /// ```
    /// use silvics::{AtomicRanges, CaTree, Lookup, Options, OrderedIndex, RangeUpdates};
    ///
    /// let accounts: CaTree<u64> = CaTree::with_options(&Options::default())?;
    /// let guard = accounts.domain().pin();
    /// for key in 0..10 {
    ///     accounts.insert(key, 100, &guard)?;
    /// }
    /// // Other threads may transfer meanwhile, with `update_range`: the sum stays.
    /// accounts.update_range(3..5, &guard, |key, value| if key == 3 { value - 7 } else { value + 7 })?;
    /// let all = accounts.collect_range(.., &guard)?;
    /// assert_eq!(all.iter().map(|(_, value)| value).sum::<u64>(), 1000);
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    fn collect_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Result<Vec<(KeyRef<'g, Self>, u64)>, AllocError>;
}

/// Atomic updates of ranges.
pub trait RangeUpdates: AtomicRanges {
    /// Replaces the value of each entry of `range` by what `new` returns for its key and value, all
    /// at one moment during the call, and returns the number of these entries. `new` is called in
    /// ascending order. Linearizable with all other methods.
    ///
    /// If `new` panics, or there is no memory for the new values, no entry has changed. All other
    /// calls on keys of the range wait while `new` is called, also lookups. `new` must not use the
    /// index: it would wait for itself.
    ///
    /// O(log n + entries).
    fn update_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
        new: impl FnMut(KeyRef<'_, Self>, u64) -> u64,
    ) -> Result<usize, AllocError>;
}

/// A position in an index that is owned, can be sent to another thread, holds no pin between
/// calls, and stays valid whatever others insert and remove.
///
/// A cursor stands at an entry, before the first or after the last. Each move sees the index as it
/// is at that moment. If the entry it stands at is removed, [`Cursor::key`] and [`Cursor::value`]
/// still answer, and the next move goes on from that key.
pub trait Cursor: Send {
    /// The type of the index's keys.
    type Key: IndexKey + ?Sized;

    /// Moves to the first entry at or after `key`, and returns whether there is one. If not, the
    /// cursor is after the last entry.
    fn seek(&mut self, key: <Self::Key as IndexKey>::Ref<'_>) -> bool;
    /// Moves to the last entry at or before `key`, and returns whether there is one. If not, the
    /// cursor is before the first entry.
    fn seek_for_prev(&mut self, key: <Self::Key as IndexKey>::Ref<'_>) -> bool;
    /// Moves to the next entry (from before the first, to the first); whether there is one.
    fn next(&mut self) -> bool;
    /// Moves to the previous entry (from after the last, to the last); whether there is one.
    fn prev(&mut self) -> bool;
    /// The key it stands at.
    fn key(&self) -> Option<<Self::Key as IndexKey>::Ref<'_>>;
    /// The value of the entry it stands at, as of the last move.
    fn value(&self) -> Option<u64>;
}

/// The kinds of objects that an index allocates.
pub trait Objects {
    /// Their layouts: first the kind that a search passes through.
    const OBJECTS: &'static [NodeLayout];

    /// Shows `see` every object that can be reached, sentinels, heads and routing nodes included.
    /// Verifies the structure on the way, as
    /// [`Check::check`] does, and returns the number of entries. O(n).
    fn census(&mut self, see: &mut dyn FnMut(Placed)) -> Result<usize, Violation>;

    /// The savings of a tree that does not store all of each key, or that might do so. O(n).
    fn compression(&mut self) -> Option<crate::Compression> {
        None
    }
}

/// Verification of a quiescent structure.
pub trait Check {
    /// Walks the whole structure and verifies every invariant of its module docs by number.
    /// Exclusive access makes it quiescent. Returns the number of entries found. O(n).
    fn check(&mut self) -> Result<usize, Violation>;

    /// The objects that can be reached from the structure: per kind, as its `NodeLayout` names it,
    /// how many, in the order of [`Lookup::pool_stats`]. Sentinels, heads and routing nodes
    /// count. Found by the same walk, and fails as [`Check::check`] does. O(n).
    ///
    /// After [`Check::settle`] these are the live objects, exactly: a live object that is not
    /// reached has leaked.
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation>;

    /// Reclaims everything that any thread has retired from this index. Exclusive access means that
    /// no operation, range or cursor of it is left. An object stays only if a guard of the domain,
    /// on any thread, was alive when the batch of that object was sealed.
    fn settle(&mut self);
}
