//! Sets of keys in any order.

use super::order::{Comparator, Compares, Natural};
use super::scan::{Range, iterators};
use super::{EntryGuard, OrdMap, OrdView};
use crate::ca::build::{Adaptive, Build};
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::index::Options;
use crate::map::value::{Value, ValueRef};
use crate::map::{Memory, Rejected, TryInsertError};
use silvics_pool::{Placement, Pooled};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, Deref, RangeBounds, RangeFull};

/// A concurrent set of keys in any order: an [`OrdMap`] without values, whose docs apply.
///
/// ```
/// use silvics::ord::OrdSet;
///
/// let words: OrdSet<String, _> = OrdSet::ordered_by(|a: &String, b: &String| b.cmp(a));
/// assert!(words.insert("a".into()) && words.insert("b".into()) && !words.insert("a".into()));
/// let view = words.pin();
/// assert!(view.iter().map(|word| word.clone()).eq(["b", "a"]));
/// ```
pub struct OrdSet<T: Value, C: Comparator<T> = Natural, P: Placement = Pooled, B: Build = Adaptive>
{
    map: OrdMap<T, (), C, P, B>,
}

impl<T: Value + Ord> OrdSet<T> {
    /// An empty set in the natural order, without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn new() -> Self {
        Self::ordered_by(Natural)
    }
}

impl<T: Value, C: Comparator<T> + Default, P: Placement, B: Build> Default for OrdSet<T, C, P, B> {
    fn default() -> Self {
        Self::ordered_by(C::default())
    }
}

impl<T: Value, C: Comparator<T>, P: Placement, B: Build> OrdSet<T, C, P, B> {
    /// An empty set in this order, without a limit.
    ///
    /// # Panics
    /// If the first nodes cannot be allocated.
    pub fn ordered_by(order: C) -> Self {
        Self { map: OrdMap::ordered_by(order) }
    }

    /// An empty set in this order with these options: see [`OrdMap::with_options`].
    pub fn with_options(order: C, options: &Options) -> Result<Self, AllocError> {
        OrdMap::with_options(order, options).map(|map| Self { map })
    }

    /// Makes a set from keys in ascending order: see [`OrdMap::from_sorted`].
    pub fn from_sorted(
        order: C,
        options: &Options,
        keys: impl IntoIterator<Item = T>,
    ) -> Result<Self, BulkLoadError> {
        let entries = keys.into_iter().map(|key| (key, ()));
        Ok(Self { map: OrdMap::from_sorted(order, options, entries)? })
    }

    /// The number of keys: see [`OrdMap::len`].
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether [`OrdSet::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The bytes that the set holds from the system: see [`OrdMap::bytes`].
    pub fn bytes(&self) -> usize {
        self.map.bytes()
    }

    /// The use of the set's bytes. O(slabs).
    pub fn memory(&self) -> Memory {
        self.map.memory()
    }

    /// Drops removed keys that no pin protects: see [`OrdMap::flush`].
    pub fn flush(&self) {
        self.map.flush();
    }

    /// Returns free memory to the system: see [`OrdMap::shrink`].
    pub fn shrink(&self) -> usize {
        self.map.shrink()
    }

    /// Verifies the set: see [`OrdMap::check`].
    pub fn check(&mut self) -> Result<usize, Violation> {
        self.map.check()
    }
}

impl<T: Value, C: Compares<T, T>, P: Placement, B: Build> OrdSet<T, C, P, B> {
    /// Pins the set: the everyday way to call several methods.
    #[inline]
    pub fn pin(&self) -> OrdSetView<'_, T, C, P, B> {
        OrdSetView { view: self.map.pin() }
    }

    /// Whether a key is present.
    #[inline]
    pub fn contains<Q: ?Sized>(&self, key: &Q) -> bool
    where
        C: Compares<T, Q>,
    {
        self.map.contains_key(key)
    }

    /// Inserts a key, and returns whether it was absent. If it was present, the set keeps the key
    /// that it has, and drops this one.
    ///
    /// # Panics
    /// If an allocation fails.
    #[inline]
    pub fn insert(&self, key: T) -> bool {
        self.map.insert(key, ()).is_none()
    }

    /// Inserts like [`OrdSet::insert`], and returns an error with the key if an allocation fails.
    #[inline]
    pub fn try_insert(&self, key: T) -> Result<bool, Rejected<T>> {
        match self.map.try_insert(key, ()) {
            Ok(_) => Ok(true),
            Err(TryInsertError::Occupied { .. }) => Ok(false),
            Err(TryInsertError::Alloc(Rejected { value: (value, ()), error })) => {
                Err(Rejected { value, error })
            }
        }
    }

    /// Removes a key, and returns whether it was present.
    ///
    /// # Panics
    /// If an allocation fails.
    #[inline]
    pub fn remove<Q: ?Sized>(&self, key: &Q) -> bool
    where
        C: Compares<T, Q>,
    {
        self.map.remove(key).is_some()
    }

    /// Removes like [`OrdSet::remove`], and returns an error if an allocation fails.
    #[inline]
    pub fn try_remove<Q: ?Sized>(&self, key: &Q) -> Result<bool, AllocError>
    where
        C: Compares<T, Q>,
    {
        Ok(self.map.try_remove(key)?.is_some())
    }

    /// The smallest key: see [`OrdMap::first`].
    pub fn first(&self) -> Option<KeyGuard<'_, T>> {
        self.map.first().map(KeyGuard)
    }

    /// The largest key: see [`OrdMap::last`].
    pub fn last(&self) -> Option<KeyGuard<'_, T>> {
        self.map.last().map(KeyGuard)
    }

    /// Removes the smallest key and returns it.
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn pop_first(&self) -> Option<KeyGuard<'_, T>> {
        self.map.pop_first().map(KeyGuard)
    }

    /// Removes the largest key and returns it.
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn pop_last(&self) -> Option<KeyGuard<'_, T>> {
        self.map.pop_last().map(KeyGuard)
    }

    /// Removes all keys, and returns their number.
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn clear(&self) -> usize {
        self.map.clear()
    }
}

impl<T: Value, C: Comparator<T>, P: Placement, B: Build> fmt::Debug for OrdSet<T, C, P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrdSet({} keys, {})", self.len(), P::NAME)
    }
}

impl<T: Value, C: Compares<T, T> + Default, P: Placement, B: Build> FromIterator<T>
    for OrdSet<T, C, P, B>
{
    fn from_iter<I: IntoIterator<Item = T>>(keys: I) -> Self {
        Self { map: keys.into_iter().map(|key| (key, ())).collect() }
    }
}

/// A key together with a pin that keeps it readable. It cannot leave its thread.
pub struct KeyGuard<'m, T: Value>(EntryGuard<'m, T, ()>);

impl<T: Value> Deref for KeyGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.key()
    }
}

impl<T: Value + fmt::Debug> fmt::Debug for KeyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// An [`OrdSet`] with its domain pinned, made by [`OrdSet::pin`]. It cannot leave its thread.
/// Returned keys borrow the view.
pub struct OrdSetView<'m, T: Value, C: Comparator<T>, P: Placement, B: Build> {
    view: OrdView<'m, T, (), C, P, B>,
}

impl<T, C, P, B> fmt::Debug for OrdSetView<'_, T, C, P, B>
where
    T: Value + fmt::Debug,
    C: Compares<T, T>,
    P: Placement,
    B: Build,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Value, C: Compares<T, T>, P: Placement, B: Build> OrdSetView<'_, T, C, P, B> {
    /// Pins anew: see [`OrdView::repin`].
    #[inline]
    pub fn repin(&mut self) {
        self.view.repin();
    }

    /// The key that equals this one, as the set has it.
    #[inline]
    pub fn get<Q: ?Sized>(&self, key: &Q) -> Option<ValueRef<'_, T>>
    where
        C: Compares<T, Q>,
    {
        self.view.get_key_value(key).map(|(key, _)| key)
    }

    /// Whether a key is present.
    #[inline]
    pub fn contains<Q: ?Sized>(&self, key: &Q) -> bool
    where
        C: Compares<T, Q>,
    {
        self.view.contains_key(key)
    }

    /// Inserts like [`OrdSet::insert`].
    #[inline]
    pub fn insert(&self, key: T) -> bool {
        self.view.insert(key, ()).is_none()
    }

    /// Removes a key and returns it, `None` if it was absent.
    #[inline]
    pub fn take<Q: ?Sized>(&self, key: &Q) -> Option<ValueRef<'_, T>>
    where
        C: Compares<T, Q>,
    {
        self.view.remove_entry(key).map(|(key, _)| key)
    }

    /// Removes like [`OrdSet::remove`].
    #[inline]
    pub fn remove<Q: ?Sized>(&self, key: &Q) -> bool
    where
        C: Compares<T, Q>,
    {
        self.view.remove(key).is_some()
    }

    /// The smallest key.
    pub fn first(&self) -> Option<ValueRef<'_, T>> {
        self.view.first().map(|(key, _)| key)
    }

    /// The largest key.
    pub fn last(&self) -> Option<ValueRef<'_, T>> {
        self.view.last().map(|(key, _)| key)
    }

    /// The first key at or after a bound: see [`OrdView::lower_bound`].
    pub fn lower_bound<Q: ?Sized>(&self, bound: Bound<&Q>) -> Option<ValueRef<'_, T>>
    where
        C: Compares<T, Q>,
    {
        self.view.lower_bound(bound).map(|(key, _)| key)
    }

    /// The last key at or before a bound: see [`OrdView::upper_bound`].
    pub fn upper_bound<Q: ?Sized>(&self, bound: Bound<&Q>) -> Option<ValueRef<'_, T>>
    where
        C: Compares<T, Q>,
    {
        self.view.upper_bound(bound).map(|(key, _)| key)
    }

    /// The keys of a range: see [`OrdView::range`].
    pub fn range<Q: ?Sized, R: RangeBounds<Q>>(&self, range: R) -> SetRange<'_, T, C, P, B, Q, R>
    where
        C: Compares<T, Q>,
    {
        SetRange(self.view.range(range))
    }

    /// All keys, in ascending order.
    pub fn iter(&self) -> SetRange<'_, T, C, P, B> {
        self.range::<T, _>(..)
    }

    /// Removes the keys for which `keep` does not hold, and returns their number.
    ///
    /// # Panics
    /// If an allocation fails.
    pub fn retain(&self, mut keep: impl FnMut(&T) -> bool) -> usize {
        self.view.retain(|key, ()| keep(key))
    }
}

impl<'v, T: Value, C: Compares<T, T>, P: Placement, B: Build> IntoIterator
    for &'v OrdSetView<'_, T, C, P, B>
{
    type Item = ValueRef<'v, T>;
    type IntoIter = SetRange<'v, T, C, P, B>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A scan of an [`OrdSetView`], with the guarantee of [`OrdView::range`].
pub struct SetRange<
    'g,
    T: Value,
    C: Comparator<T>,
    P: Placement,
    B: Build,
    Q: ?Sized = T,
    R = RangeFull,
>(Range<'g, T, (), C, P, B, Q, R>);

impl<T: Value, C: Comparator<T>, P: Placement, B: Build, Q: ?Sized, R> fmt::Debug
    for SetRange<'_, T, C, P, B, Q, R>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

iterators!(
    SetRange<T>, ValueRef<'g, T>,
    |this| next: this.0.next().map(|(key, _)| key), back: this.0.next_back().map(|(key, _)| key),
);
