//! The steps of the algorithm in which a mistake can be planted, each with its correct answer.

use super::Natarajan;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::Edge;
use crate::bst::home::NodeStore;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use std::ptr::NonNull;

/// Whether an operation helps before it searches again: always.
#[inline(always)]
pub(super) fn must_help() -> bool {
    !planted(Canary::MissingHelp)
}

/// The value that an edge must have for a replacement of its leaf: unmarked.
#[inline(always)]
pub(super) fn replaceable(edge: Edge) -> Edge {
    if planted(Canary::UpsertResurrects) { edge } else { edge.clean() }
}

/// The value that an edge must have for an insertion beside its leaf: unmarked.
#[inline(always)]
pub(super) fn growable(edge: Edge) -> Edge {
    if planted(Canary::InsertIgnoresMark) { edge } else { edge.clean() }
}

/// Whether a removal retires its leaf when it has flagged the edge: never, as the leaf is linked.
#[inline(always)]
pub(super) fn is_retired_at_flag() -> bool {
    planted(Canary::RetiredBeforeUnlink)
}

/// Freezes the edge to a sibling and returns its final value.
#[inline(always)]
pub(super) fn freeze(edge: &AtomicEdge) -> Edge {
    if planted(Canary::SiblingNotTagged) { edge.load() } else { edge.tag() }
}

/// The first node that is retired of a chain from `top` to `parent`: `top`.
#[inline(always)]
pub(super) fn first_retired<T>(top: NonNull<T>, parent: &T) -> NonNull<T> {
    if planted(Canary::ChainLeaked) { NonNull::from(parent) } else { top }
}

/// Whether a scan takes the subtree below `edge` for removed: never.
#[inline(always)]
pub(super) fn counts_as_gone(edge: Edge) -> bool {
    edge.is_tagged() && planted(Canary::ScanTakesFrozenForGone)
}

impl<P: Placement, B: Build> Natarajan<P, B> {
    /// Retires an internal node and the flagged leaf beside it.
    ///
    /// # Safety
    /// Both are unlinked, by a CAS of the calling thread (I4), and this is called once for them.
    #[inline(always)]
    pub(super) unsafe fn retire_both(
        &self,
        leaf: NonNull<B::Leaf>,
        inner: NonNull<B::Inner>,
        guard: &Guard,
    ) {
        // SAFETY: I4: the caller promises that its CAS has unlinked both, and that it retires them
        // once. The planted mistake frees them, which breaks I5.
        unsafe {
            if planted(Canary::FreedAtOnce) {
                self.objects.free_leaf(leaf);
                self.objects.free_inner(inner);
                return;
            }
            if !planted(Canary::RetiredBeforeUnlink) {
                self.objects.retire_leaf(leaf, guard);
            }
            self.objects.retire_inner(inner, guard);
        }
    }
}
