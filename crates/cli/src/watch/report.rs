//! The result of watching an index, as data.

use super::plan::Plan;
use crate::drive::shape::Sample;
use crate::host::machine::Machine;
use serde::Serialize;

/// The whole result. The JSON output has the fields of this structure.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub config: Config,
    pub phases: Vec<Phase>,
    /// Whether the user interrupted it. The phases hold what was seen.
    pub interrupted: bool,
    /// Whether the index had exactly the keys that it must have, with their values.
    pub checked: bool,
}

/// The configuration, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    pub index: String,
    pub keys: usize,
    /// The threads of the first phase.
    pub threads: usize,
    /// The duration of a phase.
    pub seconds: f64,
}

/// The writes of some threads.
#[derive(Debug, Serialize)]
pub struct Phase {
    pub threads: usize,
    /// The index before it.
    pub start: Frame,
    /// The index after each run.
    pub frames: Vec<Frame>,
}

/// The index after a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Frame {
    pub threads: usize,
    /// Million upserts per second.
    pub mops: f64,
    #[serde(flatten)]
    pub shape: Sample,
}

impl Report {
    /// An empty report on a plan.
    pub fn new(plan: &Plan, machine: Machine) -> Self {
        let config = Config {
            index: plan.chosen.name(),
            keys: plan.keys,
            threads: plan.threads,
            seconds: plan.time.as_secs_f64(),
        };
        Self { machine, config, phases: Vec::new(), interrupted: false, checked: false }
    }
}

impl Phase {
    /// The last state of the index.
    pub fn end(&self) -> &Frame {
        self.frames.last().unwrap_or(&self.start)
    }

    /// The most base nodes after a run.
    pub fn most(&self) -> usize {
        let frames = self.frames.iter().map(|frame| frame.shape.base_nodes);
        frames.fold(self.start.shape.base_nodes, usize::max)
    }
}
