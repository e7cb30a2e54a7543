//! The everyday methods of a map, each with a pin of its own.
//!
//! A writer that is refused memory under its own pin lets go of it, shrinks the map, and tries once more: what this
//! thread has removed can be freed then. A key that is too long is refused at once.

use super::key::{AsKey, Key};
use super::{
    CompareExchangeError, Compute, Entry, ExtendError, KeyRange, Map, MapIndex, Operation,
    Rejected, RemoveIfError, TryInsertError, Value, ValueGuard, ValueRef, View, refuse, unwrapped,
};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::OrderedEnds;
use std::array;
use std::marker::PhantomData;
use std::ops::Bound;

/// What can hold `N` values that a view lends: pins that were there before these were read.
struct Hold<'m, const N: usize> {
    pins: [Option<Guard>; N],
    map: PhantomData<&'m ()>,
}

impl<'m, const N: usize> Hold<'m, N> {
    /// Holds a value that has been read since this was made.
    #[inline(always)]
    fn value<V: Value>(&mut self, value: ValueRef<'_, V>) -> ValueGuard<'m, V> {
        let guard = self.pins.iter_mut().find_map(Option::take).expect("a pin for each value");
        // SAFETY: the pin was there when the value was read and goes along, and the map is borrowed.
        ValueGuard { value: unsafe { value.extend() }, _guard: guard }
    }

    fn entry<K: Key, V: Value>(&mut self, (key, value): Entry<'_, K, V>) -> (K, ValueGuard<'m, V>) {
        (K::to_owned(key), self.value(value))
    }
}

/// Whether there may be memory when what has been removed is dropped.
pub(super) fn is_shortage(error: AllocError) -> Result<(), AllocError> {
    match error {
        AllocError::Limit { .. } | AllocError::System { .. } => Ok(()),
        other => Err(other),
    }
}

/// What to try again with.
fn again<V>(rejected: Rejected<V>) -> Result<V, Rejected<V>> {
    match is_shortage(rejected.error) {
        Ok(()) => Ok(rejected.value),
        Err(_) => Err(rejected),
    }
}

/// The everyday methods, each with a pin of its own: what they lend holds it. Those of [`View`] do the same, and there are
/// more of them. What of them panics if memory cannot be had, or if a key is longer than the index takes, has a `try_` form.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// What `call` lends under a pin of its own, with the pin.
    #[inline(always)]
    fn held<E>(
        &self,
        call: impl for<'g> FnOnce(&'g Self, &'g Guard) -> Result<Option<ValueRef<'g, V>>, E>,
    ) -> Result<Option<ValueGuard<'_, V>>, E> {
        let guard = self.one_shot();
        let Some(value) = call(self, &guard)? else { return Ok(None) };
        // SAFETY: the guard was there when the value was read and goes along, and the map is borrowed.
        let value = unsafe { value.extend() };
        Ok(Some(ValueGuard { value, _guard: guard }))
    }

    /// A view, and what holds values that it lends.
    #[inline(always)]
    fn pin_to_hold<const N: usize>(&self) -> (View<'_, K, V, I>, Hold<'_, N>) {
        let view = self.pin();
        let pins = array::from_fn(|_| Some(self.index.domain().pin()));
        (view, Hold { pins, map: PhantomData })
    }

    /// Makes another attempt if one is refused memory, when what has been removed is dropped. No pin is held between them.
    #[inline(always)]
    fn twice<A, T, E>(
        &self,
        with: A,
        mut attempt: impl FnMut(A) -> Result<T, E>,
        refused: impl FnOnce(E) -> Result<A, E>,
    ) -> Result<T, E> {
        attempt(with).or_else(|error| {
            let with = refused(error)?;
            self.shrink(); // so that slabs of one kind can be had for another, too
            attempt(with)
        })
    }

    /// See [`View::get`].
    #[inline]
    pub fn get(&self, key: impl AsKey<K>) -> Option<ValueGuard<'_, V>> {
        let got = self.held(|map, guard| Ok::<_, AllocError>(map.do_get(&key, guard.into())));
        got.unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::get_key_value`]; the key is a copy.
    pub fn get_key_value(&self, key: impl AsKey<K>) -> Option<(K, ValueGuard<'_, V>)> {
        let (view, mut hold) = self.pin_to_hold::<1>();
        view.get_key_value(key).map(|entry| hold.entry(entry))
    }

    /// See [`View::contains_key`].
    #[inline]
    pub fn contains_key(&self, key: impl AsKey<K>) -> bool {
        self.pin().contains_key(key)
    }

    /// See [`View::insert`].
    pub fn insert(&self, key: impl AsKey<K>, value: V) -> Option<ValueGuard<'_, V>> {
        unwrapped(self.try_upsert(key, value))
    }

    /// See [`View::try_upsert`].
    #[inline]
    pub fn try_upsert(
        &self,
        key: impl AsKey<K>,
        value: V,
    ) -> Result<Option<ValueGuard<'_, V>>, Rejected<V>> {
        let attempt = |value| self.held(|map, guard| map.do_insert(&key, value, guard.into()));
        self.twice(value, attempt, again)
    }

    /// See [`View::try_insert`].
    pub fn try_insert(
        &self,
        key: impl AsKey<K>,
        value: V,
    ) -> Result<ValueGuard<'_, V>, TryInsertError<ValueGuard<'_, V>, V>> {
        let attempt = |value| {
            let (view, mut hold) = self.pin_to_hold::<1>();
            match view.try_insert(&key, value) {
                Ok(value) => Ok(hold.value(value)),
                Err(TryInsertError::Occupied { present, value }) => {
                    Err(TryInsertError::Occupied { present: hold.value(present), value })
                }
                Err(TryInsertError::Alloc(rejected)) => Err(TryInsertError::Alloc(rejected)),
            }
        };
        self.twice(value, attempt, |error| match error {
            TryInsertError::Alloc(rejected) => again(rejected).map_err(TryInsertError::Alloc),
            occupied @ TryInsertError::Occupied { .. } => Err(occupied),
        })
    }

    /// See [`View::get_or_insert`].
    pub fn get_or_insert(&self, key: impl AsKey<K>, value: V) -> ValueGuard<'_, V> {
        self.get_or_insert_with(key, || value)
    }

    /// See [`View::get_or_insert_with`].
    pub fn get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        make: impl FnOnce() -> V,
    ) -> ValueGuard<'_, V> {
        if let Some(present) = self.get(&key) {
            return present;
        }
        match self.try_insert(&key, make()) {
            Ok(present) | Err(TryInsertError::Occupied { present, .. }) => present,
            Err(TryInsertError::Alloc(rejected)) => refuse(rejected.error),
        }
    }

    /// See [`View::remove`].
    pub fn remove(&self, key: impl AsKey<K>) -> Option<ValueGuard<'_, V>> {
        self.try_remove(key).unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::try_remove`].
    #[inline]
    pub fn try_remove(&self, key: impl AsKey<K>) -> Result<Option<ValueGuard<'_, V>>, AllocError> {
        let attempt = |()| self.held(|map, guard| map.do_remove(&key, guard.into()));
        self.twice((), attempt, is_shortage)
    }

    /// See [`View::remove_if`]; where the index needs memory to remove, `condition` is asked again if that
    /// was refused at first.
    pub fn remove_if(
        &self,
        key: impl AsKey<K>,
        mut condition: impl FnMut(&V) -> bool,
    ) -> Result<Option<ValueGuard<'_, V>>, ValueGuard<'_, V>> {
        let attempt = |()| {
            let (view, mut hold) = self.pin_to_hold::<1>();
            match view.try_remove_if(&key, &mut condition) {
                Ok(removed) => Ok(removed.map(|value| hold.value(value))),
                Err(RemoveIfError::Kept(value)) => Err(RemoveIfError::Kept(hold.value(value))),
                Err(RemoveIfError::Alloc(error)) => Err(RemoveIfError::Alloc(error)),
            }
        };
        let removed = self.twice((), attempt, |error| match error {
            RemoveIfError::Alloc(error) => is_shortage(error).map_err(RemoveIfError::Alloc),
            kept @ RemoveIfError::Kept(_) => Err(kept),
        });
        removed.map_err(|error| match error {
            RemoveIfError::Kept(value) => value,
            RemoveIfError::Alloc(error) => refuse(error),
        })
    }

    /// See [`View::update`]; `change` runs again, too, if memory was refused at first.
    pub fn update(
        &self,
        key: impl AsKey<K>,
        mut change: impl FnMut(&V) -> V,
    ) -> Option<ValueGuard<'_, V>> {
        let attempt = |()| self.held(|map, guard| map.do_update(&key, &mut change, guard.into()));
        unwrapped(self.twice((), attempt, |rejected| again(rejected).map(drop)))
    }

    /// See [`View::compute`]; `decide` runs again, too, if memory was refused at first.
    pub fn compute<T>(
        &self,
        key: impl AsKey<K>,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Compute<ValueGuard<'_, V>, T> {
        unwrapped(self.try_compute(key, decide))
    }

    /// See [`View::try_compute`]; `decide` runs again, too, if memory was refused at first.
    pub fn try_compute<T>(
        &self,
        key: impl AsKey<K>,
        mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<ValueGuard<'_, V>, T>, Rejected<Option<V>>> {
        let attempt = |()| {
            let (view, mut hold) = self.pin_to_hold::<2>();
            Ok(view.try_compute(&key, &mut decide)?.map(|value| hold.value(value)))
        };
        self.twice((), attempt, |rejected| again(rejected).map(drop))
    }

    /// See [`View::compare_exchange`].
    pub fn compare_exchange(
        &self,
        key: impl AsKey<K>,
        expected: Option<&V>,
        new: Option<V>,
    ) -> Result<Option<ValueGuard<'_, V>>, CompareExchangeError<ValueGuard<'_, V>, V>>
    where
        V: PartialEq,
    {
        let attempt = |new| {
            let (view, mut hold) = self.pin_to_hold::<1>();
            match view.compare_exchange(&key, expected, new) {
                Ok(old) => Ok(old.map(|value| hold.value(value))),
                Err(CompareExchangeError::Mismatch { present, new }) => {
                    let present = present.map(|value| hold.value(value));
                    Err(CompareExchangeError::Mismatch { present, new })
                }
                Err(CompareExchangeError::Alloc(rejected)) => {
                    Err(CompareExchangeError::Alloc(rejected))
                }
            }
        };
        self.twice(new, attempt, |error| match error {
            CompareExchangeError::Alloc(rejected) => {
                again(rejected).map_err(CompareExchangeError::Alloc)
            }
            mismatch @ CompareExchangeError::Mismatch { .. } => Err(mismatch),
        })
    }

    /// See [`View::extend`]; pins anew every now and then.
    pub fn extend<Q: AsKey<K>>(&self, entries: impl IntoIterator<Item = (Q, V)>) -> usize {
        self.try_extend(entries).unwrap_or_else(|error| refuse(error.error))
    }

    /// See [`View::try_extend`]; pins anew every now and then.
    pub fn try_extend<Q: AsKey<K>, R: IntoIterator<Item = (Q, V)>>(
        &self,
        entries: R,
    ) -> Result<usize, ExtendError<Q, V, R::IntoIter>> {
        self.do_extend(entries.into_iter(), None, |_| ())
    }

    /// See [`View::retain`]; pins anew every now and then.
    pub fn retain(&self, keep: impl FnMut(&K::Ref<'_>, &V) -> bool) -> usize {
        self.try_retain(keep).unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::try_retain`]; pins anew every now and then.
    pub fn try_retain(
        &self,
        keep: impl FnMut(&K::Ref<'_>, &V) -> bool,
    ) -> Result<usize, AllocError> {
        self.do_retain(keep, None)
    }

    /// See [`View::remove_range`]; pins anew every now and then.
    pub fn remove_range(&self, range: impl KeyRange<K>) -> usize {
        self.try_remove_range(range).unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::try_remove_range`]; pins anew every now and then.
    pub fn try_remove_range(&self, range: impl KeyRange<K>) -> Result<usize, AllocError> {
        self.do_remove_range(range, None)
    }

    /// See [`View::clear`]; pins anew every now and then.
    pub fn clear(&self) -> usize {
        self.remove_range(..)
    }

    /// See [`View::lower_bound`]; the key is a copy.
    pub fn lower_bound<Q: AsKey<K>>(&self, bound: Bound<Q>) -> Option<(K, ValueGuard<'_, V>)> {
        let (view, mut hold) = self.pin_to_hold::<1>();
        view.lower_bound(bound).map(|entry| hold.entry(entry))
    }

    /// See [`View::upper_bound`]; the key is a copy.
    pub fn upper_bound<Q: AsKey<K>>(&self, bound: Bound<Q>) -> Option<(K, ValueGuard<'_, V>)> {
        let (view, mut hold) = self.pin_to_hold::<1>();
        view.upper_bound(bound).map(|entry| hold.entry(entry))
    }
}

/// Both ends, with a pin for each call, and copies of keys.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> Map<K, V, I> {
    /// See [`View::first`].
    pub fn first(&self) -> Option<(K, ValueGuard<'_, V>)> {
        let (view, mut hold) = self.pin_to_hold::<1>();
        view.first().map(|entry| hold.entry(entry))
    }

    /// See [`View::last`].
    pub fn last(&self) -> Option<(K, ValueGuard<'_, V>)> {
        let (view, mut hold) = self.pin_to_hold::<1>();
        view.last().map(|entry| hold.entry(entry))
    }

    /// See [`View::pop_first`].
    pub fn pop_first(&self) -> Option<(K, ValueGuard<'_, V>)> {
        self.try_pop_first().unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::try_pop_first`].
    pub fn try_pop_first(&self) -> Result<Option<(K, ValueGuard<'_, V>)>, AllocError> {
        let popped = |()| {
            let (view, mut hold) = self.pin_to_hold::<1>();
            Ok(view.try_pop_first()?.map(|entry| hold.entry(entry)))
        };
        self.twice((), popped, is_shortage)
    }

    /// See [`View::pop_last`].
    pub fn pop_last(&self) -> Option<(K, ValueGuard<'_, V>)> {
        self.try_pop_last().unwrap_or_else(|error| refuse(error))
    }

    /// See [`View::try_pop_last`].
    pub fn try_pop_last(&self) -> Result<Option<(K, ValueGuard<'_, V>)>, AllocError> {
        let popped = |()| {
            let (view, mut hold) = self.pin_to_hold::<1>();
            Ok(view.try_pop_last()?.map(|entry| hold.entry(entry)))
        };
        self.twice((), popped, is_shortage)
    }
}
