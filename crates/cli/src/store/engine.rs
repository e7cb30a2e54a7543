//! Databases as the benchmark uses them.

use super::job::{Job, Wrong};
use super::run::{Lap, Loader, Worker};

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
    /// Inserts the records of a thread: see [`Loader::drive`].
    fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop>;

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

/// The keys of a scan, which must ascend from its start.
pub struct Ascending {
    least: u64,
    ended: bool,
}

impl Ascending {
    pub fn from(start: u64) -> Self {
        Self { least: start, ended: false }
    }

    /// Checks the next key.
    #[inline]
    pub fn see(&mut self, key: u64) -> Result<(), Stop> {
        if self.ended || key < self.least {
            let least = self.least;
            return Err(Stop::Wrong(format!(
                "a scan has returned key {key}, and its next key had to be {least} or more"
            )));
        }
        (self.least, self.ended) = (key.wrapping_add(1), key == u64::MAX);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_must_ascend() {
        let mut keys = Ascending::from(5);
        assert!(keys.see(5).is_ok() && keys.see(9).is_ok() && keys.see(9).is_err());
        assert!(keys.see(u64::MAX).is_ok() && keys.see(u64::MAX).is_err());
        assert!(Ascending::from(5).see(4).is_err());
    }
}
