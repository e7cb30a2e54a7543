//! The search and the verbs, in the paper's order.

use super::super::side::Side;
use super::Citrus;
use super::build::{Build, Words};
use super::canaries::{is_out, tag_of_search, value_to_copy};
use super::node::{Held, Node, Tag};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::{Ordering, fence};
use std::ptr::NonNull;

/// The end of a search for an update.
enum Found<'g, W> {
    /// At the node with the key.
    Node(Link<'g, W>),
    /// Below `parent`, which had no child on `side` when `tag` had been read.
    Nothing { parent: &'g Node<W>, side: Side, tag: Tag },
}

/// A node below its parent.
#[derive(Clone, Copy)]
struct Link<'g, W> {
    parent: &'g Node<W>,
    side: Side,
    node: &'g Node<W>,
}

impl<'g, W: Words> Link<'g, W> {
    /// The smallest node below `node` on the right, whose child there is `right` (paper: the search
    /// for `succ` in `delete`).
    fn to_successor(node: &'g Node<W>, right: &'g Node<W>, _guard: &'g Guard) -> Self {
        let mut link = Self { parent: node, side: Side::RIGHT, node: right };
        // SAFETY: I6: this descent begins under the guard of `'g` at `node`, which is locked and
        // not marked, and so in the tree (I2).
        while let Some(next) = unsafe { link.node.child(Side::LEFT) } {
            link = Self { parent: link.node, side: Side::LEFT, node: next };
        }
        link
    }
}

/// Something has changed: search again.
struct Restart;

/// A node for the copy of a successor, made before anything is locked.
type Blank<W> = Option<NonNull<Node<W>>>;

impl<P: Placement, B: Build> Citrus<P, B> {
    /// The value of `key`. The descent is a read section; the value is read after it.
    #[inline(always)]
    pub(super) fn lookup(&self, key: u64, _guard: &Guard) -> Option<u64> {
        let found = {
            let _section = self.rcu.read();
            // SAFETY: I6: this descent begins at the holder, under the guard.
            let mut next = unsafe { self.holder().child(Side::RIGHT) };
            loop {
                let node = next?; // LP(get, absent): the load of the empty link
                if node.key() == key {
                    P::saw(|| B::Words::NODE.ended(node));
                    break node;
                }
                let side = Side::of(key, node.key());
                P::saw(|| B::Words::NODE.passed(node, side.index()));
                // SAFETY: I6: this descent has begun at the holder, under the guard.
                next = unsafe { node.follow(side) };
            }
        };
        Some(found.value())
    }

    /// Searches for an update, which needs the place.
    fn search<'g>(&'g self, key: u64, _guard: &'g Guard) -> Found<'g, B::Words> {
        let _section = self.rcu.read();
        let (mut parent, mut side) = (self.holder(), Side::RIGHT);
        // SAFETY: I6: this descent begins at the holder, under the guard of `'g`.
        let mut next = unsafe { parent.child(side) };
        loop {
            while let Some(node) = next {
                if node.key() == key {
                    P::saw(|| B::Words::NODE.ended(node));
                    return Found::Node(Link { parent, side, node });
                }
                (parent, side) = (node, Side::of(key, node.key()));
                P::saw(|| B::Words::NODE.passed(node, side.index()));
                // SAFETY: I6: this descent has begun at the holder, under the guard of `'g`.
                next = unsafe { parent.follow(side) };
            }
            let tag = parent.tag(side);
            // SAFETY: I6: this descent has begun at the holder, under the guard of `'g`. The tag is
            // as old as this look.
            next = unsafe { parent.child(side) };
            if next.is_none() {
                return Found::Nothing { parent, side, tag };
            }
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
            let done = match self.search(key, guard) {
                Found::Nothing { parent, side, tag } => match verb.step(None) {
                    Step::Keep | Step::Take => return Ok(None), // LP: the second look at the link
                    Step::Put(value) => {
                        let node = spare.filled(Node::new(key, value), guard)?;
                        let tag = tag_of_search(parent, side, tag);
                        self.attach(node, parent, (side, tag), &mut spare, guard).map(|()| None)
                    }
                },
                Found::Node(link) => {
                    let state = Some(link.node.value());
                    match verb.step(state) {
                        Step::Keep => return Ok(state), // LP: as of `get`
                        Step::Put(_) => Self::change_value(link.node, verb),
                        Step::Take => {
                            let blank = if link.node.has_two_children() {
                                Some(spare.filled(Node::new(key, 0), guard)?)
                            } else {
                                None
                            };
                            self.remove(&link, verb, blank, &mut spare, guard)
                        }
                    }
                }
            };
            if let Ok(state) = done {
                // The caller's next load must not come before the stores of this operation have
                // reached the others: two threads that write one key and read the other's could
                // else both see the old state.
                fence(Ordering::SeqCst);
                return Ok(state);
            }
        }
    }

    /// Links a new node below `parent`, if there is nothing yet and never was since the search.
    fn attach<'g>(
        &'g self,
        node: NonNull<Node<B::Words>>,
        parent: &'g Node<B::Words>,
        (side, tag): (Side, Tag),
        spare: &mut Spare<'_, Node<B::Words>, P>,
        _guard: &'g Guard,
    ) -> Result<(), Restart> {
        let parent = parent.lock();
        if !parent.is_open(side, tag) {
            return Err(Restart);
        }
        // SAFETY: `spare` has filled the node, and no other thread has it. When it is linked, I6
        // keeps it for `'g`.
        let node: &'g Node<_> = unsafe { node.as_ref() };
        parent.set_child(side, Some(node)); // LP(insert of an absent key)
        spare.linked();
        self.frame.len.add(1);
        Ok(())
    }

    /// Replaces a node's value, if it is still in the tree.
    fn change_value(node: &Node<B::Words>, verb: Update) -> Result<Option<u64>, Restart> {
        let node = node.lock();
        if is_out(&node) {
            return Err(Restart);
        }
        let state = Some(node.value());
        match verb.step(state) {
            Step::Keep => {}
            Step::Put(value) => node.set_value(value), // LP(insert, compare_exchange: replaced)
            Step::Take => return Err(Restart),
        }
        Ok(state)
    }

    /// Removes a node: its only child takes its place, or a copy of its successor, for which
    /// `blank` must be there.
    fn remove<'g>(
        &'g self,
        link: &Link<'g, B::Words>,
        verb: Update,
        blank: Blank<B::Words>,
        spare: &mut Spare<'_, Node<B::Words>, P>,
        guard: &'g Guard,
    ) -> Result<Option<u64>, Restart> {
        let prev = link.parent.lock();
        if !prev.leads_to(link.side, link.node) {
            return Err(Restart);
        }
        let curr = link.node.lock();
        debug_assert!(!curr.is_marked(), "who is marked is unlinked under the same locks (I2)");
        let state = Some(curr.value());
        match verb.step(state) {
            Step::Take => {}
            Step::Keep => return Ok(state),
            Step::Put(_) => return Err(Restart),
        }
        // SAFETY: I6: the search that found `curr` has reached it under the guard of `'g`.
        match unsafe { curr.children() } {
            (Some(left), Some(right)) => {
                let blank = blank.ok_or(Restart)?;
                let locked = Locked { prev, side: link.side, curr };
                self.replace(link.node, locked, [left, right], blank, spare, guard)?;
            }
            (child, None) | (None, child) => {
                curr.mark();
                prev.set_child(link.side, child); // LP(remove)
                self.frame.len.add(-1);
                drop((prev, curr));
            }
        }
        // SAFETY: the node is of this pool. This thread has marked it and replaced the link to it,
        // and no node in the tree leads to it again (I1, I2). It was not marked before, so it is
        // retired once.
        unsafe { self.nodes.retire(link.node.as_non_null(), guard) };
        Ok(state)
    }

    /// Puts a copy of the successor in the place of a node with two children, waits for the
    /// searches that may pass it on their way to the successor itself, and takes that out.
    fn replace<'g>(
        &'g self,
        node: &'g Node<B::Words>,
        Locked { prev, side, curr }: Locked<'g, B::Words>,
        [left, right]: [&'g Node<B::Words>; 2],
        blank: NonNull<Node<B::Words>>,
        spare: &mut Spare<'_, Node<B::Words>, P>,
        guard: &'g Guard,
    ) -> Result<(), Restart> {
        let to = Link::to_successor(node, right, guard);
        let early = to.node.value();
        let above = (!to.parent.is(node)).then(|| to.parent.lock());
        if !above.as_ref().unwrap_or(&curr).leads_to(to.side, to.node) {
            return Err(Restart);
        }
        let succ = to.node.lock();
        // SAFETY: I6: the descent to the successor has reached it under the guard of `'g`.
        let (before, after) = unsafe { succ.children() };
        if before.is_some() {
            return Err(Restart);
        }
        // Nobody writes the successor's value from here on: it is locked until it is marked.
        let value = value_to_copy(&succ, early);
        // SAFETY: `spare` has allocated the blank, and no other thread has it. `write` initialises
        // it. When it is linked, I6 keeps it for `'g`.
        let copy: &'g Node<_> = unsafe {
            blank.write(Node::over(succ.key(), value, [left, right]));
            blank.as_ref()
        };
        let copy = copy.lock();
        spare.linked();
        curr.mark();
        prev.set_child(side, Some(&copy)); // LP(remove)
        self.frame.len.add(-1);
        self.retire_when_copied(to.node, guard);
        self.wait_for_descents(); // paper: synchronize_rcu
        succ.mark();
        above.as_ref().unwrap_or(&copy).set_child(to.side, after);
        drop((prev, curr, above, succ, copy));
        // SAFETY: I2: this thread has marked the successor and replaced the link to it. Only the
        // thread that marks a node comes here.
        unsafe { self.retire_when_out(to.node, guard) };
        Ok(())
    }
}

/// A node and its parent, locked.
struct Locked<'g, W: Words> {
    prev: Held<'g, W>,
    side: Side,
    curr: Held<'g, W>,
}
