//! Explores the path of a freed slot to its next owner, in every execution with few preemptions:
//! `.ci/step loom`.

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
fn freed_while_refilled<B: Bits>(bits: impl Fn() -> B + Sync + Send + 'static, slots: [usize; 2]) {
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
