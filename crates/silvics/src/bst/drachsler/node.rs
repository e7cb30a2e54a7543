//! The node, and every access to its words.

use super::build::Words;
use crate::canary::{Canary, planted};
use silvics_sync::atomic::Ordering;
use silvics_sync::lock::RawLock;
use std::ptr::{NonNull, null_mut};

/// A node: an entry, or one of the two ends of the list. The build says where its words are. All of
/// them are atomic, so that a reference to it allows what the pointer it was made of allows, the
/// node's retirement included.
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

impl<W: Words> Node<W> {
    /// A node that leads nowhere yet.
    pub(super) fn new(key: u64, value: u64) -> Self {
        Self(W::new(key, value))
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.0.key().load(Ordering::Relaxed)
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

    /// The node before it in the list, at least as far back as the last one whose insertion or
    /// removal there is complete.
    ///
    /// # Safety
    /// As for [`Node::child`], and the node is in the list or has been.
    #[inline(always)]
    pub(super) unsafe fn pred<'g>(&self) -> &'g Self {
        // SAFETY: I6, and nodes in the list have both neighbours (I1).
        unsafe { &*self.0.pred().load(Ordering::Acquire) }
    }

    /// The node after it in the list.
    ///
    /// # Safety
    /// As for [`Node::pred`].
    #[inline(always)]
    pub(super) unsafe fn succ<'g>(&self) -> &'g Self {
        // SAFETY: as in `pred`.
        unsafe { &*self.0.succ().load(Ordering::Acquire) }
    }

    /// The parent: a hint unless the caller holds its tree lock.
    ///
    /// # Safety
    /// As for [`Node::pred`].
    pub(super) unsafe fn parent<'g>(&self) -> &'g Self {
        // SAFETY: I6; nodes have a parent before they are in the list (I4).
        unsafe { &*self.0.parent().load(Ordering::Acquire) }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.0.marked().load(Ordering::Acquire)
    }

    /// The value, if the node is not removed. A value is not written any more once the node is
    /// marked, and the mark stays: so a value with no mark behind it was the key's when it was read.
    #[inline(always)]
    pub(super) fn state(&self) -> Option<u64> {
        let value = self.0.value().load(Ordering::Acquire); // LP(get, found)
        (!self.is_marked()).then_some(value)
    }

    /// Makes the end of a list or a new node ready to be linked.
    pub(super) fn lay(&self, pred: &Self, succ: &Self, parent: &Self) {
        // Relaxed: private until the Release that publishes the node.
        self.0.pred().store(pred.as_ptr(), Ordering::Relaxed);
        self.0.succ().store(succ.as_ptr(), Ordering::Relaxed);
        self.0.parent().store(parent.as_ptr(), Ordering::Relaxed);
    }

    /// Takes the lock of the interval after it.
    pub(super) fn lock_succ(&self) -> Interval<'_, W> {
        self.0.succ_lock().lock();
        Interval(self)
    }

    /// Takes the lock of its place in the tree.
    pub(super) fn lock_tree(&self) -> Held<'_, W> {
        self.0.tree_lock().lock();
        Held(self)
    }

    /// The same, unless another has it.
    pub(super) fn try_lock_tree(&self) -> Option<Held<'_, W>> {
        // Made only if it is ours: dropping one gives the lock back.
        self.0.tree_lock().try_lock().then(|| Held(self))
    }
}

/// A node whose succ lock the holder owns; dropping it gives the lock back. All changes of the list
/// and of values go through it.
pub(super) struct Interval<'a, W: Words>(&'a Node<W>);

impl<W: Words> std::ops::Deref for Interval<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Interval<'_, W> {
    /// Puts a node that is laid out, and locked, between this one and `succ`, which follows it.
    pub(super) fn insert(&self, node: &Interval<'_, W>, succ: &Node<W>) {
        let back = || succ.0.pred().store(node.0.as_ptr(), Ordering::Release);
        if planted(Canary::LinkedBackwardsFirst) {
            back();
        }
        self.0.0.succ().store(node.0.as_ptr(), Ordering::Release); // LP(insert of an absent key)
        // Whoever comes to the node from behind finds it in the list. Its lock keeps others from
        // putting one behind it, before this link says that it is there.
        if !planted(Canary::LinkedBackwardsFirst) {
            back();
        }
    }

    /// Takes out the node after this one, which is locked too.
    pub(super) fn unlink(&self, node: &Interval<'_, W>) {
        let succ = node.0.0.succ().load(Ordering::Relaxed); // Relaxed: written under the lock we own
        // SAFETY: I1, it follows `node` in the list, and cannot leave it while that one is locked.
        unsafe { &*succ }.0.pred().store(self.0.as_ptr(), Ordering::Release);
        self.0.0.succ().store(succ, Ordering::Release);
    }

    /// The value.
    pub(super) fn value(&self) -> u64 {
        self.0.0.value().load(Ordering::Relaxed) // Relaxed: written under the lock we own
    }

    /// Replaces the value of a node that is not marked.
    pub(super) fn set_value(&self, value: u64) {
        self.0.0.value().store(value, Ordering::Release);
    }

    /// Removes the key.
    pub(super) fn mark(&self) {
        debug_assert!(!self.is_marked());
        self.0.0.marked().store(true, Ordering::Release);
    }
}

impl<W: Words> Drop for Interval<'_, W> {
    fn drop(&mut self) {
        // SAFETY: we own the lock.
        unsafe { self.0.0.succ_lock().unlock() };
    }
}

/// A node whose tree lock the holder owns; dropping it gives the lock back. All changes of the tree
/// go through it.
pub(super) struct Held<'a, W: Words>(&'a Node<W>);

impl<W: Words> std::ops::Deref for Held<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Held<'_, W> {
    /// Sets the child on `side`.
    pub(super) fn set_child(&self, side: Side, child: Option<&Node<W>>) {
        let child = child.map_or(null_mut(), Node::as_ptr);
        self.0.0.children()[side.0].store(child, Ordering::Release);
    }

    /// Sets the child on `side` and makes this its parent. The one it had is locked.
    pub(super) fn adopt(&self, side: Side, child: Option<&Node<W>>) {
        self.set_child(side, child);
        if let Some(child) = child {
            child.0.parent().store(self.0.as_ptr(), Ordering::Release);
        }
    }
}

impl<W: Words> Drop for Held<'_, W> {
    fn drop(&mut self) {
        // SAFETY: we own the lock.
        unsafe { self.0.0.tree_lock().unlock() };
    }
}
