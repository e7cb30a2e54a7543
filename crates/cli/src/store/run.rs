//! The measured loops.

use super::engine::{Engine, Stop};
use super::job::{Job, Transactions};
use super::plan::{Contender, Plan};
use super::timed;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use hdrhistogram::Histogram;
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::Share;
use silvics_workload::ycsb::{Inserts, Op};
use std::time::{Duration, Instant};

/// One of this many transactions is timed.
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
    /// Operations that found no record.
    pub missed: u64,
    pub inserted: u64,
}

/// The result of a thread.
pub struct Lap {
    pub tally: Tally,
    pub time: Duration,
    pub index: timed::Sum,
    pub latency: Vec<Latency>,
}

/// Latencies of one kind of transaction, in nanoseconds.
pub struct Latency {
    pub kind: &'static str,
    pub histogram: Histogram<u64>,
}

/// The context of a transaction.
pub struct Context<'a> {
    pub job: &'a Job,
    pub inserts: &'a Inserts,
    /// A number for the values that the thread writes. Each transaction has another one.
    pub stamp: u64,
    pub get_many: bool,
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

    /// Calls `transact` with the operations of one transaction after the other.
    pub fn drive(
        mut self,
        mut transact: impl FnMut(&[Op], &mut Context<'a>) -> Result<(), Stop>,
    ) -> Result<Lap, Stop> {
        let context = &mut self.context;
        let mut latency: Vec<Latency> = Vec::new();
        let mut fault = None;
        timed::take();
        let start = Instant::now();
        loop {
            let more = self.transactions.next_block(|ops| {
                timed::begin();
                let sampled = context.tally.transactions.is_multiple_of(SAMPLED);
                let began = sampled.then(Instant::now);
                context.stamp += 1;
                if let Err(stop) = transact(ops, context) {
                    fault = Some(stop);
                    return false;
                }
                if let Some(began) = began {
                    record(&mut latency, ops, began.elapsed());
                }
                context.tally.transactions += 1;
                context.tally.operations += ops.len() as u64;
                self.left.is_none_or(|left| context.tally.operations < left)
            });
            let is_over = self.deadline.is_some_and(|deadline| start.elapsed() >= deadline)
                || self.finished.is_some_and(|finished| finished.load(Ordering::Relaxed));
            if !more || is_over || interrupt::pending() {
                break;
            }
        }
        let time = start.elapsed();
        if let Some(finished) = self.finished {
            finished.store(true, Ordering::Relaxed);
        }
        match fault {
            Some(stop) => Err(stop),
            None => Ok(Lap { tally: context.tally, time, index: timed::take(), latency }),
        }
    }
}

/// Enters the time of a transaction.
fn record(latency: &mut Vec<Latency>, ops: &[Op], time: Duration) {
    let kind = match ops {
        [op] => op.kind_name(),
        _ => "TRANSACTION",
    };
    let nanoseconds = (time.as_nanos() as u64).clamp(1, LONGEST);
    let known = latency.iter().position(|of| of.kind == kind);
    let at = known.unwrap_or_else(|| {
        latency.push(Latency { kind, histogram: histogram() });
        latency.len() - 1
    });
    latency[at].histogram.saturating_record(nanoseconds);
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are valid")
}

/// The result of a load.
pub struct Loaded {
    pub seconds: f64,
    pub records: u64,
}

/// Loads the records by all threads of the crew.
pub fn load(engine: &dyn Engine, plan: &Plan, crew: &Crew) -> Result<Loaded, Fault> {
    let start = Instant::now();
    let work = |share: Share| engine.load(&plan.job, plan.job.load_part(share));
    let done = crew.work(plan.load_threads, work, || ()).map_err(Fault::Failure)?;
    let seconds = start.elapsed().as_secs_f64();
    done.into_iter().collect::<Result<(), Stop>>().map_err(Fault::Stop)?;
    if interrupt::pending() {
        return Err(Fault::Failure(Failure::Interrupted));
    }
    let records = engine.records().map_err(Fault::Stop)?;
    if records != plan.job.records() {
        let wanted = plan.job.records();
        let wrong = format!("it has {records} records after the load of {wanted}");
        return Err(Fault::Stop(Stop::Wrong(wrong)));
    }
    Ok(Loaded { seconds, records })
}

/// The result of a run.
pub struct Sample {
    pub tally: Tally,
    /// The time of the longest thread.
    pub seconds: f64,
    /// The time that all threads have spent, and that of their indexes.
    pub thread_seconds: f64,
    pub index_seconds: Option<f64>,
    pub latency: Vec<Latency>,
    pub aborts: Vec<(&'static str, u64)>,
    pub costs: Option<super::costs::Costs>,
}

/// Runs the benchmark once.
pub fn run(
    engine: &dyn Engine,
    plan: &Plan,
    inserts: &Inserts,
    (threads, round): (usize, usize),
    crew: &Crew,
) -> Result<Sample, Fault> {
    let before = (engine.aborts(), engine.records().map_err(Fault::Stop)?);
    let finished = AtomicBool::new(false);
    let seed = plan.seed.wrapping_add(round as u64);
    let work = |share: Share| -> Result<Lap, Fault> {
        let stream = plan.job.stream(seed, share, inserts, plan.transaction);
        let transactions = stream.map_err(Fault::Error)?;
        let part = plan.operations.map(|all| {
            let part = share.part(all);
            part.end - part.start
        });
        let worker = Worker {
            context: Context {
                job: &plan.job,
                inserts,
                stamp: ((round * threads + share.thread + 1) as u64) << 32,
                get_many: plan.get_many,
                tally: Tally::default(),
            },
            transactions,
            left: part,
            deadline: plan.time,
            finished: plan.stops_with_first().then_some(&finished),
        };
        engine.run(worker).map_err(Fault::Stop)
    };
    let laps = crew.work(threads, work, || ()).map_err(Fault::Failure)?;
    let laps = laps.into_iter().collect::<Result<Vec<Lap>, Fault>>()?;
    let sample = joined(engine, laps, &before.0);
    let records = engine.records().map_err(Fault::Stop)?;
    let wanted = before.1 + sample.tally.inserted;
    if records != wanted {
        let wrong = format!("it has {records} records after the run, and should have {wanted}");
        return Err(Fault::Stop(Stop::Wrong(wrong)));
    }
    let costs = plan.costs.then(|| super::costs::measure(engine, plan, inserts, threads, crew));
    Ok(Sample { costs: costs.transpose()?.flatten(), ..sample })
}

/// Adds the laps of all threads.
fn joined(engine: &dyn Engine, laps: Vec<Lap>, before: &[(&'static str, u64)]) -> Sample {
    let mut sample = Sample {
        tally: Tally::default(),
        seconds: 0.0,
        thread_seconds: 0.0,
        index_seconds: engine.times_index().then_some(0.0),
        latency: Vec::new(),
        aborts: engine.aborts(),
        costs: None,
    };
    for (reason, count) in &mut sample.aborts {
        let earlier = before.iter().find(|(other, _)| other == reason);
        *count -= earlier.map_or(0, |&(_, count)| count);
    }
    for lap in laps {
        let (all, one) = (&mut sample.tally, lap.tally);
        all.transactions += one.transactions;
        all.operations += one.operations;
        all.scanned += one.scanned;
        all.missed += one.missed;
        all.inserted += one.inserted;
        let seconds = lap.time.as_secs_f64();
        sample.seconds = sample.seconds.max(seconds);
        sample.thread_seconds += seconds;
        if let Some(sum) = sample.index_seconds {
            sample.index_seconds = lap.index.share().map(|share| sum + seconds * share);
        }
        for of in lap.latency {
            match sample.latency.iter_mut().find(|all| all.kind == of.kind) {
                Some(all) => all.histogram += &of.histogram,
                None => sample.latency.push(of),
            }
        }
    }
    sample
}
