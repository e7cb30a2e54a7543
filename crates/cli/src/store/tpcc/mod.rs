//! TPC-C on the transactional store.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked |
//! | `engine` | the database of a contender |
//! | `data` | databases that are kept in a folder |
//! | `run` | the measured loops |
//! | `parts` | a benchmark on several machines |
//! | `config` | the configuration in a result |

mod config;
mod data;
mod engine;
mod parts;
mod plan;
mod run;

use super::contenders::Contender;
use super::in_turns;
use super::report::Report;
use crate::campaign;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::store::TpccVerb;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::Progress;
use config::Config;
use engine::Engine;
pub use parts::Tpcc;
use plan::{Phase, Plan};
use run::Ordered;

/// Runs the benchmark and prints the result. Returns whether the user interrupted it.
pub fn tpcc(verb: &TpccVerb) -> Result<bool, Error> {
    if let Some(interrupted) = campaign::part::<Tpcc>(verb, &verb.args().part)? {
        return Ok(interrupted);
    }
    let crew = Crew::new();
    let mut plan = Plan::new(verb, crew.threads)?;
    let kept = data::open(&mut plan)?;
    interrupt::catch();
    let mut report = Report::new(Config::of(&plan), Machine::this(crew.threads));
    let measured = measured(&plan, kept, &crew, &mut report);
    report.compare_best();
    report.interrupted = interrupt::pending();
    // The results of earlier numbers of threads are printed, too, if a later one fails.
    if measured.is_ok() || !report.results.is_empty() {
        report.print(plan.format)?;
    }
    measured.map(|()| report.interrupted)
}

/// Measures what a plan says, on a database that was kept if there is one.
fn measured(
    plan: &Plan,
    kept: Option<Box<dyn Engine>>,
    crew: &Crew,
    report: &mut Report<Config>,
) -> Result<(), Error> {
    match plan.phase {
        Phase::Load => load(plan, crew, report),
        Phase::Run | Phase::Check => run(plan, kept, crew, report),
    }
}

/// Measures loads. Each one is that of a new database.
fn load(plan: &Plan, crew: &Crew, report: &mut Report<Config>) -> Result<(), Error> {
    let progress = Progress::new(plan.contenders.len() * plan.rounds);
    let turns = (plan.contenders.len(), plan.rounds);
    let samples = in_turns(turns, &progress, |at, _| {
        let contender = &plan.contenders[at];
        progress.doing(format!("loading {}", contender.name()));
        let (engine, _) = engine::make(contender, plan.data.as_deref())?;
        let sample = run::load(&*engine, plan, crew).map_err(|fault| fault.of(contender))?;
        // Without a checkpoint, the load counts as one that has not ended.
        if !sample.cut {
            engine.checkpoint().map_err(|fault| fault.of(contender))?;
        }
        Ok(sample)
    })?;
    report.add(&plan.contenders, plan.load_threads, &samples);
    Ok(())
}

/// Measures the transactions on all databases, and loads them before, unless there is one that was
/// kept.
fn run(
    plan: &Plan,
    mut kept: Option<Box<dyn Engine>>,
    crew: &Crew,
    report: &mut Report<Config>,
) -> Result<(), Error> {
    let checks = usize::from(plan.phase == Phase::Check);
    let each = (1 + checks) * (1 + plan.threads.len() * plan.rounds);
    let progress = Progress::new(plan.contenders.len() * each);
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    for contender in &plan.contenders {
        let engine = if let Some(engine) = kept.take() {
            engine
        } else {
            progress.doing(format!("loading {}", contender.name()));
            let (engine, _) = engine::make(contender, None)?;
            run::load(&*engine, plan, crew).map_err(|fault| fault.of(contender))?;
            engine
        };
        if interrupt::pending() {
            return Ok(());
        }
        progress.step();
        check((contender, &*engine), plan, &progress)?;
        engines.push(engine);
    }
    for &threads in &plan.threads {
        let turns = (plan.contenders.len(), plan.rounds);
        let mut ordered = Ordered::default();
        let samples = in_turns(turns, &progress, |at, round| {
            let contender = &plan.contenders[at];
            progress.doing(format!("{} with {threads} threads", contender.name()));
            let (engine, turn) = (&*engines[at], (threads, round));
            if plan.phase != Phase::Check {
                return run::run(engine, plan, turn, crew).map_err(|fault| fault.of(contender));
            }
            let checked = run::check(engine, plan, turn, crew);
            let (sample, of) = checked.map_err(|fault| fault.of(contender))?;
            check((contender, engine), plan, &progress)?;
            ordered.transactions += of.transactions;
            ordered.open += of.open;
            Ok(sample)
        })?;
        report.add(&plan.contenders, threads, &samples);
        if plan.phase == Phase::Check {
            report.config.count_checked(ordered);
        }
        if interrupt::pending() {
            break;
        }
    }
    Ok(())
}

/// Checks the consistency conditions, if the phase does. A violation is an error.
fn check(
    (contender, engine): (&Contender, &dyn Engine),
    plan: &Plan,
    progress: &Progress,
) -> Result<(), Error> {
    if plan.phase != Phase::Check {
        return Ok(());
    }
    progress.doing(format!("checking {}", contender.name()));
    let violations = engine.violations(plan.scale).map_err(|fault| fault.of(contender))?;
    progress.step();
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(Error::Wrong { index: contender.name(), what: first.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::store::TpccArgs;
    use crate::store::engine::{Measured, Memory, Stop};
    use crate::store::meter::{Fault, Lap};
    use clap::Parser;
    use engine::Record;
    use run::Worker;
    use silvics_sync::atomic::{AtomicU64, Ordering};
    use silvics_testkit::serial::{End, Operation, Transaction};
    use silvics_tpcc::serial::{Recorder, Versions};
    use silvics_tpcc::{Condition, Unit, Violation};
    use silvics_workload::tpcc::{Population, Scale};

    /// A command line.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: TpccArgs,
    }

    /// A database that does nothing, and is wrong from one of its checks on.
    struct Wrong {
        from: u64,
        checks: AtomicU64,
        /// The operations of a transaction that it pretends to have run.
        recorded: Vec<Operation>,
    }

    impl Measured for Wrong {
        fn memory(&self) -> Vec<Memory> {
            Vec::new()
        }
    }

    impl Engine for Wrong {
        fn load(&self, _: &Population, _: &Unit) -> Result<u64, Stop> {
            Ok(0)
        }
        fn run(&self, worker: Worker) -> Result<Lap, Stop> {
            worker.drive((), |(), _| Ok(()), |()| Ok(())).map(|(lap, ())| lap)
        }
        fn record(&self, worker: Worker, recorder: Recorder<'_>) -> Result<(Lap, Record), Stop> {
            let (lap, _) = worker.drive(recorder, |_, _| Ok(()), |_| Ok(()))?;
            let (operations, outcome) = (self.recorded.clone(), End::Committed);
            Ok((lap, vec![Transaction { thread: 0, start: 0, end: 1, outcome, operations }]))
        }
        fn versions(&self, _: Scale) -> Result<Versions, Fault> {
            Ok(Versions::default())
        }
        fn violations(&self, _: Scale) -> Result<Vec<Violation>, Fault> {
            let is_wrong = self.checks.fetch_add(1, Ordering::Relaxed) >= self.from;
            let violation =
                || Violation { condition: Condition::all()[1], found: "planted".into() };
            Ok(if is_wrong { vec![violation()] } else { Vec::new() })
        }
        fn scale(&self) -> (u32, u32, u32) {
            (1, 1000, 60)
        }
        fn commits(&self) -> u64 {
            0
        }
        fn checkpoint(&self) -> Result<(), Fault> {
            Ok(())
        }
    }

    /// The conditions are checked after the load, and after each of two rounds. The order of the
    /// transactions is checked in each round.
    #[test]
    fn a_violation_ends_the_check() {
        let line = "tpcc --reduced --warehouses 1 --threads 1 --transactions 20 --rounds 2";
        let args = || Box::new(Line::parse_from(line.split(' ')).args);
        let crew = Crew::new();
        let checked = |verb, from, recorded: &[Operation]| {
            let plan = Plan::new(&verb, 1).unwrap();
            let mut report = Report::new(Config::of(&plan), Machine::this(1));
            let wrong = Wrong { from, checks: AtomicU64::new(0), recorded: recorded.into() };
            run(&plan, Some(Box::new(wrong)), &crew, &mut report)
        };
        for from in 0..3 {
            let refused = checked(TpccVerb::Check(args()), from, &[]);
            let Err(Error::Wrong { what, .. }) = refused else { panic!("check {from} is missing") };
            assert!(what.contains("planted"), "{what}");
        }
        assert!(checked(TpccVerb::Check(args()), 3, &[]).is_ok());
        assert!(checked(TpccVerb::Run(args()), 0, &[]).is_ok(), "it only checks where asked");
        // A transaction has read what nobody wrote, and one has written what is not there.
        let garbage = [Operation::Read { key: 1, value: Some(5) }];
        let lost =
            [Operation::Read { key: 1, value: None }, Operation::Write { key: 1, value: Some(5) }];
        for (recorded, why) in
            [(&garbage[..], "garbage read"), (&lost, "left W_YTD of warehouse 1 at 5")]
        {
            let refused = checked(TpccVerb::Check(args()), 3, recorded);
            let Err(Error::Wrong { what, .. }) = refused else { panic!("{why} is missing") };
            assert!(what.contains(why), "{what}");
        }
    }
}
