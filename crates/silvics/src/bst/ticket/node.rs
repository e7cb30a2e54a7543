//! Edges, and the places on an update's path where it may take locks.

use super::super::side::Side;
use super::build::Build;
use super::state::Seen;
use crate::bst::external::{Edge, EdgeCell, InnerWords};
use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::AtomicTagged;

/// An edge in memory.
pub struct AtomicEdge(AtomicTagged<u8>);

impl EdgeCell for AtomicEdge {
    type Edge = Edge;
    const NONE: Edge = Edge::NONE;

    #[inline(always)]
    fn new(edge: Edge) -> Self {
        Self(AtomicTagged::new(edge.0))
    }
}

impl AtomicEdge {
    #[inline(always)]
    pub(super) fn load(&self) -> Edge {
        Edge(self.0.load(Ordering::SeqCst))
    }

    /// Stores an edge. Only the owner of its lock calls this, through [`Held::set`] (I3).
    fn store(&self, edge: Edge) {
        self.0.store(edge.0, Ordering::SeqCst);
    }
}

/// An edge that a descent has followed, with the values that it read.
pub(super) struct Place<'g, B: Build> {
    pub(super) node: &'g B::Inner,
    pub(super) side: Side,
    pub(super) seen: Seen,
    pub(super) edge: Edge,
}

impl<'g, B: Build> Place<'g, B> {
    /// The current edge. Its version is read first, so an operation that takes the lock at that
    /// version finds this edge (I3).
    #[inline(always)]
    pub(super) fn look(node: &'g B::Inner, side: Side) -> Self {
        if let Some(place) = Self::look_at_edge_first(node, side) {
            return place;
        }
        let seen = node.control().look();
        Self { node, side, seen, edge: side.load(node.children(), AtomicEdge::load) }
    }

    /// Takes the edge's lock if the edge has not changed since it was read.
    pub(super) fn hold(&self) -> Option<Held<'g, B>> {
        let Self { node, side, .. } = *self;
        // A `Held` is made only if the lock was taken, since dropping it gives the lock back.
        node.control().try_take(side, self.seen).then(|| Held { node, side, changed: false })
    }
}

/// An edge whose lock the holder owns. Dropping it gives the lock back.
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
        // SAFETY: I3: `hold` made this after it had taken the lock, and only this drop gives it
        // back.
        unsafe { self.node.control().give_back(self.side, self.changed) };
    }
}
