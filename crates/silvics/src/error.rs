//! The errors of each operation.

use std::fmt;

pub use silvics_pool::AllocError;

/// The list, with room for `more`.
pub(crate) fn reserved<T>(list: &mut Vec<T>, more: usize) -> Result<&mut Vec<T>, AllocError> {
    let requested = list.len().saturating_add(more).saturating_mul(size_of::<T>());
    list.try_reserve(more).map_err(|_| AllocError::System { requested })?;
    Ok(list)
}

/// The reason why [`crate::OrderedIndex::try_insert`] did not insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TryInsertError {
    /// The key was present with this value.
    Occupied(u64),
    /// An allocation failed; the index is unchanged.
    Alloc(AllocError),
}

/// The reason why [`crate::OrderedIndex::compare_exchange`] did not exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareExchangeError {
    /// The key was in this state instead of the expected one; `None` is *absent*.
    Mismatch(Option<u64>),
    /// An allocation failed; the index is unchanged.
    Alloc(AllocError),
}

/// The reason why sorted entries were not loaded: by [`Map::from_sorted`](crate::Map::from_sorted),
/// [`OrdMap::from_sorted`](crate::OrdMap::from_sorted), or the `bulk_load` of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkLoadError {
    /// The index was not empty.
    NotEmpty {
        /// The number of entries in the index.
        entries: usize,
    },
    /// An entry has a smaller key than the one before it.
    Unsorted {
        /// The position of the entry among the given ones, from 0.
        position: usize,
    },
    /// An entry has the key of the one before it.
    Duplicate {
        /// The position of the entry among the given ones, from 0.
        position: usize,
    },
    /// An allocation failed, or a key is too long.
    Alloc(AllocError),
}

impl BulkLoadError {
    /// The position of the wrong entry, if there is one.
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

/// The reason why [`crate::Batches::insert_many`] stopped: an allocation failed for an entry.
///
/// The entries before that one are inserted, and the values that they replaced are returned. The
/// index is otherwise unchanged. To continue the batch, pass `entries[done..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsertManyError {
    /// The number of entries inserted, from the front: `entries[done]` was refused.
    pub done: usize,
    /// The reason why that entry was refused.
    pub error: AllocError,
}

impl InsertManyError {
    /// An error for a batch of which `done` entries are inserted and the next one failed with
    /// `error`.
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
        write!(
            f,
            "{} entries of the batch are inserted, and the next one failed: {}",
            self.done, self.error
        )
    }
}

impl std::error::Error for TryInsertError {}
impl std::error::Error for CompareExchangeError {}
impl std::error::Error for BulkLoadError {}
impl std::error::Error for InsertManyError {}

/// An invariant that [`crate::Check::check`] found violated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the invariant in the module docs of the structure.
    pub invariant: &'static str,
    /// The place and the kind of the violation.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not hold: {}", self.invariant, self.detail)
    }
}

impl std::error::Error for Violation {}
