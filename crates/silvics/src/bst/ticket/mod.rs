//! External binary search tree with a versioned lock per edge.
//!
//! # Source
//! David, Guerraoui and Trigonakis, "Asynchronized concurrency: the secret to scaling concurrent
//! search data structures", ASPLOS 2015: section 6, BST-TK. The study's `ticket`. The authors' C
//! code (ASCYLIB, `bst_tk.c`) was read for the details of the locks that the paper leaves out.
//!
//! # Algorithm
//! Entries are leaves; internal nodes only route. Every edge has a lock that counts how often it
//! was given back: its *version*. An update descends without locks and records the versions on its
//! path. Then it takes the one or two locks that it needs *at those versions*: to take them is to
//! validate.
//! ```text
//! parse(k):   descend to a leaf; at each node read the locks' versions, then the edge
//! search(k):  descend to a leaf; read no versions
//! insert(k):  parse; take the lock of the edge to the leaf at its version
//!             edge = new internal node over {leaf, new leaf}; give the lock back, version + 1
//! remove(k):  parse; take the lock of the edge to the parent at its version
//!             take both locks of the parent at their versions, for good
//!             edge to the parent = the parent's other edge; give its lock back, version + 1
//! ```
//! An operation that cannot take a lock releases those it holds and starts again.
//!
//! # Departures
//! 1. A version has 31 bits and is one number with the lock. The published lock is a ticket lock of
//!    two times 16 bits: the next ticket, and the version that is served. No thread waits in its
//!    line, so the two numbers differ by at most one. A key that is updated all the time soon
//!    changes one edge 65 536 times. An operation that was delayed meanwhile takes the edge for
//!    unchanged, and links again a node that was removed and freed long ago. (We assume that 2^31
//!    changes during one operation, which holds a pin, are impossible.)
//! 2. A search goes left if `key ≤ node.key`, where a node's key is the *smaller* of the two leaves
//!    it was made over (published: `<` and the larger). So no internal node needs an infinite key.
//!    One leaf, known by its address, replaces the sentinels, and all 2^64 keys are legal. The edge
//!    to the root, with its lock, belongs to a node that is no part of the tree.
//! 3. A bit of the edge says whether it leads to a leaf. In the published code a node is a leaf if
//!    its value is not zero, so zero is no legal value there.
//! 4. Upsert and compare-exchange, which the paper does not have: leaves are immutable, and an
//!    update replaces the leaf under the lock of its edge, at the version read. A removal of the
//!    leaf takes that lock too, for good. The first of the two makes the other fail and search
//!    again.
//! 5. Nodes are allocated before any lock is taken, so that a failure leaves nothing to undo. They
//!    are kept over attempts.
//! 6. A failed attempt is followed by a growing pause; in the published code the next attempt
//!    follows at once.
//! 7. Removed nodes are retired to the domain.
//! 8. The orderings below order loads and stores of edges; in the published code the processor
//!    does. (The published removal also looks at the wrong one of the grandparent's locks before it
//!    tries to take the right one. That costs restarts and nothing else.)
//!
//! # Invariants
//! * I1: an edge of the tree is never null; its kind bit gives its child's type; the child was
//!   initialised before the edge was set.
//! * I2: all keys in a node's left subtree are at most its key, and all in its right subtree are
//!   larger. The sentinel leaf is the rightmost leaf and counts as larger than every key.
//! * I3: only the owner of its lock changes an edge, and the lock's version counts the changes. So
//!   an operation that takes the lock at a version that it read before the edge finds the edge as
//!   it read it.
//! * I4: the locks of a node that was cut out are taken for good, so that its edges never change
//!   again. In a quiescent tree no other lock is taken.
//! * I5: a node becomes unreachable by exactly one store: a leaf by the replacement of its edge, or
//!   together with its parent by the store of a removal. The thread that stores retires it.
//! * I6: an object that can be reached under a guard is not reclaimed under it.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | `store` | the child is initialised (I1); linearization points of different keys are in one order |
//! | edge | `store`, under its lock | `SeqCst` | `load` | publishes the new child; linearization points of different keys are in one order |
//! | locks | `look` | Acquire | `give_back` | the edge is read after its version, and no older than that (I3) |
//! | locks | `try_take`, `try_take_both`, success | Acquire | `give_back` | the last owner's change is seen |
//! | locks | `try_take`, `try_take_both`, failure | Relaxed | – | nothing follows from it |
//! | locks | `give_back` | Release | `look`, `try_take` | publishes the change; as all changes of the word are read-modify-writes, a thread that sees a later one sees it, too |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`; every operation that changes nothing | the load of the edge to the found leaf; if that edge was already cut off, the moment when it was |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the store in `grow` |
//! | `insert`, `compare_exchange` of a present key | the store in `replace` |
//! | `remove` | the store in `take` |
//!
//! An edge that was cut off is frozen, and its child was the answer just before (I4).
//!
//! # Progress and reclamation
//! Updates are deadlock-free. No thread waits for a lock while it owns one. If several threads fail
//! for each other's locks, the one furthest down succeeds. Lookups are wait-free if the depth of
//! the tree is bounded. Ranges and cursors are those of external trees: [`walk`](super::walk).
//!
//! # Complexity and footprint
//! A search takes O(depth). The tree is not balanced: random keys give an expected depth of 2 ln n,
//! sorted keys a path of n nodes. An entry takes 48 bytes: [`build::Inner`] 32, two to a line, and
//! [`Leaf`](super::external::Leaf) 16. Other builds: [`build`].
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`], which checks I1, I2 and I4 in
//! a quiescent tree; the locks in every execution, in `state.rs`; schedules (`tests/schedules.rs`:
//! I3, I6, every linearization point, the scans, and that only writers wait), which must find the
//! mistakes of `canary.rs`.
//!
//! [`Check::check`]: crate::Check::check

pub mod build;
mod canaries;
mod check;
mod node;
mod ops;
mod scan;
mod state;

use super::build::Compact;
use super::external::{self, Edge, InnerWords, LeafWords};
use super::home::{Fresh, NodeStore};
use super::side::Side;
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::Memory;
use crate::update::Update;
use build::Build;
use node::AtomicEdge;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, Pooled};
use std::ptr::NonNull;

/// BST-TK, the tree of David, Guerraoui and Trigonakis: see the [module](self).
///
/// ```
/// use silvics::{Options, OrderedIndex, TicketTree};
///
/// let tree: TicketTree = TicketTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// assert_eq!(tree.try_insert(7, 0), Ok(()));
/// assert_eq!(tree.insert(7, u64::MAX)?, Some(0));
/// assert_eq!(tree.insert(9, 1)?, None);
/// assert!(tree.range_rev(..).eq([(9, 1), (7, u64::MAX)]));
/// assert_eq!(tree.remove(7)?, Some(u64::MAX));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type TicketTree<P = Pooled, B = Compact> = Index<Ticket<P, B>>;

/// The algorithm of [`TicketTree`].
pub struct Ticket<P: Placement, B: Build> {
    frame: Frame,
    /// The node whose left edge leads to the root. It is no part of the tree.
    holder: B::Inner,
    sentinel: NonNull<B::Leaf>,
    objects: B::Store<P>,
}

impl<P: Placement, B: Build> Ticket<P, B> {
    /// The edge to the root.
    #[inline(always)]
    fn root(&self) -> &AtomicEdge {
        &self.holder.children()[Side::LEFT]
    }

    #[inline(always)]
    fn is_sentinel(&self, leaf: &B::Leaf) -> bool {
        std::ptr::eq(leaf, self.sentinel.as_ptr())
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. The pointer leads to the tree's own sentinel, which lives as long as the tree. Edges and
//     locks are atomics; everything else in a linked node never changes. Nodes go through the
//     domain.
// A2. A leaf's key and value never change after it is linked, and only `grow` and `replace` make
//     leaves, with the value of the verb.
// A3. A descent ends at a leaf whose key it compares. Its edge led to it at the load, or at the
//     moment when the edge's node was cut out (I4: that edge is frozen), which was after the guard
//     was taken.
// A4. A value ends when its leaf is cut out, by one store (I5) under the lock of its edge. The lock
//     was taken at the version that the thread read before the edge, so the leaf is the one whose
//     value the thread returns (I3).
// A5. `grow` and `replace` allocate before their store. If they fail to take a lock, the spare leaf
//     was never linked.
// A6. Keys are integers, which a scan copies from leaves.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Ticket<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Ticket<Q, B>;

    const NAME: &'static str = "TicketTree";
    const OBJECTS: &'static [NodeLayout] = B::KINDS;

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let objects = B::Store::<P>::new(&frame, &B::INNER, &B::LEAF);
        let sentinel = {
            let mut spare = objects.spare();
            let sentinel = spare.leaf(B::Leaf::new(u64::MAX, 0), &frame.domain.pin())?;
            spare.leaf_linked();
            sentinel
        };
        let holder = B::Inner::new(0, [Edge::to_leaf(sentinel), Edge::NONE]);
        Ok(Self { frame, holder, sentinel, objects })
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
        // SAFETY: no other thread has the nodes, since access is exclusive. I1: the edges lead to
        // nodes of `objects`. I5: linked nodes are not retired. I2: each has one place, so one edge
        // leads to it.
        unsafe { external::free_all(self.root().load(), &self.objects, AtomicEdge::load) };
    }
}
