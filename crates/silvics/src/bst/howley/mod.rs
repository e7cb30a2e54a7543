//! Lock-free internal binary search tree whose operations leave descriptors.
//!
//! # Source
//! Howley and Jones, "A non-blocking internal binary search tree", SPAA 2012: section 3 and its
//! listings. The study's `int-lf`, which took the code of ASCYLIB; that was read for its node and for
//! what it does with values and memory.
//!
//! # Algorithm
//! Every node is an entry. Each has an op word, by which an operation claims it: a state beside a
//! pointer to the operation's descriptor, with which any thread can finish it.
//! ```text
//! find(k):    descend; help whoever has claimed a node on the way, and start again; if k is not there,
//!             see that the node where the way went right last is unchanged: a relocation there may
//!             have lifted k over our head
//! add(k):     find; CAS(op of the last node: NONE → CHILDCAS); its link: null → new node; op → NONE
//! remove(k):  find n and its parent p
//!   n has at most one child c:
//!             CAS(p.op: NONE → CHILDCAS); CAS(n.op: NONE → MARK); p's link: n → c; p.op → NONE
//!   n has two; s is the next larger node, q its parent (perhaps n itself), c its right child:
//!             CAS(NONE → RELOCATE) on the op of p, n, q and s, in this order
//!             p's link: n → a copy of s with the links of n; q's link: s → c; op of q, p → NONE
//! ```
//! What follows the first CAS is in the descriptor, and is done by whoever comes across it. If a node
//! is found changed before all are claimed, all that were are released, and the operation starts
//! again.
//!
//! # Departures
//! 1. Key and value of a node never change. The paper, which has no values, relocates by writing the
//!    key of s into n, with a CAS that every helper repeats: keys of a node only grow, so those who come
//!    late change nothing. Values do come back: in ASCYLIB, which does the same with the value, a late
//!    helper writes the value of an old relocation over that of a later one, and a lookup may return it
//!    with another key. No CAS on a word that can hold anything is safe from that. So here n leaves the
//!    tree and a copy of s takes its place, and there is nothing to validate about an entry found.
//! 2. Upsert and compare-exchange, which the paper does not have: a copy with the new value takes the
//!    node's place, links included, as for a removal: p CHILDCAS, n MARK. From then on n's links do not
//!    change, and they are what the copy has if the mark could be set. Two updates, or an update and a
//!    removal of the node or below it, need the same words. The state returned is that of the node marked.
//! 3. The parent is claimed before the node is marked. The paper marks first, and whoever finds the
//!    mark makes a descriptor for the parent: so helpers allocate, lookups among them, and a removal may
//!    find no memory when it has already happened. Here helping allocates nothing, and a removal
//!    allocates before anything can be seen. For a relocation the paper claims s, then n; the
//!    parents get descriptors of their own later.
//! 4. A clean word (NONE) holds a count instead of the last descriptor (`claim.rs`), which is in the
//!    descriptor meanwhile. In the paper old descriptors keep clean words distinct, so they can not be
//!    freed; the study's code leaked them on purpose.
//! 5. A null link holds the count that its node's word had when the child went. In the paper it
//!    holds the address of that child, which is as good only if no memory is used twice: else a child in
//!    the same place, removed again, makes the link what it was, and a late helper inserts it once more.
//! 6. Lookups help nobody. They need not: see below.
//! 7. One kind of descriptor; a relocation has two of them.
//!
//! # Invariants
//! * I1: a link to a node is never null; the node was initialised before the link was set.
//! * I2: keys left of a node are smaller, right of it larger, but while a relocation is under way its
//!   successor is both in the copy and still where it was. The entries are those of the linked nodes.
//! * I3: the root is no entry. It has everything on its right, and is never marked.
//! * I4: a node's links change only while its word is claimed as that of a parent, by the steps of that
//!   claim's descriptor. A node that is marked, or the dest or successor of a relocation that takes
//!   effect, is never released: its links are frozen. No other node leaves the tree.
//! * I5: a link is never the same twice: what it leads to next is new, or was deeper; or it is null with
//!   the count of a claim that no earlier null link was made under. The null links of a copy are its
//!   own. So the step of a descriptor is made once, however many threads try.
//! * I6: a word with CHILDCAS or MARK holds a descriptor that replaces one link, one with RELOCATE one
//!   that has a second part. A relocation takes effect if its successor could be claimed, the last of
//!   all. If a node can not be claimed it will never be (C1), so all who help agree.
//! * I7: of the words that hold a descriptor, those of nodes that stay are released, the parent's last
//!   of all, when what goes is unlinked. The thread whose release does that (C3) retires the descriptor,
//!   its second part, and the nodes that have gone. By then no word that a thread can still come to
//!   holds the descriptor. Who came to it before has a guard from before, and may help in vain.
//! * I8: what can be reached under a guard, through links, words, and descriptors, is not reclaimed
//!   under it, with one exception: the second part of a relocation refers to the successor and its
//!   parent, which may leave the tree as long as they are not claimed. Its owner's guard keeps them,
//!   as long as the owner is about it. Another thread comes to them by itself: from dest, which is
//!   claimed, to the right, and then to the left as far as it has to. If it meets that parent's address
//!   and finds afterwards that nothing is decided yet, the owner's guard was there throughout, and so it
//!   is that parent and not a later node in its memory. If it does not meet it, the parent has been
//!   claimed by others since the owner saw it: the relocation fails, or is over.
//!
//! # Why lookups need not help
//! A lookup of k reads links, and sees nodes that were in the tree at some moment since it began: the
//! root is; and a child that a link leads to is while the link's node is, and if that has left the tree,
//! it was just before, since the link has not changed (I4). The same way, if k is present at such a
//! moment, it is below the node that the lookup stands at, with one exception. When a node leaves, its
//! place goes to its child, whose range grows, or to a copy with its key, or, in a relocation, to a
//! copy with the next larger key r. Then a lookup of k, with n.key < k ≤ r, that has gone right at n
//! stands where k no longer belongs. So if it finds k, k was present. If it comes to a null link:
//!
//! * n is the node where it has gone right last: all keys that it meets below are at least r.
//! * If the word of the last such node is clean, or a parent's, the node is in the tree, and has not been
//!   relocated; nor has one above it, since then r would not be the next larger key. k was absent.
//! * If the node is n, between n and r was nothing as long as n was in the tree, and r was there: so
//!   k was absent unless k is r, and then the copy, which never changes, has what k had. If k is larger
//!   than r the search would have gone right at the copy as well: look at the copy.
//! * If the node has been replaced by a copy with its key, look at the copy.
//! * If it has left without one, a relocation above may have come after that: the lookup begins again. This
//!   time it does not count nodes that are leaving as it passes them; a node that it counts and finds
//!   leaving at the end was removed meanwhile by somebody who has made progress.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | link | `load` | `SeqCst` | every successful CAS | the child is initialised (I1); linearization points of different keys are in one order |
//! | link | `try_replace`, success | `SeqCst` | `load` | publishes the new child; as above |
//! | link | `try_replace`, failure | Relaxed | – | another thread has done it |
//! | op | all | `SeqCst` | each other | see `claim.rs` |
//! | op | last look of a lookup | `SeqCst` | every claim | a link replaced under a claim shows that claim |
//! | state | all | `SeqCst` | each other | links are replaced, and nodes released, after the verdict is seen |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, found; all that find the key and change nothing | the load of the link to the node, or, if the link's node had left the tree, the moment it did |
//! | `get`, absent; all that change nothing | the same for the null link; or a moment just before n left, as said above |
//! | insert of an absent key | the CAS on the null link, possibly a helper's |
//! | update of a present key | the CAS on the parent's link, possibly a helper's |
//! | `remove` | the CAS on the parent's link, for a relocation that of p, possibly a helper's |
//!
//! # Progress and reclamation
//! Lock-free, lookups as well. Words are claimed from the top down: of the nodes that are claimed again
//! and again without any operation coming to its end, take the deepest. Who claims it finds nothing
//! below that changes, and so comes to its end. Nodes and descriptors are retired to the domain by I7.
//! No operation leaves a claimed node behind it.
//!
//! # Complexity and footprint
//! O(depth); the tree is not balanced: random keys give an expected depth of 2 ln n, sorted keys a
//! path of n nodes. One node per entry, of 40 bytes, and 64 for each descriptor of the writes under
//! way: under a held pin not only removals, but inserts and updates as well leave garbage. A search
//! reads the first 24 bytes of a node, and the value of the one that it finds; if it finds none, the
//! operation's word of the node where it went right last.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`Check::check`](crate::Check::check), which walks
//! I2 to I5; the claims in every execution, in `claim.rs`; schedules (`tests/schedules.rs`: I5 to I8,
//! every linearization point, and lock-freedom with a stopped thread), which must find the mistakes of
//! `canary.rs`.

pub mod build;
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
        // SAFETY: it lives as long as the tree.
        unsafe { self.root.as_ref() }
    }
}

// SAFETY: the nodes are the tree's own; they are shared through atomics and freed through the
// domain.
unsafe impl<P: Placement, B: Build> Algorithm for Howley<P, B> {
    type Key = u64;
    type Placement = P;

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
        // SAFETY: exclusive access; each node has one link to it.
        unsafe {
            self.nodes().free_all(self.root, |node| {
                node.links().map(|link| (!link.is_null()).then(|| link.node_ptr()))
            });
        }
    }
}
