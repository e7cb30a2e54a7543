//! The builds: what nodes are made of, what they live in, and what a lookup keeps.
//!
//! | build | catalogue | node | bytes a key | lookups |
//! |---|---|---|---|---|
//! | [`Compact`] | `edge-ext-lf:compact` | [`Inner`] and [`Leaf`] | 40 | keep nothing |
//! | [`Fixed`] | `edge-ext-lf:fixed`, `:baseline` | [`Half`] for both | 64 | keep nothing |
//! | [`Shifted`] | `edge-ext-lf:shifted` | the same, half a line further on | 64 | keep nothing |
//! | [`Collocated`] | `edge-ext-lf:collocated` | [`Inner`] and [`Leaf`] in a line | 64 to 128 | keep nothing |
//! | [`Fixed2`] | `edge-ext-lf-2:fixed` | [`Half`] for both | 64 | keep the record |
//! | [`Baseline2`] | `edge-ext-lf-2:baseline` | [`Line`] for both | 128 | keep the record |
//!
//! # Where a leaf lies beside its parent
//! The study found that `edge-ext-lf` owes its speed to luck: an insert makes a leaf and an internal
//! node, two slots of 32 bytes one after the other, and so in one line. A later insert may put
//! another node between the two; still most internal nodes with a leaf child share their line with
//! it. One more allocation at the start, and each pair is spread over two lines.
//!
//! A pool begins its slabs at a line. So [`Fixed`] fills the sentinel's line with a second node that
//! nothing leads to, and pairs are lucky; [`Shifted`] adds one more, and those of the thread that
//! has made the tree are not. Other threads' slabs begin at a line in either build. [`Collocated`]
//! leaves nothing to luck: see [`Block`].

use super::node::AtomicEdge;
use crate::bst::align;
pub use crate::bst::build::{Compact, Fixed};
use crate::bst::external::{self, Either, InnerWords, Leaf, LeafWords};
pub use crate::bst::home::Block;
use crate::bst::home::{Alike, Apart, Blocks, Each, NodeStore};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::Placement;

/// A build of the tree.
pub trait Build: 'static {
    /// Its name in the catalogue.
    const NAME: &'static str;
    /// An internal node.
    type Inner: InnerWords<Cell = AtomicEdge>;
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
    /// Nodes allocated at the start beside the sentinel, which nothing leads to.
    const FILLERS: usize = 0;
    /// Whether a lookup descends as an update does, keeping a record.
    const RECORDS: bool = false;
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
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::LAYOUT;
    const LEAF: NodeLayout = Half::LAYOUT;
    type Store<P: Placement> = Each<Alike<Half, P>>;
    const FILLERS: usize = 1;
}

/// `edge-ext-lf` as published, in which the study found nothing to mend.
pub type Baseline = Fixed;

/// `edge-ext-lf` out of luck: one more allocation at the start.
#[derive(Debug)]
pub struct Shifted;

impl Build for Shifted {
    const NAME: &'static str = "shifted";
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

impl Build for Collocated {
    const NAME: &'static str = "collocated";
    type Inner = Inner;
    type Leaf = Leaf;
    const INNER: NodeLayout = BLOCK;
    const LEAF: NodeLayout = BLOCK;
    type Store<P: Placement> = Blocks<Inner, Leaf, P>;
}

/// `edge-ext-lf-2` as published: nodes padded to a line, and lookups by the descent of updates.
#[derive(Debug)]
pub struct Baseline2;

impl Build for Baseline2 {
    const NAME: &'static str = "baseline";
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

impl Build for Fixed2 {
    const NAME: &'static str = "fixed";
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::LAYOUT;
    const LEAF: NodeLayout = Half::LAYOUT;
    type Store<P: Placement> = Each<Alike<Half, P>>;
    const FILLERS: usize = Fixed::FILLERS;
    const RECORDS: bool = true;
}

/// An internal node alone.
pub type Inner = external::Inner<AtomicEdge, (), align::Word>;
/// Either kind in half a line.
pub type Half = Either<AtomicEdge, (), align::HalfLine>;
/// Either kind, padded to a line.
pub type Line = Either<AtomicEdge, (), align::Line>;

/// What a search reads of an internal node, which comes first, and a leaf in one object.
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
