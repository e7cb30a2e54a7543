//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::build::Build;
use super::node::Place;
use super::state::{Locks, TAKEN};
use crate::bst::external::InnerWords;
use crate::bst::side::Side;
use crate::canary::{Canary, planted};

/// The bits in which two halves of a word of locks must agree to count as the same: all.
///
/// The planted mistake compares one bit of the version: a version that recurs after 2 changes shows
/// the effect of one that recurs after 2^16.
#[inline(always)]
pub(super) fn compared_bits() -> u32 {
    if planted(Canary::VersionTooShort) { 2 | TAKEN } else { u32::MAX }
}

impl<'g, B: Build> Place<'g, B> {
    /// The current edge, if its version is read after it: never.
    #[inline(always)]
    pub(super) fn look_at_edge_first(node: &'g B::Inner, side: Side) -> Option<Self> {
        planted(Canary::VersionReadLate).then(|| {
            let edge = node.children()[side].load();
            Self { node, side, seen: node.control().look(), edge }
        })
    }
}

/// The place at which an upsert takes the lock, with the version that the descent has read.
#[inline(always)]
pub(super) fn validated<'g, B: Build>(place: &Place<'g, B>) -> Place<'g, B> {
    let mut place = Place { ..*place };
    if planted(Canary::UpsertUnvalidated) {
        place.seen = place.node.control().look();
    }
    place
}

/// Takes both locks of the node at `parent`, from which a removal cuts a leaf. Returns whether it
/// has them.
#[inline(always)]
pub(super) fn take_for_good<B: Build>(locks: &Locks, parent: &Place<'_, B>) -> bool {
    if planted(Canary::SiblingUnlocked) {
        return locks.try_take(parent.side, parent.seen);
    }
    locks.try_take_both(parent.seen)
}

/// Whether a removal gives the locks of the node that it has cut out back: never.
#[inline(always)]
pub(super) fn are_given_back() -> bool {
    planted(Canary::RemovedUnlocked)
}

/// Whether a removal retires the parent of its leaf: always.
#[inline(always)]
pub(super) fn is_parent_retired() -> bool {
    !planted(Canary::ParentLeaked)
}
