//! The comparison with a kept run, as text.

use crate::bench::comparison::Comparison;
use crate::bench::kept::RowId;
use crate::bench::ratio::{NEEDED, Verdict};
use crate::flags::units::{count, percent, probability};
use crate::output;
use crate::terminal::{BAD, GOOD};
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &["pages", "dist", "interval", "batch", "keys", "placement"];

/// A column of a row's key that is shown only if rows differ in it, or always.
type Column = (&'static str, bool, fn(&RowId) -> String);

const COLUMNS: [Column; 9] = [
    ("index", true, |id| id.index.clone()),
    ("placement", false, |id| id.placement.clone()),
    ("pages", false, |id| id.pages.clone()),
    ("keys", false, |id| count(id.keys)),
    ("dist", false, |id| id.dist.clone()),
    ("threads", false, |id| id.threads.to_string()),
    ("mix", true, |id| id.mix.clone()),
    ("scans", false, |id| {
        let length = id.scan_length.map_or_else(String::new, |length| format!(" {length}"));
        id.scan_by.as_ref().map_or_else(String::new, |by| format!("{by}{length}"))
    }),
    ("batch", false, |id| id.batch.to_string()),
];

/// The text of a comparison.
pub(super) fn text(comparison: &Comparison) -> String {
    let Comparison { baseline, rows, noise, .. } = comparison;
    let mut text = format!("\ncompared with the kept run `{baseline}`\n");
    if !comparison.differences.is_empty() {
        let all: Vec<String> = comparison.differences.iter().map(ToString::to_string).collect();
        _ = writeln!(text, "measured otherwise: {}", all.join("; "));
    }
    if let Some(first) = rows.first() {
        let coverages = || rows.iter().map(|row| row.ratio.coverage);
        let coverage = coverages().fold(1.0, f64::min);
        let more = if coverages().any(|of| of > coverage) { " or more" } else { "" };
        _ = writeln!(
            text,
            "ratio: median of this run over that of the kept one, and an interval that covers the \
             factor between them with {} %{more} (order statistics of the ratios of all rounds)",
            probability(coverage)
        );
        _ = writeln!(
            text,
            "faster, slower: the whole interval is beyond a change of {} %",
            percent(*noise)
        );
        let shown = COLUMNS.iter().filter(|(_, always, of)| {
            *always || rows.iter().any(|row| of(&row.id) != of(&first.id))
        });
        let shown: Vec<&Column> = shown.collect();
        let names = shown.iter().map(|(name, ..)| *name);
        let header: Vec<&str> = names.chain(["ratio", "interval", "verdict"]).collect();
        let mut table = output::table(&header).drops(DROPPED);
        for (at, row) in rows.iter().enumerate() {
            let mut cells: Vec<String> = shown.iter().map(|(_, _, of)| of(&row.id)).collect();
            cells.extend(super::median_and_ends(Some(row.ratio.interval)));
            cells.push(row.verdict.name().into());
            table.add_row(cells);
            match row.verdict {
                Verdict::Faster => table.style(at, GOOD),
                Verdict::Slower => table.style(at, BAD),
                Verdict::NoChangeSeen | Verdict::TooFewRounds => {}
            }
        }
        let figures = shown.len();
        for column in table.column_iter_mut().skip(figures).take(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        _ = writeln!(text, "{table}");
    }
    if rows.iter().any(|row| row.verdict == Verdict::TooFewRounds) {
        _ = writeln!(
            text,
            "too few rounds: an interval of less than {:.0} % decides nothing; four rounds in both \
             runs suffice",
            100.0 * NEEDED
        );
    }
    for (which, ids) in
        [("this run", &comparison.only_here), ("the kept run", &comparison.only_in_baseline)]
    {
        for id in ids {
            _ = writeln!(text, "only in {which}: {id}");
        }
    }
    text
}
