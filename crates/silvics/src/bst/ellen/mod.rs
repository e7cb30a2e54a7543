//! Lock-free external binary search tree. An operation announces itself by a descriptor.
//!
//! # Source
//! Ellen, Fatourou, Ruppert and van Breugel, "Non-blocking binary search trees", PODC 2010:
//! sections 3 and 4, figures 7 to 9. The study's `ext-lf`, which took the code of ASCYLIB; that was
//! read for its node and for what it does with memory.
//!
//! # Algorithm
//! Entries are leaves; internal nodes only route. Each internal node has an update word, by which
//! an operation claims it: a state beside a pointer to the operation's descriptor (Info record),
//! with which any thread can finish it.
//! ```text
//! Search(k):  descend to a leaf l, keeping its parent p and grandparent gp, and what their update
//!             words were before the edge taken from them was read
//! Insert(k):  Search; p clean, or help and start again
//!             CAS(p.update: clean → IFLAG)
//!             CAS(p's edge: l → new internal node over {copy of l, new leaf});  p.update: IFLAG → clean
//! Delete(k):  Search; gp and p clean, or help and start again
//!             CAS(gp.update: clean → DFLAG)
//!             CAS(p.update: clean → MARK); if p has changed: gp.update: DFLAG → clean, start again
//!             CAS(gp's edge: p → sibling of l);  gp.update: DFLAG → clean
//! ```
//! The steps after the first CAS are in the descriptor, and any thread that meets it may do them.
//!
//! # Departures
//! 1. A clean word holds a count instead of the last descriptor (`claim.rs`), and a descriptor what
//!    the word was before. So a descriptor can be retired as soon as it has been taken out of the
//!    word; in the paper, and in ASCYLIB, it lives until the next operation claims the node.
//! 2. Routing is by `key ≤ node.key` goes left, where a node's key is the *smaller* of the two
//!    leaves it was made over (paper: `<` and the larger). So no node needs an infinite key, and
//!    all 2^64 keys are legal: the root's is the largest there is, and everything is on its left.
//!    One of the paper's sentinels ∞1 and ∞2 is left, the right end of the tree. It is no object:
//!    an edge with a count, which takes the place of the copy that an insert makes of a leaf (I5).
//! 3. Upsert and compare-exchange, which the paper does not have, are inserts whose new child is a
//!    leaf. The flag on the parent excludes inserts beside it, other updates, and the removal of
//!    the leaf or of the parent, as each of them needs that word. It was clean when the edge was
//!    read, and nobody had claimed it since (C1): so the leaf replaced is the one whose value is
//!    returned.
//! 4. A deletion that cannot mark the parent takes its flag back and starts again. The paper first
//!    helps the operations that are in its way, by recursion. Here the next search helps them. The
//!    tree is still lock-free: among the nodes that are claimed again and again without an
//!    operation that ends, take the deepest. The thread that claims it finds no change below, so
//!    its operation ends.
//! 5. Lookups keep no record. Those of the build `baseline` do, as published ([`build`]).
//! 6. An edge tells what it leads to: an internal node, a leaf, or the end.
//! 7. Inserts keep what they have made over attempts, a published descriptor excepted.
//!
//! # Invariants
//! * I1: an edge to a node is never null and its bits tell its child's type; the child was
//!   initialised before the edge was set.
//! * I2: all keys in a node's left subtree are at most its key, all in its right subtree larger.
//! * I3: the root has everything on its left. The rightmost edge, and it alone, is the end. So each
//!   leaf has a parent and a grandparent.
//! * I4: a node's edges change only while its word is flagged, by the steps of that flag's
//!   descriptor; those of a marked node never do.
//! * I5: an edge never leads to the same child twice. The child that it leads to next is fresh (an
//!   insert's node, with a copy of the leaf it replaces; an update's leaf; the end with a larger
//!   count), or was deeper in the tree, and nothing that an edge has led to ever is below it again.
//!   So the step of a descriptor is made once, however many threads try.
//! * I6: a descriptor is linked by at most two words: the first claimed, until it is released, and
//!   the marked parent's. The thread whose release succeeds (C3) retires the descriptor and what
//!   its step has unlinked: the old leaf, or the leaf and the marked parent. By then no word that a
//!   thread can still come to holds the descriptor: the parent is unlinked. A thread that came to
//!   it before has a guard from before, and may help in vain.
//! * I7: what can be reached under a guard, through edges, words and descriptors, is not reclaimed
//!   under it.
//!
//! A step is made on what was seen: a claim succeeds only if the word has been clean, with one
//! count, since before the edge was read (C1, and `Place` reads in this order), so that the edge
//! was still the same (I4). It stays so until the step is made, by I4. A deletion's parent was seen
//! clean before the edge to the leaf was read; if it is marked, with that count, its edges have not
//! changed either. If it can not be marked, its word has moved on, and it will never be (C1): so
//! all who help agree on what becomes of a deletion.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | every successful CAS | the child is initialised (I1); linearization points of different keys are in one order |
//! | edge | `try_replace`, success | `SeqCst` | `load` | publishes the new child; linearization points of different keys are in one order |
//! | edge | `try_replace`, failure | Relaxed | – | another thread has done it |
//! | update | all | `SeqCst` | each other | see `claim.rs` |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`; all that change nothing | the load of the edge to the leaf found, or, if that edge was already cut off, the moment it was |
//! | `try_insert`, `insert`, `compare_exchange` to a value | the CAS on the edge in `help_insert`, possibly a helper's |
//! | `remove`, `compare_exchange` to absent | the CAS on the edge in `help_marked`, possibly a helper's |
//!
//! # Progress and reclamation
//! Operations are lock-free. Lookups are wait-free if the depth of the tree is bounded. Nodes and
//! descriptors are retired to the domain by I6. No operation leaves a claimed node behind it.
//! Helping allocates nothing.
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. 48 bytes a key, as the [`build`] has it, and 64 for the descriptor of each
//! write under way. An insert allocates four objects and retires two; so under a held pin not only
//! removals, but inserts and updates as well leave garbage, 80 bytes each.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`](crate::Check::check), which
//! walks I2 to I4; the claims in every execution, in `claim.rs`; schedules (`tests/schedules.rs`:
//! I5 to I7, every linearization point, and lock-freedom with a stopped thread), which must find
//! the mistakes of `canary.rs`.

pub mod build;
mod canaries;
mod check;
mod node;
mod ops;
mod scan;

use super::build::Compact;
use super::external::InnerWords;
use super::home::NodePools;
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::{Memory, Nodes};
use crate::update::Update;
use build::Build;
use node::{Child, DESCRIPTOR, Descriptor, Edge};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, Pooled};
use std::ptr::NonNull;

/// The tree of Ellen et al.: see the [module](self).
///
/// ```
/// use silvics::{EllenTree, Options, OrderedIndex};
///
/// let tree: EllenTree = EllenTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// assert_eq!(tree.try_insert(u64::MAX, 1), Ok(()));
/// assert_eq!(tree.compare_exchange(u64::MAX, Some(1), Some(2)), Ok(()));
/// assert_eq!(tree.get(u64::MAX), Some(2));
/// assert_eq!(tree.remove(u64::MAX)?, Some(2));
/// assert_eq!(tree.get(u64::MAX), None);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type EllenTree<P = Pooled, B = Compact> = Index<Ellen<P, B>>;

/// The algorithm of [`EllenTree`].
pub struct Ellen<P: Placement, B: Build> {
    frame: Frame,
    /// Never claimed for removal.
    root: NonNull<B::Inner>,
    /// The pools of nodes, and that of descriptors.
    memory: (B::Pools<P>, Nodes<Descriptor, P>),
}

impl<P: Placement, B: Build> Ellen<P, B> {
    #[inline(always)]
    fn pools(&self) -> &B::Pools<P> {
        &self.memory.0
    }

    #[inline(always)]
    fn descriptors(&self) -> &Nodes<Descriptor, P> {
        &self.memory.1
    }

    #[inline(always)]
    fn root(&self) -> &B::Inner {
        // SAFETY: `new` has allocated and initialised the root. It is never retired, and only
        // `free_all` frees it, with exclusive access.
        unsafe { self.root.as_ref() }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. The pointer leads to the tree's own root, which lives as long as the tree. Edges and update
//     words are atomics; everything else in a linked node never changes. Nodes and descriptors go
//     through the domain.
// A2. A leaf's key and value never change after it is linked. An insert and an update make leaves
//     with the value of the verb; the copy that an insert makes of the sibling has the sibling's
//     value.
// A3. A descent ends at a leaf whose key it compares. Its edge led to it at the load, or at the
//     moment when the edge's node was cut off (I4: a marked node's edges do not change), which was
//     after the guard was taken: see the table of linearization points. A copy has the value of its
//     original.
// A4. A value ends by the step of one descriptor, which is made once (I5). Only the thread that
//     made the descriptor returns the value; a helper returns none. The claim succeeds only if the
//     edge is as it was when that thread read it, so the leaf that goes is the one whose value it
//     returns.
// A5. A writer allocates everything before it claims a word, and helping allocates nothing. Once
//     the claim of an insert succeeds, its step is made; a writer that fails to claim keeps its
//     nodes. A deletion puts no word.
// A6. Keys are integers, which a scan copies from leaves.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Ellen<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Ellen<Q, B>;

    const NAME: &'static str = "EllenTree";
    const OBJECTS: &'static [NodeLayout] = B::KINDS;

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let pools = B::Pools::<P>::new(&frame, &B::INNER, &B::LEAF);
        let descriptors = frame.nodes(&DESCRIPTOR);
        let root = B::Inner::new(u64::MAX, [Edge::END; 2]);
        let root = pools.inners().alloc(root, &frame.domain.pin())?;
        Ok(Self { frame, root, memory: (pools, descriptors) })
    }

    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.find(key, guard)
    }

    #[inline]
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.update(key, verb, guard)
    }

    fn memory(&self) -> &dyn Memory {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.memory
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        if P::RELEASES_WHOLE {
            return;
        }
        let mut edges = vec![self.root().children()[0].load()];
        // SAFETY: exclusive access: the tree is quiescent, and no other thread can reach the nodes.
        // They are of these pools and not retired, and one edge leads to each (I2, I3).
        unsafe {
            while let Some(edge) = edges.pop() {
                match edge.child::<B>() {
                    Child::End => {}
                    Child::Leaf(_) => self.pools().leaves().free(edge.leaf_ptr::<B>()),
                    Child::Inner(inner) => {
                        edges.extend(inner.children().iter().map(node::AtomicEdge::load));
                        self.pools().inners().free(edge.inner_ptr::<B>());
                    }
                }
            }
            self.pools().inners().free(self.root);
        }
    }
}
