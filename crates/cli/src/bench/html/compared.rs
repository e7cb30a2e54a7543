//! The comparison with a kept run: its warnings, and a table with a verdict for each row.

use crate::bench::render::compared;
use crate::bench::report::Report;
use crate::page::{Page, capital};

/// Adds the comparison, if there is one.
pub(super) fn section(page: &mut Page, report: &Report) {
    let Some(comparison) = &report.comparison else { return };
    page.heading(2, "compared", "Comparison");
    page.paragraph(&format!("This run is compared with the kept run `{}`.", comparison.baseline));
    let differences = compared::differences(comparison);
    if !differences.is_empty() {
        page.labelled("Measured otherwise", "a change may have one of these causes.");
        page.list(differences);
    }
    for sentence in compared::meaning(comparison) {
        page.paragraph(&format!("{}.", capital(&sentence)));
    }
    if let Some(table) = compared::table(comparison) {
        page.table(&table);
    }
    if let Some(sentence) = compared::too_few(comparison) {
        page.paragraph(&format!("{}.", capital(&sentence)));
    }
    for (which, ids) in compared::unpaired(comparison) {
        if !ids.is_empty() {
            page.paragraph(&format!("Rows that only {which} has:"));
            page.list(ids.iter().map(ToString::to_string));
        }
    }
}
