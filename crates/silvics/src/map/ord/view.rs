//! The faces of a map of any order: the map itself, whose methods pin for one call each, and a
//! view, which pins once for many calls. Their verbs are in `verbs.rs`.

use super::guard::{EntryGuard, Pair};
use super::order::{Comparator, Compares};
use super::scan::Range;
use super::verbs::{entry_verbs, point_verbs};
use super::{Entry, OrdMap};
use crate::ca::build::Build;
use crate::domain::Guard;
use crate::error::AllocError;
use crate::map::lend::Lends;
use crate::map::outcome::{OrPanic, refuse};
use crate::map::value::{Value, ValueRef};
use crate::map::{
    CompareExchangeError, Compute, Operation, Rejected, RemoveIfError, TryInsertError, ValueGuard,
};
use silvics_pool::Placement;
use std::convert::identity;
use std::fmt;
use std::ops::{Bound, RangeBounds};

/// Implements verbs with a pin for each call. An operation of a map keeps nothing that it reads,
/// except in its result.
macro_rules! one_shot {
    (reads: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe { $self.held(|pin| $self.$operation($($pass,)* pin)) }
    };
    (reads_entry: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe { $self.held(|pin| $self.$operation($($pass,)* pin).map(Pair)) }
    };
    (writes: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe { $self.held_or_repeated((), |(), pin| $self.$operation($($pass,)* pin), drop) }
    };
    (writes_entry: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe {
            $self.held_or_repeated(
                (),
                |(), pin| $self.$operation($($pass,)* pin).map(|entry| entry.map(Pair)),
                drop,
            )
        }
    };
    (writes $argument:ident: $self:ident, $operation:ident($($pass:expr),*)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe {
            $self.held_or_repeated(
                $argument,
                |$argument, pin| $self.$operation($($pass,)* pin),
                identity,
            )
        }
    };
    (inserts: $self:ident, $operation:ident($entry:expr)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe { $self.held_or_repeated($entry, |entry, pin| $self.$operation(entry, pin), identity) }
    };
    (computes: $self:ident, $operation:ident($key:expr, $decide:expr)) => {
        // SAFETY: an operation keeps nothing, except in its result.
        unsafe {
            $self.held_twice($key, |key, pin| $self.$operation(key, $decide, pin), |(key, value)| {
                drop(value);
                key
            })
        }
    };
}

/// Methods that pin for the call: what they return holds the pin. A [`OrdView`] has all of them and
/// more, and pins once for many calls.
///
/// If an allocation fails, a method unpins, returns free memory by [`OrdMap::shrink`], and tries
/// once more. A method that panics on allocation failure has a `try_` variant, except for
/// `get_or_insert` and `get_or_insert_with`.
impl<K: Value, V: Value, C: Compares<K, K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    point_verbs!(one_shot, ValueGuard<'_, V>);
    entry_verbs!(one_shot, EntryGuard<'_, K, V>);
}

/// Implements verbs under the guard of a view.
macro_rules! view {
    ($kind:ident $($argument:ident)?: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* (&$self.guard).into())
    };
}

/// An [`OrdMap`] with its domain pinned, made by [`OrdMap::pin`]. It cannot leave its thread.
///
/// Returned keys and values borrow the view. They are valid while the view lives, even if they are
/// removed from the map. See [`View`](crate::map::View) on failing allocations and on how long to
/// keep a view.
pub struct OrdView<'m, K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> {
    map: &'m OrdMap<K, V, C, P, B>,
    guard: Guard,
}

impl<K, V, C, P, B> fmt::Debug for OrdView<'_, K, V, C, P, B>
where
    K: Value + fmt::Debug,
    V: Value + fmt::Debug,
    C: Compares<K, K>,
    P: Placement,
    B: Build,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'v, K, V, C, P, B> IntoIterator for &'v OrdView<'_, K, V, C, P, B>
where
    K: Value,
    V: Value,
    C: Compares<K, K>,
    P: Placement,
    B: Build,
{
    type Item = Entry<'v, K, V>;
    type IntoIter = Range<'v, K, V, C, P, B>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'m, K: Value, V: Value, C: Compares<K, K>, P: Placement, B: Build> OrdView<'m, K, V, C, P, B> {
    pub(super) fn new(map: &'m OrdMap<K, V, C, P, B>, guard: Guard) -> Self {
        Self { map, guard }
    }

    /// The map.
    pub fn map(&self) -> &'m OrdMap<K, V, C, P, B> {
        self.map
    }

    /// Pins anew, so that entries removed since the last pin can be freed: see
    /// [`View::repin`](crate::map::View::repin).
    #[inline]
    pub fn repin(&mut self) {
        self.map.drop_some();
        self.guard.repin();
    }

    point_verbs!(view, ValueRef<'_, V>);
    entry_verbs!(view, Entry<'_, K, V>);

    /// The entries of a range, in ascending order from the front and in descending order from the
    /// back. A range whose start is behind its end has none.
    ///
    /// Keys come in strictly ascending order from the front, none twice. A key present during the
    /// whole scan is seen; one absent during the whole scan is not; one inserted or removed
    /// meanwhile may or may not be seen.
    ///
    /// ```
    /// use silvics::OrdMap;
    /// use std::ops::Bound::{Excluded, Included};
    ///
    /// let map: OrdMap<String, u64> = OrdMap::new();
    /// for (number, name) in ["ash", "beech", "cedar", "elm"].into_iter().enumerate() {
    ///     map.insert(name.to_string(), number as u64);
    /// }
    /// let view = map.pin();
    /// let some = view.range::<str, _>((Included("b"), Excluded("e")));
    /// let some: Vec<u64> = some.map(|(_, value)| *value).collect();
    /// assert_eq!(some, [1, 2]);
    /// let last = view.iter().next_back().map(|(key, _)| key.clone());
    /// assert_eq!(last.as_deref(), Some("elm"));
    /// ```
    pub fn range<Q: ?Sized, R: RangeBounds<Q>>(&self, range: R) -> Range<'_, K, V, C, P, B, Q, R>
    where
        C: Compares<K, Q>,
    {
        Range::new(self.map, range, &self.guard)
    }

    /// All entries: see [`Self::range`].
    pub fn iter(&self) -> Range<'_, K, V, C, P, B> {
        self.range::<K, _>(..)
    }

    /// All keys, in ascending order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = ValueRef<'_, K>> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in ascending order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = ValueRef<'_, V>> {
        self.iter().map(|(_, value)| value)
    }

    /// Removes the entries for which `keep` does not hold, and returns their number, or an error if
    /// an allocation fails.
    ///
    /// An entry is removed together with the value that `keep` was given: if another thread
    /// replaces that value first, `keep` runs again. An entry that is inserted during the call may
    /// or may not be visited.
    pub fn try_retain(&self, keep: impl FnMut(&K, &V) -> bool) -> Result<usize, AllocError> {
        self.map.do_retain((Bound::<&K>::Unbounded, Bound::Unbounded), keep, &self.guard)
    }

    /// Removes like [`Self::try_retain`].
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn retain(&self, keep: impl FnMut(&K, &V) -> bool) -> usize {
        self.try_retain(keep).or_panic()
    }

    /// Removes the entries of a range, and returns their number, or an error if an allocation
    /// fails. An entry that is inserted during the call may or may not be removed.
    pub fn try_remove_range<Q: ?Sized>(
        &self,
        range: impl RangeBounds<Q>,
    ) -> Result<usize, AllocError>
    where
        C: Compares<K, Q>,
    {
        let bounds = (range.start_bound(), range.end_bound());
        self.map.do_retain(bounds, |_, _| false, &self.guard)
    }

    /// Removes like [`Self::try_remove_range`].
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn remove_range<Q: ?Sized>(&self, range: impl RangeBounds<Q>) -> usize
    where
        C: Compares<K, Q>,
    {
        self.try_remove_range(range).or_panic()
    }

    /// Removes all entries, and returns their number.
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn clear(&self) -> usize {
        self.retain(|_, _| false)
    }
}
