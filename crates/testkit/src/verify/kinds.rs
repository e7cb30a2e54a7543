//! The number of calls of each kind.

use super::History;
use crate::history::Op;
use crate::linearizable::ordered::{EndVerb, OrderedOp};

/// The number of calls of each kind. A lookup or an upsert of a batch counts as one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds([u64; 12]);

impl Kinds {
    /// The names of the kinds: those of the verbs, and `scan` for ranges and cursors. The calls on
    /// the ends and those on atomic ranges come last.
    pub const NAMES: [&str; 12] = [
        "get",
        "try_insert",
        "insert",
        "remove",
        "compare_exchange",
        "scan",
        "first",
        "last",
        "pop_first",
        "pop_last",
        "collect_range",
        "update_range",
    ];
    const SCAN: usize = 5;
    const ENDS: usize = 6;
    const RANGES: usize = 10;

    /// The calls of a history.
    pub(super) fn of(history: &History) -> Self {
        let mut kinds = [0; 12];
        for event in history.threads.iter().flatten() {
            let kind = match event.op {
                Op::Get { .. } => 0,
                Op::TryInsert { .. } => 1,
                Op::Insert { .. } => 2,
                Op::Remove { .. } => 3,
                Op::CompareExchange { .. } => 4,
            };
            kinds[kind] += 1;
        }
        // Each key of a scan is recorded as a lookup.
        kinds[0] -= history.scans + history.parts;
        kinds[Self::SCAN] = history.scans;
        for event in &history.ends {
            let kind = match event.op {
                OrderedOp::Point { .. } => continue,
                OrderedOp::End { verb, .. } => {
                    let at = EndVerb::ALL.into_iter().position(|other| other == verb);
                    Self::ENDS + at.expect("a verb of the list")
                }
                OrderedOp::Range { mask, .. } => Self::RANGES + usize::from(mask != 0),
            };
            kinds[kind] += 1;
        }
        Self(kinds)
    }

    /// Adds the calls of another history.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    /// The name and the number of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::NAMES.into_iter().zip(self.0)
    }

    /// The number of calls on the first and last entry.
    pub fn ends(&self) -> u64 {
        self.0[Self::ENDS..Self::RANGES].iter().sum()
    }
}
