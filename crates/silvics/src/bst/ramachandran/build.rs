//! The builds: what a lookup keeps of its way.

use crate::bst::build::{Baseline, Fixed};

/// A build of the tree.
pub trait Build: 'static {
    /// Its name in the catalogue.
    const NAME: &'static str;
    /// Whether lookups keep what only updates need, the last two edges and the one that the search
    /// would go on by, or the anchor alone.
    const KEEPS_RECORDS: bool;
}

impl Build for Fixed {
    const NAME: &'static str = "fixed";
    const KEEPS_RECORDS: bool = false;
}

/// Lookups are the seek of updates: the study's heavy traversal.
impl Build for Baseline {
    const NAME: &'static str = "baseline";
    const KEEPS_RECORDS: bool = true;
}
