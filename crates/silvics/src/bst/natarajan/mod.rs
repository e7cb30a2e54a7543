//! Lock-free external binary search tree.
//!
//! # Source
//! Natarajan and Mittal, "Fast concurrent lock-free binary search trees", PPoPP 2014: section 3
//! and algorithms 1 to 4. The study's `edge-ext-lf`.
//!
//! # Algorithm
//! Entries are leaves; internal nodes only route. Every edge carries two marks: *flag* (the leaf at
//! its end is being removed) and *tag* (the edge is frozen: its tail is being removed).
//! ```text
//! seek(k):    descend to a leaf, remembering the last untagged edge (ancestor → successor)
//! insert(k):  seek; CAS(edge to leaf, leaf, new internal node over {leaf, new leaf})
//! remove(k):  seek; CAS(edge to leaf, leaf, leaf + flag)            injection
//!             cleanup until our leaf is gone, seeking again in between
//! cleanup:    tag the edge to the sibling
//!             CAS(edge ancestor → successor, successor, sibling with its flag)
//! ```
//! An operation whose CAS fails because the edge is marked finishes the removal that marked it
//! (`cleanup`) and starts again.
//!
//! # Departures
//! 1. Routing is by `key ≤ node.key` goes left, where a node's key is the *smaller* of the two
//!    leaves it was made over (paper: `<` and the larger). So no internal node ever needs an
//!    infinite key: the paper's ∞ keys shrink to one sentinel leaf, known by its address, and all
//!    2^64 keys are legal. The paper's nodes R and S shrink to one root edge.
//! 2. Internal nodes and leaves are different types, 24 and 16 bytes instead of 32 for both, in
//!    pools of their own; a third bit of the edge tells which its child is.
//! 3. The seek record holds edges instead of nodes.
//! 4. Upsert and compare-exchange, which the paper does not have: leaves are immutable, and an
//!    update replaces the leaf by a CAS on the very edge that removal flags. Whichever comes first
//!    makes the other fail and look again.
//! 5. Reclamation, which the paper leaves open: the one thread whose `cleanup` swings the
//!    ancestor's edge retires the chain it cut out (I4).
//!
//! # Invariants
//! * I1: an edge is never null; its kind bit tells its child's type; the child was initialised
//!   before the edge was set.
//! * I2: all keys in a node's left subtree are at most its key, all in its right subtree larger.
//!   The sentinel leaf is the rightmost leaf and counts as larger than every key.
//! * I3: a flagged edge leads to a leaf and never changes again; a tagged edge never changes
//!   again. A node with a tagged edge has a flagged one beside it.
//! * I4: a node becomes unreachable by exactly one successful CAS: a leaf by the replacement of its
//!   edge, or a whole chain by one `cleanup`. That CAS's thread alone retires it.
//! * I5: what can be reached under a guard is not reclaimed under it.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | every successful CAS | the child is initialised (I1); linearization points of different keys are in one order |
//! | edge | all CASes, success | `SeqCst` | `load` | publishes the new child; as above |
//! | edge | all CASes, failure | Relaxed | – | the loser looks again through `load` |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`; all that change nothing | the load of the edge to the leaf found, or, if that edge was already cut off, the moment it was |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the CAS in `grow` |
//! | `insert`, `compare_exchange` of a present key | the CAS that replaces the leaf |
//! | `remove` | the CAS in `cleanup` that cuts the leaf out, possibly a helper's. A flagged leaf is still present. |
//!
//! # Progress and reclamation
//! Lock-free; lookups are wait-free but for the depth of the tree. Nodes are retired to the domain
//! by the thread that unlinked them. No operation leaves a marked edge behind it.
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. 40 bytes a key: [`INNER`] 24, [`LEAF`] 16. A search reads whole nodes; 2 of 8
//! internal nodes and no leaf have theirs in two lines.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`], which walks I1 to I3; the
//! transitions of an edge, in every execution, in `node.rs`; schedules (`tests/schedules.rs`: I4,
//! I5, every linearization point, and lock-freedom with a stopped thread), which must find the
//! mistakes of `canary.rs`.

mod check;
mod node;
mod ops;

pub use node::{INNER, LEAF};

use super::tree::{Algorithm, Frame, See, Tree};
use crate::domain::Guard;
use crate::error::Violation;
use crate::memory::Nodes;
use crate::update::Update;
use node::{AtomicEdge, Child, Edge, Inner, Leaf};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, PoolStats, Pooled};
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
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type NatarajanTree<P = Pooled> = Tree<Natarajan<P>>;

/// The algorithm of [`NatarajanTree`].
pub struct Natarajan<P: Placement> {
    frame: Frame,
    root: AtomicEdge,
    sentinel: NonNull<Leaf>,
    leaves: Nodes<Leaf, P>,
    inners: Nodes<Inner, P>,
}

// SAFETY: the sentinel and all nodes are the tree's own; nodes are shared through atomics and
// freed through the domain.
unsafe impl<P: Placement> Algorithm for Natarajan<P> {
    const NAME: &'static str = "NatarajanTree";
    const OBJECTS: &'static [NodeLayout] = &[INNER, LEAF];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let leaves: Nodes<Leaf, P> = frame.nodes(&LEAF);
        let inners = frame.nodes(&INNER);
        let sentinel = leaves.alloc(Leaf { key: u64::MAX, value: 0 }, &frame.domain.pin())?;
        let root = AtomicEdge::new(Edge::to_leaf(sentinel));
        Ok(Self { frame, root, sentinel, leaves, inners })
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.value_in(self.search(key, guard), key)
    }

    #[inline]
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.bring(key, verb, guard)
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        vec![self.inners.stats(), self.leaves.stats()]
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn settle(&mut self) {
        self.inners.settle();
        self.leaves.settle();
    }

    fn free_all(&mut self) {
        if Nodes::<Leaf, P>::RELEASES_WHOLE {
            return;
        }
        let mut edges = vec![self.root.load()];
        while let Some(edge) = edges.pop() {
            // SAFETY: exclusive access; each node has one edge to it, and is freed once.
            unsafe {
                match edge.child() {
                    Child::Leaf(_) => self.leaves.free(edge.leaf_ptr()),
                    Child::Inner(inner) => {
                        edges.extend(inner.children.iter().map(AtomicEdge::load));
                        self.inners.free(edge.inner_ptr());
                    }
                }
            }
        }
    }
}
