//! Evidence of facts and of the model.

use super::{Both, EDGE_INT_LF, OCC_AVL_2, Seen};
use crate::reproduce::bst::placed::heap::{NODE, OF_ROWS};
use crate::reproduce::bst::placed::lines::{self, of_nodes, pages};
use crate::reproduce::bst::placed::trees::Lock;
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

/// The lines on the places of a tree's nodes.
pub fn of_places(both: &Both) -> Vec<Evidence> {
    let Both { tree, mixed, segregated, .. } = both;
    let mut lines = vec![order(both)];
    lines.extend(of_nodes(tree, [&mixed.facts, &segregated.facts]));
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

/// The size classes of the objects that an insertion allocates.
fn order(both: &Both) -> Evidence {
    let classes = [64, 128, 64, both.lock.bytes(), 32];
    let of_row: Vec<(&str, usize)> = OF_ROWS.into_iter().zip(classes).collect();
    let text = |objects: &[(&str, usize)]| {
        let objects = objects.iter().map(|(kind, class)| format!("{kind} {class}"));
        objects.collect::<Vec<_>>().join(", ")
    };
    let is_right = |seen: &Seen| {
        let row = seen.order.iter().take(of_row.len());
        let nodes = seen.order.iter().skip(of_row.len());
        row.eq(of_row.iter()) && nodes.clone().any(|(kind, _)| *kind == NODE)
    };
    let holds = is_right(&both.mixed) && is_right(&both.segregated);
    let expected = format!("{}, then nodes", text(&of_row));
    let what = format!("{}: size classes of what an insertion allocates, in order", both.tree);
    Evidence::plain(what, expected, text(&both.mixed.order), holds)
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
        lines.extend([order(both), pages(tree, [mixed, segregated])]);
    }
    lines
}

/// The lines on translations. The verdict depends on those of the tree that the source has counted.
pub fn of_model(both: &Both) -> Vec<Evidence> {
    let lines = lines::of_model(both.tree, [&both.mixed.model, &both.segregated.model]);
    let judged = |line: Evidence| if both.tree == OCC_AVL_2 { line } else { line.aside() };
    lines.into_iter().map(judged).collect()
}

/// The lines on a tree in jemalloc.
pub fn in_jemalloc(lab: &Lab, both: &Both) -> Vec<Evidence> {
    let lines = of_tree(lab, both).into_iter();
    let named = lines.map(|line| Evidence { what: format!("jemalloc, {}", line.what), ..line });
    named.map(Evidence::aside).collect()
}
