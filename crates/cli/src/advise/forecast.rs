//! The change with ten times the keys, or on another machine.
//!
//! # Model
//! A lookup takes `T(n) = C(n) + a · M(n)`: `M(n)` is the number of cycles that a lookup waits for
//! memory in the model, `a` the time of such a cycle (less than a cycle's if lookups overlap), and
//! `C(n)` the rest. With `n` the keys of the measurement and `N` those of the workload,
//! ```text
//! T(10 N) = T(n) + a · (M(10 N) - M(n))
//! ```
//! * Lookups of at most `KEYS_MAX` keys are recorded. `M` of another number of keys is that of a
//!   machine whose caches beyond the first, and whose second level of translations, are smaller or
//!   larger by the same factor: as large a part of the tree is in them.
//! * `a = (T(n) - T(m)) / (M(n) - M(m))`, with `m` the keys of the first stage. It also has the
//!   cost of the deeper descent from `m` to `n`, so bounds hold it. If `m` is `n`, or the model
//!   sees no difference, `a` is the middle between the bounds.
//! * On another machine, the time of a cycle is taken to be `a`, too.
//!
//! The bounds come from what ten times the keys added to the times of `just advised`, on two cores
//! of two virtual machines: 0.1 to 2.9 ns for a cycle of lookups, and 0.6 to 8 for upserts, of
//! which lower ones order more of the structures as they were. A cycle can take more than a
//! processor's, because a virtual machine walks two page tables and others use the last level of
//! the cache. Lookups overlap, and writes do not: their locked instructions wait for all loads.
//! Most workloads of `just advised` set the bounds, so their orders test little.
//!
//! Writes are taken to miss as lookups do: they begin with one. A scan reads more leaves than the
//! lookup at its beginning, and the model has no scans. So there is no prediction if most
//! operations are scans. The lookups of a call of many keys overlap, by how much depends on the
//! structure: there is no prediction for such calls either.

use super::candidates::Candidate;
use super::lab::{Lab, Trial};
use super::plan::Keys;
use super::search::Found;
use crate::drive::keys::BenchKey;
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::inspect::built::Built;
use crate::inspect::examine::examine;
use crate::inspect::plan::{Plan, Setup};
use serde::Serialize;
use silvics::Pages;
use silvics_layout::{Cache, Entries, Machine, MachineError, PageSize, Replay, Tlb};
use silvics_workload::trace::Trace;
use silvics_workload::{Mix, Op};
use std::collections::HashSet;

/// The most keys with which reads are recorded.
const KEYS_MAX: usize = 1 << 19;
/// The lookups that fill the caches of the models, and those that count.
const LOOKUPS: usize = 60_000;
/// The bounds of the time of a modelled cycle, in nanoseconds, for lookups and for writes.
const LOOKUP_NS: [f64; 2] = [0.1, 0.9];
const WRITE_NS: [f64; 2] = [1.0, 2.5];
/// The most structures whose order is predicted.
const LEADERS: usize = 4;

/// The prediction for one structure.
#[derive(Clone, Serialize)]
pub struct Predicted {
    pub candidate: String,
    /// The nanoseconds that a thread's operation takes, as measured.
    pub ns: f64,
    /// As measured with the keys of the first stage.
    pub ns_at_few: f64,
    /// The cycles that a lookup waits for memory in the model of this machine.
    pub cycles: f64,
    /// These cycles with the keys of the first stage.
    pub cycles_at_few: f64,
    /// These cycles with ten times the keys.
    pub cycles_at_ten: f64,
    /// The nanoseconds that an operation is predicted to take with ten times the keys.
    pub ns_at_ten: f64,
    /// The nanoseconds that it is predicted to take on the other machine.
    pub ns_elsewhere: Option<f64>,
    #[serde(skip)]
    pub of: Option<Candidate>,
}

/// The prediction for the leading structures.
#[derive(Clone, Default, Serialize)]
pub struct Forecast {
    /// From the fastest with ten times the keys.
    pub leaders: Vec<Predicted>,
    /// The other machine.
    pub machine: Option<&'static str>,
    /// The reason why there is no prediction.
    pub missing: Option<String>,
    /// The most seconds that it took for a structure.
    #[serde(skip)]
    pub seconds: f64,
}

/// The cycles that a lookup of a structure waits for memory in each model.
struct Cycles {
    few: f64,
    now: f64,
    at_ten: f64,
    elsewhere: Option<f64>,
}

/// Predicts for the leading structures.
pub fn forecast<K: BenchKey + ?Sized>(
    lab: &mut Lab<'_, K>,
    found: &Found<K>,
) -> Result<Forecast, Error> {
    let missing = |why: String| Forecast { missing: Some(why), ..Forecast::default() };
    if let Keys::Trace(trace) = &lab.plan.source
        && !finds_keys(trace)
    {
        return Ok(missing("the trace reads no key that is present at its start".into()));
    }
    if share(lab.plan.mix, Op::Scan) > 0.5 {
        return Ok(missing("most operations are scans, and the model has lookups alone".into()));
    }
    if found.structures.iter().any(|trial| trial.candidate.batch > 1) {
        let why = "calls of many keys overlap their misses, and the model has single lookups alone";
        return Ok(missing(why.into()));
    }
    let host = match Machine::named("host") {
        Ok(host) => host,
        Err(error) => return Ok(missing(error.to_string())),
    };
    // Those that were measured with the most keys.
    let most = found.structures.iter().filter_map(|trial| trial.load).map(|(_, keys)| keys).max();
    let with_most = |trial: &&Trial<K>| trial.load.map(|(_, keys)| keys) == most;
    let mut structures: Vec<&Trial<K>> = found.structures.iter().filter(with_most).collect();
    structures.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
    structures.retain(|trial| trial.candidate.chosen.inspects(K::TYPE));
    // A structure that was called in two ways is there once, with the faster way.
    let mut seen = HashSet::new();
    structures.retain(|trial| seen.insert(trial.candidate.chosen.name()));
    structures.truncate(LEADERS);
    if structures.len() < 2 {
        let why = "it compares structures, and the reads of one alone can be recorded";
        return Ok(missing(why.into()));
    }
    lab.take(found.keys.min(KEYS_MAX));
    let (mut leaders, mut seconds) = (Vec::new(), 0.0_f64);
    for trial in structures {
        if lab.left() <= seconds {
            break; // the budget would be exceeded
        }
        let before = lab.spent();
        let Some(cycles) = cycles(lab, found, trial, &host)? else {
            return Ok(missing("too few of the operations find a key".into()));
        };
        leaders.push(predicted(lab, found, trial, &cycles));
        seconds = seconds.max(lab.spent() - before);
    }
    if leaders.len() < 2 {
        return Ok(missing("the budget was spent before".into()));
    }
    leaders.sort_by(|a, b| a.ns_at_ten.total_cmp(&b.ns_at_ten));
    let machine = lab.plan.machine.map(|machine| machine.name);
    Ok(Forecast { leaders, machine, missing: None, seconds })
}

/// Whether an operation of a trace is on a key that is present at the start.
fn finds_keys(trace: &Trace) -> bool {
    let present: HashSet<u32> = trace.present.iter().copied().collect();
    trace.steps.iter().any(|(_, at)| present.contains(at))
}

fn predicted<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    found: &Found<K>,
    trial: &Trial<K>,
    cycles: &Cycles,
) -> Predicted {
    let ns_of = |rate: f64| 1e3 * lab.plan.threads as f64 / rate.max(1e-9);
    let ns = ns_of(trial.rate());
    let few = found.at_few.iter().find(|(candidate, _)| *candidate == trial.candidate);
    let few_ns = few.map_or(ns, |(_, rate)| ns_of(*rate));
    let [least, most] = cycle_bounds(lab.plan.mix);
    let more = cycles.now - cycles.few;
    let measured = if more > 1.0 { (ns - few_ns) / more } else { f64::midpoint(least, most) };
    let cycle_ns = measured.clamp(least, most);
    let grown = |to: f64| (ns + cycle_ns * (to - cycles.now)).max(0.1 * ns);
    Predicted {
        candidate: trial.candidate.to_string(),
        ns,
        ns_at_few: few_ns,
        cycles: cycles.now,
        cycles_at_few: cycles.few,
        cycles_at_ten: cycles.at_ten,
        ns_at_ten: grown(cycles.at_ten),
        ns_elsewhere: cycles.elsewhere.map(grown),
        of: Some(trial.candidate),
    }
}

/// The bounds of the time of a modelled cycle for a mix.
fn cycle_bounds(mix: Mix) -> [f64; 2] {
    let writes = [Op::Insert, Op::Remove, Op::Upsert].map(|op| share(mix, op)).iter().sum::<f64>();
    [0, 1].map(|at| LOOKUP_NS[at] + writes * (WRITE_NS[at] - LOOKUP_NS[at]))
}

/// The share of a kind of operations, up to 1.
fn share(mix: Mix, op: Op) -> f64 {
    f64::from(mix.share(op)) / 1e6
}

/// Records what lookups of a structure read, and replays that in the models.
fn cycles<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    found: &Found<K>,
    trial: &Trial<K>,
    host: &Machine,
) -> Result<Option<Cycles>, Error> {
    let candidate = trial.candidate;
    lab.progress.doing(format!("{candidate}: model"));
    let now = trial.load.map_or(found.keys, |(_, keys)| keys).max(1);
    let plan = inspection(lab, candidate, host);
    let built = Built::new(&plan, &plan.subject, &lab.traffic)?;
    let pages = pages(candidate.place);
    let recorded = lab.present() as f64;
    let of = |machine: &Machine, keys: usize| {
        Replay::new(&scaled(machine, recorded / keys.max(1) as f64), pages, None)
    };
    let mut replays = vec![of(host, found.few), of(host, now), of(host, 10 * lab.keys())];
    replays.extend(lab.plan.machine.as_ref().map(|machine| of(machine, lab.keys())));
    let replays: Result<Vec<Replay>, MachineError> = replays.into_iter().collect();
    let mut replays = replays.map_err(|error| Error::value("--machine", error))?;
    let mut done = 0;
    built.lookups(2 * LOOKUPS, |reads| {
        for replay in &mut replays {
            if done == LOOKUPS {
                replay.warm();
            }
            replay.lookup(reads);
        }
        done += 1;
    })?;
    if done < 2 * LOOKUPS {
        return Ok(None);
    }
    let cycles: Vec<f64> = replays.iter().map(Replay::cycles_per_lookup).collect();
    Ok(Some(Cycles {
        few: cycles[0],
        now: cycles[1],
        at_ten: cycles[2],
        elsewhere: cycles.get(3).copied(),
    }))
}

/// The inspection of a candidate with the keys of the lab.
fn inspection<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    candidate: Candidate,
    host: &Machine,
) -> Plan {
    let setup = Setup { chosen: candidate.chosen, place: candidate.place, host: Vec::new() };
    Plan::loaded(setup, K::TYPE, lab.present(), lab.plan.dist, *host)
}

/// A finding about the layout of a candidate.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    pub candidate: String,
    /// The finding, as `silvics inspect` and docs/layout.md call it.
    pub id: &'static str,
    pub kind: String,
    pub evidence: String,
    /// The share of the modelled cycles of a lookup that its remedy would save.
    pub gain: Option<f64>,
}

/// The findings about the layout of a candidate, with the keys of the lab.
pub fn findings<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    candidate: Candidate,
) -> Result<Vec<Why>, Error> {
    let Ok(host) = Machine::named("host") else { return Ok(Vec::new()) };
    if !candidate.chosen.inspects(K::TYPE) {
        return Ok(Vec::new());
    }
    let plan = inspection(lab, candidate, &host);
    let examined = examine(&plan, &plan.subject, &lab.traffic, lab.progress)?;
    let paying = examined.report.findings.into_iter().filter(|finding| finding.pays);
    Ok(paying
        .map(|finding| Why {
            candidate: candidate.to_string(),
            id: finding.id,
            kind: finding.kind,
            evidence: finding.evidence.to_string(),
            gain: finding.predicted_gain,
        })
        .collect())
}

fn pages(place: Place) -> PageSize {
    match place {
        Place::Pooled(Pages::Small, _) | Place::Shared => PageSize::Small,
        _ => PageSize::Huge,
    }
}

/// The machine with a multiple of its caches beyond the first, and of its second level of
/// translations. Sets stay powers of two: the ways take the rest.
fn scaled(machine: &Machine, by: f64) -> Machine {
    let l1 = machine.l1.bytes;
    let cache = |cache: Cache, least: usize| {
        let line = machine.line * cache.ways;
        let sets = (cache.bytes as f64 * by / line as f64).max(1.0);
        let sets = 1_usize << (sets.log2().round() as u32).min(40);
        let bytes = (sets * line).max(least.next_multiple_of(line));
        let sets = (bytes / line).next_power_of_two();
        Cache { bytes: sets * line, hash: silvics_layout::SetHash::Modulo, ..cache }
    };
    let entries = |Entries { entries, ways }: Entries| {
        let sets = (entries as f64 * by / ways as f64).max(1.0);
        Entries { entries: ways << (sets.log2().round() as u32).min(16), ways }
    };
    let [first, second] = machine.tlb;
    let second = match second {
        Tlb::Split { small, huge } => Tlb::Split { small: entries(small), huge: entries(huge) },
        Tlb::Small(small) => Tlb::Small(entries(small)),
        Tlb::Shared(both) => Tlb::Shared(entries(both)),
    };
    let l2 = cache(machine.l2, 2 * l1);
    let llc = cache(machine.llc, 2 * l2.bytes);
    Machine { l2, llc, tlb: [first, second], ..*machine }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_layout::{Level, Model};

    #[test]
    fn cycles_of_writes_take_longer() {
        let bounds = |text: &str| cycle_bounds(text.parse().unwrap());
        let near = |a: [f64; 2], b: [f64; 2]| (0..2).all(|at| (a[at] - b[at]).abs() < 1e-9);
        assert!(near(bounds("100/0/0"), LOOKUP_NS));
        assert!(near(bounds("0/50/50"), WRITE_NS));
        assert!(near(bounds("0/0/0/0/100"), WRITE_NS));
        let [least, most] = bounds("90/5/5");
        assert!(least > LOOKUP_NS[0] && least < WRITE_NS[0] && most > LOOKUP_NS[1]);
    }

    #[test]
    fn scaled_machines_are_machines() {
        for name in Machine::NAMES.into_iter().filter(|name| *name != "host") {
            let machine = Machine::named(name).unwrap();
            for by in [0.001, 0.1, 0.37, 1.0, 3.0, 10.0] {
                let scaled = scaled(&machine, by);
                assert!(Model::new(&scaled).is_ok(), "{name} by {by}: {scaled:?}");
                let llc = scaled.cache(Level::Llc).bytes as f64 / machine.llc.bytes as f64;
                assert!(by < 0.3 || (0.6..1.7).contains(&(llc / by)), "{name} by {by}: {llc}");
            }
        }
    }
}
