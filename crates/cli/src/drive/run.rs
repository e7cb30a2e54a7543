//! What a run is told to do, and what comes of it: operations, the ledger they are booked in, and
//! failures.

use crate::flags::error::Error;
use silvics::AllocError;
use silvics_workload::{Mix, Window};
use std::time::Duration;

/// What is measured in one run.
#[derive(Clone, Copy, Debug)]
pub struct RunSpec {
    pub mix: Mix,
    pub batch: usize,
    pub scan_length: usize,
    pub threads: usize,
    pub time: Duration,
    /// Runs of the same number make the same operations.
    pub number: u64,
    /// Where `latest` goes on.
    pub window: Window,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations; a scan is one.
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
    /// Adds another thread's.
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

/// What must be in an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// How many keys.
    pub keys: i64,
    /// The sum of their weights, modulo 2^64.
    pub weight: u64,
}

impl Ledger {
    /// Books what a run did.
    pub fn book(&mut self, tally: &Tally) {
        self.keys += tally.inserted as i64 - tally.removed as i64;
        self.weight = self.weight.wrapping_add(tally.weight);
    }
}

/// Why a load, a run or a check has no outcome.
#[derive(Debug)]
pub enum Failure {
    /// The user interrupted it.
    Interrupted,
    /// Memory ran out after so many inserts.
    Alloc { error: AllocError, done: usize },
    /// A check failed.
    Wrong(String),
    /// A thread panicked; the message is on standard error.
    Panicked,
}

impl Failure {
    /// The error of an index of this name; a load that ran out of memory says no more than that it did.
    pub fn of(self, name: &str) -> Error {
        let index = name.to_owned();
        match self {
            Self::Interrupted => Error::Interrupted,
            Self::Panicked => Error::Panicked { index },
            Self::Alloc { error, .. } => Error::Alloc { index, error },
            Self::Wrong(what) => Error::Wrong { index, what },
        }
    }
}
