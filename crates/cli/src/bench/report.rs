//! The result of a benchmark, as data. `render` writes it.

use super::comparison::Comparison;
use super::latency::Latency;
use super::plan::Plan;
use super::trace::Trace;
use crate::catalogue::select::Chosen;
use crate::drive::stats::{self, Interval};
use crate::drive::subject::Reuse;
use crate::flags::source::KeyFileConfig;
use crate::host::counters::{Counted, PerOp};
use crate::host::machine::Machine;
use crate::names::{self, Name};
use crate::output::File;
use crate::page::origin::Run;
use serde::{Deserialize, Serialize};
use silvics::Counting;
use silvics_workload::KeySet;

/// The whole result. The JSON output has the fields of this structure.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub config: Config,
    /// The loads: how fast each contender inserted the keys that are present at the start.
    pub loads: Vec<LoadRow>,
    pub results: Vec<Row>,
    /// The gain of fixing the study's oversights, for trees whose two builds were measured.
    pub builds: Vec<BuildRatio>,
    /// The comparison with a kept run; null without `--baseline`.
    pub comparison: Option<Comparison>,
    /// Whether the user interrupted the benchmark. The results hold what was finished.
    pub interrupted: bool,
    /// The error that ended the benchmark. The results hold the cells before it.
    pub stopped: Option<String>,
    /// The contenders that have no rows in some cell because they were wrong, each with its error.
    pub left_out: Vec<String>,
    /// Remarks on the parts of a campaign: what is missing, and machines that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The starts of these parts.
    #[serde(skip)]
    pub runs: Vec<Run>,
    /// The number of cells begun so far.
    #[serde(skip)]
    pub cells: usize,
    /// The trace, if one was requested. It has files of its own.
    #[serde(skip)]
    pub trace: Option<Trace>,
    /// The file that takes the result as a page, if one was requested.
    #[serde(skip)]
    pub page: Option<File>,
}

/// The configuration, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    pub indexes: Vec<String>,
    pub key_type: &'static str,
    pub value_type: &'static str,
    /// The numbers of keys that are loaded; empty with a key file.
    pub keys: Vec<usize>,
    /// The name of the key set, if keys come from one.
    pub keyset: Option<&'static str>,
    pub key_file: Option<KeyFileConfig>,
    pub dist: Vec<String>,
    pub mix: Vec<String>,
    pub scan_by: Vec<&'static str>,
    pub scan_length: Vec<usize>,
    pub batch: Vec<usize>,
    pub threads: Vec<usize>,
    pub load_threads: usize,
    /// The number of rounds that begin with the load of a fresh index.
    pub loads: usize,
    pub seconds: f64,
    pub rounds: usize,
    pub placement: Vec<&'static str>,
    pub pages: Vec<String>,
    pub memory_limit: Option<usize>,
    /// How pools are tuned; null if as by default.
    pub tuning: Option<String>,
    /// Whether the shape of indexes was sampled during the runs.
    pub trace_adaptation: bool,
    /// How our indexes count their keys: `striped` or `single`.
    pub counting: &'static str,
    /// Whether memory that the load retired could be reused before the load ended.
    pub reuse: bool,
    #[serde(flatten)]
    pub counted: Counted,
    pub seed: u64,
    /// The probability that an interval covers the median.
    pub interval_coverage: f64,
    /// The probability that an interval of loads covers the median.
    pub load_interval_coverage: f64,
}

/// The subject of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowKey {
    /// The number of the cell. Rows of one cell were measured side by side.
    pub cell: usize,
    pub index: String,
    #[serde(deserialize_with = "names::one")]
    pub variant: Name,
    #[serde(deserialize_with = "names::one")]
    pub placement: Name,
    /// The requested pages.
    pub pages: String,
    /// The number of keys present at the start.
    pub keys: usize,
    /// The number of keys to choose from.
    pub key_space: usize,
    #[serde(deserialize_with = "names::one")]
    pub key_type: Name,
    /// The name of the key set, if keys come from one.
    #[serde(deserialize_with = "names::maybe")]
    pub keyset: Option<Name>,
    #[serde(deserialize_with = "names::one")]
    pub value_type: Name,
    pub dist: String,
    /// The global allocator.
    #[serde(deserialize_with = "names::one")]
    pub allocator: Name,
}

/// The memory of a contender after its load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Footprint {
    pub bytes_per_key: Option<f64>,
    /// `exact` if the index counts its bytes, `malloc` if they are the usable bytes of the blocks
    /// that it has from the global allocator and those that its pools hold, `rss` if they are the
    /// growth of the resident set.
    #[serde(deserialize_with = "names::one")]
    pub bytes_source: Name,
    /// The share of huge pages in the index's memory, or in the memory added while it was built.
    pub huge_page_share: Option<f64>,
    /// The pages that the index got, if it knows.
    pub pages_given: Option<String>,
    /// The reason why these are not the requested pages.
    #[serde(skip)]
    pub fallback: Option<String>,
}

/// The loads of one contender.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadRow {
    #[serde(flatten)]
    pub key: RowKey,
    pub threads: usize,
    /// Million inserts per second.
    pub mops: Interval,
    /// The throughput of each round with a load.
    pub samples: Vec<f64>,
    /// The rounds' ratios to the first contender of the cell.
    pub ratio: Option<Interval>,
    #[serde(flatten)]
    pub footprint: Footprint,
}

/// One contender in one configuration.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    #[serde(flatten)]
    pub key: RowKey,
    pub threads: usize,
    pub mix: String,
    pub batch: usize,
    /// The way of scans; null in a mix without scans.
    #[serde(deserialize_with = "names::maybe")]
    pub scan_by: Option<Name>,
    /// The entries that a scan reads; null without scans, and if they read all entries.
    pub scan_length: Option<usize>,
    /// Million operations per second. A scan counts as one.
    pub mops: Interval,
    /// The throughput of each round.
    pub samples: Vec<f64>,
    /// The median of the rounds' ratios to the first row of the cell.
    pub ratio_to_first: Option<f64>,
    pub ratio: Option<Interval>,
    /// The nanoseconds per operation that a thread's loop takes with an index that does nothing.
    pub own_ns: Option<f64>,
    /// In a mix of scans alone, the nanoseconds that one more entry takes, from the scans of this
    /// length and the shortest scans that were measured.
    pub entry_ns: Option<Interval>,
    /// The number of lookups over all rounds.
    pub lookups: u64,
    /// The number of lookups that found their key.
    pub hits: u64,
    /// The number of entries that scans read.
    pub scanned: u64,
    #[serde(flatten)]
    pub footprint: Footprint,
    /// The median share of the cores' time that the threads got.
    pub cpu_share: Option<f64>,
    /// Million operations per second of processor time. On a busy machine this figure is closer to
    /// that of an idle machine, but it ignores time spent waiting.
    pub cpu_mops: Option<Interval>,
    /// The ratios of `cpu_mops` to those of the first row, by round.
    pub cpu_ratio: Option<Interval>,
    /// With `--counters`, the events per operation over all rounds.
    pub counters: Option<PerOp>,
    /// The latencies of each verb; empty if none were measured.
    pub latency: Vec<Latency>,
    /// Whether the indexes of the last round held exactly the keys that they must.
    pub checked: bool,
}

impl Report {
    /// Notes that the user has interrupted the benchmark: the probability of intervals is that of
    /// the row with the fewest rounds, but one.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
        let least = |rounds: &mut dyn Iterator<Item = usize>| {
            stats::coverage(rounds.filter(|rounds| *rounds > 1).min().unwrap_or(1))
        };
        let config = &mut self.config;
        config.interval_coverage = least(&mut self.results.iter().map(|row| row.samples.len()));
        config.load_interval_coverage = least(&mut self.loads.iter().map(|of| of.samples.len()));
    }

    /// Whether the results are not all that were wanted.
    pub fn is_cut(&self) -> bool {
        self.interrupted || self.stopped.is_some()
    }

    /// The meaning of figures and their intervals, whose rows may have several numbers of rounds.
    pub fn meaning(&self, coverage: f64) -> String {
        if self.interrupted { stats::meaning_at_least(coverage) } else { stats::meaning(coverage) }
    }

    /// An empty report on a plan.
    pub fn new(plan: &Plan, machine: Machine) -> Self {
        fn text<T: ToString>(items: &[T]) -> Vec<String> {
            items.iter().map(ToString::to_string).collect()
        }
        fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
            items.fold(Vec::new(), |mut seen, item| {
                if !seen.contains(&item) {
                    seen.push(item);
                }
                seen
            })
        }
        let config = Config {
            indexes: plan.chosen.iter().map(Chosen::name).collect(),
            key_type: plan.types.key.name(),
            value_type: plan.types.value.name(),
            keys: plan.sizes.clone(),
            keyset: plan.set.map(KeySet::name),
            key_file: None,
            dist: text(&plan.dists),
            mix: text(&plan.mixes),
            scan_by: plan.scan_bys.iter().map(|by| by.name()).collect(),
            scan_length: plan.scan_lengths.clone(),
            batch: plan.batches.clone(),
            threads: plan.threads.clone(),
            load_threads: plan.load_threads,
            loads: plan.loads,
            seconds: plan.time.as_secs_f64(),
            rounds: plan.rounds,
            placement: distinct(plan.places.iter().map(|place| place.name())),
            pages: distinct(plan.places.iter().map(|place| place.pages())),
            memory_limit: plan.memory_limit,
            tuning: plan.tuned.clone(),
            trace_adaptation: plan.trace.is_some(),
            counting: if plan.counting == Counting::Single { "single" } else { "striped" },
            reuse: plan.reuse == Reuse::Yes,
            counted: Counted::default(),
            seed: plan.seed,
            interval_coverage: stats::coverage(plan.rounds),
            load_interval_coverage: stats::coverage(plan.loads),
        };
        Self {
            machine,
            config,
            loads: Vec::new(),
            results: Vec::new(),
            builds: Vec::new(),
            comparison: None,
            interrupted: false,
            stopped: None,
            left_out: Vec::new(),
            remarks: Vec::new(),
            runs: Vec::new(),
            cells: 0,
            trace: plan.trace.clone().map(Trace::new),
            page: plan.page.clone(),
        }
    }
}

/// The ratio of one tree, or of all of them, in one configuration.
#[derive(Debug, Serialize)]
pub struct BuildRatio {
    pub cell: usize,
    /// The tree; null for the geometric mean over the trees.
    pub index: Option<String>,
    /// The number of trees in the ratio.
    pub trees: usize,
    pub placement: &'static str,
    pub pages: String,
    pub threads: usize,
    pub mix: String,
    pub batch: usize,
    pub scan_by: Option<&'static str>,
    pub scan_length: Option<usize>,
    /// The throughput of `fixed` over that of `baseline`.
    pub ratio: Interval,
}
