//! Histories of transactions: the operations of each attempt, with their answers and stamps.

use crate::rng::mix;
use std::fmt;

/// A key with its value.
pub type Entry = (u64, u64);

/// The number of groups of values.
pub const GROUPS: u64 = 4;

/// The group of a value, from 0 to [`GROUPS`] - 1. So a secondary index on the groups, which is not
/// unique, has the same entry again and again, although all values are different.
pub fn group(value: u64) -> u64 {
    mix(value) % GROUPS
}

/// All transactions on one store between two moments at which none was under way.
///
/// The checker relies on three rules, and reports a history that breaks one as
/// [`Verdict::Unfit`](super::Verdict::Unfit): all values, initial ones included, are different; a
/// committed transaction observes a key by a read, a scan or a find before its first write of it;
/// no transaction ends before it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The entries before the first transaction. Keys without an entry are absent.
    pub initial: Vec<Entry>,
    /// The attempts, in any order.
    pub transactions: Vec<Transaction>,
}

/// One attempt of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The thread that made the attempt.
    pub thread: usize,
    /// The stamp taken before the attempt.
    pub start: u64,
    /// The stamp taken after the attempt.
    pub end: u64,
    /// How the attempt ended.
    pub outcome: End,
    /// The operations that returned an answer, in program order.
    pub operations: Vec<Operation>,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The attempt committed.
    Committed,
    /// The attempt aborted: it must have had no effect.
    Aborted,
}

/// The order in which a scan walks, from its lower bound to its upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The keys.
    Key,
    /// The [groups](group) of the values, and within a group the keys.
    Group,
}

/// The order in which a scan returns entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least one up.
    Ascending,
    /// From the greatest one down.
    Descending,
}

/// The range of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Whether the bounds are keys or groups.
    pub by: By,
    /// The lower bound, inclusive.
    pub from: u64,
    /// The upper bound, inclusive. If it is below `from`, the range is empty.
    pub to: u64,
    /// The most entries to return.
    pub limit: Option<usize>,
    /// The order of the entries.
    pub direction: Direction,
}

/// One operation of a transaction, with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A lookup of a key.
    Read {
        /// The key.
        key: u64,
        /// The value found, or `None` if the key was absent.
        value: Option<u64>,
    },
    /// A write of a key: an insertion, an update or a deletion.
    Write {
        /// The key.
        key: u64,
        /// The new value. `None` deletes the key.
        value: Option<u64>,
    },
    /// An insertion that was refused, because the key was there.
    Present {
        /// The key.
        key: u64,
    },
    /// A scan of a range of keys, or of groups.
    Scan {
        /// The range.
        range: Range,
        /// The entries returned, in their order.
        entries: Vec<Entry>,
    },
    /// A lookup by a unique secondary index on the values.
    Find {
        /// The value.
        value: u64,
        /// The key that has the value, or `None` if no key has it.
        found: Option<u64>,
    },
}

impl Range {
    /// The ascending range of keys from `from` to `to`, without a limit.
    pub fn ascending(from: u64, to: u64) -> Self {
        Self { by: By::Key, from, to, limit: None, direction: Direction::Ascending }
    }

    /// Returns this range with its bounds taken as groups.
    #[must_use]
    pub fn by_group(self) -> Self {
        Self { by: By::Group, ..self }
    }

    /// Returns this range in the other order.
    #[must_use]
    pub fn reversed(self) -> Self {
        let direction = match self.direction {
            Direction::Ascending => Direction::Descending,
            Direction::Descending => Direction::Ascending,
        };
        Self { direction, ..self }
    }

    /// Returns this range with a limit.
    #[must_use]
    pub fn limited(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The place of an entry in the order of the scan.
    pub(super) fn place(&self, (key, value): Entry) -> (u64, u64) {
        match self.by {
            By::Key => (key, 0),
            By::Group => (group(value), key),
        }
    }

    /// Whether the range includes an entry.
    pub(super) fn includes(&self, entry: Entry) -> bool {
        (self.from..=self.to).contains(&self.place(entry).0)
    }

    /// The least and the greatest place that a scan with these entries has covered, or `None` if it
    /// has covered nothing. A scan that reached its limit covers the places up to its last entry. A
    /// place is a key, or a group with a key.
    pub fn covered(&self, entries: &[Entry]) -> Option<((u64, u64), (u64, u64))> {
        let last = match entries.last() {
            Some(&last) if self.limit.is_some_and(|limit| entries.len() >= limit) => {
                Some(self.place(last))
            }
            _ => None,
        };
        let (from, to) = ((self.from, 0), (self.to, u64::MAX));
        let (from, to) = match (self.direction, last) {
            _ if self.limit == Some(0) => return None,
            (_, None) => (from, to),
            (Direction::Ascending, Some(last)) => (from, last),
            (Direction::Descending, Some(last)) => (last, to),
        };
        (from <= to).then_some((from, to))
    }
}

impl Operation {
    /// Whether this operation is on one of these keys, or finds one of these values.
    pub(super) fn concerns(&self, keys: &[u64], values: &[u64]) -> bool {
        match self {
            Self::Read { key, .. } | Self::Write { key, .. } | Self::Present { key } => {
                keys.contains(key)
            }
            Self::Scan { range, .. } if range.by == By::Key => {
                keys.iter().any(|&key| range.includes((key, 0)))
            }
            Self::Scan { range, entries } => {
                values.iter().any(|&value| range.includes((0, value)))
                    || entries.iter().any(|of| keys.contains(&of.0))
            }
            Self::Find { value, found } => {
                values.contains(value) || found.is_some_and(|key| keys.contains(&key))
            }
        }
    }
}

/// The most entries of a scan that are printed.
const PRINTED: usize = 8;

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { key, value: Some(value) } => write!(f, "read {key} → {value}"),
            Self::Read { key, value: None } => write!(f, "read {key} → absent"),
            Self::Write { key, value: Some(value) } => write!(f, "write {key} = {value}"),
            Self::Write { key, value: None } => write!(f, "delete {key}"),
            Self::Present { key } => write!(f, "insert {key} → refused"),
            Self::Find { value, found: Some(key) } => write!(f, "find {value} → key {key}"),
            Self::Find { value, found: None } => write!(f, "find {value} → nothing"),
            Self::Scan { range: Range { by, from, to, limit, direction }, entries } => {
                let of = if *by == By::Group { "groups " } else { "" };
                match direction {
                    Direction::Ascending => write!(f, "scan {of}{from} to {to}")?,
                    Direction::Descending => write!(f, "scan {of}{to} down to {from}")?,
                }
                if let Some(limit) = limit {
                    write!(f, ", at most {limit}")?;
                }
                f.write_str(" →")?;
                if entries.is_empty() {
                    f.write_str(" nothing")?;
                }
                for (key, value) in entries.iter().take(PRINTED) {
                    write!(f, " {key}:{value}")?;
                }
                if entries.len() > PRINTED {
                    write!(f, " and {} more", entries.len() - PRINTED)?;
                }
                Ok(())
            }
        }
    }
}
