//! Marks slots free: in the bitmap of their slab, or, for small ones, by returning them.

use super::Core;
use crate::slab::{Listing, Slab};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::ptr::{NonNull, null};

/// The number of slots whose bits are looked up together, so that their cache misses overlap.
pub(super) const PLACES: usize = 32;

/// The position of a slot's bit.
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

/// Prefetches the line of a bitmap word for writing, so that the misses of several writes overlap.
/// It has no other effect.
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

impl<const GROUPS: usize, const GROUP: usize, const MAG: usize> Core<GROUPS, GROUP, MAG> {
    /// Marks up to [`PLACES`] slots of `class` free.
    ///
    /// # Safety
    /// The slots are free and in no other place (C2). Each is of this core, or a small one of its
    /// pool.
    pub(super) unsafe fn mark_all_free(&self, class: usize, slots: &[*mut u8]) {
        let mut places = [const { Place::NONE }; PLACES];
        let mut own = 0;
        for &slot in slots {
            // SAFETY: the caller's promise.
            let place = unsafe { self.place_or_return(class, slot) };
            let Some(place) = place else { continue };
            prefetch_for_writing(place.word);
            places[own] = place;
            own += 1;
        }
        // Neighbours freed one after the other share a bitmap word: write it once for all of them.
        let mut rest = &places[..own];
        while let Some((&Place { slab, number, word, mut bits }, others)) = rest.split_first() {
            rest = others;
            while let Some((next, others)) = rest.split_first()
                && std::ptr::eq(next.word, word)
            {
                bits |= next.bits;
                rest = others;
            }
            // SAFETY: a slot's place names a slab of this core, which is mapped (C3).
            self.mark_free(unsafe { &*slab }, number / 64, bits);
        }
        self.note_marked(class, own);
    }

    /// Marks one slot of `class` free.
    ///
    /// # Safety
    /// See [`Self::place_or_return`].
    pub(super) unsafe fn mark_slot_free(&self, class: usize, slot: *mut u8) {
        // SAFETY: the caller's promise; C3.
        unsafe {
            if let Some(place) = self.place_or_return(class, slot) {
                self.mark_free(&*place.slab, place.number / 64, place.bits);
                self.note_marked(class, 1);
            }
        }
    }

    /// Finds the bit of a slot of `class`. Returns the slot to its source instead if it is a small
    /// one (`small.rs`).
    ///
    /// # Safety
    /// `slot` is free and in no other place (C2). It is of this core, or a small one of its pool.
    unsafe fn place_or_return(&self, class: usize, slot: *mut u8) -> Option<Place> {
        let (index, slab) = self.slab_at(slot);
        if slab.is_source() && !self.is_source {
            // SAFETY: the caller's promise.
            unsafe { self.return_small(class, slot) };
            return None;
        }
        let class = self.class(slab.class());
        let within = (slot.addr() - slab.first().addr()) as u64;
        let number = ((within * class.reciprocal) >> 32) as usize;
        debug_assert_eq!(number * class.size, within as usize, "not the start of a slot");
        let word = &raw const self.words_at(slab, index)[number / 64];
        Some(Place { slab, number, word, bits: 1 << (number % 64) })
    }

    /// Returns a small slot to its source.
    ///
    /// # Safety
    /// See [`Self::place_or_return`].
    #[cold]
    unsafe fn return_small(&self, class: usize, slot: *mut u8) {
        // `live` subtracts each small slot in a magazine. This one leaves its magazine now, and is
        // in no list from now on.
        self.orphans_live(class).fetch_add(1, Ordering::Relaxed);
        if let (Some(small), Some(slot)) = (&self.small, NonNull::new(slot)) {
            // SAFETY: the caller's promise.
            let freed = unsafe { small.free(slot) };
            debug_assert_eq!(freed, self.size(class), "a slot of another size");
        }
    }

    /// Counts slots of `class` that are marked free. A core of one class has no use for that.
    fn note_marked(&self, class: usize, slots: usize) {
        if Self::CLASSES > 1 {
            self.marked.fetch_add(slots * self.size(class), Ordering::Relaxed);
        }
    }

    fn mark_free(&self, slab: &Slab, word: usize, bits: u64) {
        if slab.free(self.words_of(slab), word, bits) == Listing::Wanted {
            self.class(slab.class()).freed.lock().push(slab);
        }
    }
}
