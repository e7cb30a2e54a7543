//! The tree as a walk sees it.

use super::super::walk::{Below, External};
use super::Ticket;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::{Child, InnerWords, LeafWords};
use crate::domain::Guard;
use silvics_pool::Placement;

// SAFETY: I6 gives W1. I4 and `take` give W2: the removed leaf's sibling moves up. I2 and I3 give
// W3: an entry comes, leaves or is replaced at an edge whose lock is taken at the version that the
// search for its key has seen, and so not at an edge of a node that was cut out.
unsafe impl<P: Placement, B: Build> External for Ticket<P, B> {
    type Edge = AtomicEdge;
    type ExternalAt<Q: Placement> = Ticket<Q, B>;

    #[inline(always)]
    fn root(&self) -> &AtomicEdge {
        Self::root(self)
    }

    #[inline(always)]
    unsafe fn follow<'g>(&'g self, edge: &'g AtomicEdge, _: &'g Guard) -> Below<'g, AtomicEdge> {
        // SAFETY: I1, I6: the caller promises that the edge was reached under the guard.
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
