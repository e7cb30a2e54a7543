//! Writes a report: tables, JSON or CSV.

use super::report::{Best, Common, Configured, Costs, Latency, Report, Row};
use super::ycsb::Modelled;
use crate::campaign::remarks;
use crate::drive::stats::{self, Interval};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::units::plural;
use crate::output;
use crate::table::Table;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The text for a figure that does not exist.
const NOTHING: &str = "–";

impl<C: Configured> Report<C> {
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
        let mut text = format!("silvics {} on {}\n", self.machine.silvics, self.machine);
        self.header(&mut text);
        for rows in self.results.chunk_by(|a, b| a.threads == b.threads) {
            let threads = rows[0].threads;
            let table = table(rows, self.unit());
            _ = write!(text, "\n{threads} thread{}\n{table}\n", plural(threads));
            details(&mut text, rows);
        }
        for row in self.results.chunk_by(|a, b| a.threads == b.threads).next_back().unwrap_or(&[]) {
            memory(&mut text, row);
        }
        let first = self.results.chunk_by(|a, b| a.threads == b.threads).next();
        if let Some(table) = first.and_then(models)
            && let Some(model) = self.models.first()
        {
            _ = write!(
                text,
                "\nA transaction in the model of {}, on average, with its share in the index: \
                 misses of the first level of the TLB, walks of the page table, misses of the \
                 first cache, lines read from memory\n{table}\n",
                model.machine
            );
        }
        if !self.best.is_empty() {
            let table = best(&self.best, self.unit());
            _ = write!(text, "\nEach with its best number of threads\n{table}\n");
        }
        if !self.results.is_empty() {
            _ = writeln!(text, "\nChecked: {}.", self.config.checked());
        }
        if self.interrupted {
            text.push_str(self.interruption());
        }
        for remark in &self.remarks {
            _ = writeln!(text, "{remark}");
        }
        text
    }

    /// The line about an interrupt.
    fn interruption(&self) -> &'static str {
        if self.results.is_empty() {
            return "\nInterrupted before there was a result.\n";
        }
        if self.results.iter().any(|row| row.cut) {
            return "Interrupted in the first round: the run marked (cut) is shorter, and its \
                    figures are less certain.\n";
        }
        "Interrupted: this is what was finished.\n"
    }

    /// The unit of rates.
    fn unit(&self) -> &'static str {
        if self.config.common().loads() { "records/s" } else { "tx/s" }
    }

    fn header(&self, text: &mut String) {
        let Common { rounds, seed, .. } = self.config.common();
        _ = writeln!(
            text,
            "{}; {rounds} round{}, contenders in turns A B … B A, threads pinned, seed {seed}",
            self.config.headline(),
            plural(*rounds),
        );
        if !self.results.is_empty() {
            self.columns(text);
        }
    }

    /// The meaning of the columns.
    fn columns(&self, text: &mut String) {
        let rounds = self.results.iter().map(|row| row.samples.len());
        let interval = match rounds.filter(|rounds| *rounds > 1).min() {
            None => stats::meaning(0.0),
            Some(rounds) => stats::meaning(stats::coverage(rounds)),
        };
        _ = writeln!(
            text,
            "{}: {interval}; ratio: to the first row; index: time of a transaction in the index, \
             rest: in the database around it and in this benchmark (of one transaction in {}); \
             p50, p99: of one transaction in {}",
            self.unit(),
            self.config.common().index_sampled,
            self.config.common().latency_sampled,
        );
    }
}

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &[
    "rows on",
    "index on",
    "table MB",
    "index MB",
    "interval",
    "rest us",
    "index us",
    "p50 us",
    "rows",
    "placement",
    "p99 us",
];

/// The columns that say what a row is about.
const NAMES: &[&str] = &["index", "policy", "rows", "placement", "index on", "rows on", "threads"];

fn table(rows: &[Row], unit: &'static str) -> Table {
    let header = [
        "index",
        "policy",
        "rows",
        "placement",
        unit,
        "interval",
        "ratio",
        "interval",
        "aborts %",
        "index us",
        "rest us",
        "p50 us",
        "p99 us",
        "table MB",
        "index MB",
    ];
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
    for row in rows {
        let aborts: u64 = row.aborts.iter().map(|abort| abort.attempts).sum();
        let attempts = aborts + row.transactions;
        let latency = &row.latency_us;
        let timed = |percentile: f64| (latency.sampled > 0).then_some(percentile);
        let megabytes = |indexes| figure(bytes(row, indexes).map(|bytes| bytes as f64 / 1e6), 1);
        let cut = if row.cut { " (cut)" } else { "" };
        let interval =
            |of, decimals| if row.samples.len() > 1 { ends(of, decimals) } else { NOTHING.into() };
        table.add_row([
            format!("{}{cut}", row.index),
            row.policy.into(),
            row.row_layout.into(),
            row.place(),
            format!("{:.0}", row.tps.median),
            interval(row.tps, 0),
            format!("{:.2}", row.ratio.median),
            interval(row.ratio, 2),
            format!("{:.2}", 100.0 * aborts as f64 / attempts.max(1) as f64),
            figure(row.index_us, 3),
            figure(row.rest_us, 3),
            figure(timed(latency.p50), 2),
            figure(timed(latency.p99), 2),
            megabytes(false),
            megabytes(true),
        ]);
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn best(best: &[Best], unit: &'static str) -> Table {
    let header = ["index", "policy", "rows", "placement", "threads", unit, "ratio", "interval"];
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
    for row in best {
        table.add_row([
            row.index.clone(),
            row.policy.into(),
            row.row_layout.into(),
            row.placement.clone(),
            row.threads.to_string(),
            format!("{:.0}", row.tps_median),
            format!("{:.2}", row.ratio.median),
            if row.rounds > 1 { ends(row.ratio, 2) } else { NOTHING.into() },
        ]);
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The memory of each table and index, if there are several tables.
fn memory(text: &mut String, row: &Row) {
    let of = |part: &super::engine::Memory| {
        format!("{} {}", part.part, figure(part.bytes.map(|bytes| bytes as f64 / 1e6), 1))
    };
    let parts: Vec<String> = row.memory.iter().map(of).collect();
    if parts.len() > 2 {
        let (index, policy) = (&row.index, row.policy);
        _ = writeln!(text, "{index} {policy}: memory at the end in MB: {}", parts.join(", "));
    }
}

/// The bytes of all tables, or of all indexes, if they are known.
fn bytes(row: &Row, indexes: bool) -> Option<u64> {
    let mut parts = row.memory.iter().filter(|part| part.is_index == indexes).peekable();
    parts.peek()?;
    parts.map(|part| part.bytes).sum()
}

/// Reasons of aborts, latencies by kind, records that were inserted, and the costs of an operation.
fn details(text: &mut String, rows: &[Row]) {
    for row in rows {
        let name = format!("{} {}", row.index, row.policy);
        if !row.aborts.is_empty() {
            let of = |abort: &super::report::Abort| format!("{} {}", abort.reason, abort.attempts);
            let aborts: Vec<String> = row.aborts.iter().map(of).collect();
            _ = writeln!(text, "{name}: aborted attempts by reason: {}", aborts.join(", "));
        }
        let kinds = if row.kinds.len() > 1 { &row.kinds[..] } else { &[] };
        for kind in kinds.iter().filter(|kind| kind.sampled > 0) {
            _ = writeln!(
                text,
                "{name}: {} {}, {} timed: p50 {:.2} us, p95 {:.2}, p99 {:.2}, max {:.2}",
                kind.transactions, kind.kind, kind.sampled, kind.p50, kind.p95, kind.p99, kind.max
            );
        }
        let [before, after] = row.records;
        if after > before && before > 0 {
            _ = writeln!(
                text,
                "{name}: {before} records before the first round, {after} at the end"
            );
        }
        if let Some(tpmc) = row.tpmc {
            _ = writeln!(text, "{name}: {tpmc:.0} new orders per minute (tpmC)");
        }
        if row.scanned > 0 {
            _ = writeln!(text, "{name}: scans returned {} rows", row.scanned);
        }
        if let Some(costs) = row.costs {
            _ = writeln!(
                text,
                "{name}: an operation takes {:.0} ns: a lookup of the index alone {:.0}, a \
                 dependent miss among {:.0} MB {:.0}, the rest {:.0}",
                costs.operation_ns,
                costs.lookup_ns,
                costs.miss_bytes as f64 / 1e6,
                costs.miss_ns,
                costs.beyond_ns
            );
        }
    }
}

/// The table of models: one row for each contender.
fn models(rows: &[Row]) -> Option<Table> {
    let header = [
        "index",
        "policy",
        "rows",
        "placement",
        "index on",
        "rows on",
        "TLB misses",
        "index",
        "walks",
        "index",
        "L1 misses",
        "index",
        "memory reads",
        "index",
    ];
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
    let mut rows = rows.iter().filter_map(|row| Some((row, row.model.as_ref()?))).peekable();
    rows.peek()?;
    for (row, model) in rows {
        let all = model.all();
        let pairs = [
            (all.tlb, model.index.tlb),
            (all.walks, model.index.walks),
            (all.l1, model.index.l1),
            (all.memory, model.index.memory),
        ];
        let mut cells = vec![
            row.index.clone(),
            row.policy.into(),
            row.row_layout.into(),
            row.place(),
            model.index_pages.into(),
            model.row_pages.into(),
        ];
        cells.extend(
            pairs.iter().flat_map(|(all, index)| [all, index]).map(|of| format!("{of:.2}")),
        );
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Some(table)
}

fn ends(interval: Interval, decimals: usize) -> String {
    let Interval { low, high, .. } = interval;
    format!("{low:.decimals$} – {high:.decimals$}")
}

fn figure(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or(NOTHING.into(), |figure| format!("{figure:.decimals$}"))
}

const CSV_HEADER: [&str; 49] = [
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
    "cut",
    "transactions",
    "operations",
    "aborts",
    "index_us",
    "rest_us",
    "timed",
    "p50_us",
    "p95_us",
    "p99_us",
    "aborts_by_reason",
    "table_bytes",
    "index_bytes",
    "scanned",
    "records_before",
    "records_after",
    "transactions_by_kind",
    "p50_us_by_kind",
    "p95_us_by_kind",
    "p99_us_by_kind",
    "operation_ns",
    "lookup_ns",
    "miss_ns",
    "beyond_ns",
    "model_machine",
    "model_transactions",
    "model_index_pages",
    "model_row_pages",
    "model_index_tlb",
    "model_index_walks",
    "model_index_l1",
    "model_index_memory",
    "model_row_tlb",
    "model_row_walks",
    "model_row_l1",
    "model_row_memory",
    "tpmc",
];

fn csv_record(row: &Row) -> Vec<String> {
    fn text(value: Option<impl ToString>) -> String {
        value.map(|value| value.to_string()).unwrap_or_default()
    }
    let timed = |latency: &Latency, percentile: fn(&Latency) -> f64| {
        text((latency.sampled > 0).then(|| percentile(latency)))
    };
    let latency = |percentile| timed(&row.latency_us, percentile);
    let reason = |abort: &super::report::Abort| format!("{}={}", abort.reason, abort.attempts);
    let by_kind = |value: &dyn Fn(&Latency) -> String| {
        let kinds = row.kinds.iter().map(|kind| format!("{}={}", kind.kind, value(kind)));
        kinds.collect::<Vec<String>>().join(" ")
    };
    let cost = |part: fn(&Costs) -> f64| text(row.costs.as_ref().map(part));
    let model = |part: fn(&Modelled) -> f64| text(row.model.as_ref().map(part));
    let reasons: Vec<String> = row.aborts.iter().map(reason).collect();
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
        row.cut.to_string(),
        row.transactions.to_string(),
        row.operations.to_string(),
        row.aborts.iter().map(|abort| abort.attempts).sum::<u64>().to_string(),
        text(row.index_us),
        text(row.rest_us),
        row.latency_us.sampled.to_string(),
        latency(|of| of.p50),
        latency(|of| of.p95),
        latency(|of| of.p99),
        reasons.join(" "),
        text(bytes(row, false)),
        text(bytes(row, true)),
        row.scanned.to_string(),
        row.records[0].to_string(),
        row.records[1].to_string(),
        by_kind(&|kind| kind.transactions.to_string()),
        by_kind(&|kind| timed(kind, |of| of.p50)),
        by_kind(&|kind| timed(kind, |of| of.p95)),
        by_kind(&|kind| timed(kind, |of| of.p99)),
        cost(|costs| costs.operation_ns),
        cost(|costs| costs.lookup_ns),
        cost(|costs| costs.miss_ns),
        cost(|costs| costs.beyond_ns),
        text(row.model.as_ref().map(|model| model.machine)),
        text(row.model.as_ref().map(|model| model.transactions)),
        text(row.model.as_ref().map(|model| model.index_pages)),
        text(row.model.as_ref().map(|model| model.row_pages)),
        model(|model| model.index.tlb),
        model(|model| model.index.walks),
        model(|model| model.index.l1),
        model(|model| model.index.memory),
        model(|model| model.rows.tlb),
        model(|model| model.rows.walks),
        model(|model| model.rows.l1),
        model(|model| model.rows.memory),
        text(row.tpmc),
    ]
}
