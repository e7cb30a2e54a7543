//! Tables of latencies.

use super::NOTHING;
use crate::bench::latency::{Latency, SHOWN};
use crate::bench::report::Row;
use crate::output;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &["pages", "samples", "mean", "p90", "p99.9", "placement"];
/// The columns that say what a row is about.
const NAMES: &[&str] = &["index", "placement", "pages", "verb", "keys"];

/// The table of the latencies of some rows, under a heading. Empty if none were measured.
pub(super) fn table(rows: &[&Row]) -> String {
    if rows.iter().all(|row| row.latency.is_empty()) {
        return String::new();
    }
    let mut text = format!("\nlatency in ns{}", clock(rows));
    if let Some(loops) = loops(rows) {
        _ = write!(text, "\n{loops}");
    }
    let names = SHOWN.map(|percentile| format!("p{percentile}"));
    let mut header = vec!["index", "placement", "pages", "verb", "keys", "samples", "mean"];
    header.extend(names.iter().map(String::as_str));
    header.push("max");
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
    for row in rows {
        for latency in &row.latency {
            table.add_row(cells(row, latency));
        }
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    _ = writeln!(text, "\n{table}");
    text
}

/// The cost of the clock in some rows of one configuration, by verb: the end of a sentence.
pub(in crate::bench) fn clock(rows: &[&Row]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for latency in rows.iter().flat_map(|row| &row.latency) {
        let Some(clock) = latency.clock_ns else { continue };
        let part = format!("{clock} ({})", latency.verb);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("; of each time, the clock and its loop take {}", parts.join(", "))
}

/// The keys of a sample, and its calls if these are several.
pub(in crate::bench) fn keys(latency: &Latency) -> String {
    match (latency.keys, latency.calls) {
        (None, _) => "all".into(),
        (Some(keys), 1) => keys.to_string(),
        (Some(keys), calls) => format!("{keys} in {calls} calls"),
    }
}

/// A sentence about samples of several calls, if there are any.
pub(in crate::bench) fn loops(rows: &[&Row]) -> Option<&'static str> {
    let has_loops = rows.iter().flat_map(|row| &row.latency).any(|latency| latency.calls > 1);
    has_loops.then_some(
        "a time is that of a whole batch: a library without a call for batches makes one call after \
         the other",
    )
}

fn cells(row: &Row, latency: &Latency) -> Vec<String> {
    let footprint = &row.footprint;
    let mut cells = vec![
        row.key.index.clone(),
        row.key.placement.into(),
        footprint.pages_given.clone().unwrap_or_else(|| row.key.pages.clone()),
        latency.verb.into(),
        keys(latency),
        latency.samples.to_string(),
        format!("{:.0}", latency.mean_ns),
    ];
    let shown =
        SHOWN.map(|percentile| latency.at(percentile).map_or(NOTHING.into(), |ns| ns.to_string()));
    cells.extend(shown);
    cells.push(latency.max_ns.to_string());
    cells
}
