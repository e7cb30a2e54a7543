//! The result of an inspection.

use super::plan::{Plan, Setup};
use crate::drive::inspected::Inspected;
use crate::flags::place::Place;
use crate::flags::source::KeyFileConfig;
use crate::host::counters::{Counted, PerOp};
use serde::{Serialize, Serializer};
use silvics::{PathCompression, PrefixCompression};
use silvics_layout::findings::{Evidence, Finding, Remedy};
use silvics_layout::{
    Collocation, Counts, Level, Machine, PageSize, Paths, Replay, SetHash, Shares, Survey,
    study_class,
};
use silvics_workload::KeySet;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The result of an inspection.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The index that was built; null for a trace.
    pub config: Option<Config>,
    /// The trace that was read; null for an index.
    pub trace: Option<Traced>,
    /// The kinds of objects: those of the index first, or those of a trace with the most bytes
    /// first.
    pub kinds: Vec<Kind>,
    /// The reason why physical addresses are not known, or the pages that are not in memory.
    pub physical_note: Option<String>,
    /// The nodes that compressed paths save, for an index that has such paths.
    pub compression: Option<Compressed>,
    /// The bytes that common prefixes save, or would save, for byte strings in blocks.
    pub prefixes: Option<Prefixes>,
    /// The collocation of the ends of lookups; null if no lookups were recorded.
    pub collocation: Option<Collocated>,
    /// The prediction of the model; null if no lookups were recorded.
    pub model: Option<ModelRow>,
    /// The findings, those first whose remedy pays.
    pub findings: Vec<FindingRow>,
    /// With `--fix`, the outcome of each remedy.
    pub fixes: Vec<Fix>,
}

/// The configuration of the index that was inspected.
#[derive(Debug, Serialize)]
pub struct Config {
    pub index: String,
    pub placement: &'static str,
    pub pages: String,
    pub keys: usize,
    pub key_type: &'static str,
    /// The name of the key set, if keys come from one.
    pub keyset: Option<&'static str>,
    pub key_file: Option<KeyFileConfig>,
    pub dist: String,
    pub updates: usize,
    pub no_reuse: bool,
    pub host: Vec<String>,
    pub seed: u64,
    #[serde(flatten)]
    pub counted: Counted,
    /// The reason why its memory is not on the requested pages.
    pub fallback: Option<String>,
    /// The exact number of bytes that the index holds from the system.
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
            keyset: plan.set.map(KeySet::name),
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
    /// The machine whose sets the report counts.
    pub machine: &'static str,
    /// The number of allocations and frees.
    pub events: u64,
    /// The number, from 1, of the event after which most bytes were alive: the peak.
    pub peak_event: u64,
    /// The bytes alive at the peak.
    pub peak_bytes: usize,
    /// The number of objects of a byte or more that were alive at the peak.
    pub peak_objects: usize,
    /// The number of frees of addresses where no live object began.
    pub unknown_frees: u64,
    /// The number of objects that ended without a free, because a later one was allocated over
    /// them.
    pub overlaps: u64,
}

/// The objects of a kind, and where they lie.
#[derive(Debug, Serialize)]
pub struct Kind {
    #[serde(rename = "kind")]
    pub name: String,
    pub objects: usize,
    /// The mean bytes of an object.
    pub bytes: f64,
    /// The bytes of the smallest object, of the largest and of the median.
    pub bytes_min: usize,
    pub bytes_max: usize,
    pub bytes_median: usize,
    /// The mean bytes that the place takes for an object; null if they are not known.
    pub class: Option<f64>,
    /// The size class in the study's allocator of most objects.
    pub study_class: usize,
    /// The number of objects in each size class of the study's allocator.
    pub study_classes: BTreeMap<usize, usize>,
    /// The mean bytes of an object that a search reads.
    pub hot_bytes: f64,
    /// The share of objects whose hot bytes lie in two lines.
    pub straddle_share: f64,
    /// The lines that a visit reads, and those that it needs: of the lines of links, only the one
    /// with the link that it follows.
    pub lines_per_visit: f64,
    pub lines_needed: f64,
    /// The share of the sets of the last level and of the other caches that the objects' lines map
    /// to.
    pub set_coverage: f64,
    pub set_coverage_l1: f64,
    pub set_coverage_l2: f64,
    /// The share of the last level's sets that as many lines at random addresses would reach.
    pub set_coverage_expected: f64,
    /// The share of the last level's sets by physical addresses, if the system reports them.
    pub set_coverage_physical: Option<f64>,
    /// The number of pages with objects that are not in memory, if the system reports it.
    pub pages_absent: Option<usize>,
    /// The share of huge pages in the mappings where the objects lie, if the system reports it.
    pub huge_page_share: Option<f64>,
    /// The share of the lines fetched beside those read that hold bytes to read.
    pub neighbour_useful_share: f64,
    /// The content of the lines read, of the lines beside them and of their pages, as shares of the
    /// bytes.
    pub in_lines: BTreeMap<String, f64>,
    pub in_neighbours: BTreeMap<String, f64>,
    pub in_pages: BTreeMap<String, f64>,
    /// The distances in bytes from an object to the next of the kind, with their counts: the
    /// sixteen most frequent.
    pub stride_histogram: BTreeMap<usize, usize>,
    /// The offsets in a line at which objects start, with their counts.
    pub offsets: BTreeMap<usize, usize>,
    pub pages_4k: usize,
    pub regions_2m: usize,
    /// The mean length of runs of neighbouring pages.
    pub page_run: f64,
}

/// The number of strides in a report.
const STRIDES: usize = 16;

impl Kind {
    /// The facts that follow from the addresses of the objects of a kind. `None` if there are none.
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

/// The number of kinds with a share in a report.
const SHARES: usize = 16;

/// The largest shares by kind. The share that searches read is under `(searched)`, the other kinds
/// are under `(others)`, and the rest is under `(nothing)`.
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
/// The key of the share of the kinds that the report does not list.
pub const OTHERS: &str = "(others)";

/// The nodes that a radix tree saves, compared to one with a node for each digit of each key.
#[derive(Debug, Serialize)]
pub struct Compressed {
    /// The digits of a key, and the nodes that a lookup of it passes, on average.
    pub digits: f64,
    pub nodes_passed: f64,
    /// The nodes saved above nodes that are more than one digit below the next node.
    pub by_paths: Saved,
    /// The nodes saved below leaves that hang above the last digit of their keys.
    pub by_leaves: Saved,
}

/// Nodes that a radix tree saves.
#[derive(Debug, Serialize)]
pub struct Saved {
    /// The number of nodes or leaves at which they are saved.
    pub objects: usize,
    pub nodes: usize,
    /// The bytes that they would take if all were as small as nodes can be.
    pub bytes: usize,
    /// The mean number of them that a lookup would pass.
    pub passed: f64,
}

impl Compressed {
    pub fn of(found: PathCompression) -> Self {
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

/// The common prefixes of byte strings in blocks.
#[derive(Debug, Serialize)]
pub struct Prefixes {
    /// Whether they are stored once. Otherwise the figures are those of prefixes that could be.
    pub once: bool,
    pub blocks: usize,
    pub keys: usize,
    /// The bytes of a key, and those of them that are in the prefix of its block, on average.
    pub key_bytes: f64,
    pub shared_bytes: f64,
    /// The bytes of the prefixes for each key.
    pub prefix_bytes: f64,
}

impl Prefixes {
    pub fn of(found: PrefixCompression) -> Self {
        let each = |bytes: usize| bytes as f64 / found.keys.max(1) as f64;
        Self {
            once: found.once,
            blocks: found.blocks,
            keys: found.keys,
            key_bytes: each(found.key_bytes),
            shared_bytes: each(found.shared_bytes),
            prefix_bytes: each(found.prefix_bytes),
        }
    }

    /// The bytes that a key takes less.
    pub fn saved(&self) -> f64 {
        self.shared_bytes - self.prefix_bytes
    }
}

/// The places of the objects in which lookups end, as shares of the objects from which lookups
/// reach them.
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

/// The model's figures for a lookup, on average.
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
    /// The lines of an object, on average over the objects that lookups pass.
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
    /// The cycles until all reads have arrived, one object after the other.
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
    /// The share of the model's cycles per lookup that the remedy would save; null if lookups do
    /// not show it.
    pub predicted_gain: Option<f64>,
    /// Whether the gain is at least a hundredth, or not known.
    pub pays: bool,
}

/// Writes evidence as its sentence.
fn as_sentence<S: Serializer>(evidence: &Evidence, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(evidence)
}

/// The least share of the cycles that makes a remedy pay.
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

/// A remedy, as flags of this command and types of the library.
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

/// The outcome of a remedy.
#[derive(Debug, Serialize)]
pub struct Fix {
    /// The findings that have the remedy.
    pub findings: Vec<&'static str>,
    pub remedy: String,
    /// The largest gain that is predicted for these findings.
    pub predicted_gain: Option<f64>,
    /// The gain in the model of the index, which was built again with the remedy.
    pub model_gain: f64,
    /// The gain in time per lookup, with its interval, from pairs of runs in turns.
    pub seen_gain: f64,
    pub seen_low: f64,
    pub seen_high: f64,
    pub pairs: usize,
    /// With `--counters`, the events per lookup before and after.
    pub counters_before: Option<PerOp>,
    pub counters_after: Option<PerOp>,
    /// The findings that remain with the remedy.
    pub left: Vec<&'static str>,
}
