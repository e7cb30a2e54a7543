//! The latencies of the calls of one contender, and the cost of the clock that measured them.

use crate::drive::stats::Interval;
use crate::drive::timed::Times;
use hdrhistogram::Histogram;
use serde::Serialize;
use silvics_workload::Op;

/// The latencies of the calls of one verb.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// The verb: `lookup`, `insert`, `remove`, `scan` or `upsert`.
    pub verb: &'static str,
    /// The number of calls that were timed, over all rounds and threads.
    pub samples: u64,
    pub mean_ns: f64,
    /// The percentiles, in ascending order. Those that fewer than one call lies above are left out.
    pub points: Vec<Point>,
    pub max_ns: u64,
}

/// A percentile of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The share of calls, in percent, that took at most `ns`.
    pub percentile: f64,
    pub ns: u64,
}

/// The percentiles in tables.
pub const SHOWN: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

impl Latency {
    fn of(op: Op, times: &Histogram<u64>) -> Self {
        let samples = times.len();
        let above = |percentile: f64| samples as f64 * (100.0 - percentile) / 100.0;
        // The rounding of a percentile must not remove it where exactly one call lies above.
        let points = percentiles().into_iter().filter(|&point| above(point) > 1.0 - 1e-6);
        // Rounded, so that the 999th of 1000 calls is p99.9, not the 1000th.
        let share = |percentile: f64| (percentile * 1e6).round() / 1e8;
        let of = |percentile| Point { percentile, ns: times.value_at_quantile(share(percentile)) };
        Self {
            verb: name(op),
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

/// The latencies of each verb that made calls.
pub fn of(times: &Times) -> Vec<Latency> {
    times.by_verb().map(|(op, times)| Latency::of(op, times)).collect()
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

/// The cost of the clock: the latencies of an index that does nothing.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The median latency of each run, in nanoseconds.
    medians: Vec<f64>,
}

impl Clock {
    /// Adds a run. A verb that made no call adds nothing.
    pub fn add(&mut self, times: &Times) {
        let medians = times.by_verb().map(|(_, times)| times.value_at_quantile(0.5) as f64);
        self.medians.extend(medians);
    }

    /// Adds what another cell measured.
    pub fn join(&mut self, other: Self) {
        self.medians.extend(other.medians);
    }

    /// The median over the runs and verbs. `None` if there were no runs.
    pub fn ns(&self) -> Option<f64> {
        Some(Interval::of(&self.medians)?.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(times: impl IntoIterator<Item = u64>) -> Latency {
        let mut histogram = Histogram::new(3).unwrap();
        times.into_iter().for_each(|nanos| histogram.record(nanos).unwrap());
        Latency::of(Op::Scan, &histogram)
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
    fn curves_have_the_percentiles_of_tables() {
        let all = percentiles();
        assert!(SHOWN.iter().all(|shown| all.contains(shown)), "{all:?}");
        assert_eq!(all.last(), Some(&99.9999));
    }
}
