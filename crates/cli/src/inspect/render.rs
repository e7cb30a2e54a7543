//! The result as a table or as JSON.

use super::report::{FindingRow, NOTHING, Report, SEARCHED};
use crate::args::Format;
use crate::counters::PerOp;
use crate::error::Error;
use crate::output;
use comfy_table::Table;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prints the result.
pub fn print(report: &Report, format: Format) -> Result<(), Error> {
    match format {
        Format::Json => output::json(report),
        Format::Table => output::text(&text(report)),
        Format::Csv => {
            let problem = "an inspection has several tables: choose table or json";
            Err(Error::value("--format", problem))
        }
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The result for people.
pub fn text(report: &Report) -> String {
    let mut text = heading(report) + "\n";
    for (question, table) in answers(report) {
        let _ = write!(text, "\n{question}\n{table}\n");
    }
    findings(&mut text, report);
    if let Some((what, table)) = fixes(report) {
        let _ = write!(text, "\n{what}\n{table}\n");
    }
    text
}

/// What is asked of a layout, each with its answer.
pub fn answers(report: &Report) -> [(String, Table); 4] {
    [
        ("Which kind is in which size class?".into(), classes(report)),
        ("Who lives close to it? (shares of the bytes there)".into(), neighbours(report)),
        ("How does it spread over sets and pages?".into(), sets(report)),
        (model_heading(report), model(report)),
    ]
}

/// What was inspected.
pub fn heading(report: &Report) -> String {
    let config = &report.config;
    let host = if config.host.is_empty() {
        String::new()
    } else {
        format!(", beside {} for each key", config.host.join(", "))
    };
    format!(
        "{}, {} on {} pages, {} {} keys ({}){host}: {} bytes, {:.1} per key",
        config.index,
        config.placement,
        config.pages,
        config.keys,
        config.key_type,
        config.dist,
        config.bytes,
        config.bytes_per_key
    )
}

fn classes(report: &Report) -> Table {
    let mut table = output::table(&[
        "kind",
        "objects",
        "bytes",
        "class",
        "class in the study",
        "hot bytes",
        "in two lines",
        "lines/visit",
        "needed",
    ]);
    for kind in &report.kinds {
        table.add_row([
            kind.name.clone(),
            kind.objects.to_string(),
            format!("{:.0}", kind.bytes),
            format!("{:.0}", kind.class),
            kind.study_class.to_string(),
            format!("{:.0}", kind.hot_bytes),
            percent(kind.straddle_share),
            format!("{:.3}", kind.lines_per_visit),
            format!("{:.3}", kind.lines_needed),
        ]);
    }
    table
}

/// Shares of at least a thousandth, the largest first.
fn shares(shares: &BTreeMap<String, f64>) -> String {
    let mut kinds: Vec<(&String, f64)> = shares
        .iter()
        .filter(|(kind, share)| **share >= 0.001 && *kind != SEARCHED)
        .map(|(kind, share)| (kind, *share))
        .collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kinds: Vec<String> = kinds
        .iter()
        .take(4)
        .map(|(kind, share)| {
            let kind = if *kind == NOTHING { "nothing" } else { kind };
            format!("{kind} {}", percent(*share))
        })
        .collect();
    if kinds.is_empty() { "-".into() } else { kinds.join(", ") }
}

fn neighbours(report: &Report) -> Table {
    let mut table = output::table(&[
        "kind",
        "its lines hold",
        "read of them",
        "lines beside them hold",
        "useful beside",
        "its pages hold",
        "read of them",
    ]);
    let searched = |shares: &BTreeMap<String, f64>| shares.get(SEARCHED).copied().unwrap_or(0.0);
    for kind in report.kinds.iter().filter(|kind| kind.hot_bytes > 0.0) {
        table.add_row([
            kind.name.clone(),
            shares(&kind.in_lines),
            percent(searched(&kind.in_lines)),
            shares(&kind.in_neighbours),
            percent(kind.neighbour_useful_share),
            shares(&kind.in_pages),
            percent(searched(&kind.in_pages)),
        ]);
    }
    table
}

fn sets(report: &Report) -> Table {
    let mut table = output::table(&[
        "kind",
        "L1 sets",
        "L2 sets",
        "LLC sets",
        "expected",
        "usual stride",
        "4 KiB pages",
        "2 MiB regions",
        "pages in a run",
    ]);
    for kind in &report.kinds {
        table.add_row([
            kind.name.clone(),
            percent(kind.set_coverage_l1),
            percent(kind.set_coverage_l2),
            percent(kind.set_coverage),
            percent(kind.set_coverage_expected),
            kind.usual_stride().map_or_else(
                || "-".into(),
                |(stride, share)| format!("{stride} ({})", percent(share)),
            ),
            kind.pages_4k.to_string(),
            kind.regions_2m.to_string(),
            format!("{:.1}", kind.page_run),
        ]);
    }
    table
}

fn model_heading(report: &Report) -> String {
    let model = &report.model;
    format!(
        "What would {} make of it? ({} LLC sets by {}, {}adjacent lines fetched, {} pages; per lookup of \
         {})",
        model.machine,
        model.llc_sets,
        model.llc_hash,
        if model.adjacent_line_prefetch { "" } else { "no " },
        model.page_size,
        model.lookups
    )
}

fn model(report: &Report) -> Table {
    let model = &report.model;
    let mut table = output::table(&[
        "objects",
        "lines",
        "L1 misses",
        "L2 misses",
        "LLC misses",
        "fetched beside",
        "of use",
        "TLB misses",
        "page walks",
        "cycles",
    ]);
    let figures = [
        model.visits,
        model.lines,
        model.l1_misses,
        model.l2_misses,
        model.llc_misses,
        model.prefetched,
        model.prefetched_used,
        model.tlb_misses,
        model.page_walks,
    ];
    let figures = figures.map(|figure| format!("{figure:.2}"));
    table.add_row(figures.into_iter().chain([format!("{:.0}", model.cycles)]));
    table
}

/// What a finding's remedy would gain.
pub fn gain(row: &FindingRow) -> String {
    match row.predicted_gain {
        Some(gain) => format!("predicted gain {}", percent(gain)),
        None => "lookups alone do not show what it costs".into(),
    }
}

fn findings(text: &mut String, report: &Report) {
    let (paying, others): (Vec<_>, Vec<_>) = report.findings.iter().partition(|row| row.pays);
    if paying.is_empty() {
        text.push_str("\nNo findings that a remedy would pay for.\n");
    }
    for row in paying {
        let FindingRow { id, kind, evidence, remedy, .. } = row;
        let gain = gain(row);
        let _ = write!(text, "\n{id} ({kind}): {evidence}.\n  remedy: {remedy}; {gain}\n");
    }
    for row in others {
        let FindingRow { id, kind, evidence, remedy, .. } = row;
        let gain = gain(row);
        let _ = write!(
            text,
            "\n{id} ({kind}): {evidence}.\n  the remedy would not pay here: {remedy}; {gain}\n"
        );
    }
}

/// With `--fix`, what the remedies came to.
pub fn fixes(report: &Report) -> Option<(String, Table)> {
    let pairs = report.fixes.first()?.pairs;
    let counted = report.fixes.iter().flat_map(|fix| [&fix.counters_before, &fix.counters_after]);
    let counted = PerOp::known(counted.flatten());
    let mut header = vec!["remedy", "for", "predicted", "model", "seen", "interval", "left"];
    header.extend(counted.iter().map(|event| event.heading()));
    let mut table = output::table(&header);
    for fix in &report.fixes {
        let mut cells = vec![
            fix.remedy.clone(),
            fix.findings.join(", "),
            fix.predicted_gain.map_or_else(|| "-".into(), percent),
            percent(fix.model_gain),
            percent(fix.seen_gain),
            format!("{} to {}", percent(fix.seen_low), percent(fix.seen_high)),
            if fix.left.is_empty() { "-".into() } else { fix.left.join(", ") },
        ];
        cells.extend(counted.iter().map(|&event| {
            let counters = [fix.counters_before, fix.counters_after];
            let [before, after] = counters.map(|counters| {
                let count = counters.and_then(|counters| counters.get(event));
                count.map_or_else(|| "-".into(), |count| event.shown(count))
            });
            format!("{before} to {after}")
        }));
        table.add_row(cells);
    }
    let what = format!(
        "What the remedies came to, each alone: gain in cycles of the model, and in time per lookup \
         (median of {pairs} pairs of runs in turns)"
    );
    Some((what, table))
}
