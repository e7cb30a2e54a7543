//! The measured loops.

use super::contenders::Contender;
use super::engine::{Engine, Memory, Stop};
use super::job::{Job, Transactions};
use super::plan::Plan;
use super::timed;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::values::THREADS_MAX;
use crate::interrupt;
use hdrhistogram::Histogram;
use silvics::Pages;
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::Share;
use silvics_workload::ycsb::{Inserts, Op};
use std::ops::Range;
use std::sync::{Barrier, LazyLock};
use std::time::{Duration, Instant};

/// One of this many transactions is timed, not the first.
pub const SAMPLED: u64 = 17;

/// The records of a transaction of the load, in each database.
pub const BATCH: u64 = 100;

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
struct Meter {
    start: Instant,
    tally: Tally,
    kinds: Vec<Kind>,
}

impl Meter {
    fn new() -> Self {
        timed::take();
        LazyLock::force(&CLOCK);
        Self { start: Instant::now(), tally: Tally::default(), kinds: Vec::new() }
    }

    /// Makes a transaction.
    fn one(
        &mut self,
        name: &'static str,
        operations: u64,
        transact: impl FnOnce() -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        timed::begin();
        let sampled = self.tally.transactions % SAMPLED == SAMPLED - 1;
        let began = sampled.then(Instant::now);
        transact()?;
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
        Ok(())
    }

    /// Ends the measurement, with what the transactions have counted.
    fn lap(self, mut counted: Tally) -> Lap {
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

/// The context of a transaction.
pub struct Context<'a> {
    pub job: &'a Job,
    pub inserts: &'a Inserts,
    /// A number for the values that the thread writes. Each transaction has another one.
    pub stamp: u64,
    pub get_many: bool,
    /// The operations' results, which the engine counts.
    pub tally: Tally,
}

/// The work of a thread.
pub struct Worker<'a> {
    context: Context<'a>,
    transactions: Transactions<'a>,
    /// The operations that are left, if their number ends the run.
    left: Option<u64>,
    deadline: Option<Duration>,
    /// Set when the first thread has finished, if that ends the run.
    finished: Option<&'a AtomicBool>,
}

impl<'a> Worker<'a> {
    /// The benchmark.
    #[cfg(feature = "databases")]
    pub fn job(&self) -> &'a Job {
        self.context.job
    }

    /// The bytes of the longest field.
    pub fn field_bytes(&self) -> usize {
        self.context.job.field_bytes() as usize
    }

    /// Calls `transact` with the operations of one transaction after the other. The last one may be
    /// shorter.
    pub fn drive(
        mut self,
        mut transact: impl FnMut(&[Op], &mut Context<'a>) -> Result<(), Stop>,
    ) -> Result<Lap, Stop> {
        let context = &mut self.context;
        let mut fault = None;
        let mut meter = Meter::new();
        loop {
            let more = self.transactions.next_block(|ops| {
                let left = self.left.map_or(u64::MAX, |all| all - meter.tally.operations);
                let ops = &ops[..ops.len().min(left as usize)];
                if ops.is_empty() {
                    return false;
                }
                context.stamp += 1;
                let done = meter.one(kind_of(ops), ops.len() as u64, || transact(ops, context));
                fault = done.err();
                fault.is_none()
            });
            let is_over = self.deadline.is_some_and(|deadline| meter.start.elapsed() >= deadline)
                || self.finished.is_some_and(|finished| finished.load(Ordering::Relaxed));
            if !more || is_over || interrupt::pending() {
                break;
            }
        }
        let lap = meter.lap(context.tally);
        if let Some(finished) = self.finished {
            finished.store(true, Ordering::Relaxed);
        }
        fault.map_or(Ok(lap), Err)
    }
}

/// The name of a kind of transaction.
fn kind_of(ops: &[Op]) -> &'static str {
    match ops {
        [op] => op.kind_name(),
        _ => "TRANSACTION",
    }
}

/// The records that a thread loads, by their places: see [`Job::loaded`].
pub struct Loader<'a> {
    pub job: &'a Job,
    places: Range<u64>,
}

impl Loader<'_> {
    /// Calls `insert` with the records of one transaction after the other.
    pub fn drive(self, mut insert: impl FnMut(&[u64]) -> Result<(), Stop>) -> Result<Lap, Stop> {
        let mut meter = Meter::new();
        let (mut first, mut records) = (self.places.start, Vec::with_capacity(BATCH as usize));
        while first < self.places.end && !interrupt::pending() {
            let last = self.places.end.min(first + BATCH);
            records.clear();
            records.extend((first..last).map(|place| self.job.loaded(place)));
            meter.one("BATCH", last - first, || insert(&records))?;
            first = last;
        }
        Ok(meter.lap(Tally::default()))
    }
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
    pub costs: Option<super::costs::Costs>,
    /// The number of records before, and after.
    pub records: [u64; 2],
    /// The memory of each part, afterwards.
    pub memory: Vec<Memory>,
}

/// Loads the records by all threads of the crew.
pub fn load(engine: &dyn Engine, plan: &Plan, crew: &Crew) -> Result<Sample, Fault> {
    let barrier = Barrier::new(plan.load_threads);
    let before = engine.aborts();
    let work = |share: Share| {
        let loader = Loader { job: &plan.job, places: plan.job.load_part(share) };
        barrier.wait();
        engine.load(loader).map_err(Fault::Stop)
    };
    let laps = crew.work(plan.load_threads, work, || ()).map_err(Fault::Failure)?;
    let laps = laps.into_iter().collect::<Result<Vec<Lap>, Fault>>()?;
    let mut sample = joined(engine, laps, &before);
    sample.records = [0, engine.records().map_err(Fault::Stop)?];
    let wanted = if sample.cut { sample.tally.operations } else { plan.job.records() };
    if sample.records[1] != wanted {
        let has = sample.records[1];
        let wrong = format!("it has {has} records after the load of {wanted}");
        return Err(Fault::Stop(Stop::Wrong(wrong)));
    }
    Ok(sample)
}

/// Runs the benchmark once. No other run of the command has the same `number`.
pub fn run(
    engine: &dyn Engine,
    plan: &Plan,
    inserts: &Inserts,
    (threads, round, number): (usize, usize, usize),
    pages: Pages,
    crew: &Crew,
) -> Result<Sample, Fault> {
    let (aborts, before) = (engine.aborts(), engine.records().map_err(Fault::Stop)?);
    let (finished, barrier) = (AtomicBool::new(false), Barrier::new(threads));
    let seed = plan.seed.wrapping_add(round as u64);
    let work = |share: Share| -> Result<Lap, Fault> {
        let transactions = plan.job.stream(seed, share, inserts, plan.transaction);
        let part = plan.operations.map(|all| {
            let part = share.part(all);
            part.end - part.start
        });
        barrier.wait();
        let worker = Worker {
            context: Context {
                job: &plan.job,
                inserts,
                stamp: ((number * THREADS_MAX + share.thread) as u64) << 32,
                get_many: plan.get_many,
                tally: Tally::default(),
            },
            transactions: transactions.map_err(Fault::Error)?,
            left: part,
            deadline: plan.time,
            finished: plan.stops_with_first().then_some(&finished),
        };
        engine.run(worker).map_err(Fault::Stop)
    };
    let laps = crew.work(threads, work, || ()).map_err(Fault::Failure)?;
    let laps = laps.into_iter().collect::<Result<Vec<Lap>, Fault>>()?;
    let mut sample = joined(engine, laps, &aborts);
    let Tally { missed, inserted, .. } = sample.tally;
    if missed > 0 {
        let wrong = format!("{missed} operations have not found their record");
        return Err(Fault::Stop(Stop::Wrong(wrong)));
    }
    sample.records = [before, engine.records().map_err(Fault::Stop)?];
    if sample.records[1] != before + inserted {
        let (has, wanted) = (sample.records[1], before + inserted);
        let wrong = format!("it has {has} records after the run, and should have {wanted}");
        return Err(Fault::Stop(Stop::Wrong(wrong)));
    }
    if plan.costs && !sample.cut {
        let of_run = (threads, pages, seed);
        sample.costs = match super::costs::measure(engine, plan, inserts, of_run, crew) {
            Err(Fault::Failure(Failure::Interrupted)) => None, // the run itself is complete
            costs => costs?,
        };
    }
    Ok(sample)
}

/// Adds the laps of all threads.
fn joined(engine: &dyn Engine, laps: Vec<Lap>, before: &[(&'static str, u64)]) -> Sample {
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
        for of in lap.kinds {
            match sample.kinds.iter_mut().find(|all| all.name == of.name) {
                Some(all) => {
                    all.transactions += of.transactions;
                    all.histogram += &of.histogram;
                }
                None => sample.kinds.push(of),
            }
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_workload::ycsb::Study;
    use std::collections::BTreeMap;

    /// Latencies contained the two readings of the clock.
    #[test]
    fn latencies_are_without_the_clock() {
        let of =
            |measured, clock| latency(Duration::from_nanos(measured), Duration::from_nanos(clock));
        assert_eq!([of(430, 30), of(30, 30), of(20, 30)], [400, 1, 1]);
        assert_eq!(of(u64::MAX, 30), LONGEST);
        assert!(*CLOCK < Duration::from_secs(1));
    }

    /// A load in ascending order turned the study's trees, which do not balance themselves, into
    /// lists: it took time that grew with the square of the number of rows.
    #[test]
    fn the_studys_rows_are_not_loaded_in_the_order_of_their_keys() {
        const ROWS: u64 = 10_000;
        let job = Job::study(Study { rows: ROWS, ..Study::ATC18 }, 1);
        let mut depths: BTreeMap<u64, u32> = BTreeMap::new();
        for thread in 0..2 {
            let places = job.load_part(Share { thread, threads: 2 });
            let lap = Loader { job: &job, places }.drive(|records| {
                for &record in records {
                    // A leaf of a binary search tree is below the deeper one of its neighbours.
                    let below = depths.range(..record).next_back().map_or(0, |(_, depth)| *depth);
                    let above = depths.range(record..).next().map_or(0, |(_, depth)| *depth);
                    assert_eq!(depths.insert(record, 1 + below.max(above)), None);
                }
                Ok(())
            });
            assert_eq!(lap.unwrap().tally.operations, ROWS / 2);
        }
        assert!(depths.keys().copied().eq(0..ROWS));
        let deepest = depths.values().max();
        assert!(deepest.is_some_and(|deepest| *deepest < 100), "{deepest:?}");
    }
}
