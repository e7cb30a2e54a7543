//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::Citrus;
use super::build::{Build, Words};
use super::node::{Held, Node, Tag};
use crate::bst::side::Side;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;

/// Whether the link on `side` has become empty since `tag` was read.
#[inline(always)]
pub(super) fn has_been_emptied<W: Words>(node: &Node<W>, side: Side, tag: Tag) -> bool {
    node.tag(side) != tag && !planted(Canary::TagIgnored)
}

/// The tag with which an insertion validates its place: the one that its search has read.
#[inline(always)]
pub(super) fn tag_of_search<W: Words>(parent: &Node<W>, side: Side, tag: Tag) -> Tag {
    if planted(Canary::TagReadLate) { parent.tag(side) } else { tag }
}

/// Whether `node`, which is locked, has left the tree or been copied.
#[inline(always)]
pub(super) fn is_out<W: Words>(node: &Held<'_, W>) -> bool {
    node.is_marked() && !planted(Canary::UpdateOfMarked)
}

/// The value for the copy of a successor: the one that it has under its lock. `early` is the one
/// that it had before.
#[inline(always)]
pub(super) fn value_to_copy<W: Words>(succ: &Held<'_, W>, early: u64) -> u64 {
    if planted(Canary::ValueCopiedEarly) { early } else { succ.value() }
}

impl<P: Placement, B: Build> Citrus<P, B> {
    /// Waits for the descents that may have passed the copy's place before the copy was there.
    #[inline(always)]
    pub(super) fn wait_for_descents(&self) {
        if !planted(Canary::GraceSkipped) {
            self.rcu.synchronize();
        }
    }

    /// Retires a successor when its copy is linked: never, as the successor can still be reached.
    #[inline(always)]
    pub(super) fn retire_when_copied(&self, succ: &Node<B::Words>, guard: &Guard) {
        if planted(Canary::SuccessorRetiredEarly) {
            // SAFETY: without the planted mistake nothing is retired here; the mistake breaks the
            // contract of `retire`, since a link still leads to the successor.
            unsafe { self.nodes.retire(succ.as_non_null(), guard) };
        }
    }

    /// Retires a successor that was taken out below its copy.
    ///
    /// # Safety
    /// The calling thread has marked the successor and taken the link to it away (I2), and calls
    /// this once for it. `guard` is of the index's domain.
    #[inline(always)]
    pub(super) unsafe fn retire_when_out(&self, succ: &Node<B::Words>, guard: &Guard) {
        if !planted(Canary::SuccessorRetiredEarly) {
            // SAFETY: nodes in the tree are of its pool. The caller promises that the link to this
            // one is gone and that it is retired once. A link changes only while its node is not
            // marked (I1), so no link leads there again.
            unsafe { self.nodes.retire(succ.as_non_null(), guard) };
        }
    }
}
