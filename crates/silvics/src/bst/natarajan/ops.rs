//! `seek`, the verbs, and `cleanup`, in the paper's order and with its names.

use super::super::home::{Fresh, NodeStore};
use super::super::side::Side;
use super::Natarajan;
use super::build::Build;
use super::canaries::{
    first_retired, freeze, growable, is_retired_at_flag, must_help, replaceable,
};
use super::node::AtomicEdge;
use crate::bst::external::{Child, Edge, InnerWords, LeafWords};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use std::ptr::NonNull;

/// The end of a descent (paper: `SeekRecord`), as edges instead of nodes.
pub(super) struct SeekRecord<'g, B: Build> {
    /// The last edge on the path above the parent that was not tagged.
    ancestor: &'g AtomicEdge,
    /// The value of `ancestor`: it leads to the top of the chain that a removal cuts out.
    successor: Edge,
    /// The leaf's parent, or `None` while the tree has only the sentinel leaf.
    parent: Option<&'g B::Inner>,
    /// The edge to the leaf.
    leaf_edge: &'g AtomicEdge,
    /// The value of `leaf_edge`.
    edge: Edge,
    pub(super) leaf: &'g B::Leaf,
}

impl<P: Placement, B: Build> Natarajan<P, B> {
    /// The leaf at which the search for `key` ends.
    #[inline(always)]
    pub(super) fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> &'g B::Leaf {
        let mut edge = self.root.load();
        loop {
            // SAFETY: I1, I5: the edge was read from the root or from a node that was reached under
            // the guard.
            match unsafe { edge.child::<B::Inner, B::Leaf>() } {
                Child::Leaf(leaf) => {
                    P::saw(|| B::Leaf::LEAF.ended(leaf));
                    return leaf;
                }
                Child::Inner(inner) => {
                    let side = Side::of(key, inner.key());
                    P::saw(|| B::Inner::INNER.passed(inner, side.index()));
                    edge = side.load(inner.children(), AtomicEdge::load);
                }
            }
        }
    }

    pub(super) fn seek<'g>(&'g self, key: u64, _guard: &'g Guard) -> SeekRecord<'g, B> {
        let edge = self.root.load();
        let (mut ancestor, mut successor, mut parent) = (&self.root, edge, None);
        let (mut leaf_edge, mut edge) = (&self.root, edge);
        loop {
            // SAFETY: I1, I5: the edge was read from the root or from a node that was reached under
            // the guard.
            match unsafe { edge.child::<B::Inner, B::Leaf>() } {
                Child::Leaf(leaf) => {
                    P::saw(|| B::Leaf::LEAF.ended(leaf));
                    return SeekRecord { ancestor, successor, parent, leaf_edge, edge, leaf };
                }
                Child::Inner(inner) => {
                    if !edge.is_tagged() {
                        (ancestor, successor) = (leaf_edge, edge);
                    }
                    parent = Some(inner);
                    let side = Side::of(key, inner.key());
                    P::saw(|| B::Inner::INNER.passed(inner, side.index()));
                    leaf_edge = &inner.children()[side];
                    edge = side.load(inner.children(), AtomicEdge::load);
                }
            }
        }
    }

    /// The leaf's value if the leaf has the key.
    #[inline(always)]
    pub(super) fn value_in(&self, leaf: &B::Leaf, key: u64) -> Option<u64> {
        // Without a branch between the two: processors predict it wrongly for half of random keys.
        let found = (leaf.key() == key) & !self.is_sentinel(leaf);
        found.then_some(leaf.value())
    }

    /// Moves `key` from its current state to the one that `verb` wants, and returns the former.
    #[inline]
    pub(super) fn update(
        &self,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut spare = self.objects.spare();
        loop {
            let record = self.seek(key, guard);
            let state = self.value_in(record.leaf, key);
            let done = match (verb.step(state), state) {
                // LP(kept): the load of the edge to the leaf.
                (Step::Keep, _) | (Step::Take, None) => true,
                (Step::Take, Some(_)) => self.take(&record, key, guard),
                (Step::Put(value), Some(_)) => {
                    self.replace(&record, key, value, &mut spare, guard)?
                }
                (Step::Put(value), None) => self.grow(&record, key, value, &mut spare, guard)?,
            };
            if done {
                return Ok(state);
            }
            if must_help() {
                self.help(&record, key, guard);
            }
        }
    }

    /// Replaces the found leaf, which has the key, by a new leaf. Returns whether that took effect.
    fn replace(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spare: &mut impl Fresh<B::Inner, B::Leaf>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let leaf = spare.leaf(B::Leaf::new(key, value), guard)?;
        let current = replaceable(record.edge);
        // LP(insert, compare_exchange: replaced)
        let replaced = record.leaf_edge.try_replace(current, Edge::to_leaf(leaf));
        if replaced {
            spare.leaf_linked();
            // SAFETY: I4: the CAS of this thread has unlinked the old leaf, so this thread alone
            // retires it.
            unsafe { self.objects.retire_leaf(record.edge.leaf_ptr(), guard) };
        }
        Ok(replaced)
    }

    /// Links a new leaf beside the found one, under a new internal node. Returns whether that took
    /// effect.
    fn grow(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spare: &mut impl Fresh<B::Inner, B::Leaf>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let other = record.edge.clean();
        let beside = |leaf| {
            let leaf = Edge::to_leaf(leaf);
            // The smaller key goes left and routes (I2). The sentinel is larger than any key.
            if self.is_sentinel(record.leaf) || key < record.leaf.key() {
                B::Inner::new(key, [leaf, other])
            } else {
                B::Inner::new(record.leaf.key(), [other, leaf])
            }
        };
        let inner = spare.pair(B::Leaf::new(key, value), beside, guard)?;
        let current = growable(record.edge);
        // LP(insert of an absent key)
        let grown = record.leaf_edge.try_replace(current, Edge::to_inner(inner));
        if grown {
            spare.pair_linked();
            self.frame.len.add(1);
        }
        Ok(grown)
    }

    /// Removes the found leaf: flags its edge (paper: injection), then cuts it out (cleanup).
    /// Returns false if the flag could not be set.
    fn take(&self, record: &SeekRecord<'_, B>, key: u64, guard: &Guard) -> bool {
        if !record.leaf_edge.try_flag(record.edge.clean()) {
            return false;
        }
        self.frame.len.add(-1);
        if is_retired_at_flag() {
            // SAFETY: never reached without the planted mistake, which breaks I4.
            unsafe { self.objects.retire_leaf(record.edge.leaf_ptr(), guard) };
        }
        if self.cleanup(record, key, guard) {
            return true;
        }
        let flagged = record.edge;
        loop {
            let record = self.seek(key, guard);
            // Another leaf is here: another thread has cut the flagged leaf out.
            if !record.edge.same_child(flagged) || self.cleanup(&record, key, guard) {
                return true;
            }
        }
    }

    /// If the edge to the found leaf is marked, completes the removal that marked it.
    fn help(&self, record: &SeekRecord<'_, B>, key: u64, guard: &Guard) {
        let edge = record.leaf_edge.load();
        if edge.same_child(record.edge) && edge != edge.clean() {
            self.cleanup(record, key, guard);
        }
    }

    /// Cuts a flagged leaf and its parent out (paper: `cleanup`): freezes the edge to the sibling,
    /// then swings the ancestor's edge from the successor to the sibling. Returns whether this call
    /// did.
    fn cleanup(&self, record: &SeekRecord<'_, B>, key: u64, guard: &Guard) -> bool {
        let Some(parent) = record.parent else {
            return false;
        };
        let side = Side::of(key, parent.key());
        let children = parent.children();
        // If the edge to the found leaf is not flagged, its sibling is the leaf being removed.
        let keep = if children[side].load().is_flagged() { side.other() } else { side };
        let sibling = freeze(&children[keep]);
        // LP(remove)
        let cut = record.ancestor.try_replace(record.successor.clean(), sibling.untagged());
        if cut {
            // SAFETY: I4: the CAS of this thread has unlinked the chain, so this thread alone
            // retires it.
            unsafe { self.retire_chain(record.successor.inner_ptr(), parent, keep, guard) };
        }
        cut
    }

    /// Retires the objects that a successful `cleanup` has cut out: the internal nodes from `top`
    /// down to `parent` and the flagged leaf beside each.
    ///
    /// # Safety
    /// They are unlinked, and the caller's CAS has unlinked them (I4).
    unsafe fn retire_chain(
        &self,
        top: NonNull<B::Inner>,
        parent: &B::Inner,
        keep: Side,
        guard: &Guard,
    ) {
        let mut node = first_retired(top, parent);
        loop {
            // SAFETY: I5: the node was reached under the guard, so it is not reclaimed.
            let inner = unsafe { node.as_ref() };
            let edges = inner.children().each_ref().map(AtomicEdge::load);
            let at_parent = std::ptr::eq(inner, parent);
            // Above the parent the path continues through the internal child (I3).
            let inner_child = if edges[Side::LEFT].is_leaf() { Side::RIGHT } else { Side::LEFT };
            let on = if at_parent { keep } else { inner_child };
            debug_assert!(
                edges[on.other()].is_flagged() && edges[on].is_tagged()
                    || cfg!(feature = "canaries")
            );
            // SAFETY: I4: the caller's CAS has unlinked both, and each is visited once.
            unsafe { self.retire_both(edges[on.other()].leaf_ptr(), node, guard) };
            if at_parent {
                return;
            }
            node = edges[on].inner_ptr();
        }
    }
}
