//! Edges, and the places on the way of an update where it may take locks.

use super::super::side::Side;
use super::build::{Build, InnerWords};
use super::state::Seen;
use crate::canary::{Canary, planted};
use silvics_sync::atomic::Ordering;
use silvics_sync::model::touch;
use silvics_sync::tagged::{AtomicTagged, Tagged};
use std::ptr::NonNull;

/// The edge leads to a leaf.
const IS_LEAF: usize = 1;

/// The value of an edge: a child, and its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge(Tagged<u8>);

/// Where an edge leads.
pub(super) enum Child<'g, B: Build> {
    Inner(&'g B::Inner),
    Leaf(&'g B::Leaf),
}

impl Edge {
    /// An edge that is never followed: of a leaf that is an object with room for children, or of the
    /// holder.
    pub(super) const NONE: Self = Self(Tagged::null());

    #[inline(always)]
    pub(super) fn to_inner<I>(inner: NonNull<I>) -> Self {
        Self(Tagged::new(inner.as_ptr().cast()))
    }

    #[inline(always)]
    pub(super) fn to_leaf<L>(leaf: NonNull<L>) -> Self {
        Self(Tagged::new(leaf.as_ptr().cast()).with_tag(IS_LEAF))
    }

    #[inline(always)]
    fn is_leaf(self) -> bool {
        self.0.tag() & IS_LEAF != 0
    }

    pub(super) fn inner_ptr<I>(self) -> NonNull<I> {
        debug_assert!(!self.is_leaf());
        // SAFETY: I1, edges are never null.
        unsafe { NonNull::new_unchecked(self.0.pointer()) }.cast()
    }

    pub(super) fn leaf_ptr<L>(self) -> NonNull<L> {
        debug_assert!(self.is_leaf());
        // SAFETY: I1, edges are never null.
        unsafe { NonNull::new_unchecked(self.0.pointer()) }.cast()
    }

    /// Follows the edge.
    ///
    /// # Safety
    /// It is an edge of a tree of this build; it was loaded from a reachable edge, or one of a node
    /// read so, under a guard that lives as long as `'g`; or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn child<'g, B: Build>(self) -> Child<'g, B> {
        // SAFETY: I1 and I6: the child is initialised and not reclaimed under the guard; the bit
        // says which kind it is.
        unsafe {
            if self.is_leaf() {
                Child::Leaf(&*touch(self.0.pointer().cast::<B::Leaf>()))
            } else {
                Child::Inner(&*touch(self.0.pointer().cast::<B::Inner>()))
            }
        }
    }
}

/// An edge in memory.
pub struct AtomicEdge(AtomicTagged<u8>);

impl AtomicEdge {
    #[inline(always)]
    pub(super) fn new(edge: Edge) -> Self {
        Self(AtomicTagged::new(edge.0))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Edge {
        Edge(self.0.load(Ordering::SeqCst))
    }

    /// Only by the owner of its lock: [`Held::set`].
    fn store(&self, edge: Edge) {
        self.0.store(edge.0, Ordering::SeqCst);
    }
}

/// An edge that a descent has followed, as it was then.
pub(super) struct Place<'g, B: Build> {
    pub(super) node: &'g B::Inner,
    pub(super) side: Side,
    pub(super) seen: Seen,
    pub(super) edge: Edge,
}

impl<'g, B: Build> Place<'g, B> {
    /// The edge as it is now: its version first, so that who takes the lock at that version finds
    /// this edge (I3).
    #[inline(always)]
    pub(super) fn look(node: &'g B::Inner, side: Side) -> Self {
        if planted(Canary::VersionReadLate) {
            let edge = node.children()[side].load();
            return Self { node, side, seen: node.locks().look(), edge };
        }
        let seen = node.locks().look();
        Self { node, side, seen, edge: side.load(node.children(), AtomicEdge::load) }
    }

    /// Takes the edge's lock if the edge has not changed since.
    pub(super) fn hold(&self) -> Option<Held<'g, B>> {
        let Self { node, side, .. } = *self;
        // Made only if the lock is ours: dropping it gives the lock back.
        node.locks().try_take(side, self.seen).then(|| Held { node, side, changed: false })
    }
}

/// An edge whose lock the holder owns; dropping it gives the lock back.
pub(super) struct Held<'a, B: Build> {
    node: &'a B::Inner,
    side: Side,
    changed: bool,
}

impl<B: Build> Held<'_, B> {
    /// Changes the edge.
    pub(super) fn set(&mut self, edge: Edge) {
        self.node.children()[self.side].store(edge);
        self.changed = true;
    }
}

impl<B: Build> Drop for Held<'_, B> {
    fn drop(&mut self) {
        // SAFETY: we own the lock.
        unsafe { self.node.locks().give_back(self.side, self.changed) };
    }
}
