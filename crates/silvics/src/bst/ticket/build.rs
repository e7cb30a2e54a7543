//! The builds: what nodes are made of, and what they live in.
//!
//! | build | catalogue | node | bytes a key |
//! |---|---|---|---|
//! | [`Compact`] | `ticket:compact` | [`Inner`] and [`Leaf`] | 48 |
//! | [`Fixed`] | `ticket:fixed` | [`Node`] for both | 80 |
//! | [`Baseline`] | `ticket:baseline` | [`Line`] for both | 128 |
//!
//! The study's oversight is the padding: of the [`Line`] a search reads the first 24 bytes. Without
//! it, in [`Fixed`], nodes are smaller, and two of eight have what a search reads of them in two lines.

use super::node::AtomicEdge;
use super::state::Locks;
use crate::bst::align;
pub use crate::bst::build::{Baseline, Compact, Fixed};
use crate::bst::external::{self, Either, InnerWords, Leaf, LeafWords};
use crate::bst::home::{Alike, Apart, Each, NodeStore};
use silvics_layout::NodeLayout;
use silvics_pool::Placement;

/// A build of the tree.
pub trait Build: 'static {
    /// Its name in the catalogue.
    const NAME: &'static str;
    /// An internal node.
    type Inner: InnerWords<Cell = AtomicEdge, Control = Locks>;
    /// A leaf.
    type Leaf: LeafWords;
    /// The object that an internal node is, or lives in.
    const INNER: NodeLayout;
    /// The object that a leaf is, or lives in.
    const LEAF: NodeLayout;
    /// Those of them that are kinds of their own, the internal node first.
    const KINDS: &'static [NodeLayout] = &[Self::INNER];
    /// Their memory.
    type Store<P: Placement>: NodeStore<Self::Inner, Self::Leaf, P>;
}

impl Build for Compact {
    const NAME: &'static str = "compact";
    type Inner = Inner;
    type Leaf = Leaf;
    const INNER: NodeLayout = Inner::LAYOUT;
    const LEAF: NodeLayout = Leaf::LAYOUT;
    const KINDS: &'static [NodeLayout] = &[Self::INNER, Self::LEAF];
    type Store<P: Placement> = Each<Apart<Inner, Leaf, P>>;
}

impl Build for Fixed {
    const NAME: &'static str = "fixed";
    type Inner = Node;
    type Leaf = Node;
    const INNER: NodeLayout = Node::LAYOUT;
    const LEAF: NodeLayout = Node::LAYOUT;
    type Store<P: Placement> = Each<Alike<Node, P>>;
}

impl Build for Baseline {
    const NAME: &'static str = "baseline";
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::LAYOUT;
    const LEAF: NodeLayout = Line::LAYOUT;
    type Store<P: Placement> = Each<Alike<Line, P>>;
}

/// An internal node alone: half a line.
pub type Inner = external::Inner<AtomicEdge, Locks, align::HalfLine>;
/// Either kind, what a search reads first.
pub type Node = Either<AtomicEdge, Locks, align::Word>;
/// Either kind, padded to a line.
pub type Line = Either<AtomicEdge, Locks, align::Line>;

const _: () = {
    assert!(Inner::LAYOUT.size == 32 && Inner::LAYOUT.search_end() == 24);
    assert!(Inner::LAYOUT.straddling(64).0 == 0);
    assert!(Leaf::LAYOUT.size == 16 && Leaf::LAYOUT.search_end() == 16);
    assert!(Node::LAYOUT.size == 40 && Node::LAYOUT.search_end() == 24);
    assert!(Node::LAYOUT.straddling(64).0 == 2 && Node::LAYOUT.straddling(64).1 == 8);
    assert!(Line::LAYOUT.size == 64 && Line::LAYOUT.search_end() == 24);
};
