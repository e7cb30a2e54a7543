//! The builds: what a node is aligned to.
//!
//! | build | catalogue | bytes a key |
//! |---|---|---|
//! | [`Fixed`] | `int-lf:fixed` | 40 |
//! | [`Baseline`] | `int-lf:baseline` | 64: padded to a line |
//!
//! Descriptors have 64 in both. With nodes of 64 bytes, in an allocator that keeps objects by size
//! alone, nodes and descriptors take turns: a thread that only inserts places its nodes on every other
//! line, and half of a cache's sets hold none. The study found that the smaller nodes of the fixed build
//! owe most of their gain to this, as they are of another size class. In a pool per kind neither
//! build's nodes have strangers between them.

use crate::bst::align;
use crate::bst::build::{Baseline, Fixed};

/// A build of the tree.
pub trait Build: Sized + 'static {
    /// Its name in the catalogue.
    const NAME: &'static str;
    /// What a node is aligned to.
    type Align: Send + Sync + 'static;
}

impl Build for Fixed {
    const NAME: &'static str = "fixed";
    type Align = align::Word;
}

impl Build for Baseline {
    const NAME: &'static str = "baseline";
    type Align = align::Line;
}

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    use super::node::{Descriptor, Node};
    assert!(Node::<Fixed>::NODE.size == 40 && Node::<Fixed>::NODE.search_end() == 24);
    assert!(Node::<Baseline>::NODE.size == 64);
    assert!(Node::<Baseline>::NODE.straddling(64).0 == 0);
    assert!(Descriptor::<Fixed>::LAYOUT.size == 64);
    assert!(Descriptor::<Baseline>::LAYOUT.size == 64);
};
