//! `silvics reproduce`.
//!
//! # Method
//! An experiment has a claim of its source, and a function that gathers lines of evidence. Facts
//! and the model's figures come from `inspect`, the clock's figures from runs in turns. Each line
//! states the result that the claim implies, the result found, and a verdict. The verdict on the
//! claim is the worst of the lines that it depends on: contradicted, else not seen, else cannot be
//! shown, else confirmed. Other lines are printed too, and are named beside the verdict if they
//! differ from it. docs/experiments.md states the thresholds.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the configuration of a reproduction |
//! | `lab` | inspections and clocks |
//! | `evidence` | lines, levels and verdicts |
//! | `heat` | maps of throughputs |
//! | `bst` | experiments on binary search trees |
//! | `art` | experiments on the adaptive radix tree |
//! | `ets` | experiments on contention adapting trees |
//! | `memtable` | experiments on memtables |
//! | `trie` | experiments on Patricia tries |
//! | `turns` | runs on threads, in turns |
//! | `parts` | experiments on several machines |
//! | `report` | the result, as a table and as JSON |
//! | `html` | all results, as a page |
//! | `document` | the tables of docs/experiments.md |

mod art;
mod bst;
#[cfg(test)]
mod document;
mod ets;
mod evidence;
mod heat;
mod html;
mod lab;
mod memtable;
mod parts;
mod plan;
mod report;
mod trie;
mod turns;

use crate::campaign;
use crate::drive::subject::Crew;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::reproduce::ReproduceArgs;
use crate::flags::site::Site;
use crate::interrupt;
use crate::output::{File, Outputs};
use crate::progress;
use evidence::{Evidence, Level};
use lab::Lab;
pub use parts::Parts;
use plan::Plan;
use report::Report;
use std::path::{Path, PathBuf};

/// An experiment of a source.
pub struct Experiment {
    /// Its number in docs/experiments.md.
    pub name: &'static str,
    pub title: &'static str,
    /// The publication in which it was made.
    pub source: &'static str,
    /// The machine of the model, unless another one is requested.
    pub machine: &'static str,
    /// The claim of the source, with the source's numbers.
    pub claim: &'static str,
    /// The levels of evidence that carry its claim.
    pub carried_by: &'static str,
    /// The evidence that confirms its claim, as it was chosen before the measurement.
    pub seen_if: &'static str,
    /// Whether a part of its claim needs other hardware than a small virtual machine.
    pub elsewhere: bool,
    /// The parts of the claim that this command cannot show, with the reasons.
    pub cannot_show: &'static [&'static str],
    /// Repeats the source's experiment, at the requested levels.
    pub gather: fn(&mut Lab) -> Result<Vec<Evidence>, Error>,
}

/// All experiments, by source, in the order of their numbers.
fn all() -> impl Iterator<Item = &'static Experiment> + Clone {
    bst::ALL.iter().chain(memtable::ALL).chain(trie::ALL).chain(art::ALL).chain(ets::ALL)
}

/// A number of docs/experiments.md that is no experiment of its own.
struct Part {
    name: &'static str,
    title: &'static str,
    /// The experiments and commands that show it.
    shown_by: &'static str,
}

/// All such numbers.
const PARTS: [Part; 2] = [
    Part {
        name: "bst/1.1",
        title: "the ten trees",
        shown_by: "it defines the trees of bst/1.2 to bst/1.11 and their builds; `silvics list --layout` \
                   prints the sizes of their nodes, and bst/1.3 judges their size classes",
    },
    Part {
        name: "ets/5.1",
        title: "the settings of the adapting tree",
        shown_by: "it defines the settings with which ets/5.2 to ets/5.5 run",
    },
];

/// The files of a reproduction.
struct Files {
    /// The pictures of [`trie::DRAWN`].
    picture: Option<File>,
    page: Option<File>,
}

/// Reproduces experiments, and prints the result of each as soon as it is finished. Returns the
/// exit code.
pub fn reproduce(args: &ReproduceArgs) -> Result<u8, Error> {
    if let Some(load) = &args.load_only {
        return trie::load_only(load).map(|()| 0);
    }
    if let Some(interrupted) = campaign::part::<Parts>(args, &args.part)? {
        return Ok(if interrupted { interrupt::EXIT_CODE } else { 0 });
    }
    let format = format(&args.format)?;
    let (plan, chosen) = read(args, Crew::new().threads.into())?;
    let files = files(args, &chosen, &plan)?;
    if chosen.is_empty() {
        return report::list(all(), format).map(|()| 0);
    }
    interrupt::catch();
    let mut lab = lab(args, &chosen, plan)?;
    let (mut reports, mut stopped) = (Vec::new(), None);
    let mut outputs = Outputs::default();
    for experiment in &chosen {
        let report = match run(experiment, &mut lab, args.all) {
            Ok(report) => report,
            Err(error) => {
                stopped = Some(error);
                break;
            }
        };
        outputs.tried(report::print(&report, format));
        if let Some(file) = files.picture.as_ref().filter(|_| !report.maps.is_empty()) {
            outputs.tried(heat::write(&report.maps, file));
        }
        reports.push(report);
    }
    if let Some(file) = &files.page {
        let page = html::page(&lab, &reports, stopped.as_ref(), &html::Parts::default());
        outputs.tried(page.and_then(|page| file.write(page.as_bytes())));
    }
    // The reason why the run ended counts for more than a file that cannot be written.
    let mut ended = Outputs::default();
    ended.tried(stopped.map_or(Ok(()), Err));
    ended.tried(outputs.finish());
    ended.finish()?;
    Ok(u8::from(reports.iter().any(|report| report.failed.is_some())))
}

/// Reads `--format`.
fn format(text: &str) -> Result<Format, Error> {
    match Format::parse(text)? {
        Format::Csv => {
            let problem = "evidence is of several sorts: choose table or json";
            Err(Error::value("--format", problem))
        }
        format => Ok(format),
    }
}

/// The plan and the experiments of a command line.
fn read(args: &ReproduceArgs, site: Site) -> Result<(Plan, Vec<&'static Experiment>), Error> {
    let mut plan = Plan::new(args)?;
    let chosen = plan::chosen(args, all())?;
    plan.sync = trie::sync(&args.sync, &chosen, &plan, site)?;
    Ok((plan, chosen))
}

/// The tools of these experiments.
fn lab(args: &ReproduceArgs, chosen: &[&Experiment], plan: Plan) -> Result<Lab, Error> {
    let mut lab = Lab::new(plan);
    if args.with_erlang {
        lab.erlang = Some(ets::erlang(chosen)?);
    }
    let read = |path: &PathBuf| memtable::db_bench(path, chosen);
    lab.db_bench = args.db_bench.as_ref().map(read).transpose()?;
    Ok(lab)
}

/// Runs an experiment. If `all` are run, its failure is its result.
fn run(experiment: &Experiment, lab: &mut Lab, all: bool) -> Result<Report, Error> {
    lab.plan = lab.plan.clone().on(experiment.machine)?;
    match (experiment.gather)(lab) {
        Ok(evidence) => Ok(Report::new(experiment, lab, evidence)),
        Err(error) if all && !matches!(error, Error::Interrupted) => {
            progress::note(&format!("{} failed: {error}", experiment.name));
            Ok(Report::failed(experiment, lab, &error))
        }
        Err(error) => Err(error),
    }
}

/// The files that are requested. Fails at once if one of them could not be written at the end.
fn files(args: &ReproduceArgs, chosen: &[&Experiment], plan: &Plan) -> Result<Files, Error> {
    const PAGE: &str = "--html";
    let picture = args.svg.as_deref().map(|path| picture(path, chosen, plan)).transpose()?;
    if args.html.is_some() && chosen.is_empty() {
        let problem = "without an experiment there is no page: name experiments, or add --all";
        return Err(Error::value(PAGE, problem));
    }
    let page = args.html.as_deref().map(|path| File::new(PAGE, path)).transpose()?;
    let db_bench = args.db_bench.clone().map(|path| File { flag: "--db-bench", path });
    File::distinct([&db_bench, &picture, &page])?;
    Ok(Files { picture, page })
}

/// The file for pictures of these experiments.
fn picture(path: &Path, chosen: &[&Experiment], plan: &Plan) -> Result<File, Error> {
    const FLAG: &str = "--svg";
    let is_drawn = chosen.iter().any(|one| one.name == trie::DRAWN);
    if !is_drawn || !plan.levels.contains(&Level::Clock) {
        let problem = format!("only {} has a picture, of the level clock: name both", trie::DRAWN);
        return Err(Error::value(FLAG, problem));
    }
    File::new(FLAG, path)
}
