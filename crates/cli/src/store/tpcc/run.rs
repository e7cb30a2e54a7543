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
use std::time::Duration;

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
    /// The most transactions.
    most: u64,
    /// The transactions that are made before they end together.
    terminals: usize,
}

/// The transactions after which a thread looks at the time.
const LOOKS: u64 = 16;

impl Worker {
    /// Calls `transact` with one transaction after the other, and `wait` before they end. Both get
    /// `context`.
    pub fn drive<C>(
        mut self,
        mut context: C,
        mut transact: impl FnMut(&mut C, &Transaction) -> Result<(), Stop>,
        wait: impl Fn(&C) -> Result<(), Stop>,
    ) -> Result<(Lap, C), Stop> {
        let (mut meter, mut open) = (Meter::new(), Vec::with_capacity(self.terminals));
        loop {
            let made = meter.made;
            let is_over = made == self.most
                || match self.end {
                    End::Transactions(all) => made == all,
                    End::After(time) => made.is_multiple_of(LOOKS) && meter.start.elapsed() >= time,
                };
            let is_over = is_over || (made.is_multiple_of(LOOKS) && interrupt::pending());
            if is_over || open.len() == self.terminals {
                wait(&context)?;
                open.drain(..).for_each(|transaction| meter.end(transaction));
            }
            if is_over {
                return Ok((meter.lap(Tally::default()), context));
            }
            let transaction = self.terminal.draw();
            let transact = || transact(&mut context, &transaction);
            open.push(meter.make(kind(&transaction), 1, transact)?);
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
    let (sample, _) = part((engine, plan), (threads, round, plan.end, u64::MAX), crew, run)?;
    Ok(sample)
}

/// The transactions of all threads that are recorded before they are checked.
const RECORDED: u64 = 16_000;

/// A number of transactions, and of choices that the check of their order left open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ordered {
    pub transactions: u64,
    pub open: u64,
}

/// Runs the transactions once, records what they read and write, and checks whether they have a
/// serial order.
pub fn check(
    engine: &dyn Engine,
    plan: &Plan,
    (threads, round): (usize, usize),
    crew: &Crew,
) -> Result<(Sample, Ordered), Fault> {
    let wrong = |disorder: Disorder| Fault::Stop(Stop::Wrong(disorder.to_string()));
    let (clock, mut versions) = (Clock::new(), engine.versions(plan.scale)?);
    let record = |worker: Worker, thread| engine.record(worker, Recorder::new(&clock, thread));
    let most = (RECORDED / threads as u64).max(1);
    let mut ordered = Ordered::default();
    let mut next = |number: usize, end: End| {
        // No two parts of a run draw the same transactions.
        let turn = round + number * plan.rounds;
        let (sample, recorded) = part((engine, plan), (threads, turn, end, most), crew, record)?;
        let recorded: Vec<_> = recorded.into_iter().flatten().collect();
        ordered.transactions += recorded.len() as u64;
        ordered.open += versions.check(recorded).map_err(wrong)?;
        Ok(sample)
    };
    let left = |parts: u64, seconds: f64| match plan.end {
        End::Transactions(each) => End::Transactions(each.saturating_sub(parts * most)),
        End::After(time) => End::After(time.saturating_sub(Duration::from_secs_f64(seconds))),
    };
    let mut all = next(0, plan.end)?;
    for number in 1.. {
        let end = left(number as u64, all.seconds);
        all.cut |= interrupt::pending();
        if matches!(end, End::Transactions(0) | End::After(Duration::ZERO)) || all.cut {
            break;
        }
        all.add(next(number, end)?);
    }
    versions.compare(&engine.versions(plan.scale)?).map_err(wrong)?;
    Ok((all, ordered))
}

/// Calls `run` on each thread, which ends after `most` transactions at the latest.
fn part<T: Send>(
    (engine, plan): (&dyn Engine, &Plan),
    (threads, number, end, most): (usize, usize, End, u64),
    crew: &Crew,
    run: impl Fn(Worker, usize) -> Result<(Lap, T), Stop> + Sync,
) -> Result<(Sample, Vec<T>), Fault> {
    let (aborts, barrier) = (engine.aborts(), Barrier::new(threads));
    let before = rows(&engine.memory());
    let work = |share: Share| {
        let terminal = plan.scale.terminal(plan.mix, plan.seed, share).in_round(number);
        barrier.wait();
        run(Worker { terminal, end, most, terminals: plan.terminals }, share.thread)
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

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_workload::tpcc::{Mix, Scale};
    use std::cell::RefCell;

    /// No transaction ends before the thread has waited for it.
    #[test]
    fn a_thread_waits_when_all_terminals_do() {
        let worker = |terminals| {
            let terminal = Scale::reduced(1).unwrap().terminal(Mix::Standard, 1, Share::ALONE);
            Worker { terminal, end: End::Transactions(25), most: 30, terminals }
        };
        let transact = |made: &mut usize, _: &Transaction| {
            *made += 1;
            Ok(())
        };
        for (terminals, waits) in [(10, &[10, 20, 25][..]), (24, &[24, 25]), (40, &[25])] {
            let waited = RefCell::new(Vec::new());
            let wait = |made: &usize| {
                std::thread::sleep(Duration::from_millis(1));
                waited.borrow_mut().push(*made);
                Ok(())
            };
            let (lap, made) = worker(terminals).drive(0, transact, wait).unwrap();
            assert_eq!((made, lap.tally.transactions), (25, 25));
            assert_eq!(*waited.borrow(), waits, "{terminals} terminals");
            let least = lap.kinds.iter().filter_map(|kind| match kind.histogram.len() {
                0 => None,
                _ => Some(kind.histogram.min()),
            });
            let least: Vec<u64> = least.collect();
            assert!(!least.is_empty() && least.iter().all(|time| *time > 900_000), "{least:?}");
            let failed = worker(terminals).drive(0, transact, |_| Err(Stop::Wrong("lost".into())));
            assert!(failed.is_err(), "a failed wait ends the run");
        }
    }
}
