//! The shared state of a slab: which of its slots are free, and whether the slab is listed.
//!
//! A slot that leaves a thread's cache goes to the bitmap of its slab, whichever thread freed it.
//! The bitmap has one bit per slot, and the summary one bit per bitmap word. A thread with an empty
//! cache takes whole words, up to 64 neighbouring slots at a time. Neither step touches the memory
//! of a slot.
//!
//! # Invariants
//! * S1: only the thread that frees a slot sets its bit, and only the `swap` that takes the slot
//!   clears it. So a free slot belongs to exactly one bit or one cache.
//! * S2: a word that contains bits has its summary bit set, or the thread that set the word's first
//!   bit is about to set it.
//! * S3: a slab with a summary bit set is *listed*, or some thread is about to list it, or some
//!   thread is draining it and will read the summary again.
//! * S4: a thread that freed a slot may list its slab late, after the slab was closed or reopened
//!   for another class. It then lists the slab once, on the list of one of these classes. So a
//!   thread that pops a slab from a list must check that the slab serves that class. If it does
//!   not, the thread settles the slab and puts it on the right list.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `words[w]` | `free`, `give_back` fetch-or | `AcqRel` | `take` swap | the last use of a slot happens before its next use; a thread that finds the word empty comes after the `fetch-and` that precedes the swap which emptied it |
//! | `words[w]` | `take` swap | `AcqRel` | all fetch-ors since the last swap | the last use of a slot happens before its next use; RMWs continue the release sequence |
//! | `summary` | `free`, `give_back` fetch-or | Relaxed | – | `free` then swaps `listed`, which releases the bit, or leaves that to the thread that set an earlier bit; in `give_back` the draining thread itself reads it next |
//! | `summary` | `take` fetch-and | Relaxed | – | cleared before the word is swapped, which releases it: a thread that then finds the word empty sets the bit again (S2) |
//! | `summary` | `take`, `settle` load | Relaxed | – | a stale value ends the draining early; the last load in `settle` comes after the swap of `listed` |
//! | `listed` | `free` swap | `AcqRel` | `settle` swap | of two swaps the later sees the earlier: `settle` sees the bit of an earlier freer (S3), and a later freer sees the slab unlisted and lists it |
//! | `listed` | `settle` swap | `AcqRel` | `free` swap | see the `free` swap |
//! | `first` | `open` store | Release | `serves` | a thread that sees the slab open also sees which class it serves |
//! | `first` | `serves` load | Acquire | `open` | see the `open` store |
//! | `first`, `class` | other loads | Relaxed | – | the reader owns a slot of the slab, or the slab itself |
//! | `is_source` | all | Relaxed | – | stored before the granule's first slab is opened; see `open_slab` |
//! | `summary`, `words[w]` | `is_idle` loads | Relaxed | – | bits are only added while the slab is off its list; `close` takes them, which acquires |
//!
//! # Checked by
//! `loom_tests` explores every execution under the C11 model with at most three preemptions. It
//! must reject weaker twins of the protocol.

use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::ptr::null_mut;

/// The step that the caller must take after freeing a slot or draining a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a slab nobody lists is never reused"]
pub(crate) enum Listing {
    /// Nothing: the slab is listed, or has no free slot.
    Known,
    /// Put the slab on its class's list.
    Wanted,
}

/// A slab's entry in the header of its granule. All zeros mean a slab without free slots.
#[derive(Debug)]
pub(crate) struct Slab {
    /// One bit per bitmap word, set if the word may contain free slots.
    summary: AtomicU64,
    listed: AtomicBool,
    /// Whether the granule is one of the source of small slots (`small.rs`).
    is_source: AtomicBool,
    /// The size class that it serves.
    class: AtomicU32,
    /// The next slab on the class's list; accessed under the list's lock.
    pub(crate) next: AtomicPtr<Slab>,
    /// The address of its first slot.
    first: AtomicPtr<u8>,
}

/// The most slots of a slab: one summary word has a bit for each of 64 bitmap words.
pub(crate) const MAX_SLOTS: usize = 64 * 64;

#[cfg(not(silvics_loom))] // loom's atomics are larger
const _: () = assert!(size_of::<Slab>() == 32);

impl Slab {
    /// Makes the slab serve `class`, with slots from `first`.
    ///
    /// The slab is new or closed, and no slot of it has been handed out since. A thread that sees
    /// one of its slots received it through a word or a lock that orders this call before.
    pub(crate) fn open(&self, class: usize, first: *mut u8) {
        self.class.store(class as u32, Ordering::Relaxed);
        self.first.store(first, Ordering::Release);
    }

    /// Whether the slab is open and serves `class`. A thread asks this about a slab it took off
    /// that class's list (S4).
    pub(crate) fn serves(&self, class: usize) -> bool {
        !self.first.load(Ordering::Acquire).is_null() && self.class() == class
    }

    /// Whether all `slots` slots are free. They then stay free until the caller, which has taken
    /// the slab off its list, hands them out. `words` are the bitmap words that contain bits of
    /// slots.
    ///
    /// If the answer is true, no thread is about to set a summary bit. Such a thread found its word
    /// empty before, and no word whose summary bit is set was emptied since.
    pub(crate) fn is_idle(&self, words: &[AtomicU64], slots: usize) -> bool {
        let summary = self.summary.load(Ordering::Relaxed);
        summary.count_ones() as usize == words.len()
            && words.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum::<u32>()
                == slots as u32
    }

    /// Ends the use of a slab that is off its list, after the caller has taken all its slots. A
    /// thread that freed one of them may still list the slab (S4).
    pub(crate) fn close(&self) {
        self.first.store(null_mut(), Ordering::Relaxed);
        let listing = self.settle();
        debug_assert_eq!(listing, Listing::Known, "nobody has a slot to free");
    }

    /// Marks the entry as one of the source of small slots, before any slot of its granule is
    /// handed out.
    pub(crate) fn mark_source(&self) {
        self.is_source.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_source(&self) -> bool {
        self.is_source.load(Ordering::Relaxed)
    }

    pub(crate) fn class(&self) -> usize {
        self.class.load(Ordering::Relaxed) as usize
    }

    /// The address of its first slot, or null if the slab is not open.
    pub(crate) fn first(&self) -> *mut u8 {
        self.first.load(Ordering::Relaxed)
    }

    /// Marks free the slots `bits` of word `word`.
    pub(crate) fn free(&self, words: &[AtomicU64], word: usize, bits: u64) -> Listing {
        let before = words[word].fetch_or(bits, Ordering::AcqRel);
        debug_assert_eq!(before & bits, 0, "slots {bits:b} of word {word} freed twice (S1)");
        if before != 0 || self.summary.fetch_or(1 << word, Ordering::Relaxed) != 0 {
            return Listing::Known;
        }
        self.list_unless_listed()
    }

    /// Takes the free slots of one word: returns the word's index and its bits, or `None` if there
    /// are none.
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

    /// Puts back bits that `take` returned and that did not fit. The caller is still draining the
    /// slab, so its `settle` will find them.
    pub(crate) fn give_back(&self, words: &[AtomicU64], word: usize, bits: u64) {
        if words[word].fetch_or(bits, Ordering::AcqRel) == 0 {
            self.summary.fetch_or(1 << word, Ordering::Relaxed);
        }
    }

    /// Ends the draining of a slab that was taken off the list.
    pub(crate) fn settle(&self) -> Listing {
        if self.summary.load(Ordering::Relaxed) != 0 {
            return Listing::Wanted; // `listed` is still true, so no other thread lists it
        }
        // A swap, not a store: it acquires the bits of a freer that still saw the slab listed.
        self.listed.swap(false, Ordering::AcqRel);
        if self.summary.load(Ordering::Relaxed) == 0 {
            return Listing::Known;
        }
        self.list_unless_listed()
    }

    fn list_unless_listed(&self) -> Listing {
        if self.listed.swap(true, Ordering::AcqRel) { Listing::Known } else { Listing::Wanted }
    }
}

/// An intrusive stack of slabs with free slots. Its user holds the lock.
#[derive(Debug)]
pub(crate) struct SlabList {
    head: *mut Slab,
}

// SAFETY: the slabs live in granule headers, which are mapped as long as the pool that owns the
// list.
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
    /// The granules of the pool are mapped.
    pub(crate) unsafe fn pop<'a>(&mut self) -> Option<&'a Slab> {
        // SAFETY: a non-null head is a slab in the header of a granule, which is mapped.
        let slab = unsafe { self.head.as_ref() }?;
        self.head = slab.next.load(Ordering::Relaxed);
        Some(slab)
    }
}

#[cfg(test)]
fn slab() -> Slab {
    Slab {
        summary: AtomicU64::new(0),
        listed: AtomicBool::new(false),
        is_source: AtomicBool::new(false),
        class: AtomicU32::new(0),
        next: AtomicPtr::new(null_mut()),
        first: AtomicPtr::new(null_mut()),
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

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

#[cfg(all(test, silvics_loom))]
mod loom_tests;
