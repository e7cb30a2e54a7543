//! Evidence of facts and of the model.

use super::facts::Facts;
use super::heap::{NODE, OF_ROWS};
use super::model::Modelled;
use super::trees::Lock;
use super::{Both, EDGE_INT_LF, OCC_AVL_2};
use crate::drive::replayed::Misses;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;

/// The lines on one tree with padded locks.
pub fn of_tree(lab: &Lab, both: &Both) -> Vec<Evidence> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(of_places(both));
    }
    if lab.wants(Level::Model) {
        lines.extend(of_model(both));
    }
    lines
}

/// Half, with a tolerance for the nodes that are there before the first row, and for the last page.
const HALF: f64 = 0.51;
/// The least regions of which a half can be told from a whole.
const REGIONS: usize = 4;
/// The tolerance of a share of pages.
const PAGES: f64 = 0.01;

/// The lines on the places of a tree's nodes.
pub fn of_places(both: &Both) -> Vec<Evidence> {
    let Both { tree, mixed, segregated, .. } = both;
    let (mixed, segregated) = (&mixed.facts, &segregated.facts);
    let mut lines = vec![order(both)];
    lines.push(pages(tree, mixed, segregated));
    let what = format!("{tree}: regions of 2 MiB with nodes, segregated / mixed");
    let regions = [mixed, segregated].map(|facts| facts.regions);
    let few = format!("{} regions are too few: give it more --keys", mixed.regions);
    let line = part(what, regions, Expected::AtMost(HALF, 1.0));
    lines.push(line.unless((mixed.regions < REGIONS).then_some(few)));
    let what = format!("{tree}: mean run of neighbouring pages with nodes, segregated / mixed");
    let grown = segregated.run / mixed.run.max(f64::MIN_POSITIVE);
    let figures = format!("({:.1} → {:.1})", mixed.run, segregated.run);
    let line = Evidence::fact(what, Unit::Number(1), Expected::AtLeast(5.0, 1.0), grown);
    lines.push(line.with(&figures));
    lines.push(locks(both));
    lines
}

/// The locks for each line, in both places.
fn locks(both: &Both) -> Evidence {
    let expected = match both.lock {
        Lock::Padded => Expected::exactly(1.0),
        Lock::Bare => Expected::about(4.0 / 3.0, 0.01),
    };
    let (mixed, segregated) = (both.mixed.facts.locks, both.segregated.facts.locks);
    let what = format!(
        "{}: locks of {} bytes for each line with locks, segregated",
        both.tree,
        both.lock.bytes()
    );
    let line = Evidence::fact(what, Unit::Number(2), expected, segregated.per_line);
    line.with(&format!("(mixed: {:.2})", mixed.per_line))
}

/// A line on a count in both places, as a part.
fn part(what: String, [before, after]: [usize; 2], expected: Expected) -> Evidence {
    let figures = format!("({before} → {after})");
    let part = after as f64 / before.max(1) as f64;
    Evidence::fact(what, Unit::Number(2), expected, part).with(&figures)
}

/// The size classes of the objects that an insertion allocates.
fn order(both: &Both) -> Evidence {
    let classes = [64, 128, 64, both.lock.bytes(), 32];
    let of_row: Vec<(&str, usize)> = OF_ROWS.into_iter().zip(classes).collect();
    let text = |objects: &[(&str, usize)]| {
        let objects = objects.iter().map(|(kind, class)| format!("{kind} {class}"));
        objects.collect::<Vec<_>>().join(", ")
    };
    let is_right = |facts: &Facts| {
        let row = facts.order.iter().take(of_row.len());
        let nodes = facts.order.iter().skip(of_row.len());
        row.eq(of_row.iter()) && nodes.clone().any(|(kind, _)| *kind == NODE)
    };
    let (mixed, segregated) = (&both.mixed.facts, &both.segregated.facts);
    let holds = is_right(mixed) && is_right(segregated);
    let expected = format!("{}, then nodes", text(&of_row));
    let what = format!("{}: size classes of what an insertion allocates, in order", both.tree);
    Evidence::plain(what, expected, text(&mixed.order), holds)
}

/// The pages with nodes. Without database objects in their size classes, nodes lie on as many pages
/// in both places. With some, the pages fall to the nodes' share of their classes.
fn pages(tree: &str, mixed: &Facts, segregated: &Facts) -> Evidence {
    let what = format!("{tree}: pages of 4 KiB with nodes, segregated / mixed");
    let pages = [mixed.pages, segregated.pages];
    if mixed.share <= HALF {
        return part(what, pages, Expected::AtMost(HALF, 1.0));
    }
    // The source gives no figure for such a tree.
    let line = part(what, pages, Expected::about(mixed.share, PAGES));
    line.with("as its nodes are most of their size class").aside()
}

/// The lines on the locks of rows without padding.
pub fn beside_locks(both: &Both) -> Vec<Evidence> {
    let Both { tree, mixed, segregated, .. } = both;
    let mut lines = vec![locks(both)];
    let (mixed, segregated) = (&mixed.facts, &segregated.facts);
    let share = |what: &str, expected, found| {
        let what = format!("{tree}: locks of 48 bytes in a line with another lock, {what}");
        Evidence::fact(what, Unit::Share, expected, found)
    };
    // A page has 85 locks, of which the last has its line for itself.
    let are_shared = Expected::AtLeast(0.98, 0.5);
    // The tree of the source allocates a node for each lock; the others, none, or others as well.
    let hidden = if *tree == EDGE_INT_LF {
        share("mixed", Expected::AtMost(0.01, 0.5), mixed.locks.sharing)
    } else {
        let (what, found) = ("mixed", Unit::Share.text(mixed.locks.sharing));
        let what = format!("{tree}: locks of 48 bytes in a line with another lock, {what}");
        Evidence::noted(Level::Fact, what, found)
    };
    lines.push(hidden);
    lines.push(share("segregated", are_shared, segregated.locks.sharing));
    if *tree == EDGE_INT_LF {
        lines.extend([order(both), pages(tree, mixed, segregated)]);
    }
    lines
}

/// The part of the misses that the source's figures imply.
const MISSES: Expected = Expected::AtMost(0.6, 1.0);

/// Misses of a transaction that are too few to say anything.
const FEW: f64 = 1.0;

/// The lines on translations. The verdict depends on those of the tree that the source has counted.
pub fn of_model(both: &Both) -> Vec<Evidence> {
    let (mixed, segregated) = (&both.mixed.model, &both.segregated.model);
    let line = |what: &str, of: fn(&Modelled) -> [Misses; 2]| {
        let line = misses(&format!("{}: {what}", both.tree), of(mixed), of(segregated));
        if both.tree == OCC_AVL_2 { line } else { line.aside() }
    };
    vec![line("4 KiB pages", |model| model.small), line("2 MiB pages", |model| model.huge)]
}

/// A line on walks of the page table, which processors report as TLB misses.
fn misses(what: &str, mixed: [Misses; 2], segregated: [Misses; 2]) -> Evidence {
    let what = format!("{what}: TLB misses of a transaction, segregated / mixed");
    let in_tree = [mixed[0].walks, segregated[0].walks];
    let [mixed, segregated] = [mixed, segregated].map(|[index, rows]| index.and(rows));
    let part = segregated.walks / mixed.walks.max(f64::MIN_POSITIVE);
    let figures = format!(
        "({:.1} → {:.1}, in the tree {:.1} → {:.1}; of the first level alone {:.1} → {:.1})",
        mixed.walks, segregated.walks, in_tree[0], in_tree[1], mixed.tlb, segregated.tlb
    );
    let line = Evidence::model(what, Unit::Number(2), MISSES, part).with(&figures);
    let few = "the translations hold the whole database: give it more --keys";
    line.unless((mixed.walks < FEW).then(|| few.into()))
}

/// The lines on a tree in jemalloc.
pub fn in_jemalloc(lab: &Lab, both: &Both) -> Vec<Evidence> {
    let lines = of_tree(lab, both).into_iter();
    let named = lines.map(|line| Evidence { what: format!("jemalloc, {}", line.what), ..line });
    named.map(Evidence::aside).collect()
}
