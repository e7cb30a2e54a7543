//! Small concurrent programs, and the calls and observations of their tasks.

use crate::history::{Event, Op};
use crate::keys::{lend, nth, own};
use crate::linearizable::ordered::{self, EndVerb, OrderedEvent, OrderedOp};
use crate::linearizable::{self, Verdict};
use crate::{Failure, Outcome, ScanSubject, Subject};
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::index::Cursor;
use silvics::{AtomicRanges, Guard, OrderedEnds, OwnedKey, RangeUpdates};
use silvics_sync::model;
use std::cell::Cell;
use std::sync::Arc;

/// A call of a task. Keys are numbers, as [`crate::TestKey::nth`] takes them.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// `get(key)`
    Get(u64),
    /// `get_many(keys)`, the keys from the first to the last
    GetMany(u64, u64),
    /// `insert_many(keys)`, the keys from the first to the last. The first key gets this value, and
    /// each later key one more than the one before.
    InsertMany(u64, u64, u64),
    /// `try_insert(key, value)`
    TryInsert(u64, u64),
    /// `insert(key, value)`
    Insert(u64, u64),
    /// `remove(key)`
    Remove(u64),
    /// `compare_exchange(key, expected, new)`
    Exchange(u64, Option<u64>, Option<u64>),
    /// A point operation on one of the scenario's keys that the schedule chooses.
    Any,
    /// An ascending range over the keys from the first to the last.
    Range(u64, u64),
    /// A descending range over the keys from the first to the last.
    RangeRev(u64, u64),
    /// A cursor that seeks the key and moves on this many times.
    Walk(u64, usize),
    /// A cursor that seeks the key backwards and moves back this many times.
    WalkRev(u64, usize),
    /// `first`, `last`, `pop_first` or `pop_last`
    End(EndVerb),
    /// `collect_range` of the keys from the first to the last
    Collect(u64, u64),
    /// `update_range` of the keys from the first to the last, which turns over these bits of their
    /// values
    UpdateRange(u64, u64, u64),
    /// A reorganisation of an index that supports it: it moves the objects together that lookups of
    /// the keys from the first to the last read. Scenarios with it have an [`Act`] of their own.
    Reorganize(u64, u64),
}

/// A program of a few tasks.
#[derive(Debug)]
pub struct Scenario {
    /// The name, in kebab case.
    pub name: &'static str,
    /// The bound of all keys: they are below it.
    pub keys: u64,
    /// The calls before the tasks start.
    pub before: &'static [Step],
    /// The calls of each task.
    pub tasks: &'static [&'static [Step]],
}

/// Makes the call of a step and records it.
pub type Act<I> = fn(&Arc<I>, &mut Log, Step, &Guard);

std::thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Returns the next stamp. The tasks of an execution take turns, so counting needs no scheduling
/// point.
fn stamp() -> u64 {
    NOW.replace(NOW.get() + 1)
}

/// Restarts the stamps for a schedule.
pub(super) fn reset() {
    NOW.set(0);
}

/// The calls and observations of one task.
#[derive(Debug)]
pub struct Log {
    thread: usize,
    keys: u64,
    /// The last seen state of each key, which a random compare-exchange expects.
    seen: Vec<Option<u64>>,
    written: u64,
    events: Vec<Event<u64>>,
    /// The calls that see the whole index.
    ends: Vec<OrderedEvent<u64>>,
}

impl Log {
    pub(super) fn new(thread: usize, keys: u64) -> Self {
        Self {
            thread,
            keys,
            seen: vec![None; keys as usize],
            written: 0,
            events: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The number of keys there may be.
    pub(super) fn seen_keys(&self) -> u64 {
        self.keys
    }

    /// Whether the last call found its key.
    pub(super) fn last_found(&self) -> bool {
        self.events.last().is_some_and(|event| op_state(event.op).is_some())
    }

    fn push(&mut self, key: u64, start: u64, op: Op) {
        self.seen[key as usize] = match op {
            Op::Get { found } => found,
            op => op.effect(op_state(op)),
        };
        self.events.push(Event { thread: self.thread, key, start, end: stamp(), op });
    }

    /// Records several answers of one call.
    fn push_all(&mut self, start: u64, found: impl IntoIterator<Item = (u64, Option<u64>)>) {
        let end = stamp();
        for (key, found) in found {
            self.seen[key as usize] = found;
            let op = Op::Get { found };
            self.events.push(Event { thread: self.thread, key, start, end, op });
        }
    }

    /// Records an atomic range, with the values before.
    fn push_range(
        &mut self,
        start: u64,
        (low, high): (u64, u64),
        mask: u64,
        found: Vec<(u64, u64)>,
    ) {
        let op = OrderedOp::Range { low, high, mask, found };
        self.ends.push(OrderedEvent { thread: self.thread, start, end: stamp(), op });
    }

    /// Records an answer about an end.
    fn push_end(&mut self, start: u64, verb: EndVerb, found: Option<(u64, u64)>) {
        let op = OrderedOp::End { verb, found };
        self.ends.push(OrderedEvent { thread: self.thread, start, end: stamp(), op });
    }

    /// Checks whether the calls of this task and of `others` are linearizable.
    pub(super) fn check(mut self, others: Vec<Self>) -> Outcome {
        for other in others {
            self.events.extend(other.events);
            self.ends.extend(other.ends);
        }
        if self.ends.is_empty() {
            return linearizable::check(&self.events, |_| None, u64::to_string);
        }
        let points = self.events.into_iter().map(|Event { thread, key, start, end, op }| {
            OrderedEvent { thread, start, end, op: OrderedOp::Point { key, op } }
        });
        match ordered::judge(&points.chain(self.ends).collect::<Vec<_>>()) {
            Verdict::Linearizable => Ok(()),
            Verdict::Violation(violation) => Err(violation.into()),
            Verdict::Undecided { what } => Err(Failure::new(format!("{what} is undecided"))),
        }
    }

    /// Returns a value that no other task writes.
    fn fresh(&mut self) -> u64 {
        self.written += 1;
        1_000_000 * (self.thread as u64 + 1) + self.written
    }

    /// Chooses a point operation by the schedule.
    fn any(&mut self) -> Step {
        let key = model::below(self.keys);
        match model::below(12) {
            0..=2 => Step::Get(key),
            3 => Step::TryInsert(key, self.fresh()),
            4..=5 => Step::Insert(key, self.fresh()),
            6..=8 => Step::Remove(key),
            9 => Step::Exchange(key, self.seen[key as usize], None),
            _ => Step::Exchange(key, self.seen[key as usize], Some(self.fresh())),
        }
    }
}

/// The state that `op` found, as far as its answer implies it.
fn op_state(op: Op) -> Option<u64> {
    match op {
        Op::Get { found } => found,
        Op::TryInsert { outcome, .. } => outcome.err(),
        Op::Insert { old, .. } | Op::Remove { old } => old,
        Op::Put { .. } | Op::Delete => unreachable!("no step of a scenario"),
        Op::CompareExchange { expected, outcome, .. } => outcome.err().unwrap_or(expected),
    }
}

fn is_get(op: Op) -> bool {
    matches!(op, Op::Get { .. })
}

/// Makes a point operation.
///
/// # Panics
/// Panics on a step that needs scans, which is a mistake in the scenario.
pub fn points<I: Subject>(index: &Arc<I>, log: &mut Log, step: Step, guard: &Guard) {
    points_on(index, log, step, guard, nth::<I>);
}

/// Makes a point operation on keys that differ in their first byte.
///
/// # Panics
/// Panics on a step that needs scans, which is a mistake in the scenario.
pub fn first_bytes<I: Subject<Key = u64>>(
    index: &Arc<I>,
    log: &mut Log,
    step: Step,
    guard: &Guard,
) {
    points_on(index, log, step, guard, |n| n << 56);
}

fn points_on<I: Subject>(
    index: &Arc<I>,
    log: &mut Log,
    step: Step,
    guard: &Guard,
    key: impl Fn(u64) -> OwnedKey<I>,
) {
    let step = if matches!(step, Step::Any) { log.any() } else { step };
    let start = stamp();
    match step {
        Step::Get(n) => {
            let found = index.get(lend::<I>(&key(n)), guard);
            log.push(n, start, Op::Get { found });
        }
        Step::GetMany(first, last) => {
            let keys: Vec<_> = (first..=last).map(&key).collect();
            let lent: Vec<_> = keys.iter().map(lend::<I>).collect();
            let mut found = vec![None; keys.len()];
            index.get_many(&lent, &mut found, guard);
            log.push_all(start, (first..=last).zip(found));
        }
        Step::InsertMany(first, last, value) => {
            let keys: Vec<_> = (first..=last).map(&key).collect();
            let lent: Vec<_> = keys.iter().map(lend::<I>).zip(value..).collect();
            let mut replaced = vec![None; keys.len()];
            index.insert_many(&lent, &mut replaced, guard).expect("memory");
            for ((n, value), old) in (first..=last).zip(value..).zip(replaced) {
                log.push(n, start, Op::Insert { value, old });
            }
        }
        Step::TryInsert(n, value) => {
            let outcome = match index.try_insert(lend::<I>(&key(n)), value, guard) {
                Ok(()) => Ok(()),
                Err(TryInsertError::Occupied(present)) => Err(present),
                Err(error) => panic!("try_insert: {error}"),
            };
            log.push(n, start, Op::TryInsert { value, outcome });
        }
        Step::Insert(n, value) => {
            let old = index.insert(lend::<I>(&key(n)), value, guard).expect("memory");
            log.push(n, start, Op::Insert { value, old });
        }
        Step::Remove(n) => {
            let old = index.remove(lend::<I>(&key(n)), guard).expect("memory");
            log.push(n, start, Op::Remove { old });
        }
        Step::Exchange(n, expected, new) => {
            let key = key(n);
            let outcome = match index.compare_exchange(lend::<I>(&key), expected, new, guard) {
                Ok(()) => Ok(()),
                Err(CompareExchangeError::Mismatch(found)) => Err(found),
                Err(error) => panic!("compare_exchange: {error}"),
            };
            log.push(n, start, Op::CompareExchange { expected, new, outcome });
        }
        Step::Any => unreachable!("chosen above"),
        step => panic!("{step:?} is not a point operation"),
    }
}

/// Makes any operation of an index with ranges. A scan's observation of a key, found or not, is a
/// possible answer of a lookup of the key during the scan.
pub fn scans<I: ScanSubject>(index: &Arc<I>, log: &mut Log, step: Step, guard: &Guard) {
    match step {
        Step::Range(first, last) => {
            let (low, high) = (nth::<I>(first), nth::<I>(last));
            let start = stamp();
            let range = index.range(lend::<I>(&low)..=lend::<I>(&high), guard);
            let seen: Vec<_> = range.map(|(k, v)| (number::<I>(&own::<I>(k), log), v)).collect();
            assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "a range in this order: {seen:?}");
            record(log, start, first, last, &seen);
        }
        Step::RangeRev(first, last) => {
            let (low, high) = (nth::<I>(first), nth::<I>(last));
            let start = stamp();
            let range = index.range_rev(lend::<I>(&low)..=lend::<I>(&high), guard);
            let seen: Vec<_> = range.map(|(k, v)| (number::<I>(&own::<I>(k), log), v)).collect();
            assert!(seen.is_sorted_by(|a, b| a.0 > b.0), "a reverse range in this order: {seen:?}");
            record(log, start, first, last, &seen);
        }
        Step::Walk(from, moves) => {
            let mut cursor = index.cursor();
            let mut first = from;
            for at in 0..=moves {
                let start = stamp();
                let found =
                    if at == 0 { cursor.seek(lend::<I>(&nth::<I>(from))) } else { cursor.next() };
                let seen = stand::<I>(&cursor, found, log);
                let last = seen.map_or(log.keys - 1, |(n, _)| n);
                assert!(last >= first || seen.is_none(), "a cursor went from {first} to {last}");
                record(log, start, first, last, seen.as_slice());
                first = last + 1;
                if !found {
                    break;
                }
            }
        }
        Step::WalkRev(from, moves) => {
            let mut cursor = index.cursor();
            let mut last = from;
            for at in 0..=moves {
                let start = stamp();
                let found = if at == 0 {
                    cursor.seek_for_prev(lend::<I>(&nth::<I>(from)))
                } else {
                    cursor.prev()
                };
                let seen = stand::<I>(&cursor, found, log);
                let first = seen.map_or(0, |(n, _)| n);
                assert!(last >= first, "a cursor went back from {last} to {first}");
                record(log, start, first, last, seen.as_slice());
                if !found || first == 0 {
                    break;
                }
                last = first - 1;
            }
        }
        point => points(index, log, point, guard),
    }
}

/// Makes any operation of an index with ends.
pub fn ends<I: ScanSubject + OrderedEnds>(
    index: &Arc<I>,
    log: &mut Log,
    step: Step,
    guard: &Guard,
) {
    let Step::End(verb) = step else { return scans(index, log, step, guard) };
    let start = stamp();
    let found = match verb {
        EndVerb::First => index.first(guard),
        EndVerb::Last => index.last(guard),
        EndVerb::PopFirst => index.pop_first(guard).expect("memory"),
        EndVerb::PopLast => index.pop_last(guard).expect("memory"),
    };
    let found = found.map(|(key, value)| (number::<I>(&own::<I>(key), log), value));
    log.push_end(start, verb, found);
}

/// Makes any operation of an index whose ranges are read atomically.
pub fn atomic<I: ScanSubject + OrderedEnds + AtomicRanges>(
    index: &Arc<I>,
    log: &mut Log,
    step: Step,
    guard: &Guard,
) {
    let Step::Collect(first, last) = step else { return ends(index, log, step, guard) };
    let (low, high) = (nth::<I>(first), nth::<I>(last));
    let start = stamp();
    let seen = index.collect_range(lend::<I>(&low)..=lend::<I>(&high), guard).expect("memory");
    let found = seen.into_iter().map(|(key, value)| (number::<I>(&own::<I>(key), log), value));
    let found = found.collect();
    log.push_range(start, (first, last), 0, found);
}

/// Makes any operation of an index whose ranges are read and updated atomically.
pub fn updates<I: ScanSubject + OrderedEnds + RangeUpdates>(
    index: &Arc<I>,
    log: &mut Log,
    step: Step,
    guard: &Guard,
) {
    let Step::UpdateRange(first, last, mask) = step else {
        return atomic(index, log, step, guard);
    };
    let (low, high) = (nth::<I>(first), nth::<I>(last));
    let range = lend::<I>(&low)..=lend::<I>(&high);
    let mut seen = Vec::new();
    let start = stamp();
    let count = index.update_range(range, guard, |key, value| {
        seen.push((own::<I>(key), value));
        value ^ mask
    });
    assert_eq!(count.expect("memory"), seen.len(), "the entries updated");
    let found = seen.iter().map(|(key, value)| (number::<I>(key, log), *value)).collect();
    log.push_range(start, (first, last), mask, found);
}

/// The entry to which a cursor has moved.
fn stand<I: ScanSubject>(cursor: &I::Cursor, found: bool, log: &Log) -> Option<(u64, u64)> {
    let entry = cursor.key().map(|key| number::<I>(&own::<I>(key), log)).zip(cursor.value());
    assert_eq!(entry.is_some(), found, "a cursor's move and its key differ");
    entry
}

/// The number of a key.
fn number<I: Subject>(key: &OwnedKey<I>, log: &Log) -> u64 {
    (0..log.keys).find(|n| nth::<I>(*n) == *key).expect("a scan saw a key nobody has inserted")
}

/// Records that among the keys from `first` to `last` exactly those in `seen` were found.
fn record(log: &mut Log, start: u64, first: u64, last: u64, seen: &[(u64, u64)]) {
    for (key, _) in seen {
        assert!((first..=last).contains(key), "{key} is not in {first}..={last}");
    }
    let found = |key: u64| seen.iter().find(|(k, _)| *k == key).map(|(_, value)| *value);
    log.push_all(start, (first..=last).map(|key| (key, found(key))));
}
