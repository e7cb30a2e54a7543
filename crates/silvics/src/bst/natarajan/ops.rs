//! `seek`, the verbs, and `cleanup`, in the paper's order and with its names.

use super::Natarajan;
use super::node::{AtomicEdge, Child, Edge, Inner, Leaf};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use std::ptr::NonNull;

/// Where a descent ended (paper: `SeekRecord`), as edges instead of nodes.
pub(super) struct SeekRecord<'g> {
    /// The last edge on the path that was not tagged, above the parent …
    ancestor: &'g AtomicEdge,
    /// … and what it held: the top of the chain that a removal cuts out.
    successor: Edge,
    /// The leaf's parent; none while the sentinel leaf is all there is.
    parent: Option<&'g Inner>,
    /// The edge to the leaf, and what it held.
    leaf_edge: &'g AtomicEdge,
    edge: Edge,
    leaf: &'g Leaf,
}

impl<P: Placement> Natarajan<P> {
    /// The leaf where the search for `key` ends.
    #[inline(always)]
    pub(super) fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> &'g Leaf {
        let mut edge = self.root.load();
        loop {
            // SAFETY: read from a reachable edge under the guard.
            match unsafe { edge.child() } {
                Child::Leaf(leaf) => return leaf,
                Child::Inner(inner) => edge = inner.children[usize::from(key > inner.key)].load(),
            }
        }
    }

    fn seek<'g>(&'g self, key: u64, _guard: &'g Guard) -> SeekRecord<'g> {
        let edge = self.root.load();
        let (mut ancestor, mut successor, mut parent) = (&self.root, edge, None);
        let (mut leaf_edge, mut edge) = (&self.root, edge);
        loop {
            // SAFETY: as in `search`.
            match unsafe { edge.child() } {
                Child::Leaf(leaf) => {
                    return SeekRecord { ancestor, successor, parent, leaf_edge, edge, leaf };
                }
                Child::Inner(inner) => {
                    if !edge.is_tagged() {
                        (ancestor, successor) = (leaf_edge, edge);
                    }
                    parent = Some(inner);
                    leaf_edge = &inner.children[usize::from(key > inner.key)];
                    edge = leaf_edge.load();
                }
            }
        }
    }

    /// The leaf's value if it is the key's.
    #[inline(always)]
    pub(super) fn value_in(&self, leaf: &Leaf, key: u64) -> Option<u64> {
        let found = leaf.key == key && !std::ptr::eq(leaf, self.sentinel.as_ptr());
        found.then_some(leaf.value)
    }

    /// Brings `key` from the state it is found in to the one `verb` wants, and returns the
    /// state found.
    #[inline]
    pub(super) fn bring(
        &self,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let (mut spare_leaf, mut spare_inner) = (self.leaves.spare(), self.inners.spare());
        loop {
            let record = self.seek(key, guard);
            let state = self.value_in(record.leaf, key);
            let done = match (verb.step(state), state) {
                // LP(kept): the load of the edge to the leaf.
                (Step::Keep, _) | (Step::Take, None) => true,
                (Step::Take, Some(_)) => self.take(&record, key, guard),
                (Step::Put(value), Some(_)) => {
                    let leaf = spare_leaf.filled(Leaf { key, value }, guard)?;
                    let clean = if planted(Canary::UpsertResurrects) {
                        record.edge
                    } else {
                        record.edge.clean()
                    };
                    let replaced = record.leaf_edge.try_replace(clean, Edge::to_leaf(leaf)); // LP(insert, compare_exchange: replaced)
                    if replaced {
                        spare_leaf.linked();
                        // SAFETY: the edge no longer leads to the old leaf (I4).
                        unsafe { self.leaves.retire(record.edge.leaf_ptr(), guard) };
                    }
                    replaced
                }
                (Step::Put(value), None) => {
                    let leaf = spare_leaf.filled(Leaf { key, value }, guard)?;
                    let grown = self.grow(&record, key, leaf, &mut spare_inner, guard)?;
                    if grown {
                        spare_leaf.linked();
                    }
                    grown
                }
            };
            if done {
                return Ok(state);
            }
            if !planted(Canary::MissingHelp) {
                self.help(&record, key, guard);
            }
        }
    }

    /// Puts a new leaf beside the one found, under a new internal node.
    fn grow(
        &self,
        record: &SeekRecord<'_>,
        key: u64,
        leaf: NonNull<Leaf>,
        spare: &mut Spare<'_, Inner, P>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let leaf = Edge::to_leaf(leaf);
        let other = record.edge.clean();
        // The smaller key goes left and routes (I2); the sentinel is larger than any.
        let new_is_left =
            std::ptr::eq(record.leaf, self.sentinel.as_ptr()) || key < record.leaf.key;
        let (routing, children) =
            if new_is_left { (key, [leaf, other]) } else { (record.leaf.key, [other, leaf]) };
        let inner = Inner { key: routing, children: children.map(AtomicEdge::new) };
        let inner = spare.filled(inner, guard)?;
        let current = if planted(Canary::InsertIgnoresMark) { record.edge } else { other };
        let grown = record.leaf_edge.try_replace(current, Edge::to_inner(inner)); // LP(insert of an absent key)
        if grown {
            spare.linked();
            self.frame.len.add(1);
        }
        Ok(grown)
    }

    /// Removes the leaf found: flags its edge (paper: injection), then cuts it out (cleanup).
    /// False if the flag could not be set.
    fn take(&self, record: &SeekRecord<'_>, key: u64, guard: &Guard) -> bool {
        if !record.leaf_edge.try_flag(record.edge.clean()) {
            return false;
        }
        self.frame.len.add(-1);
        if planted(Canary::RetiredBeforeUnlink) {
            // SAFETY: none: that is the mistake.
            unsafe { self.leaves.retire(record.edge.leaf_ptr(), guard) };
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
    fn help(&self, record: &SeekRecord<'_>, key: u64, guard: &Guard) {
        let edge = record.leaf_edge.load();
        if edge.same_child(record.edge) && edge != edge.clean() {
            self.cleanup(record, key, guard);
        }
    }

    /// Cuts a flagged leaf and its parent out (paper: `cleanup`): freezes the edge to the sibling,
    /// then swings the ancestor's edge from the successor to the sibling. True if this call did.
    fn cleanup(&self, record: &SeekRecord<'_>, key: u64, guard: &Guard) -> bool {
        let Some(parent) = record.parent else {
            return false;
        };
        let side = usize::from(key > parent.key);
        // If the edge to our leaf is not flagged, the sibling is the one being removed.
        let keep = if parent.children[side].load().is_flagged() { 1 - side } else { side };
        let sibling = if planted(Canary::SiblingNotTagged) {
            parent.children[keep].load()
        } else {
            parent.children[keep].tag()
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
    unsafe fn retire_chain(&self, top: NonNull<Inner>, parent: &Inner, keep: usize, guard: &Guard) {
        let mut node = if planted(Canary::ChainLeaked) { NonNull::from(parent) } else { top };
        loop {
            // SAFETY: not yet retired, and the guard is still held.
            let inner = unsafe { node.as_ref() };
            let edges = [inner.children[0].load(), inner.children[1].load()];
            let at_parent = std::ptr::eq(inner, parent);
            // Above the parent the path goes on through the internal child (I3).
            let on = if at_parent { keep } else { usize::from(edges[0].is_leaf()) };
            debug_assert!(
                edges[1 - on].is_flagged() && edges[on].is_tagged() || cfg!(feature = "canaries")
            );
            // SAFETY: the caller's promise. For `FreedAtOnce` there is none: that is the mistake.
            unsafe {
                if planted(Canary::FreedAtOnce) {
                    self.leaves.free(edges[1 - on].leaf_ptr());
                    self.inners.free(node);
                } else {
                    if !planted(Canary::RetiredBeforeUnlink) {
                        self.leaves.retire(edges[1 - on].leaf_ptr(), guard);
                    }
                    self.inners.retire(node, guard);
                }
            }
            if at_parent {
                return;
            }
            node = edges[on].inner_ptr();
        }
    }
}
