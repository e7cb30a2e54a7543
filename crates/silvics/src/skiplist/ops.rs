//! Updates, and the linking of towers.

use super::Skip;
use super::key::SkipKey;
use super::node::{Link, MAX_HEIGHT, Marked, Node, NodeRef, node_bytes};
use super::seek::Splice;
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use silvics_sync::atomic::{Ordering as Memory, fence};
use silvics_sync::random::random;

/// The link that replaces `onward` of a node which is to be replaced, or `None` if that is removed.
#[inline(always)]
fn replaceable<K: SkipKey + ?Sized>(onward: Link<'_, K>) -> Option<Link<'_, K>> {
    if planted(Canary::UpdateReplacesRemoved) {
        return Some(onward.unmarked());
    }
    (!onward.is_marked()).then_some(onward)
}

/// Whether a node with a complete tower has been removed meanwhile.
#[inline(always)]
fn is_leaving<K: SkipKey + ?Sized>(node: NodeRef<'_, K>, height: usize) -> bool {
    node.next(height - 1).is_marked() && !planted(Canary::TowerLinkedAfterRemoval)
}

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// Applies `verb` to the present state of `key`, and returns this state.
    #[inline]
    pub(super) fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut height = if verb.may_put() { self.random_height() } else { 0 };
        let mut spare = Spare { list: self, node: None };
        let mut splice = Splice::new();
        loop {
            self.seek(K::shorten(key), height, &mut splice, guard);
            let state = splice.found.map(NodeRef::value);
            let done = match (verb.step(state), splice.found) {
                // LP(kept): the load of the link that leads to the node found, or past the key.
                (Step::Keep, _) | (Step::Take, None) => true,
                (Step::Take, Some(node)) => self.take(node, &mut splice, guard),
                (Step::Put(value), None) => {
                    let node = spare.node(K::shorten(key), value, &mut height, guard)?;
                    self.link(node, height, &mut splice, &mut spare, guard)
                }
                (Step::Put(value), Some(old)) => {
                    let node = spare.node(K::shorten(key), value, &mut height, guard)?;
                    self.replace(old, node, height, &mut splice, &mut spare, guard)
                }
            };
            if done {
                return Ok(state);
            }
        }
    }

    /// Links a new node and returns true, or returns false if its place has changed.
    fn link<'g>(
        &'g self,
        node: NodeRef<'g, K>,
        height: usize,
        splice: &mut Splice<'g, K>,
        spare: &mut Spare<'_, K, P>,
        guard: &'g Guard,
    ) -> bool {
        let Some(place) = splice.at(0) else { return false };
        node.set_next_unshared(0, place.link_from_target());
        if !place.pred.try_link(0, place.link, place.link_to(node)) {
            return false; // LP(insert of an absent key): the CAS, if it succeeds
        }
        spare.node = None;
        self.frame.len.add(1);
        self.build_tower(node, height, splice, guard);
        true
    }

    /// Puts `node` in the place of `old`, which has the same key. One step marks `old` and makes it
    /// lead to `node`, so the key is present throughout. Returns false if `old` is removed.
    fn replace<'g>(
        &'g self,
        old: NodeRef<'g, K>,
        node: NodeRef<'g, K>,
        height: usize,
        splice: &mut Splice<'g, K>,
        spare: &mut Spare<'_, K, P>,
        guard: &'g Guard,
    ) -> bool {
        Self::mark_upper(old);
        let same_key = K::hint(K::shorten(node.key()), K::shorten(node.key()));
        loop {
            let onward = old.next(0);
            let Some(successor) = replaceable(onward) else { return false };
            node.set_next_unshared(0, successor); // its hint is relative to an equal key
            if old.try_link(0, onward, Link::to(node, same_key).marked()) {
                break; // LP(insert, compare_exchange: replaced)
            }
        }
        spare.node = None;
        if self.unlink_at(splice, old, guard) {
            self.build_tower(node, height, splice, guard);
            return true;
        }
        fence(Memory::SeqCst); // see `take`
        self.seek(node.key(), height, splice, guard); // unlinks `old`
        if splice.found == Some(node) {
            self.build_tower(node, height, splice, guard);
        } else if height > 1 {
            self.unrefer(node, height - 1, guard);
        }
        true
    }

    /// Removes `node`, which a descent found. Returns false if another operation has removed or
    /// replaced it.
    fn take<'g>(
        &'g self,
        node: NodeRef<'g, K>,
        splice: &mut Splice<'g, K>,
        guard: &'g Guard,
    ) -> bool {
        Self::mark_upper(node);
        if node.mark(0) == Marked::Before {
            return false; // LP(remove): the marking of level 0, if the mark is ours
        }
        self.frame.len.add(-1);
        // A node that is unlinked here on every level has no builder any more.
        if !self.unlink_at(splice, node, guard) {
            // If the descent below does not see a builder's link to `node`, then the builder's
            // fence comes after this one, and the builder sees the marks.
            fence(Memory::SeqCst);
            self.seek(node.key(), 0, splice, guard); // unlinks it on every level
        }
        true
    }

    fn mark_upper(node: NodeRef<'_, K>) {
        for level in (1..node.height()).rev() {
            // The result does not matter: the mark at level 0 decides.
            let _: Marked = node.mark(level);
        }
    }

    /// Links `node`, which is linked at level 0, on its upper levels, unless it is removed
    /// meanwhile.
    fn build_tower<'g>(
        &'g self,
        node: NodeRef<'g, K>,
        height: usize,
        splice: &mut Splice<'g, K>,
        guard: &'g Guard,
    ) {
        if height == 1 {
            return;
        }
        if height > self.height.load(Memory::Relaxed) {
            self.height.fetch_max(height, Memory::Relaxed);
        }
        let mut level = 1;
        while level < height {
            let own = node.next(level);
            if own.is_marked() {
                break;
            }
            if let Some(place) = splice.at(level) {
                if !node.try_link(level, own, place.link_from_target()) {
                    break; // only a mark can have changed the link
                }
                if place.pred.try_link(level, place.link, place.link_to(node)) {
                    level += 1;
                    continue;
                }
            }
            self.seek(node.key(), height, splice, guard);
            if splice.found != Some(node) {
                break;
            }
        }
        if level < height {
            self.unrefer(node, height - level, guard);
        }
        // If the remover's second descent missed one of our links, its fence came before this one,
        // and this thread sees its marks.
        fence(Memory::SeqCst);
        if is_leaving(node, height) {
            self.seek(node.key(), 0, splice, guard);
        }
    }

    /// A random height of at least 1, and at most one above the list's height (Pugh 1990, "fix the
    /// dice").
    pub(super) fn random_height(&self) -> usize {
        let tallest = (self.height.load(Memory::Relaxed) + 1).min(MAX_HEIGHT);
        let mut height = 1;
        let mut promoted = K::SECOND_LEVEL;
        while height < tallest && (random() as u16) < promoted {
            height += 1;
            promoted = K::HIGHER_LEVEL;
        }
        height
    }
}

/// A node that an operation has allocated and not yet linked. It is kept when the operation
/// restarts, and freed at the end.
struct Spare<'l, K: SkipKey + ?Sized, P: Placement> {
    list: &'l Skip<K, P>,
    node: Option<NodeRef<'l, K>>,
}

impl<'l, K: SkipKey + ?Sized, P: Placement> Spare<'l, K, P> {
    /// Returns the operation's node, and allocates it at the first call. An operation has one key
    /// and one value, so the node fits every call.
    ///
    /// If there is no memory for a node of this height, it takes another height, for which there is
    /// a free slot: at a limit, that of a node that was removed. So a list can put back what it
    /// removed.
    fn node(
        &mut self,
        key: K::Ref<'_>,
        value: u64,
        height: &mut usize,
        guard: &Guard,
    ) -> Result<NodeRef<'l, K>, AllocError> {
        if let Some(node) = self.node {
            return Ok(node);
        }
        let new = |height| self.list.new_node(K::shorten(key), value, height, guard);
        let node = match new(*height) {
            Ok(node) => node,
            Err(error) => {
                let tallest = self.list.height.load(Memory::Relaxed);
                let mut others = (1..*height).rev().chain(*height + 1..=tallest);
                let found = others.find_map(|other| Some((new(other).ok()?, other)));
                let Some((node, other)) = found else { return Err(error) };
                *height = other;
                node
            }
        };
        self.node = Some(node);
        Ok(node)
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Drop for Spare<'_, K, P> {
    fn drop(&mut self) {
        if let Some(node) = self.node {
            // SAFETY: the node was never linked, so no other thread has seen it.
            unsafe { self.list.nodes.free(node.as_non_null().cast()) };
        }
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// Allocates a node that no other thread can reach.
    pub(super) fn new_node<'g>(
        &self,
        key: K::Ref<'_>,
        value: u64,
        height: usize,
        guard: &Guard,
    ) -> Result<NodeRef<'g, K>, AllocError> {
        let bytes = node_bytes::<K>(key, height);
        if u32::try_from(bytes).is_err() {
            return Err(AllocError::System { requested: bytes });
        }
        let memory = self.nodes.alloc(bytes, guard)?;
        // SAFETY: `Blobs` returns `bytes` bytes, aligned to 8, that are ours alone.
        Ok(unsafe { Node::init(memory, key, value, height) })
    }
}
