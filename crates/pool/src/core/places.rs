//! Finds all slots of a core, for a caller with exclusive access.
//!
//! Handing a slot out writes nothing, so a live slot has no mark of its own. C2 identifies it: the
//! live slots of opened slabs are those in no other place.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `words[w]` | load | Relaxed | – | the caller has exclusive access; gaining it ordered all earlier accesses before these loads |

use super::{Class, Core};
use crate::slab::Slab;
use silvics_sync::atomic::Ordering;
use std::ptr::NonNull;

impl<const GROUPS: usize, const GROUP: usize, const MAG: usize> Core<GROUPS, GROUP, MAG> {
    /// The live slots with their bytes: slab by slab, and by ascending address in each slab. Takes
    /// those slots that magazines hold out of `small`, the small slots of the pool.
    pub(crate) fn live_slots<'a>(
        &'a mut self,
        small: &mut Vec<(NonNull<u8>, usize)>,
    ) -> impl Iterator<Item = (NonNull<u8>, usize)> + use<'a, GROUPS, GROUP, MAG> {
        let mut free = [self.in_magazines(), self.in_runs(), self.in_open_slabs()].concat();
        free.sort_unstable();
        small.retain(|(slot, _)| free.binary_search(&slot.as_ptr()).is_err());
        self.slots_besides(free)
    }

    /// The slots that are neither marked free nor in `free`, which is sorted.
    fn slots_besides(&self, free: Vec<*mut u8>) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        self.opened_slabs().flat_map(move |slab| self.slots_of_besides(slab, &free))
    }

    /// The slots of `slab` that are neither marked free nor in `free`, which is sorted.
    fn slots_of_besides(&self, slab: &Slab, free: &[*mut u8]) -> Vec<(NonNull<u8>, usize)> {
        let size = self.size(slab.class());
        let words = self.words_of(slab);
        let before = free.partition_point(|&slot| slot < slab.first());
        let mut free = free[before..].iter().copied().peekable();
        let slots = (0..self.slots_of(slab)).filter_map(|number| {
            let slot = slab.first().wrapping_add(number * size);
            let bits = words[number / 64].load(Ordering::Relaxed);
            let marked = bits >> (number % 64) & 1 == 1;
            let held = free.next_if_eq(&slot).is_some();
            debug_assert!(!(marked && held), "a slot in two places (C2)");
            if marked || held { None } else { Some((NonNull::new(slot)?, size)) }
        });
        slots.collect()
    }

    /// The slots in the magazines of threads. The orphans' magazine is empty whenever its lock is
    /// free.
    fn in_magazines(&mut self) -> Vec<*mut u8> {
        let magazines = (0..Self::CLASSES).flat_map(|class| self.magazines(class));
        // SAFETY: C1: the caller has exclusive access to the core.
        magazines.flat_map(|magazine| unsafe { magazine.open(|m| m.slots().to_vec()) }).collect()
    }

    /// The never-used slots in the runs of threads.
    fn in_runs(&mut self) -> Vec<*mut u8> {
        let mut slots = Vec::new();
        for class in 0..Self::CLASSES {
            for magazine in self.magazines(class) {
                // SAFETY: C1: the caller has exclusive access to the core.
                let run = unsafe { magazine.open(|m| *m.run()) };
                slots.extend(run.slots(self.size(class)));
            }
        }
        slots
    }

    /// The never-used slots that no thread has taken yet.
    fn in_open_slabs(&self) -> Vec<*mut u8> {
        let rest = |class: &Class| class.open.lock().rest.slots(class.size);
        self.classes.as_flattened().iter().flat_map(rest).collect()
    }

    /// The slabs opened so far.
    fn opened_slabs(&self) -> impl Iterator<Item = &Slab> {
        let granules: Vec<*mut u8> = self.growth.lock().granules().collect();
        let slabs = move |granule| (0..self.slabs()).map(move |at| self.slab(granule, at));
        granules.into_iter().flat_map(slabs).filter(|slab| !slab.first().is_null())
    }

    /// The number of slots in an opened slab.
    pub(super) fn slots_of(&self, slab: &Slab) -> usize {
        let bytes = 1 << self.slab_log;
        (bytes - slab.first().addr() % bytes) / self.size(slab.class())
    }

    /// Checks C2, with exclusive access: the opened slots are as many as all live slots and those
    /// in magazines, in runs, in open slabs and in the bitmaps of listed slabs.
    ///
    /// # Panics
    /// Panics if a slot is lost or in two places.
    #[cfg(silvics_shuttle)]
    pub(super) fn assert_conserved(&self) {
        let mut opened = vec![0; Self::CLASSES];
        for slab in self.opened_slabs() {
            opened[slab.class()] += self.slots_of(slab);
        }
        for (number, class) in self.classes.as_flattened().iter().enumerate() {
            let slots = |run: crate::magazine::Run| run.slots(class.size).count();
            let magazines = self.magazines(number);
            // SAFETY: C1: nobody else has the core.
            let held = magazines.map(|m| unsafe { m.open(|m| m.len() + slots(*m.run())) });
            let kept = self.live(number).max(0) as usize
                + held.sum::<usize>()
                + slots(class.open.lock().rest);
            let (opened, mut marked) = (opened[number], 0);
            // SAFETY: C3. Slots marked in a slab that is not listed are lost (S3).
            while let Some(slab) = unsafe { class.freed.lock().pop() } {
                if !slab.serves(number) {
                    continue; // S4: the slab has no slots of this class
                }
                let bits = self.words_of(slab).iter().map(|word| word.load(Ordering::Relaxed));
                marked += bits.map(|bits| bits.count_ones() as usize).sum::<usize>();
            }
            assert_eq!(
                opened,
                kept + marked,
                "{opened} slots of {} bytes were opened, but {marked} are marked free \
                and {kept} are elsewhere (C2)",
                class.size
            );
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use crate::core::{ClassShape, Core};
    use crate::{Config, Pages, Tuning};
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    type Set = BTreeSet<(usize, usize)>;

    fn set(slots: impl Iterator<Item = (std::ptr::NonNull<u8>, usize)>) -> Set {
        slots.map(|(slot, bytes)| (slot.addr().get(), bytes)).collect()
    }

    /// Two classes after three threads have used them: slots are marked free and in every place
    /// that the census must leave out. A forgotten place would show its slots as live.
    #[test]
    #[cfg_attr(miri, ignore = "takes minutes: Miri checks every access to a granule's header")]
    fn every_place_of_free_slots_counts() {
        let shapes = [(48, 100), (2000, 4)].map(|(size, run)| ClassShape { size, first: run, run });
        let tuning = Tuning::default().colouring(true);
        let config = Config { tuning, ..Config::new(Pages::Small, None) };
        let mut core =
            Core::<1, 2, 16>::new(|class| shapes[class], 16, 16 << 10, (48, 64 << 20), &config);
        let together = Barrier::new(3);
        let work = |seed: usize| {
            together.wait(); // so that each thread has a cache
            let mut kept = Set::new();
            for (class, ClassShape { size, .. }) in shapes.into_iter().enumerate() {
                let slots: Vec<_> = (0..300).map(|_| core.alloc(class).unwrap()).collect();
                for (at, slot) in slots.into_iter().enumerate() {
                    if (at * 7919 + seed).is_multiple_of(5) {
                        kept.insert((slot.addr().get(), size));
                    } else {
                        // SAFETY: allocated above, used no more.
                        unsafe { core.free(class, slot) };
                    }
                }
            }
            together.wait();
            kept
        };
        let mut kept: Set = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|seed| scope.spawn(move || work(seed))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        // Some never-used slots are left, in a run and in an open slab.
        while core.in_runs().is_empty() || core.in_open_slabs().is_empty() {
            kept.insert((core.alloc(0).unwrap().addr().get(), 48));
        }
        assert_eq!(set(core.live_slots(&mut Vec::new())), kept);
        assert_eq!(core.live_slots(&mut Vec::new()).count(), kept.len(), "each once");

        let places = [core.in_magazines(), core.in_runs(), core.in_open_slabs()];
        let opened: usize = core.opened_slabs().map(|slab| core.slots_of(slab)).sum();
        let marked = opened - kept.len() - places.iter().map(Vec::len).sum::<usize>();
        for (number, place) in places.iter().enumerate() {
            let others: Vec<_> =
                places.iter().enumerate().filter(|(at, _)| *at != number).collect();
            let others = others.into_iter().flat_map(|(_, place)| place).copied();
            let mut others = others.collect::<Vec<_>>();
            others.sort_unstable();
            let (found, missed) = (core.slots_besides(others).count(), place.len());
            assert!(missed > 0, "nothing in place {number}: not tested");
            assert_eq!(found, kept.len() + missed, "place {number}");
        }
        assert!(marked > 0, "nothing is marked free: not tested");
    }
}
