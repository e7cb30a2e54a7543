//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::build::Words;
use super::node::{Interval, Node};
use crate::canary::{Canary, planted};
use std::cmp::Ordering;

/// Whether an insertion links its node backwards before the node is in the list: never.
#[inline(always)]
pub(super) fn is_linked_backwards_first() -> bool {
    planted(Canary::LinkedBackwardsFirst)
}

/// Whether the node before a gap, whose interval is locked, has been removed.
#[inline(always)]
pub(super) fn is_gap_gone<W: Words>(pred: &Interval<'_, W>) -> bool {
    pred.is_marked() && !planted(Canary::AttachedBehindRemoved)
}

/// Whether the node that an update writes to, whose interval is locked, has been removed.
#[inline(always)]
pub(super) fn is_removed<W: Words>(node: &Interval<'_, W>) -> bool {
    node.is_marked() && !planted(Canary::UpdateOfRemoved)
}

/// Whether `parent`, which is locked, still is the parent of a node. `now` is the node's parent.
#[inline(always)]
pub(super) fn is_still_parent<W: Words>(parent: &Node<W>, now: &Node<W>) -> bool {
    now.is(parent) || planted(Canary::ParentUnvalidated)
}

/// Whether a descending scan stops at a node, whose successor is to its own node as `next` says:
/// only if no smaller key follows.
#[inline(always)]
pub(super) fn is_last_before(next: Ordering) -> bool {
    next.is_ge() || planted(Canary::BackwardLinkTrusted)
}

/// Takes the marked `node` out of the list before it leaves the tree: never. Returns both locks of
/// the list if `node` is still in it.
#[inline(always)]
pub(super) fn unlink_early<'g, W: Words>(
    before: Interval<'g, W>,
    node: Interval<'g, W>,
) -> Option<(Interval<'g, W>, Interval<'g, W>)> {
    if planted(Canary::ListBeforeTree) {
        // SAFETY: the caller has both locks, and `before` led to `node`.
        unsafe { before.unlink(&node) };
        return None;
    }
    Some((before, node))
}
