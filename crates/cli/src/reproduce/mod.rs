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
//! | `bst` | experiments on binary search trees |
//! | `art` | experiments on the adaptive radix tree |
//! | `ets` | experiments on contention adapting trees |
//! | `report` | the result, as a table and as JSON |

mod art;
mod bst;
mod ets;
mod evidence;
mod lab;
mod plan;
mod report;

use crate::flags::args::{Format, ReproduceArgs};
use crate::flags::error::Error;
use crate::interrupt;
use evidence::Evidence;
use lab::Lab;
use plan::Plan;

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
    bst::ALL.iter().chain(art::ALL).chain(ets::ALL)
}

/// Reproduces experiments, and prints the result of each as soon as it is finished.
pub fn reproduce(args: &ReproduceArgs) -> Result<(), Error> {
    let format = match Format::parse(&args.format)? {
        Format::Csv => {
            let problem = "evidence is of several sorts: choose table or json";
            return Err(Error::value("--format", problem));
        }
        format => format,
    };
    let plan = Plan::new(args)?;
    let chosen = plan::chosen(&args.experiments, all())?;
    if chosen.is_empty() {
        return report::list(all(), format);
    }
    interrupt::catch();
    let mut lab = Lab::new(plan);
    if args.with_erlang {
        lab.erlang = Some(ets::erlang(&chosen)?);
    }
    for experiment in &chosen {
        lab.plan = lab.plan.clone().on(experiment.machine)?;
        let evidence = (experiment.gather)(&mut lab)?;
        report::print(&report::Report::new(experiment, &lab, evidence), format)?;
    }
    Ok(())
}
