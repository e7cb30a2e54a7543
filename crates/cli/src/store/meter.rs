//! Counts and times of transactions.

use super::contenders::Contender;
use super::engine::{Measured, Memory, Stop};
use super::timed;
use crate::drive::run::Failure;
use crate::flags::error::Error;
use crate::interrupt;
use hdrhistogram::Histogram;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// One of this many transactions is timed, not the first.
pub const SAMPLED: u64 = 17;

/// The longest time that a histogram records, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// Why a load or a run has no result.
pub enum Fault {
    Stop(Stop),
    Failure(Failure),
    Error(Error),
}

impl Fault {
    /// The error for a contender.
    pub fn of(self, contender: &Contender) -> Error {
        let index = contender.name();
        match self {
            Self::Stop(Stop::Wrong(what)) => Error::Wrong { index, what },
            Self::Stop(Stop::Refused(problem)) => {
                Error::value("--index", format_args!("`{index}` cannot go on: {problem}"))
            }
            Self::Stop(Stop::Log(flag, problem)) => {
                let remedy = "make room there; transactions that had ended are not lost";
                Error::value(flag, format_args!("`{index}` cannot go on: {problem}: {remedy}"))
            }
            Self::Failure(failure) => failure.of(&index),
            Self::Error(error) => error,
        }
    }
}

/// The operations of a thread's committed transactions, and their results.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub transactions: u64,
    pub operations: u64,
    /// The rows that scans returned.
    pub scanned: u64,
    /// Operations that found no record. Each record was loaded, or inserted and acknowledged, so
    /// there must be none.
    pub missed: u64,
    pub inserted: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.operations += other.operations;
        self.scanned += other.scanned;
        self.missed += other.missed;
        self.inserted += other.inserted;
    }
}

/// The result of a thread.
pub struct Lap {
    pub tally: Tally,
    pub start: Instant,
    pub end: Instant,
    pub index: timed::Sum,
    pub kinds: Vec<Kind>,
}

/// Transactions of one kind, and the latencies of some, in nanoseconds.
pub struct Kind {
    pub name: &'static str,
    pub transactions: u64,
    pub histogram: Histogram<u64>,
}

/// Counts the transactions of a thread, and times some.
pub struct Meter {
    pub start: Instant,
    pub tally: Tally,
    /// The transactions that were made, also those that have not ended.
    pub made: u64,
    kinds: Vec<Kind>,
}

/// A transaction that was made, and has not ended.
pub struct Open {
    name: &'static str,
    operations: u64,
    began: Option<Instant>,
}

impl Meter {
    pub fn new() -> Self {
        timed::take();
        LazyLock::force(&CLOCK);
        Self { start: Instant::now(), tally: Tally::default(), made: 0, kinds: Vec::new() }
    }

    /// Makes a transaction that ends at once.
    pub fn one(
        &mut self,
        name: &'static str,
        operations: u64,
        transact: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let open = self.make(name, operations, transact)?;
        self.end(open);
        Ok(())
    }

    /// Makes a transaction that ends later.
    pub fn make(
        &mut self,
        name: &'static str,
        operations: u64,
        transact: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<Open, Stop> {
        timed::begin();
        let sampled = self.made % SAMPLED == SAMPLED - 1;
        self.made += 1;
        let began = sampled.then(Instant::now);
        transact()?;
        Ok(Open { name, operations, began })
    }

    /// Ends a transaction.
    pub fn end(&mut self, Open { name, operations, began }: Open) {
        let time = began.map(|began| began.elapsed());
        let known = self.kinds.iter().position(|kind| kind.name == name);
        let at = known.unwrap_or_else(|| {
            self.kinds.push(Kind { name, transactions: 0, histogram: histogram() });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[at];
        kind.transactions += 1;
        if let Some(time) = time {
            kind.histogram.saturating_record(latency(time, *CLOCK));
        }
        self.tally.transactions += 1;
        self.tally.operations += operations;
    }

    /// Ends the measurement, with what the transactions have counted.
    pub fn lap(self, mut counted: Tally) -> Lap {
        let end = Instant::now();
        timed::begin(); // the last transaction has ended
        counted.add(self.tally);
        let (start, kinds) = (self.start, self.kinds);
        Lap { tally: counted, start, end, index: timed::take(), kinds }
    }
}

/// The time that two readings of the clock measure if nothing is between them.
static CLOCK: LazyLock<Duration> = LazyLock::new(|| {
    let mut times: Vec<Duration> = (0..101).map(|_| Instant::now().elapsed()).collect();
    times.sort_unstable();
    times[times.len() / 2]
});

/// The nanoseconds of a transaction, without those of the clock.
fn latency(measured: Duration, clock: Duration) -> u64 {
    (measured.saturating_sub(clock).as_nanos() as u64).clamp(1, LONGEST)
}

/// A histogram of nanoseconds.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are valid")
}

/// The result of a run or a load.
pub struct Sample {
    pub tally: Tally,
    /// The time from the start of the first thread to the end of the last.
    pub seconds: f64,
    /// Whether the user interrupted it, so that it may be shorter.
    pub cut: bool,
    /// The time that all threads have spent, and that of their indexes.
    pub thread_seconds: f64,
    pub index_seconds: Option<f64>,
    pub kinds: Vec<Kind>,
    pub aborts: Vec<(&'static str, u64)>,
    pub costs: Option<super::ycsb::Costs>,
    /// The number of records before, and after.
    pub records: [u64; 2],
    /// The memory of each part, afterwards.
    pub memory: Vec<Memory>,
}

impl Sample {
    /// Adds a later part of the same run.
    pub fn add(&mut self, later: Self) {
        self.tally.add(later.tally);
        self.seconds += later.seconds;
        self.cut |= later.cut;
        self.thread_seconds += later.thread_seconds;
        let both = self.index_seconds.zip(later.index_seconds).map(|(a, b)| a + b);
        self.index_seconds = both.or(self.index_seconds).or(later.index_seconds);
        add_kinds(&mut self.kinds, later.kinds);
        for (reason, count) in &mut self.aborts {
            let of = later.aborts.iter().find(|(other, _)| other == reason);
            *count += of.map_or(0, |&(_, count)| count);
        }
        self.records[1] = later.records[1];
        self.memory = later.memory;
    }
}

/// Adds transactions and latencies to those of the same kind.
fn add_kinds(all: &mut Vec<Kind>, kinds: Vec<Kind>) {
    for of in kinds {
        match all.iter_mut().find(|known| known.name == of.name) {
            Some(known) => {
                known.transactions += of.transactions;
                known.histogram += &of.histogram;
            }
            None => all.push(of),
        }
    }
}

/// Adds the laps of all threads.
pub fn joined(engine: &dyn Measured, laps: Vec<Lap>, before: &[(&'static str, u64)]) -> Sample {
    let start = laps.iter().map(|lap| lap.start).min();
    let end = laps.iter().map(|lap| lap.end).max();
    let mut sample = Sample {
        tally: Tally::default(),
        seconds: start.zip(end).map_or(0.0, |(start, end)| (end - start).as_secs_f64()),
        cut: interrupt::pending(),
        thread_seconds: 0.0,
        index_seconds: engine.times_index().then_some(0.0),
        kinds: Vec::new(),
        aborts: engine.aborts(),
        costs: None,
        records: [0; 2],
        memory: engine.memory(),
    };
    for (reason, count) in &mut sample.aborts {
        let earlier = before.iter().find(|(other, _)| other == reason);
        *count -= earlier.map_or(0, |&(_, count)| count);
    }
    for lap in laps {
        sample.tally.add(lap.tally);
        let seconds = (lap.end - lap.start).as_secs_f64();
        sample.thread_seconds += seconds;
        if let Some(sum) = sample.index_seconds {
            sample.index_seconds = lap.index.share().map(|share| sum + seconds * share);
        }
        add_kinds(&mut sample.kinds, lap.kinds);
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies contained the two readings of the clock.
    #[test]
    fn latencies_are_without_the_clock() {
        let of =
            |measured, clock| latency(Duration::from_nanos(measured), Duration::from_nanos(clock));
        assert_eq!([of(430, 30), of(30, 30), of(20, 30)], [400, 1, 1]);
        assert_eq!(of(u64::MAX, 30), LONGEST);
        assert!(*CLOCK < Duration::from_secs(1));
    }
}
