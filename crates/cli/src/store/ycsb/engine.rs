//! Databases as the benchmark uses them.

use super::job::Job;
use super::run::{Loader, Worker};
use crate::store::engine::{Measured, Stop};
use crate::store::meter::Lap;

/// A database that is loaded and run.
pub trait Engine: Measured {
    /// Inserts the records of a thread: see [`Loader::drive`].
    fn load(&self, loader: Loader<'_>) -> Result<Lap, Stop>;

    /// Runs the transactions of a thread: see [`Worker::drive`].
    fn run(&self, worker: Worker<'_>) -> Result<Lap, Stop>;

    /// The number of records.
    fn records(&self) -> Result<u64, Stop>;

    /// Looks records up in the index alone, without transactions. Returns the number that was
    /// found, or `None` if the engine has no index that can be used alone.
    fn lookups(&self, _job: &Job, _records: &[u64], _get_many: bool) -> Option<u64> {
        None
    }
}

/// The check of a scan's keys. The first one is that of the scan's record, which is present, and
/// they ascend. No record is ever removed, so there are as many as the scan may return, unless it
/// comes to the end of the table.
pub struct ScanCheck<'a> {
    job: &'a Job,
    start: u64,
    last: Option<u64>,
    /// The rows that the scan may still return.
    left: u32,
}

impl<'a> ScanCheck<'a> {
    /// The check of a scan of up to `len` rows from a record on.
    pub fn new(job: &'a Job, record: u64, len: u32) -> Self {
        Self { job, start: job.key(record), last: None, left: len }
    }

    /// Checks the next key.
    #[inline]
    pub fn see(&mut self, key: u64) -> Result<(), Stop> {
        let is_next = self.last.map_or(key == self.start, |last| key > last);
        if !is_next || self.left == 0 {
            return Err(self.wrong_key(key));
        }
        (self.last, self.left) = (Some(key), self.left - 1);
        Ok(())
    }

    #[cold]
    fn wrong_key(&self, key: u64) -> Stop {
        let start = self.start;
        Stop::Wrong(match self.last {
            None => format!("a scan has begun with key {key} and had to begin with key {start}"),
            Some(_) if self.left == 0 => {
                format!("a scan from key {start} has returned more rows than it was asked for")
            }
            Some(last) => {
                format!("a scan has returned key {key} after key {last}, but its keys must ascend")
            }
        })
    }

    /// Checks that the scan has ended in time.
    #[inline]
    pub fn end(self) -> Result<(), Stop> {
        let Self { job, start, last, left } = self;
        let Some(last) = last else {
            return Err(Stop::Wrong(format!("a scan from key {start} has returned no row")));
        };
        if left > 0 && last < job.last_loaded_key() {
            return Err(Stop::Wrong(format!(
                "a scan from key {start} has ended at key {last}, {left} rows before it had to"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_workload::ycsb::{Properties, Workload};

    /// The scans of a table with the keys 0 to 99.
    fn job() -> Job {
        let mut properties = Properties::new();
        let lines = "recordcount=100\ninsertorder=ordered\nscanproportion=0.95\nreadproportion=0";
        properties.add_text("lines", lines).unwrap();
        Job::core(Workload::from_properties(&properties).unwrap())
    }

    fn is_right(record: u64, len: u32, keys: &[u64]) -> bool {
        let job = job();
        let mut check = ScanCheck::new(&job, record, len);
        keys.iter().all(|key| check.see(*key).is_ok()) && check.end().is_ok()
    }

    #[test]
    fn keys_begin_with_the_start_and_ascend() {
        assert!(is_right(5, 3, &[5, 6, 9]));
        for keys in [&[4, 5, 6][..], &[6, 7, 8], &[5, 5, 6], &[5, 7, 6], &[5, 6, 7, 8]] {
            assert!(!is_right(5, 3, keys), "{keys:?}");
        }
    }

    #[test]
    fn only_the_end_of_the_table_ends_a_scan_early() {
        assert!(is_right(98, 3, &[98, 99]) && is_right(98, 3, &[98, 99, 100]));
        assert!(is_right(99, 3, &[99]));
        for keys in [&[][..], &[97], &[97, 98]] {
            assert!(!is_right(97, 3, keys), "{keys:?}");
        }
    }
}
