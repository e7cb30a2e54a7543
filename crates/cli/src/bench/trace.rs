//! `--trace-adaptation`: the shape of indexes over the time of their runs, as JSON and as a plot.

use super::cell::Config;
use super::plot;
use super::report::{Report, RowKey};
use crate::drive::shape::{EVERY, Sample, Sampled};
use crate::drive::subject::Outcome;
use crate::flags::error::Error;
use crate::host::machine::Machine;
use crate::output::{File, Outputs};
use serde::Serialize;
use std::path::Path;

/// The flag that requests a trace.
pub const FLAG: &str = "--trace-adaptation";

/// The files of a trace.
#[derive(Clone, Debug)]
pub struct Files {
    json: File,
    svg: File,
}

impl Files {
    /// The file that the flag names, and the plot beside it. Fails at once if one of them could not
    /// be written at the end.
    pub fn new(path: &Path) -> Result<Self, Error> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
            let problem = format!(
                "`{}` is the name of the plot, which is written beside the JSON file: give that \
                 another ending, such as .json",
                path.display()
            );
            return Err(Error::value(FLAG, problem));
        }
        Ok(Self {
            json: File::new(FLAG, path)?,
            svg: File::new(FLAG, &path.with_extension("svg"))?,
        })
    }

    /// The two files.
    pub fn both(&self) -> [Option<File>; 2] {
        [Some(self.json.clone()), Some(self.svg.clone())]
    }
}

/// The trace of a benchmark.
#[derive(Debug)]
pub struct Trace {
    files: Files,
    pub runs: Vec<TracedRun>,
}

/// A run with the samples that were taken during it.
#[derive(Debug, Serialize)]
pub struct TracedRun {
    #[serde(flatten)]
    pub key: RowKey,
    pub threads: usize,
    pub mix: String,
    pub batch: usize,
    /// The way of scans, if the mix has scans.
    pub scan_by: Option<&'static str>,
    /// The number of entries that a scan reads, if it has a length.
    pub scan_length: Option<usize>,
    /// The number of the round, from 1.
    pub round: usize,
    /// The duration of the run.
    pub seconds: f64,
    /// Million operations per second.
    pub mops: f64,
    /// The share of the run's time that the samples took. It includes waiting for a core.
    pub sampling_share: f64,
    pub samples: Vec<Sample>,
}

/// A run of a contender, before it gets its row.
pub(super) struct Traced {
    pub(super) config: Config,
    pub(super) round: usize,
    pub(super) outcome: Outcome,
    pub(super) sampled: Sampled,
}

impl Traced {
    /// The row of the trace.
    pub(super) fn row(&self, key: RowKey) -> TracedRun {
        let Self { config, round, outcome, sampled } = self;
        TracedRun {
            key,
            threads: config.threads,
            mix: config.mix.to_string(),
            batch: config.batch,
            scan_by: config.scan_by(),
            scan_length: config.scan_length(),
            round: *round,
            seconds: outcome.seconds,
            mops: outcome.mops(),
            sampling_share: sampled.share(outcome.seconds),
            samples: sampled.samples.clone(),
        }
    }
}

/// The JSON file.
#[derive(Serialize)]
struct Written<'a> {
    format: &'static str,
    version: u32,
    machine: &'a Machine,
    seed: u64,
    /// The time between two samples.
    every_seconds: f64,
    interrupted: bool,
    runs: &'a [TracedRun],
}

impl Trace {
    /// An empty trace.
    pub fn new(files: Files) -> Self {
        Self { files, runs: Vec::new() }
    }

    /// Writes both files.
    pub fn write(&self, report: &Report) -> Result<(), Error> {
        let written = Written {
            format: "silvics adaptation",
            version: 1,
            machine: &report.machine,
            seed: report.config.seed,
            every_seconds: EVERY.as_secs_f64(),
            interrupted: report.interrupted,
            runs: &self.runs,
        };
        let mut json = serde_json::to_vec_pretty(&written).map_err(|e| Error::Output(e.into()))?;
        json.push(b'\n');
        let mut outputs = Outputs::default();
        outputs.tried(self.files.json.write(&json));
        outputs.tried(self.files.svg.write(plot::file(&self.runs).as_bytes()));
        outputs.finish()
    }
}
