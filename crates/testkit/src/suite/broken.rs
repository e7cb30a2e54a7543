//! Broken indexes, each with one planted mistake and the property that must find it. They show that
//! the suite can fail.
//!
//! Real structures make all of these mistakes. A [`Mistake`] overrides the verbs it gets wrong; the
//! others are those of [`LockedMap`].

/// Declares mistakes as types, for an index that checks `Slip::KIND` where it may make one.
macro_rules! slips {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The mistake that an index makes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            /// No mistake: the properties must hold.
            None,
            $($(#[$doc])* $name,)*
        }

        /// A mistake as a type.
        pub trait Slip: Send + Sync + 'static {
            /// The mistake.
            const KIND: Kind;
        }

        /// The type of no mistake.
        #[derive(Debug)]
        pub struct NoSlip;
        impl Slip for NoSlip {
            const KIND: Kind = Kind::None;
        }

        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name;
            impl Slip for $name {
                const KIND: Kind = Kind::$name;
            }
        )*
    };
}

pub mod lists;
pub mod mistakes;
pub mod slips;

use crate::reference::{LockedCursor, LockedMap};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::index::Cursor;
use silvics::{
    AllocError, AtomicRanges, Batches, Check, Create, Domain, Guard, InsertManyError, KeyRef,
    Lookup, Options, OrderedEnds, OrderedIndex, OrderedScan, PoolStats, RangeUpdates, Update,
    Violation,
};
use silvics_pool::{Config, Pool};
use silvics_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::ptr::NonNull;
use std::sync::Arc;

type Map = LockedMap<u64>;
type Entries<'g> = Box<dyn Iterator<Item = (u64, u64)> + 'g>;

/// The behaviour of one broken index.
pub trait Mistake: Send + Sync + 'static {
    /// See [`Lookup::get`].
    fn get(map: &Map, key: u64, guard: &Guard) -> Option<u64> {
        map.get(key, guard)
    }
    /// See [`OrderedIndex::try_insert`].
    fn try_insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<(), TryInsertError> {
        map.try_insert(key, value, guard)
    }
    /// See [`OrderedIndex::insert`].
    fn insert(map: &Map, key: u64, value: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        map.insert(key, value, guard)
    }
    /// See [`OrderedIndex::remove`].
    fn remove(map: &Map, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        map.remove(key, guard)
    }
    /// See [`OrderedIndex::compare_exchange`].
    fn compare_exchange(
        map: &Map,
        key: u64,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<(), CompareExchangeError> {
        map.compare_exchange(key, expected, new, guard)
    }
    /// See [`Batches::get_many`].
    fn get_many(map: &Map, keys: &[u64], values: &mut [Option<u64>], guard: &Guard) {
        map.get_many(keys, values, guard);
    }
    /// See [`Batches::insert_many`].
    fn insert_many(
        map: &Map,
        entries: &[(u64, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        map.insert_many(entries, replaced, guard)
    }
    /// See [`Lookup::len`]. `upserts` is the number of calls of `insert`.
    fn len(map: &Map, upserts: usize) -> usize {
        let _ = upserts;
        map.len()
    }
    /// See [`OrderedScan::range`].
    fn range(map: &Map, bounds: (Bound<u64>, Bound<u64>)) -> Entries<'_> {
        Box::new(map.snapshot(bounds).into_iter())
    }
    /// See [`OrderedEnds::first`].
    fn first(map: &Map, guard: &Guard) -> Option<(u64, u64)> {
        map.first(guard)
    }
    /// See [`OrderedEnds::pop_first`].
    fn pop_first(map: &Map, guard: &Guard) -> Option<(u64, u64)> {
        map.pop_first(guard).ok().flatten()
    }
    /// See [`AtomicRanges::collect_range`].
    fn collect_range(map: &Map, bounds: (Bound<u64>, Bound<u64>)) -> Vec<(u64, u64)> {
        map.snapshot(bounds)
    }
    /// See [`RangeUpdates::update_range`].
    fn update_range(
        map: &Map,
        bounds: (Bound<u64>, Bound<u64>),
        guard: &Guard,
        new: &mut dyn FnMut(u64, u64) -> u64,
    ) -> Result<usize, AllocError> {
        map.update_range(bounds, guard, new)
    }
    /// See [`Cursor::next`].
    fn next(cursor: &mut LockedCursor<u64>) -> bool {
        cursor.next()
    }
    /// See [`Cursor::seek_for_prev`].
    fn seek_for_prev(cursor: &mut LockedCursor<u64>, key: u64) -> bool {
        cursor.seek_for_prev(key)
    }
    /// Called when the index is dropped.
    fn dropped(map: &Arc<Map>) {
        let _ = map;
    }
}

/// An index that makes mistake `M`.
pub struct Broken<M: Mistake> {
    map: Arc<Map>,
    upserts: AtomicUsize,
    mistake: std::marker::PhantomData<M>,
}

impl<M: Mistake> fmt::Debug for Broken<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broken").finish_non_exhaustive()
    }
}

impl<M: Mistake> Drop for Broken<M> {
    fn drop(&mut self) {
        M::dropped(&self.map);
    }
}

impl<M: Mistake> Create for Broken<M> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        Ok(Self {
            map: Arc::new(Map::with_options(options)?),
            upserts: AtomicUsize::new(0),
            mistake: std::marker::PhantomData,
        })
    }
}

impl<M: Mistake> Lookup for Broken<M> {
    type Key = u64;
    fn domain(&self) -> &Domain {
        self.map.domain()
    }
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        M::get(&self.map, key, guard)
    }
    fn len(&self) -> usize {
        M::len(&self.map, self.upserts.load(Ordering::Relaxed))
    }
    fn bytes(&self) -> usize {
        self.map.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.map.pool_stats()
    }
}

impl<M: Mistake> OrderedIndex for Broken<M> {
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.map.update(key, verb, guard)
    }
    fn try_insert(&self, key: u64, value: u64, guard: &Guard) -> Result<(), TryInsertError> {
        M::try_insert(&self.map, key, value, guard)
    }
    fn insert(&self, key: u64, value: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.upserts.fetch_add(1, Ordering::Relaxed);
        M::insert(&self.map, key, value, guard)
    }
    fn remove(&self, key: u64, guard: &Guard) -> Result<Option<u64>, AllocError> {
        M::remove(&self.map, key, guard)
    }
    fn compare_exchange(
        &self,
        key: u64,
        expected: Option<u64>,
        new: Option<u64>,
        guard: &Guard,
    ) -> Result<(), CompareExchangeError> {
        M::compare_exchange(&self.map, key, expected, new, guard)
    }
}

impl<M: Mistake> Batches for Broken<M> {
    fn get_many(&self, keys: &[u64], values: &mut [Option<u64>], guard: &Guard) {
        M::get_many(&self.map, keys, values, guard);
    }
    fn insert_many(
        &self,
        entries: &[(u64, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        M::insert_many(&self.map, entries, replaced, guard)
    }
}

impl<M: Mistake> Check for Broken<M> {
    fn check(&mut self) -> Result<usize, Violation> {
        Ok(self.map.lock().entries.len())
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        Ok(vec![("entry", self.map.lock().entries.len())])
    }
    fn settle(&mut self) {}
}

impl<M: Mistake> OrderedScan for Broken<M> {
    type Range<'g> = Entries<'g>;
    type RangeRev<'g> = std::vec::IntoIter<(u64, u64)>;
    type Cursor = BrokenCursor<M>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        _: &'g Guard,
    ) -> Entries<'g> {
        M::range(&self.map, (range.start_bound().cloned(), range.end_bound().cloned()))
    }
    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        let mut entries: Vec<_> = self.range(range, guard).collect();
        entries.reverse();
        entries.into_iter()
    }
    fn cursor(self: &Arc<Self>) -> BrokenCursor<M> {
        BrokenCursor { inner: self.map.cursor(), mistake: std::marker::PhantomData }
    }
}

impl<M: Mistake> OrderedEnds for Broken<M> {
    fn first(&self, guard: &Guard) -> Option<(u64, u64)> {
        M::first(&self.map, guard)
    }
    fn last(&self, guard: &Guard) -> Option<(u64, u64)> {
        self.map.last(guard)
    }
    fn pop_first(&self, guard: &Guard) -> Result<Option<(u64, u64)>, AllocError> {
        Ok(M::pop_first(&self.map, guard))
    }
    fn pop_last(&self, guard: &Guard) -> Result<Option<(u64, u64)>, AllocError> {
        self.map.pop_last(guard)
    }
}

impl<M: Mistake> AtomicRanges for Broken<M> {
    fn collect_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        _: &'g Guard,
    ) -> Result<Vec<(u64, u64)>, AllocError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        Ok(M::collect_range(&self.map, bounds))
    }
}

impl<M: Mistake> RangeUpdates for Broken<M> {
    fn update_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
        mut new: impl FnMut(u64, u64) -> u64,
    ) -> Result<usize, AllocError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        M::update_range(&self.map, bounds, guard, &mut new)
    }
}

/// A cursor of [`Broken`].
pub struct BrokenCursor<M: Mistake> {
    inner: LockedCursor<u64>,
    mistake: std::marker::PhantomData<M>,
}

impl<M: Mistake> fmt::Debug for BrokenCursor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<M: Mistake> Cursor for BrokenCursor<M> {
    type Key = u64;

    fn seek(&mut self, key: u64) -> bool {
        self.inner.seek(key)
    }
    fn seek_for_prev(&mut self, key: u64) -> bool {
        M::seek_for_prev(&mut self.inner, key)
    }
    fn next(&mut self) -> bool {
        M::next(&mut self.inner)
    }
    fn prev(&mut self) -> bool {
        self.inner.prev()
    }
    fn key(&self) -> Option<u64> {
        self.inner.key()
    }
    fn value(&self) -> Option<u64> {
        self.inner.value()
    }
}

/// An index whose lookups count themselves in a pool of its own, which is a shared write.
/// `lookups::write_nothing` finds it, and the process does not survive that.
#[allow(missing_debug_implementations)]
pub struct WritingLookup {
    map: Map,
    pool: Pool<[AtomicU64; 2]>,
    lookups: NonNull<[AtomicU64; 2]>,
}

// SAFETY: the slot contains atomics and lives as long as the pool.
unsafe impl Send for WritingLookup {}
// SAFETY: the slot contains atomics and lives as long as the pool.
unsafe impl Sync for WritingLookup {}

impl Create for WritingLookup {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        let config = Config::new(options.pages, options.memory_limit);
        let pool = Pool::new("lookups", &config);
        let lookups = pool.alloc()?;
        // SAFETY: a fresh slot has room for the type and is ours alone.
        unsafe { lookups.write([AtomicU64::new(0), AtomicU64::new(0)]) };
        Ok(Self { map: Map::with_options(options)?, pool, lookups })
    }
}

impl Lookup for WritingLookup {
    type Key = u64;
    fn domain(&self) -> &Domain {
        self.map.domain()
    }
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        // SAFETY: initialised above, and never freed before the pool.
        let counter = unsafe { &self.lookups.as_ref()[0] };
        counter.fetch_add(1, Ordering::Relaxed);
        self.map.get(key, guard)
    }
    fn len(&self) -> usize {
        self.map.len()
    }
    fn bytes(&self) -> usize {
        self.map.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        vec![self.pool.stats()]
    }
}

impl OrderedIndex for WritingLookup {
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.map.update(key, verb, guard)
    }
}

impl Batches for WritingLookup {}

impl Check for WritingLookup {
    fn check(&mut self) -> Result<usize, Violation> {
        self.map.check()
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        Ok(vec![("lookups", 1)])
    }
    fn settle(&mut self) {}
}
