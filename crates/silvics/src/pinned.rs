//! An index with its domain pinned: the verbs without the guard.

use crate::adaptation::{Adaptation, Adapts};
use crate::domain::Guard;
use crate::error::{AllocError, CompareExchangeError, InsertManyError, TryInsertError};
use crate::index::{
    AtomicRanges, Batches, KeyRef, Lookup, OrderedEnds, OrderedIndex, OrderedScan, RangeUpdates,
};
use std::ops::RangeBounds;

/// An index with a guard of its domain: the verbs without the guard.
#[derive(Debug)]
pub struct Pinned<'a, I: Lookup + ?Sized> {
    index: &'a I,
    guard: Guard,
}

/// Pins an index of any type, known or not. An [`Index`](crate::Index) has this method without the
/// trait.
pub trait PinIndex: Lookup {
    /// Pins the index's domain and hides the guard: the everyday way to call several operations.
    #[inline]
    fn pin(&self) -> Pinned<'_, Self> {
        Pinned { index: self, guard: self.domain().pin() }
    }
}

impl<I: Lookup + ?Sized> PinIndex for I {}

impl<I: Lookup + ?Sized> Pinned<'_, I> {
    /// See [`Lookup::get`].
    #[inline]
    pub fn get(&self, key: KeyRef<'_, I>) -> Option<u64> {
        self.index.get(key, &self.guard)
    }

    /// The guard, for calls that take one.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Lets objects that were retired since the pin be freed. Call it now and then in a long loop.
    #[inline]
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

impl<I: OrderedIndex + ?Sized> Pinned<'_, I> {
    /// See [`OrderedIndex::try_insert`].
    #[inline]
    pub fn try_insert(&self, key: KeyRef<'_, I>, value: u64) -> Result<(), TryInsertError> {
        self.index.try_insert(key, value, &self.guard)
    }

    /// See [`OrderedIndex::insert`].
    #[inline]
    pub fn insert(&self, key: KeyRef<'_, I>, value: u64) -> Result<Option<u64>, AllocError> {
        self.index.insert(key, value, &self.guard)
    }

    /// See [`OrderedIndex::remove`].
    #[inline]
    pub fn remove(&self, key: KeyRef<'_, I>) -> Result<Option<u64>, AllocError> {
        self.index.remove(key, &self.guard)
    }

    /// See [`OrderedIndex::compare_exchange`].
    #[inline]
    pub fn compare_exchange(
        &self,
        key: KeyRef<'_, I>,
        expected: Option<u64>,
        new: Option<u64>,
    ) -> Result<(), CompareExchangeError> {
        self.index.compare_exchange(key, expected, new, &self.guard)
    }
}

impl<I: Batches + ?Sized> Pinned<'_, I> {
    /// See [`Batches::get_many`].
    #[inline]
    pub fn get_many(&self, keys: &[KeyRef<'_, I>], values: &mut [Option<u64>]) {
        self.index.get_many(keys, values, &self.guard);
    }

    /// See [`Batches::insert_many`].
    #[inline]
    pub fn insert_many(
        &self,
        entries: &[(KeyRef<'_, I>, u64)],
        replaced: &mut [Option<u64>],
    ) -> Result<usize, InsertManyError> {
        self.index.insert_many(entries, replaced, &self.guard)
    }
}

impl<I: OrderedScan + ?Sized> Pinned<'_, I> {
    /// See [`OrderedScan::range`].
    pub fn range<'g, R: RangeBounds<KeyRef<'g, I>>>(&'g self, range: R) -> I::Range<'g> {
        self.index.range(range, &self.guard)
    }

    /// See [`OrderedScan::range_rev`].
    pub fn range_rev<'g, R: RangeBounds<KeyRef<'g, I>>>(&'g self, range: R) -> I::RangeRev<'g> {
        self.index.range_rev(range, &self.guard)
    }

    /// See [`OrderedScan::prefix`].
    pub fn prefix<'g>(&'g self, prefix: &'g [u8]) -> impl Iterator<Item = (&'g [u8], u64)>
    where
        I: Lookup<Key = [u8]>,
    {
        self.index.prefix(prefix, &self.guard)
    }
}

impl<I: OrderedEnds + ?Sized> Pinned<'_, I> {
    /// See [`OrderedEnds::first`].
    pub fn first(&self) -> Option<(KeyRef<'_, I>, u64)> {
        self.index.first(&self.guard)
    }

    /// See [`OrderedEnds::last`].
    pub fn last(&self) -> Option<(KeyRef<'_, I>, u64)> {
        self.index.last(&self.guard)
    }

    /// See [`OrderedEnds::pop_first`].
    pub fn pop_first(&self) -> Result<Option<(KeyRef<'_, I>, u64)>, AllocError> {
        self.index.pop_first(&self.guard)
    }

    /// See [`OrderedEnds::pop_last`].
    pub fn pop_last(&self) -> Result<Option<(KeyRef<'_, I>, u64)>, AllocError> {
        self.index.pop_last(&self.guard)
    }
}

impl<I: AtomicRanges + ?Sized> Pinned<'_, I> {
    /// See [`AtomicRanges::collect_range`].
    pub fn collect_range<'g, R: RangeBounds<KeyRef<'g, I>>>(
        &'g self,
        range: R,
    ) -> Result<Vec<(KeyRef<'g, I>, u64)>, AllocError> {
        self.index.collect_range(range, &self.guard)
    }
}

impl<I: RangeUpdates + ?Sized> Pinned<'_, I> {
    /// See [`RangeUpdates::update_range`].
    pub fn update_range<'g, R: RangeBounds<KeyRef<'g, I>>>(
        &'g self,
        range: R,
        new: impl FnMut(KeyRef<'_, I>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        self.index.update_range(range, &self.guard, new)
    }
}

impl<I: Adapts + ?Sized> Pinned<'_, I> {
    /// See [`Adapts::adaptation`].
    pub fn adaptation(&self) -> Adaptation {
        self.index.adaptation(&self.guard)
    }
}
