//! Writes a report: tables, JSON or CSV.

pub(super) mod compared;
mod csv;
pub(super) mod latency;

use super::report::{LoadRow, Report, Row, RowKey};
use crate::campaign;
use crate::drive::stats::Interval;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::units;
use crate::flags::units::plural;
use crate::host::counters::PerOp;
use crate::output;
use crate::page::scale;
use crate::table::Table;
use crate::terminal::BEST;
use comfy_table::CellAlignment;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The least share of the cores' time with which a table does not say that the machine is busy.
const CPU_SHARE_WANTED: f64 = 0.95;

impl Report {
    /// Writes the report to standard output.
    pub fn print(&self, format: Format) -> Result<(), Error> {
        match format {
            Format::Table => output::text(&self.tables()),
            Format::Json => output::json(self),
            Format::Csv => {
                let records = self.results.iter().map(|row| csv::record(self, row));
                let is_whole =
                    !self.is_cut() && self.left_out.is_empty() && self.remarks.is_empty();
                let remarks = if is_whole { Vec::new() } else { remarks(self) };
                campaign::remarks::csv(csv::HEADER, records, &remarks)
            }
        }
    }

    fn tables(&self) -> String {
        let mut text = self.heading();
        text.push_str(&self.loads());
        let mut rest = &self.results[..];
        while let Some(first) = rest.first() {
            let heading = table_heading(first);
            let same = rest
                .iter()
                .take_while(|row| table_heading(row) == heading && row.key.cell == first.key.cell)
                .count();
            let (rows, others) = rest.split_at(same);
            let rows: Vec<&Row> = rows.iter().collect();
            _ = write!(text, "\n{heading}\n{}\n", table(&rows, self.is_busy()));
            text.push_str(&self.builds_of(first));
            text.push_str(&latency::table(&rows));
            rest = others;
        }
        if let Some(comparison) = &self.comparison {
            text.push_str(&compared::text(comparison));
        }
        for remark in remarks(self) {
            _ = writeln!(text, "\n{remark}");
        }
        text
    }

    /// A table of the loads of each cell.
    fn loads(&self) -> String {
        let mut text = String::new();
        for rows in self.loads.chunk_by(|a, b| a.key.cell == b.key.cell) {
            let (threads, key) = (rows[0].threads, &rows[0].key);
            let heading = keys_heading(key);
            _ = write!(text, "\n{heading}, loaded by {threads} thread{}\n", plural(threads));
            let rows: Vec<&LoadRow> = rows.iter().collect();
            _ = writeln!(text, "{}", load_table(&rows));
        }
        text
    }

    /// The gain of the fixed builds in the configuration of a row.
    fn builds_of(&self, row: &Row) -> String {
        let mut text = String::new();
        let of = self.builds.iter().filter(|build| {
            (build.cell, build.threads, &build.mix, build.batch)
                == (row.key.cell, row.threads, &row.mix, row.batch)
                && (build.scan_by, build.scan_length) == (row.scan_by, row.scan_length)
        });
        let places: HashSet<_> =
            of.clone().map(|build| (build.placement, build.pages.as_str())).collect();
        for build in of {
            let [ratio, ends] = median_and_ends(Some(build.ratio));
            let name = match &build.index {
                Some(name) => name.clone(),
                None => format!("geometric mean of {} trees", build.trees),
            };
            let place = if places.len() > 1 {
                format!(", {} on {} pages", build.placement, build.pages)
            } else {
                String::new()
            };
            _ = writeln!(text, "fixed / baseline, {name}{place}: {ratio} ({ends})");
        }
        text
    }

    /// The least share of their cores' time that the threads of a row got, if it is so small that
    /// the machine may be busy.
    fn busy_share(&self) -> Option<f64> {
        let shares = self.results.iter().filter(|row| row.threads <= self.machine.cores);
        let least = shares.filter_map(|row| row.cpu_share).min_by(f64::total_cmp);
        least.filter(|&share| share < CPU_SHARE_WANTED)
    }

    /// Whether the machine may be busy.
    pub(super) fn is_busy(&self) -> bool {
        self.busy_share().is_some()
    }

    fn heading(&self) -> String {
        let config = &self.config;
        let mut text = format!("silvics {} on {}\n", self.machine.silvics, self.machine);
        _ = writeln!(
            text,
            "{} round{} of {} s after a load, contenders in turns A B … B A, threads pinned, seed {}",
            config.rounds,
            plural(config.rounds),
            config.seconds,
            config.seed
        );
        _ = writeln!(
            text,
            "Mops/s: {}; ratio: median of the rounds' ratios to the first row",
            self.meaning(config.interval_coverage)
        );
        if config.loads < config.rounds {
            _ = writeln!(
                text,
                "loads: in {} of the rounds; {}",
                config.loads,
                self.meaning(config.load_interval_coverage)
            );
        }
        if let Some(counters) = &config.counted.counters {
            let counters = counters.iter().map(|(name, used)| format!("{name} is {used}"));
            let counters: Vec<String> = counters.collect();
            let counters = if counters.is_empty() { "nothing".into() } else { counters.join(", ") };
            _ = writeln!(text, "counted per operation (op) or million of them (Mop): {counters}");
        }
        if let Some(set) = config.keyset {
            _ = writeln!(text, "keys: the key set {set} of this seed, half of them loaded");
        }
        if let Some(file) = &config.key_file {
            _ = writeln!(
                text,
                "keys: {} of `{}` ({} duplicates dropped), half of them loaded",
                file.keys, file.path, file.duplicates_dropped
            );
        }
        text
    }
}

/// The remarks on a report: what is missing from it, or lessens its worth.
pub(super) fn remarks(report: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    if report.interrupted {
        remarks.push("Interrupted: this is what was finished.".into());
    }
    if let Some(error) = &report.stopped {
        remarks.push(format!("Stopped: {error}. This is what was finished before."));
    }
    remarks.extend(report.left_out.iter().map(|error| format!("Left out: {error}.")));
    remarks.extend(report.remarks.iter().cloned());
    if report.results.iter().any(|row| !row.checked) {
        remarks.push("Rows marked ? were not checked at the end.".into());
    }
    if let Some(share) = report.busy_share() {
        remarks.push(format!(
            "The threads of one row got {:.0} % of their cores' time: they wait for one another, or \
             something else is running. If so, repeat on an idle machine, or read the column \
             Mops/CPU s and the ratio behind it: operations per second of processor time, as if \
             waiting took none.",
            100.0 * share
        ));
    }
    remarks
}

/// The table of the loads of a cell.
pub(super) fn load_table(rows: &[&LoadRow]) -> Table {
    let header =
        ["index", "placement", "pages", "Mops/s", "interval", "ratio", "interval", "B/key", "huge"];
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
    for LoadRow { key, mops, ratio, footprint, .. } in rows {
        let pages = footprint.pages_given.clone().unwrap_or_else(|| key.pages.clone());
        let mut cells = vec![key.index.clone(), key.placement.into(), pages];
        cells.extend([figure(mops.median), ends(*mops)]);
        cells.extend(median_and_ends(*ratio));
        let bytes = footprint.bytes_per_key.map(|bytes| format!("{bytes:.1}"));
        cells.push(bytes.unwrap_or_else(|| NOTHING.into()));
        cells.push(percent(footprint.huge_page_share));
        table.add_row(cells);
    }
    align(&mut table);
    table
}

pub(super) fn keys_heading(key: &RowKey) -> String {
    format!(
        "{} {} keys{} of {}{}, {}",
        units::count(key.keys),
        if key.key_type == "bytes" { "byte" } else { key.key_type },
        if key.value_type == "arc" { " with Arc<[u8]> values" } else { "" },
        units::count(key.key_space),
        key.keyset.map_or_else(String::new, |set| format!(" ({set})")),
        key.dist,
    )
}

fn table_heading(row: &Row) -> String {
    let (keys, threads) = (keys_heading(&row.key), row.threads);
    let mut text = format!("{keys}, {threads} thread{}, {}", plural(threads), workload(row));
    if let Some(own) = row.own_ns {
        _ = write!(text, " (of each operation, {own:.1} ns are the loop's)");
    }
    text
}

/// The workload of a row: its mix, scans and batch.
pub(super) fn workload(row: &Row) -> String {
    let mut text = format!("mix {}", row.mix);
    if let Some(scans) = scans(row.scan_by, row.scan_length) {
        _ = write!(text, " (scans of {scans})");
    }
    if row.batch > 1 {
        _ = write!(text, ", batches of {}", row.batch);
    }
    text
}

/// The entries that a scan reads, and how, in words. `None` without scans.
pub(super) fn scans(by: Option<&str>, length: Option<usize>) -> Option<String> {
    match (by, length) {
        (Some("next"), Some(length)) => Some(format!("{length}, one by one")),
        (_, Some(length)) => Some(length.to_string()),
        (Some(_), None) => Some("everything".into()),
        (None, None) => None,
    }
}

/// The table of runs in one configuration.
pub(super) fn table(rows: &[&Row], busy: bool) -> Table {
    let mut header =
        vec!["index", "placement", "pages", "Mops/s", "interval", "ratio", "interval", "hits"];
    let entries = rows.iter().any(|row| row.entry_ns.is_some());
    if entries {
        header.extend(["ns/entry", "interval"]);
    }
    if busy {
        header.extend(["Mops/CPU s", "ratio", "interval"]);
    }
    let counted = PerOp::known(rows.iter().filter_map(|row| row.counters.as_ref()));
    header.extend(counted.iter().map(|event| event.heading()));
    let scaled = PerOp::scaled(rows.iter().filter_map(|row| row.counters.as_ref())).is_some();
    if scaled {
        header.push("counted in");
    }
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
    for row in rows {
        let mut cells = cells(row);
        if entries {
            cells.extend(median_and_ends(row.entry_ns));
        }
        if busy {
            cells.push(row.cpu_mops.map_or(NOTHING.into(), |mops| figure(mops.median)));
            cells.extend(median_and_ends(row.cpu_ratio));
        }
        let counts = counted.iter().map(|&event| (event, row.counters.and_then(|c| c.get(event))));
        cells.extend(
            counts.map(|(event, count)| count.map_or(NOTHING.into(), |count| event.shown(count))),
        );
        if scaled {
            cells.push(percent(row.counters.map(|counters| counters.time_counted)));
        }
        table.add_row(cells);
    }
    align(&mut table);
    let by_mops = |at: &usize, other: &usize| {
        f64::total_cmp(&rows[*at].mops.median, &rows[*other].mops.median)
    };
    if rows.len() > 1
        && let Some(best) = (0..rows.len()).max_by(by_mops)
    {
        table.style(best, BEST);
    }
    table
}

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &[
    "counted in",
    "huge",
    "interval",
    "hits",
    "pages",
    "switches/Mop",
    "faults/Mop",
    "walks/op",
    "dTLB misses/op",
    "LLC misses/op",
    "instr./op",
    "cycles/op",
    "placement",
];

/// The columns that say what a row is about.
const NAMES: &[&str] = &["index", "placement", "pages"];

/// Aligns figures to the right.
fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The text in place of a missing figure.
pub(super) const NOTHING: &str = "–";

fn cells(row: &Row) -> Vec<String> {
    let mark = if row.checked { "" } else { "?" };
    let footprint = &row.footprint;
    let [ratio, ratio_ends] = median_and_ends(row.ratio);
    vec![
        format!("{}{mark}", row.key.index),
        row.key.placement.into(),
        footprint.pages_given.clone().unwrap_or_else(|| row.key.pages.clone()),
        figure(row.mops.median),
        ends(row.mops),
        ratio,
        ratio_ends,
        percent((row.lookups > 0).then(|| row.hits as f64 / row.lookups as f64)),
    ]
}

pub(super) fn ends(mops: Interval) -> String {
    format!("{} – {}", figure(mops.low), figure(mops.high))
}

pub(super) fn median_and_ends(ratio: Option<Interval>) -> [String; 2] {
    match ratio {
        None => [NOTHING.into(), NOTHING.into()],
        Some(Interval { median, low, high }) => {
            [format!("{median:.2}"), format!("{low:.2} – {high:.2}")]
        }
    }
}

/// A throughput in million operations per second.
pub(super) fn figure(mops: f64) -> String {
    scale::three_digits(mops)
}

fn percent(share: Option<f64>) -> String {
    share.map_or(NOTHING.into(), |share| format!("{:.0} %", 100.0 * share))
}
