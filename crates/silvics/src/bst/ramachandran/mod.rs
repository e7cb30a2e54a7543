//! Lock-free internal binary search tree.
//!
//! # Source
//! Ramachandran and Mittal, "A fast lock-free internal binary search tree", ICDCN 2015. The study's
//! `edge-int-lf`. The authors' C code and drafts of the paper were read for what it leaves open.
//!
//! # Algorithm
//! Every node is an entry. A removal claims the edges of its node by marking them; with at most one
//! child the node is then cut out, with two it is replaced by a copy that has the pair of its
//! *successor*, the smallest node to its right, which is cut out in its stead.
//! ```text
//! seek(k):    descend to the node with k or to an empty edge; there look at the anchor, the node
//!             where the descent turned right last: if it has changed, k may have moved up: again
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
//! An operation whose CAS fails because of a mark finishes what the mark is for, and starts again.
//!
//! # Departures
//! 1. *What happens to a node is decided by one CAS on its left edge*, whose mark is the node's
//!    fate: to be replaced, spliced out, or promoted. The paper first flags the edge *to* the node
//!    (intention), so that the parent stays while the node is worked on. Here the right edge of a node
//!    that waits for a successor stays open until the successor is gone, so that whoever
//!    obstructs the search for it can be finished first, and the parent may go whenever it wants.
//! 2. *A removal that finds an empty edge claims that edge*, the right one in two steps (reserved,
//!    then the fate). So it knows from the start whether it needs a copy, a node that has at most one
//!    child can be removed without memory, and no operation allocates once it is decided.
//! 3. *The copy is made by the owner and announced in the node* before the fate is decided. The
//!    paper has each helper make one; here helpers need no memory, so that neither they nor an owner
//!    whose way is blocked can fail half-way.
//! 4. *The pair is promoted into the copy*, not into the node. Key and value are two words and a
//!    search must not see one without the other, and all 2^64 keys are legal, so that there is no bit
//!    left for the paper's mark of a promoted key. A node's key and value never change; a search that
//!    misses a key finds the promoted pair through its anchor.
//! 5. Upsert and compare-exchange, which the paper does not have: an announced copy with the new
//!    value replaces the node. The fate of a node is one, so that they exclude removal, promotion
//!    and each other.
//! 6. *An empty edge holds a stamp* (`silvics_sync::stamp`) unless it is a new node's. The paper
//!    leaves the address of the last child in it, which tells the word from its past until memory is
//!    reused.
//! 7. The paper's three sentinel nodes and infinite keys shrink to one edge, the root's.
//! 8. Reclamation, which the paper leaves open: I4.
//!
//! # Invariants
//! * I1: a node in the tree is complete; its key and value never change.
//! * I2: keys left of a node are smaller, right of it larger; also smaller, or larger, than the key
//!   of the copy that is to replace it, but for the successor's own.
//! * I3: a marked edge never changes again. A left edge's mark, the node's fate, is set once; a right
//!   edge is frozen after that, or reserved.
//! * I4: a node is in the tree until both of its edges are marked and an unmarked edge in the tree
//!   that led to it is swung away, by one CAS. That CAS's thread alone retires it. A copy that
//!   turned out not to be needed, for a node that had lost a child, is retired by the owner of the
//!   fate, when the node has left.
//! * I5: while a node that waits for a successor is in the tree, exactly one node is ever claimed as
//!   such, and from then on that is the smallest to its right, until it has left; the node leaves
//!   later.
//! * I6: an edge that is empty again differs from what it was when it was empty before.
//! * I7: what can be reached under a guard is not reclaimed under it.
//!
//! I5 and the use of I6: a node stays the smallest to the right of another, as long as both are in
//! the tree, unless it gets a left child, and its left edge changes by that for good (I6). So a claim
//! succeeds only if its node is the smallest still; and if the copy had no pair after the edge was
//! read, no other was claimed and gone by then. In the same way a leaf is linked only where no key
//! has come or gone since the edge was read; and the place was right then, or the anchor would
//! have told: what shrinks the range of a place is the promotion of the smallest key above it, whose
//! left edge, or right edge, is that very place.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | every successful CAS | the child is complete (I1); linearization points of different keys are in one order |
//! | edge | all CASes, success | `SeqCst` | `load` | publishes the child, the fate, or the copy's pair; as above |
//! | edge | all CASes, failure | Relaxed | – | the loser looks again through `load` |
//! | `copy` | CAS, load | `SeqCst` | each other | whoever sees the fate sees the copy announced before |
//! | `key`, `value` | `take_pair` | Relaxed | – | the CAS of the draft publishes them; later stores are of the same |
//! | `key`, `value` | load | Relaxed | – | behind the load of the edge, or draft, that led there |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found in a node; all that change nothing | the load of the edge to the node, or, if the edge's owner had left by then, the moment it did |
//! | `get`, absent; all that change nothing | the load of the empty edge, or, if its owner had left by then, the moment it did |
//! | the same, decided by the anchor's promoted pair | the load of the pair, or, if the anchor had left by then, the moment before |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the CAS in `insert` |
//! | `insert`, `compare_exchange` of a present key; `remove` | the CAS in `cleanup` that cuts the node out, possibly a helper's. A node with a fate is still present, its successor as well. |
//!
//! Why a miss holds: an anchor without fate is in the tree, and was when the empty edge was read. So
//! was that edge's owner, or it left meanwhile with the edge as it is; then take that moment. All
//! turns below the anchor were left turns, so that the edge is the only place for a key above the
//! anchor's and below all others there. Nor can the key have moved up: only the smallest key to the
//! right of a node does, and of the nodes that the search passed on their left sides none has it to
//! its right, while of those passed on their right sides the anchor comes before the key. If the
//! anchor has a fate it may have left before that load. A second descent that meets it again finds it
//! in the tree later still. And as long as a promoted pair waits in the anchor's copy, there is no
//! key between the anchor's and the pair's, nor comes one.
//!
//! # Progress and reclamation
//! Lock-free, but for one in 65 535 of a thread's stamps, which takes a lock for a few
//! instructions. A lookup descends again only if its anchor has a fate and is not the former one: others
//! have finished something in between. No operation leaves a mark behind it. Helping follows
//! obstacles upwards (the owner of the marked edge to a node) and, for a node without successor, into
//! its right subtree, whose obstacles never lead above the node's right edge, which is open as long:
//! so there is no circle.
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. 40 bytes a key: [`NODE`]. A search reads the first 24; in slots of 40 bytes 2 of
//! 8 nodes have these in two lines, and in the study's of 48 bytes 1 of 4.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`](crate::Check::check), which walks I1 to I3; the
//! transitions of a node's words, in every execution, in `node.rs`; schedules
//! (`tests/schedules.rs`: I4 to I7, every linearization point, and lock-freedom with a stopped
//! thread), which must find the mistakes of `canary.rs`.

pub mod build;
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

// SAFETY: the nodes are the tree's own; they are shared through atomics and freed through the
// domain.
unsafe impl<P: Placement, B: Build> Algorithm for Ramachandran<P, B> {
    type Key = u64;
    type Placement = P;

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
        if Nodes::<Node, P>::RELEASES_WHOLE {
            return;
        }
        for node in self.linked() {
            // SAFETY: exclusive access; each node is linked once, and is freed once.
            unsafe { self.nodes.free(node) };
        }
    }
}
