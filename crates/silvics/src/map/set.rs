//! A map without values.

use super::key::{AsKey, AsPrefix, Key};
use super::{DefaultIndex, HoldsMap, KeyRange, Map, MapIndex, OwnedRange, View};
use crate::index::{OrderStatistics, OrderedEnds};
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

/// A concurrent ordered set: a [`Map`] without values. The guarantees of the map hold for the set.
///
/// ```
/// use silvics::Set;
///
/// let set: Set<String> = ["oak", "ash", "elm"].into_iter().collect();
/// assert!(!set.insert("oak"), "it was present");
/// assert!(set.contains("elm"));
/// assert!(set.pin().iter().eq(["ash", "elm", "oak"]));
/// assert_eq!(set.retain(|key| !key.starts_with('o')), 1);
/// assert_eq!((set.pop_first(), set.len()), (Some("ash".to_string()), 1));
/// ```
pub struct Set<K: Key, I: MapIndex<Key = K::Form> = DefaultIndex<K>>(pub(super) Map<K, (), I>);

/// A [`Set`] with its domain pinned, made by [`Set::pin`]. It cannot leave its thread.
pub struct SetView<'m, K: Key, I: MapIndex<Key = K::Form>>(View<'m, K, (), I>);

/// The verbs of a set and of its view, which call those of the map and of the map's view.
macro_rules! key_verbs {
    () => {
        /// Inserts `key`. Returns whether it was absent.
        ///
        /// # Panics
        /// If an allocation fails, or the key is longer than the index takes. [`Map::try_upsert`]
        /// of [`Set::map`] returns an error instead.
        pub fn insert(&self, key: impl AsKey<K>) -> bool {
            self.0.insert(key, ()).is_none()
        }

        /// Removes `key`. Returns whether it was present.
        pub fn remove(&self, key: impl AsKey<K>) -> bool {
            self.0.remove(key).is_some()
        }

        /// Whether `key` is present.
        pub fn contains(&self, key: impl AsKey<K>) -> bool {
            self.0.contains_key(key)
        }

        /// Inserts all of `keys`, and returns their number. The call is not atomic: see
        /// [`View::extend`].
        pub fn extend<Q: AsKey<K>>(&self, keys: impl IntoIterator<Item = Q>) -> usize {
            self.0.extend(keys.into_iter().map(|key| (key, ())))
        }

        /// Removes the keys for which `keep` does not hold, and returns their number. The call is
        /// not atomic: see [`View::retain`].
        pub fn retain(&self, mut keep: impl FnMut(&K::Ref<'_>) -> bool) -> usize {
            self.0.retain(|key, ()| keep(key))
        }

        /// Removes the keys of `range`, and returns their number. The call is not atomic: see
        /// [`View::remove_range`].
        pub fn remove_range(&self, range: impl KeyRange<K>) -> usize {
            self.0.remove_range(range)
        }

        /// Removes all keys, and returns their number. The call is not atomic: see
        /// [`View::clear`].
        pub fn clear(&self) -> usize {
            self.0.clear()
        }
    };
}

/// The verbs at both ends of a set and of its view, which return keys as `$Key`.
macro_rules! end_key_verbs {
    ($Key:ty) => {
        /// Returns the smallest key. Linearizable: see [`View::first`].
        pub fn first(&self) -> Option<$Key> {
            self.0.first().map(|(key, _)| key)
        }

        /// Returns the largest key. Linearizable: see [`View::last`].
        pub fn last(&self) -> Option<$Key> {
            self.0.last().map(|(key, _)| key)
        }

        /// Removes the smallest key and returns it.
        pub fn pop_first(&self) -> Option<$Key> {
            self.0.pop_first().map(|(key, _)| key)
        }

        /// Removes the largest key and returns it.
        pub fn pop_last(&self) -> Option<$Key> {
            self.0.pop_last().map(|(key, _)| key)
        }
    };
}

/// The verbs of a set whose index counts its keys and of its view, which return keys as `$Key`.
macro_rules! rank_key_verbs {
    ($Key:ty) => {
        /// Returns the number of keys that are smaller than `key`: see [`View::rank`].
        pub fn rank(&self, key: impl AsKey<K>) -> usize {
            self.0.rank(key)
        }

        /// Returns the key that has `number` smaller keys, if there is one: see [`View::nth`].
        pub fn nth(&self, number: usize) -> Option<$Key> {
            self.0.nth(number).map(|(key, _)| key)
        }

        /// Returns the number of keys of `range`: see [`View::count`].
        pub fn count(&self, range: impl KeyRange<K>) -> usize {
            self.0.count(range)
        }
    };
}

impl<K: Key> Set<K> {
    /// An empty set without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> Default for Set<K, I> {
    fn default() -> Self {
        Self(Map::default())
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> From<Map<K, (), I>> for Set<K, I> {
    fn from(map: Map<K, (), I>) -> Self {
        Self(map)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> Set<K, I> {
    /// The map from the keys to `()`, for methods that a set does not have.
    pub fn map(&self) -> &Map<K, (), I> {
        &self.0
    }

    /// Pins the set: the everyday way to call several methods.
    pub fn pin(&self) -> SetView<'_, K, I> {
        SetView(self.0.pin())
    }

    key_verbs!();

    /// The bytes that the set holds from the system, exactly: see [`Map::bytes`].
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Returns free memory to the system, and returns the number of bytes: see [`Map::shrink`].
    pub fn shrink(&self) -> usize {
        self.0.shrink()
    }

    /// The number of keys. It is exact while no thread writes: see [`Map::len`].
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of keys at one moment: see [`Map::len_snapshot`].
    pub fn len_snapshot(&self) -> Option<usize> {
        self.0.len_snapshot()
    }

    /// Whether [`Set::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The methods at both ends of the set. They pin for the call, and return copies of keys.
impl<K: Key, I: MapIndex<Key = K::Form> + OrderedEnds> Set<K, I> {
    end_key_verbs!(K);
}

impl<K: Key, I: MapIndex<Key = K::Form>> SetView<'_, K, I> {
    key_verbs!();

    /// All keys in ascending order. The scan is not atomic: see [`View::range`].
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = K::Ref<'_>> {
        self.0.keys()
    }

    /// The keys of `range` in ascending order. The scan is not atomic: see [`View::range`].
    pub fn range(&self, range: impl KeyRange<K>) -> impl DoubleEndedIterator<Item = K::Ref<'_>> {
        self.0.range(range).map(|(key, _)| key)
    }

    /// The keys of `range` in descending order. The scan is not atomic: see [`View::range`].
    pub fn range_rev(
        &self,
        range: impl KeyRange<K>,
    ) -> impl DoubleEndedIterator<Item = K::Ref<'_>> {
        self.0.range_rev(range).map(|(key, _)| key)
    }

    /// The keys that begin with `prefix`, in ascending order. The scan is not atomic: see
    /// [`View::range`].
    pub fn prefix(&self, prefix: impl AsPrefix<K>) -> impl DoubleEndedIterator<Item = K::Ref<'_>>
    where
        K: Key<Form = [u8]>,
    {
        self.0.prefix(prefix).map(|(key, _)| key)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form> + OrderedEnds> SetView<'_, K, I> {
    end_key_verbs!(K::Ref<'_>);
}

/// A double-ended range of a [`Set`] that returns copies of keys and holds no pin between steps,
/// with the guarantee of [`OwnedRange`]. It is made by [`Set::range_owned`], which keeps the set
/// alive, or by [`Set::range_unpinned`], which borrows it.
pub struct SetRange<
    K: Key,
    I: MapIndex<Key = K::Form> = DefaultIndex<K>,
    S: HoldsMap<K, (), I> = Arc<Set<K, I>>,
>(OwnedRange<K, (), I, S>);

impl<K: Key, I: MapIndex<Key = K::Form>, S: HoldsMap<K, (), I>> SetRange<K, I, S> {
    /// Takes the next key from the front. It is valid until the next step.
    pub fn next_ref(&mut self) -> Option<K::Ref<'_>> {
        self.0.next_ref().map(|(key, ())| key)
    }

    /// Takes the next key from the back. It is valid until the next step.
    pub fn next_back_ref(&mut self) -> Option<K::Ref<'_>> {
        self.0.next_back_ref().map(|(key, ())| key)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, S: HoldsMap<K, (), I>> Iterator for SetRange<K, I, S> {
    type Item = K;

    #[inline]
    fn next(&mut self) -> Option<K> {
        self.0.next().map(|(key, ())| key)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, S: HoldsMap<K, (), I>> DoubleEndedIterator
    for SetRange<K, I, S>
{
    #[inline]
    fn next_back(&mut self) -> Option<K> {
        self.0.next_back().map(|(key, ())| key)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, S: HoldsMap<K, (), I>> FusedIterator
    for SetRange<K, I, S>
{
}

impl<K: Key, I: MapIndex<Key = K::Form>, S: HoldsMap<K, (), I>> fmt::Debug for SetRange<K, I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetRange").finish_non_exhaustive()
    }
}

/// Ranges without a pin.
impl<K: Key, I: MapIndex<Key = K::Form>> Set<K, I> {
    /// The keys of `range` as copies, for a scan that keeps the set alive and holds no pin between
    /// steps. See [`OwnedRange`] for the guarantee.
    pub fn range_owned(self: &Arc<Self>, range: impl KeyRange<K>) -> SetRange<K, I> {
        SetRange(OwnedRange::new(Arc::clone(self), range))
    }

    /// The keys of `range` as copies, for a scan that borrows the set and holds no pin between
    /// steps. See [`OwnedRange`] for the guarantee.
    pub fn range_unpinned(&self, range: impl KeyRange<K>) -> SetRange<K, I, &Map<K, (), I>> {
        SetRange(self.0.range_unpinned(range))
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, Q: AsKey<K>> FromIterator<Q> for Set<K, I> {
    fn from_iter<T: IntoIterator<Item = Q>>(keys: T) -> Self {
        Self(keys.into_iter().map(|key| (key, ())).collect())
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>, Q: AsKey<K>> Extend<Q> for Set<K, I> {
    fn extend<T: IntoIterator<Item = Q>>(&mut self, keys: T) {
        Self::extend(self, keys);
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> fmt::Debug for Set<K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pin().fmt(f)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> fmt::Debug for SetView<'_, K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The methods of a set whose index counts its keys: it is made [from](From) a map of
/// [`Builder::counted`](super::Builder::counted).
///
/// ```
/// use silvics::{Map, Set};
///
/// let map = Map::<u64, ()>::builder().counted().build()?;
/// let set = Set::from(map);
/// set.extend([30, 10, 20]);
/// assert_eq!((set.rank(20), set.nth(2), set.count(15..)), (1, Some(30), 2));
/// # Ok::<(), silvics::AllocError>(())
/// ```
impl<K: Key, I: MapIndex<Key = K::Form> + OrderStatistics> Set<K, I> {
    rank_key_verbs!(K);
}

/// The methods of a view of a set whose index counts its keys.
impl<K: Key, I: MapIndex<Key = K::Form> + OrderStatistics> SetView<'_, K, I> {
    rank_key_verbs!(K::Ref<'_>);
}
