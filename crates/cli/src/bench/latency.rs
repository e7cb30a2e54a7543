//! The latencies of the calls of one contender, as data.

use serde::Serialize;

/// The latencies of the calls of one verb.
#[derive(Clone, Debug, Serialize)]
#[allow(dead_code, reason = "nothing measures latencies yet")]
pub struct Latency {
    /// The verb, such as `get` or `insert`.
    pub verb: &'static str,
    /// The number of calls that were timed.
    pub samples: u64,
    pub mean_ns: f64,
    /// The percentiles, in ascending order.
    pub points: Vec<Point>,
    pub max_ns: u64,
}

/// A percentile of latencies.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(dead_code, reason = "nothing measures latencies yet")]
pub struct Point {
    /// The share of calls, in percent, that took at most `ns`.
    pub percentile: f64,
    pub ns: u64,
}
