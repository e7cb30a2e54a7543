//! The node, and every access to its words.

use super::build::Words;
use crate::canary::{Canary, planted};
use silvics_sync::atomic::Ordering;
use silvics_sync::lock::RawLock;
use std::ptr::{NonNull, null_mut};

/// A node: an entry. The build says where its words are. All of them are atomic, so that a reference
/// to it allows what the pointer it was made of allows, the node's retirement included.
#[repr(transparent)]
pub struct Node<W>(W);

/// Which child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side(usize);

impl Side {
    pub(super) const LEFT: Self = Self(0);
    pub(super) const RIGHT: Self = Self(1);

    /// Where `key` lies below a node with `node_key`, from which it differs.
    #[inline(always)]
    pub(super) fn of(key: u64, node_key: u64) -> Self {
        Self(usize::from(key > node_key))
    }
}

/// How often a child had been taken away when somebody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl<W: Words> Node<W> {
    /// A node without children that is not linked yet.
    pub(super) fn new(key: u64, value: u64) -> Self {
        Self(W::new(key, value))
    }

    /// A node that is not linked yet, with children.
    pub(super) fn over(key: u64, value: u64, [left, right]: [&Self; 2]) -> Self {
        let node = Self::new(key, value);
        // Relaxed: private until the Release that publishes the node.
        node.0.children()[0].store(left.as_ptr(), Ordering::Relaxed);
        node.0.children()[1].store(right.as_ptr(), Ordering::Relaxed);
        node
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.0.key().load(Ordering::Relaxed)
    }

    /// The value: see the linearization points of `get`.
    #[inline(always)]
    pub(super) fn value(&self) -> u64 {
        self.0.value().load(Ordering::Acquire) // LP(get, found)
    }

    fn as_ptr(&self) -> *mut Self {
        std::ptr::from_ref(self).cast_mut()
    }

    pub(super) fn as_non_null(&self) -> NonNull<Self> {
        NonNull::from(self)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// The child on `side`, initialised.
    ///
    /// # Safety
    /// The node was reached under a guard that lives as long as `'g`, by an operation that began
    /// under it (I6), or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn child<'g>(&self, side: Side) -> Option<&'g Self> {
        // SAFETY: I6, children are nodes of the tree, not reclaimed under the guard.
        unsafe { self.0.children()[side.0].load(Ordering::Acquire).as_ref() }
    }

    /// Both children.
    ///
    /// # Safety
    /// As for [`Node::child`].
    pub(super) unsafe fn children<'g>(&self) -> (Option<&'g Self>, Option<&'g Self>) {
        // SAFETY: the caller's promise.
        unsafe { (self.child(Side::LEFT), self.child(Side::RIGHT)) }
    }

    pub(super) fn has_two_children(&self) -> bool {
        let is_there = |side: Side| !self.0.children()[side.0].load(Ordering::Relaxed).is_null();
        is_there(Side::LEFT) && is_there(Side::RIGHT)
    }

    /// How often the child on `side` has been taken away. Loads of the child that come after see it
    /// at least as it was then.
    pub(super) fn tag(&self, side: Side) -> Tag {
        Tag(self.0.tags()[side.0].load(Ordering::Acquire))
    }

    /// Whether the node has left the tree: certain under its lock.
    pub(super) fn is_marked(&self) -> bool {
        self.0.marked().load(Ordering::Relaxed)
    }

    /// Takes the node's lock.
    pub(super) fn lock(&self) -> Held<'_, W> {
        self.0.lock().lock();
        Held(self)
    }
}

/// A node whose lock the holder owns; dropping it gives the lock back. All changes go through it.
pub(super) struct Held<'a, W: Words>(&'a Node<W>);

impl<W: Words> std::ops::Deref for Held<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Held<'_, W> {
    /// Whether this node is in the tree and `child` is its child on `side` (paper: `validate`).
    pub(super) fn leads_to(&self, side: Side, child: &Node<W>) -> bool {
        let now = self.0.0.children()[side.0].load(Ordering::Relaxed); // Relaxed: under the lock
        !self.is_marked() && std::ptr::eq(now, child)
    }

    /// Whether this node is in the tree and has had no child on `side` since `tag` was read (paper:
    /// `validate`).
    pub(super) fn is_open(&self, side: Side, tag: Tag) -> bool {
        let now = self.0.0.children()[side.0].load(Ordering::Relaxed); // Relaxed: under the lock
        let same = self.tag(side) == tag || planted(Canary::TagIgnored);
        !self.is_marked() && now.is_null() && same
    }

    /// Sets the child on `side`; counts it if that takes a child away (paper: `incrementTag`).
    pub(super) fn set_child(&self, side: Side, child: Option<&Node<W>>) {
        let word = child.map_or(null_mut(), Node::as_ptr);
        self.0.0.children()[side.0].store(word, Ordering::Release);
        if child.is_none() {
            let Tag(tag) = self.tag(side);
            self.0.0.tags()[side.0].store(tag.wrapping_add(1), Ordering::Release);
        }
    }

    /// Replaces the value of a node in the tree.
    pub(super) fn set_value(&self, value: u64) {
        self.0.0.value().store(value, Ordering::Release);
    }

    /// The node leaves the tree.
    pub(super) fn mark(&self) {
        debug_assert!(!self.is_marked());
        self.0.0.marked().store(true, Ordering::Relaxed); // Relaxed: read under the lock
    }
}

impl<W: Words> Drop for Held<'_, W> {
    fn drop(&mut self) {
        // SAFETY: we own the lock.
        unsafe { self.0.0.lock().unlock() };
    }
}
