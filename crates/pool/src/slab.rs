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
//! * S4: who has set the bit of a slot and is about to list the slab may come when that is closed, or open again for another
//!   class: it lists it all the same, once, on the list of one of these classes. So whoever takes a slab off a list asks
//!   first whether it serves that class, and otherwise settles it, and puts it on the list where it belongs.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `words[w]` | `free`, `give_back` fetch-or | `AcqRel` | `take` swap | the last use of a slot happens before its next one; who finds the word empty comes after the `fetch-and` before the swap that emptied it |
//! | `words[w]` | `take` swap | `AcqRel` | all fetch-ors since the last swap | as above; RMWs continue the release sequence |
//! | `summary` | `free`, `give_back` fetch-or | Relaxed | – | `free` swaps `listed` after it, which releases it, or leaves that to who set an earlier bit; `give_back` is the drainer's own |
//! | `summary` | `take` fetch-and | Relaxed | – | cleared before the word is swapped, which releases it: who then finds the word empty sets it again (S2) |
//! | `summary` | `take`, `settle` load | Relaxed | – | a stale look ends the draining early; the last one in `settle` comes behind the swap of `listed` |
//! | `listed` | `free` swap | `AcqRel` | `settle` swap | of two swaps the later sees the earlier: a freer that comes first has its bit seen (S3), one that comes second sees the slab unlisted and lists it |
//! | `listed` | `settle` swap | `AcqRel` | `free` swap | as above |
//! | `first` | `open` store | Release | `serves` | who sees the slab open sees which class it serves |
//! | `first` | `serves` load | Acquire | `open` | as above |
//! | `first`, `class` | other loads | Relaxed | – | by whoever has a slot of the slab, or has the slab itself |
//! | `summary`, `words[w]` | `is_idle` loads | Relaxed | – | bits only come while the slab is off its list; `close` takes them, which acquires |
//!
//! # Checked by
//! `loom_tests`, in every execution under the C11 model with at most three preemptions, with weaker
//! twins that it must catch.

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

#[cfg(not(silvics_loom))] // whose atomics are larger
const _: () = assert!(size_of::<Slab>() == 32);

impl Slab {
    /// Makes the slab serve `class` with slots from `first`. Called before any slot is
    /// handed out, when it is new or has been closed; those who see a slot of it got it through a word or lock that orders this.
    pub(crate) fn open(&self, class: usize, first: *mut u8) {
        self.class.store(class as u32, Ordering::Relaxed);
        self.first.store(first, Ordering::Release);
    }

    /// Whether it is open and serves `class`: asked by whoever has taken it off that class's list (S4).
    pub(crate) fn serves(&self, class: usize) -> bool {
        !self.first.load(Ordering::Acquire).is_null() && self.class() == class
    }

    /// Whether all of its `slots` are free, and stay so until the caller, who has taken the slab off its list, gives it away.
    /// `words` are those that have bits of slots.
    ///
    /// Then nobody is about to set a bit of the summary: who does so comes after the word was empty, and a word that
    /// has its summary bit was not emptied since.
    pub(crate) fn is_idle(&self, words: &[AtomicU64], slots: usize) -> bool {
        let summary = self.summary.load(Ordering::Relaxed);
        summary.count_ones() as usize == words.len()
            && words.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum::<u32>()
                == slots as u32
    }

    /// Ends the use of a slab that is off its list and whose slots the caller has taken all. Who has freed one of them
    /// may still list it (S4).
    pub(crate) fn close(&self) {
        self.first.store(null_mut(), Ordering::Relaxed);
        let listing = self.settle();
        debug_assert_eq!(listing, Listing::Known, "nobody has a slot to free");
    }

    pub(crate) fn class(&self) -> usize {
        self.class.load(Ordering::Relaxed) as usize
    }

    /// The address of its first slot; null for a slab that is not open.
    pub(crate) fn first(&self) -> *mut u8 {
        self.first.load(Ordering::Relaxed)
    }

    /// Marks the slots `bits` of word `word` free.
    pub(crate) fn free(&self, words: &[AtomicU64], word: usize, bits: u64) -> Listing {
        let before = words[word].fetch_or(bits, Ordering::AcqRel);
        debug_assert_eq!(before & bits, 0, "slots {bits:b} of word {word} freed twice (S1)");
        if before != 0 || self.summary.fetch_or(1 << word, Ordering::Relaxed) != 0 {
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
            self.summary.fetch_or(1 << word, Ordering::Relaxed);
        }
    }

    /// Ends the draining of a slab that was taken off the list.
    pub(crate) fn settle(&self) -> Listing {
        if self.summary.load(Ordering::Relaxed) != 0 {
            return Listing::Wanted; // still listed by its flag, so nobody else lists it
        }
        // A swap, not a store: it acquires what a freer released that still saw the slab listed.
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

/// The path of a freed slot to its next owner, in every execution with few preemptions:
/// `RUSTFLAGS="--cfg silvics_loom" cargo test --release -p silvics-pool --lib loom`.
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::Mutex;
    use silvics_sync::cell::UnsafeCell;
    use std::sync::Arc;

    /// With at most three preemptions: two would miss the weaker twins that lose a slot while it
    /// is drained.
    fn explore(test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(test);
    }

    /// The slab's part of the protocol, or a weaker one's.
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

    /// What one seeded weakening changes.
    #[derive(Clone, Copy)]
    struct Weakening {
        /// The RMWs of a word.
        word: Ordering,
        /// The RMWs of `listed`.
        listed: Ordering,
        /// Whether `settle` looks at the summary after it has taken the slab off the list.
        looks_again: bool,
        /// Whether the slot's bit comes before the summary's.
        word_first: bool,
    }

    const SOUND: Weakening = Weakening {
        word: Ordering::AcqRel,
        listed: Ordering::AcqRel,
        looks_again: true,
        word_first: true,
    };

    /// The same protocol, with a weakening.
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

    /// Slots by number, of two bitmap words.
    const SLOTS: [(usize, u64); 3] = [(0, 1), (0, 2), (1, 1)];

    /// A class with one slab.
    struct Class<B> {
        bits: B,
        /// Whether the slab is on the list.
        list: Mutex<bool>,
        /// What a slot's owner writes to it: how often it was owned.
        slots: [UnsafeCell<u32>; 3],
    }

    // SAFETY: a slot's content is touched by its owner only; loom checks that.
    unsafe impl<B: Sync> Sync for Class<B> {}
    // SAFETY: as above.
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

        /// Its owner's last use of a slot, and its way back.
        fn free(&self, slot: usize) {
            // SAFETY: the caller owns the slot.
            self.slots[slot].with_mut(|owned| unsafe { *owned += 1 });
            let (word, bits) = SLOTS[slot];
            self.list(self.bits.free(word, bits));
        }

        /// Takes slots off the slab if it is listed, as `refill_from_freed` does: `most` at most.
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
                    // SAFETY: taken, so ours.
                    self.slots[slot].with_mut(|owned| unsafe { *owned += 1 });
                    taken.push(slot);
                    bits &= bits - 1;
                }
            }
            self.list(self.bits.settle());
            taken
        }

        /// All threads have ended: with what they took, every slot of `freed` is found once.
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

    /// One thread frees two slots, another refills; `slots` says which.
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
        /// Closes the slab if it is listed and both slots, of so many words, are free, as `shrink` does, and opens it
        /// again. Whether it did: then its slots are the caller's.
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
                // SAFETY: taken, so ours.
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
                    // Listed late, perhaps, but not as if there were something to take.
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

    /// The twin of what follows: unweakened, it passes.
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
