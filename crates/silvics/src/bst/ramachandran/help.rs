//! The steps that complete a node's fate, taken by any thread that needs it completed.

use super::Ramachandran;
use super::build::Build;
use super::canaries::{
    counts_as_fate, is_left_to_owner, is_retired_at_unlink, is_successor_retired,
    leaves_before_promotion, needs_closing, needs_freezing,
};
use super::node::{Draft, Edge, Mark, Node};
use super::ops::Place;
use crate::domain::Guard;
use silvics_pool::Placement;
use std::ptr::NonNull;

impl<P: Placement, B: Build> Ramachandran<P, B> {
    /// Completes the operation that has marked or announced something at `node`: settles which fate
    /// the node has, and carries it out.
    #[cold]
    pub(super) fn help<'g>(&'g self, node: &'g Node, guard: &'g Guard) {
        if is_left_to_owner() {
            return;
        }
        if node.is_announced() {
            node.decide(Mark::Replace);
        } else if node.right().load().mark() == Mark::Reserved {
            node.decide(Mark::SpliceRight);
        }
        if node.has_fate() {
            self.help_target(node, None, guard);
        }
    }

    /// Carries out the fate of `node`, which has one (paper: `helpTargetNode`,
    /// `helpSuccessorNode`). On return the node has left the tree. `place` is the place where it
    /// was last seen.
    pub(super) fn help_target<'g>(
        &'g self,
        node: &'g Node,
        place: Option<Place<'g>>,
        guard: &'g Guard,
    ) {
        let left = node.left().load();
        debug_assert!(left.is_marked() || cfg!(feature = "canaries"), "no fate to carry out");
        // SAFETY: I7: the edge was read from a node that was reached under the guard.
        if let Some(target) = unsafe { left.promoted_for() } {
            // The target leaves after its successor.
            return self.help_target(target, None, guard);
        }
        let heir = if left.mark() == Mark::Replace {
            self.complete_copy(node, guard)
        } else {
            node.close();
            Self::only_child(node)
        };
        self.cleanup(node, heir, place, guard);
    }

    /// The heir of a node that is spliced out: its only child, or an empty edge.
    fn only_child(node: &Node) -> Edge {
        let left = node.left().load();
        if left.is_empty() { node.right().load().clean() } else { left.clean() }
    }

    /// Completes the copy that is to replace `node` and returns the edge to it. If the copy needs a
    /// successor's pair and there is no successor, it returns the edge to the node's only child.
    fn complete_copy<'g>(&'g self, node: &'g Node, guard: &'g Guard) -> Edge {
        // SAFETY: I7: the node was reached under the guard. Its fate is [`Mark::Replace`], as the
        // caller has checked.
        let copy = unsafe { node.copy() };
        if copy.draft() == Draft::Wanting {
            if node.left().load().is_empty() {
                node.close();
                return Self::only_child(node);
            }
            if !self.find_and_mark_successor(node, copy, guard) {
                return Self::only_child(node);
            }
        }
        if copy.draft() == Draft::Promoted {
            self.remove_successor(node, guard);
        }
        if needs_closing(copy) {
            node.close();
        }
        copy.take_edges(node);
        Edge::to(NonNull::from(copy))
    }

    /// The leftmost node below the right edge of `node`, and its place (paper: `findSmallest`).
    fn find_smallest<'g>(node: &'g Node, _guard: &'g Guard) -> Option<(&'g Node, Place<'g>)> {
        let mut place = Place { edge: node.right(), owner: Some(node) };
        // SAFETY: I7: the edge was read from a node that was reached under the guard.
        let mut smallest = unsafe { place.edge.load().child() }?;
        // SAFETY: I7: the edge was read from a node that was reached under the guard.
        while let Some(smaller) = unsafe { smallest.left().load().child() } {
            place = Place { edge: smallest.left(), owner: Some(smallest) };
            smallest = smaller;
        }
        Some((smallest, place))
    }

    /// Claims the successor of `node`, closes it, and gives its pair to the copy (paper:
    /// `findAndMarkSuccessor`, and the promotion). Returns false if there is no successor: the
    /// right edge is empty and closed.
    fn find_and_mark_successor<'g>(
        &'g self,
        node: &'g Node,
        copy: &Node,
        guard: &'g Guard,
    ) -> bool {
        loop {
            let right = node.right().load();
            // This load comes after that of the edge: a successor leaves the edge empty only after
            // its promotion.
            if copy.draft() != Draft::Wanting {
                return true;
            }
            if right.is_empty() {
                if right.is_marked() {
                    return false;
                }
                let _ = node.right().try_mark(right, Mark::Frozen);
                continue;
            }
            let Some((smallest, place)) = Self::find_smallest(node, guard) else {
                continue;
            };
            let left = smallest.left().load();
            // SAFETY: I7: the edge was read from a node that was reached under the guard.
            match unsafe { left.promoted_for() } {
                Some(target) if std::ptr::eq(target, node) => {}
                None if !left.is_marked() => {
                    // The draft is read after the edge: if another successor had been promoted and
                    // removed, this node would not be the smallest by that edge (I5).
                    if !left.is_empty() || copy.draft() != Draft::Wanting {
                        continue;
                    }
                    if !smallest.left().try_promote(left, node) {
                        continue;
                    }
                }
                _ => {
                    self.help_target(smallest, Some(place), guard);
                    continue;
                }
            }
            if needs_freezing() {
                smallest.close();
            }
            if leaves_before_promotion() {
                self.remove_successor(node, guard);
            }
            copy.take_pair(smallest);
            return true;
        }
    }

    /// Unlinks the successor of `node`, whose copy has the successor's pair, unless that is done
    /// (paper: `removeSuccessor`).
    fn remove_successor<'g>(&'g self, node: &'g Node, guard: &'g Guard) {
        loop {
            // The edge is closed after the successor has left, or empty because it has left.
            if node.right().load().is_marked() {
                return;
            }
            let Some((smallest, place)) = Self::find_smallest(node, guard) else {
                return;
            };
            let left = smallest.left().load();
            // SAFETY: I7: the edge was read from a node that was reached under the guard.
            let target = unsafe { left.promoted_for() };
            if !target.is_some_and(|target| std::ptr::eq(target, node)) {
                return; // another node is the smallest by now
            }
            if place.edge.try_swing(smallest, smallest.right().load().clean()) {
                if is_successor_retired() {
                    // SAFETY: I4: the swing of this thread has unlinked the node, so this thread
                    // alone retires it.
                    unsafe { self.nodes.retire(NonNull::from(smallest), guard) };
                }
                return;
            }
            self.clear(place, node, guard);
        }
    }

    /// If the edge at `place` is marked, completes the operation that has marked it. An operation
    /// on `node` is the caller's and is left alone. A right edge may be reserved before its owner
    /// has a fate.
    fn clear<'g>(&'g self, place: Place<'g>, node: &Node, guard: &'g Guard) {
        if let Some(owner) = place.owner
            && place.edge.load().is_marked()
            && !std::ptr::eq(owner, node)
        {
            if counts_as_fate() {
                return self.help_target(owner, None, guard);
            }
            self.help(owner, guard);
        }
    }

    /// Swings the edge that leads to `node`, which is closed, to its heir (paper: `cleanup`),
    /// unless that is done.
    fn cleanup<'g>(
        &'g self,
        node: &'g Node,
        heir: Edge,
        place: Option<Place<'g>>,
        guard: &'g Guard,
    ) {
        let mut place = place.or_else(|| self.locate(node, guard));
        while let Some(at) = place {
            if at.edge.try_swing(node, heir) {
                // LP(remove; insert, compare_exchange: replaced): the exchange
                if is_retired_at_unlink(node) {
                    // SAFETY: I4: the swing of this thread has unlinked the node, so this thread
                    // alone retires it.
                    unsafe { self.nodes.retire(NonNull::from(node), guard) };
                }
                return;
            }
            self.clear(at, node, guard);
            place = self.locate(node, guard);
        }
    }
}
