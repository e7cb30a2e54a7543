//! `silvics bench`.
//!
//! # Method
//! The lists on the command line multiply to *cells*, a key space and a distribution, and to their
//! contenders: an index, and a place for its nodes if it is ours. In a cell every contender is built once,
//! by inserting the keys that are present at the start from all cores, so that all are in memory at the
//! same time; then come rounds, in which the contenders take turns, forwards and
//! backwards (A B C, C B A, …), so that a machine that gets slower slows all of them alike. At its
//! turn a contender makes one run per mix, batch and number of threads. The first round is
//! shorter and does not count. At the end each contender is checked, and the cell is given back.
//!
//! A ratio compares runs of the same round, which are near each other in time and make the same
//! operations; what is printed is the median of these ratios. `drive::stats` says what the intervals are.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | what is to be run |
//! | `cell` | the rounds of one cell |
//! | `builds`, `report` | what comes out |

mod builds;
mod cell;
mod plan;
mod render;
pub mod report;

#[cfg(test)]
mod tests;

use crate::drive::keys::BenchKey;
use crate::drive::subject::{Crew, Traffic};
use crate::flags::args::{BenchArgs, Format};
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::{self, Progress};
use cell::{Cell, Flow};
use plan::Plan;
use report::Report;
use silvics_workload::Choice;

/// Runs the benchmark and prints its result; whether it was interrupted.
pub fn bench(args: &BenchArgs) -> Result<bool, Error> {
    let (format, report) = measure(args)?;
    report.print(format)?;
    Ok(report.interrupted)
}

/// Runs the benchmark; what it came to, and the format that is asked for.
pub fn measure(args: &BenchArgs) -> Result<(Format, Report), Error> {
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads)?;
    for note in &plan.notes {
        progress::note(note);
    }
    let crew = crew.counting(plan.counters);
    let mut report = Report::new(&plan, Machine::this(crew.threads));
    interrupt::catch();
    match plan.types.key {
        KeyType::U64 => {
            let keys = Keys::<u64>::read(&plan, &mut report)?;
            keys.bench(&plan, &crew, &mut report)?;
        }
        KeyType::U128 => {
            let keys = Keys::<u128>::read(&plan, &mut report)?;
            keys.bench(&plan, &crew, &mut report)?;
        }
        KeyType::Bytes | KeyType::String => {
            let keys = Keys::<[u8]>::read(&plan, &mut report)?;
            keys.bench(&plan, &crew, &mut report)?;
        }
    }
    report.interrupted = interrupt::pending();
    report.builds = builds::ratios(&report.results);
    if let Some(counters) = &crew.counters {
        report.config.counted = counters.tell();
    }
    Ok((plan.format, report))
}

/// The key spaces of the cells.
enum Keys<K: BenchKey + ?Sized> {
    Generated(Vec<usize>),
    File(K::Space),
}

impl<K: BenchKey + ?Sized> Keys<K> {
    fn read(plan: &Plan, report: &mut Report) -> Result<Self, Error> {
        let Some(file) = &plan.file else { return Ok(Self::Generated(plan.sizes.clone())) };
        let (space, config) = file.read::<K>(&plan.dists)?;
        if plan.types.key == KeyType::String
            && let Some(at) = K::first_binary(&space)
        {
            return Err(Error::Binary { at });
        }
        report.config.key_file = Some(config);
        Ok(Self::File(space))
    }

    fn bench(self, plan: &Plan, crew: &Crew, report: &mut Report) -> Result<(), Error> {
        let sizes = match &self {
            Self::Generated(sizes) => sizes.len(),
            Self::File(_) => 1,
        };
        let cells = sizes * plan.dists.len();
        let progress = Progress::new(cells * plan.contenders().count() * (plan.rounds + 3));
        let mut run = |traffic: &Traffic<K>| -> Result<Flow, Error> {
            Cell { traffic, plan, crew, progress: &progress, number: report.cells }.run(report)
        };
        match self {
            Self::Generated(sizes) => {
                for size in sizes {
                    for &dist in &plan.dists {
                        let space = K::generate(dist, 2 * size, plan.types.key);
                        let choice = Choice::new(dist, 2 * size, plan.seed);
                        if run(&Traffic { space, choice })? == Flow::Interrupted {
                            return Ok(());
                        }
                    }
                }
            }
            Self::File(mut space) => {
                for &dist in &plan.dists {
                    let choice = Choice::new(dist, K::len(&space), plan.seed);
                    let traffic = Traffic { space, choice };
                    if run(&traffic)? == Flow::Interrupted {
                        return Ok(());
                    }
                    space = traffic.space;
                }
            }
        }
        Ok(())
    }
}
