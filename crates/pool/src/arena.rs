//! An arena for many threads: objects are allocated one by one, and freed all at once.
//!
//! # Source
//! The concurrent arena of `RocksDB` (`memory/concurrent_arena.h` and `memory/arena.h`), which came
//! with concurrent inserts into memtables (Bronson, <https://reviews.facebook.net/D50589>). The
//! constants are those of the published code; the code here was written from its idea.
//!
//! # Algorithm
//! ```text
//! alloc: if there are shards, and the object is at most a quarter of a shard's block:
//!            try the lock of the thread's shard; if it is taken, try the other shards in turn
//!            cut the object off the shard's block
//!            if the block has no room: lock the main arena, and take a new block from it
//!        else:
//!            lock the main arena; if its lock was taken, make the shards
//!            cut the object off the current granule
//!            if the charged part has no room: charge more of the granule, or begin another one
//! ```
//! One thread alone uses the main arena only, so its objects lie one behind the other. A shard's
//! block has 128 KiB, or an eighth of the arena's block if that is less.
//!
//! # Departures
//! 1. A thread's shard follows from its dense index, not from the core on which it runs. No thread
//!    asks for its core, and threads that are fewer than shards never meet at one.
//! 2. The thread that finds the main arena's lock taken makes the shards, and takes this one object
//!    from the main arena. The shards lie in the arena's own memory. They have no block yet.
//! 3. Blocks are not allocated one by one. A *granule* of 2 MiB is charged to the budget in steps,
//!    from 4 KiB up to the block's size, so an arena with a few objects takes little. The first
//!    granules lie on small pages until they are full; later ones are charged as a whole, on huge
//!    pages. The source has one block of 2 KiB inside the arena instead.
//! 4. All objects are cut off the front of a range. The source cuts unaligned ones off its end.
//! 5. An object of more than half a MiB that does not fit into the rest of the granule gets a
//!    mapping of its own. In the source this is an object of more than a quarter of a block.
//! 6. An allocation that fails is an error, and changes nothing. If the budget refuses a shard a
//!    block, the main arena charges the pages of the one object.
//!
//! # Invariants
//! * A1: a byte of the arena's mappings is in one of these: the uncharged part of a granule, the
//!   charged range of the main arena, the block of one shard, one object, or padding. It moves only
//!   in this order, under the lock of the range that it leaves.
//! * A2: the owner of the main lock is the only thread that uses [`Blocks`], and the owner of a
//!   shard's lock is the only one that uses its block.
//! * A3: `held` is the number of bytes that the arena has taken from its budget: the charged parts
//!   of granules, and the objects in mappings of their own, rounded up to pages.
//! * A4: nothing is unmapped before the arena is dropped.
//! * A5: if `shards` is not null, it leads to `count` initialised shards, a power of two. They stay
//!   until the drop.
//! * A6: a thread that waits for the main lock has at most one shard's lock, and no thread that has
//!   the main lock waits for a shard's. So no threads wait for each other in a circle.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `shards` | `get` load | Acquire | `publish` | a thread that sees the shards sees them initialised (A5) |
//! | `shards` | `publish` store | Release | `get` | publishes the shards and `count` |
//! | `count` | `publish` store, `get` load | Relaxed | – | the store comes before that of `shards`, and the load after that of `shards` |
//! | `held` | all | Relaxed | – | a count, written under the main lock |
//!
//! The spin locks order everything else (`silvics_sync::lock`). A thread that passes an object to
//! another one publishes it itself.
//!
//! # Progress
//! Blocking: an allocation may wait for the owner of the main lock, who may be in a system call, or
//! move a granule to a huge page. A thread waits for a shard's lock only if all shards are taken.
//!
//! # Complexity and footprint
//! An allocation takes O(1): one exchange, and no shared write beyond the thread's shard. It locks
//! the main arena once in a block: for objects of 40 bytes and blocks of 128 KiB, once in 3276
//! allocations. An arena without objects takes no memory but itself, below 1 KiB. Each shard that
//! is used has up to one block in reserve, and leaves at most a quarter of each block unused.
//!
//! # Checked by
//! The tests of this module: threads whose objects must not overlap, exact bytes, each refusal.
//! `loom_tests` explores two threads that allocate at once, and must reject a lock that does not
//! publish, and shards that are published too weakly. Poisoning builds check A1.

mod blocks;
mod locked;
#[cfg(all(test, silvics_loom))]
mod loom_tests;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;

use crate::pages::{Fallback, HUGE_PAGE, Pages, Region};
use crate::{AllocError, Config};
use blocks::{Blocks, Source};
use locked::{Bump, Locked};
use silvics_sync::CachePadded;
use silvics_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use silvics_sync::per_thread::{ThreadIndex, thread_index};
use std::alloc::Layout;
use std::fmt;
use std::ptr::{NonNull, null_mut};

/// The most bytes of a shard's block.
const SHARD_BLOCK: usize = 128 << 10;
/// A shard's block is at most this part of the arena's.
const SHARD_PART: usize = 8;
/// Objects of more than this part of a shard's block come from the main arena.
const DIRECT_PART: usize = 4;
/// The most shards: with this number they and their blocks have 32 MiB.
const MOST_SHARDS: usize = 256;

/// A block of which the threads of a shard cut off objects.
struct Block {
    bump: Bump,
    /// The bytes handed out of earlier blocks, with their padding.
    used_before: usize,
    allocations: u64,
    repicks: u64,
}

type Shard = CachePadded<Locked<Block>>;

/// The place of the shards, which are made when two threads first meet.
struct Shards {
    shards: AtomicPtr<Shard>,
    count: AtomicUsize,
}

impl Shards {
    fn new() -> Self {
        Self { shards: AtomicPtr::new(null_mut()), count: AtomicUsize::new(0) }
    }

    /// The shards, if they have been made. Their number is a power of two.
    #[inline(always)]
    fn get(&self) -> Option<&[Shard]> {
        let shards = self.shards.load(Ordering::Acquire);
        if shards.is_null() {
            return None;
        }
        let count = self.count.load(Ordering::Relaxed);
        // SAFETY: A5.
        Some(unsafe { std::slice::from_raw_parts(shards, count) })
    }

    /// Publishes `count` shards, once.
    ///
    /// # Safety
    /// They are initialised, and stay while this lives.
    unsafe fn publish(&self, shards: *mut Shard, count: usize) {
        self.count.store(count, Ordering::Relaxed);
        self.shards.store(shards, Ordering::Release);
    }
}

/// The counts of an arena, for experiments. They are exact when no thread allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaStats {
    /// The objects that were allocated.
    pub allocations: u64,
    /// How often an allocation locked the main arena.
    pub main_locks: u64,
    /// How often an allocation locked the main arena before there were shards: once for each of
    /// these allocations.
    pub unsharded_locks: u64,
    /// How often an allocation found the main arena's lock taken.
    pub contended: u64,
    /// How often a thread found its shard's lock taken, and used another shard.
    pub repicks: u64,
    /// The number of shards, 0 before threads have met.
    pub shards: usize,
}

/// An arena for many threads: objects are allocated one by one. They are freed all at once when the
/// arena is dropped.
///
/// ```
/// use silvics_pool::{ConcurrentArena, Config};
/// use std::alloc::Layout;
///
/// let config = Config::default();
/// let arena = ConcurrentArena::new(&config, 1 << 20);
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| {
///             for n in 0..1000_u64 {
///                 let object = arena.alloc(Layout::new::<u64>()).expect("no limit").cast::<u64>();
///                 // SAFETY: fresh memory of this layout, which only this thread has.
///                 unsafe { object.write(n) };
///             }
///         });
///     }
/// });
/// assert_eq!(arena.used(), 16_000);
/// assert_eq!(arena.bytes(), config.budget.held());
/// drop(arena);
/// assert_eq!(config.budget.held(), 0);
/// ```
pub struct ConcurrentArena {
    shards: Shards,
    /// The bytes of a shard's block.
    shard_block: usize,
    /// The largest object, with its padding, that comes from a shard.
    largest_sharded: usize,
    source: Source,
    main: CachePadded<Locked<Blocks>>,
}

impl ConcurrentArena {
    /// Makes an empty arena that takes its memory from the budget of `config`, on its pages, in
    /// steps of at most `block_bytes`, or 2 MiB if that is less. It allocates nothing yet.
    pub fn new(config: &Config, block_bytes: usize) -> Self {
        let source = Source::new(config, block_bytes);
        let block = block_bytes.min(SHARD_PART * HUGE_PAGE) / SHARD_PART;
        let shard_block = block.clamp(crate::SMALL_PAGE / SHARD_PART, SHARD_BLOCK);
        Self {
            shards: Shards::new(),
            shard_block,
            largest_sharded: shard_block / DIRECT_PART,
            source,
            main: CachePadded::new(Locked::new(Blocks::new())),
        }
    }

    /// Allocates an object. Its bytes are uninitialised, belong to the caller alone, and stay valid
    /// until the arena is dropped. An object of 0 bytes is an aligned address and takes nothing.
    ///
    /// An error leaves the arena as it was, and later allocations may succeed.
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        if layout.size() == 0 {
            let failed = AllocError::System { requested: 0 }; // no alignment is 0
            return NonNull::new(std::ptr::without_provenance_mut(layout.align())).ok_or(failed);
        }
        // The sum is below `isize::MAX`: a layout promises this.
        if layout.size() + (layout.align() - 1) <= self.largest_sharded
            && let Some(shards) = self.shards.get()
            && let Some(object) = self.alloc_sharded(shards, layout)
        {
            return Ok(object);
        }
        self.alloc_main(layout)
    }

    /// Allocates from the thread's shard, or from another one if that is in use. Returns `None` if
    /// the block has no room and another one was refused.
    #[inline(always)]
    fn alloc_sharded(&self, shards: &[Shard], layout: Layout) -> Option<NonNull<u8>> {
        let home = thread_index().map_or(0, ThreadIndex::get) & (shards.len() - 1);
        // SAFETY: the number of shards is a power of two (A5), so `home` is below it.
        match unsafe { shards.get_unchecked(home) }.try_with(|block| self.cut(block, layout)) {
            Ok(object) => object,
            Err(_) => self.repick(shards, home, layout),
        }
    }

    /// Allocates from another shard than that of number `home`, and waits for that one only if all
    /// are in use.
    #[cold]
    fn repick(&self, shards: &[Shard], home: usize, layout: Layout) -> Option<NonNull<u8>> {
        let work = |block: &mut Block| {
            block.repicks += 1;
            self.cut(block, layout)
        };
        for step in 1..shards.len() {
            let other = &shards[(home + step) & (shards.len() - 1)];
            if let Ok(object) = other.try_with(work) {
                return object;
            }
        }
        shards[home].with(work)
    }

    /// Cuts an object off a shard's block, of which the caller is the owner.
    #[inline(always)]
    fn cut(&self, block: &mut Block, layout: Layout) -> Option<NonNull<u8>> {
        let object = match block.bump.alloc(layout) {
            Some(object) => object,
            None => self.refill(block, layout)?,
        };
        block.allocations += 1;
        Some(object)
    }

    /// Takes a new block from the main arena, and cuts an object off it.
    #[cold]
    fn refill(&self, block: &mut Block, layout: Layout) -> Option<NonNull<u8>> {
        let (_, fresh) = self.with_main(|main| main.block(&self.source, self.shard_block));
        // A refused block leaves the old one as it was: smaller objects may still fit there.
        let full = std::mem::replace(&mut block.bump, fresh.ok()?);
        block.used_before += full.used();
        block.bump.alloc(layout)
    }

    #[inline(never)]
    fn alloc_main(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        let (contended, object) = self.with_main(|main| main.alloc(&self.source, layout));
        if contended {
            // An error means only that there are no shards yet: the next contention tries again.
            let _ = self.make_shards();
        }
        object
    }

    /// Calls `work` with the main arena, and counts this. Returns whether the lock was taken at
    /// first.
    #[inline(always)]
    fn with_main<R>(&self, work: impl FnOnce(&mut Blocks) -> R) -> (bool, R) {
        let counted = |main: &mut Blocks| {
            main.locks += 1;
            work(main)
        };
        match self.main.try_with(counted) {
            Ok(result) => (false, result),
            Err(counted) => {
                let result = self.main.with(|main| {
                    main.contended += 1;
                    counted(main)
                });
                (true, result)
            }
        }
    }

    /// Makes the shards now. Otherwise the first threads that meet at the main arena make them.
    #[cold]
    pub fn make_shards(&self) -> Result<(), AllocError> {
        if self.shards.get().is_some() {
            return Ok(());
        }
        let count = shards_of_process();
        self.main.with(|main| {
            if self.shards.get().is_some() {
                return Ok(());
            }
            let failed = AllocError::System { requested: count * size_of::<Shard>() };
            let layout = Layout::array::<Shard>(count).map_err(|_| failed)?;
            let shards = main.reserve(&self.source, layout)?.cast::<Shard>();
            for at in 0..count {
                let bump = Bump::EMPTY;
                let block = Block { bump, used_before: 0, allocations: 0, repicks: 0 };
                // SAFETY: reserved above for this number of shards, and nobody has them yet.
                unsafe { shards.add(at).write(CachePadded::new(Locked::new(block))) };
            }
            main.unsharded_locks = main.locks;
            // SAFETY: initialised above; A4.
            unsafe { self.shards.publish(shards.as_ptr(), count) };
            Ok(())
        })
    }

    /// The bytes that the arena has taken from its budget. O(1).
    pub fn bytes(&self) -> usize {
        self.source.held()
    }

    /// The bytes of all objects, with the padding in front of them. O(shards). Objects that are
    /// allocated meanwhile may be missing.
    pub fn used(&self) -> usize {
        let shard = |shard: &Shard| shard.with(|block| block.used_before + block.bump.used());
        let shards: usize = self.shards.get().unwrap_or_default().iter().map(shard).sum();
        shards + self.main.with(|main| main.used)
    }

    /// The counts of the arena. O(shards).
    pub fn stats(&self) -> ArenaStats {
        let mut stats = ArenaStats::default();
        for shard in self.shards.get().unwrap_or_default() {
            shard.with(|block| {
                stats.allocations += block.allocations;
                stats.repicks += block.repicks;
            });
            stats.shards += 1;
        }
        self.main.with(|main| {
            stats.allocations += main.allocations;
            stats.main_locks = main.locks;
            stats.contended = main.contended;
            stats.unsharded_locks =
                if stats.shards == 0 { main.locks } else { main.unsharded_locks };
        });
        stats
    }

    /// The mapped regions. All objects lie in these.
    pub fn regions(&self) -> Vec<Region> {
        self.main.with(|main| main.regions())
    }

    /// The pages that the system gave, or the requested ones while nothing is mapped.
    pub fn pages(&self) -> Pages {
        self.main.with(|main| main.pages()).map_or(self.source.pages, |(pages, _)| pages)
    }

    /// Why the system gave other pages than the requested ones, if it did.
    pub fn fallback(&self) -> Option<Fallback> {
        self.main.with(|main| main.pages()).and_then(|(_, fallback)| fallback)
    }
}

impl Drop for ConcurrentArena {
    fn drop(&mut self) {
        let shards = self.shards.shards.load(Ordering::Acquire);
        for at in 0..self.shards.count.load(Ordering::Relaxed) {
            // SAFETY: A5, and nobody else has the arena.
            unsafe { shards.add(at).drop_in_place() };
        }
        self.main.with(Blocks::unmap);
        self.source.give_all();
    }
}

impl fmt::Debug for ConcurrentArena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentArena").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The number of shards: the next power of two of the number of cores.
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
fn shards_of_process() -> usize {
    use std::sync::LazyLock;
    static SHARDS: LazyLock<usize> = LazyLock::new(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        cores.min(MOST_SHARDS).next_power_of_two()
    });
    *SHARDS
}

/// The number of shards in a model: few, so that threads meet.
#[cfg(any(silvics_loom, silvics_shuttle))]
fn shards_of_process() -> usize {
    MOST_SHARDS.min(2)
}
