//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::build::Build;
use super::node::{Descriptor, Link, MARK, Node};
use super::ops::Stand;
use crate::bst::claim::{Claim, Clean, State};
use crate::canary::{Canary, planted};
use silvics_sync::model::touch;
use std::ptr::NonNull;

/// The null link of a node whose child leaves under a claim that replaced the clean word `before`.
#[inline(always)]
pub(super) fn emptied<B: Build>(before: Clean) -> Link<B> {
    if planted(Canary::NullNotCounted) { Link::NONE } else { Link::emptied(before) }
}

/// Whether a relocation may have moved a key above a search that went right last at `node`.
#[inline(always)]
pub(super) fn may_have_moved<B: Build>(node: &Node<B>) -> bool {
    matches!(node.op.load(), State::Claimed(_)) && !planted(Canary::RelocationUnseen)
}

/// Whether `node`, where a search went right last, has not been claimed since `before` was read.
#[inline(always)]
pub(super) fn is_unchanged<B: Build>(node: &Node<B>, before: Clean) -> bool {
    node.op.is(before) || planted(Canary::RelocationUnseen)
}

/// The copy that takes the place of a marked node, or how a search stands without a copy.
#[inline(always)]
pub(super) fn copy_of_marked<B: Build>(op: &Descriptor<B>) -> Result<Link<B>, Stand> {
    match op.is_copy() {
        true if planted(Canary::CopyNotFollowed) => Err(Stand::Here),
        true => Ok(op.new),
        false if planted(Canary::LeavingNodeTrusted) => Err(Stand::Here),
        false => Err(Stand::Gone),
    }
}

/// Marks the old child of an operation. Returns whether it is marked for this operation.
#[inline(always)]
pub(super) fn try_mark<B: Build>(
    old: &Node<B>,
    op: &Descriptor<B>,
    descriptor: NonNull<Descriptor<B>>,
) -> bool {
    op.is_copy() && planted(Canary::UpdateUnmarked)
        || old.op.claim(op.old_before, Claim::new(MARK, descriptor))
}

/// Whether a claimed node is left to its owner: never.
#[inline(always)]
pub(super) fn is_left_to_owner() -> bool {
    planted(Canary::ClaimedNodeNotHelped)
}

/// Whether the end of a relocation ends its second part: always.
#[inline(always)]
pub(super) fn ends_second(succeeded: bool) -> bool {
    succeeded || !planted(Canary::FailedRelocationLeaks)
}

/// The successor's parent as the descriptor has it, for a helper that does not search for it: none.
#[inline(always)]
pub(super) fn trusted_parent<'g, B: Build>(op2: &Descriptor<B>) -> Option<&'g Node<B>> {
    // SAFETY: without the planted mistake nothing is dereferenced; the mistake breaks I8.
    planted(Canary::SuccessorsParentTrusted).then(|| unsafe { &*touch(op2.parent.as_ptr()) })
}

/// Whether the successor counts as claimed without a claim: never.
#[inline(always)]
pub(super) fn counts_as_claimed() -> bool {
    planted(Canary::SuccessorNotClaimed)
}
