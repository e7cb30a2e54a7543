//! A position in a map that owns the memory it needs.
//!
//! # Algorithm
//! A cursor holds copies of some consecutive keys, and stands at one of them. To move past the last
//! copy it pins, copies the next keys from the index, and unpins. It copies two keys at first, and
//! then twice as many each time, up to [`MOST`]. So a long scan costs a search and a pin per
//! [`MOST`] entries, and a cursor that is moved at random copies few keys.

use super::key::{AsKey, Form, Forms, Key};
use super::{Map, MapIndex, Value, ValueRef};
use crate::encoding::IndexKey;
use crate::index::KeyRef;
use std::fmt;
use std::mem::{swap, take};
use std::ops::Bound;
use std::sync::Arc;

/// The most entries that are copied at once.
const MOST: usize = 64;
/// The number of entries that are copied first.
const FIRST: usize = 2;

/// An owned position in a [`Map`], made by [`Map::cursor`]. It can be sent to another thread, pins
/// nothing between calls, and stays valid whatever other threads insert and remove.
///
/// A cursor stands at an entry, before the first entry, or after the last one. It keeps the map
/// alive; it does not keep removed entries from being freed.
///
/// # Guarantee under concurrent writes
/// Moves in one direction have the guarantee of a scan ([`View::range`](super::View::range)). A
/// cursor reads up to 64 entries ahead. A write to one of these entries may go unnoticed, as if it
/// happened after the cursor had passed. [`Cursor::with_current`] reads the present value.
///
/// ```
/// use silvics::Map;
/// use std::sync::Arc;
///
/// let map: Arc<Map<String, Vec<u32>>> = Arc::new(Map::new());
/// map.extend([("a", vec![1]), ("b", vec![2, 2]), ("c", vec![])]);
/// let mut cursor = map.cursor();
/// let scan = std::thread::spawn(move || {
///     let mut seen = Vec::new();
///     cursor.seek("aa");
///     while let Some((key, value)) = cursor.current() {
///         seen.push((key.to_string(), value.len()));
///         cursor.next();
///     }
///     seen
/// });
/// assert_eq!(scan.join().unwrap(), [("b".to_string(), 2), ("c".to_string(), 0)]);
/// ```
pub struct Cursor<K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    map: Arc<Map<K, V, I>>,
    /// The copied keys in the order of the scan, and the words of their values.
    keys: <K::Form as Form>::Forms,
    words: Vec<u64>,
    /// Whether the keys are in descending order. Without keys: whether the cursor stands before the
    /// first entry (true) or after the last one.
    descends: bool,
    /// The index of the key that the cursor stands at, if there are keys.
    at: usize,
    /// The buffer for the next keys.
    spare: <K::Form as Form>::Forms,
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Cursor<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("key", &self.key()).finish_non_exhaustive()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Cursor<K, V, I> {
    pub(super) fn new(map: Arc<Map<K, V, I>>) -> Self {
        let (keys, spare) = Default::default();
        Self { map, keys, words: Vec::new(), descends: true, at: 0, spare }
    }

    /// The map.
    pub fn map(&self) -> &Arc<Map<K, V, I>> {
        &self.map
    }

    /// Copies up to `most` keys from `from` on, and stands at the first one. Returns whether there
    /// is one.
    fn fill(&mut self, from: Bound<KeyRef<'_, I>>, most: usize, descends: bool) -> bool {
        (self.descends, self.at) = (descends, 0);
        let Self { map, keys, words, .. } = self;
        keys.clear();
        words.clear();
        let guard = map.one_shot();
        let from = from.map(<K::Form as IndexKey>::shorten);
        map.index.read_ahead((from, descends), most, &guard, |key, word| {
            keys.push(key);
            words.push(word);
        });
        !words.is_empty()
    }

    /// Moves to the first entry at or after `key`. Returns whether there is one.
    pub fn seek(&mut self, key: impl AsKey<K>) -> bool {
        key.with_form(|form| self.fill(Bound::Included(form), FIRST, false))
    }

    /// Moves to the last entry at or before `key`. Returns whether there is one.
    pub fn seek_for_prev(&mut self, key: impl AsKey<K>) -> bool {
        key.with_form(|form| self.fill(Bound::Included(form), FIRST, true))
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
        if self.descends == descends && self.at + 1 < self.words.len() {
            self.at += 1;
            return true;
        }
        self.step_on(descends)
    }

    /// A step past the copied keys.
    fn step_on(&mut self, descends: bool) -> bool {
        let turns = self.descends != descends;
        if self.words.is_empty() {
            return turns && self.fill(Bound::Unbounded, FIRST, descends);
        }
        let most = if turns { FIRST } else { (2 * self.words.len()).clamp(FIRST, MOST) };
        swap(&mut self.keys, &mut self.spare);
        let before = take(&mut self.spare);
        let found = self.fill(Bound::Excluded(before.get(self.at)), most, descends);
        self.spare = before;
        found
    }

    /// The key that the cursor stands at.
    #[inline]
    pub fn key(&self) -> Option<K::Ref<'_>> {
        (!self.words.is_empty()).then(|| Map::<K, V, I>::key_of(self.keys.get(self.at)))
    }

    /// The entry that the cursor stands at, with a copy of its value. A number is the value that
    /// the cursor read ahead; any other value is the present one, and the result is `None` if the
    /// key was removed meanwhile.
    #[inline]
    pub fn current(&self) -> Option<(K::Ref<'_>, V)>
    where
        V: Clone,
    {
        let &word = self.words[..].get(self.at)?;
        let form = self.keys.get(self.at);
        if super::value::inline::<V>() {
            // SAFETY: M1: for this type the word is the value itself, so no guard need protect it.
            let value = unsafe { ValueRef::<V>::new(word) };
            return Some((Map::<K, V, I>::key_of(form), V::clone(&value)));
        }
        let guard = self.map.one_shot();
        let word = self.map.index.get(<K::Form as IndexKey>::shorten(form), &guard)?;
        let value = self.map.lent(word, (&guard).into());
        Some((Map::<K, V, I>::key_of(form), V::clone(&value)))
    }

    /// Calls `call` with the entry that the cursor stands at and its present value, and returns the
    /// result. Returns `None` if the key was removed meanwhile. The map is pinned while `call`
    /// runs.
    pub fn with_current<R>(&self, call: impl FnOnce(K::Ref<'_>, &V) -> R) -> Option<R> {
        self.words[..].get(self.at)?;
        let form = self.keys.get(self.at);
        let guard = self.map.one_shot();
        let word = self.map.index.get(<K::Form as IndexKey>::shorten(form), &guard)?;
        let value = self.map.lent(word, (&guard).into());
        Some(call(Map::<K, V, I>::key_of(form), &value))
    }
}
