//! Allocation failure as a value.

use std::fmt;

/// The reason why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// The allocation would exceed the byte limit.
    Limit {
        /// The bytes that the allocation would have taken from the system.
        requested: usize,
        /// The bytes already held, or reserved ([`Budget::reserve`](crate::Budget::reserve)).
        held: usize,
        /// The limit.
        limit: usize,
    },
    /// The system refused the memory.
    System {
        /// The bytes requested from the system.
        requested: usize,
    },
    /// The process has as many mappings as the system allows (`vm.max_map_count` of Linux). Each
    /// pool of a large index has some.
    Mappings {
        /// The most mappings of a process.
        limit: usize,
    },
    /// The system returned memory outside the 48-bit address space that tagged pointers can name.
    Address,
    /// The key is longer than the index accepts.
    KeyLength {
        /// The length of the key in bytes.
        bytes: usize,
        /// The greatest length of a key in bytes.
        limit: usize,
    },
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { requested, held, limit } => write!(
                f,
                "{requested} more bytes would exceed the memory limit of {limit} bytes \
                 ({held} held): raise the limit or remove entries"
            ),
            Self::System { requested } => write!(
                f,
                "the system refused {requested} bytes: free memory elsewhere or set a memory limit"
            ),
            Self::Mappings { limit } => write!(
                f,
                "the process has {limit} mappings, as many as the system allows: raise \
                 vm.max_map_count, or have fewer large indexes"
            ),
            Self::Address => write!(
                f,
                "the system returned memory beyond 48 address bits, where pointers cannot carry \
                 marks: use a heap or page source within them"
            ),
            Self::KeyLength { bytes, limit } => write!(
                f,
                "a key of {bytes} bytes exceeds the {limit} bytes the index accepts: \
                 shorten or hash it"
            ),
        }
    }
}

impl std::error::Error for AllocError {}
