//! Lookups with a skew, of which no two draws repeat each other.
//!
//! A [`Choice`](silvics_workload::Choice) repeats itself after some millions of lookups, and
//! another run of it draws the same lookups from another start. But the lookups that are sampled
//! and those that are counted later must have nothing in common except the skew. So each few
//! millions of lookups have a choice of their own, and its ranks belong to the same keys as those
//! of the first.

use super::zipf;
use silvics_workload::{Block, Choice, Mix, Share};

/// The keys that the ranks of a skew belong to.
pub struct Draws {
    exponent: f64,
    seed: u64,
    /// The positions of all keys, the hottest first.
    hottest: Vec<u32>,
}

/// The most lookups taken from one choice.
const MOST: usize = 1 << 22;
/// The most lookups taken from one choice for each key.
const OF_A_KEY: usize = 64;

impl Draws {
    /// The ranks of a Zipf distribution over `keys` keys, scattered over them.
    pub fn new(exponent: f64, keys: usize, seed: u64) -> Self {
        Self { exponent, seed, hottest: zipf(0.0, keys, seed).hottest().collect() }
    }

    /// Passes the positions of lookups to `see`. Each number gives other lookups.
    pub fn each(&self, number: u32, count: usize, mut see: impl FnMut(u32)) {
        let keys = self.hottest.len();
        let most = MOST.min(OF_A_KEY * keys);
        for part in 0..count.div_ceil(most) {
            let seed =
                self.seed.wrapping_add((u64::from(number) + 1) << 32).wrapping_add(part as u64);
            let choice = zipf(self.exponent, keys, seed);
            let mut place = vec![0; keys];
            for (theirs, ours) in choice.hottest().zip(&self.hottest) {
                place[theirs as usize] = *ours;
            }
            let of_part = most.min(count - part * most);
            positions(&choice, of_part, |position| see(place[position as usize]));
        }
    }
}

/// The positions of the first lookups of a choice.
fn positions(choice: &Choice, count: usize, mut see: impl FnMut(u32)) {
    let mut stream = choice.stream(Mix::LOOKUPS, 0, Share::ALONE, choice.start());
    let (mut block, mut left) = (Block::new(1), count);
    while left > 0 {
        stream.fill(&mut block);
        let some = &block.positions()[..left.min(block.len())];
        some.iter().copied().for_each(&mut see);
        left -= some.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(draws: &Draws, number: u32, count: usize) -> Vec<u32> {
        let mut all = Vec::new();
        draws.each(number, count, |position| all.push(position));
        all
    }

    #[test]
    fn draws_have_the_same_hot_keys_and_nothing_else_in_common() {
        let keys = 1000;
        let draws = Draws::new(1.2, keys, 7);
        // This is more than a choice has.
        let count = 2 * OF_A_KEY * keys + 5;
        let [sampled, later] = [0, 1].map(|number| drawn(&draws, number, count));
        assert_eq!((sampled.len(), later.len()), (count, count));
        assert_eq!(drawn(&draws, 0, count), sampled);
        for all in [&sampled, &later] {
            let of = |rank: usize| all.iter().filter(|at| **at == draws.hottest[rank]).count();
            let shares = [0, 1, 9].map(|rank| of(rank) as f64 / count as f64);
            // The first rank has this share of the sum of r^-1.2 over 1000 ranks, which is 4.3358.
            for (share, weight) in shares.into_iter().zip([1.0, 0.435_275, 0.063_096]) {
                assert!((share - weight / 4.3358).abs() < 0.005, "{shares:?}");
            }
        }
        // Parts of one draw do not repeat each other either.
        let most = OF_A_KEY * keys;
        assert_ne!(sampled[..100], sampled[most..most + 100]);
        assert_ne!(sampled[..100], later[..100]);
    }
}
