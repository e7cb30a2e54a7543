//! Writes a report: tables, JSON, CSV, or the lines that YCSB prints.

use super::plan::Output;
use super::report::{Report, Row};
use crate::drive::stats::Interval;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::units::{count, plural};
use crate::output;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The text for a figure that does not exist.
const NOTHING: &str = "–";

impl Report {
    /// Writes the report to standard output.
    pub fn print(&self, format: Output) -> Result<(), Error> {
        match format {
            Output::Common(Format::Table) => output::text(&self.tables()),
            Output::Common(Format::Json) => output::json(self),
            Output::Common(Format::Csv) => {
                output::csv(&CSV_HEADER, self.results.iter().map(csv_record))
            }
            Output::Ycsb => output::text(&self.ycsb()),
        }
    }

    fn tables(&self) -> String {
        let config = &self.config;
        let mut text = format!("silvics {} on {}\n", self.machine.silvics, self.machine);
        let ends = match (config.operations, config.seconds) {
            (Some(operations), _) => format!("{} operations", count(operations as usize)),
            (None, Some(seconds)) => format!("{seconds} s"),
            (None, None) => "transactions until the first thread has finished".into(),
        };
        _ = writeln!(
            text,
            "{} {}: {} records of {} fields of {} bytes, {} operation{} per transaction{}; {} \
             round{} of {ends}, contenders in turns A B … B A, threads pinned, seed {}",
            config.benchmark,
            config.phase,
            count(config.records as usize),
            config.fields,
            config.field_bytes,
            config.transaction,
            plural(config.transaction),
            if config.get_many { " (get_many)" } else { "" },
            config.rounds,
            plural(config.rounds),
            config.seed,
        );
        _ = writeln!(
            text,
            "tx/s: median of the rounds and an interval that covers it with {:.0} %; ratio: to the \
             first row; index and database: time of a transaction inside and outside of the index \
             (one transaction of {} is timed)",
            100.0 * config.interval_coverage,
            config.index_sampled,
        );
        for rows in self.results.chunk_by(|a, b| a.threads == b.threads) {
            let threads = rows[0].threads;
            _ = write!(text, "\n{threads} thread{}\n{}\n", plural(threads), table(rows));
            details(&mut text, rows);
        }
        text.push_str("\nThe values that were read, and the numbers of records, were checked.\n");
        if self.interrupted {
            text.push_str("Interrupted: this is what was finished.\n");
        }
        text
    }

    /// The lines of YCSB's own exporter, for each row behind each other.
    fn ycsb(&self) -> String {
        let mut text = String::new();
        for row in &self.results {
            _ = writeln!(text, "[OVERALL], RunTime(ms), {:.0}", 1e3 * row.seconds);
            let rate = row.operations as f64 / row.seconds;
            _ = writeln!(text, "[OVERALL], Throughput(ops/sec), {rate}");
            for kind in &row.latency_us {
                let name = kind.kind;
                _ = writeln!(text, "[{name}], Operations, {}", kind.sampled);
                _ = writeln!(text, "[{name}], AverageLatency(us), {}", kind.mean);
                _ = writeln!(text, "[{name}], MinLatency(us), {}", kind.min);
                _ = writeln!(text, "[{name}], MaxLatency(us), {}", kind.max);
                _ = writeln!(text, "[{name}], 95thPercentileLatency(us), {}", kind.p95);
                _ = writeln!(text, "[{name}], 99thPercentileLatency(us), {}", kind.p99);
            }
            for abort in &row.aborts {
                _ = writeln!(text, "[ABORTS], {}, {}", abort.reason, abort.attempts);
            }
        }
        text
    }
}

fn table(rows: &[Row]) -> comfy_table::Table {
    let header = [
        "index",
        "policy",
        "rows",
        "placement",
        "tx/s",
        "interval",
        "ratio",
        "interval",
        "aborts %",
        "index us",
        "database us",
        "p50 us",
        "p99 us",
        "table MB",
        "index MB",
    ];
    let mut table = output::table(&header);
    for row in rows {
        let aborts: u64 = row.aborts.iter().map(|abort| abort.attempts).sum();
        let attempts = aborts + row.transactions;
        let latency = row.latency_us.iter().max_by_key(|kind| kind.sampled);
        let bytes = |part: usize| row.memory.get(part).and_then(|part| part.bytes);
        let megabytes = |part| figure(bytes(part).map(|bytes| bytes as f64 / 1e6), 1);
        let mixed = if row.mixed { ", mixed" } else { "" };
        table.add_row([
            row.index.clone(),
            row.policy.into(),
            row.row_layout.into(),
            format!("{} {}{mixed}", row.placement, row.pages),
            format!("{:.0}", row.tps.median),
            ends(row.tps, 0),
            format!("{:.2}", row.ratio.median),
            ends(row.ratio, 2),
            format!("{:.2}", 100.0 * aborts as f64 / attempts.max(1) as f64),
            figure(row.index_us, 3),
            figure(row.database_us, 3),
            figure(latency.map(|kind| kind.p50), 2),
            figure(latency.map(|kind| kind.p99), 2),
            megabytes(0),
            megabytes(1),
        ]);
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Reasons of aborts, operations that found nothing, and the costs of an operation.
fn details(text: &mut String, rows: &[Row]) {
    for row in rows {
        let name = format!("{} {}", row.index, row.policy);
        if !row.aborts.is_empty() {
            let of = |abort: &super::report::Abort| format!("{} {}", abort.reason, abort.attempts);
            let aborts: Vec<String> = row.aborts.iter().map(of).collect();
            _ = writeln!(text, "{name}: aborted attempts by reason: {}", aborts.join(", "));
        }
        if row.missed > 0 {
            _ = writeln!(text, "{name}: {} operations found no record", row.missed);
        }
        if row.scanned > 0 {
            _ = writeln!(text, "{name}: scans returned {} rows", row.scanned);
        }
        if let Some(costs) = row.costs {
            _ = writeln!(
                text,
                "{name}: an operation takes {:.0} ns: a lookup of the index alone {:.0}, a \
                 dependent miss {:.0}, the rest {:.0}",
                costs.operation_ns, costs.lookup_ns, costs.miss_ns, costs.beyond_ns
            );
        }
    }
}

fn ends(interval: Interval, decimals: usize) -> String {
    let Interval { low, high, .. } = interval;
    format!("{low:.decimals$} – {high:.decimals$}")
}

fn figure(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or(NOTHING.into(), |figure| format!("{figure:.decimals$}"))
}

const CSV_HEADER: [&str; 22] = [
    "index",
    "structure",
    "policy",
    "row_layout",
    "placement",
    "pages",
    "mixed",
    "threads",
    "tps_median",
    "tps_low",
    "tps_high",
    "ratio_to_first",
    "transactions",
    "operations",
    "aborts",
    "index_us",
    "database_us",
    "p50_us",
    "p99_us",
    "missed",
    "table_bytes",
    "index_bytes",
];

fn csv_record(row: &Row) -> Vec<String> {
    fn text(value: Option<impl ToString>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let latency = row.latency_us.iter().max_by_key(|kind| kind.sampled);
    let bytes = |part: usize| row.memory.get(part).and_then(|part| part.bytes);
    vec![
        row.index.clone(),
        row.structure.clone(),
        row.policy.into(),
        row.row_layout.into(),
        row.placement.into(),
        row.pages.clone(),
        row.mixed.to_string(),
        row.threads.to_string(),
        row.tps.median.to_string(),
        row.tps.low.to_string(),
        row.tps.high.to_string(),
        row.ratio_to_first.to_string(),
        row.transactions.to_string(),
        row.operations.to_string(),
        row.aborts.iter().map(|abort| abort.attempts).sum::<u64>().to_string(),
        text(row.index_us),
        text(row.database_us),
        text(latency.map(|kind| kind.p50)),
        text(latency.map(|kind| kind.p99)),
        row.missed.to_string(),
        text(bytes(0)),
        text(bytes(1)),
    ]
}
