//! Random histories: those of a serial order pass, and changed ones get the verdict of the search
//! over all orders.

use super::orders::{explains, find_in, has_order, scan_of};
use super::*;
use crate::rng::Rng;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

const KEYS: u64 = 4;

/// A step of a program: its verb, its key, and a number for other choices.
type Step = (u8, u64, u64);

/// A transaction: its steps, how long before and after its moment it starts and ends, and whether
/// it aborts.
type Program = (Vec<Step>, u64, u64, bool);

fn programs(most: usize, keys: u64) -> impl Strategy<Value = Vec<Program>> {
    let step = (0..14u8, 0..keys, 0..64u64);
    let aborts = prop_oneof![9 => Just(false), 1 => Just(true)];
    vec((vec(step, 1..5), 0..50u64, 0..50u64, aborts), 1..most)
}

/// The range of a step.
fn range(key: u64, number: u64, by: By) -> Range {
    let range = Range { by, ..Range::ascending(key, key + number % 4) };
    let range = if number.is_multiple_of(2) { range } else { range.reversed() };
    if (number / 8).is_multiple_of(4) { range.limited(1 + number as usize / 32) } else { range }
}

/// Runs programs one after the other.
fn serial(programs: &[Program]) -> History {
    let initial: Vec<Entry> = (0..KEYS).step_by(2).map(|key| (key, 100 + key)).collect();
    let mut map: BTreeMap<u64, u64> = initial.iter().copied().collect();
    let mut values: Vec<u64> = map.values().copied().collect();
    let mut history = History { initial, transactions: Vec::new() };
    for (at, (steps, before, after, aborts)) in programs.iter().enumerate() {
        let mut own = map.clone();
        let mut operations = Vec::new();
        for &(verb, key, number) in steps {
            match verb {
                0..3 => operations.push(read(key, own.get(&key).copied())),
                3 | 4 | 12 => {
                    let range = range(key, number, if verb == 12 { By::Group } else { By::Key });
                    operations.push(scan(range, &scan_of(&own, &range)));
                }
                5 => {
                    let value = values[number as usize % values.len()];
                    operations.push(find(value, find_in(&own, value)));
                }
                13 if own.contains_key(&key) => {
                    operations.push(Operation::Present { key });
                    operations.push(read(key, own.get(&key).copied()));
                }
                6 | 7 if !own.contains_key(&key) => operations.push(read(key, None)),
                _ => {
                    operations.push(read(key, own.get(&key).copied()));
                    let value = (verb > 7).then_some(200 + values.len() as u64);
                    operations.push(write(key, value));
                    match value {
                        None => _ = own.remove(&key),
                        Some(value) => {
                            own.insert(key, value);
                            values.push(value);
                        }
                    }
                }
            }
        }
        let moment = 100 + 10 * at as u64;
        let mut transaction = committed(at, moment - before, moment + after, &operations);
        if *aborts {
            transaction.outcome = End::Aborted;
        } else {
            map = own;
        }
        history.transactions.push(transaction);
    }
    history
}

/// A change: of which transaction, of which operation, and a number for other choices.
type Change = (usize, usize, usize);

/// Changes an answer or the stamps.
fn change(history: &mut History, (at, of, number): Change) {
    let all = |history: &History| {
        let operations = history.transactions.iter().flat_map(|of| &of.operations);
        let written = operations.filter_map(|operation| match operation {
            Operation::Write { key, value: Some(value) } => Some((*key, *value)),
            _ => None,
        });
        history.initial.iter().copied().chain(written).collect::<Vec<_>>()
    };
    let entries = all(history);
    let count = history.transactions.len();
    let transaction = &mut history.transactions[at % count];
    if number.is_multiple_of(5) {
        let (start, end) = (transaction.start, transaction.end);
        let by = number as u64 % 23;
        (transaction.start, transaction.end) = match number % 3 {
            0 => (start + by, (end + by).max(start + by)),
            1 => (start - by, (end - by).max(start - by)),
            _ => (start, start),
        };
        return;
    }
    let count = transaction.operations.len();
    let of_key = |key: u64| {
        let states = entries.iter().filter(|of| of.0 == key).map(|of| Some(of.1));
        let states: Vec<_> = states.chain([None]).collect();
        states[number / 7 % states.len()]
    };
    match &mut transaction.operations[of % count] {
        Operation::Read { key, value } => *value = of_key(*key),
        Operation::Write { .. } | Operation::Present { .. } => {}
        Operation::Find { value, found } => {
            let key = entries.iter().find(|of| of.1 == *value).map(|of| of.0);
            *found = if found.is_some() { None } else { key };
        }
        Operation::Scan { range, entries } => {
            let first = if range.by == By::Key { range.from } else { 0 };
            let key = first + number as u64 % 4;
            let place = entries.iter().position(|of| of.0 == key);
            match (place, of_key(key)) {
                (Some(place), None) => _ = entries.remove(place),
                (Some(place), Some(value)) => entries[place].1 = value,
                (None, Some(value)) if range.includes((key, value)) => {
                    entries.push((key, value));
                    entries.sort_unstable_by_key(|&of| range.place(of));
                    if range.direction == Direction::Descending {
                        entries.reverse();
                    }
                }
                (None, _) => {}
            }
        }
    }
}

/// The number of random histories.
const CASES: u32 = crate::size::pick(60_000, 6_000, 5) as u32;

fn run<S: Strategy>(strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    if let Err(error) = TestRunner::new(config).run(strategy, test) {
        panic!("{error}");
    }
}

#[test]
fn serial_histories_pass() {
    run(&programs(40, KEYS), |programs| {
        let history = serial(&programs);
        let verdict = check(&history);
        prop_assert!(matches!(verdict, Verdict::Serializable { .. }), "{verdict:?}: {history:#?}");
        Ok(())
    });
}

#[test]
fn verdicts_are_those_of_the_search_over_all_orders() {
    let (wrong, missed) = (Cell::new(0), Cell::new(0));
    let changes = vec((0..8usize, 0..8usize, 0..1000usize), 1..3);
    let fewer_keys = (1..=KEYS).prop_flat_map(|keys| programs(7, keys));
    run(&(fewer_keys, changes), |(programs, changes)| {
        let mut history = serial(&programs);
        for &of in &changes {
            change(&mut history, of);
        }
        match (check(&history), has_order(&history, true)) {
            (Verdict::Serializable { .. }, true) => {}
            (Verdict::Anomaly(anomaly), false) => {
                wrong.set(wrong.get() + 1);
                let timed = anomaly.dependencies.iter().any(|of| of.inferred);
                prop_assert!(
                    timed || anomaly.real_time || !has_order(&history, false),
                    "serializable: {anomaly}: {history:#?}"
                );
            }
            (Verdict::Serializable { open: 1.. }, false) => missed.set(missed.get() + 1),
            (verdict, ordered) => {
                prop_assert!(false, "ordered: {ordered}, {verdict:?}: {history:#?}");
            }
        }
        Ok(())
    });
    let (wrong, missed): (u32, u32) = (wrong.get(), missed.get());
    println!("{wrong} of {CASES} histories were wrong");
    assert!(cfg!(miri) || wrong > CASES / 4, "{wrong} of {CASES} histories were wrong");
    assert_eq!(missed, 0, "of {wrong} wrong histories, with open choices");
}

/// The answers of a serial history are those of a map.
#[test]
fn the_model_explains_its_histories() {
    let history = serial(&[(vec![(8, 1, 0), (3, 0, 3), (6, 1, 0)], 0, 0, false)]);
    let mut map = history.initial.iter().copied().collect();
    assert!(history.transactions.iter().all(|of| explains(&mut map, of)));
    assert!(has_order(&history, true));
}

/// Prints the speed of the check of one long history, on one core.
#[test]
#[ignore = "a measurement: run it alone, in release"]
fn speed() {
    let mut rng = Rng::new(crate::size::seed(), 0);
    let mut step = || (rng.below(14) as u8, rng.below(KEYS), rng.below(64));
    let programs: Vec<Program> =
        (0..300_000u64).map(|at| ((0..5).map(|_| step()).collect(), at % 25, 24, false)).collect();
    let history = serial(&programs);
    let operations: usize = history.transactions.iter().map(|of| of.operations.len()).sum();
    let begun = Instant::now();
    let verdict = check(&history);
    let taken = begun.elapsed();
    println!("{} transactions, {operations} operations: {taken:?}", programs.len());
    assert!(matches!(verdict, Verdict::Serializable { .. }), "{verdict:?}");
}
