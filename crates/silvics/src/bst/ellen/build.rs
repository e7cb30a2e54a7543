//! The builds: what internal nodes and leaves are made of, and what a lookup keeps.
//!
//! | build | catalogue | node | bytes a key | lookups |
//! |---|---|---|---|---|
//! | [`Compact`] | `ext-lf:compact` | [`Inner`] and [`Leaf`] | 48 | keep nothing |
//! | [`Fixed`] | `ext-lf:fixed` | [`Slim`] for both | 80 | keep nothing |
//! | [`Baseline`] | `ext-lf:baseline` | [`Line`] for both | 128 | keep the record |

use super::node::{AtomicEdge, DESCRIPTOR, UpdateWord};
use crate::bst::align;
use crate::bst::build::sealed::Sealed;
pub use crate::bst::build::{Baseline, Compact, Fixed};
use crate::bst::external::{self, Either, InnerWords, Leaf, LeafWords};
use crate::bst::home::{Alike, Apart, NodePools};
use silvics_layout::NodeLayout;
use silvics_pool::Placement;

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// An internal node.
    type Inner: InnerWords<Cell = AtomicEdge, Control = UpdateWord>;
    /// A leaf.
    type Leaf: LeafWords;
    /// The layout of an internal node.
    const INNER: NodeLayout;
    /// The layout of a leaf.
    const LEAF: NodeLayout;
    /// The kinds of objects, internal nodes first.
    const KINDS: &'static [NodeLayout] = &[Self::INNER, DESCRIPTOR];
    /// The pools of both kinds of nodes.
    type Pools<P: Placement>: NodePools<Self::Inner, Self::Leaf, P>;
    /// Whether a lookup descends as an update does, keeping a record.
    const RECORDS: bool;
}

impl Build for Compact {
    type Inner = Inner;
    type Leaf = Leaf;
    const INNER: NodeLayout = Inner::LAYOUT;
    const LEAF: NodeLayout = Leaf::LAYOUT;
    const KINDS: &'static [NodeLayout] = &[Self::INNER, Self::LEAF, DESCRIPTOR];
    type Pools<P: Placement> = Apart<Inner, Leaf, P>;
    const RECORDS: bool = false;
}

impl Build for Fixed {
    type Inner = Slim;
    type Leaf = Slim;
    const INNER: NodeLayout = Slim::LAYOUT;
    const LEAF: NodeLayout = Slim::LAYOUT;
    type Pools<P: Placement> = Alike<Slim, P>;
    const RECORDS: bool = false;
}

impl Build for Baseline {
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::LAYOUT;
    const LEAF: NodeLayout = Line::LAYOUT;
    type Pools<P: Placement> = Alike<Line, P>;
    const RECORDS: bool = true;
}

/// An internal node alone: two in a line.
pub type Inner = external::Inner<AtomicEdge, UpdateWord, align::HalfLine>;
/// Either kind: five words.
pub type Slim = Either<AtomicEdge, UpdateWord, align::Word>;
/// An inner or leaf node, padded to a line.
pub type Line = Either<AtomicEdge, UpdateWord, align::Line>;

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(Inner::LAYOUT.size == 32 && Inner::LAYOUT.search_end() == 24);
    assert!(Leaf::LAYOUT.size == 16 && Leaf::LAYOUT.search_end() == 16);
    assert!(Slim::LAYOUT.size == 40 && Slim::LAYOUT.search_end() == 24);
    assert!(Line::LAYOUT.size == 64 && Line::LAYOUT.search_end() == 24);
    assert!(Inner::LAYOUT.straddling(64).0 == 0 && Leaf::LAYOUT.straddling(64).0 == 0);
};
