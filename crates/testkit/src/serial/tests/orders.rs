//! The definition: some order of the transactions that respects real time explains all answers.

use super::super::history::Direction;
use super::*;
use std::collections::BTreeMap;

type Map = BTreeMap<u64, u64>;

/// Runs the operations of a transaction on a map. Returns whether all answers are right.
pub(super) fn explains(map: &mut Map, of: &Transaction) -> bool {
    of.operations.iter().all(|operation| match operation {
        Operation::Read { key, value } => map.get(key).copied() == *value,
        Operation::Write { key, value: Some(value) } => {
            map.insert(*key, *value);
            true
        }
        Operation::Write { key, value: None } => {
            map.remove(key);
            true
        }
        Operation::Find { value, found } => find_in(map, *value) == *found,
        Operation::Scan { range, entries } => scan_of(map, range) == *entries,
    })
}

/// The key that has a value.
pub(super) fn find_in(map: &Map, value: u64) -> Option<u64> {
    map.iter().find(|of| *of.1 == value).map(|of| *of.0)
}

/// The entries of a range.
pub(super) fn scan_of(map: &Map, range: &Range) -> Vec<Entry> {
    let limit = range.limit.unwrap_or(usize::MAX);
    if range.from > range.to {
        return Vec::new();
    }
    let all = map.range(range.from..=range.to).map(|of| (*of.0, *of.1));
    match range.direction {
        Direction::Ascending => all.take(limit).collect(),
        Direction::Descending => all.rev().take(limit).collect(),
    }
}

/// Whether some order explains a history: a search over all orders, or all that respect real time.
pub(super) fn has_order(history: &History, strict: bool) -> bool {
    let committed = history.transactions.iter().filter(|of| of.outcome == End::Committed);
    let committed: Vec<&Transaction> = committed.collect();
    assert!(committed.len() <= 10);
    search(&committed, strict, 0, &history.initial.iter().copied().collect())
}

fn search(all: &[&Transaction], strict: bool, done: u32, map: &Map) -> bool {
    let rest = || (0..all.len()).filter(|at| done & (1 << at) == 0);
    rest().next().is_none()
        || rest().any(|at| {
            let mut map = map.clone();
            rest().all(|other| !strict || all[other].end >= all[at].start)
                && explains(&mut map, all[at])
                && search(all, strict, done | 1 << at, &map)
        })
}
