//! The builds, which differ in the type of nodes and in their memory.
//!
//! | build | catalogue | node | bytes a key |
//! |---|---|---|---|
//! | [`Compact`] | `ticket:compact` | [`Inner`] and [`Leaf`] | 48 |
//! | [`Fixed`] | `ticket:fixed` | [`Node`] for both | 80 |
//! | [`Baseline`] | `ticket:baseline` | [`Line`] for both | 128 |
//!
//! The oversight that the study found is the padding: a search reads the first 24 bytes of a
//! [`Line`]. Without it, in [`Fixed`], nodes are smaller, and in two of eight nodes these 24 bytes
//! lie in two lines.

use super::node::AtomicEdge;
use super::state::Locks;
use crate::bst::align;
use crate::bst::build::sealed::Sealed;
pub use crate::bst::build::{Baseline, Compact, Fixed};
use crate::bst::external::{self, Either, InnerWords, Leaf, LeafWords};
use crate::bst::home::{Alike, Apart, Each, NodeStore};
use silvics_layout::NodeLayout;
use silvics_pool::Placement;

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// The type of an internal node.
    type Inner: InnerWords<Cell = AtomicEdge, Control = Locks>;
    /// The type of a leaf.
    type Leaf: LeafWords;
    /// The layout of the object that is or contains an internal node.
    const INNER: NodeLayout;
    /// The layout of the object that is or contains a leaf.
    const LEAF: NodeLayout;
    /// The layouts of the different kinds of objects, the internal node's first.
    const KINDS: &'static [NodeLayout] = &[Self::INNER];
    /// The memory of the nodes.
    type Store<P: Placement>: NodeStore<Self::Inner, Self::Leaf, P>;
}

impl Build for Compact {
    type Inner = Inner;
    type Leaf = Leaf;
    const INNER: NodeLayout = Inner::LAYOUT;
    const LEAF: NodeLayout = Leaf::LAYOUT;
    const KINDS: &'static [NodeLayout] = &[Self::INNER, Self::LEAF];
    type Store<P: Placement> = Each<Apart<Inner, Leaf, P>>;
}

impl Build for Fixed {
    type Inner = Node;
    type Leaf = Node;
    const INNER: NodeLayout = Node::LAYOUT;
    const LEAF: NodeLayout = Node::LAYOUT;
    type Store<P: Placement> = Each<Alike<Node, P>>;
}

impl Build for Baseline {
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::LAYOUT;
    const LEAF: NodeLayout = Line::LAYOUT;
    type Store<P: Placement> = Each<Alike<Line, P>>;
}

/// An internal node that is an object of its own: half a line.
pub type Inner = external::Inner<AtomicEdge, Locks, align::HalfLine>;
/// Either kind of node, with the fields that a search reads first.
pub type Node = Either<AtomicEdge, Locks, align::Word>;
/// Either kind of node, padded to a line.
pub type Line = Either<AtomicEdge, Locks, align::Line>;

const _: () = {
    assert!(Inner::LAYOUT.size == 32 && Inner::LAYOUT.search_end() == 24);
    assert!(Inner::LAYOUT.straddling(64).0 == 0);
    assert!(Leaf::LAYOUT.size == 16 && Leaf::LAYOUT.search_end() == 16);
    assert!(Node::LAYOUT.size == 40 && Node::LAYOUT.search_end() == 24);
    assert!(Node::LAYOUT.straddling(64).0 == 2 && Node::LAYOUT.straddling(64).1 == 8);
    assert!(Line::LAYOUT.size == 64 && Line::LAYOUT.search_end() == 24);
};
