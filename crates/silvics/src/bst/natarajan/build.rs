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

use super::node::{AtomicEdge, Edge};
pub use crate::bst::build::{Compact, Fixed};
pub use crate::bst::home::Block;
use crate::bst::home::{Alike, Apart, Blocks, Each, Objects};
use silvics_layout::{Field, NodeLayout};
use silvics_pool::Placement;
use std::mem::offset_of;

/// A build of the tree.
pub trait Build: 'static {
    /// Its name in the catalogue.
    const NAME: &'static str;
    /// An internal node.
    type Inner: InnerWords;
    /// A leaf.
    type Leaf: LeafWords;
    /// The object that an internal node is, or lives in.
    const INNER: NodeLayout;
    /// The object that a leaf is, or lives in.
    const LEAF: NodeLayout;
    /// Those of them that are kinds of their own, the internal node first.
    const KINDS: &'static [NodeLayout] = &[Self::INNER];
    /// Their memory.
    type Objects<P: Placement>: Objects<Self::Inner, Self::Leaf, P>;
    /// Nodes allocated at the start beside the sentinel, which nothing leads to.
    const FILLERS: usize = 0;
    /// Whether a lookup descends as an update does, keeping a record.
    const RECORDS: bool = false;
}

/// An internal node: routes keys at most its key to the left.
pub trait InnerWords: Sized + Send + Sync + 'static {
    /// One that is not linked yet.
    fn new(key: u64, children: [Edge; 2]) -> Self;
    /// The largest key on the left.
    fn key(&self) -> u64;
    /// Left and right.
    fn children(&self) -> &[AtomicEdge; 2];
}

/// A leaf: an entry. Never changed once it can be reached; an update replaces it.
pub trait LeafWords: Sized + Send + Sync + 'static {
    /// One that is not linked yet.
    fn new(key: u64, value: u64) -> Self;
    /// The key.
    fn key(&self) -> u64;
    /// The value.
    fn value(&self) -> u64;
}

impl Build for Compact {
    const NAME: &'static str = "compact";
    type Inner = Inner;
    type Leaf = Leaf;
    const INNER: NodeLayout = INNER;
    const LEAF: NodeLayout = LEAF;
    const KINDS: &'static [NodeLayout] = &[INNER, LEAF];
    type Objects<P: Placement> = Each<Apart<Inner, Leaf, P>>;
}

impl Build for Fixed {
    const NAME: &'static str = "fixed";
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::NODE;
    const LEAF: NodeLayout = Half::NODE;
    type Objects<P: Placement> = Each<Alike<Half, P>>;
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
    const INNER: NodeLayout = Half::NODE;
    const LEAF: NodeLayout = Half::NODE;
    type Objects<P: Placement> = Each<Alike<Half, P>>;
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
    type Objects<P: Placement> = Blocks<Inner, Leaf, P>;
}

/// `edge-ext-lf-2` as published: nodes padded to a line, and lookups by the descent of updates.
#[derive(Debug)]
pub struct Baseline2;

impl Build for Baseline2 {
    const NAME: &'static str = "baseline";
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::NODE;
    const LEAF: NodeLayout = Line::NODE;
    type Objects<P: Placement> = Each<Alike<Line, P>>;
    const RECORDS: bool = true;
}

/// `edge-ext-lf-2` without the padding.
#[derive(Debug)]
pub struct Fixed2;

impl Build for Fixed2 {
    const NAME: &'static str = "fixed";
    type Inner = Half;
    type Leaf = Half;
    const INNER: NodeLayout = Half::NODE;
    const LEAF: NodeLayout = Half::NODE;
    type Objects<P: Placement> = Each<Alike<Half, P>>;
    const FILLERS: usize = Fixed::FILLERS;
    const RECORDS: bool = true;
}

/// An internal node alone.
#[repr(C)]
pub struct Inner {
    key: u64,
    children: [AtomicEdge; 2],
}

/// What a search reads of it.
pub const INNER: NodeLayout = NodeLayout::of::<Inner>(
    "inner",
    &[
        Field::new("key", offset_of!(Inner, key), 8),
        Field::one_of("children", offset_of!(Inner, children), 16, 2),
    ],
    2,
);

impl InnerWords for Inner {
    #[inline(always)]
    fn new(key: u64, children: [Edge; 2]) -> Self {
        Self { key, children: children.map(AtomicEdge::new) }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.key
    }
    #[inline(always)]
    fn children(&self) -> &[AtomicEdge; 2] {
        &self.children
    }
}

/// A leaf alone.
#[repr(C)]
pub struct Leaf {
    key: u64,
    value: u64,
}

/// What a search reads of it.
pub const LEAF: NodeLayout = NodeLayout::of::<Leaf>(
    "leaf",
    &[Field::new("key", offset_of!(Leaf, key), 8), Field::new("value", offset_of!(Leaf, value), 8)],
    0,
);

impl LeafWords for Leaf {
    #[inline(always)]
    fn new(key: u64, value: u64) -> Self {
        Self { key, value }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.key
    }
    #[inline(always)]
    fn value(&self) -> u64 {
        self.value
    }
}

/// What a search reads of an internal node and a leaf in one object.
pub const BLOCK: NodeLayout = NodeLayout::of::<Block<Inner, Leaf>>(
    "block",
    &[
        Field::new("key", offset_of!(Inner, key), 8),
        Field::one_of("children", offset_of!(Inner, children), 16, 2),
        Field::new("leaf", Block::<Inner, Leaf>::LEAF, 16),
    ],
    2,
);

/// Declares where the words of a node are that is an internal node or a leaf: a leaf's children
/// are never followed, an internal node's value never read.
macro_rules! either {
    ($(#[$doc:meta])* $name:ident, [$($field:ident: $type:ty,)*]) => {
        $(#[$doc])*
        pub struct $name {
            $($field: $type,)*
        }

        impl $name {
            /// What a search reads of it.
            pub const NODE: NodeLayout = NodeLayout::of::<Self>(
                "node",
                &[
                    Field::new("key", offset_of!(Self, key), 8),
                    Field::one_of("children", offset_of!(Self, children), 16, 2),
                ],
                2,
            );
        }

        impl InnerWords for $name {
            #[inline(always)]
            fn new(key: u64, children: [Edge; 2]) -> Self {
                Self { key, children: children.map(AtomicEdge::new), value: 0 }
            }
            #[inline(always)]
            fn key(&self) -> u64 {
                self.key
            }
            #[inline(always)]
            fn children(&self) -> &[AtomicEdge; 2] {
                &self.children
            }
        }

        impl LeafWords for $name {
            #[inline(always)]
            fn new(key: u64, value: u64) -> Self {
                Self { key, children: [Edge::NONE; 2].map(AtomicEdge::new), value }
            }
            #[inline(always)]
            fn key(&self) -> u64 {
                self.key
            }
            #[inline(always)]
            fn value(&self) -> u64 {
                self.value
            }
        }
    };
}

either! {
    /// Either kind in half a line, what a search reads first.
    #[repr(C, align(32))]
    Half, [key: u64, children: [AtomicEdge; 2], value: u64,]
}

either! {
    /// Either kind, padded to a line.
    #[repr(C, align(64))]
    Line, [key: u64, value: u64, children: [AtomicEdge; 2],]
}

const _: () = assert!(INNER.size == 24 && INNER.search_end() == 24);
const _: () = assert!(LEAF.size == 16 && LEAF.search_end() == 16);
const _: () = assert!(BLOCK.size == 64 && BLOCK.search_end() == 40);
const _: () = assert!(Half::NODE.size == 32 && Half::NODE.search_end() == 24);
const _: () = assert!(Half::NODE.straddling(64).0 == 0);
const _: () = assert!(Line::NODE.size == 64 && Line::NODE.search_end() == 32);
