//! The result, as data. `render` writes it.

use super::contenders::Contender;
use super::engine::Memory;
use super::meter::{self, Sample, Tally};
use super::timed;
use super::ycsb::{self, Modelled};
use crate::drive::stats::{self, Interval};
use crate::host::machine::Machine;
use crate::names::{self, Name};
use serde::{Deserialize, Serialize};

/// The whole result. The JSON output has the fields of this structure.
#[derive(Debug, Serialize)]
pub struct Report<C> {
    pub machine: Machine,
    pub config: C,
    pub results: Vec<Row>,
    /// The contenders with their best numbers of threads, if there are several numbers.
    pub best: Vec<Best>,
    /// Whether the user interrupted it. The results hold what was finished.
    pub interrupted: bool,
    /// Remarks on the parts of a campaign: what is missing, and machines that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The models of all contenders, if they were asked for. Each row has its own.
    #[serde(skip)]
    pub models: Vec<Modelled>,
}

/// The part of a configuration that all benchmarks have.
#[derive(Debug, Serialize)]
pub struct Common {
    /// `load`, `run` or `check`.
    pub phase: &'static str,
    /// The name of the benchmark: results of different benchmarks are not to be compared.
    pub benchmark: &'static str,
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

impl Common {
    /// The common part for these numbers.
    pub fn new(
        (benchmark, phase): (&'static str, &'static str),
        load_threads: usize,
        rounds: usize,
        seed: u64,
    ) -> Self {
        Self {
            phase,
            benchmark,
            load_threads,
            rounds,
            seed,
            latency_sampled: meter::SAMPLED,
            index_sampled: timed::SAMPLED,
            interval_coverage: stats::coverage(rounds),
        }
    }

    /// Whether only the load is measured.
    pub fn loads(&self) -> bool {
        self.phase == "load"
    }
}

/// The configuration of a benchmark, defaults included.
pub trait Configured: Serialize {
    /// The common part.
    fn common(&self) -> &Common;
    /// The common part.
    fn common_mut(&mut self) -> &mut Common;
    /// The transactions whose order was checked, and the choices that this left open. `None` if
    /// the benchmark does not check that.
    fn ordered(&self) -> Option<(u64, u64)> {
        None
    }
    /// Adds transactions whose order was checked, and choices that this left open.
    fn count_ordered(&mut self, _transactions: u64, _open: u64) {}
    /// The line that describes the benchmark.
    fn headline(&self) -> String;
    /// The checks that the answers have passed.
    fn checked(&self) -> String;
}

/// The name of new orders among the kinds of transactions.
pub const NEW_ORDER: &str = "NEW_ORDER";

/// One contender in one configuration.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the columns")]
pub struct Row {
    pub index: String,
    pub structure: String,
    #[serde(deserialize_with = "names::one")]
    pub policy: Name,
    #[serde(deserialize_with = "names::one")]
    pub row_layout: Name,
    #[serde(deserialize_with = "names::one")]
    pub placement: Name,
    pub pages: String,
    pub mixed: bool,
    pub threads: usize,
    /// The number of the contender.
    #[serde(skip)]
    pub contender: usize,
    /// Transactions per second; of a load, records per second.
    pub tps: Interval,
    /// The rate of each round.
    pub samples: Vec<f64>,
    /// Whether the user interrupted its only round, which may be shorter.
    pub cut: bool,
    /// The seconds from the start of the first thread to the end of the last, over all rounds.
    pub seconds: f64,
    pub transactions: u64,
    pub operations: u64,
    /// The median of the rounds' ratios to the first row.
    pub ratio_to_first: f64,
    pub ratio: Interval,
    /// Aborted attempts by reason, over all rounds.
    pub aborts: Vec<Abort>,
    /// Latencies of all transactions, and of those of each kind.
    pub latency_us: Latency,
    pub kinds: Vec<Latency>,
    /// Microseconds of a transaction in the index, and all others: those of the database and of
    /// the benchmark. `None` if the engine does not tell.
    pub index_us: Option<f64>,
    pub rest_us: Option<f64>,
    /// The rows of scans, over all rounds.
    pub scanned: u64,
    /// New orders per minute, in TPC-C.
    pub tpmc: Option<f64>,
    /// The number of records before the first round, and after the last.
    pub records: [u64; 2],
    pub costs: Option<Costs>,
    /// The misses of a transaction in a model, if they were asked for. The model has one thread.
    pub model: Option<Modelled>,
    /// The memory after the last round.
    pub memory: Vec<Memory>,
}

/// A contender with the number of threads at which its median is highest.
#[derive(Debug, Serialize)]
pub struct Best {
    pub index: String,
    pub policy: &'static str,
    pub row_layout: &'static str,
    pub placement: String,
    pub threads: usize,
    pub tps_median: f64,
    /// The rounds that `ratio` compares.
    pub rounds: usize,
    /// The ratio to the first contender with its own best number.
    pub ratio: Interval,
}

/// Aborted attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Abort {
    #[serde(deserialize_with = "names::one")]
    pub reason: Name,
    pub attempts: u64,
}

/// Percentiles of the time of transactions, in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// `ALL`; or the name of YCSB for an operation, `TRANSACTION` for several operations, or
    /// `BATCH` for those of a load.
    #[serde(deserialize_with = "names::one")]
    pub kind: Name,
    pub transactions: u64,
    /// How many of them were timed.
    pub sampled: u64,
    pub mean: f64,
    pub min: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// The parts of the time of an operation. Each is a median of the rounds, so that they need not
/// sum to the operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Costs {
    pub lookup_ns: f64,
    pub miss_ns: f64,
    /// The bytes of the memory in which the misses were measured.
    pub miss_bytes: u64,
    pub operation_ns: f64,
    pub beyond_ns: f64,
}

impl<C: Configured> Report<C> {
    /// An empty report.
    pub fn new(config: C, machine: Machine) -> Self {
        Self {
            machine,
            config,
            results: Vec::new(),
            best: Vec::new(),
            interrupted: false,
            remarks: Vec::new(),
            models: Vec::new(),
        }
    }

    /// Enters the samples of all contenders: see [`Row::all`].
    pub fn add(&mut self, contenders: &[Contender], threads: usize, samples: &[Vec<Sample>]) {
        let rounds = samples[0].len();
        let common = self.config.common_mut();
        if rounds > 0 {
            common.interval_coverage = stats::coverage(rounds).min(common.interval_coverage);
        }
        let mut rows = Row::all((contenders, common.loads()), threads, samples);
        for row in &mut rows {
            row.model = self.models.get(row.contender).cloned();
        }
        self.results.extend(rows);
    }

    /// Compares the contenders with their best numbers of threads, if there are several numbers. A
    /// database with a lock around it is best with one thread.
    pub fn compare_best(&mut self) {
        let best_of = |at: usize| {
            let rows = self.results.iter().filter(move |row| row.contender == at && !row.cut);
            rows.max_by(|a, b| a.tps.median.total_cmp(&b.tps.median))
        };
        let several = self.results.windows(2).any(|rows| rows[0].threads != rows[1].threads);
        let contenders = (0..).map_while(best_of);
        let compare = |row: &Row, first: &Row| {
            let ratios = row.samples.iter().zip(&first.samples).map(|(of, to)| of / to);
            let ratios: Vec<f64> = ratios.collect();
            Some(Best {
                index: row.index.clone(),
                policy: row.policy,
                row_layout: row.row_layout,
                placement: row.place(),
                threads: row.threads,
                tps_median: row.tps.median,
                rounds: ratios.len(),
                ratio: Interval::of(&ratios)?,
            })
        };
        if let (true, Some(first)) = (several, best_of(0)) {
            self.best = contenders.filter_map(|row| compare(row, first)).collect();
        }
    }
}

impl Row {
    /// The rows of all contenders. There are none for contenders without samples.
    fn all(
        (contenders, loads): (&[Contender], bool),
        threads: usize,
        samples: &[Vec<Sample>],
    ) -> Vec<Self> {
        let rate = |sample: &Sample| {
            let Tally { transactions, operations, .. } = sample.tally;
            (if loads { operations } else { transactions }) as f64 / sample.seconds
        };
        let first: Vec<f64> = samples[0].iter().map(rate).collect();
        let mut rows = Vec::new();
        for (at, samples) in samples.iter().enumerate() {
            let rates: Vec<f64> = samples.iter().map(rate).collect();
            let ratios: Vec<f64> = rates.iter().zip(&first).map(|(of, to)| of / to).collect();
            if let (Some(tps), Some(ratio)) = (Interval::of(&rates), Interval::of(&ratios)) {
                let contender = (at, &contenders[at]);
                rows.push(Self::of(contender, threads, samples, (rates, tps, ratio)));
            }
        }
        rows
    }

    /// The row of a contender: the sums over all rounds, of which there is one at least.
    fn of(
        (at, contender): (usize, &Contender),
        threads: usize,
        samples: &[Sample],
        (rates, tps, ratio): (Vec<f64>, Interval, Interval),
    ) -> Self {
        let sum = |count: fn(&Tally) -> u64| -> u64 {
            samples.iter().map(|sample| count(&sample.tally)).sum()
        };
        let transactions = sum(|tally| tally.transactions);
        let operations = sum(|tally| tally.operations);
        let in_threads: f64 = samples.iter().map(|sample| sample.thread_seconds).sum();
        let index: Option<f64> = samples.iter().map(|sample| sample.index_seconds).sum();
        let each = |seconds: f64| 1e6 * seconds / transactions.max(1) as f64;
        let last = &samples[samples.len() - 1];
        Self {
            index: contender.name(),
            structure: structure(&last.memory),
            policy: contender.policy(),
            row_layout: contender.row_layout(),
            placement: contender.placement(),
            pages: contender.pages(),
            mixed: contender.mixed,
            threads,
            contender: at,
            tps,
            samples: rates,
            cut: samples.iter().any(|sample| sample.cut),
            seconds: samples.iter().map(|sample| sample.seconds).sum(),
            transactions,
            operations,
            ratio_to_first: ratio.median,
            ratio,
            aborts: aborts(samples),
            latency_us: Latency::of("ALL", samples, |_| true),
            kinds: Latency::by_kind(samples),
            index_us: index.map(each),
            rest_us: index.map(|index| each(in_threads - index)),
            scanned: sum(|tally| tally.scanned),
            tpmc: tpmc(samples),
            records: [samples[0].records[0], last.records[1]],
            costs: Costs::of(samples),
            model: None,
            memory: last.memory.clone(),
        }
    }

    /// The place of the index's nodes, and their pages.
    pub fn place(&self) -> String {
        let mixed = if self.mixed { ", mixed" } else { "" };
        format!("{} {}{mixed}", self.placement, self.pages)
    }
}

/// The new orders that were entered per minute, if there were any.
fn tpmc(samples: &[Sample]) -> Option<f64> {
    let kinds = samples.iter().flat_map(|sample| &sample.kinds);
    let orders: u64 = kinds.filter(|of| of.name == NEW_ORDER).map(|of| of.transactions).sum();
    let seconds: f64 = samples.iter().map(|sample| sample.seconds).sum();
    (orders > 0).then(|| 60.0 * orders as f64 / seconds)
}

/// The structure of the first index.
fn structure(memory: &[Memory]) -> String {
    let index = memory.iter().find(|part| part.is_index);
    index.map_or(String::new(), |index| index.structure.clone())
}

/// The aborted attempts by reason.
fn aborts(samples: &[Sample]) -> Vec<Abort> {
    let mut all: Vec<Abort> = Vec::new();
    for &(reason, attempts) in samples.iter().flat_map(|sample| &sample.aborts) {
        match all.iter_mut().find(|abort| abort.reason == reason) {
            Some(abort) => abort.attempts += attempts,
            None => all.push(Abort { reason, attempts }),
        }
    }
    all.retain(|abort| abort.attempts > 0);
    all
}

impl Latency {
    fn by_kind(samples: &[Sample]) -> Vec<Self> {
        let mut names: Vec<&'static str> = Vec::new();
        for kind in samples.iter().flat_map(|sample| &sample.kinds) {
            if !names.contains(&kind.name) {
                names.push(kind.name);
            }
        }
        names.into_iter().map(|name| Self::of(name, samples, |kind| kind == name)).collect()
    }

    /// The latencies of the kinds for which `counts` holds.
    fn of(kind: &'static str, samples: &[Sample], counts: impl Fn(&str) -> bool) -> Self {
        let (mut transactions, mut histogram) = (0, meter::histogram());
        for of in samples.iter().flat_map(|sample| &sample.kinds).filter(|of| counts(of.name)) {
            transactions += of.transactions;
            histogram += &of.histogram;
        }
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            kind,
            transactions,
            sampled: histogram.len(),
            mean: histogram.mean() / 1e3,
            min: histogram.min() as f64 / 1e3,
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

impl Costs {
    /// The costs of a contender, if they were measured in each round.
    fn of(samples: &[Sample]) -> Option<Self> {
        let operation_ns =
            |sample: &Sample| 1e9 * sample.thread_seconds / sample.tally.operations.max(1) as f64;
        let round = |sample: &Sample| Some((operation_ns(sample), sample.costs?));
        Self::of_rounds(&samples.iter().map(round).collect::<Option<Vec<_>>>()?)
    }

    /// The medians of rounds, each with the nanoseconds of an operation. The parts of an operation
    /// are taken off in each round, because the index alone differs between rounds.
    fn of_rounds(rounds: &[(f64, ycsb::Costs)]) -> Option<Self> {
        let median = |of: fn(&(f64, ycsb::Costs)) -> f64| {
            Interval::of(&rounds.iter().map(of).collect::<Vec<f64>>()).map(|all| all.median)
        };
        Some(Self {
            lookup_ns: median(|(_, one)| one.lookup_ns)?,
            miss_ns: median(|(_, one)| one.miss_ns)?,
            miss_bytes: rounds.iter().map(|(_, one)| one.miss_bytes).max()?,
            operation_ns: median(|(operation, _)| *operation)?,
            beyond_ns: median(|(operation, one)| operation - one.lookup_ns - one.miss_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rest was the mean operation less the median parts, which is the rest of no round.
    #[test]
    fn the_rest_is_a_median_of_rounds() {
        let round = |operation_ns, lookup_ns, miss_ns| {
            (operation_ns, ycsb::Costs { lookup_ns, miss_ns, miss_bytes: 1 })
        };
        let rounds =
            [round(500.0, 100.0, 100.0), round(310.0, 100.0, 110.0), round(390.0, 300.0, 50.0)];
        let costs = Costs::of_rounds(&rounds).unwrap();
        let parts = [costs.operation_ns, costs.lookup_ns, costs.miss_ns, costs.beyond_ns];
        assert_eq!(parts.map(|ns| ns as u32), [390, 100, 100, 100]);
        assert!(Costs::of_rounds(&[]).is_none());
    }
}
