//! The builds, which differ in the type of nodes, in their memory, and in the record that a lookup
//! keeps.
//!
//! | build | catalogue | node | bytes a key | lookups |
//! |---|---|---|---|---|
//! | [`Compact`] | `edge-ext-lf:compact` | [`Inner`] and [`Leaf`] | 40 | keep nothing |
//! | [`Fixed`] | `edge-ext-lf:fixed`, `:baseline` | [`Half`] for both | 64 | keep nothing |
//! | [`Shifted`] | `edge-ext-lf:shifted` | [`Half`] for both, half a line further on | 64 | keep nothing |
//! | [`Collocated`] | `edge-ext-lf:collocated` | [`Inner`] and [`Leaf`] in a line | 64 to 128 | keep nothing |
//! | [`Fixed2`] | `edge-ext-lf-2:fixed` | [`Half`] for both | 64 | keep the record |
//! | [`Baseline2`] | `edge-ext-lf-2:baseline` | [`Line`] for both | 128 | keep the record |
//!
//! # The place of a leaf beside its parent
//! The study found that `edge-ext-lf` owes its speed to luck. An insert allocates a leaf and an
//! internal node, two slots of 32 bytes one after the other, and so in one line. A later insert may
//! put another node between the two, but most internal nodes with a leaf child still share their
//! line with it. One more allocation at the start spreads each pair over two lines.
//!
//! A pool begins its slabs at a line. So [`Fixed`] fills the sentinel's line with a second node
//! that no edge leads to, and pairs are lucky. [`Shifted`] adds one more such node, and the pairs
//! of the thread that has made the tree are not lucky. Other threads' slabs begin at a line in
//! either build. [`Collocated`] does not depend on luck: see [`Block`].

use super::node::AtomicEdge;
use crate::bst::align;
use crate::bst::build::sealed::Sealed;
pub use crate::bst::build::{Compact, Fixed};
use crate::bst::external::{self, Either, InnerWords, Leaf, LeafWords};
pub use crate::bst::home::Block;
use crate::bst::home::{Alike, Apart, Blocks, Each, NodeStore};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::Placement;

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// The type of an internal node.
    type Inner: InnerWords<Cell = AtomicEdge>;
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
    /// The number of nodes allocated beside the sentinel at the start, to which no edge leads.
    const FILLERS: usize = 0;
    /// Whether a lookup descends as an update does and keeps a record.
    const RECORDS: bool = false;
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
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::LAYOUT;
    const LEAF: NodeLayout = Half::LAYOUT;
    type Store<P: Placement> = Each<Alike<Half, P>>;
    const FILLERS: usize = 1;
}

/// `edge-ext-lf` as published, in which the study found nothing to improve.
pub type Baseline = Fixed;

/// `edge-ext-lf` without luck: it makes one more allocation at the start.
#[derive(Debug)]
pub struct Shifted;

impl Sealed for Shifted {}

impl Build for Shifted {
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::LAYOUT;
    const LEAF: NodeLayout = Half::LAYOUT;
    type Store<P: Placement> = Each<Alike<Half, P>>;
    const FILLERS: usize = Fixed::FILLERS + 1;
}

/// A leaf and the internal node made with it share a line by design.
#[derive(Debug)]
pub struct Collocated;

impl Sealed for Collocated {}

impl Build for Collocated {
    type Inner = Inner;
    type Leaf = Leaf;
    const INNER: NodeLayout = BLOCK;
    const LEAF: NodeLayout = BLOCK;
    type Store<P: Placement> = Blocks<Inner, Leaf, P>;
}

/// `edge-ext-lf-2` as published: nodes padded to a line, and lookups by the descent of updates.
#[derive(Debug)]
pub struct Baseline2;

impl Sealed for Baseline2 {}

impl Build for Baseline2 {
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::LAYOUT;
    const LEAF: NodeLayout = Line::LAYOUT;
    type Store<P: Placement> = Each<Alike<Line, P>>;
    const RECORDS: bool = true;
}

/// `edge-ext-lf-2` without the padding.
#[derive(Debug)]
pub struct Fixed2;

impl Sealed for Fixed2 {}

impl Build for Fixed2 {
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::LAYOUT;
    const LEAF: NodeLayout = Half::LAYOUT;
    type Store<P: Placement> = Each<Alike<Half, P>>;
    const FILLERS: usize = Fixed::FILLERS;
    const RECORDS: bool = true;
}

/// An internal node that is an object of its own.
pub type Inner = external::Inner<AtomicEdge, (), align::Word>;
/// Either kind of node, in half a line.
pub type Half = Either<AtomicEdge, (), align::HalfLine>;
/// Either kind of node, padded to a line.
pub type Line = Either<AtomicEdge, (), align::Line>;

/// The layout of a block: an internal node, which comes first, and a leaf in one object.
pub const BLOCK: NodeLayout =
    NodeLayout::of::<Block<Inner, Leaf>>("block", BLOCK_SEARCH, &[BLOCK_LEAF]);

const BLOCK_SEARCH: &[Field] = &[Inner::LAYOUT.search[0], Inner::LAYOUT.search[1], BLOCK_LEAF];

const BLOCK_LEAF: Field = Field::new("leaf", Block::<Inner, Leaf>::LEAF, 16);

const _: () = {
    assert!(Inner::LAYOUT.size == 24 && Inner::LAYOUT.search_end() == 24);
    assert!(Leaf::LAYOUT.size == 16 && Leaf::LAYOUT.search_end() == 16);
    assert!(BLOCK.size == 64 && BLOCK.search_end() == 40);
    assert!(Half::LAYOUT.size == 32 && Half::LAYOUT.search_end() == 24);
    assert!(Half::LAYOUT.straddling(64).0 == 0);
    assert!(Line::LAYOUT.size == 64 && Line::LAYOUT.search_end() == 24);
};
