//! Leaves of one to four integers.

use super::{LeafKey, LeafOf, Leaves, MOST_KEYS};
use crate::art::node::NODES;
use crate::art::word::{Object, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::{AllocError, Config, Placement, Pool, PoolStats, SlotAlloc, SlotSize};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A leaf of `N` integers.
#[repr(C)]
struct Leaf<W, const N: usize> {
    keys: [W; N],
    values: [AtomicU64; N],
}

impl<W: Copy, const N: usize> Leaf<W, N> {
    fn new<K: Integer<Words = W>>(entries: &[(K, u64); N]) -> Self {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
        Self {
            keys: entries.map(|of| of.0.words()),
            values: entries.map(|of| AtomicU64::new(of.1)),
        }
    }
}

/// An integer, as leaves keep it: in words, so that it does not need a larger alignment.
#[doc(hidden)]
pub trait Integer: for<'a> LeafKey<Ref<'a> = Self> + Copy + Ord + Send + Sync {
    type Words: Copy + Send + Sync + 'static;
    const LEAVES: [NodeLayout; MOST_KEYS];

    fn words(self) -> Self::Words;
    fn from_words(words: Self::Words) -> Self;
}

impl Integer for u64 {
    type Words = u64;
    const LEAVES: [NodeLayout; MOST_KEYS] = U64_LEAVES;

    #[inline(always)]
    fn words(self) -> u64 {
        self
    }
    #[inline(always)]
    fn from_words(words: u64) -> u64 {
        words
    }
}

impl LeafKey for u64 {
    const LEAF_KEYS: usize = MOST_KEYS;
    const OBJECTS: &'static [NodeLayout] = &{
        let ([a, b, c, d, e, f, g], [h, i, j, k]) = (NODES, U64_LEAVES);
        [a, b, c, d, e, f, g, h, i, j, k]
    };
    type Leaves<P: Placement> = IntegerLeaves<u64, P>;
    type Leaf<'g> = IntegerLeaf<'g, u64>;
}

impl Integer for u128 {
    type Words = [u64; 2];
    const LEAVES: [NodeLayout; MOST_KEYS] = U128_LEAVES;

    #[inline(always)]
    fn words(self) -> [u64; 2] {
        [(self >> 64) as u64, self as u64]
    }
    #[inline(always)]
    fn from_words([high, low]: [u64; 2]) -> u128 {
        u128::from(high) << 64 | u128::from(low)
    }
}

impl LeafKey for u128 {
    const LEAF_KEYS: usize = MOST_KEYS;
    const OBJECTS: &'static [NodeLayout] = &{
        let ([a, b, c, d, ..], [h, i, j, k]) = (NODES, U128_LEAVES);
        [a, b, c, d, h, i, j, k]
    };
    type Leaves<P: Placement> = IntegerLeaves<u128, P>;
    type Leaf<'g> = IntegerLeaf<'g, u128>;
}

const fn layout<W, const N: usize>(kind: &'static str, found: &'static [Field]) -> NodeLayout {
    NodeLayout { kind, size: size_of::<Leaf<W, N>>(), align: 8, search: &[], found }
}

const fn found(words: usize, keys: usize) -> [Field; 2] {
    let keys_end = 8 * words * keys;
    [Field::new("keys", 0, keys_end), Field::new("values", keys_end, 8 * keys)]
}

/// The layouts of `u64` leaves, by the number of keys less one.
const U64_LEAVES: [NodeLayout; MOST_KEYS] = [
    layout::<u64, 1>("leaf1", &const { found(1, 1) }),
    layout::<u64, 2>("leaf2", &const { found(1, 2) }),
    layout::<u64, 3>("leaf3", &const { found(1, 3) }),
    layout::<u64, 4>("leaf4", &const { found(1, 4) }),
];
/// The layouts of `u128` leaves, by the number of keys less one.
const U128_LEAVES: [NodeLayout; MOST_KEYS] = [
    layout::<[u64; 2], 1>("leaf1", &const { found(2, 1) }),
    layout::<[u64; 2], 2>("leaf2", &const { found(2, 2) }),
    layout::<[u64; 2], 3>("leaf3", &const { found(2, 3) }),
    layout::<[u64; 2], 4>("leaf4", &const { found(2, 4) }),
];
#[cfg(not(silvics_loom))] // loom's atomics are larger
const _: () = {
    assert!(size_of::<Leaf<u64, 4>>() == 64);
    assert!(size_of::<Leaf<[u64; 2], 4>>() == 96);
};

/// The width of a leaf's length in its word's hint. The bits above say which entries are gone: a
/// removal that cannot allocate a smaller leaf links this leaf again, with another word.
const LEN_BITS: u32 = 3;
const _: () = assert!(MOST_KEYS < 1 << LEN_BITS);

/// The number of integers in the leaf that a word leads to.
#[inline(always)]
pub(in super::super) fn integers(word: Word) -> usize {
    word.hint() & ((1 << LEN_BITS) - 1)
}

/// A leaf of one to four integers. Its word says how many there are, and which of them are gone.
#[doc(hidden)]
pub struct IntegerLeaf<'g, K> {
    keys: *const K,
    len: usize,
    gone: usize,
    marker: PhantomData<&'g Object>,
}

impl<K> Clone for IntegerLeaf<'_, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for IntegerLeaf<'_, K> {}

impl<'g, K: Integer> LeafOf<'g, K> for IntegerLeaf<'g, K> {
    #[inline(always)]
    unsafe fn from_word(word: Word) -> Self {
        let (len, gone) = (integers(word), word.hint() >> LEN_BITS);
        Self { keys: word.leaf_object().cast(), len, gone, marker: PhantomData }
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.len
    }

    #[inline(always)]
    fn is_gone(self, at: usize) -> bool {
        self.gone >> at & 1 != 0
    }

    fn without(word: Word, at: usize) -> Word {
        Word::leaf(word.address(), (word.hint() | 1 << at << LEN_BITS) as u16)
    }

    #[inline(always)]
    fn key(self, at: usize) -> K {
        debug_assert!(at < self.len);
        // SAFETY: I7: the leaf has `len` keys, and `at` is below; I1: they never change. The leaf
        // is not reclaimed during `'g` (contract of `from_word`).
        K::from_words(unsafe { touch(self.keys.cast_mut()).cast::<K::Words>().add(at).read() })
    }

    #[inline(always)]
    fn value(self, at: usize) -> &'g AtomicU64 {
        debug_assert!(at < self.len);
        // SAFETY: I7: the leaf has `len` keys, and as many atomic values behind them (`Leaf`). It
        // is not reclaimed during `'g` (contract of `from_word`).
        unsafe { &*self.keys.byte_add(self.value_offset(at)).cast::<AtomicU64>() }
    }

    /// Compares without a branch: a processor cannot predict how many keys a leaf has, nor which of
    /// them is the right one.
    #[inline(always)]
    fn find(self, key: K) -> Option<usize> {
        let last = self.len - 1;
        let mut found = MOST_KEYS;
        for at in 0..MOST_KEYS {
            let at = at.min(last);
            found = if self.key(at) == key { at } else { found };
        }
        // A key that was not found counts as one more entry that is gone.
        ((self.gone | 1 << MOST_KEYS) >> found & 1 == 0).then_some(found)
    }

    /// Loads a value in any case, without a branch.
    #[inline(always)]
    fn get(self, key: K) -> Option<u64> {
        let at = self.find(key);
        let value = self.value(at.unwrap_or(0)).load(Ordering::SeqCst);
        at.map(|_| value)
    }

    fn looked_at(self, _key: K) -> Option<(usize, usize)> {
        Some((0, self.len * size_of::<K::Words>()))
    }

    #[inline(always)]
    fn value_offset(self, at: usize) -> usize {
        self.len * size_of::<K::Words>() + at * size_of::<AtomicU64>()
    }

    fn bytes(self) -> usize {
        K::LEAVES[self.len - 1].size
    }
}

/// The pools of leaves of integers.
#[doc(hidden)]
pub struct IntegerLeaves<K: Integer, P: Placement> {
    one: P::Slots<Leaf<K::Words, 1>>,
    two: P::Slots<Leaf<K::Words, 2>>,
    three: P::Slots<Leaf<K::Words, 3>>,
    four: P::Slots<Leaf<K::Words, 4>>,
}

/// Makes a leaf.
///
/// # Safety
/// The memory is valid for such a leaf, and nobody else has it.
#[inline(always)]
unsafe fn fill<K: Integer, const N: usize>(
    leaf: NonNull<Leaf<K::Words, N>>,
    entries: &[(K, u64); N],
) -> Word {
    // SAFETY: our contract.
    unsafe { leaf.write(Leaf::new(entries)) };
    Word::leaf(leaf, N as u16)
}

impl<K: Integer, P: Placement> Leaves<K> for IntegerLeaves<K, P> {
    fn new(config: &Config) -> Self {
        let kind = |keys: usize| K::LEAVES[keys - 1].kind;
        Self {
            one: P::Slots::new(kind(1), config),
            two: P::Slots::new(kind(2), config),
            three: P::Slots::new(kind(3), config),
            four: P::Slots::new(kind(4), config),
        }
    }

    #[inline]
    fn alloc(&self, entries: &[(K, u64)]) -> Result<NonNull<u8>, AllocError> {
        match entries.len() {
            1 => self.one.alloc().map(NonNull::cast),
            2 => self.two.alloc().map(NonNull::cast),
            3 => self.three.alloc().map(NonNull::cast),
            _ => self.four.alloc().map(NonNull::cast),
        }
    }

    fn slot(entries: &[(K, u64)]) -> SlotSize {
        match entries.len() {
            1 => Pool::<Leaf<K::Words, 1>>::SLOT,
            2 => Pool::<Leaf<K::Words, 2>>::SLOT,
            3 => Pool::<Leaf<K::Words, 3>>::SLOT,
            _ => Pool::<Leaf<K::Words, 4>>::SLOT,
        }
    }

    unsafe fn fill(leaf: NonNull<u8>, entries: &[(K, u64)]) -> Word {
        // SAFETY: our contract.
        unsafe {
            match *entries {
                [a] => fill::<K, 1>(leaf.cast(), &[a]),
                [a, b] => fill::<K, 2>(leaf.cast(), &[a, b]),
                [a, b, c] => fill::<K, 3>(leaf.cast(), &[a, b, c]),
                [a, b, c, d] => fill::<K, 4>(leaf.cast(), &[a, b, c, d]),
                _ => unreachable!("a leaf has one to four keys"),
            }
        }
    }

    unsafe fn free(&self, word: Word) {
        let leaf = word.address();
        // SAFETY: I7: the word's number of integers is that of the leaf, so the leaf came from this
        // pool. It is freed once, and nobody can reach it (contract of `free`).
        unsafe {
            match integers(word) {
                1 => self.one.free(leaf.cast()),
                2 => self.two.free(leaf.cast()),
                3 => self.three.free(leaf.cast()),
                _ => self.four.free(leaf.cast()),
            }
        }
    }

    fn stats(&self) -> impl Iterator<Item = PoolStats> {
        [self.one.stats(), self.two.stats(), self.three.stats(), self.four.stats()].into_iter()
    }

    fn shrink(&self) -> usize {
        self.one.shrink() + self.two.shrink() + self.three.shrink() + self.four.shrink()
    }
}
