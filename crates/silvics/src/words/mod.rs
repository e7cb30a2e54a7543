//! Blocks of words under a directory: for keys of 64 and 128 bits.
//!
//! # Source
//! Fagin, Nievergelt, Pippenger, Strong, "Extendible hashing", TODS 1979 (a directory whose places
//! may share a bucket); Binna, Zangerle, Pichl, Specht, Leis, "HOT: a height optimized trie index",
//! SIGMOD 2018 (nodes that test as many bits as they have children for); Yang and others, `DyTIS`,
//! `EuroSys` 2023, and Lu and others, "Dash", VLDB 2020 (extendible directories that keep order,
//! and buckets that are searched a line at a time). Reference code read: none.
//!
//! # Algorithm
//! A *node* has a place for each number that some bits of a key make, up to 2⁹. Neighbouring places
//! may lead to the same child. A *leaf* is a block or an array of slots. A *block* has up to 56
//! places for keys and values, in groups of a cache line. A key lies in the group that its hash
//! says, or in one of the groups behind it if that was full. An *array of slots* has a place for
//! the value of each of 64 neighbouring keys.
//! ```text
//! get(k):    word := the root's; while it leads to a node: word := the word that k's bits choose,
//!                  or nothing, if the node checks k and k is not below it
//!            in slots: the value is in k's slot
//!            in a block: compare k with the keys of its group. If none is k, and a key with k's
//!                  hash has passed the group, go on with the next group
//!            has the value moved? look in the successor of the leaf
//! update(k): find k's place as above; exchange its value, whatever it was
//!            no place has k: put k into the first place without a key, from its group on, by an
//!                  exchange; then exchange the value
//!            no leaf: lock; link a block with k to the largest aligned run of places around k's
//!                  that lead nowhere
//!            no room: lock the block, close its places, copy its entries to a larger block, or to
//!                  two that part at the first bit in which its keys differ. If their range has up
//!                  to 256 keys, and a sixth of these are there: copy those of each 64 keys to
//!                  slots, or to a block if they are less than ten
//!            replace a leaf: link the copy as its successor; move each value: put it into the
//!                  copy, exchange it for the mark `moved`; link the copy to the leaf's places
//! remove(k): exchange the value for the mark `absent`; if k's group has no value any more, unlink
//!            the leaf if it is empty, or merge it with its neighbour, or make it smaller
//! node without room for a split: copy it with more bits below its own, if it then has at most
//!            four places for each child, and four more; else a node of one or two bits goes below
//!            it
//! ```
//!
//! # Departures
//! 1. **The directory keeps the order of keys**: places are chosen by bits of the key, not of a
//!    hash. A node has another one below it where keys are crowded.
//! 2. **Nodes skip bits.** A node that is more than its own bits below the places above it has the
//!    smallest key below it, and its word says that it must compare that with the key.
//! 3. **No version is read.** Keys never leave their place while the block lives, and all changes
//!    of a value are exchanges of its word. A writer that puts, replaces or removes a value where a
//!    place has the key takes no lock. A new key of 64 bits takes a place without a lock, too; one
//!    of 128 bits takes the lock of its block.
//! 4. **Leaves change their form** with the density of their keys: blocks where keys are sparse,
//!    slots where at least ten of 64 are there, until no more than five are left.
//! 5. **Any word may be a value.** The marks for the absence of one are three words. There are two
//!    sets of them, and the word of a leaf says which one it uses. If a value is put that is such a
//!    mark, the leaf is copied to one with the other marks, or divided until that is possible.
//!
//! # Invariants
//! * I1: A word says what it leads to, and its shape: the bits of a node and whether it checks
//!   keys, the groups of a block, and the marks of a leaf. Its shape, the smallest key of a node
//!   and that of an array of slots never change after it is linked.
//! * I2: A place of a block that has a key keeps it. The places of a group get keys in order. Two
//!   places of a block have different keys. The stored key has 1 as its lowest bit, and lacks the
//!   first two bits, which the root has tested.
//! * I3: An object whose word was read under a guard of the domain is not reclaimed while the guard
//!   lives, and a linked object is not reclaimed at all. An object that has not been linked belongs
//!   to the thread that has made it.
//! * I4: The words of a node change only under its lock, and never after it is obsolete; those of
//!   the root, under `root_lock`. A leaf is locked while its word is replaced, and obsolete
//!   afterwards. So it is retired once, by the thread that has replaced it.
//! * I5: A group that a key has passed is full, and says so in the place that the key's hash
//!   chooses there (`PASSED`), before the key gets its place.
//! * I6: The places that have the word of a child are neighbours, as many as a power of two, and
//!   begin at a multiple of that. Those of a node are the places of its range, or the one that has
//!   it. Two places of the root never share a child. Each key below a
//!   child that has a value agrees with these places. A node checks keys if and only if there are
//!   bits between its own and those of the places above it. An array of slots has places that test
//!   the last bit before its range, or later ones.
//! * I7: The places in the noted order of a block have keys, which ascend.
//! * I8: A value is `moved` only while its leaf is locked, or after it is obsolete. The leaf then
//!   has a successor, which leads to a leaf that has the content. If the move is taken back, all
//!   values are there again before the leaf has no successor or another one. A place that is
//!   `closed` gets a value only under the lock of its leaf.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | root, child, successor | `Place::word` | `SeqCst` | `Place::link` | the object is initialised; one order |
//! | root, child, successor | `Place::link` | `SeqCst` | `Place::word` | publishes the object; one order, too |
//! | low word of a key | load, exchange, or | `SeqCst` | each other | absence of a key linearizes at such a load |
//! | high word of a key | all | Relaxed | – | written before the low word gets its lowest bit, which is read first |
//! | a value | load, exchange | `SeqCst` | each other | they linearize `get` and updates |
//! | a new leaf's value | store | Relaxed | – | published by the link, or by the exchange for `moved` |
//! | order, first word | `copy_order`: two loads | Acquire; fence, Relaxed | `note_order` | see below |
//! | order, first word | `note_order`: exchange, store | Acquire, fence; Release | `copy_order` | see below |
//! | order, other words | all | Relaxed | – | between the two accesses of the first word |
//! | versions | locks, `ends.rs` | as [`VersionLock`] | – | a first leaf comes while `growth` is locked |
//! | `growth` | fences in `plant`, `ends.rs` | `SeqCst` | each other | see below |
//!
//! `SeqCst` puts the linearization points of different keys in one order. The order of a block is a
//! seqlock (Boehm, MSPC 2012): each noted order has more places, so an equal first word means that
//! no order was noted between. With the fences of `growth`, either the thread that plants a leaf
//! sees the leaf that the other one has locked, or that one sees the new version.
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, the key has a place | the load of the value, in the last leaf |
//! | `get`, no place of the group has the key | the load of `PASSED` there, see below |
//! | `get`, no leaf | the load of the last word |
//! | `update` that changes the state | the exchange of the value, or the link of the first block |
//! | `update` that changes nothing | as `get`, or the failed exchange's load |
//! | `update` of a value that is a mark | the exchange of the old value for `moved`, or the link of the copy |
//! | `first`, `last` | the load of the value, under the lock of its leaf |
//! | `pop_first`, `pop_last` | the exchange of the value, under that lock |
//!
//! If the key had been in a later group when `PASSED` was read, it would have been noted, and if in
//! this one, it would be found. If the leaf was replaced before, the point is the moment when its
//! successor was linked: since the search came to the leaf, that was within the search.
//!
//! A walk looks at each leaf that was linked when it came to it, or at a later one, and at the keys
//! of those places that had the word of the leaf then (`scan.rs`). So it sees each key in a state
//! that the key had since the walk began.
//!
//! # Progress and reclamation
//! Lookups and scans wait for no thread. A lookup writes nothing. A scan that finds keys whose rank
//! a block does not know notes the order of its keys, if no other thread is doing so: it waits for
//! nobody, and nobody waits for it. Writers lock to link a first block, to make room, and to unlink
//! leaves; the order of locks is `growth`, first or last leaf, leaf, node, the node above. `first`
//! and `last` lock a leaf.
//!
//! # At a memory limit
//! A removal never fails. If an object cannot be allocated, small leaves are not merged and arrays
//! of slots with few values stay. A key whose place is there can be put back without memory.
//!
//! # Complexity and footprint
//! A lookup passes about (log₂ n) / 9 nodes, and fewer if keys are spread evenly: 1 M random keys
//! have 2, of 512 and of 32 places if they were inserted one by one. A block has 64 bytes, and 64
//! for each four keys (128 for five keys of 128 bits). It has one of four sizes, from one group to
//! 14 (11), and is split at 48 entries. An array of slots has 576 bytes. A node has 64 bytes and
//! eight for each place, in whole cache lines. A million random keys take 30 bytes each in
//! objects (docs/structures/words.md).
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which verifies I4 to I8
//! in a quiescent tree; schedules (`tests/schedules.rs`, `tests/scenarios/words.rs`), which must
//! find the mistakes of `canary.rs`, with blocks that are too small to be split in four; every
//! allocation failing once (`tests/faults.rs`); splits in four, marks as values and floods that
//! flip a leaf between its forms in `words.rs` of `crates/api-tests`.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `key.rs`, `word.rs` | keys as bits, words that lead to objects |
//! | `node.rs`, `block.rs`, `order.rs`, `slots.rs` | objects; the order of a block's keys |
//! | `value.rs`, `marks.rs` | values and marks; values that are marks |
//! | `ops.rs`, `batch.rs`, `bulk.rs` | lookups, `update`, batches, building a tree from sorted entries |
//! | `grow.rs`, `tidy.rs` | making room, taking it back |
//! | `edit.rs`, `entries.rs` | changes of places, entries of a leaf |
//! | `seek.rs`, `scan.rs`, `count.rs`, `ends.rs` | the way to a leaf, ranges, their entries counted, both ends |
//! | `objects.rs`, `check.rs` | memory, verification |

mod batch;
mod block;
mod bulk;
mod check;
mod count;
mod edit;
mod ends;
mod entries;
mod grow;
pub mod key;
mod marks;
mod node;
mod objects;
mod ops;
mod order;
mod scan;
mod seek;
mod slots;
mod tidy;
mod value;
mod word;

pub use key::WordKey;
pub use scan::{Range, RangeRev};

use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Ended, Frame, Index, Ordered, See};
use crate::memory::Memory;
use crate::update::Update;
use objects::Objects;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use silvics_sync::version::VersionLock;
use std::num::NonZeroUsize;
use std::sync::Arc;
use word::{Place, Word};

/// Blocks of words under a directory: see the [module](self).
///
/// It is made for numbers, dense and sparse.
///
/// ```
/// use silvics::{Options, OrderedIndex, OrderedScan, WordTree};
///
/// let tree: WordTree<u64> = WordTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [3, 1 << 40, 2] {
///     tree.insert(key, 10 * key)?;
/// }
/// assert_eq!(tree.range(..100).collect::<Vec<_>>(), [(2, 20), (3, 30)]);
/// assert_eq!(tree.remove(1 << 40)?, Some(10 << 40));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type WordTree<K, P = Pooled> = Index<Words<K, P>>;

/// The algorithm of [`WordTree`].
pub struct Words<K: WordKey, P: Placement> {
    /// One for each number that the first bits of a key make.
    roots: [Place; 1 << ops::ROOT_BITS],
    /// The lock of `roots`.
    root_lock: VersionLock,
    /// Held while a leaf is put where none was.
    growth: VersionLock,
    objects: Objects<K, P>,
}

// SAFETY: the linearization points of the module docs give A2 to A5. A6: keys are numbers. A1:
// nodes and blocks are shared (I1), and there is no other state but atomics and pools. A7: no other
// algorithm is called.
unsafe impl<K: WordKey, P: Placement> Algorithm for Words<K, P> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Words<K, Q>;
    const NAME: &'static str = "WordTree";
    const OBJECTS: &'static [NodeLayout] = &[node::NODE, block::BLOCK, slots::SLOTS_LAYOUT];

    fn new(frame: Frame) -> Result<Self, AllocError> {
        Ok(Self {
            roots: std::array::from_fn(|_| Place::new(Word::NONE)),
            root_lock: VersionLock::new(),
            growth: VersionLock::new(),
            objects: Objects::new(frame)?,
        })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        self.objects.frame()
    }

    #[inline(always)]
    fn get(&self, key: K, guard: &Guard) -> Option<u64> {
        self.look_up(key, guard)
    }

    #[inline]
    fn update(&self, key: K, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        self.change(key, verb, guard)
    }

    fn get_many(&self, keys: &[K], values: &mut [Option<u64>], guard: &Guard) {
        self.find_many(keys, values, guard);
    }

    const WARMED: usize = batch::WARMED;

    #[inline]
    fn warm(&self, entries: &[(K, u64)], guard: &Guard) {
        self.warm_up(entries, guard);
    }

    fn memory(&self) -> &dyn Memory {
        self.objects.memory()
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        self.objects.memory_mut()
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        if !P::RELEASES_WHOLE {
            for root in &self.roots {
                // SAFETY: access is exclusive. I4: each object is linked once, or retired.
                unsafe { self.objects.free_all(root.word()) };
            }
        }
    }
}

impl<K: WordKey, P: Placement> Ordered for Words<K, P> {
    const SEQUENTIAL: bool = true;
    type OrderedAt<Q: Placement> = Words<K, Q>;
    type Range<'g> = Range<'g, K, P>;
    type RangeRev<'g> = RangeRev<'g, K, P>;
    type Cursor = KeyCursor<Index<Self>>;

    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> Self::Range<'g> {
        Range::new(self, bounds, guard)
    }

    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        Range::new(self, bounds, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> Self::Cursor {
        KeyCursor::new(index)
    }

    fn leaf_start<'g>(&'g self, key: K, guard: &'g Guard) -> Option<K> {
        self.start_of_leaf(key, guard)
    }

    #[inline]
    fn prefetch_leaf(&self, key: K, _guard: &Guard) {
        // SAFETY: I3: the word was read under the guard.
        if let Some(leaf) = unsafe { edit::Leaf::<K>::of(self.leaf(key)) } {
            leaf.prefetch_whole();
        }
    }

    fn count_range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> usize {
        self.count_between(bounds, guard)
    }

    fn load(
        &mut self,
        entries: &[(K, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        Some(self.load_sorted(entries, threads))
    }
}

impl<K: WordKey, P: Placement> WordTree<K, P> {
    /// Fills an empty tree with entries in ascending order of their keys, on at most `threads`
    /// threads. On failure the tree stays empty.
    ///
    /// This takes O(entries × levels of nodes), and beside the tree eight to 24 bytes for each
    /// object.
    ///
    /// ```
    /// use silvics::{Options, OrderedIndex, WordTree};
    ///
    /// let mut tree: WordTree<u64> = WordTree::with_options(&Options::default())?;
    /// let squares: Vec<(u64, u64)> = (0..1000).map(|n| (n, n * n)).collect();
    /// tree.bulk_load(&squares, std::num::NonZero::<usize>::MIN)?;
    /// assert_eq!(tree.pin().get(30), Some(900));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bulk_load(
        &mut self,
        entries: &[(K, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        self.0.load_sorted(entries, threads)
    }
}

impl<K: WordKey, P: Placement> Ended for Words<K, P> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(K, u64)> {
        self.end_entry::<LAST>(false, guard)
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K, u64)>, AllocError> {
        Ok(self.end_entry::<LAST>(true, guard))
    }
}
