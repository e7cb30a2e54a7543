//! What a walk sees of the tree.

use super::super::walk::{Below, External};
use super::Natarajan;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::{Child, InnerWords, LeafWords};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;

// SAFETY: W1 is I5. W2 is I3 and what `cleanup` does: a chain of nodes is cut out with a flagged leaf
// beside each, and what is left of it moves up. W3 is I2: an entry comes, goes or is replaced by a
// CAS on an unmarked edge that the search for its key has found.
unsafe impl<P: Placement, B: Build> External for Natarajan<P, B> {
    type Edge = AtomicEdge;

    #[inline(always)]
    fn root(&self) -> &AtomicEdge {
        &self.root
    }

    #[inline(always)]
    unsafe fn follow<'g>(&'g self, edge: &'g AtomicEdge, _: &'g Guard) -> Below<'g, AtomicEdge> {
        let edge = edge.load();
        if edge.is_tagged() && planted(Canary::ScanTakesFrozenForGone) {
            return Below::Sentinel;
        }
        // SAFETY: the caller's promise.
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
