//! `silvics reproduce`.
//!
//! # Method
//! An experiment has a claim of its source, and a function that gathers lines of evidence for it: facts
//! and the model's figures from `inspect`, the clock's from runs in turns. Each line says what there
//! would be if the claim held, what there is, and what follows; the verdict on the claim is the worst of
//! the lines it rests on: contradicted, else not seen, else cannot be shown, else confirmed. What else was
//! looked at is printed, too, and named beside the verdict where it differs. Thresholds are those of
//! docs/experiments.md.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | what is to be reproduced |
//! | `lab` | inspections and clocks |
//! | `evidence` | lines, levels and verdicts |
//! | `bst` | experiments on binary search trees |
//! | `art` | experiments on the adaptive radix tree |
//! | `report` | what comes out |

mod art;
mod bst;
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
    /// Its number, as docs/experiments.md has it.
    pub name: &'static str,
    pub title: &'static str,
    /// Where it was made.
    pub source: &'static str,
    /// The machine of the model, unless another is asked for.
    pub machine: &'static str,
    /// What its source saw: its numbers are the source's.
    pub claim: &'static str,
    /// What of it no run of this command can show, and why.
    pub cannot_show: &'static [&'static str],
    /// Does what the source did, as far as that is asked for.
    pub gather: fn(&mut Lab) -> Result<Vec<Evidence>, Error>,
}

/// All there are, by source, in the order of their numbers.
fn all() -> impl Iterator<Item = &'static Experiment> + Clone {
    bst::ALL.iter().chain(art::ALL)
}

/// Reproduces experiments and prints what came of each as soon as it has.
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
    for experiment in &chosen {
        lab.plan = lab.plan.clone().on(experiment.machine)?;
        let evidence = (experiment.gather)(&mut lab)?;
        report::print(&report::Report::new(experiment, &lab, evidence), format)?;
    }
    Ok(())
}
