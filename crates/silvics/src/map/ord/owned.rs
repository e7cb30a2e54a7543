//! A map of any order with a pin that may move from thread to thread.

use super::order::{Comparator, Compares};
use super::scan::{Range, iterators};
use super::verbs::{entry_verbs, point_verbs};
use super::{Entry, OrdMap};
use crate::ca::build::Build;
use crate::domain::{Guard, OwnedGuard};
use crate::error::AllocError;
use crate::map::lend::{Lends, Pin};
use crate::map::outcome::{OrPanic, refuse};
use crate::map::value::{Value, ValueRef};
use crate::map::{
    CompareExchangeError, Compute, Operation, Rejected, RemoveIfError, TryInsertError,
};
use silvics_pool::Placement;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds, RangeFull};

/// Implements verbs for a call under a guard of this thread. The owned guard protects the result.
macro_rules! owned {
    ($kind:ident $($argument:ident)?: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* $self.pin(&$self.map.one_shot()))
    };
}

/// An [`OrdMap`] with its domain pinned, which may move to other threads: made by
/// [`OrdMap::pin_owned`].
///
/// The view and the keys and values that it returns may be held across an `await`, and sent to
/// other threads. Each call pins for itself, too, so an [`OrdView`](super::OrdView) is faster if it
/// stays on one thread. While the view lives, no removed entry can be freed.
pub struct OrdOwnedView<'m, K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> {
    map: &'m OrdMap<K, V, C, P, B>,
    guard: OwnedGuard,
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> fmt::Debug
    for OrdOwnedView<'_, K, V, C, P, B>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrdOwnedView").finish_non_exhaustive()
    }
}

impl<'m, K: Value, V: Value, C: Compares<K, K>, P: Placement, B: Build>
    OrdOwnedView<'m, K, V, C, P, B>
{
    pub(super) fn new(map: &'m OrdMap<K, V, C, P, B>, guard: OwnedGuard) -> Self {
        Self { map, guard }
    }

    /// The map.
    pub fn map(&self) -> &'m OrdMap<K, V, C, P, B> {
        self.map
    }

    /// A pin for a call under a guard of this thread. The owned guard protects what is returned.
    #[inline(always)]
    fn pin<'g, 'c>(&'g self, guard: &'c Guard) -> Pin<'g, 'c> {
        // SAFETY: both guards are of the map's domain, and the caller took `guard` after the owned
        // one.
        unsafe { Pin::beside(guard, &self.guard) }
    }

    point_verbs!(owned, ValueRef<'_, V>);
    entry_verbs!(owned, Entry<'_, K, V>);

    /// The entries of a range, with the guarantee of [`OrdView::range`](super::OrdView::range). The
    /// iterator is double-ended, and can be sent to another thread.
    ///
    /// ```
    /// use silvics::OrdMap;
    ///
    /// let map: OrdMap<String, u64> = (0..9).map(|n| (format!("key {n}"), n)).collect();
    /// let view = map.pin_owned();
    /// let mut range = view.range(String::from("key 3")..);
    /// assert_eq!(range.next().map(|(_, value)| *value), Some(3));
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || {
    ///         assert_eq!(range.next_back().map(|(_, value)| *value), Some(8));
    ///         assert_eq!(range.next().map(|(_, value)| *value), Some(4));
    ///     });
    /// });
    /// ```
    pub fn range<Q: ?Sized, R: RangeBounds<Q>>(
        &self,
        range: R,
    ) -> OwnedViewRange<'_, K, V, C, P, B, Q, R>
    where
        C: Compares<K, Q>,
    {
        OwnedViewRange(Range::new(self.map, range, &self.guard))
    }

    /// All entries: see [`Self::range`].
    pub fn iter(&self) -> OwnedViewRange<'_, K, V, C, P, B> {
        self.range::<K, _>(..)
    }
}

impl<'v, K, V, C, P, B> IntoIterator for &'v OrdOwnedView<'_, K, V, C, P, B>
where
    K: Value,
    V: Value,
    C: Compares<K, K>,
    P: Placement,
    B: Build,
{
    type Item = Entry<'v, K, V>;
    type IntoIter = OwnedViewRange<'v, K, V, C, P, B>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A scan of an [`OrdOwnedView`], which can be sent to another thread.
pub struct OwnedViewRange<
    'g,
    K: Value,
    V: Value,
    C: Comparator<K>,
    P: Placement,
    B: Build,
    Q: ?Sized = K,
    R = RangeFull,
>(Range<'g, K, V, C, P, B, Q, R>);

// SAFETY: the scan has addresses of nodes, keys and values, which all threads may read, and which
// the owned guard protects, whatever thread uses the scan. Its bounds are `R`, which is sent.
unsafe impl<K, V, C, P, B, Q, R> Send for OwnedViewRange<'_, K, V, C, P, B, Q, R>
where
    K: Value,
    V: Value,
    C: Comparator<K>,
    P: Placement,
    B: Build,
    Q: ?Sized,
    R: Send,
{
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build, Q: ?Sized, R> fmt::Debug
    for OwnedViewRange<'_, K, V, C, P, B, Q, R>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

iterators!(
    OwnedViewRange<K, V>, Entry<'g, K, V>, |this| next: this.0.next(), back: this.0.next_back(),
);
