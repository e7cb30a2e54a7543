//! Tables of latencies.

use super::NOTHING;
use crate::bench::latency::{Latency, SHOWN};
use crate::bench::report::Row;
use crate::output;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &["pages", "calls", "mean", "p90", "p99.9", "placement"];

/// The table of the latencies of some rows, under a heading. Empty if none were measured.
pub(super) fn table(rows: &[&Row], clock_ns: Option<f64>) -> String {
    if rows.iter().all(|row| row.latency.is_empty()) {
        return String::new();
    }
    let mut text = "\nlatency of each call in ns".to_owned();
    if let Some(clock) = clock_ns {
        _ = write!(text, " (each contains the {clock:.0} ns of the clock and its loop)");
    }
    let names = SHOWN.map(|percentile| format!("p{percentile}"));
    let mut header = vec!["index", "placement", "pages", "verb", "calls", "mean"];
    header.extend(names.iter().map(String::as_str));
    header.push("max");
    let mut table = output::table(&header).drops(DROPPED);
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

fn cells(row: &Row, latency: &Latency) -> Vec<String> {
    let footprint = &row.footprint;
    let mut cells = vec![
        row.key.index.clone(),
        row.key.placement.into(),
        footprint.pages_given.clone().unwrap_or_else(|| row.key.pages.clone()),
        latency.verb.into(),
        latency.samples.to_string(),
        format!("{:.0}", latency.mean_ns),
    ];
    let shown =
        SHOWN.map(|percentile| latency.at(percentile).map_or(NOTHING.into(), |ns| ns.to_string()));
    cells.extend(shown);
    cells.push(latency.max_ns.to_string());
    cells
}
