//! `silvics store`: YCSB on the transactional store, and on databases that a user would choose
//! instead.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked |
//! | `job` | the records, their keys and fields, and the transactions of a thread |
//! | `engine` | what a database does for the benchmark |
//! | `ours` | the store as an engine |
//! | `timed`, `peers` | an index that measures its own time; maps of other crates as indexes |
//! | `databases` | other databases as engines |
//! | `run` | the measured loops |
//! | `costs` | a lookup alone and a dependent miss, measured in the same run |
//! | `report`, `render` | the result, as data and as text |

mod costs;
#[cfg(feature = "databases")]
mod databases;
mod engine;
mod job;
mod ours;
#[cfg(feature = "peers")]
mod peers;
mod plan;
mod render;
mod report;
mod run;
pub mod timed;

use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::store::{StoreArgs, StoreBenchmark, YcsbVerb};
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::{self, Progress};
use engine::Engine;
use plan::Plan;
use report::{Report, Row};
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
    let runs = if plan.loads { 0 } else { plan.threads.len() * plan.rounds };
    let progress = Progress::new(plan.contenders.len() * (1 + runs));
    let mut report = Report::new(&plan, Machine::this(crew.threads));
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    let inserts = plan.contenders.iter().map(|_| plan.job.inserts());
    let inserts = inserts.collect::<Result<Vec<_>, _>>()?;
    for contender in &plan.contenders {
        if interrupt::pending() {
            break;
        }
        progress.doing(format!("loading {}", contender.name()));
        let engine = contender.make(&plan)?;
        let loaded = run::load(&*engine, &plan, &crew).map_err(|error| error.of(contender))?;
        report
            .results
            .extend(plan.loads.then(|| Row::of_load(&plan, contender, &*engine, &loaded)));
        engines.push(engine);
        progress.step();
    }
    if !plan.loads && engines.len() == plan.contenders.len() {
        for &threads in &plan.threads {
            let samples = measure(&plan, threads, (&engines, &inserts), &crew, &progress)?;
            report.results.extend(Row::all(&plan, threads, &engines, &samples));
        }
    }
    report.interrupted = interrupt::pending();
    drop(progress);
    report.print(plan.format)?;
    Ok(report.interrupted)
}

/// Lets the contenders take turns, in reverse order in each second round. Returns the samples of
/// each. After an interrupt all have those of the finished rounds only.
fn measure(
    plan: &Plan,
    threads: usize,
    (engines, inserts): (&[Box<dyn Engine>], &[Inserts]),
    crew: &Crew,
    progress: &Progress,
) -> Result<Vec<Vec<Sample>>, Error> {
    let mut samples: Vec<Vec<Sample>> = engines.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for turn in 0..engines.len() {
            if interrupt::pending() {
                for finished in &mut samples {
                    finished.truncate(round);
                }
                return Ok(samples);
            }
            let at = if round % 2 == 0 { turn } else { engines.len() - 1 - turn };
            let contender = &plan.contenders[at];
            progress.doing(format!("{} with {threads} threads", contender.name()));
            let sample = run::run(&*engines[at], plan, &inserts[at], (threads, round), crew);
            samples[at].push(sample.map_err(|error| error.of(contender))?);
            progress.step();
        }
    }
    Ok(samples)
}
