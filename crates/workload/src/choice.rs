//! The choice of keys of one experiment.

use crate::bijection::{Scramble, mix};
use crate::dist::LATEST_EXPONENT;
use crate::recorded::Recorded;
use crate::stream::Window;
use crate::trace::Trace;
use crate::{Dist, KEYS_MAX, Mix, Stream};
use rand::SeedableRng;
use rand::distr::Distribution;
use rand_distr::Zipf;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;
use std::sync::Arc;

/// The number of a thread among all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The thread's number, counted from 0.
    pub thread: usize,
    /// The number of threads, at least 1.
    pub threads: usize,
}

impl Share {
    /// The share of a single thread.
    pub const ALONE: Self = Self { thread: 0, threads: 1 };

    /// This thread's part if `0..len` is cut into contiguous parts whose sizes differ by at most
    /// one.
    pub fn part(self, len: u64) -> Range<u64> {
        let cut = |thread: usize| {
            let cut = u128::from(len) * thread as u128 / self.threads as u128;
            cut as u64 // at most `len`
        };
        cut(self.thread)..cut(self.thread + 1)
    }
}

/// The choice of keys of one experiment: a key space, the half of it that is present at the start,
/// and a distribution of operations over it.
///
/// For `sequential`, the present half is every other key. Otherwise it is the first half of a
/// permutation drawn from the seed, which is also the order of loading. (For `disjoint`, each
/// thread's range has such a permutation of its own.)
///
/// Lookups, inserts and removals all choose from the whole key space. So half of the lookups find
/// their key, and half of the inserts and removals change something. This stays so if there are as
/// many inserts as removals. (`latest` is the exception: its lookups choose inserted keys.) Upserts
/// choose among the keys that are loaded. Under `zipf` they have the same skew as the other
/// operations, and hot keys of their own.
#[derive(Clone, Debug)]
pub struct Choice {
    dist: Dist,
    len: u64,
    present: u64,
    seed: u64,
    order: Scramble,
    /// The sampled positions (`zipf`, `sparse+zipf`) or ages (`latest`); otherwise empty.
    samples: Arc<[u32]>,
    /// The load and the operations, if they are those of a trace.
    recorded: Option<Arc<Recorded>>,
}

/// The most samples of a distribution that is costly to sample.
///
/// Such a distribution is sampled once. Each thread and run iterates over the samples from a random
/// one, around and around. Four million are enough for the tail: a run of a second rarely makes
/// more operations.
const SAMPLES_MAX: usize = 1 << 22;
const SAMPLES_MIN: usize = 1 << 14;

impl Choice {
    /// Makes a choice among `len` keys.
    ///
    /// # Panics
    /// Panics if `len` is zero or above [`KEYS_MAX`].
    pub fn new(dist: Dist, len: usize, seed: u64) -> Self {
        assert!((1..=KEYS_MAX).contains(&len), "a key space of {len} keys cannot be chosen from");
        let present = len.div_ceil(2);
        let samples = match dist {
            Dist::Zipf(exponent) | Dist::SparseZipf(exponent) if exponent > 0.0 => {
                let hot = Self::hot(len, seed);
                sample(len, exponent, seed, |rank| hot.apply(rank) as u32)
            }
            Dist::Latest => sample(present, LATEST_EXPONENT, seed, |age| age as u32),
            _ => Arc::default(),
        };
        Self {
            dist,
            len: len as u64,
            present: present as u64,
            seed,
            order: Scramble::new(len, label(seed, "order")),
            samples,
            recorded: None,
        }
    }

    /// Makes the choice of a trace: its keys are loaded in a random order, and each thread makes
    /// its operations again and again. Threads begin apart from one another, the first one at the
    /// first operation if the trace changes the size of the index, else at a random one.
    ///
    /// # Panics
    /// Panics if the trace has no keys, more than [`KEYS_MAX`], or no operations.
    pub fn of_trace(trace: &Trace, seed: u64) -> Self {
        let len = trace.len();
        assert!(!trace.steps.is_empty(), "a trace that was read has operations");
        let recorded = Recorded::new(trace, seed);
        let present = recorded.present.len() as u64;
        let recorded = Some(Arc::new(recorded));
        Self { present, recorded, ..Self::new(Dist::Uniform, len, seed) }
    }

    /// Makes a choice among `len` keys that are all present at the start, so that every lookup
    /// finds its key.
    ///
    /// # Panics
    /// Panics if `len` is zero or above [`KEYS_MAX`], or if the distribution is none of `uniform`,
    /// `sparse`, `zipf` and `sparse+zipf`.
    pub fn filled(dist: Dist, len: usize, seed: u64) -> Self {
        let alike =
            matches!(dist, Dist::Uniform | Dist::Sparse | Dist::Zipf(_) | Dist::SparseZipf(_));
        assert!(alike, "`{dist}` needs absent keys: choose uniform, sparse, zipf or sparse+zipf");
        Self { present: len as u64, ..Self::new(dist, len, seed) }
    }

    /// The positions of all keys by their rank under `zipf` or `sparse+zipf`, the hottest first.
    pub fn hottest(&self) -> impl Iterator<Item = u32> + use<> {
        let hot = Self::hot(self.len(), self.seed);
        (0..self.len).map(move |rank| hot.apply(rank) as u32)
    }

    fn hot(len: usize, seed: u64) -> Scramble {
        Scramble::new(len, label(seed, "hot"))
    }

    /// The distribution.
    pub fn dist(&self) -> Dist {
        self.dist
    }

    /// The number of keys in the key space.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns false: there is at least one key.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The number of keys that are loaded: half of the key space, rounded up.
    pub fn present(&self) -> usize {
        self.present as usize
    }

    /// The positions that `share` loads, in order. All shares together load [`Choice::present`]
    /// positions, each once.
    pub fn load_part(&self, share: Share) -> LoadPart {
        let whole = || LoadPart {
            next: 0,
            end: self.present,
            step: 1,
            scramble: None,
            base: 0,
            scale: 1,
            listed: None,
        };
        if let Some(recorded) = &self.recorded {
            let part = share.part(self.present);
            let listed = Some(Arc::clone(recorded));
            return LoadPart { next: part.start, end: part.end, listed, ..whole() };
        }
        let in_turns =
            LoadPart { next: share.thread as u64, step: share.threads as u64, ..whole() };
        match self.dist {
            Dist::Uniform | Dist::Sparse | Dist::Zipf(_) | Dist::SparseZipf(_) => {
                let part = share.part(self.present);
                LoadPart { next: part.start, end: part.end, scramble: Some(self.order), ..whole() }
            }
            Dist::Latest => LoadPart { scramble: Some(self.order), ..in_turns },
            Dist::Sequential => LoadPart { scale: 2, ..in_turns },
            Dist::Disjoint => {
                let part = share.part(self.present);
                // Twice the part, except for the last key of an odd key space.
                let range = 2 * part.start..(2 * part.end).min(self.len);
                let seed = label(self.seed, "range").wrapping_add(share.thread as u64);
                let len = (range.end - range.start) as usize;
                LoadPart {
                    end: part.end - part.start,
                    scramble: Some(Scramble::new(len.max(1), seed)),
                    base: range.start,
                    ..whole()
                }
            }
        }
    }

    /// The position of a key that is loaded, for any position: each pair of neighbours has one.
    /// This keeps the skew of a distribution, but not its hottest keys. Under `disjoint` and
    /// `latest` the key may be another one.
    pub(crate) fn loaded(&self, position: u32) -> u32 {
        let number = u64::from(position) / 2;
        match self.dist {
            Dist::Sequential => (2 * number) as u32,
            _ => self.order.apply(number) as u32,
        }
    }

    /// The initial window of [`Dist::Latest`]: everything loaded, nothing removed. Other
    /// distributions ignore it.
    pub fn start(&self) -> Window {
        Window { inserted: self.present, removed: 0 }
    }

    /// The operations of `share` in run number `run`, continued from `window`.
    pub fn stream(&self, mix: Mix, run: u64, share: Share, window: Window) -> Stream<'_> {
        let seed = label(self.seed, "stream").wrapping_add(run);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self::mix(seed));
        for _ in 0..share.thread {
            rng.jump(); // by 2^128 words, so that the threads' sequences do not overlap
        }
        Stream::new(self, mix, share, window, rng)
    }

    pub(crate) fn samples(&self) -> &[u32] {
        &self.samples
    }

    /// The load and the operations, if they are those of a trace.
    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_deref()
    }

    pub(crate) fn order(&self) -> &Scramble {
        &self.order
    }
}

/// Derives a separate seed for each use.
pub(crate) fn label(seed: u64, name: &str) -> u64 {
    name.bytes().fold(mix(seed), |state, byte| mix(state.wrapping_add(u64::from(byte))))
}

fn sample(len: usize, exponent: f64, seed: u64, place: impl Fn(u64) -> u32) -> Arc<[u32]> {
    let Ok(zipf) = Zipf::new(len as f64, exponent) else {
        unreachable!("a key space has keys, and exponents are between 0 and 3");
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "samples"));
    let count = len.saturating_mul(64).clamp(SAMPLES_MIN, SAMPLES_MAX);
    (0..count)
        .map(|_| {
            let rank = zipf.sample(&mut rng) as u64; // counted from 1
            place(rank.clamp(1, len as u64) - 1)
        })
        .collect()
}

/// The positions that one thread loads, made by [`Choice::load_part`].
#[derive(Clone, Debug)]
pub struct LoadPart {
    next: u64,
    end: u64,
    step: u64,
    scramble: Option<Scramble>,
    base: u64,
    scale: u64,
    /// A trace, whose positions are listed.
    listed: Option<Arc<Recorded>>,
}

impl Iterator for LoadPart {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.next >= self.end {
            return None;
        }
        let turn = self.next;
        self.next += self.step;
        if let Some(listed) = &self.listed {
            return Some(listed.present[turn as usize]);
        }
        let place = self.scramble.map_or(turn, |scramble| scramble.apply(turn));
        Some((self.base + self.scale * place) as u32)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.next).div_ceil(self.step) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for LoadPart {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn any_dist() -> impl Strategy<Value = Dist> {
        prop_oneof![
            Just(Dist::Uniform),
            Just(Dist::Sparse),
            Just(Dist::Zipf(0.99)),
            Just(Dist::SparseZipf(0.99)),
            Just(Dist::Sequential),
            Just(Dist::Disjoint),
            Just(Dist::Latest),
        ]
    }

    fn load(choice: &Choice, threads: usize) -> Vec<Vec<u32>> {
        (0..threads)
            .map(|thread| {
                let part = choice.load_part(Share { thread, threads });
                let announced = part.len();
                let positions: Vec<u32> = part.collect();
                assert_eq!(positions.len(), announced);
                positions
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_load_is_half_of_the_key_space_each_key_once(
            dist in any_dist(), len in 1_usize..600, threads in 1_usize..9, seed: u64,
        ) {
            let choice = Choice::new(dist, len, seed);
            let parts = load(&choice, threads);
            let all: Vec<u32> = parts.concat();
            let distinct: HashSet<u32> = all.iter().copied().collect();
            prop_assert_eq!(all.len(), len.div_ceil(2));
            prop_assert_eq!(distinct.len(), all.len());
            prop_assert!(all.iter().all(|&p| (p as usize) < len));
        }

        #[test]
        fn parts_are_contiguous_and_even(len in 0_u64..1 << 33, threads in 1_usize..100) {
            let mut at = 0;
            for thread in 0..threads {
                let part = Share { thread, threads }.part(len);
                prop_assert_eq!(part.start, at);
                let even = len / threads as u64;
                prop_assert!((even..=even + 1).contains(&(part.end - part.start)));
                at = part.end;
            }
            prop_assert_eq!(at, len);
        }
    }

    #[test]
    fn a_filled_key_space_is_loaded_whole() {
        for dist in [Dist::Uniform, Dist::Sparse, Dist::Zipf(1.5), Dist::SparseZipf(1.5)] {
            let choice = Choice::filled(dist, 1001, 3);
            let mut all = load(&choice, 3).concat();
            assert_ne!(all[..100], load(&Choice::filled(dist, 1001, 4), 1).concat()[..100]);
            all.sort_unstable();
            assert_eq!((all, choice.present()), ((0..1001).collect(), 1001));
        }
    }

    #[test]
    #[should_panic(expected = "`latest` needs absent keys")]
    fn a_window_that_moves_cannot_be_filled() {
        let _ = Choice::filled(Dist::Latest, 10, 1);
    }

    #[test]
    fn the_hottest_come_first_and_are_scattered() {
        let choice = Choice::new(Dist::Zipf(1.0), 1000, 9);
        let hottest: Vec<u32> = choice.hottest().collect();
        let distinct: HashSet<u32> = hottest.iter().copied().collect();
        assert_eq!((hottest.len(), distinct.len()), (1000, 1000));
        let mut count = vec![0_usize; 1000];
        for position in choice.samples() {
            count[*position as usize] += 1;
        }
        // The first rank is chosen about twice as often as the second, and so on.
        let of = |rank: usize| count[hottest[rank] as usize];
        assert_eq!(count.iter().max(), Some(&of(0)));
        assert!(of(0) > of(1) && of(1) > of(3) && of(3) > of(15), "{:?}", &count[..20]);
        assert!(!hottest[..20].is_sorted());
    }

    #[test]
    fn the_number_of_threads_does_not_change_what_is_loaded() {
        for dist in [Dist::Uniform, Dist::Zipf(1.0), Dist::Latest, Dist::Sequential] {
            let choice = Choice::new(dist, 1000, 1);
            let alone: HashSet<u32> = load(&choice, 1).concat().into_iter().collect();
            let five: HashSet<u32> = load(&choice, 5).concat().into_iter().collect();
            assert_eq!(alone, five, "{dist}");
        }
    }

    #[test]
    fn sequential_loads_ascend_and_threads_take_turns() {
        let choice = Choice::new(Dist::Sequential, 12, 1);
        assert_eq!(load(&choice, 2), [vec![0, 4, 8], vec![2, 6, 10]]);
    }

    #[test]
    fn disjoint_loads_stay_in_their_ranges() {
        let choice = Choice::new(Dist::Disjoint, 1000, 1);
        for (thread, part) in load(&choice, 4).into_iter().enumerate() {
            let range = Share { thread, threads: 4 }.part(1000);
            assert!(part.iter().all(|&p| range.contains(&u64::from(p))));
        }
    }

    #[test]
    fn a_random_load_has_no_order() {
        let choice = Choice::new(Dist::Uniform, 20_000, 5);
        let order = load(&choice, 1).concat();
        let ascents = order.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((4800..5200).contains(&ascents), "{ascents}");
        // Each half of the key space contains half of the loaded keys, within five standard
        // deviations.
        let low = order.iter().filter(|&&p| p < 10_000).count();
        assert!((4820..5180).contains(&low), "{low}");
    }

    #[test]
    fn seeds_matter_and_repeat() {
        let first = |seed| {
            let choice = Choice::new(Dist::Uniform, 1 << 16, seed);
            let mut part = choice.load_part(Share::ALONE);
            [part.next(), part.next(), part.next()]
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
