//! The builds, which differ in the alignment of a node.
//!
//! | build | catalogue | bytes a key |
//! |---|---|---|
//! | [`Fixed`] | `int-lf:fixed` | 40 |
//! | [`Baseline`] | `int-lf:baseline` | 64: padded to a line |
//!
//! Descriptors have 64 bytes in both. If nodes also have 64 bytes, an allocator that sorts objects
//! by size alone places nodes and descriptors in turn. A thread that only inserts then places its
//! nodes on every other line, and half of a cache's sets hold none. The study found that the
//! smaller nodes of the fixed build owe most of their gain to this, as they are of another size
//! class. In a pool per kind, no object of another kind lies between the nodes of either build.

use crate::bst::align;
use crate::bst::build::sealed::Sealed;
use crate::bst::build::{Baseline, Fixed};

/// A build of the tree.
pub trait Build: Sealed + Sized + 'static {
    /// A zero-sized type with the alignment of a node.
    type Align: Send + Sync + 'static;
}

impl Build for Fixed {
    type Align = align::Word;
}

impl Build for Baseline {
    type Align = align::Line;
}

// Loom's atomics have other sizes.
#[cfg(not(silvics_loom))]
const _: () = {
    use super::node::{Descriptor, Node};
    assert!(Node::<Fixed>::NODE.size == 40 && Node::<Fixed>::NODE.search_end() == 24);
    assert!(Node::<Baseline>::NODE.size == 64);
    assert!(Node::<Baseline>::NODE.straddling(64).0 == 0);
    assert!(Descriptor::<Fixed>::LAYOUT.size == 64);
    assert!(Descriptor::<Baseline>::LAYOUT.size == 64);
};
