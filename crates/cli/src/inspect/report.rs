//! The result of an inspection.

use super::plan::{Plan, Setup};
use crate::drive::inspected::Inspected;
use crate::flags::place::Place;
use crate::flags::source::KeyFileConfig;
use crate::host::counters::{Counted, PerOp};
use serde::{Serialize, Serializer};
use silvics::Compression;
use silvics_layout::findings::{Evidence, Finding, Remedy};
use silvics_layout::{
    Collocation, Counts, Level, Machine, PageSize, Paths, Replay, SetHash, Shares, Survey,
    study_class,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// All that an inspection has found out.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was built; nothing of a trace.
    pub config: Option<Config>,
    /// What was read; nothing of an index.
    pub trace: Option<Traced>,
    /// Those of the index first; of a trace those with most bytes first.
    pub kinds: Vec<Kind>,
    /// Why physical addresses are not known, or what is not in memory.
    pub physical_note: Option<String>,
    /// Of an index whose paths leave out nodes.
    pub compression: Option<Compressed>,
    /// Nothing if no lookups were recorded.
    pub collocation: Option<Collocated>,
    /// As above.
    pub model: Option<ModelRow>,
    /// What is wrong; first that of which the remedy pays.
    pub findings: Vec<FindingRow>,
    /// With `--fix`, what came of the remedies.
    pub fixes: Vec<Fix>,
}

/// What was inspected.
#[derive(Debug, Serialize)]
pub struct Config {
    pub index: String,
    pub placement: &'static str,
    pub pages: String,
    pub keys: usize,
    pub key_type: &'static str,
    pub key_file: Option<KeyFileConfig>,
    pub dist: String,
    pub updates: usize,
    pub no_reuse: bool,
    pub host: Vec<String>,
    pub seed: u64,
    #[serde(flatten)]
    pub counted: Counted,
    /// Why its memory is not on the pages that were asked for.
    pub fallback: Option<String>,
    /// What the index holds from the system, exactly.
    pub bytes: usize,
    pub bytes_per_key: f64,
}

impl Config {
    pub fn new<K: crate::drive::keys::BenchKey + ?Sized>(
        plan: &Plan,
        setup: &Setup,
        index: &dyn Inspected<K>,
        fallback: Option<String>,
    ) -> Self {
        let host = setup.host.iter().map(|kind| {
            let (least, most) = (kind.bytes.start(), kind.bytes.end());
            let bytes = if least == most { least.to_string() } else { format!("{least}-{most}") };
            format!("{}:{bytes}", kind.name)
        });
        Self {
            index: setup.name(),
            placement: setup.place.name(),
            pages: setup.place.pages(),
            keys: plan.keys,
            key_type: plan.key_type.name(),
            key_file: None,
            dist: plan.dist.to_string(),
            updates: plan.updates,
            no_reuse: plan.no_reuse,
            host: host.collect(),
            seed: plan.seed,
            counted: Counted::default(),
            fallback,
            bytes: index.bytes(),
            bytes_per_key: index.bytes() as f64 / index.len().max(1) as f64,
        }
    }
}

/// The trace that was read.
#[derive(Debug, Serialize)]
pub struct Traced {
    pub file: String,
    /// Whose sets the report counts.
    pub machine: &'static str,
    /// Allocations and frees.
    pub events: u64,
    /// The event, counted from 1, after which most bytes were alive …
    pub peak_event: u64,
    /// … how many, and in how many objects of a byte or more.
    pub peak_bytes: usize,
    pub peak_objects: usize,
    /// Frees of addresses where no live object began.
    pub unknown_frees: u64,
    /// Objects that ended without a free, because a later one was allocated over them.
    pub overlaps: u64,
}

/// Where the objects of a kind lie.
#[derive(Debug, Serialize)]
pub struct Kind {
    #[serde(rename = "kind")]
    pub name: String,
    pub objects: usize,
    /// Of one, on average.
    pub bytes: f64,
    /// Of the smallest, the largest and the one in the middle.
    pub bytes_min: usize,
    pub bytes_max: usize,
    pub bytes_median: usize,
    /// What its place takes for one, on average; nothing where that is not known.
    pub class: Option<f64>,
    /// What the allocator of the study would take for most of them …
    pub study_class: usize,
    /// … and for how many it would take how much.
    pub study_classes: BTreeMap<usize, usize>,
    /// The bytes that a search reads.
    pub hot_bytes: f64,
    /// The share of objects with such bytes in two lines.
    pub straddle_share: f64,
    /// Lines that a visit reads, and those it needs: of links the one that it follows.
    pub lines_per_visit: f64,
    pub lines_needed: f64,
    /// The share of the sets of each cache that they map to.
    pub set_coverage: f64,
    pub set_coverage_l1: f64,
    pub set_coverage_l2: f64,
    /// The share of the last level's that as many lines anywhere would.
    pub set_coverage_expected: f64,
    /// The share of the last level's by where the lines are in memory, if the system tells.
    pub set_coverage_physical: Option<f64>,
    /// Pages with objects that are not in memory, if the system tells.
    pub pages_absent: Option<usize>,
    /// The share of huge pages in the mappings where the objects lie, if the system tells.
    pub huge_page_share: Option<f64>,
    /// Of the lines that are fetched beside those read, the share that holds something to read.
    pub neighbour_useful_share: f64,
    /// What lines read, their neighbours and pages hold, in shares of their bytes.
    pub in_lines: BTreeMap<String, f64>,
    pub in_neighbours: BTreeMap<String, f64>,
    pub in_pages: BTreeMap<String, f64>,
    /// Bytes between an object and the next of the kind, and how often; the sixteen most frequent.
    pub stride_histogram: BTreeMap<usize, usize>,
    /// At which byte of a line objects start, and how many.
    pub offsets: BTreeMap<usize, usize>,
    pub pages_4k: usize,
    pub regions_2m: usize,
    /// The mean length of runs of neighbouring pages.
    pub page_run: f64,
}

/// The strides that are told.
const STRIDES: usize = 16;

impl Kind {
    /// What addresses say of the objects of a kind, if there are any.
    pub fn of(number: usize, name: &str, survey: &Survey<'_>, machine: &Machine) -> Option<Self> {
        let facts = survey.facts(number)?;
        let coverage = |level| survey.coverage(number, &machine.sets(level));
        let mut strides: Vec<(usize, usize)> =
            facts.strides.iter().map(|(stride, count)| (*stride, *count)).collect();
        strides.sort_by_key(|(stride, count)| (Reverse(*count), *stride));
        strides.truncate(STRIDES);
        let mut study_classes = BTreeMap::new();
        for bytes in survey.sizes(number) {
            *study_classes.entry(study_class(bytes)).or_default() += 1;
        }
        let usual = study_classes.iter().max_by_key(|(class, count)| (**count, Reverse(**class)));
        Some(Self {
            name: name.into(),
            objects: facts.objects,
            bytes: facts.bytes,
            bytes_min: facts.bytes_min,
            bytes_max: facts.bytes_max,
            bytes_median: facts.bytes_median,
            class: None,
            study_class: usual.map_or(0, |(class, _)| *class),
            study_classes,
            hot_bytes: facts.hot_bytes,
            straddle_share: facts.straddling,
            lines_per_visit: facts.lines_per_visit,
            lines_needed: facts.lines_needed,
            set_coverage: facts.set_coverage,
            set_coverage_l1: coverage(Level::L1),
            set_coverage_l2: coverage(Level::L2),
            set_coverage_expected: facts.expected_coverage,
            set_coverage_physical: None,
            pages_absent: None,
            huge_page_share: None,
            neighbour_useful_share: facts.useful_neighbours,
            in_lines: shares(&facts.in_lines),
            in_neighbours: shares(&facts.in_neighbours),
            in_pages: shares(&facts.in_pages),
            stride_histogram: strides.into_iter().collect(),
            offsets: facts.offsets.clone(),
            pages_4k: facts.pages,
            regions_2m: facts.regions,
            page_run: facts.pages as f64 / facts.page_runs.max(1) as f64,
        })
    }

    /// The bytes of all its objects.
    pub fn total(&self) -> f64 {
        self.bytes * self.objects as f64
    }

    /// The most frequent stride, and its share.
    pub fn usual_stride(&self) -> Option<(usize, f64)> {
        let (stride, count) = self.stride_histogram.iter().max_by_key(|(_, count)| **count)?;
        Some((*stride, *count as f64 / self.objects.saturating_sub(1).max(1) as f64))
    }
}

/// The shares of kinds that are told.
const SHARES: usize = 16;

/// The largest shares by kind, with what searches read under `(searched)`, other kinds under `(others)`
/// and the rest under `(nothing)`.
fn shares(shares: &Shares) -> BTreeMap<String, f64> {
    let mut of: Vec<&(String, f64)> = shares.kinds.iter().collect();
    if of.is_empty() {
        return BTreeMap::new();
    }
    let of_kinds: f64 = of.iter().map(|(_, share)| share).sum();
    of.sort_by(|a, b| b.1.total_cmp(&a.1));
    let others = of.split_off(of.len().min(SHARES));
    let mut all: BTreeMap<String, f64> = of.into_iter().cloned().collect();
    if !others.is_empty() {
        all.insert(OTHERS.into(), others.iter().map(|(_, share)| share).sum());
    }
    all.insert(SEARCHED.into(), shares.searched);
    all.insert(NOTHING.into(), (1.0 - of_kinds).max(0.0));
    all
}

/// The key of the share that searches read.
pub const SEARCHED: &str = "(searched)";
/// The key of the share that belongs to no object of the census.
pub const NOTHING: &str = "(nothing)";
/// The key of the share of the kinds that are not told.
pub const OTHERS: &str = "(others)";

/// What a radix tree saves against one with a node for each digit of each key.
#[derive(Debug, Serialize)]
pub struct Compressed {
    /// The digits of a key, and the nodes that a lookup of it passes, on average.
    pub digits: f64,
    pub nodes_passed: f64,
    /// Above nodes that are more than one digit below the next.
    pub by_paths: Saved,
    /// Below leaves that hang above the last digit of their keys.
    pub by_leaves: Saved,
}

/// Nodes that are left out.
#[derive(Debug, Serialize)]
pub struct Saved {
    /// Above, or below, so many nodes, or leaves.
    pub objects: usize,
    pub nodes: usize,
    /// What they would take if all were as small as nodes can be.
    pub bytes: usize,
    /// How many of them a lookup would pass, on average.
    pub passed: f64,
}

impl Compressed {
    pub fn of(found: Compression) -> Self {
        let each = |passed: usize| passed as f64 / found.keys.max(1) as f64;
        let saved = |objects, nodes, passed| {
            let bytes = nodes * found.node_bytes;
            Saved { objects, nodes, bytes, passed: each(passed) }
        };
        Self {
            digits: each(found.passed + found.passed_skipped + found.passed_below),
            nodes_passed: each(found.passed),
            by_paths: saved(found.compressed, found.skipped, found.passed_skipped),
            by_leaves: saved(found.high, found.below, found.passed_below),
        }
    }
}

/// Where lookups end, as seen from the object before: shares of the objects they come from.
#[derive(Debug, Serialize)]
pub struct Collocated {
    pub parents: usize,
    pub same_line: f64,
    pub same_pair: f64,
    pub next_pair: f64,
}

impl Collocated {
    pub fn of(found: Collocation) -> Self {
        let share = |part: usize| part as f64 / found.parents.max(1) as f64;
        Self {
            parents: found.parents,
            same_line: share(found.same_line),
            same_pair: share(found.same_pair),
            next_pair: share(found.next_pair),
        }
    }
}

/// What the model says of a lookup, on average.
#[derive(Clone, Debug, Serialize)]
pub struct ModelRow {
    pub machine: &'static str,
    pub source: &'static str,
    pub llc_sets: usize,
    pub llc_hash: String,
    pub adjacent_line_prefetch: bool,
    pub page_size: &'static str,
    pub lookups: u64,
    pub visits: f64,
    pub reads_per_visit: f64,
    /// On average over the objects that lookups pass.
    pub lines_per_visit: f64,
    pub lines_needed: f64,
    pub lines: f64,
    pub l1_misses: f64,
    pub l2_misses: f64,
    pub llc_misses: f64,
    pub prefetched: f64,
    pub prefetched_used: f64,
    pub tlb_misses: f64,
    pub page_walks: f64,
    /// Until every read has come, one object after the other.
    pub cycles: f64,
    /// Lines read from memory, by kind.
    pub memory_reads: BTreeMap<&'static str, f64>,
}

impl ModelRow {
    pub fn new(machine: &Machine, pages: PageSize, replay: &Replay, paths: &Paths) -> Self {
        let (counts, lookups): (Counts, _) = (replay.counts(), replay.lookups().max(1) as f64);
        let each = |count: u64| count as f64 / lookups;
        let reads = replay.memory_reads().iter();
        Self {
            machine: machine.name,
            source: machine.source,
            llc_sets: machine.sets(Level::Llc).sets,
            llc_hash: match machine.llc.hash {
                SetHash::Modulo => "modulo".into(),
                SetHash::Slices(slices) => format!("slices:{slices}"),
            },
            adjacent_line_prefetch: machine.adjacent_line,
            page_size: pages.name(),
            lookups: replay.lookups(),
            visits: paths.visits_per_lookup(),
            reads_per_visit: paths.reads_per_visit(),
            lines_per_visit: paths.lines_per_visit(),
            lines_needed: paths.lines_needed(),
            lines: each(counts.lines),
            l1_misses: each(counts.l1_misses),
            l2_misses: each(counts.l2_misses),
            llc_misses: each(counts.llc_misses),
            prefetched: each(counts.prefetched),
            prefetched_used: each(counts.prefetched_used),
            tlb_misses: each(counts.tlb_misses),
            page_walks: each(counts.page_walks),
            cycles: replay.cycles_per_lookup(),
            memory_reads: reads.map(|(kind, count)| (*kind, each(*count))).collect(),
        }
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
pub struct FindingRow {
    pub id: &'static str,
    pub kind: String,
    #[serde(serialize_with = "as_sentence")]
    pub evidence: Evidence,
    pub remedy: String,
    /// The share of the model's cycles per lookup that the remedy would save; nothing where lookups do not
    /// show it.
    pub predicted_gain: Option<f64>,
    /// Whether that is a hundredth at least, or not known.
    pub pays: bool,
}

/// Writes evidence as its sentence.
fn as_sentence<S: Serializer>(evidence: &Evidence, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(evidence)
}

/// From which share of the cycles on a remedy pays.
const PAYS: f64 = 0.01;

impl FindingRow {
    pub fn new(finding: &Finding, remedy: String, predicted_gain: Option<f64>) -> Self {
        Self {
            id: finding.id.name(),
            kind: finding.kind.clone(),
            evidence: finding.evidence.clone(),
            remedy,
            predicted_gain,
            pays: predicted_gain.is_none_or(|gain| gain >= PAYS),
        }
    }
}

/// A remedy as flags of this command and types of the library.
pub fn remedy(remedy: &Remedy, setup: &Setup) -> String {
    let pages = match setup.place {
        Place::Shared | Place::Allocator(_) => "4k".into(),
        place => place.pages(),
    };
    match remedy {
        Remedy::Align(align) => format!(
            "--placement pooled --pages {pages} --slot-align {align} (`Tuning::slot_align` of its pool)"
        ),
        Remedy::OwnPool => format!(
            "--placement pooled --pages {pages} (`silvics_pool::Pool` or `BytesPool` for the kind)"
        ),
        Remedy::OwnHugePages => {
            "--placement pooled --pages thp (a `silvics_pool::Pool` on `Pages::Thp`)".into()
        }
        Remedy::Build(name) => format!("--variant {name}"),
        Remedy::Collocate => match setup.chosen.in_variant(COLLOCATED) {
            Some(_) => format!("--variant {COLLOCATED}"),
            None => "allocate both in one block, as edge-ext-lf:collocated does".into(),
        },
        Remedy::PadLocks(bytes) => format!("--host lock:{bytes}: locks of {bytes} bytes"),
        Remedy::Reorder => "declare what a search reads first, side by side".into(),
    }
}

/// The variant whose leaves share a line with their parents.
pub const COLLOCATED: &str = "collocated";

/// What came of a remedy.
#[derive(Debug, Serialize)]
pub struct Fix {
    /// The findings it is the remedy of.
    pub findings: Vec<&'static str>,
    pub remedy: String,
    /// The largest gain predicted for them.
    pub predicted_gain: Option<f64>,
    /// The gain the model sees in the index as it was built again.
    pub model_gain: f64,
    /// The gain in time per lookup, with its interval, from pairs of runs in turns.
    pub seen_gain: f64,
    pub seen_low: f64,
    pub seen_high: f64,
    pub pairs: usize,
    /// With `--counters`, what was counted per lookup before and after.
    pub counters_before: Option<PerOp>,
    pub counters_after: Option<PerOp>,
    /// Findings that are still there.
    pub left: Vec<&'static str>,
}
