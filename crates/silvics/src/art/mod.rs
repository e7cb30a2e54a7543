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
mod key;
mod kinds;
mod leaf;
mod lock;
mod map_index;
mod node;
mod ops;
mod resize;
mod run;
mod scan;
mod search;
mod seek;
mod stack;
mod word;

pub use compression::Compression;
pub use scan::{Range, RangeRev};

use crate::batch::insert_in_groups;
use crate::cursor::KeyCursor;
use crate::domain::{Domain, Guard};
use crate::error::{InsertManyError, Violation};
use crate::index::{
    Batches, Check, Create, KeyRef, Lookup, Objects, Options, OrderedEnds, OrderedIndex,
    OrderedScan,
};
use crate::key::IndexKey;
use crate::pinned::{PinIndex, Pinned};
use crate::update::Update;
use alloc::Allocator;
use hot::sample::Samples;
use node::{Node256, Visit};
use silvics_layout::{NodeLayout, Placed};
use silvics_pool::{AllocError, Budget, Placement, PoolStats, Pooled};
use silvics_sync::atomic::AtomicBool;
use silvics_sync::counter::StripedCounter;
use std::fmt;
use std::ops::{Bound, RangeBounds};
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
/// Removal needs no memory: `remove`, `pop_first`, `pop_last` and a `compare_exchange` for *absent* give no [`AllocError`].
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
pub struct ArtTree<K: ArtKey + ?Sized = u64, P: Placement = Pooled> {
    root: NonNull<Node256<Word>>,
    samples: Samples<K>,
    domain: Domain,
    /// Whether somebody reorganizes it.
    reorganizes: AtomicBool,
    alloc: Allocator<K, P>,
    len: StripedCounter<Arc<Budget>>,
    budget: Arc<Budget>,
}

// SAFETY: the nodes are the tree's own; they are shared through atomics and freed through the domain.
unsafe impl<K: ArtKey + ?Sized, P: Placement> Send for ArtTree<K, P> {}
// SAFETY: as above.
unsafe impl<K: ArtKey + ?Sized, P: Placement> Sync for ArtTree<K, P> {}

impl<K: ArtKey + ?Sized, P: Placement> fmt::Debug for ArtTree<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArtTree({} keys, {})", self.len(), P::NAME)
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// The word that would lead to the root.
    fn root_word(&self) -> Word {
        Word::node(Kind::Node256, self.root, 0)
    }

    #[inline(always)]
    fn root(&self) -> Visit<'_> {
        // SAFETY: it lives as long as the tree.
        unsafe { Visit::of(self.root_word()) }
    }
}

/// Keys of a batch that are descended to before the first of them is inserted, for the cache alone.
const WARMED: usize = 64;

impl<K: ArtKey + ?Sized, P: Placement> crate::frame::Structure for ArtTree<K, P> {
    type At<Q: Placement> = ArtTree<K, Q>;
}

impl<K: ArtKey + ?Sized, P: Placement> Create for ArtTree<K, P> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        Self::with_options(options)
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Pins the tree's domain and hides the guard.
    #[inline]
    pub fn pin(&self) -> Pinned<'_, Self> {
        PinIndex::pin(self)
    }

    /// Makes an empty tree. Fails if its first node cannot be allocated.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        let (domain, config) = options.prepare();
        let alloc = Allocator::new(&config, &domain);
        let root = alloc.root(&domain.pin())?;
        let len = StripedCounter::new(Arc::clone(&config.budget));
        let samples = Samples::new(&config.budget);
        let reorganizes = AtomicBool::new(false);
        Ok(Self { root, samples, domain, reorganizes, alloc, len, budget: config.budget })
    }
}

impl<K: ArtKey + ?Sized, P: Placement> Lookup for ArtTree<K, P> {
    type Key = K;

    fn domain(&self) -> &Domain {
        &self.domain
    }

    #[inline]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.samples.see(key);
        if self.domain.is_of(guard) { self.find(key, guard) } else { self.find_apart(key) }
    }

    fn len(&self) -> usize {
        self.len.sum().max(0) as usize
    }

    fn bytes(&self) -> usize {
        self.budget.held()
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.alloc.stats()
    }
}

impl<K: ArtKey + ?Sized, P: Placement> OrderedIndex for ArtTree<K, P> {
    #[inline(always)]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.do_update(key, verb, &self.domain.enter(guard))
    }

    fn shrink(&self) -> usize {
        self.alloc.shrink()
    }
}

impl<K: ArtKey + ?Sized, P: Placement> Batches for ArtTree<K, P> {
    fn get_many(&self, keys: &[KeyRef<'_, Self>], values: &mut [Option<u64>], guard: &Guard) {
        let keys = &keys[..keys.len().min(values.len())];
        if self.samples.wanted() {
            for key in keys {
                self.samples.see(K::shorten(*key));
            }
        }
        let found = |at, value| values[at] = value;
        self.find_many(keys.len(), |at| K::shorten(keys[at]), &self.domain.enter(guard), found);
    }

    fn insert_many(
        &self,
        entries: &[(KeyRef<'_, Self>, u64)],
        replaced: &mut [Option<u64>],
        guard: &Guard,
    ) -> Result<usize, InsertManyError> {
        let guard = &*self.domain.enter(guard);
        let warm = |some: &[(KeyRef<'_, Self>, u64)]| {
            self.find_many(some.len(), |at| K::shorten(some[at].0), guard, |_, _| ());
        };
        let insert = |key, value| self.do_update(key, Update::Insert(value), guard);
        insert_in_groups(entries, replaced, WARMED, warm, insert)
    }
}

impl<K: ArtKey + ?Sized, P: Placement> OrderedScan for ArtTree<K, P> {
    type Range<'g> = Range<'g, K, P>;
    type RangeRev<'g> = RangeRev<'g, K, P>;
    type Cursor = KeyCursor<Self>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Range<'g, K, P> {
        self.domain.adopt(guard);
        Range::new(self, bounds::<K>(&range), guard)
    }

    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> RangeRev<'g, K, P> {
        self.domain.adopt(guard);
        RangeRev::new(self, bounds::<K>(&range), guard)
    }

    fn cursor(self: &Arc<Self>) -> KeyCursor<Self> {
        KeyCursor::new(Arc::clone(self))
    }
}

impl<K: ArtKey + ?Sized, P: Placement> OrderedEnds for ArtTree<K, P> {
    fn first<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        self.domain.adopt(guard);
        self.end::<false>(guard)
    }

    fn last<'g>(&'g self, guard: &'g Guard) -> Option<(KeyRef<'g, Self>, u64)> {
        self.domain.adopt(guard);
        self.end::<true>(guard)
    }

    fn pop_first<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError> {
        self.domain.adopt(guard);
        Ok(self.pop::<false>(guard))
    }

    fn pop_last<'g>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(KeyRef<'g, Self>, u64)>, AllocError> {
        self.domain.adopt(guard);
        Ok(self.pop::<true>(guard))
    }
}

/// Both ends of a range.
fn bounds<'g, K: IndexKey + ?Sized>(
    range: &impl RangeBounds<K::Ref<'g>>,
) -> (Bound<K::Ref<'g>>, Bound<K::Ref<'g>>) {
    (range.start_bound().cloned(), range.end_bound().cloned())
}

impl<K: ArtKey + ?Sized, P: Placement> Objects for ArtTree<K, P> {
    const OBJECTS: &'static [NodeLayout] = K::OBJECTS;

    fn census(&mut self, see: &mut dyn FnMut(Placed)) -> Result<usize, Violation> {
        self.walk(see)
    }

    fn compression(&mut self) -> Option<Compression> {
        Some(self.compressed())
    }
}

impl<K: ArtKey + ?Sized, P: Placement> Check for ArtTree<K, P> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.walk(&mut |_| ())
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let mut kinds: Vec<_> = K::OBJECTS.iter().map(|layout| (layout.kind, 0)).collect();
        self.walk(&mut |placed| {
            let kind = placed.layout.kind;
            kinds.iter_mut().filter(|(of, _)| *of == kind).for_each(|(_, count)| *count += 1);
        })?;
        Ok(kinds)
    }

    fn settle(&mut self) {
        self.alloc.settle();
    }
}

impl<K: ArtKey + ?Sized, P: Placement> Drop for ArtTree<K, P> {
    fn drop(&mut self) {
        if !Allocator::<K, P>::RELEASES_WHOLE {
            // SAFETY: nobody else has the tree.
            unsafe { self.alloc.free_all(self.root_word()) };
        }
    }
}
