//! Leaves: one to four keys and their values.

use super::word::{Object, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The keys of a leaf, at most.
pub(super) const LEAF_KEYS: usize = 4;

/// A leaf of `N` keys.
#[repr(C)]
pub(super) struct Leaf<const N: usize> {
    keys: [u64; N],
    values: [AtomicU64; N],
}

const fn layout<const N: usize>(
    kind: &'static str,
    search: &'static [Field],
    found: &'static [Field],
) -> NodeLayout {
    NodeLayout { kind, size: size_of::<Leaf<N>>(), align: 8, search, found }
}

/// The layouts of leaves, by the number of keys less one.
pub(super) static LEAVES: [NodeLayout; LEAF_KEYS] = [
    layout::<1>("leaf1", &[], &[Field::new("keys", 0, 8), Field::new("values", 8, 8)]),
    layout::<2>("leaf2", &[], &[Field::new("keys", 0, 16), Field::new("values", 16, 16)]),
    layout::<3>("leaf3", &[], &[Field::new("keys", 0, 24), Field::new("values", 24, 24)]),
    layout::<4>("leaf4", &[], &[Field::new("keys", 0, 32), Field::new("values", 32, 32)]),
];
#[cfg(not(silvics_loom))] // whose atomics are larger
const _: () = assert!(size_of::<Leaf<4>>() == 64);

impl<const N: usize> Leaf<N> {
    /// A leaf of these entries, in ascending order of their keys.
    pub(super) fn new(entries: &[(u64, u64); N]) -> Self {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
        Self { keys: entries.map(|of| of.0), values: entries.map(|of| AtomicU64::new(of.1)) }
    }
}

/// A leaf that is not reclaimed as long as `'g` lasts.
#[derive(Clone, Copy)]
pub(super) struct LeafRef<'g> {
    /// The keys, and behind them the values.
    words: *mut u64,
    len: usize,
    marker: PhantomData<&'g Object>,
}

impl<'g> LeafRef<'g> {
    /// # Safety
    /// The word leads to a leaf, which is not reclaimed as long as `'g` lasts.
    #[inline(always)]
    pub(super) unsafe fn from_word(word: Word) -> Self {
        Self { words: word.object().cast(), len: word.keys(), marker: PhantomData }
    }

    /// How many keys it has.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn key(self, at: usize) -> u64 {
        debug_assert!(at < self.len);
        // SAFETY: I1, I5: within the leaf, and never changed.
        unsafe { touch(self.words).add(at).read() }
    }

    #[inline(always)]
    fn value_word(self, at: usize) -> &'g AtomicU64 {
        debug_assert!(at < self.len);
        // SAFETY: I5: the values follow the keys.
        unsafe { &*self.words.add(self.len + at).cast::<AtomicU64>() }
    }

    #[inline(always)]
    pub(super) fn value(self, at: usize) -> u64 {
        self.value_word(at).load(Ordering::SeqCst)
    }

    /// Under the lock of the node that leads to it.
    #[inline]
    pub(super) fn set_value(self, at: usize, value: u64) {
        self.value_word(at).store(value, Ordering::SeqCst);
    }

    /// Where a key is. Without a branch: how many keys a leaf has, and whether a key is there, is
    /// nothing that a processor can guess.
    #[inline(always)]
    pub(super) fn find(self, key: u64) -> Option<usize> {
        let last = self.len - 1;
        let mut found = LEAF_KEYS;
        for at in 0..LEAF_KEYS {
            let at = at.min(last);
            found = if self.key(at) == key { at } else { found };
        }
        (found < LEAF_KEYS).then_some(found)
    }

    /// The value of a key, in the same way.
    #[inline(always)]
    pub(super) fn get(self, key: u64) -> Option<u64> {
        let at = self.find(key);
        let value = self.value(at.unwrap_or(0));
        at.map(|_| value)
    }
}

/// Up to one entry more than a leaf has, ascending.
#[derive(Clone, Copy, Default)]
pub(super) struct Entries {
    entries: [(u64, u64); LEAF_KEYS + 1],
    len: usize,
}

impl Entries {
    /// Those of a leaf; under the lock of the node that leads to it, so that values stay what they are.
    pub(super) fn of(leaf: LeafRef<'_>) -> Self {
        let mut entries = Self::default();
        (0..leaf.len()).for_each(|at| entries.push(leaf.key(at), leaf.value(at)));
        entries
    }

    /// Adds one behind the others.
    pub(super) fn push(&mut self, key: u64, value: u64) {
        self.entries[self.len] = (key, value);
        self.len += 1;
    }

    #[must_use]
    pub(super) fn with(mut self, key: u64, value: u64) -> Self {
        let at = self.as_slice().partition_point(|entry| entry.0 < key);
        self.entries.copy_within(at..self.len, at + 1);
        self.entries[at] = (key, value);
        self.len += 1;
        self
    }

    #[must_use]
    pub(super) fn without(mut self, at: usize) -> Self {
        self.entries.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self
    }

    pub(super) fn as_slice(&self) -> &[(u64, u64)] {
        &self.entries[..self.len]
    }
}

/// A leaf's pointer, to be freed or retired as what it is.
pub(super) fn typed<const N: usize>(word: Word) -> NonNull<Leaf<N>> {
    debug_assert_eq!(word.keys(), N);
    NonNull::new(word.object().cast()).expect("the word leads to a leaf")
}
