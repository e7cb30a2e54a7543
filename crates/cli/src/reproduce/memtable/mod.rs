//! Experiments on RocksDB's skip list memtable.
//!
//! | module | holds |
//! |---|---|
//! | `inline` | memtable/2.1 |
//! | `adds` | memtable/2.2 |
//! | `batches` | its facts on batches that readers see |
//! | `plugin` | memtable/2.3 |
//!
//! Write buffers run `fillrandom` as `silvics memtable` does, which checks the content after each
//! run.

mod adds;
mod batches;
mod inline;
mod plugin;

pub use plugin::{Stock, db_bench};

use super::Experiment;
use super::lab::Lab;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::memtable::plan::{Log, Memtable, Workload};
use crate::memtable::run::{Job, Sample};
use silvics_memtable::WriteMode;

/// The sources have no model of a machine. This is the machine of the other experiments.
const MACHINE: &str = "haswell";

/// The keys of an experiment, and the operations of a run.
const KEYS: usize = 1 << 20;

/// The bytes of keys in all experiments of the source.
const KEY_BYTES: usize = 16;

/// All experiments on memtables, in the order of their numbers.
pub const ALL: &[Experiment] = &[inline::EXPERIMENT, adds::EXPERIMENT, plugin::EXPERIMENT];

/// The memtables that the library has.
const MEMTABLES: [Memtable; 3] = [Memtable::SkipList, Memtable::Art, Memtable::OrdMap];

/// A run of `fillrandom` with batches of one entry and without a log.
#[derive(Clone, Copy)]
struct Fill {
    memtable: Memtable,
    mode: WriteMode,
    threads: usize,
    value_size: usize,
    yields: bool,
}

impl Fill {
    /// Fills a new buffer.
    fn run(self, lab: &Lab, crew: &Crew, round: u64) -> Result<Sample, Error> {
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        self.memtable.measure(&Job {
            workload: Workload::FillRandom,
            threads: self.threads,
            num: lab.plan.keys(KEYS),
            batch: 1,
            key_size: KEY_BYTES,
            value_size: self.value_size,
            mode: self.mode,
            yields: self.yields,
            log: &Log::None,
            recovers: false,
            seed: lab.plan.seed.wrapping_add(round),
            crew,
        })
    }
}
