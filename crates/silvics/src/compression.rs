//! The savings of a tree, by [`Objects::compression`](crate::Objects::compression).

use crate::art::PathCompression;
use crate::blocks::PrefixCompression;

/// The parts of keys that a tree does not store once for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Paths without nodes, in a radix tree.
    Paths(PathCompression),
    /// Common prefixes of byte strings in blocks.
    Prefixes(PrefixCompression),
}
