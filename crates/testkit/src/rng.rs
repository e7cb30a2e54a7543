//! A generator for test data: Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014.

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator that returns the same numbers for each pair of `seed` and `stream`.
    pub(crate) fn new(seed: u64, stream: usize) -> Self {
        Self(mix(seed ^ mix(stream as u64 + 1)))
    }

    /// A random word.
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// True `percent` times in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A bijection of the 64-bit words without visible structure.
pub(crate) const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The `at`-th number below `len`, a power of two, in an order that keeps unbalanced trees flat.
pub(crate) const fn scattered(at: u64, len: u64) -> u64 {
    debug_assert!(len.is_power_of_two());
    at.wrapping_mul(0x9e37_79b9) & (len - 1)
}
