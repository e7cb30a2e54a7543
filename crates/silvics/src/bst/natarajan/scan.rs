//! The tree as a walk sees it.

use super::super::walk::{Below, External};
use super::Natarajan;
use super::build::Build;
use super::canaries::counts_as_gone;
use super::node::AtomicEdge;
use crate::bst::external::{Child, InnerWords, LeafWords};
use crate::domain::Guard;
use silvics_pool::Placement;

// SAFETY: I5 gives W1. I3 and `cleanup` give W2: a chain of nodes is cut out with a flagged leaf
// beside each, and the rest of it moves up. I2 gives W3: an entry comes, leaves or is replaced by a
// CAS on an unmarked edge that the search for its key has found.
unsafe impl<P: Placement, B: Build> External for Natarajan<P, B> {
    type Edge = AtomicEdge;
    type ExternalAt<Q: Placement> = Natarajan<Q, B>;

    #[inline(always)]
    fn root(&self) -> &AtomicEdge {
        &self.root
    }

    #[inline(always)]
    unsafe fn follow<'g>(&'g self, edge: &'g AtomicEdge, _: &'g Guard) -> Below<'g, AtomicEdge> {
        let edge = edge.load();
        if counts_as_gone(edge) {
            return Below::Sentinel;
        }
        // SAFETY: I1, I5: the caller promises that the edge was reached under the guard, or that
        // the tree is quiescent.
        match unsafe { edge.child::<B::Inner, B::Leaf>() } {
            Child::Inner(inner) => {
                let [left, right] = inner.children();
                Below::Inner { split: inner.key(), left, right }
            }
            Child::Leaf(leaf) if self.is_sentinel(leaf) => Below::Sentinel,
            Child::Leaf(leaf) => Below::Leaf { key: leaf.key(), value: leaf.value() },
        }
    }
}
