//! Errors of versioned maps.

use crate::error::AllocError;
use std::error::Error;
use std::fmt;

/// The reason why a write of one key did not take effect. It returns the value, unless the write
/// was a deletion.
#[derive(PartialEq, Eq)]
#[non_exhaustive]
pub enum PutError<V> {
    /// The newest version of the key is not the expected one.
    Conflict {
        /// The number of the newest version; `None` if the key is absent or deleted.
        latest: Option<u64>,
        /// The value that was to be put.
        value: Option<V>,
    },
    /// The key has a version with this number already.
    Exists {
        /// The number.
        number: u64,
        /// The value that was to be put.
        value: Option<V>,
    },
    /// The number is not larger than that of the newest version of the key, which is as expected.
    NotNewer {
        /// The number of the newest version, which may be a deletion.
        newest: u64,
        /// The value that was to be put.
        value: Option<V>,
    },
    /// The number is not above the watermark, so a snapshot may have read the key at it.
    TooLate {
        /// The watermark.
        watermark: u64,
        /// The value that was to be put.
        value: Option<V>,
    },
    /// The number is larger than [`MAX_VERSION`](super::MAX_VERSION).
    TooLarge {
        /// The number.
        number: u64,
        /// The value that was to be put.
        value: Option<V>,
    },
    /// An allocation failed, or the key is too long.
    Alloc {
        /// The reason.
        error: AllocError,
        /// The value that was to be put.
        value: Option<V>,
    },
}

impl<V> PutError<V> {
    /// The value that was to be put.
    pub fn into_value(self) -> Option<V> {
        match self {
            Self::Conflict { value, .. }
            | Self::Exists { value, .. }
            | Self::NotNewer { value, .. }
            | Self::TooLate { value, .. }
            | Self::TooLarge { value, .. }
            | Self::Alloc { value, .. } => value,
        }
    }
}

impl<V> fmt::Display for PutError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { latest: Some(latest), .. } => {
                write!(f, "version {latest} of the key is newer than the expected one: read again")
            }
            Self::Conflict { latest: None, .. } => {
                f.write_str("the key is absent, and a version of it was expected: read again")
            }
            Self::Exists { number, .. } => write!(f, "the key has a version {number} already"),
            Self::NotNewer { newest, .. } => {
                write!(f, "the key has a version {newest}: write a larger number")
            }
            Self::TooLate { watermark, .. } => write!(
                f,
                "the watermark is {watermark}: write versions above it, or publish it later"
            ),
            Self::TooLarge { number, .. } => {
                write!(f, "version {number} is larger than {}", super::MAX_VERSION)
            }
            Self::Alloc { error, .. } => error.fmt(f),
        }
    }
}

/// Without the value, whose type need not be `Debug`.
impl<V> fmt::Debug for PutError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { latest, .. } => f.debug_tuple("Conflict").field(latest).finish(),
            Self::Exists { number, .. } => f.debug_tuple("Exists").field(number).finish(),
            Self::NotNewer { newest, .. } => f.debug_tuple("NotNewer").field(newest).finish(),
            Self::TooLate { watermark, .. } => f.debug_tuple("TooLate").field(watermark).finish(),
            Self::TooLarge { number, .. } => f.debug_tuple("TooLarge").field(number).finish(),
            Self::Alloc { error, .. } => f.debug_tuple("Alloc").field(error).finish(),
        }
    }
}

impl<V> Error for PutError<V> {}

/// The reason why a batch did not take effect. None of it is visible, and the batch has all its
/// writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// The newest version of a key is not the expected one.
    Conflict {
        /// The number of the newest version; `None` if the key is absent or deleted.
        latest: Option<u64>,
    },
    /// An allocation failed, or a key is too long.
    Alloc(AllocError),
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { .. } => f.write_str(
                "a key of the batch has another version than the expected one: read again",
            ),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl Error for BatchError {}

/// The reason why a number cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// Versions below the horizon may have been dropped.
    Pruned {
        /// The number that was to be read.
        number: u64,
        /// The least number that can be read.
        horizon: u64,
    },
    /// No snapshot can see this number yet.
    Future {
        /// The number that was to be read.
        number: u64,
        /// The largest number that can be read: see [`VersionedMap::now`](super::VersionedMap::now).
        now: u64,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pruned { number, horizon } => write!(
                f,
                "versions before {horizon} may have been dropped, so {number} cannot be read: hold \
                 a snapshot, or retain all versions"
            ),
            Self::Future { number, now } => {
                write!(f, "{number} cannot be read yet: the map is at {now}")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl Error for ReadError {}

/// A number that is on the wrong side of the watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatermarkError {
    /// The number of the call.
    pub number: u64,
    /// The watermark, or the number of the last write.
    pub now: u64,
}

impl fmt::Display for WatermarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, now } = self;
        if *number > super::MAX_VERSION {
            write!(f, "{number} is larger than {}, the largest number", super::MAX_VERSION)
        } else if number < now {
            write!(f, "the watermark is {now} and cannot go back to {number}")
        } else {
            write!(f, "the map is at {now}, so it cannot be pruned up to {number}")
        }
    }
}

impl Error for WatermarkError {}
