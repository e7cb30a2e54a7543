//! Medians and their intervals.
//!
//! The interval is made of order statistics, which assumes nothing about the distribution: between
//! the k-th smallest and the k-th largest of n samples lies the median with a probability of
//! P(k <= B <= n - k), B being binomial with n throws of a fair coin. The largest k is taken for
//! which that is at least 95 %. With fewer than six samples there is none; then smallest and
//! largest are shown, and the probability says what they are worth: 1 - 2^(1 - n).

use crate::flags::units::probability;
use serde::{Deserialize, Serialize};

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median of the samples.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The probability that an interval is asked to have.
const WANTED: f64 = 0.95;

impl Interval {
    /// The interval of samples in any order. `None` if there are no samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        if n == 0 {
            return None;
        }
        let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        let (k, _) = rank(n);
        Some(Self { median, low: sorted[k - 1], high: sorted[n - k] })
    }

    /// Makes the median and interval of rates from those of times, and the other way round.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { median: 1.0 / self.median, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

/// The probability that an interval of `n` samples covers the median.
pub fn coverage(n: usize) -> f64 {
    rank(n).1
}

/// The meaning of a figure and its interval, which covers the median with this probability.
pub fn meaning(coverage: f64) -> String {
    if coverage > 0.0 {
        let coverage = probability(coverage);
        return format!(
            "median of the rounds and an interval that covers it with {coverage} % (order statistics)"
        );
    }
    "that of the only round, so there is no interval".into()
}

/// The meaning of figures of several numbers of rounds, whose intervals cover their medians with at
/// least this probability.
pub fn meaning_at_least(coverage: f64) -> String {
    if coverage > 0.0 {
        let coverage = probability(coverage);
        return format!(
            "median of the rounds and an interval that covers it with at least {coverage} % (order \
             statistics), unless there was only one round"
        );
    }
    meaning(coverage)
}

/// The k of the interval, from 1, and its probability.
fn rank(n: usize) -> (usize, f64) {
    /// With more samples, B is as good as normal, and the first probability is too small to be told
    /// from zero.
    const EXACT: usize = 1000;
    if n > EXACT {
        const QUANTILE: f64 = 1.959_964; // of (1 + WANTED) / 2
        let k = (n as f64 / 2.0 - QUANTILE * (n as f64).sqrt() / 2.0).floor();
        return (k as usize, WANTED);
    }
    // P(B = i) for i = 0, 1, …; both tails below k are cut off.
    let mut probability = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut tail = probability;
    let mut best = (1, (1.0 - 2.0 * tail).max(0.0));
    for k in 2..=n.div_ceil(2) {
        probability *= (n - k + 2) as f64 / (k - 1) as f64;
        tail += probability;
        let covered = 1.0 - 2.0 * tail;
        if covered < WANTED {
            break;
        }
        best = (k, covered);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[f64]) -> (f64, f64, f64) {
        let interval = Interval::of(samples).unwrap();
        (interval.low, interval.median, interval.high)
    }

    #[test]
    fn few_samples_show_their_ends() {
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(of(&[3.0]), (3.0, 3.0, 3.0));
        assert_eq!(of(&[4.0, 2.0]), (2.0, 3.0, 4.0));
        assert_eq!(of(&[5.0, 1.0, 2.0]), (1.0, 2.0, 5.0));
        assert_eq!(coverage(1).to_string(), "0");
        assert!(meaning(coverage(1)).contains("no interval"));
        // Ten rounds cover more than nine, and none covers all.
        assert!(meaning(0.9978).contains("with 99.7 % ("));
        assert!((coverage(5) - 0.9375).abs() < 1e-12);
    }

    /// Against the table in David and Nagaraja, "Order Statistics", 3rd edition, section 7.1.
    #[test]
    fn ranks_are_those_of_the_sign_test() {
        for (n, k, covered) in [
            (6, 1, 0.969),
            (8, 1, 0.992),
            (9, 2, 0.961),
            (10, 2, 0.979),
            (12, 3, 0.961),
            (20, 6, 0.959),
        ] {
            let (found, probability) = rank(n);
            assert_eq!(found, k, "{n} samples");
            assert!((probability - covered).abs() < 0.001, "{n} samples: {probability}");
        }
    }

    #[test]
    fn many_samples_leave_outliers_out() {
        let mut samples: Vec<f64> = (1..=20).map(f64::from).collect();
        samples[0] = -1000.0;
        samples[19] = 1000.0;
        assert_eq!(of(&samples), (6.0, 10.5, 15.0));
        // The normal distribution continues where the exact one ends.
        let [(exact, covered), (normal, _)] = [rank(1000), rank(1001)];
        assert!((WANTED..WANTED + 0.01).contains(&covered) && exact.abs_diff(normal) <= 1);
        assert_eq!(rank(10_000), (4902, WANTED));
    }
}
