//! The parameters of a run, its tally of operations, the ledger that tallies are booked in, and
//! failures.

use crate::drive::scans::ScanBy;
use crate::flags::error::Error;
use silvics::AllocError;
use silvics_sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use silvics_workload::{Choice, Mix, Share, Window};
use std::io;
use std::time::Duration;

/// The parameters of one run.
#[derive(Clone, Copy, Debug)]
pub struct RunSpec {
    pub mix: Mix,
    pub batch: usize,
    pub scan_by: ScanBy,
    /// The entries of a scan, unless it is by [`ScanBy::Whole`].
    pub scan_length: usize,
    pub threads: usize,
    pub time: Duration,
    /// The number of the run: runs with equal numbers make the same operations.
    pub number: u64,
    /// The window of `latest` at the start of the run.
    pub window: Window,
    /// The limit that ends the run before its time is over.
    pub limit: Option<Limit>,
}

/// The limit that ends a run before its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The most keys by which the run may change the size of the index: it ends when there are this
    /// many more, or this many fewer if the number is negative.
    Growth(i64),
    /// The operations of all threads. Each thread makes its share, and not one more.
    Operations(u64),
}

/// The most keys by which a run of a mix may change the size of an index: a tenth of the keys that
/// it can insert or remove is left. `None` if the mix keeps the size.
pub fn growth(mix: Mix, choice: &Choice) -> Option<Limit> {
    match mix.growth() {
        0 => None,
        1.. => Some(Limit::Growth((choice.len() - choice.present()) as i64 * 9 / 10)),
        _ => Some(Limit::Growth(-(choice.present() as i64 * 9 / 10))),
    }
}

/// The rest of a limit, for all threads.
pub enum Left {
    /// The keys by which the run may still change the size of an index, and the sign of the change.
    Growth(AtomicI64, i64),
    /// The operations of all threads, and the number of threads that still make some.
    Operations(u64, AtomicUsize),
}

impl Left {
    /// All of a limit, for this number of threads.
    pub fn of(limit: Limit, threads: usize) -> Self {
        match limit {
            Limit::Growth(keys) => Self::Growth(AtomicI64::new(keys.abs()), keys.signum()),
            Limit::Operations(all) => Self::Operations(all, AtomicUsize::new(threads)),
        }
    }

    /// Counts keys that a thread has inserted, or removed if the number is negative. Returns
    /// whether the run must end.
    pub fn grown(&self, keys: i64) -> bool {
        match self {
            // Relaxed: the count publishes no other data.
            Self::Growth(left, sign) => {
                left.fetch_sub(keys * sign, Ordering::Relaxed) <= keys * sign
            }
            Self::Operations(..) => false,
        }
    }

    /// The operations of one thread, if they are counted.
    pub fn share(&self, Share { thread, threads }: Share) -> Option<u64> {
        match self {
            Self::Growth(..) => None,
            Self::Operations(all, _) => {
                let (thread, threads) = (thread as u64, threads as u64);
                Some(all / threads + u64::from(thread < all % threads))
            }
        }
    }

    /// Notes that a thread has made its share. Returns whether it was the last one.
    pub fn made(&self) -> bool {
        match self {
            Self::Growth(..) => false,
            // Relaxed: the count publishes no other data.
            Self::Operations(_, running) => running.fetch_sub(1, Ordering::Relaxed) == 1,
        }
    }
}

/// The operations of a thread, and their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations. A scan counts as one.
    pub ops: u64,
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found their key.
    pub hits: u64,
    /// Inserts of keys that were absent.
    pub inserted: u64,
    /// Removals of keys that were present.
    pub removed: u64,
    /// Entries seen by scans.
    pub scanned: u64,
    /// The weights of inserted keys less those of removed ones, modulo 2^64.
    pub weight: u64,
}

impl Tally {
    /// The number of keys by which the index has grown.
    pub fn growth(&self) -> i64 {
        self.inserted as i64 - self.removed as i64
    }

    /// Adds the tally of another thread.
    pub fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.lookups += other.lookups;
        self.hits += other.hits;
        self.inserted += other.inserted;
        self.removed += other.removed;
        self.scanned += other.scanned;
        self.weight = self.weight.wrapping_add(other.weight);
    }
}

/// The content that an index must have: the number of its keys and the sum of their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The number of keys.
    pub keys: i64,
    /// The sum of their weights, modulo 2^64.
    pub weight: u64,
}

impl Ledger {
    /// Adds the tally of a run.
    pub fn book(&mut self, tally: &Tally) {
        self.keys += tally.growth();
        self.weight = self.weight.wrapping_add(tally.weight);
    }
}

/// The reason why a load, a run or a check has no outcome.
#[derive(Debug)]
pub enum Failure {
    /// The user interrupted the command.
    Interrupted,
    /// An allocation failed after `done` inserts.
    Alloc { error: AllocError, done: usize },
    /// The system did not start as many threads as were asked for.
    Threads { started: usize, asked: usize, error: io::Error },
    /// A check failed.
    Wrong(String),
    /// A thread panicked; the message is on standard error.
    Panicked,
}

impl Failure {
    /// The error for an index of this name. After a failed load it does not say how many keys were
    /// inserted.
    pub fn of(self, name: &str) -> Error {
        let index = name.to_owned();
        match self {
            Self::Interrupted => Error::Interrupted,
            Self::Panicked => Error::Panicked { index },
            Self::Threads { started, asked, error } => Error::value(
                "--threads",
                format_args!(
                    "the system started {started} of {asked} threads ({error}): name fewer, or \
                     raise its limits of threads and memory"
                ),
            ),
            Self::Alloc { error, .. } => Error::Alloc { index, error },
            Self::Wrong(what) => Error::Wrong { index, what },
        }
    }
}
