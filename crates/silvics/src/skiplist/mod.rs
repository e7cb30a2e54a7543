//! Lock-free skip list with inline keys and hints on its links.
//!
//! # Source
//! Pugh, "Skip lists: a probabilistic alternative to balanced trees", CACM 1990 (structure);
//! Herlihy and Shavit, "The art of multiprocessor programming", 2008, section 14.4, after Fraser,
//! "Practical lock-freedom", 2004, section 4.3 (the lock-free algorithm). Inline keys: RocksDB's
//! `InlineSkipList` (D51123). As in `crossbeam-skiplist`, a count of links decides when a node is
//! retired. The hints are our own (see [`key`]).
//!
//! # Algorithm
//! The list of level 0 has all nodes in order. Each higher level is a list with fewer of them. A
//! node is removed by *marking* its links, top to bottom; the mark at level 0 removes the key. A
//! marked link never changes again.
//! ```text
//! search(k): from the head's top level: while the next node is unmarked and before k, move to it;
//!            else go down a level
//! seek(k):   search as a writer: unlink marked nodes on the way; if the current node is marked,
//!            restart; return the predecessors of k
//! insert(k): seek; link the new node at level 0 (CAS), then on its upper levels, seeking again
//!            where a CAS fails, until done or the node is marked
//! remove(k): seek; mark the levels from the top; CAS the mark at level 0; unlink at the places that
//!            the seek has found, or seek once more, which unlinks
//! ```
//!
//! # Departures
//! 1. A link carries a 16-bit hint on the next node's key, in the pointer's unused high bits. It
//!    decides most comparisons without touching the next node: a search misses the cache only for
//!    nodes it moves to. Link and hint are one word, so a hint always belongs to the node that the
//!    link leads to.
//! 2. Upsert and compare-exchange: a node's value never changes. An update replaces the node by a
//!    new one with its key. One CAS marks the old node's link and makes it lead to the new node.
//!    Unlinking the old node as usual then leaves the new one linked. So removal and update meet in
//!    one word, and the key is present throughout.
//! 3. A search that meets its key on an upper level stops there.
//! 4. Lookups never help. A lookup that meets a marked node starts again by full comparisons,
//!    stepping over marked nodes.
//! 5. Each node counts the levels that link it, or are to link it, and the cursors that stand at
//!    it. The thread that takes the count to zero retires the node. So a node is never retired
//!    while linked, even if its builder links it after its remover has looked.
//! 6. Each further level has probability 0.6 for `u64` keys; for byte strings the second has 0.23,
//!    those above 0.4. With hints a search misses the cache once per node it moves to and for
//!    nothing else, (1 - p) / p per level on average or (1 - p) / (p log2(1/p)) per doubling of the
//!    keys: 1 with Pugh's 1/2, 0.9 with 0.6. Byte strings give up links, and with them speed, to be
//!    smaller: with 1/2 throughout a node has 5 bytes more.
//! 7. Batches: `get_many` makes up to 32 descents in turns. Each prefetches its next node and
//!    yields, so that their misses overlap (Kocberber, Falsafi and Grot, PVLDB 9(4), 2015:
//!    `batch.rs`). `insert_many` first makes such descents to 64 keys, for the cache alone, and
//!    then upserts in order.
//!
//! # Invariants
//! * I1: a node's key, value and height never change after it is linked.
//! * I2: on every level keys ascend; equal keys stand next to each other only as a removed node and
//!   its replacement.
//! * I3: a marked link never changes. Links are marked from the top: a node unmarked on some level
//!   is unmarked below. When its remover and its builder are done, a marked node is linked nowhere.
//! * I4: a node's references are the levels that link it, those its builder is still to link, and
//!   the cursors at it. At zero it is unlinked for good and retired once.
//! * I5: a link's hint is `hint(key of its node, key it leads to)`.
//! * I6: if a node was linked on a level during a pin, so was the node that its link there leads
//!   to, marked or not. For only links of unmarked nodes change, so a node behind a marked one
//!   cannot be unlinked before the marked one is. A link on a level on which the node was not met
//!   may lead to a node that was reclaimed since. Such a link may be prefetched, and must not be
//!   followed.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `next[level]` | `next` | `SeqCst` | `try_link` | the next node is initialised (I1); linearization points of different keys are in one order |
//! | `next[level]` | `try_link`, success | `SeqCst` | `next` | publishes; linearization points of different keys are in one order |
//! | `next[level]` | `try_link`, failure | Relaxed | – | the loser reads again through `next` |
//! | own `next` before linking | `set_next_unshared` | Relaxed | – | private until the CAS that publishes it |
//! | `references` | `try_add` | Relaxed | – | the guard keeps the node meanwhile; a count publishes nothing |
//! | `references` | `give_up` | `AcqRel` | itself | all uses through other references precede the retirement |
//! | `references` | `height` | Relaxed | – | these bits never change |
//! | fence in `take`/`replace` and `build_tower` | between marks and second descent, links and look | `SeqCst` | each other | at least one of the two sees the other's writes, and unlinks |
//! | `height` (of the list) | load, raise | Relaxed | – | a stale height costs levels, never keys |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, `get_many`, found | the load of the node's link, unmarked |
//! | `get`, `get_many`, absent; every operation that changes nothing | the load of the level-0 link past the key; if that link was frozen by then, the moment when it was |
//! | `try_insert`, `insert`, `compare_exchange` of an absent key | the level-0 CAS in `link` |
//! | `insert`, `compare_exchange` of a present key | the CAS in `replace` |
//! | `remove` | the CAS that marks level 0 |
//!
//! # Progress and reclamation
//! Updates are lock-free. Lookups are wait-free if the length of the list is bounded. Removed nodes
//! are unlinked by their remover, or by any writer that meets them first. Ranges keep no node
//! beyond their guard; a cursor keeps the one node at which it stands.
//!
//! # At a memory limit
//! An upsert of a present key allocates a node, as a new key does. So at its limit a list may
//! refuse to replace a value that it has, until something is removed. A removed key can be put back
//! once no earlier pin is left: if there is no memory for a node of the height that was drawn, the
//! insert takes any height for which a slot is free.
//!
//! # Complexity and footprint
//! Operations take expected O(log n). A node is one allocation: a tower of 8 bytes per level (2.5
//! levels on average for `u64`, 1.4 for byte strings), value, references, and the key inline,
//! rounded up to 8. That makes 44 bytes on average for a `u64` key; for a byte string 28 and its
//! length. [`INTEGER_NODE`] and [`BYTES_NODE`] list the fields that a search reads.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which checks I2 to I5
//! in a quiescent list; schedules (`tests/schedules.rs`: I3, I4, I6, every linearization point, and
//! lock-freedom with a stopped thread), which must find the mistakes of `canary.rs`; the hints by
//! enumeration in `key.rs`; the references in every execution in `references.rs`.

mod batch;
mod check;
mod cursor;
pub mod key;
mod node;
mod ops;
mod references;
mod scan;
mod seek;

pub use cursor::SkipCursor;
pub use node::{BYTES_NODE, INTEGER_NODE};
pub use scan::{Range, RangeRev};

use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Frame, Index, Ordered, See};
use crate::memory::{Blobs, Memory};
use crate::update::Update;
use batch::WARMED;
pub use key::SkipKey;
use node::{MAX_HEIGHT, Node, NodeRef, node_bytes};
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::AtomicUsize;
use std::ptr::NonNull;
use std::sync::Arc;

/// The skip list: see the [module](self). `K` is `u64` or `[u8]`.
///
/// ```
/// use silvics::{Options, OrderedIndex, OrderedScan, SkipList};
///
/// let list: SkipList<[u8]> = SkipList::with_options(&Options::default())?;
/// let list = list.pin();
/// for (value, key) in [b"plum".as_slice(), b"apple", b"pear"].into_iter().enumerate() {
///     list.insert(key, value as u64)?;
/// }
/// let fruit: Vec<_> = list.range(b"b".as_slice()..).map(|(key, _)| key).collect();
/// assert_eq!(fruit, [b"pear".as_slice(), b"plum"]);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type SkipList<K, P = Pooled> = Index<Skip<K, P>>;

/// The algorithm of [`SkipList`].
pub struct Skip<K: SkipKey + ?Sized, P: Placement> {
    frame: Frame,
    head: NonNull<Node<K>>,
    /// The number of levels that may have nodes.
    height: AtomicUsize,
    nodes: Blobs<P>,
}

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// The node before all others, with the smallest key; never removed.
    #[inline(always)]
    fn head(&self) -> NodeRef<'_, K> {
        // SAFETY: I3, I4: the head is never marked, so it is never retired and lives as long as the
        // list.
        unsafe { NodeRef::from_ptr(self.head) }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. The pointer leads to the list's own head, which lives as long as the list. Links and
//     references are atomics; everything else in a linked node never changes (I1). Nodes go through
//     the domain.
// A2. A node's value never changes after it is linked (I1), and `spare.node` makes nodes with the
//     value of the verb.
// A3. A search finds a node by an unmarked link and compares its key; the node was present at that
//     load, which is after the guard was taken: see the table of linearization points.
// A4. A value ends by one CAS that marks the level-0 link of its node, to remove it or to put
//     another node behind it. A marked link never changes (I3), so one such CAS succeeds, and its
//     thread returns the node's value.
// A5. A writer allocates before the CAS that links its node on level 0. If that CAS fails, the
//     spare node was never linked.
// A6. Integer keys are copied. A byte string is memory of its node, which never changes (I1) and is
//     retired when it is linked nowhere (I4), so the guard protects it. A range never returns its
//     bounds.
// A7. It calls no other algorithm.
unsafe impl<K: SkipKey + ?Sized, P: Placement> Algorithm for Skip<K, P> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Skip<K, Q>;

    const NAME: &'static str = "SkipList";
    const OBJECTS: &'static [NodeLayout] = &[K::NODE];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let Frame { config, domain, .. } = &frame;
        let nodes: Blobs<P> = Blobs::new(INTEGER_NODE.kind, config, domain, Node::<K>::extent);
        let bytes = node_bytes::<K>(K::SMALLEST, MAX_HEIGHT);
        let memory = nodes.alloc(bytes, &domain.pin())?;
        // SAFETY: `alloc` returned `bytes` bytes of unused memory, aligned to 8 bytes, as a node
        // of this key and height needs.
        let head = unsafe { Node::<K>::init(memory, K::SMALLEST, 0, MAX_HEIGHT) };
        Ok(Self { head: head.as_non_null(), height: AtomicUsize::new(1), nodes, frame })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        &self.frame
    }

    #[inline(always)]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.find(key, guard).map(NodeRef::value)
    }

    #[inline]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        Self::update(self, key, verb, guard)
    }

    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        let count = keys.len().min(values.len());
        let found = |at: usize, node: Option<NodeRef<'_, K>>| {
            values[at] = node.map(NodeRef::value);
        };
        self.find_many(count, |at| K::shorten(keys[at]), found, guard);
    }

    const WARMED: usize = WARMED;

    fn warm(&self, entries: &[(K::Ref<'_>, u64)], guard: &Guard) {
        self.warm_many(entries.len(), |at| K::shorten(entries[at].0), guard);
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
        if P::RELEASES_WHOLE {
            return;
        }
        let mut next = Some(self.head());
        while let Some(node) = next {
            next = node.next(0).node();
            // SAFETY: no other thread has the node, since access is exclusive and cursors keep the
            // list alive. I3: every node is linked at level 0 once, or is retired. Its link was
            // read before it is freed.
            unsafe { self.nodes.free(node.as_non_null().cast()) };
        }
    }
}

impl<K: SkipKey + ?Sized, P: Placement> Ordered for Skip<K, P> {
    type OrderedAt<Q: Placement> = Skip<K, Q>;
    type Range<'g> = Range<'g, K, P>;
    type RangeRev<'g> = RangeRev<'g, K, P>;
    type Cursor = SkipCursor<K, P>;

    fn range<'g>(
        &'g self,
        (start, end): AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Range<'g, K, P> {
        Range::new(self, start, end, guard)
    }

    fn range_rev<'g>(
        &'g self,
        (start, end): AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> RangeRev<'g, K, P> {
        RangeRev::new(self, start, end, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> SkipCursor<K, P> {
        SkipCursor::new(index)
    }
}
