//! A map without values.

use super::key::{AsKey, AsPrefix, Key};
use super::{KeyRange, Map, MapIndex, View};
use crate::art::ArtTree;
use crate::index::OrderedEnds;
use std::fmt;

/// A concurrent ordered set: a [`Map`] without values, whose docs say what holds of both.
///
/// ```
/// use silvics::Set;
///
/// let set: Set<String> = ["oak", "ash", "elm"].into_iter().collect();
/// assert!(!set.insert("oak"), "it is there already");
/// assert!(set.contains("elm"));
/// assert!(set.pin().iter().eq(["ash", "elm", "oak"]));
/// assert_eq!(set.retain(|key| !key.starts_with('o')), 1);
/// assert_eq!((set.pop_first(), set.len()), (Some("ash".to_string()), 1));
/// ```
pub struct Set<K: Key, I: MapIndex<Key = K::Form> = ArtTree<<K as Key>::Form>>(Map<K, (), I>);

/// A [`Set`] with a pin: made by [`Set::pin`]. It belongs to its thread.
pub struct SetView<'m, K: Key, I: MapIndex<Key = K::Form>>(View<'m, K, (), I>);

impl<K: Key> Set<K> {
    /// An empty set without a limit.
    ///
    /// # Panics
    /// If there is no memory for its first node.
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
    /// The map of its keys, for what is not here.
    pub fn map(&self) -> &Map<K, (), I> {
        &self.0
    }

    /// The set, pinned.
    pub fn pin(&self) -> SetView<'_, K, I> {
        SetView(self.0.pin())
    }

    /// Makes `key` present; whether it was absent.
    ///
    /// # Panics
    /// If memory cannot be had: [`View::try_upsert`] tells that instead.
    pub fn insert(&self, key: impl AsKey<K>) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Makes `key` absent; whether it was present.
    pub fn remove(&self, key: impl AsKey<K>) -> bool {
        self.0.remove(key).is_some()
    }

    /// Whether `key` is present.
    pub fn contains(&self, key: impl AsKey<K>) -> bool {
        self.0.contains_key(key)
    }

    /// Removes the keys of which `keep` does not hold, and returns how many: see [`View::retain`].
    pub fn retain(&self, mut keep: impl FnMut(&K::Ref<'_>) -> bool) -> usize {
        self.0.retain(|key, ()| keep(key))
    }

    /// Removes the keys of `range`, and returns how many: see [`View::remove_range`].
    pub fn remove_range(&self, range: impl KeyRange<K>) -> usize {
        self.0.remove_range(range)
    }

    /// Removes all keys, and returns how many: see [`View::clear`].
    pub fn clear(&self) -> usize {
        self.0.clear()
    }

    /// Makes all these keys present, and returns how many there were: see [`View::extend`].
    pub fn extend<Q: AsKey<K>>(&self, keys: impl IntoIterator<Item = Q>) -> usize {
        self.0.extend(keys.into_iter().map(|key| (key, ())))
    }

    /// See [`Map::bytes`].
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// See [`Map::shrink`].
    pub fn shrink(&self) -> usize {
        self.0.shrink()
    }

    /// See [`Map::len`].
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// See [`Map::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Key, I: MapIndex<Key = K::Form> + OrderedEnds> Set<K, I> {
    /// See [`View::first`]; the key is a copy.
    pub fn first(&self) -> Option<K> {
        self.0.first().map(|(key, _)| key)
    }

    /// See [`View::last`]; the key is a copy.
    pub fn last(&self) -> Option<K> {
        self.0.last().map(|(key, _)| key)
    }

    /// See [`View::pop_first`].
    pub fn pop_first(&self) -> Option<K> {
        self.0.pop_first().map(|(key, _)| key)
    }

    /// See [`View::pop_last`].
    pub fn pop_last(&self) -> Option<K> {
        self.0.pop_last().map(|(key, _)| key)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> SetView<'_, K, I> {
    /// See [`Set::insert`].
    pub fn insert(&self, key: impl AsKey<K>) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// See [`Set::remove`].
    pub fn remove(&self, key: impl AsKey<K>) -> bool {
        self.0.remove(key).is_some()
    }

    /// See [`Set::contains`].
    pub fn contains(&self, key: impl AsKey<K>) -> bool {
        self.0.contains_key(key)
    }

    /// All keys in ascending order, as [`View::range`] tells.
    pub fn iter(&self) -> impl Iterator<Item = K::Ref<'_>> {
        self.0.keys()
    }

    /// The keys of `range` in ascending order, as [`View::range`] tells.
    pub fn range(&self, range: impl KeyRange<K>) -> impl Iterator<Item = K::Ref<'_>> {
        self.0.range(range).map(|(key, _)| key)
    }

    /// The keys of `range` in descending order, as [`View::range`] tells.
    pub fn range_rev(&self, range: impl KeyRange<K>) -> impl Iterator<Item = K::Ref<'_>> {
        self.0.range_rev(range).map(|(key, _)| key)
    }

    /// The keys that begin so, in ascending order.
    pub fn prefix(&self, prefix: impl AsPrefix<K>) -> impl Iterator<Item = K::Ref<'_>>
    where
        K: Key<Form = [u8]>,
    {
        self.0.prefix(prefix).map(|(key, _)| key)
    }
}

impl<K: Key, I: MapIndex<Key = K::Form> + OrderedEnds> SetView<'_, K, I> {
    /// See [`View::first`].
    pub fn first(&self) -> Option<K::Ref<'_>> {
        self.0.first().map(|(key, _)| key)
    }

    /// See [`View::last`].
    pub fn last(&self) -> Option<K::Ref<'_>> {
        self.0.last().map(|(key, _)| key)
    }

    /// See [`View::pop_first`].
    pub fn pop_first(&self) -> Option<K::Ref<'_>> {
        self.0.pop_first().map(|(key, _)| key)
    }

    /// See [`View::pop_last`].
    pub fn pop_last(&self) -> Option<K::Ref<'_>> {
        self.0.pop_last().map(|(key, _)| key)
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
