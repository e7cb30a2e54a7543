//! A position in a map that owns what it needs.
//!
//! # Algorithm
//! A cursor has copies of some keys in a row, and stands at one of them. Where they end it pins, copies as many as twice
//! those of before from the index, from the last one on, and unpins: first two, then up to [`MOST`]. So a scan costs
//! a search and a pin per [`MOST`] entries, and a cursor that is moved here and there copies little.

use super::key::{AsKey, Form, Forms, Key};
use super::{Map, MapIndex, Value, ValueRef};
use crate::encoding::IndexKey;
use crate::index::KeyRef;
use std::fmt;
use std::mem::{swap, take};
use std::ops::Bound;
use std::sync::Arc;

/// Entries that are copied at once, at most …
const MOST: usize = 64;
/// … and at first.
const FIRST: usize = 2;

/// A position in a [`Map`] that is owned, can be sent to another thread, pins nothing between calls, and stays valid
/// whatever others insert and remove: made by [`Map::cursor`].
///
/// It stands at an entry, before the first or after the last. A cursor that is forgotten keeps the map alive, and
/// holds no memory back beside.
///
/// # Guarantee under concurrent writes
/// A run of moves in one direction is a scan ([`View::range`](super::View::range)): keys come in strict order, none twice, and those that are
/// present throughout are seen. It has read up to 64 entries ahead: an entry that is inserted or removed within
/// these may be missed, or seen, as if that happened after the cursor had passed. [`Cursor::with_current`] tells what is
/// there now.
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
    /// Keys in the order in which they come, and the words of their values.
    keys: <K::Form as Form>::Forms,
    words: Vec<u64>,
    /// Whether they come in descending order; if there are none, whether it stands before the first entry or after
    /// the last.
    descends: bool,
    /// The number of the key where it stands, if there are any.
    at: usize,
    /// For the next ones.
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

    /// Copies up to `most` keys from `from` on, and stands at the first; whether there is one.
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

    /// Moves to the first entry at or after `key`; whether there is one.
    pub fn seek(&mut self, key: impl AsKey<K>) -> bool {
        key.with_form(|form| self.fill(Bound::Included(form), FIRST, false))
    }

    /// Moves to the last entry at or before `key`; whether there is one.
    pub fn seek_for_prev(&mut self, key: impl AsKey<K>) -> bool {
        key.with_form(|form| self.fill(Bound::Included(form), FIRST, true))
    }

    /// Moves to the next entry (from before the first, to the first); whether there is one.
    #[inline]
    #[allow(clippy::should_implement_trait)] // what is current borrows the cursor
    pub fn next(&mut self) -> bool {
        self.step(false)
    }

    /// Moves to the previous entry (from after the last, to the last); whether there is one.
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

    /// A step out of what is copied.
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

    /// The key it stands at.
    #[inline]
    pub fn key(&self) -> Option<K::Ref<'_>> {
        (!self.words.is_empty()).then(|| Map::<K, V, I>::key_of(self.keys.get(self.at)))
    }

    /// The entry it stands at, with a copy of its value: a number as it was when the cursor read it, any other value as
    /// it is now, and nothing if its key has been removed meanwhile.
    #[inline]
    pub fn current(&self) -> Option<(K::Ref<'_>, V)>
    where
        V: Clone,
    {
        let &word = self.words[..].get(self.at)?;
        let form = self.keys.get(self.at);
        if super::value::inline::<V>() {
            // SAFETY: a word of the map's index; it is the value, and protected by nothing.
            let value = unsafe { ValueRef::<V>::new(word) };
            return Some((Map::<K, V, I>::key_of(form), V::clone(&value)));
        }
        let guard = self.map.one_shot();
        let word = self.map.index.get(<K::Form as IndexKey>::shorten(form), &guard)?;
        let value = self.map.lent(word, (&guard).into());
        Some((Map::<K, V, I>::key_of(form), V::clone(&value)))
    }

    /// What `call` makes of the entry it stands at, with the value that it has now; nothing if its key has been removed
    /// meanwhile. The map is pinned while `call` runs.
    pub fn with_current<R>(&self, call: impl FnOnce(K::Ref<'_>, &V) -> R) -> Option<R> {
        self.words[..].get(self.at)?;
        let form = self.keys.get(self.at);
        let guard = self.map.one_shot();
        let word = self.map.index.get(<K::Form as IndexKey>::shorten(form), &guard)?;
        let value = self.map.lent(word, (&guard).into());
        Some(call(Map::<K, V, I>::key_of(form), &value))
    }
}
