//! Evidence of the clock.

use super::EDGE_INT_LF;
use super::clock::{Subject, Times, measure};
use super::heap::Places;
use super::trees::{Lock, TREES, Tree};
use crate::flags::error::Error;
use crate::progress::Progress;
use crate::reproduce::evidence::{Evidence, Level};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::median;

/// The lines on all trees.
pub fn all(lab: &Lab, rows: usize) -> Result<Vec<Evidence>, Error> {
    let progress = Progress::new(TREES.len() + 1);
    let (mut lines, mut mixed, mut segregated) = (Vec::new(), Vec::new(), Vec::new());
    for tree in TREES {
        progress.doing(format!("{}: transactions", tree.name));
        let of = |places| Subject { tree: *tree, lock: Lock::Padded, places };
        let times = measure(lab, rows, &[of(Places::Mixed), of(Places::Segregated)])?;
        lines.extend(of_tree(tree.name, &times[0], &times[1]));
        mixed.push((tree.name, times[0].in_index()));
        segregated.push((tree.name, times[1].in_index()));
        progress.step();
    }
    for (places, order) in [(Places::Mixed, mixed), (Places::Segregated, segregated)] {
        let what = format!("order of the trees by their index time, {}", places.name());
        lines.push(Evidence::noted(Level::Clock, what, ordered(order)));
    }
    if let Some(tree) = Tree::named(EDGE_INT_LF) {
        progress.doing(format!("{EDGE_INT_LF}: locks without padding"));
        lines.extend(sharing(lab, rows, tree)?);
        progress.step();
    }
    Ok(lines)
}

/// The claim of the source on a tree's index time, if it has one.
fn claimed(tree: &str) -> &'static str {
    if tree == "occ-avl:fixed" { "121 → 108 s" } else { "faster" }
}

fn of_tree(tree: &str, mixed: &Times, segregated: &Times) -> Vec<Evidence> {
    let faster = |what: &str, claimed: &str, part: fn(&Times) -> &Vec<f64>| {
        let what = format!("{tree}: {what}, mixed / segregated");
        let us = |times| median(part(times)) / 1000.0;
        let figures = format!("({:.2} → {:.2} µs of a transaction)", us(mixed), us(segregated));
        Evidence::faster(what, claimed, mixed.over(segregated, part)).with(&figures)
    };
    vec![
        faster("time in the index", claimed(tree), |times| &times.index),
        faster("time of transactions", "up to 20 %", |times| &times.all),
        database(tree, mixed, segregated),
    ]
}

/// A line on the database's own time, of which the source says little.
fn database(tree: &str, mixed: &Times, segregated: &Times) -> Evidence {
    let ratio = mixed.over(segregated, |times| &times.database);
    let us = |times: &Times| median(&times.database) / 1000.0;
    let found = format!(
        "{:.2} ({:.2} – {:.2}) ({:.2} → {:.2} µs; {:.4} → {:.4} aborts of a transaction)",
        ratio.median,
        ratio.low,
        ratio.high,
        us(mixed),
        us(segregated),
        mixed.aborts,
        segregated.aborts
    );
    let what = format!("{tree}: time in the database, mixed / segregated");
    Evidence::noted(Level::Clock, what, found)
}

/// The names of trees with their times, the fastest first.
fn ordered(mut trees: Vec<(&str, f64)>) -> String {
    trees.sort_by(|a, b| a.1.total_cmp(&b.1));
    let name = |name: &str| name.split(':').next().unwrap_or(name).to_owned();
    let of = |(tree, ns): &(&str, f64)| format!("{} {:.1} µs", name(tree), ns / 1000.0);
    trees.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The lines on a tree whose nodes hide that locks share lines.
fn sharing(lab: &Lab, rows: usize, tree: Tree) -> Result<Vec<Evidence>, Error> {
    let of = |places, lock| Subject { tree, lock, places };
    let subjects = [
        of(Places::Mixed, Lock::Bare),
        of(Places::Segregated, Lock::Bare),
        of(Places::Segregated, Lock::Padded),
    ];
    let times = measure(lab, rows, &subjects)?;
    let line = |what: &str, claimed, slow: &Times, fast: &Times| {
        let what = format!("{EDGE_INT_LF}: time in the database, {what}");
        let ratio = slow.over(fast, |times| &times.database);
        let us = |times: &Times| median(&times.database) / 1000.0;
        let figures = format!("({:.2} and {:.2} µs of a transaction)", us(slow), us(fast));
        Evidence::faster(what, claimed, ratio).with(&figures)
    };
    let [mixed, segregated, padded] = [&times[0], &times[1], &times[2]];
    Ok(vec![
        line("locks of 48 bytes, segregated / mixed", "58 → 67 s", segregated, mixed),
        line(
            "segregated, locks of 48 / 192 bytes",
            "padding takes the loss back",
            segregated,
            padded,
        ),
    ])
}
