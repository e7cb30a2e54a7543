//! trie/3.3: the depth of tries, and the alphabet that is best.
//!
//! # Method
//! The nodes above a key follow from the set of keys: each is at a character in which keys below it
//! differ. So depths are counted in the sorted keys, and no trie is needed.

use super::subjects::{Subject, Turns, key, millions};
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, ratio};
use silvics::patricia::build::Paper;

const KEYS: usize = 1_000_000;

/// With fewer keys, a mean depth depends on how full the last level is.
const FEW: usize = 10_000;

/// The threads of the clock's lines.
const THREADS: usize = 8;

/// The alphabets by the bits of a character.
const BITS: [u32; 4] = [1, 2, 4, 8];

pub fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let keys = lab.plan.keys(KEYS);
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(depths(keys));
    }
    if lab.wants(Level::Clock) {
        lines.extend(clock(lab, keys)?);
    }
    Ok(lines)
}

/// The sum of the depths of all keys: the nodes with two children or more above each.
fn depth(keys: &[u128], bits: u32) -> u64 {
    let [first, .., last] = keys else { return 0 };
    // All keys in order have the characters in common that the first and the last have.
    let alike = (first ^ last).leading_zeros() / bits;
    let character = |key: u128| key << (alike * bits) >> (u128::BITS - bits);
    let parts = keys.chunk_by(|a, b| character(*a) == character(*b));
    keys.len() as u64 + parts.map(|keys| depth(keys, bits)).sum::<u64>()
}

fn depths(keys: usize) -> Vec<Evidence> {
    let mut all: Vec<u128> = (0..keys as u64).map(|n| key(2 * n)).collect();
    all.sort_unstable();
    let depths = BITS.map(|bits| depth(&all, bits) as f64 / keys as f64);
    let mut lines: Vec<Evidence> = BITS
        .windows(2)
        .zip(depths.windows(2))
        .map(|(bits, depths)| {
            let what = format!("mean depth with {} bits / with {}", bits[1], bits[0]);
            // The last level is a whole character, whatever its bits.
            let expected = Expected::Within(0.45, 0.62);
            let figures = format!("({:.2} and {:.2} nodes)", depths[1], depths[0]);
            let ratio = depths[1] / depths[0];
            Evidence::fact(what, Unit::Number(2), expected, ratio).with(&figures).unless(few(keys))
        })
        .collect();
    let falls = depths.is_sorted_by(|before, after| before > after);
    let found = depths.map(|depth| format!("{depth:.2}")).join(", ");
    let what = "mean depth by alphabet: falls from each to the next";
    lines.push(Evidence::plain(what, "it falls".into(), found, falls));
    lines
}

/// The reason why the depths of few keys say nothing.
fn few(keys: usize) -> Option<String> {
    (keys < FEW).then(|| format!("the last level of fewer than {FEW} keys decides the mean depth"))
}

fn clock(lab: &Lab, keys: usize) -> Result<Vec<Evidence>, Error> {
    let (crew, sync) = (Crew::new(), lab.plan.sync);
    let tries = [
        Subject::teleporting::<Paper<2>>("patricia-2:paper", sync)?.loaded(&crew, keys)?,
        Subject::teleporting::<Paper<4>>("patricia-4:paper", sync)?.loaded(&crew, keys)?,
        Subject::teleporting::<Paper<16>>("patricia-16:paper", sync)?.loaded(&crew, keys)?,
        Subject::teleporting::<Paper<256>>("patricia-256:paper", sync)?.loaded(&crew, keys)?,
    ];
    let (rounds, seed) = (Rounds::new(lab.plan.quick), lab.plan.seed);
    let turns = Turns { crew: &crew, keys, rounds, seed };
    let samples = turns.speeds(&tries.each_ref().map(|trie| (trie, THREADS)))?;
    let mut lines: Vec<Evidence> = tries
        .iter()
        .zip(&samples)
        .map(|(trie, samples)| {
            let what = format!("{}, {THREADS} threads, 90/5/5, M/s", trie.name);
            Evidence::noted(Level::Clock, what, millions(samples))
        })
        .collect();
    for (other, claimed) in [(0, "16 is the best"), (3, "16 is the best")] {
        let what = format!("patricia-16:paper / {}, {THREADS} threads", tries[other].name);
        lines.push(Evidence::faster(what, claimed, ratio(&samples[2], &samples[other])));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_follow_from_sorted_keys() {
        assert_eq!(depth(&[], 1) + depth(&[7], 4), 0);
        // Two keys that differ in one place have one node above each, in any alphabet.
        for bits in BITS {
            assert_eq!(depth(&[1, 3], bits), 2);
            assert_eq!(depth(&[0, 1 << 127], bits), 2);
        }
        // Four keys of two bits: a root with two nodes, or one with four keys.
        let keys = [0, 1, 2, 3].map(|n: u128| n << 126);
        assert_eq!((depth(&keys, 1), depth(&keys, 2), depth(&keys, 8)), (8, 4, 4));
    }
}
