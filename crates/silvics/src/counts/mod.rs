//! Order statistics: an index that also counts its keys, so that it knows the rank of each.
//!
//! # Source
//! Knuth, "The Art of Computer Programming", volume 3, 1973, section 6.2.3 (a tree whose nodes know
//! the number of entries below them); Bayer, Unterauer, "Prefix B-trees", TODS 1977 (separators
//! that are as short as possible). Reference code read: none. A count that is exact under
//! concurrent updates of the tree that it counts is ours.
//!
//! # Algorithm
//! The *directory* lies beside an index of any structure, and divides the keys into *buckets* of
//! neighbours, most of them of 24 to 64 keys. Up to 64 buckets are a *group*, up to 1024 groups a
//! *section*, and the root has all sections. A node of the directory knows the number of keys of
//! each of its parts, and has a mark for each.
//! ```text
//! get(k), scans: those of the index
//! update(k): update the index
//!            a key came or went: mark its bucket in the group, the group in the section, and the
//!            section in the root, unless they are marked
//!            look again: if one of these nodes has been replaced, mark in the new one
//!            half of the buckets are marked: drop the directory
//! clean:     take the latch. For each marked section, group and bucket: take the mark away, then
//!            scan the bucket and note the number of its keys
//!            a bucket has many keys or few: put a copy of its group in place, where it is divided,
//!            or joined with its neighbour; then of the section, if it has many groups or few; then
//!            of the root. If one of the old nodes has been marked meanwhile, mark all of the new
//! rank(k):   a part before k is marked, or another thread cleans: clean
//!            the sections before that of k, the groups before that of k there, and the buckets
//!            before that of k in its group; then scan the bucket up to k
//! nth(i):    as rank; the section, group and bucket that have it by the same sums; then scan the
//!            bucket
//! ```
//! There is no directory until the first rank of an index with more than 64 keys makes it. If half
//! of the buckets are to be counted anew, to make it anew takes no longer, and writers are not
//! delayed until then.
//!
//! # Departures
//! 1. **The counts are beside the tree**, not in its nodes: its lookups and scans are those of the
//!    index, and cost nothing; each structure that scans can have counts.
//! 2. **Writers do not count.** A count that writers change must change together with the index, or
//!    it drifts when a node is divided. A mark says only that the bucket is to be counted anew, so
//!    it can come too often, but nothing can be counted twice. A bucket is marked once for all
//!    writes between two ranks.
//!
//! # Invariants
//! * C1: The separators of a node ascend. The keys of a part are not smaller than its separator, if
//!   it is not the first of all, and smaller than the next one.
//! * C2: Nodes do not change after they are linked, except for their marks, counts, sums and
//!   children. Each child of the root is a section, and each child of a section a group. A node
//!   whose address was read under a guard of the domain is not reclaimed while the guard lives.
//! * C3: Children, the root, counts and sums change under the latch, and marks are taken away under
//!   it. `cleaning` is set meanwhile.
//! * C4: If an operation has put or removed a key and has returned, then the bucket is marked, and
//!   so are its group and section; or a thread has taken one of the marks away after the operation
//!   took effect, and scans the bucket afterwards.
//! * C5: If no operation is under way, the count of a bucket that is not marked is the number of
//!   its keys. The count of another part is the sum of the counts below it. A marked bucket is in a
//!   marked group and section.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | root, child | load, store | `SeqCst` | each other | initialised nodes; and see below |
//! | marks, `seed` | all | `SeqCst` | each other | see below |
//! | `marked`, `buckets` | all | Relaxed | – | they decide only when the directory is dropped |
//! | `cleaning` | all | `SeqCst` | marks | see below |
//! | counts, sums | all | `SeqCst` | each other | a rank counts what was counted before it |
//! | – | fences of `mark`, `clean.rs`, `found` | `SeqCst` | each other | see below |
//! | latch | – | as [`SpinLock`] | – | one thread cleans |
//!
//! A fence lies between an update and its marks, and between the moment when a mark is taken away
//! and the scan. So either the scan sees the update, or the update sees that the mark is gone. An
//! update needs no fence if it takes effect by `SeqCst` operations ([`Ordered::SEQUENTIAL`]). If a
//! rank sees no mark, then no cleaning, and then that its nodes are linked, it sees all counts of
//! the thread that took the marks away.
//!
//! A thread that replaces a node links the new one, and then reads the marks of the old one. An
//! operation marks the old one, and then looks whether it is linked. So one of them sees the other.
//!
//! # Linearization points
//! Those of the index. `rank`, `nth` and `count` are not linearizable: they read many words, one
//! after the other. Each key is in one of the counts that a call reads, or found by its scan; so an
//! operation that overlaps the call changes its result by one at most, and all operations before it
//! are counted (C4).
//!
//! # Progress and reclamation
//! Lookups, scans and updates are as those of the index: an update waits for nobody here. It marks
//! again if a node is replaced meanwhile. The one that drops the directory gives up if another
//! thread has the latch. `rank`, `nth` and `count` wait for a thread that cleans.
//! If no key came or went since the last one, they write nothing.
//!
//! # At a memory limit
//! If a node cannot be allocated, buckets stay as large as they are, and no call fails. A rank then
//! takes longer. If there is no memory for a directory at all, each rank tries to make one, and
//! then counts all keys before its own: it reads the keys twice, one rank at a time. The parts of
//! the directory that it has made before it gives up take memory meanwhile, so that an insert
//! beside it may fail.
//!
//! # Complexity and footprint
//! An update searches its bucket and reads three marks. The first update of a bucket after a rank
//! sets them; the one that makes half of the buckets marked retires the directory, a node for each
//! 2000 keys. A rank after m such updates counts up to m buckets, some 40 keys each; the first one
//! counts all keys. Then it takes O(n / 2²⁵ + 100) additions and a scan of some 20 keys. A bucket
//! of integers takes 16 bytes, 0.4 for each key; for byte strings, 20 and the shortest prefix of a
//! key that is larger than the key before it.
//!
//! # Checked by
//! The conformance suite over counted structures (`tests/conformance.rs`); [`crate::Check::check`],
//! which verifies C1, C2 and C5 in a quiescent index; `tests/scenarios/counts.rs`, with buckets of
//! three keys, which must find the mistakes of `canary.rs`; `counts` of `crates/api-tests`. These
//! schedules are sequentially consistent: no test would miss one of the fences.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `key.rs`, `node.rs`, `objects.rs` | separators, nodes, memory |
//! | `ops.rs`, `rank.rs` | updates and pops, order statistics |
//! | `clean.rs` | counting marked buckets |
//! | `grow.rs`, `plan.rs` | changes of the directory |
//! | `check.rs` | verification |

mod check;
mod clean;
mod grow;
pub mod key;
mod node;
mod objects;
mod ops;
mod plan;
mod rank;

pub use key::CountedKey;

use crate::adaptation::Adaptation;
use crate::compression::Compression;
use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{
    Adapting, Algorithm, AlgorithmBounds, AlgorithmKey, Atomic, Ended, Frame, Index, Ordered, See,
    Updating,
};
use crate::memory::Memory;
use crate::update::Update;
use node::NODE;
use objects::Objects;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, PoolStats};
use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use silvics_sync::lock::SpinLock;
use std::num::NonZeroUsize;
use std::ptr;
use std::sync::Arc;

/// The algorithm `A`, and the number of its keys in each range: see the [module](self).
/// [`crate::map::Builder::counted`] makes a map of it.
pub struct Counted<A: Algorithm<Key: CountedKey>> {
    inner: A,
    /// The root of the directory, or null.
    root: AtomicPtr<u8>,
    /// The mark of all keys while there is no root.
    seed: AtomicBool,
    /// The number of buckets that were marked since marks were taken away.
    marked: AtomicUsize,
    /// The number of buckets of the directory.
    buckets: AtomicUsize,
    /// Held while marks are taken away and nodes are replaced.
    latch: SpinLock,
    /// Whether the latch is held.
    cleaning: AtomicBool,
    objects: CountObjects<A>,
}

/// An index type that can count its keys.
pub trait Countable {
    /// The index that counts them.
    type Counted;
}

impl<A: Ordered<Key: CountedKey>> Countable for Index<A> {
    type Counted = Index<Counted<A>>;
}

type CountObjects<A> = Objects<<A as Algorithm>::Key, <A as Algorithm>::Placement>;

// SAFETY: `A` keeps the contract, and its results are passed on unchanged. A1: the directory's
// nodes are shared (C2), and there is no other state but atomics and pools. A7: the guards are of
// the domain of `A`, which has the only frame of the index.
unsafe impl<A: Ordered<Key: CountedKey>> Algorithm for Counted<A> {
    type Key = A::Key;
    type Placement = A::Placement;
    type At<Q: Placement> = Counted<A::OrderedAt<Q>>;
    const NAME: &'static str = A::NAME;
    const OBJECTS: &'static [NodeLayout] = {
        const MOST: usize = 8;
        const fn with_nodes(objects: &[NodeLayout]) -> [NodeLayout; MOST] {
            let (mut all, mut at) = ([NODE; MOST], 0);
            while at < objects.len() {
                all[at] = objects[at];
                at += 1;
            }
            all
        }
        const { &with_nodes(A::OBJECTS) }.split_at(A::OBJECTS.len() + 1).0
    };

    fn new(frame: Frame) -> Result<Self, AllocError> {
        let objects = Objects::beside(&frame)?;
        Ok(Self {
            inner: A::new(frame)?,
            root: AtomicPtr::new(ptr::null_mut()),
            seed: AtomicBool::new(false),
            marked: AtomicUsize::new(0),
            buckets: AtomicUsize::new(0),
            latch: SpinLock::new(),
            cleaning: AtomicBool::new(false),
            objects,
        })
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        self.inner.frame()
    }

    #[inline(always)]
    fn get(&self, key: AlgorithmKey<'_, A>, guard: &Guard) -> Option<u64> {
        self.inner.get(key, guard)
    }

    #[inline]
    fn update(
        &self,
        key: AlgorithmKey<'_, A>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.change(key, verb, guard)
    }

    fn get_many(&self, keys: &[AlgorithmKey<'_, A>], values: &mut [Option<u64>], guard: &Guard) {
        self.inner.get_many(keys, values, guard);
    }

    const WARMED: usize = A::WARMED;

    #[inline]
    fn warm(&self, entries: &[(AlgorithmKey<'_, A>, u64)], guard: &Guard) {
        self.inner.warm(entries, guard);
    }

    fn sweep(&self) -> usize {
        self.inner.sweep()
    }

    fn memory(&self) -> &dyn Memory {
        self
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        self
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let entries = self.inner.walk(see)?;
        self.check_directory(entries, see)?;
        Ok(entries)
    }

    fn compression(&mut self) -> Option<Compression> {
        self.inner.compression()
    }

    fn free_all(&mut self) {
        self.inner.free_all();
        if !A::Placement::RELEASES_WHOLE {
            self.free_directory();
        }
    }
}

/// The memory of the index and of the directory.
impl<A: Ordered<Key: CountedKey>> Memory for Counted<A> {
    fn stats(&self) -> Vec<PoolStats> {
        [self.inner.memory().stats(), self.objects.memory().stats()].concat()
    }
    fn settle(&mut self) {
        if self.len() == 0 {
            self.free_directory(); // an empty index needs none
        }
        self.inner.memory_mut().settle();
        self.objects.memory_mut().settle();
    }
    fn shrink(&self) -> usize {
        self.inner.memory().shrink() + self.objects.memory().shrink()
    }
    #[cfg(test)]
    fn has_pools(&self, make: bool) -> bool {
        self.inner.memory().has_pools(make)
    }
}

impl<A: Ordered<Key: CountedKey>> Ordered for Counted<A> {
    const SEQUENTIAL: bool = A::SEQUENTIAL;
    type OrderedAt<Q: Placement> = Counted<A::OrderedAt<Q>>;
    type Range<'g>
        = A::Range<'g>
    where
        Self: 'g;
    type RangeRev<'g>
        = A::RangeRev<'g>
    where
        Self: 'g;
    type Cursor = KeyCursor<Index<Self>>;

    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, A>, guard: &'g Guard) -> A::Range<'g> {
        self.inner.range(bounds, guard)
    }

    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, A>,
        guard: &'g Guard,
    ) -> A::RangeRev<'g> {
        self.inner.range_rev(bounds, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> Self::Cursor {
        KeyCursor::new(index)
    }

    fn load(
        &mut self,
        entries: &[(AlgorithmKey<'_, A>, u64)],
        threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        let loaded = self.inner.load(entries, threads)?;
        if loaded.is_ok() {
            self.free_directory(); // it is made anew by the first rank
        }
        Some(loaded)
    }

    #[inline]
    fn read_ahead<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, A>,
        descends: bool,
        most: usize,
        guard: &'g Guard,
        each: impl FnMut(AlgorithmKey<'g, A>, u64),
    ) {
        self.inner.read_ahead(bounds, descends, most, guard, each);
    }
}

impl<A: Ended<Key: CountedKey>> Ended for Counted<A> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(AlgorithmKey<'g, A>, u64)> {
        self.inner.end::<LAST>(guard)
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(AlgorithmKey<'g, A>, u64)>, AllocError> {
        self.pop_counted::<LAST>(guard)
    }
}

impl<A: Atomic<Key: CountedKey>> Atomic for Counted<A> {
    fn collect_range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, A>,
        guard: &'g Guard,
    ) -> Result<Vec<(AlgorithmKey<'g, A>, u64)>, AllocError> {
        self.inner.collect_range(bounds, guard)
    }
}

impl<A: Updating<Key: CountedKey>> Updating for Counted<A> {
    fn update_range(
        &self,
        bounds: AlgorithmBounds<'_, A>,
        guard: &Guard,
        new: &mut dyn FnMut(AlgorithmKey<'_, A>, u64) -> u64,
    ) -> Result<usize, AllocError> {
        self.inner.update_range(bounds, guard, new) // keys stay
    }
}

impl<A: Adapting + Ordered<Key: CountedKey>> Adapting for Counted<A> {
    fn adaptation(&self, guard: &Guard) -> Adaptation {
        self.inner.adaptation(guard)
    }

    fn divide_for(&mut self, threads: usize) -> Result<(), AllocError> {
        self.inner.divide_for(threads)
    }
}
