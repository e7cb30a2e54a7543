//! The first objects of an index, in memory that the whole process shares.
//!
//! A core maps 2 MiB, opens slabs of 16 or 64 KiB, and has a cache for each thread. An index of ten
//! entries must not pay for that, once for each kind of object. So the pools of a [`Config`] that
//! [starts small](Config::starting_small) take their first objects from one *source*: a core of the
//! whole process, on small pages, with a size class every 8 bytes.
//!
//! # Algorithm
//! ```text
//! alloc: if the pool has a core: from the core
//!        else if the pool's small objects have less than SMALL_BYTES: a slot of the source, noted
//!             in the index's list
//!        else: make the core, and allocate from it
//! free:  if the pool has a core: push the slot on the thread's magazine, wherever it comes from
//!        else: return the slot to the source, and strike it off the list
//! ```
//! A pool that has a core therefore uses small slots again as it does its own. A magazine that is
//! full marks its older half free in their slabs' bitmaps. A small slot is recognised there: every
//! slab entry in the headers of the source's granules says that it is the source's. The slot goes
//! back to the source then. The common paths of a core do not change.
//!
//! The list says which slots are the index's, so dropping an index returns them without a walk over
//! its nodes. Taking a slot off the list is a search from its end, over at most some thousand
//! words.
//!
//! # Invariants
//! * F1: a slot is in the list of exactly one `SmallObjects` from the moment the source hands it
//!   out until it is returned to the source.
//! * F2: the budget contains the bytes of the slots in the list, and of the list itself.
//! * F3: a slot that is freed to a pool without a core is a small one: a thread that has a slot of
//!   the core sees the core.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `taken`, `pools` | all | Relaxed | – | counts: the RMWs lose nothing; a stale `taken` moves the pool to its core some slots later |
//! | `Source::returned` | all | Relaxed | – | a count of bytes that says when to look at the source |
//!
//! The list is under a lock, and the core is published by a [`OnceBox`].
//!
//! # Under `--cfg silvics_shuttle` and `--cfg silvics_loom`
//! A static does not live as long as an execution of a model, so pools have their cores at once.

use crate::budget::Budget;
use crate::bytes::{self, CLASSES, MAGAZINE};
use crate::core::Core;
use crate::{AllocError, Config, Fallback, Pages, Region};
use silvics_sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use silvics_sync::tagged::Tagged;
use silvics_sync::{Mutex, OnceBox};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock};

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
    core: Core<CLASSES, MAGAZINE>,
    /// The bytes returned since slabs were last given back to the system.
    returned: AtomicUsize,
}

/// The small objects of one index, which the pools of one [`Config`] share.
pub struct SmallObjects {
    /// The settings of the cores that the pools will make.
    config: Config,
    /// The number of pools so far.
    pools: AtomicU32,
    list: Mutex<List>,
}

/// The slots that the index has from the source, each with the number of its pool as a hint.
#[derive(Default)]
struct List {
    slots: Vec<Tagged<u8>>,
}

// SAFETY: the list holds addresses; the slots belong to those who have them, or to the index.
unsafe impl Send for List {}

impl fmt::Debug for SmallObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallObjects({})", self.list.lock().slots.len())
    }
}

impl List {
    /// Makes room for one more slot, and takes the bytes from the budget.
    fn reserve(&mut self, budget: &Budget) -> Result<(), AllocError> {
        let len = self.slots.len();
        if len < self.slots.capacity() {
            return Ok(());
        }
        let more = len.max(8);
        let bytes = more * size_of::<Tagged<u8>>();
        budget.take(bytes)?;
        self.slots.try_reserve_exact(more).map_err(|_| {
            budget.give(bytes);
            AllocError::System { requested: bytes }
        })
    }

    /// The bytes of the list itself.
    fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Tagged<u8>>()
    }
}

impl SmallObjects {
    /// No objects yet, for pools with these settings.
    pub(crate) fn new(config: Config) -> Self {
        Self { config, pools: AtomicU32::new(0), list: Mutex::default() }
    }

    /// A slot of the source for `bytes` bytes, noted for a pool.
    fn alloc(&self, pool: u16, bytes: usize) -> Result<NonNull<u8>, AllocError> {
        let class = bytes::class_of(bytes);
        let bytes = SOURCE.core.size(class);
        let mut list = self.list.lock();
        list.reserve(&self.config.budget)?;
        self.config.budget.take(bytes)?;
        let slot = SOURCE.core.alloc(class).inspect_err(|_| self.config.budget.give(bytes))?;
        list.slots.push(Tagged::new(slot.as_ptr()).with_hint(pool));
        Ok(slot)
    }

    /// Strikes a slot off the list and returns it to the source. Returns its bytes.
    ///
    /// # Safety
    /// The slot came from [`SmallObjects::alloc`] of this index. Nobody uses it any more, and it is
    /// returned once.
    pub(crate) unsafe fn free(&self, slot: NonNull<u8>) -> usize {
        let mut list = self.list.lock();
        let at = list.slots.iter().rposition(|noted| noted.pointer() == slot.as_ptr());
        debug_assert!(at.is_some(), "not a slot of this index, or returned twice (F1)");
        let Some(at) = at else { return 0 };
        list.slots.swap_remove(at);
        drop(list);
        // SAFETY: F1; the caller's promise.
        let bytes = unsafe { give_back(slot) };
        self.config.budget.give(bytes);
        bytes
    }

    /// The slots of a pool.
    fn of(&self, pool: u16) -> Vec<NonNull<u8>> {
        let list = self.list.lock();
        let own = list.slots.iter().filter(|slot| slot.hint() == pool);
        own.filter_map(|slot| NonNull::new(slot.pointer())).collect()
    }
}

impl Drop for SmallObjects {
    fn drop(&mut self) {
        let list = std::mem::take(&mut *self.list.lock());
        let mut bytes = list.bytes();
        for slot in list.slots.iter().filter_map(|slot| NonNull::new(slot.pointer())) {
            #[cfg(silvics_poison)]
            // SAFETY: F1: the slot is this index's. Its object may be free or not.
            unsafe {
                crate::poison::forget(slot, bytes_of(slot));
                crate::poison::free(slot, bytes_of(slot));
            }
            // SAFETY: F1: the slot is this index's, and the pools that handed it out are gone.
            bytes += unsafe { give_back(slot) };
        }
        self.config.budget.give(bytes);
        trim(bytes);
    }
}

/// Returns a slot to the source. Returns its bytes.
///
/// # Safety
/// The slot came from the source, nobody uses it any more, and it is returned once.
unsafe fn give_back(slot: NonNull<u8>) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let class = SOURCE.core.class_at(slot.as_ptr());
        SOURCE.core.free(class, slot);
        SOURCE.core.size(class)
    }
}

/// Lets the source return unused slabs to the system, if indexes have returned much since the last
/// time and more than half of the source is unused.
fn trim(bytes: usize) {
    if SOURCE.returned.fetch_add(bytes, Ordering::Relaxed) + bytes < TRIM_AFTER {
        return;
    }
    SOURCE.returned.store(0, Ordering::Relaxed);
    let live: i64 =
        (0..CLASSES).map(|class| SOURCE.core.live(class) * SOURCE.core.size(class) as i64).sum();
    if SOURCE.core.held() > 2 * live.max(0) as usize + TRIM_AFTER {
        SOURCE.core.shrink();
    }
}

/// The core of a pool: made with the pool, or when the pool has outgrown the source.
pub(crate) struct LazyCore<const C: usize, const MAG: usize> {
    core: OnceBox<Core<C, MAG>>,
    small: Option<Small>,
}

/// A pool's part in the small objects of its index.
struct Small {
    objects: Arc<SmallObjects>,
    /// The number of the pool.
    pool: u16,
    /// The bytes that the pool has taken from the source while it has no core.
    taken: AtomicU32,
}

impl<const C: usize, const MAG: usize> LazyCore<C, MAG> {
    /// A core that `make` makes now, or later if the settings say so and slots of this size and
    /// alignment can be the source's.
    pub(crate) fn new(
        config: &Config,
        (size, align): (usize, usize),
        make: impl FnOnce(&Config) -> Core<C, MAG>,
    ) -> Self {
        let fits = size <= LARGEST && align <= LARGEST_ALIGN;
        // Settings that were changed since do not fit the cores that the objects' settings make.
        let same = |objects: &&Arc<SmallObjects>| {
            let of = &objects.config;
            let budget = Arc::ptr_eq(&of.budget, &config.budget);
            fits && budget && of.tuning == config.tuning && of.pages == config.pages
        };
        let small = config.small.as_ref().filter(same).and_then(|objects| {
            // Pools beyond the numbers that a hint holds have cores at once.
            let pool = objects.pools.fetch_add(1, Ordering::Relaxed).try_into().ok()?;
            Some(Small { objects: Arc::clone(objects), pool, taken: AtomicU32::new(0) })
        });
        let core = if small.is_some() { OnceBox::default() } else { OnceBox::from(make(config)) };
        Self { core, small }
    }

    /// The core, if it has been made.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&Core<C, MAG>> {
        self.core.get()
    }

    /// Allocates a slot of `class`, which has `bytes` bytes, for a pool without a core.
    #[cold]
    pub(crate) fn alloc_early(
        &self,
        (class, bytes): (usize, usize),
        make: impl FnOnce(&Config) -> Core<C, MAG>,
    ) -> Result<NonNull<u8>, AllocError> {
        let small = self.small.as_ref().expect("a pool without a core starts small");
        let taken = small.taken.load(Ordering::Relaxed);
        if taken as usize + bytes > SMALL_BYTES {
            return self.grow(small, make)?.alloc(class);
        }
        let slot = small.objects.alloc(small.pool, bytes)?;
        small.taken.fetch_add(bytes as u32, Ordering::Relaxed);
        Ok(slot)
    }

    /// Takes back a slot of `class`, which has `bytes` bytes.
    ///
    /// # Safety
    /// The slot came from this pool with this class, and nobody uses it any more.
    #[inline(always)]
    pub(crate) unsafe fn free(&self, (class, bytes): (usize, usize), slot: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.get() {
                Some(core) => core.free(class, slot),
                None => self.free_early(bytes, slot),
            }
        }
    }

    /// Takes back a slot as `free` does, for a pool without a core.
    ///
    /// # Safety
    /// That of `free`.
    #[cold]
    unsafe fn free_early(&self, bytes: usize, slot: NonNull<u8>) {
        let small = self.small.as_ref().expect("a pool without a core starts small");
        // SAFETY: F3: the pool had no core, so the slot is of the source.
        unsafe { small.objects.free(slot) };
        small.taken.fetch_sub(bytes as u32, Ordering::Relaxed);
    }

    /// Makes the core, unless another thread has made it meanwhile.
    fn grow(
        &self,
        small: &Small,
        make: impl FnOnce(&Config) -> Core<C, MAG>,
    ) -> Result<&Core<C, MAG>, AllocError> {
        let config = &small.objects.config;
        let core = || make(config).with_small(&small.objects);
        let requested = OnceBox::<Core<C, MAG>>::BYTES;
        let made = self.core.get_or_make(&*config.budget, core);
        made.ok_or_else(|| config.budget.refused(requested))
    }

    /// The small slots of the pool: those handed out, and, if it has a core, those that its
    /// magazines hold.
    pub(crate) fn small_slots(&self) -> Vec<NonNull<u8>> {
        self.small.as_ref().map_or_else(Vec::new, |small| small.objects.of(small.pool))
    }

    /// The live slots and their bytes: see [`Core::live_slots`]. `size` returns the bytes of a
    /// small slot's class.
    pub(crate) fn live_slots(
        &mut self,
        size: impl Fn(NonNull<u8>) -> usize,
    ) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        let mut small = self.small_slots();
        small.sort_unstable();
        let own = self.core.get_mut().map(|core| core.live_slots(&mut small));
        let small = small.into_iter().map(move |slot| (slot, size(slot)));
        own.into_iter().flatten().chain(small)
    }

    /// See [`Core::regions`]. Without a core there are none, on the requested pages.
    pub(crate) fn regions(&self) -> (Vec<Region>, Pages, Option<Fallback>) {
        self.get().map_or_else(
            || {
                let small = self.small.as_ref();
                (Vec::new(), small.map_or_else(Pages::default, |s| s.objects.config.pages), None)
            },
            Core::regions,
        )
    }
}

impl<const C: usize, const MAG: usize> Drop for LazyCore<C, MAG> {
    fn drop(&mut self) {
        if let (Some(small), Some(_)) = (&self.small, self.core.get()) {
            small.objects.config.budget.give(OnceBox::<Core<C, MAG>>::BYTES);
        }
    }
}

/// The bytes of a small slot.
///
/// # Safety
/// The slot came from the source and has not been returned.
pub(crate) unsafe fn bytes_of(slot: NonNull<u8>) -> usize {
    // SAFETY: the caller's promise.
    SOURCE.core.size(unsafe { SOURCE.core.class_at(slot.as_ptr()) })
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::{BytesPool, Pool};
    use std::collections::HashSet;
    use std::sync::Barrier;

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
        assert_eq!(budget.held(), 64 + rounded + 8 * size_of::<Tagged<u8>>(), "slots and the list");
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
        assert_eq!(budget.held(), 8 * size_of::<Tagged<u8>>(), "the list");
        drop((lines, bytes, config));
        assert_eq!(budget.held(), 0);
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
        let small: Vec<_> = pool.core.small_slots();
        let half: Vec<_> = small.iter().copied().take(small.len() / 2).collect();
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

    /// Such a pool would take its first slots by one tuning and the others by another.
    #[test]
    fn a_pool_whose_settings_were_changed_since_has_a_core_at_once() {
        let tuning = crate::Tuning::default().slot_align(64).unwrap();
        let pool = Pool::<[u64; 6]>::new("node", &Config { tuning, ..config() });
        let slots: Vec<_> = (0..1000).map(|_| pool.alloc().unwrap()).collect();
        assert!(slots.iter().all(|slot| slot.addr().get().is_multiple_of(64)));
        assert!(pool.core.small_slots().is_empty());
    }

    #[test]
    fn a_limit_holds_for_small_objects() {
        let config = Config::new(Pages::Small, Some(1000)).starting_small();
        let pool = Pool::<Line>::new("line", &config);
        let lines = (0..).map_while(|_| pool.alloc().ok()).count();
        assert_eq!(lines, (1000 - 16 * 8) / 64, "a list of 16 words, and lines");
        assert!(matches!(pool.alloc(), Err(AllocError::Limit { limit: 1000, .. })));
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes: Miri checks every access to a granule's header")]
    fn what_many_indexes_had_goes_back_to_the_system() {
        let made: Vec<_> = (0..10_000)
            .map(|_| {
                let pool = Pool::<[u64; 40]>::new("node", &config());
                assert!((0..5).all(|_| pool.alloc().is_ok()));
                pool
            })
            .collect();
        let most = SOURCE.core.held();
        assert!(most > 10_000 * 5 * 320);
        drop(made);
        assert!(SOURCE.core.held() < most / 4, "{} of {most}", SOURCE.core.held());
    }
}
