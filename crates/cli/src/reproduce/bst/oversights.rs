//! bst/1.3: oversights in the layout of nodes, and the effect of fixing them.

use super::falls;
use crate::catalogue;
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::{Bed, Lab, Runs};
use silvics_layout::{NodeLayout, study_class};

/// A tree whose nodes shrink.
struct Tree {
    name: &'static str,
    baseline: &'static str,
    fixed: &'static str,
    /// The size classes of both in the source's public code. That of citrus is not stated, because
    /// it depends on the replacement of its lock.
    classes: Option<(usize, usize)>,
}

macro_rules! tree {
    ($name:literal, $classes:expr) => {
        Tree {
            name: $name,
            baseline: concat!($name, ":baseline"),
            fixed: concat!($name, ":fixed"),
            classes: $classes,
        }
    };
}

const TREES: [Tree; 7] = [
    tree!("occ-avl", Some((112, 64))),
    tree!("log-int", Some((96, 80))),
    tree!("citrus", None),
    tree!("int-lf", Some((64, 48))),
    tree!("edge-ext-lf-2", Some((64, 32))),
    tree!("ticket", Some((64, 48))),
    tree!("ext-lf", Some((64, 48))),
];

/// The trees whose searched fields were scattered over lines.
const SCATTERED: [&str; 2] = ["occ-avl", "log-int"];
/// The trees whose nodes filled a line, and straddle two lines since they are smaller.
const STRADDLING: [&str; 3] = ["int-lf", "ticket", "ext-lf"];

/// bst/1.3.
pub fn oversights(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let (keys, mut lines) = (lab.plan.keys(1_000_000), Vec::new());
    if lab.wants(Level::Fact) {
        lines.extend(TREES.iter().map(sizes));
        for tree in &TREES {
            lines.extend(lines_per_visit(lab, tree, keys)?);
        }
    }
    if lab.wants(Level::Model) {
        lines.extend(misses(lab, keys)?);
        let peers = ["occ-avl-2:fixed", "occ-avl:fixed"].map(|index| Bed::mixed(index, keys));
        let what = "occ-avl: LLC misses per lookup, less than those of occ-avl-2 by";
        lines.push(fall(lab, what, &peers, Expected::Within(-0.05, 0.05))?);
        lines.extend(larger_trees(lab)?);
    }
    if lab.wants(Level::Clock) {
        lines.extend(clock(lab, keys)?);
    }
    Ok(lines)
}

/// The first object that a build allocates, which is the one that searches pass.
fn layout(tree: &str, build: &str) -> &'static NodeLayout {
    let entry = catalogue::all().iter().find(|entry| entry.name == tree);
    let variant = entry.and_then(|entry| entry.variants.iter().find(|one| one.name == build));
    // A test looks up all of them.
    &variant.expect("in the catalogue").objects[0]
}

fn sizes(tree: &Tree) -> Evidence {
    let [before, after] = ["baseline", "fixed"].map(|build| layout(tree.name, build).size);
    let classes = (study_class(before), study_class(after));
    let text = |(before, after): (usize, usize)| format!("{before} → {after}");
    let expected = tree.classes.map_or_else(|| "a smaller one".into(), text);
    let holds = tree.classes.map_or(classes.1 < classes.0, |wanted| wanted == classes);
    let found = format!("{} ({} bytes)", text(classes), text((before, after)));
    let what = format!("{}: size class of a node, baseline → fixed", tree.name);
    Evidence::plain(what, expected, found, holds)
}

/// A line on the change in lines per visit in the fixed build. `None` if neither a rise nor a fall
/// is claimed.
fn lines_per_visit(lab: &mut Lab, tree: &Tree, keys: usize) -> Result<Option<Evidence>, Error> {
    let (what, sign, expected) = if SCATTERED.contains(&tree.name) {
        ("fall by", -1.0, Expected::AtLeast(0.1, 0.0))
    } else if STRADDLING.contains(&tree.name) {
        ("rise by, which costs at 10 M", 1.0, Expected::about(0.25, 0.01))
    } else {
        return Ok(None);
    };
    let mut lines = [0.0; 2];
    for (lines, index) in lines.iter_mut().zip([tree.baseline, tree.fixed]) {
        let report = lab.look(&Bed::mixed(index, keys))?;
        *lines = report.kind("node")?.lines_per_visit;
    }
    let [before, after] = lines;
    let what = format!("{}: lines per visited node, {what}", tree.name);
    let figures = format!("({before:.2} → {after:.2})");
    let change = sign * (after - before);
    Ok(Some(Evidence::fact(what, Unit::Number(2), expected, change).with(&figures)))
}

/// Lines on the misses of each tree, and of all. The source has a geometric mean; here every tree
/// would gain.
fn misses(lab: &mut Lab, keys: usize) -> Result<Vec<Evidence>, Error> {
    let (mut lines, mut logarithms, any) = (Vec::new(), 0.0, Expected::AtLeast(0.01, -0.01));
    for tree in &TREES {
        let beds = [tree.baseline, tree.fixed].map(|index| Bed::mixed(index, keys));
        let what = format!("{}: LLC misses per lookup, fall by", tree.name);
        let line = fall(lab, &what, &beds, any)?;
        logarithms += line.value.map_or(0.0, |fall| (1.0 - fall).max(f64::MIN_POSITIVE).ln());
        lines.push(line);
    }
    let mean = 1.0 - (logarithms / TREES.len() as f64).exp();
    if lines.iter().all(|line| line.value.is_some()) {
        let what = "geometric mean: LLC misses per lookup, fall by";
        lines.push(Evidence::model(what, Unit::Share, any, mean));
    }
    Ok(lines)
}

fn fall(
    lab: &mut Lab,
    what: &str,
    [before, after]: &[Bed; 2],
    expected: Expected,
) -> Result<Evidence, Error> {
    let (before, after) = (lab.look(before)?, lab.look(after)?);
    Ok(falls(what, (before.model.llc_misses, after.model.llc_misses), expected))
}

/// The divisor of the source's larger number of keys, and of the last level of the model. The full
/// size would take minutes.
const PART: usize = 4;

/// If hardly any node is in a cache, nodes in two lines cost more than smaller nodes save.
fn larger_trees(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let keys = lab.plan.keys(10_000_000 / PART);
    let trees = TREES.iter().filter(|tree| STRADDLING.contains(&tree.name));
    let mut lines = Vec::new();
    for tree in trees {
        let beds = [tree.fixed, tree.baseline];
        let beds = beds.map(|index| Bed::mixed(index, keys).without_prefetch().scaled(PART));
        let what = format!(
            "{}, {keys} keys, 1/{PART} of the last level, no pairs fetched: LLC misses per lookup, 48 → 64 \
             bytes, fall by",
            tree.name
        );
        lines.push(fall(lab, &what, &beds, Expected::AtLeast(0.01, -0.01))?);
    }
    Ok(lines)
}

fn clock(lab: &Lab, keys: usize) -> Result<Vec<Evidence>, Error> {
    let indexes: Vec<&str> = TREES.iter().flat_map(|tree| [tree.baseline, tree.fixed]).collect();
    let report = lab.bench(&Runs::of(lab, &indexes, keys, "100/0/0"))?;
    let claimed = "geometric mean of ten trees 1.11 on abu-dhabi, 1.23 on haswell";
    let lines = report.builds.iter().map(|ratio| {
        let of = ratio.index.clone().unwrap_or_else(|| "geometric mean".into());
        lab.clocked(format!("lookups, fixed / baseline, {of}"), claimed, keys, ratio.ratio)
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::evidence::Verdict;

    #[test]
    fn nodes_have_the_sizes_of_the_study() {
        for tree in &TREES {
            let line = sizes(tree);
            assert_eq!(line.verdict, Verdict::Confirmed, "{line:?}");
            let wrong = Tree { classes: Some((64, 64)), ..*tree };
            assert_eq!(sizes(&wrong).verdict, Verdict::Contradicted);
        }
    }
}
