//! `find`, the verbs, and helping, in the paper's order and with its names.

use super::super::side::Side;
use super::Howley;
use super::build::Build;
use super::canaries::{
    copy_of_marked, counts_as_claimed, emptied, ends_second, is_left_to_owner, is_unchanged,
    may_have_moved, trusted_parent, try_mark,
};
use super::node::{CHILDCAS, Descriptor, Link, MARK, Node, RELOCATE};
use crate::bst::claim::{Claim, Clean, State};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::model::touch;
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ptr::NonNull;

/// A node on the way that was not claimed, and the values read from it, in the order of the fields.
/// So the link is as it was when the word was clean, or later (C1).
struct Place<'g, B: Build> {
    node: &'g Node<B>,
    before: Clean,
    side: Side,
    link: Link<B>,
}

impl<'g, B: Build> Place<'g, B> {
    #[inline(always)]
    fn at(node: &'g Node<B>, before: Clean, side: Side) -> Self {
        Self { node, before, side, link: node.follow(side) }
    }

    /// The descriptor that replaces the link by `new`. If the link has a child, the clean word of
    /// that child was `old_before`.
    fn replaced(&self, new: Link<B>, old_before: Clean) -> Descriptor<B> {
        Descriptor::new((self.node, self.before), self.side, (self.link, old_before), new)
    }
}

/// The end of an update's descent.
enum Found<'g, B: Build> {
    /// The node with the key, below `pred`.
    Node { pred: Place<'g, B>, node: &'g Node<B>, before: Clean },
    /// A null link.
    Nothing(Place<'g, B>),
}

/// The objects that an operation allocates: a node, a descriptor, and a second one for relocations.
struct Spares<'t, P: Placement, B: Build> {
    node: Spare<'t, Node<B>, P>,
    descriptor: Spare<'t, Descriptor<B>, P>,
    second: Spare<'t, Descriptor<B>, P>,
}

/// The links of a node that takes the place of the one with `links`. Its null links are its own
/// (I5).
fn adopted<B: Build>(links: [Link<B>; 2]) -> [Link<B>; 2] {
    links.map(|link| if link.is_null() { Link::NONE } else { link })
}

impl<P: Placement, B: Build> Howley<P, B> {
    /// Descends towards `key` and writes nothing. The search may see a change under way. Only a
    /// relocation can mislead it, and the node where it went right last shows that.
    #[inline(always)]
    pub(super) fn lookup(&self, key: u64, guard: &Guard) -> Option<u64> {
        let mut last_right = self.root();
        let mut link = last_right.children[Side::RIGHT].load();
        // SAFETY: I8: the link was read from a node that was reached under the guard.
        while let Some(node) = unsafe { link.node() } {
            if node.key == key {
                P::saw(|| Node::<B>::NODE.ended(node));
                return Some(node.value); // LP(get, found): the load of the link
            }
            let side = Side::of(key, node.key);
            P::saw(|| Node::<B>::NODE.passed(node, side.index()));
            last_right = select_unpredictable(side == Side::RIGHT, node, last_right);
            link = node.follow(side);
        }
        P::saw(|| [last_right.op_read()]);
        if may_have_moved(last_right) {
            return self.lookup_with_care(key, last_right, guard);
        }
        None // LP(get, absent): the load of the null link; the node is linked at its old place
    }

    /// Continues a lookup that has come to a null link and has met an operation under way.
    #[cold]
    fn lookup_with_care<'g>(
        &'g self,
        key: u64,
        mut last_right: &'g Node<B>,
        _guard: &'g Guard,
    ) -> Option<u64> {
        loop {
            match Self::stand(last_right, key) {
                Stand::Here => return None, // LP(get, absent): the load of the null link
                Stand::Decided(found) => return found,
                Stand::Gone => {}
            }
            last_right = self.root();
            let mut link = last_right.children[Side::RIGHT].load();
            // SAFETY: I8: the link was read from a node that was reached under the guard.
            while let Some(node) = unsafe { link.node() } {
                if node.key == key {
                    return Some(node.value); // LP(get, found)
                }
                let side = Side::of(key, node.key);
                // A leaving node does not count: a relocation that misled the search there came
                // earlier, and shows at a node above.
                if side == Side::RIGHT && !matches!(Self::stand(node, key), Stand::Gone) {
                    last_right = node;
                }
                link = node.follow(side);
            }
        }
    }

    /// How a search for the larger `key`, which has gone right at `node`, stands there now.
    fn stand(mut node: &Node<B>, key: u64) -> Stand {
        loop {
            let State::Claimed(claim) = node.op.load() else {
                return Stand::Here;
            };
            // SAFETY: I8: the descriptor was in the word of a node that was reached under the
            // caller's guard.
            let op = unsafe { &*touch(claim.descriptor.as_ptr()) };
            let copy = match claim.flag {
                CHILDCAS => return Stand::Here,
                MARK => match copy_of_marked(op) {
                    Ok(copy) => copy,
                    Err(stand) => return stand,
                },
                RELOCATE => {
                    // SAFETY: I6: a relocation has a second part. I8: it is reached through its
                    // descriptor.
                    let Some(second) =
                        op.second().map(|second| unsafe { &*touch(second.as_ptr()) })
                    else {
                        return Stand::Here;
                    };
                    if second.takes(node) {
                        return Stand::Gone;
                    }
                    if !op.takes(node) || !op.has_succeeded() {
                        return Stand::Here;
                    }
                    op.new
                }
            };
            // SAFETY: I8: once the operation has succeeded, the copy is in the tree, and it is not
            // unlinked before the node whose place it takes. The caller's guard is older than that.
            let Some(copy) = (unsafe { copy.node() }) else {
                return Stand::Here;
            };
            match key.cmp(&copy.key) {
                // LP(get): the last moment before the copy took the node's place, or now: the
                // successor was still present, and no key was between it and the node.
                Ordering::Equal => return Stand::Decided(Some(copy.value)),
                Ordering::Less => return Stand::Decided(None),
                Ordering::Greater => node = copy,
            }
        }
    }

    /// Descends towards `key` and helps the operation at every claimed node that it meets.
    fn find<'g>(&'g self, key: u64, guard: &'g Guard) -> Found<'g, B> {
        'retry: loop {
            let root = self.root();
            let before = match root.op.load() {
                State::Clean(before) => before,
                State::Claimed(claim) => {
                    // SAFETY: the claim was in the word of a node that was reached under the guard.
                    unsafe { self.help(claim, guard) };
                    continue;
                }
            };
            let mut place = Place::at(root, before, Side::RIGHT);
            let mut last_right = (root, before);
            // SAFETY: I8: the link was read from a node that was reached under the guard.
            while let Some(node) = unsafe { place.link.node() } {
                let before = match node.op.load() {
                    State::Clean(before) => before,
                    State::Claimed(claim) => {
                        // SAFETY: the claim was in the word of a node that was reached under
                        // the guard.
                        unsafe { self.help(claim, guard) };
                        continue 'retry;
                    }
                };
                if node.key == key {
                    P::saw(|| Node::<B>::NODE.ended(node));
                    return Found::Node { pred: place, node, before };
                }
                let side = Side::of(key, node.key);
                P::saw(|| Node::<B>::NODE.passed(node, side.index()));
                if side == Side::RIGHT {
                    last_right = (node, before);
                }
                place = Place::at(node, before, side);
            }
            let (node, before) = last_right;
            P::saw(|| [node.op_read()]);
            if is_unchanged(node, before) {
                return Found::Nothing(place);
            }
        }
    }

    /// Moves `key` from its current state to the one that `verb` wants, and returns the former.
    #[inline]
    pub(super) fn update(
        &self,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut spares = Spares {
            node: self.nodes().spare(),
            descriptor: self.descriptors().spare(),
            second: self.descriptors().spare(),
        };
        loop {
            let found = self.find(key, guard);
            let state = match &found {
                Found::Node { node, .. } => Some(node.value),
                Found::Nothing(_) => None,
            };
            let done = match (verb.step(state), &found) {
                // LP(kept): the load of the link.
                (Step::Keep, _) | (Step::Take, Found::Nothing(_)) => true,
                (Step::Put(value), Found::Nothing(place)) => {
                    self.add(place, key, value, &mut spares, guard)?
                }
                (Step::Put(value), Found::Node { pred, node, before }) => {
                    self.replace(pred, node, *before, value, &mut spares, guard)?
                }
                (Step::Take, Found::Node { pred, node, before }) => {
                    self.remove(pred, node, *before, &mut spares, guard)?
                }
            };
            if done {
                return Ok(state);
            }
        }
    }

    /// Links a new node at a null link. Returns whether that took effect.
    fn add(
        &self,
        place: &Place<'_, B>,
        key: u64,
        value: u64,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let node = spares.node.filled(Node::new(key, value, [Link::NONE; 2]), guard)?;
        let op = place.replaced(Link::to(node), Clean::FIRST);
        let added = self.child_cas(place, op, spares, guard)?;
        if added {
            spares.node.linked();
            self.frame.len.add(1);
        }
        Ok(added)
    }

    /// Replaces the found node by a copy with another value and the same children. Returns whether
    /// that took effect.
    fn replace(
        &self,
        pred: &Place<'_, B>,
        node: &Node<B>,
        before: Clean,
        value: u64,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let copy = Node::new(node.key, value, adopted(node.links()));
        let copy = spares.node.filled(copy, guard)?;
        let op = pred.replaced(Link::to(copy), before).with_copy();
        let replaced = self.child_cas(pred, op, spares, guard)?;
        if replaced {
            spares.node.linked();
        }
        Ok(replaced)
    }

    /// Removes the found node. If it has at most one child, the child takes its place; if it has
    /// two, its successor is relocated. Returns whether that took effect.
    fn remove(
        &self,
        pred: &Place<'_, B>,
        node: &Node<B>,
        before: Clean,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let removed = match node.links() {
            [left, right] if !left.is_null() && !right.is_null() => {
                self.relocate(pred, node, before, [left, right], spares, guard)?
            }
            links => {
                let child = links.into_iter().find(|link| !link.is_null());
                let new = child.unwrap_or(emptied(pred.before));
                self.child_cas(pred, pred.replaced(new, before), spares, guard)?
            }
        };
        if removed {
            self.frame.len.add(-1);
        }
        Ok(removed)
    }

    /// Publishes an operation on one link and completes it. Returns whether it took effect.
    fn child_cas(
        &self,
        place: &Place<'_, B>,
        op: Descriptor<B>,
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let op = spares.descriptor.filled(op, guard)?;
        match place.node.op.try_claim(place.before, Claim::new(CHILDCAS, op)) {
            Ok(()) => {
                spares.descriptor.linked();
                // SAFETY: this call has published the descriptor under the guard.
                Ok(unsafe { self.help_child_cas(op, guard) })
            }
            Err(seen) => {
                // SAFETY: `seen` was in the word of a node that was reached under the guard.
                unsafe { self.help_seen(seen, guard) };
                Ok(false)
            }
        }
    }

    /// Removes a node with two children: a copy of its successor takes its place, and the successor
    /// leaves its old place. Returns whether that took effect.
    fn relocate(
        &self,
        pred: &Place<'_, B>,
        node: &Node<B>,
        before: Clean,
        [left, right]: [Link<B>; 2],
        spares: &mut Spares<'_, P, B>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let mut parent = Place { node, before, side: Side::RIGHT, link: right };
        let (successor, successor_before) = loop {
            // SAFETY: I8: the link was read from a node that was reached under the guard.
            let Some(child) = (unsafe { parent.link.node() }) else {
                return Ok(false); // `right` is not null, so `node` has changed
            };
            let before = match child.op.load() {
                State::Clean(before) => before,
                State::Claimed(claim) => {
                    // SAFETY: the claim was in the word of a node that was reached under the guard.
                    unsafe { self.help(claim, guard) };
                    return Ok(false);
                }
            };
            let next = Place::at(child, before, Side::LEFT);
            if next.link.is_null() {
                break (child, before);
            }
            parent = next;
        };
        let is_child = std::ptr::eq(parent.node, node);
        // The successor's right child takes its place.
        let after = successor.children[Side::RIGHT].load();
        let links = adopted([left, if is_child { after } else { right }]);
        let copy = spares.node.filled(Node::new(successor.key, successor.value, links), guard)?;
        let new = if after.is_null() { emptied(parent.before) } else { after };
        let second = spares.second.filled(parent.replaced(new, successor_before), guard)?;
        let op = pred.replaced(Link::to(copy), before).with_second(second);
        let op = spares.descriptor.filled(op, guard)?;
        match pred.node.op.try_claim(pred.before, Claim::new(RELOCATE, op)) {
            Ok(()) => {
                spares.descriptor.linked();
                spares.second.linked();
                // SAFETY: this call has published the descriptor under the guard.
                let relocated = unsafe { self.help_relocate(op, Some(parent.node), guard) };
                if relocated {
                    spares.node.linked();
                }
                Ok(relocated)
            }
            Err(seen) => {
                // SAFETY: `seen` was in the word of a node that was reached under the guard.
                unsafe { self.help_seen(seen, guard) };
                Ok(false)
            }
        }
    }

    /// Completes the operation that has claimed a node, if one has.
    ///
    /// # Safety
    ///
    /// `seen` was read under `guard` from the word of a node that was reached under it.
    unsafe fn help_seen(&self, seen: State<Descriptor<B>>, guard: &Guard) {
        if let State::Claimed(claim) = seen {
            // SAFETY: the caller has read the claim as `help` demands.
            unsafe { self.help(claim, guard) };
        }
    }

    /// Completes the operation that has claimed a node.
    ///
    /// # Safety
    ///
    /// `claim` was read under `guard` from the word of a node that was reached under it.
    unsafe fn help(&self, claim: Claim<Descriptor<B>>, guard: &Guard) {
        if is_left_to_owner() {
            return;
        }
        // SAFETY: the caller has read the descriptor as these demand.
        unsafe {
            match claim.flag {
                CHILDCAS | MARK => self.help_child_cas(claim.descriptor, guard),
                RELOCATE => self.help_relocate(claim.descriptor, None, guard),
            }
        };
    }

    /// Marks the old child, if there is one, replaces the link, and releases the parent. If the old
    /// child has changed, it only releases the parent. The thread that releases the parent retires
    /// the objects that have left. Returns whether the link was replaced.
    ///
    /// # Safety
    ///
    /// `descriptor` was read under `guard` from the word of a node that was reached under it, or
    /// the caller has published it under `guard`.
    unsafe fn help_child_cas(&self, descriptor: NonNull<Descriptor<B>>, guard: &Guard) -> bool {
        // SAFETY: I8: the caller has published the descriptor or read it, as it must.
        let op = unsafe { &*touch(descriptor.as_ptr()) };
        // SAFETY: I8: the old child was linked when the parent was claimed, and is not retired
        // before the parent is released.
        let marked = unsafe { op.old.node() }.is_none_or(|old| try_mark(old, op, descriptor));
        if marked {
            // SAFETY: I1, I8: the parent was reached through the descriptor, under the guard.
            unsafe { op.replace_link() }; // LP(insert, remove, compare_exchange)
        }
        if Self::release(Claim::new(CHILDCAS, descriptor), op) {
            // SAFETY: I7: the old child is unlinked, no word that can still be reached holds the
            // descriptor, and no other thread has released the parent (C3), so each is retired
            // once.
            unsafe {
                if marked && !op.old.is_null() {
                    self.nodes().retire(op.old.node_ptr(), guard);
                }
                self.descriptors().retire(descriptor, guard);
            }
        }
        marked
    }

    /// Claims the nodes of a relocation from the top down. If all are unchanged, it replaces both
    /// links; else it gives up. Then it releases the nodes that stay, the first node last. The
    /// thread that releases this node retires the objects that have left. Returns whether the links
    /// were replaced.
    ///
    /// The owner passes the successor's parent in `in_hand`. Other threads must not access this
    /// parent before they have reached it themselves (I8): it may have left the tree before it
    /// could be claimed, and before their guards.
    ///
    /// # Safety
    ///
    /// `descriptor` was read under `guard` from the word of a node that was reached under it, or
    /// the caller has published it under `guard`.
    unsafe fn help_relocate(
        &self,
        descriptor: NonNull<Descriptor<B>>,
        in_hand: Option<&Node<B>>,
        guard: &Guard,
    ) -> bool {
        let claim = Claim::new(RELOCATE, descriptor);
        // SAFETY: I8: the caller has published the descriptor or read it, as it must. Its second
        // part is retired with it, and dest is not retired before the parent is released.
        let (op, second, op2, dest) = unsafe {
            let op = &*touch(descriptor.as_ptr());
            let (Some(second), Some(dest)) = (op.second(), op.old.node()) else {
                return false; // not a relocation (I6)
            };
            (op, second, &*touch(second.as_ptr()), dest)
        };
        let is_child = std::ptr::eq(op2.parent.as_ptr(), dest);
        let find = || in_hand.or_else(|| Self::parent_of_successor(dest, op2, guard));
        let (parent, succeeded) = if op.is_ongoing() && dest.op.claim(op.old_before, claim) {
            let parent = find();
            // While nothing is decided, the owner has its guard, and this is the node it meant
            // (I8).
            let claimed = parent.is_some_and(|parent| {
                is_child || op.is_ongoing() && parent.op.claim(op2.before, claim)
            });
            (parent, op.decide(claimed && Self::claim_successor(op2, claim)))
        } else {
            // Decided, here or before: a node that cannot be claimed never will be (C1).
            let succeeded = op.decide(false);
            (find(), succeeded)
        };
        if succeeded {
            // SAFETY: I1, I8: the parent was reached through the descriptor, under the guard.
            unsafe { op.replace_link() }; // LP(remove)
        }
        if let Some(parent) = parent.filter(|_| !is_child) {
            if succeeded {
                // The descriptor's own pointer may, for a late helper, lead to a node that was at
                // this address earlier.
                op2.replace_link_of(parent);
            }
            // Released by this call or another one.
            let _ = parent.op.release(claim, op2.before);
        }
        if !succeeded {
            let _ = dest.op.release(claim, op.old_before);
        }
        if Self::release(claim, op) {
            // SAFETY: I7: dest and the successor are unlinked if the relocation succeeded, no word
            // that can still be reached holds the descriptor, and no other thread has released the
            // parent (C3), so each is retired once.
            unsafe {
                if succeeded {
                    self.nodes().retire(op.old.node_ptr(), guard);
                    self.nodes().retire(op2.old.node_ptr(), guard);
                }
                if ends_second(succeeded) {
                    self.descriptors().retire(second, guard);
                }
                self.descriptors().retire(descriptor, guard);
            }
        }
        succeeded
    }

    /// Searches for the parent of a successor, from the node that it succeeds. If the parent is not
    /// found, others have claimed or released it, and it is not claimed again.
    fn parent_of_successor<'g>(
        dest: &'g Node<B>,
        op2: &Descriptor<B>,
        _guard: &'g Guard,
    ) -> Option<&'g Node<B>> {
        if let Some(parent) = trusted_parent(op2) {
            return Some(parent);
        }
        let (mut node, mut side) = (dest, Side::RIGHT);
        while !std::ptr::eq(op2.parent.as_ptr(), node) {
            // SAFETY: I8: the link was read from a node that was reached under the guard.
            node = unsafe { node.children[side].load().node() }?;
            side = Side::LEFT;
        }
        Some(node)
    }

    /// Claims the successor, which is the last claim. In a relocation that takes effect it is never
    /// released.
    fn claim_successor(op2: &Descriptor<B>, claim: Claim<Descriptor<B>>) -> bool {
        if counts_as_claimed() {
            return true;
        }
        // SAFETY: I8: the successor's parent is claimed, or was at a moment under the guard: so the
        // successor is linked, or not yet retired.
        let successor = unsafe { op2.old.node() };
        successor.is_some_and(|successor| successor.op.claim(op2.old_before, claim))
    }

    /// Releases the node claimed first. Returns whether this call did.
    fn release(claim: Claim<Descriptor<B>>, op: &Descriptor<B>) -> bool {
        // SAFETY: I8: the parent is not retired before it is released. If it has been retired
        // since, the caller's guard is older, and the parent is not reclaimed.
        let parent = unsafe { &*touch(op.parent.as_ptr()) };
        parent.op.release(claim, op.before)
    }
}

/// How a search stands at a node where it went right.
pub(super) enum Stand {
    /// The node's place has not been relocated.
    Here,
    /// A relocation or a copy of the node has decided the result of the search.
    Decided(Option<u64>),
    /// The node is leaving, and no copy takes its place.
    Gone,
}
