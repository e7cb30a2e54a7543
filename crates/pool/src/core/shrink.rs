//! Slabs without a slot in use go back to the system.
//!
//! # Algorithm
//! ```text
//! shrink:  mark free what this thread has in its magazines and runs
//!          for each class:
//!            mark free what nobody has had of the open slab
//!            under the lock of the list: take off it the slabs all of whose slots are marked free
//!            of each, take the slots; tell the system that the pages are not needed; close it, and back to `Growth`
//! ```
//! A closed slab keeps its addresses, and its entry in its granule's header, which stays. The next slab that any class
//! opens is a closed one, if there is one. Where the system takes back larger pages only, nothing is done. What others do meanwhile: S4 of `slab.rs`.

use super::Core;
use crate::growth::Growth;
use crate::magazine::{Open, Run};
use crate::pages::HUGE_PAGE;
use crate::slab::{Slab, SlabList};
use silvics_sync::per_thread::thread_index;

impl<const CLASSES: usize, const MAG: usize> Core<CLASSES, MAG> {
    /// Gives the slabs back to the system of which no slot is handed out or at another thread's hand. How many bytes.
    pub(crate) fn shrink(&self) -> usize {
        if !self.growth.lock().gives_back() {
            return 0;
        }
        self.give_up_own();
        (0..CLASSES).map(|class| self.shrink_class(class)).sum()
    }

    fn shrink_class(&self, class: usize) -> usize {
        let shape = &self.classes[class];
        let rest = std::mem::replace(&mut shape.open.lock().rest, Run::EMPTY);
        // SAFETY: nobody has had them (C2).
        rest.slots(shape.size).for_each(|slot| unsafe { self.mark_slot_free(slot) });
        // Whoever finds no slot while the slabs are off their list waits for this, and has one of them then.
        let mut growth = self.growth.lock();
        let idle = self.take_idle(class);
        let given = idle.into_iter().map(|slab| self.close(slab, &mut growth)).sum();
        growth.sort_closed();
        given
    }

    /// Takes the idle slabs of a class off its list.
    fn take_idle(&self, class: usize) -> Vec<&Slab> {
        let mut idle = Vec::new();
        // Whoever needs a slot waits: so nobody finds the list empty that is not.
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

    /// Closes an idle slab that is off its list, unless the system does not take its pages. The bytes that have gone back.
    fn close(&self, slab: &Slab, growth: &mut Growth) -> usize {
        let words = self.words_of(slab);
        while slab.take(words).is_some() {}
        let first = slab.first();
        let granule = first.map_addr(|first| first & !(HUGE_PAGE - 1));
        let index = (first.addr() - granule.addr()) >> self.slab_log;
        // SAFETY: its slots are ours, and so is a bitmap in front of them, which nobody writes without a slot.
        let Some(given) = (unsafe { growth.discard(granule, index) }) else {
            // As if all had been freed now.
            let slots = self.slots_of(slab);
            for word in 0..slots.div_ceil(64) {
                let bits = u64::MAX >> 64usize.saturating_sub(slots - 64 * word);
                slab.give_back(words, word, bits);
            }
            self.relist(slab);
            return 0;
        };
        #[cfg(silvics_poison)]
        // SAFETY: as above.
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

    /// Marks free what is at the calling thread's hand.
    fn give_up_own(&self) {
        let own = thread_index().and_then(|index| self.threads.get(index));
        for (class, magazine) in own.iter().flat_map(|own| own.classes.iter().enumerate()) {
            // SAFETY: C1; nothing in there comes back here.
            unsafe {
                magazine.open(|magazine| {
                    let held = magazine.len() as i64;
                    self.empty(class, magazine);
                    magazine.note_taken(-held);
                });
            }
        }
    }

    /// Marks free what is in a magazine, and its run.
    pub(super) fn empty(&self, class: usize, magazine: &mut Open<'_>) {
        let run = std::mem::replace(magazine.run(), Run::EMPTY);
        // SAFETY: C2: what is in a magazine and its run is free.
        unsafe {
            while let Some(slot) = magazine.pop() {
                self.mark_slot_free(slot);
            }
            run.slots(self.classes[class].size).for_each(|slot| self.mark_slot_free(slot));
        }
    }
}
