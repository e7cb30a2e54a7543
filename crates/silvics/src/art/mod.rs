//! Adaptive radix tree.
//!
//! # Source
//! Leis, Kemper, Neumann, "The adaptive radix tree", ICDE 2013 (structure); Leis, Scheibner,
//! Kemper, Neumann, "The ART of practical synchronization", DaMoN 2016 (optimistic lock coupling,
//! section 3, for writers; ROWEX, section 4, for readers). Leaves of several keys: after the
//! containers of burst tries, Heinz, Zobel, Williams, TOIS 2002.
//!
//! # Algorithm
//! A key is a sequence of digits: its bytes, and behind the bytes of a byte string its end, which
//! comes before every byte. A node at depth d has a child for each digit d of its keys, and all
//! keys below it agree in the bytes before. Depths on a path increase, but not always by one: bytes
//! in which all keys agree have no node (path compression), and a subtree of few keys is a leaf
//! (lazy expansion).
//! ```text
//! get(k):    node := root
//!            loop: word := the child of node for k's digit at node's depth
//!                  none → absent; a value → return it; a leaf → look k up there
//!                  node := child
//! update(k): descend as get does
//!            compare the skipped bytes with the last node's prefix, or with any key below the node
//!            if the prefix does not reach back far enough; if they differ, descend again and stop
//!            at the node above the difference
//!            lock the node where the path ended, look again there, and change one word: the leaf
//!            by a larger one, a smaller one or none; a value; the child by a new node above it
//!            and k's leaf
//! grow, shrink: lock parent and node, copy the node, change the parent's word, mark the node
//!            obsolete
//! ```
//! A lookup that ends at a leaf does not compare skipped bytes (the optimistic variant of ICDE
//! 2013, section III.E): the leaf has the whole key. A lookup that ends at a node of values
//! (departure 5) finds no such leaf. It compares the prefix of each node before which bytes were
//! skipped, and a word holds all of these bytes.
//!
//! # Departures
//! 1. **Positions are absolute.** A node has a depth, and remembers the last eight of the bytes in
//!    which all keys below it agree. Neither ever changes: a node that is inserted above it, or
//!    removed there, leaves it as it is. In both papers a split of a prefix rewrites the prefix of
//!    the node below, which is the purpose of ROWEX's levels.
//! 2. **A word says the kind and depth of the child** that it leads to. The depth takes the bits
//!    above an address and those that are 0 in the address of a cache line (`word.rs`). So a
//!    descent reads only the words that it follows, the keys of `Node4` and `Node14`, which lie in
//!    the word's line, and the header of a node before which bytes were skipped.
//! 3. **Readers neither lock nor validate.** A place of a node belongs to one digit while the node
//!    lives (removal empties it, and it is used again for that digit only), and one word decides.
//!    So a word that a reader finds in a node was there at one moment since the reader came, even
//!    if the node is obsolete by then (see the linearization points). Lookups are wait-free: they
//!    take at most one step for each byte.
//! 4. **A leaf has up to four integers** in order, with their values: in pools, four take one line.
//!    The fifth bursts the leaf. So no `Node4` has to be visited on the way to a lone pair of keys,
//!    and a scan reads one line for several entries. Leaves of byte strings have one key, as in
//!    published trees. Their words carry a fingerprint of the key, so most lookups of absent keys
//!    do not read the leaf.
//! 5. **Values of `u64` keys lie in the nodes of the last byte**, whose words are values. Every
//!    64-bit value is legal, so one of them, `ABSENT` of `word.rs`, stands for "no value". If a
//!    user stores this value, the node is replaced by one that leads to leaves.
//! 6. **Places lie with their keys.** In the papers a `Node16` has its keys in one line and its
//!    children in others, and a `Node48` has an index of 256 bytes before its children: two misses
//!    in turn. Here `Node14` and `Node56` are two and eight lines, each of seven places with their
//!    seven key bytes. A byte chooses the line, or the next one if that is full. So a search
//!    usually reads one line of a node of any size.
//! 7. **The end of a key is a digit** with a place like any other. The papers require that no key
//!    is a prefix of another, and an encoding where one would be.
//! 8. The root has depth 0 and is replaced by larger nodes only, so that every word has a node to
//!    lock. The word that leads to the root has a lock of its own (`root.rs`). An empty tree has no
//!    root, and a small one a small root.
//!
//! # Invariants
//! * I1: A node's depth, its prefix, the digits of its places and the keys of a leaf never change
//!   after the object is linked. Places are only added.
//! * I2: All keys below a node agree in the bytes before its depth, and its prefix has the last
//!   eight of these. All keys below its child for digit b have b at the node's depth. Depths
//!   increase downwards. One word of a reachable node leads to each reachable object.
//! * I3: Words of a node change only under its lock, and never after the node is obsolete. A node
//!   is obsolete if and only if it is no longer reachable, except between the change of its
//!   parent's word and the unlocking. So an object stays linked while the node that leads to it is
//!   locked.
//! * I4: `live` is the number of places that are not empty, `used` the number of places that belong
//!   to a digit. A line has no more keys than places. `held` of a `Node256` has a bit for each byte
//!   whose place is not empty.
//! * I5: A leaf has one to four integers, ascending, or one byte string. Its word says which of the
//!   integers are gone, never all. Once it says so of one, no later word of the leaf says
//!   otherwise. Values of a leaf change only under the lock of the node that leads to it, while
//!   that node does and the entry is not gone.
//! * I6: When no thread is in it, each node but the root has at least two places that are not
//!   empty. A node of values has at least one, as it takes memory to make it a leaf.
//! * I7: A word states the kind of the object that it leads to, and the depth if it is a node, or
//!   the number of integers if it is a leaf of integers. A word of kind `Leaf` is none or leads to
//!   a leaf, and a word of any other kind leads to a node of this kind. `Word::node` and
//!   `Word::leaf` are called with the object just made. Only the bits that say which integers are
//!   gone differ between the words of one object.
//! * I8: An object is retired to the tree's domain once, after it has been unlinked, by the thread
//!   that has unlinked it. So an object whose word was read under a guard of the domain is not
//!   reclaimed while the guard lives, and a linked object is not reclaimed at all. An object that
//!   has not been linked belongs to the thread that has made it.
//! * I9: The root's word changes only under the lock of `Root`, and from none to a node of words of
//!   depth 0, or to another one with the same contents. `Root::full` is null, or the root, which
//!   is a `Node256` then and stays.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | a place's word | `load` | `SeqCst` | `store` | the object that it leads to is initialised; linearization points of different keys are in one order |
//! | a place's word | `store` | `SeqCst` | `load` | publishes the object; one order, too |
//! | keys of a line | `Keys::load`, `store` | `SeqCst` | each other | a place that has a key has its word; adding a place linearizes an insert |
//! | own words before linking | `store_unshared`, `add::<false>` | Relaxed | – | private until the store that publishes the node |
//! | values of a leaf | load, store | `SeqCst` | each other | they linearize `get` and replacements, in the order of all places' words |
//! | `Root::word` | load, store | `SeqCst` | each other | as for a place's word |
//! | `Root::full` | load, store | `SeqCst` | each other | the node is initialised; it was stored in `Root::word` before |
//! | versions of nodes | `ends.rs` | as [`VersionLock`](silvics_sync::version::VersionLock) has it | – | words of a node change between its `lock` and `unlock` |
//! | `live`, `used`, `held` | all | Relaxed | – | they change under the lock; `tidy` guesses by `live` and writers by `held`, and look again under it |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, present | the load of the value, from a place or a leaf |
//! | `get`, absent | the load of the word, or of the keys, that leads to nothing, to a leaf without the key, or to a node whose prefix is not the key's, even if the search has gone on there |
//! | both, in a node or leaf that is no longer reachable at that load, or of an entry that is gone by then | the moment when it was replaced, or removed: the words read had not changed since (I3, I5), and the reader came before |
//! | `first`, `last` | between the last look and the first validation (`ends.rs`) |
//! | `pop_first`, `pop_last` | the store, under the locks of all nodes on the way |
//! | writers that change nothing | as `get`, or under the lock, the load or the look at `held` |
//! | writers that change something | the one store of a word, of keys, or of a leaf's value |
//!
//! A reader comes to an unreachable node before the node was replaced. The proof is by induction
//! from the root. Let the reader have come to node X at a moment when X was reachable. It reads a
//! word that leads to Y. If X is still reachable at that load, so is Y. If not, the word has not
//! changed since X was replaced (I3). Y was reachable then, and that moment is after the reader
//! came to X.
//!
//! # Progress and reclamation
//! Lookups are wait-free. Scans are wait-free, with two exceptions. At their beginning they descend
//! once more if a writer has changed the path meanwhile, and they do so on paths longer than they
//! remember. There they can wait for a writer that removes nodes (see `scan.rs`). `first` and
//! `last` wait for writers on their way. `pop_first` and `pop_last` lock their way from the root
//! down. Other writers lock one node, or a node and its parent, the parent first; everything else
//! is retried from the root. Replaced objects are retired to the domain.
//!
//! # Complexity and footprint
//! An operation takes O(length of the key) steps; a tree of n random keys takes about log256 n of
//! them. Keys have up to 512 KiB ([`AllocError::KeyLength`]), since a word has 19 bits for a depth.
//! Sizes are asserted in `node/layout.rs` and `leaf/integers.rs`.
//!
//! # Hot objects
//! [`hot`] moves the objects that lookups read most together, while the tree is in use, in trees
//! that ask for it by the type parameter [`Sampled`](hot::Sampled).
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which verifies I2 to
//! I6; schedules (`tests/schedules.rs`, `tests/scenarios/radix.rs`), which must find the mistakes
//! of `canary.rs`; every allocation failing once (`tests/faults.rs`); both ends, loading and long
//! paths in `radix.rs` of `crates/api-tests`.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `key.rs`, `digits.rs`, `word.rs` | keys as digits, sets of digits, words that lead to children |
//! | `node/`, `leaf/`, `kinds.rs`, `lock.rs` | nodes of each size, leaves of each key type, their layouts, locks |
//! | `root.rs` | the word that leads to the root, and how the root grows |
//! | `alloc.rs`, `objects.rs` | how objects are made and retired; their pools, and the first of them |
//! | `search.rs`, `batch.rs` | lookups of one key and of many |
//! | `seek.rs`, `ops.rs`, `insert.rs`, `remove.rs`, `resize.rs` | paths of writers, `update`, and its parts |
//! | `scan.rs`, `stack.rs`, `run.rs`, `ahead.rs`, `ends.rs` | ranges, the path where a scan stands, and both ends |
//! | `bulk.rs`, `check.rs`, `compression.rs`, `hot/` | loading, verification, savings, reorganization |

mod ahead;
mod alloc;
mod batch;
mod bulk;
mod check;
mod compression;
mod digits;
mod ends;
pub mod hot;
mod insert;
mod key;
mod kinds;
mod leaf;
mod lock;
mod node;
mod objects;
mod ops;
mod remove;
mod resize;
mod root;
mod run;
mod scan;
mod search;
mod seek;
mod stack;
mod word;

pub use compression::PathCompression;
pub use scan::{Range, RangeRev};

use crate::compression::Compression;
use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Ended, Frame, Index, Ordered, See};
use crate::memory::Memory;
use crate::update::Update;
use alloc::Allocator;
use hot::sampler::{Observer, Sampler, Unsampled};
use node::Visit;
use root::Root;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A key type that the tree can hold.
///
/// Sealed: implemented for `u64`, `u128` and `[u8]`.
pub trait ArtKey: ahead::AheadKey + hot::sample::NoteKey {}

impl ArtKey for u64 {}
impl ArtKey for u128 {}
impl ArtKey for [u8] {}

/// The adaptive radix tree: see the [module](self).
///
/// Removal needs no memory: `remove`, `pop_first`, `pop_last` and a `compare_exchange` that expects
/// a value and puts none never return [`AllocError`]. At a memory limit, a leaf of several integers
/// of which some are removed stays as large as it is until the others are removed, too, or memory
/// for a smaller leaf is free.
///
/// The type parameter `S` says whether lookups are sampled, so that the tree can be reorganized:
/// see [`hot`].
///
/// ```
/// use silvics::{ArtTree, Options, OrderedIndex, OrderedScan};
///
/// let tree: ArtTree = ArtTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [3, 1, 2] {
///     tree.insert(key, 10 * key)?;
/// }
/// assert_eq!(tree.get(2), Some(20));
/// let keys: Vec<_> = tree.range(2..).map(|(key, _)| key).collect();
/// assert_eq!(keys, [2, 3]);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type ArtTree<K = u64, P = Pooled, S = Unsampled> = Index<Art<K, P, S>>;

/// The algorithm of [`ArtTree`]. The guards that its methods take are of the tree's domain.
pub struct Art<K: ArtKey + ?Sized, P: Placement, S: Sampler> {
    root: Root,
    samples: S::Samples<K>,
    alloc: Allocator<K, P, S>,
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// The root, if there is one. The caller has a guard of the tree's domain, or exclusive access.
    #[inline(always)]
    fn root(&self) -> Option<Visit<'_>> {
        let word = self.root.word();
        // SAFETY: I7: the word's kind is a node's. I8: it was read under the caller's guard.
        (!word.is_none()).then(|| unsafe { Visit::of(word) })
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. Threads share nodes and leaves through atomics (see the table of orderings), change words and
//     values under locks (I3, I5), and free objects through the domain (I8). The root's word
//     changes under a lock (I9), and the other fields may be shared and sent.
// A2. A value gets into a place or a leaf only from `update` or `load`. Copies of nodes and leaves
//     are made under the lock that their words change under (I3, I5), so they hold the same values.
//     A place without a value holds `ABSENT`, which is never returned; a caller's own `ABSENT` lies
//     in a leaf.
// A3. A search ends at a value of its own key: leaves compare whole keys, and a place of values
//     belongs to the key by its digit and the node's prefix (I1, I2). The table of linearization
//     points names a moment at which the value was the key's: the load, or, if the node or leaf had
//     been replaced by then, the moment of that replacement. Both come after the search reached the
//     node, and so after the guard was taken.
// A4. A value ends by one store, which its writer makes under the lock of the node that holds it or
//     leads to its leaf, while the node is not obsolete (I3, I5). The writer has read the old value
//     under this lock and returns it; the next writer to take the lock reads another word.
// A5. A writer allocates before its one store, and returns success if and only if it has stored. An
//     allocator that panics while a node is made smaller after that store is caught (`tidy`).
// A6. Integers are copied. A byte string is memory of its leaf, which never changes (I1) and is
//     retired to the domain, so the guard protects it (I8). A scan takes keys from leaves, or makes
//     them of a node's prefix and a digit (I2), and never of its bounds.
// A7. It calls no other algorithm.
unsafe impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Algorithm for Art<K, P, S> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Art<K, Q, S>;

    const NAME: &'static str = "ArtTree";
    const OBJECTS: &'static [NodeLayout] = K::OBJECTS;

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let samples = S::Samples::new(&frame.config.budget);
        Ok(Self { root: Root::default(), samples, alloc: Allocator::new(frame)? })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        self.alloc.frame()
    }

    #[inline(always)]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.samples.see(key);
        self.find(key, guard)
    }

    #[inline(always)]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        Self::update(self, key, verb, guard)
    }

    fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>], guard: &Guard) {
        let keys = &keys[..keys.len().min(values.len())];
        if self.samples.wanted() {
            for key in keys {
                self.samples.see(K::shorten(*key));
            }
        }
        let found = |at, value| values[at] = value;
        self.find_many(keys.len(), |at| K::shorten(keys[at]), guard, found);
    }

    const WARMED: usize = 64;

    fn warm(&self, entries: &[(K::Ref<'_>, u64)], guard: &Guard) {
        self.find_many(entries.len(), |at| K::shorten(entries[at].0), guard, |_, _| ());
    }

    fn memory(&self) -> &dyn Memory {
        self.alloc.memory()
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        self.alloc.memory_mut()
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        let root = self.root.word();
        if !P::RELEASES_WHOLE && !root.is_none() {
            // SAFETY: access to the tree is exclusive. I2: one word leads to each object.
            unsafe { self.alloc.free_all(root) };
        }
    }

    fn compression(&mut self) -> Option<Compression> {
        Some(Compression::Paths(self.compressed()))
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Ordered for Art<K, P, S> {
    type OrderedAt<Q: Placement> = Art<K, Q, S>;
    type Range<'g> = Range<'g, K, P, S>;
    type RangeRev<'g> = RangeRev<'g, K, P, S>;
    type Cursor = KeyCursor<Index<Self>>;

    #[inline]
    fn range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Range<'g, K, P, S> {
        Range::new(self, bounds, guard)
    }

    #[inline]
    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> RangeRev<'g, K, P, S> {
        RangeRev::new(self, bounds, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> KeyCursor<Index<Self>> {
        KeyCursor::new(index)
    }

    fn load(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        Some(self.bulk_load(entries, threads))
    }

    #[inline]
    fn read_ahead<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(K::Ref<'g>, u64),
    ) {
        if descends {
            self.range_rev(bounds, guard).read_some(most, each);
        } else {
            self.range(bounds, guard).read_some(most, each);
        }
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Ended for Art<K, P, S> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        Self::end::<LAST>(self, guard)
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        Ok(Self::pop::<LAST>(self, guard))
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> ArtTree<K, P, S> {
    /// Fills an empty tree with entries in ascending order of their keys, on at most `threads`
    /// threads. Each node is just as large as its contents. On failure the tree stays empty.
    ///
    /// This takes O(all bytes of all keys), and beside the tree some hundred bytes for each depth
    /// at which there are nodes.
    ///
    /// ```
    /// use silvics::{ArtTree, Options, OrderedIndex};
    ///
    /// let mut tree: ArtTree = ArtTree::with_options(&Options::default())?;
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
        self.0.bulk_load(entries, threads)
    }
}
