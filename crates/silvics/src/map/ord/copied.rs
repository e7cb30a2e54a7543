//! Ranges and cursors that copy entries, and hold no pin between steps.
//!
//! They pin the map to copy some entries, the more the longer they have gone on, and then return
//! the copies. So they can be kept for long, sent, and held across an `await`.

use super::OrdMap;
use super::order::{Comparator, Compares};
use crate::ca::build::{Adaptive, Build};
use crate::map::value::Value;
use silvics_pool::{Placement, Pooled};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds, RangeFull};
use std::sync::Arc;

/// The number of entries that are copied first, and the most.
const COPIES: (usize, usize) = (4, 256);

/// Copies of consecutive entries, in the direction of the steps.
struct Copies<K, V> {
    entries: VecDeque<(K, V)>,
    /// The key of the last one of them.
    last: Option<K>,
    /// The number of entries to copy next.
    most: usize,
}

impl<K, V> Copies<K, V> {
    fn nothing(most: usize) -> Self {
        Self { entries: VecDeque::new(), last: None, most }
    }
}

impl<K: Value + Clone, V: Value + Clone> Copies<K, V> {
    /// Copies the next entries, from one bound up to another one.
    fn read<C, P: Placement, B: Build, Q: ?Sized>(
        map: &OrdMap<K, V, C, P, B>,
        bounds: (Bound<&Q>, Bound<&Q>),
        (most, descends): (usize, bool),
        is_within: impl Fn(&K) -> bool,
    ) -> Self
    where
        C: Compares<K, K> + Compares<K, Q>,
    {
        let view = map.pin();
        let range = view.range::<Q, _>(bounds);
        let mut entries = VecDeque::with_capacity(most);
        let copy = |(key, value): super::Entry<'_, K, V>| (K::clone(&key), V::clone(&value));
        let within = |entry: &super::Entry<'_, K, V>| is_within(&entry.0);
        if descends {
            entries.extend(range.rev().take_while(within).take(most).map(copy));
        } else {
            entries.extend(range.take_while(within).take(most).map(copy));
        }
        let last = entries.back().map(|(key, _)| key.clone());
        Self { entries, last, most: (2 * most).min(COPIES.1) }
    }
}

/// One end of a range.
struct End<K, V> {
    copies: Copies<K, V>,
    has_begun: bool,
    is_over: bool,
}

impl<K, V> End<K, V> {
    fn new() -> Self {
        Self { copies: Copies::nothing(COPIES.0), has_begun: false, is_over: false }
    }

    /// The bound that keys of the other end do not pass: the next key, or the last one.
    fn limit(&self) -> Option<Bound<&K>> {
        let next = self.copies.entries.front().map(|(key, _)| Bound::Included(key));
        next.or(self.copies.last.as_ref().map(Bound::Excluded))
    }
}

/// A double-ended range of an [`OrdMap`] that returns copies of entries and holds no pin between
/// steps: see [`OrdMap::range_owned`] and [`OrdMap::range_unpinned`].
///
/// A range can be kept for long, held across an `await`, and sent to another thread. It does not
/// keep removed entries from being freed. Keys are strictly ascending from the front and strictly
/// descending from the back, and none is returned twice. A key that is present for the whole time
/// is returned, if both ends are taken until nothing is left; one that is absent for the whole time
/// is not.
///
/// A step copies up to 256 entries ahead under a pin, and calls `clone` for each key and value. Any
/// change of these entries, or between them, may go unnoticed, also one of the thread that has the
/// range. If a clone panics, the range is as before. Clones of keys must have their order.
///
/// If the order of the keys is not total, the range may end early or return keys again.
pub struct OwnedRange<
    K: Value,
    V: Value,
    C: Comparator<K>,
    M,
    P: Placement = Pooled,
    B: Build = Adaptive,
    Q: ?Sized = K,
    R = RangeFull,
> {
    map: M,
    bounds: R,
    front: End<K, V>,
    back: End<K, V>,
    of: PhantomData<fn(C, P, B, &Q)>,
}

impl<K: Value, V: Value, C: Comparator<K>, M, P: Placement, B: Build, Q: ?Sized, R> fmt::Debug
    for OwnedRange<K, V, C, M, P, B, Q, R>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedRange").finish_non_exhaustive()
    }
}

/// The order of a key and a bound: whether the key is before the bound if that is a high one, or
/// behind it if it is a low one.
fn is_inside(order: Ordering, bound: &Bound<impl Sized>, is_low: bool) -> bool {
    match bound {
        Bound::Unbounded => true,
        Bound::Included(_) => order != if is_low { Ordering::Less } else { Ordering::Greater },
        Bound::Excluded(_) => order == if is_low { Ordering::Greater } else { Ordering::Less },
    }
}

impl<K, V, C, M, P, B, Q, R> OwnedRange<K, V, C, M, P, B, Q, R>
where
    K: Value + Clone,
    V: Value + Clone,
    C: Compares<K, K> + Compares<K, Q>,
    M: Deref<Target = OrdMap<K, V, C, P, B>>,
    P: Placement,
    B: Build,
    Q: ?Sized,
    R: RangeBounds<Q>,
{
    fn new(map: M, bounds: R) -> Self {
        Self { map, bounds, front: End::new(), back: End::new(), of: PhantomData }
    }

    /// Copies the next entries of an end that has none.
    fn read<const DESCENDS: bool>(map: &M, bounds: &R, end: &End<K, V>) -> Copies<K, V> {
        let size = (end.copies.most, DESCENDS);
        let Some(last) = end.copies.last.as_ref() else {
            let bounds = (bounds.start_bound(), bounds.end_bound());
            return Copies::read::<_, _, _, Q>(map, bounds, size, |_| true);
        };
        let far = if DESCENDS { bounds.start_bound() } else { bounds.end_bound() };
        let is_within = |key: &K| {
            let (Bound::Included(asked) | Bound::Excluded(asked)) = far else { return true };
            is_inside(map.order().compare_with(key, asked), &far, DESCENDS)
        };
        let (from, open) = (Bound::Excluded(last), Bound::Unbounded);
        let bounds = if DESCENDS { (open, from) } else { (from, open) };
        Copies::read::<_, _, _, K>(map, bounds, size, is_within)
    }

    /// The next entry from the front, or from the back if `DESCENDS`.
    fn step<const DESCENDS: bool>(&mut self) -> Option<(K, V)> {
        let Self { map, bounds, front, back, .. } = self;
        let (own, other) = if DESCENDS { (back, &*front) } else { (front, &*back) };
        if own.is_over {
            return None;
        }
        let order = map.order();
        if own.copies.entries.is_empty() {
            let copies = Self::read::<DESCENDS>(map, bounds, own);
            let behind = if DESCENDS { Ordering::Greater } else { Ordering::Less };
            let first = copies.entries.front().map(|(key, _)| key);
            let is_behind = |first| {
                own.copies.last.as_ref().is_none_or(|last| order.compare(last, first) == behind)
            };
            if !first.is_some_and(is_behind) {
                own.is_over = true;
                return None;
            }
            (own.copies, own.has_begun) = (copies, true);
        }
        let (next, _) = own.copies.entries.front()?;
        let limit = if other.has_begun { other.limit() } else { None };
        if let Some(limit @ (Bound::Included(key) | Bound::Excluded(key))) = limit
            && !is_inside(order.compare(next, key), &limit, DESCENDS)
        {
            return None;
        }
        own.copies.entries.pop_front()
    }
}

impl<K, V, C, M, P, B, Q, R> Iterator for OwnedRange<K, V, C, M, P, B, Q, R>
where
    K: Value + Clone,
    V: Value + Clone,
    C: Compares<K, K> + Compares<K, Q>,
    M: Deref<Target = OrdMap<K, V, C, P, B>>,
    P: Placement,
    B: Build,
    Q: ?Sized,
    R: RangeBounds<Q>,
{
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.step::<false>()
    }
}

impl<K, V, C, M, P, B, Q, R> DoubleEndedIterator for OwnedRange<K, V, C, M, P, B, Q, R>
where
    K: Value + Clone,
    V: Value + Clone,
    C: Compares<K, K> + Compares<K, Q>,
    M: Deref<Target = OrdMap<K, V, C, P, B>>,
    P: Placement,
    B: Build,
    Q: ?Sized,
    R: RangeBounds<Q>,
{
    fn next_back(&mut self) -> Option<(K, V)> {
        self.step::<true>()
    }
}

impl<K, V, C, M, P, B, Q, R> FusedIterator for OwnedRange<K, V, C, M, P, B, Q, R>
where
    K: Value + Clone,
    V: Value + Clone,
    C: Compares<K, K> + Compares<K, Q>,
    M: Deref<Target = OrdMap<K, V, C, P, B>>,
    P: Placement,
    B: Build,
    Q: ?Sized,
    R: RangeBounds<Q>,
{
}

/// Ranges and cursors without a pin.
impl<K, V, C, P, B> OrdMap<K, V, C, P, B>
where
    K: Value + Clone,
    V: Value + Clone,
    C: Compares<K, K>,
    P: Placement,
    B: Build,
{
    /// The entries of a range as copies, for a scan that keeps the map alive and holds no pin
    /// between steps. A range whose start is behind its end is empty.
    ///
    /// ```
    /// use silvics::OrdMap;
    /// use std::sync::Arc;
    ///
    /// let map: Arc<OrdMap<String, u64>> = Arc::new((0..9).map(|n| (format!("{n}"), n)).collect());
    /// let mut range = map.range_owned("3".to_string()..);
    /// assert_eq!(range.next_back(), Some(("8".to_string(), 8)));
    /// let rest = std::thread::spawn(move || range.map(|(_, value)| value).collect::<Vec<_>>());
    /// assert_eq!(rest.join().unwrap(), [3, 4, 5, 6, 7]);
    /// ```
    pub fn range_owned<Q: ?Sized, R: RangeBounds<Q>>(
        self: &Arc<Self>,
        range: R,
    ) -> OwnedRange<K, V, C, Arc<Self>, P, B, Q, R>
    where
        C: Compares<K, Q>,
    {
        OwnedRange::new(Arc::clone(self), range)
    }

    /// The entries of a range as copies, for a scan that borrows the map and holds no pin between
    /// steps. A range whose start is behind its end is empty.
    pub fn range_unpinned<Q: ?Sized, R: RangeBounds<Q>>(
        &self,
        range: R,
    ) -> OwnedRange<K, V, C, &Self, P, B, Q, R>
    where
        C: Compares<K, Q>,
    {
        OwnedRange::new(self, range)
    }

    /// A cursor, before the first entry, that keeps the map alive.
    pub fn cursor(self: &Arc<Self>) -> OrdCursor<K, V, C, P, B> {
        let (copies, place) = (Copies::nothing(COPIES.0), Place::Before);
        OrdCursor { map: Arc::clone(self), copies, place, descends: false }
    }
}

/// The place of a cursor without copies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Behind,
}

/// An owned position in an [`OrdMap`], made by [`OrdMap::cursor`]. It can be sent to another
/// thread, pins nothing between calls, and stays valid whatever other threads insert and remove.
///
/// A cursor stands at an entry, before the first entry, or behind the last one. It has a copy of
/// the entry, which stays if the entry is removed: the next move goes on from there. To only
/// iterate, use [`OrdMap::range_owned`].
///
/// A cursor copies up to 256 entries ahead in the direction of its moves. A write to one of these,
/// or between them, may go unnoticed, as if it happened after the cursor had passed. A cursor
/// behind the last entry does not see entries that are added there. If a clone panics, the cursor
/// stays where it is. If the order of the keys is not total, moves may go on for ever.
///
/// ```
/// use silvics::OrdMap;
/// use std::sync::Arc;
///
/// let map: Arc<OrdMap<String, u32>> = Arc::default();
/// map.extend([("a", 1), ("b", 2), ("c", 3)].map(|(key, value)| (key.to_string(), value)));
/// let mut cursor = map.cursor();
/// assert!(cursor.seek("aa") && cursor.current() == Some((&"b".to_string(), &2)));
/// map.remove("b");
/// assert!(cursor.next() && cursor.key().is_some_and(|key| key == "c"));
/// assert!(!cursor.next() && cursor.current().is_none());
/// assert!(cursor.prev() && cursor.prev() && cursor.value() == Some(&1));
/// ```
pub struct OrdCursor<
    K: Value,
    V: Value,
    C: Comparator<K>,
    P: Placement = Pooled,
    B: Build = Adaptive,
> {
    map: Arc<OrdMap<K, V, C, P, B>>,
    /// The entry at which the cursor stands, and those behind it in the direction of its moves.
    copies: Copies<K, V>,
    /// Without copies: the end of the map where the cursor stands.
    place: Place,
    descends: bool,
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> fmt::Debug
    for OrdCursor<K, V, C, P, B>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrdCursor").finish_non_exhaustive()
    }
}

impl<K, V, C, P, B> OrdCursor<K, V, C, P, B>
where
    K: Value + Clone,
    V: Value + Clone,
    C: Compares<K, K>,
    P: Placement,
    B: Build,
{
    /// The map.
    pub fn map(&self) -> &Arc<OrdMap<K, V, C, P, B>> {
        &self.map
    }

    /// Copies entries from a bound on, and stands at the first one. Returns whether there is one.
    fn fill<Q: ?Sized>(&mut self, from: Bound<&Q>, descends: bool, most: usize) -> bool
    where
        C: Compares<K, Q>,
    {
        let bounds = if descends { (Bound::Unbounded, from) } else { (from, Bound::Unbounded) };
        let copies = Copies::read::<_, _, _, Q>(&self.map, bounds, (most, descends), |_| true);
        self.place = if descends { Place::Before } else { Place::Behind };
        (self.copies, self.descends) = (copies, descends);
        !self.copies.entries.is_empty()
    }

    /// Moves to the first entry at or behind a key. Returns whether there is one.
    pub fn seek<Q: ?Sized>(&mut self, key: &Q) -> bool
    where
        C: Compares<K, Q>,
    {
        self.fill(Bound::Included(key), false, COPIES.0)
    }

    /// Moves to the last entry at or before a key. Returns whether there is one.
    pub fn seek_for_prev<Q: ?Sized>(&mut self, key: &Q) -> bool
    where
        C: Compares<K, Q>,
    {
        self.fill(Bound::Included(key), true, COPIES.0)
    }

    /// Moves to the first entry. Returns whether there is one.
    pub fn seek_to_first(&mut self) -> bool {
        self.fill::<K>(Bound::Unbounded, false, COPIES.0)
    }

    /// Moves to the last entry. Returns whether there is one.
    pub fn seek_to_last(&mut self) -> bool {
        self.fill::<K>(Bound::Unbounded, true, COPIES.0)
    }

    /// Moves to the next entry; from before the first entry, to the first one. Returns whether
    /// there is one.
    #[allow(clippy::should_implement_trait)] // the current entry borrows the cursor
    pub fn next(&mut self) -> bool {
        self.step(false)
    }

    /// Moves to the previous entry; from behind the last entry, to the last one. Returns whether
    /// there is one.
    pub fn prev(&mut self) -> bool {
        self.step(true)
    }

    fn step(&mut self, descends: bool) -> bool {
        if self.descends == descends && self.copies.entries.len() > 1 {
            self.copies.entries.pop_front();
            return true;
        }
        let most = if self.descends == descends { self.copies.most } else { COPIES.0 };
        let Some((key, _)) = self.copies.entries.front() else {
            let is_there = (self.place == Place::Before) == descends;
            return !is_there && self.fill::<K>(Bound::Unbounded, descends, COPIES.0);
        };
        let key = key.clone();
        self.fill(Bound::Excluded(&key), descends, most)
    }

    /// The entry at which the cursor stands, as it was when the cursor read it. `None` if the
    /// cursor stands at no entry.
    pub fn current(&self) -> Option<(&K, &V)> {
        self.copies.entries.front().map(|(key, value)| (key, value))
    }

    /// The key of [`OrdCursor::current`].
    pub fn key(&self) -> Option<&K> {
        self.current().map(|(key, _)| key)
    }

    /// The value of [`OrdCursor::current`].
    pub fn value(&self) -> Option<&V> {
        self.current().map(|(_, value)| value)
    }
}
