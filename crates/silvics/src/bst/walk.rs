//! Walks over external trees, in key order. They are the ranges of these trees.
//!
//! # Source
//! Walks are our own; the literature's external trees have no ranges. The argument is that of their
//! lookups: a search that stands at a node which has been cut out still finds what it would have
//! found.
//!
//! # Algorithm
//! A walk keeps the edges that it has passed by, as references to the words in the nodes, and reads
//! each when its turn comes.
//! ```text
//! next: e = the pending edge that was passed by last (at the start: the edge to the root)
//!       while e leads to an internal node: keep its far edge as pending; e = its near edge
//!       (near is left if the walk ascends; a side without keys still wanted is passed over)
//!       e leads to a leaf: if its key is still wanted, it is the next entry, and from then on only
//!       keys beyond it are wanted; else go on with the next pending edge
//! ```
//! A walk writes nothing and allocates nothing. It keeps a limited number of edges. If it had to
//! drop the oldest one, it descends from the root once more, to the first key still wanted.
//!
//! # Guarantee
//! A walk has the guarantee of [`OrderedScan`](crate::OrderedScan). It rests on three promises of a
//! tree ([`External`]):
//! * W1: an object that was reached under a guard can be read as long as the guard is held.
//! * W2: the edges of a node that has been cut out never change. A node is cut out by one step. One
//!   of its subtrees then takes its place, or the place of a chain of nodes above it. Its other
//!   subtree, a single leaf by then, is cut out as well.
//! * W3: a node's `split` never changes. Keys enter, leave and change their values at the edge to
//!   which the search for them leads at that moment.
//!
//! *Each entry was present at some moment of the scan.* Every node and leaf that a walk sees was
//! part of the tree at some moment since the walk began. The root edge always is. A child that an
//! edge leads to is part of the tree while the edge's node is. If that node has been cut out
//! meanwhile, the child was part of the tree just before, since the edge has not changed (W2).
//!
//! *The order is strict, and no key comes twice*: keys that are not beyond the last entry are not
//! wanted. This filter is needed. When a node is cut out, the subtree that takes its place takes
//! over the keys of the other subtree, and gets new ones that the walk has already passed.
//!
//! *A key y that is present throughout is seen.* Say that y *is found at* an edge if the search
//! that starts there ends at a leaf with y. If y is found at an edge and stays present, it
//! continues to be found there. For no change of the tree misleads a search that has begun, and the
//! tree's lookups rest on that (W2, W3). At the start y is found at the root edge. When the walk
//! reads an edge at which y is found, it comes to a leaf, which is y's, or to a node, and y is
//! found at one of its two edges: the left one if y ≤ `split`, else the right one. So at any time y
//! has been seen, or it is found at an edge that is pending. (If it was pending and is lost, the
//! walk will begin once more.)
//!
//! It remains to show that y is still wanted then. Assume that an ascending walk has returned a
//! larger key z while y was found at a pending edge. Let n be the node at which their paths part: y
//! was found at its right edge, and z came from its left one. As z > y > `n.split`, z can have
//! entered there only after n had been cut out (W3). When n was cut out, there were two cases.
//! Either its left subtree took its place, and its right one was a leaf that this step removed:
//! y's, which was present throughout. Or its right subtree took its place, and its left one was a
//! leaf, below which no key ever entered again (W2). Neither is possible. For this reason, too, an
//! ascending walk is over when it comes to a key that is too large. For a descending walk, exchange
//! left and right.
//!
//! # Progress and complexity
//! A walk never waits. Without writers, it takes O(depth) for the first entry, then O(1) on
//! average. In trees whose paths have more edges than a walk keeps, it also takes O(depth) each
//! time the kept edges are used up.
//!
//! # Checked by
//! The suite's `ranges` and `cursors`; schedules of `scenarios::SCANS`, in which a walk keeps few
//! edges, so that walks start again; the mistakes `ScanTakesFrozenForGone` and
//! `ScanForgetsItsPlace` of `canary.rs`.

use super::scan::Keys;
use crate::canary::{Canary, planted};
use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::frame::{Algorithm, AlgorithmBounds, Index, Ordered};
use silvics_pool::Placement;
use std::sync::Arc;

/// An external tree as a walk sees it.
///
/// # Safety
/// The tree keeps the promises W1 to W3 of the [module](self).
pub unsafe trait External: Algorithm<Key = u64> {
    /// An edge in memory.
    type Edge: 'static;
    /// The tree in another placement.
    type ExternalAt<Q: Placement>: External<Placement = Q>;

    /// The edge to the root.
    fn root(&self) -> &Self::Edge;

    /// The present end of an edge.
    ///
    /// # Safety
    /// The edge is the root edge, or this method has returned it under `guard` or under an older
    /// guard that is still held. The guard protects the tree's nodes.
    unsafe fn follow<'g>(&'g self, edge: &'g Self::Edge, guard: &'g Guard)
    -> Below<'g, Self::Edge>;
}

/// The end of an edge.
#[derive(Debug)]
pub enum Below<'g, E> {
    /// The edge leads to an internal node.
    Inner {
        /// Keys up to this one are on the left, larger ones on the right.
        split: u64,
        /// The left edge.
        left: &'g E,
        /// The right edge.
        right: &'g E,
    },
    /// The edge leads to an entry.
    Leaf {
        /// Its key.
        key: u64,
        /// Its value.
        value: u64,
    },
    /// The edge leads to a leaf that is no entry: it stands for a key larger than any.
    Sentinel,
}

/// The largest number of edges that a walk keeps. In schedules it is small, so that walks start
/// again.
const PENDING: usize = if cfg!(silvics_shuttle) { 2 } else { 64 };

/// The edges that a walk has passed by, the last one first.
struct Pending<'g, E> {
    /// The edges are `edges[at % PENDING]` for `at` in `bottom..top`.
    edges: [Option<&'g E>; PENDING],
    bottom: usize,
    top: usize,
}

impl<'g, E> Pending<'g, E> {
    /// Makes the pending edges of a walk that begins at `edge`.
    fn from(edge: &'g E) -> Self {
        let mut pending = Self { edges: [None; PENDING], bottom: 0, top: 0 };
        pending.push(edge);
        pending
    }

    #[inline(always)]
    fn push(&mut self, edge: &'g E) {
        self.edges[self.top % PENDING] = Some(edge);
        self.top += 1;
        if self.top - self.bottom > PENDING {
            self.bottom += 1; // the oldest is lost
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<&'g E> {
        if self.top == self.bottom {
            return None;
        }
        self.top -= 1;
        self.edges[self.top % PENDING]
    }

    /// Whether no edge is left because the next one was lost.
    fn is_lost(&self) -> bool {
        self.top == self.bottom && self.bottom > 0
    }
}

/// A walk over the entries of a tree: ascending, or, if it goes `BACK`, descending.
///
/// See the [module](self) for its guarantee.
pub struct Walk<'g, A: External, const BACK: bool> {
    tree: &'g A,
    guard: &'g Guard,
    /// The keys still wanted, or `None` when the walk is over.
    wanted: Option<Keys>,
    pending: Pending<'g, A::Edge>,
}

impl<'g, A: External, const BACK: bool> Walk<'g, A, BACK> {
    fn new(tree: &'g A, wanted: Option<Keys>, guard: &'g Guard) -> Self {
        Self { tree, guard, wanted, pending: Pending::from(tree.root()) }
    }

    /// The entry of the first leaf on the path from `edge`, or `None` if that leaf is a sentinel.
    /// Keeps the edges passed by that may lead to wanted keys.
    #[inline(always)]
    fn descend(&mut self, mut edge: &'g A::Edge, wanted: Keys) -> Option<(u64, u64)> {
        loop {
            // SAFETY: the edge comes from the root edge by calls of `follow`, all under
            // `self.guard`, which protects the tree's nodes.
            match unsafe { self.tree.follow(edge, self.guard) } {
                Below::Inner { split, left, right } => {
                    edge = match (wanted.first() <= split, split < wanted.last()) {
                        (true, true) => {
                            let (near, far) = if BACK { (right, left) } else { (left, right) };
                            self.pending.push(far);
                            near
                        }
                        (true, false) => left,
                        (false, _) => right,
                    };
                }
                Below::Leaf { key, value } => return Some((key, value)),
                Below::Sentinel => return None,
            }
        }
    }
}

/// Whether only keys beyond an entry are wanted after it: always.
#[inline(always)]
fn must_advance() -> bool {
    !planted(Canary::ScanForgetsItsPlace)
}

impl<A: External, const BACK: bool> Iterator for Walk<'_, A, BACK> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let wanted = self.wanted?;
            let Some(edge) = self.pending.pop() else {
                if self.pending.is_lost() {
                    self.pending = Pending::from(self.tree.root());
                    continue;
                }
                self.wanted = None;
                return None;
            };
            let entry = self.descend(edge, wanted);
            if let Some((key, value)) = entry.filter(|(key, _)| wanted.contains(*key)) {
                if must_advance() {
                    self.wanted = if BACK { wanted.before(key) } else { wanted.after(key) };
                }
                return Some((key, value));
            }
            let is_past = match entry {
                Some((key, _)) if BACK => key < wanted.first(),
                Some((key, _)) => key > wanted.last(),
                None => !BACK,
            };
            if is_past {
                self.wanted = None;
            }
        }
    }
}

impl<A: External> Ordered for A {
    type OrderedAt<Q: Placement> = A::ExternalAt<Q>;
    type Range<'g>
        = Walk<'g, A, false>
    where
        Self: 'g;
    type RangeRev<'g>
        = Walk<'g, A, true>
    where
        Self: 'g;

    type Cursor = KeyCursor<Index<A>>;

    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, A>, guard: &'g Guard) -> Walk<'g, A, false> {
        Walk::new(self, Keys::within(&bounds), guard)
    }

    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, A>,
        guard: &'g Guard,
    ) -> Walk<'g, A, true> {
        Walk::new(self, Keys::within(&bounds), guard)
    }

    fn cursor(index: Arc<Index<A>>) -> KeyCursor<Index<A>> {
        KeyCursor::new(index)
    }
}
