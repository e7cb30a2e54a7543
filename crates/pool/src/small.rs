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
//!        else if the pool's small slots have less than SMALL_BYTES: a small slot: a spare one of
//!             this size, else one cut off the index's newest chunk, else off a new chunk
//!        else: make the core, and allocate from it
//! free:  if the pool has a core: push the slot on the thread's magazine, wherever it comes from
//!        else: move the slot from the list of live ones to the spare ones
//! ```
//! A *chunk* is one slot of the source: the first has half a KiB, later ones have one. Slots of
//! whole lines are cut off its front, others off its back. The chunks go back to the source when no
//! small slot of the index is live, and at the latest when all its pools have gone. So the drop of
//! a small index frees a few chunks, and takes no look at its objects.
//!
//! A pool that has a core uses small slots again as it does its own. A magazine that is full marks
//! its older half free in their slabs' bitmaps. A small slot is recognised there: every slab entry
//! in the headers of the source's granules says that it is the source's. The slot becomes a spare
//! one then. The common paths of a core do not change.
//!
//! The list says which slots are a pool's. Taking a slot off the list is a search from its end,
//! over at most some thousand words; over more only while a memory limit refuses the index slabs.
//!
//! # Invariants
//! * F1: a live small slot is in the list of exactly one `SmallObjects`. It lies in one of its
//!   chunks, overlaps no other slot, and is aligned as its size is. A freed one stays whole: it is
//!   a spare slot of its size, or unused if there was no memory to note it, until the chunks go
//!   back to the source.
//! * F2: the budget contains the bytes of the chunks, and of the lists.
//! * F3: a slot that is freed to a pool without a core is a small one: a thread that has a slot of
//!   the core sees the core.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `taken`, `pools` | all | Relaxed | – | counts; a stale `taken` makes the core some slots later |
//! | `alive` | all | Relaxed | – | a stale count keeps a dropped pool's slots for longer |
//! | `Source::returned` | all | Relaxed | – | a count of bytes that says when to look at the source |
//!
//! The lists are under a lock, and the core is published by a [`OnceBox`].
//!
//! # Under `--cfg silvics_shuttle` and `--cfg silvics_loom`
//! A static does not live as long as an execution of a model, so pools have their cores at once.

mod lazy;
mod list;

pub(crate) use lazy::LazyCore;

use crate::bytes::{self, BytesCore};
use crate::{AllocError, Config};
use list::{CHUNK, List, Noted, make_spare, reserve};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::fmt;
use std::ptr::NonNull;
use std::sync::LazyLock;

/// A pool takes small slots until they have this many bytes. Its core then begins with a slab of
/// 16 or 64 KiB.
const SMALL_BYTES: usize = 8 << 10;
/// Larger objects, and those with a larger alignment, need a core.
const LARGEST: usize = bytes::LARGEST;
const LARGEST_ALIGN: usize = 64;
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

/// The small objects of one index, which the pools of one [`Config`] share.
pub struct SmallObjects {
    /// The settings of the cores that the pools will make.
    config: Config,
    /// The number of pools so far.
    pools: AtomicU32,
    /// The number of pools that have not been dropped.
    alive: AtomicU32,
    list: Mutex<List>,
}

impl fmt::Debug for SmallObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.list.lock();
        write!(f, "SmallObjects({})", list.noted.len() - list.chunks)
    }
}

impl SmallObjects {
    /// No objects yet, for pools with these settings.
    pub(crate) fn new(config: Config) -> Self {
        let (pools, alive) = Default::default();
        Self { config, pools, alive, list: Mutex::default() }
    }

    /// A small slot of `bytes` bytes, noted for a pool.
    fn alloc(&self, pool: u16, bytes: usize) -> Result<NonNull<u8>, AllocError> {
        let mut list = self.list.lock();
        let budget = &self.config.budget;
        reserve(&mut list.noted, 2, budget)?; // the slot, and perhaps a chunk
        let slot = if let Some(slot) = list.cut(bytes) {
            slot
        } else {
            list.add_chunk(bytes, budget)?;
            list.cut(bytes).expect("a new chunk has room")
        };
        list.noted.push(Noted::new(slot, pool.into(), bytes));
        Ok(slot)
    }

    /// Makes a live slot of `bytes` bytes a spare one.
    ///
    /// # Safety
    /// The slot came from [`SmallObjects::alloc`] of this index with these bytes. Nobody uses it
    /// any more, and it is freed once.
    pub(crate) unsafe fn free(&self, slot: NonNull<u8>, bytes: usize) {
        let mut list = self.list.lock();
        let is_it = |noted: &Noted| noted.slot() == slot && noted.pool() != CHUNK;
        let at = list.noted.iter().rposition(is_it);
        debug_assert!(at.is_some(), "not a slot of this index, or freed twice (F1)");
        let Some(at) = at else { return };
        debug_assert_eq!(list.noted[at].bytes(), bytes);
        let noted = list.noted.swap_remove(at);
        make_spare(&mut list.spare, noted, &self.config.budget);
        let returned = list.release_if_unused(&self.config.budget);
        drop(list);
        trim(returned);
    }

    /// The live slots of a pool, with their bytes.
    fn of(&self, pool: u16) -> Vec<(NonNull<u8>, usize)> {
        let list = self.list.lock();
        let own = list.noted.iter().filter(|noted| noted.pool() == pool.into());
        own.map(|noted| (noted.slot(), noted.bytes())).collect()
    }

    /// Makes all slots of a pool spare ones.
    ///
    /// # Safety
    /// Nobody uses a slot of the pool any more, or frees one.
    unsafe fn free_all(&self, pool: u16) {
        let mut list = self.list.lock();
        let List { noted, spare, .. } = &mut *list;
        noted.retain(|&slot| {
            if slot.pool() != pool.into() {
                return true;
            }
            #[cfg(silvics_poison)]
            // SAFETY: F1; the caller's promise. The object in the slot may be free or not.
            unsafe {
                crate::poison::forget(slot.slot(), slot.bytes());
                crate::poison::free(slot.slot(), slot.bytes());
            }
            make_spare(spare, slot, &self.config.budget);
            false
        });
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
        trim(returned + list.returned);
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

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::{BytesPool, Pages, Pool};
    use std::collections::HashSet;
    use std::sync::{Arc, Barrier};

    #[repr(align(64))]
    struct Line {
        _words: [u64; 8],
    }

    fn config() -> Config {
        Config::new(Pages::Small, None).starting_small()
    }

    #[test]
    fn few_objects_cost_their_slots_and_map_nothing() {
        let config = config();
        let budget = Arc::clone(&config.budget);
        let (lines, bytes) = (Pool::<Line>::new("line", &config), BytesPool::new("bytes", &config));
        assert_eq!(budget.held(), 0);
        let line = lines.alloc().unwrap();
        let objects: Vec<_> = (1..8).map(|n| (bytes.alloc(20 * n).unwrap(), 20 * n)).collect();
        assert!(line.is_aligned());
        let rounded: usize = objects.iter().map(|(_, size)| size.next_multiple_of(8)).sum();
        let parts = || {
            let list = config.small.as_ref().unwrap().list.lock();
            (list.held, list.bytes())
        };
        let (chunks, notes) = parts();
        assert_eq!(budget.held(), chunks + notes);
        assert_eq!(chunks, 1536, "two chunks for {} bytes", 64 + rounded);
        assert_eq!((lines.stats().live_slots, lines.stats().live_bytes), (1, 64));
        assert_eq!((bytes.stats().live_slots, bytes.stats().live_bytes), (7, rounded));
        assert!(lines.stats().regions.is_empty() && bytes.stats().regions.is_empty());
        // SAFETY: allocated above, used no more.
        unsafe {
            lines.free(line);
            for (object, size) in objects {
                bytes.free(object, size);
            }
        }
        assert_eq!(lines.stats().live_slots + bytes.stats().live_slots, 0);
        assert_eq!(parts().0, 0, "no slot is live");
        assert_eq!(budget.held(), parts().1);
        drop((lines, bytes, config));
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn slots_do_not_overlap_and_spare_ones_are_used_again() {
        let config = config();
        let objects = config.small.as_ref().unwrap();
        let mut live: Vec<(NonNull<u8>, usize)> = Vec::new();
        let mut random = 1_usize;
        let mut below = |bound: usize| {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (random >> 40) % bound
        };
        for _ in 0..5_000 {
            let bytes = match below(16) {
                0 => [576, 2112, 4096][below(3)],
                1..8 => 64 * (1 + below(4)),
                _ => 16 + 8 * below(14),
            };
            let slot = objects.alloc(3, bytes).unwrap();
            let align = if bytes % 64 == 0 { 64 } else { bytes & bytes.wrapping_neg() };
            assert_eq!(slot.addr().get() % align, 0, "{bytes} bytes at {slot:p}");
            let (from, to) = (slot.addr().get(), slot.addr().get() + bytes);
            for (other, bytes) in &live {
                assert!(to <= other.addr().get() || other.addr().get() + bytes <= from);
            }
            live.push((slot, bytes));
            if live.len() > 30 {
                let (slot, bytes) = live.swap_remove(below(30));
                // SAFETY: allocated above, used no more.
                unsafe { objects.free(slot, bytes) };
            }
        }
        let most: usize = live.iter().map(|(_, bytes)| bytes).sum();
        let held = objects.list.lock().held;
        assert!(held < 10 * most + (32 << 10), "{held} bytes of chunks for {most}");
        assert_eq!(objects.of(3).len(), live.len());
        for (slot, bytes) in live {
            // SAFETY: allocated above, used no more.
            unsafe { objects.free(slot, bytes) };
        }
        assert_eq!(objects.list.lock().held, 0, "the chunks went back");
    }

    #[test]
    fn a_pool_outgrows_the_source_and_uses_its_small_slots_again() {
        let config = config();
        let budget = Arc::clone(&config.budget);
        let mut pool = Pool::<Line>::new("line", &config);
        let mut live: HashSet<_> = (0..SMALL_BYTES / 64).map(|_| pool.alloc().unwrap()).collect();
        assert!(pool.stats().regions.is_empty());
        live.insert(pool.alloc().unwrap());
        assert_eq!(pool.stats().regions.len(), 1);
        assert_eq!(pool.live().collect::<HashSet<_>>(), live);
        // Half of the small slots go into the magazine, and come out of it.
        let small = pool.core.small_slots();
        let half: Vec<_> = small.iter().map(|slot| slot.0).take(small.len() / 2).collect();
        for slot in &half {
            assert!(live.remove(&slot.cast()));
            // SAFETY: allocated above, used no more.
            unsafe { pool.free(slot.cast()) };
        }
        assert_eq!(pool.stats().live_slots, live.len());
        assert_eq!(pool.live().collect::<HashSet<_>>(), live);
        let again = pool.alloc().unwrap();
        assert!(half.contains(&again.cast()), "a small slot is used again");
        live.insert(again);
        // More frees than a magazine holds: the source gets small slots back.
        live.extend((0..20_000).map(|_| pool.alloc().unwrap()));
        assert_eq!(pool.stats().live_slots, live.len());
        for slot in live {
            // SAFETY: allocated above, used no more.
            unsafe { pool.free(slot) };
        }
        assert_eq!((pool.stats().live_slots, pool.live().count()), (0, 0));
        assert!(pool.core.small_slots().len() < small.len());
        pool.shrink();
        assert!(pool.core.small_slots().is_empty(), "shrinking empties this thread's magazines");
        drop((pool, config));
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn threads_that_outgrow_the_source_together_lose_no_slot() {
        const THREADS: usize = 4;
        for _ in 0..50 {
            let config = config();
            let budget = Arc::clone(&config.budget);
            let pool = BytesPool::new("bytes", &config);
            let start = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (pool, start) = (&pool, &start);
                    scope.spawn(move || {
                        start.wait();
                        let mut kept = Vec::new();
                        for round in 0..2_000 {
                            let size = 8 + (round * 31 + thread * 7) % 200;
                            let object = pool.alloc(size).unwrap();
                            // SAFETY: the object has room for a word, and is this thread's.
                            unsafe { object.cast::<usize>().write(object.addr().get()) };
                            kept.push((object, size));
                            if kept.len() > 40 {
                                let (object, size) = kept.swap_remove(round % 40);
                                // SAFETY: allocated above by this thread.
                                let word = unsafe { object.cast::<usize>().read() };
                                assert_eq!(word, object.addr().get(), "two threads have one slot");
                                // SAFETY: allocated above, used no more.
                                unsafe { pool.free(object, size) };
                            }
                        }
                        for (object, size) in kept {
                            // SAFETY: allocated above, used no more.
                            unsafe { pool.free(object, size) };
                        }
                    });
                }
            });
            assert_eq!(pool.stats().live_slots, 0);
            drop((pool, config));
            assert_eq!(budget.held(), 0);
        }
    }

    /// A slot whose slab is not marked would go to a bitmap of another core.
    #[test]
    #[cfg_attr(miri, ignore = "takes minutes: Miri checks every access to a granule's header")]
    fn threads_that_open_the_first_slabs_of_a_granule_have_marked_ones() {
        for _ in 0..300 {
            let source = bytes::source();
            let start = Barrier::new(2);
            std::thread::scope(|scope| {
                for class in 0..2 {
                    let (source, start) = (&source, &start);
                    scope.spawn(move || {
                        start.wait();
                        let slot = source.alloc(class).unwrap();
                        assert!(source.is_small(slot.as_ptr()));
                    });
                }
            });
        }
    }

    #[test]
    fn a_dropped_pool_keeps_nothing_while_its_settings_live() {
        let config = config();
        let (kept, dropped) = (Pool::<Line>::new("a", &config), Pool::<Line>::new("b", &config));
        let _line = kept.alloc().unwrap();
        let before = config.budget.held();
        for lines in [5, 3 * SMALL_BYTES / 64] {
            // The first takes small slots alone; the second, a core too.
            let pool = Pool::<Line>::new("c", &config);
            let slots: Vec<_> = (0..lines).map(|_| pool.alloc().unwrap()).collect();
            // SAFETY: allocated above, used no more: the slot waits in a magazine of the core.
            unsafe { pool.free(slots[0]) };
            assert!(config.budget.held() > before);
        }
        {
            let list = config.small.as_ref().unwrap().list.lock();
            assert_eq!(config.budget.held(), list.held + list.bytes());
            assert!(list.held < 2 * SMALL_BYTES, "slots of dropped pools are used again");
            assert_eq!(list.noted.len() - list.chunks, 1);
        }
        drop(dropped);
        assert_eq!((kept.stats().live_slots, kept.core.small_slots().len()), (1, 1));
    }

    /// Such a pool would take its first slots by one tuning and the others by another.
    #[test]
    fn a_pool_whose_settings_were_changed_since_has_a_core_at_once() {
        let tuning = crate::Tuning::default().slot_align(64).unwrap();
        let pool = Pool::<[u64; 6]>::new("node", &Config { tuning, ..config() });
        let slots: Vec<_> = (0..1000).map(|_| pool.alloc().unwrap()).collect();
        assert!(slots.iter().all(|slot| slot.addr().get().is_multiple_of(64)));
        assert!(pool.core.small_slots().is_empty());
    }

    /// A removed object must make room for another one, whichever memory it was in.
    #[test]
    fn a_pool_with_a_core_takes_small_slots_when_its_limit_refuses_a_slab() {
        let limit = (64 << 10) + SMALL_BYTES + (4 << 10);
        let config = Config::new(Pages::Small, Some(limit)).starting_small();
        let pool = Pool::<Line>::new("line", &config);
        let lines: Vec<_> = (0..).map_while(|_| pool.alloc().ok()).collect();
        assert_eq!(pool.stats().regions.len(), 1);
        assert!(config.budget.held() > limit - 128, "{} of {limit}", config.budget.held());
        // The frees overflow the magazine, so small slots go back to the source.
        for line in &lines {
            // SAFETY: allocated by this pool, used no more, freed once.
            unsafe { pool.free(*line) };
        }
        while pool.alloc().is_ok() {}
        assert!(config.budget.held() > limit - 128, "{} of {limit}", config.budget.held());
    }

    #[test]
    fn a_limit_holds_for_small_objects() {
        let config = Config::new(Pages::Small, Some(1000)).starting_small();
        let pool = Pool::<Line>::new("line", &config);
        let lines = (0..).map_while(|_| pool.alloc().ok()).count();
        // A chunk of 512 bytes, and chunks of one line while they and their notes fit.
        assert!((11..=13).contains(&lines), "{lines}");
        assert!((900..=1000).contains(&config.budget.held()), "{}", config.budget.held());
        assert!(matches!(pool.alloc(), Err(AllocError::Limit { limit: 1000, .. })));
    }

    /// Symptom: the source kept what indexes returned if each returned much. Cause: the drop of an
    /// index lost the count of a large return.
    #[test]
    #[cfg_attr(miri, ignore = "takes minutes: Miri checks every access to a granule's header")]
    fn what_indexes_had_goes_back_to_the_system() {
        const MANY_POOLS: usize = 2 * list::NOTED / SMALL_BYTES;
        // Many indexes that have little, then some that have much.
        for (indexes, pools, objects) in [(10_000, 1, 5), (200, MANY_POOLS, SMALL_BYTES / 320)] {
            let index = |_| {
                let config = config();
                let pool = |_| {
                    let pool = Pool::<[u64; 40]>::new("node", &config);
                    assert!((0..objects).all(|_| pool.alloc().is_ok()));
                    pool
                };
                (0..pools).map(pool).collect::<Vec<_>>()
            };
            let made: Vec<_> = (0..indexes).map(index).collect();
            let most = SOURCE.core.slab_bytes();
            assert!(most > indexes * pools * objects * 320);
            let returnable = SOURCE.core.gives_back(); // pages of 16 KiB may be too large
            drop(made);
            let left = SOURCE.core.slab_bytes();
            assert!(!returnable || left < most / 4, "{left} of {most}");
        }
    }
}
