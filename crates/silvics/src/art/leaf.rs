//! Leaves: keys and their values.

use super::key::Parts;
use super::word::{Object, Word};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::{AllocError, BytesAlloc, Config, Placement, PoolStats, SlotAlloc};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::touch;
use std::marker::PhantomData;

/// A leaf that is not reclaimed as long as `'g` lasts. Its keys never change (I1), its values are atomic.
#[doc(hidden)]
pub trait LeafOf<'g, K: Parts + ?Sized>: Copy {
    /// # Safety
    /// The word leads to a leaf of a tree with such keys, which is not reclaimed as long as `'g` lasts.
    unsafe fn from_word(word: Word) -> Self;
    /// How many places it has, each with a key.
    fn len(self) -> usize;
    /// Whether what was at a place is gone.
    fn is_gone(self, at: usize) -> bool;
    /// The word of the same leaf without what is at a place; not of the last that is there.
    fn without(word: Word, at: usize) -> Word;
    fn key(self, at: usize) -> K::Ref<'g>;
    fn value(self, at: usize) -> &'g AtomicU64;
    /// Where a key is, if it is not gone.
    fn find(self, key: K::Ref<'_>) -> Option<usize>;
    /// The value of a key.
    fn get(self, key: K::Ref<'_>) -> Option<u64>;
    /// What a search for a key compares, if anything: where it begins, and its bytes.
    fn looked_at(self, key: K::Ref<'_>) -> Option<(usize, usize)>;
    /// Where the value of a key is, behind the leaf's address.
    fn value_offset(self, at: usize) -> usize;
    /// All its bytes.
    fn bytes(self) -> usize;

    /// The places of what is not gone: one at least.
    #[inline(always)]
    fn places(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.len()).filter(move |&at| !self.is_gone(at))
    }
}

/// The pools of leaves.
#[doc(hidden)]
pub trait Leaves<K: Parts + ?Sized>: Send + Sync + Sized + 'static {
    /// Whether dropping it releases every leaf.
    const RELEASES_WHOLE: bool;

    fn new(config: &Config) -> Self;
    /// A leaf of these entries, in ascending order of their keys: at least one, and no more than a leaf
    /// takes.
    fn alloc(&self, entries: &[(K::Ref<'_>, u64)]) -> Result<Word, AllocError>;
    /// Takes a leaf back.
    ///
    /// # Safety
    /// It came from here, is taken back once, and nobody can reach it any more.
    unsafe fn free(&self, word: Word);
    /// One for each pool.
    fn stats(&self) -> impl Iterator<Item = PoolStats>;
    /// Of all pools.
    fn shrink(&self) -> usize;
}

/// The most keys of a leaf, of whatever type.
pub(super) const MOST_KEYS: usize = 4;

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

/// Integers, as leaves keep them: in words, lest they ask for a larger alignment.
#[doc(hidden)]
pub trait Integer: for<'a> Parts<Ref<'a> = Self> + Copy + Ord + Send + Sync {
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

const fn layout<W, const N: usize>(kind: &'static str, found: &'static [Field]) -> NodeLayout {
    NodeLayout { kind, size: size_of::<Leaf<W, N>>(), align: 8, search: &[], found }
}

const fn found(words: usize, keys: usize) -> [Field; 2] {
    let keys_end = 8 * words * keys;
    [Field::new("keys", 0, keys_end), Field::new("values", keys_end, 8 * keys)]
}

/// The layouts of leaves, by the number of keys less one.
pub(super) const U64_LEAVES: [NodeLayout; MOST_KEYS] = [
    layout::<u64, 1>("leaf1", &const { found(1, 1) }),
    layout::<u64, 2>("leaf2", &const { found(1, 2) }),
    layout::<u64, 3>("leaf3", &const { found(1, 3) }),
    layout::<u64, 4>("leaf4", &const { found(1, 4) }),
];
pub(super) const U128_LEAVES: [NodeLayout; MOST_KEYS] = [
    layout::<[u64; 2], 1>("leaf1", &const { found(2, 1) }),
    layout::<[u64; 2], 2>("leaf2", &const { found(2, 2) }),
    layout::<[u64; 2], 3>("leaf3", &const { found(2, 3) }),
    layout::<[u64; 2], 4>("leaf4", &const { found(2, 4) }),
];
#[cfg(not(silvics_loom))] // whose atomics are larger
const _: () = {
    assert!(size_of::<Leaf<u64, 4>>() == 64);
    assert!(size_of::<Leaf<[u64; 2], 4>>() == 96);
};

/// The lowest bits of the hint of a leaf of integers say how many it has, and those above which of them are gone: a removal
/// that cannot have a smaller leaf links the same one with another word.
const LEN_BITS: u32 = 3;
const _: () = assert!(MOST_KEYS < 1 << LEN_BITS);

/// How many integers the leaf has that a word leads to.
#[inline(always)]
pub(super) fn integers(word: Word) -> usize {
    word.hint() & ((1 << LEN_BITS) - 1)
}

/// A leaf of one to four integers, of which its word tells the number, and which of them are gone.
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
        Self { keys: word.object().cast(), len, gone, marker: PhantomData }
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
        // SAFETY: I1, I5: within the leaf, and never changed.
        K::from_words(unsafe { touch(self.keys.cast_mut()).cast::<K::Words>().add(at).read() })
    }

    #[inline(always)]
    fn value(self, at: usize) -> &'g AtomicU64 {
        debug_assert!(at < self.len);
        // SAFETY: I5: the values follow the keys.
        unsafe { &*self.keys.byte_add(self.value_offset(at)).cast::<AtomicU64>() }
    }

    /// Without a branch: how many keys a leaf has, and whether a key is there, is nothing that a processor
    /// can guess.
    #[inline(always)]
    fn find(self, key: K) -> Option<usize> {
        let last = self.len - 1;
        let mut found = MOST_KEYS;
        for at in 0..MOST_KEYS {
            let at = at.min(last);
            found = if self.key(at) == key { at } else { found };
        }
        // Not found is like one more that is gone.
        ((self.gone | 1 << MOST_KEYS) >> found & 1 == 0).then_some(found)
    }

    /// In the same way.
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

/// Pools of leaves of integers.
#[doc(hidden)]
pub struct IntegerLeaves<K: Integer, P: Placement> {
    one: P::Slots<Leaf<K::Words, 1>>,
    two: P::Slots<Leaf<K::Words, 2>>,
    three: P::Slots<Leaf<K::Words, 3>>,
    four: P::Slots<Leaf<K::Words, 4>>,
}

fn filled<K: Integer, P: Placement, const N: usize>(
    pool: &P::Slots<Leaf<K::Words, N>>,
    entries: &[(K, u64); N],
) -> Result<Word, AllocError> {
    let leaf = pool.alloc()?;
    // SAFETY: a fresh slot has room for it and is ours alone.
    unsafe { leaf.write(Leaf::new(entries)) };
    Ok(Word::leaf(leaf, N as u16))
}

impl<K: Integer, P: Placement> Leaves<K> for IntegerLeaves<K, P> {
    const RELEASES_WHOLE: bool =
        <P::Slots<Leaf<K::Words, 1>> as SlotAlloc<Leaf<K::Words, 1>>>::RELEASES_WHOLE;

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
    fn alloc(&self, entries: &[(K, u64)]) -> Result<Word, AllocError> {
        match *entries {
            [a] => filled::<K, P, 1>(&self.one, &[a]),
            [a, b] => filled::<K, P, 2>(&self.two, &[a, b]),
            [a, b, c] => filled::<K, P, 3>(&self.three, &[a, b, c]),
            [a, b, c, d] => filled::<K, P, 4>(&self.four, &[a, b, c, d]),
            _ => unreachable!("a leaf has one to four keys"),
        }
    }

    unsafe fn free(&self, word: Word) {
        let leaf = word.address();
        // SAFETY: the caller's promise.
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

/// What a leaf with a byte string begins with; the key follows at once.
#[repr(C)]
struct BytesHead {
    value: AtomicU64,
    len: u32,
}

/// Where the key begins.
const KEY: usize = std::mem::offset_of!(BytesHead, len) + 4;

pub(super) const BYTES_LEAVES: [NodeLayout; 1] = [NodeLayout {
    kind: "leaf",
    size: size_of::<BytesHead>(),
    align: 8,
    search: &[],
    found: &[Field::new("value", 0, 8), Field::new("len", KEY - 4, 4)],
}];

/// What a key's word tells of it: two keys with different hints are different.
#[inline(always)]
fn fingerprint(key: &[u8]) -> u16 {
    let last = match key.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => key.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    // The multiplier of Fibonacci hashing (Knuth, volume 3, section 6.4).
    ((last ^ key.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16
}

/// A leaf of one byte string, of which its word has a fingerprint.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct BytesLeaf<'g> {
    head: *const BytesHead,
    fingerprint: u16,
    marker: PhantomData<&'g Object>,
}

impl<'g> BytesLeaf<'g> {
    #[inline(always)]
    fn text(self) -> &'g [u8] {
        // SAFETY: I1: written before it was linked, and never changed; behind its head are so many bytes.
        unsafe {
            let head = touch(self.head.cast_mut());
            let len = (&raw const (*head).len).read() as usize;
            std::slice::from_raw_parts(head.byte_add(KEY).cast(), len)
        }
    }
}

impl<'g> LeafOf<'g, [u8]> for BytesLeaf<'g> {
    #[inline(always)]
    unsafe fn from_word(word: Word) -> Self {
        let (head, fingerprint) = (word.object().cast(), word.hint() as u16);
        Self { head, fingerprint, marker: PhantomData }
    }

    #[inline(always)]
    fn len(self) -> usize {
        1
    }

    #[inline(always)]
    fn is_gone(self, _at: usize) -> bool {
        false
    }

    fn without(_word: Word, _at: usize) -> Word {
        unreachable!("the only one is the last one")
    }

    #[inline(always)]
    fn key(self, _at: usize) -> &'g [u8] {
        self.text()
    }

    #[inline(always)]
    fn value(self, _at: usize) -> &'g AtomicU64 {
        // SAFETY: it begins the leaf.
        unsafe { &*self.head.cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn find(self, key: &[u8]) -> Option<usize> {
        (self.fingerprint == fingerprint(key) && self.text() == key).then_some(0)
    }

    #[inline(always)]
    fn get(self, key: &[u8]) -> Option<u64> {
        self.find(key).map(|at| self.value(at).load(Ordering::SeqCst))
    }

    fn looked_at(self, key: &[u8]) -> Option<(usize, usize)> {
        (self.fingerprint == fingerprint(key)).then(|| (KEY - 4, 4 + self.text().len()))
    }

    fn value_offset(self, _at: usize) -> usize {
        0
    }

    fn bytes(self) -> usize {
        KEY + self.text().len()
    }
}

/// The pool of leaves of byte strings.
#[doc(hidden)]
pub struct BytesLeaves<P: Placement>(P::Bytes);

impl<P: Placement> Leaves<[u8]> for BytesLeaves<P> {
    const RELEASES_WHOLE: bool = P::Bytes::RELEASES_WHOLE;

    fn new(config: &Config) -> Self {
        Self(P::Bytes::new(BYTES_LEAVES[0].kind, config))
    }

    fn alloc(&self, entries: &[(&[u8], u64)]) -> Result<Word, AllocError> {
        let [(key, value)] = *entries else { unreachable!("a leaf has one key") };
        let leaf = self.0.alloc(KEY + key.len())?;
        // SAFETY: fresh memory with room for head and key, ours alone.
        unsafe {
            let head = leaf.cast::<BytesHead>().as_ptr();
            (&raw mut (*head).value).write(AtomicU64::new(value));
            (&raw mut (*head).len).write(key.len() as u32);
            leaf.as_ptr().add(KEY).copy_from_nonoverlapping(key.as_ptr(), key.len());
        }
        Ok(Word::leaf(leaf, fingerprint(key)))
    }

    unsafe fn free(&self, word: Word) {
        // SAFETY: the caller's promise: it is still what it was.
        unsafe {
            let bytes = BytesLeaf::from_word(word).bytes();
            self.0.free(word.address(), bytes);
        }
    }

    fn stats(&self) -> impl Iterator<Item = PoolStats> {
        std::iter::once(self.0.stats())
    }

    fn shrink(&self) -> usize {
        self.0.shrink()
    }
}

/// Up to one entry more than a leaf has, ascending.
pub(super) struct Entries<'k, K: Parts + ?Sized> {
    entries: [(K::Ref<'k>, u64); MOST_KEYS + 1],
    len: usize,
}

impl<K: Parts + ?Sized> Clone for Entries<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Parts + ?Sized> Copy for Entries<'_, K> {}

impl<'k, K: Parts + ?Sized> Entries<'k, K> {
    pub(super) fn one(key: K::Ref<'k>, value: u64) -> Self {
        Self { entries: [(key, value); MOST_KEYS + 1], len: 1 }
    }

    /// Those of a leaf; under the lock of the node that leads to it, so that values stay what they are.
    pub(super) fn of(leaf: K::Leaf<'k>) -> Self {
        let mut places = leaf.places();
        let mut entry = || {
            let at = places.next()?;
            Some((leaf.key(at), leaf.value(at).load(Ordering::SeqCst)))
        };
        let first = entry().expect("a leaf has an entry");
        let mut entries = Self::one(first.0, first.1);
        while let Some((key, value)) = entry() {
            entries.push(key, value);
        }
        entries
    }

    /// Adds one behind the others.
    pub(super) fn push(&mut self, key: K::Ref<'k>, value: u64) {
        self.entries[self.len] = (key, value);
        self.len += 1;
    }

    #[must_use]
    pub(super) fn with(mut self, key: K::Ref<'k>, value: u64) -> Self {
        let at = self.as_slice().partition_point(|entry| entry.0 < key);
        self.entries.copy_within(at..self.len, at + 1);
        self.entries[at] = (key, value);
        self.len += 1;
        self
    }

    #[must_use]
    pub(super) fn without(mut self, key: K::Ref<'_>) -> Self {
        let at = self.as_slice().partition_point(|entry| K::shorten(entry.0) < K::shorten(key));
        self.entries.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self
    }

    pub(super) fn as_slice(&self) -> &[(K::Ref<'k>, u64)] {
        &self.entries[..self.len]
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_tell_keys_apart_by_length_and_end() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"a", b"abcdefgh", b"babcdefgh"];
        for a in keys {
            for b in keys {
                assert_eq!(fingerprint(a) == fingerprint(b), a == b, "{a:?} {b:?}");
            }
        }
        assert_ne!(fingerprint(b"directory/file1"), fingerprint(b"directory/file2"));
    }
}
