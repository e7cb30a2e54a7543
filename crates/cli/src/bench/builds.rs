//! The gain of fixing the study's oversights: each tree's `fixed` build against its `baseline`.
//!
//! As for all ratios, runs of the same round are compared. The geometric mean over the trees is
//! also taken per round, so that its interval is one of rounds.

use super::report::{BuildRatio, Row};
use crate::drive::stats::Interval;

/// The ratios of all trees whose two builds were measured. After the ratios of a configuration
/// comes their geometric mean.
pub fn ratios(rows: &[Row]) -> Vec<BuildRatio> {
    let mut found = Vec::new();
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|row| alike(row, first)).count();
        let (config, others) = rest.split_at(same);
        let mut places: Vec<_> = config.iter().map(|row| place(row)).collect();
        places.sort_unstable();
        places.dedup();
        for of in places {
            let rows: Vec<&Row> = config.iter().filter(|row| place(row) == of).collect();
            found.extend(of_place(&rows));
        }
        rest = others;
    }
    found
}

/// Whether two rows have the same configuration.
fn alike(a: &Row, b: &Row) -> bool {
    let of = |row: &Row| (row.key.cell, row.threads, row.batch, row.scan_by, row.scan_length);
    of(a) == of(b) && a.mix == b.mix
}

fn place(row: &Row) -> (&'static str, &str) {
    (row.key.placement, &row.key.pages)
}

/// The ratios of one configuration in one place.
fn of_place(rows: &[&Row]) -> Vec<BuildRatio> {
    let mut found = Vec::new();
    let mut logarithms: Vec<Vec<f64>> = Vec::new();
    let build = |index: &str, variant| {
        rows.iter().find(|row| row.key.variant == variant && tree_of(row) == index)
    };
    for fixed in rows.iter().filter(|row| row.key.variant == "fixed") {
        let Some(baseline) = build(tree_of(fixed), "baseline") else { continue };
        let pairs = fixed.samples.iter().zip(&baseline.samples);
        let samples: Vec<f64> = pairs.map(|(fixed, baseline)| fixed / baseline).collect();
        logarithms.push(samples.iter().map(|ratio| ratio.ln()).collect());
        found.extend(ratio(fixed, Some(tree_of(fixed).into()), 1, &samples));
    }
    let trees = logarithms.len();
    if trees > 1 {
        let rounds = logarithms.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |round: usize| logarithms.iter().map(|tree| tree[round]).sum::<f64>();
        let samples: Vec<f64> =
            (0..rounds).map(|round| (mean(round) / trees as f64).exp()).collect();
        found.extend(ratio(rows[0], None, trees, &samples));
    }
    found
}

fn ratio(row: &Row, index: Option<String>, trees: usize, samples: &[f64]) -> Option<BuildRatio> {
    Some(BuildRatio {
        cell: row.key.cell,
        index,
        trees,
        placement: row.key.placement,
        pages: row.key.pages.clone(),
        threads: row.threads,
        mix: row.mix.clone(),
        batch: row.batch,
        scan_by: row.scan_by,
        scan_length: row.scan_length,
        ratio: Interval::of(samples)?,
    })
}

/// The name of a row's index without its variant.
fn tree_of(row: &Row) -> &str {
    let suffix = row.key.variant.len() + 1;
    let (name, end) = row.key.index.split_at(row.key.index.len().saturating_sub(suffix));
    if end.strip_prefix(':') == Some(row.key.variant) { name } else { &row.key.index }
}
