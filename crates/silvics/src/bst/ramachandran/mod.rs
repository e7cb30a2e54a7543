//! Lock-free internal binary search tree.
//!
//! # Source
//! Ramachandran and Mittal, "A fast lock-free internal binary search tree", ICDCN 2015. The study's
//! `edge-int-lf`. The authors' C code and drafts of the paper were read for the points that it
//! leaves open.
//!
//! # Algorithm
//! Every node is an entry. A removal claims the edges of its node by marking them. A node with at
//! most one child is then spliced out. A node with two children is replaced by a copy that has the
//! pair of its *successor*, the smallest node to its right; the successor is unlinked in its stead.
//! ```text
//! seek(k):    descend to the node with k or to an empty edge; there check the anchor, the node where
//!             the descent turned right last: if it has changed, k may have moved up: start again
//! insert(k):  seek; CAS(empty edge, new node)
//! remove(k):  seek; mark the edges of the node                                  injection
//!             at most one child:
//!               CAS(edge to the node, only child or empty)                      cleanup
//!             else:
//!               find the smallest node to the right, mark its empty left edge   discovery
//!               mark its right edge; promote its key
//!               CAS(edge to the smallest, its right child)
//!               CAS(edge to the node, unmarked copy)                            cleanup
//! ```
//! An operation whose CAS fails because of a mark completes the operation behind the mark, and
//! starts again.
//!
//! # Departures
//! 1. *One CAS on the left edge of a node decides its fate*: the mark says that the node is to be
//!    replaced, spliced out, or promoted. The paper first flags the edge *to* the node (intention),
//!    so that the parent stays while the node is processed. Here the right edge of a node that
//!    waits for a successor stays open until the successor has left. So every operation that
//!    obstructs the search for the successor can be completed first, and the parent may leave at
//!    any time.
//! 2. *A removal that finds an empty edge claims that edge*, the right one in two steps (reserved,
//!    then the fate). So it knows from the start whether it needs a copy, a node that has at most
//!    one child can be removed without allocation, and no operation allocates once it is decided.
//! 3. *The owner makes the copy and announces it in the node* before the fate is decided. In the
//!    paper each helper makes one. Here helpers allocate nothing, so neither they nor an owner that
//!    meets an obstacle can fail half-way.
//! 4. *The pair is promoted into the copy*, not into the node. Key and value are two words, and a
//!    search must not see one without the other. All 2^64 keys are legal, so no bit is left for the
//!    paper's mark of a promoted key. A node's key and value never change; a search that misses a
//!    key finds the promoted pair through its anchor.
//! 5. Upsert and compare-exchange, which the paper does not have, replace the node by an announced
//!    copy with the new value. A node has one fate, so these verbs exclude removal, promotion and
//!    each other.
//! 6. *An empty edge holds a stamp* (`silvics_sync::stamp`) unless it is a new node's. The paper
//!    leaves the address of the last child in it, which distinguishes the word from its earlier
//!    values only until memory is reused.
//! 7. One edge, the root's, replaces the paper's three sentinel nodes and infinite keys.
//! 8. Reclamation, which the paper leaves open, follows I4.
//!
//! # Invariants
//! * I1: a node in the tree is complete; its key and value never change.
//! * I2: keys left of a node are smaller, and keys right of it larger. The same order holds towards
//!   the key of the copy that is to replace the node, except for the successor's own key.
//! * I3: a marked edge never changes again. A left edge's mark, the node's fate, is set once; a
//!   right edge is frozen after that, or reserved.
//! * I4: a node is in the tree until both of its edges are marked and one CAS swings away an
//!   unmarked edge in the tree that led to it. The thread of that CAS alone retires the node. A
//!   copy may turn out not to be needed, for a node that had lost a child. The owner of the fate
//!   then retires the copy when the node has left.
//! * I5: while a node that waits for a successor is in the tree, exactly one node is ever claimed
//!   as its successor. From the claim on, that node is the smallest to its right, until it has
//!   left; the waiting node leaves later.
//! * I6: an edge that becomes empty again differs from all its earlier empty values.
//! * I7: an object that can be reached under a guard is not reclaimed under it.
//!
//! I5 follows with the use of I6. A node stays the smallest to the right of another, as long as
//! both are in the tree, unless it gets a left child, and that changes its left edge for good (I6).
//! So a claim succeeds only if its node is still the smallest. If the copy had no pair after the
//! edge was read, no other node had been claimed and had left by then. Likewise, a leaf is linked
//! only at an edge where no key has come or gone since the edge was read. The place was right at
//! that read, or the anchor would have shown otherwise. For only the promotion of the smallest key
//! above a place shrinks its range, and that key's left or right edge is that very place.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | every successful CAS | the child is complete (I1); linearization points of different keys are in one order |
//! | edge | all CASes, success | `SeqCst` | `load` | publishes the child, the fate, or the copy's pair; linearization points of different keys are in one order |
//! | edge | all CASes, failure | Relaxed | – | the loser reads again through `load` |
//! | `copy` | CAS, load | `SeqCst` | each other | a thread that sees the fate sees the copy announced before |
//! | `key`, `value` | `take_pair` | Relaxed | – | the CAS of the draft publishes them; later stores write the same pair |
//! | `key`, `value` | load | Relaxed | – | behind the load of the edge, or draft, that led there |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found in a node; every operation that finds the key and changes nothing | the load of the edge to the node; if the edge's owner had left by then, the moment when it left |
//! | `get`, absent; every operation that changes nothing | the load of the empty edge; if its owner had left by then, the moment when it left |
//! | `get` and every operation that changes nothing, decided by the anchor's promoted pair | the load of the pair; if the anchor had left by then, the moment before it left |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the CAS in `insert` |
//! | `insert`, `compare_exchange` of a present key; `remove` | the CAS in `cleanup` that unlinks the node, possibly a helper's. A node with a fate is still present, and so is its successor. |
//!
//! A miss holds for these reasons. An anchor without a fate is in the tree, and was when the empty
//! edge was read. The owner of that edge was in the tree as well, or it left meanwhile with the
//! edge unchanged; then take that moment. All turns below the anchor were left turns, so the edge
//! is the only place for a key above the anchor's and below all others there. Nor can the key have
//! moved up: only the smallest key to the right of a node does. The nodes that the search passed on
//! their left sides do not have it to their right. For the nodes that it passed on their right
//! sides, the anchor comes before the key. If the anchor has a fate, it may have left before that
//! load. If a second descent meets it again, the anchor was in the tree later still. And as long as
//! a promoted pair waits in the anchor's copy, no key is between the anchor's and the pair's, and
//! none comes.
//!
//! # Progress and reclamation
//! All operations are lock-free, except that one in 65 535 of a thread's stamps takes a lock for a
//! few instructions. A lookup descends again only if its anchor has a fate and is not the former
//! anchor: others have finished an operation in between. No finished operation leaves a mark
//! behind. Helping follows obstacles upwards, to the owner of the marked edge to a node. For a node
//! without a successor it follows them into the right subtree. Obstacles there never lead above the
//! node's right edge, which is open as long. So there is no circle.
//!
//! # Complexity and footprint
//! A search takes O(depth). The tree is not balanced: random keys give an expected depth of 2 ln n,
//! sorted keys a path of n nodes. An entry takes 40 bytes: [`NODE`]. A search reads the first 24.
//! In slots of 40 bytes, 2 of 8 nodes have these 24 bytes in two lines; in the study's slots of 48
//! bytes, 1 of 4.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`](crate::Check::check), which
//! checks I1 to I3 in a quiescent tree; the transitions of a node's words, in every execution, in
//! `node.rs`; schedules (`tests/schedules.rs`: I4 to I7, every linearization point, and
//! lock-freedom with a stopped thread), which must find the mistakes of `canary.rs`.

pub mod build;
mod canaries;
mod check;
mod help;
mod node;
mod ops;

pub use node::NODE;

use super::build::Fixed;
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::{Memory, Nodes};
use crate::update::Update;
use build::Build;
use node::{AtomicEdge, Edge, Node};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, Pooled};
use std::marker::PhantomData;

/// The tree of Ramachandran and Mittal: see the [module](self).
///
/// ```
/// use silvics::{Options, OrderedIndex, RamachandranTree};
///
/// let tree: RamachandranTree = RamachandranTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [2, 1, 3] {
///     assert_eq!(tree.try_insert(key, 10 * key), Ok(()));
/// }
/// assert_eq!(tree.remove(2)?, Some(20)); // 3 takes its place
/// assert_eq!([1, 2, 3].map(|key| tree.get(key)), [Some(10), None, Some(30)]);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type RamachandranTree<P = Pooled, B = Fixed> = Index<Ramachandran<P, B>>;

/// The algorithm of [`RamachandranTree`].
pub struct Ramachandran<P: Placement, B: Build> {
    frame: Frame,
    root: AtomicEdge,
    nodes: Nodes<Node, P>,
    build: PhantomData<fn() -> B>,
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs. The tree has no scans.
// A1. Edges, copies and pairs are atomics, which all threads share; everything else in a linked
//     node never changes. The nodes are the tree's own and go through the domain.
// A2. The key and value of a node in the tree never change (I1). `insert` and `replace` make nodes
//     with the value of the verb; the copy that promotes a successor takes the successor's pair.
// A3. A descent that finds its key reads a node that an edge of the tree led to at the load, or
//     that was in the tree when the edge's owner left, with its edges frozen (I3). A promoted pair
//     that it reads is in force until the anchor leaves. Each of these moments is after the guard
//     was taken.
// A4. A value ends when the fate of its node is set, which happens once (I3), and the node then
//     leaves by one CAS (I4). The thread that set the fate returns the value; a helper returns
//     none. A node with a fate is still present, so no writer returns its value a second time. A
//     promoted successor keeps its word in the copy (I5).
// A5. A writer allocates its leaf or copy before it changes an edge. A leaf whose CAS fails was
//     never linked. An announced copy is linked only if its node's fate is to be replaced by it;
//     with any other fate the copy stays the writer's own, and the writer begins again.
// A6. The tree has neither scans nor ends.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Ramachandran<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Ramachandran<Q, B>;

    const NAME: &'static str = "RamachandranTree";
    const OBJECTS: &'static [NodeLayout] = &[NODE];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let nodes = frame.nodes(&NODE);
        let root = AtomicEdge::new(Edge::first_empty());
        Ok(Self { frame, root, nodes, build: PhantomData })
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.lookup(key, guard)
    }

    #[inline]
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.update(key, verb, guard)
    }

    fn memory(&self) -> &dyn Memory {
        &self.nodes
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.nodes
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        if P::RELEASES_WHOLE {
            return;
        }
        for node in self.linked() {
            // SAFETY: I4: no other thread has the node, since access is exclusive; it came from
            // `nodes`, is in the tree and so not retired, and `linked` lists it once.
            unsafe { self.nodes.free(node) };
        }
    }
}
