//! Lock-free external binary search tree.
//!
//! # Source
//! Natarajan and Mittal, "Fast concurrent lock-free binary search trees", PPoPP 2014: section 3 and
//! algorithms 1 to 4. The study's `edge-ext-lf` and, after ASCYLIB, `edge-ext-lf-2`.
//!
//! # Algorithm
//! Entries are leaves; internal nodes only route. Every edge carries two marks: *flag* (the leaf at
//! its end is being removed) and *tag* (the edge is frozen: its tail is being removed).
//! ```text
//! seek(k):    descend to a leaf, remembering the last untagged edge (ancestor → successor)
//! insert(k):  seek; CAS(edge to leaf, leaf, new internal node over {leaf, new leaf})
//! remove(k):  seek; CAS(edge to leaf, leaf, leaf + flag)            injection
//!             cleanup until the flagged leaf is unlinked; seek again after each failure
//! cleanup:    tag the edge to the sibling
//!             CAS(edge ancestor → successor, successor, sibling with its flag)
//! ```
//! An operation whose CAS fails because the edge is marked completes the removal that marked it
//! (`cleanup`) and starts again.
//!
//! # Departures
//! 1. A search goes left if `key ≤ node.key`, where a node's key is the *smaller* of the two leaves
//!    it was made over (paper: `<` and the larger). So no internal node ever needs an infinite key.
//!    One sentinel leaf, known by its address, replaces the paper's ∞ keys, and all 2^64 keys are
//!    legal. One root edge replaces the paper's nodes R and S.
//! 2. Internal nodes and leaves are different types in separate pools, of 24 and 16 bytes instead
//!    of 32 for both. A third bit of the edge gives the type of its child. Other builds have the
//!    published nodes, and further variants ([`build`]).
//! 3. The seek record holds edges instead of nodes.
//! 4. Upsert and compare-exchange, which the paper does not have: leaves are immutable, and an
//!    update replaces the leaf by a CAS on the very edge that removal flags. The first of the two
//!    makes the other fail and search again.
//! 5. Reclamation, which the paper leaves open: the one thread whose `cleanup` swings the
//!    ancestor's edge retires the chain that it cut out (I4).
//! 6. Batches: `get_many` makes up to 32 descents in turns. Each prefetches its next node and
//!    yields, so that their misses overlap (Kocberber, Falsafi and Grot, PVLDB 9(4), 2015:
//!    `batch.rs`). `insert_many` first makes such descents to 64 keys, for the cache alone, and
//!    then upserts in order. Builds whose lookups keep a record look keys up one by one.
//!
//! # Invariants
//! * I1: an edge is never null; its kind bit gives its child's type; the child was initialised
//!   before the edge was set.
//! * I2: all keys in a node's left subtree are at most its key, and all in its right subtree are
//!   larger. The sentinel leaf is the rightmost leaf and counts as larger than every key.
//! * I3: a flagged edge leads to a leaf, and never changes its child or loses its flag; it may be
//!   tagged as well. A tagged edge never changes again. A node with a tagged edge has a flagged one
//!   beside it.
//! * I4: a node becomes unreachable by exactly one successful CAS: a leaf by the replacement of its
//!   edge, or a whole chain by one `cleanup`. That CAS's thread alone retires it.
//! * I5: an object that can be reached under a guard is not reclaimed under it.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | every successful CAS | the child is initialised (I1); linearization points of different keys are in one order |
//! | edge | all CASes, success | `SeqCst` | `load` | publishes the new child; linearization points of different keys are in one order |
//! | edge | all CASes, failure | Relaxed | – | the loser reads again through `load` |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, `get_many`; every operation that changes nothing | the load of the edge to the found leaf; if that edge was already cut off, the moment when it was |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the CAS in `grow` |
//! | `insert`, `compare_exchange` of a present key | the CAS that replaces the leaf |
//! | `remove` | the CAS in `cleanup` that cuts the leaf out, possibly a helper's. A flagged leaf is still present. |
//!
//! # Progress and reclamation
//! Updates are lock-free. Lookups are wait-free if the depth of the tree is bounded. The thread
//! that unlinked a node retires it to the domain. No finished operation leaves a marked edge
//! behind. Ranges and cursors are those of external trees: [`walk`](super::walk).
//!
//! # Complexity and footprint
//! A search takes O(depth). The tree is not balanced: random keys give an expected depth of 2 ln n,
//! sorted keys a path of n nodes. An entry takes 40 bytes: [`build::Inner`] 24,
//! [`Leaf`](super::external::Leaf) 16. A search reads whole nodes; 2 of 8 internal nodes and no
//! leaf lie in two lines. Other builds: [`build`].
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`], which checks I1 to I3 in a
//! quiescent tree, and that no half of a block is retired; the transitions of an edge, in every
//! execution, in `node.rs`, and those of a block of two nodes in `home.rs`; schedules
//! (`tests/schedules.rs`: I4, I5, every linearization point, the scans, and lock-freedom with a
//! stopped thread), which must find the mistakes of `canary.rs`.
//!
//! [`Check::check`]: crate::Check::check

mod batch;
pub mod build;
mod canaries;
mod check;
mod node;
mod ops;
mod scan;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;

use super::build::Compact;
use super::external::{self, Edge, EdgeCell, LeafWords};
use super::home::{Fresh, NodeStore};
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::Memory;
use crate::update::Update;
use batch::WARMED;
use build::Build;
use node::AtomicEdge;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, Pooled};
use std::hint::black_box;
use std::ptr::NonNull;

/// The tree of Natarajan and Mittal: see the [module](self).
///
/// ```
/// use silvics::{NatarajanTree, Options, OrderedIndex};
///
/// let tree: NatarajanTree = NatarajanTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// assert_eq!(tree.insert(u64::MAX, 1)?, None);
/// assert_eq!(tree.insert(u64::MAX, 2)?, Some(1));
/// assert_eq!(tree.get(u64::MAX), Some(2));
/// assert_eq!(tree.remove(u64::MAX)?, Some(2));
/// assert_eq!(tree.get(u64::MAX), None);
///
/// for key in [30, 10, 20] {
///     tree.insert(key, key + 1)?;
/// }
/// assert!(tree.range(15..).eq([(20, 21), (30, 31)]));
/// assert!(tree.range_rev(..=20).eq([(20, 21), (10, 11)]));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type NatarajanTree<P = Pooled, B = Compact> = Index<Natarajan<P, B>>;

/// The algorithm of [`NatarajanTree`].
pub struct Natarajan<P: Placement, B: Build> {
    frame: Frame,
    root: AtomicEdge,
    sentinel: NonNull<B::Leaf>,
    objects: B::Store<P>,
    /// Nodes to which no edge leads: see [`Build::FILLERS`].
    fillers: [Option<NonNull<B::Leaf>>; MOST_FILLERS],
}

const MOST_FILLERS: usize = 2;

impl<P: Placement, B: Build> Natarajan<P, B> {
    #[inline(always)]
    fn is_sentinel(&self, leaf: &B::Leaf) -> bool {
        std::ptr::eq(leaf, self.sentinel.as_ptr())
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. The pointers lead to the tree's own leaves and fillers, which live as long as the tree. Edges
//     are atomics; everything else in a linked node never changes. Nodes go through the domain.
// A2. A leaf's key and value never change after it is linked, and only `grow` and `replace` make
//     leaves, with the value of the verb.
// A3. A descent ends at a leaf whose key it compares. Its edge led to it at the load, or at the
//     moment when the edge's node was cut off (I3: a cut edge does not change), which was after the
//     guard was taken: see the table of linearization points.
// A4. A value ends when its leaf is replaced or its edge is flagged. Both are CASes of the same
//     edge from the unflagged leaf, and I3 lets one of them succeed. The thread of that CAS returns
//     the leaf's value; a helper that cuts the leaf out returns none.
// A5. `grow` and `replace` allocate before their CAS. If it fails, the spare leaf was never linked.
// A6. Keys are integers, which a scan copies from leaves.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Natarajan<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Natarajan<Q, B>;

    const NAME: &'static str = "NatarajanTree";
    const OBJECTS: &'static [NodeLayout] = B::KINDS;

    fn new(frame: Frame) -> Result<Self, AllocError> {
        const { assert!(B::FILLERS <= MOST_FILLERS) };
        let objects = B::Store::<P>::new(&frame, &B::INNER, &B::LEAF);
        let (sentinel, fillers) = {
            let guard = frame.domain.pin();
            let leaf = || B::Leaf::new(u64::MAX, 0);
            let mut spare = objects.spare();
            let mut spares = [(); MOST_FILLERS].map(|()| objects.spare());
            let sentinel = spare.leaf(leaf(), &guard)?;
            let mut fillers = [None; MOST_FILLERS];
            for (filler, spare) in fillers.iter_mut().zip(&mut spares).take(B::FILLERS) {
                *filler = Some(spare.leaf(leaf(), &guard)?);
            }
            spare.leaf_linked();
            for spare in &mut spares {
                spare.leaf_linked();
            }
            (sentinel, fillers)
        };
        let root = AtomicEdge::new(Edge::to_leaf(sentinel));
        Ok(Self { frame, root, sentinel, objects, fillers })
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        let leaf = if B::RECORDS {
            // The compiler would else see that the record is not used, and not keep it.
            black_box(self.seek(key, guard)).leaf
        } else {
            self.search(key, guard)
        };
        self.value_in(leaf, key)
    }

    #[inline]
    fn get_many(&self, keys: &[u64], values: &mut [Option<u64>], guard: &Guard) {
        if B::RECORDS {
            for (key, value) in keys.iter().zip(values) {
                *value = self.get(*key, guard);
            }
            return;
        }
        let count = keys.len().min(values.len());
        let ended = |at: usize, key, leaf: &B::Leaf| values[at] = self.value_in(leaf, key);
        self.search_many(count, |at| keys[at], ended, guard);
    }

    const WARMED: usize = WARMED;

    #[inline]
    fn warm(&self, entries: &[(u64, u64)], guard: &Guard) {
        self.search_many(entries.len(), |at| entries[at].0, |_, _, _| (), guard);
    }

    #[inline]
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.update(key, verb, guard)
    }

    fn memory(&self) -> &dyn Memory {
        &self.objects
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.objects
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        if P::RELEASES_WHOLE {
            return;
        }
        for filler in self.fillers.into_iter().flatten() {
            // SAFETY: the filler came from `objects`, no edge leads to it, and it is freed once.
            unsafe { self.objects.free_leaf(filler) };
        }
        // SAFETY: no other thread has the nodes, since access is exclusive. I1: the edges lead to
        // nodes of `objects`. I4: linked nodes are not retired. I2: each has one place, so one edge
        // leads to it.
        unsafe { external::free_all(self.root.load(), &self.objects, AtomicEdge::load) };
    }
}
