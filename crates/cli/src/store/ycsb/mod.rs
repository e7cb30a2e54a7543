//! YCSB on the transactional store, and on databases that a user would choose instead.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked |
//! | `job` | the records, their keys and fields, and the transactions of a thread |
//! | `engine` | what a database does for the benchmark |
//! | `make` | the databases of a contender |
//! | `ours` | the store as an engine |
//! | `databases` | other databases as engines |
//! | `run` | the measured loops |
//! | `parts` | a benchmark on several machines |
//! | `costs` | a lookup alone and a dependent miss, measured in the same run |
//! | `model` | the translations and lines that transactions need, in a model of a machine |
//! | `recorder`, `traced` | an index that records its reads, and transactions with what they read |
//! | `config` | the configuration in a result |
//! | `lies` | tests: indexes that lie |

mod config;
mod costs;
#[cfg(feature = "databases")]
mod databases;
mod engine;
mod job;
#[cfg(test)]
mod lies;
mod make;
mod model;
mod ours;
mod parts;
mod plan;
mod recorder;
mod run;
mod traced;

pub use config::Config;
pub use costs::Costs;
#[cfg(feature = "databases")]
pub use databases::NAMES as DATABASES;
pub use model::Modelled;
pub use parts::Ycsb;

use super::in_turns;
use super::report::Report;
use crate::campaign;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::store::{YcsbArgs, YcsbVerb};
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::{self, Progress};
use engine::Engine;
use plan::Plan;
use silvics_workload::ycsb::Inserts;

/// Runs the benchmark and prints the result. Returns whether the user interrupted it.
pub fn ycsb(verb: &YcsbVerb) -> Result<bool, Error> {
    let (args, loads) = flags_of(verb);
    if let Some(interrupted) = campaign::part::<Ycsb>(verb, &args.part)? {
        return Ok(interrupted);
    }
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads, loads)?;
    for note in &plan.notes {
        progress::note(note);
    }
    interrupt::catch();
    let mut report = Report::new(Config::of(&plan), Machine::this(crew.threads));
    let measured = measured(&plan, &crew, &mut report);
    report.compare_best();
    report.interrupted = interrupt::pending();
    // The results of earlier numbers of threads are printed, too, if a later one fails.
    if measured.is_ok() || !report.results.is_empty() {
        plan.format.print(&report)?;
    }
    measured.map(|()| report.interrupted)
}

/// The flags, and whether only the load is measured.
fn flags_of(verb: &YcsbVerb) -> (&YcsbArgs, bool) {
    match verb {
        YcsbVerb::Load(args) => (args, true),
        YcsbVerb::Run(args) => (args, false),
    }
}

/// Measures what a plan says.
fn measured(plan: &Plan, crew: &Crew, report: &mut Report<Config>) -> Result<(), Error> {
    if plan.loads { load(plan, crew, report) } else { run(plan, crew, report) }
}

/// Measures loads. Each one is that of a new database.
fn load(plan: &Plan, crew: &Crew, report: &mut Report<Config>) -> Result<(), Error> {
    let progress = Progress::new(plan.contenders.len() * plan.rounds);
    let samples = in_turns((plan.contenders.len(), plan.rounds), &progress, |at, _| {
        let contender = &plan.contenders[at];
        progress.doing(format!("loading {}", contender.name()));
        let engine = make::make(contender, plan)?;
        run::load(&*engine, plan, crew).map_err(|error| error.of(contender))
    })?;
    report.add(&plan.contenders, plan.load_threads, &samples);
    Ok(())
}

/// Loads all databases, and measures the operations on them, after those in the model.
fn run(plan: &Plan, crew: &Crew, report: &mut Report<Config>) -> Result<(), Error> {
    let models = usize::from(plan.model.is_some());
    let runs = plan.contenders.len() * (models + 1 + plan.threads.len() * plan.rounds);
    let progress = Progress::new(runs);
    if let Some(machine) = &plan.model {
        for contender in &plan.contenders {
            progress.doing(format!("{} in the model", contender.name()));
            match Modelled::of(contender, plan, machine, crew) {
                Err(Error::Interrupted) => return Ok(()),
                modelled => report.models.push(modelled?),
            }
            progress.step();
        }
    }
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    for contender in &plan.contenders {
        progress.doing(format!("loading {}", contender.name()));
        let engine = make::make(contender, plan)?;
        run::load(&*engine, plan, crew).map_err(|error| error.of(contender))?;
        if interrupt::pending() {
            return Ok(());
        }
        engines.push(engine);
        progress.step();
    }
    let inserts: Vec<Inserts> = engines.iter().map(|_| plan.job.inserts()).collect();
    let mut number = 0;
    for &threads in &plan.threads {
        let samples = in_turns((plan.contenders.len(), plan.rounds), &progress, |at, round| {
            let contender = &plan.contenders[at];
            progress.doing(format!("{} with {threads} threads", contender.name()));
            number += 1;
            let which = (threads, round, number);
            let pages = contender.place.options(None).pages;
            let sample = run::run(&*engines[at], plan, &inserts[at], which, pages, crew);
            sample.map_err(|error| error.of(contender))
        })?;
        report.add(&plan.contenders, threads, &samples);
        if interrupt::pending() {
            break;
        }
    }
    Ok(())
}
