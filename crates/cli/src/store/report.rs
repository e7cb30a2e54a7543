//! The result, as data. `render` writes it.

use super::engine::{Engine, Memory};
use super::job::Job;
use super::plan::{Contender, Plan};
use super::run::{self, Loaded, Sample};
use super::timed;
use crate::drive::stats::{self, Interval};
use crate::host::machine::Machine;
use serde::Serialize;

/// The whole result. The JSON output has the fields of this structure.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub config: Config,
    pub results: Vec<Row>,
    /// Whether the user interrupted it. The results hold what was finished.
    pub interrupted: bool,
}

/// The configuration, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    /// `load` or `run`.
    pub phase: &'static str,
    /// `ycsb` or `study`.
    pub benchmark: &'static str,
    pub records: u64,
    pub fields: u32,
    pub field_bytes: u32,
    pub transaction: usize,
    pub get_many: bool,
    /// The operations of a run, if they end it.
    pub operations: Option<u64>,
    /// The seconds of a run, if they end it.
    pub seconds: Option<f64>,
    pub load_threads: usize,
    pub rounds: usize,
    pub seed: u64,
    /// One of this many transactions is timed.
    pub latency_sampled: u64,
    /// In one of this many transactions, the time of the index is taken.
    pub index_sampled: u32,
    /// The probability that an interval covers the median.
    pub interval_coverage: f64,
}

/// One contender in one configuration.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the columns")]
pub struct Row {
    pub index: String,
    pub structure: String,
    pub policy: &'static str,
    pub row_layout: &'static str,
    pub placement: &'static str,
    pub pages: String,
    pub mixed: bool,
    pub threads: usize,
    /// Transactions per second; in a load, records per second.
    pub tps: Interval,
    /// The rate of each round.
    pub samples: Vec<f64>,
    /// The seconds of the longest thread, over all rounds.
    pub seconds: f64,
    pub transactions: u64,
    pub operations: u64,
    /// The median of the rounds' ratios to the first row.
    pub ratio_to_first: f64,
    pub ratio: Interval,
    /// Aborted attempts by reason, over all rounds.
    pub aborts: Vec<Abort>,
    pub latency_us: Vec<Latency>,
    /// Microseconds of a transaction in the index, and outside of it. `None` if the engine does not
    /// tell.
    pub index_us: Option<f64>,
    pub database_us: Option<f64>,
    /// Operations that found no record, and rows of scans, over all rounds.
    pub missed: u64,
    pub scanned: u64,
    pub costs: Option<Costs>,
    pub memory: Vec<Memory>,
    /// The values that were read, and the number of records after each round, were right.
    pub checked: bool,
}

/// Aborted attempts.
#[derive(Clone, Debug, Serialize)]
pub struct Abort {
    pub reason: &'static str,
    pub attempts: u64,
}

/// Percentiles of the time of transactions of one kind, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// The name of YCSB, or `TRANSACTION` if a transaction has several operations.
    pub kind: &'static str,
    pub sampled: u64,
    pub mean: f64,
    pub min: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// The cost of an operation beyond a lookup of the index alone and a dependent miss.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the unit")]
pub struct Costs {
    pub lookup_ns: f64,
    pub miss_ns: f64,
    pub operation_ns: f64,
    pub beyond_ns: f64,
}

impl Report {
    /// An empty report on a plan.
    pub fn new(plan: &Plan, machine: Machine) -> Self {
        let config = Config {
            phase: if plan.loads { "load" } else { "run" },
            benchmark: if matches!(plan.job, Job::Study(_)) { "study" } else { "ycsb" },
            records: plan.job.records(),
            fields: plan.job.fields(),
            field_bytes: plan.job.field_bytes(),
            transaction: plan.transaction,
            get_many: plan.get_many,
            operations: plan.operations,
            seconds: plan.time.map(|time| time.as_secs_f64()),
            load_threads: plan.load_threads,
            rounds: plan.rounds,
            seed: plan.seed,
            latency_sampled: run::SAMPLED,
            index_sampled: timed::SAMPLED,
            interval_coverage: stats::coverage(plan.rounds),
        };
        Self { machine, config, results: Vec::new(), interrupted: false }
    }
}

impl Row {
    /// The row of a load.
    pub fn of_load(
        plan: &Plan,
        contender: &Contender,
        engine: &dyn Engine,
        loaded: &Loaded,
    ) -> Self {
        let rate = loaded.records as f64 / loaded.seconds;
        let tps = Interval { median: rate, low: rate, high: rate };
        let mut row = Self::empty(contender, engine, plan.load_threads, tps);
        (row.seconds, row.operations) = (loaded.seconds, loaded.records);
        row
    }

    fn empty(contender: &Contender, engine: &dyn Engine, threads: usize, tps: Interval) -> Self {
        let memory = engine.memory();
        Self {
            index: contender.name(),
            structure: memory.get(1).map(|part| part.structure.clone()).unwrap_or_default(),
            policy: contender.policy(),
            row_layout: contender.row_layout(),
            placement: contender.placement(),
            pages: contender.pages(),
            mixed: contender.mixed,
            threads,
            tps,
            samples: vec![tps.median],
            seconds: 0.0,
            transactions: 0,
            operations: 0,
            ratio_to_first: 1.0,
            ratio: Interval { median: 1.0, low: 1.0, high: 1.0 },
            aborts: Vec::new(),
            latency_us: Vec::new(),
            index_us: None,
            database_us: None,
            missed: 0,
            scanned: 0,
            costs: None,
            memory,
            checked: true,
        }
    }

    /// The rows of all contenders. There are none for contenders without samples.
    pub fn all(
        plan: &Plan,
        threads: usize,
        engines: &[Box<dyn Engine>],
        samples: &[Vec<Sample>],
    ) -> Vec<Self> {
        let rate = |sample: &Sample| sample.tally.transactions as f64 / sample.seconds;
        let first: Vec<f64> = samples[0].iter().map(rate).collect();
        let mut rows = Vec::new();
        for ((contender, engine), samples) in plan.contenders.iter().zip(engines).zip(samples) {
            let rates: Vec<f64> = samples.iter().map(rate).collect();
            let ratios: Vec<f64> = rates.iter().zip(&first).map(|(of, to)| of / to).collect();
            let (Some(tps), Some(ratio)) = (Interval::of(&rates), Interval::of(&ratios)) else {
                continue;
            };
            let mut row = Self::empty(contender, &**engine, threads, tps);
            (row.samples, row.ratio_to_first, row.ratio) = (rates, ratio.median, ratio);
            row.add(samples);
            rows.push(row);
        }
        rows
    }

    /// Enters the sums over all rounds.
    fn add(&mut self, samples: &[Sample]) {
        let sum = |count: fn(&Sample) -> u64| samples.iter().map(count).sum::<u64>();
        self.transactions = sum(|sample| sample.tally.transactions);
        self.operations = sum(|sample| sample.tally.operations);
        self.missed = sum(|sample| sample.tally.missed);
        self.scanned = sum(|sample| sample.tally.scanned);
        self.seconds = samples.iter().map(|sample| sample.seconds).sum();
        let threads: f64 = samples.iter().map(|sample| sample.thread_seconds).sum();
        let index: Option<f64> = samples.iter().map(|sample| sample.index_seconds).sum();
        let each = |seconds: f64| 1e6 * seconds / self.transactions.max(1) as f64;
        self.index_us = index.map(each);
        self.database_us = index.map(|index| each(threads - index));
        for (reason, attempts) in samples.iter().flat_map(|sample| &sample.aborts) {
            match self.aborts.iter_mut().find(|abort| abort.reason == *reason) {
                Some(abort) => abort.attempts += attempts,
                None => self.aborts.push(Abort { reason, attempts: *attempts }),
            }
        }
        self.aborts.retain(|abort| abort.attempts > 0);
        self.latency_us = Latency::of(samples);
        self.costs = Costs::of(samples, 1e9 * threads / self.operations.max(1) as f64);
    }
}

impl Latency {
    fn of(samples: &[Sample]) -> Vec<Self> {
        let mut kinds: Vec<&'static str> = Vec::new();
        for of in samples.iter().flat_map(|sample| &sample.latency) {
            if !kinds.contains(&of.kind) {
                kinds.push(of.kind);
            }
        }
        let merged = |kind: &'static str| {
            let all = samples.iter().flat_map(|sample| &sample.latency);
            let histograms = all.filter(|of| of.kind == kind).map(|of| of.histogram.clone());
            let histogram = histograms.reduce(|mut all, one| {
                all += one;
                all
            })?;
            let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
            Some(Self {
                kind,
                sampled: histogram.len(),
                mean: histogram.mean() / 1e3,
                min: histogram.min() as f64 / 1e3,
                p50: at(0.5),
                p95: at(0.95),
                p99: at(0.99),
                max: histogram.max() as f64 / 1e3,
            })
        };
        kinds.into_iter().filter_map(merged).collect()
    }
}

impl Costs {
    /// The medians over all rounds.
    fn of(samples: &[Sample], operation_ns: f64) -> Option<Self> {
        let costs: Vec<_> = samples.iter().map(|sample| sample.costs).collect::<Option<_>>()?;
        let median = |of: fn(&super::costs::Costs) -> f64| {
            Interval::of(&costs.iter().map(of).collect::<Vec<f64>>()).map(|all| all.median)
        };
        let (lookup_ns, miss_ns) = (median(|one| one.lookup_ns)?, median(|one| one.miss_ns)?);
        let beyond_ns = operation_ns - lookup_ns - miss_ns;
        Some(Self { lookup_ns, miss_ns, operation_ns, beyond_ns })
    }
}
