//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::super::side::Side;
use super::build::Words;
use super::node::{Held, Node, Version};
use crate::canary::{Canary, planted};
use crate::domain::Guard;

/// Whether what was read below `node` since `version` may belong to another place by now.
#[inline(always)]
pub(super) fn has_moved<W: Words>(node: &Node<W>, version: Version) -> bool {
    !planted(Canary::DescentUnvalidated) && node.has_shrunk_since(version)
}

/// Whether `parent`, which is locked, may have stopped being the place of a key since `version`.
#[inline(always)]
pub(super) fn is_no_longer_the_place<W: Words>(parent: &Held<'_, W>, version: Version) -> bool {
    !planted(Canary::AttachUnvalidated) && parent.has_shrunk_since(version)
}

/// The link of `child` towards `key`, if a descent loads it before the version of `child`: never.
#[inline(always)]
pub(super) fn follow_early<'g, W: Words>(
    child: &'g Node<W>,
    key: u64,
    _guard: &'g Guard,
) -> Option<&'g Node<W>> {
    if !planted(Canary::NextReadEarly) {
        return None;
    }
    // SAFETY: the caller has reached `child` under the guard, as `follow` demands. The planted
    // mistake breaks I3 alone.
    unsafe { child.follow(Side::of(key, child.key())) }
}

/// The link by which a descent goes on: the one that was loaded after the node's version.
#[inline(always)]
pub(super) fn link_to_take<'g, W>(
    early: Option<&'g Node<W>>,
    late: Option<&'g Node<W>>,
) -> Option<&'g Node<W>> {
    if planted(Canary::NextReadEarly) { early } else { late }
}

/// Whether a lookup believes a presence that has changed since it read the value: never.
#[inline(always)]
pub(super) fn is_presence_trusted() -> bool {
    planted(Canary::PresenceUnvalidated)
}

/// Whether an insertion that finds its place taken is counted: never.
#[inline(always)]
pub(super) fn is_failure_counted() -> bool {
    planted(Canary::CountedOnFailure)
}

/// Whether the version of a node that leaves the tree says so: always.
#[inline(always)]
pub(super) fn says_unlinked() -> bool {
    !planted(Canary::UnlinkKeepsVersion)
}

/// Whether the version of a node that a rotation moves down is marked and counted: always.
#[inline(always)]
pub(super) fn is_move_versioned() -> bool {
    !planted(Canary::RotationKeepsVersion)
}

/// Whether a rotation has moved `child`, the reason to look at a node, below another node than
/// `parent`, which is locked.
#[inline(always)]
pub(super) fn is_damage_elsewhere<W: Words>(child: &Node<W>, parent: &Held<'_, W>) -> bool {
    !child.is_child_of(parent) && !planted(Canary::DamageLost)
}

/// Whether a rotation has moved `node` below another node before the repair had locked `parent`.
#[inline(always)]
pub(super) fn has_other_parent<W: Words>(node: &Node<W>, parent: &Held<'_, W>) -> bool {
    !node.is_child_of(parent) && !planted(Canary::RepairsBelowOldParent)
}
