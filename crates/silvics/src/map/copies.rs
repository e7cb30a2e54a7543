//! Copies of consecutive entries of a map, which need no pin.

use super::batched::{Buffer, Gap};
use super::key::{Form, FormRef, Forms, Key};
use super::lend::Lends;
use super::ops::short;
use super::value::{fetch, inline, inlined};
use super::{Map, MapIndex, Value};

/// The number of entries that there is room for at least, so that small batches allocate once.
const LEAST_ROOM: usize = 26;

/// Copied keys in the order of a scan, and copies of their values.
pub(super) struct Copies<K: Key, V> {
    keys: <K::Form as Form>::Forms,
    /// The words of the values. Unless the type of the values is [`inline`], the map may have freed
    /// the values by now.
    words: Vec<u64>,
    /// Copies of the values, if they are not in the words and were asked for; else nothing. A copy
    /// that was moved out leaves `None`.
    values: Vec<Option<V>>,
}

impl<K: Key, V> Default for Copies<K, V> {
    fn default() -> Self {
        Self { keys: Default::default(), words: Vec::new(), values: Vec::new() }
    }
}

impl<K: Key, V> Buffer<K> for Copies<K, V> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.words.len()
    }

    #[inline(always)]
    fn key(&self, at: usize) -> FormRef<'_, K> {
        self.keys.get(at)
    }
}

impl<K: Key, V: Value> Copies<K, V> {
    /// Copies up to `most` entries between two bounds, from the last one on if `descends`, in place
    /// of the present copies. Values are copied by `clone` if it is given, and always if they are
    /// in the words of the index.
    ///
    /// The map is pinned meanwhile. All keys are copied before the first value, so that `clone`
    /// runs outside the index and finds the values prefetched.
    pub(super) fn read<I: MapIndex<Key = K::Form>>(
        &mut self,
        map: &Map<K, V, I>,
        (from, to): Gap<'_, K>,
        (most, descends): (usize, bool),
        clone: Option<impl Fn(&V) -> V>,
    ) {
        let Self { keys, words, values } = self;
        keys.clear();
        words.clear();
        values.clear();
        keys.make_room(most.max(LEAST_ROOM));
        words.reserve(most.max(LEAST_ROOM));
        let guard = map.one_shot();
        let bounds = (from.map(short::<K>), to.map(short::<K>));
        map.index.read_ahead(bounds, descends, most, &guard, |key, word| {
            keys.push(key);
            words.push(word);
            if !inline::<V>() {
                fetch::<V>(word);
            }
        });
        if let Some(clone) = clone.filter(|_| !inline::<V>()) {
            let copy = |&word: &u64| Some(clone(&map.values.lent(word, (&guard).into())));
            values.extend(words.iter().map(copy));
        }
    }

    /// The copy of a value, if there is one that was not moved out.
    #[inline(always)]
    pub(super) fn value(&self, at: usize) -> Option<&V> {
        if inline::<V>() {
            // SAFETY: M1: the words are those of values.
            return self.words[..].get(at).map(|word| unsafe { inlined(word) });
        }
        self.values.get(at)?.as_ref()
    }

    /// Moves a value out, if there is a copy.
    #[inline(always)]
    pub(super) fn take(&mut self, at: usize) -> Option<V>
    where
        V: Clone,
    {
        if inline::<V>() { self.value(at).cloned() } else { self.values.get_mut(at)?.take() }
    }
}
