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

/// Explores the path of a freed slot to its next owner, in every execution with few preemptions:
/// `RUSTFLAGS="--cfg silvics_loom" cargo test --release -p silvics-pool --lib loom`.
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::Mutex;
    use silvics_sync::cell::UnsafeCell;
    use std::sync::Arc;

    /// Explores executions with at most three preemptions. With two it would miss the weaker twins
    /// that lose a slot while it is drained.
    fn explore(test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(test);
    }

    /// The slab's part of the protocol, real or weakened.
    trait Bits: Send + Sync + 'static {
        fn free(&self, word: usize, bits: u64) -> Listing;
        fn take(&self) -> Option<(usize, u64)>;
        fn give_back(&self, word: usize, bits: u64);
        fn settle(&self) -> Listing;
    }

    struct Real {
        slab: Slab,
        words: [AtomicU64; 2],
    }

    impl Real {
        fn new() -> Self {
            Self { slab: slab(), words: [AtomicU64::new(0), AtomicU64::new(0)] }
        }
    }

    impl Bits for Real {
        fn free(&self, word: usize, bits: u64) -> Listing {
            self.slab.free(&self.words, word, bits)
        }
        fn take(&self) -> Option<(usize, u64)> {
            self.slab.take(&self.words)
        }
        fn give_back(&self, word: usize, bits: u64) {
            self.slab.give_back(&self.words, word, bits);
        }
        fn settle(&self) -> Listing {
            self.slab.settle()
        }
    }

    /// A planted weakening of the protocol.
    #[derive(Clone, Copy)]
    struct Weakening {
        /// The ordering of the RMWs of a word.
        word: Ordering,
        /// The ordering of the RMWs of `listed`.
        listed: Ordering,
        /// Whether `settle` reads the summary again after it has cleared `listed`.
        looks_again: bool,
        /// Whether the slot's bit is set before the summary's.
        word_first: bool,
    }

    const SOUND: Weakening = Weakening {
        word: Ordering::AcqRel,
        listed: Ordering::AcqRel,
        looks_again: true,
        word_first: true,
    };

    /// The protocol with a weakening.
    struct Weak {
        real: Real,
        weakening: Weakening,
    }

    impl Weak {
        fn list_unless_listed(&self) -> Listing {
            let listed = self.real.slab.listed.swap(true, self.weakening.listed);
            if listed { Listing::Known } else { Listing::Wanted }
        }
    }

    impl Bits for Weak {
        fn free(&self, word: usize, bits: u64) -> Listing {
            let (words, summary) = (&self.real.words, &self.real.slab.summary);
            let known = if self.weakening.word_first {
                words[word].fetch_or(bits, self.weakening.word) != 0
                    || summary.fetch_or(1 << word, Ordering::Relaxed) != 0
            } else {
                let known = summary.fetch_or(1 << word, Ordering::Relaxed) != 0;
                words[word].fetch_or(bits, self.weakening.word) != 0 || known
            };
            if known { Listing::Known } else { self.list_unless_listed() }
        }
        fn take(&self) -> Option<(usize, u64)> {
            let (words, summary) = (&self.real.words, &self.real.slab.summary);
            loop {
                let bits = summary.load(Ordering::Relaxed);
                if bits == 0 {
                    return None;
                }
                let word = bits.trailing_zeros() as usize;
                summary.fetch_and(!(1 << word), Ordering::Relaxed);
                let bits = words[word].swap(0, self.weakening.word);
                if bits != 0 {
                    return Some((word, bits));
                }
            }
        }
        fn give_back(&self, word: usize, bits: u64) {
            self.real.give_back(word, bits);
        }
        fn settle(&self) -> Listing {
            let slab = &self.real.slab;
            if slab.summary.load(Ordering::Relaxed) != 0 {
                return Listing::Wanted;
            }
            slab.listed.swap(false, self.weakening.listed);
            if !self.weakening.looks_again || slab.summary.load(Ordering::Relaxed) == 0 {
                return Listing::Known;
            }
            self.list_unless_listed()
        }
    }

    /// Three slots in two bitmap words: word and bit by slot number.
    const SLOTS: [(usize, u64); 3] = [(0, 1), (0, 2), (1, 1)];

    /// A class with one slab.
    struct Class<B> {
        bits: B,
        /// Whether the slab is on the list.
        list: Mutex<bool>,
        /// How often each slot was owned. Its owner writes this to the slot.
        slots: [UnsafeCell<u32>; 3],
    }

    // SAFETY: only the owner of a slot touches its content; loom checks that.
    unsafe impl<B: Sync> Sync for Class<B> {}
    // SAFETY: as for `Sync`.
    unsafe impl<B: Send> Send for Class<B> {}

    impl<B: Bits> Class<B> {
        fn new(bits: B) -> Arc<Self> {
            let slots = std::array::from_fn(|_| UnsafeCell::new(0));
            Arc::new(Self { bits, list: Mutex::new(false), slots })
        }

        fn list(&self, listing: Listing) {
            if listing == Listing::Wanted {
                let was = std::mem::replace(&mut *self.list.lock(), true);
                assert!(!was, "listed twice");
            }
        }

        /// The last use of a slot by its owner, followed by its free.
        fn free(&self, slot: usize) {
            // SAFETY: the caller owns the slot.
            self.slots[slot].with_mut(|owned| unsafe { *owned += 1 });
            let (word, bits) = SLOTS[slot];
            self.list(self.bits.free(word, bits));
        }

        /// Takes at most `most` slots off the slab if it is listed, as `refill_from_freed` does.
        fn refill(&self, most: usize) -> Vec<usize> {
            let mut taken = Vec::new();
            if !std::mem::take(&mut *self.list.lock()) {
                return taken;
            }
            while taken.len() < most {
                let Some((word, mut bits)) = self.bits.take() else { break };
                while bits != 0 {
                    if taken.len() == most {
                        self.bits.give_back(word, bits);
                        break;
                    }
                    let bit = bits & bits.wrapping_neg();
                    let slot = SLOTS.iter().position(|s| *s == (word, bit));
                    let slot = slot.expect("a slot that was freed");
                    // SAFETY: the slot was taken above, so it is ours.
                    self.slots[slot].with_mut(|owned| unsafe { *owned += 1 });
                    taken.push(slot);
                    bits &= bits - 1;
                }
            }
            self.list(self.bits.settle());
            taken
        }

        /// After all threads have ended, checks that `taken` and the slots still free are `freed`
        /// different ones.
        fn all_found(&self, mut taken: Vec<usize>, freed: usize) {
            loop {
                let more = self.refill(SLOTS.len());
                if more.is_empty() {
                    break;
                }
                taken.extend(more);
            }
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "a slot was given out twice");
            assert_eq!(taken.len(), freed, "a freed slot is lost");
        }
    }

    fn spawn<B: Bits, T: 'static>(
        class: &Arc<Class<B>>,
        work: impl FnOnce(&Class<B>) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let class = Arc::clone(class);
        thread::spawn(move || work(&class))
    }

    /// One thread frees the two slots in `slots` while another refills.
    fn freed_while_refilled<B: Bits>(
        bits: impl Fn() -> B + Sync + Send + 'static,
        slots: [usize; 2],
    ) {
        explore(move || {
            let class = Class::new(bits());
            let freer = spawn(&class, move |class| slots.map(|slot| class.free(slot)));
            let mut taken = class.refill(3);
            taken.extend(class.refill(3));
            freer.join().unwrap();
            class.all_found(taken, 2);
        });
    }

    #[test]
    fn slots_of_one_word_freed_while_others_refill() {
        freed_while_refilled(Real::new, [0, 1]);
    }

    #[test]
    fn slots_of_two_words_freed_while_others_refill() {
        freed_while_refilled(Real::new, [0, 2]);
    }

    #[test]
    fn two_threads_free_and_one_refills() {
        for slots in [[0, 1], [0, 2]] {
            explore(move || {
                let class = Class::new(Real::new());
                let [one, other] = slots.map(|slot| spawn(&class, move |class| class.free(slot)));
                let taken = class.refill(3);
                one.join().unwrap();
                other.join().unwrap();
                class.all_found(taken, 2);
            });
        }
    }

    #[test]
    fn two_threads_refill_and_one_frees() {
        explore(|| {
            let class = Class::new(Real::new());
            class.free(0);
            let other = spawn(&class, |class| class.refill(3));
            let freer = spawn(&class, |class| class.free(2));
            let mut taken = class.refill(3);
            taken.extend(other.join().unwrap());
            freer.join().unwrap();
            class.all_found(taken, 2);
        });
    }

    #[test]
    fn what_does_not_fit_is_given_back() {
        for freed in [1, 2] {
            explore(move || {
                let class = Class::new(Real::new());
                class.free(0);
                class.free(if freed == 1 { 2 } else { 1 });
                let freer = spawn(&class, move |class| class.free(freed));
                let taken = class.refill(1);
                freer.join().unwrap();
                class.all_found(taken, 3);
            });
        }
    }

    #[test]
    fn a_slot_goes_round_while_another_comes() {
        explore(|| {
            let class = Class::new(Real::new());
            class.free(0);
            let freer = spawn(&class, |class| class.free(1));
            let mut kept = class.refill(1);
            if let Some(slot) = kept.pop() {
                class.free(slot);
            }
            freer.join().unwrap();
            class.all_found(kept, 2);
        });
    }

    impl Class<Real> {
        /// Closes the slab and reopens it, as `shrink` does, if it is listed and both `slots`, in
        /// `words` words, are free. Returns whether it did; the slots are then the caller's.
        fn reopened(&self, slots: [usize; 2], words: usize) -> bool {
            let slab = &self.bits.slab;
            let words = &self.bits.words[..words];
            {
                let mut listed = self.list.lock();
                if !*listed || !slab.is_idle(words, 2) {
                    return false;
                }
                *listed = false;
            }
            while slab.take(words).is_some() {}
            for slot in slots {
                // SAFETY: the slot was taken above, so it is ours.
                self.slots[slot].with_mut(|owned| unsafe { *owned += 1 });
            }
            slab.close();
            slab.open(1, std::ptr::dangling_mut());
            assert!(slab.serves(1));
            true
        }
    }

    #[test]
    fn an_idle_slab_is_closed_while_others_have_just_freed_its_slots() {
        for (other, words) in [(1, 1), (2, 2)] {
            explore(move || {
                let class = Class::new(Real::new());
                class.free(0);
                let freer = spawn(&class, move |class| class.free(other));
                for slot in class.refill(1) {
                    class.free(slot);
                }
                let reopened = class.reopened([0, other], words);
                freer.join().unwrap();
                if reopened {
                    // The slab may be listed late, but its summary is empty.
                    assert_eq!(class.bits.slab.summary.load(Ordering::Relaxed), 0);
                    class.free(other);
                    class.free(0);
                }
                class.all_found(Vec::new(), 2);
            });
        }
    }

    fn weak(weakening: Weakening) -> impl Fn() -> Weak + Sync + Send {
        move || Weak { real: Real::new(), weakening }
    }

    /// The twin of the weakened protocols below: it passes without a weakening.
    #[test]
    fn the_unweakened_twin_is_sound() {
        freed_while_refilled(weak(SOUND), [0, 1]);
        freed_while_refilled(weak(SOUND), [0, 2]);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn relaxed_words_are_caught() {
        freed_while_refilled(weak(Weakening { word: Ordering::Relaxed, ..SOUND }), [0, 1]);
    }

    #[test]
    #[should_panic(expected = "a freed slot is lost")]
    fn a_relaxed_listing_is_caught() {
        freed_while_refilled(weak(Weakening { listed: Ordering::Relaxed, ..SOUND }), [0, 2]);
    }

    #[test]
    #[should_panic(expected = "a freed slot is lost")]
    fn a_settlement_without_a_second_look_is_caught() {
        freed_while_refilled(weak(Weakening { looks_again: false, ..SOUND }), [0, 2]);
    }

    #[test]
    #[should_panic(expected = "a freed slot is lost")]
    fn a_summary_before_its_word_is_caught() {
        freed_while_refilled(weak(Weakening { word_first: false, ..SOUND }), [0, 1]);
    }
}
