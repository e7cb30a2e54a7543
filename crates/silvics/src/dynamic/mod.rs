//! The object-safe face: indexes whose type is chosen at run time.
//!
//! [`AnyIndex`] holds an index of any structure with keys `K`: `u64`, `u128` or `[u8]`. It
//! dereferences to the trait object [`Points`], which has every verb of [`Lookup`],
//! [`OrderedIndex`](crate::OrderedIndex) and [`Batches`]: these traits are object-safe, so no verb is forwarded by
//! hand, and a verb added to them is a verb of every dynamic index. Scans and ends are optional
//! capabilities: [`AnyIndex::scans`] and [`AnyIndex::ends`] return `None` if the structure lacks
//! them.
//!
//! ```
//! use silvics::dynamic::AnyIndex;
//! use silvics::{Lookup, NatarajanTree, Options, OrderedIndex, OrderedScan, PinIndex, SkipList};
//!
//! let options = Options::default();
//! let indexes: [AnyIndex<u64>; 2] = [
//!     AnyIndex::with_scans(NatarajanTree::<silvics::Pooled>::with_options(&options)?),
//!     AnyIndex::with_scans(SkipList::<u64>::with_options(&options)?),
//! ];
//! for index in &indexes {
//!     let pinned = index.pin(); // the guard is hidden
//!     pinned.insert(7, 70)?;
//!     assert_eq!(pinned.get(7), Some(70));
//!     let guard = index.domain().pin(); // or it is yours
//!     assert_eq!(index.insert(8, 80, &guard)?, None);
//!     let scans = index.scans().expect("both structures scan");
//!     let keys: Vec<u64> = scans.range(7.., &guard).map(|(key, _)| key).collect();
//!     assert_eq!(keys, [7, 8]);
//! }
//! # Ok::<(), silvics::AllocError>(())
//! ```
//!
//! [`AnyMap`] is a [`Map`](crate::Map) over an index of any structure. With the feature `named`,
//! [`Structure`] finds structures by their names: an index or a map is made of it. The library then
//! compiles every structure, which takes a minute.
//!
//! # Files
//! * `mod.rs`: the trait objects, and [`AnyIndex`].
//! * `ordered.rs`: [`AnyOrdered`], the index of a map. `map.rs`: [`AnyMap`].
//! * `named.rs`: [`Structure`], made from the table of structures.
//!
//! # Costs
//! A call through the face costs an indirect jump, and a range or a cursor one allocation. Code
//! that is measured should name the type of its index.

mod map;
#[cfg(feature = "named")]
mod named;
mod ordered;

pub use map::{AnyEnds, AnyMap, AnyRanks};
#[cfg(feature = "named")]
pub use named::{Structure, StructureError};
pub use ordered::{AnyOrdered, InTable};

use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::{
    AtomicRanges, Batches, Check, Cursor, KeyRef, Lookup, OrderStatistics, OrderedEnds,
    OrderedScan, RangeUpdates,
};
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

/// The entries of a range.
pub type Entries<'g, K> = Box<dyn Iterator<Item = (<K as IndexKey>::Ref<'g>, u64)> + 'g>;

/// The bounds of a range.
pub type Bounds<'g, K> = (Bound<<K as IndexKey>::Ref<'g>>, Bound<<K as IndexKey>::Ref<'g>>);

/// The verbs on single keys and on batches, and the checks, of an index with keys `K`. Every index
/// that has them implements this trait.
pub trait Points<K: IndexKey + ?Sized>: Batches + Check + Lookup<Key = K> {}

impl<K: IndexKey + ?Sized, I: Batches + Check + Lookup<Key = K>> Points<K> for I {}

/// The scans of an index. Every index that implements [`OrderedScan`] implements this trait.
pub trait Scans<K: IndexKey + ?Sized>: Points<K> {
    /// See [`OrderedScan::range`].
    fn range_within<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K>;
    /// See [`OrderedScan::range_rev`].
    fn range_rev_within<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K>;
    /// See [`OrderedScan::cursor`].
    fn any_cursor(self: Arc<Self>) -> Box<dyn Cursor<Key = K>>;
}

impl<K: IndexKey + ?Sized, I: Points<K> + OrderedScan> Scans<K> for I
where
    I: Lookup<Key = K> + 'static,
{
    fn range_within<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K> {
        Box::new(OrderedScan::range(self, bounds, guard))
    }
    fn range_rev_within<'g>(&'g self, bounds: Bounds<'g, K>, guard: &'g Guard) -> Entries<'g, K> {
        Box::new(OrderedScan::range_rev(self, bounds, guard))
    }
    fn any_cursor(self: Arc<Self>) -> Box<dyn Cursor<Key = K>> {
        Box::new(OrderedScan::cursor(&self))
    }
}

/// The ends of an index. Every index that implements [`OrderedEnds`] and scans implements this
/// trait.
pub trait Ends<K: IndexKey + ?Sized>: Scans<K> + OrderedEnds {}

impl<K: IndexKey + ?Sized, I: Scans<K> + OrderedEnds> Ends<K> for I {}

/// The ranks of the keys of an index. Every index that implements [`OrderStatistics`] and scans
/// implements this trait.
pub trait Ranks<K: IndexKey + ?Sized>: Scans<K> {
    /// See [`OrderStatistics::rank`].
    fn rank_of(&self, key: K::Ref<'_>, guard: &Guard) -> usize;
    /// See [`OrderStatistics::nth`].
    fn nth_of<'g>(&'g self, number: usize, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)>;
    /// See [`OrderStatistics::count`].
    fn count_within(&self, bounds: Bounds<'_, K>, guard: &Guard) -> usize;
}

impl<K: IndexKey + ?Sized, I: Scans<K> + OrderStatistics> Ranks<K> for I
where
    I: Lookup<Key = K> + 'static,
{
    fn rank_of(&self, key: K::Ref<'_>, guard: &Guard) -> usize {
        OrderStatistics::rank(self, K::shorten(key), guard)
    }
    fn nth_of<'g>(&'g self, number: usize, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        OrderStatistics::nth(self, number, guard)
    }
    fn count_within(&self, bounds: Bounds<'_, K>, guard: &Guard) -> usize {
        let bounds = (bounds.0.map(K::shorten), bounds.1.map(K::shorten));
        OrderStatistics::count(self, bounds, guard)
    }
}

/// The atomic reads of ranges of an index. Every index that implements
/// [`AtomicRanges`] and has ends implements this trait.
pub trait Atomic<K: IndexKey + ?Sized>: Ends<K> {
    /// See [`AtomicRanges::collect_range`].
    fn collect_range_within<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError>;
}

impl<K: IndexKey + ?Sized, I: Ends<K> + AtomicRanges> Atomic<K> for I
where
    I: Lookup<Key = K> + 'static,
{
    fn collect_range_within<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        AtomicRanges::collect_range(self, bounds, guard)
    }
}

/// The atomic updates of ranges of an index. Every index that implements
/// [`RangeUpdates`] and has ends implements this trait.
pub trait Updates<K: IndexKey + ?Sized>: Atomic<K> {
    /// See [`RangeUpdates::update_range`].
    fn update_range_within<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        guard: &'g Guard,
        new: &mut dyn FnMut(K::Ref<'_>, u64) -> u64,
    ) -> Result<usize, AllocError>;
}

impl<K: IndexKey + ?Sized, I: Atomic<K> + RangeUpdates> Updates<K> for I
where
    I: Lookup<Key = K> + 'static,
{
    fn update_range_within<'g>(
        &'g self,
        bounds: Bounds<'g, K>,
        guard: &'g Guard,
        new: &mut dyn FnMut(K::Ref<'_>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        RangeUpdates::update_range(self, bounds, guard, new)
    }
}

/// Implements the scans of a trait object by those of [`Scans`].
macro_rules! ordered_scan {
    ($($face:ident)*) => {$(
        impl<K: IndexKey + ?Sized> OrderedScan for dyn $face<K> {
            type Range<'g> = Entries<'g, K>;
            type RangeRev<'g> = Entries<'g, K>;
            type Cursor = AnyCursor<K>;

            fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
                &'g self,
                range: R,
                guard: &'g Guard,
            ) -> Entries<'g, K> {
                let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
                self.range_within(bounds, guard)
            }

            fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
                &'g self,
                range: R,
                guard: &'g Guard,
            ) -> Entries<'g, K> {
                let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
                self.range_rev_within(bounds, guard)
            }

            fn cursor(self: &Arc<Self>) -> AnyCursor<K> {
                AnyCursor(Arc::clone(self).any_cursor())
            }
        }
    )*};
}

ordered_scan! { Scans Ends Atomic Updates }

/// Implements the atomic ranges of a trait object by those of [`Atomic`].
macro_rules! atomic_ranges {
    ($($face:ident)*) => {$(
        impl<K: IndexKey + ?Sized> AtomicRanges for dyn $face<K> {
            fn collect_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
                &'g self,
                range: R,
                guard: &'g Guard,
            ) -> Result<Vec<(KeyRef<'g, Self>, u64)>, AllocError> {
                let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
                self.collect_range_within(bounds, guard)
            }
        }
    )*};
}

atomic_ranges! { Atomic Updates }

impl<K: IndexKey + ?Sized> RangeUpdates for dyn Updates<K> {
    fn update_range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
        mut new: impl FnMut(KeyRef<'_, Self>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        self.update_range_within(bounds, guard, &mut new)
    }
}

/// A cursor of an index of any structure.
pub struct AnyCursor<K: IndexKey + ?Sized>(Box<dyn Cursor<Key = K>>);

impl<K: IndexKey + ?Sized> fmt::Debug for AnyCursor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyCursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

impl<K: IndexKey + ?Sized> Cursor for AnyCursor<K> {
    type Key = K;

    fn seek(&mut self, key: K::Ref<'_>) -> bool {
        self.0.seek(key)
    }
    fn seek_for_prev(&mut self, key: K::Ref<'_>) -> bool {
        self.0.seek_for_prev(key)
    }
    fn next(&mut self) -> bool {
        self.0.next()
    }
    fn prev(&mut self) -> bool {
        self.0.prev()
    }
    fn key(&self) -> Option<K::Ref<'_>> {
        self.0.key()
    }
    fn value(&self) -> Option<u64> {
        self.0.value()
    }
}

/// An index of any structure with keys `K`, shared by its clones and its cursors.
pub struct AnyIndex<K: IndexKey + ?Sized>(Held<K>);

enum Held<K: IndexKey + ?Sized> {
    Points(Arc<dyn Points<K>>),
    Scans(Arc<dyn Scans<K>>),
    Ends(Arc<dyn Ends<K>>),
}

impl<K: IndexKey + ?Sized> AnyIndex<K> {
    /// Wraps an index without its scans, if it has any.
    pub fn new(index: impl Points<K> + 'static) -> Self {
        Self(Held::Points(Arc::new(index)))
    }

    /// Wraps an index with its scans.
    pub fn with_scans(index: impl Scans<K> + 'static) -> Self {
        Self(Held::Scans(Arc::new(index)))
    }

    /// Wraps an index with its scans and its ends.
    pub fn with_ends(index: impl Ends<K> + 'static) -> Self {
        Self(Held::Ends(Arc::new(index)))
    }

    /// The scans, if the index was wrapped with them.
    pub fn scans(&self) -> Option<&(dyn Scans<K> + 'static)> {
        match &self.0 {
            Held::Points(_) => None,
            Held::Scans(index) => Some(&**index),
            Held::Ends(index) => Some(&**index),
        }
    }

    /// The ends, if the index was wrapped with them.
    pub fn ends(&self) -> Option<&(dyn Ends<K> + 'static)> {
        match &self.0 {
            Held::Points(_) | Held::Scans(_) => None,
            Held::Ends(index) => Some(&**index),
        }
    }

    /// A cursor, before the first entry, that keeps the index alive, if the index was wrapped with
    /// its scans.
    pub fn cursor(&self) -> Option<AnyCursor<K>> {
        match &self.0 {
            Held::Points(_) => None,
            Held::Scans(index) => Some(AnyCursor(Arc::clone(index).any_cursor())),
            Held::Ends(index) => Some(AnyCursor(Arc::clone(index).any_cursor())),
        }
    }

    /// Exclusive access, for [`Check`]: `None` while a clone or a cursor of the index exists.
    pub fn exclusive(&mut self) -> Option<&mut (dyn Points<K> + 'static)> {
        match &mut self.0 {
            Held::Points(index) => Arc::get_mut(index).map(|index| index as _),
            Held::Scans(index) => Arc::get_mut(index).map(|index| index as _),
            Held::Ends(index) => Arc::get_mut(index).map(|index| index as _),
        }
    }
}

impl<K: IndexKey + ?Sized> Clone for AnyIndex<K> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Held::Points(index) => Held::Points(Arc::clone(index)),
            Held::Scans(index) => Held::Scans(Arc::clone(index)),
            Held::Ends(index) => Held::Ends(Arc::clone(index)),
        })
    }
}

impl<K: IndexKey + ?Sized> Deref for AnyIndex<K> {
    type Target = dyn Points<K>;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Held::Points(index) => &**index,
            Held::Scans(index) => &**index,
            Held::Ends(index) => &**index,
        }
    }
}

impl<K: IndexKey + ?Sized> fmt::Debug for AnyIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyIndex({} keys)", self.len())
    }
}
