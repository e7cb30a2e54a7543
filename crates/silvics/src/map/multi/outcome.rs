//! Results and errors of multimaps.

use crate::error::AllocError;
use std::error::Error;
use std::fmt;

/// The effect of [`MultiView::insert`](super::MultiView::insert).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insertion<V> {
    /// The key has the value now.
    Added,
    /// The key already had an equal value; nothing changed.
    Present {
        /// The value that was to be inserted.
        value: V,
    },
}

impl<V> Insertion<V> {
    /// Whether the value was inserted.
    pub fn is_added(&self) -> bool {
        matches!(self, Self::Added)
    }

    /// The value, if it was not inserted.
    pub fn into_value(self) -> Option<V> {
        match self {
            Self::Added => None,
            Self::Present { value } => Some(value),
        }
    }
}

/// The reason why [`MultiSet::try_insert`](super::MultiSet::try_insert) did not insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountError {
    /// The count of the key would be larger than `u64::MAX`.
    Overflow {
        /// The count of the key.
        count: u64,
        /// The number that was to be added.
        more: u64,
    },
    /// An allocation failed, or the key is too long.
    Alloc(AllocError),
}

impl From<AllocError> for CountError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { count, more } => {
                write!(f, "the key is there {count} times, and a count cannot hold {more} more")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl Error for CountError {}

/// The use of the bytes of a [`MultiMap`](super::MultiMap).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiMemory {
    /// All bytes: [`MultiMap::bytes`](super::MultiMap::bytes).
    pub bytes: usize,
    /// The bytes of nodes and keys of the index, retired ones included.
    pub index: usize,
    /// The bytes of lists of values, retired ones included.
    pub lists: usize,
    /// The bytes of values outside the index and the lists, retired ones included.
    pub values: usize,
    /// The bytes of free slots and of bookkeeping. If maps share a budget, this includes the bytes
    /// of the other maps.
    pub slack: usize,
}
