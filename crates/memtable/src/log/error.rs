//! The errors of the log, and the reasons for which reading stops.

use super::format::{PAYLOAD_HEAD, VERSION};
use crate::batch::{MAX_BATCH_BYTES, ParseError};
use crate::key::Seqno;
use silvics::AllocError;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A call of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// A log is created.
    Create,
    /// Records are appended.
    Append,
    /// A log is made durable.
    Sync,
    /// The logs are listed.
    List,
    /// A log is read.
    Read,
    /// A log is removed.
    Remove,
    /// A file is renamed: storages of logs do not, but those of other files.
    Rename,
}

/// The reason why a call on a log failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LogError {
    /// A call of the storage failed.
    Io {
        /// The number of the log, unless the call was for all of them.
        log: Option<u64>,
        /// The call.
        action: Action,
        /// The error of the storage.
        error: Arc<io::Error>,
    },
    /// The log refuses all calls, because an earlier one failed.
    Failed {
        /// The number of the log.
        log: u64,
        /// The error of the first call that failed.
        first: Arc<LogError>,
    },
    /// A record does not have the sequence number that follows the record before it.
    Sequence {
        /// The number of the log.
        log: u64,
        /// The number that follows the record before.
        wanted: Seqno,
        /// The number of the record.
        found: Seqno,
    },
    /// A sequence number is 0 or beyond the greatest one.
    SeqnoRange {
        /// The sequence number.
        seqno: Seqno,
        /// The greatest sequence number.
        limit: Seqno,
    },
    /// No log can follow the one with the greatest number.
    NumberRange,
    /// The name of the comparator is too long.
    ComparatorName {
        /// The length of the name in bytes.
        bytes: usize,
        /// The greatest length in bytes.
        limit: usize,
    },
    /// A file with the name of a log is not a log, or is not the expected one.
    Header {
        /// The number in the name of the file.
        log: u64,
        /// The mistake.
        reason: HeaderError,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

impl LogError {
    /// The error of a listing.
    pub(crate) fn list(error: io::Error) -> Self {
        Self::io(None, Action::List, error)
    }

    /// The error of a removal.
    pub(crate) fn remove(log: u64, error: io::Error) -> Self {
        Self::io(log, Action::Remove, error)
    }

    pub(super) fn io(log: impl Into<Option<u64>>, action: Action, error: io::Error) -> Self {
        Self::Io { log: log.into(), action, error: Arc::new(error) }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { log, action, error } => {
                match log {
                    Some(log) => write!(f, "log {log} could not be ")?,
                    None => write!(f, "the logs could not be ")?,
                }
                let done = match action {
                    Action::Create => "created",
                    Action::Append => "appended to",
                    Action::Sync => "made durable",
                    Action::List => "listed",
                    Action::Read => "read",
                    Action::Remove => "removed",
                    Action::Rename => "renamed",
                };
                write!(f, "{done}: {error}")
            }
            Self::Failed { log, first } => write!(
                f,
                "log {log} takes no more calls since {first}; \
                 remove the cause, then open the logs again"
            ),
            Self::Sequence { log, wanted, found } => write!(
                f,
                "a record of log {log} has the sequence number {found} instead of {wanted}: \
                 append batches in the order of their numbers, without gaps"
            ),
            Self::SeqnoRange { seqno, limit } => write!(
                f,
                "the sequence number {seqno} is not between 1 and {limit}: \
                 load the entries into a new store, which begins at 1"
            ),
            Self::NumberRange => write!(
                f,
                "the log {} has the greatest number, and none can follow: remove it",
                u64::MAX
            ),
            Self::ComparatorName { bytes, limit } => write!(
                f,
                "the name of the comparator has {bytes} bytes, and the limit is {limit}: shorten it"
            ),
            Self::Header { log, reason } => write!(f, "log {log} was not read: {reason}"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Failed { first, .. } => Some(first),
            Self::Header { reason, .. } => Some(reason),
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

/// The reason why a file is not a log, or not the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file ends within the header.
    Short {
        /// The length of the file in bytes.
        bytes: usize,
        /// The least length of the header in bytes.
        needs: usize,
    },
    /// The file does not begin as a log does.
    Foreign {
        /// The first bytes of the file.
        found: [u8; 8],
        /// The first bytes of a log.
        wanted: [u8; 8],
    },
    /// The file has another version of the format.
    Version {
        /// The version of the file.
        found: u32,
        /// The version that this crate reads and writes.
        known: u32,
    },
    /// The header does not have the checksum that is stored with it.
    Damaged {
        /// The stored checksum.
        stored: u32,
        /// The checksum of the header.
        computed: u32,
    },
    /// A field of the header has an invalid value under a valid checksum.
    Invalid {
        /// The name of the field.
        field: &'static str,
    },
    /// The log has another number.
    Number {
        /// The number in the header.
        found: u64,
        /// The expected number.
        wanted: u64,
    },
    /// The log has keys in the order of another comparator.
    Comparator {
        /// The name in the header.
        found: String,
        /// The expected name.
        wanted: String,
    },
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { bytes: 0, .. } => write!(f, "the file is empty"),
            Self::Short { bytes, needs } => {
                write!(f, "the file ends after {bytes} bytes, and the header has at least {needs}")
            }
            Self::Foreign { found, wanted } => write!(
                f,
                "the file begins with \"{}\" instead of \"{}\", so it is not a log: move it away",
                found.escape_ascii(),
                wanted.escape_ascii()
            ),
            Self::Version { found, known } => write!(
                f,
                "the file has version {found} of the format, and this program knows {known}: \
                 open it with the program that wrote it"
            ),
            Self::Damaged { stored, computed } => write!(
                f,
                "the header has the checksum {computed:#010x} instead of {stored:#010x}, so it is \
                 damaged: restore the file, or move it away and lose its records and those of later logs"
            ),
            Self::Invalid { field } => write!(
                f,
                "{field} in the header is invalid, so another program wrote it: move the file away"
            ),
            Self::Number { found, wanted } => write!(
                f,
                "the file is log {found} under the name of log {wanted}: undo the renaming"
            ),
            Self::Comparator { found, wanted } => write!(
                f,
                "the keys are in the order \"{found}\", and the buffer has \"{wanted}\": \
                 open it with the comparator \"{found}\""
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

/// The place and the reason for which reading a log stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The offset in the file of the first record that was not read.
    pub offset: u64,
    /// The reason.
    pub reason: StopReason,
}

/// The reason why records from some place on were not read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The file ends within the record.
    Torn {
        /// The bytes from the beginning of the record to the end of the file.
        bytes: u64,
        /// The least length of the record in bytes.
        needs: u64,
    },
    /// The rest of the file is zeros.
    Zeros {
        /// The number of zeros.
        bytes: u64,
    },
    /// The length of the record is impossible.
    Length {
        /// The length of the payload in bytes.
        bytes: u64,
    },
    /// The record does not have the checksum that is stored with it.
    Checksum {
        /// The stored checksum.
        stored: u32,
        /// The checksum of the record.
        computed: u32,
    },
    /// The record does not continue the sequence numbers of the one before it.
    Sequence {
        /// The number that follows the record before.
        wanted: Seqno,
        /// The number of the record.
        found: Seqno,
    },
    /// The last operation of the record has a sequence number beyond the greatest one.
    SeqnoRange {
        /// The sequence number.
        seqno: Seqno,
        /// The greatest sequence number.
        limit: Seqno,
    },
    /// The operations of the record are invalid.
    Operations(ParseError),
    /// The header of the log was never completed.
    Header(HeaderError),
    /// The log does not continue the sequence numbers of the logs before it.
    Gap {
        /// The number that follows the records that were read.
        wanted: Seqno,
        /// The first number of the log.
        found: Seqno,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn { bytes, needs } => {
                write!(f, "the file has {bytes} bytes of a record of at least {needs}")
            }
            Self::Zeros { bytes } => write!(f, "the rest of the file is {bytes} zeros"),
            Self::Length { bytes } => write!(
                f,
                "the length of the record is {bytes} bytes, not between {PAYLOAD_HEAD} and {}",
                PAYLOAD_HEAD + MAX_BATCH_BYTES
            ),
            Self::Checksum { stored, computed } => {
                write!(f, "the record has the checksum {computed:#010x} instead of {stored:#010x}")
            }
            Self::Sequence { wanted, found } => {
                write!(f, "the record has the sequence number {found} instead of {wanted}")
            }
            Self::SeqnoRange { seqno, limit } => {
                write!(f, "the record has the sequence number {seqno}, and the greatest is {limit}")
            }
            Self::Operations(error) => write!(
                f,
                "the record has invalid operations in version {VERSION} of the format: {error}"
            ),
            Self::Header(error) => write!(f, "the log was not completely created: {error}"),
            Self::Gap { wanted, found } => write!(
                f,
                "the log begins at the sequence number {found} instead of {wanted}, so records \
                 before it are lost"
            ),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reading stopped at byte {}: {}", self.offset, self.reason)
    }
}

/// The reason why recovery failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RecoveryError<E> {
    /// A log was not read.
    Log(LogError),
    /// The caller's function failed for a record.
    Apply {
        /// The number of the log.
        log: u64,
        /// The offset of the record in the file.
        offset: u64,
        /// The error of the function.
        error: E,
    },
}

impl<E> From<LogError> for RecoveryError<E> {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl<E: fmt::Display> fmt::Display for RecoveryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Apply { log, offset, error } => {
                write!(f, "the record at byte {offset} of log {log} was not applied: {error}")
            }
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RecoveryError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Log(error) => Some(error),
            Self::Apply { error, .. } => Some(error),
        }
    }
}
