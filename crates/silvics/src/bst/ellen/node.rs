//! Edges, the update word's flags, and the descriptor.

use super::super::side::Side;
use super::build::Build;
use crate::bst::claim::{AtomicClaim, Clean, Flag};
use crate::bst::external::EdgeCell;
use silvics_layout::NodeLayout;
use silvics_sync::atomic::{AtomicPtr, Ordering};
use silvics_sync::model::touch;
use std::fmt;
use std::ptr::{NonNull, without_provenance_mut};

/// The edge leads to a leaf.
const IS_LEAF: usize = 1;
/// The edge leads nowhere: it is the right end of the tree. A count takes the pointer's place.
const IS_END: usize = 2;
const KINDS: usize = 3;
/// The step of the right end's count.
const STEP: usize = 4;

/// The value of an edge: a child and what it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Edge(*mut u8);

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = ["inner", "leaf", "end", "none"][self.0.addr() & KINDS];
        write!(f, "{kind} {:#x}", self.0.addr() & !KINDS)
    }
}

/// The target of an edge.
pub(super) enum Child<'g, B: Build> {
    Inner(&'g B::Inner),
    Leaf(&'g B::Leaf),
    End,
}

impl Edge {
    /// The right end of an empty tree.
    pub(super) const END: Self = Self(without_provenance_mut(IS_END));

    pub(super) fn to_inner<I>(inner: NonNull<I>) -> Self {
        const { assert!(align_of::<I>() > KINDS) };
        Self(inner.as_ptr().cast())
    }

    pub(super) fn to_leaf<L>(leaf: NonNull<L>) -> Self {
        const { assert!(align_of::<L>() > KINDS) };
        Self(leaf.as_ptr().cast::<u8>().map_addr(|a| a | IS_LEAF))
    }

    /// The right end as it is after it has been replaced by a node, whose right edge this is: never
    /// the same again (I5).
    pub(super) fn next_end(self) -> Self {
        debug_assert!(self.is_end());
        Self(without_provenance_mut(self.0.addr().wrapping_add(STEP)))
    }

    pub(super) fn is_leaf(self) -> bool {
        self.0.addr() & KINDS == IS_LEAF
    }

    fn is_end(self) -> bool {
        self.0.addr() & KINDS == IS_END
    }

    /// The internal node the edge leads to.
    pub(super) fn inner_ptr<B: Build>(self) -> NonNull<B::Inner> {
        debug_assert!(self.0.addr() & KINDS == 0);
        // SAFETY: I1: an edge to an internal node is not null.
        unsafe { NonNull::new_unchecked(self.0.cast()) }
    }

    /// The leaf the edge leads to.
    pub(super) fn leaf_ptr<B: Build>(self) -> NonNull<B::Leaf> {
        debug_assert!(self.is_leaf());
        // SAFETY: I1: an edge to a leaf is not null.
        unsafe { NonNull::new_unchecked(self.0.map_addr(|a| a & !KINDS).cast()) }
    }

    /// Follows the edge.
    ///
    /// # Safety
    /// It was loaded from a reachable edge, or one of a node read so, under a guard that lives as
    /// long as `'g`; or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn child<'g, B: Build>(self) -> Child<'g, B> {
        // SAFETY: I1: the child is initialised, and the bits say which kind it is. I7: it is not
        // reclaimed under the caller's guard.
        unsafe {
            match self.0.addr() & KINDS {
                0 => Child::Inner(&*touch(self.0.cast::<B::Inner>())),
                IS_LEAF => Child::Leaf(&*touch(self.0.map_addr(|a| a & !KINDS).cast::<B::Leaf>())),
                _ => Child::End,
            }
        }
    }
}

/// An edge in memory. Every access of the protocol is here.
pub struct AtomicEdge(AtomicPtr<u8>);

impl EdgeCell for AtomicEdge {
    type Edge = Edge;
    const NONE: Edge = Edge::END;

    #[inline(always)]
    fn new(edge: Edge) -> Self {
        Self(AtomicPtr::new(edge.0))
    }
}

impl AtomicEdge {
    #[inline(always)]
    pub(super) fn load(&self) -> Edge {
        Edge(self.0.load(Ordering::SeqCst))
    }

    /// Replaces the edge if it still is `current` (paper: CAS-Child). A late helper changes
    /// nothing (I5).
    pub(super) fn try_replace(&self, current: Edge, new: Edge) -> bool {
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        self.0.compare_exchange(current.0, new.0, success, failure).is_ok()
    }
}

/// The word of an internal node that operations claim.
pub struct UpdateWord(pub(super) AtomicClaim<Descriptor>);

impl Default for UpdateWord {
    fn default() -> Self {
        Self(AtomicClaim::new())
    }
}

/// The edge below the node is being replaced: an insert or an update.
pub(super) const IFLAG: Flag = Flag::One;
/// A child of the node is being removed, with the leaf below it.
pub(super) const DFLAG: Flag = Flag::Two;
/// The node is being removed. Never released.
pub(super) const MARK: Flag = Flag::Three;

/// The remaining steps of an operation (paper: Info record), once the node's word holds it.
///
/// It refers to the word and the edge within the node, not to the node. The paper has a type for
/// inserts, `IInfo`, and one for deletions, `DInfo`.
#[repr(C, align(64))]
pub(super) struct Descriptor {
    /// The word that is claimed first: the parent's, or for a deletion the grandparent's.
    pub(super) word: NonNull<UpdateWord>,
    /// The content of that word before the claim.
    pub(super) before: Clean,
    /// The edge that changes, in the node whose word is claimed first.
    pub(super) edge: NonNull<AtomicEdge>,
    /// The content of the edge before the change: it leads to a leaf or the end, or for a deletion
    /// to the parent.
    pub(super) old: Edge,
    /// The content of the edge after the change. A deletion does not use it.
    pub(super) new: Edge,
    /// The content of the parent's word before a deletion claims it.
    pub(super) parent_before: Clean,
    /// The side of the leaf below its parent, for a deletion.
    pub(super) leaf_side: Side,
}

// SAFETY: it is shared as what it refers to is: through atomics, and never written once published.
unsafe impl Send for Descriptor {}

/// A search does not read it.
pub(super) const DESCRIPTOR: NodeLayout = NodeLayout::of::<Descriptor>("descriptor", &[], &[]);

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(DESCRIPTOR.size == 64 && DESCRIPTOR.align == 64);
};
