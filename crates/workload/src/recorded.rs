//! The operations of a trace, as a stream.

use crate::choice::label;
use crate::trace::Trace;
use crate::{Op, Share};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The load and the operations of a trace.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The positions that are loaded, in a random order: a program does not load in the order of
    /// the trace, which is that of the keys.
    pub(crate) present: Vec<u32>,
    steps: Vec<(Op, u32)>,
    /// The positions of each kind of operation, for batches.
    by_kind: [Vec<u32>; Op::ALL.len()],
}

/// A thread's way through the operations. Each of `n` threads makes every `n`th operation, so
/// all of them together make each operation once, and then again.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    recorded: &'a Recorded,
    /// The next operation.
    at: usize,
    thread: usize,
    threads: usize,
    /// The number of its batches so far.
    batches: usize,
    /// The next operation of each kind, after the first batches: every `n`th batch of a kind is the
    /// thread's.
    at_kind: Option<[usize; Op::ALL.len()]>,
}

impl Recorded {
    pub(crate) fn new(trace: &Trace, seed: u64) -> Self {
        let mut present = trace.present.clone();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "trace"));
        present.shuffle(&mut rng);
        let of = |kind: Op| trace.steps.iter().filter(move |(op, _)| *op == kind);
        let by_kind = Op::ALL.map(|kind| of(kind).map(|step| step.1).collect());
        Self { present, steps: trace.steps.clone(), by_kind }
    }

    /// The way of a thread.
    pub(crate) fn walk(&self, Share { thread, threads }: Share) -> Walk<'_> {
        let at = thread % self.steps.len();
        Walk { recorded: self, at, thread, threads, batches: 0, at_kind: None }
    }
}

impl Walk<'_> {
    /// The kind of the batch that is `ahead` of the next one. That is the kind of one operation of
    /// as many as there are in the batch, any of them: kinds keep their shares.
    pub(crate) fn kind(&self, ahead: usize, batch: usize) -> Op {
        let steps = &self.recorded.steps;
        if batch == 1 {
            return steps[(self.at + ahead * self.threads) % steps.len()].0;
        }
        let number = (self.batches + ahead) * self.threads + self.thread;
        let any = label(number as u64, "kind") as usize % batch;
        steps[(number * batch + any) % steps.len()].0
    }

    /// Sets the positions of operations: in their order, or in batches those of each kind.
    pub(crate) fn take(
        &mut self,
        runs: impl Iterator<Item = (Op, usize)>,
        batch: usize,
        positions: &mut [u32],
    ) {
        let steps = &self.recorded.steps;
        if batch == 1 {
            for position in positions {
                *position = steps[self.at].1;
                self.at += self.threads;
                if self.at >= steps.len() {
                    self.at %= steps.len();
                }
            }
            return;
        }
        let by_kind = &self.recorded.by_kind;
        let first = || by_kind.each_ref().map(|all| self.thread * batch % all.len().max(1));
        let at_kind = self.at_kind.get_or_insert_with(first);
        let mut rest = positions.chunks_exact_mut(batch);
        for (op, count) in runs {
            let kind = Op::ALL.iter().position(|of| *of == op).unwrap_or(0);
            let (all, at) = (&by_kind[kind], &mut at_kind[kind]);
            for positions in rest.by_ref().take(count / batch) {
                for position in positions {
                    *position = all[*at];
                    *at = if *at + 1 == all.len() { 0 } else { *at + 1 };
                }
                // The batches of the other threads.
                *at = (*at + (self.threads - 1) * batch) % all.len();
            }
        }
        self.batches += positions.len() / batch;
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::{Trace, TraceKeys};
    use crate::{Block, Choice, Mix, Op, Share};

    /// Operations on the keys 0 to 9, of which the even ones are present.
    fn trace(growth: i64) -> Trace {
        let kind = |at| if at % 2 == 0 { Op::Remove } else { Op::Upsert };
        Trace {
            keys: TraceKeys::U64((0..10).collect()),
            present: vec![0, 2, 4, 6, 8],
            steps: (0..10).map(|at| (kind(at), at)).collect(),
            threads: 2,
            batch: 4,
            scan_length: 1,
            growth,
            has_ends: false,
        }
    }

    fn taken(choice: &Choice, share: Share, batch: usize) -> Vec<(Op, u32)> {
        let mut stream = choice.stream(Mix::LOOKUPS, 3, share, choice.start());
        let mut block = Block::new(batch);
        let mut taken = Vec::new();
        for _ in 0..3 {
            stream.fill(&mut block);
            for (op, range) in block.runs() {
                taken.extend(block.positions()[range].iter().map(|at| (op, *at)));
            }
        }
        taken
    }

    #[test]
    fn a_trace_is_loaded_and_repeated_in_order() {
        let trace = trace(5);
        let choice = Choice::of_trace(&trace, 7);
        let parts = (0..3).flat_map(|thread| choice.load_part(Share { thread, threads: 3 }));
        let mut loaded: Vec<u32> = parts.collect();
        loaded.sort_unstable();
        assert_eq!(loaded, trace.present);
        for threads in 1..=3 {
            let mut first = Vec::new();
            for thread in 0..threads {
                let taken = taken(&choice, Share { thread, threads }, 1);
                let own = trace.steps.iter().copied().cycle().skip(thread).step_by(threads);
                assert!(taken.iter().copied().eq(own.take(taken.len())), "{taken:?}");
                let share = (10 - thread).div_ceil(threads);
                first.extend_from_slice(&taken[..share]);
            }
            first.sort_unstable_by_key(|step| step.1);
            assert_eq!(first, trace.steps, "all threads make each operation once");
        }
    }

    /// Batches take each position of their kind before one comes again.
    #[test]
    fn batches_of_all_threads_are_different_ones() {
        let choice = Choice::of_trace(&trace(0), 7);
        let of = |thread| taken(&choice, Share { thread, threads: 2 }, 2);
        let firsts = [0, 1].map(|thread| {
            let taken = of(thread);
            let removed = taken.into_iter().filter(|(op, _)| *op == Op::Remove);
            removed.take(2).map(|(_, at)| at).collect::<Vec<_>>()
        });
        assert_eq!(firsts, [vec![0, 2], vec![4, 6]]);
    }

    #[test]
    fn batches_are_of_one_kind_with_the_positions_of_that_kind() {
        let choice = Choice::of_trace(&trace(0), 7);
        let taken = taken(&choice, Share { thread: 1, threads: 2 }, 4);
        for group in taken.chunks(4) {
            assert!(group.iter().all(|(op, _)| *op == group[0].0), "{group:?}");
        }
        let is_right = |&(op, at): &(Op, u32)| (op == Op::Remove) == (at % 2 == 0);
        assert!(taken.iter().all(is_right), "{taken:?}");
        assert!([Op::Remove, Op::Upsert].iter().all(|op| taken.iter().any(|(of, _)| of == op)));
    }
}
