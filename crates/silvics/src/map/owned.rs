//! A map with a pin that may move from thread to thread. Its verbs are in `verbs.rs`.

use super::key::{AsKey, Key};
use super::lend::{Lends, Pin};
use super::outcome::OrPanic;
use super::verbs::{end_verbs, entry_verbs, point_verbs, rank_verbs, sweep_verbs};
use super::{
    CompareExchangeError, Compute, ExtendError, KeyRange, Keyed, Map, MapIndex, Operation,
    OwnedValueGuard, Rejected, RemoveIfError, TryInsertError, Value, ValueRef,
};
use crate::domain::{Guard, OwnedGuard};
use crate::error::AllocError;
use crate::index::{OrderStatistics, OrderedEnds};
use std::fmt;
use std::ops::Bound;

/// Implements verbs for a call under this thread's guard; the owned guard protects the values.
macro_rules! owned {
    (sweeps: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* None)
    };
    ($kind:ident $($argument:ident)?: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* $self.pin(&$self.map.one_shot()))
    };
}

/// A [`Map`] with its domain pinned, which may move to other threads: made by [`Map::pin_owned`].
///
/// The view and the values that it returns may be held across an `await`, and sent to other
/// threads. Each call pins for itself, too, so a [`View`](super::View) is faster if it stays on one
/// thread. [`OwnedView::range`] scans on one thread at a time, and `par_range` (feature `rayon`) on
/// many at once.
///
/// While the view lives, no removed entry can be freed. So drop it before an `await` that takes
/// long.
///
/// ```
/// use silvics::Map;
///
/// let map: Map<u64, String> = Map::new();
/// map.insert(1, "one".to_string());
/// let view = map.pin_owned();
/// let value = view.get(1).expect("inserted");
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         assert_eq!(view.remove(1).as_deref(), Some(&*value)); // still readable, on this thread, too
///     });
/// });
/// assert_eq!(*value, "one");
/// ```
pub struct OwnedView<'m, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: &'m Map<K, V, I>,
    guard: OwnedGuard,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for OwnedView<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedView").finish_non_exhaustive()
    }
}

impl<'m, K: Key, V: Value, I: MapIndex<Key = K::Form>> OwnedView<'m, K, V, I> {
    pub(super) fn new(map: &'m Map<K, V, I>, guard: OwnedGuard) -> Self {
        Self { map, guard }
    }

    /// The guard that protects returned values.
    pub(super) fn guard(&self) -> &OwnedGuard {
        &self.guard
    }

    /// The map.
    pub fn map(&self) -> &'m Map<K, V, I> {
        self.map
    }

    /// Keeps one value that `call` returns, and the pin of the view with it. Returns `None` if
    /// `call` does.
    ///
    /// ```
    /// let map: silvics::Map<u64, String> = [(1, "one".to_string())].into_iter().collect();
    /// let removed = map.pin_owned().into_value(|view| view.remove(1)).expect("present");
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || assert_eq!(*removed, "one"));
    /// });
    /// ```
    pub fn into_value(
        self,
        call: impl for<'v> FnOnce(&'v Self) -> Option<ValueRef<'v, V>>,
    ) -> Option<OwnedValueGuard<'m, V>> {
        // SAFETY: `call` returns a value that borrows this view, so that it was read after the
        // view's guard was taken, or one that is valid for longer. The map lives as long as `'m`.
        let word = call(&self).map(|value| unsafe { value.lengthen() });
        // SAFETY: as before: the guard that is moved in is the view's.
        word.map(|value| unsafe { OwnedValueGuard::new(value, self.guard) })
    }

    /// A pin for a call under a guard of this thread. The owned guard protects the values.
    #[inline(always)]
    fn pin<'g, 'c>(&'g self, guard: &'c Guard) -> Pin<'g, 'c> {
        // SAFETY: both guards are of the map's domain, and the caller took `guard` after the owned
        // one.
        unsafe { Pin::beside(guard, &self.guard) }
    }

    point_verbs!(owned, ValueRef<'_, V>);
    entry_verbs!(owned, K, ValueRef<'_, V>, Map::<K, V, I>::owned_key_of);
    sweep_verbs!(owned);
}

/// Values that keep a pin of their own, on any thread.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// Returns the value of `key` with an owned pin, so that it can be sent to another thread and
    /// held across an `await`. [`Map::get`] is faster if the value stays on this thread.
    pub fn get_owned(&self, key: impl AsKey<K>) -> Option<OwnedValueGuard<'_, V>> {
        self.pin_owned().into_value(|view| view.get(key))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> OwnedView<'_, K, V, I> {
    end_verbs!(owned, K, ValueRef<'_, V>, Map::<K, V, I>::owned_key_of);
}

/// The verbs of a map whose index counts its keys: see
/// [`Builder::counted`](super::Builder::counted).
impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderStatistics> OwnedView<'_, K, V, I> {
    rank_verbs!(owned, K, ValueRef<'_, V>, Map::<K, V, I>::owned_key_of);
}
