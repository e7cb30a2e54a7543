//! The edge word with all its transitions.

use crate::bst::external::{Edge, EdgeCell};
use silvics_sync::atomic::Ordering;
use silvics_sync::tagged::AtomicTagged;

/// The leaf this edge leads to is being removed.
const FLAG: usize = 1;
/// The edge is frozen: its tail is being removed, its head moves up.
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

    /// The same child on an unmarked edge.
    #[inline(always)]
    pub(super) fn clean(self) -> Self {
        self.without(MARKS)
    }

    /// The same child and flag on an edge that is not frozen.
    pub(super) fn untagged(self) -> Self {
        self.without(TAG)
    }

    /// Whether both lead to the same child, whatever their marks.
    pub(super) fn same_child(self, other: Self) -> bool {
        self.clean() == other.clean()
    }
}

/// An edge in memory. Every access of the protocol is here.
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

    /// Replaces an unmarked edge: insertion, update, and the removal's last step.
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

    /// Freezes the edge, whatever it leads to, and returns it as it stays from now on.
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

/// The transitions of an edge in every execution:
/// `RUSTFLAGS="--cfg silvics_loom" cargo test --release -p silvics --lib loom`.
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::cell::UnsafeCell;
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Edges to leaves that are told apart by their address.
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

    /// I3: of an update, a removal and a freezing of one edge, update and removal exclude each
    /// other, and once frozen or flagged the edge leads where it led.
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

    /// Two removers and an inserter want one edge: one gets it.
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
    // SAFETY: written before it is published, read by those an edge led to it; loom checks that.
    unsafe impl Sync for Content {}
    // SAFETY: as above.
    unsafe impl Send for Content {}

    /// One thread fills a leaf and puts it at the end of the edge; another tags the edge, as a
    /// helper does in between; a third follows it.
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
                    // SAFETY: nobody else can reach the leaf yet.
                    content.0.with_mut(|content| unsafe { *content = 1 });
                    replace(edge, old, new);
                })
            };
            let helper = spawn(&edge, tag);
            if load(&edge).same_child(new) {
                // SAFETY: the edge led to it.
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

    /// A tag that stores what it has read overwrites what came between.
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
