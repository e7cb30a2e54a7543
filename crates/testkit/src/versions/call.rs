//! The calls of a history, with their answers.

use std::fmt;

/// The number of a version and its value, or `None` for a key that is absent or deleted.
pub type Found = Option<(u64, u64)>;

/// A write of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The number of the key.
    pub key: u32,
    /// The value, or `None` for a deletion.
    pub value: Option<u64>,
    /// The version that the write expects.
    pub expected: Expected,
}

/// The version that a write expects to be the newest one of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any, or none.
    Any,
    /// The one with this number, or none.
    Latest(Option<u64>),
}

impl Expected {
    /// Whether the newest version is as expected.
    pub(super) fn accepts(self, latest: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Latest(expected) => expected == latest,
        }
    }
}

/// The answer of a write or a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It took effect, and its version has this number.
    Done(u64),
    /// The key was absent, so there was nothing to delete.
    Nothing,
    /// The newest version of a key had this number, which was not the expected one.
    Conflict(Option<u64>),
    /// The key had a version with this number already.
    Exists(u64),
    /// The newest version of the key had this number, which is not smaller.
    NotNewer(u64),
    /// The watermark was at this number, which is not smaller.
    TooLate(u64),
}

/// The reason why a number was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It was below this horizon.
    Pruned(u64),
    /// It was above this number, at which the map was.
    Future(u64),
}

/// A call with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `put`, `delete`, `put_if_latest` or `delete_if_latest`.
    Write {
        /// The number, if the caller gives it.
        given: Option<u64>,
        /// The write.
        write: Write,
        /// The answer.
        answer: Answer,
    },
    /// `commit` of a batch.
    Commit {
        /// The writes, in ascending order of their keys.
        writes: Vec<Write>,
        /// The answer.
        answer: Answer,
    },
    /// `get_latest`
    Latest {
        /// The number of the key.
        key: u32,
        /// The answer.
        found: Found,
    },
    /// `now`
    Now(u64),
    /// `snapshot`, or `snapshot_at` a number.
    Snapshot {
        /// The number asked for.
        asked: Option<u64>,
        /// The number of the snapshot.
        answer: Result<u64, Unreadable>,
    },
    /// `get_at`, or `get_version` of a snapshot.
    Read {
        /// The number of the reader.
        at: u64,
        /// Whether the reader is a snapshot.
        through: bool,
        /// The number of the key.
        key: u32,
        /// The answer.
        found: Result<Found, Unreadable>,
    },
    /// `range_at`, or `range` of a snapshot.
    Range {
        /// The number of the reader.
        at: u64,
        /// Whether the reader is a snapshot.
        through: bool,
        /// The first and the last key of the range.
        keys: (u32, u32),
        /// The keys found in ascending order, with their values.
        found: Result<Vec<(u32, u64)>, Unreadable>,
    },
    /// `history`
    History {
        /// The number of the key.
        key: u32,
        /// The numbers of the versions, the newest first, with their values.
        found: Vec<(u64, Option<u64>)>,
    },
    /// `prune`
    Prune {
        /// The number of the first reader whose versions stay.
        number: u64,
        /// The number at which the map was, if it was below.
        answer: Result<(), u64>,
    },
    /// `publish`
    Publish {
        /// The new watermark.
        number: u64,
        /// The number at which the map was, if it was above.
        answer: Result<(), u64>,
    },
}

impl Call {
    /// The number of a write that took effect.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Write { answer: Answer::Done(number), .. }
            | Self::Commit { answer: Answer::Done(number), .. } => Some(*number),
            _ => None,
        }
    }

    /// The writes of a write or a commit.
    pub(super) fn writes(&self) -> &[Write] {
        match self {
            Self::Write { write, .. } => std::slice::from_ref(write),
            Self::Commit { writes, .. } => writes,
            _ => &[],
        }
    }
}

/// A call with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The calling thread.
    pub thread: usize,
    /// The stamp taken before the call.
    pub start: u64,
    /// The stamp taken after the call.
    pub end: u64,
    /// The call and its answer.
    pub call: Call,
}

/// A snapshot, from before the call that began it until after its drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The number at which it reads.
    pub number: u64,
    /// The stamps before and after the call that began it.
    pub begun: (u64, u64),
    /// The stamps before and after its drop.
    pub ended: (u64, u64),
}

/// The calls of all threads on one map that was empty before.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The number of the history.
    pub number: u64,
    /// The number of its threads.
    pub threads: usize,
    /// Whether the map draws the numbers of versions.
    pub drawn: bool,
    /// Whether the map keeps all versions until a call prunes them.
    pub retains_all: bool,
    /// The calls.
    pub events: Vec<Event>,
    /// The snapshots.
    pub lives: Vec<Life>,
}

/// The versions of a list that a report shows.
const LISTED: usize = 6;

/// Displays an optional number.
struct Of(Option<u64>);

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("absent"),
        }
    }
}

/// Displays a version.
pub(super) fn shown(found: Found) -> String {
    found.map_or("absent".into(), |(number, value)| format!("version {number} = {value}"))
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.expected == Expected::Any { "" } else { "_if_latest" };
        match self.value {
            Some(value) => write!(f, "put{suffix} key {} = {value}", self.key)?,
            None => write!(f, "delete{suffix} key {}", self.key)?,
        }
        match self.expected {
            Expected::Any => Ok(()),
            Expected::Latest(expected) => write!(f, " if {}", Of(expected)),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(number) => write!(f, "version {number}"),
            Self::Nothing => f.write_str("nothing to delete"),
            Self::Conflict(latest) => write!(f, "conflict with {}", Of(*latest)),
            Self::Exists(number) => write!(f, "version {number} exists"),
            Self::NotNewer(newest) => write!(f, "not newer than {newest}"),
            Self::TooLate(watermark) => write!(f, "too late, the watermark is {watermark}"),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pruned(horizon) => write!(f, "pruned up to {horizon}"),
            Self::Future(now) => write!(f, "in the future of {now}"),
        }
    }
}

/// Displays an answer, or the reason why there is none.
fn or<T>(answer: &Result<T, impl fmt::Display>, show: impl FnOnce(&T) -> String) -> String {
    answer.as_ref().map_or_else(ToString::to_string, show)
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let through = |through: bool| if through { "snapshot" } else { "reader" };
        match self {
            Self::Write { given: None, write, answer } => write!(f, "{write} → {answer}"),
            Self::Write { given: Some(number), write, answer } => {
                write!(f, "{write} as version {number} → {answer}")
            }
            Self::Commit { writes, answer } => {
                let writes: Vec<String> = writes.iter().map(ToString::to_string).collect();
                write!(f, "commit [{}] → {answer}", writes.join(", "))
            }
            Self::Latest { key, found } => write!(f, "get_latest key {key} → {}", shown(*found)),
            Self::Now(now) => write!(f, "now → {now}"),
            Self::Snapshot { asked: None, answer } => {
                write!(f, "snapshot → {}", or(answer, ToString::to_string))
            }
            Self::Snapshot { asked: Some(asked), answer } => {
                write!(f, "snapshot_at {asked} → {}", or(answer, ToString::to_string))
            }
            Self::Read { at, through: by, key, found } => {
                let (by, found) = (through(*by), or(found, |found| shown(*found)));
                write!(f, "{by} at {at} reads key {key} → {found}")
            }
            Self::Range { at, through: by, keys, found } => {
                let entry = |(key, value): &(u32, u64)| format!("{key}: {value}");
                let list = |found: &Vec<_>| found.iter().map(entry).collect::<Vec<_>>().join(", ");
                let (by, found) = (through(*by), or(found, |found| format!("[{}]", list(found))));
                write!(f, "{by} at {at} reads keys {} to {} → {found}", keys.0, keys.1)
            }
            Self::History { key, found } => {
                let version = |(number, value): &(u64, Option<u64>)| match value {
                    Some(value) => format!("{number} = {value}"),
                    None => format!("{number} deletes"),
                };
                let mut versions: Vec<String> = found.iter().take(LISTED).map(version).collect();
                if found.len() > LISTED {
                    versions.push(format!("and {} more", found.len() - LISTED));
                }
                write!(f, "history of key {key} → [{}]", versions.join(", "))
            }
            Self::Prune { number, answer } => {
                write!(f, "prune {number} → {}", or(answer, |()| "done".into()))
            }
            Self::Publish { number, answer } => {
                write!(f, "publish {number} → {}", or(answer, |()| "done".into()))
            }
        }
    }
}
