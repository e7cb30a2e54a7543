//! The allocator under [`crate::Pool`] and [`crate::BytesPool`].
//!
//! # Source
//! Slabs: Bonwick, "The slab allocator", USENIX Summer 1994. Per-thread magazines: Bonwick and
//! Adams, "Magazines and vmem", USENIX ATC 2001, section 3. The bitmap that takes the place of
//! the depot is our own.
//!
//! # Algorithm
//! ```text
//! region  = one mapping of 1, 1, 2, 4, … granules (`Tuning`)
//! granule = 2 MiB, aligned: header | slab | slab | …
//! slab    = 64 KiB or so (`Tuning`) of slots of one class: bitmap if not in the header | slots
//!
//! alloc:  pop a slot from the thread's magazine; if empty, refill it from
//!           1. freed slots: take words off listed slabs           (slab.rs)
//!           2. the thread's run of never-used slots; if at its end,
//!           3. a new run: from the class's open slab, else from a slab that is idle, closed or new;
//!              before a new granule, empty the magazines of ended threads and look again at 1; from
//!              time to time, and if a slab is refused, make slabs idle (shrink.rs)
//! free:   push the slot on the thread's magazine; if full, first
//!           mark its older half free in their slabs' bitmaps
//! ```
//! Masking a slot's address gives its granule. Shifts and one multiplication then give its slab and
//! its number in the slab. So a free needs no header in front of the object, and neither call reads
//! or writes the slot itself: a slot that was evicted from the cache while in use stays there.
//!
//! A thread's magazines and runs grow with what it has taken: a run has a quarter of the slots that
//! the thread took of its class before, and at least [`ClassShape::first`]. So a thread that
//! allocates little keeps little, and what it leaves when it ends is little too.
//!
//! # Invariants
//! * C1: only the thread that has or borrows the index of a thread cache opens its magazines (P1
//!   of `silvics_sync::per_thread`). The orphans' magazine is opened under its lock. A thread that
//!   has exclusive access to the core may open all magazines. Other threads may count what
//!   magazines hold.
//! * C2: every slot is in exactly one place: handed out, in one magazine, in one run, in its
//!   class's open slab, marked in its slab's bitmap, or held by a thread that shrinks the pool. A
//!   small slot of the pool's index (`small.rs`) is handed out or in one magazine.
//! * C3: granules stay mapped as long as the core lives.
//! * C4: `budget` holds exactly the bytes taken from the system. These are thread caches, magazines
//!   and, of each granule, the header and the slabs opened so far, or all of it if it is backed as
//!   a whole; in both cases without the slabs whose pages were returned.
//!
//! # Memory ordering
//! `orphan_live` is a count (Relaxed RMWs lose nothing). `ended` and `marked`
//! only say whether a search is worthwhile (Relaxed). The bitmap words of a new slab are cleared
//! (Relaxed) before any thread has a slot of it. All other shared state is in `slab.rs`, in
//! `magazine.rs`, or under a lock.

mod mark;
mod places;
mod shrink;

use crate::budget::Budget;
use crate::growth::Growth;
use crate::magazine::{Magazine, Open, Run};
use crate::pages::{Fallback, HUGE_PAGE, Pages, Region, SMALL_PAGE, populate};
use crate::slab::{Listing, MAX_SLOTS, Slab, SlabList};
use crate::small::SmallObjects;
use crate::{AllocError, Config};
use mark::PLACES;
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use silvics_sync::per_thread::{PerThread, thread_index};
use std::array::from_fn;
use std::ptr::NonNull;
use std::sync::Arc;

/// The shape of a class's slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassShape {
    /// Bytes from one slot to the next.
    pub(crate) size: usize,
    /// The number of slots that a thread first takes at once from the class's open slab.
    pub(crate) first: usize,
    /// The most slots that a thread takes at once.
    pub(crate) run: usize,
}

/// A run has one slot for this many that its thread has taken before.
const TAKEN_PER_RUN: usize = 4;

/// The most slots a magazine keeps. It grows when frees come in bursts, as from reclamation.
const MAGAZINE_SLOTS: usize = if cfg!(silvics_shuttle) { 2 } else { 4096 };
/// The most bytes of slots a magazine keeps.
const MAGAZINE_BYTES: usize = 256 << 10;

/// Colouring may leave up to one part in this many of a slab empty at its start.
const COLOURED: usize = 16;

/// The bytes of a cache line.
const LINE: usize = 64;

struct Class {
    size: usize,
    /// ⌈2^32 / size⌉: multiplying by it divides offsets of slots exactly.
    reciprocal: u64,
    /// See [`ClassShape`].
    first: usize,
    run: usize,
    /// The number of bitmap words of a slab.
    words: usize,
    /// The listed slabs: those with freed slots.
    freed: Mutex<SlabList>,
    open: Mutex<OpenSlab>,
}

struct OpenSlab {
    /// The slots that no thread has taken yet.
    rest: Run,
    /// How many slabs the class has opened, this one included.
    opened: usize,
}

/// A thread's magazines for the classes of a group.
pub(crate) struct ThreadCache<const GROUP: usize> {
    classes: [Magazine; GROUP],
}

impl<const GROUP: usize> Default for ThreadCache<GROUP> {
    fn default() -> Self {
        Self { classes: std::array::from_fn(|_| Magazine::new()) }
    }
}

/// An allocator of `GROUPS` × `GROUP` size classes. The magazines of a thread that allocates often
/// have `MAG` slots or more.
///
/// A thread has magazines for those groups that it uses.
pub(crate) struct Core<const GROUPS: usize, const GROUP: usize, const MAG: usize> {
    classes: [[Class; GROUP]; GROUPS],
    threads: [PerThread<ThreadCache<GROUP>, Arc<Budget>>; GROUPS],
    /// The number of threads that had ended when a thread last emptied their caches.
    ended: AtomicU64,
    /// The magazine for threads whose thread-local variables are destroyed.
    orphan: Mutex<Magazine>,
    orphan_live: [[AtomicI64; GROUP]; GROUPS],
    growth: Mutex<Growth>,
    /// The bytes of the slots that were marked free since a thread last looked for idle slabs.
    marked: AtomicUsize,
    budget: Arc<Budget>,
    colouring: bool,
    /// The binary logarithm of a slab's bytes.
    slab_log: u32,
    /// The alignment of slots.
    align: usize,
    /// The bytes of the header's slab entries. The header's bitmaps follow them.
    entries: usize,
    /// The bitmap words that the header has for each slab. A slab that needs more words has its
    /// bitmap in front of its slots.
    words: usize,
    /// The offset of the first slab's slots: after the header, aligned.
    header: usize,
    /// The small objects of the pool's index, if the pool has started with some.
    small: Option<Arc<SmallObjects>>,
    /// Whether this is the source of small slots.
    is_source: bool,
    /// The most bytes of slots that a magazine keeps.
    magazine_bytes: usize,
}

impl<const GROUPS: usize, const GROUP: usize, const MAG: usize> Core<GROUPS, GROUP, MAG> {
    /// The first capacity of a magazine.
    const FIRST: usize = if MAG / 4 < 2 { 2 } else { MAG / 4 };
    /// The number of classes.
    pub(crate) const CLASSES: usize = GROUPS * GROUP;

    /// Makes an empty allocator with the classes that `shape` tells by their numbers. Every slot is
    /// aligned to `align`, and a slab has `slab` bytes (both powers of two). Headers have bitmaps
    /// for slots of `bitmapped` bytes or more. Granules are backed as a whole if the budget holds
    /// `whole_of` bytes.
    pub(crate) fn new(
        shape: impl Fn(usize) -> ClassShape,
        align: usize,
        slab: usize,
        (bitmapped, whole_of): (usize, usize),
        config: &Config,
    ) -> Self {
        const { assert!(MAG >= Self::FIRST) };
        assert!(slab.is_power_of_two() && (SMALL_PAGE..=HUGE_PAGE).contains(&slab));
        let words = (slab / bitmapped).div_ceil(64);
        let entries = HUGE_PAGE / slab * size_of::<Slab>();
        let header = entries + HUGE_PAGE / slab * words * size_of::<AtomicU64>();
        let header = header.next_multiple_of(align.max(LINE));
        let class = |number| {
            let ClassShape { size, first, run } = shape(number);
            assert!(header + size <= slab, "the header must leave room in the first slab");
            assert!(size >= 16 && size.is_multiple_of(align));
            assert!(slab / size <= MAX_SLOTS, "slots too small for one summary word");
            Class {
                size,
                reciprocal: (1u64 << 32).div_ceil(size as u64),
                first,
                run,
                words: (slab / size).div_ceil(64),
                freed: Mutex::new(SlabList::new()),
                open: Mutex::new(OpenSlab { rest: Run::EMPTY, opened: 0 }),
            }
        };
        Self {
            classes: from_fn(|group| from_fn(|at| class(group * GROUP + at))),
            threads: from_fn(|_| PerThread::new(Arc::clone(&config.budget))),
            ended: AtomicU64::new(0),
            orphan: Mutex::new(Magazine::new()),
            orphan_live: from_fn(|_| from_fn(|_| AtomicI64::new(0))),
            growth: Mutex::new(Growth::new(slab, header, whole_of, config)),
            marked: AtomicUsize::new(0),
            budget: Arc::clone(&config.budget),
            colouring: config.tuning.colouring,
            slab_log: slab.ilog2(),
            align,
            entries,
            words,
            header,
            small: None,
            is_source: false,
            magazine_bytes: MAGAZINE_BYTES,
        }
    }

    /// Makes the core the source of small slots: its slabs are marked, and its magazines stay
    /// small.
    pub(crate) fn into_source(mut self) -> Self {
        (self.is_source, self.magazine_bytes) = (true, 0);
        self
    }

    /// Lets slots of an index's small objects into this core's magazines.
    pub(crate) fn with_small(mut self, small: &Arc<SmallObjects>) -> Self {
        self.small = Some(Arc::clone(small));
        self
    }

    /// The bytes of regions in use: the headers and the slabs, without those whose pages were
    /// returned.
    pub(crate) fn slab_bytes(&self) -> usize {
        self.growth.lock().taken()
    }

    /// Whether the system takes slabs back.
    pub(crate) fn gives_back(&self) -> bool {
        self.growth.lock().gives_back()
    }

    /// Whether a slot is the source's.
    #[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
    pub(crate) fn is_small(&self, slot: *mut u8) -> bool {
        self.slab_at(slot).1.is_source()
    }

    /// The number and the entry of the slab of a slot, which may be a small one.
    fn slab_at<'a>(&self, slot: *mut u8) -> (usize, &'a Slab) {
        let offset = slot.addr() & (HUGE_PAGE - 1);
        let index = offset >> self.slab_log;
        (index, self.slab(slot.wrapping_sub(offset), index))
    }

    /// The number of slabs in a granule.
    fn slabs(&self) -> usize {
        HUGE_PAGE >> self.slab_log
    }

    #[inline(always)]
    fn class(&self, number: usize) -> &Class {
        &self.classes.as_flattened()[number]
    }

    pub(crate) fn size(&self, class: usize) -> usize {
        self.class(class).size
    }

    #[inline(always)]
    fn orphans_live(&self, class: usize) -> &AtomicI64 {
        &self.orphan_live.as_flattened()[class]
    }

    /// Allocates a slot of `class`, uninitialised.
    #[inline]
    pub(crate) fn alloc(&self, class: usize) -> Result<NonNull<u8>, AllocError> {
        let Some(cache) = self.cache(class) else {
            return self.alloc_orphan(class);
        };
        // SAFETY: C1.
        let slot = match unsafe { cache.pop() } {
            Some(slot) => slot,
            None => self.refill(class, cache)?,
        };
        // SAFETY: slots are inside mappings.
        Ok(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Takes back a slot of `class`.
    ///
    /// # Safety
    /// The slot came from `alloc(class)` of this core, or is a small one of its pool. No thread
    /// uses it any more.
    #[inline]
    pub(crate) unsafe fn free(&self, class: usize, slot: NonNull<u8>) {
        let Some(cache) = self.cache(class) else {
            self.orphans_live(class).fetch_sub(1, Ordering::Relaxed);
            // SAFETY: passed on.
            unsafe { self.mark_slot_free(class, slot.as_ptr()) };
            return;
        };
        // SAFETY: C1; the caller's promise.
        unsafe {
            if !cache.try_push(slot.as_ptr()) {
                self.push_on_full(class, cache, slot.as_ptr());
            }
        }
    }

    #[inline(always)]
    fn cache(&self, class: usize) -> Option<&Magazine> {
        let cache = self.threads[class / GROUP].get_or_make(thread_index()?)?;
        Some(&cache.classes[class % GROUP])
    }

    /// The magazines of all threads for a class.
    fn magazines(&self, class: usize) -> impl Iterator<Item = &Magazine> {
        self.threads[class / GROUP].iter().map(move |cache| &cache.classes[class % GROUP])
    }

    #[cold]
    fn alloc_orphan(&self, class: usize) -> Result<NonNull<u8>, AllocError> {
        let orphan = self.orphan.lock();
        // SAFETY: C1: the holder of the lock owns the magazine. C2: slots in the magazine and its
        // run are free.
        let slot = unsafe {
            orphan.open(|magazine| {
                let slot = self.refill_open(class, magazine)?;
                // The next caller may want another class, so no slot stays in the magazine.
                self.empty(class, magazine);
                Ok(slot)
            })
        }?;
        self.orphans_live(class).fetch_add(1, Ordering::Relaxed);
        // SAFETY: slots are inside mappings.
        Ok(unsafe { NonNull::new_unchecked(slot) })
    }

    /// Returns a slot to the caller, whose own magazine is empty, and refills the magazine.
    #[cold]
    #[inline(never)]
    fn refill(&self, class: usize, own: &Magazine) -> Result<*mut u8, AllocError> {
        // SAFETY: C1; `refill_open` does not open the magazine again.
        unsafe { own.open(|magazine| self.refill_open(class, magazine)) }
    }

    fn refill_open(&self, class: usize, magazine: &mut Open<'_>) -> Result<*mut u8, AllocError> {
        if magazine.capacity() < MAG && magazine.taken() >= magazine.capacity() {
            magazine.grow(Self::FIRST, MAG, &self.budget); // without an array, slot by slot
        }
        let slot = match self.refill_from_freed(class, magazine) {
            Some(slot) => slot,
            None => match self.refill_from_run(class, magazine) {
                Ok(slot) => slot,
                // Other threads may have freed slots meanwhile, or have ended.
                Err(error) => {
                    self.empty_newly_ended();
                    match self.refill_from_freed(class, magazine) {
                        Some(slot) => slot,
                        None if self.gather(class) => self.refill_from_run(class, magazine)?,
                        None => return Err(error),
                    }
                }
            },
        };
        magazine.note_taken(1 + magazine.len() as i64); // the magazine was empty
        Ok(slot)
    }

    /// Takes never-used slots: returns one to the caller and pushes more on the magazine.
    fn refill_from_run(
        &self,
        class: usize,
        magazine: &mut Open<'_>,
    ) -> Result<*mut u8, AllocError> {
        let Class { size, first, run, .. } = *self.class(class);
        if magazine.run().is_empty() {
            let slots = (magazine.taken() / TAKEN_PER_RUN).clamp(first, run);
            if self.class(class).open.lock().rest.is_empty() {
                self.gather_in_time(class);
            }
            if self.needs_granule(class)
                && self.empty_newly_ended()
                && let Some(slot) = self.refill_from_freed(class, magazine)
            {
                return Ok(slot);
            }
            *magazine.run() = self.new_run(class, slots)?;
        }
        let slot = magazine.run().split(1, size).next;
        let room = magazine.room();
        let part = magazine.run().split(room.min(MAG / 2), size);
        // Slots are popped in reverse order, so push the highest address first.
        for at in (0..(part.end.addr() - part.next.addr()) / size).rev() {
            let pushed = magazine.try_push(part.next.wrapping_add(at * size));
            debug_assert!(pushed, "no more than there is room for");
        }
        Ok(slot)
    }

    /// Takes freed slots off listed slabs: returns one to the caller and pushes more on the
    /// magazine.
    fn refill_from_freed(&self, class: usize, magazine: &mut Open<'_>) -> Option<*mut u8> {
        let shape = self.class(class);
        let mut given = None;
        let enough = magazine.room().saturating_sub(MAG / 2);
        while given.is_none() || magazine.room() > enough {
            // SAFETY: C3.
            let Some(slab) = (unsafe { shape.freed.lock().pop() }) else { break };
            if !slab.serves(class) {
                self.relist(slab); // S4 in `slab.rs`
                continue;
            }
            let words = self.words_of(slab);
            while given.is_none() || magazine.room() > enough {
                let Some((word, mut bits)) = slab.take(words) else { break };
                while bits != 0 {
                    let number = word * 64 + bits.trailing_zeros() as usize;
                    let slot = slab.first().wrapping_add(number * shape.size);
                    if given.is_none() {
                        given = Some(slot);
                    } else if !magazine.try_push(slot) {
                        slab.give_back(words, word, bits);
                        break;
                    }
                    bits &= bits - 1;
                }
            }
            if slab.settle() == Listing::Wanted {
                shape.freed.lock().push(slab);
            }
        }
        given
    }

    /// Settles a slab found on the list of a class that it does not serve.
    #[cold]
    fn relist(&self, slab: &Slab) {
        if slab.settle() == Listing::Wanted {
            self.class(slab.class()).freed.lock().push(slab);
        }
    }

    /// Whether the next run of never-used slots of `class` needs a further granule.
    fn needs_granule(&self, class: usize) -> bool {
        self.class(class).open.lock().rest.is_empty() && self.growth.lock().is_used_up()
    }

    /// Takes a run of never-used slots of `class`, at most `slots`.
    fn new_run(&self, class: usize, slots: usize) -> Result<Run, AllocError> {
        let shape = self.class(class);
        let mut open = shape.open.lock();
        if open.rest.is_empty() {
            open.rest = self.open_slab(class, open.opened)?;
            open.opened += 1;
        }
        Ok(open.rest.split(slots, shape.size))
    }

    /// Opens a new slab for `class`, which has opened `before` slabs already.
    fn open_slab(&self, class: usize, before: usize) -> Result<Run, AllocError> {
        let (granule, index) = {
            let mut growth = self.growth.lock();
            let (granule, index) = growth.slab()?;
            if self.is_source && index == 0 {
                // Under the lock: a thread that opens another slab of the granule comes after.
                (0..self.slabs()).for_each(|at| self.slab(granule, at).mark_source());
            }
            (granule, index)
        };
        let bytes = 1 << self.slab_log;
        if self.is_source {
            populate(granule.wrapping_add(index * bytes), bytes);
        }
        if let Some(small) = &self.small {
            small.opened_slab(bytes);
        }
        let Class { size, words, .. } = *self.class(class);
        let bitmap = if words > self.words { words * size_of::<AtomicU64>() } else { 0 };
        let end = (index + 1) * bytes;
        let plain = (index * bytes).max(self.header) + bitmap.next_multiple_of(self.align);
        let coloured = plain + self.colour(granule, before);
        let start = if coloured + size <= end { coloured } else { plain };
        let slots = (end - start) / size;
        let first = granule.wrapping_add(start);
        let slab = self.slab(granule, index);
        slab.open(class, first);
        if bitmap > 0 {
            // In a slab that was closed before, the rest of the header's page kept its contents.
            self.words_at(slab, index).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        #[cfg(silvics_poison)]
        // SAFETY: these are the new slab's slots, and no thread has one yet.
        unsafe {
            crate::poison::free(NonNull::new_unchecked(first), slots * size);
        }
        Ok(Run { next: first, end: first.wrapping_add(slots * size) })
    }

    /// The offset that colouring adds at the start of a slab: one in `granule`, of a class that has
    /// opened `before` slabs already.
    fn colour(&self, granule: *mut u8, before: usize) -> usize {
        if !self.colouring {
            return 0;
        }
        let step = self.align.max(LINE);
        let colours = ((1 << self.slab_log) / COLOURED / step).max(1);
        (granule.addr() / HUGE_PAGE + before) % colours * step
    }

    /// Pushes a slot on the caller's own full magazine. The magazine grows, or its older half is
    /// marked free, so that other threads can take it.
    ///
    /// # Safety
    /// The slot is free. It is of this core, or a small one of its pool.
    #[cold]
    #[inline(never)]
    unsafe fn push_on_full(&self, class: usize, own: &Magazine, slot: *mut u8) {
        let push = |magazine: &mut Open<'_>| {
            let before = magazine.len() as i64;
            let most = (self.magazine_bytes / self.size(class)).clamp(MAG, MAGAZINE_SLOTS);
            if !magazine.grow(Self::FIRST, most, &self.budget) {
                for part in magazine.older().chunks(PLACES) {
                    // SAFETY: C2: slots in a magazine are free, and the core's or small.
                    unsafe { self.mark_all_free(class, part) };
                }
                magazine.take_older();
            }
            if !magazine.try_push(slot) {
                // SAFETY: the caller's promise.
                unsafe { self.mark_slot_free(class, slot) }; // the array cannot grow
            }
            magazine.note_taken(magazine.len() as i64 - before - 1);
        };
        // SAFETY: C1; `push` does not open the magazine again.
        unsafe { own.open(push) };
    }

    /// Entry `index` of the header of `granule`.
    fn slab<'a>(&self, granule: *mut u8, index: usize) -> &'a Slab {
        debug_assert!(index < self.slabs());
        // SAFETY: the header starts with an entry for each slab. The system zeroed it, and zero is
        // a valid `Slab`. It is mapped as long as the core (C3), which callers do not outlive.
        unsafe { &*granule.cast::<Slab>().add(index) }
    }

    /// The bitmap of `slab`, found from its first slot, whose pointer may address the whole
    /// mapping. It follows the header's entries or lies in front of the slots.
    fn words_of(&self, slab: &Slab) -> &[AtomicU64] {
        let offset = slab.first().addr() & (HUGE_PAGE - 1);
        self.words_at(slab, offset >> self.slab_log)
    }

    /// The bitmap of `slab`, which is entry `index` of its granule.
    fn words_at(&self, slab: &Slab, index: usize) -> &[AtomicU64] {
        let words = self.class(slab.class()).words;
        let start = if words <= self.words {
            let before = index * self.words * size_of::<AtomicU64>();
            let granule = slab.first().map_addr(|first| first & !(HUGE_PAGE - 1));
            granule.wrapping_add(self.entries + before)
        } else {
            slab.first().wrapping_sub(words * size_of::<AtomicU64>())
        };
        // SAFETY: as many bitmaps of `self.words` words as slabs follow the entries, in a header
        // that is mapped and zeroed (see `slab`). If these are too small, `open_slab` has left room
        // for `words` words in front of the first slot.
        unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), words) }
    }

    /// The number of live slots of `class`, less the small slots in magazines. Exact when
    /// quiescent.
    pub(crate) fn live(&self, class: usize) -> i64 {
        let cached = self.magazines(class).map(Magazine::live);
        cached.sum::<i64>() + self.orphans_live(class).load(Ordering::Relaxed)
    }

    /// The mapped regions, the pages they are on, and why these are not the requested ones.
    pub(crate) fn regions(&self) -> (Vec<Region>, Pages, Option<Fallback>) {
        self.growth.lock().regions()
    }
}

impl<const GROUPS: usize, const GROUP: usize, const MAG: usize> Drop for Core<GROUPS, GROUP, MAG> {
    fn drop(&mut self) {
        #[cfg(silvics_shuttle)]
        if !std::thread::panicking() {
            self.assert_conserved();
        }
        let magazines = (0..Self::CLASSES).flat_map(|class| self.magazines(class));
        // SAFETY: C1: nobody else has the core.
        let arrays = magazines.map(|m| unsafe { m.bytes() }).sum::<usize>();
        // SAFETY: C1: nobody else has the core.
        let orphan = unsafe { self.orphan.lock().bytes() };
        self.budget.give(self.growth.lock().taken() + arrays + orphan);
    }
}
