//! What a walk sees of the tree.

use super::super::walk::{Below, External};
use super::Ticket;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::{Child, InnerWords, LeafWords};
use crate::domain::Guard;
use silvics_pool::Placement;

// SAFETY: W1 is I6. W2 is I4 and what `take` does: the removed leaf's sibling moves up. W3 is I2: an
// entry comes, goes or is replaced at an edge whose lock is taken at the version that the search for
// its key has seen, and so not at one of a node that was cut out.
unsafe impl<P: Placement, B: Build> External for Ticket<P, B> {
    type Edge = AtomicEdge;

    #[inline(always)]
    fn root(&self) -> &AtomicEdge {
        Self::root(self)
    }

    #[inline(always)]
    unsafe fn follow<'g>(&'g self, edge: &'g AtomicEdge, _: &'g Guard) -> Below<'g, AtomicEdge> {
        // SAFETY: the caller's promise.
        match unsafe { edge.load().child::<B::Inner, B::Leaf>() } {
            Child::Inner(inner) => {
                let [left, right] = inner.children();
                Below::Inner { split: inner.key(), left, right }
            }
            Child::Leaf(leaf) if self.is_sentinel(leaf) => Below::Sentinel,
            Child::Leaf(leaf) => Below::Leaf { key: leaf.key(), value: leaf.value() },
        }
    }
}
