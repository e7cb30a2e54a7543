//! Databases as the benchmark uses them.

use super::job::{Job, Wrong};
use super::run::{Lap, Worker};
use std::ops::Range;

/// The reason why an engine cannot go on.
#[derive(Debug)]
pub enum Stop {
    /// It gave a wrong answer.
    Wrong(Wrong),
    /// It refused a call.
    Refused(String),
}

/// A database that is loaded and run.
pub trait Engine: Send + Sync {
    /// Inserts the records of a range.
    fn load(&self, job: &Job, records: Range<u64>) -> Result<(), Stop>;

    /// Runs the transactions of a thread: see [`Worker::drive`].
    fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop>;

    /// The number of records.
    fn records(&self) -> Result<u64, Stop>;

    /// The memory of each part.
    fn memory(&self) -> Vec<Memory>;

    /// The aborted attempts so far, by reason.
    fn aborts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether it measures the time that its index takes.
    fn times_index(&self) -> bool {
        false
    }

    /// Looks records up in the index alone, without transactions. Returns the number that was
    /// found, or `None` if the engine has no index that can be used alone.
    fn lookups(&self, _job: &Job, _records: &[u64], _get_many: bool) -> Option<u64> {
        None
    }
}

/// The memory of a table or index.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Memory {
    pub part: String,
    pub structure: String,
    pub entries: u64,
    /// `None` if the part cannot tell.
    pub bytes: Option<u64>,
}
