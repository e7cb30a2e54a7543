//! Key spaces, which turn positions into keys.

use crate::bijection::{GOLDEN, Scramble, hash63};
use std::hash::Hasher;

/// A key space of 64-bit words.
#[derive(Clone, Debug)]
pub struct WordKeys {
    kind: Words,
    len: usize,
}

#[derive(Clone, Debug)]
enum Words {
    Dense,
    Sparse,
    Random32(Scramble),
    Listed(Vec<u64>),
}

impl WordKeys {
    /// A key space of the integers from 1 to `len`.
    pub fn dense(len: usize) -> Self {
        let kind = Words::Dense;
        Self { kind, len }
    }

    /// A key space of the integers from 1 to `len`, each hashed to 63 bits by a fixed bijection.
    pub fn sparse(len: usize) -> Self {
        let kind = Words::Sparse;
        Self { kind, len }
    }

    /// A key space of `len` distinct words below 2^32, at most 2^32 of them, that look random. The
    /// seed selects them.
    pub fn random32(len: usize, seed: u64) -> Self {
        let kind = Words::Random32(Scramble::new(1 << 32, seed));
        Self { kind, len }
    }

    /// A key space of the given words in their order. They must be distinct.
    pub fn listed(words: Vec<u64>) -> Self {
        let len = words.len();
        let kind = Words::Listed(words);
        Self { kind, len }
    }

    /// A key space of the words at these positions, in their order.
    #[must_use]
    pub fn part(&self, positions: &[u32]) -> Self {
        Self::listed(positions.iter().map(|&position| self.key(position)).collect())
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The key at a position below [`WordKeys::len`].
    #[inline]
    pub fn key(&self, position: u32) -> u64 {
        match &self.kind {
            Words::Dense => u64::from(position) + 1,
            Words::Sparse => hash63(u64::from(position) + 1),
            Words::Random32(scramble) => scramble.apply(u64::from(position)),
            Words::Listed(words) => words[position as usize],
        }
    }

    /// Sets each position to the next one, and the entry beside it to what `make` makes of the key
    /// there, with little work for each.
    #[inline(always)]
    pub fn draw<T>(
        &self,
        positions: &mut [u32],
        next: impl FnMut() -> u32,
        entries: &mut [T],
        make: impl Fn(u64) -> T,
    ) {
        match &self.kind {
            Words::Dense => draw(positions, next, entries, |at| make(u64::from(at) + 1)),
            Words::Sparse => draw(positions, next, entries, |at| make(hash63(u64::from(at) + 1))),
            Words::Random32(scramble) => {
                draw(positions, next, entries, |at| make(scramble.apply(u64::from(at))));
            }
            Words::Listed(words) => draw(positions, next, entries, |at| make(words[at as usize])),
        }
    }
}

/// Sets each position to the next one, and the entry beside it to what `make` makes of it.
#[inline(always)]
pub fn draw<T>(
    positions: &mut [u32],
    mut next: impl FnMut() -> u32,
    entries: &mut [T],
    make: impl Fn(u32) -> T,
) {
    for (position, entry) in positions.iter_mut().zip(entries) {
        *position = next();
        *entry = make(*position);
    }
}

/// The value of a word key. It is a bijection, so that no two keys share a value.
#[inline]
pub const fn word_value(key: u64) -> u64 {
    (key ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(GOLDEN)
}

/// The 128-bit key for a word. It keeps the order of words, and both of its halves matter: the
/// upper half is the word without its last byte, so 256 consecutive words share it. The lower half
/// starts with the last byte, and a hash of the word follows.
#[inline]
pub const fn widened(word: u64) -> u128 {
    let hash = word.wrapping_mul(GOLDEN) >> 8;
    ((word >> 8) as u128) << 64 | (word << 56 | hash) as u128
}

/// The value of a 128-bit key: a hash to which both halves of the key contribute.
#[inline]
pub const fn wide_value(key: u128) -> u64 {
    word_value((key >> 64) as u64) ^ word_value(key as u64).rotate_left(32)
}

/// A key space of 128-bit numbers: those for the words of another key space, in its order, or any.
#[derive(Clone, Debug)]
pub struct WideKeys(Wide);

#[derive(Clone, Debug)]
enum Wide {
    Widened(WordKeys),
    Listed(Vec<u128>),
}

impl WideKeys {
    /// The keys that [`widened`] makes of `words`.
    pub fn new(words: WordKeys) -> Self {
        Self(Wide::Widened(words))
    }

    /// The given keys in their order. They must be distinct.
    pub fn listed(keys: Vec<u128>) -> Self {
        Self(Wide::Listed(keys))
    }

    /// A key space of the keys at these positions, in their order.
    #[must_use]
    pub fn part(&self, positions: &[u32]) -> Self {
        Self::listed(positions.iter().map(|&position| self.key(position)).collect())
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        match &self.0 {
            Wide::Widened(words) => words.len(),
            Wide::Listed(keys) => keys.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key at a position below [`WideKeys::len`].
    #[inline]
    pub fn key(&self, position: u32) -> u128 {
        match &self.0 {
            Wide::Widened(words) => widened(words.key(position)),
            Wide::Listed(keys) => keys[position as usize],
        }
    }

    /// See [`WordKeys::draw`].
    #[inline(always)]
    pub fn draw<T>(
        &self,
        positions: &mut [u32],
        next: impl FnMut() -> u32,
        entries: &mut [T],
        make: impl Fn(u128) -> T,
    ) {
        match &self.0 {
            Wide::Widened(words) => {
                words.draw(positions, next, entries, |word| make(widened(word)));
            }
            Wide::Listed(keys) => draw(positions, next, entries, |at| make(keys[at as usize])),
        }
    }
}

/// A 64-bit hash of a byte key: the key's value, and its term in sums of keys.
pub fn byte_hash(key: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

/// A key space of byte strings, adjacent in memory, each with its hash beside its address. (Real
/// programs hold their keys in memory too.)
#[derive(Clone, Debug)]
pub struct ByteKeys {
    bytes: Vec<u8>,
    /// One entry more than there are keys: the last one marks the end of the last key.
    entries: Vec<Entry>,
    longest: Longest,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    hash: u64,
}

/// The longest key of a key space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// The length of the key.
    pub bytes: usize,
    /// The number, counted from 1, of the key's line, if it came from a file.
    pub line: Option<usize>,
}

impl ByteKeys {
    /// A key space of the given keys in their order. They must be distinct.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut bytes, mut entries) = (Vec::new(), Vec::new());
        let mut longest = Longest::default();
        for key in keys {
            let (start, hash) = (bytes.len(), byte_hash(key));
            entries.push(Entry { start, hash });
            bytes.extend_from_slice(key);
            longest.bytes = longest.bytes.max(key.len());
        }
        let (start, hash) = (bytes.len(), 0);
        entries.push(Entry { start, hash });
        bytes.shrink_to_fit();
        Self { bytes, entries, longest }
    }

    /// A key space of the words of `words` in their order-preserving encoding: 8 bytes, big-endian.
    pub fn encoded(words: &WordKeys) -> Self {
        let encoded: Vec<[u8; 8]> =
            (0..words.len()).map(|position| words.key(position as u32).to_be_bytes()).collect();
        Self::new(encoded.iter().map(<[u8; 8]>::as_slice))
    }

    /// A key space of the words of `words` as 16 hexadecimal digits, in their order.
    pub fn hexadecimal(words: &WordKeys) -> Self {
        let digits: Vec<String> = (0..words.len())
            .map(|position| format!("{:016x}", words.key(position as u32)))
            .collect();
        Self::new(digits.iter().map(String::as_bytes))
    }

    /// A key space of the keys at these positions, in their order.
    #[must_use]
    pub fn part(&self, positions: &[u32]) -> Self {
        Self::new(positions.iter().map(|&position| self.key(position)))
    }

    /// Sets the line of the longest key.
    pub(crate) fn set_longest_line(&mut self, line: usize) {
        self.longest.line = Some(line);
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len() - 1
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key at a position below [`ByteKeys::len`].
    #[inline]
    pub fn key(&self, position: u32) -> &[u8] {
        let position = position as usize;
        &self.bytes[self.entries[position].start..self.entries[position + 1].start]
    }

    /// The [`byte_hash`] of the key at a position.
    #[inline]
    pub fn hash(&self, position: u32) -> u64 {
        self.entries[position as usize].hash
    }

    /// Prefetches the key at a position, up to four lines of it.
    #[inline]
    pub fn prefetch(&self, position: u32) {
        /// The bytes of a cache line.
        const LINE: usize = 64;
        let key = self.key(position);
        for line in 0..key.len().div_ceil(LINE).clamp(1, 4) {
            prefetch(key.as_ptr().wrapping_add(line * LINE));
        }
    }

    /// The longest key.
    pub fn longest(&self) -> Longest {
        self.longest
    }

    /// The bytes of all keys together, without their entries.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[inline]
fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing that the program can see, and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dense_and_sparse_are_the_same_positions() {
        let (dense, sparse) = (WordKeys::dense(10), WordKeys::sparse(10));
        for position in 0..10 {
            assert_eq!(dense.key(position), u64::from(position) + 1);
            assert_eq!(sparse.key(position), hash63(dense.key(position)));
        }
    }

    /// Checks that each half, each quarter and so on contains as many words as chance predicts, for
    /// all bits.
    #[test]
    fn random_words_are_distinct_and_spread() {
        let words = WordKeys::random32(1 << 16, 7);
        let all: Vec<u64> = (0..1 << 16).map(|position| words.key(position)).collect();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), all.len());
        assert!(sorted.last().is_some_and(|last| *last < 1 << 32) && !all.is_sorted());
        for shift in [0, 8, 16, 24] {
            let mut buckets = [0_i64; 256];
            for word in &all {
                buckets[(word >> shift & 255) as usize] += 1;
            }
            // The mean is 256; the limit is six standard deviations.
            assert!(buckets.iter().all(|count| (count - 256).abs() < 96), "{shift}: {buckets:?}");
        }
        assert_ne!(words.key(1), WordKeys::random32(1 << 16, 8).key(1));
    }

    #[test]
    fn encoded_words_keep_their_order() {
        let words = WordKeys::listed(vec![1, 255, 256, u64::MAX]);
        let bytes = ByteKeys::encoded(&words);
        let keys: Vec<&[u8]> = (0..4).map(|position| bytes.key(position)).collect();
        assert!(keys.is_sorted());
        assert_eq!(keys[2], [0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(bytes.longest(), Longest { bytes: 8, line: None });
        let digits = ByteKeys::hexadecimal(&words);
        let keys: Vec<&[u8]> = (0..4).map(|position| digits.key(position)).collect();
        assert!(keys.is_sorted());
        assert_eq!(keys[2], b"0000000000000100");
    }

    #[test]
    fn consecutive_words_share_the_upper_half_of_their_wide_keys() {
        let keys = WideKeys::new(WordKeys::dense(1000));
        let (first, second) = (keys.key(300), keys.key(301));
        assert!(first < second && first >> 64 == second >> 64 && first as u64 != second as u64);
        assert_ne!(keys.key(254) >> 64, keys.key(255) >> 64);
        assert_ne!(wide_value(first), wide_value(first ^ 1));
        assert_ne!(wide_value(first), wide_value(first ^ 1 << 64));
    }

    proptest! {
        #[test]
        fn wide_keys_keep_the_order_of_words(a: u64, b: u64) {
            prop_assert_eq!(a.cmp(&b), widened(a).cmp(&widened(b)));
        }

        #[test]
        fn byte_keys_come_back(keys: Vec<Vec<u8>>) {
            let space = ByteKeys::new(keys.iter().map(Vec::as_slice));
            prop_assert_eq!(space.len(), keys.len());
            for (position, key) in keys.iter().enumerate() {
                space.prefetch(position as u32);
                prop_assert_eq!(space.key(position as u32), &key[..]);
                prop_assert_eq!(space.hash(position as u32), byte_hash(key));
            }
            let total: usize = keys.iter().map(Vec::len).sum();
            prop_assert_eq!(space.total_bytes(), total);
        }

        #[test]
        fn values_differ_as_keys_do(a: u64, b: u64) {
            prop_assert_eq!(a == b, word_value(a) == word_value(b));
        }
    }
}
