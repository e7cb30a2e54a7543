//! The builds, which differ in the part of its path that a lookup keeps.

use crate::bst::build::sealed::Sealed;
use crate::bst::build::{Baseline, Fixed};

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// Whether lookups also keep the edges that only updates need: the last two edges of the path
    /// and the edge by which the search would continue. Otherwise they keep the anchor alone.
    const KEEPS_RECORDS: bool;
}

impl Build for Fixed {
    const KEEPS_RECORDS: bool = false;
}

/// In this build lookups use the seek of updates: the study's heavy traversal.
impl Build for Baseline {
    const KEEPS_RECORDS: bool = true;
}
