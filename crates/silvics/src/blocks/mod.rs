//! Blocks of entries under a trie of bits.
//!
//! # Source
//! Binna, Zangerle, Pichl, Specht, Leis, "HOT: a height optimized trie index", SIGMOD 2018 (the
//! trie, its nodes, and how they are divided); Wu, Ni, Jiang, "Wormhole", `EuroSys` 2019 (leaves
//! with hash tags); Ferragina, Grossi, "The string B-tree", JACM 1999, section 2 (a search that
//! compares one key of a block); Bayer, Unterauer, "Prefix B-trees", TODS 1977 (a common prefix
//! once). Reference code read: none.
//!
//! # Algorithm
//! A key is a string of bits (`key.rs`). A *block* has up to 48 entries whose keys are neighbours.
//! The *index* above the blocks is a Patricia trie over the bits in which keys of different blocks
//! differ. Several of its levels are one *node*: it has up to 31 bits and 32 children, and for each
//! child the bits that are set on the path to it.
//! ```text
//! get(k):    word := root
//!            while word leads to a node: gather the node's bits from k; word := the last child
//!                  whose path has only bits that k has
//!            in the block: compare k with the present entries that have the tag of its hash
//! update(k): find k's block, and k in it
//!            present, another value: count the update in the block; exchange the value
//!            present, removed:       lock the block, keep updates out, clear the entry's bit
//!            absent: lock the block, look again
//!                  if k has a dead entry: write the value, set the entry's bit
//!                  find k's rank among the entries (`order.rs`), which compares k with one of them
//!                  if they differ in a bit before the block's depth: put k in a block of its own,
//!                        beside the subtree that does not have that bit
//!                  if the block has room: append the entry and its rank, set its bit
//!                  else: copy the entries to a larger block, or to two that part at the first bit
//!                        in which the keys differ; change the node above
//! change a node: lock it and its parent; make a copy; if that is too large, divide it at its first
//!            bit, and put both halves in the parent, or in a new node below it if there is a level
//!            to spare; link; mark what was replaced as obsolete
//! ```
//! A lookup reads no key on its way down. If its key differs from the keys of a subtree in a bit
//! that is tested nowhere, it comes to a block all the same, and the block does not have it.
//!
//! # Departures
//! 1. **Leaves are blocks.** HOT has one key in a leaf. With blocks of some 20 keys the index is a
//!    few percent of the tree and stays in the caches, and a lookup misses for two places: the
//!    block's first lines, and the entry's.
//! 2. **A block is a whole subtree.** So the index changes only when a block is split, put beside
//!    others, merged or unlinked, and a scan of a block needs no other place.
//! 3. **Nodes never change**, but for the words of their children. HOT's nodes are copied, too
//!    (ROWEX).
//! 4. **Entries never move or change** while their block lives, except for their values and for the
//!    bit that says that they are present. A removed entry comes to life again if its key does.
//! 5. **Updates of values exclude no other update.** They count themselves, so that a copy of the
//!    block waits for them (`state.rs`).
//! 6. **Inserts append.** A block is made with its entries in order, and an insert notes the rank
//!    of the entry that it adds. So a scan knows the order without reading a key (`order.rs`), and
//!    writes nothing.
//! 7. **The length is part of the key**, behind its last byte and zeros without end. So no key is a
//!    prefix of another.
//! 8. Keys of more than 512 bytes lie outside their block, which has their address.
//! 9. Nodes hold 32-bit paths for any number of bits. HOT has 8 and 16 bits, too.
//! 10. **[`Prefixed`] keys have their common prefix once in each block.** It is as long as the
//!     first and the last key agree, down to a multiple of four bytes, and not only as the path to
//!     the block says. If one of the two is long, there is none. If a key comes that does not have
//!     the prefix, the block is copied with a shorter one. Ranges return such keys in two pieces.
//! 11. **Keys may lie in the caller's memory**, behind the values of their entries (`entries.rs`).
//!
//! # Invariants
//! * I1: A word says whether it leads to a node or a block, and the object's shape (its children,
//!   windows and paths; its capacity, sorted entries, prefix, bytes and depth) never changes after
//!   it is linked. A node has 2 to 32 children. Only the root can lead to nothing.
//! * I2: The first `entries` entries of a block have a key, a tag, which is that of the key, and a
//!   value. Key and tag never change. `live` has bits of these entries only. No two entries of a
//!   block have the same key.
//! * I3: An object whose word was read under a guard of the domain is not reclaimed while the guard
//!   lives, and a linked object is not reclaimed at all. An object that has not been linked belongs
//!   to the thread that has made it.
//! * I4: The words of a node change only under its lock, and never after it is obsolete; the word
//!   of the root, under `root_lock`. An object is locked when its word is replaced, and obsolete
//!   afterwards. So it is retired once, by the thread that has replaced it. An obsolete block does
//!   not change: updates stay out of it.
//! * I5: A long key is referred to by the blocks that have its entry. A block that is replaced
//!   while the entry is dead has no successor with it, and the key is retired with the block. A
//!   block that is replaced while the entry is present hands the key to its copy.
//! * I6: The bits of a node ascend, and are larger than the bits on the path to it. The keys below
//!   a child have the bits of its path, and lack the other bits that the path tests. The first and
//!   the last key below a node part at its first bit. The depth of a block is larger than each bit
//!   that the path to it tests, and its keys agree in all bits before its depth.
//! * I7: All keys below a child are smaller than those below the next one.
//! * I8: The first `sorted` entries of a block are in order. The rank of a later one is the number
//!   of entries with lower numbers that precede it. If the later ones are put in at their ranks,
//!   with their gaps, then each entry has the first bit in which it differs from the one before it.
//!   Gaps and ranks never change.
//! * I9: All keys of a block have its prefix. Those that lie in the block are stored without it. A
//!   prefix has a multiple of four bytes, and none if keys are not [`Prefixed`].
//! * I10: In an [`EntrySet`], a value is the word of the entry with this key, and never changes.
//!   Each entry that is counted has its value already.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | root, child | `Place::word` | `SeqCst` | `Place::link` | the object is initialised; linearization points of different keys are in one order |
//! | root, child | `Place::link` | `SeqCst` | `Place::word` | publishes the object; one order, too |
//! | `live` | `live`, `set_live` | `SeqCst` | each other | an entry that is present has its key, tag and value; both linearize |
//! | a value | load, store, exchange | `SeqCst` | each other | they linearize `get` and updates, in the order of all other words |
//! | a value | in `fill.rs` | Relaxed | – | no reader sees the entry yet; updates are kept out of a copied block |
//! | `entries` | `entries` / `fill.rs` | Acquire / Release | each other | who takes the order reads dead entries, too |
//! | tags, starts, gaps, ranks | all | Relaxed | – | written before `live` or `entries`, which are read first |
//! | `left_behind` | all | Relaxed | – | a hint; a shrink that misses it leaves a block to the next one |
//! | `end` | all | Relaxed | – | it changes under the lock; outside it is a guess for a prefetch |
//! | `updates` | `state.rs` | Acquire to begin, Release to end, Acquire to bar | each other | who has barred updates sees those that came before, and those after it see its writes; loom |
//! | versions of blocks and nodes | locks, `ends.rs` | as [`VersionLock`] has it | – | `live` changes, and blocks come beside the first one, between its `lock` and `unlock` |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, present | the load of the value; if the value was about to be put back, the store of `live` that did so |
//! | `get`, absent | the load of the root, or the last load of `live` |
//! | both, in a block that is no longer linked | the moment when its word was replaced: the block had not changed since (I4), and the reader came before |
//! | `insert`, `compare_exchange` of a present key | the exchange of the value |
//! | `insert`, `try_insert`, `compare_exchange` of an absent key | the store of `live`, or the link of the block that has the entry |
//! | `remove`, `compare_exchange` to absent | the store of `live` |
//! | writers that change nothing | as `get`, or the load of the value under the lock or while counted |
//! | `first`, `last` | the load of the value, if the version of its block is validated; else under the locks |
//! | `pop_first`, `pop_last` | the store of `live`, under the lock of the first block |
//!
//! A lookup loads `live` once, so it sees all entries of its block at one moment. It loads it again
//! after the value. Else it could return a value that another thread has written for a dead entry,
//! and not made present yet.
//!
//! A reader comes to an unlinked object before the object was replaced: by induction from the root,
//! as in [`art`](crate::art). So a scan that continues in a replaced node sees each subtree as it
//! was when the node was replaced, or later.
//!
//! # Progress and reclamation
//! Lookups and scans are wait-free, and write nothing. A scan on a path of more than 16 nodes may
//! search its place again. `first` and `last` wait for writers in the first and
//! last block. Writers of absent keys lock a block; those that make room lock a block and two nodes
//! or more, from below. Updates of values wait for removals and copies of their block.
//!
//! # At a memory limit
//! A removal never fails. If the node above cannot be copied, an empty block stays linked, and a
//! small one is not merged. The next shrink unlinks empty blocks, and then merges small ones, too
//! (`sweep.rs`). A tree with a limit reserves up to 4 KiB for that. If
//! threads fill and empty a tree at its limit again and again, these bytes may be in use, and then
//! empty blocks may stay until other memory is freed. A removed key can be put back without memory
//! while its dead entry is there.
//!
//! # Complexity and footprint
//! A lookup takes O(length of the key) for its hash, and passes about log n nodes to the base of
//! the mean number of children. A block has 88 bytes, 12 bytes for each place of a byte string or 8
//! for that of an integer, and the keys. It grows by an eighth of its entries, and what its slot
//! has left, and is split at 48 entries or 8 KiB. A copy with a shorter prefix may have up to 26
//! KiB, until the next entry comes. Keys have up to 512 KiB. Blocks take 24 bytes for each path of
//! 100 bytes, beside the path, and 46 bytes with the path if its prefix is stored once.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which verifies I1, I2,
//! I4 and I6 to I9 in a quiescent tree; schedules (`tests/schedules.rs`,
//! `tests/scenarios/blocks.rs`), which must find the mistakes of `canary.rs`; loom in `state.rs`;
//! every allocation failing once (`tests/faults.rs`); bits and windows by enumeration in `key.rs`;
//! keys that are made to do harm in `blocks` of `crates/api-tests`.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `key.rs`, `word.rs` | keys as bits, words that lead to objects |
//! | `block.rs`, `shape.rs`, `fill.rs` | blocks: layout, sizes, writing entries |
//! | `order.rs`, `lanes.rs` | the order in a block, many tags or gaps at a time |
//! | `state.rs`, `lock.rs` | the count of updates, locks of blocks |
//! | `search.rs` | the steps of a lookup that special instructions make faster |
//! | `node.rs`, `plan.rs`, `edit.rs` | nodes, contents of nodes to be made, changes of the index |
//! | `ops.rs`, `batch.rs` | lookups, `update`, batches |
//! | `entries.rs` | sets of entries whose keys lie in the caller's memory |
//! | `bulk.rs` | building a tree from sorted entries |
//! | `grow.rs`, `merge.rs`, `sweep.rs` | making room, and taking it back |
//! | `seek.rs`, `scan.rs`, `ends.rs`, `trail.rs` | places in the order, ranges, both ends |
//! | `objects.rs`, `check.rs`, `compression.rs` | memory, verification, savings |

mod batch;
mod block;
mod bulk;
mod check;
mod compression;
mod edit;
mod ends;
mod entries;
mod fill;
mod grow;
pub mod key;
mod lanes;
mod lock;
mod merge;
mod node;
mod objects;
mod ops;
mod order;
mod plan;
mod scan;
mod search;
mod seek;
mod shape;
mod state;
mod sweep;
mod trail;
mod word;

pub use compression::PrefixCompression;
pub use entries::{Entry, EntryKey, EntrySet};
pub use key::BlockKey;
pub use scan::{Range, RangeRev};

use crate::compression::Compression;
use crate::cursor::KeyCursor;
use crate::domain::Guard;
#[cfg(doc)]
use crate::encoding::Prefixed;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Ended, Frame, Index, Ordered, See};
use crate::memory::Memory;
use crate::update::Update;
use objects::Objects;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::AtomicBool;
use silvics_sync::version::VersionLock;
use std::num::NonZeroUsize;
use std::sync::Arc;
use word::{Place, Word};

/// Blocks of entries under a trie of bits: see the [module](self).
///
/// It is made for byte strings: of the structures here it looks them up, updates and scans them
/// fastest (docs/results/paths.md).
///
/// ```
/// use silvics::{BlockTree, Options, OrderedIndex, OrderedScan};
///
/// let tree: BlockTree<[u8]> = BlockTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for (key, value) in [("/usr", 3), ("/etc", 1), ("/etc/hosts", 2)] {
///     tree.insert(key.as_bytes(), value)?;
/// }
/// assert_eq!(tree.get(b"/etc/hosts"), Some(2));
/// let values: Vec<_> = tree.range(&b"/etc"[..]..&b"/f"[..]).map(|(_, value)| value).collect();
/// assert_eq!(values, [1, 2]);
/// # Ok::<(), silvics::AllocError>(())
/// ```
///
/// If keys have common prefixes, a tree of [`Prefixed`] keys takes less memory: it stores such a
/// prefix once in each block. Its ranges return keys in two pieces.
///
/// ```
/// use silvics::key::Prefixed;
/// use silvics::{BlockTree, Options, OrderedIndex, OrderedScan};
///
/// let tree: BlockTree<Prefixed<'static>> = BlockTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// tree.insert("/etc/hosts".into(), 1)?;
/// tree.insert("/etc/hostname".into(), 2)?;
/// assert_eq!(tree.get("/etc/hosts".into()), Some(1));
/// let (first, _) = tree.range(..).next().expect("two entries");
/// assert!(first == *b"/etc/hostname" && first.starts_with(b"/etc/"));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type BlockTree<K, P = Pooled> = Index<Blocks<K, P>>;

/// The algorithm of [`BlockTree`].
pub struct Blocks<K: BlockKey + ?Sized, P: Placement> {
    root: Place,
    /// The lock of `root`.
    root_lock: VersionLock,
    /// Whether a block has stayed that should not: see `sweep.rs`.
    left_behind: AtomicBool,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    avx2: Option<search::Avx2>,
    objects: Objects<K, P>,
}

const OBJECTS: &[NodeLayout] = &[node::NODE, block::BLOCK, objects::LONG_KEY];

// SAFETY: the linearization points of the module docs give A2 to A5. A6: keys are read from blocks,
// or from long keys, which the guard protects (I3, I5). A1: nodes and blocks are shared (I1, I2),
// and there is no other state but atomics and pools. A7: no other algorithm is called.
unsafe impl<K: BlockKey + ?Sized, P: Placement> Algorithm for Blocks<K, P> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Blocks<K, Q>;
    const NAME: &'static str = "BlockTree";
    const OBJECTS: &'static [NodeLayout] =
        if K::FIXED == 0 { OBJECTS } else { OBJECTS.split_at(2).0 };

    fn new(frame: Frame) -> Result<Self, AllocError> {
        Ok(Self {
            root: Place::new(Word::NONE),
            root_lock: VersionLock::new(),
            left_behind: AtomicBool::new(false),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            avx2: search::Avx2::detect(),
            objects: Objects::new(frame)?,
        })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        self.objects.frame()
    }

    #[inline(always)]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.look_up(key, guard)
    }

    #[inline]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.change(key, verb, guard)
    }

    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        self.find_many(keys, values, guard);
    }

    const WARMED: usize = 64;

    fn warm(&self, entries: &[(K::Ref<'_>, u64)], guard: &Guard) {
        self.warm_up(entries, guard);
    }

    fn sweep(&self) -> usize {
        self.sweep_up()
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

    fn compression(&mut self) -> Option<Compression> {
        self.compressed().map(Compression::Prefixes)
    }

    fn free_all(&mut self) {
        if !P::RELEASES_WHOLE {
            // SAFETY: access is exclusive. I4: each object is linked once, or retired.
            unsafe { self.objects.free_all(self.root.word()) };
        }
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Ordered for Blocks<K, P> {
    type OrderedAt<Q: Placement> = Blocks<K, Q>;
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

    fn load(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        Some(self.load_sorted(entries, threads))
    }
}

impl<K: BlockKey + ?Sized, P: Placement> BlockTree<K, P> {
    /// Fills an empty tree with entries in ascending order of their keys, on at most `threads`
    /// threads. Each block is as large as its contents. On failure the tree stays empty.
    ///
    /// This takes O(all bytes of all keys), and beside the tree some hundred bytes for each bit at
    /// which open subtrees divide, and up to 16 for each object.
    ///
    /// ```
    /// use silvics::{BlockTree, Options, OrderedIndex};
    ///
    /// let mut tree: BlockTree<u64> = BlockTree::with_options(&Options::default())?;
    /// let squares: Vec<(u64, u64)> = (0..1000).map(|n| (n, n * n)).collect();
    /// tree.bulk_load(&squares, std::num::NonZero::<usize>::MIN)?;
    /// assert_eq!(tree.pin().get(30), Some(900));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bulk_load(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        self.0.load_sorted(entries, threads)
    }
}

impl<K: BlockKey + ?Sized, P: Placement> Ended for Blocks<K, P> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        self.look_at_end::<LAST>(guard)
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        Ok(self.pop_end::<LAST>(guard))
    }
}
