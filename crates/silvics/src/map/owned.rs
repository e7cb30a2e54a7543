//! A map that is pinned for whoever goes from thread to thread.

use super::key::{AsKey, Key};
use super::ops::Pin;
use super::{
    CompareExchangeError, Compute, Map, MapIndex, Operation, Rejected, RemoveIfError,
    TryInsertError, Value, ValueRef, refuse, unwrapped,
};
use crate::domain::{Guard, OwnedGuard};
use crate::error::AllocError;
use std::fmt;

/// A [`Map`] with a pin that belongs to no thread: made by [`Map::pin_owned`].
///
/// It and what it lends can be held across an `await`, and sent to other threads. Each call pins for itself, too, so
/// that a [`View`](super::View) is faster where it will do; scans are for a [`Cursor`](super::Cursor), or with the feature `rayon` for many
/// threads at once (`par_iter`, `par_range`). Methods are those of the view with the same names.
///
/// While it lives, nothing that is removed from the map can be freed: an `await` that takes long is one to drop it
/// before.
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
///         assert_eq!(view.remove(1).as_deref(), Some(&*value)); // still readable, here too
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

    /// The pin.
    #[cfg(feature = "rayon")]
    pub(super) fn guard(&self) -> &OwnedGuard {
        &self.guard
    }

    /// The map.
    pub fn map(&self) -> &'m Map<K, V, I> {
        self.map
    }

    /// For a call under this thread's guard, what it lends being borrowed of the owned one.
    #[inline(always)]
    fn pin<'g, 'c>(&'g self, guard: &'c Guard) -> Pin<'g, 'c> {
        // SAFETY: the owned one has been there since before, and is as long as `'g`.
        unsafe { Pin::beside(guard, &self.guard) }
    }

    /// See [`View::get`](super::View::get).
    pub fn get(&self, key: impl AsKey<K>) -> Option<ValueRef<'_, V>> {
        self.map.do_get(&key, self.pin(&self.map.one_shot()))
    }

    /// See [`View::contains_key`](super::View::contains_key).
    pub fn contains_key(&self, key: impl AsKey<K>) -> bool {
        self.get(key).is_some()
    }

    /// See [`View::insert`](super::View::insert).
    pub fn insert(&self, key: impl AsKey<K>, value: V) -> Option<ValueRef<'_, V>> {
        unwrapped(self.try_upsert(key, value))
    }

    /// See [`View::try_upsert`](super::View::try_upsert).
    pub fn try_upsert(
        &self,
        key: impl AsKey<K>,
        value: V,
    ) -> Result<Option<ValueRef<'_, V>>, Rejected<V>> {
        self.map.do_insert(&key, value, self.pin(&self.map.one_shot()))
    }

    /// See [`View::try_insert`](super::View::try_insert).
    pub fn try_insert(
        &self,
        key: impl AsKey<K>,
        value: V,
    ) -> Result<ValueRef<'_, V>, TryInsertError<ValueRef<'_, V>, V>> {
        self.map.do_try_insert(&key, value, self.pin(&self.map.one_shot()))
    }

    /// See [`View::get_or_insert_with`](super::View::get_or_insert_with).
    pub fn get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        make: impl FnOnce() -> V,
    ) -> ValueRef<'_, V> {
        unwrapped(self.try_get_or_insert_with(key, make))
    }

    /// See [`View::try_get_or_insert_with`](super::View::try_get_or_insert_with).
    pub fn try_get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        make: impl FnOnce() -> V,
    ) -> Result<ValueRef<'_, V>, Rejected<V>> {
        self.map.do_get_or_insert_with(&key, make, self.pin(&self.map.one_shot()))
    }

    /// See [`View::remove`](super::View::remove).
    pub fn remove(&self, key: impl AsKey<K>) -> Option<ValueRef<'_, V>> {
        self.try_remove(key).unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::try_remove`](super::View::try_remove).
    pub fn try_remove(&self, key: impl AsKey<K>) -> Result<Option<ValueRef<'_, V>>, AllocError> {
        self.map.do_remove(&key, self.pin(&self.map.one_shot()))
    }

    /// See [`View::remove_if`](super::View::remove_if).
    pub fn remove_if(
        &self,
        key: impl AsKey<K>,
        condition: impl FnMut(&V) -> bool,
    ) -> Result<Option<ValueRef<'_, V>>, ValueRef<'_, V>> {
        self.try_remove_if(key, condition).or_else(|error| match error {
            RemoveIfError::Kept(value) => Err(value),
            RemoveIfError::Alloc(error) => refuse(error),
        })
    }

    /// See [`View::try_remove_if`](super::View::try_remove_if).
    pub fn try_remove_if(
        &self,
        key: impl AsKey<K>,
        condition: impl FnMut(&V) -> bool,
    ) -> Result<Option<ValueRef<'_, V>>, RemoveIfError<ValueRef<'_, V>>> {
        self.map.do_remove_if(&key, condition, self.pin(&self.map.one_shot()))
    }

    /// See [`View::update`](super::View::update).
    pub fn update(
        &self,
        key: impl AsKey<K>,
        change: impl FnMut(&V) -> V,
    ) -> Option<ValueRef<'_, V>> {
        unwrapped(self.map.do_update(&key, change, self.pin(&self.map.one_shot())))
    }

    /// See [`View::compute`](super::View::compute).
    pub fn compute<T>(
        &self,
        key: impl AsKey<K>,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Compute<ValueRef<'_, V>, T> {
        unwrapped(self.try_compute(key, decide))
    }

    /// See [`View::try_compute`](super::View::try_compute).
    pub fn try_compute<T>(
        &self,
        key: impl AsKey<K>,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<ValueRef<'_, V>, T>, Rejected<Option<V>>> {
        self.map.do_compute(&key, decide, self.pin(&self.map.one_shot()))
    }

    /// See [`View::compare_exchange`](super::View::compare_exchange).
    pub fn compare_exchange(
        &self,
        key: impl AsKey<K>,
        expected: Option<&V>,
        new: Option<V>,
    ) -> Result<Option<ValueRef<'_, V>>, CompareExchangeError<ValueRef<'_, V>, V>>
    where
        V: PartialEq,
    {
        self.map.do_compare_exchange(&key, expected, new, self.pin(&self.map.one_shot()))
    }
}
