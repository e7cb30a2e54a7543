//! The latencies of the calls of one contender.

use super::cell::Config;
use crate::drive::scans::ScanBy;
use crate::drive::timed::Times;
use crate::names::{self, Name};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use silvics_workload::Op;

/// The latencies of the calls of one verb.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// The verb: `lookup`, `insert`, `remove`, `scan` or `upsert`.
    #[serde(deserialize_with = "names::one")]
    pub verb: Name,
    /// The keys of a sample: those of a batch, or the entries that a scan asks for. Null for scans
    /// of everything.
    pub keys: Option<usize>,
    /// The calls of a sample: 1, or one for each key of a batch if the library has no call for
    /// batches.
    pub calls: usize,
    /// The part of each sample that the clock and the loop took, as the median of an index that
    /// does nothing in the same configuration. Null if that made no such call.
    pub clock_ns: Option<u64>,
    /// The number of samples, over all rounds and threads.
    pub samples: u64,
    pub mean_ns: f64,
    /// The percentiles, in ascending order. Those that fewer than one call lies above are left out.
    pub points: Vec<Point>,
    pub max_ns: u64,
}

/// A percentile of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The share of samples, in percent, that took at most `ns`.
    pub percentile: f64,
    pub ns: u64,
}

/// The percentiles in tables.
pub const SHOWN: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

impl Latency {
    fn of(op: Op, times: &Histogram<u64>, unit: Unit, clock_ns: Option<u64>) -> Self {
        let samples = times.len();
        let above = |percentile: f64| samples as f64 * (100.0 - percentile) / 100.0;
        // The rounding of a percentile must not remove it where exactly one call lies above.
        let points = percentiles().into_iter().filter(|&point| above(point) > 1.0 - 1e-6);
        // Rounded, so that the 999th of 1000 calls is p99.9, not the 1000th.
        let share = |percentile: f64| (percentile * 1e6).round() / 1e8;
        let of = |percentile| Point { percentile, ns: times.value_at_quantile(share(percentile)) };
        Self {
            verb: name(op),
            keys: unit.keys,
            calls: unit.calls,
            clock_ns,
            samples,
            mean_ns: times.mean(),
            points: points.map(of).collect(),
            max_ns: times.max(),
        }
    }

    /// The latency at a percentile of [`SHOWN`]. `None` if there were too few calls.
    pub fn at(&self, percentile: f64) -> Option<u64> {
        let is = |point: &&Point| (point.percentile - percentile).abs() < 1e-9;
        self.points.iter().find(is).map(|point| point.ns)
    }
}

/// The latencies of each verb that made calls. `clock` has those of an index that does nothing.
pub(super) fn of(times: &Times, clock: &Times, config: &Config) -> Vec<Latency> {
    let of = |(op, samples)| {
        Latency::of(op, samples, Unit::of(op, config, times.takes_many(op)), clock.median(op))
    };
    times.by_verb().map(of).collect()
}

/// The content of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    keys: Option<usize>,
    calls: usize,
}

impl Unit {
    fn of(op: Op, config: &Config, takes_many: bool) -> Self {
        let keys = match (op, config.scan_by) {
            (Op::Lookup | Op::Insert | Op::Upsert, _) => Some(config.batch),
            (Op::Remove, _) | (Op::Scan, ScanBy::Next) => Some(1),
            (Op::Scan, ScanBy::Range) => Some(config.scan_length),
            (Op::Scan, ScanBy::Whole) => None,
        };
        let is_batch = matches!(op, Op::Lookup | Op::Insert | Op::Upsert);
        Self { keys, calls: if is_batch && !takes_many { config.batch } else { 1 } }
    }
}

fn name(op: Op) -> &'static str {
    match op {
        Op::Lookup => "lookup",
        Op::Insert => "insert",
        Op::Remove => "remove",
        Op::Scan => "scan",
        Op::Upsert => "upsert",
    }
}

/// The percentiles of a curve, in ascending order: from 0 in steps of 10 to 90, then four steps for
/// each ten times fewer calls above (90, 92.5, 95, 97.5, 99, 99.25, …), to 99.9999.
fn percentiles() -> Vec<f64> {
    let tenths = (0..9).map(|tenth| f64::from(10 * tenth));
    let tails = (1..=5).flat_map(|decade| {
        let above = 10.0_f64.powi(2 - decade);
        [1.0, 0.75, 0.5, 0.25].map(|part| 100.0 - part * above)
    });
    let rounded = tenths.chain(tails).chain([99.9999]).map(|point| (point * 1e6).round() / 1e6);
    rounded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(times: impl IntoIterator<Item = u64>) -> Latency {
        let mut histogram = Histogram::new(3).unwrap();
        times.into_iter().for_each(|nanos| histogram.record(nanos).unwrap());
        Latency::of(Op::Scan, &histogram, Unit { keys: Some(7), calls: 1 }, Some(20))
    }

    #[test]
    fn percentiles_are_those_of_the_calls() {
        let latency = latency(1..=1000);
        assert_eq!((latency.verb, latency.samples, latency.max_ns), ("scan", 1000, 1000));
        assert!((latency.mean_ns - 500.5).abs() < 0.5);
        let shown = SHOWN.map(|percentile| latency.at(percentile));
        assert_eq!(shown, [Some(500), Some(900), Some(990), Some(999), None]);
        assert_eq!(latency.points[0], Point { percentile: 0.0, ns: 1 });
        let ascends =
            |pair: &[Point]| pair[0].percentile < pair[1].percentile && pair[0].ns <= pair[1].ns;
        assert!(latency.points.windows(2).all(ascends), "{latency:?}");
    }

    /// A percentile above which there is less than one call would be the longest call.
    #[test]
    fn few_calls_have_few_percentiles() {
        let last = |calls| latency(1..=calls).points.last().map(|point| point.percentile);
        assert_eq!([1, 10, 100].map(last), [Some(0.0), Some(90.0), Some(99.0)]);
    }

    #[test]
    fn a_sample_has_the_keys_of_its_calls() {
        let unit = |op, scan_by, takes_many| {
            let mix = "20/20/20/20/20".parse().expect("a mix");
            let config = Config { mix, batch: 64, threads: 1, scan_by, scan_length: 5 };
            let Unit { keys, calls } = Unit::of(op, &config, takes_many);
            (keys, calls)
        };
        assert_eq!(unit(Op::Lookup, ScanBy::Range, true), (Some(64), 1));
        assert_eq!(unit(Op::Insert, ScanBy::Range, false), (Some(64), 64));
        assert_eq!(unit(Op::Upsert, ScanBy::Range, true), (Some(64), 1));
        assert_eq!(unit(Op::Remove, ScanBy::Range, false), (Some(1), 1));
        let scans = [ScanBy::Range, ScanBy::Next, ScanBy::Whole];
        let scans = scans.map(|by| unit(Op::Scan, by, false));
        assert_eq!(scans, [(Some(5), 1), (Some(1), 1), (None, 1)]);
    }

    #[test]
    fn curves_have_the_percentiles_of_tables() {
        let all = percentiles();
        assert!(SHOWN.iter().all(|shown| all.contains(shown)), "{all:?}");
        assert_eq!(all.last(), Some(&99.9999));
    }
}
