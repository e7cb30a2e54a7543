//! An ordered set whose entries are counted: [`SkipSet`].

use crate::map::{self, SkipMap};
use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};

/// An ordered set that threads share: a `BTreeSet` whose methods take `&self`. It is a [`SkipMap`]
/// of keys without values, and each method is that of the map.
pub struct SkipSet<T> {
    map: SkipMap<T, ()>,
}

impl<T> SkipSet<T> {
    /// Returns an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { map: SkipMap::new() }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The number of entries: see [`SkipMap::len`].
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The bytes that the set holds from the system: see [`SkipMap::bytes`].
    pub fn bytes(&self) -> usize {
        self.map.bytes()
    }

    /// Returns unused memory to the system: see [`SkipMap::shrink`].
    pub fn shrink(&self) -> usize {
        self.map.shrink()
    }
}

impl<T: Ord> SkipSet<T> {
    /// Returns the smallest entry.
    pub fn front(&self) -> Option<Entry<'_, T>> {
        self.map.front().map(Entry)
    }

    /// Returns the largest entry.
    pub fn back(&self) -> Option<Entry<'_, T>> {
        self.map.back().map(Entry)
    }

    /// Whether `key` is present.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.map.contains_key(key)
    }

    /// Returns the entry of `key`.
    pub fn get<Q>(&self, key: &Q) -> Option<Entry<'_, T>>
    where
        T: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.map.get(key).map(Entry)
    }

    /// Returns the first entry at or behind a bound.
    pub fn lower_bound<'a, Q>(&'a self, bound: Bound<&Q>) -> Option<Entry<'a, T>>
    where
        T: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.map.lower_bound(bound).map(Entry)
    }

    /// Returns the last entry at or before a bound.
    pub fn upper_bound<'a, Q>(&'a self, bound: Bound<&Q>) -> Option<Entry<'a, T>>
    where
        T: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.map.upper_bound(bound).map(Entry)
    }

    /// Returns the entry of `key`, after inserting it if it was absent.
    pub fn get_or_insert(&self, key: T) -> Entry<'_, T> {
        Entry(self.map.get_or_insert(key, ()))
    }

    /// All entries in ascending order: see [`SkipMap::range`].
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.map.iter())
    }

    /// The entries of a range in ascending order: see [`SkipMap::range`].
    pub fn range<Q, R>(&self, range: R) -> Range<'_, Q, R, T>
    where
        T: Borrow<Q>,
        R: RangeBounds<Q>,
        Q: Ord + ?Sized,
    {
        Range(self.map.range(range))
    }
}

impl<T: Ord + Send + 'static> SkipSet<T> {
    /// Inserts an entry and returns it. An equal one is removed in the same step.
    pub fn insert(&self, key: T) -> Entry<'_, T> {
        Entry(self.map.insert(key, ()))
    }

    /// Removes the entry of `key` and returns it.
    pub fn remove<Q>(&self, key: &Q) -> Option<Entry<'_, T>>
    where
        T: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.map.remove(key).map(Entry)
    }

    /// Removes the smallest entry and returns it.
    pub fn pop_front(&self) -> Option<Entry<'_, T>> {
        self.map.pop_front().map(Entry)
    }

    /// Removes the largest entry and returns it.
    pub fn pop_back(&self) -> Option<Entry<'_, T>> {
        self.map.pop_back().map(Entry)
    }

    /// Removes all entries. One that is inserted during the call may stay.
    pub fn clear(&self) {
        self.map.clear();
    }
}

impl<T> Default for SkipSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Ord + fmt::Debug> fmt::Debug for SkipSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("SkipSet { .. }")
    }
}

impl<T> IntoIterator for SkipSet<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self.map.into_iter())
    }
}

impl<'a, T: Ord> IntoIterator for &'a SkipSet<T> {
    type Item = Entry<'a, T>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T: Ord> FromIterator<T> for SkipSet<T> {
    fn from_iter<I>(iter: I) -> Self
    where
        I: IntoIterator<Item = T>,
    {
        Self { map: iter.into_iter().map(|key| (key, ())).collect() }
    }
}

/// An entry of a [`SkipSet`]. It stays readable while it lives, even if it is removed from the set.
pub struct Entry<'a, T>(map::Entry<'a, T, ()>);

impl<T> Entry<'_, T> {
    /// The entry itself.
    pub fn value(&self) -> &T {
        self.0.key()
    }

    /// Whether the entry was removed from the set.
    pub fn is_removed(&self) -> bool {
        self.0.is_removed()
    }
}

impl<'a, T: Ord> Entry<'a, T> {
    /// Moves to the next entry in the set. Returns whether there is one.
    pub fn move_next(&mut self) -> bool {
        self.0.move_next()
    }

    /// Moves to the entry before in the set. Returns whether there is one.
    pub fn move_prev(&mut self) -> bool {
        self.0.move_prev()
    }

    /// The next entry in the set.
    pub fn next(&self) -> Option<Entry<'a, T>> {
        self.0.next().map(Entry)
    }

    /// The entry before in the set.
    pub fn prev(&self) -> Option<Entry<'a, T>> {
        self.0.prev().map(Entry)
    }
}

impl<T: Ord + Send + 'static> Entry<'_, T> {
    /// Removes the entry from the set. Returns whether this call did.
    pub fn remove(&self) -> bool {
        self.0.remove()
    }
}

impl<T> Clone for Entry<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for Entry<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("value", self.value()).finish()
    }
}

impl<T> Deref for Entry<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value()
    }
}

/// The entries of a set that is no more, in ascending order.
pub struct IntoIter<T>(map::IntoIter<T, ()>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().map(|(key, ())| key)
    }
}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("IntoIter { .. }")
    }
}

/// The entries of a [`SkipSet`]: see [`SkipSet::iter`].
pub struct Iter<'a, T>(map::Iter<'a, T, ()>);

impl<'a, T: Ord> Iterator for Iter<'a, T> {
    type Item = Entry<'a, T>;

    fn next(&mut self) -> Option<Entry<'a, T>> {
        self.0.next().map(Entry)
    }
}

impl<'a, T: Ord> DoubleEndedIterator for Iter<'a, T> {
    fn next_back(&mut self) -> Option<Entry<'a, T>> {
        self.0.next_back().map(Entry)
    }
}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Iter { .. }")
    }
}

/// The entries of a range of a [`SkipSet`]: see [`SkipSet::range`].
pub struct Range<'a, Q, R, T>(map::Range<'a, Q, R, T, ()>)
where
    T: Ord + Borrow<Q>,
    R: RangeBounds<Q>,
    Q: Ord + ?Sized;

impl<'a, Q, R, T> Iterator for Range<'a, Q, R, T>
where
    T: Ord + Borrow<Q>,
    R: RangeBounds<Q>,
    Q: Ord + ?Sized,
{
    type Item = Entry<'a, T>;

    fn next(&mut self) -> Option<Entry<'a, T>> {
        self.0.next().map(Entry)
    }
}

impl<'a, Q, R, T> DoubleEndedIterator for Range<'a, Q, R, T>
where
    T: Ord + Borrow<Q>,
    R: RangeBounds<Q>,
    Q: Ord + ?Sized,
{
    fn next_back(&mut self) -> Option<Entry<'a, T>> {
        self.0.next_back().map(Entry)
    }
}

impl<Q, R, T> fmt::Debug for Range<'_, Q, R, T>
where
    T: Ord + Borrow<Q> + fmt::Debug,
    R: RangeBounds<Q> + fmt::Debug,
    Q: Ord + ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
