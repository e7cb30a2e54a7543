//! The measured loops.

use super::engine::{Engine, now};
use super::plan::{End, Plan};
use crate::drive::subject::Crew;
use crate::interrupt;
use crate::store::engine::{Memory, Stop};
use crate::store::meter::{Fault, Lap, Meter, Sample, Tally, joined};
use crate::store::report::NEW_ORDER;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_testkit::clock::Clock;
use silvics_tpcc::Unit;
use silvics_tpcc::serial::{Disorder, Recorder};
use silvics_workload::Share;
use silvics_workload::tpcc::{Population, Terminal, Transaction};
use std::sync::Barrier;

/// The name of a kind of transaction. New orders that are rolled back are a kind of their own,
/// because they do not count for tpmC here.
fn kind(transaction: &Transaction) -> &'static str {
    match transaction {
        Transaction::NewOrder(order) if order.rolls_back() => "ROLLED_BACK",
        Transaction::NewOrder(_) => NEW_ORDER,
        Transaction::Payment(_) => "PAYMENT",
        Transaction::OrderStatus(_) => "ORDER_STATUS",
        Transaction::Delivery(_) => "DELIVERY",
        Transaction::StockLevel(_) => "STOCK_LEVEL",
    }
}

/// The work of a thread.
pub struct Worker {
    terminal: Terminal,
    end: End,
}

/// The transactions after which a thread looks at the time.
const LOOKS: u64 = 16;

impl Worker {
    /// Calls `transact` with one transaction after the other.
    pub fn drive(
        mut self,
        mut transact: impl FnMut(&Transaction) -> Result<(), Stop>,
    ) -> Result<Lap, Stop> {
        let mut meter = Meter::new();
        loop {
            let done = meter.tally.transactions;
            let is_over = match self.end {
                End::Transactions(all) => done == all,
                End::After(time) => done.is_multiple_of(LOOKS) && meter.start.elapsed() >= time,
            };
            if is_over || (done.is_multiple_of(LOOKS) && interrupt::pending()) {
                return Ok(meter.lap(Tally::default()));
            }
            let transaction = self.terminal.draw();
            meter.one(kind(&transaction), 1, || transact(&transaction))?;
        }
    }
}

/// Loads the database by all threads of the crew, which share its parts.
pub fn load(engine: &dyn Engine, plan: &Plan, crew: &Crew) -> Result<Sample, Fault> {
    let population = Population::new(plan.scale, plan.seed, now());
    let (units, next) = (Unit::all(plan.scale), AtomicUsize::new(0));
    let barrier = Barrier::new(plan.load_threads);
    let (before, commits) = (engine.aborts(), engine.commits());
    let work = |_: Share| {
        barrier.wait();
        let mut meter = Meter::new();
        // Relaxed: each part is taken once, and says nothing about others.
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut rows = 0;
            meter.one("PART", 0, || {
                rows = engine.load(&population, unit)?;
                Ok(())
            })?;
            meter.tally.operations += rows;
            if interrupt::pending() {
                break;
            }
        }
        Ok(meter.lap(Tally::default()))
    };
    let laps = crew.work(plan.load_threads, work, || ()).map_err(Fault::Failure)?;
    let laps = laps.into_iter().collect::<Result<Vec<Lap>, Stop>>().map_err(Fault::Stop)?;
    let mut sample = joined(engine, laps, &before);
    sample.records = [0, rows(&sample.memory)];
    // A part has many transactions, whose times are not taken.
    sample.tally.transactions = engine.commits() - commits;
    (sample.index_seconds, sample.kinds) = (None, Vec::new());
    if sample.records[1] != sample.tally.operations {
        let (has, wanted) = (sample.records[1], sample.tally.operations);
        let wrong = format!("it has {has} rows after the load of {wanted}");
        return Err(Fault::Stop(Stop::Wrong(wrong)));
    }
    Ok(sample)
}

/// Runs the transactions once.
pub fn run(
    engine: &dyn Engine,
    plan: &Plan,
    (threads, round): (usize, usize),
    crew: &Crew,
) -> Result<Sample, Fault> {
    let run = |worker: Worker, _| Ok((engine.run(worker)?, ()));
    let (sample, _) = part((engine, plan), (threads, round, plan.end), crew, run)?;
    Ok(sample)
}

/// The transactions of a thread that are recorded before they are checked.
const RECORDED: u64 = 8192;

/// Runs the transactions once, records what they read and write, and checks whether they have a
/// serial order. Returns the number of transactions that have one, too.
pub fn check(
    engine: &dyn Engine,
    plan: &Plan,
    (threads, round): (usize, usize),
    crew: &Crew,
) -> Result<(Sample, u64), Fault> {
    let wrong = |disorder: Disorder| Fault::Stop(Stop::Wrong(disorder.to_string()));
    let (clock, mut versions) = (Clock::new(), engine.versions(plan.scale)?);
    let record = |worker: Worker, thread| engine.record(worker, Recorder::new(&clock, thread));
    let mut checked = 0;
    let mut next = |number: usize, each: u64| {
        // No two parts draw the same transactions.
        let (turn, end) = (round + number * plan.rounds, End::Transactions(each));
        let (sample, recorded) = part((engine, plan), (threads, turn, end), crew, record)?;
        let recorded: Vec<_> = recorded.into_iter().flatten().collect();
        checked += recorded.len() as u64;
        versions.check(recorded).map_err(wrong)?;
        Ok(sample)
    };
    let left = |parts: u64, seconds: f64| match plan.end {
        End::Transactions(each) => each.saturating_sub(parts * RECORDED).min(RECORDED),
        End::After(time) if seconds < time.as_secs_f64() => RECORDED,
        End::After(_) => 0,
    };
    let mut all = next(0, left(0, 0.0))?;
    for number in 1.. {
        let each = left(number as u64, all.seconds);
        if each == 0 || interrupt::pending() {
            break;
        }
        all.add(next(number, each)?);
    }
    versions.compare(&engine.versions(plan.scale)?).map_err(wrong)?;
    Ok((all, checked))
}

/// Calls `run` on each thread.
fn part<T: Send>(
    (engine, plan): (&dyn Engine, &Plan),
    (threads, number, end): (usize, usize, End),
    crew: &Crew,
    run: impl Fn(Worker, usize) -> Result<(Lap, T), Stop> + Sync,
) -> Result<(Sample, Vec<T>), Fault> {
    let (aborts, barrier) = (engine.aborts(), Barrier::new(threads));
    let before = rows(&engine.memory());
    let work = |share: Share| {
        let terminal = plan.scale.terminal(plan.mix, plan.seed, share).in_round(number);
        barrier.wait();
        run(Worker { terminal, end }, share.thread)
    };
    let laps = crew.work(threads, work, || ()).map_err(Fault::Failure)?;
    let laps = laps.into_iter().collect::<Result<Vec<_>, Stop>>().map_err(Fault::Stop)?;
    let (laps, results) = laps.into_iter().unzip();
    let mut sample = joined(engine, laps, &aborts);
    sample.records = [before, rows(&sample.memory)];
    Ok((sample, results))
}

/// The rows of all tables.
fn rows(memory: &[Memory]) -> u64 {
    memory.iter().filter(|part| !part.is_index).map(|part| part.entries).sum()
}
