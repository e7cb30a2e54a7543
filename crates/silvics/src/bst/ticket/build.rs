//! The builds: what nodes are made of, and what they live in.
//!
//! | build | catalogue | node | bytes a key |
//! |---|---|---|---|
//! | [`Compact`] | `ticket:compact` | [`Inner`] and [`Leaf`] | 48 |
//! | [`Fixed`] | `ticket:fixed` | [`Node`] for both | 80 |
//! | [`Baseline`] | `ticket:baseline` | [`Line`] for both | 128 |
//!
//! The study's oversight is the padding: of the [`Line`] a search reads the first 32 bytes. Without
//! it, in [`Fixed`], nodes are smaller, and two of eight have what a search reads of them in two lines.

use super::node::{AtomicEdge, Edge};
use super::state::Locks;
pub use crate::bst::build::{Baseline, Compact, Fixed};
use crate::bst::home::{Alike, Apart, Each, Objects};
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
}

/// An internal node: routes keys at most its key to the left.
pub trait InnerWords: Sized + Send + Sync + 'static {
    /// One that is not linked yet.
    fn new(key: u64, children: [Edge; 2]) -> Self;
    /// The largest key on the left.
    fn key(&self) -> u64;
    /// Left and right.
    fn children(&self) -> &[AtomicEdge; 2];
    /// The locks of both edges.
    fn locks(&self) -> &Locks;
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
    type Inner = Node;
    type Leaf = Node;
    const INNER: NodeLayout = Node::NODE;
    const LEAF: NodeLayout = Node::NODE;
    type Objects<P: Placement> = Each<Alike<Node, P>>;
}

impl Build for Baseline {
    const NAME: &'static str = "baseline";
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::NODE;
    const LEAF: NodeLayout = Line::NODE;
    type Objects<P: Placement> = Each<Alike<Line, P>>;
}

/// An internal node alone: half a line.
#[repr(C, align(32))]
pub struct Inner {
    key: u64,
    children: [AtomicEdge; 2],
    locks: Locks,
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
        Self { key, children: children.map(AtomicEdge::new), locks: Locks::default() }
    }
    #[inline(always)]
    fn key(&self) -> u64 {
        self.key
    }
    #[inline(always)]
    fn children(&self) -> &[AtomicEdge; 2] {
        &self.children
    }
    #[inline(always)]
    fn locks(&self) -> &Locks {
        &self.locks
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

/// Declares where the words of a node are that is an internal node or a leaf: a leaf's children
/// and locks are never used, nor an internal node's value.
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

            #[inline(always)]
            fn of(key: u64, children: [Edge; 2], value: u64) -> Self {
                let (children, locks) = (children.map(AtomicEdge::new), Locks::default());
                Self { key, children, locks, value }
            }
        }

        impl InnerWords for $name {
            #[inline(always)]
            fn new(key: u64, children: [Edge; 2]) -> Self {
                Self::of(key, children, 0)
            }
            #[inline(always)]
            fn key(&self) -> u64 {
                self.key
            }
            #[inline(always)]
            fn children(&self) -> &[AtomicEdge; 2] {
                &self.children
            }
            #[inline(always)]
            fn locks(&self) -> &Locks {
                &self.locks
            }
        }

        impl LeafWords for $name {
            #[inline(always)]
            fn new(key: u64, value: u64) -> Self {
                Self::of(key, [Edge::NONE; 2], value)
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
    /// Either kind, what a search reads first.
    #[repr(C)]
    Node, [key: u64, children: [AtomicEdge; 2], locks: Locks, value: u64,]
}

either! {
    /// Either kind, padded to a line.
    #[repr(C, align(64))]
    Line, [key: u64, value: u64, children: [AtomicEdge; 2], locks: Locks,]
}

const _: () = assert!(INNER.size == 32 && INNER.search_end() == 24 && INNER.straddling(64).0 == 0);
const _: () = assert!(LEAF.size == 16 && LEAF.search_end() == 16);
const _: () = assert!(Node::NODE.size == 40 && Node::NODE.search_end() == 24);
const _: () = assert!(Node::NODE.straddling(64).0 == 2 && Node::NODE.straddling(64).1 == 8);
const _: () = assert!(Line::NODE.size == 64 && Line::NODE.search_end() == 32);
