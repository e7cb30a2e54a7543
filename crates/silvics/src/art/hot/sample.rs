//! A sample of the keys that are looked up. Each thread notes its own.
//!
//! # Algorithm
//! A thread has an exponential variable of mean 1. Each lookup subtracts the tree's hazard from it.
//! The lookup that subtracts more than is left notes its key, and the variable is drawn again. The
//! rest of an exponential variable is exponential again (it has no memory). So each lookup is noted
//! with a chance of `1 - exp(-hazard)`, whatever lookups of any tree went before. No period of the
//! lookups is hit again and again, and trees that are sampled at different rates do not affect each
//! other.
//!
//! Notes go to the tree's cell for this thread ([`notes`](super::notes)). A note is the key as
//! bytes, up to [`MOST_BYTES`]: an address in the tree would be invalid after the guard is dropped.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | `hazard`, `bytes` | load, store | Relaxed | settings: a lookup that sees the old ones notes a key more or less |

use super::super::key::DigitKey;
use super::notes::{Notes, WORD, notes};
use super::sampler::Observer;
use silvics_pool::{AllocError, Budget};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use silvics_sync::per_thread::{PerThread, thread_index};
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The length of the longest key that is noted, in bytes. Paths and names fit; longer keys are not
/// sampled.
pub const MOST_BYTES: usize = 1024;
/// The size of the smallest ring in bytes. The longest note fits.
const LEAST_BYTES: usize = (MOST_BYTES + WORD).next_power_of_two();

/// A key type whose keys can be noted as bytes.
#[doc(hidden)]
pub trait NoteKey: DigitKey {
    /// Passes the key as bytes to `note`.
    fn noted(key: Self::Ref<'_>, note: impl FnOnce(&[u8]));
    /// The key that these bytes were made of.
    fn from_note(note: &[u8]) -> Self::Ref<'_>;
}

impl NoteKey for u64 {
    fn noted(key: u64, note: impl FnOnce(&[u8])) {
        note(&key.to_ne_bytes());
    }
    fn from_note(note: &[u8]) -> u64 {
        u64::from_ne_bytes(note.try_into().expect("the note of such a key"))
    }
}

impl NoteKey for u128 {
    fn noted(key: u128, note: impl FnOnce(&[u8])) {
        note(&key.to_ne_bytes());
    }
    fn from_note(note: &[u8]) -> u128 {
        u128::from_ne_bytes(note.try_into().expect("the note of such a key"))
    }
}

impl NoteKey for [u8] {
    fn noted(key: &[u8], note: impl FnOnce(&[u8])) {
        note(key);
    }
    fn from_note(note: &[u8]) -> &[u8] {
        note
    }
}

/// The settings of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The mean number of lookups of which one is noted.
    pub every: NonZeroU32,
    /// The memory for the notes of each thread, in bytes, rounded down to a power of two. The
    /// latest notes that fit are kept. A note takes the key's bytes, in words of eight, and one
    /// word more. The memory has room for at least the longest note. Threads that have notes keep
    /// the memory that they have.
    pub bytes: usize,
}

impl Default for Sampling {
    /// One lookup in 256 is noted, and each thread keeps 512 KiB of notes.
    fn default() -> Self {
        Self { every: NonZeroU32::MIN.saturating_add(255), bytes: 512 << 10 }
    }
}

/// The logarithm of the unit of hazards and of the variable, which is less than 45 units.
const UNIT_LOG: u32 = 57;

/// `-ln(n / 2^64)` of an odd number, in units, with an error below 0.006. The library's logarithm
/// would take half of the time of a note. Between powers of two, this uses f + 0.344 f (1 - f) for
/// log2(1 + f): both have the same mean.
fn minus_ln(n: u64) -> u64 {
    const ONE: u64 = 1 << 30;
    const BEND: u64 = (0.343_83 * ONE as f64) as u64;
    const LN_2: u64 = (std::f64::consts::LN_2 * (1_u64 << (UNIT_LOG - 30)) as f64) as u64;
    let zeros = n.leading_zeros();
    let f = ((n << zeros) << 1) >> 34;
    let log = f + ((((BEND * f) >> 30) * (ONE - f)) >> 30);
    ((u64::from(zeros) + 1) * ONE - log) * LN_2
}

/// The hazard at which one lookup in `every` is noted. For 1 it is the largest possible.
fn hazard(every: NonZeroU32) -> u64 {
    (-(-1.0 / f64::from(every.get())).ln_1p() * (1_u64 << UNIT_LOG) as f64) as u64
}

/// The exponential variable of a thread.
struct Draw {
    /// The rest of the variable.
    left: Cell<u64>,
    /// The last random number. It is 0 before the first.
    random: Cell<u64>,
}

std::thread_local! {
    static DRAW: Draw = const { Draw { left: Cell::new(0), random: Cell::new(0) } };
}

impl Draw {
    /// Subtracts a hazard, and returns whether it was more than the rest. Under a model it always
    /// is, so that executions repeat.
    #[inline(always)]
    fn exceeded(&self, hazard: u64) -> bool {
        let (left, exceeded) = self.left.get().overflowing_sub(hazard);
        self.left.set(left);
        exceeded || cfg!(any(silvics_loom, silvics_shuttle))
    }

    /// Draws the variable again, and returns whether it had been drawn before.
    fn again(&self) -> bool {
        let last = self.random.get();
        // Knuth's MMIX (volume 2, section 3.3.4, line 26). Its upper bits are good.
        let next = match last {
            0 => seed() | 1,
            _ => last.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F),
        };
        self.random.set(next);
        self.left.set(minus_ln(next | 1));
        last != 0
    }
}

/// The first random number of a thread. It differs between threads, so that some threads with few
/// lookups note one, too.
#[cold]
fn seed() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::thread::current().id().hash(&mut hasher);
    hasher.finish()
}

/// The notes of a tree's lookups, and the settings of sampling.
#[doc(hidden)]
pub struct Samples<K: NoteKey + ?Sized> {
    /// The hazard that each lookup subtracts from its thread's variable. It is 0 if lookups are not
    /// sampled.
    hazard: AtomicU64,
    bytes: AtomicUsize,
    threads: PerThread<Notes, Arc<Budget>>,
    /// Notes that were taken by a reorganization that failed.
    left: Mutex<Vec<u8>>,
    /// Whether a thread reorganizes the tree.
    pub(super) reorganizes: AtomicBool,
    budget: Arc<Budget>,
    keys: PhantomData<fn() -> Box<K>>,
}

impl<K: NoteKey + ?Sized> Observer<K> for Samples<K> {
    fn new(budget: &Arc<Budget>) -> Self {
        Self {
            hazard: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            threads: PerThread::new(Arc::clone(budget)),
            left: Mutex::new(Vec::new()),
            reorganizes: AtomicBool::new(false),
            budget: Arc::clone(budget),
            keys: PhantomData,
        }
    }

    #[inline(always)]
    fn wanted(&self) -> bool {
        self.hazard.load(Ordering::Relaxed) != 0
    }

    #[inline(always)]
    fn see(&self, key: K::Ref<'_>) {
        let hazard = self.hazard.load(Ordering::Relaxed);
        if hazard != 0 && DRAW.with(|draw| draw.exceeded(hazard)) {
            self.note(key, hazard);
        }
    }
}

impl<K: NoteKey + ?Sized> Samples<K> {
    /// Begins to sample lookups, or stops it.
    pub(super) fn set(&self, sampling: Option<Sampling>) {
        if let Some(Sampling { bytes, .. }) = sampling {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
        let hazard = sampling.map_or(0, |of| hazard(of.every));
        self.hazard.store(hazard, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn note(&self, key: K::Ref<'_>, hazard: u64) {
        // The first lookup of a thread has only drawn the variable.
        let comes = DRAW.with(|draw| draw.again() || draw.exceeded(hazard) && draw.again());
        if !comes || K::len(key) > MOST_BYTES {
            return;
        }
        let Some(notes) = thread_index().and_then(|index| self.threads.get_or_make(index)) else {
            return;
        };
        let bytes = self.bytes.load(Ordering::Relaxed).max(LEAST_BYTES);
        if let Some(ring) = notes.ring(bytes, &self.budget) {
            K::noted(key, |note| notes.add(ring, note));
        }
    }

    /// Takes all notes, behind those that were given back. Lookups do not wait. If memory for the
    /// notes cannot be allocated, all of them stay.
    pub(super) fn take(&self) -> Result<Log, AllocError> {
        let mut left = self.left.lock();
        // A thread that makes its first note meanwhile keeps it.
        let room = self.threads.iter().map(Notes::bytes).sum();
        if left.len() > room {
            left.clear(); // newer notes count more
        }
        let requested = left.len() + room;
        left.try_reserve_exact(room).map_err(|_| AllocError::System { requested })?;
        let mut log = std::mem::take(&mut *left);
        for notes in self.threads.iter() {
            notes.empty_into(&mut log);
        }
        Ok(Log(log))
    }

    /// Keeps notes for the next reorganization.
    pub(super) fn give_back(&self, Log(log): Log) {
        *self.left.lock() = log;
    }
}

impl<K: NoteKey + ?Sized> Drop for Samples<K> {
    fn drop(&mut self) {
        self.budget.give(self.threads.iter().map(Notes::bytes).sum());
    }
}

/// The keys of sampled lookups.
pub(super) struct Log(Vec<u8>);

impl Log {
    pub(super) fn keys<K: NoteKey + ?Sized>(&self) -> impl Iterator<Item = K::Ref<'_>> {
        notes(&self.0).map(K::from_note)
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    fn samples<K: NoteKey + ?Sized>(every: u32, bytes: usize) -> (Samples<K>, Arc<Budget>) {
        let budget = Arc::new(Budget::new(None));
        let samples = Samples::<K>::new(&budget);
        samples.set(Some(Sampling { every: NonZeroU32::new(every).unwrap(), bytes }));
        (samples, budget)
    }

    #[test]
    fn logarithms_are_near_and_right_on_average() {
        let unit = (1_u64 << UNIT_LOG) as f64;
        let near = |n: u64| (minus_ln(n) as f64 / unit, -(n as f64 / 2_f64.powi(64)).ln());
        for n in [1, 3, (1 << 63) | 1, u64::MAX].into_iter().chain((1..=64).map(|of| u64::MAX / of))
        {
            let (is, should) = near(n | 1);
            assert!((is - should).abs() < 0.006, "{n}: {is} for {should}");
        }
        let numbers = (0..1 << 16).map(|n: u64| (n << 48) | (1 << 47) | 1);
        let mean = numbers.map(|n| near(n).0).sum::<f64>() / 65_536.0;
        assert!((mean - 1.0).abs() < 1e-4, "{mean}");
    }

    #[test]
    fn the_latest_notes_are_kept_and_taken_once() {
        let (samples, budget) = samples::<u64>(1, 0);
        (0..10_000).for_each(|key| samples.see(key));
        let latest = 10_000 - (LEAST_BYTES / (2 * WORD)) as u64..10_000;
        assert!(samples.take().unwrap().keys::<u64>().eq(latest.rev()));
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
        assert!(log.keys::<u64>().eq((0..10).rev()));
        let Log(mut log) = log;
        (0..9).for_each(|_| log.extend_from_within(..));
        samples.give_back(Log(log));
        samples.see(10);
        assert!(taken().keys::<u64>().eq([10]));
    }

    /// How often one tree is sampled does not affect another one, on the same thread.
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
    fn notes_taken_while_more_are_made_are_whole() {
        let (samples, _) = samples::<[u8]>(1, 0);
        let (mut taken, made) = (0, 200_000);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                (0..made).for_each(|n| samples.see(&[n as u8; 64][..n % 64]));
            });
            let mut ended = false;
            while !ended {
                ended = writer.is_finished();
                for key in samples.take().unwrap().keys::<[u8]>() {
                    let byte = key.first().copied().unwrap_or(0);
                    assert!(usize::from(byte % 64) == key.len(), "{key:?}");
                    assert!(key.iter().all(|other| *other == byte), "{key:?}");
                    taken += 1;
                }
            }
        });
        assert!((1..=made).contains(&taken), "{taken} of {made}");
    }

    #[test]
    fn long_keys_are_left_out_and_a_budget_may_refuse() {
        let (samples, _) = samples::<[u8]>(1, 1 << 12);
        let key = |len| (0..len).map(|at| at as u8).collect::<Vec<u8>>();
        for len in [0, 1, MOST_BYTES, MOST_BYTES + 1] {
            samples.see(&key(len));
        }
        let log = samples.take().unwrap();
        assert!(log.keys::<[u8]>().all(|noted| noted == key(noted.len())));
        assert!(log.keys::<[u8]>().map(<[u8]>::len).eq([MOST_BYTES, 1, 0]));
        let samples = Samples::<u64>::new(&Arc::new(Budget::new(Some(0))));
        samples.set(Some(Sampling::default()));
        (0..1000).for_each(|key| samples.see(key));
        assert_eq!(samples.take().unwrap().keys::<u64>().count(), 0);
    }
}
