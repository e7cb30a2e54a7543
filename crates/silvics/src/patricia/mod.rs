//! Patricia trie with lock teleportation.
//!
//! # Source
//! Repetti and Herlihy, "A Case Study in Optimizing HTM-Enabled Dynamic Data Structures: Patricia
//! Tries", Brown University (nodes, hand-over-hand locking, lock teleportation, retry policy);
//! Morrison, "PATRICIA: practical algorithm to retrieve information coded in alphanumeric", JACM
//! 1968 (the trie); Leis, Scheibner, Kemper, Neumann, "The ART of practical synchronization", DaMoN
//! 2016 (optimistic lock coupling, by which teleportation is validated here).
//!
//! # Algorithm
//! A key is a string of characters of 1, 2, 4 or 8 bits. The path of a node is the characters on
//! the way to it, and ends with the node's label. A node has an entry if its path is a key, and a
//! child for each character that follows the path in some key. A node without an entry has at least
//! two children.
//! ```text
//! search(k):      node := root; while node's label is in k and k goes on: go to the child for the
//!                 next character, entering it before leaving the node above
//!                 → grandparent, parent, node; whether the path is k, a prefix of k, or differs
//! insert_leaf:    path is k        → the node gets the entry
//!                 path is a prefix → the node gets a leaf as a child
//!                 path differs     → a fork takes the node's place: it ends before the character
//!                                    that differs, has the node, whose label gets shorter, as a
//!                                    child, and the entry, or a leaf with it
//! delete_leaf:    two children or more → the node loses the entry
//!                 one child            → the child takes the node's place; its label gets longer
//!                 none → the parent loses the node; if the parent has no entry and one other child,
//!                        that child takes the parent's place below the grandparent
//! ```
//! A *section* is such a walk. The policy says what entering and leaving a node means
//! (`sync.rs`): hand-over-hand locking locks each node. Lock teleportation walks without locks, and
//! then takes the locks of the result, its parent, and for removals the grandparent, as if it had
//! come there hand over hand. The paper validates the walk by a hardware transaction. Here versions
//! in the nodes do it, and hardware transactions can come first (`transaction.rs`). An aborted
//! section is tried again as the retry policy says, and then locks hand over hand (`retry.rs`).
//!
//! # Departures
//! 1. **Teleportation in software.** Each lock has a version. A section reads a node's version when
//!    it enters, and validates it when it leaves. A lookup writes nothing and waits for no lock for
//!    long. A writer locks by an exchange of the version that it has read.
//! 2. **Fewer locks.** A writer locks the nodes that it changes. The paper always holds grandparent
//!    and parent, too. To give a present key another value, a writer locks the node alone.
//! 3. **Entries have values**, in the node. The paper's trie is a set.
//! 4. **The top of the trie** is a lock and a slot. The paper has a root for the empty string. Here
//!    the root is a node like any other, with a label, and an empty trie has none.
//! 5. **A lookup need not compare labels** in the build `compact`, as in Morrison's trie: each
//!    entry has its whole key, so one comparison at the end decides. In the build `paper` each
//!    label is compared, as the paper does.
//! 6. **Entries that are byte strings have whole keys** in either build, since a scan returns
//!    references to keys in nodes. An integer's key is made of the path in the build `paper`.
//! 7. **Removal never fails.** If the copy or the label that it needs cannot be allocated, the
//!    entry is taken away in place, and the node stays as large as it is.
//! 8. **Removed nodes are retired** to the domain, since sections may read them. The paper frees
//!    them at once: its transactions abort when they read freed memory.
//!
//! # Builds
//! | build | node | change of its shape |
//! |---|---|---|
//! | `paper` (`paper.rs`) | 32 bytes and 8 for each character: 48, 64, 160 or 2080 bytes, from the start of a line, and a label in an object of its own | in place; a label is replaced |
//! | `compact` (`compact.rs`) | leaf: 16 bytes and the key; inner node: 24 to 56 bytes, 8 for each child, and the label | by a copy, which takes the node's place |
//!
//! # Invariants
//! * I1: The label of a node is the characters of its path from the parent's end on, without the
//!   one that chose the child. A leaf of `compact`, and a byte string's entry, have the whole path.
//!   The key of an entry is the path of its node.
//! * I2: A node ends behind its parent's end. Its label has the bytes from that of its first
//!   character to that of its last one. One slot of a reachable node, or the trie's, leads to each
//!   reachable node.
//! * I3: All of a node but its lock changes only under the lock, and never after the node is
//!   obsolete. A node becomes obsolete under its own lock and that of the node whose slot leads to
//!   it. So the children of a locked node are not obsolete.
//! * I4: A node is retired after it has been unlinked, and so is a label. So an object that a
//!   section has found under a guard, by slots of nodes that it has found under the same guard, is
//!   not reclaimed while the guard lives. (A slot of an obsolete node does not change, by I3. So
//!   the node that it leads to was reachable at a moment since the section found the obsolete one.)
//! * I5: A node of `paper` counts its children. An object is retired once, by the thread that has
//!   unlinked it.
//! * I6: When no thread is in it, each node has an entry or two children, unless a removal had no
//!   memory.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | versions | `sync.rs` | as [`VersionLock`](silvics_sync::version::VersionLock) has it | – | a validated section has read one state |
//! | other locks | `sync.rs` | those of the lock: an acquiring exchange, a releasing store | each other | an owner sees what the last owner has written |
//! | slots | `Slot::load`, `store` | Acquire, Release | each other | the node that a slot leads to is initialised, even if the section will not validate |
//! | own slots before linking | `Slot::new` | – | – | private until the node is linked |
//! | label of `paper` | load, store | Acquire, Release | each other | the label is initialised |
//! | label of `paper` | under the lock, or of an unlinked node | Relaxed | – | it does not change |
//! | state, value | load | Relaxed | fence of `validate` | if they are those of a later writer, the section does not validate |
//! | state, value | store | Relaxed | unlocking | published by it; the fence after locking comes before |
//! | limits and counts of `retry.rs`, `untidy` | all | Relaxed | – | hints and statistics |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, and writers that change nothing | the validation of the parent after the last node was entered: the node was reachable then, and did not change until it was validated itself. In an empty trie, the reading of the top's version |
//! | the same, hand over hand | when the last node was locked |
//! | writers that change something | when the last of their locks was taken. All that they change is under these locks |
//!
//! A lookup in `compact` that finds no entry may have passed a node that is not on the key's path
//! any more, since it skips labels. Then its point is the validation of the last node that was.
//!
//! A node that is not obsolete when its parent is validated is reachable: no change unlinks a node
//! without making it obsolete (I3). So by induction each node was reachable when the section had
//! left the one above. Locks are taken, and versions read, by operations in one order for all keys
//! ([`VersionLock`](silvics_sync::version::VersionLock)). Hand over hand, all operations pass the
//! lock of the top in one order, and none overtakes another on the same path.
//!
//! # Progress and reclamation
//! Deadlock-free. A thread that waits for a lock owns only locks above it. The lock of a sibling,
//! which a removal takes, is waited for under the lock of the parent, and its owner waits for locks
//! below alone. Optimistic sections wait for no lock longer than some hundred nanoseconds; they
//! abort. After their tries they lock. Locks are not fair, so a thread may still wait for long
//! beside others that write the same node. A lookup locks only then. A scan holds locks, if any,
//! during one call of `next` at most.
//!
//! # Complexity and footprint
//! A search takes O(length of the key) steps, and about log(n) / log(alphabet) of them among n
//! random keys. docs/structures/patricia.md has bytes per key. Keys have up to 512 KiB
//! ([`AllocError::KeyLength`]).
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which verifies I1, I2,
//! I5 and I6; schedules (`tests/schedules.rs`, `tests/scenarios/tries.rs`), which must find the
//! mistakes of `canary.rs`; every allocation failing once (`tests/faults.rs`); labels by
//! enumeration (`digits.rs`); sizes, retries, transactions and removal without memory in
//! `patricia.rs` of `crates/api-tests`.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `build.rs`, `policy.rs`, `key.rs` | builds and alphabets, policies of synchronisation, types of keys |
//! | `digits.rs`, `digit_set.rs` | characters and labels, the digits that have a slot |
//! | `node.rs`, `paper.rs`, `compact.rs` | what the algorithm does with a node, and the two builds |
//! | `sync.rs`, `transaction.rs`, `retry.rs` | how sections enter nodes, transactions, the retry policy |
//! | `search.rs`, `ops.rs`, `scan.rs` | `search` and lookups, `insert_leaf` and `delete_leaf`, ranges |
//! | `check.rs` | verification |

pub mod build;
mod check;
mod compact;
mod digit_set;
mod digits;
mod key;
mod node;
mod ops;
mod paper;
pub mod policy;
mod retry;
mod scan;
mod search;
mod sync;
mod transaction;

pub use key::PatriciaKey;
pub use retry::{Abort, Injected, Retries, RetryPolicy, RetryStats, Rule, Section};
pub use scan::{Range, RangeRev};

use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Frame, Index, Ordered, See};
use crate::memory::Memory;
use crate::update::Update;
use build::{Build, Compact};
use node::{Made, Node, Nodes, Slot};
use policy::{Policy, Teleport};
use search::NodesOf;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::ptr::NonNull;
use std::sync::Arc;

/// The most bytes of a key.
const MAX_BYTES: usize = 512 << 10;

/// The Patricia trie: see the [module](self). The type parameters are keys, placement, build and
/// policy of synchronisation.
///
/// ```
/// use silvics::patricia::build::Compact;
/// use silvics::patricia::policy::Spin;
/// use silvics::{Options, OrderedIndex, OrderedScan, PatriciaTree, Pooled};
///
/// let trie: PatriciaTree<[u8]> = PatriciaTree::with_options(&Options::default())?;
/// let view = trie.pin();
/// for (key, value) in [("to", 1), ("tea", 2), ("ten", 3), ("t", 4)] {
///     view.insert(key.as_bytes(), value)?;
/// }
/// let sorted: Vec<_> = view.range(..).map(|(_, value)| value).collect();
/// assert_eq!(sorted, [4, 2, 3, 1]);
///
/// // An alphabet of bytes, and spin locks hand over hand:
/// let locked: PatriciaTree<u64, Pooled, Compact<256>, Spin> =
///     PatriciaTree::with_options(&Options::default())?;
/// assert_eq!(locked.pin().insert(7, 8), Ok(None));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type PatriciaTree<K = u64, P = Pooled, B = Compact<16>, S = Teleport> =
    Index<Patricia<K, B, S, P>>;

/// The top of a trie: the slot of the root, with the lock that protects it.
struct Top<L> {
    lock: L,
    root: Slot,
}

/// The algorithm of [`PatriciaTree`].
pub struct Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    frame: Frame,
    top: Top<S::Lock>,
    memory: <NodesOf<K, B, S> as Nodes>::Memory<P>,
    retries: Retries,
    /// Whether a removal has left something for want of memory (I6).
    untidy: AtomicBool,
}

impl<K, B, S, P> Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    fn set_untidy(&self) {
        self.untidy.store(true, Ordering::Relaxed);
    }

    fn is_untidy(&self) -> bool {
        self.untidy.load(Ordering::Relaxed)
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. Threads share nodes through locks and atomics (see the table of orderings), change them under
//     locks (I3), and free them through the domain (I4).
// A2. A value gets into a node from `change` alone, or with a copy, which is made under the node's
//     lock.
// A3. A lookup ends at a node whose path is the key, or compares the key with that of the entry
//     (I1). The table of linearization points names a moment in the section, which comes after the
//     guard was taken.
// A4. A value ends under the lock of its node. The writer has read it at the version at which it
//     took the lock, or under the lock, and returns it. Copies of a node are made under its lock,
//     and the node is obsolete when that is released.
// A5. A writer allocates before it changes anything, and what it has made is freed if a later
//     allocation fails or unwinds (`Draft`). Work after the change is caught (`afterwards`).
// A6. Integers are copied. A byte string is memory of its node or label, which never changes and is
//     retired to the domain, so the guard protects it (I4). Scans take keys from nodes, or make
//     them of paths, and never of their bounds.
// A7. It calls no other algorithm.
unsafe impl<K, B, S, P> Algorithm for Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Patricia<K, B, S, Q>;

    const NAME: &'static str = "PatriciaTree";
    const OBJECTS: &'static [NodeLayout] = NodesOf::<K, B, S>::OBJECTS;

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let memory = NodesOf::<K, B, S>::memory(&frame);
        let top = Top { lock: S::Lock::default(), root: Slot::new(std::ptr::null_mut()) };
        Ok(Self {
            frame,
            top,
            memory,
            retries: Retries::new(RetryPolicy::default()),
            untidy: AtomicBool::new(false),
        })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.find(key, guard)
    }

    #[inline(always)]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.change(key, verb, guard)
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
        let mut open = Vec::from_iter(NonNull::new(self.top.root.word()));
        while let Some(word) = open.pop() {
            // SAFETY: access is exclusive. I2: one slot leads to each node.
            unsafe {
                Self::below(Node::new(word), &mut open);
                NodesOf::<K, B, S>::discard::<P>(&self.memory, Made::Node(word));
            }
        }
    }
}

impl<K, B, S, P> Ordered for Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    type OrderedAt<Q: Placement> = Patricia<K, B, S, Q>;
    type Range<'g> = Range<'g, K, B, S, P>;
    type RangeRev<'g> = RangeRev<'g, K, B, S, P>;
    type Cursor = KeyCursor<Index<Self>>;

    #[inline]
    fn range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Range<'g, K, B, S, P> {
        Range::new(self, bounds, guard)
    }

    #[inline]
    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> RangeRev<'g, K, B, S, P> {
        RangeRev::new(self, bounds, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> KeyCursor<Index<Self>> {
        KeyCursor::new(index)
    }
}

impl<K, B, S, P> PatriciaTree<K, P, B, S>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    /// The retry policy, with its statistics.
    pub fn retries(&self) -> &Retries {
        &self.0.retries
    }

    /// Whether operations begin in hardware transactions: the policy has them, and so has the CPU.
    pub fn has_transactions(&self) -> bool {
        Patricia::<K, B, S, P>::first_level() == retry::Level::Transaction
    }
}

impl<B: Build, S: Policy, P: Placement> PatriciaTree<[u8], P, B, S> {
    /// The entries whose keys begin with `prefix`, in descending order.
    /// [`OrderedScan::prefix`](crate::OrderedScan::prefix) has them in ascending order.
    ///
    /// ```
    /// use silvics::{Lookup, Options, OrderedIndex, PatriciaTree};
    ///
    /// let tree: PatriciaTree<[u8]> = PatriciaTree::with_options(&Options::default())?;
    /// let guard = tree.domain().pin();
    /// for (key, value) in [("10.", 1), ("10.0.", 2), ("10.0.7", 3), ("11.", 4)] {
    ///     tree.insert(key.as_bytes(), value, &guard)?;
    /// }
    /// let below: Vec<u64> = tree.prefix_rev(b"10.0", &guard).map(|(_, value)| value).collect();
    /// assert_eq!(below, [3, 2]);
    /// # Ok::<(), silvics::AllocError>(())
    /// ```
    pub fn prefix_rev<'g>(
        &'g self,
        prefix: &'g [u8],
        guard: &'g Guard,
    ) -> RangeRev<'g, [u8], B, S, P> {
        Range::within(&self.0, prefix, self.0.frame.domain.adopt(guard))
    }
}
