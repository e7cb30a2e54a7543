//! `search`, the verbs, and helping, in the paper's order and with its names.

use super::super::side::Side;
use super::Ellen;
use super::build::Build;
use super::canaries::{
    has_unlinked_leaf, is_left_to_owner, is_retired_at_backtrack, release, try_mark, uncopied,
};
use super::node::{AtomicEdge, Child, DFLAG, Descriptor, Edge, IFLAG, MARK};
use crate::bst::claim::{Claim, Clean, State};
use crate::bst::external::{InnerWords, LeafWords};
use crate::bst::home::NodePools;
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::model::touch;
use std::hint::black_box;
use std::ptr::NonNull;

/// A node on the way, and what was read in it, in this order: so the edge is as it was when the
/// word was seen clean, or later (C1).
pub(super) struct Place<'g, B: Build> {
    pub(super) node: &'g B::Inner,
    update: State<Descriptor>,
    pub(super) side: Side,
    pub(super) edge: Edge,
}

impl<B: Build> Clone for Place<'_, B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Build> Copy for Place<'_, B> {}

impl<'g, B: Build> Place<'g, B> {
    #[inline(always)]
    fn at(node: &'g B::Inner, key: u64) -> Self {
        let update = node.control().0.load();
        let side = Side::of(key, node.key());
        Self { node, update, side, edge: side.load(node.children(), AtomicEdge::load) }
    }
}

/// The end of a descent. While the tree is empty the root is its own child's grandparent; there is
/// nothing to delete then.
struct SeekRecord<'g, B: Build> {
    grandparent: Place<'g, B>,
    parent: Place<'g, B>,
    /// The leaf; none at the right end.
    leaf: Option<&'g B::Leaf>,
}

/// Objects made for an operation.
pub(super) struct Spares<'t, P: Placement, B: Build> {
    leaf: Spare<'t, B::Leaf, P>,
    sibling: Spare<'t, B::Leaf, P>,
    inner: Spare<'t, B::Inner, P>,
    descriptor: Spare<'t, Descriptor, P>,
}

/// The leaf's value if it is the key's.
#[inline(always)]
fn value_in<L: LeafWords>(leaf: &L, key: u64) -> Option<u64> {
    (leaf.key() == key).then(|| leaf.value())
}

impl<P: Placement, B: Build> Ellen<P, B> {
    /// Descends to a leaf, keeping the last two internal nodes with what their words were.
    #[inline(always)]
    fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> SeekRecord<'g, B> {
        let mut parent = Place::at(self.root(), key);
        let mut grandparent = parent;
        loop {
            // SAFETY: I7: the edge was loaded from the root or from a node that this search has
            // reached under the guard.
            let leaf = match unsafe { parent.edge.child::<B>() } {
                Child::Inner(inner) => {
                    (grandparent, parent) = (parent, Place::at(inner, key));
                    P::saw(|| B::Inner::INNER.passed(inner, Side::of(key, inner.key()).index()));
                    continue;
                }
                Child::Leaf(leaf) => {
                    P::saw(|| B::Leaf::LEAF.ended(leaf));
                    Some(leaf)
                }
                Child::End => None,
            };
            return SeekRecord { grandparent, parent, leaf };
        }
    }

    #[inline(always)]
    pub(super) fn find(&self, key: u64, guard: &Guard) -> Option<u64> {
        if B::RECORDS {
            // As the record is there for somebody else, it has to be complete.
            let record = black_box(self.search(key, guard));
            return record.leaf.and_then(|leaf| value_in(leaf, key));
        }
        let mut edge = self.root().children()[Side::LEFT].load();
        loop {
            // LP(get): the load of the edge to the leaf.
            // SAFETY: I7: the edge was loaded from the root or from a node that this search has
            // reached under the guard.
            match unsafe { edge.child::<B>() } {
                Child::Inner(inner) => {
                    let side = Side::of(key, inner.key());
                    P::saw(|| B::Inner::INNER.passed(inner, side.index()));
                    edge = side.load(inner.children(), AtomicEdge::load);
                }
                Child::Leaf(leaf) => {
                    P::saw(|| B::Leaf::LEAF.ended(leaf));
                    return value_in(leaf, key);
                }
                Child::End => return None,
            }
        }
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
        let mut spares = Spares {
            leaf: self.pools().leaves().spare(),
            sibling: self.pools().leaves().spare(),
            inner: self.pools().inners().spare(),
            descriptor: self.descriptors().spare(),
        };
        loop {
            let record = self.search(key, guard);
            let state = record.leaf.and_then(|leaf| value_in(leaf, key));
            let done = match (verb.step(state), state) {
                // LP(kept): the load of the edge to the leaf.
                (Step::Keep, _) | (Step::Take, None) => true,
                (Step::Take, Some(_)) => self.delete(&record, &mut spares, guard)?,
                (Step::Put(value), Some(_)) => {
                    self.replace(&record, key, value, &mut spares, guard)?
                }
                (Step::Put(value), None) => self.insert(&record, key, value, &mut spares, guard)?,
            };
            if done {
                return Ok(state);
            }
        }
    }

    /// The word's count if the node is clean; otherwise helps the operation that has claimed it.
    ///
    /// # Safety
    ///
    /// `update` was read under `guard` from the word of a node that was reached under it.
    unsafe fn clean(&self, update: State<Descriptor>, guard: &Guard) -> Option<Clean> {
        match update {
            State::Clean(clean) => Some(clean),
            State::Claimed(claim) => {
                if !is_left_to_owner() {
                    // SAFETY: the caller has read the claim as `help` demands.
                    unsafe { self.help(claim, guard) };
                }
                None
            }
        }
    }

    /// Puts a new leaf beside the one found, under a new internal node. The one found is copied: it
    /// must not come back to the parent's edge (I5).
    fn insert(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        // SAFETY: the search has read the word under the guard, in a node that it had reached.
        let Some(before) = (unsafe { self.clean(record.parent.update, guard) }) else {
            return Ok(false);
        };
        let leaf = Edge::to_leaf(spares.leaf.filled(B::Leaf::new(key, value), guard)?);
        // The smaller key goes left and routes (I2); the right end is larger than any.
        let (routing, children) = match record.leaf {
            None => (key, [leaf, record.parent.edge.next_end()]),
            Some(other) => {
                let copy = B::Leaf::new(other.key(), other.value());
                let sibling = match uncopied(record.parent.edge) {
                    Some(found) => found,
                    None => Edge::to_leaf(spares.sibling.filled(copy, guard)?),
                };
                if key < other.key() {
                    (key, [leaf, sibling])
                } else {
                    (other.key(), [sibling, leaf])
                }
            }
        };
        let inner = spares.inner.filled(B::Inner::new(routing, children), guard)?;
        let new = Edge::to_inner(inner);
        let inserted = self.flag_parent(&record.parent, before, new, spares, guard)?;
        if inserted {
            spares.leaf.linked();
            spares.inner.linked();
            if record.leaf.is_some() {
                spares.sibling.linked();
            }
            self.frame.len.add(1);
        }
        Ok(inserted)
    }

    /// Replaces the leaf found by another with its key: an insert whose new child is a leaf.
    fn replace(
        &self,
        record: &SeekRecord<'_, B>,
        key: u64,
        value: u64,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        // SAFETY: the search has read the word under the guard, in a node that it had reached.
        let Some(before) = (unsafe { self.clean(record.parent.update, guard) }) else {
            return Ok(false);
        };
        let leaf = spares.leaf.filled(B::Leaf::new(key, value), guard)?;
        let new = Edge::to_leaf(leaf);
        let replaced = self.flag_for_update(&record.parent, before, new, spares, guard)?;
        if replaced {
            spares.leaf.linked();
        }
        Ok(replaced)
    }

    /// Flags the parent for the replacement of its edge by `new` (paper: iflag), and has it done.
    /// False if something else came first, which has been helped.
    pub(super) fn flag_parent(
        &self,
        parent: &Place<'_, B>,
        before: Clean,
        new: Edge,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let op = Descriptor {
            word: NonNull::from(parent.node.control()),
            before,
            edge: NonNull::from(&parent.node.children()[parent.side]),
            old: parent.edge,
            new,
            parent_before: Clean::FIRST,
            leaf_side: Side::LEFT,
        };
        let op = spares.descriptor.filled(op, guard)?;
        match parent.node.control().0.try_claim(before, Claim::new(IFLAG, op)) {
            Ok(()) => {
                spares.descriptor.linked();
                // SAFETY: this call has published the descriptor under the guard.
                unsafe { self.help_insert(op, guard) };
                Ok(true)
            }
            Err(seen) => {
                // SAFETY: the word of the parent had `seen`; the search has reached the parent.
                unsafe { self.clean(seen, guard) };
                Ok(false)
            }
        }
    }

    /// Removes the leaf found, and its parent with it. False if something else came first.
    fn delete(
        &self,
        record: &SeekRecord<'_, B>,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let (grandparent, parent) = (&record.grandparent, &record.parent);
        // SAFETY: the search has read the words under the guard, in nodes that it had reached.
        let Some(before) = (unsafe { self.clean(grandparent.update, guard) }) else {
            return Ok(false);
        };
        // SAFETY: the search has read the words under the guard, in nodes that it had reached.
        let Some(parent_before) = (unsafe { self.clean(parent.update, guard) }) else {
            return Ok(false);
        };
        let op = Descriptor {
            word: NonNull::from(grandparent.node.control()),
            before,
            edge: NonNull::from(&grandparent.node.children()[grandparent.side]),
            old: grandparent.edge,
            new: Edge::END,
            parent_before,
            leaf_side: parent.side,
        };
        let op = spares.descriptor.filled(op, guard)?;
        match grandparent.node.control().0.try_claim(before, Claim::new(DFLAG, op)) {
            Ok(()) => {
                spares.descriptor.linked();
                // SAFETY: this call has published the descriptor under the guard.
                let deleted = unsafe { self.help_delete(op, guard) };
                if deleted {
                    self.frame.len.add(-1);
                }
                Ok(deleted)
            }
            Err(seen) => {
                // SAFETY: the word of the grandparent had `seen`; the search has reached it.
                unsafe { self.clean(seen, guard) };
                Ok(false)
            }
        }
    }

    /// Does what is left to do for the operation that has claimed a node.
    ///
    /// # Safety
    ///
    /// `claim` was read under `guard` from the word of a node that was reached under it.
    unsafe fn help(&self, claim: Claim<Descriptor>, guard: &Guard) {
        // SAFETY: the caller has read the descriptor as these demand. A claim with MARK was in the
        // word of the parent that its operation marks (I4).
        unsafe {
            match claim.flag {
                IFLAG => self.help_insert(claim.descriptor, guard),
                DFLAG => {
                    self.help_delete(claim.descriptor, guard);
                }
                MARK => self.help_marked(claim.descriptor, guard),
            }
        }
    }

    /// Replaces the edge, then takes the flag away. The thread that takes the flag away
    /// retires the replaced node.
    ///
    /// # Safety
    /// `descriptor` was read under `guard` from the word of a node that was reached under it, or
    /// the caller has published it under `guard`.
    unsafe fn help_insert(&self, descriptor: NonNull<Descriptor>, guard: &Guard) {
        // SAFETY: I7: the caller has published the descriptor or read it, as it must.
        let op = unsafe { &*touch(descriptor.as_ptr()) };
        // SAFETY: the edge is in the parent, which had this flag at some moment under the guard. A
        // node is not marked, and so not retired, before its flag is taken away (I4, I6), so I7
        // keeps the parent.
        // LP(insert, compare_exchange: put)
        unsafe { op.edge.as_ref() }.try_replace(op.old, op.new);
        // SAFETY: the word is in the parent, as the edge is.
        if unsafe { Self::unflag(Claim::new(IFLAG, descriptor), op) } {
            // SAFETY: I6: both are of these pools. The old leaf is linked nowhere, and no word has
            // the descriptor. No other thread has taken the flag away (C3): each is retired once.
            unsafe {
                if has_unlinked_leaf(op) {
                    self.pools().leaves().retire(op.old.leaf_ptr::<B>(), guard);
                }
                self.descriptors().retire(descriptor, guard);
            }
        } else {
            self.retire_as_helper(descriptor, guard);
        }
    }

    /// Marks the parent and goes on to remove it, or takes the grandparent's flag back if the
    /// parent has changed. Whether the leaf is removed.
    ///
    /// # Safety
    /// `descriptor` was read under `guard` from the word of a node that was reached under it, or
    /// the caller has published it under `guard`.
    unsafe fn help_delete(&self, descriptor: NonNull<Descriptor>, guard: &Guard) -> bool {
        // SAFETY: I7: the caller has published the descriptor or read it, as it must.
        let op = unsafe { &*touch(descriptor.as_ptr()) };
        // SAFETY: the grandparent had this flag at some moment under the guard. The parent was
        // linked when it got the flag, and is not retired before the flag is taken away (I4, I6),
        // hence after that moment, so I7 keeps it.
        let parent = unsafe { &*touch(op.old.inner_ptr::<B>().as_ptr()) };
        if try_mark(parent, op, descriptor) {
            // SAFETY: the caller has published the descriptor or read it, as it must.
            unsafe { self.help_marked(descriptor, guard) };
            return true;
        }
        // SAFETY: the word is in the grandparent, which had this flag at some moment under the
        // guard, and is not retired before it is taken away (I4, I6), so I7 keeps it.
        let unflagged = unsafe { Self::unflag(Claim::new(DFLAG, descriptor), op) };
        if unflagged && is_retired_at_backtrack() {
            // SAFETY: I6: the descriptor is of this pool. It is in no word any more, since the
            // parent is never marked with it. No other thread has taken the flag away (C3), so it
            // is retired once.
            unsafe { self.descriptors().retire(descriptor, guard) };
        }
        false
    }

    /// Lets the leaf's sibling take the parent's place, then takes the grandparent's flag away.
    /// The thread that takes the flag away retires the parent and the leaf.
    ///
    /// # Safety
    /// `descriptor` was read under `guard` from the word of a node that was reached under it, or
    /// the caller has published it under `guard`.
    unsafe fn help_marked(&self, descriptor: NonNull<Descriptor>, guard: &Guard) {
        // SAFETY: I7: as in `help_delete`, or the descriptor was read from the word of the marked
        // parent, which was reached under the guard. Both are retired together (I6).
        let op = unsafe { &*touch(descriptor.as_ptr()) };
        // SAFETY: as in `help_delete`, or the parent was reached under the guard (I7).
        let parent = unsafe { &*touch(op.old.inner_ptr::<B>().as_ptr()) };
        // The marked parent's edges do not change any more (I4).
        let sibling = parent.children()[op.leaf_side.other()].load();
        // SAFETY: the edge is in the grandparent, which keeps its flag until the parent is cut off,
        // and is not retired before that (I6). The parent is not retired before a moment under the
        // guard, so neither is the grandparent, and I7 keeps it.
        unsafe { op.edge.as_ref() }.try_replace(op.old, sibling); // LP(remove)
        // SAFETY: the word is in the grandparent, as the edge is.
        if unsafe { Self::unflag(Claim::new(DFLAG, descriptor), op) } {
            let leaf = parent.children()[op.leaf_side].load();
            // SAFETY: I6: all three are of these pools. Parent and leaf are linked nowhere, and no
            // word that new readers can reach holds the descriptor. No other thread has taken the
            // flag away (C3), so they are retired once.
            unsafe {
                self.pools().leaves().retire(leaf.leaf_ptr::<B>(), guard);
                self.pools().inners().retire(op.old.inner_ptr::<B>(), guard);
                self.descriptors().retire(descriptor, guard);
            }
        }
    }

    /// Takes the operation's flag away from the node that it claimed first. Whether this call did.
    ///
    /// # Safety
    ///
    /// The node of `op.word` is not freed before this returns.
    unsafe fn unflag(flag: Claim<Descriptor>, op: &Descriptor) -> bool {
        // SAFETY: the caller keeps the node of the word.
        let word = unsafe { op.word.as_ref() };
        release(word, flag, op)
    }
}
