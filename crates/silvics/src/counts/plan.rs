//! The sizes of nodes of the directory, new nodes before they are linked, and lists of their parts.

use super::Counted;
use super::key::CountedKey;
use super::node::{Level, NodeRef, Part, Separator};
use crate::domain::Guard;
use crate::error::AllocError;
use crate::frame::Ordered;
use std::ops::Range;
use std::ptr::NonNull;

/// A bucket with more keys is divided.
pub(super) const MOST_KEYS: u64 = if cfg!(silvics_shuttle) { 3 } else { 64 };
/// A bucket with as many keys, or fewer, may be joined with its neighbour.
pub(super) const FEW_KEYS: u64 = if cfg!(silvics_shuttle) { 1 } else { 8 };
/// The keys of a bucket that is made of many keys.
pub(super) const NEW_BUCKET: u64 = MOST_KEYS - MOST_KEYS / 4;
/// The most buckets of a group.
pub(super) const MOST_BUCKETS: usize = if cfg!(silvics_shuttle) { 2 } else { 64 };
/// A group with as many buckets, or fewer, may be joined with its neighbour.
pub(super) const FEW_BUCKETS: usize = if cfg!(silvics_shuttle) { 1 } else { 8 };
/// The most groups of a section.
pub(super) const MOST_GROUPS: usize = if cfg!(silvics_shuttle) { 2 } else { 1024 };
/// A section with as many groups, or fewer, may be joined with its neighbour.
pub(super) const FEW_GROUPS: usize = if cfg!(silvics_shuttle) { 1 } else { 64 };

/// The number of marked buckets, of all of a directory, with which it is dropped.
pub(super) fn most_marked(buckets: usize) -> usize {
    if cfg!(silvics_shuttle) { buckets } else { (buckets / 2).max(buckets.min(4)) }
}

/// Whether two neighbouring nodes are joined, of which one has few parts.
pub(super) fn fit(few: usize, others: usize, most: usize) -> bool {
    few + others <= most - most / 4
}

/// A list that grows only as far as memory allows.
pub(super) struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> List<T> {
    pub(super) fn push(&mut self, item: T) -> Result<(), AllocError> {
        let bytes = 2 * size_of::<T>() * self.0.len().max(8);
        self.0.try_reserve(1).map_err(|_| AllocError::System { requested: bytes })?;
        self.0.push(item);
        Ok(())
    }

    pub(super) fn items(&self) -> &[T] {
        &self.0
    }

    /// Removes some of the first items.
    pub(super) fn remove_first(&mut self, items: usize) {
        self.0.drain(..items);
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }
}

/// The parts of a new node.
pub(super) type Parts<'g, K> = List<Part<'g, K>>;

impl<'g, K: CountedKey + ?Sized> Parts<'g, K> {
    /// Adds a bucket.
    pub(super) fn bucket(
        &mut self,
        from: Separator<'g, K>,
        keys: u64,
        is_marked: bool,
    ) -> Result<(), AllocError> {
        self.push(Part { from, keys, child: None, is_marked })
    }

    /// Adds parts of a node.
    pub(super) fn keep(
        &mut self,
        node: NodeRef<'g, K>,
        parts: Range<usize>,
    ) -> Result<(), AllocError> {
        parts.into_iter().try_for_each(|at| {
            let is_marked = node.is_marked(at);
            let (from, keys) = (node.separator(at), node.count(at));
            self.push(Part { from, keys, child: Some(node.child(at).address()), is_marked })
        })
    }

    /// Adds other parts.
    pub(super) fn extend(&mut self, others: &Self) -> Result<(), AllocError> {
        others.items().iter().try_for_each(|part| self.push(*part))
    }

    /// Joins neighbouring buckets of which one has few keys.
    pub(super) fn join(&mut self) {
        let mut joined = 0;
        let parts = &mut self.0;
        for at in 1..parts.len() {
            if are_joined(parts[joined].keys, parts[at].keys) {
                parts[joined].keys += parts[at].keys;
                parts[joined].is_marked |= parts[at].is_marked;
            } else {
                joined += 1;
                parts[joined] = parts[at];
            }
        }
        parts.truncate(joined + 1);
    }
}

/// Whether two neighbouring buckets with some keys become one.
pub(super) fn are_joined(one: u64, other: u64) -> bool {
    one.min(other) <= FEW_KEYS && one.saturating_add(other) <= MOST_KEYS - MOST_KEYS / 4
}

/// The number of nodes that get some parts, and the parts of each but the last.
pub(super) fn divided(parts: usize, most: usize) -> usize {
    parts.div_ceil(parts.div_ceil(most).max(1)).max(1)
}

/// Nodes that are not linked yet. They are freed unless they are kept.
pub(super) struct Fresh<'g, A: Ordered<Key: CountedKey>> {
    counted: &'g Counted<A>,
    guard: &'g Guard,
    nodes: List<NonNull<u8>>,
}

impl<'g, A: Ordered<Key: CountedKey>> Fresh<'g, A> {
    pub(super) fn new(counted: &'g Counted<A>, guard: &'g Guard) -> Self {
        Self { counted, guard, nodes: List::default() }
    }

    /// Makes a node.
    pub(super) fn node(
        &mut self,
        level: Level,
        parts: &[Part<'_, A::Key>],
    ) -> Result<NodeRef<'g, A::Key>, AllocError> {
        let node = self.counted.objects.node(level, parts, self.guard)?;
        if let Err(error) = self.nodes.push(node.address()) {
            // SAFETY: the node was never linked.
            unsafe { self.counted.objects.free(node) };
            return Err(error);
        }
        Ok(node)
    }

    /// Makes nodes of the parts, of up to `most` parts each, and adds them to `above`.
    pub(super) fn nodes(
        &mut self,
        (level, most): (Level, usize),
        parts: &[Part<'g, A::Key>],
        above: &mut Parts<'g, A::Key>,
    ) -> Result<(), AllocError> {
        for parts in parts.chunks(divided(parts.len(), most)) {
            let keys = parts.iter().map(|part| part.keys).sum();
            let is_marked = parts.iter().any(|part| part.is_marked);
            let child = Some(self.node(level, parts)?.address());
            above.push(Part { from: parts[0].from, keys, child, is_marked })?;
        }
        Ok(())
    }

    /// The nodes are linked.
    pub(super) fn keep(&mut self) {
        self.nodes.take();
    }
}

impl<A: Ordered<Key: CountedKey>> Drop for Fresh<'_, A> {
    fn drop(&mut self) {
        for node in self.nodes.take() {
            // SAFETY: the node was never linked, so nobody else has it.
            unsafe { self.counted.objects.free(NodeRef::new(node)) };
        }
    }
}
