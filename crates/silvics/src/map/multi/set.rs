//! Sets that count how often a key is in them.
//!
//! A [`MultiSet`] is a [`Map`] from keys to counts. The word of a key is its count, which is never
//! zero. An insert puts the count 1, or exchanges the count that it has found for a larger one.

use super::CountError;
use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::index::{Check, KeyRef, Options, OrderedEnds};
use crate::map::key::{AsKey, DefaultIndex, Key};
use crate::map::lend::Lends;
use crate::map::ops::{admit, short, with_form, with_new_form};
use crate::map::outcome::{OrPanic, is_shortage};
use crate::map::{KeyRange, Map, MapIndex, View};
use crate::update::Update;
use silvics_pool::{Budget, PoolStats};
use silvics_sync::backoff::Backoff;
use silvics_sync::counter::StripedCounter;
use std::fmt;
use std::sync::Arc;

/// A sum of counts is kept as a number of units and a rest: it may be larger than a word.
const UNIT: u64 = 1 << 24;

/// A concurrent ordered set that counts how often each key is in it.
///
/// Each method on one key is linearizable, and so are those at the ends. Scans, [`MultiSet::len`]
/// and [`MultiSet::clear`] are not atomic.
///
/// ```
/// use silvics::MultiSet;
///
/// let words: MultiSet<String> = "to be or not to be".split(' ').collect();
/// assert_eq!((words.count("to"), words.count("or"), words.count("no")), (2, 1, 0));
/// assert_eq!((words.len(), words.distinct()), (6, 4));
/// assert_eq!(words.insert("or"), 2);
/// assert_eq!(words.remove("not"), Some(0));
/// assert_eq!(words.remove("not"), None);
/// assert!(words.pin().iter().eq([("be", 2), ("or", 2), ("to", 2)]));
/// ```
pub struct MultiSet<K: Key, I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>> {
    map: Map<K, u64, I>,
    /// The sum of all counts, less one for each key and less the [`UNIT`]s. Each insert or removal
    /// changes it by less than a unit, so 2^39 of them cannot overflow it.
    more: StripedCounter<Arc<Budget>>,
    /// The number of [`UNIT`]s in the counts. It overflows if the sum of all counts is about 2^87.
    units: StripedCounter<Arc<Budget>>,
}

/// A [`MultiSet`] with its domain pinned, made by [`MultiSet::pin`]. It cannot leave its thread.
pub struct MultiSetView<'m, K: Key, I: MapIndex<Key = <K as Key>::Form> = DefaultIndex<K>> {
    set: &'m MultiSet<K, I>,
    view: View<'m, K, u64, I>,
}

impl<K: Key> MultiSet<K> {
    /// An empty set without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> Default for MultiSet<K, I> {
    fn default() -> Self {
        Self::with_options(&Options::default()).or_panic()
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> MultiSet<K, I> {
    /// Adds `more` to the sum of all counts, less one for each key, or takes it off.
    fn count_more(&self, more: u64, is_added: bool) {
        for (counter, more) in [(&self.more, more % UNIT), (&self.units, more / UNIT)] {
            if more > 0 {
                counter.add(if is_added { more as i64 } else { -(more as i64) });
            }
        }
    }

    fn do_insert(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        more: u64,
        guard: &Guard,
    ) -> Result<u64, CountError> {
        if more == 0 {
            return Ok(with_form!(key, form => self.map.index.get(form, guard)).unwrap_or(0));
        }
        with_new_form!(key, form => {
            let (mut backoff, mut verb) = (Backoff::new(), Update::TryInsert(more));
            let mut expected = None;
            loop {
                // LP(insert): the update that finds the expected state.
                let found = self.map.index.update(short::<K>(form), verb, guard)?;
                if found == expected {
                    self.count_more(more - u64::from(found.is_none()), true);
                    return Ok(found.unwrap_or(0) + more);
                }
                expected = found;
                verb = match found {
                    None => Update::TryInsert(more),
                    Some(count) => {
                        let overflow = CountError::Overflow { count, more };
                        let new = Some(count.checked_add(more).ok_or(overflow)?);
                        Update::CompareExchange { expected, new }
                    }
                };
                backoff.wait();
            }
        })
    }

    fn do_remove(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        key.with_form(|form| {
            let mut backoff = Backoff::new();
            let mut seen = self.map.index.get(short::<K>(form), guard);
            while let Some(count) = seen {
                let new = count.checked_sub(1).filter(|left| *left > 0);
                // LP(remove): the update that finds the expected state.
                let verb = Update::CompareExchange { expected: seen, new };
                let found = self.map.index.update(short::<K>(form), verb, guard)?;
                if found == seen {
                    self.count_more(u64::from(new.is_some()), false);
                    return Ok(Some(new.unwrap_or(0)));
                }
                seen = found;
                backoff.wait();
            }
            Ok(None)
        })
    }

    fn do_remove_all(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        guard: &Guard,
    ) -> Result<u64, AllocError> {
        let found = with_form!(key, form => self.map.index.update(form, Update::Remove, guard))?;
        Ok(found.map_or(0, |count| self.removed(count)))
    }

    /// Notes that a key has left the index, and returns its count.
    fn removed(&self, count: u64) -> u64 {
        self.count_more(count - 1, false);
        count
    }

    fn popped<'g>(
        &self,
        popped: Result<Option<(KeyRef<'g, I>, u64)>, AllocError>,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        let Some((form, count)) = popped? else { return Ok(None) };
        self.removed(count);
        Ok(Some((Map::<K, u64, I>::key_of(form), count)))
    }

    /// Notes that a key has left the index, and returns a copy of it with its count.
    fn popped_copy(
        &self,
        popped: Result<Option<(KeyRef<'_, I>, u64)>, AllocError>,
    ) -> Result<Option<(K, u64)>, CountError> {
        Ok(self.popped(popped)?.map(|(key, count)| (K::to_owned(key), count)))
    }

    /// Calls an operation with a guard. If an allocation fails, it returns free memory to the
    /// system, and tries once more.
    fn pinned<T>(&self, call: impl Fn(&Guard) -> Result<T, CountError>) -> Result<T, CountError> {
        // A guard in the head of the `match` would live to its end.
        let first = call(&self.map.one_shot());
        match first {
            Err(CountError::Alloc(error)) if is_shortage(error) => {
                self.shrink(); // without a guard
                call(&self.map.one_shot())
            }
            done => done,
        }
    }
}

/// The result of a call that allocates nothing but in the index.
fn or_panic<T>(result: Result<T, CountError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// The methods of a set, and of its view: `$pinned!` calls an operation with a guard.
macro_rules! count_verbs {
    ($pinned:ident) => {
        /// Inserts `key` once more, and returns its new count.
        ///
        /// # Panics
        /// If an allocation fails, the key is longer than the index takes, or its count is
        /// `u64::MAX`. [`Self::try_insert`] returns an error instead.
        pub fn insert(&self, key: impl AsKey<K>) -> u64 {
            or_panic(self.try_insert(key))
        }

        /// Inserts like [`Self::insert`], and returns an error if the key cannot be inserted. The
        /// set is unchanged then.
        pub fn try_insert(&self, key: impl AsKey<K>) -> Result<u64, CountError> {
            self.try_insert_copies(key, 1)
        }

        /// Inserts `key` `more` times, at one moment, and returns its new count. If `more` is zero,
        /// nothing changes.
        ///
        /// # Panics
        /// If an allocation fails, the key is longer than the index takes, or its count would be
        /// larger than `u64::MAX`. [`Self::try_insert_copies`] returns an error instead.
        pub fn insert_copies(&self, key: impl AsKey<K>, more: u64) -> u64 {
            or_panic(self.try_insert_copies(key, more))
        }

        /// Inserts like [`Self::insert_copies`], and returns an error if the key cannot be
        /// inserted. The set is unchanged then.
        pub fn try_insert_copies(&self, key: impl AsKey<K>, more: u64) -> Result<u64, CountError> {
            $pinned!(self, |set, guard| set.do_insert(&key, more, guard))
        }

        /// Removes `key` once, and returns how often it is left; `None` if it was absent.
        ///
        /// # Panics
        /// If an allocation fails: some indexes allocate to remove, a default index does not.
        /// [`Self::try_remove`] returns an error instead.
        pub fn remove(&self, key: impl AsKey<K>) -> Option<u64> {
            or_panic(self.try_remove(key))
        }

        /// Removes like [`Self::remove`], and returns an error if an allocation fails: some indexes
        /// allocate to remove. With a default index, the call never fails.
        pub fn try_remove(&self, key: impl AsKey<K>) -> Result<Option<u64>, CountError> {
            $pinned!(self, |set, guard| Ok(set.do_remove(&key, guard)?))
        }

        /// Removes `key` altogether, and returns how often it was there.
        ///
        /// # Panics
        /// If an allocation fails: some indexes allocate to remove, a default index does not.
        /// [`Self::try_remove_all`] returns an error instead.
        pub fn remove_all(&self, key: impl AsKey<K>) -> u64 {
            or_panic(self.try_remove_all(key))
        }

        /// Removes like [`Self::remove_all`], and returns an error if an allocation fails: see
        /// [`Self::try_remove`].
        pub fn try_remove_all(&self, key: impl AsKey<K>) -> Result<u64, CountError> {
            $pinned!(self, |set, guard| Ok(set.do_remove_all(&key, guard)?))
        }

        /// Inserts all of `keys`. The call is not atomic.
        ///
        /// # Panics
        /// If [`Self::insert`] panics for a key. The keys before it stay in the set.
        pub fn extend<Q: AsKey<K>>(&self, keys: impl IntoIterator<Item = Q>) {
            keys.into_iter().for_each(|key| _ = self.insert(key));
        }
    };
}

macro_rules! with_a_pin {
    ($self:ident, |$set:ident, $guard:ident| $call:expr) => {{
        let $set = $self;
        $self.pinned(|$guard| $call)
    }};
}

macro_rules! under_a_view {
    ($self:ident, |$set:ident, $guard:ident| $call:expr) => {{
        let ($set, $guard) = ($self.set, $self.view.guard());
        $call
    }};
}

impl<K: Key, I: MapIndex<Key = K::Form>> MultiSet<K, I> {
    /// An empty set with these options. Fails if the first nodes of the index cannot be allocated.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let mut options = options.clone();
        let budget = options.shared_budget();
        let map = Map::with_options(&options)?;
        let counter = || StripedCounter::new(options.counting, Arc::clone(&budget));
        Ok(Self { map, more: counter(), units: counter() })
    }

    /// Pins the set: the everyday way to call several methods.
    pub fn pin(&self) -> MultiSetView<'_, K, I> {
        MultiSetView { set: self, view: self.map.pin() }
    }

    count_verbs!(with_a_pin);

    /// How often `key` is in the set.
    pub fn count(&self, key: impl AsKey<K>) -> u64 {
        self.map.get(key).map_or(0, |count| *count)
    }

    /// Whether `key` is in the set.
    pub fn contains(&self, key: impl AsKey<K>) -> bool {
        self.map.contains_key(key)
    }

    /// The sum of all counts, or `u64::MAX` if it is larger. It is exact while no thread writes.
    /// Otherwise, each concurrent operation may or may not be counted, or be counted in part.
    /// O(threads).
    pub fn len(&self) -> u64 {
        let units = i128::from(self.units.sum()) * i128::from(UNIT);
        let sum = self.map.len() as i128 + i128::from(self.more.sum()) + units;
        // A sum that is read beside writers may be negative.
        u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
    }

    /// Whether the set has no key.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The number of different keys. It is exact while no thread writes. O(threads).
    pub fn distinct(&self) -> usize {
        self.map.len()
    }

    /// Removes all keys. The call is not atomic: a key that is inserted during the call may or may
    /// not be removed.
    ///
    /// # Panics
    /// If an allocation fails: some indexes allocate to remove, a default index does not.
    pub fn clear(&self) {
        let removed = self.map.sweep_all(KeyRange::<K>::keep(..), None, |form, _, guard| {
            let count = self.map.index.update(form, Update::Remove, guard)?;
            Ok(count.map(|count| self.removed(count)).is_some())
        });
        removed.or_panic();
    }

    /// The bytes that the set holds from the system, exactly: see [`Map::bytes`].
    pub fn bytes(&self) -> usize {
        self.map.bytes()
    }

    /// One entry for each pool. O(slabs).
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        self.map.pool_stats()
    }

    /// Returns free memory to the system, and returns the number of bytes: see [`Map::shrink`].
    pub fn shrink(&self) -> usize {
        self.map.shrink()
    }
}

/// The methods at both ends of the set. They pin for the call, and return copies of keys.
impl<K: Key, I: MapIndex<Key = K::Form> + OrderedEnds> MultiSet<K, I> {
    /// Returns the smallest key and its count. Linearizable.
    pub fn first(&self) -> Option<(K, u64)> {
        self.map.first().map(|(key, count)| (key, *count))
    }

    /// Returns the largest key and its count. Linearizable.
    pub fn last(&self) -> Option<(K, u64)> {
        self.map.last().map(|(key, count)| (key, *count))
    }

    /// Removes the smallest key altogether, and returns it and its count. Linearizable.
    ///
    /// # Panics
    /// If an allocation fails: some indexes allocate to remove.
    pub fn pop_first(&self) -> Option<(K, u64)> {
        or_panic(self.pinned(|guard| self.popped_copy(self.map.index.pop_first(guard))))
    }

    /// Removes the largest key altogether, and returns it and its count. Linearizable.
    ///
    /// # Panics
    /// If an allocation fails: some indexes allocate to remove.
    pub fn pop_last(&self) -> Option<(K, u64)> {
        or_panic(self.pinned(|guard| self.popped_copy(self.map.index.pop_last(guard))))
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> MultiSetView<'_, K, I> {
    count_verbs!(under_a_view);

    /// How often `key` is in the set.
    pub fn count(&self, key: impl AsKey<K>) -> u64 {
        self.view.get(key).map_or(0, |count| *count)
    }

    /// Whether `key` is in the set.
    pub fn contains(&self, key: impl AsKey<K>) -> bool {
        self.view.contains_key(key)
    }

    /// The keys of `range` in ascending order, with their counts. The scan is not atomic: see
    /// [`View::range`].
    pub fn range(
        &self,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = (K::Ref<'_>, u64)> {
        self.view.range(range).map(|(key, count)| (key, *count))
    }

    /// The keys of `range` in descending order, with their counts: see [`MultiSetView::range`].
    pub fn range_rev(
        &self,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = (K::Ref<'_>, u64)> {
        self.range(range).rev()
    }

    /// All keys in ascending order, with their counts: see [`MultiSetView::range`].
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K::Ref<'_>, u64)> {
        self.range(..)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form> + OrderedEnds> MultiSetView<'_, K, I> {
    /// Returns the smallest key and its count. Linearizable.
    pub fn first(&self) -> Option<(K::Ref<'_>, u64)> {
        self.view.first().map(|(key, count)| (key, *count))
    }

    /// Returns the largest key and its count. Linearizable.
    pub fn last(&self) -> Option<(K::Ref<'_>, u64)> {
        self.view.last().map(|(key, count)| (key, *count))
    }

    /// Removes the smallest key altogether, and returns it and its count. Linearizable.
    ///
    /// # Panics
    /// If an allocation fails: some indexes allocate to remove.
    pub fn pop_first(&self) -> Option<(K::Ref<'_>, u64)> {
        let popped = self.set.map.index.pop_first(self.view.guard());
        self.set.popped(popped).or_panic()
    }

    /// Removes the largest key altogether, and returns it and its count. Linearizable.
    ///
    /// # Panics
    /// If an allocation fails: some indexes allocate to remove.
    pub fn pop_last(&self) -> Option<(K::Ref<'_>, u64)> {
        let popped = self.set.map.index.pop_last(self.view.guard());
        self.set.popped(popped).or_panic()
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, Q: AsKey<K>> FromIterator<Q> for MultiSet<K, I> {
    fn from_iter<T: IntoIterator<Item = Q>>(keys: T) -> Self {
        let set = Self::default();
        set.extend(keys);
        set
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, Q: AsKey<K>> Extend<Q> for MultiSet<K, I> {
    fn extend<T: IntoIterator<Item = Q>>(&mut self, keys: T) {
        Self::extend(self, keys);
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> fmt::Debug for MultiSet<K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> fmt::Debug for MultiSetView<'_, K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Key, I: MapIndex<Key = K::Form> + Check> Check for MultiSet<K, I> {
    /// Verifies the index, and that no count is zero and their sum is [`MultiSet::len`]. Returns
    /// the number of different keys.
    fn check(&mut self) -> Result<usize, Violation> {
        let keys = self.map.check()?;
        let (mut sum, mut least) = (0u64, u64::MAX);
        for (_, count) in self.pin().iter() {
            (sum, least) = (sum.saturating_add(count), least.min(count));
        }
        if least == 0 || sum != self.len() {
            let detail = format!("the counts have sum {sum} and are {least} at least");
            return Err(Violation { invariant: "len", detail });
        }
        Ok(keys)
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.map.reachable()
    }

    fn settle(&mut self) {
        self.map.settle();
    }
}
