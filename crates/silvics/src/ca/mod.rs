//! Contention adapting search tree.
//!
//! # Source
//! Sagonas and Winblad, "Contention adapting search trees", ISPDC 2015, and "A contention adapting
//! approach to concurrent ordered sets", JPDC 115, 2018 (the tree, its statistics, optimistic
//! readers, ranges). Constants: `erl_db_catree.c` of Erlang/OTP. The container is a B⁺-tree: Bayer
//! and `McCreight`, "Organization and maintenance of large ordered indexes", Acta Informatica 1972.
//! `avl.rs` has the sources of the other container.
//!
//! # Algorithm
//! *Base nodes* divide the keys among them. Each has a lock and a *container*, a sequential ordered
//! map. *Route nodes* form a binary search tree above them. A writer that finds a lock taken adds
//! to the statistics of the base node, others take off from them. So a base node that many threads
//! want is split, and one that nobody fights for is joined with its neighbour (`adapt.rs`).
//! ```text
//! get(k):    descend from the root: left at a bound that is larger than k, else right
//!            read the version of the base node's lock; search the container; validate the version
//!            after some attempts: take the lock, and count it as contention
//! update(k): descend; lock the base node; if it is obsolete, begin again
//!            search the container and change it (`change.rs`)
//!            count whether the lock was free; split or join; unlock
//! collect_range, update_range: see `collect.rs`
//! ```
//!
//! # Departures
//! 1. **Readers do not lock.** The base nodes of ISPDC 2015 have a readers–writer lock, and those
//!    of JPDC 2018 a sequence lock. Here it is a version lock, which also says when the node is
//!    obsolete. A lookup writes nothing unless writers disturb it several times.
//! 2. **The container is a B⁺-tree of sorted blocks** that grow before they are divided. A split
//!    divides its root, and a join hangs the lower tree into the higher one, so both take
//!    O(height × entries of a node). With the AVL trees of the papers they take O(height).
//! 3. **A base node that has lost its last entry is joined at once**, whatever its statistics say,
//!    if there is memory: perhaps no operation ever comes to it again.
//! 4. **Replaced objects are retired**, the nodes of containers included, since readers look at
//!    them without a lock.
//!
//! # Other locks and containers
//! A [`Build`] chooses both at compile time, so that the tree of the papers can be measured beside
//! this one. [`Avl`](build::Avl) has AVL trees under readers–writer locks: departures 1 and 2 do
//! not apply to it.
//!
//! | lock | of lookups, scans and atomic reads | contention is counted |
//! |---|---|---|
//! | `Version` | none, unless writers disturb them | for a writer that waits, and a reader that takes the lock |
//! | `Shared` | a share | for a writer that waits for a writer or readers, and for a reader that waits for a writer |
//! | `Spin` | the lock | for a thread that waits |
//!
//! All three are the version lock of the base node. `Shared` also counts
//! [`Readers`](silvics_sync::version::Readers), in the same line. A reader with a share adds to the
//! statistics, or takes off for a range of several base nodes, but only the next writer splits or
//! joins. JPDC 2018 and present versions of Erlang count readers that wait, too; the first versions
//! of Erlang's tables counted writers alone. An AVL tree under version locks does not compile.
//!
//! # Invariants
//! * N1: The word of a container node says whether it is a leaf and how many entries it has room
//!   for. Neither changes, nor does its memory's size.
//! * N2: The keys of a node ascend, from the second one on in an inner node. All keys below a child
//!   are at least the bound before it and smaller than the bound behind it.
//! * N3: Containers change only under the lock of their base node. An object that leaves a
//!   container is retired once, by the thread that has the lock, after the container has stopped
//!   leading to it, or while the base node is locked until it is obsolete. So an object that was in
//!   a container at some moment after a guard was taken is not reclaimed while the guard lives. A
//!   key's object belongs to the one entry, bound or route node that has it.
//! * N4: Nodes of a container are not empty, and all leaves are equally deep.
//! * V1 to V3 (`avl.rs`) stand for N2 and N4 in AVL trees.
//! * R1: The bound of a route node never changes, and its object stays as long as the node.
//! * R2: A base node or route node whose word was read under a guard is not reclaimed while the
//!   guard lives. It is retired once, by the thread that has made it obsolete, after no linked node
//!   leads to it. A thread that finds it by an obsolete node has had a guard since before that.
//!   Each way from the root ends at a base node.
//! * R3: A node is obsolete if and only if it is no longer linked, except between the change of the
//!   word above and the unlocking. A base node that is not obsolete under its lock is linked, and
//!   its parent is that by which it was found.
//! * R4: A base node has the keys between two bounds, which do not change while it is linked. Those
//!   below a route node's left child are smaller than its bound, those below the right one are not.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | lock of a base node | as [`VersionLock`](silvics_sync::version::VersionLock); taking it and reading its version are `SeqCst` | | each other | linearization points, see below |
//! | readers of a base node | as [`Readers`](silvics_sync::version::Readers) | | | a readers–writer lock |
//! | fields of container nodes | all | Relaxed | – | the lock orders them: a reader validates |
//! | children of container nodes, containers | load, store | Acquire, Release | each other | the object behind is initialised |
//! | root, children of route nodes | load, store | Acquire, Release | each other | likewise; an old word leads to an obsolete base node |
//! | statistics, writes | all | Relaxed | – | numbers that lead to no other data, see below |
//! | counts of splits and joins | all | Relaxed | – | they lead to no other data |
//! | – | fence of an operation on several base nodes | `SeqCst` | locks | linearization point, see `collect.rs` |
//! | bounds of route nodes, keys' objects | load; plain reads | Relaxed | – | they never change; the word that leads to them publishes them |
//!
//! Statistics change under the lock, or by exchanges under a share of it. `adaptation` reads them
//! without either.
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `get` | the load of the version, of the search that validates |
//! | `update`, all outcomes; `get` with the lock | the exchange that takes the lock |
//! | `first`, `last`, `collect_range` | as `get`; with several base nodes, the fence |
//! | `pop_first`, `pop_last`, `update_range` | as `update`; with several base nodes, the fence |
//!
//! With readers–writer locks, the point of a reader is the load of the lock that finds it free, and
//! that of a writer the load that finds no reader inside: until then, readers may take effect that
//! see nothing of what the writer does. With several base nodes, it is the fence for both.
//!
//! Each of these points is a `SeqCst` access of the lock of one base node or of its count of
//! readers, or a `SeqCst` fence (see `collect.rs`), so they are in one order. If two calls have the
//! same key, the one whose point is later sees what the earlier one has done: both use one base
//! node, or the later uses one that was split from it or joined with it.
//!
//! # Progress and reclamation
//! Operations on a base node wait for the writer that has its lock. Base nodes are locked in
//! ascending order, shares included, or without waiting; locks of route nodes are taken after
//! those, upwards. There is no deadlock. An atomic read of a range takes the locks of all its base
//! nodes only if writers have disturbed it twice; an update of a range always does. Under
//! readers–writer locks, an operation that only tries a lock may do so for as long as there are
//! always readers inside: `last` and `pop_last` beside an empty last base node. Splits and
//! joins need memory, and do not take place without.
//!
//! # Complexity and footprint
//! An operation passes at most 16 route nodes, and in a container of n entries O(log n) nodes if
//! these are not thinned out by removals. A node has up to 63 entries (42 of `u128` and byte
//! strings). A base node takes 64 bytes, a route node up to 40. An entry takes 16 bytes (24) and
//! its share of the free room of its node; a byte string, eight more and its bytes. An entry of an
//! AVL tree takes 40 bytes (48).
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which verifies N2, N4,
//! R1, R3, R4, V1 and V2 in a quiescent tree; schedules (`tests/schedules.rs`).
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `build.rs` | limits, locks and containers, and builds that choose others |
//! | `key.rs`, `word.rs` | keys in nodes, words that lead to objects |
//! | `node.rs`, `route.rs` | container nodes; base nodes and route nodes |
//! | `search.rs`, `change.rs` | searches with and without the lock; changes of a container |
//! | `splice.rs` | the content of a changed node, and where it is divided |
//! | `avl.rs` | the other container |
//! | `ops.rs`, `adapt.rs` | lookups and `update`; splits and joins |
//! | `scan.rs`, `collect.rs` | ranges entry by entry; atomic ranges and their update |
//! | `ends.rs`, `bulk.rs` | both ends, building a tree from sorted entries |
//! | `objects.rs`, `check.rs` | memory, verification |
//! | `observe.rs` | the shape of a tree, for [`Adapts`](crate::Adapts) |

mod adapt;
mod avl;
pub mod build;
pub(crate) mod bulk;
pub(crate) mod change;
pub(crate) mod check;
mod collect;
mod ends;
pub mod key;
pub(crate) mod node;
pub(crate) mod objects;
pub(crate) mod observe;
mod ops;
pub(crate) mod route;
mod scan;
pub(crate) mod search;
pub(crate) mod splice;
pub(crate) mod word;

pub use key::CaKey;
pub use scan::Range;

use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{
    Algorithm, AlgorithmBounds, AlgorithmKey, Atomic, Ended, Frame, Index, Ordered, See, Updating,
};
use crate::memory::Memory;
use crate::update::Update;
use build::{Adaptive, Build, Sound};
use objects::{Fresh, May, Objects};
use observe::Changes;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, Pooled};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::Arc;
use word::{Place, Word};

/// The reason why a search under a lock cannot fail.
const NEVER_TORN: &str = "no writer disturbs a search under the lock";

/// Contention adapting search tree: see the [module](self).
///
/// ```
/// use silvics::{CaTree, Options, OrderedIndex, OrderedScan};
///
/// let tree: CaTree<u64> = CaTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [3, 1 << 40, 2] {
///     tree.insert(key, 10 * key)?;
/// }
/// assert_eq!(tree.range(..100).collect::<Vec<_>>(), [(2, 20), (3, 30)]);
/// assert_eq!(tree.remove(1 << 40)?, Some(10 << 40));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type CaTree<K = u64, P = Pooled, B = Adaptive> = Index<Ca<K, P, B>>;

/// The algorithm of [`CaTree`].
pub struct Ca<K: CaKey + ?Sized, P: Placement, B: Build> {
    root: Place,
    objects: Objects<K, P, B>,
    changes: Changes,
    build: PhantomData<B>,
}

// SAFETY: the linearization points of the module docs give A2 to A5. A6: keys that are numbers are
// copied, and those that are byte strings lie in objects of the tree, which the guard protects
// (N3). A1: nodes are shared (N1, R1), and there is no other state but atomics and pools. A7: no
// other algorithm is called.
unsafe impl<K: CaKey + ?Sized, P: Placement, B: Build> Algorithm for Ca<K, P, B> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Ca<K, Q, B>;
    const NAME: &'static str = "CaTree";
    const OBJECTS: &'static [NodeLayout] = objects::kinds::<K, B>();

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let () = Sound::<B>::CHECKED;
        let objects = Objects::new(frame)?;
        let guard = objects.frame().domain.pin();
        let mut fresh = Fresh::new(&objects, May::Flush(&guard));
        let root = Place::new(fresh.base(Word::NONE)?);
        fresh.linked();
        drop(fresh);
        drop(guard);
        Ok(Self { root, objects, changes: Changes::new(), build: PhantomData })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        self.objects.frame()
    }

    #[inline]
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
            // SAFETY: access is exclusive. N3, R2: each object is linked once, or retired.
            unsafe { self.objects.free_all(self.root.word()) };
        }
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ordered for Ca<K, P, B> {
    type OrderedAt<Q: Placement> = Ca<K, Q, B>;
    type Range<'g> = Range<'g, K, P, B, false>;
    type RangeRev<'g> = Range<'g, K, P, B, true>;
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
        entries: &[(AlgorithmKey<'_, Self>, u64)],
        _threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        Some(self.load_sorted(entries))
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> CaTree<K, P, B> {
    /// Fills an empty tree with entries in ascending order of their keys. Its leaves are seven
    /// eighths full. On failure the tree stays empty.
    ///
    /// This takes O(entries), and beside the tree up to 16 bytes for each entry of byte strings,
    /// and for each leaf of numbers.
    ///
    /// ```
    /// use silvics::{CaTree, Options, OrderedIndex};
    ///
    /// let mut tree: CaTree<u64> = CaTree::with_options(&Options::default())?;
    /// let squares: Vec<(u64, u64)> = (0..1000).map(|n| (n, n * n)).collect();
    /// tree.bulk_load(&squares)?;
    /// assert_eq!(tree.pin().get(30), Some(900));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bulk_load(&mut self, entries: &[(K::Ref<'_>, u64)]) -> Result<(), BulkLoadError> {
        self.0.load_sorted(entries)
    }

    /// Divides the entries evenly among this many base nodes, below route nodes that are balanced.
    /// If there are fewer entries, each gets a base node. Returns the number of base nodes. On
    /// failure the tree stays as it was.
    ///
    /// With the build [`Fine`](build::Fine), they stay: the tree neither splits nor joins them.
    ///
    /// This takes O(entries), and until it returns also the memory of a second tree, and up to 100
    /// bytes for each entry. [`Adapts`](crate::Adapts) counts it as joins of all base nodes, and
    /// splits. The limit on the depth of route nodes does not apply.
    ///
    /// ```
    /// use silvics::ca::build::Fine;
    /// use silvics::{Adapts, CaTree, Options, OrderedIndex, Pooled};
    ///
    /// let mut tree = CaTree::<u64, Pooled, Fine>::with_options(&Options::default())?;
    /// let squares: Vec<(u64, u64)> = (0..1000).map(|n| (n, n * n)).collect();
    /// tree.bulk_load(&squares)?;
    /// assert_eq!(tree.divide(64)?, 64);
    /// assert_eq!(tree.pin().adaptation().base_nodes.len(), 64);
    /// assert_eq!(tree.pin().get(30), Some(900));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn divide(&mut self, base_nodes: usize) -> Result<usize, AllocError> {
        self.0.divide_evenly(base_nodes)
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ended for Ca<K, P, B> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        self.end_entry::<LAST>(guard)
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        self.pop_entry::<LAST>(guard)
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Atomic for Ca<K, P, B> {
    fn collect_range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        self.collect(bounds, guard)
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Updating for Ca<K, P, B> {
    fn update_range(
        &self,
        bounds: AlgorithmBounds<'_, Self>,
        guard: &Guard,
        new: &mut dyn FnMut(K::Ref<'_>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        self.update_all(bounds, new, guard)
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
pub(crate) mod tests;
