//! The first objects of an index, in memory that the whole process shares.
//!
//! A core maps 2 MiB, opens slabs of 16 or 64 KiB, and has a cache for each thread. An index of ten
//! entries must not pay for that, once for each kind of object. So the pools of a [`Config`] that
//! [starts small](Config::starting_small) take their first objects from one *source*: a core of the
//! whole process, on small pages, with a size class every 8 bytes.
//!
//! # Algorithm
//! ```text
//! alloc: if the pool has a core: from the core; if the memory limit refuses it a slab, then a
//!             small slot, as below
//!        else if the pool's small slots have less than `small_bytes`, and are not used again and
//!             again in a large index: a small slot: a spare one of this size, else one cut off the
//!             index's newest chunk, else off a new chunk
//!        else: make the core, and allocate from it
//! free:  if the pool has a core: push the slot on the thread's magazine, wherever it comes from
//!        else: note that the slot is a spare one
//! ```
//! An index may make its pools when its chunks have [`small_bytes`]. Until then it allocates from
//! its [`SmallObjects`] itself, and gives the number that the object's pool will have. Pools are
//! numbered in the order in which they are made.
//!
//! A *chunk* is one slot of the source: the first has half a KiB, later ones have one, and large
//! objects may have one of their own. Slots of whole lines are cut off its front, others off its
//! back. The chunks go back to the source when no small slot of the index is live, and at the
//! latest when all its pools have gone. So the drop of a small index frees a few chunks, and takes
//! no look at its objects.
//!
//! A pool that has a core uses small slots again as it does its own. A magazine that is full marks
//! its older half free in their slabs' bitmaps. A small slot is recognised there: every slab entry
//! in the headers of the source's granules says that it is the source's. The slot becomes a spare
//! one then. The common paths of a core do not change.
//!
//! The list says which slots are a pool's, and which are spare. Each use of it is a search, over at
//! most some thousand words; over more only while a memory limit refuses the index slabs.
//!
//! # Invariants
//! * F1: a live small slot is in the list of exactly one `SmallObjects`. It lies in one of its
//!   chunks, overlaps no other slot, and is aligned as its size is. A freed one stays whole: it is
//!   a spare slot of its size until the chunks go back to the source.
//! * F2: the budget contains the bytes of the chunks, and of the list.
//! * F3: a slot that is freed to a pool without a core is a small one: a thread that has a slot of
//!   the core sees the core.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `taken` | all | Relaxed | – | a count; a stale one makes the core some slots later |
//! | `uses`, `first_uses` | load, store | Relaxed | – | likewise: threads may overwrite each other's counts |
//! | `opened` | all | Relaxed | – | a count of bytes that says when to make a core |
//! | `pools` | all | Relaxed | – | numbers; an index that has first objects makes its pools on one thread |
//! | `alive` | all | Relaxed | – | a stale count keeps a dropped pool's slots for longer |
//! | `Source::returned` | all | Relaxed | – | a count of bytes that says when to look at the source |
//!
//! The list is under a lock, and the core is published by a [`OnceBox`].
//!
//! # Under `--cfg silvics_shuttle` and `--cfg silvics_loom`
//! A static does not live as long as an execution of a model, so pools have their cores at once.

mod lazy;
mod list;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;

pub(crate) use lazy::LazyCore;

use crate::bytes::{self, BytesCore};
use crate::{AllocError, Budget, Config, PoolStats, Tuning};
use list::{List, POOLS};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock};

/// If the small slots of a pool have this many bytes, an object of `bytes` is not one of them, and
/// the pool makes its core, which begins with a slab of 16 or 64 KiB for each size. An index makes
/// its pools when its chunks have this many bytes; they take some hundred bytes and nanoseconds.
///
/// Each use of the list is a search. So the number is lower for small objects, of which there are
/// more.
const fn small_bytes(bytes: usize) -> usize {
    if bytes < 128 { 8 << 10 } else { 32 << 10 }
}
/// A pool of a few objects that come and go also makes its core: when it has allocated this many
/// small slots, and the other pools of its settings have opened slabs of this many bytes, which are
/// far more than the slab that the core takes; or when it has allocated [`MORE_USES`].
const MANY_USES: u32 = 1024;
const LARGE_INDEX: usize = 512 << 10;
/// Each use takes some hundred nanoseconds, so that these have taken some milliseconds.
const MORE_USES: u32 = 32 << 10;
/// A pool also makes its core when the chunks of its index have this many bytes. They have spare
/// slots of sizes that nobody needs any more.
const ALL_BYTES: usize = 128 << 10;
/// Larger objects, and those with a larger alignment, need a core.
const LARGEST: usize = bytes::LARGEST_OF_SMALL_SLABS;
pub(crate) const LARGEST_ALIGN: usize = 64;
/// After this many bytes were returned, the source may give slabs back to the system.
const TRIM_AFTER: usize = 256 << 10;

/// The source of small slots.
static SOURCE: LazyLock<Source> =
    LazyLock::new(|| Source { core: bytes::source(), returned: AtomicUsize::new(0) });

struct Source {
    core: BytesCore,
    /// The bytes returned since slabs were last given back to the system.
    returned: AtomicUsize,
}

/// The bytes of an object, and those of the slot that a pool gives it.
#[derive(Clone, Copy, Debug)]
pub struct SlotSize {
    #[cfg_attr(not(silvics_poison), expect(dead_code, reason = "these bytes are poisoned"))]
    pub(crate) object: usize,
    pub(crate) slot: usize,
}

impl SlotSize {
    /// The bytes of the slot.
    pub const fn slot_bytes(self) -> usize {
        self.slot
    }
}

/// The small objects of one index, which the pools of one [`Config`] share.
pub struct SmallObjects {
    /// The settings of the cores that the pools will make.
    config: Config,
    /// The number of pools so far.
    pools: AtomicU32,
    /// The number of pools that have not been dropped.
    alive: AtomicU32,
    /// The bytes of the slabs that the cores of the pools have opened so far.
    opened: AtomicUsize,
    /// The allocations before the pools were made.
    first_uses: AtomicU32,
    list: Mutex<List>,
}

impl fmt::Debug for SmallObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallObjects({})", self.list.lock().live())
    }
}

impl SmallObjects {
    /// No objects yet, for pools with these settings.
    pub(crate) fn new(config: Config) -> Self {
        let (pools, alive, opened, first_uses) = Default::default();
        Self { config, pools, alive, opened, first_uses, list: Mutex::default() }
    }

    /// The small objects of an index that makes its pools later: see
    /// [`SmallObjects::alloc_first`]. `None` if its pools must take the first objects: if their
    /// slots have an alignment of their own, or under a model checker.
    pub fn before_pools(config: &Config) -> Option<Arc<Self>> {
        let aligned = config.tuning.slot_alignment() != Tuning::default().slot_alignment();
        config.clone().starting_small().small.filter(|_| !aligned)
    }

    /// Gives memory that small indexes share, and that none of them uses, back to the system.
    /// Returns the number of bytes. Indexes do this by themselves from time to time.
    pub fn trim() -> usize {
        SOURCE.core.shrink()
    }

    /// Notes that a core of the index has opened a slab.
    pub(crate) fn opened_slab(&self, bytes: usize) {
        self.opened.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The budget of the index.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.config.budget
    }

    /// The settings of the pools. The index makes them once, in the order of their numbers.
    pub fn pool_config(self: &Arc<Self>) -> Config {
        Config { small: Some(Arc::clone(self)), ..self.config.clone() }
    }

    /// Allocates an object, before the index has its pools. The pool with this number takes it back
    /// once it has been made. Returns `None` if it is time to make the pools: if the object is
    /// large or aligned to more than a line, if there is no such number, if there are 8 KiB of
    /// first objects, or 32 KiB if this object has 128 bytes or more, or after many allocations.
    /// Pass the error if the pools are `refused`: then there may be more of them.
    pub fn alloc_first(
        &self,
        pool: u16,
        size: SlotSize,
        refused: Option<AllocError>,
    ) -> Result<Option<NonNull<u8>>, AllocError> {
        let uses = self.first_uses.load(Ordering::Relaxed);
        self.first_uses.store(uses.saturating_add(1), Ordering::Relaxed);
        if uses >= MORE_USES && refused.is_none() {
            return Ok(None);
        }
        let most = if refused.is_some() { usize::MAX } else { small_bytes(size.slot) };
        if size.slot > LARGEST || u32::from(pool) >= POOLS {
            return refused.map_or(Ok(None), Err);
        }
        let slot = self.list.lock().alloc(pool, size.slot, most, &self.config.budget);
        #[cfg(silvics_poison)]
        if let Ok(Some(slot)) = slot {
            // SAFETY: a free slot of at least these bytes.
            unsafe { crate::poison::hand_out(slot, size.object) };
        }
        slot.map_err(|error| refused.unwrap_or(error))
    }

    /// Takes back an object, before the index has its pools.
    ///
    /// # Safety
    /// The object came from [`SmallObjects::alloc_first`] with this size, is freed only once, and
    /// nobody uses it any more.
    pub unsafe fn free_first(&self, object: NonNull<u8>, size: usize) {
        #[cfg(silvics_poison)]
        // SAFETY: the caller's promise.
        unsafe {
            crate::poison::free(object, size);
        }
        // SAFETY: the caller's promise.
        let slot = unsafe { self.free(object) };
        debug_assert!(size <= slot, "{size} bytes in a slot of {slot}");
    }

    /// The statistics of the pool with this number, before it is made.
    pub fn stats(&self, pool: u16, kind: &'static str) -> PoolStats {
        let list = self.list.lock();
        let (slots, bytes) =
            list.of(pool).fold((0, 0), |(slots, bytes), noted| (slots + 1, bytes + noted.bytes()));
        let empty = PoolStats::empty(kind, self.config.pages);
        PoolStats { live_slots: slots, live_bytes: bytes, ..empty }
    }

    /// A small slot of `bytes` bytes, noted for a pool, if there is a spare one or the chunks then
    /// have about `most` bytes or less.
    fn alloc(
        &self,
        pool: u16,
        bytes: usize,
        most: usize,
    ) -> Result<Option<NonNull<u8>>, AllocError> {
        self.list.lock().alloc(pool, bytes, most, &self.config.budget)
    }

    /// Makes a live slot a spare one, and returns its bytes.
    ///
    /// # Safety
    /// The slot was allocated from these small objects. Nobody uses it any more, and it is
    /// freed once.
    pub(crate) unsafe fn free(&self, slot: NonNull<u8>) -> usize {
        let mut list = self.list.lock();
        let freed = list.free(slot);
        debug_assert!(freed.is_some(), "not a slot of this index, or freed twice (F1)");
        let returned = list.release_if_unused(&self.config.budget);
        drop(list);
        trim(returned);
        freed.unwrap_or(0)
    }

    /// The live slots of a pool, with their bytes.
    fn of(&self, pool: u16) -> Vec<(NonNull<u8>, usize)> {
        self.list.lock().of(pool).map(|noted| (noted.slot(), noted.bytes())).collect()
    }

    /// Makes all slots of a pool spare ones.
    ///
    /// # Safety
    /// Nobody uses a slot of the pool any more, or frees one.
    unsafe fn free_all(&self, pool: u16) {
        let mut list = self.list.lock();
        #[cfg(silvics_poison)]
        for slot in list.of(pool) {
            // SAFETY: F1; the caller's promise. The object in the slot may be free or not.
            unsafe {
                crate::poison::forget(slot.slot(), slot.bytes());
                crate::poison::free(slot.slot(), slot.bytes());
            }
        }
        list.free_all(pool);
        let returned = list.release_if_unused(&self.config.budget);
        drop(list);
        trim(returned);
    }
}

impl Drop for SmallObjects {
    fn drop(&mut self) {
        let mut list = std::mem::take(&mut *self.list.lock());
        // SAFETY: each pool has a reference to these objects, so none is left.
        let returned = unsafe { list.release(&self.config.budget) };
        self.config.budget.give(list.bytes());
        trim(returned + list.returned as usize);
    }
}

/// Lets the source return unused slabs to the system, if indexes have returned much since the last
/// time, `bytes` included, and more than half of the source's slabs is unused.
fn trim(bytes: usize) {
    if bytes == 0
        || SOURCE.returned.fetch_add(bytes, Ordering::Relaxed) + bytes < TRIM_AFTER
        || SOURCE.returned.swap(0, Ordering::Relaxed) < TRIM_AFTER
    {
        return; // of two threads that see the same bytes, the swap lets one go on
    }
    let live: i64 = (0..BytesCore::CLASSES)
        .map(|class| SOURCE.core.live(class) * SOURCE.core.size(class) as i64)
        .sum();
    if SOURCE.core.slab_bytes() > 2 * live.max(0) as usize + TRIM_AFTER {
        SOURCE.core.shrink();
    }
}
