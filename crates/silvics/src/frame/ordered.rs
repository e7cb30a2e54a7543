//! Ranges, cursors and ends, for the algorithms that have them.

use super::{Algorithm, AlgorithmKey, Index};
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError};
use crate::index::{AtomicRanges, Cursor, KeyRef, Lookup, OrderedEnds, OrderedScan, RangeUpdates};
use crate::map::MapIndex;
use silvics_pool::Placement;
use std::num::NonZeroUsize;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The bounds of a range over the keys of algorithm `A`.
pub type AlgorithmBounds<'g, A> = (Bound<AlgorithmKey<'g, A>>, Bound<AlgorithmKey<'g, A>>);

/// An algorithm whose entries can be scanned, as [`OrderedScan`] promises. The guards that its
/// methods take are of the index's domain.
pub trait Ordered: Algorithm {
    /// An ascending scan.
    type Range<'g>: Iterator<Item = (AlgorithmKey<'g, Self>, u64)>
    where
        Self: 'g;
    /// A descending scan.
    type RangeRev<'g>: Iterator<Item = (AlgorithmKey<'g, Self>, u64)>
    where
        Self: 'g;
    /// A position that owns the memory it needs.
    type Cursor: Cursor<Key = Self::Key>;
    /// The algorithm in another placement, where it has ranges as well.
    type OrderedAt<Q: Placement>: Ordered<Key = Self::Key, Placement = Q>;

    /// The entries within these bounds, ascending.
    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> Self::Range<'g>;

    /// The entries within these bounds, descending.
    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g>;

    /// A cursor, before the first entry, that keeps the index alive.
    fn cursor(index: Arc<Index<Self>>) -> Self::Cursor;

    /// Whether updates take effect by `SeqCst` operations, and scans find entries by `SeqCst` loads
    /// alone. Then a scan sees each update that comes before it in the order of these operations.
    const SEQUENTIAL: bool = false;

    /// Returns the smallest key that leads to the same leaf as `key`, or `None` if the structure
    /// does not know it.
    fn leaf_start<'g>(
        &'g self,
        key: AlgorithmKey<'g, Self>,
        guard: &'g Guard,
    ) -> Option<AlgorithmKey<'g, Self>> {
        let _ = (key, guard);
        None
    }

    /// Prefetches the leaf that a count up to `key` reads. Does nothing by default.
    #[inline]
    fn prefetch_leaf(&self, key: AlgorithmKey<'_, Self>, guard: &Guard) {
        let _ = (key, guard);
    }

    /// The number of entries within these bounds, with the guarantee of a scan.
    #[inline]
    fn count_range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> usize {
        self.range(bounds, guard).count()
    }

    /// See [`MapIndex::load`].
    fn load(
        &mut self,
        entries: &[(AlgorithmKey<'_, Self>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        let _ = (entries, threads);
        None
    }

    /// See [`MapIndex::read_ahead`].
    #[inline]
    fn read_ahead<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(AlgorithmKey<'g, Self>, u64),
    ) {
        let mut each = each;
        let each = |(key, word)| each(key, word);
        if descends {
            self.range_rev(bounds, guard).take(most).for_each(each);
        } else {
            self.range(bounds, guard).take(most).for_each(each);
        }
    }
}

/// An algorithm that finds and removes its first and last entries, as [`OrderedEnds`] promises.
pub trait Ended: Ordered {
    /// The first entry, or the last one if `LAST`.
    fn end<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Option<(AlgorithmKey<'g, Self>, u64)>;

    /// Removes the first entry, or the last one if `LAST`, and returns it.
    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(AlgorithmKey<'g, Self>, u64)>, AllocError>;
}

/// An algorithm that reads atomic ranges, as [`AtomicRanges`] promises.
pub trait Atomic: Ordered {
    /// See [`AtomicRanges::collect_range`].
    fn collect_range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Result<Vec<(AlgorithmKey<'g, Self>, u64)>, AllocError>;
}

/// An algorithm that updates atomic ranges, as [`RangeUpdates`] promises.
pub trait Updating: Atomic {
    /// See [`RangeUpdates::update_range`].
    fn update_range(
        &self,
        bounds: AlgorithmBounds<'_, Self>,
        guard: &Guard,
        new: &mut dyn FnMut(AlgorithmKey<'_, Self>, u64) -> u64,
    ) -> Result<usize, AllocError>;
}

impl<A: Ordered> OrderedScan for Index<A> {
    type Range<'g>
        = A::Range<'g>
    where
        Self: 'g;
    type RangeRev<'g>
        = A::RangeRev<'g>
    where
        Self: 'g;
    type Cursor = A::Cursor;

    #[inline]
    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> A::Range<'g> {
        let guard = self.domain().adopt(guard);
        self.0.range((range.start_bound().cloned(), range.end_bound().cloned()), guard)
    }

    #[inline]
    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> A::RangeRev<'g> {
        let guard = self.domain().adopt(guard);
        self.0.range_rev((range.start_bound().cloned(), range.end_bound().cloned()), guard)
    }

    fn cursor(self: &Arc<Self>) -> A::Cursor {
        A::cursor(Arc::clone(self))
    }
}

impl<A: Ended> OrderedEnds for Index<A> {
    fn first<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        let guard = self.domain().adopt(guard);
        self.0.end::<false>(guard)
    }

    fn last<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        let guard = self.domain().adopt(guard);
        self.0.end::<true>(guard)
    }

    fn pop_first<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError> {
        let guard = self.domain().adopt(guard);
        self.0.pop::<false>(guard)
    }

    fn pop_last<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError> {
        let guard = self.domain().adopt(guard);
        self.0.pop::<true>(guard)
    }
}

// SAFETY: clauses 1 to 5 of `MapIndex` are A2 to A6 of `Algorithm`. The frame passes on the words
// and keys of `A` unchanged, and calls it only under guards of the index's domain: the caller's, or
// one that is taken before the call.
unsafe impl<A: Ordered> MapIndex for Index<A> {
    type Placement = A::Placement;

    fn load(
        &mut self,
        entries: &[(KeyRef<'_, Self>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        self.0.load(entries, threads)
    }

    #[inline]
    fn read_ahead<'g>(
        &'g self,
        bounds: (Bound<KeyRef<'g, Self>>, Bound<KeyRef<'g, Self>>),
        descends: bool,
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(KeyRef<'g, Self>, u64),
    ) {
        let guard = self.domain().adopt(guard);
        self.0.read_ahead(bounds, descends, most, guard, each);
    }
}

impl<A: Atomic> AtomicRanges for Index<A> {
    fn collect_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Result<Vec<(KeyRef<'g, Self>, u64)>, AllocError> {
        let guard = self.domain().adopt(guard);
        self.0.collect_range((range.start_bound().cloned(), range.end_bound().cloned()), guard)
    }
}

impl<A: Updating> RangeUpdates for Index<A> {
    fn update_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
        mut new: impl FnMut(KeyRef<'_, Self>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        self.0.update_range(bounds, &self.domain().enter(guard), &mut new)
    }
}
