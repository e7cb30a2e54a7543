//! The ratio of two runs, with an interval that respects the samples of both.
//!
//! Two runs have m and n samples. Each sample of the one is divided by each of the other. If the
//! runs differ by a constant factor and by chance, this factor lies between the k-th smallest and
//! the k-th largest of these m·n ratios with a probability of 1 - 2 P(U < k). U is the statistic of
//! Mann and Whitney for two samples of one distribution, whatever this is (Hodges and Lehmann 1963;
//! Lehmann, "Nonparametrics", section 2.5, for differences: ratios are differences of logarithms).
//! So the interval needs no resampling, and is exact for few samples: two runs of five rounds each
//! that differ by chance alone have an interval without 1 in 2 of 252 cases.
//!
//! The ratio that is shown is that of the medians. The interval is widened to contain it if need
//! be.
//!
//! This says nothing about what differs between two processes but not among the rounds of one:
//! which pages they got, what else was running. Verdicts therefore leave out changes below a
//! threshold.

use crate::drive::stats::Interval;
use serde::Serialize;
use std::collections::HashMap;

/// The probability that an interval has if there are enough samples.
pub const WANTED: f64 = 0.99;
/// The least probability of an interval with which a change is seen.
pub const NEEDED: f64 = 0.95;

/// A comparison of two samples.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    /// The ratio of the medians, and the interval of the factor.
    #[serde(flatten)]
    pub interval: Interval,
    /// The probability that the interval covers the factor.
    pub coverage: f64,
}

/// The change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Faster,
    Slower,
    /// The interval reaches into the noise.
    NoChangeSeen,
    /// The samples are too few for any verdict.
    TooFewRounds,
}

impl Verdict {
    /// Its words in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoChangeSeen => "no change seen",
            Self::TooFewRounds => "too few rounds",
        }
    }
}

/// The ranks of intervals by the numbers of samples. Rows with as many samples share one.
#[derive(Debug, Default)]
pub struct Ranks(HashMap<(usize, usize), (u64, f64)>);

impl Ranks {
    /// The ratio of the samples `a` to the samples `b`. All are above zero. `None` if one of the
    /// runs has no samples.
    pub fn ratio(&mut self, a: &[f64], b: &[f64]) -> Option<Ratio> {
        if a.is_empty() || b.is_empty() {
            return None;
        }
        let (m, n) = (a.len(), b.len());
        Ratio::at(*self.0.entry((m, n)).or_insert_with(|| rank(m, n)), a, b)
    }
}

impl Ratio {
    /// The ratio with the interval of a rank, which is that of the numbers of samples.
    fn at((k, coverage): (u64, f64), a: &[f64], b: &[f64]) -> Option<Self> {
        let median = Interval::of(a)?.median / Interval::of(b)?.median;
        let (mut a, mut b) = (a.to_vec(), b.to_vec());
        a.sort_unstable_by(f64::total_cmp);
        b.sort_unstable_by(f64::total_cmp);
        let pairs = a.len() as u64 * b.len() as u64;
        let low = kth(&a, &b, k).min(median);
        let high = kth(&a, &b, pairs + 1 - k).max(median);
        Some(Self { interval: Interval { median, low, high }, coverage })
    }

    /// The change, if it is larger than `noise`, a share such as 0.02.
    pub fn verdict(&self, noise: f64) -> Verdict {
        if self.coverage < NEEDED {
            Verdict::TooFewRounds
        } else if self.interval.low > 1.0 + noise {
            Verdict::Faster
        } else if self.interval.high < 1.0 / (1.0 + noise) {
            Verdict::Slower
        } else {
            Verdict::NoChangeSeen
        }
    }
}

/// The k-th smallest ratio, from 1, of the ascending numbers `a` to the ascending numbers `b`.
fn kth(a: &[f64], b: &[f64], k: u64) -> f64 {
    // The bits of positive numbers have the order of the numbers.
    let (mut low, mut high) = (0, f64::INFINITY.to_bits());
    while low < high {
        let middle = low.midpoint(high);
        if at_most(a, b, f64::from_bits(middle)) >= k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(low)
}

/// The number of ratios that are at most `limit`.
fn at_most(a: &[f64], b: &[f64], limit: f64) -> u64 {
    let mut first = 0; // of `b` with which the ratio is low enough; it moves up with `a`
    let mut count = 0;
    for above in a {
        while first < b.len() && above / b[first] > limit {
            first += 1;
        }
        count += (b.len() - first) as u64;
    }
    count
}

/// The k of the interval of `m` and `n` samples, and its probability. It is the largest k with
/// [`WANTED`], or else 1.
fn rank(m: usize, n: usize) -> (u64, f64) {
    /// Above this number of pairs, U is as good as normal.
    const EXACT: usize = 2500;
    if m * n > EXACT {
        return rank_of_many(m as f64, n as f64);
    }
    let below = distribution(m, n);
    let mut tail = 0.0;
    let mut best = (1, 0.0);
    for (below_k, probability) in below.iter().enumerate() {
        tail += probability; // P(U <= below_k)
        let (k, covered) = (below_k as u64 + 1, 1.0 - 2.0 * tail);
        if k > 1 && covered < WANTED || 2 * k > (m * n) as u64 + 1 {
            break;
        }
        best = (k, covered.max(0.0));
    }
    best
}

/// The probabilities that U is 0, 1, … for `m` and `n` samples. The U of the samples `a` is the sum
/// of their ranks among all samples, less the least possible sum. U has the same distribution if
/// `m` and `n` change places, and the table is small if the fewer samples are ranked.
fn distribution(m: usize, n: usize) -> Vec<f64> {
    let (m, n) = (m.min(n), m.max(n));
    let pairs = m * n;
    let least = m * (m + 1) / 2;
    // ways[j][s]: the choices of j of the ranks so far whose sum is s.
    let mut ways = vec![vec![0.0_f64; pairs + least + 1]; m + 1];
    ways[0][0] = 1.0;
    for rank in 1..=m + n {
        for j in (1..=m.min(rank)).rev() {
            let (fewer, more) = ways.split_at_mut(j);
            for (sum, ways) in more[0].iter_mut().enumerate().skip(rank) {
                *ways += fewer[j - 1][sum - rank];
            }
        }
    }
    let chosen = &ways[m][least..];
    let all: f64 = chosen.iter().sum();
    chosen.iter().map(|ways| ways / all).collect()
}

/// The k of an interval of many samples, by the normal distribution with the mean and variance of
/// U.
fn rank_of_many(m: f64, n: f64) -> (u64, f64) {
    const QUANTILE: f64 = 2.575_829; // of (1 + WANTED) / 2
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let k = (m * n / 2.0 - QUANTILE * deviation).floor().max(1.0);
    (k as u64, WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Against the table of critical values of U: Lehmann, "Nonparametrics", table B.
    #[test]
    fn the_distribution_is_that_of_the_ranks() {
        let of = |m, n, u: usize| distribution(m, n)[..=u].iter().sum::<f64>();
        for (m, n, u, probability) in
            [(5, 5, 0, 1.0 / 252.0), (5, 5, 2, 4.0 / 252.0), (3, 4, 1, 2.0 / 35.0), (1, 9, 0, 0.1)]
        {
            assert!((of(m, n, u) - probability).abs() < 1e-12, "{m} {n} {u}");
        }
        assert_eq!(rank(5, 5).0, 1);
        assert!((rank(5, 5).1 - 250.0 / 252.0).abs() < 1e-12);
        // With 8 and 8 samples, U <= 7 is the critical region of 1 % (two-sided).
        assert_eq!(rank(8, 8).0, 8);
        assert_eq!(rank(20, 20).0, 106);
        // The normal distribution continues where the exact one ends.
        let (exact, normal) = (rank(50, 50).0, rank_of_many(50.0, 50.0).0);
        assert!(exact.abs_diff(normal) <= 3, "{exact} {normal}");
    }

    #[test]
    fn the_kth_ratio_is_that_of_all_sorted() {
        let (a, b) = ([1.0, 2.5, 4.0, 4.0], [0.5, 1.5, 3.0]);
        let mut all: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| a / b)).collect();
        all.sort_unstable_by(f64::total_cmp);
        for (at, ratio) in all.into_iter().enumerate() {
            assert_eq!(kth(&a, &b, at as u64 + 1).to_bits(), ratio.to_bits());
        }
    }

    /// A sample of a rate with a long tail towards low rates, as a busy machine has it.
    fn skewed(rng: &mut impl Rng, rounds: usize, rate: f64) -> Vec<f64> {
        let unit = |rng: &mut dyn Rng| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (0..rounds)
            .map(|_| rate * (1.0 - 0.05 * unit(rng).powi(4)) * (1.0 + 0.01 * unit(rng)))
            .collect()
    }

    /// The share of comparisons with a verdict, of runs whose rates differ by a factor.
    fn share(factor: f64, rounds: usize, noise: f64, wanted: Verdict) -> f64 {
        const TIMES: usize = 2000;
        let rank = rank(rounds, rounds);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(rounds as u64);
        let hits = (0..TIMES).filter(|_| {
            let (now, kept) = (skewed(&mut rng, rounds, factor), skewed(&mut rng, rounds, 1.0));
            Ratio::at(rank, &now, &kept).unwrap().verdict(noise) == wanted
        });
        hits.count() as f64 / TIMES as f64
    }

    /// Without a threshold the share is that of the interval: 1 % at most.
    #[test]
    fn two_runs_of_one_thing_are_rarely_called_different() {
        for rounds in [5, 8, 12, 30] {
            let same = share(1.0, rounds, 0.0, Verdict::NoChangeSeen);
            assert!(same >= 0.985, "{rounds} rounds: {same}");
            assert!(same <= 0.9995, "{rounds} rounds: {same}: the intervals are too long");
        }
    }

    #[test]
    fn changes_above_the_threshold_are_seen() {
        assert!(share(1.10, 5, 0.02, Verdict::Faster) > 0.99);
        assert!(share(1.0 / 1.10, 5, 0.02, Verdict::Slower) > 0.99);
        assert!(share(1.01, 30, 0.02, Verdict::NoChangeSeen) > 0.999);
        assert!(share(1.01, 30, 0.0, Verdict::Faster) > 0.5);
    }

    /// The factor lies in the interval as often as the coverage says.
    #[test]
    fn intervals_cover_the_factor() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        for (m, n) in [(2, 2), (3, 4), (5, 5), (10, 20)] {
            let (mut covered, rank) = (0, rank(m, n));
            for _ in 0..2000 {
                let (now, kept) = (skewed(&mut rng, m, 1.3), skewed(&mut rng, n, 1.0));
                let ratio = Ratio::at(rank, &now, &kept).unwrap();
                covered += usize::from((ratio.interval.low..=ratio.interval.high).contains(&1.3));
            }
            let (share, coverage) = (covered as f64 / 2000.0, rank.1);
            assert!((share - coverage).abs() < 0.03, "{m} and {n}: {share}, {coverage}");
        }
    }

    /// With 2500 samples ranked instead of one, the table would take 62 GB.
    #[test]
    fn the_fewer_samples_are_ranked() {
        let uniform = distribution(2500, 1);
        assert_eq!(uniform.len(), 2501);
        assert!(uniform.iter().all(|share| (share - 1.0 / 2501.0).abs() < 1e-12));
        assert_eq!(rank(800, 3), rank(3, 800));
    }

    #[test]
    fn rows_with_as_many_samples_share_a_rank() {
        let mut ranks = Ranks::default();
        for of in 1..=100 {
            assert!(ranks.ratio(&[f64::from(of); 30], &[1.0; 40]).is_some());
        }
        assert_eq!(ranks.0.len(), 1);
    }

    #[test]
    fn few_rounds_have_no_verdict() {
        let mut ranks = Ranks::default();
        let ratio = ranks.ratio(&[9.0, 9.1, 9.2], &[1.0, 1.1, 1.2]).unwrap();
        assert_eq!(ratio.verdict(0.02), Verdict::TooFewRounds);
        let ratio = ranks.ratio(&[9.0, 9.1, 9.2, 9.3], &[1.0, 1.1, 1.2, 1.3]).unwrap();
        assert_eq!(ratio.verdict(0.02), Verdict::Faster);
        assert!(ranks.ratio(&[], &[1.0]).is_none());
    }
}
