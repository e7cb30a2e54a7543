//! The builds: what internal nodes and leaves are made of, and what a lookup keeps.
//!
//! | build | catalogue | node | bytes a key | lookups |
//! |---|---|---|---|---|
//! | [`Compact`] | `ext-lf:compact` | [`Inner`] and [`Leaf`] | 48 | keep nothing |
//! | [`Fixed`] | `ext-lf:fixed` | [`Slim`] for both | 80 | keep nothing |
//! | [`Baseline`] | `ext-lf:baseline` | [`Line`] for both | 128 | keep the record |

use super::node::{AtomicEdge, DESCRIPTOR, Edge, UpdateWord};
pub use crate::bst::build::{Baseline, Compact, Fixed};
use crate::bst::home::{Alike, Apart, Home};
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
    /// The layout of an internal node.
    const INNER: NodeLayout;
    /// The layout of a leaf.
    const LEAF: NodeLayout;
    /// The kinds of objects, internal nodes first.
    const KINDS: &'static [NodeLayout] = &[Self::INNER, DESCRIPTOR];
    /// Where both live.
    type Home<P: Placement>: Home<Self::Inner, Self::Leaf, P>;
    /// Whether a lookup descends as an update does, keeping a record.
    const RECORDS: bool;
}

/// An internal node: routes keys at most its key to the left.
pub trait InnerWords: Sized + Send + Sync + 'static {
    /// One that is not linked yet.
    fn new(key: u64, children: [Edge; 2]) -> Self;
    /// The largest key on the left.
    fn key(&self) -> u64;
    /// Left and right.
    fn children(&self) -> &[AtomicEdge; 2];
    /// What operations claim it by.
    fn update(&self) -> &UpdateWord;
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
    const KINDS: &'static [NodeLayout] = &[INNER, LEAF, DESCRIPTOR];
    type Home<P: Placement> = Apart<Inner, Leaf, P>;
    const RECORDS: bool = false;
}

impl Build for Fixed {
    const NAME: &'static str = "fixed";
    type Inner = Slim;
    type Leaf = Slim;
    const INNER: NodeLayout = Slim::NODE;
    const LEAF: NodeLayout = Slim::NODE;
    type Home<P: Placement> = Alike<Slim, P>;
    const RECORDS: bool = false;
}

impl Build for Baseline {
    const NAME: &'static str = "baseline";
    type Inner = Line;
    type Leaf = Line;
    const INNER: NodeLayout = Line::NODE;
    const LEAF: NodeLayout = Line::NODE;
    type Home<P: Placement> = Alike<Line, P>;
    const RECORDS: bool = true;
}

/// An internal node alone: two in a line.
#[repr(C, align(32))]
pub struct Inner {
    key: u64,
    children: [AtomicEdge; 2],
    update: UpdateWord,
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
        Self { key, children: children.map(AtomicEdge::new), update: UpdateWord::new() }
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
    fn update(&self) -> &UpdateWord {
        &self.update
    }
}

/// A leaf alone: four in a line.
#[repr(C, align(16))]
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

/// Declares one type for internal nodes and leaves.
macro_rules! both {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        pub struct $name {
            key: u64,
            children: [AtomicEdge; 2],
            update: UpdateWord,
            value: u64,
        }

        impl $name {
            /// What a search reads of an internal node. Of a leaf it reads key and value.
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
                let children = children.map(AtomicEdge::new);
                Self { key, children, update: UpdateWord::new(), value: 0 }
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
            fn update(&self) -> &UpdateWord {
                &self.update
            }
        }

        impl LeafWords for $name {
            #[inline(always)]
            fn new(key: u64, value: u64) -> Self {
                let children = [Edge::END; 2].map(AtomicEdge::new);
                Self { key, children, update: UpdateWord::new(), value }
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

both! {
    /// Five words.
    #[repr(C)]
    Slim
}

both! {
    /// The same, padded to a line.
    #[repr(C, align(64))]
    Line
}

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(INNER.size == 32 && INNER.search_end() == 24);
    assert!(LEAF.size == 16 && LEAF.search_end() == 16);
    assert!(Slim::NODE.size == 40 && Slim::NODE.search_end() == 24);
    assert!(Line::NODE.size == 64 && Line::NODE.search_end() == 24);
    assert!(INNER.straddling(64).0 == 0 && LEAF.straddling(64).0 == 0);
};
