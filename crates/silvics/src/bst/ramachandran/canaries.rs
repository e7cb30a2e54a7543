//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::node::{Draft, Mark, Node};
use crate::canary::{Canary, planted};

/// Whether an anchor has no fate and so is in the tree (I4).
#[inline(always)]
pub(super) fn is_certainly_linked(anchor: &Node) -> bool {
    !anchor.has_fate() || planted(Canary::AnchorUnchecked)
}

/// Whether the fate of a node is that of the operation which has announced a copy there.
#[inline(always)]
pub(super) fn is_own_fate(fate: Mark) -> bool {
    fate == Mark::Replace || planted(Canary::FateTakenForGranted)
}

/// Whether an operation on a node is left to its owner: never.
#[inline(always)]
pub(super) fn is_left_to_owner() -> bool {
    planted(Canary::MarkNotHelped)
}

/// Whether a node is closed before `copy` takes its edges: always.
#[inline(always)]
pub(super) fn needs_closing(copy: &Node) -> bool {
    !(planted(Canary::OpenEdgeCopied) && copy.draft() == Draft::ForUpdate)
}

/// Whether a claimed successor is closed before the copy takes its pair: always.
#[inline(always)]
pub(super) fn needs_freezing() -> bool {
    !planted(Canary::SuccessorLeftOpen)
}

/// Whether a successor is unlinked before the copy has its pair: never.
#[inline(always)]
pub(super) fn leaves_before_promotion() -> bool {
    planted(Canary::PromotedTooLate)
}

/// Whether the thread that unlinks a successor retires it: always.
#[inline(always)]
pub(super) fn is_successor_retired() -> bool {
    !planted(Canary::SuccessorLeaked)
}

/// Whether a mark on an edge counts as its owner's fate: never, as the edge may be reserved only.
#[inline(always)]
pub(super) fn counts_as_fate() -> bool {
    planted(Canary::ReservedTakenForFate)
}

/// Whether the thread that unlinks `node` retires it: always.
#[inline(always)]
pub(super) fn is_retired_at_unlink(node: &Node) -> bool {
    !planted(Canary::RetiredAtClaim) || node.fate() == Mark::Replace
}

/// Whether a removal retires its node when it has claimed it: never, since the node is linked.
#[inline(always)]
pub(super) fn is_retired_at_claim() -> bool {
    planted(Canary::RetiredAtClaim)
}
