//! TPC-C on the transactional store.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked |
//! | `engine` | the database of a contender |
//! | `data` | databases that are kept in a folder |
//! | `run` | the measured loops |
//! | `config` | the configuration in a result |

mod config;
mod data;
mod engine;
mod plan;
mod run;

use super::contenders::Contender;
use super::in_turns;
use super::report::Report;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::store::TpccVerb;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::Progress;
use config::Config;
use engine::Engine;
use plan::{Phase, Plan};

/// Runs the benchmark and prints the result. Returns whether the user interrupted it.
pub fn tpcc(verb: &TpccVerb) -> Result<bool, Error> {
    let crew = Crew::new();
    let mut plan = Plan::new(verb, crew.threads)?;
    let kept = data::open(&mut plan)?;
    interrupt::catch();
    let mut report = Report::new(Config::of(&plan), Machine::this(crew.threads));
    let measured = match plan.phase {
        Phase::Load => load(&plan, &crew, &mut report),
        Phase::Run | Phase::Check => run(&plan, kept, &crew, &mut report),
    };
    report.compare_best();
    report.interrupted = interrupt::pending();
    // The results before a failure are printed, too.
    if measured.is_ok() || !report.results.is_empty() {
        report.print(plan.format)?;
    }
    measured.map(|()| report.interrupted)
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
        let samples = in_turns(turns, &progress, |at, round| {
            let contender = &plan.contenders[at];
            progress.doing(format!("{} with {threads} threads", contender.name()));
            let sample = run::run(&*engines[at], plan, (threads, round), crew);
            let sample = sample.map_err(|fault| fault.of(contender))?;
            check((contender, &*engines[at]), plan, &progress)?;
            Ok(sample)
        })?;
        report.add(&plan.contenders, threads, &samples);
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
