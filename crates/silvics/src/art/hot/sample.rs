//! Which keys are looked up: a sample, noted by each thread for itself.
//!
//! # Algorithm
//! A thread draws a number for each lookup, and if it is small enough notes the key in the tree's cell for this
//! thread, which has two halves. When one is full the other is emptied and filled, so that the notes of the last
//! half are there. Draws are independent, so that no period of the lookups is hit again and again, and trees
//! that are sampled at different rates have nothing to do with each other, as they had if a thread counted down
//! to its next note.
//!
//! What is noted is the key as bytes, up to [`MOST_BYTES`]: no address in the tree is good after the guard.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `chance`, `bytes` | load, store | Relaxed | – | settings: a lookup that sees the old ones notes a key more or less |
//! | `busy` | swap / store | Acquire / Release | each other | the halves belong to who has set it; a lookup that finds it set goes on without a note |

use super::super::key::Parts;
use silvics_pool::{AllocError, Budget};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use silvics_sync::backoff::Backoff;
use silvics_sync::cell::UnsafeCell;
use silvics_sync::per_thread::{PerThread, thread_index};
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
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
    /// The last number drawn; 0 before the first.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Where a thread begins to draw: each thread elsewhere, so that of threads with few lookups some note one, too.
#[cold]
fn seed() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::thread::current().id().hash(&mut hasher);
    hasher.finish()
}

/// Whether a thing of this chance, of 2^64, comes to pass. Under a model it does, so that executions repeat.
#[inline(always)]
fn happens(chance: u64) -> bool {
    if cfg!(any(silvics_loom, silvics_shuttle)) {
        return true;
    }
    RANDOM.with(|random| {
        let last = match random.get() {
            0 => seed(),
            last => last,
        };
        // Knuth's MMIX (volume 2, section 3.3.4, line 26): the upper bits are good, and decide.
        let next = last.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        random.set(next);
        next <= chance
    })
}

/// Notes of a thread.
#[derive(Default)]
struct Notes {
    busy: AtomicBool,
    halves: UnsafeCell<Halves>,
}

/// Notes, in the order in which they were made: length and key of each.
#[derive(Default)]
struct Halves {
    older: Vec<u8>,
    newer: Vec<u8>,
    /// What both may take, of the budget: nothing before the first note.
    taken: usize,
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
    fn try_with<R>(&self, then: impl FnOnce(&mut Halves) -> R) -> Option<R> {
        if self.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let _busy = Busy(&self.busy);
        // SAFETY: `busy` is ours.
        Some(self.halves.with_mut(|halves| then(unsafe { &mut *halves })))
    }

    /// The same, when they are free.
    fn with<R>(&self, mut then: impl FnMut(&mut Halves) -> R) -> R {
        let mut backoff = Backoff::new();
        loop {
            if let Some(result) = self.try_with(&mut then) {
                return result;
            }
            backoff.wait();
        }
    }
}

impl Halves {
    fn add(&mut self, note: &[u8]) {
        let room = |half: &Vec<u8>| half.capacity() - half.len() >= HEAD + note.len();
        if !room(&self.newer) {
            std::mem::swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        }
        if room(&self.newer) {
            self.newer.extend((note.len() as u16).to_ne_bytes());
            self.newer.extend(note);
        }
    }

    /// The memory for notes, so much for each half.
    fn reserve(&mut self, half: usize, budget: &Budget) -> Option<()> {
        budget.take(2 * half).ok()?;
        let mut both = || {
            self.older.try_reserve_exact(half).ok()?;
            self.newer.try_reserve_exact(half).ok()
        };
        if both().is_none() {
            (self.older, self.newer) = (Vec::new(), Vec::new());
            budget.give(2 * half);
            return None;
        }
        self.taken = 2 * half;
        Some(())
    }

    /// Moves all notes to a log that has room for them.
    fn empty_into(&mut self, log: &mut Vec<u8>) {
        if log.capacity() - log.len() >= self.older.len() + self.newer.len() {
            log.append(&mut self.older);
            log.append(&mut self.newer);
        }
    }
}

/// What is known of a tree's lookups.
pub(in super::super) struct Samples<K: Parts + ?Sized> {
    /// That a lookup is noted, of 2^64; 0 if nobody wants to know.
    chance: AtomicU64,
    bytes: AtomicUsize,
    threads: PerThread<Notes, Arc<Budget>>,
    /// Notes that were taken and have not served their purpose.
    left: Mutex<Vec<u8>>,
    budget: Arc<Budget>,
    keys: PhantomData<fn() -> Box<K>>,
}

impl<K: Parts + ?Sized> Samples<K> {
    pub(in super::super) fn new(budget: &Arc<Budget>) -> Self {
        Self {
            chance: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            threads: PerThread::new(Arc::clone(budget)),
            left: Mutex::new(Vec::new()),
            budget: Arc::clone(budget),
            keys: PhantomData,
        }
    }

    pub(super) fn set(&self, sampling: Option<Sampling>) {
        if let Some(Sampling { bytes, .. }) = sampling {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        let chance = sampling.map_or(0, |of| u64::MAX / u64::from(of.every.get()));
        self.chance.store(chance, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(in super::super) fn wanted(&self) -> bool {
        self.chance.load(Ordering::Relaxed) != 0
    }

    /// A key is looked up.
    #[inline(always)]
    pub(in super::super) fn see(&self, key: K::Ref<'_>) {
        let chance = self.chance.load(Ordering::Relaxed);
        if chance != 0 && happens(chance) {
            self.note(key);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&self, key: K::Ref<'_>) {
        if K::len(key) > MOST_BYTES {
            return;
        }
        let Some(notes) = thread_index().and_then(|index| self.threads.get_or_make(index)) else {
            return;
        };
        notes.try_with(|halves| {
            let half = (self.bytes.load(Ordering::Relaxed) / 2).max(HEAD + MOST_BYTES);
            if halves.taken > 0 || halves.reserve(half, &self.budget).is_some() {
                K::noted(key, |note| halves.add(note));
            }
        });
    }

    /// Takes all notes, after those that were given back. Lookups meanwhile go on without. If there is no memory to
    /// take them to, all stay.
    pub(super) fn take(&self) -> Result<Log, AllocError> {
        // Who comes to have notes meanwhile keeps them.
        let room = self.threads.iter().map(|notes| notes.with(|halves| halves.taken)).sum();
        let mut left = self.left.lock();
        if left.len() > room {
            left.clear(); // newer ones count
        }
        let requested = left.len() + room;
        left.try_reserve_exact(room).map_err(|_| AllocError::System { requested })?;
        let mut log = std::mem::take(&mut *left);
        for notes in self.threads.iter() {
            notes.with(|halves| halves.empty_into(&mut log));
        }
        Ok(Log(log))
    }

    /// For the next one who takes them.
    pub(super) fn give_back(&self, Log(log): Log) {
        *self.left.lock() = log;
    }
}

impl<K: Parts + ?Sized> Drop for Samples<K> {
    fn drop(&mut self) {
        let taken = |notes: &Notes| notes.try_with(|halves| halves.taken).unwrap_or(0);
        self.budget.give(self.threads.iter().map(taken).sum());
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
        let log = samples.take().unwrap();
        let keys: Vec<u64> = log.keys::<u64>().collect();
        let half = (HEAD + MOST_BYTES) / (HEAD + 8);
        assert!((half..=2 * half).contains(&keys.len()), "{}", keys.len());
        assert!(keys.iter().copied().eq(10_000 - keys.len() as u64..10_000));
        assert_eq!(samples.take().unwrap().keys::<u64>().count(), 0);
        drop(samples);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn notes_given_back_come_first_unless_they_are_more_than_new_ones_can_be() {
        let (samples, _) = samples::<u64>(1, 0);
        let taken = || samples.take().unwrap();
        (0..5).for_each(|key| samples.see(key));
        samples.give_back(taken());
        (5..10).for_each(|key| samples.see(key));
        let log = taken();
        assert!(log.keys::<u64>().eq(0..10));
        let Log(mut log) = log;
        (0..9).for_each(|_| log.extend_from_within(..));
        samples.give_back(Log(log));
        samples.see(10);
        assert!(taken().keys::<u64>().eq([10]));
    }

    /// A thread's lookups of one tree have nothing to do with how often another one is sampled.
    #[test]
    fn trees_are_sampled_each_at_its_rate() {
        let ((often, _), (seldom, _)) = (samples::<u64>(1, 1 << 20), samples::<u64>(1000, 1 << 20));
        for key in 0..50_000 {
            often.see(key);
            seldom.see(key);
        }
        let noted = [often, seldom].map(|of| of.take().unwrap().keys::<u64>().count());
        assert!(noted[0] == 50_000 && (10..100).contains(&noted[1]), "{noted:?}");
    }

    #[test]
    fn one_in_so_many_is_noted_and_none_when_off() {
        let (samples, _) = samples::<u64>(64, 1 << 20);
        (0..1_000_000).for_each(|key| samples.see(key));
        let noted = samples.take().unwrap().keys::<u64>().count();
        assert!((14_000..17_500).contains(&noted), "{noted} of a million");
        samples.set(None);
        (0..1000).for_each(|key| samples.see(key));
        assert_eq!(samples.take().unwrap().keys::<u64>().count(), 0);
    }

    #[test]
    fn threads_of_few_lookups_are_sampled_too() {
        let (samples, _) = samples::<u64>(64, 1 << 20);
        for thread in 0..400 {
            std::thread::scope(|scope| {
                scope.spawn(|| (0..8).for_each(|key| samples.see(8 * thread + key)));
            });
        }
        let noted = samples.take().unwrap().keys::<u64>().count();
        assert!((20..100).contains(&noted), "{noted} of 3200");
    }

    #[test]
    fn long_keys_are_left_out_and_a_budget_may_refuse() {
        let (samples, _) = samples::<[u8]>(1, 1 << 12);
        for len in [0, 1, MOST_BYTES, MOST_BYTES + 1] {
            samples.see(&vec![7; len]);
        }
        let log = samples.take().unwrap();
        assert!(log.keys::<[u8]>().map(<[u8]>::len).eq([0, 1, MOST_BYTES]));
        let samples = Samples::<u64>::new(&Arc::new(Budget::new(Some(0))));
        samples.set(Some(Sampling::default()));
        (0..1000).for_each(|key| samples.see(key));
        assert_eq!(samples.take().unwrap().keys::<u64>().count(), 0);
    }
}
