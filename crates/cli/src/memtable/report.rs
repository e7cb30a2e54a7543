//! The result, as data. `render` writes it.

use super::plan::{Cell, Memtable, Plan, Workload, mode_name};
use super::run::Sample;
use super::work::{SAMPLED, VIEW_CALLS};
use crate::drive::stats::{self, Interval};
use crate::host::machine::Machine;
use crate::host::switches::Switches;
use crate::names::{self, Name};
use serde::{Deserialize, Serialize};

/// The whole result. The JSON output has the fields of this structure.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub config: Config,
    pub results: Vec<Row>,
    /// Whether the user interrupted it. The results hold what was finished.
    pub interrupted: bool,
    /// Remarks on the parts of a campaign: what is missing, and machines that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The configuration, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    pub workloads: Vec<&'static str>,
    pub memtables: Vec<&'static str>,
    pub modes: Vec<&'static str>,
    pub threads: Vec<usize>,
    pub num: usize,
    pub batch: Vec<usize>,
    pub key_size: usize,
    pub value_size: Vec<usize>,
    /// `none`, `written` or `synced`.
    pub log: &'static str,
    pub adaptive_yield: bool,
    pub rounds: usize,
    pub seed: u64,
    /// One of this many calls is timed.
    pub latency_sampled: u32,
    /// The reads under one view.
    pub view_calls: u64,
    /// The probability that an interval covers the median.
    pub interval_coverage: f64,
}

/// One contender in one configuration.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    #[serde(deserialize_with = "names::one")]
    pub workload: Name,
    #[serde(deserialize_with = "names::one")]
    pub memtable: Name,
    #[serde(deserialize_with = "names::one")]
    pub mode: Name,
    pub threads: usize,
    pub num: usize,
    pub batch: usize,
    pub key_size: usize,
    pub value_size: usize,
    /// `none`, `written` or `synced`.
    #[serde(deserialize_with = "names::one")]
    pub log: Name,
    pub adaptive_yield: bool,
    /// Operations per second. An operation is an entry written, or a key read.
    pub ops_per_s: Interval,
    /// The rate of each round.
    pub samples: Vec<f64>,
    /// The median of the rounds' ratios to the first row of the cell.
    pub ratio_to_first: f64,
    pub ratio: Interval,
    /// Writes per second of the thread that writes beside readers.
    pub writer_ops_per_s: Option<Interval>,
    pub latency_ns: Latency,
    /// The keys that reads found, over all rounds.
    pub hits: Option<u64>,
    #[serde(flatten)]
    pub path: Path,
    /// Bytes that the table holds from the system, by entry, after the last round.
    pub bytes_per_entry: f64,
    /// The answers and the content of each round were right, and with a log the content that was
    /// read from it after the last round.
    pub checked: bool,
}

/// Percentiles of the time of a call, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Latency {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
}

/// Counts of the write path, over all rounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Path {
    pub writes: u64,
    pub groups: u64,
    /// The mean number of writes of a group.
    pub group_size: Option<f64>,
    pub log_appends: u64,
    pub log_syncs: u64,
    /// Acquisitions of the buffer's mutex, which is taken when tables change.
    pub mutexes_per_write: Option<f64>,
    /// Waits that ended while the thread yielded.
    pub waits_yielded: u64,
    /// Waits in which the thread was blocked.
    pub waits_blocked: u64,
    /// How often an allocation locked the main arena, by allocation.
    pub main_locks_per_insert: Option<f64>,
    /// The same since the arena has had shards.
    pub main_locks_per_sharded_insert: Option<f64>,
    /// Inserts that were repeated on a level because of another one. Only skip lists count them.
    pub cas_retries: u64,
    /// Context switches of the threads.
    pub switches: Option<Switches>,
}

impl Report {
    /// An empty report on a plan.
    pub fn new(plan: &Plan, machine: Machine) -> Self {
        fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
            names.fold(Vec::new(), |mut seen, name| {
                if !seen.contains(&name) {
                    seen.push(name);
                }
                seen
            })
        }
        let contenders = || plan.contenders.iter();
        let config = Config {
            workloads: plan.workloads.iter().copied().map(Workload::name).collect(),
            memtables: distinct(contenders().map(|one| one.memtable).map(Memtable::name)),
            modes: distinct(contenders().map(|one| mode_name(one.mode))),
            threads: plan.threads.clone(),
            num: plan.num,
            batch: plan.batches.clone(),
            key_size: plan.key_size,
            value_size: plan.value_sizes.clone(),
            log: plan.log.name(),
            adaptive_yield: plan.yields,
            rounds: plan.rounds,
            seed: plan.seed,
            latency_sampled: SAMPLED,
            view_calls: VIEW_CALLS,
            interval_coverage: stats::coverage(plan.rounds),
        };
        Self { machine, config, results: Vec::new(), interrupted: false, remarks: Vec::new() }
    }
}

impl Row {
    /// The rows of a cell. There are none for contenders without samples.
    pub fn all(plan: &Plan, cell: Cell, samples: &[Vec<Sample>]) -> Vec<Self> {
        let first: Vec<f64> = samples[0].iter().map(|sample| sample.ops_per_s).collect();
        let rows = plan.contenders.iter().zip(samples).filter_map(|(contender, samples)| {
            let rates: Vec<f64> = samples.iter().map(|sample| sample.ops_per_s).collect();
            let ratios: Vec<f64> = rates.iter().zip(&first).map(|(of, to)| of / to).collect();
            let (last, ratio) = (samples.last()?, Interval::of(&ratios)?);
            let writers: Vec<f64> =
                samples.iter().filter_map(|sample| sample.writer_ops_per_s).collect();
            Some(Self {
                workload: cell.workload.name(),
                memtable: contender.memtable.name(),
                mode: mode_name(contender.mode),
                threads: cell.threads,
                num: plan.num,
                batch: cell.batch,
                key_size: plan.key_size,
                value_size: cell.value_size,
                log: plan.log.name(),
                adaptive_yield: plan.yields,
                ops_per_s: Interval::of(&rates)?,
                samples: rates,
                ratio_to_first: ratio.median,
                ratio,
                writer_ops_per_s: Interval::of(&writers),
                latency_ns: Latency::of(samples),
                hits: samples.iter().map(|sample| sample.hits).sum(),
                path: Path::of(samples),
                bytes_per_entry: last.bytes as f64 / last.entries.max(1) as f64,
                checked: true,
            })
        });
        rows.collect()
    }
}

impl Latency {
    fn of(samples: &[Sample]) -> Self {
        let mut all = super::work::latencies();
        for sample in samples {
            all += &sample.latency;
        }
        let at = |quantile| all.value_at_quantile(quantile);
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

impl Path {
    pub fn of(samples: &[Sample]) -> Self {
        let sum = |count: fn(&Sample) -> u64| samples.iter().map(count).sum::<u64>();
        let per = |count: u64, of: u64| (of > 0).then(|| count as f64 / of as f64);
        let writes = sum(|sample| sample.counts.stats.writes);
        let groups = sum(|sample| sample.counts.stats.groups);
        let allocations = sum(|sample| sample.counts.arena.allocations);
        let locks = sum(|sample| sample.counts.arena.main_locks);
        let unsharded = sum(|sample| sample.counts.arena.unsharded_locks);
        let switches = samples.iter().map(|sample| sample.switches);
        Self {
            writes,
            groups,
            group_size: per(writes, groups),
            log_appends: sum(|sample| sample.counts.stats.log_appends),
            log_syncs: sum(|sample| sample.counts.stats.log_syncs),
            mutexes_per_write: per(sum(|sample| sample.counts.stats.mutexes), writes),
            waits_yielded: sum(|sample| sample.counts.stats.waits.yielded),
            waits_blocked: sum(|sample| sample.counts.stats.waits.blocked),
            main_locks_per_insert: per(locks, allocations),
            main_locks_per_sharded_insert: per(
                locks.saturating_sub(unsharded),
                allocations.saturating_sub(unsharded),
            ),
            cas_retries: sum(|sample| sample.counts.retries),
            switches: switches.reduce(|a, b| Some(a? + b?)).flatten(),
        }
    }
}
