//! What is done with a node that has a fate, by whoever needs it done.

use super::Ramachandran;
use super::build::Build;
use super::node::{Draft, Edge, Mark, Node};
use super::ops::Place;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use silvics_pool::Placement;
use std::ptr::NonNull;

impl<P: Placement, B: Build> Ramachandran<P, B> {
    /// Gets an operation out of the way that has marked or announced something at `node`: settles
    /// which fate the node has, and carries it out.
    #[cold]
    pub(super) fn help<'g>(&'g self, node: &'g Node, guard: &'g Guard) {
        if planted(Canary::MarkNotHelped) {
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

    /// Carries out the fate of `node`, which has one (paper: `helpTargetNode`, `helpSuccessorNode`). When this
    /// returns the node has left the tree. `place` is where it was last seen.
    pub(super) fn help_target<'g>(
        &'g self,
        node: &'g Node,
        place: Option<Place<'g>>,
        guard: &'g Guard,
    ) {
        let left = node.left().load();
        debug_assert!(left.is_marked() || cfg!(feature = "canaries"), "no fate to carry out");
        // SAFETY: the node was reached under the guard.
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

    /// What a node is spliced out for: its only child, or an empty edge.
    fn only_child(node: &Node) -> Edge {
        let left = node.left().load();
        if left.is_empty() { node.right().load().clean() } else { left.clean() }
    }

    /// Completes the copy that is to replace `node` and returns the edge to it; or, if the copy is
    /// to bring a successor's pair and there is no successor, the edge to the node's only child.
    fn complete_copy<'g>(&'g self, node: &'g Node, guard: &'g Guard) -> Edge {
        // SAFETY: reached under the guard, and its fate is to be replaced.
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
        if !(planted(Canary::OpenEdgeCopied) && copy.draft() == Draft::ForUpdate) {
            node.close();
        }
        copy.take_edges(node);
        Edge::to(NonNull::from(copy))
    }

    /// The leftmost node below the right edge of `node`, and where it is (paper: `findSmallest`).
    fn find_smallest<'g>(node: &'g Node, _guard: &'g Guard) -> Option<(&'g Node, Place<'g>)> {
        let mut place = Place { edge: node.right(), owner: Some(node) };
        // SAFETY: read from an edge of a node that was reached under the guard.
        let mut smallest = unsafe { place.edge.load().child() }?;
        // SAFETY: as above.
        while let Some(smaller) = unsafe { smallest.left().load().child() } {
            place = Place { edge: smallest.left(), owner: Some(smallest) };
            smallest = smaller;
        }
        Some((smallest, place))
    }

    /// Claims the successor of `node`, closes it, and gives the copy its pair (paper:
    /// `findAndMarkSuccessor`, and the promotion). False if there is none: the right edge is empty
    /// and closed.
    fn find_and_mark_successor<'g>(
        &'g self,
        node: &'g Node,
        copy: &Node,
        guard: &'g Guard,
    ) -> bool {
        loop {
            let right = node.right().load();
            // After the load of the edge: a successor leaves it empty after it was promoted.
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
            // SAFETY: the smallest was reached under the guard.
            match unsafe { left.promoted_for() } {
                Some(target) if std::ptr::eq(target, node) => {}
                None if !left.is_marked() => {
                    // The draft after the edge: if another successor had been promoted and removed,
                    // this would not be the smallest by that edge (I5).
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
            if !planted(Canary::SuccessorLeftOpen) {
                smallest.close();
            }
            if planted(Canary::PromotedTooLate) {
                self.remove_successor(node, guard);
            }
            copy.take_pair(smallest);
            return true;
        }
    }

    /// Unlinks the successor of `node`, whose copy has its pair, unless that is done (paper:
    /// `removeSuccessor`).
    fn remove_successor<'g>(&'g self, node: &'g Node, guard: &'g Guard) {
        loop {
            // Closed after the successor is gone, or empty because of that.
            if node.right().load().is_marked() {
                return;
            }
            let Some((smallest, place)) = Self::find_smallest(node, guard) else {
                return;
            };
            let left = smallest.left().load();
            // SAFETY: the smallest was reached under the guard.
            let target = unsafe { left.promoted_for() };
            if !target.is_some_and(|target| std::ptr::eq(target, node)) {
                return; // another is the smallest by now
            }
            if place.edge.try_swing(smallest, smallest.right().load().clean()) {
                if !planted(Canary::SuccessorLeaked) {
                    // SAFETY: I4: the swing has unlinked it.
                    unsafe { self.nodes.retire(NonNull::from(smallest), guard) };
                }
                return;
            }
            self.clear(place, node, guard);
        }
    }

    /// If the edge at `place` is marked, gets the operation that has marked it out of the way; not
    /// that on `node`, which is the caller's. A right edge may be reserved before its owner has a
    /// fate.
    fn clear<'g>(&'g self, place: Place<'g>, node: &Node, guard: &'g Guard) {
        if let Some(owner) = place.owner
            && place.edge.load().is_marked()
            && !std::ptr::eq(owner, node)
        {
            if planted(Canary::ReservedTakenForFate) {
                return self.help_target(owner, None, guard);
            }
            self.help(owner, guard);
        }
    }

    /// Swings the edge that leads to `node`, which is closed, to its heir (paper: `cleanup`), unless
    /// that is done.
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
                if !planted(Canary::RetiredAtClaim) || node.fate() == Mark::Replace {
                    // SAFETY: I4: the swing has unlinked it.
                    unsafe { self.nodes.retire(NonNull::from(node), guard) };
                }
                return;
            }
            self.clear(at, node, guard);
            place = self.locate(node, guard);
        }
    }
}
