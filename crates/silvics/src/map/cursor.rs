//! A position in a map that owns the memory it needs.
//!
//! # Algorithm
//! A cursor holds copies of some consecutive entries, and stands at one of them. To move past the
//! last copy it pins, copies the next entries from the index, and unpins. The first copies are
//! [`FIRST`] entries; the sums of the next ones are those of [`SUMS`], and then each is as many as
//! all before it, up to [`MOST`]. So a long scan costs a search and a pin per [`MOST`] entries, and
//! a cursor that is moved at random copies few entries.
//!
//! A move reads into a spare buffer, which then changes places with the present one. So a cursor
//! whose move panics, because `V::clone` does, stands where it stood.

use super::batched::Buffer;
use super::copies::Copies;
use super::key::{AsKey, AsPrefix, FormRef, Key};
use super::lend::Lends;
use super::ops::short;
use super::scan::{Kept, kept};
use super::{KeyRange, Map, MapIndex, Value};
use std::fmt;
use std::mem::swap;
use std::ops::Bound;
use std::sync::Arc;

/// The most entries that are copied at once.
const MOST: usize = 512;
/// The number of entries that are copied first.
const FIRST: usize = 2;
/// The numbers of entries that are copied in total, while there are few. Scans tend to end after a
/// round number of entries, with the cursor at the next one.
const SUMS: [usize; 4] = [11, 26, 51, 101];

/// An owned position in a [`Map`], made by [`Map::cursor`] or, with bounds, by
/// [`Map::cursor_range`]. It can be sent to another thread, pins nothing between calls, and stays
/// valid whatever other threads insert and remove. To only iterate, use [`Map::range_owned`].
///
/// A cursor stands at an entry, before the first entry, or after the last one. It keeps the map
/// alive; it does not keep removed entries from being freed.
///
/// # An entry that is removed
/// If another thread removes the entry at which a cursor stands, the cursor keeps its place:
/// [`Cursor::key`] returns the key, and the next move continues from there. [`Cursor::current`]
/// then returns `Some((key, None))`. It returns `None` only if the cursor stands at no entry. So a
/// loop over [`Cursor::current`] does not end early:
///
/// ```
/// use silvics::Map;
/// use std::sync::Arc;
///
/// let map: Arc<Map<String, Vec<u32>>> = Arc::new(Map::new());
/// map.extend([("a", vec![1]), ("b", vec![2, 2]), ("c", vec![]), ("d", vec![4])]);
/// let mut cursor = map.cursor();
/// cursor.seek("aa");
/// map.remove("b");
/// let scan = std::thread::spawn(move || {
///     let mut seen = Vec::new();
///     while let Some((key, value)) = cursor.current() {
///         seen.push((key.to_string(), value.map(|value| value.len())));
///         cursor.next();
///     }
///     seen
/// });
/// let wanted = [("b", None), ("c", Some(0)), ("d", Some(1))];
/// assert_eq!(scan.join().unwrap(), wanted.map(|(key, len)| (key.to_string(), len)));
/// ```
///
/// # The value of the entry
/// [`Cursor::current`] looks the value up and clones it, except in two cases. [Small
/// values](crate::map::Value) are copied together with the keys. So are all values after
/// [`Cursor::values_ahead`]: call it if clones are cheap, as those of `Copy` types and of `Arc`s
/// are.
///
/// # Guarantee under concurrent writes
/// Moves in one direction have the guarantee of a scan ([`View::range`](super::View::range)). A
/// cursor reads up to 512 entries ahead. A write to one of these entries may go unnoticed, as if it
/// happened after the cursor had passed. [`Cursor::with_current`] reads the present value.
pub struct Cursor<K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: Arc<Map<K, V, I>>,
    bounds: Kept<K>,
    /// The copied entries in the order of the scan.
    copies: Copies<K, V>,
    /// The buffer for the next copies.
    spare: Copies<K, V>,
    /// Copies the values together with the keys, if it is given.
    clone: Option<fn(&V) -> V>,
    /// Whether the copies are in descending order. Without copies: whether the cursor stands before
    /// the first entry (true) or after the last one.
    descends: bool,
    /// The index of the copy that the cursor stands at, if there are copies.
    at: usize,
    /// The number of entries copied since the cursor last turned or was sent to a place.
    copied: usize,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Cursor<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// The bound of the two that excludes more, where `is_past(a, b)` says that `a` excludes more keys
/// than `b`.
fn narrower<R: PartialEq>(a: Bound<R>, b: Bound<R>, is_past: fn(&R, &R) -> bool) -> Bound<R> {
    use Bound::{Excluded, Included, Unbounded};
    let is_narrower = match (&a, &b) {
        (Unbounded, _) => false,
        (_, Unbounded) => true,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) if a != b => is_past(a, b),
        (a, _) => matches!(a, Excluded(_)),
    };
    if is_narrower { a } else { b }
}

/// The place where a cursor begins to read.
enum Place<'a, K: Key> {
    /// The first entry within the bounds, or the last one if the cursor descends.
    End,
    /// The nearest entry at or beyond a key.
    Key(FormRef<'a, K>),
    /// The nearest entry beyond the one that the cursor stands at.
    Beyond,
}

/// Positions that own the memory they need.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// A cursor, before the first entry, that keeps the map alive.
    pub fn cursor(self: &Arc<Self>) -> Cursor<K, V, I> {
        self.cursor_range(..)
    }

    /// A cursor that sees only the entries of `range`, before the first of them, and keeps the map
    /// alive. A range whose start is past its end is empty.
    ///
    /// ```
    /// let map: silvics::Map<u64, u64> = (0..100).map(|n| (n, n)).collect();
    /// let map = std::sync::Arc::new(map);
    /// let mut cursor = map.cursor_range(10..20);
    /// assert!(cursor.seek_to_last() && cursor.key() == Some(19) && !cursor.next());
    /// assert!(cursor.seek(0) && cursor.key() == Some(10) && !cursor.prev());
    /// assert!(!cursor.seek(20));
    /// ```
    pub fn cursor_range(self: &Arc<Self>, range: impl KeyRange<K>) -> Cursor<K, V, I> {
        Cursor::new(Arc::clone(self), range.keep())
    }
}

impl<K: Key<Form = [u8]>, V: Value, I: MapIndex<Key = [u8]>> Map<K, V, I> {
    /// A cursor that sees only the entries whose keys begin with `prefix`, before the first of
    /// them, and keeps the map alive.
    ///
    /// ```
    /// let map: silvics::Map<String, u32> = [("ab", 1), ("abc", 2), ("b", 3)].into_iter().collect();
    /// let mut cursor = std::sync::Arc::new(map).cursor_prefix("ab");
    /// assert!(cursor.seek_to_last() && cursor.key() == Some("abc") && !cursor.next());
    /// ```
    pub fn cursor_prefix(self: &Arc<Self>, prefix: impl AsPrefix<K>) -> Cursor<K, V, I> {
        Cursor::new(Arc::clone(self), Self::prefixed(&prefix))
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Cursor<K, V, I> {
    fn new(map: Arc<Map<K, V, I>>, bounds: Kept<K>) -> Self {
        let (copies, spare) = Default::default();
        Self { map, bounds, copies, spare, clone: None, descends: true, at: 0, copied: 0 }
    }

    /// The map.
    pub fn map(&self) -> &Arc<Map<K, V, I>> {
        &self.map
    }

    /// Lets the next moves copy values together with the keys, so that [`Cursor::current`] needs no
    /// lookup. It then returns the value that the cursor has read ahead, also if the key was
    /// removed or replaced meanwhile.
    ///
    /// A move clones up to 512 values ahead, under a pin. The cursor keeps the values of the batch
    /// before, too, until the next batch. `V::clone` may call the map. If it panics, the cursor
    /// stays where it is.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let map: Arc<silvics::Map<u64, Arc<str>>> = Arc::default();
    /// map.extend([(1, "one".into()), (2, "two".into())]);
    /// let mut cursor = map.cursor().values_ahead();
    /// assert!(cursor.next());
    /// assert_eq!(cursor.current(), Some((1, Some("one".into()))));
    /// ```
    #[must_use]
    pub fn values_ahead(mut self) -> Self
    where
        V: Clone,
    {
        self.clone = Some(V::clone);
        self
    }

    /// Copies some entries from a place on, and stands at the first one. Returns whether
    /// there is one.
    fn fill(&mut self, from: &Place<'_, K>, descends: bool) -> bool {
        let Self { map, bounds, copies, spare, clone, .. } = self;
        let goes_on = matches!(from, Place::Beyond) && self.descends == descends;
        let copied = if goes_on { self.copied } else { 0 };
        let from = match from {
            Place::End => Bound::Unbounded,
            Place::Key(form) => Bound::Included(short::<K>(*form)),
            Place::Beyond => Bound::Excluded(copies.key(self.at)),
        };
        let most = match SUMS.iter().find(|&&sum| sum > copied) {
            _ if copied == 0 => FIRST,
            Some(sum) => sum - copied,
            None => copied.min(MOST),
        };
        let (low, high) = (kept::<K>(&bounds.0), kept::<K>(&bounds.1));
        let gap = if descends {
            (low, narrower(from, high, |a, b| a < b))
        } else {
            (narrower(from, low, |a, b| a > b), high)
        };
        spare.read(map, gap, (most, descends), *clone);
        swap(copies, spare);
        (self.descends, self.at) = (descends, 0);
        self.copied = copied + self.copies.count();
        self.copies.count() > 0
    }

    /// Moves to the first entry at or after `key`. Returns whether there is one; if not, the cursor
    /// is after the last entry.
    pub fn seek(&mut self, key: impl AsKey<K>) -> bool {
        key.with_form(|form| self.fill(&Place::Key(form), false))
    }

    /// Moves to the last entry at or before `key`. Returns whether there is one; if not, the cursor
    /// is before the first entry.
    pub fn seek_for_prev(&mut self, key: impl AsKey<K>) -> bool {
        key.with_form(|form| self.fill(&Place::Key(form), true))
    }

    /// Moves to the first entry. Returns whether there is one.
    pub fn seek_to_first(&mut self) -> bool {
        self.fill(&Place::End, false)
    }

    /// Moves to the last entry. Returns whether there is one.
    pub fn seek_to_last(&mut self) -> bool {
        self.fill(&Place::End, true)
    }

    /// Moves to the next entry; from before the first entry, to the first one. Returns whether
    /// there is one.
    #[inline]
    #[allow(clippy::should_implement_trait)] // the current entry borrows the cursor
    pub fn next(&mut self) -> bool {
        self.step(false)
    }

    /// Moves to the previous entry; from after the last entry, to the last one. Returns whether
    /// there is one.
    #[inline]
    pub fn prev(&mut self) -> bool {
        self.step(true)
    }

    #[inline]
    fn step(&mut self, descends: bool) -> bool {
        if self.descends == descends && self.at + 1 < self.copies.count() {
            self.at += 1;
            return true;
        }
        self.step_on(descends)
    }

    /// A step past the copied entries.
    #[inline(never)] // so that the steps between are a few instructions
    fn step_on(&mut self, descends: bool) -> bool {
        if self.copies.count() > 0 {
            return self.fill(&Place::Beyond, descends);
        }
        self.descends != descends && self.fill(&Place::End, descends)
    }

    /// The form of the key that the cursor stands at.
    #[inline]
    fn form(&self) -> Option<FormRef<'_, K>> {
        (self.copies.count() > 0).then(|| self.copies.key(self.at))
    }

    /// The key that the cursor stands at, whether it is still present or not.
    #[inline]
    pub fn key(&self) -> Option<K::Ref<'_>> {
        self.form().map(Map::<K, V, I>::key_of)
    }

    /// The key that the cursor stands at and a clone of its value; `None` if the cursor stands at
    /// no entry. The value is `None` if the key was removed since the cursor came to it.
    ///
    /// A number, and any value after [`Cursor::values_ahead`], is the value that the cursor read
    /// ahead, and never `None`. Any other value is the present one: the call pins the map and looks
    /// the key up. `V::clone` then runs under the pin.
    #[inline]
    pub fn current(&self) -> Option<(K::Ref<'_>, Option<V>)>
    where
        V: Clone,
    {
        match self.copies.value(self.at) {
            Some(value) => {
                let key = Map::<K, V, I>::key_of(self.copies.key(self.at));
                Some((key, Some(value.clone())))
            }
            None => self.looked_up(),
        }
    }

    /// The key that the cursor stands at and a clone of its present value.
    #[inline(never)]
    fn looked_up(&self) -> Option<(K::Ref<'_>, Option<V>)>
    where
        V: Clone,
    {
        self.with_current(|key, value| (key, value.cloned()))
    }

    /// Calls `call` with the key that the cursor stands at and its present value, `None` if the key
    /// was removed since. Returns the result, or `None` if the cursor stands at no entry. The map
    /// is pinned while `call` runs.
    pub fn with_current<'c, R>(
        &'c self,
        call: impl FnOnce(K::Ref<'c>, Option<&V>) -> R,
    ) -> Option<R> {
        let form = self.form()?;
        let guard = self.map.one_shot();
        let word = self.map.index.get(short::<K>(form), &guard);
        let value = word.map(|word| self.map.values.lent(word, (&guard).into()));
        Some(call(Map::<K, V, I>::key_of(form), value.as_deref()))
    }
}
