//! The search, the verbs, and the locks of a removal, in the paper's order and with its names.

use super::super::side::Side;
use super::Drachsler;
use super::build::{Build, Words};
use super::canaries::{is_gap_gone, is_last_before, is_removed, is_still_parent, unlink_early};
use super::node::{Held, Node};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::{Ordering as Memory, fence};
use silvics_sync::backoff::Backoff;
use std::cmp::Ordering;
use std::ptr::NonNull;

/// The place of a key in the list.
pub(super) enum Place<'g, W> {
    /// At the node that has it, removed or not.
    Node(&'g Node<W>),
    /// Between two nodes of which one followed the other.
    Gap { pred: &'g Node<W>, succ: &'g Node<W> },
}

/// Something has changed: search again.
struct Restart;

/// A node to be removed and its parent, locked in the tree.
struct TreeLocks<'g, W: Words> {
    parent: Held<'g, W>,
    node: Held<'g, W>,
    heir: Heir<'g, W>,
}

/// The node that takes the place of a removed one.
enum Heir<'g, W: Words> {
    /// Its only child, if it has one.
    Child(Option<&'g Node<W>>),
    /// The one that follows it, from below its right child.
    Successor {
        /// Its children.
        children: [&'g Node<W>; 2],
        /// The successor's parent, locked, unless that is the node itself.
        above: Option<Held<'g, W>>,
        /// The successor, locked.
        succ: Held<'g, W>,
    },
}

/// Left and right.
type Children<'g, W> = (Option<&'g Node<W>>, Option<&'g Node<W>>);

impl<P: Placement, B: Build> Drachsler<P, B> {
    /// How a node's place is to that of `key`: the ends of the list come before and after all keys.
    #[inline(always)]
    pub(super) fn order(&self, node: &Node<B::Words>, key: u64) -> Ordering {
        if node.is(self.tail()) {
            Ordering::Greater
        } else if node.is(self.head()) {
            Ordering::Less
        } else {
            node.key().cmp(&key)
        }
    }

    /// The node with the key if it lies on the way, else the last one on it; the tail in an empty
    /// tree.
    #[inline(always)]
    fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> &'g Node<B::Words> {
        let mut node = self.tail();
        // SAFETY: I6: this descent begins at the tail, under the guard of `'g`.
        let mut next = unsafe { node.child(Side::LEFT) };
        while let Some(child) = next {
            node = child;
            if child.key() == key {
                P::saw(|| B::Words::NODE.ended(child));
                break;
            }
            let side = Side::of(key, child.key());
            P::saw(|| B::Words::NODE.passed(child, side.index()));
            // SAFETY: I6: this descent has begun at the tail, under the guard of `'g`.
            next = unsafe { child.follow(side) };
        }
        node
    }

    /// Follows the list from where a search has ended to the place of the key.
    #[inline(always)]
    fn follow<'g>(
        &'g self,
        key: u64,
        mut node: &'g Node<B::Words>,
        _guard: &'g Guard,
    ) -> Place<'g, B::Words> {
        while self.order(node, key).is_gt() {
            P::saw(|| [node.neighbour_read(Words::pred)]);
            // SAFETY: I6: this walk begins where a descent under the guard has ended, in the tree
            // and so in the list (I3), and has come here by `pred` and `succ`.
            node = unsafe { node.pred() };
            P::saw(|| [node.key_read()]);
        }
        while self.order(node, key).is_lt() {
            P::saw(|| [node.neighbour_read(Words::succ)]);
            // SAFETY: I6: this walk begins where a descent under the guard has ended, in the tree
            // and so in the list (I3), and has come here by `pred` and `succ`.
            let succ = unsafe { node.succ() }; // LP(get, absent)
            P::saw(|| [succ.key_read()]);
            if self.order(succ, key).is_gt() {
                return Place::Gap { pred: node, succ };
            }
            node = succ;
        }
        Place::Node(node)
    }

    /// Returns the place of the key.
    #[inline(always)]
    pub(super) fn locate<'g>(&'g self, key: u64, guard: &'g Guard) -> Place<'g, B::Words> {
        self.follow(key, self.search(key, guard), guard)
    }

    #[inline(always)]
    pub(super) fn lookup(&self, key: u64, guard: &Guard) -> Option<u64> {
        match self.locate(key, guard) {
            Place::Node(node) => node.state(),
            Place::Gap { .. } => None,
        }
    }

    /// Brings `key` from the state it is found in to the one `verb` wants, and returns the state
    /// found.
    #[inline]
    pub(super) fn update<'g>(
        &'g self,
        key: u64,
        verb: Update,
        guard: &'g Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut spare = self.nodes.spare();
        loop {
            let last = self.search(key, guard);
            let (state, found, pred) = match self.follow(key, last, guard) {
                Place::Gap { pred, .. } => (None, None, pred),
                // SAFETY: I6: the walk under the guard has ended at `node`, which was in the list.
                Place::Node(node) => (node.state(), Some(node), unsafe { node.pred() }),
            };
            let done = match (verb.step(state), state.and(found)) {
                (Step::Keep, _) | (Step::Take, None) => return Ok(state), // LP: as of `get`
                (Step::Put(value), None) => {
                    let node = spare.filled(Node::new(key, value), guard)?;
                    self.attach(node, key, pred, last, &mut spare, guard).map(|()| None)
                }
                (Step::Put(_), Some(node)) => Self::change_value(node, verb),
                (Step::Take, Some(node)) => self.remove(node, verb, guard),
            };
            if let Ok(state) = done {
                // The caller's next load must not come before the stores of this operation have
                // reached the others: two threads that write one key and read the other's could
                // else both see the old state.
                fence(Memory::SeqCst);
                return Ok(state);
            }
        }
    }

    /// Puts a new node behind `pred`, if that still is its place: into the list, then below one of
    /// its neighbours there.
    fn attach<'g>(
        &'g self,
        node: NonNull<Node<B::Words>>,
        key: u64,
        pred: &'g Node<B::Words>,
        last: &'g Node<B::Words>,
        spare: &mut Spare<'_, Node<B::Words>, P>,
        guard: &'g Guard,
    ) -> Result<(), Restart> {
        let interval = pred.lock_succ();
        // SAFETY: I6: a walk under the guard has met `pred`, which was in the list.
        let succ = unsafe { interval.succ() };
        if is_gap_gone(&interval) || !self.order(succ, key).is_gt() {
            return Err(Restart);
        }
        debug_assert!(self.order(pred, key).is_lt());
        let (parent, side) = Self::choose_parent(pred, succ, last, guard);
        // SAFETY: `spare` has filled the node, and no other thread has it. When it is linked, I6
        // keeps it for `'g`.
        let node: &'g Node<_> = unsafe { node.as_ref() };
        node.lay(pred, succ, &parent);
        let behind = node.lock_succ();
        interval.insert(&behind, succ);
        spare.linked();
        drop((interval, behind));
        parent.set_child(side, Some(node));
        drop(parent);
        self.frame.len.add(1);
        Ok(())
    }

    /// Returns the neighbour below which a node between two neighbours of the list belongs, locked,
    /// and the side. `pred` is locked in the list. At rest exactly one of the two places is free;
    /// both may seem taken while one of the two is moved, which its lock tells the end of.
    fn choose_parent<'g>(
        pred: &'g Node<B::Words>,
        succ: &'g Node<B::Words>,
        last: &'g Node<B::Words>,
        _guard: &'g Guard,
    ) -> (Held<'g, B::Words>, Side) {
        let mut candidate = if last.is(succ) { succ } else { pred };
        loop {
            let (side, other) =
                if candidate.is(pred) { (Side::RIGHT, succ) } else { (Side::LEFT, pred) };
            let held = candidate.lock_tree();
            // SAFETY: I6: `pred` and `succ` were in the list during this operation, under the
            // guard.
            if unsafe { held.child(side) }.is_none() {
                return (held, side);
            }
            candidate = other;
        }
    }

    /// Replaces a node's value, if it is not removed yet.
    fn change_value(node: &Node<B::Words>, verb: Update) -> Result<Option<u64>, Restart> {
        let interval = node.lock_succ();
        if is_removed(&interval) {
            return Err(Restart);
        }
        let state = Some(interval.value());
        match verb.step(state) {
            Step::Keep => {}
            Step::Put(value) => interval.set_value(value), // LP(insert, compare_exchange: replaced)
            Step::Take => return Err(Restart),
        }
        Ok(state)
    }

    /// Removes a node: marks it, then takes it out of the tree and out of the list.
    fn remove<'g>(
        &'g self,
        node: &'g Node<B::Words>,
        verb: Update,
        guard: &'g Guard,
    ) -> Result<Option<u64>, Restart> {
        // SAFETY: I6: a walk under the guard has met `node`, which was in the list.
        let before = unsafe { node.pred() }.lock_succ();
        // SAFETY: I6: the step from `node` to `before` is one of such a walk, so `before` was in
        // the list.
        if before.is_marked() || !unsafe { before.succ() }.is(node) {
            return Err(Restart);
        }
        let interval = node.lock_succ(); // in the list, and not marked: that takes both locks
        let state = Some(interval.value());
        match verb.step(state) {
            Step::Take => {}
            Step::Keep => return Ok(state),
            Step::Put(_) => return Err(Restart),
        }
        let locks = Self::acquire_tree_locks(node, guard);
        interval.mark(); // LP(remove)
        self.frame.len.add(-1);
        let in_list = unlink_early(before, interval);
        Self::remove_from_tree(locks, guard);
        if let Some((before, interval)) = in_list {
            // SAFETY: `before` led to `node` when both were locked (I2).
            unsafe { before.unlink(&interval) };
        }
        // SAFETY: the node is of this pool. No node in the tree or in the list leads to it any more
        // (I1, I3, I4). It is marked once, under its own lock (I2), and only the thread that has
        // marked it comes here.
        unsafe { self.nodes.retire(node.as_non_null(), guard) };
        Ok(state)
    }

    /// Locks what the removal of `node`, which is locked in the list, changes in the tree. Upwards
    /// by waiting, downwards only by trying: who holds a node's lock waits for none below it.
    fn acquire_tree_locks<'g>(
        node: &'g Node<B::Words>,
        guard: &'g Guard,
    ) -> TreeLocks<'g, B::Words> {
        let mut backoff = Backoff::new();
        loop {
            let held = node.lock_tree();
            let parent = Self::lock_parent(node, guard);
            let heir = match Self::children(node, guard) {
                (Some(left), Some(right)) => Self::try_lock_successor(node, [left, right], guard),
                (child, None) | (None, child) => Some(Heir::Child(child)),
            };
            if let Some(heir) = heir {
                return TreeLocks { parent, node: held, heir };
            }
            drop((held, parent));
            backoff.wait();
        }
    }

    /// Locks a node's parent.
    fn lock_parent<'g>(node: &Node<B::Words>, _guard: &'g Guard) -> Held<'g, B::Words> {
        loop {
            // SAFETY: I6: `node` is locked in the list and not marked, so it is in the list.
            let parent: &'g Node<_> = unsafe { node.parent() };
            let held = parent.lock_tree();
            // SAFETY: I6: `node` is locked in the list and not marked, so it is in the list.
            if is_still_parent(parent, unsafe { node.parent() }) {
                return held;
            }
        }
    }

    /// Locks the successor of `node`, which is locked in list and tree, and the successor's parent.
    fn try_lock_successor<'g>(
        node: &'g Node<B::Words>,
        children: [&'g Node<B::Words>; 2],
        _guard: &'g Guard,
    ) -> Option<Heir<'g, B::Words>> {
        // SAFETY: I6: `node` is locked in the list and not marked, so it is in the list. Its
        // successor cannot leave the list before `node` is unlocked (I2).
        let (succ, above): (&'g Node<_>, &'g Node<_>) =
            unsafe { (node.succ(), node.succ().parent()) };
        let above = if above.is(node) {
            None
        } else {
            let held = above.try_lock_tree()?;
            // SAFETY: I6: the successor of a locked node is in the list (I2).
            if !unsafe { succ.parent() }.is(above) {
                return None;
            }
            Some(held)
        };
        Some(Heir::Successor { children, above, succ: succ.try_lock_tree()? })
    }

    fn children<'g>(node: &Node<B::Words>, _guard: &'g Guard) -> Children<'g, B::Words> {
        // SAFETY: I6: the callers have locked `node`, which was in the list under the guard of
        // `'g`.
        unsafe { (node.child(Side::LEFT), node.child(Side::RIGHT)) }
    }

    /// Takes a node out of the tree. Its own links stay, for those who stand at it.
    fn remove_from_tree<'g>(locks: TreeLocks<'g, B::Words>, guard: &'g Guard) {
        let TreeLocks { parent, node, heir } = locks;
        let (left, _) = Self::children(&parent, guard);
        let place = if left.is_some_and(|left| left.is(&node)) { Side::LEFT } else { Side::RIGHT };
        match heir {
            Heir::Child(child) => parent.adopt(place, child),
            Heir::Successor { children, above, succ } => {
                // SAFETY: `try_lock_successor` has reached it from a node in the list, under the
                // guard of `'g`.
                unsafe { parent.adopt_successor(place, &succ, children, above.as_ref()) };
            }
        }
    }

    /// The node before an entry in the list, wherever the link that leads back comes from: the last
    /// one that is followed by nothing smaller than the entry.
    pub(super) fn before<'g>(
        &'g self,
        node: &'g Node<B::Words>,
        _guard: &'g Guard,
    ) -> &'g Node<B::Words> {
        // SAFETY: I6: the scan under the guard of `'g` has met `node`, which was in the list.
        let mut before = unsafe { node.pred() };
        loop {
            // SAFETY: I6: the steps from `node` are those of a walk, so `before` was in the list.
            let next = unsafe { before.succ() };
            if is_last_before(self.order(next, node.key())) {
                return before;
            }
            before = next;
        }
    }
}
