//! Returns slabs without a used slot to the system.
//!
//! # Algorithm
//! ```text
//! shrink:  mark free the slots in this thread's magazines and runs
//!          for each class:
//!            mark free the never-used slots of the open slab
//!            under the list's lock: unlist the slabs all of whose slots are marked free
//!            for each of them: take its slots; discard its pages; close it and pass it to `Growth`
//! ```
//! A closed slab keeps its addresses, and its entry in the header of its granule, which stays
//! mapped. The next slab that any class opens is a closed one, if there is one. If the system only
//! takes back pages larger than a slab, `shrink` does nothing. S4 in `slab.rs` says what other
//! threads may do meanwhile.

use super::Core;
use crate::growth::Growth;
use crate::magazine::{Open, Run};
use crate::pages::HUGE_PAGE;
use crate::slab::{Slab, SlabList};
use silvics_sync::per_thread::thread_index;

impl<const CLASSES: usize, const MAG: usize> Core<CLASSES, MAG> {
    /// Returns slabs to the system that have no live slot and none in another thread's cache.
    /// Returns the number of bytes.
    pub(crate) fn shrink(&self) -> usize {
        if !self.gives_back() {
            return 0;
        }
        self.give_up_own();
        (0..CLASSES).map(|class| self.shrink_class(class)).sum()
    }

    fn shrink_class(&self, class: usize) -> usize {
        let shape = &self.classes[class];
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
        let mut freed = self.classes[class].freed.lock();
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
        let words = self.words_of(slab);
        while slab.take(words).is_some() {}
        let first = slab.first();
        let granule = first.map_addr(|first| first & !(HUGE_PAGE - 1));
        let index = (first.addr() - granule.addr()) >> self.slab_log;
        // SAFETY: the caller has taken all its slots (C2). The bitmap in front of them is only
        // written by threads that have a slot.
        let Some(given) = (unsafe { growth.discard(granule, index) }) else {
            // The system kept the pages: mark all slots free again.
            let slots = self.slots_of(slab);
            for word in 0..slots.div_ceil(64) {
                let bits = u64::MAX >> 64usize.saturating_sub(slots - 64 * word);
                slab.give_back(words, word, bits);
            }
            self.relist(slab);
            return 0;
        };
        #[cfg(silvics_poison)]
        // SAFETY: the slots are the caller's, taken above.
        unsafe {
            crate::poison::forget(
                std::ptr::NonNull::new_unchecked(first),
                self.slots_of(slab) * self.size(slab.class()),
            );
        }
        slab.close();
        growth.closed(granule, index);
        given
    }

    /// Marks free the slots in the calling thread's magazines and runs.
    fn give_up_own(&self) {
        let own = thread_index().and_then(|index| self.threads.get(index));
        for (class, magazine) in own.iter().flat_map(|own| own.classes.iter().enumerate()) {
            // SAFETY: C1; `work` does not open the magazine again.
            unsafe {
                magazine.open(|magazine| {
                    let held = magazine.len() as i64;
                    self.empty(class, magazine);
                    magazine.note_taken(-held);
                });
            }
        }
    }

    /// Marks free the slots in a magazine and in its run.
    pub(super) fn empty(&self, class: usize, magazine: &mut Open<'_>) {
        let run = std::mem::replace(magazine.run(), Run::EMPTY);
        // SAFETY: C2: slots in a magazine and its run are free.
        unsafe {
            while let Some(slot) = magazine.pop() {
                self.mark_slot_free(class, slot);
            }
            let run = run.slots(self.classes[class].size);
            run.for_each(|slot| self.mark_slot_free(class, slot));
        }
    }
}
