//! The descent and the verbs.

use super::super::side::Side;
use super::Bronson;
use super::balance::Visit;
use super::build::{Build, CHILDREN, VERSION, Words};
use super::canaries::{
    follow_early, has_moved, is_failure_counted, is_no_longer_the_place, link_to_take,
};
use super::node::{Node, Version};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_layout::NodeLayout;
use silvics_layout::record::{Read, Why};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::{Ordering, fence};
use std::ptr::NonNull;

/// The end of a descent.
enum Found<'g, W> {
    /// At the node with the key, last seen below `parent`.
    Node { parent: &'g Node<W>, node: &'g Node<W> },
    /// Below `parent`, which had no child on `side` while its version was `version`.
    Nothing(Gap<'g, W>),
}

/// A place without a node.
struct Gap<'g, W> {
    parent: &'g Node<W>,
    version: Version,
    side: Side,
}

/// A node on the way, its version when it was reached, where to go from it, and where that led
/// after the version was read.
struct Place<'g, W> {
    node: &'g Node<W>,
    version: Version,
    side: Side,
    next: Option<&'g Node<W>>,
}

impl<W> Clone for Place<'_, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for Place<'_, W> {}

impl<'g, W: Words> Place<'g, W> {
    #[inline(always)]
    fn at(node: &'g Node<W>, version: Version, side: Side, _guard: &'g Guard) -> Self {
        // SAFETY: I6: `node` was reached under the guard of `'g`, as its lifetime says.
        Self { node, version, side, next: unsafe { node.follow(side) } }
    }
}

/// The result of a step.
enum Reached<'g, W> {
    Place(Place<'g, W>),
    End(Found<'g, W>),
}

/// Something has changed: descend again.
struct Restart;

impl<P: Placement, B: Build> Bronson<P, B> {
    /// Descends hand over hand: a step from `node` to `child` counts only if `child`'s version was
    /// read, then the link to it seen again, then `node` seen not to have shrunk. So when the link
    /// was seen again the key, if present, was in the subtree of `child` at that version (I3).
    /// `child`'s own link is loaded in between, after its version: the next step counts only if
    /// `child` has not shrunk by its end, and so not before that load.
    #[inline(always)]
    fn descend<'g>(&'g self, key: u64, guard: &'g Guard) -> Found<'g, B::Words> {
        loop {
            let holder = Place::at(self.holder(), Version::STILL, Side::RIGHT, guard);
            let found = if B::RECURSES {
                let Place { node, version, side, next } = holder;
                Self::attempt(key, node, version, side, next, guard)
            } else {
                Self::run(key, holder, guard)
            };
            if let Some(found) = found {
                return found;
            }
        }
    }

    /// One step: where a place leads, or nothing if its node has moved.
    #[inline(always)]
    fn step<'g>(
        key: u64,
        Place { node, version, side, mut next }: Place<'g, B::Words>,
        guard: &'g Guard,
    ) -> Option<Reached<'g, B::Words>> {
        loop {
            let Some(child) = next else {
                let gap = Gap { parent: node, version, side };
                return (!has_moved(node, version)).then_some(Reached::End(Found::Nothing(gap)));
            };
            if child.key() == key {
                P::saw(|| B::Words::NODE.ended(child));
                return Some(Reached::End(Found::Node { parent: node, node: child }));
            }
            let early = follow_early(child, key, guard);
            let child_version = child.version();
            let is_still_there = node.leads_to(side, child);
            if child_version.is_shrinking() {
                child.wait_while_shrinking();
            } else if !child_version.is_unlinked() && is_still_there {
                let child_side = Side::of(key, child.key());
                P::saw(|| B::Words::NODE.passed(child, child_side.index()));
                P::saw(|| Self::again(node, side));
                let mut place = Place::at(child, child_version, child_side, guard);
                place.next = link_to_take(early, place.next);
                return (!has_moved(node, version)).then_some(Reached::Place(place));
            }
            if has_moved(node, version) {
                return None;
            }
            // SAFETY: I6: `node` was reached under the guard of `'g`, as its lifetime says.
            next = unsafe { node.child(side) };
        }
    }

    /// The words that a step reads again in the node that it comes from: the link and the version.
    fn again(node: &Node<B::Words>, side: Side) -> [Read; 2] {
        let layout: &'static NodeLayout = &B::Words::NODE;
        let link = layout.search[CHILDREN].offset + side.index() * size_of::<usize>();
        [link, layout.search[VERSION].offset]
            .map(|offset| layout.read(node, offset, size_of::<u64>(), Why::Again))
    }

    /// Goes on from a place to the end, unless a node on the way has moved.
    #[inline(always)]
    fn run<'g>(
        key: u64,
        mut place: Place<'g, B::Words>,
        guard: &'g Guard,
    ) -> Option<Found<'g, B::Words>> {
        loop {
            match Self::step(key, place, guard)? {
                Reached::End(found) => return Some(found),
                Reached::Place(next) => place = next,
            }
        }
    }

    /// Descends by recursion (paper: `attemptGet` and similar): a node that has moved sends the
    /// search back to the one above it only. The place comes in registers, part by part: through
    /// memory, the next node's address would be some cycles late at each level.
    fn attempt<'g>(
        key: u64,
        node: &'g Node<B::Words>,
        version: Version,
        side: Side,
        mut next: Option<&'g Node<B::Words>>,
        guard: &'g Guard,
    ) -> Option<Found<'g, B::Words>> {
        loop {
            match Self::step(key, Place { node, version, side, next }, guard)? {
                Reached::End(found) => return Some(found),
                Reached::Place(Place { node, version, side, next }) => {
                    let found = Self::attempt(key, node, version, side, next, guard);
                    if found.is_some() {
                        return found;
                    }
                }
            }
            // SAFETY: I6: `node` was reached under the guard of `'g`, as its lifetime says.
            next = unsafe { node.child(side) };
        }
    }

    #[inline(always)]
    pub(super) fn lookup(&self, key: u64, guard: &Guard) -> Option<u64> {
        match self.descend(key, guard) {
            Found::Node { node, .. } => node.state(),
            Found::Nothing(_) => None, // LP(get, absent): the load of the empty link
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
            let done = match self.descend(key, guard) {
                Found::Nothing(gap) => match verb.step(None) {
                    Step::Keep | Step::Take => return Ok(None), // LP: the load of the empty link
                    Step::Put(value) => {
                        let node = Node::new(key, Some(value));
                        let node = spare.filled(node, guard)?;
                        self.attach(node, &gap, &mut spare, guard).map(|()| None)
                    }
                },
                Found::Node { parent, node } => {
                    let state = node.state();
                    match verb.step(state) {
                        Step::Keep => return Ok(state), // LP: in `state`
                        Step::Take if !node.has_two_children() => {
                            self.remove_node(parent, node, verb, guard)
                        }
                        Step::Take | Step::Put(_) => self.change_value(node, verb),
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

    /// Links a new node below `parent` on `side`, if that is still empty and `parent` the place.
    fn attach<'g>(
        &'g self,
        node: NonNull<Node<B::Words>>,
        &Gap { parent, version, side }: &Gap<'g, B::Words>,
        spare: &mut Spare<'_, Node<B::Words>, P>,
        guard: &'g Guard,
    ) -> Result<(), Restart> {
        let visit = {
            let parent = parent.lock();
            // SAFETY: I6: `parent` was reached under the guard of `'g`, as its lifetime says.
            let occupied = unsafe { parent.child(side) }.is_some();
            if occupied && is_failure_counted() {
                self.frame.len.add(1);
            }
            if occupied || is_no_longer_the_place(&parent, version) {
                return Err(Restart);
            }
            // SAFETY: `spare` has filled the node, and no other thread has it. When it is linked,
            // I6 keeps it for `'g`.
            let node: &'g Node<_> = unsafe { node.as_ref() };
            parent.adopt(Some(node));
            parent.set_child(side, Some(node)); // LP(insert of an absent key)
            spare.linked();
            self.frame.len.add(1);
            Visit { node: parent.node(), child: Some(node) }
        };
        self.repair(visit, guard);
        Ok(())
    }

    /// Changes a node's value or presence in place.
    fn change_value(&self, node: &Node<B::Words>, verb: Update) -> Result<Option<u64>, Restart> {
        let node = node.lock();
        if node.version().is_unlinked() {
            return Err(Restart);
        }
        let state = node.state();
        match (verb.step(state), state) {
            (Step::Keep, _) | (Step::Take, None) => {}
            // LP(insert, compare_exchange: replaced)
            (Step::Put(value), Some(_)) => node.set_value(value),
            (Step::Put(value), None) => {
                node.make_present(value); // LP(insert of an absent key that has a routing node)
                self.frame.len.add(1);
            }
            (Step::Take, Some(_)) => {
                if !node.has_two_children() {
                    return Err(Restart); // can be unlinked by now
                }
                node.make_absent(); // LP(remove, leaving a routing node)
                self.frame.len.add(-1);
            }
        }
        Ok(state)
    }

    /// Takes the value of a node with at most one child and unlinks the node.
    fn remove_node<'g>(
        &'g self,
        parent: &'g Node<B::Words>,
        node: &Node<B::Words>,
        verb: Update,
        guard: &'g Guard,
    ) -> Result<Option<u64>, Restart> {
        let (state, visit) = {
            let parent = parent.lock();
            if parent.version().is_unlinked() || !node.is_child_of(&parent) {
                return Err(Restart);
            }
            let node = node.lock();
            let state = node.state();
            let (Step::Take, Some(_)) = (verb.step(state), state) else {
                return if matches!(verb.step(state), Step::Keep) {
                    Ok(state)
                } else {
                    Err(Restart)
                };
            };
            if node.has_two_children() {
                return Err(Restart);
            }
            node.make_absent(); // LP(remove)
            self.frame.len.add(-1);
            // SAFETY: both are locked and neither is unlinked, as `node` had a value. `node` names
            // `parent`, so it is linked below it (I1). The descent has reached it under `guard`.
            let child = unsafe { self.unlink(&parent, &node, guard) };
            (state, Visit { node: parent.node(), child })
        };
        self.repair(visit, guard);
        Ok(state)
    }
}
