//! `seek`, the verbs, and `cleanup`, in the paper's order and with its names.

use super::super::home::{Fresh, NodeStore};
use super::super::side::Side;
use super::Natarajan;
use super::build::Build;
use super::node::AtomicEdge;
use crate::bst::external::{Child, Edge, InnerWords, LeafWords};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use std::ptr::NonNull;

/// Where a descent ended (paper: `SeekRecord`), as edges instead of nodes.
pub(super) struct SeekRecord<'g, B: Build> {
    /// The last edge on the path that was not tagged, above the parent …
    ancestor: &'g AtomicEdge,
    /// … and what it held: the top of the chain that a removal cuts out.
    successor: Edge,
    /// The leaf's parent; none while the sentinel leaf is all there is.
    parent: Option<&'g B::Inner>,
    /// The edge to the leaf, and what it held.
    leaf_edge: &'g AtomicEdge,
    edge: Edge,
    pub(super) leaf: &'g B::Leaf,
}

impl<P: Placement, B: Build> Natarajan<P, B> {
    /// The leaf where the search for `key` ends.
    #[inline(always)]
    pub(super) fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> &'g B::Leaf {
        let mut edge = self.root.load();
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

    pub(super) fn seek<'g>(&'g self, key: u64, _guard: &'g Guard) -> SeekRecord<'g, B> {
        let edge = self.root.load();
        let (mut ancestor, mut successor, mut parent) = (&self.root, edge, None);
        let (mut leaf_edge, mut edge) = (&self.root, edge);
        loop {
            // SAFETY: as in `search`.
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

    /// The leaf's value if it is the key's.
    #[inline(always)]
    pub(super) fn value_in(&self, leaf: &B::Leaf, key: u64) -> Option<u64> {
        let found = leaf.key() == key && !self.is_sentinel(leaf);
        found.then_some(leaf.value())
    }

    /// Brings `key` from the state it is found in to the one `verb` wants, and returns the
    /// state found.
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
            if !planted(Canary::MissingHelp) {
                self.help(&record, key, guard);
            }
        }
    }

    /// Puts a new leaf in the place of the one found, which has the same key.
    fn replace(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spare: &mut impl Fresh<B::Inner, B::Leaf>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let leaf = spare.leaf(B::Leaf::new(key, value), guard)?;
        let ignored = planted(Canary::UpsertResurrects);
        let clean = if ignored { record.edge } else { record.edge.clean() };
        let replaced = record.leaf_edge.try_replace(clean, Edge::to_leaf(leaf)); // LP(insert, compare_exchange: replaced)
        if replaced {
            spare.leaf_linked();
            // SAFETY: the edge no longer leads to the old leaf (I4).
            unsafe { self.objects.retire_leaf(record.edge.leaf_ptr(), guard) };
        }
        Ok(replaced)
    }

    /// Puts a new leaf beside the one found, under a new internal node.
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
            // The smaller key goes left and routes (I2); the sentinel is larger than any.
            if self.is_sentinel(record.leaf) || key < record.leaf.key() {
                B::Inner::new(key, [leaf, other])
            } else {
                B::Inner::new(record.leaf.key(), [other, leaf])
            }
        };
        let inner = spare.pair(B::Leaf::new(key, value), beside, guard)?;
        let current = if planted(Canary::InsertIgnoresMark) { record.edge } else { other };
        let grown = record.leaf_edge.try_replace(current, Edge::to_inner(inner)); // LP(insert of an absent key)
        if grown {
            spare.pair_linked();
            self.frame.len.add(1);
        }
        Ok(grown)
    }

    /// Removes the leaf found: flags its edge (paper: injection), then cuts it out (cleanup).
    /// False if the flag could not be set.
    fn take(&self, record: &SeekRecord<'_, B>, key: u64, guard: &Guard) -> bool {
        if !record.leaf_edge.try_flag(record.edge.clean()) {
            return false;
        }
        self.frame.len.add(-1);
        if planted(Canary::RetiredBeforeUnlink) {
            // SAFETY: none: that is the mistake.
            unsafe { self.objects.retire_leaf(record.edge.leaf_ptr(), guard) };
        }
        if self.cleanup(record, key, guard) {
            return true;
        }
        let flagged = record.edge;
        loop {
            let record = self.seek(key, guard);
            // Another leaf, or none: somebody else has cut ours out.
            if !record.edge.same_child(flagged) || self.cleanup(&record, key, guard) {
                return true;
            }
        }
    }

    /// If the edge to the leaf found is marked, finishes the removal that marked it.
    fn help(&self, record: &SeekRecord<'_, B>, key: u64, guard: &Guard) {
        let edge = record.leaf_edge.load();
        if edge.same_child(record.edge) && edge != edge.clean() {
            self.cleanup(record, key, guard);
        }
    }

    /// Cuts a flagged leaf and its parent out (paper: `cleanup`): freezes the edge to the sibling,
    /// then swings the ancestor's edge from the successor to the sibling. True if this call did.
    fn cleanup(&self, record: &SeekRecord<'_, B>, key: u64, guard: &Guard) -> bool {
        let Some(parent) = record.parent else {
            return false;
        };
        let side = Side::of(key, parent.key());
        let children = parent.children();
        // If the edge to our leaf is not flagged, the sibling is the one being removed.
        let keep = if children[side].load().is_flagged() { side.other() } else { side };
        let sibling = if planted(Canary::SiblingNotTagged) {
            children[keep].load()
        } else {
            children[keep].tag()
        };
        let cut = record.ancestor.try_replace(record.successor.clean(), sibling.untagged()); // LP(remove)
        if cut {
            // SAFETY: the swing made the chain unreachable, and only one thread's swing can (I4).
            unsafe { self.retire_chain(record.successor.inner_ptr(), parent, keep, guard) };
        }
        cut
    }

    /// Retires what a successful `cleanup` has cut out: the internal nodes from `top` down to
    /// `parent` and the flagged leaf beside each.
    ///
    /// # Safety
    /// They are unreachable, and the caller is the only one to retire them.
    unsafe fn retire_chain(
        &self,
        top: NonNull<B::Inner>,
        parent: &B::Inner,
        keep: Side,
        guard: &Guard,
    ) {
        let mut node = if planted(Canary::ChainLeaked) { NonNull::from(parent) } else { top };
        loop {
            // SAFETY: not yet retired, and the guard is still held.
            let inner = unsafe { node.as_ref() };
            let edges = inner.children().each_ref().map(AtomicEdge::load);
            let at_parent = std::ptr::eq(inner, parent);
            // Above the parent the path goes on through the internal child (I3).
            let inner_child = if edges[Side::LEFT].is_leaf() { Side::RIGHT } else { Side::LEFT };
            let on = if at_parent { keep } else { inner_child };
            debug_assert!(
                edges[on.other()].is_flagged() && edges[on].is_tagged()
                    || cfg!(feature = "canaries")
            );
            // SAFETY: the caller's promise. For `FreedAtOnce` there is none: that is the mistake.
            unsafe {
                if planted(Canary::FreedAtOnce) {
                    self.objects.free_leaf(edges[on.other()].leaf_ptr());
                    self.objects.free_inner(node);
                } else {
                    if !planted(Canary::RetiredBeforeUnlink) {
                        self.objects.retire_leaf(edges[on.other()].leaf_ptr(), guard);
                    }
                    self.objects.retire_inner(node, guard);
                }
            }
            if at_parent {
                return;
            }
            node = edges[on].inner_ptr();
        }
    }
}
