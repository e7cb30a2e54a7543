//! Adaptive radix tree.
//!
//! # Source
//! Leis, Kemper, Neumann, "The adaptive radix tree", ICDE 2013 (structure); Leis, Scheibner, Kemper,
//! Neumann, "The ART of practical synchronization", DaMoN 2016 (optimistic lock coupling, section 3, for
//! writers; ROWEX, section 4, for readers). Leaves of several keys: after the containers of burst tries,
//! Heinz, Zobel, Williams, TOIS 2002.
//!
//! # Algorithm
//! A key is a sequence of digits: its bytes, and for a byte string its end behind them, which comes before
//! every byte. A node at depth d has a child for each of the keys' digits d, and all keys below it agree in
//! the bytes before. Depths on a path increase, not always by one: bytes in which all keys agree have no
//! node (path compression), and a subtree of few keys is a leaf (lazy expansion).
//! ```text
//! get(k):    node := root
//!            loop: word := the child of node for k's digit at node's depth
//!                  none → absent; a value → it; a leaf → look k up there
//!                  node := child
//! update(k): the same; then compare what was skipped on the way, with the last node's prefix, or if that
//!            does not reach so far back with any key below it; if they part, go down again to there; then
//!            lock the node where the path ended, look again there, and change one word: the leaf by a
//!            larger, smaller or none; a value; the child by a new node above it and a leaf of k
//! grow, shrink: lock parent and node, copy the node, change the parent's word, mark the node obsolete
//! ```
//! A lookup that ends at a leaf does not look at what it has skipped (the optimistic variant of ICDE 2013,
//! section III.E): the leaf has the whole key. Where nodes hold values (departure 5) there is no such leaf, and
//! a lookup compares prefixes where bytes are skipped, which a word holds.
//!
//! # Departures
//! 1. **Positions are absolute.** A node's depth, and the bytes it remembers of what all keys below agree
//!    in, the last eight before its depth, never change: a node put in above it, or taken out, leaves it as
//!    it is. In both papers a split of a prefix rewrites that of the node below, which is what ROWEX has its
//!    levels for.
//! 2. **A child's kind and depth are in the word that leads to it**, so that a descent reads of an inner
//!    node only the word it follows (of `Node4` and `Node14` also the keys, which lie in the same line),
//!    and its header only where bytes were skipped.
//! 3. **Readers neither lock nor validate.** A place of a node belongs to one key byte as long as the node
//!    lives (removal empties it; it is used again for the same byte only), and one word decides. So what
//!    a reader finds in a node was there at one moment since it came, even if the node is obsolete by
//!    then (see the linearization points). Lookups are wait-free: at most one step for each byte.
//! 4. **A leaf has up to four integers** in order, with their values: a line, of four in pools. The fifth bursts it. So no
//!    `Node4` has to be visited on the way to a lone pair of keys, and scans read a line for several
//!    entries. Published trees have one key for each leaf, as here those of byte strings, whose words carry a
//!    fingerprint of the key: most lookups of absent keys do not read the leaf.
//! 5. **Values of `u64` keys lie in the nodes of the last byte**, whose words are values. Every 64-bit
//!    value is legal, so one of them, `ABSENT` of `word.rs`, stands for "no value"; where a user stores just
//!    that, the node is replaced by one that leads to leaves.
//! 6. **Places lie with their keys.** In the papers a `Node16` has keys in one line and children in others,
//!    a `Node48` an index of 256 bytes before its children: two misses in turn. Here `Node14` and `Node56`
//!    are two and eight lines of seven places each with the seven key bytes; a byte chooses the line, and
//!    goes to the next one where that is full. A search reads one line of a node, of whatever size.
//! 7. **The end of a key is a digit** with a place like another. The papers ask for keys of which none is the
//!    prefix of another, and for an encoding where they are not so.
//! 8. The root is a `Node256` that stays, so that every word has a node to lock.
//!
//! # Invariants
//! * I1: a node's depth, its prefix, the digits of its places and the keys of a leaf never change after it
//!   is linked; places are only added.
//! * I2: all keys below a node agree in the bytes before its depth, of which its prefix has the last eight;
//!   of a child for digit b they have b at the node's depth; depths increase downwards.
//! * I3: words of a node change under its lock, and none after it is obsolete. A node is obsolete if and
//!   only if it is not reachable any more (but for the moment between the change of its parent's word
//!   and the unlocking).
//! * I4: `live` is the number of places that are not empty, `used` the number of places with a key; `held` of a
//!   `Node256` has a bit for each place of a byte that is not empty.
//! * I5: a leaf has one to four integers, ascending, or one byte string. Its word says which of the integers are gone, not all;
//!   once it has said so of one, no word of the leaf says otherwise. Values of a leaf change under the lock of the node that
//!   leads to it, and only while it does and they are not gone.
//! * I6: once nobody is in it, each node but the root has at least two places that are not empty; one of
//!   values, which takes memory to become a leaf, at least one.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | a place's word | `load` | `SeqCst` | `store` | what it leads to is initialised; linearization points of different keys are in one order |
//! | a place's word | `store` | `SeqCst` | `load` | publishes; as above |
//! | keys of a line | `Keys::load`, `store` | `SeqCst` | each other | a place that has a key has its word; adding a place linearizes an insert |
//! | own words before linking | `store_unshared`, `add::<false>` | Relaxed | – | private until the store that publishes the node |
//! | values of a leaf | load, store | `SeqCst` | each other | as a place's word |
//! | versions of nodes | `ends.rs` | as [`VersionLock`](silvics_sync::version::VersionLock) has it | – | words of a node change between its `lock` and `unlock` |
//! | `live`, `used`, `held` | all | Relaxed | – | under the lock; `tidy` guesses by `live`, writers by `held`, and look again under it |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get`, present | the load of the value (of a place or a leaf) |
//! | `get`, absent | the load of the word, or of the keys, that leads to nothing, to a leaf without the key, or to a node whose prefix is not the key's, even if the search has gone on there |
//! | all of them, in a node or leaf that is not reachable any more at that load, or of an entry that is gone by then | the moment when it was replaced, or went: what was read had not changed since (I3, I5), and the reader came before |
//! | `first`, `last` | between the last look and the first validation (`ends.rs`) |
//! | `pop_first`, `pop_last` | the store, under the locks of all nodes on the way |
//! | writers that change nothing | as `get`, or under the lock, the load or the look at `held` |
//! | writers that change something | the one store of a word, of keys, or of a leaf's value |
//!
//! Why a reader comes to an unreachable node before it was replaced: by induction from the root. Let it
//! have come to node X at a moment when X was reachable. It reads a word that leads to Y. If X is still
//! reachable at that load, so is Y. If not, the word has been what it is since X was replaced, when Y was
//! reachable; and that was after the reader came to X.
//!
//! # Progress and reclamation
//! Lookups are wait-free. So are scans but for where they begin: they go down once more if a writer has changed
//! the path meanwhile. (And but for paths longer than they remember, see `scan.rs`.) `first` and `last` wait for
//! writers on their way; `pop_first` and `pop_last` lock it, from the root down. Other writers lock one node, or a node and its parent, parents first;
//! everything else is retried from the root. What is replaced is retired to the domain.
//!
//! # Complexity and footprint
//! O(length of the key) steps, of which a tree of n random keys has about log256 n. Keys have up to 64 KiB
//! ([`AllocError::KeyLength`]). Sizes are asserted in `node.rs` and `leaf.rs`.
//!
//! # Hot objects
//! [`hot`] moves what lookups read most together, online.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which walks I2 to I6;
//! schedules (`tests/schedules.rs`, `tests/scenarios/radix.rs`), which must find the mistakes of `canary.rs`;
//! every allocation failing once (`tests/faults.rs`); both ends, loading and long paths in `tests/radix.rs`.

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
mod ops;
mod remove;
mod resize;
mod run;
mod scan;
mod search;
mod seek;
mod stack;
mod word;

pub use compression::Compression;
pub use scan::{Range, RangeRev};

use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{Algorithm, AlgorithmBounds, Ended, Frame, Index, Ordered, See};
use crate::memory::Memory;
use crate::update::Update;
use alloc::Allocator;
use hot::sampler::{Observer, Sampler, Unsampled};
use node::{Node256, Visit};
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Arc;
use word::{Kind, Word};

/// A key type that the tree can hold.
///
/// Sealed: implemented for `u64`, `u128` and `[u8]`.
pub trait ArtKey: ahead::AheadKey + hot::sample::NoteKey {}

impl ArtKey for u64 {}
impl ArtKey for u128 {}
impl ArtKey for [u8] {}

/// The adaptive radix tree: see the [module](self).
///
/// Removal needs no memory: `remove`, `pop_first`, `pop_last` and a `compare_exchange` that expects a
/// value and puts none never return [`AllocError`].
///
/// The type parameter `S` says whether lookups are sampled, so that the tree can be reorganized: see
/// [`hot`].
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
    root: NonNull<Node256<Word>>,
    samples: S::Samples<K>,
    alloc: Allocator<K, P, S>,
    frame: Frame,
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// The word that would lead to the root.
    fn root_word(&self) -> Word {
        Word::node(Kind::Node256, self.root, 0)
    }

    #[inline(always)]
    fn root(&self) -> Visit<'_> {
        // SAFETY: I7: the word's kind is that of the root. I8: the root lives as long as the tree.
        unsafe { Visit::of(self.root_word()) }
    }
}

// SAFETY: the clauses of `Algorithm`, by the invariants of the module docs.
// A1. Threads share nodes and leaves through atomics (see the table of orderings), change words and
//     values under locks (I3, I5), and free objects through the domain (I8). The root never changes, and
//     the other fields may be shared and sent.
// A2. A value gets into a place or a leaf only from `update` or `load`. Copies of nodes and leaves are
//     made under the lock that their words change under (I3, I5), so they hold the same values. A place
//     without a value holds `ABSENT`, which is never returned; a caller's own `ABSENT` lies in a leaf.
// A3. A search ends at a value of its own key: leaves compare whole keys, and a place of values belongs
//     to the key by its digit and the node's prefix (I1, I2). The table of linearization points names a
//     moment at which the value was the key's: the load, or, if the node or leaf had been replaced by
//     then, the moment of that replacement. Both come after the search reached the node, and so after
//     the guard was taken.
// A4. A value ends by one store, which its writer makes under the lock of the node that holds it or
//     leads to its leaf, while the node is not obsolete (I3, I5). The writer has read the old value
//     under this lock and returns it; the next writer to take the lock reads another word.
// A5. A writer allocates before its one store, and returns success if and only if it has stored. An
//     allocator that panics while a node is made smaller after that store is caught (`tidy`).
// A6. Integers are copied. A byte string is memory of its leaf, which never changes (I1) and is retired
//     to the domain, so the guard protects it (I8). A scan takes keys from leaves, or makes them of a
//     node's prefix and a digit (I2), and never of its bounds.
unsafe impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Algorithm for Art<K, P, S> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Art<K, Q, S>;

    const NAME: &'static str = "ArtTree";
    const OBJECTS: &'static [NodeLayout] = K::OBJECTS;

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let alloc = Allocator::new(&frame.config, &frame.domain);
        let root = alloc.root(&frame.domain.pin())?;
        let samples = S::Samples::new(&frame.config.budget);
        Ok(Self { root, samples, alloc, frame })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        &self.frame
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
        &self.alloc
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.alloc
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        if !Allocator::<K, P, S>::RELEASES_WHOLE {
            // SAFETY: access to the tree is exclusive. I2: one word leads to each object.
            unsafe { self.alloc.free_all(self.root_word()) };
        }
    }

    fn compression(&mut self) -> Option<Compression> {
        Some(self.compressed())
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Ordered for Art<K, P, S> {
    type Range<'g> = Range<'g, K, P, S>;
    type RangeRev<'g> = RangeRev<'g, K, P, S>;
    type Cursor = KeyCursor<Index<Self>>;

    fn range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Range<'g, K, P, S> {
        Range::new(self, bounds, guard)
    }

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

    fn load(&mut self, entries: &[(K::Ref<'_>, u64)]) -> Option<Result<(), BulkLoadError>> {
        Some(self.bulk_load(entries, NonZeroUsize::MIN))
    }

    fn read_ahead<'g>(
        &'g self,
        (from, descends): (Bound<K::Ref<'g>>, bool),
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(K::Ref<'g>, u64),
    ) {
        if descends {
            self.range_rev((Bound::Unbounded, from), guard).read_some(most, each);
        } else {
            self.range((from, Bound::Unbounded), guard).read_some(most, each);
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
    /// Fills an empty tree with entries in ascending order of their keys, on `threads` threads. Each
    /// node is just as large as its contents. On failure the tree stays empty.
    ///
    /// This takes O(all bytes of all keys), and beside the tree some hundred bytes for each depth at
    /// which there are nodes.
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
