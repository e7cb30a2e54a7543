//! Partially external AVL tree with fine locks and optimistic lookups.
//!
//! # Source
//! Bronson, Casper, Chafi and Olukotun, "A practical concurrent binary search tree", PPoPP 2010.
//! The study's `occ-avl`. The authors' Java code (SnapTree) supplied the details of rebalancing
//! that the paper omits.
//!
//! # Algorithm
//! An AVL tree in which a lookup takes no lock. Every node has a version; a node that is about to
//! lose part of its key range, because a rotation moves it down, is marked *shrinking* meanwhile
//! and counts the move.
//! ```text
//! descend(k): node = holder; while its child towards k exists and has another key:
//!               read the child's version; wait while it is shrinking
//!               is it still node's child? has node not shrunk since we came?
//!               yes: move to the child; no child left: k is absent; else look again or restart
//! insert(k):  descend; lock the node where k belongs, check again, link; repair
//! remove(k):  descend; two children: lock, drop the value, leave a routing node
//!             else lock parent and node, drop the value, unlink; repair
//! repair:     from the damaged node upwards: fix heights, rotate, unlink routing nodes that have
//!             fewer than two children, each under locks of its own, until nothing is damaged
//! ```
//!
//! # Departures
//! 1. A failed validation restarts at the root; the paper goes back one level by recursion, which
//!    other builds do as well ([`build`]). The study found the loop 17 % faster and never saw it
//!    restart in read-only runs.
//! 2. Values are words, so that "no value" is a bit of the version word, with a counter of its
//!    changes beside it: a value is read together with its presence by reading the word twice.
//!    A descent that only passes a node ignores these bits.
//! 3. Only shrinking is versioned. Growing hides nothing from a search that is already there; the
//!    authors' code has dropped it as well.
//! 4. Left and right are mirrored by a `Side`, so that each rotation is written once.
//! 5. Upsert and compare-exchange write the value under the node's lock, after seeing that it is
//!    not unlinked.
//! 6. A node that has been unlinked is retired to the domain; the paper relies on Java's collector.
//! 7. Repair looks at every node that a rotation moved, and at the one above, each under its own
//!    lock. The authors' code decides from heights read without a lock and goes on with one node;
//!    damage can be lost, in sequential runs where the lower of two damaged nodes is repaired
//!    without a change of height, and in concurrent ones where two children change at once
//!    (both found by `check`).
//! 8. A node's link is loaded as soon as its version has been read, before the step to the node is
//!    validated, so that the next node is on its way by then (`step` in `ops.rs`).
//! 9. A new node is allocated before any lock is taken, so that failure leaves nothing to undo.
//!
//! # Invariants
//! * I1: links are changed only under the lock of the node they belong to, parents only under the
//!   lock of the parent so far. An unlinked node has no link to it, and its own links and parent do
//!   not change any more.
//! * I2: keys left of a node are smaller, right of it larger.
//! * I3: a node's key range never shrinks while its version, less presence, stays the same. (A
//!   version counts to 2^31 moves, presence to 2^30 changes: no operation lasts as long.)
//! * I4: an unlinked node has no value and never gets one again.
//! * I5: damage (a wrong height, an imbalance above one, a routing node with fewer than two
//!   children) exists only while some thread is on its way to repair it.
//! * I6: a node that can be reached under a guard is not reclaimed under it. The children and the
//!   parent of a node in the tree are not retired. If a node that is reached under the guard is not
//!   in the tree any more, it left after the guard was taken, and its children and parent were not
//!   retired when it left (I1). A reference `&'g Node` beside a guard `&'g Guard` was reached under
//!   that guard.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `key` | load | Relaxed | – | written before the node is linked, never again |
//! | `children`, `parent` | load | Acquire | store | the node is initialised; later loads stay behind (validation) |
//! | `children`, `parent` | store, under the lock | Release | load | a moved link comes with its version (I3) |
//! | `version` | load | Acquire | store | as for `children` |
//! | `version` | store, under the lock | Release | load | `end_shrink` publishes the rotation; `make_present` the value |
//! | `version` | second load in `state` | Relaxed | – | kept behind the Acquire load of the value |
//! | `value` | store / load | Release / Acquire | each other | a value written after a removal shows that removal |
//! | lock | `RawLock` | Acquire / Release | each other | mutual exclusion |
//! | height | load without the node's lock | Relaxed | – | a thread that changes it locks the parent after, and looks again |
//! | fence after an update | `update` | `SeqCst` | itself | its stores are seen before the caller's next load |
//!
//! This table does not prove that all threads see two writes to different keys in one order. C11
//! does not promise that for Release and Acquire; x86-64 and `AArch64` do, because each store
//! becomes visible to all other threads at once.
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found; `try_insert`, occupied | the load of the value (*) |
//! | `get`, absent; all that changes nothing | the load of the empty link, or the routing node's version (**) |
//! | insert of an absent key | the store of the link in `attach`, or of the version in `make_present` |
//! | update of a present key | the store of the value |
//! | `remove` | the store of the version in `make_absent` |
//!
//! (*) If the node lost its presence before that load, and the second load of the version does not
//! show it yet: the last moment at which the node was present.
//!
//! (**) If the node had been unlinked by then: the moment when it was unlinked.
//!
//! # Progress and reclamation
//! Deadlock-free: locks are taken from the top down. A lookup waits only while a rotation moves a
//! node on its path, and may restart whenever one did.
//!
//! # Complexity and footprint
//! O(log n): when quiescent the tree is a strict AVL tree over entries and routing nodes. One node
//! per entry, as the [`build`] has it: 64 bytes, a line each, of which a search reads the first 32
//! and the last 11 are not used. Routing nodes add less than one per entry.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`](crate::Check::check), which
//! walks I1, I2, I4, I5; reads beside writes and rotations, in every execution, in `node.rs` and
//! `balance.rs`; schedules (`tests/schedules.rs`: I3, I6, the repair of I5, every linearization
//! point), which must find the mistakes of `canary.rs`.

mod balance;
pub mod build;
mod canaries;
mod check;
mod frozen;
mod node;
mod ops;

pub use frozen::FrozenTree;

use super::side::Side;
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::{Memory, Nodes};
use crate::update::Update;
use build::{Build, Restarting, Words};
use node::Node;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, Pooled};
use std::ptr::NonNull;

/// The tree of Bronson et al.: see the [module](self).
///
/// ```
/// use silvics::{BronsonTree, Options, OrderedIndex};
///
/// let tree: BronsonTree = BronsonTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// assert_eq!(tree.compare_exchange(3, None, Some(30)), Ok(()));
/// assert_eq!(tree.get(3), Some(30));
/// assert_eq!(tree.compare_exchange(3, Some(30), None), Ok(()));
/// assert_eq!(tree.get(3), None);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type BronsonTree<P = Pooled, B = Restarting> = Index<Bronson<P, B>>;

/// The algorithm of [`BronsonTree`].
pub struct Bronson<P: Placement, B: Build> {
    frame: Frame,
    /// Never moves; its right child is the root.
    holder: NonNull<Node<B::Words>>,
    nodes: Nodes<Node<B::Words>, P>,
}

impl<P: Placement, B: Build> Bronson<P, B> {
    #[inline(always)]
    fn holder(&self) -> &Node<B::Words> {
        // SAFETY: `new` has allocated and initialised the holder. It is never unlinked, and only
        // `free_all` frees it, with exclusive access.
        unsafe { self.holder.as_ref() }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs. The tree has no scans.
// A1. The pointer leads to the tree's own holder, which lives as long as the tree. Words of linked
//     nodes that change are atomics, written under locks (I1). Nodes go through the domain.
// A2. Only `attach` and `change_value` store values, those of their verbs.
// A3. A lookup returns a value only if the node was present, by its version, before and after the
//     load of the value; an unlinked node has none (I4). The node's range has not shrunk on the way
//     (I3), so the value was the key's at a moment after the descent began, hence since the guard
//     was taken.
// A4. A value ends by one store of the value or of the version, under the lock of its node. The
//     writer reads the state under that lock and returns it, so no other writer returns the same
//     word.
// A5. `attach` allocates before it links, and looks again under the lock; if the place has changed,
//     the spare node was never linked. The other writers allocate nothing.
// A6. The tree has neither scans nor ends.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Bronson<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Bronson<Q, B>;

    const NAME: &'static str = "BronsonTree";
    const OBJECTS: &'static [NodeLayout] = &[B::Words::NODE];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let nodes: Nodes<Node<B::Words>, P> = frame.nodes(&B::Words::NODE);
        let holder = nodes.alloc(Node::new(0, None), &frame.domain.pin())?;
        Ok(Self { frame, holder, nodes })
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
        // SAFETY: exclusive access: the tree is quiescent, and no other thread can reach the nodes.
        // A linked node is of this pool and not retired, and one link leads to each (I1, I2).
        unsafe {
            self.nodes.free_all(self.holder, |node| {
                [Side::LEFT, Side::RIGHT].map(|side| node.child(side).map(NonNull::from))
            });
        }
    }
}
