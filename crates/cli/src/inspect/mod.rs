//! `silvics inspect`.
//!
//! # Method
//! One thread builds the index, with the objects of a program around it if there are any. Then each
//! key is looked up once, which shows the paths of lookups. The address of every object gives facts
//! and findings. Then lookups, with keys that the distribution chooses, run through a model of the
//! machine: once with the objects where they lie, and once for each finding with the objects where
//! its remedy would put them. For a trace, the objects alive at its peak are inspected, without
//! lookups. Apart from `--fix` and from where the system maps memory, each run gives the same
//! result.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the configuration of an inspection |
//! | `host`, `logged` | the program around the index, and the heap they share |
//! | `built` | the index under a workload |
//! | `examine` | facts, findings and predictions |
//! | `fix` | remedies, applied and measured |
//! | `foreign` | facts and findings of a trace of any program |
//! | `report`, `render` | the result, as data and as tables |
//! | `picture` | the result as pictures, and as a page |

pub mod built;
pub mod examine;
pub mod fix;
mod foreign;
pub mod host;
mod logged;
pub mod picture;
pub mod plan;
mod render;
pub mod report;

use crate::drive::keys::BenchKey;
use crate::drive::subject::{Crew, Traffic};
use crate::flags::args::InspectArgs;
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::interrupt;
use crate::output::Outputs;
use crate::progress::Progress;
use examine::Examined;
use picture::Whose;
use plan::Plan;
use silvics_layout::Paths;
use silvics_workload::Choice;
use std::path::Path;

/// Inspects an index or a trace, and prints the result.
pub fn inspect(args: &InspectArgs) -> Result<(), Error> {
    if let Some(file) = &args.trace {
        return inspect_trace(args, file);
    }
    let plan = Plan::new(args)?;
    interrupt::catch();
    match plan.key_type {
        KeyType::U64 => run::<u64>(plan),
        KeyType::U128 => run::<u128>(plan),
        KeyType::Bytes | KeyType::String => run::<[u8]>(plan),
    }
}

fn inspect_trace(args: &InspectArgs, file: &Path) -> Result<(), Error> {
    let (machine, format) = (plan::machine(args)?, plan::format(args)?);
    let files = picture::files::Files::new(args)?;
    let progress = Progress::new(2);
    progress.doing(format!("{}: read", file.display()));
    let trace = foreign::read(file)?;
    progress.step();
    progress.doing(format!("{}: where objects lie", file.display()));
    let mut census = trace.census();
    let report = foreign::report(file, &trace, &mut census, &machine);
    drop(progress);
    let mut outputs = Outputs::default();
    let paths = Paths::default();
    outputs.tried(picture::write(&files, &report, &mut census, &paths, Whose::Program, &machine));
    outputs.tried(render::print(&report, format));
    outputs.finish()
}

fn run<K: BenchKey + ?Sized>(mut plan: Plan) -> Result<(), Error> {
    let (traffic, key_file) = match &plan.file {
        None => (built::traffic::<K>(&plan), None),
        Some(file) => {
            let (space, config) = file.read::<K>(&[plan.dist])?;
            let choice = Choice::new(plan.dist, K::len(&space), plan.seed);
            (Traffic { space, choice }, Some(config))
        }
    };
    if let Some(longest) = K::longest(&traffic.space)
        && let Err(note) = plan.subject.chosen.takes_length(longest)?
    {
        return Err(Error::value("--key-file", note));
    }
    plan.keys = traffic.choice.present();
    let plan = &plan;
    let crew = Crew::new().counting(plan.counters);
    let progress = Progress::new(if plan.fix { 14 } else { 4 });
    let mut examined = examine::examine(plan, &plan.subject, &traffic, &progress)?;
    if plan.fix {
        examined.report.fixes = fix::fix(plan, &traffic, &examined, &crew, &progress)?;
    }
    drop(progress);
    if let Some(config) = &mut examined.report.config {
        config.key_file = key_file;
    }
    if let (Some(counters), Some(config)) = (&crew.counters, &mut examined.report.config) {
        config.counted = counters.tell();
    }
    let Examined { report, census, paths, .. } = &mut examined;
    let whose = Whose::Index(plan.subject.chosen.variant.objects);
    let mut outputs = Outputs::default();
    outputs.tried(picture::write(&plan.files, report, census, paths, whose, &plan.machine));
    outputs.tried(render::print(report, plan.format));
    outputs.finish()
}
