//! Internal binary search tree in which a removal of a node with two children waits for the lookups
//! that have begun.
//!
//! # Source
//! Arbel and Attiya, "Concurrent updates with RCU: search tree as an example", PODC 2014. The
//! study's `citrus`. [`silvics_sync::rcu`] lets removers wait for lookups.
//!
//! # Algorithm
//! Descents are read sections of RCU and take no lock. An update locks the nodes that it changes,
//! from the top down. Under the locks it validates that they are in the tree and that the link of
//! its descent is unchanged. A node with two
//! children is removed by putting a *copy* of its successor in its place. For a while the successor
//! is there twice. It is unlinked at its old place when all descents have ended that may have
//! passed the new place before the copy was linked.
//! ```text
//! get(k):    in a read section: descend until a node has k or there is no child; its value
//! insert(k): descend; lock the last node; again, unless it is in the tree and its child's place is
//!            still empty and always was; link
//! remove(k): descend; lock parent and node; again, unless both are in the tree and linked
//!            fewer than two children: mark the node, link its child in its place
//!            else: lock the successor's parent and the successor (again, if they are not)
//!                  copy = the successor with the node's children, locked
//!                  mark the node; link copy in its place; synchronize
//!                  mark the successor; link its child in its place
//! ```
//! Each link has a *tag*, a count of how often it has become empty. An insertion finds its link
//! empty during the descent and again under the lock. If the tag is unchanged, the link was empty
//! throughout.
//!
//! # Departures
//! 1. Read sections are independent of the domain's guards, which callers may hold for ever, and
//!    cover the descent alone; they are over before anything is locked. So no remover waits for a
//!    guard, nor for another remover's section.
//! 2. The tag is read before a second look at the empty link, both in the read section (paper:
//!    after the only look). So the tag is no newer than the state that it validates. If it were
//!    read after the section, a successor with the key could be linked here and unlinked before
//!    that read.
//! 3. Upsert and compare-exchange, which the paper does not have, write the value under the node's
//!    lock, after seeing that it is not marked. The remover that copies a node has its lock before
//!    it reads the value and keeps it until the node is marked; and the copy is locked before it
//!    can be reached and until the successor is out of the tree. So no value is written to a node
//!    after its copy was made, nor to the copy while the node can still be found: a lookup may take
//!    the value of either, and looks at no mark (see below).
//! 4. The holder is a node known by address, whose right child is the root, in place of two nodes
//!    with infinite keys: all 2^64 keys are legal.
//! 5. The copy is allocated before anything is locked, so that failure leaves nothing to undo.
//!    Removal may fail for want of memory.
//! 6. Nodes are retired to the domain, the removed one and the successor that was copied; the
//!    published code keeps them for ever.
//!
//! # Invariants
//! * I1: a link changes only under the lock of its node, while that is not marked.
//! * I2: a node is marked under its own and its parent's lock, with which the link to it is taken
//!   away. If a thread holds a node's lock and the node is not marked, the node is in the tree. A
//!   marked node's links and value do not change any more.
//! * I3: a key is in two nodes only while a remover puts a copy of one in place of another: both
//!   are locked and have the same value meanwhile.
//! * I4: keys left of a node are smaller, and keys right of it larger. The one exception is a
//!   successor that has a copy above it.
//! * I5: a link that has become empty has another tag, of 32 bits: an insert would have to sleep,
//!   and keep as many retired nodes from being freed, while one link becomes empty 2^32 times.
//! * I6: every node that a descent reaches was in the tree at some moment since the descent began,
//!   so it is not reclaimed under the descent's guard. The holder is always in the tree. A link of
//!   a node in the tree leads to a node in the tree. If a node has left the tree since, its link
//!   leads to a node that was in the tree at that moment (I2).
//!
//! # Why descents find every present key
//! Say the *way* of k from a node is what a descent for k would do from there. While k is present,
//! the way from wherever a descent for k stands leads to a node with k. True at the holder, this is
//! kept
//! * by each step of the descent, and by new leaves;
//! * when a node with another key is replaced by its child: the way continues at the child, and a
//!   descent that stands at the old node reads unchanged links;
//! * when a copy takes the place of a node: no key lies between the two, so all others take the
//!   same turn at either; and k, if it is the successor's, is found at the copy, or further down as
//!   before;
//! * when the successor is taken out, for all k but its own, as in the first case. A descent for
//!   its key that is below the copy came past the copy's place before the copy was there: for to
//!   get there later, it would have met the copy. (It meets only what was in the tree since it
//!   began, all of which that is further down is below the copy; the node replaced is not.) So it
//!   had begun before the copy was there, and `synchronize` has waited for its end.
//!
//! A link is on the way of k from the holder until its node is replaced by its child or by a copy,
//! or, if it is a successor's left one, until the successor's copy is there. In each of these cases
//! it does not change any more while the node can be reached: it is then still empty if it was
//! found empty. So a descent for k that ends at an empty link was, at the last moment when that was
//! on the way of k, under way, and k absent.
//!
//! For an insertion the link must be on the way still, when it has the lock. Its node is not
//! marked, and so neither replaced nor a successor with a copy, which is locked until it is marked.
//! And its tag says that no node was below it since: so none with this key has been there, been
//! copied, and been taken out.
//!
//! # Deadlock freedom
//! Let the rank of a new leaf be one more than its parent's, and that of a copy the rank of the
//! node whose place it takes. Then ranks ascend along every link there ever is, and a thread locks
//! nodes by ascending rank; the copy's lock is taken while nobody else can reach it. A thread that
//! waits in `synchronize` holds locks, but the threads it waits for, in read sections, take none.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `key` | load | Relaxed | – | written before the node is linked, never again |
//! | `children` | load | Acquire | store | the node is initialised; who sees a link sees what was set before it |
//! | `children` | store, under the lock | Release | load | publishes the initialised node, and what was set before |
//! | `children` | load under the lock; in `has_two_children` | Relaxed | – | written under that lock; a guess |
//! | `tags` | load | Acquire | store | the second look sees the link at least as the tag's writer left it |
//! | `tags` | store, under the lock, after the link | Release | load | publishes the link that was stored before it |
//! | `value` | store / load | Release / Acquire | each other | who sees a value sees what its writer did before |
//! | `marked` | all | Relaxed | – | read and written under the lock |
//! | lock | `RawLock` | Acquire / Release | each other | mutual exclusion |
//! | fences in `read` and `synchronize` | – | `SeqCst` | each other | a descent is waited for, or sees the copy |
//! | fence after an update | `update` | `SeqCst` | itself | its stores are seen before the caller's next load |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found; all that find the key and change nothing | the load of the value; if the node was removed or replaced by its copy by then, the last moment before |
//! | `get`, absent; all that change nothing | the load of the empty link; if it was not on the key's way any more, the last moment it was |
//! | insert of an absent key | the store of the link in `attach` |
//! | `insert`, `compare_exchange` of a present key | the store of the value |
//! | `remove`, `compare_exchange` to absent | the store of the link to the node's child, or to the copy |
//!
//! A node that is found was in the tree at some moment since the descent began (I6). A value that
//! is read from it later is the last value that it had in the tree (I2, departure 3), so it was the
//! key's value at the moment before the node left. So a lookup need not check the mark. The same
//! holds for a copy: until the successor has left, both have the same value.
//!
//! # Progress and reclamation
//! Lookups take no lock, wait for no thread and never restart. Each writes twice to a cache line of
//! its own thread: when it begins and when it ends. Its steps are bounded by the number of nodes
//! and of concurrent updates. Updates are deadlock-free. A removal of a node with two children
//! waits for all descents that were under way, with up to five nodes locked: one that is preempted
//! in the middle holds it up, and with it the updates of those nodes. Nodes are retired by their
//! remover.
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. One node per entry, as the [`build`] has it: 48 bytes, of which a search reads
//! the key and the children, in the first 24. Laid end to end, that is 1.25 lines on average. The
//! mutex of the baseline build makes it 88. Each thread that uses a tree has a line of its own in
//! it, of 128 bytes on most machines; those of the first 31 threads are made with the tree.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); removers whose callers hold guards throughout
//! (`tests/citrus.rs`); [`crate::Check::check`], which walks I2 and I4; the words of a node in
//! every execution, in `node.rs`; schedules (`tests/schedules.rs`: I3, I5, I6, every linearization
//! point, and who waits for a stopped lookup), which must find the mistakes of `canary.rs`.

pub mod build;
mod canaries;
mod check;
mod node;
mod ops;

use super::build::Fixed;
use super::side::Side;
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::{Memory, Nodes};
use crate::update::Update;
use build::{Build, Words};
use node::Node;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Budget, Placement, Pooled};
use silvics_sync::rcu::RcuDomain;
use std::ptr::NonNull;
use std::sync::Arc;

/// The tree of Arbel and Attiya: see the [module](self).
///
/// ```
/// use silvics::{CitrusTree, Options, OrderedIndex};
///
/// let tree: CitrusTree = CitrusTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [4, 2, 6, u64::MAX, 0] {
///     tree.insert(key, key / 2)?;
/// }
/// // A copy of 6 takes the place of 4.
/// assert_eq!(tree.remove(4)?, Some(2));
/// assert_eq!(tree.get(4), None);
/// assert_eq!(tree.get(6), Some(3));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type CitrusTree<P = Pooled, B = Fixed> = Index<Citrus<P, B>>;

/// The algorithm of [`CitrusTree`].
pub struct Citrus<P: Placement, B: Build> {
    frame: Frame,
    /// Never moves; its right child is the root.
    holder: NonNull<Node<B::Words>>,
    nodes: Nodes<Node<B::Words>, P>,
    /// The descents under way.
    rcu: RcuDomain<Arc<Budget>>,
}

impl<P: Placement, B: Build> Citrus<P, B> {
    #[inline(always)]
    fn holder(&self) -> &Node<B::Words> {
        // SAFETY: `new` has allocated and initialised the holder. It is never unlinked, and only
        // `free_all` frees it, with exclusive access.
        unsafe { self.holder.as_ref() }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs. The tree has no scans.
// A1. The pointer leads to the tree's own holder, which lives as long as the tree. Words of linked
//     nodes that change are atomics, written under locks (I1, I2). Nodes go through the domain.
// A2. `attach` and `change_value` store the values of their verbs; the copy of a successor gets the
//     successor's value while both are locked (I3).
// A3. A descent that finds its key reads the value of a node that was in the tree at some moment
//     since it began (I6), hence since the guard was taken. A value read after the node left is the
//     last one it had in the tree (I2), and was the key's at the moment before.
// A4. A value ends by one store under the lock of its node, while the node is not marked (I2): of
//     another value, or of the link that takes the node away. The writer reads the value under that
//     lock and returns it. A successor's word stays, in its copy (I3).
// A5. A writer allocates before it changes anything. If it finds its place changed, under the lock,
//     the spare node was never linked.
// A6. The tree has neither scans nor ends.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Citrus<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Citrus<Q, B>;

    const NAME: &'static str = "CitrusTree";
    const OBJECTS: &'static [NodeLayout] = &[B::Words::NODE];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let nodes: Nodes<Node<B::Words>, P> = frame.nodes(&B::Words::NODE);
        let rcu = RcuDomain::new(Arc::clone(&frame.config.budget));
        let holder = nodes.alloc(Node::new(0, 0), &frame.domain.pin())?;
        Ok(Self { frame, holder, nodes, rcu })
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
        // A linked node is of this pool and not retired, and one link leads to each (I3, I4).
        unsafe {
            self.nodes.free_all(self.holder, |node| {
                [Side::LEFT, Side::RIGHT].map(|side| node.child(side).map(NonNull::from))
            });
        }
    }
}
