//! A map while it is pinned.

use super::key::{AsKey, AsPrefix, Key};
use super::outcome::OrPanic;
use super::verbs::{end_verbs, entry_verbs, point_verbs, sweep_verbs};
use super::{
    CompareExchangeError, Compute, ExtendError, KeyRange, Map, MapIndex, Operation, Range,
    RangeRev, Rejected, RemoveIfError, TryInsertError, Value, ValueRef,
};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::OrderedEnds;
use std::fmt;
use std::ops::Bound;

/// Implements verbs under the guard of a view.
macro_rules! view {
    (sweeps: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* Some(&$self.guard))
    };
    ($kind:ident $($argument:ident)?: $self:ident, $operation:ident($($pass:expr),*)) => {
        $self.map.$operation($($pass,)* (&$self.guard).into())
    };
}

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

    point_verbs!(view, ValueRef<'_, V>);
    entry_verbs!(view, K::Ref<'_>, ValueRef<'_, V>, Map::<K, V, I>::key_of);
    sweep_verbs!(view);

    /// Looks up every key of `keys`, and writes what each has to the same place in `found`; the shorter slice decides how
    /// many. Their cache misses overlap, so that many lookups take less than one after the other. Each is
    /// linearizable, all of them are not one moment.
    pub fn get_many<'g, Q: AsKey<K>>(&'g self, keys: &[Q], found: &mut [Option<ValueRef<'g, V>>]) {
        self.map.do_get_many(keys, found, &self.guard);
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
        let done = self.map.do_extend(entries.into_iter(), see, Some(&self.guard));
        done.or_panic();
        before
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
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> View<'_, K, V, I> {
    end_verbs!(view, K::Ref<'_>, ValueRef<'_, V>, Map::<K, V, I>::key_of);
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
