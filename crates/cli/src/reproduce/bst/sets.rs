//! bst/1.5: half of the sets. bst/1.6: a third of the sets.

use super::falls;
use crate::error::Error;
use crate::inspect::report::Kind;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::{Bed, Lab};
use silvics_layout::{Level as CacheLevel, SetHash};

pub const INT_LF: &str = "int-lf:baseline";

/// The variants of bst/1.5. Where a line goes in one of the model's slices depends on all bits of its
/// number, which hides a stride of two lines; the source counted sets by the bits below.
pub struct Variants {
    pub mixed: Bed,
    pub noisy: Bed,
    pub segregated: Bed,
}

impl Variants {
    pub fn of(index: &'static str, keys: usize) -> Self {
        Self {
            mixed: Bed::mixed(index, keys).unsliced(),
            noisy: Bed::mixed(index, keys).beside(&["noise:16-256"]).unsliced(),
            segregated: Bed::segregated(index, keys).unsliced(),
        }
    }
}

/// bst/1.5.
pub fn half(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let variants = Variants::of(INT_LF, lab.plan.keys(1_000_000));
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(sets_of_half(lab, &variants)?);
    }
    if lab.wants(Level::Model) {
        lines.extend(misses_of_half(lab, &variants)?);
    }
    if lab.wants(Level::Clock) {
        let what = format!("lookups, {INT_LF}: nodes apart / mixed with descriptors");
        let Variants { mixed, segregated, .. } = &variants;
        lines.push(lab.faster(what, "+40 % on haswell", [mixed, segregated])?);
    }
    Ok(lines)
}

const CACHES: [(&str, CacheLevel); 3] =
    [("L1", CacheLevel::L1), ("L2", CacheLevel::L2), ("LLC, unsliced", CacheLevel::Llc)];

/// To how many objects for each set nothing can be said of how they spread: of so many that lay anywhere,
/// some would leave sets out.
const FEW: usize = 5;

/// The share of a cache's sets that objects map to, if there are enough of them.
pub fn coverage(
    lab: &Lab,
    what: String,
    kind: &Kind,
    cache: CacheLevel,
    expected: Expected,
) -> Evidence {
    let (objects, sets) = (kind.objects, lab.plan.machine.sets(cache).sets);
    if objects < FEW * sets {
        let why = format!("{objects} are too few for {sets} sets: give it more --keys");
        return Evidence::missing(Level::Fact, what, why);
    }
    let found = match cache {
        CacheLevel::L1 => kind.set_coverage_l1,
        CacheLevel::L2 => kind.set_coverage_l2,
        CacheLevel::Llc => kind.set_coverage,
    };
    Evidence::fact(what, Unit::Share, expected, found)
}

fn sets_of_half(lab: &mut Lab, variants: &Variants) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    let report = lab.look(&variants.mixed)?;
    let mixed = report.kind("node")?;
    for (name, cache) in CACHES {
        // The root is allocated before there are descriptors, and may lie in one of the other sets.
        let root = 1.0 / lab.plan.machine.sets(cache).sets as f64;
        let expected = Expected::Within(0.5 - root, 0.5 + root);
        let what = format!("mixed: sets of the {name} that nodes map to");
        lines.push(coverage(lab, what, mixed, cache, expected));
    }
    let useful = mixed.neighbour_useful_share;
    let what = "mixed: lines beside nodes that hold something to read";
    lines.push(Evidence::fact(what, Unit::Share, Expected::most(0.001), useful));
    let report = lab.look(&variants.noisy)?;
    let noisy = report.kind("node")?;
    let all = Expected::AtLeast(0.99, 0.5);
    let what = "mixed with noise: sets of the LLC that nodes map to";
    lines.push(coverage(lab, what.into(), noisy, CacheLevel::Llc, all));
    let useless = 1.0 - noisy.neighbour_useful_share;
    let what = "mixed with noise: lines beside nodes that hold nothing to read";
    lines.push(Evidence::fact(what, Unit::Share, Expected::AtLeast(0.4, 0.05), useless));
    let report = lab.look(&variants.segregated)?;
    let segregated = report.kind("node")?;
    for (name, cache) in CACHES {
        let what = format!("segregated: sets of the {name} that nodes map to");
        lines.push(coverage(lab, what, segregated, cache, all));
    }
    let useful = segregated.neighbour_useful_share;
    let what = "segregated: lines beside nodes that hold something to read";
    lines.push(Evidence::fact(what, Unit::Share, Expected::AtLeast(0.9, 0.0), useful));
    Ok(lines)
}

fn misses_of_half(lab: &mut Lab, variants: &Variants) -> Result<Vec<Evidence>, Error> {
    let Variants { mixed, noisy, segregated } = variants;
    let mut fall = |what: &str, before: &Bed, after: &Bed, expected| {
        let (before, after) = (lab.look(before)?, lab.look(after)?);
        let misses = (before.model.llc_misses, after.model.llc_misses);
        Ok::<_, Error>(falls(what, misses, expected))
    };
    let quarter = Expected::AtLeast(0.25, 0.0);
    let bare = [mixed, noisy].map(|bed| bed.clone().without_prefetch());
    Ok(vec![
        fall("LLC misses per lookup, mixed → segregated: fall by", mixed, segregated, quarter)?,
        fall(
            "LLC misses per lookup, mixed with noise → segregated: fall by",
            noisy,
            segregated,
            quarter,
        )?,
        // The source: noise performs poorly, unless prefetching is disabled.
        fall(
            "the same without prefetching, mixed → mixed with noise: fall by",
            &bare[0],
            &bare[1],
            quarter,
        )?,
    ])
}

/// What the study's database allocates in the class of 64 bytes for each row.
pub const ROWS: &[&str] = &["row:64", "wrapper:64"];
/// Trees that allocate one node of that class per insert, …
pub const ONE_NODE: [&str; 2] = ["occ-avl:fixed", "occ-avl-2:fixed"];
/// … and one that allocates two.
const TWO_NODES: &str = "edge-ext-lf-2:baseline";

/// bst/1.6.
pub fn third(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let (keys, mut lines) = (lab.plan.keys(1_000_000), Vec::new());
    for index in ONE_NODE {
        let mixed = Bed::mixed(index, keys).beside(ROWS);
        let segregated = Bed::segregated(index, keys).beside(ROWS);
        if lab.wants(Level::Fact) {
            lines.extend(strides(lab, index, &mixed)?);
        }
        if lab.wants(Level::Model) {
            lines.push(thirds(lab, index, &mixed)?);
            lines.push(spread(lab, &format!("{index}, segregated"), &segregated)?);
            if lab.plan.machine.llc.hash == SetHash::Slices(12) {
                let (before, after) = (lab.look(&mixed)?, lab.look(&segregated)?);
                let misses = (before.model.llc_misses, after.model.llc_misses);
                let what = format!("{index}: LLC misses per lookup, mixed → segregated: fall by");
                lines.push(falls(&what, misses, Expected::AtLeast(0.01, -0.01)));
            }
        }
        if lab.wants(Level::Clock) {
            let what = format!("lookups, {index}: segregated / mixed");
            let claimed = "121 → 108 s of occ-avl's index in a whole database";
            lines.push(lab.faster(what, claimed, [&mixed, &segregated])?);
        }
    }
    let two = Bed::mixed(TWO_NODES, keys).beside(ROWS);
    if lab.wants(Level::Model) {
        lines.push(spread(lab, &format!("{TWO_NODES}, mixed"), &two)?);
        // Of the nearer caches the source says nothing: two nodes in four lines are half of their sets.
        let report = lab.look(&two)?;
        let what = format!("{TWO_NODES}, mixed: sets of the L2 that nodes map to");
        let all = Expected::AtLeast(0.99, 1.0 / 3.0);
        let nodes = report.kind("node")?;
        lines.push(coverage(lab, what, nodes, CacheLevel::L2, all).aside());
    }
    Ok(lines)
}

fn strides(lab: &mut Lab, index: &str, bed: &Bed) -> Result<Vec<Evidence>, Error> {
    let report = lab.look(bed)?;
    let each = ["node", "row", "wrapper"].into_iter().map(|name| {
        let of = report.kind(name)?;
        let behind = of.stride_histogram.get(&192).copied().unwrap_or(0);
        let share = behind as f64 / of.objects.saturating_sub(1).max(1) as f64;
        let what = format!("{index}, mixed: {name}s 192 bytes behind the last");
        Ok(Evidence::fact(what, Unit::Share, Expected::least(0.95), share))
    });
    each.collect()
}

/// Of the sets of a last level in slices.
pub const A_THIRD: Expected = Expected::Within(0.323, 0.343);

/// Which slice a line is in is the model's to say.
fn of_slices(line: Evidence) -> Evidence {
    Evidence { level: Level::Model, ..line }
}

/// A third of the sets, if the slices of the machine make one of a stride of three lines.
fn thirds(lab: &mut Lab, index: &str, bed: &Bed) -> Result<Evidence, Error> {
    let what = format!("{index}, mixed: sets of a last level in 12 slices that nodes map to");
    if lab.plan.machine.llc.hash != SetHash::Slices(12) {
        return Ok(not_sliced(lab, what));
    }
    let report = lab.look(bed)?;
    Ok(of_slices(coverage(lab, what, report.kind("node")?, CacheLevel::Llc, A_THIRD)))
}

/// What only a last level in twelve slices shows.
pub fn not_sliced(lab: &Lab, what: String) -> Evidence {
    let why = format!("{} has not 12 slices, as haswell has", lab.plan.machine.name);
    Evidence::missing(Level::Model, what, why)
}

fn spread(lab: &mut Lab, what: &str, bed: &Bed) -> Result<Evidence, Error> {
    let report = lab.look(bed)?;
    let what = format!("{what}: sets of the last level that nodes map to");
    let all = Expected::AtLeast(0.99, 1.0 / 3.0);
    Ok(of_slices(coverage(lab, what, report.kind("node")?, CacheLevel::Llc, all)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::lab;
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    /// Nodes of another class than descriptors, two nodes for a row, none of them in the way the claim
    /// has it.
    #[test]
    fn a_wrong_layout_contradicts_the_claim() {
        let mut lab = lab();
        let shrunk = Variants::of("int-lf:fixed", 10_000);
        let lines = sets_of_half(&mut lab, &shrunk).unwrap();
        assert_eq!(verdict(&lines), Verdict::Contradicted, "{lines:#?}");
        let swapped = Variants::of(INT_LF, 40_000);
        let swapped = Variants { mixed: swapped.segregated, segregated: swapped.mixed, ..swapped };
        let lines = misses_of_half(&mut lab, &swapped).unwrap();
        assert_eq!(lines[0].verdict, Verdict::Contradicted, "{lines:#?}");
        let two = Bed::mixed(TWO_NODES, 10_000).beside(ROWS);
        let lines = strides(&mut lab, TWO_NODES, &two).unwrap();
        assert_eq!(verdict(&lines), Verdict::Contradicted, "{lines:#?}");
        assert_eq!(thirds(&mut lab, TWO_NODES, &two).unwrap().verdict, Verdict::Contradicted);
    }
}
