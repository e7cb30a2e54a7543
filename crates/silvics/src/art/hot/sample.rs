//! Which keys are looked up: a sample, noted by each thread for itself.
//!
//! # Algorithm
//! A thread counts its lookups down in a variable of its own, whatever tree they are in, and notes the key of
//! the one at which it comes to zero: in the tree's cell for this thread, which has two halves. When one
//! is full the other is emptied and filled, so that the notes of the last half are there. The next count is random,
//! between nothing and twice the mean, so that no period of the lookups is hit again and again.
//!
//! What is noted is the key as bytes, up to [`MOST_BYTES`]: no address in the tree is good after the guard.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `every`, `bytes` | load, store | Relaxed | – | settings: a lookup that sees the old ones notes a key more or less |
//! | `busy` | swap / store | Acquire / Release | each other | the halves belong to who has set it; a lookup that finds it set goes on without a note |

use super::super::key::Parts;
use silvics_pool::Budget;
use silvics_sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use silvics_sync::backoff::Backoff;
use silvics_sync::cell::UnsafeCell;
use silvics_sync::per_thread::{PerThread, thread_index};
use std::cell::Cell;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The bytes of a key that is noted, at most: paths and names; longer keys are not sampled.
pub const MOST_BYTES: usize = 1024;
/// In front of each note: its length.
const HEAD: usize = 2;

/// How lookups are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// One lookup in so many is noted, on average.
    pub every: NonZeroU32,
    /// Bytes of notes for each thread that looks keys up: the latest half of them, at least, is kept. A `u64` takes
    /// ten. At least twice what the longest noted key takes. Threads that have notes already keep what they have.
    pub bytes: usize,
}

impl Default for Sampling {
    /// One in 64, of which 512 KiB are kept.
    fn default() -> Self {
        Self { every: NonZeroU32::MIN.saturating_add(63), bytes: 512 << 10 }
    }
}

std::thread_local! {
    /// How many lookups are to come before the next one that is noted.
    static COUNTDOWN: Cell<u32> = const { Cell::new(0) };
    static RANDOM: Cell<u32> = const { Cell::new(0x9E37_79B9) };
}

/// Whether this lookup is the one. Under a model every one is, so that executions repeat.
#[inline(always)]
fn is_due() -> bool {
    if cfg!(any(silvics_loom, silvics_shuttle)) {
        return true;
    }
    COUNTDOWN.with(|countdown| {
        let left = countdown.get();
        countdown.set(left.wrapping_sub(1));
        left == 0
    })
}

/// Sets the next one.
fn draw(every: u32) {
    let random = RANDOM.get();
    let random = random ^ random << 13;
    let random = random ^ random >> 17;
    let random = random ^ random << 5; // Marsaglia's xorshift
    RANDOM.set(random);
    let span = 2 * u64::from(every) - 1;
    COUNTDOWN.set(((u64::from(random) * span) >> 32) as u32);
}

/// Notes of a thread.
#[derive(Default)]
struct Notes {
    busy: AtomicBool,
    halves: UnsafeCell<[Vec<u8>; 2]>,
}

// SAFETY: the halves are reached by who has set `busy`.
unsafe impl Sync for Notes {}

/// Gives it back.
struct Busy<'n>(&'n AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Notes {
    /// The halves, unless somebody has them.
    fn try_with<R>(&self, then: impl FnOnce(&mut [Vec<u8>; 2]) -> R) -> Option<R> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let _busy = Busy(&self.busy);
        // SAFETY: `busy` is ours.
        Some(self.halves.with_mut(|halves| then(unsafe { &mut *halves })))
    }
}

/// Adds a note; the second half is the one that is filled.
fn add(halves: &mut [Vec<u8>; 2], note: &[u8]) {
    let room = |half: &Vec<u8>| half.capacity() - half.len() >= HEAD + note.len();
    if !room(&halves[1]) {
        halves.swap(0, 1);
        halves[1].clear();
    }
    if room(&halves[1]) {
        halves[1].extend((note.len() as u16).to_ne_bytes());
        halves[1].extend(note);
    }
}

/// What is known of a tree's lookups.
pub(in super::super) struct Samples<K: Parts + ?Sized> {
    /// 0 if nobody wants to know.
    every: AtomicU32,
    bytes: AtomicUsize,
    threads: PerThread<Notes, Arc<Budget>>,
    budget: Arc<Budget>,
    keys: PhantomData<fn() -> Box<K>>,
}

impl<K: Parts + ?Sized> Samples<K> {
    pub(in super::super) fn new(budget: &Arc<Budget>) -> Self {
        Self {
            every: AtomicU32::new(0),
            bytes: AtomicUsize::new(0),
            threads: PerThread::new(Arc::clone(budget)),
            budget: Arc::clone(budget),
            keys: PhantomData,
        }
    }

    pub(super) fn set(&self, sampling: Option<Sampling>) {
        if let Some(Sampling { bytes, .. }) = sampling {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        self.every.store(sampling.map_or(0, |of| of.every.get()), Ordering::Relaxed);
    }

    #[inline(always)]
    pub(in super::super) fn wanted(&self) -> bool {
        self.every.load(Ordering::Relaxed) != 0
    }

    /// A key is looked up.
    #[inline(always)]
    pub(in super::super) fn see(&self, key: K::Ref<'_>) {
        if self.wanted() && is_due() {
            self.note(key);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&self, key: K::Ref<'_>) {
        draw(self.every.load(Ordering::Relaxed).max(1));
        if K::len(key) > MOST_BYTES {
            return;
        }
        let Some(notes) = thread_index().and_then(|index| self.threads.get_or_make(index)) else {
            return;
        };
        notes.try_with(|halves| {
            if halves[0].capacity() > 0 || self.make(halves).is_some() {
                K::noted(key, |note| add(halves, note));
            }
        });
    }

    /// The memory of a thread's notes, from the budget.
    fn make(&self, halves: &mut [Vec<u8>; 2]) -> Option<()> {
        let half = (self.bytes.load(Ordering::Relaxed) / 2).max(HEAD + MOST_BYTES);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        first.try_reserve_exact(half).ok()?;
        second.try_reserve_exact(half).ok()?;
        self.budget.take(first.capacity() + second.capacity()).ok()?;
        *halves = [first, second];
        Some(())
    }

    /// Takes all notes. Lookups meanwhile go on without.
    pub(super) fn take(&self) -> Log {
        let mut log = Vec::new();
        for notes in self.threads.iter() {
            let mut backoff = Backoff::new();
            let mut take = |halves: &mut [Vec<u8>; 2]| {
                for half in halves {
                    log.extend_from_slice(half);
                    half.clear();
                }
            };
            while notes.try_with(&mut take).is_none() {
                backoff.wait();
            }
        }
        Log(log)
    }
}

impl<K: Parts + ?Sized> Drop for Samples<K> {
    fn drop(&mut self) {
        for notes in self.threads.iter() {
            let held = |halves: &mut [Vec<u8>; 2]| halves.iter().map(Vec::capacity).sum();
            self.budget.give(notes.try_with(held).unwrap_or(0));
        }
    }
}

/// Keys that were looked up.
pub(super) struct Log(Vec<u8>);

impl Log {
    pub(super) fn keys<K: Parts + ?Sized>(&self) -> impl Iterator<Item = K::Ref<'_>> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first_chunk::<HEAD>()?;
            let (note, after) = after.split_at(usize::from(u16::from_ne_bytes(*len)));
            rest = after;
            Some(K::from_note(note))
        })
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    fn samples<K: Parts + ?Sized>(every: u32, bytes: usize) -> (Samples<K>, Arc<Budget>) {
        let budget = Arc::new(Budget::new(None));
        let samples = Samples::<K>::new(&budget);
        samples.set(Some(Sampling { every: NonZeroU32::new(every).unwrap(), bytes }));
        (samples, budget)
    }

    #[test]
    fn the_latest_notes_are_kept_and_taken_once() {
        let (samples, budget) = samples::<u64>(1, 0);
        (0..10_000).for_each(|key| samples.see(key));
        let log = samples.take();
        let keys: Vec<u64> = log.keys::<u64>().collect();
        let half = (HEAD + MOST_BYTES) / (HEAD + 8);
        assert!((half..=2 * half).contains(&keys.len()), "{}", keys.len());
        assert!(keys.iter().copied().eq(10_000 - keys.len() as u64..10_000));
        assert_eq!(samples.take().keys::<u64>().count(), 0);
        drop(samples);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn one_in_so_many_is_noted_and_none_when_off() {
        let (samples, _) = samples::<u64>(64, 1 << 20);
        (0..1_000_000).for_each(|key| samples.see(key));
        let noted = samples.take().keys::<u64>().count();
        assert!((14_000..17_500).contains(&noted), "{noted} of a million");
        samples.set(None);
        (0..1000).for_each(|key| samples.see(key));
        assert_eq!(samples.take().keys::<u64>().count(), 0);
    }

    #[test]
    fn long_keys_are_left_out_and_a_budget_may_refuse() {
        let (samples, _) = samples::<[u8]>(1, 1 << 12);
        for len in [0, 1, MOST_BYTES, MOST_BYTES + 1] {
            samples.see(&vec![7; len]);
        }
        let log = samples.take();
        assert!(log.keys::<[u8]>().map(<[u8]>::len).eq([0, 1, MOST_BYTES]));
        let samples = Samples::<u64>::new(&Arc::new(Budget::new(Some(0))));
        samples.set(Some(Sampling::default()));
        (0..1000).for_each(|key| samples.see(key));
        assert_eq!(samples.take().keys::<u64>().count(), 0);
    }
}
