//! Bijections that scatter: no two positions collide, and neighbours end up far apart.
//!
//! Both bijections consist of steps that are each a bijection on words of `b` bits, modulo 2^b. The
//! steps add a constant, multiply by an odd number, or fold the upper bits onto the lower ones (`x
//! ^= x >> s`, `s >= 1`).

/// A seeded permutation of `0..len`, computed rather than stored.
///
/// It permutes the `b`-bit words, for the smallest `b` with `len <= 2^b`. A word outside `0..len`
/// is permuted again until it is inside ("cycle walking"), which takes less than two steps on
/// average.
#[derive(Clone, Copy, Debug)]
pub struct Scramble {
    len: u64,
    mask: u64,
    fold: u32,
    add: [u64; ROUNDS],
    multiply: [u64; ROUNDS],
}

/// 2^64 over the golden ratio, made odd. Multiples of it are spread evenly over the words.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of rounds. After two, the lower bits of neighbouring positions still correlate.
const ROUNDS: usize = 3;

impl Scramble {
    /// Makes the permutation of `0..len` for this seed.
    pub fn new(len: usize, seed: u64) -> Self {
        let len = len as u64;
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(GOLDEN);
            mix(state)
        };
        Self {
            len,
            mask: if bits == 0 { 0 } else { u64::MAX >> (64 - bits) },
            fold: bits.div_ceil(2).max(1),
            add: std::array::from_fn(|_| next()),
            multiply: std::array::from_fn(|_| next() | 1),
        }
    }

    /// The image of `position`.
    #[inline]
    pub fn apply(&self, position: u64) -> u64 {
        debug_assert!(position < self.len);
        let mut word = position;
        loop {
            for round in 0..ROUNDS {
                word = word.wrapping_add(self.add[round]) & self.mask;
                word ^= word >> self.fold;
                word = word.wrapping_mul(self.multiply[round]) & self.mask;
                word ^= word >> self.fold;
            }
            if word < self.len {
                return word;
            }
        }
    }
}

/// A fixed permutation of the 63-bit words: the keys of the `sparse` distribution.
#[inline]
pub const fn hash63(word: u64) -> u64 {
    const MASK: u64 = u64::MAX >> 1;
    let mut word = word & MASK;
    word ^= word >> 32;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9) & MASK;
    word ^= word >> 29;
    word = word.wrapping_mul(0x94d0_49bb_1331_11eb) & MASK;
    word ^ (word >> 32)
}

/// The finalizer of `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014): a permutation of the words.
pub(crate) const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn a_scramble_is_a_permutation(len in 1_usize..3000, seed: u64) {
            let scramble = Scramble::new(len, seed);
            let image: HashSet<u64> = (0..len as u64).map(|p| scramble.apply(p)).collect();
            prop_assert_eq!(image.len(), len);
            prop_assert!(image.iter().all(|&p| p < len as u64));
        }

        #[test]
        fn hash63_keeps_distinct_words_apart(a in 0_u64..1 << 63, b in 0_u64..1 << 63) {
            prop_assert_eq!(a == b, hash63(a) == hash63(b));
            prop_assert!(hash63(a) < 1 << 63);
        }
    }

    #[test]
    fn every_power_of_two_has_its_own_edge() {
        for len in [1, 2, 3, 4, 5, 7, 8, 9, 1023, 1024, 1025] {
            let scramble = Scramble::new(len, 7);
            let mut image: Vec<u64> = (0..len as u64).map(|p| scramble.apply(p)).collect();
            image.sort_unstable();
            assert!(image.iter().copied().eq(0..len as u64), "{len}");
        }
    }

    #[test]
    fn neighbours_end_up_far_apart() {
        const LEN: usize = 1 << 20;
        let scramble = Scramble::new(LEN, 3);
        let near = (1..LEN as u64)
            .filter(|&p| scramble.apply(p).abs_diff(scramble.apply(p - 1)) < 1024)
            .count();
        // Random pairs would be near in 2 * 1024 / 2^20 of 2^20 cases.
        assert!((1500..2600).contains(&near), "{near}");
    }

    /// A binary search tree filled in this order must look like one filled in random order.
    /// Otherwise the benchmark would flatter trees that do not rebalance.
    #[test]
    fn a_tree_filled_in_this_order_is_as_deep_as_a_random_one() {
        const LEN: usize = 1 << 16;
        for seed in 0..5 {
            let scramble = Scramble::new(LEN, seed);
            // The depth of a node is one more than that of the deeper of its two neighbours when it
            // is inserted.
            let mut depths = std::collections::BTreeMap::new();
            let mut total = 0_usize;
            for p in 0..LEN as u64 {
                let key = scramble.apply(p);
                let below = depths.range(..key).next_back().map_or(0, |(_, &d)| d);
                let above = depths.range(key..).next().map_or(0, |(_, &d)| d);
                let depth = 1 + below.max(above);
                total += depth;
                depths.insert(key, depth);
            }
            let average = total as f64 / LEN as f64;
            // A random order gives 2 ln n - 1.85 on average: 20.3 here.
            assert!((18.5..22.5).contains(&average), "seed {seed}: {average}");
        }
    }
}
