//! Facts, findings, and predictions of what a remedy would gain.

use super::built::Built;
use super::plan::{Plan, Setup};
use super::report::{
    self, Collocated, Compressed, Config, FindingRow, Kind, ModelRow, Prefixes, Report,
};
use crate::catalogue::{Advice, Variant};
use crate::drive::keys::BenchKey;
use crate::drive::subject::Traffic;
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::host::memory::{self, Mappings, Resident};
use crate::progress::Progress;
use silvics::{Compression, Pages};
use silvics_layout::findings::{Build, Finding, Remedy, Situation};
use silvics_layout::{
    Census, FREED, Level, Machine, MachineError, PageSize, Paths, Replay, Survey,
};
use silvics_pool::HUGE_PAGE;
use std::collections::HashMap;

/// An inspection that is finished.
pub struct Examined {
    pub report: Report,
    /// The findings of the report, in its order.
    pub findings: Vec<Finding>,
    /// Every object of the index and of the program around it.
    pub census: Census,
    /// The objects that lookups pass.
    pub paths: Paths,
}

/// The most lookups whose paths are recorded. There are at most two for each key.
const PATHS_MAX: usize = 1 << 17;
/// The most lookups whose ends are recorded: up to a million keys, each leaf is seen from its
/// parent.
const ENDS_MAX: usize = 1 << 20;

/// Builds an index, records its lookups, and judges its layout.
pub fn examine<K: BenchKey + ?Sized>(
    plan: &Plan,
    setup: &Setup,
    traffic: &Traffic<K>,
    progress: &Progress,
) -> Result<Examined, Error> {
    progress.doing(format!("{}: load", setup.name()));
    let mut built = Built::new(plan, setup, traffic)?;
    progress.step();
    progress.doing(format!("{}: paths of lookups", setup.name()));
    let mut paths = Paths::default();
    built.lookups(PATHS_MAX.min(2 * plan.keys), |reads| paths.add(reads))?;
    built.each_key(ENDS_MAX, |reads| paths.add_end(reads))?;
    progress.step();
    progress.doing(format!("{}: where objects lie", setup.name()));
    let mut census = built.census()?;
    let (compression, prefixes) = match built.compression() {
        Some(Compression::Paths(found)) => (Some(Compressed::of(found)), None),
        Some(Compression::Prefixes(found)) => (None, Some(Prefixes::of(found))),
        _ => (None, None),
    };
    let machine = &plan.machine;
    let given = given(&built, setup);
    let Judged { findings, kinds, physical_note, pages, pages_note } =
        judge(&mut census, machine, setup, &paths, given);
    if let Some(note) = &pages_note {
        progress.note(&format!("`{}` on --pages {}: {note}", setup.name(), setup.place.pages()));
    }
    progress.step();
    progress.doing(format!("{}: model", setup.name()));
    let (actual, remedied) =
        replay((plan, setup), &built, (&findings, &kinds), (&mut census, &paths), pages)
            .map_err(refused)??;
    progress.step();
    let gain = |finding: &Finding| {
        let (_, replay) = remedied.iter().find(|(remedy, _)| *remedy == finding.remedy)?;
        let (before, after) = (actual.cycles_per_lookup(), replay.cycles_per_lookup());
        Some(1.0 - after / before.max(f64::MIN_POSITIVE))
    };
    let mut found: Vec<(FindingRow, Finding)> = findings
        .into_iter()
        .map(|finding| {
            let remedy = report::remedy(&finding.remedy, setup);
            (FindingRow::new(&finding, remedy, gain(&finding)), finding)
        })
        .collect();
    found.sort_by_key(|(row, _)| !row.pays);
    let (rows, findings): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let report = Report {
        config: Some(Config::new(plan, setup, built.index(), pages_note)),
        trace: None,
        kinds,
        physical_note,
        compression,
        prefixes,
        collocation: Some(Collocated::of(paths.collocation())),
        model: Some(ModelRow::new(machine, pages, &actual, &paths)),
        findings: rows,
        fixes: Vec::new(),
    };
    Ok(Examined { report, findings, census, paths })
}

/// The pages that an index got, and the reason if they are not the requested ones.
fn given<K: BenchKey + ?Sized>(built: &Built<'_, K>, setup: &Setup) -> (PageSize, Option<String>) {
    let wanted = setup.place.page_size();
    match built.index().pool_stats().into_iter().find_map(|pool| pool.fallback) {
        None => (wanted, None),
        Some(fallback) if fallback.given == Pages::Small => {
            (PageSize::Small, Some(fallback.reason))
        }
        Some(fallback) => (wanted, Some(fallback.reason)),
    }
}

/// Findings, and the places of the objects of each kind.
struct Judged {
    findings: Vec<Finding>,
    kinds: Vec<Kind>,
    /// The reason why places in memory are not known, as far as they are not.
    physical_note: Option<String>,
    /// The pages that most of the index is on, and the reason if these are not the requested ones.
    pages: PageSize,
    pages_note: Option<String>,
}

fn judge(
    census: &mut Census,
    machine: &Machine,
    setup: &Setup,
    paths: &Paths,
    given: (PageSize, Option<String>),
) -> Judged {
    let names: Vec<String> = census.kinds().map(str::to_owned).collect();
    let survey = &census.survey(&machine.sets(Level::Llc));
    let (kinds, physical_note) = kinds(&names, survey, machine, setup);
    let (pages, pages_note) = most_are_on(given, &kinds, setup);
    let (objects, builds) = (setup.chosen.variant.objects, &other_builds(setup));
    let situation = Situation { survey, machine, pages, paths: Some(paths), objects, builds };
    Judged { findings: situation.findings(), kinds, physical_note, pages, pages_note }
}

/// Checks that an index meant for huge pages really is on them. A small or freshly loaded index may
/// not be yet.
fn most_are_on(
    given: (PageSize, Option<String>),
    kinds: &[Kind],
    setup: &Setup,
) -> (PageSize, Option<String>) {
    let (mut all, mut huge) = (0.0, 0.0);
    for kind in kinds.iter().filter(|kind| setup.is_of_index(&kind.name)) {
        let bytes = kind.objects as f64 * kind.bytes;
        // If the system does not report it, they are assumed to be on the requested pages.
        huge += bytes * kind.huge_page_share.unwrap_or(1.0);
        all += bytes;
    }
    if given.0 == PageSize::Small || 2.0 * huge >= all {
        return given;
    }
    let note = format!(
        "{:.0} % of the index is on huge pages: the model has small ones",
        100.0 * huge / all
    );
    (PageSize::Small, given.1.or(Some(note)))
}

impl Setup {
    /// Whether most of an index with these kinds would be on huge pages, if it were meant to be.
    /// Pools move to huge pages one by one as the pages fill.
    fn fills_huge_pages(&self, kinds: &[Kind]) -> bool {
        let of_index = kinds.iter().filter(|kind| self.is_of_index(&kind.name));
        let bytes = of_index.map(|kind| (kind.objects as f64 * kind.bytes) as usize);
        let (mut all, mut full) = (0, 0);
        for bytes in bytes {
            all += bytes;
            full += bytes / HUGE_PAGE * HUGE_PAGE;
        }
        !matches!(self.place, Place::Pooled(Pages::Thp, _)) || 2 * full >= all
    }
}

/// The places of the objects of each kind, in the address space and in memory, and a note on
/// unknown places in memory.
fn kinds(
    names: &[String],
    survey: &Survey<'_>,
    machine: &Machine,
    setup: &Setup,
) -> (Vec<Kind>, Option<String>) {
    let (frames, mappings) = (memory::frames(survey), Mappings::now());
    let mut kinds = Vec::new();
    let mut absent = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let Some(mut kind) = Kind::of(number, name, survey, machine) else { continue };
        let of_index = setup.is_of_index(name.strip_suffix(FREED).unwrap_or(name));
        let mut slots: HashMap<usize, Option<usize>> = HashMap::new();
        let slots = survey.sizes(number).map(|bytes| {
            *slots.entry(bytes).or_insert_with(|| setup.place.bytes_for(of_index, bytes))
        });
        let bytes: Option<usize> = slots.sum();
        kind.class = bytes.map(|bytes| bytes as f64 / kind.objects as f64);
        if let Ok(frames) = &frames {
            let sets = machine.sets(Level::Llc);
            kind.set_coverage_physical = Some(survey.coverage_physical(number, &sets, frames));
            let pages = survey.pages_absent(number, frames);
            kind.pages_absent = Some(pages);
            if pages > 0 {
                absent.push(format!("{pages} with `{name}`"));
            }
        }
        let mappings = mappings.as_ref();
        let resident = mappings.map(|mappings| mappings.holding(&survey.pages(number)));
        kind.huge_page_share = resident.and_then(Resident::huge_share);
        kinds.push(kind);
    }
    let note = match frames {
        Err(refused) => Some(refused.to_string()),
        Ok(_) if absent.is_empty() => None,
        Ok(_) => Some(format!(
            "pages that are not in memory, and count for no set there: {}",
            absent.join(", ")
        )),
    };
    (kinds, note)
}

/// The error for a wrong machine. Its flag has been checked, so this does not happen.
fn refused(error: MachineError) -> Error {
    Error::value("--machine", error)
}

/// The other builds of an index that are advised, the best one first.
fn other_builds(setup: &Setup) -> Vec<Build> {
    let variants = &setup.chosen.entry.variants;
    let others = variants.iter().filter(|variant| {
        variant.name != setup.chosen.variant.name && variant.advice != Advice::Never
    });
    let mut others: Vec<&Variant> = others.collect();
    others.sort_by_key(|variant| variant.advice);
    let build = |variant: &Variant| Build { name: variant.name, objects: variant.objects };
    others.into_iter().map(build).collect()
}

/// The replay of lookups with the objects where they lie, and one with the objects where each
/// remedy would put them.
type Replayed = (Replay, Vec<(Remedy, Replay)>);

/// Runs lookups through the model, with the objects where they lie and where each remedy would put
/// them.
fn replay<K: BenchKey + ?Sized>(
    (plan, setup): (&Plan, &Setup),
    built: &Built<'_, K>,
    (findings, kinds): (&[Finding], &[Kind]),
    (census, paths): (&mut Census, &Paths),
    pages: PageSize,
) -> Result<Result<Replayed, Error>, MachineError> {
    let mut actual = Replay::new(&plan.machine, pages, None)?;
    let mut remedied: Vec<(Remedy, Replay)> = Vec::new();
    for finding in findings {
        if remedied.iter().any(|(remedy, _)| *remedy == finding.remedy) {
            continue;
        }
        // A remedy that cannot be built here is modelled in the present place.
        let after = setup.with(&finding.remedy).unwrap_or_else(|| setup.clone());
        let rebuilds = matches!(finding.remedy, Remedy::Build(_) | Remedy::Collocate);
        if rebuilds && !after.place.has_classes() {
            continue;
        }
        let slot = |kind: &str, bytes| after.place.slot(after.is_of_index(kind), bytes);
        if let Some((moves, pages)) = finding.remedied(census, paths, pages, slot) {
            let pages = if after.fills_huge_pages(kinds) { pages } else { PageSize::Small };
            let replay = Replay::new(&plan.machine, pages, Some(moves))?;
            remedied.push((finding.remedy.clone(), replay));
        }
    }
    let mut done = 0;
    let looked_up = built.lookups(2 * plan.lookups, |reads| {
        let remedied = remedied.iter_mut().map(|(_, replay)| replay);
        for replay in std::iter::once(&mut actual).chain(remedied) {
            if done == plan.lookups {
                replay.warm();
            }
            replay.lookup(reads);
        }
        done += 1;
    });
    Ok(looked_up.map(|()| (actual, remedied)))
}
