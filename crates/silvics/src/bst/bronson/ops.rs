//! The descent and the verbs.

use super::BronsonTree;
use super::balance::Visit;
use super::node::{Node, Side, Version};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::{Ordering, fence};
use std::ptr::{NonNull, null_mut};

/// Where a descent ended.
enum Found<'g> {
    /// At the node with the key, last seen below `parent`.
    Node { parent: &'g Node, node: &'g Node },
    /// Below `parent`, which had no child on `side` while its version was `version`.
    Nothing { parent: &'g Node, version: Version, side: Side },
}

/// Whether what was read below `node` since `version` may belong to another place by now.
#[inline(always)]
fn has_moved(node: &Node, version: Version) -> bool {
    !planted(Canary::DescentUnvalidated) && node.has_shrunk_since(version)
}

/// Something has changed: descend again.
struct Restart;

impl<P: Placement> BronsonTree<P> {
    /// Descends hand over hand: a step from `node` to `child` counts only if `child`'s version was
    /// read, then the link to it seen again, then `node` seen not to have shrunk. So at that last
    /// moment the key, if present, was in the subtree of `child` at that version (I3).
    #[inline(always)]
    fn descend<'g>(&'g self, key: u64, _guard: &'g Guard) -> Found<'g> {
        loop {
            let mut node = self.holder();
            let (mut version, mut side) = (Version::STILL, Side::RIGHT);
            loop {
                // SAFETY: `node` was reached under the guard.
                let Some(child) = (unsafe { node.child(side) }) else {
                    if has_moved(node, version) {
                        break;
                    }
                    return Found::Nothing { parent: node, version, side };
                };
                if child.key() == key {
                    return Found::Node { parent: node, node: child };
                }
                let child_version = child.version();
                // SAFETY: as above.
                let again = unsafe { node.child(side) };
                if child_version.is_shrinking() {
                    child.wait_while_shrinking();
                } else if !child_version.is_unlinked()
                    && again.is_some_and(|c| std::ptr::eq(c, child))
                {
                    if has_moved(node, version) {
                        break;
                    }
                    (node, version, side) = (child, child_version, Side::of(key, child.key()));
                    continue;
                }
                if has_moved(node, version) {
                    break;
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn do_get(&self, key: u64, guard: &Guard) -> Option<u64> {
        match self.descend(key, guard) {
            Found::Node { node, .. } => node.state(),
            Found::Nothing { .. } => None, // LP(get, absent): the load of the empty link
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
        let mut spare = Spare { tree: self, node: None };
        loop {
            let done = match self.descend(key, guard) {
                Found::Nothing { parent, version, side } => match verb.step(None) {
                    Step::Keep | Step::Take => return Ok(None), // LP: the load of the empty link
                    Step::Put(value) => {
                        let node = spare.node(key, value, guard)?;
                        self.attach(node, parent, version, side, &mut spare, guard).map(|()| None)
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
        node: NonNull<Node>,
        parent: &'g Node,
        version: Version,
        side: Side,
        spare: &mut Spare<'_, P>,
        guard: &'g Guard,
    ) -> Result<(), Restart> {
        let visit = {
            let parent = parent.lock();
            // SAFETY: reached under the guard.
            let occupied = unsafe { parent.child(side) }.is_some();
            if occupied && planted(Canary::CountedOnFailure) {
                self.len.add(1);
            }
            if occupied || !planted(Canary::AttachUnvalidated) && parent.has_shrunk_since(version) {
                return Err(Restart);
            }
            // SAFETY: ours alone until the next line links it.
            let node: &'g Node = unsafe { node.as_ref() };
            parent.adopt(Some(node));
            parent.set_child(side, Some(node)); // LP(insert of an absent key)
            spare.node = None;
            self.len.add(1);
            Visit { node: parent.node(), child: Some(node) }
        };
        self.repair(visit, guard);
        Ok(())
    }

    /// Changes a node's value or presence in place.
    fn change_value(&self, node: &Node, verb: Update) -> Result<Option<u64>, Restart> {
        let node = node.lock();
        if node.version().is_unlinked() {
            return Err(Restart);
        }
        let state = node.state();
        match (verb.step(state), state) {
            (Step::Keep, _) | (Step::Take, None) => {}
            (Step::Put(value), Some(_)) => node.set_value(value), // LP(insert, compare_exchange: replaced)
            (Step::Put(value), None) => {
                node.make_present(value); // LP(insert of an absent key that has a routing node)
                self.len.add(1);
            }
            (Step::Take, Some(_)) => {
                if !node.has_two_children() {
                    return Err(Restart); // can be unlinked by now
                }
                node.make_absent(); // LP(remove, leaving a routing node)
                self.len.add(-1);
            }
        }
        Ok(state)
    }

    /// Takes the value of a node with at most one child and unlinks the node.
    fn remove_node<'g>(
        &'g self,
        parent: &'g Node,
        node: &Node,
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
            self.len.add(-1);
            let child = self.unlink(&parent, &node, guard);
            (state, Visit { node: parent.node(), child })
        };
        self.repair(visit, guard);
        Ok(state)
    }
}

/// A node allocated for an operation and not yet linked: kept over retries, freed at the end.
struct Spare<'t, P: Placement> {
    tree: &'t BronsonTree<P>,
    node: Option<NonNull<Node>>,
}

impl<P: Placement> Spare<'_, P> {
    fn node(&mut self, key: u64, value: u64, guard: &Guard) -> Result<NonNull<Node>, AllocError> {
        if let Some(node) = self.node {
            return Ok(node); // an operation has one key and one value
        }
        let node = Node::new(key, Some(value), null_mut());
        let node = self.tree.nodes.alloc(node, &self.tree.domain, guard)?;
        self.node = Some(node);
        Ok(node)
    }
}

impl<P: Placement> Drop for Spare<'_, P> {
    fn drop(&mut self) {
        if let Some(node) = self.node {
            // SAFETY: never linked.
            unsafe { self.tree.nodes.free(node) };
        }
    }
}
