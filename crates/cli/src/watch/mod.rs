//! `silvics watch`: an index adapts to threads that write, and back when one is left.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked |
//! | `view` | the live view, lines and summary |
//! | `report` | the result, as data |
//!
//! Each phase is a row of short runs of the benchmark's loops, so that there is a throughput for
//! each of them. After a run the shape of the index is exact, since no thread writes.

mod plan;
mod report;
mod view;

use crate::drive::keys::BenchKey;
use crate::drive::run::{Failure, Ledger, RunSpec};
use crate::drive::scans::ScanBy;
use crate::drive::shape::Sample;
use crate::drive::subject::{Crew, Reuse, Subject, Traffic};
use crate::flags::args::{Format, WatchArgs};
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::host::machine::Machine;
use crate::{interrupt, output};
use plan::Plan;
use report::{Frame, Phase, Report};
use silvics::Options;
use silvics_workload::{Choice, Dist};
use std::time::Duration;
use view::View;

/// The duration of a run.
const FRAME: Duration = Duration::from_millis(100);

/// The seed of all random choices.
const SEED: u64 = 1;

/// Watches an index and prints the result. Returns whether the user interrupted it.
pub fn watch(args: &WatchArgs) -> Result<bool, Error> {
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads)?;
    interrupt::catch();
    let mut report = Report::new(&plan, Machine::this(crew.threads));
    let mut view = View::new(&plan);
    match Watched::load(&plan, crew.loading(1)).and_then(|mut watched| {
        watched.phases(&plan, &mut view, &mut report)?;
        watched.check()
    }) {
        Ok(()) => report.checked = true,
        Err(Failure::Interrupted) => report.interrupted = true,
        Err(failure) => return Err(failure.of(&plan.chosen.name())),
    }
    drop(view);
    match plan.format {
        Format::Json => output::json(&report)?,
        _ => output::text(&view::summary(&report))?,
    }
    Ok(report.interrupted)
}

/// An index with the keys that are upserted.
struct Watched {
    subject: Subject<u64>,
    traffic: Traffic<u64>,
    crew: Crew,
    ledger: Ledger,
    /// The number of runs so far.
    runs: u64,
    /// The duration of all runs so far, in seconds.
    seconds: f64,
}

impl Watched {
    /// Loads the keys of an index.
    fn load(plan: &Plan, crew: Crew) -> Result<Self, Failure> {
        let len = 2 * plan.keys;
        let traffic = Traffic {
            space: u64::generate(Dist::Uniform, len, KeyType::U64),
            choice: Choice::new(Dist::Uniform, len, SEED),
        };
        let made = (plan.make)(&Options::default());
        let mut subject = made.map_err(|error| Failure::Alloc { error, done: 0 })?;
        let load = subject.load(&traffic, Reuse::Yes, &crew)?;
        let mut ledger = Ledger::default();
        ledger.book(&load.tally);
        Ok(Self { subject, traffic, crew, ledger, runs: 0, seconds: 0.0 })
    }

    /// Lets several threads upsert, then one alone.
    fn phases(&mut self, plan: &Plan, view: &mut View, report: &mut Report) -> Result<(), Failure> {
        for threads in [plan.threads, 1] {
            let start = self.shape(threads, 0.0);
            let mut phase = Phase { threads, start, frames: Vec::new() };
            let result = self.phase(&mut phase, plan, view);
            report.phases.push(phase);
            result?;
        }
        Ok(())
    }

    /// Lets the threads of a phase upsert. Adds a frame for each run.
    fn phase(&mut self, phase: &mut Phase, plan: &Plan, view: &mut View) -> Result<(), Failure> {
        let begun = self.seconds;
        loop {
            let left = plan.time.as_secs_f64() - (self.seconds - begun);
            if left <= 0.0 {
                return Ok(());
            }
            let time = FRAME.min(Duration::from_secs_f64(left)).max(Duration::from_millis(1));
            let mops = self.upsert(plan, phase.threads, time)?;
            let frame = self.shape(phase.threads, mops);
            view.show(&frame, &self.subject, self.seconds - begun);
            phase.frames.push(frame);
        }
    }

    /// Lets threads upsert for this time. Returns million upserts per second.
    fn upsert(&mut self, plan: &Plan, threads: usize, time: Duration) -> Result<f64, Failure> {
        self.runs += 1;
        let spec = RunSpec {
            mix: plan.mix,
            batch: 1,
            scan_by: ScanBy::Range,
            scan_length: 1,
            threads,
            time,
            number: self.runs,
            window: self.traffic.choice.start(),
            limit: None,
        };
        let outcome = self.subject.run(&self.traffic, &spec, &self.crew)?;
        self.ledger.book(&outcome.tally);
        self.seconds += outcome.seconds;
        Ok(outcome.mops())
    }

    /// The index as it is between two runs.
    fn shape(&self, threads: usize, mops: f64) -> Frame {
        let adaptation = self.subject.adaptation().unwrap_or_default(); // the plan has checked that
        Frame { threads, mops, shape: Sample::of(self.seconds, &adaptation) }
    }

    /// Checks that the index has the keys that it must have, with their values.
    fn check(&self) -> Result<(), Failure> {
        self.subject.verify(&self.traffic, self.ledger, true, &self.crew)
    }
}
