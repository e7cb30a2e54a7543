//! `silvics bench`.
//!
//! # Method
//! The lists on the command line multiply to *cells* and to their contenders. A cell is a key space
//! and a distribution; a contender is an index and, unless it is a peer, a place for its nodes. In
//! a cell, every contender is built once, by inserting the keys that are present at the start from
//! all cores, so that all contenders are in memory at the same time. Then come rounds, in which the
//! contenders take turns, forwards and backwards (A B C, C B A, and so on), so that a machine that
//! slows down affects all of them equally. In its turn a contender makes one run per mix, batch and
//! number of threads. The first round is shorter and does not count. At the end each contender is
//! checked, and the memory of the cell is freed.
//!
//! A ratio compares runs of the same round, which are close in time and make the same operations.
//! The median of these ratios is printed. `drive::stats` defines the intervals.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the configuration of a benchmark |
//! | `cell` | the rounds of one cell |
//! | `builds`, `report` | the result, as data |

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

/// Runs the benchmark and prints its result. Returns whether the user interrupted it.
pub fn bench(args: &BenchArgs) -> Result<bool, Error> {
    let (format, report) = measure(args)?;
    report.print(format)?;
    Ok(report.interrupted)
}

/// Runs the benchmark. Returns the requested format and the result.
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
