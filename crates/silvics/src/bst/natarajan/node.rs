//! The edge word with all its transitions.

use crate::bst::external::{Edge, EdgeCell};
use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::AtomicTagged;

/// The bit that says: the leaf at the end of the edge is being removed.
const FLAG: usize = 1;
/// The bit that says: the edge is frozen, since the node that has it is being removed and its child
/// moves up.
const TAG: usize = 2;
/// Both marks.
const MARKS: usize = FLAG | TAG;

impl Edge {
    #[inline(always)]
    pub(super) fn is_flagged(self) -> bool {
        self.has(FLAG)
    }

    #[inline(always)]
    pub(super) fn is_tagged(self) -> bool {
        self.has(TAG)
    }

    /// An unmarked edge to this edge's child.
    #[inline(always)]
    pub(super) fn clean(self) -> Self {
        self.without(MARKS)
    }

    /// An edge to this edge's child, with its flag and without the tag.
    pub(super) fn untagged(self) -> Self {
        self.without(TAG)
    }

    /// Whether both edges lead to one child, with any marks.
    pub(super) fn same_child(self, other: Self) -> bool {
        self.clean() == other.clean()
    }
}

/// An edge in memory. This type contains every atomic access to edges.
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

    fn swing(&self, current: Edge, new: Edge) -> bool {
        self.0.compare_exchange(current.0, new.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Replaces an unmarked edge, for insertion, update, and the last step of a removal.
    #[must_use]
    pub(super) fn try_replace(&self, current: Edge, new: Edge) -> bool {
        debug_assert!(current == current.clean() || cfg!(feature = "canaries"));
        self.swing(current, new)
    }

    /// Claims the leaf at the end of an unmarked edge for removal.
    #[must_use]
    pub(super) fn try_flag(&self, leaf: Edge) -> bool {
        debug_assert!(leaf.is_leaf() && leaf == leaf.clean());
        self.swing(leaf, leaf.with(FLAG))
    }

    /// Freezes the edge, to any child, and returns its final value.
    pub(super) fn tag(&self) -> Edge {
        let mut edge = self.load();
        while !edge.is_tagged() {
            if self.swing(edge, edge.with(TAG)) {
                return edge.with(TAG);
            }
            edge = self.load();
        }
        edge
    }
}

/// Loom checks the transitions of an edge in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::cell::UnsafeCell;
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Edges to leaves that are distinguished by their address.
    fn leaves<const N: usize>() -> [Edge; N] {
        std::array::from_fn(|at| {
            let address = std::ptr::without_provenance_mut::<u64>(64 * (at + 1));
            Edge::to_leaf(NonNull::new(address).unwrap())
        })
    }

    fn spawn<T: 'static>(
        edge: &Arc<AtomicEdge>,
        work: impl FnOnce(&AtomicEdge) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let edge = Arc::clone(edge);
        thread::spawn(move || work(&edge))
    }

    /// I3: an update, a removal and a freezing compete for one edge. Update and removal exclude
    /// each other, and a frozen or flagged edge keeps its child.
    #[test]
    fn a_marked_edge_never_leads_elsewhere() {
        loom::model(|| {
            let [old, new] = leaves();
            let edge = Arc::new(AtomicEdge::new(old));
            let update = spawn(&edge, move |edge| edge.try_replace(old, new));
            let removal = spawn(&edge, move |edge| edge.try_flag(old));
            let frozen = edge.tag();
            let (updated, removed) = (update.join().unwrap(), removal.join().unwrap());
            let last = edge.load();
            assert_eq!(last, frozen, "a frozen edge has changed");
            assert!(!(updated && removed), "an updated leaf was removed");
            assert_eq!(last.same_child(new), updated);
            assert_eq!(last.is_flagged(), removed);
            assert!(last.is_tagged() && last.untagged().is_flagged() == removed);
        });
    }

    /// Two removers and an inserter want one edge, and one of them gets it.
    #[test]
    fn one_of_all_who_want_an_edge_gets_it() {
        loom::model(|| {
            let [old, new] = leaves();
            let edge = Arc::new(AtomicEdge::new(old));
            let others = [
                spawn(&edge, move |edge| edge.try_flag(old)),
                spawn(&edge, move |edge| edge.try_replace(old, new)),
            ];
            let mut winners = usize::from(edge.try_flag(old));
            for other in others {
                winners += usize::from(other.join().unwrap());
            }
            assert_eq!(winners, 1);
        });
    }

    /// A leaf's content, written before an edge leads to it.
    struct Content(UnsafeCell<u32>);
    // SAFETY: the content is written before it is published, and read by threads that an edge led
    // to it; loom checks that.
    unsafe impl Sync for Content {}
    // SAFETY: a content has no tie to the thread that made it.
    unsafe impl Send for Content {}

    /// One thread fills a leaf and links it at the end of the edge. Another tags the edge in
    /// between, as a helper does. A third follows the edge.
    fn published(
        load: fn(&AtomicEdge) -> Edge,
        replace: fn(&AtomicEdge, Edge, Edge) -> bool,
        tag: fn(&AtomicEdge) -> Edge,
    ) {
        loom::model(move || {
            let [old, new] = leaves();
            let edge = Arc::new(AtomicEdge::new(old));
            let content = Arc::new(Content(UnsafeCell::new(0)));
            let writer = {
                let content = Arc::clone(&content);
                spawn(&edge, move |edge| {
                    // SAFETY: no other thread can reach the leaf yet.
                    content.0.with_mut(|content| unsafe { *content = 1 });
                    replace(edge, old, new);
                })
            };
            let helper = spawn(&edge, tag);
            if load(&edge).same_child(new) {
                // SAFETY: the edge led to the leaf, which is not written any more.
                assert_eq!(content.0.with(|content| unsafe { *content }), 1);
            }
            writer.join().unwrap();
            helper.join().unwrap();
        });
    }

    #[test]
    fn who_follows_an_edge_sees_its_child_initialised() {
        published(AtomicEdge::load, AtomicEdge::try_replace, AtomicEdge::tag);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_relaxed_replacement_is_caught() {
        let relaxed = |edge: &AtomicEdge, current: Edge, new: Edge| {
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            edge.0.compare_exchange(current.0, new.0, success, failure).is_ok()
        };
        published(AtomicEdge::load, relaxed, AtomicEdge::tag);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_relaxed_load_is_caught() {
        let relaxed = |edge: &AtomicEdge| Edge(edge.0.load(Ordering::Relaxed));
        published(relaxed, AtomicEdge::try_replace, AtomicEdge::tag);
    }

    /// A tag that stores the value it has read overwrites the changes in between.
    #[test]
    #[should_panic(expected = "an update is lost")]
    fn a_tag_by_load_and_store_is_caught() {
        loom::model(|| {
            let [old, new] = leaves();
            let edge = Arc::new(AtomicEdge::new(old));
            let update = spawn(&edge, move |edge| edge.try_replace(old, new));
            let seen = edge.load();
            edge.0.store(seen.with(TAG).0, Ordering::SeqCst);
            let updated = update.join().unwrap();
            assert_eq!(edge.load().same_child(new), updated, "an update is lost");
        });
    }
}
