//! The descents and the verbs, in the paper's order.

use super::super::home::{Fresh, NodeStore};
use super::super::side::Side;
use super::Ticket;
use super::build::Build;
use super::node::{AtomicEdge, Place};
use crate::bst::external::{Child, Edge, InnerWords, LeafWords};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::backoff::Backoff;

/// Where an update's descent ended.
struct SeekRecord<'g, B: Build> {
    /// The edge to the leaf's parent; that to the leaf while the sentinel is all there is.
    grandparent: Place<'g, B>,
    /// The edge to the leaf.
    parent: Place<'g, B>,
    leaf: &'g B::Leaf,
}

impl<P: Placement, B: Build> Ticket<P, B> {
    /// The leaf where the search for `key` ends.
    #[inline(always)]
    pub(super) fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> &'g B::Leaf {
        let mut edge = self.root().load();
        loop {
            // SAFETY: read from a reachable edge under the guard.
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

    /// The same with the versions on the way (paper: the parse phase).
    fn parse<'g>(&'g self, key: u64, _guard: &'g Guard) -> SeekRecord<'g, B> {
        let mut grandparent = Place::look(&self.holder, Side::LEFT);
        let mut parent = Place { ..grandparent };
        loop {
            // SAFETY: as in `search`.
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

    /// The leaf's value if it is the key's.
    #[inline(always)]
    pub(super) fn value_in(&self, leaf: &B::Leaf, key: u64) -> Option<u64> {
        let found = leaf.key() == key && !self.is_sentinel(leaf);
        found.then_some(leaf.value())
    }

    /// Brings `key` from the state it is found in to the one `verb` wants, and returns the state
    /// found.
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

    /// Puts a new leaf in the place of the one found, which has the same key. False if its edge has
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
        let mut place = Place { ..record.parent };
        if planted(Canary::UpsertUnvalidated) {
            place.seen = place.node.control().look();
        }
        let Some(mut edge) = place.hold() else { return Ok(false) };
        edge.set(Edge::to_leaf(leaf)); // LP(insert, compare_exchange: replaced)
        drop(edge);
        spare.leaf_linked();
        // SAFETY: the edge, unchanged since it was read, no longer leads to the old leaf (I5).
        unsafe { self.objects.retire_leaf(place.edge.leaf_ptr(), guard) };
        Ok(true)
    }

    /// Puts a new leaf beside the one found, under a new internal node. False if the edge to the leaf
    /// found has changed.
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
            // The smaller key goes left and routes (I2); the sentinel is larger than any.
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

    /// Removes the leaf found, and its parent: the parent's other edge takes the place of the edge to
    /// the parent. False if one of the three edges has changed.
    fn take(&self, record: &SeekRecord<'_, B>, guard: &Guard) -> bool {
        let SeekRecord { grandparent, parent, .. } = record;
        let Some(mut edge) = grandparent.hold() else { return false };
        let locks = parent.node.control();
        // For good: nothing must be linked below the parent any more (I4).
        let taken = if planted(Canary::SiblingUnlocked) {
            locks.try_take(parent.side, parent.seen)
        } else {
            locks.try_take_both(parent.seen)
        };
        if !taken {
            return false;
        }
        let sibling = parent.node.children()[parent.side.other()].load();
        edge.set(sibling); // LP(remove)
        drop(edge);
        if planted(Canary::RemovedUnlocked) {
            // SAFETY: taken above.
            unsafe {
                locks.give_back(Side::LEFT, true);
                locks.give_back(Side::RIGHT, true);
            }
        }
        self.frame.len.add(-1);
        // SAFETY: the edge that led to the parent, and it alone to the leaf, leads past both (I5).
        unsafe {
            self.objects.retire_leaf(parent.edge.leaf_ptr(), guard);
            if !planted(Canary::ParentLeaked) {
                self.objects.retire_inner(grandparent.edge.inner_ptr(), guard);
            }
        }
        true
    }
}
