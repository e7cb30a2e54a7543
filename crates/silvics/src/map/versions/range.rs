//! Ranges of a snapshot.
//!
//! A range reads a batch of entries under a pin, as `batched.rs` describes. It leaves out keys that
//! the snapshot does not see. Entries stay readable without the pin (N3).

use super::node::Word;
use super::snapshot::{HoldsVersions, Snapshot};
use crate::domain::Guard;
use crate::index::Lookup;
use crate::map::batched::{Batched, Buffer, Gap};
use crate::map::key::{Form, FormRef, Forms, Key};
use crate::map::ops::short;
use crate::map::scan::KeyRange;
use crate::map::{Map, MapIndex, Value};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::ptr::NonNull;

/// The keys that are read at once, after some that the snapshot does not see.
const AT_ONCE: usize = 256;

/// The entries of a batch.
struct Entries<K: Key, V> {
    keys: <K::Form as Form>::Forms,
    /// Values that the snapshot of the range keeps.
    values: Vec<NonNull<V>>,
    /// The words of the newest objects of keys that were read.
    words: Vec<u64>,
}

// SAFETY: the pointers are used as references to `V`, which threads share.
unsafe impl<K: Key, V: Sync> Send for Entries<K, V> {}

impl<K: Key, V> Default for Entries<K, V> {
    fn default() -> Self {
        let (values, words) = Default::default();
        Self { keys: Default::default(), values, words }
    }
}

impl<K: Key, V> Buffer<K> for Entries<K, V> {
    #[inline]
    fn count(&self) -> usize {
        self.values.len()
    }

    #[inline]
    fn key(&self, at: usize) -> FormRef<'_, K> {
        self.keys.get(at)
    }
}

impl<K: Key, V: Value> Entries<K, V> {
    /// Reads up to `most` entries that the snapshot sees, from the last one on if `descends`.
    fn read<M: HoldsVersions<Key = K, Value = V>>(
        &mut self,
        snapshot: &Snapshot<M>,
        (from, to): Gap<'_, K>,
        (most, descends): (usize, bool),
    ) {
        let Self { keys, values, words, .. } = self;
        keys.clear();
        values.clear();
        words.clear();
        keys.make_room(most);
        let map = snapshot.map();
        let mut guard = map.index.domain().pin();
        let bounds = (from.map(short::<K>), to.map(short::<K>));
        map.index.read_ahead(bounds, descends, most, &guard, |key, word| {
            Word(word).prefetch();
            keys.push(key);
            words.push(word);
        });
        // SAFETY: the words were read in the index of the map under the guard.
        let value = |word: &u64, guard: &Guard| unsafe { snapshot.value_of(Word(*word), guard) };
        values.extend(words.iter().map_while(|word| value(word, &guard)));
        if values.len() == words.len() {
            return;
        }
        // The snapshot does not see all of these keys: leave the others out, and read on.
        let mut last = Some(K::Form::keep(keys.get(words.len() - 1)));
        let mut seen = <K::Form as Form>::Forms::default();
        (0..values.len()).for_each(|at| seen.push(keys.get(at)));
        for (at, word) in words.iter().enumerate().skip(values.len()) {
            if let Some(value) = value(word, &guard) {
                seen.push(keys.get(at));
                values.push(value);
            }
        }
        let mut is_last = words.len() < most;
        while values.len() < most && !is_last {
            guard.repin(); // the values that were found need no pin
            keys.clear();
            words.clear();
            let passed = last.take().unwrap_or_else(|| unreachable!("it is set below"));
            let passed = Bound::Excluded(K::Form::kept(&passed));
            let mut bounds = (from.map(short::<K>), to.map(short::<K>));
            *(if descends { &mut bounds.1 } else { &mut bounds.0 }) = passed;
            map.index.read_ahead(bounds, descends, AT_ONCE, &guard, |key, word| {
                Word(word).prefetch();
                keys.push(key);
                words.push(word);
            });
            is_last = words.len() < AT_ONCE;
            for (at, word) in words.iter().enumerate() {
                if let Some(value) = value(word, &guard) {
                    seen.push(keys.get(at));
                    values.push(value);
                }
                if values.len() == most {
                    break;
                }
            }
            last = words.len().checked_sub(1).map(|at| K::Form::keep(keys.get(at)));
        }
        *keys = seen;
    }
}

/// An entry that borrows a range, and its value that borrows the snapshot.
type Lent<'r, 's, M> =
    (<<M as HoldsVersions>::Key as Key>::Ref<'r>, &'s <M as HoldsVersions>::Value);

/// The map of a holder, with its index.
type Decoder<M> =
    Map<<M as HoldsVersions>::Key, <M as HoldsVersions>::Value, <M as HoldsVersions>::Index>;

macro_rules! steps {
    () => {
        /// The batch with the next entry, and its number there.
        #[inline(always)]
        fn step<const REV: bool>(&mut self) -> Option<(&mut Entries<M::Key, M::Value>, usize)> {
            let snapshot = &self.snapshot;
            self.entries.next::<REV>(|gap, most, entries: &mut Entries<M::Key, M::Value>| {
                entries.read(snapshot, gap, (most, REV));
            })
        }
    };
}

/// A double-ended range of a [`Snapshot`], made by [`Snapshot::range`]. Values borrow the snapshot.
pub struct VersionRange<'s, M: HoldsVersions> {
    snapshot: &'s Snapshot<M>,
    entries: Batched<M::Key, Entries<M::Key, M::Value>>,
}

impl<'s, M: HoldsVersions> VersionRange<'s, M> {
    pub(super) fn new(snapshot: &'s Snapshot<M>, range: impl KeyRange<M::Key>) -> Self {
        Self { snapshot, entries: Batched::new(range.keep()) }
    }

    steps!();

    #[inline(always)]
    fn lent<const REV: bool>(&mut self) -> Option<Lent<'_, 's, M>> {
        let (entries, at) = self.step::<REV>()?;
        // SAFETY: N3: the snapshot keeps the value for `'s`.
        let value = unsafe { entries.values[at].as_ref() };
        Some((Decoder::<M>::key_of(entries.key(at)), value))
    }

    /// Takes the next entry from the front. The key is valid until the next step.
    pub fn next_ref(&mut self) -> Option<Lent<'_, 's, M>> {
        self.lent::<false>()
    }

    /// Takes the next entry from the back. The key is valid until the next step.
    pub fn next_back_ref(&mut self) -> Option<Lent<'_, 's, M>> {
        self.lent::<true>()
    }
}

impl<'s, M: HoldsVersions> Iterator for VersionRange<'s, M> {
    type Item = (M::Key, &'s M::Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.lent::<false>().map(|(key, value)| (M::Key::to_owned(key), value))
    }
}

impl<M: HoldsVersions> DoubleEndedIterator for VersionRange<'_, M> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.lent::<true>().map(|(key, value)| (M::Key::to_owned(key), value))
    }
}

impl<M: HoldsVersions> FusedIterator for VersionRange<'_, M> {}

impl<M: HoldsVersions> fmt::Debug for VersionRange<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionRange").field("snapshot", self.snapshot).finish_non_exhaustive()
    }
}

/// A double-ended range that owns its [`Snapshot`] and returns copies, made by
/// [`Snapshot::into_range`] and [`VersionedMap::range_at`](super::VersionedMap::range_at).
pub struct OwnedVersionRange<M: HoldsVersions> {
    entries: Batched<M::Key, Entries<M::Key, M::Value>>,
    snapshot: Snapshot<M>,
}

impl<M: HoldsVersions> OwnedVersionRange<M> {
    pub(super) fn new(snapshot: Snapshot<M>, range: impl KeyRange<M::Key>) -> Self {
        Self { entries: Batched::new(range.keep()), snapshot }
    }

    steps!();

    #[inline(always)]
    fn lent<const REV: bool>(&mut self) -> Option<Lent<'_, '_, M>> {
        let (entries, at) = self.step::<REV>()?;
        // SAFETY: N3: the snapshot keeps the value while the range is borrowed.
        let value = unsafe { entries.values[at].as_ref() };
        Some((Decoder::<M>::key_of(entries.key(at)), value))
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &Snapshot<M> {
        &self.snapshot
    }

    /// Takes the next entry from the front. It is valid until the next step.
    pub fn next_ref(&mut self) -> Option<Lent<'_, '_, M>> {
        self.lent::<false>()
    }

    /// Takes the next entry from the back. It is valid until the next step.
    pub fn next_back_ref(&mut self) -> Option<Lent<'_, '_, M>> {
        self.lent::<true>()
    }
}

impl<M: HoldsVersions<Value: Clone>> Iterator for OwnedVersionRange<M> {
    type Item = (M::Key, M::Value);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.lent::<false>().map(|(key, value)| (M::Key::to_owned(key), value.clone()))
    }
}

impl<M: HoldsVersions<Value: Clone>> DoubleEndedIterator for OwnedVersionRange<M> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.lent::<true>().map(|(key, value)| (M::Key::to_owned(key), value.clone()))
    }
}

impl<M: HoldsVersions<Value: Clone>> FusedIterator for OwnedVersionRange<M> {}

impl<M: HoldsVersions> fmt::Debug for OwnedVersionRange<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("OwnedVersionRange");
        debug.field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}
