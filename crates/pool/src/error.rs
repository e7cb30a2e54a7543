//! Allocation failure as a value.

use std::fmt;

/// Memory could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// The byte limit would be passed.
    Limit {
        /// Bytes the next step would have taken from the system.
        requested: usize,
        /// Bytes held already.
        held: usize,
        /// The limit.
        limit: usize,
    },
    /// The system refused.
    System {
        /// Bytes asked of it.
        requested: usize,
    },
    /// The system gave memory beyond the 48-bit address space that tagged pointers can name.
    Address,
    /// The key is longer than the index takes.
    KeyLength {
        /// Its bytes.
        bytes: usize,
        /// The most bytes of a key.
        limit: usize,
    },
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { requested, held, limit } => write!(
                f,
                "{requested} more bytes would pass the memory limit of {limit} bytes ({held} held): \
                 raise the limit or remove entries"
            ),
            Self::System { requested } => write!(
                f,
                "the system refused {requested} bytes: free memory elsewhere or set a memory limit"
            ),
            Self::Address => write!(
                f,
                "the system gave memory beyond 48 address bits, where pointers cannot carry marks"
            ),
            Self::KeyLength { bytes, limit } => write!(
                f,
                "a key of {bytes} bytes is longer than the {limit} the index takes: shorten or hash it"
            ),
        }
    }
}

impl std::error::Error for AllocError {}
