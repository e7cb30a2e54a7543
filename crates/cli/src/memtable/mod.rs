//! `silvics memtable`: the workloads of `db_bench` on write buffers.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the command line, checked; the workloads and memtables |
//! | `run` | one run of a workload on a new buffer |
//! | `work` | the measured loops |
//! | `check` | the checks of a run |
//! | `keys` | keys and values, and the draws of threads |
//! | `pointer` | the skip list whose nodes lead to their keys, as an index |
//! | `parts` | a benchmark on several machines |
//! | `report` | the result, as data |
//! | `render` | tables and CSV |

pub mod check;
pub mod keys;
mod parts;
pub mod plan;
pub mod pointer;
mod render;
mod report;
pub mod run;
pub mod work;

use crate::campaign;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::memtable::MemtableArgs;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::Progress;
pub use parts::Parts;
use plan::{Cell, Contender, Plan};
use report::{Report, Row};
use run::{Job, Sample};

/// Runs the workloads and prints the result. Returns whether the user interrupted it: then the
/// result has the runs that were finished.
pub fn memtable(args: &MemtableArgs) -> Result<bool, Error> {
    if let Some(interrupted) = campaign::part::<Parts>(args, &args.part)? {
        return Ok(interrupted);
    }
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads)?;
    interrupt::catch();
    let cells = plan.cells();
    let progress = Progress::new(cells.len() * plan.rounds * plan.contenders.len());
    let mut report = Report::new(&plan, Machine::this(crew.threads));
    for cell in &cells {
        let samples = measure(&plan, *cell, &crew, &progress)?;
        report.results.extend(Row::all(&plan, *cell, &samples));
        if interrupt::pending() {
            report.interrupted = true;
            break;
        }
    }
    drop(progress);
    report.print(plan.format)?;
    Ok(report.interrupted)
}

/// Lets the contenders take turns. Returns the samples of each. After an interrupt all have those
/// of the finished rounds only.
fn measure(
    plan: &Plan,
    cell: Cell,
    crew: &Crew,
    progress: &Progress,
) -> Result<Vec<Vec<Sample>>, Error> {
    let contenders = plan.contenders.len();
    let mut samples: Vec<Vec<Sample>> = (0..contenders).map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for turn in 0..contenders {
            if interrupt::pending() {
                for finished in &mut samples {
                    finished.truncate(round);
                }
                return Ok(samples);
            }
            let at = if round % 2 == 0 { turn } else { contenders - 1 - turn };
            let Contender { memtable, mode } = plan.contenders[at];
            progress.doing(format!("{} on {}", cell.workload.name(), memtable.name()));
            let job = Job {
                workload: cell.workload,
                threads: cell.threads,
                num: plan.num,
                batch: cell.batch,
                key_size: plan.key_size,
                value_size: cell.value_size,
                mode,
                yields: plan.yields,
                log: &plan.log,
                recovers: round + 1 == plan.rounds,
                seed: plan.seed.wrapping_add(round as u64),
                crew,
            };
            samples[at].push(memtable.measure(&job)?);
            progress.step();
        }
    }
    Ok(samples)
}
