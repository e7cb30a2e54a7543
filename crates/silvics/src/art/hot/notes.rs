//! The notes of a thread's lookups. Another thread takes them while the owner writes more.
//!
//! # Algorithm
//! The notes are in a ring of words that only the owner of the cell writes. A full ring is written
//! over from the oldest note on. The taker copies the ring meanwhile, and then drops the words that
//! may have been written over: it works like the reader of a sequence lock, but keeps the sound
//! part instead of trying again (Boehm, "Can seqlocks get along with programming language memory
//! models?", MSPC 2012, for the fences). Neither waits for the other, and the writer has no locked
//! instruction, which would end the overlap of lookups. A note is its bytes in words, and one more
//! word with their number, so that notes can be separated from the end backwards.
//!
//! # Invariants
//! * S1: word `n` of all words ever written, counted from 0, is at place `n` modulo the ring's
//!   length, until `claimed` is larger than the sum of `n` and the length.
//! * S2: words below `written` belong to whole notes.
//! * S3: `taken` is where a note begins.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `claimed`, `written` | own load | Relaxed | – | the owner of the cell alone writes them, and P2 of `per_thread` hands them over |
//! | `claimed` | store, then fence | Relaxed, Release | the taker's fence | a taker that has read a word of a later note sees its place claimed |
//! | word | store, load | Relaxed | – | between the fences and `written` |
//! | `written` | store / load | Release / Acquire | each other | the words below are there (S2) |
//! | `claimed` | fence, then the taker's load | Acquire, Relaxed | the writer's fence | words that have been written over are dropped (S1) |
//! | `taken` | load, store | Relaxed | – | the takers' own: they come one after the other |
//!
//! The tests below check this in every execution of the C11 model. Their weaker twins take words of
//! two notes for one.

use silvics_pool::Budget;
use silvics_sync::atomic::{AtomicU64, Ordering, fence};
use std::ops::Range;
use std::sync::OnceLock;

/// The size of a word in bytes.
pub(super) const WORD: usize = size_of::<u64>();

/// The notes of a thread.
#[derive(Default)]
pub(super) struct Notes {
    /// The words, a power of two of them. The first note makes the ring.
    ring: OnceLock<Vec<AtomicU64>>,
    /// The number of words ever written, including those that are being written.
    claimed: AtomicU64,
    /// The number of words ever written whose notes are complete.
    written: AtomicU64,
    /// The number of words that have been taken.
    taken: AtomicU64,
}

/// The place of a word.
#[inline(always)]
fn place(ring: &[AtomicU64], word: u64) -> &AtomicU64 {
    &ring[word as usize & (ring.len() - 1)]
}

impl Notes {
    /// The bytes that the ring takes from the budget.
    pub(super) fn bytes(&self) -> usize {
        self.ring.get().map_or(0, |ring| ring.len() * WORD)
    }

    /// The ring. The first call makes it, with `bytes` bytes from the budget.
    pub(super) fn ring(&self, bytes: usize, budget: &Budget) -> Option<&[AtomicU64]> {
        self.ring.get().or_else(|| self.make(bytes, budget)).map(Vec::as_slice)
    }

    #[cold]
    fn make(&self, bytes: usize, budget: &Budget) -> Option<&Vec<AtomicU64>> {
        let count = 1 << (bytes / WORD).ilog2();
        budget.take(count * WORD).ok()?;
        let mut ring = Vec::new();
        if ring.try_reserve_exact(count).is_err() {
            budget.give(count * WORD);
            return None;
        }
        ring.resize_with(count, || AtomicU64::new(0));
        Some(self.ring.get_or_init(|| ring)) // the cell's owner alone makes one
    }

    /// Writes a note. The note and its length must fit in the ring.
    #[inline]
    pub(super) fn add(&self, ring: &[AtomicU64], note: &[u8]) {
        let mut at = self.written.load(Ordering::Relaxed);
        let end = at + note.len().div_ceil(WORD) as u64 + 1;
        self.claimed.store(end, Ordering::Relaxed);
        fence(Ordering::Release);
        for part in note.chunks(WORD) {
            let mut word = [0; WORD];
            word[..part.len()].copy_from_slice(part);
            place(ring, at).store(u64::from_ne_bytes(word), Ordering::Relaxed);
            at += 1;
        }
        place(ring, at).store(note.len() as u64, Ordering::Relaxed);
        self.written.store(end, Ordering::Release);
    }

    /// Moves the notes to a log, the latest last, if the log has room for all. One caller at a
    /// time.
    pub(super) fn empty_into(&self, log: &mut Vec<u8>) {
        let Some(ring) = self.ring.get() else { return };
        if log.capacity() - log.len() < ring.len() * WORD {
            return;
        }
        let words = self.words(ring);
        copy(ring, words.clone(), log);
        fence(Ordering::Acquire);
        self.drop_others(ring, words, log);
    }

    /// The words to take.
    fn words(&self, ring: &[AtomicU64]) -> Range<u64> {
        let end = self.written.load(Ordering::Acquire);
        let oldest = end.saturating_sub(ring.len() as u64);
        self.taken.load(Ordering::Relaxed).max(oldest)..end
    }

    /// Removes all but whole notes from these words, whose copies are at the end of the log.
    fn drop_others(&self, ring: &[AtomicU64], words: Range<u64>, log: &mut Vec<u8>) {
        let claimed = self.claimed.load(Ordering::Relaxed);
        let same = claimed.saturating_sub(ring.len() as u64).clamp(words.start, words.end); // S1
        let bytes_to = |word| log.len() - (words.end - word) as usize * WORD;
        let whole: usize = notes(&log[bytes_to(same)..]).map(bytes_of).sum();
        log.drain(bytes_to(words.start)..log.len() - whole);
        self.taken.store(words.end, Ordering::Relaxed);
    }
}

/// Appends a copy of these words of a ring to the log.
fn copy(ring: &[AtomicU64], words: Range<u64>, log: &mut Vec<u8>) {
    for at in words {
        log.extend(place(ring, at).load(Ordering::Relaxed).to_ne_bytes());
    }
}

/// The bytes that a note takes.
fn bytes_of(note: &[u8]) -> usize {
    note.len().next_multiple_of(WORD) + WORD
}

/// The whole notes in a log, the last one first.
pub(super) fn notes(log: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = log;
    std::iter::from_fn(move || {
        let (before, len) = rest.split_last_chunk::<WORD>()?;
        let len = u64::from_ne_bytes(*len) as usize;
        let begin = before.len().checked_sub(len.next_multiple_of(WORD))?;
        rest = &before[..begin];
        Some(&before[begin..begin + len])
    })
}

/// Loom explores every execution of these tests (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    /// The length of a ring with room for two notes.
    const LEN: usize = 4;
    const NOTED: u64 = 3;

    /// The protocol of notes, or a weaker one.
    trait Protocol: Send + Sync + 'static {
        fn add(&self, ring: &[AtomicU64], note: &[u8]);
        fn empty_into(&self, log: &mut Vec<u8>);
    }

    impl Protocol for Notes {
        fn add(&self, ring: &[AtomicU64], note: &[u8]) {
            self.add(ring, note);
        }
        fn empty_into(&self, log: &mut Vec<u8>) {
            self.empty_into(log);
        }
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Weakening {
        ClaimedLate,
        WriterWithoutFence,
        TakerWithoutFence,
        WrittenRelaxed,
    }
    use Weakening::*;

    struct Weak(Notes, Weakening);

    impl Protocol for Weak {
        fn add(&self, ring: &[AtomicU64], note: &[u8]) {
            let Self(notes, weakening) = self;
            let at = notes.written.load(Ordering::Relaxed);
            let claim = || notes.claimed.store(at + 2, Ordering::Relaxed);
            if *weakening != ClaimedLate {
                claim();
            }
            if *weakening != WriterWithoutFence {
                fence(Ordering::Release);
            }
            place(ring, at).store(u64::from_ne_bytes(note.try_into().unwrap()), Ordering::Relaxed);
            place(ring, at + 1).store(note.len() as u64, Ordering::Relaxed);
            if *weakening == ClaimedLate {
                claim();
            }
            let released = *weakening != WrittenRelaxed;
            let ordering = if released { Ordering::Release } else { Ordering::Relaxed };
            notes.written.store(at + 2, ordering);
        }
        fn empty_into(&self, log: &mut Vec<u8>) {
            let Self(notes, weakening) = self;
            let ring = notes.ring.get().unwrap();
            let words = notes.words(ring);
            copy(ring, words.clone(), log);
            if *weakening != TakerWithoutFence {
                fence(Ordering::Acquire);
            }
            notes.drop_others(ring, words, log);
        }
    }

    /// The keys in a log, the first note first. A note that nobody wrote is 0.
    fn keys(log: &[u8]) -> Vec<u64> {
        let key = |note: &[u8]| note.try_into().map_or(0, u64::from_ne_bytes);
        let mut keys: Vec<u64> = notes(log).map(key).collect();
        keys.reverse();
        keys
    }

    /// A thread writes more than the ring has room for, while another takes notes.
    fn taken_meanwhile<P: Protocol>(protocol: fn(Notes) -> P, notes: fn(&P) -> &Notes) {
        loom::model(move || {
            let made = Notes::default();
            made.ring.set((0..LEN).map(|_| AtomicU64::new(0)).collect()).expect("the first");
            let shared = Arc::new(protocol(made));
            let writer = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                let ring = notes(&writer).ring.get().unwrap();
                (1..=NOTED).for_each(|key| writer.add(ring, &key.to_ne_bytes()));
            });
            let take = move |from: &P| {
                let mut log = Vec::with_capacity(LEN * WORD);
                from.empty_into(&mut log);
                keys(&log)
            };
            // It needs a thread of its own: loom lets nothing come between a spawn and the caller's
            // next step.
            let taker = Arc::clone(&shared);
            let meanwhile = thread::spawn(move || take(&taker)).join().unwrap();
            writer.join().unwrap();
            let after = take(&shared);
            let known = meanwhile.last().copied().unwrap_or(0);
            let consecutive = meanwhile.windows(2).all(|two| two[0] + 1 == two[1]);
            let latest = after.iter().copied().eq(2.max(known + 1)..=NOTED);
            let sound = consecutive && known <= NOTED && latest;
            assert!(sound, "taken {meanwhile:?}, then {after:?}");
        });
    }

    #[test]
    fn loom_notes_are_taken_whole() {
        taken_meanwhile(|notes| notes, |notes| notes);
    }

    fn weakened(protocol: fn(Notes) -> Weak) {
        taken_meanwhile(protocol, |weak| &weak.0);
    }

    #[test]
    #[should_panic(expected = "taken")]
    fn loom_catches_a_late_claim() {
        weakened(|notes| Weak(notes, ClaimedLate));
    }

    #[test]
    #[should_panic(expected = "taken")]
    fn loom_catches_a_writer_without_fence() {
        weakened(|notes| Weak(notes, WriterWithoutFence));
    }

    #[test]
    #[should_panic(expected = "taken")]
    fn loom_catches_a_taker_without_fence() {
        weakened(|notes| Weak(notes, TakerWithoutFence));
    }

    #[test]
    #[should_panic(expected = "taken")]
    fn loom_catches_words_that_are_not_there() {
        weakened(|notes| Weak(notes, WrittenRelaxed));
    }
}
