//! External binary search tree with a versioned lock per edge.
//!
//! # Source
//! David, Guerraoui and Trigonakis, "Asynchronized concurrency: the secret to scaling concurrent
//! search data structures", ASPLOS 2015: section 6, BST-TK. The study's `ticket`. The authors' C code
//! (ASCYLIB, `bst_tk.c`) was read for what the paper leaves out of the locks.
//!
//! # Algorithm
//! Entries are leaves; internal nodes only route. Every edge has a lock that counts how often it was
//! given back: its *version*. An update descends without locks, remembers the versions on its way, and
//! then takes the one or two locks it needs *at those versions*: to take them is to validate.
//! ```text
//! parse(k):   descend to a leaf; at each node read the locks' versions, then the edge
//! search(k):  the same without the versions
//! insert(k):  parse; take the lock of the edge to the leaf at its version
//!             edge = new internal node over {leaf, new leaf}; give the lock back, version + 1
//! remove(k):  parse; take the lock of the edge to the parent at its version
//!             take both locks of the parent at their versions, for good
//!             edge to the parent = the parent's other edge; give its lock back, version + 1
//! ```
//! Where a lock cannot be taken the operation lets go of what it holds and starts again.
//!
//! # Departures
//! 1. A version has 31 bits and is one number with the lock. The published lock is a ticket lock of
//!    two times 16 bits: the ticket that is given next, and the version that is served. Nobody waits in
//!    its line, so that the two differ by one bit; and after 65 536 changes of one edge, which are
//!    few for a key that is updated all the time, an operation that was held up takes the
//!    edge for unchanged, and puts back what was removed and freed long ago. (2^31 changes in the course
//!    of one operation, which holds a pin, we take for impossible.)
//! 2. Routing is by `key ≤ node.key` goes left, where a node's key is the *smaller* of the two
//!    leaves it was made over (published: `<` and the larger). So no internal node needs an infinite
//!    key: the sentinels shrink to one leaf, known by its address, and all 2^64 keys are legal. The edge
//!    to the root, with its lock, is that of a node which is no part of the tree.
//! 3. A bit of the edge tells whether it leads to a leaf. Published, a node is a leaf if its value is
//!    not zero, which is no legal value then.
//! 4. Upsert and compare-exchange, which the paper does not have: leaves are immutable, and an update
//!    replaces the leaf under the lock of its edge, at the version read. A removal of the leaf takes
//!    that lock too, for good. Whichever comes first makes the other fail and look again.
//! 5. Nodes are made before any lock is taken, so that failure leaves nothing to undo, and kept over
//!    attempts.
//! 6. An attempt that fails is followed by a growing pause; published, by the next one at once.
//! 7. Removed nodes are retired to the domain.
//! 8. Loads and stores of edges are ordered by what is said below; published, by the processor. (The
//!    published removal also looks at the wrong one of the grandparent's locks before it tries to take
//!    the right one: that costs restarts and nothing else.)
//!
//! # Invariants
//! * I1: an edge of the tree is never null; its kind bit tells its child's type; the child was
//!   initialised before the edge was set.
//! * I2: all keys in a node's left subtree are at most its key, all in its right subtree larger.
//!   The sentinel leaf is the rightmost leaf and counts as larger than every key.
//! * I3: an edge is changed only by the owner of its lock, and its version counts the changes. So who
//!   takes the lock at a version that it read before the edge finds the edge as it read it.
//! * I4: the locks of a node that was cut out are taken for good, so that its edges never change again.
//!   In a quiescent tree no other lock is taken.
//! * I5: a node becomes unreachable by exactly one store: a leaf by the replacement of its edge, or
//!   together with its parent by the removal's. The thread that stores retires it.
//! * I6: what can be reached under a guard is not reclaimed under it.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | edge | `load` | `SeqCst` | `store` | the child is initialised (I1); linearization points of different keys are in one order |
//! | edge | `store`, under its lock | `SeqCst` | `load` | publishes the new child; as above |
//! | locks | `look` | Acquire | `give_back` | the edge is read after its version, and no older than that (I3) |
//! | locks | `try_take`, `try_take_both`, success | Acquire | `give_back` | the last owner's change is seen |
//! | locks | the same, failure | Relaxed | – | nothing follows from it |
//! | locks | `give_back` | Release | `look`, `try_take` | publishes the change; as all changes of the word are read-modify-writes, whoever sees a later one sees it, too |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`; all that change nothing | the load of the edge to the leaf found, or, if that edge was already cut off, the moment it was |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the store in `grow` |
//! | `insert`, `compare_exchange` of a present key | the store in `replace` |
//! | `remove` | the store in `take` |
//!
//! An edge that was cut off is frozen, and what it leads to was the answer just before (I4).
//!
//! # Progress and reclamation
//! Deadlock-free: nobody waits for a lock while it owns one, and of several who fail for each other's
//! locks the one furthest down does not. Lookups are wait-free but for the depth of the tree. Ranges
//! and cursors are those of external trees: [`walk`](super::walk).
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. 48 bytes a key: [`build::Inner`] 32, two to a line, and [`Leaf`](super::external::Leaf) 16. Other
//! builds: [`build`].
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`], which walks I1, I2, I4; the locks
//! in every execution, in `state.rs`; schedules (`tests/schedules.rs`: I3, I6, every linearization
//! point, the scans, and that only writers wait), which must find the mistakes of `canary.rs`.
//!
//! [`Check::check`]: crate::Check::check

pub mod build;
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
    /// Its left edge leads to the root. No part of the tree.
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

// SAFETY: the sentinel and all nodes are the tree's own; nodes are shared through atomics and
// freed through the domain.
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
        if B::Store::<P>::RELEASES_WHOLE {
            return;
        }
        // SAFETY: exclusive access; each node has one edge to it.
        unsafe { external::free_all(self.root().load(), &self.objects, AtomicEdge::load) };
    }
}
