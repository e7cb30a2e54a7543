//! An index whose keys are scrambled.

use silvics::{AllocError, Guard, Options};
use silvics_store::index::{Scannable, Search};

/// The index `I`, which holds each key scrambled: neighbours lie far apart, as if their order was
/// random. Orders have ascending numbers, which turn a binary search tree that does not balance
/// itself into a list. The index cannot scan.
pub struct Scrambled<I>(pub I);

/// The keys that are looked up at once.
const BATCH: usize = 32;

/// Another number for each number: multiplication by an odd number, and the exclusive or with the
/// high half, can be undone.
#[inline(always)]
fn scramble(key: u64) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let once = key.wrapping_mul(ODD);
    (once ^ (once >> 32)).wrapping_mul(ODD)
}

// SAFETY: two keys are never scrambled to one, so the clauses are those of the inner index. It
// cannot scan (S4).
unsafe impl<I: Search<Form = u64>> Search for Scrambled<I> {
    type Form = u64;

    fn make(options: &Options) -> Result<Self, AllocError> {
        I::make(options).map(Self)
    }
    fn structure(&self) -> String {
        format!("{} of scrambled keys", self.0.structure())
    }
    #[inline(always)]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.0.get(scramble(key), guard)
    }
    fn get_many(&self, keys: &[u64], words: &mut [Option<u64>], guard: &Guard) {
        let mut scrambled = [0; BATCH];
        for (keys, words) in keys.chunks(BATCH).zip(words.chunks_mut(BATCH)) {
            for (to, key) in scrambled.iter_mut().zip(keys) {
                *to = scramble(*key);
            }
            self.0.get_many(&scrambled[..keys.len()], words, guard);
        }
    }
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.try_insert(scramble(key), word, guard) }
    }
    unsafe fn replace(&self, key: u64, word: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.replace(scramble(key), word, guard) }
    }
    unsafe fn remove(&self, key: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.remove(scramble(key), guard) }
    }

    silvics_store::pass_on!(0: count bytes pool_stats);
}

/// Whether an index scans is known when a table is made, as for [`silvics_store::index::Named`].
impl<I: Search<Form = u64>> Scannable for Scrambled<I> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_stay_different_and_lose_their_order() {
        let scrambled: Vec<u64> =
            (0..10_000).chain((1..64).map(|bit| 1 << bit)).map(scramble).collect();
        let distinct: HashSet<u64> = scrambled.iter().copied().collect();
        assert_eq!(distinct.len(), 10_000 + 63 - 13, "13 powers of two are there twice");
        let ascents = scrambled.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((4000..6000).contains(&ascents), "{ascents}");
    }
}
