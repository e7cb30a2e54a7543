//! The time that transactions spend in the index, and in the database around it.

use crate::drive::run::Failure;
use crate::drive::stats::Interval;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, in_turns, median, ratio};
use crate::store::timed;
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_workload::Share;
use std::sync::Barrier;
use std::time::Instant;

/// The threads of a run.
pub const THREADS: usize = 2;

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

/// One thread's part of a run.
pub struct Lap {
    committed: u64,
    index: timed::Sum,
    seconds: f64,
}

impl Lap {
    /// Calls `transact` for one transaction after the other, until there are none or the first
    /// thread has finished.
    pub fn of<T>(
        transactions: impl Iterator<Item = T>,
        over: &AtomicBool,
        mut transact: impl FnMut(T) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let mut committed = 0;
        timed::take(); // the time of the load does not count
        let since = Instant::now();
        for transaction in transactions {
            // Relaxed: the flag publishes no other data.
            if over.load(Ordering::Relaxed) || interrupt::pending() {
                break;
            }
            timed::begin();
            transact(transaction)?;
            committed += 1;
        }
        Ok(Self { committed, index: timed::take(), seconds: since.elapsed().as_secs_f64() })
    }
}

/// Runs `lap` on all threads that run, with what `prepare` returns to each before they start
/// together. The first thread that has finished ends the run, as in the study.
pub fn until_first<T>(
    crew: &Crew,
    prepare: impl Fn(Share) -> Result<T, Failure> + Sync,
    lap: impl Fn(T, &AtomicBool) -> Result<Lap, Failure> + Sync,
) -> Result<Vec<Lap>, Failure> {
    let (over, barrier) = (AtomicBool::new(false), Barrier::new(crew.runners));
    let work = |share: Share| {
        let prepared = prepare(share);
        barrier.wait();
        let lap = prepared.and_then(|prepared| lap(prepared, &over));
        over.store(true, Ordering::Relaxed); // Relaxed: the flag publishes no other data
        lap
    };
    let laps = crew.work(crew.runners, work, || ())?;
    if interrupt::pending() {
        return Err(Failure::Interrupted);
    }
    laps.into_iter().collect()
}

/// A loaded database that is timed.
pub trait Clocked {
    /// The name of its tree.
    fn tree(&self) -> &'static str;

    /// Runs the transactions of a round.
    fn run(&self, round: u64) -> Result<Vec<Lap>, Failure>;

    /// Checks the database after all runs.
    fn check(&self) -> Result<(), Failure>;

    /// The attempts of transactions that were aborted.
    fn aborts(&self) -> u64;
}

/// Measures databases in turns, and checks them.
pub fn measure(lab: &Lab, subjects: &[impl Clocked]) -> Result<Vec<Times>, Error> {
    let mut all = vec![Times::default(); subjects.len()];
    let mut counts = vec![0; subjects.len()];
    let rounds = Rounds::new(lab.plan.quick).rounds;
    in_turns(subjects.len(), rounds, |at, round| {
        let (subject, times) = (&subjects[at], &mut all[at]);
        let failed = |failure: Failure| failure.of(subject.tree());
        let laps = subject.run(round).map_err(failed)?;
        let committed: u64 = laps.iter().map(|lap| lap.committed).sum();
        counts[at] += committed;
        if round > 0 {
            times.note(&laps, committed).map_err(failed)?;
        }
        Ok::<_, Error>(0.0)
    })?;
    for (at, subject) in subjects.iter().enumerate() {
        all[at].aborts = subject.aborts() as f64 / counts[at].max(1) as f64;
        subject.check().map_err(|failure| failure.of(subject.tree()))?;
    }
    Ok(all)
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

    /// Adds the result of a run.
    fn note(&mut self, laps: &[Lap], committed: u64) -> Result<(), Failure> {
        let index = laps.iter().fold(timed::Sum::default(), |sum, lap| sum.and(lap.index));
        let seconds: f64 = laps.iter().map(|lap| lap.seconds).sum();
        let untimed = || Failure::Wrong("no transaction was timed".into());
        let share = index.share().ok_or_else(untimed)?;
        let each = |share: f64| 1e9 * seconds * share / committed.max(1) as f64;
        self.index.push(each(share));
        self.database.push(each(1.0 - share));
        self.all.push(each(1.0));
        Ok(())
    }
}
