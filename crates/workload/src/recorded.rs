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
    /// Whether the first thread begins at the first operation.
    from_start: bool,
}

/// A thread's way through the operations. All threads make all of them, so the mix is that of the
/// trace; each begins at another one.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    recorded: &'a Recorded,
    at: usize,
    /// The next operation of each kind.
    at_kind: [usize; Op::ALL.len()],
}

impl Recorded {
    pub(crate) fn new(trace: &Trace, seed: u64) -> Self {
        let mut present = trace.present.clone();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "trace"));
        present.shuffle(&mut rng);
        let of = |kind: Op| trace.steps.iter().filter(move |(op, _)| *op == kind);
        let by_kind = Op::ALL.map(|kind| of(kind).map(|step| step.1).collect());
        Self { present, steps: trace.steps.clone(), by_kind, from_start: trace.grows() }
    }

    /// The way of a thread. `random` is a random number, the same for all threads of a run or not.
    pub(crate) fn walk(&self, share: Share, random: u32) -> Walk<'_> {
        let len = self.steps.len();
        let apart = (len as u128 * share.thread as u128 / share.threads.max(1) as u128) as usize;
        let at = if self.from_start { apart } else { apart + random as usize } % len;
        let at_kind = self.by_kind.each_ref().map(|all| at % all.len().max(1));
        Walk { recorded: self, at, at_kind }
    }
}

impl Walk<'_> {
    /// The kind of the operation that is `ahead` of the next one.
    pub(crate) fn kind(&self, ahead: usize) -> Op {
        let steps = &self.recorded.steps;
        steps[(self.at + ahead) % steps.len()].0
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
                self.at = if self.at + 1 == steps.len() { 0 } else { self.at + 1 };
            }
            return;
        }
        let mut rest = positions.iter_mut();
        for (op, count) in runs {
            let kind = Op::ALL.iter().position(|of| *of == op).unwrap_or(0);
            let (all, at) = (&self.recorded.by_kind[kind], &mut self.at_kind[kind]);
            for position in rest.by_ref().take(count) {
                *position = all[*at];
                *at = if *at + 1 == all.len() { 0 } else { *at + 1 };
            }
        }
        // One operation gives the kind of a batch, so that kinds keep their shares.
        self.at = (self.at + positions.len() / batch) % steps.len();
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
        for thread in 0..2 {
            let taken = taken(&choice, Share { thread, threads: 2 }, 1);
            let from = trace.steps.iter().copied().cycle().skip(5 * thread);
            assert!(taken.iter().copied().eq(from.take(taken.len())), "{taken:?}");
        }
    }

    #[test]
    fn a_trace_that_keeps_the_size_begins_anywhere() {
        let choice = Choice::of_trace(&trace(0), 7);
        let starts: Vec<u32> = (0..20)
            .map(|run| {
                let mut stream = choice.stream(Mix::LOOKUPS, run, Share::ALONE, choice.start());
                let mut block = Block::new(1);
                stream.fill(&mut block);
                block.positions()[0]
            })
            .collect();
        assert!(starts.iter().any(|start| *start != starts[0]), "{starts:?}");
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
