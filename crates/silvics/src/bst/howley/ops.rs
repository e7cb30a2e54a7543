//! `find`, the verbs, and helping, in the paper's order and with its names.

use super::super::side::Side;
use super::Howley;
use super::build::Build;
use super::node::{CHILDCAS, Descriptor, Link, MARK, Node, RELOCATE};
use crate::bst::claim::{Claim, Clean, State};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::model::touch;
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ptr::NonNull;

/// A node on the way that nobody had claimed, and what was read in it, in this order: so the link is
/// as it was when the word was clean, or later (C1).
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

    /// An operation that replaces the link by `new`, when its child's word, if it has one, was
    /// `old_before`.
    fn replaced(&self, new: Link<B>, old_before: Clean) -> Descriptor<B> {
        Descriptor::new((self.node, self.before), self.side, (self.link, old_before), new)
    }
}

/// Where a descent of an update ended.
enum Found<'g, B: Build> {
    /// At the node with the key, below `pred`.
    Node { pred: Place<'g, B>, node: &'g Node<B>, before: Clean },
    /// At a null link.
    Nothing(Place<'g, B>),
}

/// Objects made for an operation: a node, a descriptor, and another one for relocations.
struct Spares<'t, P: Placement, B: Build> {
    node: Spare<'t, Node<B>, P>,
    descriptor: Spare<'t, Descriptor<B>, P>,
    second: Spare<'t, Descriptor<B>, P>,
}

/// Links for a node that takes the place of the one they are from: null ones are its own (I5).
fn adopted<B: Build>(links: [Link<B>; 2]) -> [Link<B>; 2] {
    links.map(|link| if link.is_null() { Link::NONE } else { link })
}

/// The null link of a node whose child goes, which was claimed when its word was `before`.
fn emptied<B: Build>(before: Clean) -> Link<B> {
    if planted(Canary::NullNotCounted) { Link::NONE } else { Link::emptied(before) }
}

impl<P: Placement, B: Build> Howley<P, B> {
    /// Descends towards `key` and writes nothing. What it sees may be in the middle of a change; only a
    /// relocation can mislead it, and then the node where it went right last tells.
    #[inline(always)]
    pub(super) fn lookup(&self, key: u64, guard: &Guard) -> Option<u64> {
        let mut last_right = self.root();
        let mut link = last_right.children[Side::RIGHT].load();
        // SAFETY: read from a reachable node under the guard.
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
        match last_right.op.load() {
            // LP(get, absent): the load of the null link. The node is linked, where it was.
            State::Clean(_) => None,
            State::Claimed(_) if planted(Canary::RelocationUnseen) => None,
            State::Claimed(_) => self.lookup_with_care(key, last_right, guard),
        }
    }

    /// Goes on with a lookup that has come to a null link, and has met an operation under way.
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
            // SAFETY: as in `lookup`.
            while let Some(node) = unsafe { link.node() } {
                if node.key == key {
                    return Some(node.value); // LP(get, found)
                }
                let side = Side::of(key, node.key);
                // A node on its way out does not count: what went wrong with it has gone wrong
                // before, and shows above.
                if side == Side::RIGHT && !matches!(Self::stand(node, key), Stand::Gone) {
                    last_right = node;
                }
                link = node.follow(side);
            }
        }
    }

    /// What has become of the place of `node`, at which a search for the larger `key` has gone right.
    fn stand(mut node: &Node<B>, key: u64) -> Stand {
        loop {
            let State::Claimed(claim) = node.op.load() else {
                return Stand::Here;
            };
            // SAFETY: I8: it was in the word of a node reached under the caller's guard.
            let op = unsafe { &*touch(claim.descriptor.as_ptr()) };
            let copy = match claim.flag {
                CHILDCAS => return Stand::Here,
                MARK if op.is_copy() && !planted(Canary::CopyNotFollowed) => op.new,
                MARK if op.is_copy() || planted(Canary::LeavingNodeTrusted) => return Stand::Here,
                MARK => return Stand::Gone,
                RELOCATE => {
                    // SAFETY: I8, and a relocation has a second part (I6).
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
            // SAFETY: I8: once the operation has succeeded the copy is the tree's, and it is not
            // unlinked before the node whose place it takes; our guard is older than that.
            let Some(copy) = (unsafe { copy.node() }) else {
                return Stand::Here;
            };
            match key.cmp(&copy.key) {
                // LP(get): the last moment before the copy took the node's place, or now: the
                // successor was still there, and between it and the node was nothing.
                Ordering::Equal => return Stand::Decided(Some(copy.value)),
                Ordering::Less => return Stand::Decided(None),
                Ordering::Greater => node = copy,
            }
        }
    }

    /// Descends towards `key`, helping whatever is under way at a node that it comes to.
    fn find<'g>(&'g self, key: u64, guard: &'g Guard) -> Found<'g, B> {
        'retry: loop {
            let root = self.root();
            let before = match root.op.load() {
                State::Clean(before) => before,
                State::Claimed(claim) => {
                    self.help(claim, guard);
                    continue;
                }
            };
            let mut place = Place::at(root, before, Side::RIGHT);
            let mut last_right = (root, before);
            // SAFETY: read from a reachable node under the guard.
            while let Some(node) = unsafe { place.link.node() } {
                let before = match node.op.load() {
                    State::Clean(before) => before,
                    State::Claimed(claim) => {
                        self.help(claim, guard);
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
            if node.op.is(before) || planted(Canary::RelocationUnseen) {
                return Found::Nothing(place);
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

    /// Links a new node where there was none.
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

    /// Lets a node with another value take the place of the one found, children included.
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

    /// Removes the node found: one with a child at most by letting that take its place, one with two by
    /// relocating its successor.
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

    /// Publishes an operation on one link, and has it done. Whether it has taken effect.
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
                Ok(self.help_child_cas(op, guard))
            }
            Err(seen) => {
                self.help_seen(seen, guard);
                Ok(false)
            }
        }
    }

    /// Removes a node with two children: a copy of its successor takes its place, and the successor
    /// goes from where it was. Whether it has taken effect.
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
            // SAFETY: read from a reachable node under the guard.
            let Some(child) = (unsafe { parent.link.node() }) else {
                return Ok(false); // `node` has changed, or `right` would have been null
            };
            let before = match child.op.load() {
                State::Clean(before) => before,
                State::Claimed(claim) => {
                    self.help(claim, guard);
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
        // The successor leaves its right child behind.
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
                let relocated = self.help_relocate(op, Some(parent.node), guard);
                if relocated {
                    spares.node.linked();
                }
                Ok(relocated)
            }
            Err(seen) => {
                self.help_seen(seen, guard);
                Ok(false)
            }
        }
    }

    fn help_seen(&self, seen: State<Descriptor<B>>, guard: &Guard) {
        if let State::Claimed(claim) = seen {
            self.help(claim, guard);
        }
    }

    /// Does what is left to do for the operation that has claimed a node.
    fn help(&self, claim: Claim<Descriptor<B>>, guard: &Guard) {
        if planted(Canary::ClaimedNodeNotHelped) {
            return;
        }
        match claim.flag {
            CHILDCAS | MARK => self.help_child_cas(claim.descriptor, guard),
            RELOCATE => self.help_relocate(claim.descriptor, None, guard),
        };
    }

    /// Marks the old child, if there is one, replaces the link, and releases the parent; or, if the
    /// old child has changed, only releases the parent. Whoever releases it retires what has gone.
    /// Whether the link was replaced.
    fn help_child_cas(&self, descriptor: NonNull<Descriptor<B>>, guard: &Guard) -> bool {
        // SAFETY: I8: it was in the word of a node reached under the guard.
        let op = unsafe { &*touch(descriptor.as_ptr()) };
        // SAFETY: I8: the old child was linked when the parent was claimed, and is not retired before
        // that is released.
        let marked = unsafe { op.old.node() }.is_none_or(|old| {
            op.is_copy() && planted(Canary::UpdateUnmarked)
                || old.op.claim(op.old_before, Claim::new(MARK, descriptor))
        });
        if marked {
            // SAFETY: I8.
            unsafe { op.replace_link() }; // LP(insert, remove, compare_exchange)
        }
        if Self::release(Claim::new(CHILDCAS, descriptor), op) {
            // SAFETY: I7: the old child is linked nowhere, no word that can still be reached holds the
            // descriptor, and no other thread has released the parent (C3).
            unsafe {
                if marked && !op.old.is_null() {
                    self.nodes().retire(op.old.node_ptr(), guard);
                }
                self.descriptors().retire(descriptor, guard);
            }
        }
        marked
    }

    /// Claims the nodes of a relocation from the top down. If all are as they were, replaces both
    /// links; else gives up. Then releases what is still there, the first node last; whoever does
    /// that retires what has gone. Whether the links were replaced.
    ///
    /// The owner has the successor's parent in hand. Others must not touch it before they have come
    /// to it themselves, since it may have left the tree before it could be claimed, and before
    /// their guards (I8).
    fn help_relocate(
        &self,
        descriptor: NonNull<Descriptor<B>>,
        in_hand: Option<&Node<B>>,
        guard: &Guard,
    ) -> bool {
        let claim = Claim::new(RELOCATE, descriptor);
        // SAFETY: I8: as in `help_child_cas`; both parts are retired together.
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
            // As long as nothing is decided the owner has its guard, and this is the node it meant.
            let claimed = parent.is_some_and(|parent| {
                is_child || op.is_ongoing() && parent.op.claim(op2.before, claim)
            });
            (parent, op.decide(claimed && Self::claim_successor(op2, claim)))
        } else {
            // Decided, or decided hereby: a node that can not be claimed never will be.
            let succeeded = op.decide(false);
            (find(), succeeded)
        };
        if succeeded {
            // SAFETY: I8.
            unsafe { op.replace_link() }; // LP(remove)
        }
        if let Some(parent) = parent.filter(|_| !is_child) {
            if succeeded {
                // Not by the descriptor's own pointer: a late helper's may lead to what was there before.
                op2.replace_link_of(parent);
            }
            // By this call or another one.
            let _ = parent.op.release(claim, op2.before);
        }
        if !succeeded {
            let _ = dest.op.release(claim, op.old_before);
        }
        if Self::release(claim, op) {
            // SAFETY: I7: as in `help_child_cas`.
            unsafe {
                if succeeded {
                    self.nodes().retire(op.old.node_ptr(), guard);
                    self.nodes().retire(op2.old.node_ptr(), guard);
                }
                if succeeded || !planted(Canary::FailedRelocationLeaks) {
                    self.descriptors().retire(second, guard);
                }
                self.descriptors().retire(descriptor, guard);
            }
        }
        succeeded
    }

    /// Comes to the parent of a successor from the node that it succeeds, if it is still there. If it
    /// is not, it has been claimed by somebody else, or released, and is not claimed again.
    fn parent_of_successor<'g>(
        dest: &'g Node<B>,
        op2: &Descriptor<B>,
        _guard: &'g Guard,
    ) -> Option<&'g Node<B>> {
        if planted(Canary::SuccessorsParentTrusted) {
            // SAFETY: none: that is the mistake.
            return Some(unsafe { &*touch(op2.parent.as_ptr()) });
        }
        let (mut node, mut side) = (dest, Side::RIGHT);
        while !std::ptr::eq(op2.parent.as_ptr(), node) {
            // SAFETY: read from a reachable node under the guard.
            node = unsafe { node.children[side].load().node() }?;
            side = Side::LEFT;
        }
        Some(node)
    }

    /// Claims the successor, last of all: it is never released.
    fn claim_successor(op2: &Descriptor<B>, claim: Claim<Descriptor<B>>) -> bool {
        if planted(Canary::SuccessorNotClaimed) {
            return true;
        }
        // SAFETY: I8: its parent is claimed, or was a moment ago: so it is linked, or not yet retired.
        let successor = unsafe { op2.old.node() };
        successor.is_some_and(|successor| successor.op.claim(op2.old_before, claim))
    }

    /// Releases the node claimed first. Whether this call did.
    fn release(claim: Claim<Descriptor<B>>, op: &Descriptor<B>) -> bool {
        // SAFETY: I8: it is not retired before it is released; if it has been since, then not before a
        // guard from before.
        let parent = unsafe { &*touch(op.parent.as_ptr()) };
        parent.op.release(claim, op.before)
    }
}

/// What has become of the place of a node.
enum Stand {
    /// It has not been relocated.
    Here,
    /// A relocation there has decided what the search finds.
    Decided(Option<u64>),
    /// The node is going, and nothing takes its place.
    Gone,
}
