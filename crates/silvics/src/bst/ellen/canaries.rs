//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::Ellen;
use super::build::Build;
use super::node::{Descriptor, Edge, MARK, UpdateWord};
use super::ops::{Place, Spares};
use crate::bst::claim::{Claim, Clean};
use crate::bst::external::InnerWords;
use crate::bst::home::NodePools;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::{AllocError, Placement};
use std::ptr::NonNull;

/// Whether a claimed node is left to its owner: never.
#[inline(always)]
pub(super) fn is_left_to_owner() -> bool {
    planted(Canary::ClaimNotHelped)
}

/// The edge that leads to a leaf, if an insert keeps the leaf instead of copying it: never.
#[inline(always)]
pub(super) fn uncopied(found: Edge) -> Option<Edge> {
    planted(Canary::LeafNotCopied).then_some(found)
}

/// Whether the step of an insert or an update has unlinked a leaf: unless it has replaced the end.
#[inline(always)]
pub(super) fn has_unlinked_leaf(op: &Descriptor) -> bool {
    op.old.is_leaf() && (op.new.is_leaf() || !planted(Canary::LeafNotCopied))
}

/// Marks the parent for a deletion. Returns whether it is marked for this deletion.
#[inline(always)]
pub(super) fn try_mark<I>(parent: &I, op: &Descriptor, descriptor: NonNull<Descriptor>) -> bool
where
    I: InnerWords<Control = UpdateWord>,
{
    planted(Canary::ParentNotMarked)
        || parent.control().0.claim(op.parent_before, Claim::new(MARK, descriptor))
}

/// Whether a deletion that takes its flag back retires its descriptor: always.
#[inline(always)]
pub(super) fn is_retired_at_backtrack() -> bool {
    !planted(Canary::BacktrackLeaks)
}

/// Ends the claim of `op`. Returns whether this call did.
#[inline(always)]
pub(super) fn release(word: &UpdateWord, flag: Claim<Descriptor>, op: &Descriptor) -> bool {
    if planted(Canary::FlagNotCounted) {
        return word.0.release_to(flag, op.before);
    }
    word.0.release(flag, op.before)
}

impl<P: Placement, B: Build> Ellen<P, B> {
    /// Flags the parent for the replacement of its leaf by `leaf`, and has it done. Returns false
    /// if something else came first, which has been helped.
    #[inline(always)]
    pub(super) fn flag_for_update(
        &self,
        parent: &Place<'_, B>,
        before: Clean,
        leaf: Edge,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        if planted(Canary::UpdateUnflagged) {
            let replaced = parent.node.children()[parent.side].try_replace(parent.edge, leaf);
            if replaced {
                // SAFETY: without the planted mistake nothing is retired here. The mistake breaks
                // I4: an edge of the marked parent changes, and its leaf is retired once more.
                unsafe { self.pools().leaves().retire(parent.edge.leaf_ptr::<B>(), guard) };
            }
            return Ok(replaced);
        }
        self.flag_parent(parent, before, leaf, spares, guard)
    }

    /// Retires the descriptor of an insert that another thread has released: never.
    #[inline(always)]
    pub(super) fn retire_as_helper(&self, descriptor: NonNull<Descriptor>, guard: &Guard) {
        if planted(Canary::HelperRetires) {
            // SAFETY: without the planted mistake nothing is retired here. The mistake breaks I6:
            // the thread whose release succeeded retires the descriptor, too.
            unsafe { self.descriptors().retire(descriptor, guard) };
        }
    }
}
