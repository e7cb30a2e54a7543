//! bst/1.5: half of the sets. bst/1.6: a third of the sets.

use super::falls;
use crate::flags::error::Error;
use crate::inspect::report::Kind;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::{Bed, Lab};
use silvics_layout::{Level as CacheLevel, SetHash};

pub const INT_LF: &str = "int-lf:baseline";

/// The variants of bst/1.5. The slice of a line depends on all bits of its number in the model,
/// which hides a stride of two lines. The source counted sets by the lower bits, so these variants
/// have no slices.
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

/// The least lines per set for the spread of objects over sets to say something. Fewer lines at
/// random addresses would leave some sets out.
const FEW: f64 = 6.0;

/// The reason why the spread of objects over a cache's sets says nothing, if there are too few
/// objects.
pub fn too_few(lab: &Lab, kind: &Kind, cache: CacheLevel) -> Option<String> {
    let machine = &lab.plan.machine;
    let sets = machine.sets(cache).sets;
    // Several small objects share a line.
    let bytes = kind.class.unwrap_or(kind.bytes).min(machine.line as f64);
    let lines = kind.objects as f64 * bytes / machine.line as f64;
    (lines < FEW * sets as f64).then(|| {
        format!("{} {}s are too few for {sets} sets: give it more --keys", kind.objects, kind.name)
    })
}

/// The share of a cache's sets that objects map to, if there are enough of them.
pub fn coverage(
    lab: &Lab,
    what: String,
    kind: &Kind,
    cache: CacheLevel,
    expected: Expected,
) -> Evidence {
    let found = match cache {
        CacheLevel::L1 => kind.set_coverage_l1,
        CacheLevel::L2 => kind.set_coverage_l2,
        CacheLevel::Llc => kind.set_coverage,
    };
    Evidence::fact(what, Unit::Share, expected, found).unless(too_few(lab, kind, cache))
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
    // The root and the node behind it may be neighbours.
    let none = Expected::most((2.0 / mixed.objects as f64).max(0.001));
    lines.push(Evidence::fact(what, Unit::Share, none, useful));
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
        // The source says that noise performs poorly, unless prefetching is disabled.
        fall(
            "the same without prefetching, mixed → mixed with noise: fall by",
            &bare[0],
            &bare[1],
            quarter,
        )?,
    ])
}

/// The objects of 64 bytes that the study's database allocates for each row.
pub const ROWS: &[&str] = &["row:64", "wrapper:64"];
/// The trees that allocate one node of that class per insert.
pub const ONE_NODE: [&str; 2] = ["occ-avl:fixed", "occ-avl-2:fixed"];
/// The tree that allocates two nodes of that class per insert.
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
        lines.push(sliced(lab, &format!("{TWO_NODES}, mixed"), &two, ALL)?);
        // The source says nothing about the nearer caches. Two nodes in four lines use half of
        // their sets.
        let report = lab.look(&two)?;
        let what = format!("{TWO_NODES}, mixed: sets of the L2 that nodes map to");
        let nodes = report.kind("node")?;
        lines.push(coverage(lab, what, nodes, CacheLevel::L2, ALL).aside());
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

/// The expected share of the sets of a last level in slices.
pub const A_THIRD: Expected = Expected::Within(0.323, 0.343);
/// The expected share of all sets of a cache; a third is the opposite.
const ALL: Expected = Expected::AtLeast(0.99, 1.0 / 3.0);

/// Marks a line as evidence of the model, which determines the slice of each line of memory.
fn of_slices(line: Evidence) -> Evidence {
    Evidence { level: Level::Model, ..line }
}

/// Expects a third of the sets, which a stride of three lines reaches in slices.
fn thirds(lab: &mut Lab, index: &str, bed: &Bed) -> Result<Evidence, Error> {
    sliced(lab, &format!("{index}, mixed"), bed, A_THIRD)
}

/// A line on the sets of a last level in slices, which the claim is about.
fn sliced(lab: &mut Lab, what: &str, bed: &Bed, expected: Expected) -> Result<Evidence, Error> {
    let what = format!("{what}: sets of a last level in 12 slices that nodes map to");
    if lab.plan.machine.llc.hash != SetHash::Slices(12) {
        return Ok(Evidence::missing(Level::Model, what, not_sliced(lab)));
    }
    let report = lab.look(bed)?;
    Ok(of_slices(coverage(lab, what, report.kind("node")?, CacheLevel::Llc, expected)))
}

/// The reason why a last level that is not in twelve slices cannot show the effect.
pub fn not_sliced(lab: &Lab) -> String {
    format!("{} has not 12 slices, as haswell has", lab.plan.machine.name)
}

fn spread(lab: &mut Lab, what: &str, bed: &Bed) -> Result<Evidence, Error> {
    let report = lab.look(bed)?;
    let what = format!("{what}: sets of the last level that nodes map to");
    Ok(of_slices(coverage(lab, what, report.kind("node")?, CacheLevel::Llc, ALL)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::lab;
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    /// With few keys, the sets of larger caches say nothing, and those of the others confirm
    /// nothing.
    #[test]
    fn few_keys_leave_the_claim_open() {
        let mut lab = lab();
        let lines = sets_of_half(&mut lab, &Variants::of(INT_LF, 1000)).unwrap();
        assert_eq!(verdict(&lines), Verdict::CannotBeShown, "{lines:#?}");
        assert_eq!(lines[0].verdict, Verdict::Confirmed, "of L1: {lines:#?}");
        let enough = sets_of_half(&mut lab, &Variants::of(INT_LF, 10_000)).unwrap();
        assert_eq!(verdict(&enough), Verdict::Confirmed, "{enough:#?}");
    }

    /// The nodes are of another class than descriptors, and there are two nodes for a row. Neither
    /// is as the claim has it.
    #[test]
    fn a_wrong_layout_contradicts_the_claim() {
        let mut lab = lab();
        let shrunk = Variants::of("int-lf:fixed", 10_000);
        let lines = sets_of_half(&mut lab, &shrunk).unwrap();
        assert_eq!(verdict(&lines), Verdict::Contradicted, "{lines:#?}");
        let swapped = Variants::of(INT_LF, 16_000);
        let swapped = Variants { mixed: swapped.segregated, segregated: swapped.mixed, ..swapped };
        let lines = misses_of_half(&mut lab, &swapped).unwrap();
        assert_eq!(lines[0].verdict, Verdict::Contradicted, "{lines:#?}");
        let two = Bed::mixed(TWO_NODES, 10_000).beside(ROWS);
        let lines = strides(&mut lab, TWO_NODES, &two).unwrap();
        assert_eq!(verdict(&lines), Verdict::Contradicted, "{lines:#?}");
        assert_eq!(thirds(&mut lab, TWO_NODES, &two).unwrap().verdict, Verdict::Contradicted);
    }
}
