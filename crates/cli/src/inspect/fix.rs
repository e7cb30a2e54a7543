//! Remedies: applied, and measured.

use super::built::{changes, heap_beside};
use super::examine::{Examined, examine};
use super::host::Host;
use super::plan::{Plan, Setup};
use super::report::{self, COLLOCATED, FindingRow, Fix};
use crate::drive::keys::BenchKey;
use crate::drive::run::{Failure, RunSpec};
use crate::drive::scans::ScanBy;
use crate::drive::stats::Interval;
use crate::drive::subject::{Crew, Outcome, Reuse, Subject, Traffic, counted};
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::flags::types::Types;
use crate::host::counters::PerOp;
use crate::host::memory::{self, Resident};
use crate::progress::Progress;
use silvics::{Pages, Tuning};
use silvics_layout::findings::Remedy;
use silvics_workload::Mix;
use std::time::Duration;

/// Runs of two indexes in turns, forwards and backwards.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// The number of runs of each index that count.
    pub pairs: usize,
    /// The duration of a run.
    pub run: Duration,
}

/// The turns by which a remedy is measured.
const TURNS: Turns = Turns { pairs: 20, run: Duration::from_millis(100) };

impl Setup {
    /// The setup with a remedy applied. `None` if the remedy is not one of placement, build or
    /// host.
    pub fn with(&self, remedy: &Remedy) -> Option<Self> {
        let (pages, tuning) = match self.place {
            Place::Pooled(pages, tuning) => (pages, tuning),
            Place::SizeClass(pages) => (pages, Tuning::default()),
            Place::Shared | Place::Allocator(_) => (Pages::Small, Tuning::default()),
        };
        let pooled = |pages, tuning| Self { place: Place::Pooled(pages, tuning), ..self.clone() };
        match remedy {
            Remedy::Align(align) => Some(pooled(pages, tuning.slot_align(*align).ok()?)),
            Remedy::OwnPool => Some(pooled(pages, tuning)),
            Remedy::OwnHugePages => Some(pooled(Pages::Thp, tuning)),
            Remedy::Build(name) => {
                Some(Self { chosen: self.chosen.in_variant(name)?, ..self.clone() })
            }
            Remedy::Collocate => {
                Some(Self { chosen: self.chosen.in_variant(COLLOCATED)?, ..self.clone() })
            }
            Remedy::PadLocks(bytes) => {
                let mut padded = self.clone();
                for lock in padded.host.iter_mut().filter(|kind| kind.is_lock()) {
                    lock.bytes = *bytes..=*bytes;
                }
                Some(padded)
            }
            Remedy::Reorder => None,
        }
    }
}

/// The model's cycles per lookup.
fn cycles(of: &Examined) -> f64 {
    of.report.model.as_ref().map_or(0.0, |model| model.cycles)
}

/// Applies each remedy that pays, one at a time, and measures its outcome.
pub fn fix<K: BenchKey + ?Sized>(
    plan: &Plan,
    traffic: &Traffic<K>,
    before: &Examined,
    crew: &Crew,
    progress: &Progress,
) -> Result<Vec<Fix>, Error> {
    let mut remedies: Vec<&Remedy> = Vec::new();
    let rows = before.report.findings.iter().zip(&before.findings);
    for (_, finding) in rows.filter(|(row, _)| row.pays) {
        if !remedies.contains(&&finding.remedy) {
            remedies.push(&finding.remedy);
        }
    }
    let mut fixes = Vec::new();
    for remedy in remedies {
        let Some(setup) = plan.subject.with(remedy) else { continue };
        let after = examine(plan, &setup, traffic, progress)?;
        let rows = before.report.findings.iter().zip(&before.findings);
        let of_remedy = rows.filter(|(_, finding)| finding.remedy == *remedy).map(|(row, _)| row);
        let of_remedy: Vec<&FindingRow> = of_remedy.collect();
        let same = |a: &FindingRow, b: &FindingRow| (a.id, &a.kind) == (b.id, &b.kind);
        let left = after.report.findings.iter();
        let left = left.filter(|row| of_remedy.iter().any(|found| same(row, found)));
        let seen = compare(plan, &setup, traffic, (crew, TURNS), progress)?;
        fixes.push(Fix {
            left: left.map(|row| row.id).collect(),
            remedy: report::remedy(remedy, &plan.subject),
            // A remedy has one prediction.
            predicted_gain: of_remedy.iter().find_map(|row| row.predicted_gain),
            model_gain: 1.0 - cycles(&after) / cycles(before).max(1.0),
            seen_gain: 1.0 - seen.time.median,
            seen_low: 1.0 - seen.time.high,
            seen_high: 1.0 - seen.time.low,
            pairs: TURNS.pairs,
            counters_before: seen.before,
            counters_after: seen.after,
            findings: of_remedy.iter().map(|row| row.id).collect(),
        });
    }
    Ok(fixes)
}

/// An index with the objects of the program around it. Reads of the index are not recorded.
struct Plain<K: BenchKey + ?Sized> {
    subject: Subject<K>,
    _host: Host,
}

fn plain<K: BenchKey + ?Sized>(
    plan: &Plan,
    setup: &Setup,
    traffic: &Traffic<K>,
) -> Result<Plain<K>, Error> {
    let index = setup.name();
    let failed = |error| Error::Alloc { index: index.clone(), error };
    let Some(make) = setup.chosen.make::<K>(setup.place, Types::words(K::TYPE)) else {
        return Err(Error::KeyType { index, key_type: K::TYPE });
    };
    let options = setup.place.options(None);
    let mut host = Host::new(setup.host.clone(), heap_beside(&options), plan.seed);
    let mut subject = make(&options).map_err(failed)?;
    let reuse = if plan.no_reuse { Reuse::No } else { Reuse::Yes };
    subject.load_between(traffic, reuse, || host.allocate()).map_err(failed)?;
    subject.change(&traffic.space, changes(plan, traffic)).map_err(failed)?;
    Ok(Plain { subject, _host: host })
}

/// An index with a remedy beside the one without.
pub struct Compared {
    /// The time of a lookup with the remedy over the time without it, run by run.
    pub time: Interval,
    /// The lookups per second of all threads, without the remedy.
    pub rate_before: f64,
    /// The events per lookup without the remedy.
    before: Option<PerOp>,
    after: Option<PerOp>,
}

/// Looks up keys in the inspected index and in the remedied one, in turns.
pub fn compare<K: BenchKey + ?Sized>(
    plan: &Plan,
    remedied: &Setup,
    traffic: &Traffic<K>,
    (crew, turns): (&Crew, Turns),
    progress: &Progress,
) -> Result<Compared, Error> {
    let (first, second) = (&plan.subject, remedied);
    progress.doing(format!("{} and {}: lookups in turns", first.name(), second.name()));
    let compared = Pair::load(plan, remedied, traffic)?.compare(traffic, (crew, turns))?;
    progress.step();
    Ok(compared)
}

/// Two indexes with the same keys.
pub struct Pair<K: BenchKey + ?Sized> {
    before: Plain<K>,
    after: Plain<K>,
    name: String,
}

impl<K: BenchKey + ?Sized> Pair<K> {
    /// Loads the inspected index and the remedied one.
    pub fn load(plan: &Plan, remedied: &Setup, traffic: &Traffic<K>) -> Result<Self, Error> {
        let before = plain(plan, &plan.subject, traffic)?;
        Ok(Self { before, after: plain(plan, remedied, traffic)?, name: remedied.name() })
    }

    /// The resident memory of each index, if the system reports it.
    pub fn memory(&self) -> [Option<Resident>; 2] {
        [&self.before, &self.after].map(|of| {
            let pools = of.subject.pool_stats();
            let regions: Vec<_> = pools.into_iter().flat_map(|pool| pool.regions).collect();
            memory::of_regions(&regions)
        })
    }

    /// Looks up keys of one space in both indexes, in turns.
    pub fn compare(&self, traffic: &Traffic<K>, turns: (&Crew, Turns)) -> Result<Compared, Error> {
        let both = [&self.before.subject, &self.after.subject];
        in_turns(both, traffic, turns).map_err(|failure| failure.of(&self.name))
    }
}

/// Looks up keys of one space in two indexes, in turns.
pub fn in_turns<K: BenchKey + ?Sized>(
    [before, after]: [&Subject<K>; 2],
    traffic: &Traffic<K>,
    (crew, turns): (&Crew, Turns),
) -> Result<Compared, Failure> {
    let run = |of: &Subject<K>, number| {
        let (mix, window) = (Mix::LOOKUPS, traffic.choice.start());
        let (threads, scan_by, scan_length) = (crew.threads, ScanBy::Range, 1);
        let (time, limit) = (turns.run, None);
        let batch = 1;
        let spec =
            RunSpec { mix, batch, scan_by, scan_length, threads, time, number, window, limit };
        of.run(traffic, &spec, crew)
    };
    let (mut runs_before, mut runs_after): (Vec<Outcome>, Vec<Outcome>) = Default::default();
    for pair in 0..=turns.pairs as u64 {
        let (a, b) = if pair % 2 == 0 {
            let a = run(before, pair)?;
            (a, run(after, pair)?)
        } else {
            let b = run(after, pair)?;
            (run(before, pair)?, b)
        };
        // The first pair brings both into the caches.
        if pair > 0 {
            runs_before.push(a);
            runs_after.push(b);
        }
    }
    let pairs = runs_before.iter().zip(&runs_after);
    let ratios: Vec<f64> = pairs.map(|(a, b)| a.mops() / b.mops()).collect();
    let rates: Vec<f64> = runs_before.iter().map(|run| 1e6 * run.mops()).collect();
    let (time, rate) = (Interval::of(&ratios), Interval::of(&rates));
    Ok(Compared {
        time: time.ok_or(Failure::Interrupted)?,
        rate_before: rate.ok_or(Failure::Interrupted)?.median,
        before: PerOp::of(counted(&runs_before)),
        after: PerOp::of(counted(&runs_after)),
    })
}
