//! Returns slabs without a used slot to the system.
//!
//! # Algorithm
//! ```text
//! shrink:  mark free the slots in the magazines and runs of this thread and of ended ones
//!          for each class:
//!            mark free the never-used slots of the open slab
//!            under the list's lock: unlist the slabs all of whose slots are marked free
//!            for each of them: take its slots; discard its pages; close it and pass it to `Growth`
//! gather:  mark free the slots in the magazines and runs of this thread
//!          unlist and close idle slabs in the same way, but keep their pages: they are opened next
//! ```
//! A thread gathers before it opens a slab, if slots of a sixteenth of the regions were marked free
//! since the last search, and when a slab was refused to it. So the slabs of a class that objects
//! have outgrown serve other classes.
//!
//! Ended threads are those whose indexes no living thread has. A borrowed index
//! ([`for_each_ended`]) lets this thread open their magazines. A thread that is about to take a new
//! granule empties them too. So what ended threads hold is used before a pool grows by a granule.
//!
//! A closed slab keeps its addresses, and its entry in the header of its granule, which stays
//! mapped. The next slab that any class opens is an idle one, or else a closed one. If the system
//! only takes back pages larger than a slab, `shrink` does nothing. S4 in `slab.rs` says what other
//! threads may do meanwhile.

use super::Core;
use crate::growth::Growth;
use crate::magazine::{Open, Run};
use crate::pages::HUGE_PAGE;
use crate::slab::{Slab, SlabList};
use silvics_sync::atomic::Ordering;
use silvics_sync::per_thread::{ThreadIndex, for_each_ended, thread_index, threads_ended};
use std::cell::Cell;

/// The contents of magazines that were emptied.
#[derive(Clone, Copy, Default)]
struct Emptied {
    had_slots: bool,
    /// Whether they were those of all ended threads.
    complete: bool,
    /// The bytes of the magazines' arrays.
    arrays: usize,
}

impl<const GROUPS: usize, const GROUP: usize, const MAG: usize> Core<GROUPS, GROUP, MAG> {
    /// Returns slabs to the system that have no live slot and none in another living thread's
    /// cache.
    /// Returns the number of bytes.
    pub(crate) fn shrink(&self) -> usize {
        if !self.gives_back() {
            return 0;
        }
        let own = thread_index().map_or(0, |own| self.empty_all(own, None).arrays);
        let arrays = own + self.empty_ended().arrays;
        let idle = self.growth.lock().discard_idle();
        arrays + idle + (0..Self::CLASSES).map(|class| self.shrink_class(class)).sum::<usize>()
    }

    /// Looks for idle slabs, which any class may open next, if it is time. The caller has its
    /// magazine of `class` open.
    pub(super) fn gather_in_time(&self, class: usize) {
        if Self::CLASSES > 1 && self.is_time_to_gather() {
            self.gather(class);
        }
    }

    fn is_time_to_gather(&self) -> bool {
        self.growth.lock().is_time_to_gather(self.marked.load(Ordering::Relaxed))
    }

    /// Looks for idle slabs, which any class may open next, unless no slot was marked free since
    /// the last search. Returns whether there are any. The caller has its magazine of `class` open.
    pub(super) fn gather(&self, class: usize) -> bool {
        if Self::CLASSES == 1 {
            return false;
        }
        if let Some(own) = thread_index() {
            self.empty_all(own, Some(class));
        }
        // As in `shrink_class`: a thread that finds no slot waits for this lock. So does one that
        // gathers, too, and then finds what this thread has found.
        let mut growth = self.growth.lock();
        if self.marked.swap(0, Ordering::Relaxed) > 0 {
            for class in 0..Self::CLASSES {
                for slab in self.take_idle(class) {
                    if growth.reserve_idle() {
                        self.keep(slab, &mut growth);
                    } else {
                        self.relist(slab);
                    }
                }
            }
        }
        growth.has_idle()
    }

    fn shrink_class(&self, class: usize) -> usize {
        let shape = self.class(class);
        let rest = std::mem::replace(&mut shape.open.lock().rest, Run::EMPTY);
        // SAFETY: C2: no thread has had these slots.
        rest.slots(shape.size).for_each(|slot| unsafe { self.mark_slot_free(class, slot) });
        // A thread that finds no slot while the slabs are unlisted waits for this lock, and then
        // reopens one of them.
        let mut growth = self.growth.lock();
        let idle = self.take_idle(class);
        let given = idle.into_iter().map(|slab| self.close(slab, &mut growth)).sum();
        growth.sort_closed();
        given
    }

    /// Takes the idle slabs of `class` off its list.
    fn take_idle(&self, class: usize) -> Vec<&Slab> {
        let mut idle = Vec::new();
        // A thread that needs a slot waits for the lock, so it never sees the emptied list.
        let mut freed = self.class(class).freed.lock();
        let mut listed = std::mem::replace(&mut *freed, SlabList::new());
        let mut of_others = SlabList::new();
        // SAFETY: C3.
        while let Some(slab) = unsafe { listed.pop() } {
            if !slab.serves(class) {
                of_others.push(slab);
            } else if self.is_idle(slab) && idle.try_reserve(1).is_ok() {
                idle.push(slab);
            } else {
                freed.push(slab);
            }
        }
        drop(freed);
        // SAFETY: C3.
        while let Some(slab) = unsafe { of_others.pop() } {
            self.relist(slab);
        }
        idle
    }

    fn is_idle(&self, slab: &Slab) -> bool {
        let slots = self.slots_of(slab);
        slab.is_idle(&self.words_of(slab)[..slots.div_ceil(64)], slots)
    }

    /// Closes an idle slab that is off its list, unless the system refuses its pages. Returns the
    /// number of bytes returned to the system.
    fn close(&self, slab: &Slab, growth: &mut Growth) -> usize {
        let (granule, index) = self.take_whole(slab);
        // SAFETY: the caller has taken all its slots (C2). The bitmap in front of them is only
        // written by threads that have a slot.
        let Some(given) = (unsafe { growth.discard(granule, index) }) else {
            // The system kept the pages: mark all slots free again.
            let (words, slots) = (self.words_of(slab), self.slots_of(slab));
            for word in 0..slots.div_ceil(64) {
                let bits = u64::MAX >> 64usize.saturating_sub(slots - 64 * word);
                slab.give_back(words, word, bits);
            }
            self.relist(slab);
            return 0;
        };
        #[cfg(silvics_poison)]
        self.forget(slab);
        slab.close();
        growth.closed(granule, index);
        given
    }

    /// Closes an idle slab that is off its list, and keeps its pages.
    fn keep(&self, slab: &Slab, growth: &mut Growth) {
        let (granule, index) = self.take_whole(slab);
        #[cfg(silvics_poison)]
        self.forget(slab);
        slab.close();
        growth.keep(granule, index);
    }

    /// Takes all slots of an idle slab that is off its list. Returns its granule and its number
    /// there.
    fn take_whole(&self, slab: &Slab) -> (*mut u8, usize) {
        let words = self.words_of(slab);
        while slab.take(words).is_some() {}
        let first = slab.first();
        let granule = first.map_addr(|first| first & !(HUGE_PAGE - 1));
        (granule, (first.addr() - granule.addr()) >> self.slab_log)
    }

    /// Says that the slots of a slab, which the caller has taken, are no slots any more.
    #[cfg(silvics_poison)]
    fn forget(&self, slab: &Slab) {
        // SAFETY: the slots are the caller's.
        unsafe {
            crate::poison::forget(
                std::ptr::NonNull::new_unchecked(slab.first()),
                self.slots_of(slab) * self.size(slab.class()),
            );
        }
    }

    /// Marks free the slots in the magazines and runs of ended threads, and frees the magazines'
    /// arrays. O(ended threads × classes).
    fn empty_ended(&self) -> Emptied {
        let all = Cell::new(Emptied::default());
        let complete = for_each_ended(|index| {
            let (before, more) = (all.get(), self.empty_all(index, None));
            let had_slots = before.had_slots | more.had_slots;
            all.set(Emptied { had_slots, arrays: before.arrays + more.arrays, ..before });
        });
        Emptied { complete, ..all.get() }
    }

    /// Does the same if a thread has ended since the last time. Returns whether there were slots.
    /// So an allocation that fails again and again looks once.
    pub(super) fn empty_newly_ended(&self) -> bool {
        let ended = threads_ended();
        if self.ended.load(Ordering::Relaxed) == ended {
            return false;
        }
        let emptied = self.empty_ended();
        if emptied.complete {
            self.ended.store(ended, Ordering::Relaxed);
        }
        emptied.had_slots
    }

    /// Does the same for the magazines and runs at one index, which the calling thread has or
    /// borrows. The caller has none of the magazines open but that of `besides`.
    fn empty_all(&self, index: ThreadIndex, besides: Option<usize>) -> Emptied {
        let mut all = Emptied::default();
        for (group, threads) in self.threads.iter().enumerate() {
            let Some(cache) = threads.get(index) else { continue };
            for (at, magazine) in cache.classes.iter().enumerate() {
                if besides == Some(group * GROUP + at) {
                    continue;
                }
                // SAFETY: C1, by P1; `empty` does not open the magazine again.
                unsafe {
                    magazine.open(|magazine| {
                        let held = magazine.len() as i64;
                        all.had_slots |= held > 0 || !magazine.run().is_empty();
                        self.empty(group * GROUP + at, magazine);
                        magazine.note_taken(-held);
                        all.arrays += magazine.drop_array(&self.budget);
                    });
                }
            }
        }
        all
    }

    /// Marks free the slots in a magazine and in its run.
    pub(super) fn empty(&self, class: usize, magazine: &mut Open<'_>) {
        let run = std::mem::replace(magazine.run(), Run::EMPTY);
        // SAFETY: C2: slots in a magazine and its run are free.
        unsafe {
            while let Some(slot) = magazine.pop() {
                self.mark_slot_free(class, slot);
            }
            let run = run.slots(self.size(class));
            run.for_each(|slot| self.mark_slot_free(class, slot));
        }
    }
}
