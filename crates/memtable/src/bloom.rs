//! A Bloom filter that many threads fill and read.
//!
//! # Source
//! `DynamicBloom` of `RocksDB` (`util/dynamic_bloom.h`), the filter of its memtables, which got
//! concurrent adds with concurrent inserts (<https://reviews.facebook.net/D50589>). A filter whose
//! probes stay in one line was proposed by Putze, Sanders and Singler (WEA 2007). The code here was
//! written from the idea.
//!
//! # Algorithm
//! ```text
//! add(hash):   first = the upper bits of the hash, scaled to the number of words
//!              for i in 0..pairs: two bits of the word first ^ i are set; the next 12 bits of a
//!                  multiple of the hash select them
//! may_contain: the same bits are all set
//! ```
//! All words of a key lie in one line, because there are at most 8 pairs and a line has 8 words.
//!
//! # Departures
//! 1. Hashes have 64 bits (XXH3), not 32, so filters can have more than 2^32 words.
//! 2. The words lie in the arena of the table. They need no accounting or release of their own.
//! 3. [`DynamicBloom::add_concurrently`] returns whether it has set a bit.
//!
//! # Invariants
//! * B1: the filter has `words` initialised words, a multiple of 8 and at least 8, from a multiple
//!   of 64 on. They stay while the filter has the arena.
//! * B2: a bit that is set stays set.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | a word | load | Relaxed | – | a set bit says nothing about other memory |
//! | a word | store of `add` | Relaxed | – | there is one writer, so no bit is set between its load and its store |
//! | a word | `fetch_or` of `add_concurrently` | Relaxed | – | an RMW loses no bit (B2); the order of RMWs on one word suffices for that |
//!
//! A reader must find each key that was added before the reader's snapshot was published. The table
//! publishes the sequence number of a write by a Release store after the add, and a reader loads
//! that number with Acquire before it asks the filter. So the add happens before the lookup, and
//! coherence then forbids that the lookup reads an older value of a word.
//!
//! # Progress
//! All methods are wait-free.
//!
//! # Complexity and footprint
//! A lookup reads one line. An add reads it, and writes only words that miss a bit. With 10 bits
//! for each key and 6 probes, about one lookup in 90 of an absent key finds all its bits set. The
//! tests compare the rate with the formula.
//!
//! # Checked by
//! `loom_tests`: two threads add to one word, and a twin that adds by a load and a store must lose
//! a bit. The canary `LostBloomBit` is that twin; `tests/canaries.rs` must find it on real threads.
//! The unit tests check that every key is found, and the rate of false positives.

use crate::canary::{Canary, planted};
use silvics_pool::{AllocError, ConcurrentArena};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The words of a line.
const LINE_WORDS: usize = 8;
/// The bytes of a line.
const LINE: usize = 64;
/// The most probes: each pair takes 12 of the 64 bits of a hash.
const MOST_PROBES: usize = 10;
/// An odd number near 2^64 divided by the golden ratio. Each bit of a product with it depends on
/// the lower bits of the hash, so the probes do not depend on the place.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c13;

/// The hash of a key, which a filter takes in place of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Hashes a key, or the prefix of a key.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        Self(xxh3_64(key))
    }
}

/// A Bloom filter: it answers whether a key may have been added. It never denies a key that was
/// added before.
///
/// ```
/// use silvics_memtable::{DynamicBloom, KeyHash};
/// use silvics_pool::{ConcurrentArena, Config};
/// use std::sync::Arc;
///
/// let arena = Arc::new(ConcurrentArena::new(&Config::default(), 1 << 20));
/// let bloom = DynamicBloom::new(10 * 1000, 6, &arena)?; // ten bits for each of 1000 keys
/// std::thread::scope(|scope| {
///     for thread in 0..2_u8 {
///         let bloom = &bloom;
///         scope.spawn(move || (0..250).for_each(|n| {
///             bloom.add_concurrently(KeyHash::of(&[thread, n]));
///         }));
///     }
/// });
/// assert!(bloom.may_contain(KeyHash::of(&[1, 7])));
/// # Ok::<(), silvics_pool::AllocError>(())
/// ```
pub struct DynamicBloom {
    start: NonNull<AtomicU64>,
    words: usize,
    /// The number of words in which a key has two bits each.
    pairs: usize,
    /// Keeps the words (B1).
    _arena: Arc<ConcurrentArena>,
}

// SAFETY: the words are atomics, which threads may share (B1).
unsafe impl Send for DynamicBloom {}
// SAFETY: as for `Send`.
unsafe impl Sync for DynamicBloom {}

impl DynamicBloom {
    /// Makes an empty filter in an arena. It has at least `bits` bits, in whole lines of 512. Each
    /// key has `probes` of them, rounded up to an even number, and 10 at most.
    pub fn new(
        bits: usize,
        probes: usize,
        arena: &Arc<ConcurrentArena>,
    ) -> Result<Self, AllocError> {
        let words = bits.div_ceil(64 * LINE_WORDS).max(1) * LINE_WORDS;
        let bytes = words * size_of::<AtomicU64>(); // at most an eighth of `usize::MAX` and a line
        let failed = AllocError::System { requested: bytes };
        let layout = Layout::from_size_align(bytes, LINE).map_err(|_| failed)?;
        let start = arena.alloc(layout)?.cast::<AtomicU64>();
        for at in 0..words {
            // SAFETY: allocated above for this number of words, and nobody else has them yet.
            unsafe { start.add(at).write(AtomicU64::new(0)) };
        }
        let pairs = probes.clamp(1, MOST_PROBES).div_ceil(2);
        Ok(Self { start, words, pairs, _arena: Arc::clone(arena) })
    }

    /// The number of bits.
    pub fn bits(&self) -> usize {
        self.words * 64
    }

    /// Adds a key. Only one thread may add at a time: bits that another thread adds meanwhile may
    /// be lost. Lookups may run at any time.
    #[inline]
    pub fn add(&self, key: KeyHash) {
        self.each_word(key, |word, bits| {
            let seen = word.load(Ordering::Relaxed);
            if seen & bits != bits {
                word.store(seen | bits, Ordering::Relaxed);
            }
            true
        });
    }

    /// Adds a key while other threads may add others by this method. Returns whether it has set a
    /// bit, so false means that the filter answered as if it had the key already.
    #[inline]
    pub fn add_concurrently(&self, key: KeyHash) -> bool {
        self.add_by(key, planted(Canary::LostBloomBit))
    }

    /// Adds a key. If `lost` is true, it makes the mistake of the canary.
    #[inline(always)]
    fn add_by(&self, key: KeyHash, lost: bool) -> bool {
        let mut changed = false;
        self.each_word(key, |word, bits| {
            // Most bits of a full filter are set. Reading them first keeps the line shared.
            let seen = word.load(Ordering::Relaxed);
            if seen & bits != bits {
                if lost {
                    word.store(seen | bits, Ordering::Relaxed);
                } else {
                    changed |= word.fetch_or(bits, Ordering::Relaxed) & bits != bits;
                }
            }
            true
        });
        changed
    }

    /// Whether the key may have been added. False is certain.
    #[inline]
    pub fn may_contain(&self, key: KeyHash) -> bool {
        self.each_word(key, |word, bits| word.load(Ordering::Relaxed) & bits == bits)
    }

    /// Starts to load the line of a key into the cache. Call it some time before the lookup.
    #[inline]
    pub fn prefetch(&self, key: KeyHash) {
        silvics_sync::prefetch(self.start.as_ptr().wrapping_add(self.first(key)));
    }

    /// The number of the first word of a key.
    #[inline(always)]
    fn first(&self, key: KeyHash) -> usize {
        ((u128::from(key.0) * self.words as u128) >> 64) as usize
    }

    /// Calls `visit` with each word of a key and the bits that the key has there, until it returns
    /// false. Returns whether it always returned true.
    #[inline(always)]
    fn each_word(&self, key: KeyHash, mut visit: impl FnMut(&AtomicU64, u64) -> bool) -> bool {
        let first = self.first(key);
        let mut hash = key.0.wrapping_mul(SPREAD);
        (0..self.pairs).all(|at| {
            let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63);
            hash = hash.rotate_right(12);
            // SAFETY: B1: `first` is below `words`, a multiple of 8, and `at` is below 8, so their
            // exclusive or is below `words` too.
            visit(unsafe { self.start.add(first ^ at).as_ref() }, bits)
        })
    }
}

/// Loom registers its atomics, so their memory must not just go away.
#[cfg(silvics_loom)]
impl Drop for DynamicBloom {
    fn drop(&mut self) {
        for at in 0..self.words {
            // SAFETY: B1, and nobody else has the filter.
            unsafe { self.start.add(at).drop_in_place() };
        }
    }
}

impl fmt::Debug for DynamicBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, probes) = (self.bits(), 2 * self.pairs);
        f.debug_struct("DynamicBloom")
            .field("bits", &bits)
            .field("probes", &probes)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use silvics_pool::{Config, Pages};

    fn filter(bits: usize, probes: usize) -> DynamicBloom {
        let arena = Arc::new(ConcurrentArena::new(&Config::default(), 1 << 20));
        DynamicBloom::new(bits, probes, &arena).unwrap()
    }

    fn key(number: u64) -> KeyHash {
        KeyHash::of(&number.to_be_bytes())
    }

    /// The rate of false positives of a filter with `keys` keys.
    ///
    /// The words of a key are in a group: the `pairs` words, rounded up to a power of two. The
    /// number of keys of a group is Poisson distributed, and each has two bits in a word of the
    /// group with the probability `pairs` / `group`.
    fn expected_rate(bits: usize, pairs: i32, keys: f64) -> f64 {
        let group = f64::from((pairs as u32).next_power_of_two());
        let mean = keys * group / (bits / 64) as f64;
        let part = f64::from(pairs) / group;
        let (mut rate, mut poisson) = (0.0, (-mean).exp());
        for keys in 0..1000 {
            let unset = |bits: f64| (1.0 - part + part * (1.0 - bits / 64.0).powi(2)).powi(keys);
            // Both bits of the probe may be the same one.
            let both_unset = 63.0 / 64.0 * unset(2.0) + unset(1.0) / 64.0;
            rate += poisson * (1.0 - 2.0 * unset(1.0) + both_unset).powi(pairs);
            poisson *= mean / f64::from(keys + 1);
        }
        rate
    }

    #[test]
    #[cfg_attr(miri, ignore = "a rate needs many keys")]
    fn the_rate_of_false_positives_is_that_of_the_formula() {
        const ASKED: u64 = 400_000;
        for (bits_per_key, probes) in [(10, 6), (10, 8), (5, 2), (5, 4), (16, 10)] {
            let keys = 100_000;
            let bloom = filter(bits_per_key * keys, probes);
            (0..keys as u64).for_each(|number| bloom.add(key(number)));
            assert!((0..keys as u64).all(|number| bloom.may_contain(key(number))));
            let absent = keys as u64..keys as u64 + ASKED;
            let found = absent.filter(|&number| bloom.may_contain(key(number))).count();
            let rate = found as f64 / ASKED as f64;
            let expected = expected_rate(bloom.bits(), probes as i32 / 2, keys as f64);
            println!("{bits_per_key} bits, {probes} probes: {rate:.5}, expected {expected:.5}");
            // Four standard deviations, and what the formula leaves out.
            let tolerance = 4.0 * (expected / ASKED as f64).sqrt() + 0.04 * expected;
            assert!((rate - expected).abs() < tolerance, "{rate} is not {expected}");
        }
    }

    #[test]
    fn threads_lose_no_key() {
        const THREADS: u64 = 4;
        let keys = if cfg!(miri) { 50 } else { 20_000 };
        let bloom = filter(1 << 12, 6); // small, so that threads meet in words
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let bloom = &bloom;
                scope.spawn(move || {
                    for number in 0..keys {
                        let key = key(number * THREADS + thread);
                        bloom.add_concurrently(key);
                        assert!(bloom.may_contain(key));
                    }
                });
            }
        });
        assert!((0..keys * THREADS).all(|number| bloom.may_contain(key(number))));
    }

    #[test]
    fn an_add_returns_whether_it_changed_the_filter() {
        let (one, other) = (filter(1 << 16, 6), filter(1 << 16, 6));
        for number in 0..1000 {
            let known = one.may_contain(key(number));
            assert_eq!(one.add_concurrently(key(number)), !known);
            assert!(!one.add_concurrently(key(number)));
            other.add(key(number));
        }
        // Both kinds of add set the same bits.
        let word = |bloom: &DynamicBloom, at: usize| {
            assert!(at < bloom.words);
            // SAFETY: B1.
            unsafe { bloom.start.add(at).as_ref() }.load(Ordering::Relaxed)
        };
        assert!((0..one.words).all(|at| word(&one, at) == word(&other, at)));
    }

    #[test]
    fn sizes_are_whole_lines_and_probes_are_bounded() {
        for (bits, lines) in [(0, 1), (1, 1), (512, 1), (513, 2), (5000, 10)] {
            for probes in [0, 1, 3, 10, usize::MAX] {
                let bloom = filter(bits, probes);
                assert_eq!(bloom.bits(), lines * 512);
                assert_eq!(bloom.pairs, probes.clamp(1, 10).div_ceil(2));
                assert!(bloom.start.addr().get().is_multiple_of(LINE));
                assert!(!bloom.may_contain(key(1)), "nothing was added");
                for key in [KeyHash(0), KeyHash(u64::MAX), key(1)] {
                    bloom.prefetch(key);
                    bloom.add(key);
                    assert!(bloom.may_contain(key));
                }
            }
        }
    }

    #[test]
    fn the_arena_is_charged_and_may_refuse() {
        let config = Config::new(Pages::Small, Some(1 << 20));
        let arena = Arc::new(ConcurrentArena::new(&config, 1 << 20));
        let bloom = DynamicBloom::new(1 << 20, 6, &arena).unwrap();
        assert!(config.budget.held() >= (1 << 20) / 8);
        let refused = DynamicBloom::new(1 << 30, 6, &arena);
        assert!(matches!(refused, Err(AllocError::Limit { .. })));
        assert!(DynamicBloom::new(usize::MAX, 6, &arena).is_err());
        drop(arena);
        bloom.add(key(1));
        assert!(bloom.may_contain(key(1)), "the filter keeps the arena");
        drop(bloom);
        assert_eq!(config.budget.held(), 0);
    }
}

#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_pool::{Config, Pages};

    /// Two threads add two keys with bits in one word at once.
    fn no_bit_is_lost(lost: bool) {
        loom::model(move || {
            let arena = Arc::new(ConcurrentArena::new(&Config::new(Pages::Small, None), 4096));
            let bloom = Arc::new(DynamicBloom::new(512, 2, &arena).unwrap());
            // The upper bits are equal, so the word is the same.
            let keys = [KeyHash(1), KeyHash(2)];
            assert_eq!(bloom.first(keys[0]), bloom.first(keys[1]));
            let other = {
                let bloom = Arc::clone(&bloom);
                thread::spawn(move || bloom.add_by(keys[1], lost))
            };
            let changed = bloom.add_by(keys[0], lost);
            let other_changed = other.join().unwrap();
            assert!(keys.iter().all(|&key| bloom.may_contain(key)), "a bit is lost");
            assert!(changed && other_changed);
        });
    }

    #[test]
    fn concurrent_adds_lose_no_bit() {
        no_bit_is_lost(false);
    }

    /// The twin that the canary `LostBloomBit` plants.
    #[test]
    #[should_panic(expected = "a bit is lost")]
    fn an_add_by_load_and_store_loses_a_bit() {
        no_bit_is_lost(true);
    }
}
