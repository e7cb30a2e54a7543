//! A map while it is pinned.

use super::key::{AsKey, AsPrefix, Key};
use super::{
    CompareExchangeError, Compute, Entry, ExtendError, KeyRange, Map, MapIndex, Operation, Range,
    RangeRev, Rejected, RemoveIfError, TryInsertError, Value, ValueRef, refuse, unwrapped,
};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::OrderedEnds;
use std::fmt;
use std::ops::Bound;

/// A [`Map`] with a pin: made by [`Map::pin`]. It belongs to its thread.
///
/// What it lends borrows the view, and stays readable as long as that lives, removed or not. Neither values nor keys can be kept longer:
///
/// ```compile_fail,E0505
/// let map: silvics::Map<String, u64> = [("a", 1)].into_iter().collect();
/// let view = map.pin();
/// let key = view.keys().next();
/// drop(view);
/// println!("{key:?}");
/// ```
///
/// # Writers
/// `insert`, `remove` and their like panic where memory cannot be had, as the standard library's
/// collections do, or where a key is longer than the index takes (64 KiB), and with a sentence. Each has a form that begins with `try_` and tells it instead, giving
/// back what was to be put in; the map is as it was. What has been removed under this pin is no memory to be had; the methods of the map
/// itself, which pin for a call, let go of theirs and try once more. [`View::try_insert`] is the literature's put-if-absent: of [`View::insert`]
/// that form is [`View::try_upsert`].
pub struct View<'m, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: &'m Map<K, V, I>,
    guard: Guard,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for View<'_, K, V, I>
where
    V: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'m, K: Key, V: Value, I: MapIndex<Key = K::Form>> View<'m, K, V, I> {
    pub(super) fn new(map: &'m Map<K, V, I>, guard: Guard) -> Self {
        Self { map, guard }
    }

    /// The map.
    pub fn map(&self) -> &'m Map<K, V, I> {
        self.map
    }

    /// Lets what was removed since the pin be freed: call it now and then in a long loop. What the view has lent is
    /// gone, which the exclusive borrow makes sure of:
    ///
    /// ```compile_fail,E0502
    /// let map: silvics::Map<u64, String> = silvics::Map::new();
    /// let mut view = map.pin();
    /// let value = view.get(1);
    /// view.repin();
    /// println!("{value:?}");
    /// ```
    #[inline]
    pub fn repin(&mut self) {
        self.map.values.drop_some();
        self.guard.repin();
    }

    /// See [`Map::len`].
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// See [`Map::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The value of `key`. Takes no lock, writes nothing, allocates nothing.
    #[inline]
    pub fn get(&self, key: impl AsKey<K>) -> Option<ValueRef<'_, V>> {
        self.map.do_get(&key, (&self.guard).into())
    }

    /// The entry of `key`, with the key as it is in the map.
    pub fn get_key_value(&self, key: impl AsKey<K>) -> Option<Entry<'_, K, V>> {
        self.map.do_get_key_value(&key, &self.guard)
    }

    /// Whether `key` is present.
    #[inline]
    pub fn contains_key(&self, key: impl AsKey<K>) -> bool {
        self.get(key).is_some()
    }

    /// Upsert: `key` has `value` afterwards. Returns what it had before, `None` if it was absent.
    #[inline]
    pub fn insert(&self, key: impl AsKey<K>, value: V) -> Option<ValueRef<'_, V>> {
        unwrapped(self.try_upsert(key, value))
    }

    /// [`View::insert`], if memory can be had.
    #[inline]
    pub fn try_upsert(
        &self,
        key: impl AsKey<K>,
        value: V,
    ) -> Result<Option<ValueRef<'_, V>>, Rejected<V>> {
        self.map.do_insert(&key, value, (&self.guard).into())
    }

    /// Put-if-absent: `key` gets `value` unless it is present. Returns the value as it is in the map.
    #[inline]
    pub fn try_insert(
        &self,
        key: impl AsKey<K>,
        value: V,
    ) -> Result<ValueRef<'_, V>, TryInsertError<ValueRef<'_, V>, V>> {
        self.map.do_try_insert(&key, value, (&self.guard).into())
    }

    /// The value of `key`, which is `value` if it was absent.
    pub fn get_or_insert(&self, key: impl AsKey<K>, value: V) -> ValueRef<'_, V> {
        self.get_or_insert_with(key, || value)
    }

    /// The value of `key`, which is that of `make` if it was absent. `make` runs at most once, and only if the key was
    /// absent when it was looked for; what it has made is dropped if somebody else was faster.
    pub fn get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        make: impl FnOnce() -> V,
    ) -> ValueRef<'_, V> {
        unwrapped(self.try_get_or_insert_with(key, make))
    }

    /// [`View::get_or_insert_with`], if memory can be had.
    pub fn try_get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        make: impl FnOnce() -> V,
    ) -> Result<ValueRef<'_, V>, Rejected<V>> {
        self.map.do_get_or_insert_with(&key, make, (&self.guard).into())
    }

    /// Removes `key` and returns what it had, `None` if it was absent.
    #[inline]
    pub fn remove(&self, key: impl AsKey<K>) -> Option<ValueRef<'_, V>> {
        self.try_remove(key).unwrap_or_else(|error| refuse(error))
    }

    /// [`View::remove`], if memory can be had: some indexes allocate to remove, the radix tree does not.
    #[inline]
    pub fn try_remove(&self, key: impl AsKey<K>) -> Result<Option<ValueRef<'_, V>>, AllocError> {
        self.map.do_remove(&key, (&self.guard).into())
    }

    /// Removes `key` if `condition` holds of its value, in one step: it holds of the very value that is removed.
    /// Returns it, `None` if the key was absent, and as an error the value that was kept.
    ///
    /// `condition` runs once for each value that is found, and is asked again if that is replaced meanwhile.
    pub fn remove_if(
        &self,
        key: impl AsKey<K>,
        condition: impl FnMut(&V) -> bool,
    ) -> Result<Option<ValueRef<'_, V>>, ValueRef<'_, V>> {
        match self.try_remove_if(key, condition) {
            Ok(removed) => Ok(removed),
            Err(RemoveIfError::Kept(value)) => Err(value),
            Err(RemoveIfError::Alloc(error)) => refuse(error),
        }
    }

    /// [`View::remove_if`], if memory can be had.
    pub fn try_remove_if(
        &self,
        key: impl AsKey<K>,
        condition: impl FnMut(&V) -> bool,
    ) -> Result<Option<ValueRef<'_, V>>, RemoveIfError<ValueRef<'_, V>>> {
        self.map.do_remove_if(&key, condition, (&self.guard).into())
    }

    /// Gives `key` the value that `change` makes of its present one, in one step. Returns the new value, `None` if the
    /// key is absent.
    ///
    /// `change` runs once for each value that is found, and again if that is replaced meanwhile.
    pub fn update(
        &self,
        key: impl AsKey<K>,
        change: impl FnMut(&V) -> V,
    ) -> Option<ValueRef<'_, V>> {
        unwrapped(self.try_update(key, change))
    }

    /// [`View::update`], if memory can be had.
    pub fn try_update(
        &self,
        key: impl AsKey<K>,
        change: impl FnMut(&V) -> V,
    ) -> Result<Option<ValueRef<'_, V>>, Rejected<Option<V>>> {
        self.map.do_update(&key, change, (&self.guard).into())
    }

    /// Does with `key` what `decide` makes of its state, `None` if it is absent, in one step: the state that it
    /// has decided on is the one that is changed.
    ///
    /// `decide` runs once for each state that is found, and again if that changes meanwhile: so at least once, and
    /// without others who write this key exactly once. What it makes is dropped if it is asked again. If it
    /// panics, nothing has happened.
    ///
    /// ```
    /// use silvics::Map;
    /// use silvics::map::{Compute, Operation};
    ///
    /// let stock: Map<String, u32> = Map::new();
    /// let stock = stock.pin();
    /// stock.insert("tea", 1);
    /// let take = |left: Option<&u32>| match left {
    ///     Some(1) => Operation::Remove,
    ///     Some(left) => Operation::Insert(left - 1),
    ///     None => Operation::Abort("sold out"),
    /// };
    /// assert!(matches!(stock.compute("tea", take), Compute::Removed(Some(_))));
    /// assert!(matches!(stock.compute("tea", take), Compute::Aborted("sold out")));
    /// ```
    pub fn compute<T>(
        &self,
        key: impl AsKey<K>,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Compute<ValueRef<'_, V>, T> {
        unwrapped(self.try_compute(key, decide))
    }

    /// [`View::compute`], if memory can be had.
    pub fn try_compute<T>(
        &self,
        key: impl AsKey<K>,
        decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<ValueRef<'_, V>, T>, Rejected<Option<V>>> {
        self.map.do_compute(&key, decide, (&self.guard).into())
    }

    /// Brings `key` from state `expected` to state `new` in one step; `None` is the state *absent*. Returns the value
    /// that was there. Values are compared by `==`, and the one that is equal is the one that is replaced.
    pub fn compare_exchange(
        &self,
        key: impl AsKey<K>,
        expected: Option<&V>,
        new: Option<V>,
    ) -> Result<Option<ValueRef<'_, V>>, CompareExchangeError<ValueRef<'_, V>, V>>
    where
        V: PartialEq,
    {
        self.map.do_compare_exchange(&key, expected, new, (&self.guard).into())
    }

    /// Looks up every key of `keys`, and writes what each has to the same place in `found`; the shorter slice decides how
    /// many. Their cache misses overlap, so that many lookups take less than one after the other. Each is
    /// linearizable, all of them are not one moment.
    pub fn get_many<'g, Q: AsKey<K>>(&'g self, keys: &[Q], found: &mut [Option<ValueRef<'g, V>>]) {
        self.map.do_get_many(keys, found, &self.guard);
    }

    /// [`View::insert`] of every entry, in their order: of those with the same key the last one wins. Returns how many there
    /// were. Each is one linearizable upsert, and all of them are not one moment. If the iterator panics, the entries before that go
    /// in as far as there is memory.
    pub fn extend<Q: AsKey<K>>(&self, entries: impl IntoIterator<Item = (Q, V)>) -> usize {
        self.try_extend(entries).unwrap_or_else(|error| refuse(error.error))
    }

    /// [`View::extend`], as far as memory can be had: what went in stays, and the rest comes back.
    pub fn try_extend<Q: AsKey<K>, R: IntoIterator<Item = (Q, V)>>(
        &self,
        entries: R,
    ) -> Result<usize, ExtendError<Q, V, R::IntoIter>> {
        self.map.do_extend(entries.into_iter(), Some(&self.guard), |_| ())
    }

    /// [`View::insert`] of every entry, in their order. Returns for each what its key had before. Each is one linearizable upsert, and
    /// all of them are not one moment. Where memory may be short [`View::try_extend`] tells how many went in.
    pub fn insert_many<Q: AsKey<K>>(
        &self,
        entries: impl IntoIterator<Item = (Q, V)>,
    ) -> Vec<Option<ValueRef<'_, V>>> {
        let mut before = Vec::new();
        let see = |old: Option<u64>| {
            before.push(old.map(|old| self.map.lent(old, (&self.guard).into())));
        };
        let done = self.map.do_extend(entries.into_iter(), Some(&self.guard), see);
        done.unwrap_or_else(|error| refuse(error.error));
        before
    }

    /// Removes the entries of which `keep` does not hold, and returns how many. An entry is removed with the value that
    /// `keep` has seen; if it gets another meanwhile, `keep` is asked again, and also where an index that needs memory to remove was refused it at
    /// first. As a scan, it may or may not come to
    /// entries that are inserted meanwhile. If `keep` panics, what it has decided is done.
    pub fn retain(&self, keep: impl FnMut(&K::Ref<'_>, &V) -> bool) -> usize {
        self.try_retain(keep).unwrap_or_else(|error| refuse(error))
    }

    /// [`View::retain`], as far as memory can be had: see [`View::try_remove`].
    pub fn try_retain(
        &self,
        keep: impl FnMut(&K::Ref<'_>, &V) -> bool,
    ) -> Result<usize, AllocError> {
        self.map.do_retain(keep, Some(&self.guard))
    }

    /// Removes the entries of `range`, and returns how many. Those inserted meanwhile may or may not be removed.
    pub fn remove_range(&self, range: impl KeyRange<K>) -> usize {
        self.try_remove_range(range).unwrap_or_else(|error| refuse(error))
    }

    /// [`View::remove_range`], as far as memory can be had: see [`View::try_remove`].
    pub fn try_remove_range(&self, range: impl KeyRange<K>) -> Result<usize, AllocError> {
        self.map.do_remove_range(range, Some(&self.guard))
    }

    /// Removes all entries, and returns how many. Those inserted meanwhile may or may not be removed.
    pub fn clear(&self) -> usize {
        self.try_clear().unwrap_or_else(|error| refuse(error))
    }

    /// [`View::clear`], as far as memory can be had: see [`View::try_remove`].
    pub fn try_clear(&self) -> Result<usize, AllocError> {
        self.try_remove_range(..)
    }

    /// The entries of `range` in ascending order. An empty range (start past end) has none.
    ///
    /// # Guarantee under concurrent writes
    /// Keys come in strictly ascending order, none twice. A key present during the whole scan is seen; one
    /// absent during the whole scan is not; one inserted or removed meanwhile may or may not be seen. Each
    /// value was the key's value at some moment during the scan.
    pub fn range(&self, range: impl KeyRange<K>) -> Range<'_, K, V, I> {
        self.map.do_range(range, &self.guard)
    }

    /// The entries of `range` in descending order; otherwise as [`View::range`].
    pub fn range_rev(&self, range: impl KeyRange<K>) -> RangeRev<'_, K, V, I> {
        self.map.do_range_rev(range, &self.guard)
    }

    /// All entries in ascending order, as [`View::range`].
    pub fn iter(&self) -> Range<'_, K, V, I> {
        self.range(..)
    }

    /// All entries in descending order, as [`View::range`].
    pub fn iter_rev(&self) -> RangeRev<'_, K, V, I> {
        self.range_rev(..)
    }

    /// All keys in ascending order.
    pub fn keys(&self) -> impl Iterator<Item = K::Ref<'_>> {
        self.iter().map(|(key, _)| key)
    }

    /// All values in ascending order of their keys.
    pub fn values(&self) -> impl Iterator<Item = ValueRef<'_, V>> {
        self.iter().map(|(_, value)| value)
    }

    /// The first entry at or behind a bound, as a scan from there comes to it: beside writers there may be no moment at which it
    /// was the first.
    pub fn lower_bound<Q: AsKey<K>>(&self, bound: Bound<Q>) -> Option<Entry<'_, K, V>> {
        self.map.do_beyond::<false>(bound, &self.guard)
    }

    /// The last entry at or before a bound, as [`View::lower_bound`].
    pub fn upper_bound<Q: AsKey<K>>(&self, bound: Bound<Q>) -> Option<Entry<'_, K, V>> {
        self.map.do_beyond::<true>(bound, &self.guard)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> View<'_, K, V, I> {
    /// The entry with the smallest key: at one moment during the call it was the first of the whole map.
    pub fn first(&self) -> Option<Entry<'_, K, V>> {
        self.map.do_end::<false>(&self.guard)
    }

    /// The entry with the largest key, as [`View::first`].
    pub fn last(&self) -> Option<Entry<'_, K, V>> {
        self.map.do_end::<true>(&self.guard)
    }

    /// Removes the entry with the smallest key and returns it.
    pub fn pop_first(&self) -> Option<Entry<'_, K, V>> {
        self.try_pop_first().unwrap_or_else(|error| refuse(error))
    }

    /// [`View::pop_first`], if memory can be had.
    pub fn try_pop_first(&self) -> Result<Option<Entry<'_, K, V>>, AllocError> {
        self.map.do_pop::<false>(&self.guard)
    }

    /// Removes the entry with the largest key and returns it.
    pub fn pop_last(&self) -> Option<Entry<'_, K, V>> {
        self.try_pop_last().unwrap_or_else(|error| refuse(error))
    }

    /// [`View::pop_last`], if memory can be had.
    pub fn try_pop_last(&self) -> Result<Option<Entry<'_, K, V>>, AllocError> {
        self.map.do_pop::<true>(&self.guard)
    }
}

impl<K: Key<Form = [u8]>, V: Value, I: MapIndex<Key = [u8]>> View<'_, K, V, I> {
    /// The entries whose keys begin so, in ascending order, as [`View::range`].
    ///
    /// ```
    /// let map: silvics::Map<(String, u64), f64> = silvics::Map::new();
    /// let map = map.pin();
    /// for (sensor, time) in [("attic", 1), ("cellar", 1), ("cellar", 2), ("garden", 1)] {
    ///     map.insert((sensor, time), 20.5);
    /// }
    /// let times: Vec<u64> = map.prefix(("cellar",)).map(|((_, time), _)| time).collect();
    /// assert_eq!(times, [1, 2]);
    /// ```
    pub fn prefix(&self, prefix: impl AsPrefix<K>) -> Range<'_, K, V, I> {
        self.map.do_prefix(&prefix, &self.guard)
    }

    /// The entries whose keys begin so, in descending order.
    pub fn prefix_rev(&self, prefix: impl AsPrefix<K>) -> RangeRev<'_, K, V, I> {
        self.map.do_prefix_rev(&prefix, &self.guard)
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> IntoIterator for &'g View<'_, K, V, I> {
    type Item = (K::Ref<'g>, ValueRef<'g, V>);
    type IntoIter = Range<'g, K, V, I>;

    fn into_iter(self) -> Range<'g, K, V, I> {
        self.iter()
    }
}
