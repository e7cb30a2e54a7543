//! bst/1.2: the microbenchmark on the fixed trees of the study.

use crate::bench::report::{Report, Row};
use crate::drive::stats::Interval;
use crate::flags::error::Error;
use crate::flags::units::Bytes;
use crate::host::memory;
use crate::reproduce::evidence::{Evidence, Level, Verdict};
use crate::reproduce::lab::{Lab, Runs};
use crate::reproduce::plan::Plan;

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

/// The other mixes, with the share of comparisons that must come out as with lookups alone: "almost
/// perfectly", and "most".
const MIXES: [(&str, f64); 2] = [("90/5/5", 0.9), ("70/15/15", 0.5)];

/// The larger of the source's sizes, for which it states the order of the trees.
const LARGE: usize = 10_000_000;
/// The smaller of the source's sizes, for which mixes are compared as well.
const MEDIUM: usize = 1_000_000;
/// A size that is not the source's, which any machine can measure by the clock.
const SMALL: usize = 100_000;
/// The multiple of this machine's last level that nodes must fill before misses determine the order
/// of the trees.
const BEYOND: usize = 4;

/// bst/1.2.
pub fn mixes(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if !lab.wants(Level::Clock) {
        return Ok(lines);
    }
    let mut sizes = [SMALL, MEDIUM].map(|keys| lab.plan.keys(keys)).to_vec();
    sizes.dedup();
    let (mut largest, mut bytes) = (0, 0);
    for keys in sizes {
        let report = bench(lab, keys)?;
        lines.extend(judge(lab, keys, &report));
        (largest, bytes) = (keys, bytes_of(&report, keys).iter().sum());
    }
    if largest < LARGE {
        match too_large(&lab.plan, largest, bytes, memory::available()) {
            Some(why) => lines.push(Evidence::missing(Level::Clock, ORDER.into(), why)),
            None => lines.extend(judge(lab, LARGE, &bench(lab, LARGE)?)),
        }
    }
    Ok(lines)
}

const ORDER: &str = "10 M keys: the order of the four classes, and of trees in other mixes";

fn bench(lab: &Lab, keys: usize) -> Result<Report, Error> {
    let mixes: Vec<&str> = MIXES.iter().map(|(mix, _)| *mix).collect();
    let (indexes, mixes) = (CLASSES.concat(), format!("{LOOKUPS},{}", mixes.join(",")));
    lab.bench(&Runs::of(lab, &indexes, keys, &mixes))
}

/// The reason why the trees of the source's size are not run, after smaller ones that took `bytes`,
/// if they are not.
fn too_large(plan: &Plan, keys: usize, bytes: usize, available: Option<usize>) -> Option<String> {
    if plan.keys.is_some() {
        return Some(format!("--keys asks for {keys}: leave it out, or give it 10M or more"));
    }
    if plan.quick {
        return Some("--quick leaves it out, as it takes minutes: run it without".into());
    }
    // Memory that updates retire is added to that.
    let needed = bytes / keys.max(1) * LARGE / 4 * 5;
    let problem = match available {
        Some(available) if needed <= available => return None,
        Some(available) => format!("{} are available", Bytes(available)),
        None => "the system does not tell how much is available".into(),
    };
    let needed = Bytes(needed);
    Some(format!(
        "it needs about {needed} of memory and {problem}: --keys 10M runs it all the same"
    ))
}

/// The memory of each tree.
fn bytes_of(report: &Report, keys: usize) -> Vec<usize> {
    let lookups = report.results.iter().filter(|row| row.mix == LOOKUPS);
    let of_key = lookups.filter_map(|row| row.footprint.bytes_per_key);
    of_key.map(|bytes| (bytes * keys as f64) as usize).collect()
}

fn judge(lab: &Lab, keys: usize, report: &Report) -> Vec<Evidence> {
    let of = |mix: &str| report.results.iter().filter(|row| row.mix == mix).collect();
    let lookups: Vec<&Row> = of(LOOKUPS);
    let least = bytes_of(report, keys).into_iter().min().unwrap_or(0);
    let classes = CLASSES.windows(2).filter_map(|pair| {
        let ratio = over(&lookups, pair[0], pair[1])?;
        let what = format!("{keys} keys, lookups: {} / {}", names(pair[0]), names(pair[1]));
        let line = lab.clocked(what, "faster with 10 M items", keys, ratio);
        Some(if keys < LARGE { line.aside() } else { beyond(line, least, keys, lab.last_level()) })
    });
    let kept = MIXES.map(|(mix, wanted)| {
        let line = kept(keys, mix, wanted, &lookups, &of(mix));
        if keys < MEDIUM { line.aside() } else { line }
    });
    classes.chain(kept).collect()
}

/// A line on an order of trees, which the verdict depends on. If the last level holds much of the
/// smallest tree, then an order that is not seen says nothing.
fn beyond(line: Evidence, least: usize, keys: usize, llc: usize) -> Evidence {
    let line = line.deciding();
    if line.verdict != Verdict::NotSeen || least >= BEYOND * llc {
        return line;
    }
    let millions = (keys * BEYOND * llc / least.max(1)).div_ceil(1_000_000);
    let (least, llc) = (Bytes(least), Bytes(llc));
    let why = format!(
        "(the smallest tree has {least}, the last level {llc}: --keys {millions}M makes it {BEYOND} times \
         as much)"
    );
    Evidence { verdict: Verdict::CannotBeShown, ..line.with(&why) }
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

/// Whether the first tree is faster than the second, if the samples can tell.
fn order(a: &Row, b: &Row) -> Option<bool> {
    let pairs = a.samples.iter().zip(&b.samples);
    let ratio = Interval::of(&pairs.map(|(a, b)| a / b).collect::<Vec<_>>())?;
    (ratio.low > 1.0 || ratio.high < 1.0).then_some(ratio.median > 1.0)
}

/// A line on the number of comparisons that come out the same in another mix, among pairs of trees
/// that lookups alone can tell apart.
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

#[cfg(test)]
mod tests {
    use super::super::tests::lab;
    use super::*;
    use crate::reproduce::evidence::verdict;

    #[test]
    fn large_trees_are_left_out_for_a_reason_and_with_a_remedy() {
        let quick = lab().plan;
        let plan = Plan { quick: false, ..quick.clone() };
        let keys = Plan { keys: Some(2000), ..plan.clone() };
        let of = |plan: &Plan, available| too_large(plan, 1_000_000, 640 << 20, available);
        let has = |why: Option<String>, part: &str| why.is_some_and(|why| why.contains(part));
        assert!(has(of(&quick, None), "without"));
        assert!(has(of(&keys, None), "give it 10M"));
        assert!(has(of(&plan, None), "does not tell"));
        assert!(has(of(&plan, Some(4 << 30)), "4 GiB are available: --keys 10M"));
        assert_eq!(of(&plan, Some(8 << 30)), None);
    }

    #[test]
    fn an_order_that_is_not_seen_needs_trees_that_no_cache_holds() {
        let line = |low, high| {
            let ratio = Interval { median: 1.0, low, high };
            beyond(Evidence::faster("order".into(), "faster", ratio), 400 << 20, LARGE, 260 << 20)
        };
        let held = line(0.9, 1.1);
        assert_eq!(verdict(std::slice::from_ref(&held)), Verdict::CannotBeShown);
        assert!(held.found.contains("--keys 26M"), "{held:?}");
        // A ratio on one side of 1 decides, however large the cache.
        assert_eq!(verdict(&[line(1.1, 1.2)]), Verdict::Confirmed);
        assert_eq!(verdict(&[line(0.8, 0.9)]), Verdict::Contradicted);
        let ratio = Interval { median: 1.0, low: 0.9, high: 1.1 };
        let line = Evidence::faster("order".into(), "faster", ratio);
        assert_eq!(verdict(&[beyond(line, 400 << 20, LARGE, 30 << 20)]), Verdict::NotSeen);
    }
}
