//! An ordered map whose entries are counted: [`SkipMap`].

use silvics::ord::counted::{self, Ends, IfPresent, IntoEntries};
use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, RangeBounds, RangeFull};
use std::sync::OnceLock;

/// An ordered map that threads share: a `BTreeMap` whose methods take `&self`.
///
/// The map makes its tree at the first insertion. Methods take O(log n) comparisons.
pub struct SkipMap<K, V> {
    tree: OnceLock<Box<counted::Map<K, V>>>,
}

impl<K, V> SkipMap<K, V> {
    /// Returns an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self { tree: OnceLock::new() }
    }

    fn tree(&self) -> Option<&counted::Map<K, V>> {
        self.tree.get().map(AsRef::as_ref)
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries. If the map is changed meanwhile, each change may or may not be
    /// counted.
    pub fn len(&self) -> usize {
        self.tree().map_or(0, counted::Map::len)
    }

    /// The bytes that the map holds from the system, exactly. (`crossbeam-skiplist` has no such
    /// method.)
    pub fn bytes(&self) -> usize {
        self.tree().map_or(0, counted::Map::bytes)
    }

    /// Frees removed entries that nobody has any more, except the last ones that other living
    /// threads have removed, and returns unused memory to the system. Returns the number of bytes.
    /// (`crossbeam-skiplist` has no such method.)
    pub fn shrink(&self) -> usize {
        self.tree().map_or(0, counted::Map::shrink)
    }
}

impl<K: Ord, V> SkipMap<K, V> {
    /// The tree, made if need be.
    fn made(&self) -> &counted::Map<K, V> {
        self.tree.get_or_init(|| {
            let made = counted::Map::new();
            Box::new(made.unwrap_or_else(|_| {
                std::alloc::handle_alloc_error(std::alloc::Layout::new::<counted::Map<K, V>>())
            }))
        })
    }

    /// Returns the entry with the smallest key.
    pub fn front(&self) -> Option<Entry<'_, K, V>> {
        self.tree()?.end::<false>().map(Entry)
    }

    /// Returns the entry with the largest key.
    pub fn back(&self) -> Option<Entry<'_, K, V>> {
        self.tree()?.end::<true>().map(Entry)
    }

    /// Whether `key` is present.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.tree().is_some_and(|tree| tree.contains_key(key))
    }

    /// Returns the entry of `key`.
    pub fn get<Q>(&self, key: &Q) -> Option<Entry<'_, K, V>>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.tree()?.get(key).map(Entry)
    }

    /// Returns the first entry at or behind a bound.
    pub fn lower_bound<'a, Q>(&'a self, bound: Bound<&Q>) -> Option<Entry<'a, K, V>>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.tree()?.beside::<Q, false>(bound).map(Entry)
    }

    /// Returns the last entry at or before a bound.
    pub fn upper_bound<'a, Q>(&'a self, bound: Bound<&Q>) -> Option<Entry<'a, K, V>>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.tree()?.beside::<Q, true>(bound).map(Entry)
    }

    /// Returns the entry of `key`, after inserting `value` if the key was absent.
    pub fn get_or_insert(&self, key: K, value: V) -> Entry<'_, K, V> {
        Entry(self.made().insert(key, value, &IfPresent::Keep))
    }

    /// Returns the entry of `key`, after inserting the result of `value_fn` if the key was absent.
    ///
    /// The function runs at most once, and only if a lookup found the key absent. If another thread
    /// inserts the key first, the result is dropped.
    pub fn get_or_insert_with<F>(&self, key: K, value_fn: F) -> Entry<'_, K, V>
    where
        F: FnOnce() -> V,
    {
        match self.get(&key) {
            Some(present) => present,
            None => self.get_or_insert(key, value_fn()),
        }
    }

    /// All entries in ascending order: see [`SkipMap::range`].
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { map: self, ends: None }
    }

    /// The entries of a range in ascending order. A range whose start is behind its end has none.
    ///
    /// Each step finds what is in the map at that moment. It may skip an entry that another thread
    /// inserts during the step, or return one that another thread removes then.
    pub fn range<Q, R>(&self, range: R) -> Range<'_, Q, R, K, V>
    where
        K: Borrow<Q>,
        R: RangeBounds<Q>,
        Q: Ord + ?Sized,
    {
        Range { map: self, ends: None, bounds: range, form: std::marker::PhantomData }
    }
}

impl<K, V> SkipMap<K, V>
where
    K: Ord + Send + 'static,
    V: Send + 'static,
{
    /// Inserts an entry and returns it. An entry with this key is removed in the same step.
    pub fn insert(&self, key: K, value: V) -> Entry<'_, K, V> {
        Entry(self.made().insert(key, value, &IfPresent::Replace))
    }

    /// Inserts an entry if the key is absent, or if `compare_fn` holds for the present value, whose
    /// entry is removed in the same step. Returns the entry of the key.
    ///
    /// The function runs again if another thread replaces the value meanwhile.
    pub fn compare_insert<F>(&self, key: K, value: V, compare_fn: F) -> Entry<'_, K, V>
    where
        F: Fn(&V) -> bool,
    {
        Entry(self.made().insert(key, value, &IfPresent::ReplaceIf(&compare_fn)))
    }

    /// Removes the entry of `key` and returns it.
    pub fn remove<Q>(&self, key: &Q) -> Option<Entry<'_, K, V>>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.tree()?.remove(key).map(Entry)
    }

    /// Removes the entry with the smallest key and returns it.
    pub fn pop_front(&self) -> Option<Entry<'_, K, V>> {
        self.tree()?.pop::<false>().map(Entry)
    }

    /// Removes the entry with the largest key and returns it.
    pub fn pop_back(&self) -> Option<Entry<'_, K, V>> {
        self.tree()?.pop::<true>().map(Entry)
    }

    /// Removes all entries. One that is inserted during the call may stay, and the call goes on
    /// while other threads insert smaller keys than the last one.
    pub fn clear(&self) {
        // No keys are compared. The last entry may be removed by another thread: then there is
        // another one.
        while let Some(last) = self.back() {
            while !last.0.is_marked() {
                let Some(first) = self.pop_front() else { return };
                if first.0.is_same(&last.0) {
                    return;
                }
            }
        }
    }
}

impl<K, V> Default for SkipMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for SkipMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("SkipMap { .. }")
    }
}

impl<K, V> IntoIterator for SkipMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter(self.tree.into_inner().map(|tree| tree.into_entries()))
    }
}

impl<'a, K: Ord, V> IntoIterator for &'a SkipMap<K, V> {
    type Item = Entry<'a, K, V>;
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// If a key occurs twice, the first value stays.
impl<K: Ord, V> FromIterator<(K, V)> for SkipMap<K, V> {
    fn from_iter<I>(iter: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
    {
        let map = Self::new();
        for (key, value) in iter {
            map.get_or_insert(key, value);
        }
        map
    }
}

/// An entry of a [`SkipMap`]. Its key and value stay readable while it lives, even if it is removed
/// from the map.
pub struct Entry<'a, K, V>(counted::Entry<'a, K, V>);

impl<K, V> Entry<'_, K, V> {
    /// The key.
    pub fn key(&self) -> &K {
        self.0.key()
    }

    /// The value.
    pub fn value(&self) -> &V {
        self.0.value()
    }

    /// Whether the entry was removed from the map.
    pub fn is_removed(&self) -> bool {
        self.0.is_removed()
    }
}

impl<K: Ord, V> Entry<'_, K, V> {
    /// Moves to the next entry in the map. Returns whether there is one.
    pub fn move_next(&mut self) -> bool {
        self.0.beside::<false>().map(|next| self.0 = next).is_some()
    }

    /// Moves to the entry before in the map. Returns whether there is one.
    pub fn move_prev(&mut self) -> bool {
        self.0.beside::<true>().map(|previous| self.0 = previous).is_some()
    }
}

impl<'a, K: Ord, V> Entry<'a, K, V> {
    /// The next entry in the map.
    pub fn next(&self) -> Option<Entry<'a, K, V>> {
        self.0.beside::<false>().map(Entry)
    }

    /// The entry before in the map.
    pub fn prev(&self) -> Option<Entry<'a, K, V>> {
        self.0.beside::<true>().map(Entry)
    }
}

impl<K, V> Entry<'_, K, V>
where
    K: Ord + Send + 'static,
    V: Send + 'static,
{
    /// Removes the entry from the map. Returns whether this call did.
    pub fn remove(&self) -> bool {
        self.0.remove()
    }
}

impl<K, V> Clone for Entry<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Entry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(self.key()).field(self.value()).finish()
    }
}

/// An owning iterator over a [`SkipMap`], in ascending order.
pub struct IntoIter<K, V>(Option<IntoEntries<K, V>>);

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.as_mut()?.next()
    }
}

impl<K, V> fmt::Debug for IntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("IntoIter { .. }")
    }
}

/// The entries of a [`SkipMap`]: see [`SkipMap::iter`].
pub struct Iter<'a, K, V> {
    map: &'a SkipMap<K, V>,
    ends: Option<Ends<'a, K, V>>,
}

/// The ends of a range, once the map has a tree.
fn ends<'e, 'a, K, V>(
    ends: &'e mut Option<Ends<'a, K, V>>,
    map: &'a SkipMap<K, V>,
) -> Option<&'e mut Ends<'a, K, V>> {
    if ends.is_none() {
        *ends = map.tree().map(Ends::new);
    }
    ends.as_mut()
}

impl<'a, K: Ord, V> Iterator for Iter<'a, K, V> {
    type Item = Entry<'a, K, V>;

    fn next(&mut self) -> Option<Entry<'a, K, V>> {
        ends(&mut self.ends, self.map)?.next::<K>(&RangeFull).map(Entry)
    }
}

impl<'a, K: Ord, V> DoubleEndedIterator for Iter<'a, K, V> {
    fn next_back(&mut self) -> Option<Entry<'a, K, V>> {
        ends(&mut self.ends, self.map)?.next_back::<K>(&RangeFull).map(Entry)
    }
}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Iter { .. }")
    }
}

/// The entries of a range of a [`SkipMap`]: see [`SkipMap::range`].
pub struct Range<'a, Q, R, K, V>
where
    K: Ord + Borrow<Q>,
    R: RangeBounds<Q>,
    Q: Ord + ?Sized,
{
    map: &'a SkipMap<K, V>,
    ends: Option<Ends<'a, K, V>>,
    bounds: R,
    form: std::marker::PhantomData<fn() -> Q>,
}

impl<'a, Q, R, K, V> Iterator for Range<'a, Q, R, K, V>
where
    K: Ord + Borrow<Q>,
    R: RangeBounds<Q>,
    Q: Ord + ?Sized,
{
    type Item = Entry<'a, K, V>;

    fn next(&mut self) -> Option<Entry<'a, K, V>> {
        ends(&mut self.ends, self.map)?.next(&self.bounds).map(Entry)
    }
}

impl<'a, Q, R, K, V> DoubleEndedIterator for Range<'a, Q, R, K, V>
where
    K: Ord + Borrow<Q>,
    R: RangeBounds<Q>,
    Q: Ord + ?Sized,
{
    fn next_back(&mut self) -> Option<Entry<'a, K, V>> {
        ends(&mut self.ends, self.map)?.next_back(&self.bounds).map(Entry)
    }
}

impl<Q, R, K, V> fmt::Debug for Range<'_, Q, R, K, V>
where
    K: Ord + Borrow<Q> + fmt::Debug,
    V: fmt::Debug,
    R: RangeBounds<Q> + fmt::Debug,
    Q: Ord + ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("range", &self.bounds).finish_non_exhaustive()
    }
}
