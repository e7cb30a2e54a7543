//! Evidence of the clock.

use super::EDGE_INT_LF;
use super::clock::{Subject, measure};
use crate::flags::error::Error;
use crate::progress::Progress;
use crate::reproduce::bst::placed::clock::Times;
use crate::reproduce::bst::placed::heap::Places;
use crate::reproduce::bst::placed::times::{Claims, Order, of_tree};
use crate::reproduce::bst::placed::trees::{Lock, TREES, Tree};
use crate::reproduce::evidence::Evidence;
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::median;

/// The lines on all trees.
pub fn all(lab: &Lab, rows: usize) -> Result<Vec<Evidence>, Error> {
    let progress = Progress::new(TREES.len() + 1);
    let (mut lines, mut order) = (Vec::new(), Order::default());
    for tree in TREES {
        progress.doing(format!("{}: transactions", tree.name));
        let of = |places| Subject { tree: *tree, lock: Lock::Padded, places };
        let times = measure(lab, rows, &[of(Places::Mixed), of(Places::Segregated)])?;
        let times = [&times[0], &times[1]];
        lines.extend(of_tree(tree.name, claims(tree.name), times));
        order.add(tree.name, times);
        progress.step();
    }
    lines.extend(order.lines());
    if let Some(tree) = Tree::named(EDGE_INT_LF) {
        progress.doing(format!("{EDGE_INT_LF}: locks without padding"));
        lines.extend(sharing(lab, rows, tree)?);
        progress.step();
    }
    Ok(lines)
}

/// The claims of the source on a tree.
fn claims(tree: &str) -> Claims {
    let index = if tree == "occ-avl:fixed" { "121 → 108 s" } else { "faster" };
    Claims { index, all: "up to 20 %", database: None }
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
