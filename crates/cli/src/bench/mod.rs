//! `silvics bench`.
//!
//! docs/bench.md has the method, and the parts of a figure. `drive::stats` defines the intervals.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the configuration of a benchmark |
//! | `cell` | the rounds of one cell |
//! | `rows` | the rows of one cell |
//! | `builds`, `latency`, `report` | the result, as data |
//! | `render`, `html` | the result as tables, and as a page |
//! | `parts` | a benchmark on several machines |
//! | `kept`, `ratio`, `comparison` | runs that are kept, and comparisons with them |
//! | `trace`, `plot` | the shape of indexes over time |

mod builds;
mod cell;
mod comparison;
mod html;
mod kept;
pub mod latency;
mod parts;
mod plan;
mod plot;
mod ratio;
mod render;
pub mod report;
mod rows;
mod trace;

#[cfg(test)]
mod tests;

use crate::campaign;
use crate::drive::keys::BenchKey;
use crate::drive::subject::{Crew, Traffic};
use crate::flags::args::Format;
use crate::flags::bench::BenchArgs;
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::output::Outputs;
use crate::progress::{self, Progress};
use cell::{Cell, Flow};
pub use parts::Parts;
use plan::Plan;
use report::Report;
use silvics_workload::{Choice, KeySet};
use std::cell::RefCell;

/// Runs the benchmark and prints its result. Returns whether the user interrupted it.
pub fn bench(args: &BenchArgs) -> Result<bool, Error> {
    if let Some(interrupted) = campaign::part::<Parts>(args, &args.part)? {
        return Ok(interrupted);
    }
    let (plan, report, ended) = run(args)?;
    write(&plan, &report, ended)?;
    Ok(report.interrupted)
}

/// Writes all outputs that the plan asks for. Fails with the error that ended the benchmark, if one
/// did.
fn write(plan: &Plan, report: &Report, ended: Result<(), Error>) -> Result<(), Error> {
    let mut outputs = Outputs::default();
    outputs.tried(ended);
    outputs.tried(report.print(plan.format));
    outputs.tried(plan.kept.save(report));
    if let Some(trace) = &report.trace {
        outputs.tried(trace.write(report));
    }
    if let Some(file) = &report.page {
        outputs.tried(html::page(report).and_then(|page| file.write(page.as_bytes())));
    }
    outputs.finish()
}

/// Runs the benchmark. Returns the requested format and the result.
pub fn measure(args: &BenchArgs) -> Result<(Format, Report), Error> {
    let (plan, report, ended) = run(args)?;
    ended.map(|()| (plan.format, report))
}

fn run(args: &BenchArgs) -> Result<(Plan, Report, Result<(), Error>), Error> {
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads)?;
    for note in &plan.notes {
        progress::note(note);
    }
    let (report, ended) = measured(&plan, crew)?;
    Ok((plan, report, ended))
}

/// Measures what a plan says. After an error the report has the cells before it. Fails if there are
/// none.
fn measured(plan: &Plan, crew: Crew) -> Result<(Report, Result<(), Error>), Error> {
    let crew = crew.counting(plan.counters).loading(plan.load_threads).running(plan.runners);
    let mut report = Report::new(plan, Machine::this(crew.threads));
    if let Some(counters) = &crew.counters {
        report.config.counted = counters.tell(); // again at the end, when some may have failed
    }
    interrupt::catch();
    let flow = match plan.types.key {
        KeyType::U64 => {
            let keys = Keys::<u64>::read(plan, &mut report)?;
            keys.bench(plan, &crew, &mut report)
        }
        KeyType::U128 => {
            let keys = Keys::<u128>::read(plan, &mut report)?;
            keys.bench(plan, &crew, &mut report)
        }
        KeyType::Bytes | KeyType::String => {
            let keys = Keys::<[u8]>::read(plan, &mut report)?;
            keys.bench(plan, &crew, &mut report)
        }
    };
    let ended = match flow {
        Ok(Flow::Finished) => Ok(()),
        // An interrupt that comes when all is measured changes nothing.
        Ok(Flow::Interrupted) => {
            report.interrupt();
            Ok(())
        }
        Err(error) if report.results.is_empty() => return Err(error),
        Err(error) => {
            report.stopped = Some(error.to_string());
            Err(error)
        }
    };
    report.builds = builds::ratios(&report.results);
    if let Some(counters) = &crew.counters {
        report.config.counted = counters.tell();
    }
    report.comparison = plan.kept.compare(&report)?;
    Ok((report, ended))
}

/// The key spaces of the cells.
enum Keys<K: BenchKey + ?Sized> {
    Generated(Vec<usize>),
    Set(KeySet, Vec<usize>),
    File(K::Space),
}

impl<K: BenchKey + ?Sized> Keys<K> {
    fn read(plan: &Plan, report: &mut Report) -> Result<Self, Error> {
        let Some(file) = &plan.file else {
            let sizes = plan.sizes.clone();
            return Ok(match plan.set {
                Some(set) => Self::Set(set, sizes),
                None => Self::Generated(sizes),
            });
        };
        let (space, config) = file.read::<K>(&plan.dists)?;
        if plan.types.key == KeyType::String
            && let Some(at) = K::first_binary(&space)
        {
            return Err(Error::Binary { at });
        }
        report.config.key_file = Some(config);
        Ok(Self::File(space))
    }

    fn bench(self, plan: &Plan, crew: &Crew, report: &mut Report) -> Result<Flow, Error> {
        if let Some(warning) = plan.kept.check(plan, report)? {
            progress::note(&warning);
        }
        let sizes = match &self {
            Self::Generated(sizes) | Self::Set(_, sizes) => sizes.len(),
            Self::File(_) => 1,
        };
        let cells = sizes * plan.dists.len();
        let progress =
            Progress::new(cells * plan.contenders().count() * plan.rounds * plan.measured().len());
        let mut run = |traffic: &Traffic<K>| -> Result<Flow, Error> {
            let (progress, number, left_out) = (&progress, report.cells, RefCell::default());
            Cell { traffic, plan, crew, progress, number, left_out }.run(report)
        };
        match self {
            Self::Generated(sizes) => {
                for size in sizes {
                    for &dist in &plan.dists {
                        let space = K::generate(dist, 2 * size, plan.types.key);
                        let choice = Choice::new(dist, 2 * size, plan.seed);
                        if run(&Traffic { space, choice })? == Flow::Interrupted {
                            return Ok(Flow::Interrupted);
                        }
                    }
                }
            }
            Self::Set(set, sizes) => {
                for size in sizes {
                    let space = K::of_set(set, 2 * size, plan.seed);
                    if Self::chosen_from(space, plan, &mut run)? == Flow::Interrupted {
                        return Ok(Flow::Interrupted);
                    }
                }
            }
            Self::File(space) => return Self::chosen_from(space, plan, &mut run),
        }
        Ok(Flow::Finished)
    }

    /// Runs the cells of one key space: one for each distribution.
    fn chosen_from(
        mut space: K::Space,
        plan: &Plan,
        mut run: impl FnMut(&Traffic<K>) -> Result<Flow, Error>,
    ) -> Result<Flow, Error> {
        for &dist in &plan.dists {
            let choice = Choice::new(dist, K::len(&space), plan.seed);
            let traffic = Traffic { space, choice };
            if run(&traffic)? == Flow::Interrupted {
                return Ok(Flow::Interrupted);
            }
            space = traffic.space;
        }
        Ok(Flow::Finished)
    }
}
