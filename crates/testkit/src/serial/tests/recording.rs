//! The traffic on small stores: retries, and stores that fail.

use super::orders::{find_in, scan_of};
use super::*;
use crate::clock::Clock;
use crate::{Failure, Outcome};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;

type Map = BTreeMap<u64, u64>;

/// How a store behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It runs each body up to three times, and takes an error of the first runs as a conflict.
    Retries,
    /// It has neither scans nor finds, and refuses every eighth operation.
    Refuses,
    /// It commits after an error of the body.
    CommitsAnyway,
    /// It panics in the thousandth operation.
    Panics,
    /// It finds itself wrong at rest.
    Wrong,
}

/// A map under a lock.
struct Store {
    manner: Manner,
    map: Mutex<Map>,
    operations: AtomicU64,
}

struct Running<'a> {
    store: &'a Store,
    map: Map,
}

impl Running<'_> {
    fn operation(&self) -> Result<(), Refused> {
        let number = self.store.operations.fetch_add(1, Ordering::Relaxed);
        assert!(self.store.manner != Manner::Panics || number < 1000, "the thousandth operation");
        match self.store.manner {
            Manner::Refuses if number.is_multiple_of(8) => Err(Refused::Conflict),
            _ => Ok(()),
        }
    }
}

impl Attempt for Running<'_> {
    fn read(&mut self, key: u64) -> Result<Option<u64>, Refused> {
        self.operation()?;
        Ok(self.map.get(&key).copied())
    }
    fn replace(&mut self, key: u64, value: u64) -> Result<Option<u64>, Refused> {
        self.operation()?;
        Ok(self.map.get_mut(&key).map(|now| std::mem::replace(now, value)))
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool, Refused> {
        self.operation()?;
        Ok(*self.map.entry(key).or_insert(value) == value)
    }
    fn delete(&mut self, key: u64) -> Result<bool, Refused> {
        self.operation()?;
        Ok(self.map.remove(&key).is_some())
    }
    fn scan(&mut self, range: &Range, out: &mut Vec<Entry>) -> Result<(), Refused> {
        assert_ne!(self.store.manner, Manner::Refuses, "a scan");
        out.extend(scan_of(&self.map, range));
        Ok(())
    }
    fn find(&mut self, value: u64) -> Result<Option<u64>, Refused> {
        assert_ne!(self.store.manner, Manner::Refuses, "a find");
        Ok(find_in(&self.map, value))
    }
}

impl Transactions for Store {
    fn attempt(&self, body: Body<'_>) -> Result<End, Failure> {
        let tries = if self.manner == Manner::Retries { 3 } else { 1 };
        for _ in 0..tries {
            let mut map = self.map.lock();
            let mut running = Running { store: self, map: map.clone() };
            if body(&mut running).is_ok() || self.manner == Manner::CommitsAnyway {
                *map = running.map;
                return Ok(End::Committed);
            }
        }
        Ok(End::Aborted)
    }
    fn scans(&self) -> bool {
        self.manner != Manner::Refuses
    }
    fn finds(&self) -> bool {
        self.manner != Manner::Refuses
    }
    fn at_rest(&self, _entries: &[Entry]) -> Outcome {
        match self.manner {
            Manner::Wrong => Err(Failure::new("a lock is held at rest")),
            _ => Ok(()),
        }
    }
}

fn run(manner: Manner, plan: &Plan, stop: impl Fn() -> bool + Sync) -> Report {
    let make = |entries: &[Entry]| -> Result<Box<dyn Transactions>, Failure> {
        let map = Mutex::new(entries.iter().copied().collect());
        Ok(Box::new(Store { manner, map, operations: AtomicU64::new(0) }))
    };
    verify_transactions(&make, plan, &Clock::new(), stop)
}

/// Checks that a run ends for this reason.
fn fails(manner: Manner, why: &str) {
    let report = run(manner, &Plan::default(), || false);
    let Some(Found { what: Wrong::Other(reason), .. }) = &report.found else {
        panic!("{manner:?}: {report:?}")
    };
    assert!(reason.contains(why), "{manner:?}: {reason}");
}

#[test]
fn attempts_of_stores_that_retry_are_told_apart() {
    let report = run(Manner::Retries, &Plan::default(), || false);
    assert!(report.found.is_none(), "{}", report.found.unwrap().what);
    assert!(report.aborted > 0 && report.committed >= 10_000, "{report:?}");
    assert_eq!(report.exhausted, None);
}

#[test]
fn stores_without_scans_that_refuse_are_checked() {
    let plan = Plan { keys: vec![1], histories_per_store: 0, ..Plan::default() };
    let report = run(Manner::Refuses, &plan, || false);
    assert!(report.found.is_none(), "{}", report.found.unwrap().what);
    assert!(report.aborted > report.committed / 8, "{report:?}");
}

#[test]
fn stores_that_fail_end_the_run() {
    fails(Manner::CommitsAnyway, "the store committed a transaction that had to abort");
    fails(Manner::Panics, "a call panicked: the thousandth operation");
    fails(Manner::Wrong, "a lock is held at rest");
    let failed = |_: &[Entry]| Err(Failure::new("no store"));
    let report = verify_transactions(&failed, &Plan::default(), &Clock::new(), || false);
    assert!(report.found.is_some_and(|found| found.what.to_string() == "no store"));
}

#[test]
fn a_run_can_be_stopped() {
    let asked = AtomicU64::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 10;
    let plan = Plan { until: Until::Transactions(u64::MAX), ..Plan::default() };
    let report = run(Manner::Retries, &plan, stop);
    assert!(report.found.is_none() && report.histories > 0, "{report:?}");
}
