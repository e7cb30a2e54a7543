//! The measured loops.

use super::engine::Engine;
use super::job::{Job, Transactions};
use super::plan::Plan;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::values::THREADS_MAX;
use crate::interrupt;
use crate::store::engine::Stop;
use crate::store::meter::{Fault, Lap, Meter, Sample, Tally, joined};
use silvics::Pages;
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::Share;
use silvics_workload::ycsb::{Inserts, Op};
use std::ops::Range;
use std::sync::Barrier;
use std::time::Duration;

/// The records of a transaction of the load, in each database.
pub const BATCH: u64 = 100;

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

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_workload::ycsb::Study;
    use std::collections::BTreeMap;

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
