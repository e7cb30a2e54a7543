//! Random numbers of threads, and random orders.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Random numbers of one thread.
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// The numbers of a thread. Each run has a number of its own.
    pub fn new(seed: u64, run: u64, thread: usize) -> Self {
        let seed = seed.wrapping_add(run << 16).wrapping_add(thread as u64);
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`. All are equally likely, but for rounding.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }
}

/// The run of [`Draws`] for an order; runs by the clock have smaller numbers.
const ORDER: u64 = 1 << 32;

/// The numbers below `end` in random order. If keys are inserted in their own order, a tree that
/// does not balance itself becomes a list.
pub fn shuffled(end: u64, seed: u64) -> Vec<u64> {
    let (mut keys, mut draws) = ((0..end).collect::<Vec<_>>(), Draws::new(seed, ORDER, 0));
    for last in (1..keys.len()).rev() {
        keys.swap(last, draws.below(last as u64 + 1) as usize);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_are_in_another_order() {
        let keys = shuffled(1000, 1);
        assert!(keys != shuffled(1000, 2) && keys == shuffled(1000, 1));
        assert!(!keys.is_sorted());
        let mut sorted = keys;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }
}
