//! What can go wrong, per operation.

use std::fmt;

pub use silvics_pool::AllocError;

/// Why [`crate::OrderedIndex::try_insert`] did not insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryInsertError {
    /// The key was present, with this value.
    Occupied(u64),
    /// Memory could not be had; the index is as it was.
    Alloc(AllocError),
}

/// Why [`crate::OrderedIndex::compare_exchange`] did not exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareExchangeError {
    /// The key was in this state (`None`: absent) instead of the expected one.
    Mismatch(Option<u64>),
    /// Memory could not be had; the index is as it was.
    Alloc(AllocError),
}

/// Why [`crate::ArtTree::bulk_load`] did not load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkLoadError {
    /// The index was not empty.
    NotEmpty {
        /// So many entries were in it.
        entries: usize,
    },
    /// An entry has a smaller key than the one before it.
    Unsorted {
        /// The entry's place among those given, from 0.
        position: usize,
    },
    /// An entry has the key of the one before it.
    Duplicate {
        /// The entry's place among those given, from 0.
        position: usize,
    },
    /// Memory could not be had, or a key is too long.
    Alloc(AllocError),
}

impl BulkLoadError {
    /// The entry it is about.
    pub(crate) fn position(&self) -> Option<usize> {
        match *self {
            Self::Unsorted { position } | Self::Duplicate { position } => Some(position),
            Self::NotEmpty { .. } | Self::Alloc(_) => None,
        }
    }
}

impl From<AllocError> for BulkLoadError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl fmt::Display for BulkLoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEmpty { entries } => {
                write!(f, "the index has {entries} entries: load into an empty one, or insert")
            }
            Self::Unsorted { position } => {
                write!(f, "entry {position} has a smaller key than the one before it: sort them")
            }
            Self::Duplicate { position } => {
                write!(f, "entry {position} has the same key as the one before it: leave one out")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

/// Why [`crate::Batches::insert_many`] stopped: memory could not be had for an entry.
///
/// The entries before that one are inserted, and what they replaced has been told; the index is
/// otherwise as it was. So the batch goes on at `entries[done..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsertManyError {
    /// How many entries from the front are inserted: `entries[done]` was refused.
    pub done: usize,
    /// Why it was.
    pub error: AllocError,
}

impl InsertManyError {
    /// `done` entries are inserted, and the next one was refused because of `error`.
    pub const fn new(done: usize, error: AllocError) -> Self {
        Self { done, error }
    }
}

impl From<AllocError> for TryInsertError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl From<AllocError> for CompareExchangeError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl fmt::Display for TryInsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(value) => write!(f, "the key is present with value {value}"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for CompareExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(Some(value)) => write!(f, "the key is present with value {value}"),
            Self::Mismatch(None) => write!(f, "the key is absent"),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for InsertManyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of a batch {} entries are inserted, and for the next: {}", self.done, self.error)
    }
}

impl std::error::Error for TryInsertError {}
impl std::error::Error for CompareExchangeError {}
impl std::error::Error for BulkLoadError {}
impl std::error::Error for InsertManyError {}

/// An invariant that does not hold, found by [`crate::Check::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's number in the structure's module docs.
    pub invariant: &'static str,
    /// Where and how.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not hold: {}", self.invariant, self.detail)
    }
}

impl std::error::Error for Violation {}
