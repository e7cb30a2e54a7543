//! The descents and the verbs, in the paper's order.

use super::super::home::{Fresh, NodeStore};
use super::super::side::Side;
use super::Ticket;
use super::build::Build;
use super::canaries::{are_given_back, is_parent_retired, take_for_good, validated};
use super::node::{AtomicEdge, Place};
use crate::bst::external::{Child, Edge, InnerWords, LeafWords};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::backoff::Backoff;

/// The end of an update's descent.
struct SeekRecord<'g, B: Build> {
    /// The edge to the leaf's parent, or to the leaf while the tree has only the sentinel.
    grandparent: Place<'g, B>,
    /// The edge to the leaf.
    parent: Place<'g, B>,
    leaf: &'g B::Leaf,
}

impl<P: Placement, B: Build> Ticket<P, B> {
    /// The leaf at which the search for `key` ends.
    #[inline(always)]
    pub(super) fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> &'g B::Leaf {
        let mut edge = self.root().load();
        loop {
            // SAFETY: I1, I6: the edge was read from the holder or from a node that was reached
            // under the guard.
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

    /// Searches for `key` and records the versions on the path (paper: the parse phase).
    fn parse<'g>(&'g self, key: u64, _guard: &'g Guard) -> SeekRecord<'g, B> {
        let mut grandparent = Place::look(&self.holder, Side::LEFT);
        let mut parent = Place { ..grandparent };
        loop {
            // SAFETY: I1, I6: the edge was read from the holder or from a node that was reached
            // under the guard.
            match unsafe { parent.edge.child::<B::Inner, B::Leaf>() } {
                Child::Leaf(leaf) => {
                    P::saw(|| B::Leaf::LEAF.ended(leaf));
                    return SeekRecord { grandparent, parent, leaf };
                }
                Child::Inner(inner) => {
                    let side = Side::of(key, inner.key());
                    P::saw(|| B::Inner::INNER.passed(inner, side.index()));
                    let next = Place::look(inner, side);
                    grandparent = std::mem::replace(&mut parent, next);
                }
            }
        }
    }

    /// The leaf's value if the leaf has the key.
    #[inline(always)]
    pub(super) fn value_in(&self, leaf: &B::Leaf, key: u64) -> Option<u64> {
        let found = leaf.key() == key && !self.is_sentinel(leaf);
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
        let mut backoff = Backoff::new();
        loop {
            let record = self.parse(key, guard);
            let state = self.value_in(record.leaf, key);
            let done = match (verb.step(state), state) {
                // LP(kept): the load of the edge to the leaf.
                (Step::Keep, _) | (Step::Take, None) => true,
                (Step::Take, Some(_)) => self.take(&record, guard),
                (Step::Put(value), Some(_)) => {
                    self.replace(&record, key, value, &mut spare, guard)?
                }
                (Step::Put(value), None) => self.grow(&record, key, value, &mut spare, guard)?,
            };
            if done {
                return Ok(state);
            }
            backoff.wait();
        }
    }

    /// Replaces the found leaf, which has the key, by a new leaf. Returns false if its edge has
    /// changed.
    fn replace(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spare: &mut impl Fresh<B::Inner, B::Leaf>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let leaf = spare.leaf(B::Leaf::new(key, value), guard)?;
        let place = validated(&record.parent);
        let Some(mut edge) = place.hold() else { return Ok(false) };
        edge.set(Edge::to_leaf(leaf)); // LP(insert, compare_exchange: replaced)
        drop(edge);
        spare.leaf_linked();
        // SAFETY: I5: the store of this thread has unlinked the old leaf, to which the edge still
        // led by I3, so this thread alone retires it.
        unsafe { self.objects.retire_leaf(place.edge.leaf_ptr(), guard) };
        Ok(true)
    }

    /// Links a new leaf beside the found one, under a new internal node. Returns false if the edge
    /// to the found leaf has changed.
    fn grow(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spare: &mut impl Fresh<B::Inner, B::Leaf>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let beside = |leaf| {
            let (leaf, other) = (Edge::to_leaf(leaf), record.parent.edge);
            // The smaller key goes left and routes (I2). The sentinel is larger than any key.
            if self.is_sentinel(record.leaf) || key < record.leaf.key() {
                B::Inner::new(key, [leaf, other])
            } else {
                B::Inner::new(record.leaf.key(), [other, leaf])
            }
        };
        let inner = spare.pair(B::Leaf::new(key, value), beside, guard)?;
        let Some(mut edge) = record.parent.hold() else { return Ok(false) };
        edge.set(Edge::to_inner(inner)); // LP(insert of an absent key)
        drop(edge);
        spare.pair_linked();
        self.frame.len.add(1);
        Ok(true)
    }

    /// Removes the found leaf and its parent: the parent's other edge takes the place of the edge
    /// to the parent. Returns false if one of the three edges has changed.
    fn take(&self, record: &SeekRecord<'_, B>, guard: &Guard) -> bool {
        let SeekRecord { grandparent, parent, .. } = record;
        let Some(mut edge) = grandparent.hold() else { return false };
        let locks = parent.node.control();
        // The locks stay taken, since nothing must be linked below the parent any more (I4).
        if !take_for_good(locks, parent) {
            return false;
        }
        let sibling = parent.node.children()[parent.side.other()].load();
        edge.set(sibling); // LP(remove)
        drop(edge);
        if are_given_back() {
            // SAFETY: both locks were taken above. Never reached without the planted mistake,
            // which breaks I4.
            unsafe {
                locks.give_back(Side::LEFT, true);
                locks.give_back(Side::RIGHT, true);
            }
        }
        self.frame.len.add(-1);
        // SAFETY: I5: the store of this thread has unlinked the parent, and with it the leaf, so
        // this thread alone retires both.
        unsafe {
            self.objects.retire_leaf(parent.edge.leaf_ptr(), guard);
            if is_parent_retired() {
                self.objects.retire_inner(grandparent.edge.inner_ptr(), guard);
            }
        }
        true
    }
}
