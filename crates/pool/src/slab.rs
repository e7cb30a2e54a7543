//! The shared state of a slab: which of its slots are free, and whether somebody knows.
//!
//! Slots that leave a thread's cache go to the bitmap of their slab, whichever thread frees them:
//! one bit per slot, one summary bit per bitmap word. A thread whose cache is empty takes whole
//! words, up to 64 neighbouring slots at a time. No slot's memory is touched on either way.
//!
//! # Invariants
//! * S1: a slot's bit is set only by the thread that frees it, and cleared only by the `swap` that
//!   takes it: a free slot belongs to exactly one bit or one cache.
//! * S2: a word that holds bits has its summary bit set, or the thread that set the word's first
//!   bit is about to set it.
//! * S3: a slab with a summary bit set is *listed*, or some thread is about to list it, or some
//!   thread is draining it and will look at the summary again.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `words[w]` | `free`, `give_back` fetch-or | `AcqRel` | `take` swap | the last use of a slot happens before its next one; who finds the word empty comes after the `fetch-and` before the swap that emptied it |
//! | `words[w]` | `take` swap | `AcqRel` | all fetch-ors since the last swap | as above; RMWs continue the release sequence |
//! | `summary` | `free`, `give_back` fetch-or | `SeqCst` | `settle` load | with `listed`: either the freer sees the slab unlisted and lists it, or the drainer sees the bit |
//! | `summary` | `take` fetch-and | Relaxed | – | cleared before the word is swapped, which releases it: who then finds the word empty sets it again (S2) |
//! | `listed` | `free` swap, `settle` store and swap | `SeqCst` | `summary` | as above |

use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::ptr::null_mut;

/// What is left to do after a slot was freed or a slab drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a slab nobody lists is never reused"]
pub(crate) enum Listing {
    /// Nothing: it is known, or has nothing to offer.
    Known,
    /// The caller must put the slab on its class's list.
    Wanted,
}

/// One slab's entry in its granule's header. All zero is a slab without free slots.
#[derive(Debug)]
pub(crate) struct Slab {
    /// One bit per bitmap word that may hold free slots.
    summary: AtomicU64,
    listed: AtomicBool,
    /// The size class it serves.
    class: AtomicU32,
    /// The next slab on the class's list; protected by the list's lock.
    pub(crate) next: AtomicPtr<Slab>,
    /// The address of its first slot.
    first: AtomicPtr<u8>,
}

/// A slab has at most this many slots: one summary word of bitmap words.
pub(crate) const MAX_SLOTS: usize = 64 * 64;

const _: () = assert!(size_of::<Slab>() == 32);

impl Slab {
    /// Makes the slab serve `class` with slots from `first`. Called once, before any slot is
    /// handed out; those who see a slot of it got it through a word or lock that orders this.
    pub(crate) fn open(&self, class: usize, first: *mut u8) {
        self.class.store(class as u32, Ordering::Relaxed);
        self.first.store(first, Ordering::Relaxed);
    }

    pub(crate) fn class(&self) -> usize {
        self.class.load(Ordering::Relaxed) as usize
    }

    /// The address of its first slot; null for a slab never opened.
    pub(crate) fn first(&self) -> *mut u8 {
        self.first.load(Ordering::Relaxed)
    }

    /// Marks the slots `bits` of word `word` free.
    pub(crate) fn free(&self, words: &[AtomicU64], word: usize, bits: u64) -> Listing {
        let before = words[word].fetch_or(bits, Ordering::AcqRel);
        debug_assert_eq!(before & bits, 0, "slots {bits:b} of word {word} freed twice (S1)");
        if before != 0 || self.summary.fetch_or(1 << word, Ordering::SeqCst) != 0 {
            return Listing::Known;
        }
        self.list_unless_listed()
    }

    /// Takes the free slots of one word: the word's index and its bits. `None` if there are none.
    pub(crate) fn take(&self, words: &[AtomicU64]) -> Option<(usize, u64)> {
        loop {
            let summary = self.summary.load(Ordering::Relaxed);
            if summary == 0 {
                return None;
            }
            let word = summary.trailing_zeros() as usize;
            self.summary.fetch_and(!(1 << word), Ordering::Relaxed);
            let bits = words[word].swap(0, Ordering::AcqRel);
            if bits != 0 {
                return Some((word, bits));
            }
        }
    }

    /// Puts bits of a word back that `take` gave and that did not fit: the slab is still being
    /// drained, so `settle` will find them.
    pub(crate) fn give_back(&self, words: &[AtomicU64], word: usize, bits: u64) {
        if words[word].fetch_or(bits, Ordering::AcqRel) == 0 {
            self.summary.fetch_or(1 << word, Ordering::SeqCst);
        }
    }

    /// Ends the draining of a slab that was taken off the list.
    pub(crate) fn settle(&self) -> Listing {
        if self.summary.load(Ordering::Relaxed) != 0 {
            return Listing::Wanted; // still listed by its flag, so nobody else lists it
        }
        self.listed.store(false, Ordering::SeqCst);
        if self.summary.load(Ordering::SeqCst) == 0 {
            return Listing::Known;
        }
        self.list_unless_listed()
    }

    fn list_unless_listed(&self) -> Listing {
        if self.listed.swap(true, Ordering::SeqCst) { Listing::Known } else { Listing::Wanted }
    }
}

/// A list of slabs with free slots: intrusive, last in first out. Its user holds the lock.
#[derive(Debug)]
pub(crate) struct SlabList {
    head: *mut Slab,
}

// SAFETY: the slabs live in granule headers as long as the pool that owns the list.
unsafe impl Send for SlabList {}

impl SlabList {
    pub(crate) const fn new() -> Self {
        Self { head: null_mut() }
    }

    pub(crate) fn push(&mut self, slab: &Slab) {
        slab.next.store(self.head, Ordering::Relaxed);
        self.head = std::ptr::from_ref(slab).cast_mut();
    }

    /// # Safety
    /// The pool's granules are mapped.
    pub(crate) unsafe fn pop<'a>(&mut self) -> Option<&'a Slab> {
        // SAFETY: non-null heads are slabs in mapped headers.
        let slab = unsafe { self.head.as_ref() }?;
        self.head = slab.next.load(Ordering::Relaxed);
        Some(slab)
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    fn slab() -> Slab {
        Slab {
            summary: AtomicU64::new(0),
            listed: AtomicBool::new(false),
            class: AtomicU32::new(0),
            next: AtomicPtr::new(null_mut()),
            first: AtomicPtr::new(null_mut()),
        }
    }

    #[test]
    fn the_first_freed_slot_lists_the_slab_and_later_ones_do_not() {
        let (slab, words) = (slab(), [AtomicU64::new(0), AtomicU64::new(0)]);
        assert_eq!(slab.free(&words, 0, 1 << 3), Listing::Wanted);
        assert_eq!(slab.free(&words, 0, 1 << 5), Listing::Known);
        assert_eq!(slab.free(&words, 1, 1), Listing::Known);
        assert_eq!(slab.take(&words), Some((0, 0b10_1000)));
        assert_eq!(slab.settle(), Listing::Wanted); // word 1 is left
        assert_eq!(slab.take(&words), Some((1, 1)));
        slab.give_back(&words, 1, 1);
        assert_eq!(slab.take(&words), Some((1, 1)));
        assert_eq!(slab.take(&words), None);
        assert_eq!(slab.settle(), Listing::Known);
        assert_eq!(slab.free(&words, 0, 1), Listing::Wanted);
    }
}
