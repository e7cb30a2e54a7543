//! Ranges that can be sent to another thread and kept for as long as is needed.

use super::batched::{Batched, Buffer, Gap};
use super::copies::Copies;
use super::key::Key;
use super::{DefaultIndex, KeyRange, Map, MapIndex, Set, Value};
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

mod private {
    pub trait Sealed {}
}

/// A way to hold a [`Map`]: `&Map`, `Arc<Map>`, or `Arc` of a [`Set`]. The trait is sealed.
pub trait HoldsMap<K: Key, V: Value, I: MapIndex<Key = K::Form>>: private::Sealed {
    #[doc(hidden)]
    fn held(&self) -> &Map<K, V, I>;
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> private::Sealed for &Map<K, V, I> {}
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> private::Sealed for Arc<Map<K, V, I>> {}
impl<K: Key, I: MapIndex<Key = K::Form>> private::Sealed for Arc<Set<K, I>> {}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> HoldsMap<K, V, I> for &Map<K, V, I> {
    #[inline]
    fn held(&self) -> &Map<K, V, I> {
        self
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> HoldsMap<K, V, I> for Arc<Map<K, V, I>> {
    #[inline]
    fn held(&self) -> &Map<K, V, I> {
        self
    }
}

impl<K: Key, I: MapIndex<Key = K::Form>> HoldsMap<K, (), I> for Arc<Set<K, I>> {
    #[inline]
    fn held(&self) -> &Map<K, (), I> {
        self.map()
    }
}

/// A double-ended range of a [`Map`] that returns copies of entries and holds no pin between steps.
/// It is made by [`Map::range_owned`], which keeps the map alive, or by [`Map::range_unpinned`],
/// which borrows it.
///
/// A range can be kept for long, held across an `await`, and sent to another thread. It does not
/// keep removed entries from being freed. Writers, [`Map::clear`] and [`Map::shrink`] may run
/// meanwhile.
///
/// # Steps
/// A range copies 26 entries at first, and then as many as it has copied so far, up to 512. It pins
/// the map while it copies, and calls `V::clone` under this pin, once for each entry, and also for
/// entries that are never taken. `V::clone` may call the map. If it panics, the panic reaches the
/// caller of `next`, and the range is as before that call: the next call copies these entries
/// again.
///
/// Iteration returns keys of type `K`, which allocate if they are strings. [`OwnedRange::next_ref`]
/// returns references to the copies instead. If clones of values are expensive or impossible, use
/// [`OwnedView::range`](super::OwnedView::range), which holds a pin and copies nothing.
///
/// # Guarantee under concurrent writes
/// A range is not atomic. Keys that are taken from the front are strictly ascending, keys that are
/// taken from the back strictly descending, and no key is returned twice. If both ends are taken
/// until nothing is left, each key that is present for the whole time is returned once. No key is
/// returned that is absent for the whole time. A key that is inserted or removed meanwhile may or
/// may not be returned.
///
/// Each value was the value of its key at some moment since the range was made. A range copies up
/// to 512 entries ahead at each end: a write to one of these may go unnoticed, as if it happened
/// after the range had passed.
///
/// ```
/// use silvics::Map;
/// use std::sync::Arc;
///
/// let map: Arc<Map<String, u64>> = Arc::new([("a", 1), ("b", 2), ("c", 3)].into_iter().collect());
/// let mut range = map.range_owned("a"..="c");
/// assert_eq!(range.next_back(), Some(("c".to_string(), 3)));
/// let rest = std::thread::spawn(move || range.collect::<Vec<_>>());
/// assert_eq!(rest.join().unwrap(), [("a".to_string(), 1), ("b".to_string(), 2)]);
/// ```
pub struct OwnedRange<
    K: Key,
    V: Value,
    I: MapIndex<Key = K::Form> = DefaultIndex<K>,
    M: HoldsMap<K, V, I> = Arc<Map<K, V, I>>,
> {
    map: M,
    entries: Batched<K, Copies<K, V>>,
    index: std::marker::PhantomData<fn() -> I>,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>, M: HoldsMap<K, V, I>> OwnedRange<K, V, I, M> {
    pub(super) fn new(map: M, range: impl KeyRange<K>) -> Self {
        let entries = Batched::new(range.keep());
        Self { map, entries, index: std::marker::PhantomData }
    }

    /// The copies of a batch with the next entry, and its number there.
    #[inline(always)]
    fn step<const REV: bool>(&mut self) -> Option<(&mut Copies<K, V>, usize)>
    where
        V: Clone,
    {
        let map = self.map.held();
        self.entries.next::<REV>(|gap: Gap<'_, K>, most, copies: &mut Copies<K, V>| {
            copies.read(map, gap, (most, REV), Some(V::clone));
        })
    }

    /// Moves the next entry out of its batch.
    #[inline(always)]
    fn take<const REV: bool>(&mut self) -> Option<(K, V)>
    where
        V: Clone,
    {
        let (copies, at) = self.step::<REV>()?;
        let value = copies.take(at)?;
        Some((Map::<K, V, I>::owned_key_of(copies.key(at)), value))
    }

    /// Borrows the next entry in its batch.
    #[inline(always)]
    fn borrow<const REV: bool>(&mut self) -> Option<(K::Ref<'_>, &V)>
    where
        V: Clone,
    {
        let (copies, at) = self.step::<REV>()?;
        Some((Map::<K, V, I>::key_of(copies.key(at)), copies.value(at)?))
    }

    /// Takes the next entry from the front. The references are valid until the next step; the range
    /// drops the copies later.
    #[inline]
    pub fn next_ref(&mut self) -> Option<(K::Ref<'_>, &V)>
    where
        V: Clone,
    {
        self.borrow::<false>()
    }

    /// Takes the next entry from the back. The references are valid until the next step; the range
    /// drops the copies later.
    #[inline]
    pub fn next_back_ref(&mut self) -> Option<(K::Ref<'_>, &V)>
    where
        V: Clone,
    {
        self.borrow::<true>()
    }
}

impl<K: Key, V: Value + Clone, I: MapIndex<Key = K::Form>, M: HoldsMap<K, V, I>> Iterator
    for OwnedRange<K, V, I, M>
{
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        self.take::<false>()
    }
}

impl<K: Key, V: Value + Clone, I: MapIndex<Key = K::Form>, M: HoldsMap<K, V, I>> DoubleEndedIterator
    for OwnedRange<K, V, I, M>
{
    #[inline]
    fn next_back(&mut self) -> Option<(K, V)> {
        self.take::<true>()
    }
}

impl<K: Key, V: Value + Clone, I: MapIndex<Key = K::Form>, M: HoldsMap<K, V, I>> FusedIterator
    for OwnedRange<K, V, I, M>
{
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>, M: HoldsMap<K, V, I>> fmt::Debug
    for OwnedRange<K, V, I, M>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedRange").finish_non_exhaustive()
    }
}

/// Ranges without a pin.
impl<K: Key, V: Value + Clone, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// The entries of `range` as copies, for a scan that keeps the map alive and holds no pin
    /// between steps. A range whose start is past its end is empty. See [`OwnedRange`] for the
    /// guarantee.
    pub fn range_owned(self: &Arc<Self>, range: impl KeyRange<K>) -> OwnedRange<K, V, I> {
        OwnedRange::new(Arc::clone(self), range)
    }

    /// The entries of `range` as copies, for a scan that borrows the map and holds no pin between
    /// steps. A range whose start is past its end is empty. See [`OwnedRange`] for the guarantee.
    ///
    /// ```
    /// let map: silvics::Map<u64, String> = (0..9).map(|n| (n, n.to_string())).collect();
    /// for (key, value) in map.range_unpinned(..).rev() {
    ///     // This thread has nothing pinned here, so the removed value can be freed.
    ///     map.remove(key);
    ///     assert_eq!(value, key.to_string());
    /// }
    /// assert!(map.is_empty());
    /// ```
    pub fn range_unpinned(&self, range: impl KeyRange<K>) -> OwnedRange<K, V, I, &Self> {
        OwnedRange::new(self, range)
    }
}
