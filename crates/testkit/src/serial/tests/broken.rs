//! Stores under a lock, each with one mistake that the traffic must find. The store without a
//! mistake must pass.

use super::orders::scan_of;
use super::*;
use crate::clock::Clock;
use crate::{Failure, size};
use silvics_sync::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::yield_now;
use std::time::Duration;

/// The mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// The lock is held for each operation instead of each transaction.
    OperationAtATime,
    /// Reads are not checked at commit: writes are applied at once, whatever changed meanwhile.
    LostUpdate,
    /// Each transaction reads a snapshot; only its writes are checked at commit.
    SnapshotIsolation,
    /// Reads are checked at commit, but not what was found absent.
    NoPhantomProtection,
    /// The writes of an attempt that aborts are undone some time after the lock is let go.
    AbortedWritesVisible,
    /// Writes of an attempt that aborts are not undone.
    AbortKeepsWrites,
    /// The secondary index is updated some time after the lock is let go.
    TornIndex,
    /// Reads without writes are answered from an older state.
    OldSnapshot,
    /// A descending scan with a limit misses the entry of its upper bound.
    ScanMissesBound,
    /// Now and then, an insertion is refused although the key is absent.
    RefusesAbsent,
    /// A deletion says that it has deleted an absent key.
    DeletesAbsent,
    /// A scan by group leaves out entries that changed a moment ago.
    MovedEntryMissed,
}

/// The entries, and the keys by their values.
#[derive(Clone, Default)]
struct State {
    entries: BTreeMap<u64, u64>,
    by_value: BTreeMap<u64, u64>,
}

impl State {
    fn put(&mut self, key: u64, value: Option<u64>) {
        let old = match value {
            Some(value) => self.entries.insert(key, value),
            None => self.entries.remove(&key),
        };
        if let Some(old) = old {
            self.by_value.remove(&old);
        }
        if let Some(value) = value {
            self.by_value.insert(value, key);
        }
    }
}

struct Store {
    mistake: Mistake,
    state: Mutex<State>,
    /// The state before the last commits.
    old: Mutex<State>,
}

/// How a transaction sees the state.
enum View<'a> {
    /// It holds the lock all the time.
    Locked(MutexGuard<'a, State>),
    /// It takes the lock for each operation.
    Shared(&'a Mutex<State>),
    /// It has a copy of the state, and of the state at its beginning.
    Copied(Box<(State, State)>),
}

struct Running<'a> {
    mistake: Mistake,
    view: View<'a>,
    undo: Vec<(u64, Option<u64>)>,
    writes: BTreeSet<u64>,
    /// The keys found present.
    reads: BTreeSet<u64>,
    /// The ranges read.
    ranges: Vec<(u64, u64)>,
    /// The entries when the last transaction began.
    before: BTreeMap<u64, u64>,
}

impl Running<'_> {
    fn with<T>(&mut self, f: impl FnOnce(&mut State) -> T) -> T {
        match &mut self.view {
            View::Locked(state) => f(state),
            View::Shared(state) => f(&mut state.lock()),
            View::Copied(states) => f(&mut states.0),
        }
    }

    fn put(&mut self, key: u64, value: Option<u64>) {
        let old = self.with(|state| {
            let old = state.entries.get(&key).copied();
            state.put(key, value);
            old
        });
        self.undo.push((key, old));
        self.writes.insert(key);
    }
}

impl Attempt for Running<'_> {
    fn read(&mut self, key: u64) -> Result<Option<u64>, Refused> {
        let value = self.with(|state| state.entries.get(&key).copied());
        if value.is_some() {
            self.reads.insert(key);
        }
        self.ranges.push((key, key));
        Ok(value)
    }

    fn replace(&mut self, key: u64, value: u64) -> Result<Option<u64>, Refused> {
        let before = self.read(key)?;
        if before.is_some() {
            self.put(key, Some(value));
        }
        Ok(before)
    }

    fn insert(&mut self, key: u64, value: u64) -> Result<bool, Refused> {
        let refuses = self.mistake == Mistake::RefusesAbsent && value.is_multiple_of(15);
        if self.read(key)?.is_some() || refuses {
            return Ok(false);
        }
        self.put(key, Some(value));
        Ok(true)
    }

    fn delete(&mut self, key: u64) -> Result<bool, Refused> {
        let was_present = self.read(key)?.is_some();
        self.put(key, None);
        Ok(was_present || self.mistake == Mistake::DeletesAbsent)
    }

    fn scan(&mut self, range: &Range, out: &mut Vec<Entry>) -> Result<(), Refused> {
        let mut range = *range;
        if self.mistake == Mistake::ScanMissesBound
            && range.limit.is_some()
            && range.direction == Direction::Descending
        {
            range.to = range.to.saturating_sub(1);
        }
        let mut entries = self.with(|state| scan_of(&state.entries, &range));
        if self.mistake == Mistake::MovedEntryMissed && range.by == By::Group {
            let (before, writes) = (&self.before, &self.writes);
            entries.retain(|(key, value)| before.get(key) == Some(value) || writes.contains(key));
        }
        self.reads.extend(entries.iter().map(|of| of.0));
        self.ranges.push(match range.by {
            By::Key => (range.from, range.to),
            By::Group => (0, u64::MAX),
        });
        out.extend(entries);
        Ok(())
    }

    fn find(&mut self, value: u64) -> Result<Option<u64>, Refused> {
        let found = self.with(|state| state.by_value.get(&value).copied());
        self.reads.extend(found);
        self.ranges.push((0, u64::MAX));
        Ok(found)
    }
}

impl Store {
    fn begin(&self) -> Running<'_> {
        use Mistake::{LostUpdate, NoPhantomProtection, OldSnapshot, SnapshotIsolation};
        let copied = |state: State| View::Copied(Box::new((state.clone(), state)));
        let view = match self.mistake {
            Mistake::OperationAtATime => View::Shared(&self.state),
            SnapshotIsolation | NoPhantomProtection | LostUpdate => {
                copied(self.state.lock().clone())
            }
            OldSnapshot => copied(self.old.lock().clone()),
            _ => View::Locked(self.state.lock()),
        };
        let before = match (self.mistake, &view) {
            (Mistake::MovedEntryMissed, View::Locked(state)) => {
                std::mem::replace(&mut *self.old.lock(), (*state).clone()).entries
            }
            _ => BTreeMap::new(),
        };
        let (undo, writes, reads, ranges) = <_>::default();
        Running { mistake: self.mistake, view, undo, writes, reads, ranges, before }
    }

    fn abort(&self, mut running: Running<'_>) {
        let undo = std::mem::take(&mut running.undo);
        if self.mistake == Mistake::AbortKeepsWrites {
            return;
        }
        if self.mistake == Mistake::AbortedWritesVisible {
            drop(running);
            yield_now();
            let mut state = self.state.lock();
            undo.into_iter().rev().for_each(|(key, value)| state.put(key, value));
            return;
        }
        undo.into_iter().rev().for_each(|(key, value)| running.with(|state| state.put(key, value)));
    }

    fn commit(&self, running: Running<'_>) -> End {
        let Running { view, undo, writes, reads, ranges, .. } = running;
        match view {
            View::Locked(mut state) if self.mistake == Mistake::TornIndex && !undo.is_empty() => {
                for (key, old) in undo {
                    if let Some(old) = old {
                        state.by_value.insert(old, key);
                    }
                }
                drop(state);
                yield_now();
                let mut state = self.state.lock();
                state.by_value = state.entries.iter().map(|of| (*of.1, *of.0)).collect();
                End::Committed
            }
            View::Locked(_) | View::Shared(_) => End::Committed,
            View::Copied(states) => {
                let (mine, begun) = *states;
                let mut state = self.state.lock();
                let same = |key: &u64| state.entries.get(key) == begun.entries.get(key);
                let fits = match self.mistake {
                    Mistake::LostUpdate => true,
                    Mistake::SnapshotIsolation => writes.iter().all(same),
                    Mistake::NoPhantomProtection => reads.iter().chain(&writes).all(same),
                    _ if writes.is_empty() => true,
                    _ => ranges.iter().all(|&(from, to)| {
                        state.entries.range(from..=to).eq(begun.entries.range(from..=to))
                    }),
                };
                *self.old.lock() = state.clone();
                if !fits {
                    return End::Aborted;
                }
                for key in writes {
                    let value = mine.entries.get(&key).copied();
                    state.put(key, value);
                }
                End::Committed
            }
        }
    }
}

impl Transactions for Store {
    fn attempt(&self, body: Body<'_>) -> Result<End, Failure> {
        let mut running = self.begin();
        if body(&mut running).is_err() {
            self.abort(running);
            return Ok(End::Aborted);
        }
        Ok(self.commit(running))
    }
}

fn run(mistake: Mistake, threads: &[usize], until: Until) -> Report {
    let make = |entries: &[Entry]| -> Result<Box<dyn Transactions>, Failure> {
        let mut state = State::default();
        for &(key, value) in entries {
            state.put(key, Some(value));
        }
        let old = Mutex::new(state.clone());
        Ok(Box::new(Store { mistake, state: Mutex::new(state), old }))
    };
    let plan = Plan { threads: threads.to_vec(), until, ..Plan::default() };
    verify_transactions(&make, &plan, &Clock::new(), || false)
}

/// Checks that the traffic finds a mistake, under one of these names.
fn found(mistake: Mistake, kinds: &[Kind]) {
    let report = run(mistake, &[2], Until::Elapsed(Duration::from_secs(20)));
    let Some(Found { what, .. }) = &report.found else { panic!("{mistake:?}: {report:?}") };
    let Wrong::Anomaly(anomaly) = what else { panic!("{mistake:?}: {what}") };
    println!("{mistake:?} after {} transactions: {anomaly}", report.committed);
    assert!(kinds.is_empty() || kinds.contains(&anomaly.kind), "{mistake:?}: {anomaly}");
}

#[test]
fn a_store_without_a_mistake_passes() {
    let transactions = size::pick(1_000_000, 50_000, 0) as u64;
    let report = run(Mistake::None, &[2, 3], Until::Transactions(transactions));
    if let Some(Found { what, .. }) = &report.found {
        panic!("{what}");
    }
    assert!(report.committed >= transactions && report.aborted > 0, "{report:?}");
    let Report { committed, operations, open, checking, .. } = report;
    println!("{committed} transactions, {operations} operations, {open} open, {checking:?}");
}

#[test]
fn operations_that_lock_alone_are_found() {
    found(Mistake::OperationAtATime, &[]);
}

#[test]
fn lost_updates_are_found() {
    found(Mistake::LostUpdate, &[]);
}

#[test]
fn snapshot_isolation_is_found() {
    // Read skew: an insertion checks that the key is absent again, after it came and went.
    found(Mistake::SnapshotIsolation, &[Kind::WriteSkew, Kind::Phantom, Kind::ReadSkew]);
}

#[test]
fn missing_phantom_protection_is_found() {
    found(Mistake::NoPhantomProtection, &[Kind::ReadSkew, Kind::Phantom]);
}

#[test]
fn aborted_writes_are_found() {
    found(Mistake::AbortedWritesVisible, &[]);
    found(Mistake::AbortKeepsWrites, &[]);
}

#[test]
fn a_torn_index_is_found() {
    found(Mistake::TornIndex, &[]);
}

#[test]
fn stale_reads_are_found() {
    found(Mistake::OldSnapshot, &[]);
}

#[test]
fn a_scan_that_misses_its_bound_is_found() {
    found(Mistake::ScanMissesBound, &[]);
}

#[test]
fn a_scan_by_group_that_misses_moved_entries_is_found() {
    found(Mistake::MovedEntryMissed, &[]);
}

#[test]
fn answers_of_writes_that_are_wrong_are_found() {
    found(Mistake::RefusesAbsent, &[Kind::Internal]);
    found(Mistake::DeletesAbsent, &[Kind::Internal]);
}
