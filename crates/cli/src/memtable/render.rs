//! Writes a report: tables, JSON or CSV.

use super::report::{Report, Row};
use crate::campaign::remarks;
use crate::drive::stats::{self, Interval};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::units::{count, plural};
use crate::output;
use crate::table::Table;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The text for a figure that does not exist.
const NOTHING: &str = "–";

impl Report {
    /// Writes the report to standard output.
    pub fn print(&self, format: Format) -> Result<(), Error> {
        match format {
            Format::Table => output::text(&self.tables()),
            Format::Json => output::json(self),
            Format::Csv => {
                remarks::csv(&CSV_HEADER, self.results.iter().map(csv_record), &self.remarks)
            }
        }
    }

    fn tables(&self) -> String {
        let config = &self.config;
        let mut text = format!("silvics {} on {}\n", self.machine.silvics, self.machine);
        _ = writeln!(
            text,
            "{} round{} of {} operations on a new buffer, contenders in turns A B … B A, threads \
             pinned, keys of {} bytes, log {}, adaptive yield {}, seed {}",
            config.rounds,
            plural(config.rounds),
            count(config.num),
            config.key_size,
            config.log,
            if config.adaptive_yield { "on" } else { "off" },
            config.seed,
        );
        _ = writeln!(
            text,
            "kops/s: {}; ratio: median of the rounds' ratios to the first row; ns: of one call in {}",
            stats::meaning(config.interval_coverage),
            config.latency_sampled,
        );
        for rows in self.results.chunk_by(|a, b| heading(a) == heading(b)) {
            _ = write!(text, "\n{}\n{}\n", heading(&rows[0]), table(rows));
        }
        text.push_str("\nAll answers and contents were checked.\n");
        if self.interrupted {
            text.push_str("Interrupted: this is what was finished.\n");
        }
        for remark in &self.remarks {
            _ = writeln!(text, "{remark}");
        }
        text
    }
}

fn heading(row: &Row) -> String {
    format!(
        "{}, {} thread{}, batches of {}, values of {} bytes",
        row.workload,
        row.threads,
        plural(row.threads),
        row.batch,
        row.value_size
    )
}

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &[
    "switches vol/inv",
    "retries",
    "main locks/insert",
    "blocked",
    "yielded",
    "mutexes/write",
    "group",
    "p99.9 ns",
    "interval",
    "B/entry",
    "p50 ns",
    "p99 ns",
];

fn table(rows: &[Row]) -> Table {
    let header = [
        "memtable",
        "mode",
        "kops/s",
        "interval",
        "ratio",
        "interval",
        "p50 ns",
        "p99 ns",
        "p99.9 ns",
        "group",
        "mutexes/write",
        "yielded",
        "blocked",
        "main locks/insert",
        "retries",
        "switches vol/inv",
        "B/entry",
    ];
    let mut table = output::table(&header).drops(DROPPED);
    for row in rows {
        let (path, latency) = (&row.path, row.latency_ns);
        let switches = path.switches.map(|all| format!("{}/{}", all.voluntary, all.involuntary));
        table.add_row([
            row.memtable.to_owned(),
            row.mode.to_owned(),
            format!("{:.0}", row.ops_per_s.median / 1e3),
            ends(row.ops_per_s, 1e3, 0),
            format!("{:.2}", row.ratio.median),
            ends(row.ratio, 1.0, 2),
            latency.p50.to_string(),
            latency.p99.to_string(),
            latency.p999.to_string(),
            figure(path.group_size, 2),
            figure(path.mutexes_per_write, 4),
            path.waits_yielded.to_string(),
            path.waits_blocked.to_string(),
            figure(path.main_locks_per_insert, 4),
            path.cas_retries.to_string(),
            switches.unwrap_or_else(|| NOTHING.into()),
            format!("{:.1}", row.bytes_per_entry),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn ends(interval: Interval, unit: f64, decimals: usize) -> String {
    let Interval { low, high, .. } = interval;
    format!("{:.decimals$} – {:.decimals$}", low / unit, high / unit)
}

fn figure(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or(NOTHING.into(), |figure| format!("{figure:.decimals$}"))
}

const CSV_HEADER: [&str; 33] = [
    "workload",
    "memtable",
    "mode",
    "threads",
    "num",
    "batch",
    "key_size",
    "value_size",
    "log",
    "adaptive_yield",
    "ops_per_s_median",
    "ops_per_s_low",
    "ops_per_s_high",
    "ratio_to_first",
    "ratio_low",
    "ratio_high",
    "writer_ops_per_s",
    "p50_ns",
    "p99_ns",
    "p999_ns",
    "hits",
    "groups",
    "group_size",
    "log_appends",
    "log_syncs",
    "mutexes_per_write",
    "waits_yielded",
    "waits_blocked",
    "main_locks_per_insert",
    "cas_retries",
    "switches_voluntary",
    "switches_involuntary",
    "bytes_per_entry",
];

fn csv_record(row: &Row) -> Vec<String> {
    fn text(value: Option<impl ToString>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let (path, latency) = (&row.path, row.latency_ns);
    vec![
        row.workload.into(),
        row.memtable.into(),
        row.mode.into(),
        row.threads.to_string(),
        row.num.to_string(),
        row.batch.to_string(),
        row.key_size.to_string(),
        row.value_size.to_string(),
        row.log.into(),
        row.adaptive_yield.to_string(),
        row.ops_per_s.median.to_string(),
        row.ops_per_s.low.to_string(),
        row.ops_per_s.high.to_string(),
        row.ratio_to_first.to_string(),
        row.ratio.low.to_string(),
        row.ratio.high.to_string(),
        text(row.writer_ops_per_s.map(|rate| rate.median)),
        latency.p50.to_string(),
        latency.p99.to_string(),
        latency.p999.to_string(),
        text(row.hits),
        path.groups.to_string(),
        text(path.group_size),
        path.log_appends.to_string(),
        path.log_syncs.to_string(),
        text(path.mutexes_per_write),
        path.waits_yielded.to_string(),
        path.waits_blocked.to_string(),
        text(path.main_locks_per_insert),
        path.cas_retries.to_string(),
        text(path.switches.map(|all| all.voluntary)),
        text(path.switches.map(|all| all.involuntary)),
        row.bytes_per_entry.to_string(),
    ]
}
