//! The view that a walk has of the tree.

use super::super::walk::{Below, External};
use super::Ellen;
use super::build::Build;
use super::node::{AtomicEdge, Child};
use crate::bst::external::{InnerWords, LeafWords};
use crate::domain::Guard;
use silvics_pool::Placement;

// SAFETY: W1 is I7. W2 is I4, and what a deletion does: it marks the parent, whose edges never
// change again, and puts the leaf's sibling in its place. W3 is I2 and I4: a flag's step is made at
// the edge that the search for its key has found, and nothing but a copy of the entry there is kept
// beside it.
unsafe impl<P: Placement, B: Build> External for Ellen<P, B> {
    type Edge = AtomicEdge;
    type ExternalAt<Q: Placement> = Ellen<Q, B>;

    #[inline(always)]
    fn root(&self) -> &AtomicEdge {
        &Self::root(self).children()[0]
    }

    #[inline(always)]
    unsafe fn follow<'g>(&'g self, edge: &'g AtomicEdge, _: &'g Guard) -> Below<'g, AtomicEdge> {
        // SAFETY: I7: the edge is the root's, or in a node that the caller has reached under the
        // guard.
        match unsafe { edge.load().child::<B>() } {
            Child::Inner(inner) => {
                let [left, right] = inner.children();
                Below::Inner { split: inner.key(), left, right }
            }
            Child::Leaf(leaf) => Below::Leaf { key: leaf.key(), value: leaf.value() },
            Child::End => Below::Sentinel,
        }
    }
}
