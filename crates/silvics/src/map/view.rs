//! A map with its domain pinned. Its verbs are in `verbs.rs`, except scans and batches.

use super::key::{AsKey, AsPrefix, Key};
use super::outcome::OrPanic;
use super::verbs::{end_verbs, entry_verbs, point_verbs, rank_verbs, sweep_verbs};
use super::{
    CompareExchangeError, Compute, Entry, ExtendError, KeyRange, Keyed, Map, MapIndex, Operation,
    Range, RangeRev, Rejected, RemoveIfError, TryInsertError, Value, ValueRef,
};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::{KeyRef, OrderStatistics, OrderedEnds};
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

/// A [`Map`] with its domain pinned, made by [`Map::pin`]. It cannot leave its thread.
///
/// Returned keys and values borrow the view. They are valid while the view lives, even if they are
/// removed from the map, and cannot be kept longer:
///
/// ```compile_fail,E0505
/// let map: silvics::Map<String, u64> = [("a", 1)].into_iter().collect();
/// let view = map.pin();
/// let key = view.keys().next();
/// drop(view);
/// println!("{key:?}");
/// ```
///
/// # Failing allocations
/// A method that writes panics if an allocation fails, as the collections of the standard library
/// do, or if a key is longer than the index takes ([limits](crate::key#limits)). Each such method
/// but `insert_many` and `get_or_insert` has a `try_` variant, which returns an error with the
/// value that was to be inserted, and leaves the map unchanged. The `try_` variant of
/// [`View::insert`] is [`View::try_upsert`], since [`View::try_insert`] is the literature's
/// put-if-absent.
///
/// Memory removed under this pin cannot be reused while the pin is held. A method of the map itself
/// pins for one call only: if an allocation fails, it unpins, shrinks the map and tries once more.
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

    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Returns references to an entry of the index.
    ///
    /// # Safety
    /// The entry was read in the map's index under the view's guard (M3).
    pub(crate) unsafe fn found<'g>(
        &'g self,
        (form, word): (KeyRef<'g, I>, u64),
    ) -> Entry<'g, K, V> {
        (Map::<K, V, I>::key_of(form), self.map.values.lent(word, (&self.guard).into()))
    }

    /// Returns references to an entry that was taken out of the index under the view's guard.
    ///
    /// # Safety
    /// The map's index returned the entry to the caller alone, under the view's guard (M2).
    pub(crate) unsafe fn popped<'g>(
        &'g self,
        (form, word): (KeyRef<'g, I>, u64),
    ) -> Entry<'g, K, V> {
        // The value is retired before the key is decoded: decoding is user code and may panic.
        self.map.values.taken(word, (&self.guard).into());
        // SAFETY: the caller's promise.
        unsafe { self.found((form, word)) }
    }

    /// The map.
    pub fn map(&self) -> &'m Map<K, V, I> {
        self.map
    }

    /// Pins anew, so that entries removed since the last pin can be freed. Call it from time to
    /// time in a long loop. Values that the view returned before are no longer valid; the exclusive
    /// borrow enforces this:
    ///
    /// ```compile_fail,E0502
    /// let map: silvics::Map<u64, String> = silvics::Map::new();
    /// let mut view = map.pin();
    /// let value = view.get(1);
    /// view.repin();
    /// println!("{value:?}");
    /// ```
    ///
    /// The call has no effect while this thread has another pin of the map's domain, which most
    /// maps share ([`Builder::domain`](super::Builder::domain)).
    #[inline]
    pub fn repin(&mut self) {
        self.map.values.drop_some();
        self.guard.repin();
    }

    /// The number of keys. It is exact while no thread writes: see [`Map::len`].
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether [`View::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    point_verbs!(view, ValueRef<'_, V>);
    entry_verbs!(view, K::Ref<'_>, ValueRef<'_, V>, Map::<K, V, I>::key_of);
    sweep_verbs!(view);

    /// Looks up every key of `keys`, and writes its value to the same position in `found`; the
    /// shorter slice decides how many. The cache misses of the lookups overlap, so that the call
    /// takes less time than as many calls of [`View::get`].
    ///
    /// The call is not atomic: each lookup takes effect at its own moment.
    ///
    /// ```
    /// let map: silvics::Map<u64, String> = [(1, "one".to_string())].into_iter().collect();
    /// let view = map.pin();
    /// let mut found = [const { None }; 2];
    /// view.get_many(&[1, 2], &mut found);
    /// assert_eq!(found.map(|value| value.map(|value| value.len())), [Some(3), None]);
    /// ```
    pub fn get_many<'g, Q: AsKey<K>>(&'g self, keys: &[Q], found: &mut [Option<ValueRef<'g, V>>]) {
        self.map.do_get_many(keys, found, &self.guard);
    }

    /// Inserts every entry like [`View::insert`], in order. Returns for each entry the value that
    /// its key had before.
    ///
    /// The call is not atomic: each upsert takes effect at its own moment. It panics if an
    /// allocation fails; [`View::try_extend`] returns the number of inserted entries instead.
    pub fn insert_many<Q: AsKey<K>>(
        &self,
        entries: impl IntoIterator<Item = (Q, V)>,
    ) -> Vec<Option<ValueRef<'_, V>>> {
        let mut before = Vec::new();
        let see = |old: Option<u64>| {
            before.push(old.map(|old| self.map.values.lent(old, (&self.guard).into())));
        };
        let done = self.map.do_extend(entries.into_iter(), see, Some(&self.guard));
        done.or_panic();
        before
    }

    /// The entries of `range` in ascending order. A range whose start is past its end is empty.
    ///
    /// The iterator is double-ended: `next_back` returns the last entry that is left, and `rev()`
    /// scans in descending order as fast as forwards. The two ends never return one key twice.
    ///
    /// ```
    /// let map: silvics::Map<u64, char> = (0..).zip('a'..='e').collect();
    /// let map = map.pin();
    /// let mut some = map.range(1..4).map(|(key, _)| key);
    /// assert_eq!((some.next_back(), some.next(), some.next_back()), (Some(3), Some(1), Some(2)));
    /// assert_eq!((some.next(), some.next_back()), (None, None));
    /// ```
    ///
    /// # Guarantee under concurrent writes
    /// A scan is not atomic. It begins when its first entry is taken. It returns keys in strictly
    /// ascending order, and from the back in strictly descending order, so no key twice. It returns
    /// every key that is present for the whole scan, and no key that is absent for the
    /// whole scan. A key that is inserted or removed during the scan may or may not be returned.
    /// Each returned value was the key's value at some moment during the scan.
    ///
    /// Values that are not [small](Value) are read up to 8 entries ahead. A write to one of these
    /// entries, also by the thread that scans, may go unnoticed.
    pub fn range(&self, range: impl KeyRange<K>) -> Range<'_, K, V, I> {
        self.map.do_range(range, &self.guard)
    }

    /// The entries of `range` in descending order, with the guarantee of [`View::range`].
    pub fn range_rev(&self, range: impl KeyRange<K>) -> RangeRev<'_, K, V, I> {
        self.range(range).rev()
    }

    /// All entries in ascending order, with the guarantee of [`View::range`].
    pub fn iter(&self) -> Range<'_, K, V, I> {
        self.range(..)
    }

    /// All entries in descending order, with the guarantee of [`View::range`].
    pub fn iter_rev(&self) -> RangeRev<'_, K, V, I> {
        self.range_rev(..)
    }

    /// All keys in ascending order, with the guarantee of [`View::range`].
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K::Ref<'_>> {
        self.iter().map(|(key, _)| key)
    }

    /// All values in ascending order of their keys, with the guarantee of [`View::range`].
    pub fn values(&self) -> impl DoubleEndedIterator<Item = ValueRef<'_, V>> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderedEnds> View<'_, K, V, I> {
    end_verbs!(view, K::Ref<'_>, ValueRef<'_, V>, Map::<K, V, I>::key_of);
}

/// The verbs of a map whose index counts its keys: see
/// [`Builder::counted`](super::Builder::counted).
impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderStatistics> View<'_, K, V, I> {
    rank_verbs!(view, K::Ref<'_>, ValueRef<'_, V>, Map::<K, V, I>::key_of);

    /// Returns `most` entries, or all entries if the map has fewer, in ascending order. Each set of
    /// `most` entries is equally likely, if `below(n)` returns each number below `n` equally often
    /// and no other thread writes. If other threads write, the call may return fewer entries, an
    /// entry twice, or entries out of order.
    ///
    /// ```
    /// use silvics::Map;
    ///
    /// let map = Map::<u64, u64>::builder().counted().build()?;
    /// map.extend((0..1000).map(|n| (n, n * n)));
    /// let mut seed = 7_u64;
    /// let random = |below: usize| {
    ///     seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ///     (u128::from(seed) * below as u128 >> 64) as usize
    /// };
    /// let view = map.pin();
    /// let sample: Vec<u64> = view.sample(10, random).map(|(key, _)| key).collect();
    /// assert!(sample.len() == 10 && sample.is_sorted());
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    pub fn sample(
        &self,
        most: usize,
        below: impl FnMut(usize) -> usize,
    ) -> impl Iterator<Item = (K::Ref<'_>, ValueRef<'_, V>)> {
        let drawn = super::rank::draw(most, self.len(), below);
        drawn.into_iter().filter_map(|number| self.nth(number))
    }
}

impl<K: Key<Form = [u8]>, V: Value, I: MapIndex<Key = [u8]>> View<'_, K, V, I> {
    /// The entries whose keys begin with `prefix`, in ascending order, with the guarantee of
    /// [`View::range`].
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

    /// The entries whose keys begin with `prefix`, in descending order, with the guarantee of
    /// [`View::range`].
    pub fn prefix_rev(&self, prefix: impl AsPrefix<K>) -> RangeRev<'_, K, V, I> {
        self.prefix(prefix).rev()
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> IntoIterator for &'g View<'_, K, V, I> {
    type Item = (K::Ref<'g>, ValueRef<'g, V>);
    type IntoIter = Range<'g, K, V, I>;

    fn into_iter(self) -> Range<'g, K, V, I> {
        self.iter()
    }
}
