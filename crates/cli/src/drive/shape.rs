//! Runs of an index that adapts its shape to contention, with samples of the shape.

use super::keys::BenchKey;
use super::run::{Failure, RunSpec};
use super::subject::{Crew, Outcome, Subject, Traffic, Watch};
use serde::Serialize;
use silvics::Adaptation;
use std::time::{Duration, Instant};

/// The time between two samples of a run.
pub const EVERY: Duration = Duration::from_millis(10);

/// The shape of an index at one time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The time since the run began.
    pub seconds: f64,
    pub route_nodes: usize,
    pub base_nodes: usize,
    /// The most route nodes above a base node.
    pub deepest: u32,
    /// The splits since the index was made.
    pub splits: u64,
    /// The joins since the index was made.
    pub joins: u64,
    pub statistics: Statistics,
}

/// The statistics of all base nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    pub min: i64,
    pub median: i64,
    pub max: i64,
}

impl Statistics {
    fn of(adaptation: &Adaptation) -> Self {
        let bases = adaptation.base_nodes.iter();
        let mut all: Vec<i64> = bases.map(|base| base.statistics).collect();
        all.sort_unstable();
        match (all.first(), all.get(all.len() / 2), all.last()) {
            (Some(&min), Some(&median), Some(&max)) => Self { min, median, max },
            _ => Self::default(),
        }
    }
}

impl Sample {
    /// The sample of a shape.
    pub fn of(seconds: f64, adaptation: &Adaptation) -> Self {
        Self {
            seconds,
            route_nodes: adaptation.route_nodes,
            base_nodes: adaptation.base_nodes.len(),
            deepest: adaptation.deepest(),
            splits: adaptation.splits,
            joins: adaptation.joins,
            statistics: Statistics::of(adaptation),
        }
    }
}

/// The samples of a run. The last one was taken when its threads had ended.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    pub samples: Vec<Sample>,
    /// The time that it took to take them.
    spent: Duration,
}

impl Sampled {
    /// The share that the samples took of a run of this many seconds. It includes the time that
    /// their thread waited for a core.
    pub fn share(&self, seconds: f64) -> f64 {
        self.spent.as_secs_f64() / seconds
    }

    fn take<K: BenchKey + ?Sized>(&mut self, subject: &Subject<K>, start: Instant) {
        let before = Instant::now();
        let Some(adaptation) = subject.adaptation() else { return };
        self.samples.push(Sample::of((before - start).as_secs_f64(), &adaptation));
        self.spent += before.elapsed();
    }
}

/// Runs operations as [`Subject::run`] does, and samples the shape of the index at the start, after
/// each [`EVERY`] and at the end.
pub fn run<K: BenchKey + ?Sized>(
    subject: &Subject<K>,
    traffic: &Traffic<K>,
    spec: &RunSpec,
    crew: &Crew,
) -> Result<(Outcome, Sampled), Failure> {
    let (mut sampled, mut start) = (Sampled::default(), None);
    let mut look = || sampled.take(subject, *start.get_or_insert_with(Instant::now));
    let watch = Watch { every: EVERY, look: &mut look };
    let outcome = subject.run_watched(traffic, spec, crew, watch)?;
    look();
    Ok((outcome, sampled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics::BaseNode;

    #[test]
    fn a_sample_sums_up_a_shape() {
        let base = |statistics, depth| BaseNode { statistics, depth };
        let base_nodes = vec![base(7, 1), base(-300, 2), base(20, 2)];
        let shape = Adaptation { splits: 5, joins: 3, route_nodes: 2, base_nodes };
        let sample = Sample::of(0.5, &shape);
        assert_eq!((sample.route_nodes, sample.base_nodes, sample.deepest), (2, 3, 2));
        assert_eq!((sample.splits, sample.joins), (5, 3));
        assert_eq!(sample.statistics, Statistics { min: -300, median: 7, max: 20 });
    }
}
