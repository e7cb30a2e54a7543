//! The node and its words: two edges with their marks, and the word that announces a copy.

use super::super::side::Side;
use crate::canary::{Canary, planted};
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::stamp::{STAMP_BITS, stamp};
use silvics_sync::tagged::{AtomicTagged, TAG_BITS, Tagged};
#[cfg(not(silvics_loom))]
use std::mem::offset_of;
use std::ptr::{NonNull, without_provenance_mut};

/// A node, which is an entry. All of its words are atomic, so a reference to it permits everything
/// that the pointer permits from which it was made, including the node's retirement.
#[repr(C)]
pub(super) struct Node {
    /// The key. Key and value are set before the node is linked and never change afterwards.
    key: AtomicU64,
    /// The left and right edges. The mark of the left edge is the node's fate.
    edges: [AtomicEdge; 2],
    value: AtomicU64,
    /// The announced copy that is to take the node's place, or null. Once announced, it never
    /// changes.
    copy: AtomicTagged<Node>,
}

/// The layout of a node: the fields that a search reads, and those of the node that it finds.
pub const NODE: NodeLayout = NodeLayout::of::<Node>(
    "node",
    &[Field::new("key", 0, 8), Field::links("edges", 8, 2)],
    &[Field::new("key", 0, 8), Field::new("value", 24, 8)],
);

// Both builds have this layout: the study found only the traversal to improve. (Loom's atomics have
// other sizes.)
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(NODE.size == 40 && NODE.search_end() == 24);
    assert!(NODE.straddling(64).0 == 2 && NODE.straddling(64).1 == 8);
    assert!(offset_of!(Node, value) == 24 && offset_of!(Node, copy) == 32);
};

/// The mark of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mark {
    /// No mark: the edge may change.
    None,
    /// A fate, on the left edge: the announced copy takes the node's place.
    Replace,
    /// A fate: the node is removed, by the operation that marked this empty left edge.
    SpliceLeft,
    /// A fate: the node is removed, by the operation that reserved its empty right edge.
    SpliceRight,
    /// A fate, on an empty left edge: the node is the successor of the node that the edge names.
    /// The copy of that node takes the successor's pair, and the successor is unlinked.
    Promote,
    /// A right edge that never changes again.
    Frozen,
    /// An empty right edge that never changes again: a removal that wants the fate
    /// [`Mark::SpliceRight`] has reserved it.
    Reserved,
    /// An edge of a copy that is not complete.
    Draft,
}

impl Mark {
    #[inline(always)]
    fn of(tag: usize) -> Self {
        const ALL: [Mark; 8] = [
            Mark::None,
            Mark::Replace,
            Mark::SpliceLeft,
            Mark::SpliceRight,
            Mark::Promote,
            Mark::Frozen,
            Mark::Reserved,
            Mark::Draft,
        ];
        ALL[tag & 7]
    }
}

/// The bit of an empty edge (the paper's null flag). In place of an address the edge holds a stamp,
/// or the address that its mark needs.
const NULL: u16 = 1 << 15;

/// The number of stamp bits that take the place of an address.
const LOW_BITS: u32 = usize::BITS - 16 - TAG_BITS;
const _: () = assert!(STAMP_BITS - LOW_BITS == 15);

/// A stamp that no other empty edge has.
#[inline(always)]
fn next_stamp() -> u64 {
    if planted(Canary::EmptyEdgeReused) { 0 } else { stamp() }
}

/// The value of an edge: a child or none, and a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge(Tagged<Node>);

impl Edge {
    /// An edge of an incomplete copy in the state `draft`.
    fn draft(draft: Draft) -> Self {
        Self(Tagged::null_with_hint(NULL | draft as u16)).with(Mark::Draft)
    }

    pub(super) fn to(node: NonNull<Node>) -> Self {
        Self(Tagged::new(node.as_ptr()))
    }

    /// An empty edge with a stamp.
    fn empty(stamp: u64) -> Self {
        let low = without_provenance_mut((stamp as usize & ((1 << LOW_BITS) - 1)) << TAG_BITS);
        Self(Tagged::new(low).with_hint(NULL | (stamp >> LOW_BITS) as u16))
    }

    /// The empty edge of a new node, or of a new tree.
    pub(super) fn first_empty() -> Self {
        Self::empty(0)
    }

    /// An empty edge unlike every earlier and later one (I6).
    pub(super) fn fresh_empty() -> Self {
        Self::empty(next_stamp())
    }

    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self.0.hint() & NULL != 0
    }

    #[inline(always)]
    pub(super) fn mark(self) -> Mark {
        Mark::of(self.0.tag())
    }

    #[inline(always)]
    pub(super) fn is_marked(self) -> bool {
        self.0.tag() != Mark::None as usize
    }

    fn with(self, mark: Mark) -> Self {
        Self(self.0.with_tag(mark as usize))
    }

    /// This edge without its mark. If it is empty, the result is the empty edge of a node that
    /// never had a child there.
    pub(super) fn clean(self) -> Self {
        if self.is_empty() { Self::first_empty() } else { self.with(Mark::None) }
    }

    /// Whether the edge leads to `node`, with any mark.
    pub(super) fn leads_to(self, node: &Node) -> bool {
        !self.is_empty() && std::ptr::eq(self.0.pointer(), node)
    }

    /// The child, or `None` for an empty edge.
    ///
    /// # Safety
    /// The edge was loaded from the tree or from a node that was reached under a guard that lives
    /// as long as `'g`; or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn child<'g>(self) -> Option<&'g Node> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: I1: the child is complete. I7: it is not reclaimed under the caller's guard.
        Some(unsafe { &*self.0.pointer() })
    }

    /// If a node with this left edge is the successor of another node, that other node.
    ///
    /// # Safety
    /// The contract of [`Edge::child`] holds.
    pub(super) unsafe fn promoted_for<'g>(self) -> Option<&'g Node> {
        if self.mark() != Mark::Promote {
            return None;
        }
        // SAFETY: I5: the node leaves, and so is retired, after its successor. I7: the successor
        // was reached under the caller's guard, so the node is not reclaimed under it.
        Some(unsafe { &*self.0.pointer() })
    }
}

/// An edge in memory. This type contains every atomic access to edges.
pub(super) struct AtomicEdge(AtomicTagged<Node>);

impl AtomicEdge {
    pub(super) fn new(edge: Edge) -> Self {
        Self(AtomicTagged::new(edge.0))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> Edge {
        Edge(self.0.load(Ordering::SeqCst))
    }

    fn exchange(&self, current: Edge, new: Edge) -> bool {
        self.0.compare_exchange(current.0, new.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Links a new node at an empty edge.
    #[must_use]
    pub(super) fn try_link(&self, empty: Edge, node: NonNull<Node>) -> bool {
        debug_assert!(empty.is_empty() && !empty.is_marked());
        self.exchange(empty, Edge::to(node))
    }

    /// Swings the edge from `node` to `heir`, if it leads to `node` and is unmarked.
    #[must_use]
    pub(super) fn try_swing(&self, node: &Node, heir: Edge) -> bool {
        debug_assert!(!heir.is_marked());
        let current = self.load();
        current.leads_to(node) && !current.is_marked() && {
            // An empty edge of the heir's former parent is empty for the first time here.
            let heir = if heir.is_empty() { Edge::fresh_empty() } else { heir };
            self.exchange(current, heir)
        }
    }

    /// Marks an unmarked edge.
    #[must_use]
    pub(super) fn try_mark(&self, current: Edge, mark: Mark) -> bool {
        debug_assert!(!current.is_marked());
        self.exchange(current, current.with(mark))
    }

    /// Claims the node of this empty left edge as the successor of `node`.
    #[must_use]
    pub(super) fn try_promote(&self, empty: Edge, node: &Node) -> bool {
        debug_assert!(empty.is_empty() && !empty.is_marked());
        let target = std::ptr::from_ref(node).cast_mut();
        let promoted = Edge(Tagged::new(target).with_hint(NULL)).with(Mark::Promote);
        self.exchange(empty, promoted)
    }
}

/// The progress of a copy, which its left edge shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Draft {
    /// The copy has the node's key and a new value, and needs its edges.
    ForUpdate,
    /// The copy needs the pair of the node's successor.
    Wanting,
    /// The copy has the successor's pair, and needs its edges.
    Promoted,
    /// The copy is complete, and linked or about to be linked.
    Complete,
}

impl Node {
    fn new(key: u64, value: u64, edges: [Edge; 2]) -> Self {
        Self {
            key: AtomicU64::new(key),
            edges: edges.map(AtomicEdge::new),
            value: AtomicU64::new(value),
            copy: AtomicTagged::new(Tagged::null()),
        }
    }

    /// A node without children.
    pub(super) fn leaf(key: u64, value: u64) -> Self {
        Self::new(key, value, [Edge::first_empty(); 2])
    }

    /// A copy that replaces a node to change its value.
    pub(super) fn for_update(key: u64, value: u64) -> Self {
        Self::new(key, value, [Edge::draft(Draft::ForUpdate); 2])
    }

    /// A copy that is to take a successor's pair.
    pub(super) fn for_removal() -> Self {
        Self::new(0, 0, [Edge::draft(Draft::Wanting); 2])
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.key.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn edge(&self, side: Side) -> &AtomicEdge {
        &self.edges[side]
    }

    /// The edge on the given side, for a descent.
    #[inline(always)]
    pub(super) fn follow(&self, side: Side) -> Edge {
        side.load(&self.edges, AtomicEdge::load)
    }

    #[inline(always)]
    pub(super) fn left(&self) -> &AtomicEdge {
        self.edge(Side::LEFT)
    }

    #[inline(always)]
    pub(super) fn right(&self) -> &AtomicEdge {
        self.edge(Side::RIGHT)
    }

    /// The fate of the node, or [`Mark::None`].
    pub(super) fn fate(&self) -> Mark {
        self.left().load().mark()
    }

    /// Whether the node has a fate. If it has none, it is in the tree (I4).
    #[inline(always)]
    pub(super) fn has_fate(&self) -> bool {
        self.left().load().is_marked()
    }

    /// The read that [`Self::has_fate`] makes.
    pub(super) fn fate_read(&self) -> Read {
        NODE.read(self, NODE.search[1].offset, size_of::<usize>(), Why::Again)
    }

    /// Gives the node this fate unless it has one, and returns the node's fate.
    pub(super) fn decide(&self, fate: Mark) -> Mark {
        loop {
            let left = self.left().load();
            if left.is_marked() {
                return left.mark();
            }
            if self.left().try_mark(left, fate) {
                return fate;
            }
        }
    }

    /// Freezes the right edge of a node that has a fate. From now on neither edge changes.
    pub(super) fn close(&self) {
        loop {
            let right = self.right().load();
            if right.is_marked() || self.right().try_mark(right, Mark::Frozen) {
                return;
            }
        }
    }

    /// Announces a copy, unless the node has a fate or another copy is announced.
    #[must_use]
    pub(super) fn try_announce(&self, copy: NonNull<Node>) -> bool {
        let copy = Tagged::new(copy.as_ptr());
        !self.has_fate()
            && self
                .copy
                .compare_exchange(Tagged::null(), copy, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether a copy is announced.
    pub(super) fn is_announced(&self) -> bool {
        !self.copy.load(Ordering::SeqCst).is_null()
    }

    /// The copy that takes the node's place.
    ///
    /// # Safety
    /// The node was reached under a guard that lives as long as `'g`, and its fate is
    /// [`Mark::Replace`].
    pub(super) unsafe fn copy<'g>(&self) -> &'g Self {
        // SAFETY: I4: by the node's fate, the copy is linked, or the removal that does not need it
        // retires it; in either case not before the node has left. I7: so it is not reclaimed under
        // the guard.
        unsafe { &*self.copy.load(Ordering::SeqCst).pointer() }
    }

    /// The progress of this copy.
    pub(super) fn draft(&self) -> Draft {
        let left = self.left().load();
        [Draft::ForUpdate, Draft::Wanting, Draft::Promoted]
            .into_iter()
            .find(|draft| left == Edge::draft(*draft))
            .unwrap_or(Draft::Complete)
    }

    /// Gives the successor's pair to this copy, which was made for a removal. Every helper writes
    /// the same pair (I5), at any time.
    pub(super) fn take_pair(&self, successor: &Self) {
        self.key.store(successor.key(), Ordering::Relaxed);
        self.value.store(successor.value(), Ordering::Relaxed);
        let (wanting, promoted) = (Edge::draft(Draft::Wanting), Edge::draft(Draft::Promoted));
        let _ = self.left().exchange(wanting, promoted); // or another thread has done it
    }

    /// Gives the edges of `node`, which is closed, to this copy, which has its pair. Each edge is
    /// set once; the left one, which shows that the copy is complete, is set last.
    pub(super) fn take_edges(&self, node: &Self) {
        for side in [Side::RIGHT, Side::LEFT] {
            let draft = self.edge(side).load();
            if draft.mark() == Mark::Draft {
                let _ = self.edge(side).exchange(draft, node.edge(side).load().clean());
            }
        }
    }
}

/// Loom checks the words of a node in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    /// Children that are distinguished by their address and never read.
    fn child(number: usize) -> NonNull<Node> {
        NonNull::new(without_provenance_mut(64 * number)).unwrap()
    }

    fn spawn<T: 'static>(
        node: &Arc<Node>,
        work: impl FnOnce(&Node) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let node = Arc::clone(node);
        thread::spawn(move || work(&node))
    }

    /// I3: one of a removal, an update, and a claim as a successor decides, and all agree on it. An
    /// insertion may come before it, and then the claims that need an empty edge fail.
    #[test]
    fn a_node_has_one_fate() {
        loom::model(|| {
            let node = Arc::new(Node::leaf(1, 10));
            let empty = node.left().load();
            let others = [
                spawn(&node, move |node| {
                    let mine = node.left().try_mark(empty, Mark::SpliceLeft);
                    mine.then_some(Mark::SpliceLeft)
                }),
                spawn(&node, move |node| {
                    let target = Node::leaf(0, 0); // only its address counts
                    let mine = node.left().try_promote(empty, &target);
                    mine.then_some(Mark::Promote)
                }),
            ];
            let inserted = node.left().try_link(empty, child(1));
            let fate = node.decide(Mark::Replace);
            let mine = (fate == Mark::Replace).then_some(fate);
            let claims = others.map(|other| other.join().unwrap());
            let deciders = claims.into_iter().chain([mine]).flatten().collect::<Vec<_>>();
            assert_eq!(deciders, [node.fate()], "one decides");
            assert_eq!(fate, node.fate());
            assert!(!inserted || fate == Mark::Replace, "a claim of an edge that was not empty");
        });
    }

    /// I3: a node with a fate and a closed right edge does not change, whichever thread accesses
    /// its edges.
    #[test]
    fn a_closed_node_does_not_change() {
        loom::model(|| {
            let node = Arc::new(Node::leaf(1, 10));
            let empty = node.right().load();
            let insertion = spawn(&node, move |node| node.right().try_link(empty, child(1)));
            let reservation =
                spawn(&node, move |node| node.right().try_mark(empty, Mark::Reserved));
            node.decide(Mark::Replace);
            node.close();
            let closed = [node.left().load(), node.right().load()];
            let (inserted, reserved) = (insertion.join().unwrap(), reservation.join().unwrap());
            assert_eq!(closed, [node.left().load(), node.right().load()], "it has changed");
            assert!(!(inserted && reserved));
            assert_eq!(closed[1].is_empty(), !inserted, "what was inserted is lost");
            assert_eq!(closed[1].mark() == Mark::Reserved, reserved);
        });
    }

    /// A copy is announced before the fate is decided: a thread that sees the fate sees the copy.
    #[test]
    fn who_sees_the_fate_sees_the_copy() {
        loom::model(|| {
            let node = Arc::new(Node::leaf(1, 10));
            let update = |number| {
                move |node: &Node| {
                    node.try_announce(child(number)) && {
                        node.decide(Mark::Replace);
                        true
                    }
                }
            };
            let others = [spawn(&node, update(1)), spawn(&node, update(2))];
            if node.fate() == Mark::Replace {
                assert!(node.is_announced(), "a fate without its copy");
            }
            let [one, other] = others.map(|other| other.join().unwrap());
            assert!(one != other, "two copies are announced, or none");
        });
    }

    /// Two helpers give a copy its pair; a search reads it.
    fn promoted(take: fn(&Node, &Node)) {
        loom::model(move || {
            let copy = Arc::new(Node::for_removal());
            let helpers =
                [(); 2].map(|()| spawn(&copy, move |copy| take(copy, &Node::leaf(3, 30))));
            if copy.draft() != Draft::Wanting {
                assert_eq!((copy.key(), copy.value()), (3, 30), "a pair that never was");
            }
            for helper in helpers {
                helper.join().unwrap();
            }
            assert_eq!((copy.draft(), copy.key(), copy.value()), (Draft::Promoted, 3, 30));
        });
    }

    #[test]
    fn who_sees_a_promotion_sees_the_pair() {
        promoted(Node::take_pair);
    }

    #[test]
    #[should_panic(expected = "a pair that never was")]
    fn a_relaxed_promotion_is_caught() {
        promoted(|copy, successor| {
            copy.key.store(successor.key(), Ordering::Relaxed);
            copy.value.store(successor.value(), Ordering::Relaxed);
            let (wanting, promoted) = (Edge::draft(Draft::Wanting), Edge::draft(Draft::Promoted));
            let relaxed = Ordering::Relaxed;
            let _ = copy.left().0.compare_exchange(wanting.0, promoted.0, relaxed, relaxed);
        });
    }

    /// The edges of a copy are set once, however many helpers try, and the left one, which shows
    /// that the copy is complete, is set last.
    #[test]
    fn a_complete_copy_has_both_edges() {
        loom::model(|| {
            let node = Node::leaf(1, 10);
            assert!(node.left().try_link(node.left().load(), child(1)));
            assert!(node.right().try_link(node.right().load(), child(2)));
            node.decide(Mark::Replace);
            node.close();
            let (node, copy) = (Arc::new(node), Arc::new(Node::for_update(1, 11)));
            let helper = {
                let node = Arc::clone(&node);
                spawn(&copy, move |copy| copy.take_edges(&node))
            };
            copy.take_edges(&node);
            // The copy may be linked now, and its right child may be replaced.
            let right = copy.right().load();
            assert_eq!((copy.draft(), right), (Draft::Complete, Edge::to(child(2))));
            assert!(copy.right().exchange(right, Edge::to(child(3))));
            helper.join().unwrap();
            assert_eq!(copy.left().load(), Edge::to(child(1)));
            assert_eq!(copy.right().load(), Edge::to(child(3)), "a late helper has changed it");
        });
    }
}
