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
//! | `report` | the result, as a table and as JSON |

mod art;
mod bst;
mod ets;
mod evidence;
mod heat;
mod lab;
mod memtable;
mod plan;
mod report;
mod trie;
mod turns;

use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::reproduce::ReproduceArgs;
use crate::interrupt;
use crate::output::File;
use evidence::{Evidence, Level};
use lab::Lab;
use plan::Plan;
use std::path::Path;

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
    /// The parts of the claim that this command cannot show, with the reasons.
    pub cannot_show: &'static [&'static str],
    /// Repeats the source's experiment, at the requested levels.
    pub gather: fn(&mut Lab) -> Result<Vec<Evidence>, Error>,
}

/// All experiments, by source, in the order of their numbers.
fn all() -> impl Iterator<Item = &'static Experiment> + Clone {
    bst::ALL.iter().chain(memtable::ALL).chain(trie::ALL).chain(art::ALL).chain(ets::ALL)
}

/// Reproduces experiments, and prints the result of each as soon as it is finished.
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Error> {
    if let Some(load) = &args.load_only {
        return trie::load_only(load);
    }
    let format = match Format::parse(&args.format)? {
        Format::Csv => {
            let problem = "evidence is of several sorts: choose table or json";
            return Err(Error::value("--format", problem));
        }
        format => format,
    };
    let mut plan = Plan::new(args)?;
    let chosen = plan::chosen(&args.experiments, all())?;
    plan.sync = trie::sync(&args.sync, &chosen, &plan)?;
    let picture = args.svg.as_deref().map(|path| picture(path, &chosen, &plan)).transpose()?;
    if chosen.is_empty() {
        return report::list(all(), format);
    }
    interrupt::catch();
    let mut lab = Lab::new(plan);
    if args.with_erlang {
        lab.erlang = Some(ets::erlang(&chosen)?);
    }
    lab.db_bench =
        args.db_bench.as_deref().map(|path| memtable::db_bench(path, &chosen)).transpose()?;
    for experiment in &chosen {
        lab.plan = lab.plan.clone().on(experiment.machine)?;
        let evidence = (experiment.gather)(&mut lab)?;
        report::print(&report::Report::new(experiment, &lab, evidence), format)?;
        if let Some(file) = picture.as_ref().filter(|_| !lab.maps.is_empty()) {
            heat::write(&lab.maps, file)?;
        }
        lab.maps.clear();
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/experiments.md has a row for each experiment, with what was seen.
    #[test]
    fn each_experiment_has_a_row() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
        let page = std::fs::read_to_string(page).unwrap();
        for Experiment { name, .. } in all() {
            let row = page.lines().find(|line| line.starts_with(&format!("| {name} ")));
            let row = row.unwrap_or_else(|| panic!("{name} has no row"));
            assert!(!row.contains("not yet reproduced"), "{row}");
        }
    }
}
