//! `silvics store`: YCSB on the transactional store, and on databases that a user would choose
//! instead.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked |
//! | `contenders` | the databases to be measured |
//! | `job` | the records, their keys and fields, and the transactions of a thread |
//! | `engine` | what a database does for the benchmark |
//! | `ours` | the store as an engine |
//! | `timed`, `peers` | an index that measures its own time; maps of other crates as indexes |
//! | `databases` | other databases as engines |
//! | `run` | the measured loops |
//! | `costs` | a lookup alone and a dependent miss, measured in the same run |
//! | `model` | the translations and lines that transactions need, in a model of a machine |
//! | `recorder`, `traced` | an index that records its reads, and transactions with what they read |
//! | `report`, `render` | the result, as data and as text |
//! | `lies` | tests: indexes that lie |

mod contenders;
mod costs;
#[cfg(feature = "databases")]
mod databases;
mod engine;
mod job;
#[cfg(test)]
mod lies;
mod model;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod plan;
mod recorder;
mod render;
mod report;
mod run;
pub mod timed;
mod traced;

use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::store::{StoreArgs, StoreBenchmark, YcsbVerb};
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::{self, Progress};
use engine::Engine;
use model::Modelled;
use plan::Plan;
use report::Report;
use run::Sample;
use silvics_workload::ycsb::Inserts;

/// Runs a benchmark of the store and prints the result. Returns whether the user interrupted it.
pub fn store(args: &StoreArgs) -> Result<bool, Error> {
    let StoreBenchmark::Ycsb(verb) = &args.benchmark;
    let (args, loads) = match verb {
        YcsbVerb::Load(args) => (args, true),
        YcsbVerb::Run(args) => (args, false),
    };
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads, loads)?;
    for note in &plan.notes {
        progress::note(note);
    }
    interrupt::catch();
    let mut report = Report::new(&plan, Machine::this(crew.threads));
    let measured =
        if plan.loads { load(&plan, &crew, &mut report) } else { run(&plan, &crew, &mut report) };
    report.compare_best();
    report.interrupted = interrupt::pending();
    // The results before a failure are printed, too.
    if measured.is_ok() || !report.results.is_empty() {
        report.print(plan.format)?;
    }
    measured.map(|()| report.interrupted)
}

/// Measures loads. Each one is that of a new database.
fn load(plan: &Plan, crew: &Crew, report: &mut Report) -> Result<(), Error> {
    let progress = Progress::new(plan.contenders.len() * plan.rounds);
    let samples = in_turns(plan, &progress, |at, _| {
        let contender = &plan.contenders[at];
        progress.doing(format!("loading {}", contender.name()));
        let engine = contender.make(plan)?;
        run::load(&*engine, plan, crew).map_err(|error| error.of(contender))
    })?;
    report.add(plan, plan.load_threads, &samples);
    Ok(())
}

/// Loads all databases, and measures the operations on them, after those in the model.
fn run(plan: &Plan, crew: &Crew, report: &mut Report) -> Result<(), Error> {
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
        let engine = contender.make(plan)?;
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
        let samples = in_turns(plan, &progress, |at, round| {
            let contender = &plan.contenders[at];
            progress.doing(format!("{} with {threads} threads", contender.name()));
            number += 1;
            let which = (threads, round, number);
            let pages = contender.place.options(None).pages;
            let sample = run::run(&*engines[at], plan, &inserts[at], which, pages, crew);
            sample.map_err(|error| error.of(contender))
        })?;
        report.add(plan, threads, &samples);
        if interrupt::pending() {
            break;
        }
    }
    Ok(())
}

/// Lets the contenders take turns, in reverse order in each second round. Returns the samples of
/// each: after an interrupt those of the finished rounds, or if there are none, those of the first
/// round so far, of which the last one is cut.
fn in_turns(
    plan: &Plan,
    progress: &Progress,
    mut measure: impl FnMut(usize, usize) -> Result<Sample, Error>,
) -> Result<Vec<Vec<Sample>>, Error> {
    let contenders = plan.contenders.len();
    let mut samples: Vec<Vec<Sample>> = (0..contenders).map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for turn in 0..contenders {
            let at = if round % 2 == 0 { turn } else { contenders - 1 - turn };
            let sample = match measure(at, round) {
                Err(Error::Interrupted) => None,
                sample => Some(sample?),
            };
            samples[at].extend(sample.filter(|sample| sample.tally.transactions > 0));
            if interrupt::pending() {
                for samples in &mut samples {
                    samples.truncate(round.max(1));
                }
                return Ok(samples);
            }
            progress.step();
        }
    }
    Ok(samples)
}
