//! The time that transactions spend in the index, and in the database around it.

use super::engine::Engine;
use super::heap::{Divided, Places};
use super::loaded::together;
use super::model::{requests, study};
use super::trees::{Lock, Tree};
use crate::drive::draws::shuffled;
use crate::drive::run::Failure;
use crate::drive::stats::Interval;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::lab::Lab;
use crate::reproduce::plan::QUICK;
use crate::reproduce::turns::{Rounds, in_turns, median, ratio};
use crate::store::timed;
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::Share;
use silvics_workload::ycsb::{Request, Study};
use std::sync::Barrier;
use std::time::Instant;

/// The threads of a run, and the transactions of a thread.
const THREADS: usize = 2;
const TRANSACTIONS: usize = 20_000;

/// The nanoseconds of a thread for each committed transaction.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// In the index.
    pub index: Vec<f64>,
    /// Elsewhere.
    pub database: Vec<f64>,
    /// Both.
    pub all: Vec<f64>,
    /// The attempts that were aborted, for each committed transaction, of all runs and the first
    /// one, which warms up.
    pub aborts: f64,
}

impl Times {
    /// How many times as fast the runs of `other` were as these, round by round.
    pub fn over(&self, other: &Self, part: impl Fn(&Self) -> &Vec<f64>) -> Interval {
        ratio(part(self), part(other))
    }

    /// The median time in the index.
    pub fn in_index(&self) -> f64 {
        median(&self.index)
    }
}

/// A subject of the clock.
#[derive(Clone, Copy)]
pub struct Subject {
    pub tree: Tree,
    pub lock: Lock,
    pub places: Places,
}

/// One thread's part of a run.
struct Lap {
    committed: u64,
    updates: u64,
    index: timed::Sum,
    seconds: f64,
}

/// Measures databases in turns. In each round, all of them get the same requests.
pub fn measure(lab: &Lab, rows: usize, subjects: &[Subject]) -> Result<Vec<Times>, Error> {
    let keys = shuffled(rows as u64, lab.plan.seed);
    let crew = Crew::new();
    let crew = crew.loading(THREADS).running(THREADS);
    let mut engines = Vec::new();
    for Subject { tree, lock, places } in subjects {
        engines.push(together(&crew, *tree, *lock, Divided::size_class(*places), &keys)?);
    }
    let transactions = if lab.plan.quick { TRANSACTIONS / QUICK } else { TRANSACTIONS };
    let study = study(rows, transactions);
    let mut all = vec![Times::default(); subjects.len()];
    let mut counts = vec![(0, 0); subjects.len()];
    let rounds = Rounds::new(lab.plan.quick).rounds;
    in_turns(subjects.len(), rounds, |subject, round| {
        let engine = &*engines[subject];
        let seed = lab.plan.seed.wrapping_add(round << 20);
        let laps = run(&crew, engine, study, seed);
        let laps = laps.map_err(|failure| failure.of(subjects[subject].tree.name))?;
        let committed: u64 = laps.iter().map(|lap| lap.committed).sum();
        counts[subject].0 += committed;
        counts[subject].1 += laps.iter().map(|lap| lap.updates).sum::<u64>();
        if round > 0 {
            let noted = note(&mut all[subject], &laps, committed);
            noted.map_err(|failure| failure.of(subjects[subject].tree.name))?;
        }
        Ok::<_, Error>(0.0)
    })?;
    for (number, engine) in engines.iter().enumerate() {
        let (committed, updates) = counts[number];
        check(&**engine, rows, updates).map_err(|f| f.of(subjects[number].tree.name))?;
        all[number].aborts = engine.aborts() as f64 / committed.max(1) as f64;
    }
    Ok(all)
}

/// Adds the result of a run.
fn note(times: &mut Times, laps: &[Lap], committed: u64) -> Result<(), Failure> {
    let index = laps.iter().fold(timed::Sum::default(), |sum, lap| sum.and(lap.index));
    let seconds: f64 = laps.iter().map(|lap| lap.seconds).sum();
    let untimed = || Failure::Wrong("no transaction was timed".into());
    let share = index.share().ok_or_else(untimed)?;
    let each = |share: f64| 1e9 * seconds * share / committed.max(1) as f64;
    times.index.push(each(share));
    times.database.push(each(1.0 - share));
    times.all.push(each(1.0));
    Ok(())
}

/// Runs transactions on all threads, until the first thread has finished its own, as the study
/// does.
fn run(crew: &Crew, engine: &dyn Engine, study: Study, seed: u64) -> Result<Vec<Lap>, Failure> {
    let (over, barrier) = (AtomicBool::new(false), Barrier::new(crew.runners));
    let work = |share: Share| {
        let requests = requests(study, seed, share);
        barrier.wait();
        let requests = requests.map_err(|error| Failure::Wrong(error.to_string()))?;
        let lap = lap(engine, &requests, study.requests, &over);
        over.store(true, Ordering::Relaxed); // Relaxed: the flag publishes no other data
        lap
    };
    let laps = crew.work(crew.runners, work, || ())?;
    if interrupt::pending() {
        return Err(Failure::Interrupted);
    }
    laps.into_iter().collect()
}

fn lap(
    engine: &dyn Engine,
    requests: &[Request],
    each: usize,
    over: &AtomicBool,
) -> Result<Lap, Failure> {
    let (mut committed, mut updates) = (0, 0);
    timed::take(); // the time of the load does not count
    let since = Instant::now();
    for transaction in requests.chunks_exact(each) {
        if over.load(Ordering::Relaxed) || interrupt::pending() {
            break;
        }
        timed::begin();
        engine.transact(transaction)?;
        committed += 1;
        updates += transaction.iter().filter(|request| request.is_update).count() as u64;
    }
    Ok(Lap { committed, updates, index: timed::take(), seconds: since.elapsed().as_secs_f64() })
}

/// Checks that each row is there, and that all rows together have as many updates as transactions
/// have made.
fn check(engine: &dyn Engine, rows: usize, updates: u64) -> Result<(), Failure> {
    let mut found = 0;
    for key in 0..rows as u64 {
        found += engine.updates(key)?;
    }
    if found == updates {
        return Ok(());
    }
    Err(Failure::Wrong(format!("transactions made {updates} updates, and rows have {found}")))
}
