//! The configuration in a result, and the lines that YCSB prints.

use super::job::Job;
use super::plan::{Output, Plan};
use super::run;
use crate::flags::error::Error;
use crate::flags::units::{count, plural};
use crate::output;
use crate::store::report::{Common, Configured, Report};
use serde::Serialize;
use std::fmt::Write as _;

/// The configuration, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    #[serde(flatten)]
    pub common: Common,
    pub records: u64,
    pub fields: u32,
    pub field_bytes: u32,
    pub transaction: usize,
    pub get_many: bool,
    /// The records of a transaction of the load.
    pub load_batch: u64,
    /// The operations of a run, and its seconds, if they end it. The first of them does.
    pub operations: Option<u64>,
    pub seconds: Option<f64>,
}

impl Config {
    /// The configuration of a plan.
    pub fn of(plan: &Plan) -> Self {
        let benchmark = if matches!(plan.job, Job::Study(..)) { "study" } else { "ycsb" };
        let phase = if plan.loads { "load" } else { "run" };
        Self {
            common: Common::new((benchmark, phase), plan.load_threads, plan.rounds, plan.seed),
            records: plan.job.records(),
            fields: plan.job.fields(),
            field_bytes: plan.job.field_bytes(),
            transaction: plan.transaction,
            load_batch: run::BATCH,
            get_many: plan.get_many,
            operations: plan.operations,
            seconds: plan.time.map(|time| time.as_secs_f64()),
        }
    }
}

impl Configured for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn headline(&self) -> String {
        let operations = self.operations.map(|all| format!("{} operations", count(all as usize)));
        let seconds = self.seconds.map(|seconds| format!("{seconds} s"));
        let loads = self.common.loads();
        let ends = match (operations, seconds) {
            _ if loads => "one load each".into(),
            (Some(operations), Some(seconds)) => format!("{operations}, or {seconds}"),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => "transactions until the first thread has finished".into(),
        };
        let transaction = if loads { self.load_batch as usize } else { self.transaction };
        format!(
            "{} {}: {} records of {} fields of {} bytes, {transaction} operation{} per \
             transaction{}, {ends}",
            self.common.benchmark,
            self.common.phase,
            count(self.records as usize),
            self.fields,
            self.field_bytes,
            plural(transaction),
            if self.get_many { " (get_many)" } else { "" },
        )
    }

    fn checked(&self) -> String {
        "the number of records after each round; the record, and the first bytes of one field, of \
         each read; the first key of each scan, that its keys ascend, and their number"
            .into()
    }
}

impl Output {
    /// Writes a report to standard output.
    pub fn print(self, report: &Report<Config>) -> Result<(), Error> {
        match self {
            Self::Common(format) => report.print(format),
            Self::Ycsb => output::text(&report.ycsb()),
        }
    }
}

impl Report<Config> {
    /// The lines of YCSB's own exporter. A plan with this format has one contender and one number
    /// of threads.
    pub fn ycsb(&self) -> String {
        let mut text = String::new();
        if self.interrupted {
            text.push_str("[OVERALL], Interrupted, true\n");
        }
        for row in &self.results {
            _ = writeln!(text, "[OVERALL], RunTime(ms), {:.0}", 1e3 * row.seconds);
            let rate = row.operations as f64 / row.seconds;
            _ = writeln!(text, "[OVERALL], Throughput(ops/sec), {rate}");
            if self.config.common.loads() {
                _ = writeln!(text, "[INSERT], Operations, {}", row.operations);
                _ = writeln!(text, "[INSERT], Return=OK, {}", row.operations);
                continue;
            }
            for kind in &row.kinds {
                let name = kind.kind;
                _ = writeln!(text, "[{name}], Operations, {}", kind.transactions);
                if kind.sampled > 0 {
                    _ = writeln!(text, "[{name}], AverageLatency(us), {}", kind.mean);
                    _ = writeln!(text, "[{name}], MinLatency(us), {}", kind.min);
                    _ = writeln!(text, "[{name}], MaxLatency(us), {}", kind.max);
                    _ = writeln!(text, "[{name}], 95thPercentileLatency(us), {}", kind.p95);
                    _ = writeln!(text, "[{name}], 99thPercentileLatency(us), {}", kind.p99);
                }
                _ = writeln!(text, "[{name}], Return=OK, {}", kind.transactions);
            }
        }
        text
    }
}
