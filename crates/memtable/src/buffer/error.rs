//! The errors of a buffer.

use crate::batch::BatchError;
use crate::index::SetupError;
use crate::log::{LogError, Recovery};
use silvics::AllocError;
use std::fmt;
use std::sync::Arc;

/// The reason why a buffer refuses writes for good.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The log could not be written or synced.
    Log(Arc<LogError>),
    /// Memory ran out while a group was inserted, after it had been logged.
    Alloc(AllocError),
    /// The comparator or the storage of the log panicked.
    Panic,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
            Self::Panic => f.write_str("the comparator or the storage of the log panicked"),
        }
    }
}

/// The reason why a write had no effect, or may have none after a restart.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The batch breaks a limit. Nothing was written.
    Batch(BatchError),
    /// A range of a deletion ends before it starts, in the order of the comparator. Nothing was
    /// written.
    Range {
        /// The number of the operation in its batch.
        operation: usize,
    },
    /// The batch has more bytes than a table may hold (`table.limit`). Nothing was written. (A
    /// batch that has less, but not with what an index adds, makes the buffer read-only.)
    Limit {
        /// The bytes of the batch.
        bytes: usize,
        /// The limit of a table.
        limit: usize,
    },
    /// As many tables wait for a flush as the options allow, and the table that takes writes is
    /// full. Nothing was written; call `flush`, and write again.
    Stalled {
        /// The number of tables that wait.
        frozen: usize,
    },
    /// A new table or log could not be made. Nothing was written; a later write tries again.
    Switch(Arc<SwitchError>),
    /// The buffer is read-only since a failure. The failed writes have this error, and those that
    /// were numbered behind them: no reader sees them, and after recovery each of them is there as
    /// a whole or not at all. In the unordered mode a reader may see a part of a batch whose insert
    /// has failed.
    ReadOnly(Failure),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(error) => error.fmt(f),
            Self::Range { operation } => write!(
                f,
                "operation {operation} deletes a range that ends before it starts: exchange its ends"
            ),
            Self::Limit { bytes, limit } => write!(
                f,
                "the batch has {bytes} bytes, and a table may hold {limit}: split the batch, or raise \
                 `table.limit`"
            ),
            Self::Stalled { frozen } => write!(
                f,
                "the table is full, and {frozen} tables wait for their flush: call flush, then \
                 write again"
            ),
            Self::Switch(error) => error.fmt(f),
            Self::ReadOnly(failure) => write!(
                f,
                "the buffer takes no more writes since a failure: {failure}; recover from the log"
            ),
        }
    }
}

impl std::error::Error for WriteError {}

impl From<BatchError> for WriteError {
    fn from(error: BatchError) -> Self {
        Self::Batch(error)
    }
}

/// The reason why no new table takes writes.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwitchError {
    /// The table could not be made.
    Table(SetupError),
    /// Its log could not be made.
    Log(LogError),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SwitchError {}

/// The reason why a buffer was not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// An option is out of its range.
    Option {
        /// The name of the option.
        name: &'static str,
        /// Its value and the values that it may have.
        problem: String,
    },
    /// A table could not be made, or not filled from the log.
    Table(SetupError),
    /// A log could not be read or made.
    Log(LogError),
    /// Logs with records do not continue those before them. Nothing was changed.
    LeftOut(Box<Recovery>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { name, problem } => write!(f, "`{name}` is {problem}"),
            Self::Table(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::LeftOut(recovery) => {
                if let Some(stopped) = &recovery.stopped {
                    write!(f, "{stopped}; ")?;
                }
                write!(
                    f,
                    "the logs {:?} do not continue those before them, and have {} bytes of records: \
                     restore the log before them, or lose them by `drop_left_out`",
                    recovery.left_out, recovery.left_out_bytes
                )
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<SetupError> for OpenError {
    fn from(error: SetupError) -> Self {
        Self::Table(error)
    }
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// The reason why a table was not flushed. It waits for the next attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum FlushError<E> {
    /// The function that writes the table failed.
    Write(E),
    /// The table was written and is gone, but a log that is no longer needed could not be removed.
    Log(LogError),
}

impl<E: fmt::Display> fmt::Display for FlushError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for FlushError<E> {}
