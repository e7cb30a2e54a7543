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
        Operation::Write { key, value: None } => map.remove(key).is_some(),
        Operation::Present { key } => map.contains_key(key),
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
    let place = |&(key, value): &Entry| match range.by {
        By::Key => (key, 0),
        By::Group => (group(value), key),
    };
    let all = map.iter().map(|of| (*of.0, *of.1));
    let mut all: Vec<Entry> =
        all.filter(|of| (range.from..=range.to).contains(&place(of).0)).collect();
    all.sort_unstable_by_key(place);
    if range.direction == Direction::Descending {
        all.reverse();
    }
    all.truncate(limit);
    all
}

/// Whether some order explains a history: a search over all orders, or all that respect real time.
pub(super) fn has_order(history: &History, strict: bool) -> bool {
    let committed = history.transactions.iter().filter(|of| of.outcome == End::Committed);
    let all: Vec<&Transaction> = committed.collect();
    assert!(all.len() <= 12);
    let failed = vec![false; 1 << all.len()];
    Search { all, strict, failed }.succeeds(0, &history.initial.iter().copied().collect())
}

/// A search over all orders.
struct Search<'h> {
    all: Vec<&'h Transaction>,
    strict: bool,
    /// The sets of transactions that cannot be the first ones. A set is searched once: each order
    /// of it that explains its answers leads to the same entries, because values are unique and
    /// each transaction reads what it replaces.
    failed: Vec<bool>,
}

impl Search<'_> {
    /// Whether the transactions outside the set `done`, which leads to `map`, have an order.
    fn succeeds(&mut self, done: usize, map: &Map) -> bool {
        if done + 1 == self.failed.len() {
            return true;
        }
        if self.failed[done] {
            return false;
        }
        let rest: Vec<usize> = (0..self.all.len()).filter(|at| done & (1 << at) == 0).collect();
        for &at in &rest {
            let next = self.all[at];
            let mut map = map.clone();
            if rest.iter().all(|&other| !self.strict || self.all[other].end >= next.start)
                && explains(&mut map, next)
                && self.succeeds(done | 1 << at, &map)
            {
                return true;
            }
        }
        self.failed[done] = true;
        false
    }
}
