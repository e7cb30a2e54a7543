//! Internal binary search tree over an ordered list. A key is present if an unmarked node of the
//! list has it.
//!
//! # Source
//! Drachsler, Vechev and Yahav, "Practical concurrent binary search trees via logical ordering",
//! PPoPP 2014: the tree that is not balanced. The study's `log-int`. ASCYLIB's C code, which the
//! study measured, was read for its layout and for what it does differently.
//!
//! # Algorithm
//! All nodes stand in a doubly linked list in the order of their keys, between two ends. A key is
//! present if the list has a node with it that is not marked. The tree is a way to the list: it may
//! lag behind, and a search that it leads astray follows the list to the right place.
//! ```text
//! search(k): descend until a node has k or there is no child; that node
//! get(k):    n = search(k); while n > k: n = n.pred; while n < k: n = n.succ
//!            the value of n, if n has k and is not marked
//! insert(k): n = search(k); p = the node before k
//!            lock p's interval; s = p.succ; if p is marked or k not in (p, s): again
//!            s = k: k is present. Else lock whichever of p and s has a free place towards k;
//!            put the new node between p and s in the list; unlock the interval; link it in the tree
//! remove(k): likewise; s = k: lock s's interval too, then in the tree s, its parent and, if s has
//!            two children, its successor and that one's parent; mark s; take it out of both
//! ```
//! A node with two children is replaced in the tree by its successor, which is moved, not copied.
//! Locks of intervals (succ locks) are taken from left to right and before any tree lock; tree
//! locks from below. An operation that needs a tree lock further down only tries to take it. If
//! that fails, the operation releases its tree locks and begins again with these.
//!
//! # Departures
//! 1. A removed node leaves the tree *before* it leaves the list (paper and code: after). So
//!    whatever can be found in the tree is in the list (I3), on which two things depend. The nodes
//!    that a removed node's links lead to cannot be reclaimed before a reader who stands there has
//!    followed them (see below); the paper leaves that to Java's collector. And when the key can be
//!    inserted again, the tree has no marked node with it any more, at which a later lookup would
//!    end and say *absent*. The price is that both intervals stay locked while the tree is changed.
//! 2. An insertion sets `p.succ` before `s.pred` (code: after). A lookup that comes from `s` would
//!    find the key before it is in the list for one that comes from `p`. Between the two stores the
//!    interval behind the new node is locked, or another insertion there would set `s.pred` first.
//! 3. The ends of the list are nodes known by address, not by keys ±∞: all 2^64 keys are legal. The
//!    right end, the tail, is above the root, which is its left child. The head is no part of the
//!    tree; it has the tail as its right child, so that nothing is ever inserted below it.
//! 4. All verbs begin with the lookup. A verb that needs no write is decided without a lock
//!    (ASCYLIB does the same under an option), and an insertion or removal begins at the right
//!    interval.
//! 5. Upsert and compare-exchange, which the paper does not have, write the value under the succ
//!    lock of the node itself, after seeing that it is not marked. Its remover takes that lock
//!    before it marks the node and keeps it until the node is out of the list: so no value is
//!    written after the mark, and a value that is written is that of a present key.
//! 6. Fewer tree locks: the children of what moves are not locked. A node's `parent` is protected
//!    by the lock of the parent it has, and nothing else of such a child is read or written.
//! 7. Removed nodes are retired to the domain.
//! 8. A new node is allocated before any lock is taken, so that failure leaves nothing to undo.
//!
//! # Invariants
//! * I1: if `a.succ` is `b`, then `b.pred` is `a`, for all nodes in the list. The one exception is
//!   the `pred` of a node before which an insertion or removal is under way. `succ` always leads to
//!   a larger key, `pred` to a smaller one. `a.succ`, and the `pred` of the node that follows `a`,
//!   change only under `a`'s succ lock, while `a` is in the list and not marked.
//! * I2: a node is marked once, under its own and its predecessor's succ lock, which its remover
//!   keeps until it is out of the list. Its value does not change any more.
//! * I3: what is in the tree is in the list: a node enters the list first and leaves it last. (A
//!   successor on its way to its new place counts as in the tree.)
//! * I4: keys left of a node are smaller, right of it larger. Children change under their node's
//!   tree lock, `parent` under the lock of the parent so far; so a node that names `p` as its
//!   parent while `p` is locked is `p`'s child, or is about to be linked there by the thread that
//!   holds that lock.
//! * I5: the links of a removed node do not change any more. Its children were in the tree when it
//!   left the tree, its neighbours in the list when it left the list.
//! * I6: every node that an operation reaches was in the list at some moment since the operation
//!   began, so it is not reclaimed under the operation's guard.
//!
//! I6 is by induction over the way. A *descent* that began at t meets only nodes that were in the
//! tree at t or later. The tail is always. From such a node `x` it reads a child `y`: if `x` is
//! still in the tree, so is `y` then; if `x` has left it, then after t, and `y` was in the tree at
//! that moment (I5). A *walk* begins at such a node, which was in the list at that moment (I3), and
//! goes on in the same way by `pred` and `succ`: from `x` in the list to `y` in the list, or from
//! `x`, which left the list after t, to `y`, which was in it at that moment. A node is retired when
//! it has left both, which for all of these was after t, and the guard is older than t. The
//! `parent` of a node in the list leads to a node in the list as well. For a removal gives the
//! children their new parent before it takes the old one out of the list, and an insertion keeps
//! the parent locked until its node is in the tree.
//!
//! In the paper's order the second step fails: let `x` have left the list and not yet the tree, and
//! let `y`, to which `x.succ` leads, then be removed altogether and retired. A thread that pins
//! after that can still descend to `x`, and from there to `y`, which nothing protects. The canary
//! `list-before-tree` is that order.
//!
//! # Deadlock freedom
//! Succ locks are taken by ascending key (a remover's two), and none while holding a tree lock, but
//! for that of an inserter's new node, which nobody else can have. An inserter that waits for a
//! tree lock holds no other tree lock. A remover of `n` waits for the tree lock of `n`
//! while it holds none, and for that of `n.parent` while it holds that of `n` alone. Say such
//! removers wait in a circle.
//! Each one's node is in the tree, and is not moved, since its lock is held. Its former parent then
//! stays above it as long as it is in the tree: removals of others leave that order as it is, and a
//! node that is moved goes up. So each node is above the one before it in the circle: there is
//! none. A thread that only tries to lock gives its tree locks back and lets others run.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `key` | load | Relaxed | – | written before the node is linked, never again |
//! | `children`, `parent`, `pred`, `succ` | load | Acquire | store | the node is initialised; who sees a link sees what was set before it (I3, I5) |
//! | the same | store, under the lock | Release | load | publishes the initialised node, and what was set before |
//! | own links, before linking | `lay` | Relaxed | – | private until the Release that links the node |
//! | `value` | store / load | Release / Acquire | each other | keeps the load of the mark behind it |
//! | `value` | load under the succ lock | Relaxed | – | written under that lock |
//! | `marked` | store / load | Release / Acquire | each other | who sees a key gone sees what its remover did before |
//! | locks | `RawLock` | Acquire / Release | each other | mutual exclusion |
//! | fence after an update | `update` | `SeqCst` | itself | its stores are seen before the caller's next load |
//!
//! This table does not prove that all threads see two writes to different keys in one order. C11
//! does not promise that for Release and Acquire; x86-64 and `AArch64` do, because each store
//! becomes visible to all other threads at once.
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found; `try_insert`, occupied | the load of the value, behind which no mark was seen |
//! | `get`, absent; all that change nothing | the load of `succ` past the key, or of the mark; if the node read from had left the list by then, the moment it did |
//! | insert of an absent key | the store of the predecessor's `succ` |
//! | `insert`, `compare_exchange` of a present key | the store of the value |
//! | `remove`, `compare_exchange` to absent | the store of the mark |
//!
//! That the moment a node left the list lies within the operation is I6. The key is absent then: a
//! marked node is in the list until that moment, and until it has left nobody can insert its key,
//! which takes the predecessor's lock; and of a node `a` that leaves, `a.succ` is what follows it.
//!
//! # Progress and reclamation
//! Updates are deadlock-free. Lookups and scans take no lock and never start again; each step of
//! one leads to the next node, and only insertions and removals beside it can make the way longer.
//! A node is retired by its remover, when it has left the tree and the list.
//!
//! # Ranges
//! Both ways and by cursors, with the guarantee of [`crate::OrderedScan`]; `scan.rs` says why. A
//! step of a range is one in the list, that of a cursor a search.
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. One node per entry, as the [`build`] has it, and two ends: 72 bytes, of which a
//! search reads the key and the children, in the first 24; laid end to end, that is 1.25 lines on
//! average.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which walks I1 to I4;
//! values, marks and links in every execution, in `node.rs`; schedules (`tests/schedules.rs`: I5,
//! I6, every linearization point, scans, and lookups beside stopped writers), which must find the
//! mistakes of `canary.rs`.

pub mod build;
mod canaries;
mod check;
mod node;
mod ops;
mod scan;

pub use scan::{Range, RangeRev};

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
use silvics_pool::{AllocError, Placement, Pooled};
use std::ptr::NonNull;

/// The tree of Drachsler et al.: see the [module](self).
///
/// ```
/// use silvics::{DrachslerTree, Options, OrderedIndex};
///
/// let tree: DrachslerTree = DrachslerTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [5, u64::MAX, 0] {
///     tree.insert(key, !key)?;
/// }
/// assert_eq!(tree.get(5), Some(!5));
/// let up: Vec<_> = tree.range(1..).map(|(key, _)| key).collect();
/// assert_eq!(up, [5, u64::MAX]);
/// let down: Vec<_> = tree.range_rev(..=5).map(|(key, _)| key).collect();
/// assert_eq!(down, [5, 0]);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type DrachslerTree<P = Pooled, B = Fixed> = Index<Drachsler<P, B>>;

/// The algorithm of [`DrachslerTree`].
pub struct Drachsler<P: Placement, B: Build> {
    frame: Frame,
    /// Before all entries in the list.
    head: NonNull<Node<B::Words>>,
    /// After all entries in the list; its left child is the root.
    tail: NonNull<Node<B::Words>>,
    nodes: Nodes<Node<B::Words>, P>,
}

impl<P: Placement, B: Build> Drachsler<P, B> {
    #[inline(always)]
    fn head(&self) -> &Node<B::Words> {
        // SAFETY: `new` has allocated and initialised the head. It is never unlinked, and only
        // `free_all` frees it, with exclusive access.
        unsafe { self.head.as_ref() }
    }

    #[inline(always)]
    fn tail(&self) -> &Node<B::Words> {
        // SAFETY: `new` has allocated and initialised the tail. It is never unlinked, and only
        // `free_all` frees it, with exclusive access.
        unsafe { self.tail.as_ref() }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. The pointers lead to the two ends, which are the tree's own and live as long as it. Words of
//     linked nodes that change are atomics, written under locks (I1, I4). Nodes go through the
//     domain.
// A2. Only `attach` and `change_value` store values, those of their verbs.
// A3. An operation reads only nodes that were in the list since it began (I6), hence since the
//     guard was taken. It returns a value only if it saw no mark behind the load of the value, so
//     the value was the key's at that load.
// A4. A value ends by the store of another value or of the mark, under the succ lock of its node,
//     and a node is marked once (I2). The writer reads the value under that lock and returns it.
// A5. `attach` allocates before it links, and looks again under the lock; if the gap has changed,
//     the spare node was never linked. The other writers allocate nothing.
// A6. Keys are integers, which a scan copies from nodes.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Drachsler<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Drachsler<Q, B>;

    const NAME: &'static str = "DrachslerTree";
    const OBJECTS: &'static [NodeLayout] = &[B::Words::NODE];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let nodes: Nodes<Node<B::Words>, P> = frame.nodes(&B::Words::NODE);
        let guard = frame.domain.pin();
        let (mut spare_head, mut spare_tail) = (nodes.spare(), nodes.spare());
        let head = spare_head.filled(Node::new(0, 0), &guard)?;
        let tail = spare_tail.filled(Node::new(u64::MAX, 0), &guard)?;
        {
            // SAFETY: the spares have filled both nodes and keep them meanwhile, and no other
            // thread has them.
            let (head, tail) = unsafe { (head.as_ref(), tail.as_ref()) };
            head.lay(head, tail, head);
            tail.lay(head, tail, head);
            head.lock_tree().set_child(Side::RIGHT, Some(tail));
        }
        spare_head.linked();
        spare_tail.linked();
        drop((spare_head, spare_tail, guard));
        Ok(Self { frame, head, tail, nodes })
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
        // A node in the list is of this pool and not retired, and the `succ` of one other leads to
        // it (I1). The tail leads to itself, which ends the list.
        unsafe {
            self.nodes.free_all(self.head, |node| {
                let next = node.succ();
                [(!next.is(node)).then(|| NonNull::from(next))]
            });
        }
    }
}
