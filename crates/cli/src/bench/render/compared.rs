//! The comparison with a kept run: its text, and the parts that the page also has.

use crate::bench::comparison::Comparison;
use crate::bench::kept::RowId;
use crate::bench::ratio::{NEEDED, Verdict};
use crate::flags::units::{count, percent, probability};
use crate::output;
use crate::table::Table;
use crate::terminal::{BAD, GOOD};
use comfy_table::CellAlignment;
use std::fmt::Write as _;

/// The columns that a narrow terminal does not show, the first ones first.
const DROPPED: &[&str] = &["pages", "dist", "interval", "batch", "keys", "placement"];

/// The columns that say what a row is about: those of [`COLUMNS`].
const NAMES: &[&str] =
    &["index", "placement", "pages", "keys", "dist", "threads", "mix", "scans", "batch"];

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
    let mut text = format!("\ncompared with the kept run `{}`\n", comparison.baseline);
    if !comparison.differences.is_empty() {
        _ = writeln!(text, "measured otherwise: {}", differences(comparison).join("; "));
    }
    for sentence in meaning(comparison) {
        _ = writeln!(text, "{sentence}");
    }
    if let Some(table) = table(comparison) {
        _ = writeln!(text, "{table}");
    }
    if let Some(sentence) = too_few(comparison) {
        _ = writeln!(text, "{sentence}");
    }
    for (which, ids) in unpaired(comparison) {
        for id in ids {
            _ = writeln!(text, "only in {which}: {id}");
        }
    }
    text
}

/// The facts in which the runs differ.
pub(in crate::bench) fn differences(comparison: &Comparison) -> Vec<String> {
    comparison.differences.iter().map(ToString::to_string).collect()
}

/// The meaning of the columns of [`table`], if there is one.
pub(in crate::bench) fn meaning(comparison: &Comparison) -> Vec<String> {
    let coverages = || comparison.rows.iter().map(|row| row.ratio.coverage);
    let coverage = coverages().fold(1.0, f64::min);
    let more = if coverages().any(|of| of > coverage) { " or more" } else { "" };
    if comparison.rows.is_empty() {
        return Vec::new();
    }
    vec![
        format!(
            "ratio: median of this run over that of the kept one, and an interval that covers the \
             factor between them with {} %{more} (order statistics of the ratios of all rounds)",
            probability(coverage)
        ),
        format!(
            "faster, slower: the whole interval is beyond a change of {} %",
            percent(comparison.noise)
        ),
    ]
}

/// The rows that both runs have. `None` if there are none.
pub(in crate::bench) fn table(comparison: &Comparison) -> Option<Table> {
    let rows = &comparison.rows;
    let first = rows.first()?;
    let shown = COLUMNS
        .iter()
        .filter(|(_, always, of)| *always || rows.iter().any(|row| of(&row.id) != of(&first.id)));
    let shown: Vec<&Column> = shown.collect();
    let names = shown.iter().map(|(name, ..)| *name);
    let header: Vec<&str> = names.chain(["ratio", "interval", "verdict"]).collect();
    let mut table = output::table(&header).drops(DROPPED).names(NAMES);
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
    Some(table)
}

/// The remedy for rows without a verdict, if there are any.
pub(in crate::bench) fn too_few(comparison: &Comparison) -> Option<String> {
    let is_open = comparison.rows.iter().any(|row| row.verdict == Verdict::TooFewRounds);
    is_open.then(|| {
        format!(
            "too few rounds: an interval of less than {:.0} % decides nothing; four rounds in both \
             runs suffice",
            100.0 * NEEDED
        )
    })
}

/// The rows that only one of the runs has, with the name of that.
pub(in crate::bench) fn unpaired(comparison: &Comparison) -> [(&'static str, &[RowId]); 2] {
    [("this run", &comparison.only_here), ("the kept run", &comparison.only_in_baseline)]
}
