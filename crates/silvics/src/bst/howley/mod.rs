//! Lock-free internal binary search tree. An operation announces itself by a descriptor.
//!
//! # Source
//! Howley and Jones, "A non-blocking internal binary search tree", SPAA 2012: section 3 and its
//! listings. The study's `int-lf` took the code of ASCYLIB. That code was read for its node and for
//! how it treats values and memory.
//!
//! # Algorithm
//! Every node is an entry. Every node has an op word, by which an operation claims the node. The
//! word holds a state beside a pointer to the operation's descriptor, with which any thread can
//! finish the operation.
//! ```text
//! find(k):    descend; if a node on the way is claimed, help its operation and start again; if k is
//!             not there, check that the node where the search went right last is unchanged: a
//!             relocation there may have moved k above the search
//! add(k):     find; CAS(op of the last node: NONE → CHILDCAS); its link: null → new node; op → NONE
//! remove(k):  find n and its parent p
//!   n has at most one child c:
//!             CAS(p.op: NONE → CHILDCAS); CAS(n.op: NONE → MARK); p's link: n → c; p.op → NONE
//!   n has two; s is the next larger node, q its parent (perhaps n itself), c its right child:
//!             CAS(NONE → RELOCATE) on the op of p, n, q and s, in this order
//!             p's link: n → a copy of s with the links of n; q's link: s → c; op of q, p → NONE
//! ```
//! The descriptor describes every step after the first CAS, and any thread that meets it makes
//! these steps. If a node has changed before all nodes are claimed, the operation releases the
//! claimed nodes and starts again.
//!
//! # Departures
//! 1. Key and value of a node never change. The paper, which has no values, relocates by writing
//!    the key of s into n, with a CAS that every helper repeats. Keys of a node only grow, so a
//!    late helper changes nothing. Values can recur. ASCYLIB relocates the value in the same way: a
//!    late helper writes the value of an old relocation over that of a later one, and a lookup may
//!    return it with another key. No CAS on a word that can hold any value is safe from that. So
//!    here n leaves the tree and a copy of s takes its place, and a found entry needs no
//!    validation.
//! 2. Upsert and compare-exchange, which the paper does not have, replace the node by a copy with
//!    the new value and the same links. They claim as a removal does: p CHILDCAS, n MARK. Once n is
//!    marked, its links do not change; if the mark could be set, they are the links that the copy
//!    has. Two updates need the same words, and so do an update and a removal of the node or below
//!    it. The state returned is the state of the marked node.
//! 3. The parent is claimed before the node is marked. The paper marks first, and a thread that
//!    finds the mark makes a descriptor for the parent. So there helpers allocate, lookups among
//!    them, and a removal that has already taken effect may fail to allocate. Here helping
//!    allocates nothing, and a removal allocates before any other thread can see it. For a
//!    relocation the paper claims s, then n; the parents get their own descriptors later.
//! 4. A clean word (NONE) holds a count instead of the last descriptor (`claim.rs`). The descriptor
//!    keeps this count while the word is claimed. In the paper old descriptors keep clean words
//!    distinct, so they cannot be freed; the study's code leaked them on purpose.
//! 5. A null link holds the count that its node's word had when the child was removed. In the paper
//!    it holds the address of that child, which suffices only if no memory is reused. Otherwise a
//!    child that is inserted at the same place and removed again restores the link, and a late
//!    helper inserts the child once more.
//! 6. Lookups do not help. They need not: see below.
//! 7. There is one kind of descriptor; a relocation has two of them.
//!
//! # Invariants
//! * I1: a link to a node is never null; the node was initialised before the link was set.
//! * I2: keys left of a node are smaller, and keys right of it larger. One exception: while a
//!   relocation is under way, the key of its successor is in the copy and still at its old place.
//!   The entries are those of the linked nodes.
//! * I3: the root is no entry. All entries are on its right, and it is never marked.
//! * I4: a node's links change only while its word is claimed as that of a parent, by the steps of
//!   that claim's descriptor. A marked node is never released, nor is the dest or successor of a
//!   relocation that takes effect: their links are frozen. No other node leaves the tree.
//! * I5: a link never has the same value twice. Its next child is new, or was deeper; or the link
//!   becomes null, with the count of a claim under which no earlier null link was made. The null
//!   links of a copy are its own. So the step of a descriptor is made once, however many threads
//!   try.
//! * I6: a word with CHILDCAS or MARK holds a descriptor that replaces one link. A word with
//!   RELOCATE holds one that has a second part. A relocation takes effect if its successor could be
//!   claimed, which is the last claim. If a node cannot be claimed, it never will be (C1), so all
//!   helpers agree.
//! * I7: when the leaving nodes are unlinked, the claimed words of the nodes that stay are
//!   released, the parent's last. The thread whose release of the parent succeeds (C3) retires the
//!   descriptor, its second part, and the nodes that have left. By then no word that a thread can
//!   still reach holds the descriptor. A thread that reached it earlier has an older guard, and may
//!   help without effect.
//! * I8: an object that can be reached under a guard, through links, words, and descriptors, is not
//!   reclaimed under it, with one exception. The second part of a relocation refers to the
//!   successor and its parent, which may leave the tree as long as they are not claimed. The guard
//!   of the relocation's owner protects both until the owner has finished. Another thread searches
//!   for both from dest, which is claimed: to the right once, then to the left as far as needed. If
//!   it meets that parent's address and finds afterwards that nothing is decided yet, the owner's
//!   guard was there throughout. So the node is that parent and not a later node in its memory. If
//!   it does not meet the address, others have claimed the parent since the owner saw it: the
//!   relocation fails, or is over.
//!
//! # Why lookups need not help
//! A lookup of k reads links, and meets only nodes that were in the tree at some moment since the
//! lookup began. The root is in the tree. A child is in the tree while the node of its link is. If
//! that node has left, the child was in the tree just before, since the link has not changed (I4).
//! Likewise, if k is present at such a moment, it is below the node that the lookup stands
//! at, with one exception. When a node leaves, its place goes to its child, whose range grows, or
//! to a copy with its key, or, in a relocation, to a copy with the next larger key r. A lookup of
//! k, with n.key < k ≤ r, that has gone right at n then stands where k no longer belongs. So if it
//! finds k, k was present. Suppose that it comes to a null link:
//!
//! * Such an n is the node where the lookup has gone right last, since all keys that it meets below
//!   n are at least r.
//! * If the word of the node where the lookup went right last is clean, or claimed as that of a
//!   parent, this node is in the tree and has not been relocated. Neither has a node above it,
//!   since then r would not be the next larger key. So k was absent.
//! * If this node is n, the tree had no key between n and r as long as n was in the tree, and it
//!   had r. So k was absent unless k is r, and then the copy, which never changes, has the value
//!   that k had. If k is larger than r, the search would have gone right at the copy as well: look
//!   at the copy.
//! * If this node has been replaced by a copy with its key, look at the copy.
//! * If it has left without a copy, a relocation above may have come after that: the lookup begins
//!   again. The second search does not count nodes that are leaving as it passes them. If a counted
//!   node is leaving at the end of the search, another thread has begun to remove it meanwhile and
//!   so has made progress.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | link | `load` | `SeqCst` | every successful CAS | the child is initialised (I1); linearization points of different keys are in one order |
//! | link | `try_replace`, success | `SeqCst` | `load` | publishes the new child; linearization points of different keys are in one order |
//! | link | `try_replace`, failure | Relaxed | – | another thread has replaced the link |
//! | op | all | `SeqCst` | each other | see `claim.rs` |
//! | op | last load of a lookup | `SeqCst` | every claim | a link replaced under a claim shows that claim |
//! | state | all | `SeqCst` | each other | links are replaced, and nodes released, after the verdict is seen |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found; every operation that finds the key and changes nothing | the load of the link to the node; if the link's node had left the tree, the moment when it left |
//! | `get`, absent; every operation that changes nothing | the load of the null link; if the link's node had left the tree, the moment when it left; or a moment just before n left, as explained above |
//! | insert of an absent key | the CAS on the null link, possibly a helper's |
//! | update of a present key | the CAS on the parent's link, possibly a helper's |
//! | `remove` | the CAS on the parent's link, for a relocation that of p, possibly a helper's |
//!
//! # Progress and reclamation
//! All operations are lock-free, lookups as well. Words are claimed from the top down. Among nodes
//! that are claimed again and again without any operation finishing, take the deepest. The thread
//! that claims it finds no change below, and so it finishes. Nodes and descriptors are retired to
//! the domain by I7. No finished operation leaves a claimed node behind.
//!
//! # Complexity and footprint
//! A search takes O(depth). The tree is not balanced: random keys give an expected depth of 2 ln n,
//! sorted keys a path of n nodes. An entry takes one node of 40 bytes, and each write under way
//! takes 64 bytes per descriptor. Under a held pin, not only removals but also inserts and updates
//! leave garbage. A search reads the first 24 bytes of each node, and the value of the node that it
//! finds. If it finds none, it reads the op word of the node where it went right last.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`](crate::Check::check), which
//! checks I2 to I5 in a quiescent tree; the claims in every execution, in `claim.rs`; schedules
//! (`tests/schedules.rs`: I5 to I8, every linearization point, and lock-freedom with a stopped
//! thread), which must find the mistakes of `canary.rs`.

pub mod build;
mod canaries;
mod check;
mod node;
mod ops;

use super::build::Fixed;
use crate::domain::Guard;
use crate::error::Violation;
use crate::frame::{Algorithm, Frame, Index, See};
use crate::memory::{Memory, Nodes};
use crate::update::Update;
use build::Build;
use node::{Descriptor, Link, Node};
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Placement, Pooled};
use std::ptr::NonNull;

/// The tree of Howley and Jones: see the [module](self).
///
/// ```
/// use silvics::{HowleyTree, Options, OrderedIndex};
///
/// let tree: HowleyTree = HowleyTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [2, 1, 3] {
///     assert_eq!(tree.insert(key, 10 * key)?, None);
/// }
/// // The node of 2 has two children: 3 takes its place.
/// assert_eq!(tree.remove(2)?, Some(20));
/// assert_eq!((tree.get(2), tree.get(3)), (None, Some(30)));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type HowleyTree<P = Pooled, B = Fixed> = Index<Howley<P, B>>;

/// The algorithm of [`HowleyTree`].
pub struct Howley<P: Placement, B: Build> {
    frame: Frame,
    root: NonNull<Node<B>>,
    /// The pools of nodes, and that of descriptors.
    memory: (Nodes<Node<B>, P>, Nodes<Descriptor<B>, P>),
}

impl<P: Placement, B: Build> Howley<P, B> {
    #[inline(always)]
    fn nodes(&self) -> &Nodes<Node<B>, P> {
        &self.memory.0
    }

    #[inline(always)]
    fn descriptors(&self) -> &Nodes<Descriptor<B>, P> {
        &self.memory.1
    }

    #[inline(always)]
    fn root(&self) -> &Node<B> {
        // SAFETY: I3: the root is never marked, so it is never retired and lives as long as the
        // tree.
        unsafe { self.root.as_ref() }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs. The tree has no scans.
// A1. The pointer leads to the tree's own root, which lives as long as the tree. Links, op words
//     and states are atomics; everything else in a linked node never changes. Nodes and descriptors
//     go through the domain.
// A2. A node's key and value never change after it is linked. `add` and `replace` make nodes with
//     the value of the verb; the copy of a relocation has the successor's value.
// A3. A descent that finds its key reads the value of a node that was in the tree at some moment
//     since it began, and so since the guard was taken: section "Why lookups need not help". At
//     that moment the node's value was the key's: during a relocation the copy has the same value
//     (I2).
// A4. A node leaves the tree by the step of one descriptor, which is made once (I5), after its op
//     word was claimed for good (I4). Only the thread that made the descriptor returns the node's
//     value; a helper returns none. A relocated successor's key stays, and so does its word, in the
//     copy.
// A5. A writer allocates everything before it claims a word, and helping allocates nothing. If a
//     node cannot be claimed, all helpers agree on that (I6): the other claims are taken back, no
//     step is made, and the new node was never linked.
// A6. The tree has neither scans nor ends.
// A7. It calls no other algorithm.
unsafe impl<P: Placement, B: Build> Algorithm for Howley<P, B> {
    type Key = u64;
    type Placement = P;
    type At<Q: Placement> = Howley<Q, B>;

    const NAME: &'static str = "HowleyTree";
    const OBJECTS: &'static [NodeLayout] = &[Node::<B>::NODE, Descriptor::<B>::LAYOUT];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let nodes: Nodes<Node<B>, P> = frame.nodes(&Node::<B>::NODE);
        let descriptors = frame.nodes(&Descriptor::<B>::LAYOUT);
        let root = nodes.alloc(Node::new(0, 0, [Link::NONE; 2]), &frame.domain.pin())?;
        Ok(Self { frame, root, memory: (nodes, descriptors) })
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
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.memory
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        // SAFETY: no other thread has the nodes, since access is exclusive. Every linked node came
        // from `nodes` and is not retired (I7), and I2 gives it one place, so one link leads to it.
        unsafe {
            self.nodes().free_all(self.root, |node| {
                node.links().map(|link| (!link.is_null()).then(|| link.node_ptr()))
            });
        }
    }
}
