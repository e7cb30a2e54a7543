//! The cost of lookups in the model, by skew and size of pages.

use super::{EXPONENTS, Keys, zipf};
use crate::drive::subject::Traffic;
use crate::flags::error::Error;
use crate::inspect::built::Built;
use crate::inspect::plan::Plan as Inspection;
use crate::reproduce::lab::{Bed, Lab};
use crate::reproduce::plan::{QUICK, fewer_translations};
use silvics::Pages;
use silvics_layout::{Latencies, Level, Machine, MachineError, PageSize, Replay};
use silvics_workload::{Choice, WordKeys};

/// The mean cost of a lookup with one skew.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    pub exponent: f64,
    /// The cycles until all reads have arrived.
    pub cycles: f64,
    /// The share of the cycles that would be saved if every translation were known.
    pub share: f64,
    pub llc_misses: f64,
    /// The translations that were not in the first level.
    pub tlb_misses: f64,
    /// The translations that were in no level.
    pub walks: f64,
    /// The lines of the page table in L2 after all lookups.
    pub table_lines: f64,
}

/// The points of a curve, one for each skew.
pub type Curve = Vec<Point>;

/// The setting of an inspection: `art` on these pages. Its memory is reused as in any program.
pub fn inspection(lab: &Lab, keys: usize, pages: Pages) -> Result<Inspection, Error> {
    let plan = lab.inspection(&Bed::segregated("art", keys).on(pages))?;
    Ok(Inspection { no_reuse: false, ..plan })
}

/// The machine of the model. Its second level of translations is smaller if the tree is.
pub fn machine(lab: &Lab) -> Machine {
    let machine = lab.plan.machine;
    if lab.plan.quick { fewer_translations(machine, QUICK) } else { machine }
}

/// The most lookups that count; twice as many before them fill the caches. There are as many as
/// keys, so that they show the tail of each skew as more lookups would.
pub const LOOKUPS_MAX: usize = 1 << 21;

/// The curves of lookups on pages of each of these sizes, with the objects at the same addresses.
pub fn curves(
    lab: &Lab,
    keys: Keys,
    count: usize,
    pages: &[PageSize],
) -> Result<Vec<Curve>, Error> {
    of(lab, &keys.traffic(count, lab.plan.seed), pages)
}

/// The curves for dense keys whose ranks are in the order of the keys, so that the hottest keys are
/// neighbours.
pub fn in_order(lab: &Lab, count: usize) -> Result<Curve, Error> {
    let hottest = zipf(1.0, count, lab.plan.seed).hottest();
    let mut words = vec![0; count];
    for (word, position) in (1..).zip(hottest) {
        words[position as usize] = word;
    }
    let choice = zipf(0.0, count, lab.plan.seed);
    let traffic = Traffic { space: WordKeys::listed(words), choice };
    Ok(of(lab, &traffic, &[PageSize::Small])?.swap_remove(0))
}

fn of(lab: &Lab, traffic: &Traffic<u64>, pages: &[PageSize]) -> Result<Vec<Curve>, Error> {
    let keys = traffic.space.len();
    let plan = inspection(lab, keys, Pages::Small)?;
    let built = Built::new(&plan, &plan.subject, traffic)?;
    let mut curves = vec![Curve::new(); pages.len()];
    for exponent in EXPONENTS {
        let choice = zipf(exponent, keys, lab.plan.seed);
        let points = points(&built, &choice, &machine(lab), pages);
        let points = points.map_err(|error| Error::value("--machine", error))??;
        for (curve, point) in curves.iter_mut().zip(points) {
            curve.push(Point { exponent, ..point });
        }
    }
    Ok(curves)
}

fn points(
    built: &Built<'_, u64>,
    choice: &Choice,
    machine: &Machine,
    pages: &[PageSize],
) -> Result<Result<Vec<Point>, Error>, MachineError> {
    let replay =
        |pages: &PageSize| Ok(Replay::new(machine, *pages, None)?.walking(Latencies::SANDY_BRIDGE));
    let mut replays: Vec<Replay> = pages.iter().map(replay).collect::<Result<_, _>>()?;
    let (counted, mut done) = (choice.len().min(LOOKUPS_MAX), 0);
    let looked_up = built.lookups_by(choice, 3 * counted, |reads| {
        for replay in &mut replays {
            if done == 2 * counted {
                replay.warm();
            }
            replay.lookup(reads);
        }
        done += 1;
    });
    Ok(looked_up.map(|()| replays.iter().map(point).collect()))
}

pub fn point(replay: &Replay) -> Point {
    let (counts, lookups) = (replay.counts(), replay.lookups().max(1) as f64);
    let each = |count: u64| count as f64 / lookups;
    Point {
        exponent: 0.0,
        cycles: replay.cycles_per_lookup(),
        share: replay.translation_share(),
        llc_misses: each(counts.llc_misses),
        tlb_misses: each(counts.tlb_misses),
        walks: each(counts.page_walks),
        table_lines: replay.table_lines(Level::L2) as f64,
    }
}
