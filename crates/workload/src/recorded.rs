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
    threads: Vec<Steps>,
    /// Whether threads begin at the first operation.
    from_start: bool,
}

/// The operations of a thread.
#[derive(Debug)]
struct Steps {
    all: Vec<(Op, u32)>,
    /// The positions of each kind of operation, for batches.
    by_kind: [Vec<u32>; Op::ALL.len()],
}

/// A thread's way through its operations.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    steps: &'a Steps,
    at: usize,
    /// The next operation of each kind.
    at_kind: [usize; Op::ALL.len()],
}

impl Recorded {
    pub(crate) fn new(trace: &Trace, seed: u64) -> Self {
        let mut present = trace.present.clone();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(label(seed, "trace"));
        present.shuffle(&mut rng);
        let of_thread = |all: &Vec<(Op, u32)>| {
            let of = |kind: Op| all.iter().filter(move |(op, _)| *op == kind).map(|step| step.1);
            Steps { by_kind: Op::ALL.map(|kind| of(kind).collect()), all: all.clone() }
        };
        let threads = trace.threads.iter().map(of_thread).collect();
        Self { present, threads, from_start: trace.growth != 0 }
    }

    /// The way of a thread. `random` is a random number below 2^32.
    pub(crate) fn walk(&self, share: Share, random: u32) -> Walk<'_> {
        let steps = &self.threads[share.thread % self.threads.len()];
        let alike = share.thread / self.threads.len(); // threads with the same operations
        let of = share.threads.div_ceil(self.threads.len()).max(1);
        let len = steps.all.len();
        let start = if self.from_start { len * alike / of } else { random as usize };
        let at_kind = steps.by_kind.each_ref().map(|all| start % all.len().max(1));
        Walk { steps, at: start % len, at_kind }
    }
}

impl Walk<'_> {
    /// The kind of the operation that is `ahead` of the next one.
    pub(crate) fn kind(&self, ahead: usize) -> Op {
        self.steps.all[(self.at + ahead) % self.steps.all.len()].0
    }

    /// Sets the positions of operations: in their order, or in batches those of each kind.
    pub(crate) fn take(
        &mut self,
        runs: impl Iterator<Item = (Op, usize)>,
        batch: usize,
        positions: &mut [u32],
    ) {
        let len = self.steps.all.len();
        if batch == 1 {
            for position in positions.iter_mut() {
                *position = self.steps.all[self.at].1;
                self.at = if self.at + 1 == len { 0 } else { self.at + 1 };
            }
            return;
        }
        let mut rest = positions.iter_mut();
        for (op, count) in runs {
            let kind = Op::ALL.iter().position(|of| *of == op).unwrap_or(0);
            let (all, at) = (&self.steps.by_kind[kind], &mut self.at_kind[kind]);
            for position in rest.by_ref().take(count) {
                *position = all[*at];
                *at = if *at + 1 == all.len() { 0 } else { *at + 1 };
            }
        }
        // One operation gives the kind of a batch, so that kinds keep their shares.
        self.at = (self.at + positions.len() / batch) % len;
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::{Trace, TraceKeys};
    use crate::{Block, Choice, Mix, Op, Share};

    /// Two threads over the keys 0 to 9, of which the even ones are present.
    fn trace(growth: i64) -> Trace {
        let first = (0..10).map(|at| (Op::Lookup, at)).collect();
        let second = (0..10).map(|at| (if at % 2 == 0 { Op::Remove } else { Op::Upsert }, at));
        Trace {
            keys: TraceKeys::U64((0..10).collect()),
            present: vec![0, 2, 4, 6, 8],
            threads: vec![first, second.collect()],
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
        let trace = trace(1);
        let choice = Choice::of_trace(&trace, 7);
        let parts = (0..3).flat_map(|thread| choice.load_part(Share { thread, threads: 3 }));
        let mut loaded: Vec<u32> = parts.collect();
        loaded.sort_unstable();
        assert_eq!(loaded, trace.present);
        for thread in 0..2 {
            let taken = taken(&choice, Share { thread, threads: 2 }, 1);
            let expected = trace.threads[thread].iter().copied().cycle().take(taken.len());
            assert!(taken.iter().copied().eq(expected), "{taken:?}");
        }
        // A third thread has the operations of the first, from their middle on.
        let third = taken(&choice, Share { thread: 2, threads: 3 }, 1);
        assert_eq!(third[..2], [(Op::Lookup, 5), (Op::Lookup, 6)]);
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
