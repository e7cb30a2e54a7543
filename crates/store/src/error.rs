//! The errors of the store.

use crate::policy::Stop;
use silvics::AllocError;
use silvics_memtable::BatchError;
use std::fmt;
use std::sync::Arc;

/// Why a call on the store failed. The database is as if the call had not been made, unless a
/// variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// This transaction conflicts with another one, and cannot go on. All further calls on it fail
    /// in the same way, and its changes are undone. [`Store::transact`](crate::Store::transact)
    /// runs it again.
    Aborted(Conflict),
    /// The row would be the second one with the same key of a unique index, or of several, of which
    /// this is one. The transaction can go on.
    Unique {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// An update would give a row another primary key: delete the row, and insert it anew. The
    /// transaction can go on.
    PrimaryKey {
        /// The table.
        table: String,
    },
    /// The index is declared with `points_only`, so it cannot be scanned.
    PointsOnly {
        /// The index.
        index: String,
    },
    /// A value does not suit its column.
    Value(ValueError),
    /// The definition of a table is wrong, or a handle was requested that does not match it.
    Schema(SchemaError),
    /// There is no memory. The transaction can go on.
    Alloc(AllocError),
    /// The table, the index or the column belongs to another table or store.
    Foreign,
    /// An earlier call of the transaction has panicked, in code of a heap or an index, and may have
    /// done a part of its work. All further calls fail in the same way, and everything is undone.
    Unwound,
    /// The transaction called itself: a closure that fills or changes a row used the transaction
    /// that had called it.
    Nested,
    /// The log of a durable store has failed earlier, so the store takes no more writes. The
    /// transaction is undone.
    ReadOnly {
        /// The failure of the log.
        why: Arc<str>,
    },
    /// The log has failed before everything that the transaction has read and written was durable.
    /// A transaction that writes is committed in memory. Whether a recovery finds it is unknown.
    /// `transact` also returns this for an error of its closure, and for a reader, if what they
    /// have read may be lost.
    Unacknowledged {
        /// The failure of the log.
        why: Arc<str>,
    },
    /// The transaction does not fit into a record of the log. It is undone.
    Record(BatchError),
}

/// Why a transaction was aborted. Each reason is counted: see [`Stats`](crate::Stats).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Conflict {
    /// Another transaction holds a lock on the row (no-wait).
    RowLocked,
    /// An older transaction holds a lock on the row or the key (wait-die).
    Died,
    /// Another transaction holds a lock on an absent key.
    KeyLocked,
    /// Another transaction uses the row behind a row that was to be inserted, and may have scanned
    /// the range between them.
    Scanned,
    /// Another transaction has not yet committed the row that was read.
    Uncommitted,
    /// A row has changed since it was read.
    RowChanged,
    /// A key that was absent has been inserted since.
    KeyAppeared,
    /// Rows have come or gone in a range since it was scanned.
    RangeChanged,
}

impl Conflict {
    /// All reasons, in the order of [`Stats::aborts`](crate::Stats::aborts).
    pub const ALL: [Self; 8] = [
        Self::RowLocked,
        Self::Died,
        Self::KeyLocked,
        Self::Scanned,
        Self::Uncommitted,
        Self::RowChanged,
        Self::KeyAppeared,
        Self::RangeChanged,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::RowLocked => "row-locked",
            Self::Died => "died",
            Self::KeyLocked => "key-locked",
            Self::Scanned => "scanned",
            Self::Uncommitted => "uncommitted",
            Self::RowChanged => "row-changed",
            Self::KeyAppeared => "key-appeared",
            Self::RangeChanged => "range-changed",
        }
    }

    /// The position in [`Conflict::ALL`].
    pub(crate) fn number(self) -> usize {
        Self::ALL.iter().position(|&reason| reason == self).unwrap_or(0)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RowLocked => "another transaction holds a lock on the row",
            Self::Died => "an older transaction holds the lock",
            Self::KeyLocked => "another transaction holds a lock on the absent key",
            Self::Scanned => "another transaction uses the row behind the new one",
            Self::Uncommitted => "another transaction has not yet committed the row",
            Self::RowChanged => "a row has changed since it was read",
            Self::KeyAppeared => "a key that was absent has been inserted",
            Self::RangeChanged => "a range has other rows than when it was scanned",
        })
    }
}

/// Why a value does not suit its column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueError {
    /// A byte string or text is longer than its column.
    TooLong {
        /// The bytes of the value.
        bytes: usize,
        /// The most bytes that the column holds.
        max: usize,
    },
}

/// The mistake in a definition of a table, or in the request for a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// A table has no columns.
    NoColumns {
        /// The table.
        table: String,
    },
    /// A table has no primary index.
    NoPrimary {
        /// The table.
        table: String,
    },
    /// The store has such a table already, or the table has two columns or indexes of one name.
    Twice {
        /// The kind of the object: table, column or index.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// There is no object with this name.
    Unknown {
        /// The kind of the object: column, index or structure.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// An index names no columns, or more than [`KEY_COLUMNS`](crate::KEY_COLUMNS).
    KeyColumns {
        /// The index.
        index: String,
    },
    /// A column has another type than the caller expects.
    Type {
        /// The column or index.
        name: String,
        /// Its type.
        has: String,
        /// The type that the caller expects.
        wanted: String,
    },
    /// A row is larger than [`ROW_BYTES`](crate::ROW_BYTES).
    TooLarge {
        /// The table.
        table: String,
        /// The bytes of a row.
        bytes: usize,
    },
    /// The structure of an index cannot scan, but the index is declared with scans.
    NoScans {
        /// The index.
        index: String,
        /// Its structure.
        structure: String,
        /// The structures that can scan keys of this form.
        others: String,
    },
    /// The structure of an index does not take keys of this form.
    NoKeys {
        /// The index.
        index: String,
        /// Its structure.
        structure: String,
        /// The form of the keys.
        form: &'static str,
        /// The structures that take keys of this form.
        others: String,
    },
    /// The structure of an index has lists of rows, for which the index or the table does not suit.
    Lists {
        /// The index.
        index: String,
    },
    /// The store is durable, so its tables are fixed when it is opened.
    Fixed {
        /// The table that was to be created.
        table: String,
    },
    /// The index has another kind than the handle: unique or not.
    Kind {
        /// The index.
        index: String,
        /// The kind of the index.
        has: &'static str,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoColumns { table } => {
                write!(f, "the table `{table}` has no columns: add one with `column`")
            }
            Self::NoPrimary { table } => {
                write!(f, "the table `{table}` has no primary index: add one with `primary`")
            }
            Self::Twice { kind, name } => {
                write!(f, "the {kind} `{name}` exists already: choose another name")
            }
            Self::Unknown { kind, name, known } => {
                write!(f, "there is no {kind} `{name}`: choose from {known}")
            }
            Self::KeyColumns { index } => write!(
                f,
                "the index `{index}` has no columns or too many: name 1 to {}",
                crate::KEY_COLUMNS
            ),
            Self::Type { name, has, wanted } => {
                write!(f, "`{name}` has the type {has}: {wanted} does not suit it")
            }
            Self::TooLarge { table, bytes } => write!(
                f,
                "a row of the table `{table}` has {bytes} bytes: declare columns of at most {} \
                 bytes in total",
                crate::ROW_BYTES
            ),
            Self::NoScans { index, structure, others } => write!(
                f,
                "the index `{index}` needs scans, and `{structure}` has none: choose from \
                 {others}, or declare the index with `points_only`"
            ),
            Self::NoKeys { index, structure, form, others } => write!(
                f,
                "the index `{index}` has {form} keys, which `{structure}` does not take: choose \
                 from {others}"
            ),
            Self::Lists { index } => write!(
                f,
                "the index `{index}` has a list of rows for each key: declare it by \
                 `IndexSpec::multi` over one column of 8 bytes, in a table whose primary key is one \
                 such column"
            ),
            Self::Fixed { table } => write!(
                f,
                "the tables of a durable store are fixed when it is opened: create `{table}` in \
                 the function that `Store::open` calls"
            ),
            Self::Kind { index, has } => {
                write!(f, "the index `{index}` is {has}: request the handle of that kind")
            }
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes, max } => {
                write!(f, "the value has {bytes} bytes, and its column holds at most {max}")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted(conflict) => write!(f, "the transaction was aborted: {conflict}"),
            Self::Unique { table, index } => write!(
                f,
                "the table `{table}` has a row with this key already: its index `{index}` is unique"
            ),
            Self::PrimaryKey { table } => write!(
                f,
                "an update cannot change the primary key of a row of `{table}`: delete the row and \
                 insert it anew"
            ),
            Self::PointsOnly { index } => {
                write!(f, "the index `{index}` is declared with `points_only`: it has no scans")
            }
            Self::Value(error) => error.fmt(f),
            Self::Schema(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Foreign => {
                f.write_str("the handle or column belongs to another table or another store")
            }
            Self::Unwound => f.write_str(
                "an earlier call of the transaction has panicked, so it cannot go on: begin \
                 another one",
            ),
            Self::Nested => f.write_str(
                "a closure that fills or changes a row used the transaction that called it",
            ),
            Self::ReadOnly { why } => write!(
                f,
                "the transaction was undone, because the store is read-only since its log has \
                 failed: {why}. Open the store again"
            ),
            Self::Unacknowledged { why } => write!(
                f,
                "it is unknown whether the transaction is durable, because the log has failed: \
                 {why}. Open the store again, and look"
            ),
            Self::Record(error) => write!(
                f,
                "the transaction was undone, because its record for the log is too long: {error}"
            ),
        }
    }
}

impl std::error::Error for Conflict {}
impl std::error::Error for ValueError {}
impl std::error::Error for SchemaError {}
impl std::error::Error for Error {}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Conflict(conflict) => Self::Aborted(conflict),
            Stop::Alloc(error) => Self::Alloc(error),
            Stop::Unwound => Self::Unwound,
            // `failed` adds the reason.
            Stop::ReadOnly => Self::ReadOnly { why: Arc::from("an earlier call has failed") },
            Stop::Record(error) => Self::Record(error),
        }
    }
}

impl From<Conflict> for Error {
    fn from(conflict: Conflict) -> Self {
        Self::Aborted(conflict)
    }
}

impl From<AllocError> for Error {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl From<SchemaError> for Error {
    fn from(error: SchemaError) -> Self {
        Self::Schema(error)
    }
}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}
