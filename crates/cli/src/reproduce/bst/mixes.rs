//! bst/1.2: the microbenchmark on the trees of the study, mended.

use crate::bench::report::Row;
use crate::bench::stats::Interval;
use crate::error::Error;
use crate::reproduce::evidence::{Evidence, Level, Verdict};
use crate::reproduce::lab::Lab;

/// The source's classes of trees, the fastest first.
const CLASSES: [&[&str]; 4] = [
    &["occ-avl:fixed", "occ-avl-2:fixed"],
    &[
        "log-int:fixed",
        "edge-int-lf:fixed",
        "citrus:fixed",
        "int-lf:fixed",
        "edge-ext-lf-2:fixed",
        "edge-ext-lf:fixed",
    ],
    &["ticket:fixed"],
    &["ext-lf:fixed"],
];

const LOOKUPS: &str = "100/0/0";

/// Other mixes, with the share of comparisons that must be as with lookups alone: "almost perfectly", and
/// "most".
const MIXES: [(&str, f64); 2] = [("90/5/5", 0.9), ("70/15/15", 0.5)];

/// The sizes of trees in a clock's reach: a hundredth and a tenth of the source's.
const SIZES: [usize; 2] = [100_000, 1_000_000];

/// bst/1.2.
pub fn mixes(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if !lab.wants(Level::Clock) {
        return Ok(lines);
    }
    let mut sizes = SIZES.map(|keys| lab.plan.keys(keys)).to_vec();
    sizes.dedup();
    for keys in sizes {
        let mixes: Vec<&str> = MIXES.iter().map(|(mix, _)| *mix).collect();
        let mixes = format!("{LOOKUPS},{}", mixes.join(","));
        let report = lab.bench(&CLASSES.concat(), keys, &mixes)?;
        let of = |mix: &str| report.results.iter().filter(|row| row.mix == mix).collect();
        let lookups: Vec<&Row> = of(LOOKUPS);
        for pair in CLASSES.windows(2) {
            let Some(ratio) = over(&lookups, pair[0], pair[1]) else { continue };
            let (faster, slower) = (names(pair[0]), names(pair[1]));
            let what = format!("{keys} keys, lookups: {faster} / {slower}");
            lines.push(lab.clocked(what, "faster with 10 M items", keys, ratio).deciding());
        }
        for (mix, wanted) in MIXES {
            lines.push(kept(keys, mix, wanted, &lookups, &of(mix)));
        }
    }
    Ok(lines)
}

fn names(class: &[&str]) -> String {
    let names: Vec<&str> = class.iter().map(|name| name.trim_end_matches(":fixed")).collect();
    match names[..] {
        [name] => name.into(),
        _ => format!("({})", names.join(", ")),
    }
}

/// The geometric mean of some trees' throughput over that of others, round by round.
fn over(rows: &[&Row], class: &[&str], other: &[&str]) -> Option<Interval> {
    let rounds = rows.iter().map(|row| row.samples.len()).min()?;
    let mean = |class: &[&str], round: usize| {
        let of_class = rows.iter().filter(|row| class.contains(&row.key.index.as_str()));
        let logarithms = of_class.map(|row| row.samples[round].ln());
        logarithms.sum::<f64>() / class.len() as f64
    };
    let ratios = (0..rounds).map(|round| (mean(class, round) - mean(other, round)).exp());
    Interval::of(&ratios.collect::<Vec<_>>())
}

/// Which of two trees is the faster one, where that can be told.
fn order(a: &Row, b: &Row) -> Option<bool> {
    let pairs = a.samples.iter().zip(&b.samples);
    let ratio = Interval::of(&pairs.map(|(a, b)| a / b).collect::<Vec<_>>())?;
    (ratio.low > 1.0 || ratio.high < 1.0).then_some(ratio.median > 1.0)
}

/// How many comparisons of two trees that lookups decide come out alike in another mix.
fn kept(keys: usize, mix: &str, wanted: f64, lookups: &[&Row], mixed: &[&Row]) -> Evidence {
    let (mut told, mut alike) = (0, 0);
    for (at, a) in lookups.iter().enumerate() {
        for b in &lookups[..at] {
            let Some(faster) = order(a, b) else { continue };
            let other = |row: &Row| mixed.iter().find(|of| of.key.index == row.key.index);
            let Some((a, b)) = other(a).zip(other(b)) else { continue };
            told += 1;
            alike += usize::from((a.mops.median > b.mops.median) == faster);
        }
    }
    let what =
        format!("{keys} keys, {mix}: comparisons of two trees that are as with lookups alone");
    if told == 0 {
        let why = "lookups alone tell no two trees apart".into();
        return Evidence::missing(Level::Clock, what, why);
    }
    let share = alike as f64 / told as f64;
    Evidence {
        level: Level::Clock,
        what,
        expected: format!("at least {:.0} %", 100.0 * wanted),
        found: format!("{:.0} % of {told}", 100.0 * share),
        value: Some(share),
        verdict: match share {
            _ if share >= wanted => Verdict::Confirmed,
            _ if share >= 0.5 => Verdict::NotSeen,
            _ => Verdict::Contradicted,
        },
        decides: true,
    }
}
