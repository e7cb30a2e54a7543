//! The operations of a thread, one block at a time.

use crate::choice::{Choice, Share};
use crate::latest::Latest;
use crate::recorded::Walk;
use crate::{Dist, Mix, Op};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

/// The number of operations in a block, unless a batch is larger.
pub const BLOCK_OPS: usize = 64;

/// A block of operations: runs of one kind, with a position for each operation.
#[derive(Clone, Debug)]
pub struct Block {
    /// The kind and the length of each run.
    pub(crate) runs: Vec<(Op, usize)>,
    pub(crate) positions: Vec<u32>,
    batch: usize,
}

impl Block {
    /// Makes a block whose operations come in batches of `batch` (at least 1) of one kind. It has
    /// the smallest number of whole batches with at least [`BLOCK_OPS`] operations.
    pub fn new(batch: usize) -> Self {
        let batch = batch.max(1);
        let len = BLOCK_OPS.next_multiple_of(batch);
        Self { runs: Vec::new(), positions: vec![0; len], batch }
    }

    /// The number of operations.
    #[allow(clippy::len_without_is_empty)] // a block is never empty
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// The runs in their order: the kind of each, and where its positions are. Each has a whole
    /// number of batches.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = (Op, Range<usize>)> + '_ {
        self.runs.iter().scan(0, |end, &(op, len)| {
            let start = *end;
            *end += len;
            Some((op, start..*end))
        })
    }

    /// The positions of the operations.
    #[inline]
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Makes the block one run.
    fn fill(&mut self, op: Op) {
        self.runs.clear();
        self.runs.push((op, self.positions.len()));
    }

    /// Adds a batch of a kind to the last run, or begins another.
    fn add(&mut self, op: Op) {
        match self.runs.last_mut() {
            Some((last, len)) if *last == op => *len += self.batch,
            _ => self.runs.push((op, self.batch)),
        }
    }
}

/// The progress of [`Dist::Latest`]. If every thread has kept up, the keys with numbers
/// `removed..inserted` in the insertion order are present (modulo the key space).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of keys inserted since the beginning.
    pub inserted: u64,
    /// The number of keys removed since the beginning.
    pub removed: u64,
}

impl Window {
    /// The joint window of two threads.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            inserted: self.inserted.max(other.inserted),
            removed: self.removed.max(other.removed),
        }
    }
}

/// The taker of a block's positions: see [`Stream::fill_with`].
pub trait Positions {
    /// Sets each position to the next one. The first of them has number `at` in the block.
    fn take(&mut self, at: usize, positions: &mut [u32], next: impl FnMut() -> u32);
}

impl Positions for () {
    #[inline(always)]
    fn take(&mut self, _at: usize, positions: &mut [u32], mut next: impl FnMut() -> u32) {
        for position in positions {
            *position = next();
        }
    }
}

/// The endless operations of one thread in one run, made by [`Choice::stream`].
///
/// Each operation has its kind and its position at random. The operations of a block are sorted by
/// kind if they are independent of each other (`uniform`, `sparse`, `zipf`, `disjoint`). A block of
/// [`BLOCK_OPS`] then has one run of each kind, and a loop over it predicts its branches. Under
/// `sequential` and `latest`, operations stay in the order in which they were drawn.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    choice: &'a Choice,
    rng: Xoshiro256PlusPlus,
    thresholds: [u64; 4],
    upserts: bool,
    /// Positions on their way to others.
    buffer: Vec<u32>,
    /// The kind of all operations, if there is only one.
    pure: Option<Op>,
    source: Source<'a>,
    window: Window,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    Uniform {
        start: u32,
        len: u64,
    },
    Samples {
        samples: &'a [u32],
        at: usize,
    },
    Walk {
        at: u32,
        last: u32,
    },
    Latest(Latest<'a>),
    /// The operations of a trace.
    Recorded(Walk<'a>),
}

impl<'a> Source<'a> {
    /// The operations of a trace.
    fn recorded(choice: &'a Choice, share: Share) -> Self {
        let Some(recorded) = choice.recorded() else { unreachable!("the choice is of a trace") };
        Self::Recorded(recorded.walk(share))
    }
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        choice: &'a Choice,
        mix: Mix,
        share: Share,
        window: Window,
        mut rng: Xoshiro256PlusPlus,
    ) -> Self {
        let samples = choice.samples();
        let len = choice.len() as u64;
        let at = below(&mut rng, samples.len().max(1) as u64) as usize;
        let source = match choice.dist() {
            _ if choice.recorded().is_some() => Source::recorded(choice, share),
            Dist::Latest => Source::Latest(Latest {
                choice,
                ages: samples,
                at,
                thread: share.thread as u64,
                threads: share.threads as u64,
            }),
            Dist::Sequential => {
                Source::Walk { at: below(&mut rng, len) as u32, last: (len - 1) as u32 }
            }
            Dist::Disjoint => {
                let part = share.part(len);
                Source::Uniform {
                    // A range of at least one key, even if there are more threads than keys.
                    start: part.start.min(len - 1) as u32,
                    len: (part.end - part.start).max(1),
                }
            }
            _ if samples.is_empty() => Source::Uniform { start: 0, len },
            _ => Source::Samples { samples, at },
        };
        Self {
            choice,
            rng,
            thresholds: mix.thresholds(),
            upserts: mix.upserts(),
            buffer: Vec::new(),
            pure: Op::ALL
                .into_iter()
                .find(|&op| mix.share(op) == Mix::WHOLE && choice.recorded().is_none()),
            source,
            window,
        }
    }

    /// Fills the block with the next operations.
    pub fn fill(&mut self, block: &mut Block) {
        self.fill_with(block, &mut ());
    }

    /// Fills the block with the next operations, and passes their positions on as they are drawn:
    /// a random generator has to wait for itself most of the time, so what is made of a position
    /// meanwhile takes little more time.
    #[inline(always)]
    pub fn fill_with(&mut self, block: &mut Block, to: &mut impl Positions) {
        self.draw_kinds(block);
        let positions = &mut block.positions;
        match &mut self.source {
            Source::Uniform { start, len } => {
                // A copy, which stays in registers.
                let (mut rng, start, len) = (self.rng.clone(), *start, *len);
                to.take(0, positions, || start + below(&mut rng, len) as u32);
                self.rng = rng;
            }
            Source::Samples { samples, at } => to.take(0, positions, || next_around(samples, at)),
            Source::Walk { at, last } => to.take(0, positions, || {
                let position = *at;
                *at = if position == *last { 0 } else { position + 1 };
                position
            }),
            Source::Latest(latest) => {
                latest.fill(block, &mut self.window);
                again(&mut self.buffer, 0, &mut block.positions, to, |position| position);
                return; // each kind has its own positions
            }
            Source::Recorded(walk) => {
                walk.take(block.runs.iter().copied(), block.batch, &mut block.positions);
                again(&mut self.buffer, 0, &mut block.positions, to, |position| position);
                return; // upserts have their positions
            }
        }
        if self.upserts {
            self.choose_loaded(block, to);
        }
    }

    /// Moves the positions of upserts to keys that were loaded.
    #[inline(never)]
    fn choose_loaded(&mut self, block: &mut Block, to: &mut impl Positions) {
        let mut start = 0;
        for &(op, len) in &block.runs {
            let positions = &mut block.positions[start..start + len];
            if op == Op::Upsert {
                let loaded = |position| self.choice.loaded(position);
                again(&mut self.buffer, start, positions, to, loaded);
            }
            start += len;
        }
    }

    #[inline]
    fn draw_kinds(&mut self, block: &mut Block) {
        if let Some(op) = self.pure {
            block.fill(op);
            return;
        }
        block.runs.clear();
        let batches = block.len() / block.batch;
        if let Source::Recorded(walk) = &self.source {
            (0..batches).for_each(|at| block.add(walk.kind(at, block.batch)));
            return;
        }
        if matches!(self.source, Source::Walk { .. } | Source::Latest(_)) {
            for _ in 0..batches {
                block.add(Op::ALL[draw_kind(&mut self.rng, &self.thresholds)]);
            }
            return;
        }
        // A counter for each kind, all in one word, as registers are faster than memory.
        const BITS: usize = 64 / Op::ALL.len();
        const { assert!(BLOCK_OPS < 1 << BITS) };
        let (mut rng, bounds, mut counts) = (self.rng.clone(), self.thresholds, 0_u64);
        for _ in 0..batches {
            counts += 1 << (BITS * draw_kind(&mut rng, &bounds));
        }
        self.rng = rng;
        let of = |kind: usize| (counts >> (BITS * kind)) as usize % (1 << BITS) * block.batch;
        let runs = Op::ALL.into_iter().enumerate().map(|(kind, op)| (op, of(kind)));
        block.runs.extend(runs.filter(|&(_, len)| len > 0));
    }

    /// The thread's progress. Only `latest` changes it.
    pub fn window(&self) -> Window {
        self.window
    }
}

/// The sample at `at`, which moves on, around and around.
#[inline(always)]
pub(crate) fn next_around(samples: &[u32], at: &mut usize) -> u32 {
    let sample = samples[*at];
    *at = if *at + 1 == samples.len() { 0 } else { *at + 1 };
    sample
}

/// Passes positions on that were drawn before, each as another one.
fn again(
    buffer: &mut Vec<u32>,
    at: usize,
    positions: &mut [u32],
    to: &mut impl Positions,
    other: impl Fn(u32) -> u32,
) {
    buffer.clear();
    buffer.extend(positions.iter().map(|&position| other(position)));
    let mut others = buffer.iter().copied();
    to.take(at, positions, || others.next().unwrap_or(0));
}

/// The number of a kind, drawn by the bounds of the shares, without a branch.
#[inline(always)]
fn draw_kind<const N: usize>(rng: &mut Xoshiro256PlusPlus, bounds: &[u64; N]) -> usize {
    let word = u64::from(rng.next_u32());
    bounds.iter().map(|&bound| usize::from(word >= bound)).sum()
}

/// A random word below `len`, by Lemire's multiplication without rejection. It favours no position
/// by more than one part in 2^64 / `len`.
#[inline(always)]
pub(crate) fn below(rng: &mut Xoshiro256PlusPlus, len: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(len)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn mix(text: &str) -> Mix {
        text.parse().unwrap()
    }

    fn take(choice: &Choice, text: &str, run: u64, share: Share, count: usize) -> Vec<(Op, u32)> {
        let mut stream = choice.stream(mix(text), run, share, choice.start());
        let mut block = Block::new(1);
        let mut ops = Vec::new();
        while ops.len() < count {
            stream.fill(&mut block);
            for (op, range) in block.runs() {
                ops.extend(block.positions()[range].iter().map(|&position| (op, position)));
            }
        }
        ops.truncate(count);
        ops
    }

    fn positions(dist: Dist, len: usize, count: usize) -> Vec<u32> {
        let choice = Choice::new(dist, len, 11);
        let ops = take(&choice, "100/0/0", 0, Share::ALONE, count);
        ops.into_iter().map(|(_, position)| position).collect()
    }

    fn counts(positions: &[u32]) -> HashMap<u32, usize> {
        let mut counts = HashMap::new();
        for &position in positions {
            *counts.entry(position).or_default() += 1;
        }
        counts
    }

    /// The chi-square statistic of the counts against equal shares of `cells` cells.
    fn chi_square(counts: &HashMap<u32, usize>, cells: usize) -> f64 {
        let total: usize = counts.values().sum();
        let expected = total as f64 / cells as f64;
        let square = |&count: &usize| (count as f64 - expected).powi(2) / expected;
        let empty = (cells - counts.len()) as f64;
        counts.values().map(square).sum::<f64>() + empty * expected
    }

    #[test]
    fn uniform_is_uniform() {
        let chi = chi_square(&counts(&positions(Dist::Uniform, 1000, 200_000)), 1000);
        // With 999 degrees of freedom: mean 999, standard deviation 45.
        assert!((820.0..1180.0).contains(&chi), "{chi}");
    }

    #[test]
    fn zipf_of_zero_is_uniform() {
        let uniform = positions(Dist::Uniform, 1000, 100);
        assert_eq!(positions(Dist::Zipf(0.0), 1000, 100), uniform);
        assert_eq!(positions(Dist::SparseZipf(0.0), 1000, 100), uniform);
    }

    #[test]
    fn sparse_zipf_chooses_the_positions_of_zipf() {
        let [zipf, sparse] = [Dist::Zipf(0.99), Dist::SparseZipf(0.99)];
        assert_eq!(positions(sparse, 1000, 5000), positions(zipf, 1000, 5000));
    }

    #[test]
    fn zipf_frequencies_follow_the_power_of_the_rank() {
        for exponent in [0.5, 0.99, 1.0, 2.0, 3.0] {
            const LEN: usize = 1000;
            let sampled = 64 * LEN; // once around the samples
            let mut by_rank: Vec<usize> =
                counts(&positions(Dist::Zipf(exponent), LEN, sampled)).into_values().collect();
            by_rank.sort_unstable_by(|a, b| b.cmp(a));
            let weight = |rank: usize| (rank as f64).powf(-exponent);
            let norm: f64 = (1..=LEN).map(weight).sum();
            for rank in [1, 2, 3] {
                let expected = sampled as f64 * weight(rank) / norm;
                let found = by_rank[rank - 1] as f64;
                let tolerance = 5.0 * expected.sqrt();
                assert!(
                    (found - expected).abs() < tolerance,
                    "zipf:{exponent} rank {rank}: {found}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn hot_keys_are_not_neighbours() {
        let counts = counts(&positions(Dist::Zipf(0.99), 1 << 16, 1 << 18));
        let mut hot: Vec<(usize, u32)> = counts.into_iter().map(|(p, c)| (c, p)).collect();
        hot.sort_unstable_by(|a, b| b.cmp(a));
        let mut hottest: Vec<u32> = hot[..16].iter().map(|&(_, p)| p).collect();
        hottest.sort_unstable();
        assert!(hottest.windows(2).all(|pair| pair[1] - pair[0] > 16), "{hottest:?}");
        // The hottest keys are not in one half either.
        assert!((3..=13).contains(&hottest.iter().filter(|&&p| p < 1 << 15).count()));
    }

    #[test]
    fn sequential_walks_up_and_around() {
        let walked = positions(Dist::Sequential, 100, 250);
        assert!(walked.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 100));
    }

    #[test]
    fn disjoint_threads_never_meet() {
        let choice = Choice::new(Dist::Disjoint, 1001, 3);
        for threads in [1, 2, 3, 7] {
            for thread in 0..threads {
                let share = Share { thread, threads };
                let range = share.part(1001);
                let ops = take(&choice, "50/25/25", 0, share, 1000);
                assert!(ops.iter().all(|&(_, p)| range.contains(&u64::from(p))));
            }
        }
    }

    #[test]
    fn more_threads_than_keys_still_have_keys() {
        let choice = Choice::new(Dist::Disjoint, 2, 3);
        for thread in 0..8 {
            let share = Share { thread, threads: 8 };
            assert!(take(&choice, "100/0/0", 0, share, 64).iter().all(|&(_, p)| p < 2));
        }
    }

    #[test]
    fn latest_keeps_a_window_of_present_keys_and_looks_at_its_young_end() {
        let choice = Choice::new(Dist::Latest, 1000, 9);
        let order: Vec<u32> = (0..1000).map(|n| choice.order().apply(n) as u32).collect();
        let mut present: std::collections::HashSet<u32> = order[..500].iter().copied().collect();
        let youngest = order[499];
        let (mut hits, mut lookups, mut first) = (0, 0, 0);
        for (op, position) in take(&choice, "80/10/10", 0, Share::ALONE, 20_000) {
            match op {
                Op::Insert => assert!(present.insert(position)),
                Op::Remove => _ = present.remove(&position),
                Op::Lookup => {
                    lookups += 1;
                    hits += usize::from(present.contains(&position));
                    first += usize::from(position == youngest);
                }
                Op::Scan | Op::Upsert => unreachable!("neither is in the mix"),
            }
        }
        assert!(hits * 100 > lookups * 98, "{hits} of {lookups}");
        assert!(first < lookups / 10, "the youngest key changes");
    }

    #[test]
    fn latest_threads_share_the_insertion_order() {
        let choice = Choice::new(Dist::Latest, 1000, 9);
        let inserted: Vec<u32> = (0..3)
            .flat_map(|thread| take(&choice, "0/100/0", 0, Share { thread, threads: 3 }, 100))
            .map(|(_, position)| position)
            .collect();
        let mut expected: Vec<u32> = (500..800).map(|n| choice.order().apply(n) as u32).collect();
        let mut found = inserted;
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_window_continues_in_the_next_run() {
        let choice = Choice::new(Dist::Latest, 1000, 9);
        let mut block = Block::new(1);
        let mut stream = choice.stream(mix("0/100/0"), 0, Share::ALONE, choice.start());
        stream.fill(&mut block);
        let window = stream.window().join(choice.start());
        assert_eq!((window.inserted, window.removed), (564, 0));
        let mut stream = choice.stream(mix("0/0/100"), 1, Share::ALONE, window);
        stream.fill(&mut block);
        assert_eq!(stream.window().removed, 64);
        assert_eq!(block.positions()[0], choice.order().apply(0) as u32);
    }

    #[test]
    fn kinds_come_in_their_shares_and_batches() {
        let choice = Choice::new(Dist::Uniform, 1000, 3);
        let mut stream = choice.stream(mix("60/15/10/5/10"), 0, Share::ALONE, choice.start());
        let mut block = Block::new(10);
        assert_eq!(block.len(), 70);
        let mut found = HashMap::new();
        for _ in 0..2000 {
            stream.fill(&mut block);
            for (op, range) in block.runs() {
                assert_eq!(range.len() % 10, 0);
                *found.entry(op).or_insert(0) += range.len() / 10;
            }
        }
        for (op, percent) in Op::ALL.into_iter().zip([60, 15, 10, 5, 10]) {
            let (count, expected) = (found[&op] as f64, 140.0 * f64::from(percent));
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{op:?}: {count}");
        }
    }

    #[test]
    fn upserts_choose_loaded_keys() {
        for dist in [Dist::Uniform, Dist::Zipf(0.99), Dist::SparseZipf(0.99), Dist::Sequential] {
            let choice = Choice::new(dist, 1001, 3);
            let loaded: std::collections::HashSet<u32> = choice.load_part(Share::ALONE).collect();
            let mut chosen = std::collections::HashSet::new();
            for (op, position) in take(&choice, "30/20/10/0/40", 0, Share::ALONE, 20_000) {
                if op == Op::Upsert {
                    assert!(loaded.contains(&position), "{dist}: {position}");
                    chosen.insert(position);
                }
            }
            assert!(chosen.len() > loaded.len() / 2, "{dist}: {} keys", chosen.len());
        }
    }

    #[test]
    fn a_block_has_one_run_of_each_kind_unless_its_order_matters() {
        for (dist, sorted) in
            [(Dist::Uniform, true), (Dist::Zipf(0.9), true), (Dist::Sequential, false)]
        {
            let choice = Choice::new(dist, 1000, 3);
            let mut stream = choice.stream(mix("40/30/30"), 0, Share::ALONE, choice.start());
            let mut block = Block::new(1);
            let mut most = 0;
            for _ in 0..100 {
                stream.fill(&mut block);
                most = most.max(block.runs().count());
                assert_eq!(block.runs().last().unwrap().1.end, block.len());
            }
            assert_eq!(most <= 3, sorted, "{dist}: {most} runs");
        }
    }

    #[test]
    fn runs_and_threads_differ_and_repeat() {
        let choice = Choice::new(Dist::Uniform, 1 << 20, 3);
        let share = |thread| Share { thread, threads: 2 };
        let ops = |run, thread| take(&choice, "90/5/5", run, share(thread), 64);
        assert_eq!(ops(0, 0), ops(0, 0));
        assert_ne!(ops(0, 0), ops(0, 1));
        assert_ne!(ops(0, 0), ops(1, 0));
        let again = Choice::new(Dist::Uniform, 1 << 20, 3);
        assert_eq!(ops(5, 1), take(&again, "90/5/5", 5, share(1), 64));
    }

    /// The positions of version 0.1 for seed 42, and the sorted kinds of a block. Recorded results
    /// name a seed, which must keep its meaning.
    #[test]
    fn the_meaning_of_a_seed_is_fixed() {
        let choice = Choice::new(Dist::Uniform, 2000, 42);
        let load: Vec<u32> = choice.load_part(Share::ALONE).take(4).collect();
        let ops = take(&choice, "90/5/5", 0, Share::ALONE, 4);
        let positions: Vec<u32> = ops.iter().map(|&(_, position)| position).collect();
        assert_eq!(load, [547, 152, 1608, 67]);
        assert_eq!(positions, [1915, 959, 1730, 310]);
        let ops = take(&choice, "30/30/40", 0, Share::ALONE, BLOCK_OPS);
        let runs: Vec<usize> = ops.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect();
        assert_eq!(runs, [20, 15, 29]);
    }
}
