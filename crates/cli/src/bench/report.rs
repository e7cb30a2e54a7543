//! What a benchmark found, as data. `render` writes it.

use super::plan::Plan;
use crate::catalogue::select::Chosen;
use crate::drive::stats::{self, Interval};
use crate::drive::subject::Reuse;
use crate::flags::source::KeyFileConfig;
use crate::host::counters::{Counted, PerOp};
use crate::host::machine::Machine;
use serde::Serialize;

/// The whole result. JSON is this structure as it stands.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub config: Config,
    /// How fast the contenders took the keys that are present at the start.
    pub loads: Vec<LoadRow>,
    pub results: Vec<Row>,
    /// What mending the study's oversights gains, where both builds of a tree were measured.
    pub builds: Vec<BuildRatio>,
    /// Whether the user ended it early. What was finished is in the results.
    pub interrupted: bool,
    /// Cells begun so far.
    #[serde(skip)]
    pub cells: usize,
}

/// What was asked for, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    pub indexes: Vec<String>,
    pub key_type: &'static str,
    pub value_type: &'static str,
    /// How many keys are loaded; empty with a key file.
    pub keys: Vec<usize>,
    pub key_file: Option<KeyFileConfig>,
    pub dist: Vec<String>,
    pub mix: Vec<String>,
    pub scan_length: usize,
    pub batch: Vec<usize>,
    pub threads: Vec<usize>,
    pub seconds: f64,
    pub rounds: usize,
    pub placement: Vec<&'static str>,
    pub pages: Vec<String>,
    pub memory_limit: Option<usize>,
    /// Whether what the load retired could be used again before it ended.
    pub reuse: bool,
    #[serde(flatten)]
    pub counted: Counted,
    pub seed: u64,
    /// The probability that an interval covers the median.
    pub interval_coverage: f64,
}

/// What a row is about.
#[derive(Clone, Debug, Serialize)]
pub struct RowKey {
    /// Rows of one cell were measured side by side.
    pub cell: usize,
    pub index: String,
    pub variant: &'static str,
    pub placement: &'static str,
    /// The pages asked for.
    pub pages: String,
    /// Keys present at the start.
    pub keys: usize,
    /// Keys there are to choose from.
    pub key_space: usize,
    pub key_type: &'static str,
    pub value_type: &'static str,
    pub dist: String,
    /// The global allocator.
    pub allocator: &'static str,
}

/// The memory of a contender after its load.
#[derive(Clone, Debug, Serialize)]
pub struct Footprint {
    pub bytes_per_key: Option<f64>,
    /// `exact` as the index counts, `rss` by the growth of the resident set while it was built.
    pub bytes_source: &'static str,
    /// Of the index's memory, or of what was added while it was built.
    pub huge_page_share: Option<f64>,
    /// The pages given, where the index knows.
    pub pages_given: Option<String>,
    /// Why they are others than those asked for.
    #[serde(skip)]
    pub fallback: Option<String>,
}

/// The load of one contender.
#[derive(Debug, Serialize)]
pub struct LoadRow {
    #[serde(flatten)]
    pub key: RowKey,
    pub threads: usize,
    pub mops: f64,
    pub seconds: f64,
}

/// One contender in one configuration.
#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub key: RowKey,
    pub threads: usize,
    pub mix: String,
    pub batch: usize,
    /// Entries a scan reads; null in a mix without scans.
    pub scan_length: Option<usize>,
    /// Million operations per second; a scan is one.
    pub mops: Interval,
    /// By round.
    pub samples: Vec<f64>,
    /// The median of the rounds' ratios to the first row of the cell.
    pub ratio_to_first: Option<f64>,
    pub ratio: Option<Interval>,
    /// Over all rounds.
    pub lookups: u64,
    /// Lookups that found their key.
    pub hits: u64,
    /// Entries seen by scans.
    pub scanned: u64,
    #[serde(flatten)]
    pub footprint: Footprint,
    /// Million inserts per second of the load.
    pub load_mops: f64,
    /// Median share of the cores' time that the threads got.
    pub cpu_share: Option<f64>,
    /// Million operations per second of processor time: nearer to an idle machine on a busy one,
    /// but blind to time spent waiting.
    pub cpu_mops: Option<Interval>,
    /// The rounds' ratios to the first row in that measure.
    pub cpu_ratio: Option<Interval>,
    /// With `--counters`, what was counted per operation, over all rounds.
    pub counters: Option<PerOp>,
    /// Whether the index was found to hold what it must.
    pub checked: bool,
}

impl Report {
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
            key_file: None,
            dist: text(&plan.dists),
            mix: text(&plan.mixes),
            scan_length: plan.scan_length,
            batch: plan.batches.clone(),
            threads: plan.threads.clone(),
            seconds: plan.time.as_secs_f64(),
            rounds: plan.rounds,
            placement: distinct(plan.places.iter().map(|place| place.name())),
            pages: distinct(plan.places.iter().map(|place| place.pages())),
            memory_limit: plan.memory_limit,
            reuse: plan.reuse == Reuse::Yes,
            counted: Counted::default(),
            seed: plan.seed,
            interval_coverage: stats::coverage(plan.rounds),
        };
        Self {
            machine,
            config,
            loads: Vec::new(),
            results: Vec::new(),
            builds: Vec::new(),
            interrupted: false,
            cells: 0,
        }
    }
}

/// The ratio of one tree, or of all of them, in one configuration.
#[derive(Debug, Serialize)]
pub struct BuildRatio {
    pub cell: usize,
    /// The tree; null for the geometric mean over the trees.
    pub index: Option<String>,
    /// How many trees it is over.
    pub trees: usize,
    pub placement: &'static str,
    pub pages: String,
    pub threads: usize,
    pub mix: String,
    pub batch: usize,
    /// `fixed` over `baseline`.
    pub ratio: Interval,
}
