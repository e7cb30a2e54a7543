//! Why a durable store was not opened, or a checkpoint was not written.

use crate::error::Error;
use silvics_memtable::log::LogError;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a durable store was not opened. The files have the same content as before, except that a new
/// log may be there, without records. The message says what to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The function that creates the tables has failed, or there is no memory.
    Store(Error),
    /// The function that creates the tables has also inserted rows.
    NotEmpty {
        /// The table that has rows.
        table: String,
    },
    /// A log cannot be read or created.
    Log(LogError),
    /// A checkpoint cannot be listed or read.
    Storage {
        /// The number of the checkpoint, unless the call was for all of them.
        checkpoint: Option<u64>,
        /// The error of the storage.
        error: Arc<io::Error>,
    },
    /// A log or checkpoint has other tables than the program.
    Schema {
        /// The log or checkpoint.
        file: String,
        /// A table of the file.
        found: String,
        /// The table that the program declares in its place.
        declared: String,
    },
    /// A log or checkpoint has another version of the format, or is not one of a store.
    Version {
        /// The log or checkpoint.
        file: String,
        /// The version of the file, or `None` if it is not one of a store.
        found: Option<String>,
    },
    /// A checkpoint is cut or damaged.
    Damaged {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The byte at which this was found.
        offset: u64,
        /// The mistake.
        why: &'static str,
    },
    /// The log does not begin where the checkpoint needs it, or ends too early.
    Missing {
        /// The number of the checkpoint, if there is one.
        checkpoint: Option<u64>,
        /// The sequence number of the operation that the log must have.
        wanted: u64,
        /// The first sequence number of the log, or the one that follows its last.
        found: u64,
    },
    /// A record of the log, or a block of a checkpoint, has an operation that the tables do not
    /// allow, under a valid checksum.
    Record {
        /// The log or checkpoint.
        file: String,
        /// The byte at which it begins.
        offset: u64,
    },
    /// Two rows have one key of a unique index, which was not unique or did not exist when they
    /// were written.
    Unique {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "the store was not opened: {error}"),
            Self::NotEmpty { table } => write!(
                f,
                "the table `{table}` has rows before the recovery: only create tables in the \
                 function that `Store::open` calls, and insert rows afterwards"
            ),
            Self::Log(error) => write!(f, "the store was not opened: {error}"),
            Self::Storage { checkpoint: Some(number), error } => {
                write!(f, "checkpoint {number} was not read: {error}")
            }
            Self::Storage { checkpoint: None, error } => {
                write!(f, "the checkpoints were not listed: {error}")
            }
            Self::Schema { file, found, declared } => write!(
                f,
                "{file} has {found}, and the program declares {declared}: declare the tables of \
                 the file in their order, or open another folder"
            ),
            Self::Version { file, found: Some(found) } => write!(
                f,
                "{file} has version {found} of the format, and this program knows {}: open it with \
                 the program that wrote it",
                super::schema::VERSION
            ),
            Self::Version { file, found: None } => {
                write!(f, "{file} was not written by a store: move it away, or open another folder")
            }
            Self::Damaged { checkpoint, offset, why } => write!(
                f,
                "checkpoint {checkpoint} is damaged at byte {offset}: {why}. Restore the file \
                 from a copy"
            ),
            Self::Missing { checkpoint: None, wanted, found } => write!(
                f,
                "the log begins at operation {found} instead of {wanted}, and there is no \
                 checkpoint: restore the file of the checkpoint, or those of the log"
            ),
            Self::Missing { checkpoint: Some(number), wanted, found } => write!(
                f,
                "checkpoint {number} needs the log up to operation {wanted}, and the log has \
                 {found} in its place: restore the files of the log from a copy"
            ),
            Self::Record { file, offset } => write!(
                f,
                "the record at byte {offset} of {file} does not suit the tables, so another \
                 program wrote it: open it with that program"
            ),
            Self::Unique { table, index } => write!(
                f,
                "two rows of the table `{table}` have one key of its unique index `{index}`: \
                 declare the index with `IndexSpec::multi`, and correct the rows"
            ),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Log(error) => Some(error),
            Self::Storage { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<silvics::AllocError> for OpenError {
    fn from(error: silvics::AllocError) -> Self {
        Self::Store(error.into())
    }
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// Why a checkpoint was not written. The store and its earlier checkpoint are as they were, unless
/// a variant says otherwise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store has no log: it was not made by [`Store::open`](crate::Store::open).
    NotDurable,
    /// The structure of a table's primary index cannot scan.
    PointsOnly {
        /// The table.
        table: String,
    },
    /// The log has failed, now or earlier. The store is read-only.
    Log {
        /// The failure.
        why: Arc<str>,
    },
    /// The file of the checkpoint was not written.
    Storage {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The error of the storage.
        error: Arc<io::Error>,
    },
    /// A transaction that reads rows has failed.
    Read(Error),
    /// The checkpoint is complete and durable, and an older file was not removed. The next
    /// checkpoint tries again.
    Removal {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The error of the storage.
        error: Arc<io::Error>,
    },
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDurable => f.write_str(
                "the store has no log, so it has no checkpoints: make it with `Store::open`",
            ),
            Self::PointsOnly { table } => write!(
                f,
                "the table `{table}` has a primary index whose structure cannot scan, so no \
                 checkpoint can read it: choose another structure"
            ),
            Self::Log { why } => write!(
                f,
                "no checkpoint was written, because the log has failed: {why}. Open the store again"
            ),
            Self::Storage { checkpoint, error } => write!(
                f,
                "checkpoint {checkpoint} was not written: {error}. The log has all transactions, \
                 so try again"
            ),
            Self::Read(error) => write!(f, "no checkpoint was written: {error}"),
            Self::Removal { checkpoint, error } => write!(
                f,
                "checkpoint {checkpoint} is complete, and an older file was not removed: {error}. \
                 The next checkpoint tries again"
            ),
        }
    }
}

impl std::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage { error, .. } | Self::Removal { error, .. } => Some(error),
            Self::Read(error) => Some(error),
            _ => None,
        }
    }
}
