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
//!           3. a new run: from the class's open slab, else from a slab that is closed, or new
//! free:   push the slot on the thread's magazine; if full, first
//!           mark its older half free in their slabs' bitmaps
//! ```
//! The granule of a slot is found by masking its address, the slab and the slot's number by
//! shifting and one multiplication. So a free needs no header before the object, and nothing is
//! read or written in the slot itself: a slot that went cold while it was in use stays cold.
//!
//! # Invariants
//! * C1: a thread's magazines are opened only by the thread whose index they have (P1 of
//!   `silvics_sync::per_thread`), the orphans' under its lock, all of them by who has the core
//!   alone; others may count what they hold.
//! * C2: every slot is in exactly one place: handed out, in one magazine, in one run, in its
//!   class's open slab, marked in its slab's bitmap, or with who shrinks the pool.
//! * C3: granules stay mapped as long as the core.
//! * C4: `budget` holds exactly what was taken from the system: thread caches, magazines, and of each
//!   granule the header and the slabs opened so far, or the whole if it is backed as a whole, without those that are closed.
//!
//! # Memory ordering
//! `orphan_live` is a count (Relaxed RMWs lose nothing). The words of a new slab are emptied (Relaxed) before anybody has a slot
//! of it. Everything else shared is in `slab.rs`, in
//! `magazine.rs`, or under a lock.

mod places;
mod shrink;

use crate::budget::Budget;
use crate::growth::Growth;
use crate::magazine::{Magazine, Open, Run};
use crate::pages::{Fallback, HUGE_PAGE, Pages, Region};
use crate::slab::{Listing, MAX_SLOTS, Slab, SlabList};
use crate::{AllocError, Config};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use silvics_sync::per_thread::{PerThread, thread_index};
use std::ptr::{NonNull, null};
use std::sync::Arc;

/// What the slots of a class look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassShape {
    /// Bytes from one slot to the next.
    pub(crate) size: usize,
    /// Slots a thread takes at once from the class's open slab.
    pub(crate) run: usize,
}

/// A magazine grows while frees come in bursts, as from reclamation, but keeps at most this many
/// slots …
const MAGAZINE_SLOTS: usize = if cfg!(silvics_shuttle) { 2 } else { 4096 };
/// … and this many bytes of them.
const MAGAZINE_BYTES: usize = 256 << 10;

/// Of a slab, what colouring may leave empty at its start: one part in so many.
const COLOURED: usize = 16;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Slots whose bits are looked up together, so that their cache misses overlap.
const PLACES: usize = 32;

struct Class {
    size: usize,
    /// ⌈2^32 / size⌉: multiplying by it divides offsets of slots exactly.
    reciprocal: u64,
    run: usize,
    /// Bitmap words of a slab.
    words: usize,
    /// Slabs with freed slots.
    freed: Mutex<SlabList>,
    open: Mutex<OpenSlab>,
}

struct OpenSlab {
    /// The part that no thread has yet.
    rest: Run,
    /// Slabs of the class there have been, this one included.
    opened: usize,
}

/// A thread's magazines, one per class.
pub(crate) struct ThreadCache<const CLASSES: usize> {
    classes: [Magazine; CLASSES],
}

impl<const CLASSES: usize> Default for ThreadCache<CLASSES> {
    fn default() -> Self {
        Self { classes: std::array::from_fn(|_| Magazine::new()) }
    }
}

/// Where a slot's bit is.
#[derive(Clone, Copy)]
struct Place {
    slab: *const Slab,
    number: usize,
    word: *const AtomicU64,
    bits: u64,
}

impl Place {
    const NONE: Self = Self { slab: null(), number: 0, word: null(), bits: 0 };
}

/// Brings the line of a bitmap word close, so that the write that follows does not wait for it
/// alone. Has no other effect.
fn prefetch_for_writing(word: *const AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is harmless whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(word.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = word;
}

/// An allocator of `CLASSES` size classes with magazines of `MAG` slots at first.
pub(crate) struct Core<const CLASSES: usize, const MAG: usize> {
    classes: [Class; CLASSES],
    threads: PerThread<ThreadCache<CLASSES>, Arc<Budget>>,
    /// For threads whose local variables are gone.
    orphan: Mutex<Magazine>,
    orphan_live: [AtomicI64; CLASSES],
    growth: Mutex<Growth>,
    budget: Arc<Budget>,
    colouring: bool,
    /// Bytes of a slab, as a power of two.
    slab_log: u32,
    /// The alignment of slots.
    align: usize,
    /// Bytes of the header's entries, which its bitmaps follow.
    entries: usize,
    /// Bitmap words the header has for each slab. Slabs that need more have them in front of
    /// their slots.
    words: usize,
    /// Where the first slab's slots start: after the header, aligned.
    header: usize,
}

impl<const CLASSES: usize, const MAG: usize> Core<CLASSES, MAG> {
    /// An empty allocator; `align` is that of every slot, `slab` the bytes of a slab (powers of two).
    /// Headers have bitmaps for slots of `bitmapped` bytes or more.
    pub(crate) fn new(
        shapes: [ClassShape; CLASSES],
        align: usize,
        slab: usize,
        bitmapped: usize,
        config: &Config,
    ) -> Self {
        const { assert!(MAG >= 2) };
        assert!(slab.is_power_of_two() && (4096..=HUGE_PAGE).contains(&slab));
        let words = (slab / bitmapped).div_ceil(64);
        let entries = HUGE_PAGE / slab * size_of::<Slab>();
        let header = entries + HUGE_PAGE / slab * words * size_of::<AtomicU64>();
        let header = header.next_multiple_of(align.max(LINE));
        assert!(
            shapes.iter().all(|shape| header + shape.size <= slab),
            "the header must leave room in the first slab"
        );
        Self {
            classes: shapes.map(|shape| {
                assert!(shape.size >= 16 && shape.size.is_multiple_of(align));
                assert!(slab / shape.size <= MAX_SLOTS, "slots too small for one summary word");
                Class {
                    size: shape.size,
                    reciprocal: (1u64 << 32).div_ceil(shape.size as u64),
                    run: shape.run,
                    words: (slab / shape.size).div_ceil(64),
                    freed: Mutex::new(SlabList::new()),
                    open: Mutex::new(OpenSlab { rest: Run::EMPTY, opened: 0 }),
                }
            }),
            threads: PerThread::new(Arc::clone(&config.budget)),
            orphan: Mutex::new(Magazine::new()),
            orphan_live: std::array::from_fn(|_| AtomicI64::new(0)),
            growth: Mutex::new(Growth::new(slab, header, config)),
            budget: Arc::clone(&config.budget),
            colouring: config.tuning.colouring,
            slab_log: slab.ilog2(),
            align,
            entries,
            words,
            header,
        }
    }

    /// Slabs of a granule.
    fn slabs(&self) -> usize {
        HUGE_PAGE >> self.slab_log
    }

    pub(crate) fn size(&self, class: usize) -> usize {
        self.classes[class].size
    }

    /// A slot of `class`, uninitialised.
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

    /// Takes a slot of `class` back.
    ///
    /// # Safety
    /// It came from `alloc(class)` of this core and is used by nobody any more.
    #[inline]
    pub(crate) unsafe fn free(&self, class: usize, slot: NonNull<u8>) {
        let Some(cache) = self.cache(class) else {
            self.orphan_live[class].fetch_sub(1, Ordering::Relaxed);
            // SAFETY: passed on.
            unsafe { self.mark_slot_free(slot.as_ptr()) };
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
        let cache = self.threads.get_or_make(thread_index()?)?;
        Some(&cache.classes[class])
    }

    #[cold]
    fn alloc_orphan(&self, class: usize) -> Result<NonNull<u8>, AllocError> {
        let orphan = self.orphan.lock();
        // SAFETY: who holds the lock is the owner; what is in the magazine and its run is free (C2).
        let slot = unsafe {
            orphan.open(|magazine| {
                let slot = self.refill_open(class, magazine)?;
                // The next caller may want another class: nothing stays behind.
                self.empty(class, magazine);
                Ok(slot)
            })
        }?;
        self.orphan_live[class].fetch_add(1, Ordering::Relaxed);
        // SAFETY: slots are inside mappings.
        Ok(unsafe { NonNull::new_unchecked(slot) })
    }

    /// A slot for the caller, whose own magazine is empty, and some more for the magazine.
    #[cold]
    #[inline(never)]
    fn refill(&self, class: usize, own: &Magazine) -> Result<*mut u8, AllocError> {
        // SAFETY: C1; nothing in there comes back here.
        unsafe { own.open(|magazine| self.refill_open(class, magazine)) }
    }

    fn refill_open(&self, class: usize, magazine: &mut Open<'_>) -> Result<*mut u8, AllocError> {
        if !magazine.has_array() {
            magazine.grow(MAG, MAG, &self.budget); // without one it works, slot by slot
        }
        let slot = match self.refill_from_freed(class, magazine) {
            Some(slot) => slot,
            None => match self.refill_from_run(class, magazine) {
                Ok(slot) => slot,
                // What others have given up meanwhile.
                Err(error) => self.refill_from_freed(class, magazine).ok_or(error)?,
            },
        };
        magazine.note_taken(1 + magazine.len() as i64); // it was empty
        Ok(slot)
    }

    /// Takes never-used slots: one for the caller, some more for the magazine.
    fn refill_from_run(
        &self,
        class: usize,
        magazine: &mut Open<'_>,
    ) -> Result<*mut u8, AllocError> {
        let size = self.classes[class].size;
        if magazine.run().is_empty() {
            *magazine.run() = self.new_run(class)?;
        }
        let slot = magazine.run().split(1, size).next;
        let room = magazine.room();
        let part = magazine.run().split(room.min(MAG / 2), size);
        // Popped last to first: push the highest address first.
        for at in (0..(part.end.addr() - part.next.addr()) / size).rev() {
            let pushed = magazine.try_push(part.next.wrapping_add(at * size));
            debug_assert!(pushed, "no more than there is room for");
        }
        Ok(slot)
    }

    /// Takes freed slots off listed slabs: one for the caller, some more for the magazine.
    fn refill_from_freed(&self, class: usize, magazine: &mut Open<'_>) -> Option<*mut u8> {
        let shape = &self.classes[class];
        let mut given = None;
        let enough = magazine.room().saturating_sub(MAG / 2);
        while given.is_none() || magazine.room() > enough {
            // SAFETY: C3.
            let Some(slab) = (unsafe { shape.freed.lock().pop() }) else { break };
            if !slab.serves(class) {
                self.relist(slab); // S4 of `slab.rs`
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

    /// Ends with a slab that has been found on a list where it is of no use.
    #[cold]
    fn relist(&self, slab: &Slab) {
        if slab.settle() == Listing::Wanted {
            self.classes[slab.class()].freed.lock().push(slab);
        }
    }

    /// A run of never-used slots of `class`.
    fn new_run(&self, class: usize) -> Result<Run, AllocError> {
        let shape = &self.classes[class];
        let mut open = shape.open.lock();
        if open.rest.is_empty() {
            open.rest = self.open_slab(class, open.opened)?;
            open.opened += 1;
        }
        Ok(open.rest.split(shape.run, shape.size))
    }

    /// Opens a new slab for `class`, which has had `before`.
    fn open_slab(&self, class: usize, before: usize) -> Result<Run, AllocError> {
        let (granule, index) = self.growth.lock().slab()?;
        let bytes = 1 << self.slab_log;
        let Class { size, words, .. } = self.classes[class];
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
            // Of a slab that was closed the page behind the header has stayed as it was.
            self.words_at(slab, index).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        #[cfg(silvics_poison)]
        // SAFETY: the slab's slots, which nobody has yet.
        unsafe {
            crate::poison::free(NonNull::new_unchecked(first), slots * size);
        }
        Ok(Run { next: first, end: first.wrapping_add(slots * size) })
    }

    /// How far in a slab of `granule` begins whose class has had `before`.
    fn colour(&self, granule: *mut u8, before: usize) -> usize {
        if !self.colouring {
            return 0;
        }
        let step = self.align.max(LINE);
        let colours = ((1 << self.slab_log) / COLOURED / step).max(1);
        (granule.addr() / HUGE_PAGE + before) % colours * step
    }

    /// Pushes a slot on the caller's own full magazine: the magazine grows, or its older half is
    /// marked free, so that other threads can have it.
    ///
    /// # Safety
    /// The slot is free and of this core.
    #[cold]
    #[inline(never)]
    unsafe fn push_on_full(&self, class: usize, own: &Magazine, slot: *mut u8) {
        let push = |magazine: &mut Open<'_>| {
            let before = magazine.len() as i64;
            let most = (MAGAZINE_BYTES / self.classes[class].size).clamp(MAG, MAGAZINE_SLOTS);
            if !magazine.grow(MAG, most, &self.budget) {
                for part in magazine.older().chunks(PLACES) {
                    // SAFETY: C2: what is in a magazine is free and of this core.
                    unsafe { self.mark_all_free(part) };
                }
                magazine.take_older();
            }
            if !magazine.try_push(slot) {
                // SAFETY: the caller's promise.
                unsafe { self.mark_slot_free(slot) }; // not even an array could be had
            }
            magazine.note_taken(magazine.len() as i64 - before - 1);
        };
        // SAFETY: C1; nothing in there comes back here.
        unsafe { own.open(push) };
    }

    /// Marks at most [`PLACES`] slots free.
    ///
    /// # Safety
    /// They are free, of this core, and in no other place (C2).
    unsafe fn mark_all_free(&self, slots: &[*mut u8]) {
        let mut places = [const { Place::NONE }; PLACES];
        for (place, &slot) in places.iter_mut().zip(slots) {
            // SAFETY: the caller's promise.
            *place = unsafe { self.place(slot) };
            prefetch_for_writing(place.word);
        }
        // Neighbours freed one after the other share a word: one write for all of them.
        let mut rest = &places[..slots.len()];
        while let Some((&Place { slab, number, word, mut bits }, others)) = rest.split_first() {
            rest = others;
            while let Some((next, others)) = rest.split_first()
                && std::ptr::eq(next.word, word)
            {
                bits |= next.bits;
                rest = others;
            }
            // SAFETY: places of slots name slabs of this core (C3).
            self.mark_free(unsafe { &*slab }, number / 64, bits);
        }
    }

    /// Marks one slot free.
    ///
    /// # Safety
    /// As for [`Self::place`].
    unsafe fn mark_slot_free(&self, slot: *mut u8) {
        // SAFETY: the caller's promise; C3.
        unsafe {
            let place = self.place(slot);
            self.mark_free(&*place.slab, place.number / 64, place.bits);
        }
    }

    /// Where the bit of `slot` is.
    ///
    /// # Safety
    /// `slot` is a free slot of this core, in no other place (C2).
    unsafe fn place(&self, slot: *mut u8) -> Place {
        let offset = slot.addr() & (HUGE_PAGE - 1);
        let index = offset >> self.slab_log;
        let slab = self.slab(slot.wrapping_sub(offset), index);
        let class = &self.classes[slab.class()];
        let within = (slot.addr() - slab.first().addr()) as u64;
        let number = ((within * class.reciprocal) >> 32) as usize;
        debug_assert_eq!(number * class.size, within as usize, "not the start of a slot");
        let word = &raw const self.words_at(slab, index)[number / 64];
        Place { slab, number, word, bits: 1 << (number % 64) }
    }

    fn mark_free(&self, slab: &Slab, word: usize, bits: u64) {
        if slab.free(self.words_of(slab), word, bits) == Listing::Wanted {
            self.classes[slab.class()].freed.lock().push(slab);
        }
    }

    /// Entry `index` of the header of `granule`.
    fn slab<'a>(&self, granule: *mut u8, index: usize) -> &'a Slab {
        debug_assert!(index < self.slabs());
        // SAFETY: the header starts with an entry for each slab, zeroed by the system, and zero is a
        // valid `Slab`; mapped as long as the core (C3), which callers do not outlive.
        unsafe { &*granule.cast::<Slab>().add(index) }
    }

    /// The bitmap of `slab`, behind the entries or in front of its slots. Found from the slab's
    /// first slot, whose pointer may go anywhere in the mapping.
    fn words_of(&self, slab: &Slab) -> &[AtomicU64] {
        let offset = slab.first().addr() & (HUGE_PAGE - 1);
        self.words_at(slab, offset >> self.slab_log)
    }

    /// The same for a slab that is known to be entry `index` of its granule.
    fn words_at(&self, slab: &Slab, index: usize) -> &[AtomicU64] {
        let words = self.classes[slab.class()].words;
        let start = if words <= self.words {
            let before = index * self.words * size_of::<AtomicU64>();
            let granule = slab.first().map_addr(|first| first & !(HUGE_PAGE - 1));
            granule.wrapping_add(self.entries + before)
        } else {
            slab.first().wrapping_sub(words * size_of::<AtomicU64>())
        };
        // SAFETY: as in `slab`: as many bitmaps of `self.words` words follow the entries, and
        // `open_slab` left room for `words` in front of the first slot where they are too few.
        unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), words) }
    }

    /// Slots handed out; exact when quiescent.
    pub(crate) fn live(&self, class: usize) -> usize {
        let cached = self.threads.iter().map(|t| t.classes[class].live());
        let orphans = self.orphan_live[class].load(Ordering::Relaxed);
        (cached.sum::<i64>() + orphans).max(0) as usize
    }

    /// The mapped regions, the pages they are on, and why they are not the wanted ones.
    pub(crate) fn regions(&self) -> (Vec<Region>, Pages, Option<Fallback>) {
        self.growth.lock().regions()
    }
}

impl<const CLASSES: usize, const MAG: usize> Drop for Core<CLASSES, MAG> {
    fn drop(&mut self) {
        #[cfg(silvics_shuttle)]
        if !std::thread::panicking() {
            self.assert_conserved();
        }
        let magazines = self.threads.iter().flat_map(|t| &t.classes);
        // SAFETY: nobody else has the core.
        let arrays = magazines.map(|m| unsafe { m.bytes() }).sum::<usize>();
        // SAFETY: as above.
        let orphan = unsafe { self.orphan.lock().bytes() };
        self.budget.give(self.growth.lock().taken() + arrays + orphan);
    }
}
