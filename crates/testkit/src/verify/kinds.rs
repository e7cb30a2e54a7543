//! The number of calls of each kind.

use super::History;
use crate::history::Op;
use crate::linearizable::ordered::{EndVerb, OrderedOp};
use crate::versions::{self, Call, Expected};

/// The number of kinds.
const KINDS: usize = 30;

/// The number of calls of each kind. A lookup or an upsert of a batch counts as one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds([u64; KINDS]);

impl Kinds {
    /// The names of the kinds: those of the verbs, and `scan` for ranges and cursors. Behind them
    /// come the calls on the ends, those on atomic ranges, those on maps with versions, and those
    /// on maps with several values for a key.
    pub const NAMES: [&str; KINDS] = [
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
        "put",
        "put_if_latest",
        "delete",
        "delete_if_latest",
        "commit",
        "get_latest",
        "now",
        "snapshot",
        "get_at",
        "get_version",
        "range_at",
        "range",
        "history",
        "prune",
        "publish",
        "remove_all",
        "values",
        "count",
    ];
    const SCAN: usize = 5;
    const ENDS: usize = 6;
    const RANGES: usize = 10;
    const VERSIONS: usize = 12;
    /// The kinds of calls on lists: `insert`, `remove`, `remove_all`, `values` and `count`.
    const LISTS: [usize; 5] = [2, 3, 27, 28, 29];

    /// The calls of a history.
    pub(super) fn of(history: &History) -> Self {
        let mut kinds = [0; KINDS];
        for event in history.threads.iter().flatten() {
            let kind = match event.op {
                Op::Get { .. } => 0,
                Op::TryInsert { .. } => 1,
                Op::Insert { .. } => 2,
                Op::Remove { .. } => 3,
                Op::CompareExchange { .. } => 4,
                Op::Put { .. } => Self::VERSIONS,
                Op::Delete => Self::VERSIONS + 2,
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

    /// The calls of a history of a map with versions.
    pub(crate) fn of_versions(events: &[versions::Event]) -> Self {
        let mut kinds = [0; KINDS];
        for event in events {
            let kind = match &event.call {
                Call::Write { write, .. } => {
                    let is_conditional = write.expected != Expected::Any;
                    2 * usize::from(write.value.is_none()) + usize::from(is_conditional)
                }
                Call::Commit { .. } => 4,
                Call::Latest { .. } => 5,
                Call::Now(_) => 6,
                Call::Snapshot { .. } => 7,
                Call::Read { through, .. } => 8 + usize::from(*through),
                Call::Range { through, .. } => 10 + usize::from(*through),
                Call::History { .. } => 12,
                Call::Prune { .. } => 13,
                Call::Publish { .. } => 14,
            };
            kinds[Self::VERSIONS + kind] += 1;
        }
        Self(kinds)
    }

    /// The calls of a history of a map with several values for a key, by their numbers in `LISTS`.
    pub(crate) fn of_lists(calls: impl Iterator<Item = usize>) -> Self {
        let mut kinds = [0; KINDS];
        calls.for_each(|call| kinds[Self::LISTS[call]] += 1);
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
