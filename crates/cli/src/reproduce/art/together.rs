//! art/4.3: the nodes that lookups read most, moved together.

use super::on::{CHANGE, On};
use super::paid;
use super::sampled::{Beside, Reads, Sampled, differing};
use super::{KEYS, Keys};
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use silvics::art::hot::Report;
use silvics::{Pages, Pooled, Recorded};
use silvics_layout::PageSize;

/// The skews that the claim is about.
pub const EXPONENTS: [f64; 3] = [1.2, 1.5, 1.8];

/// The keys and pages for which the claim says that it helps.
const SPARSE: On = On { keys: Keys::Sparse, pages: Pages::Small, size: PageSize::Small };
/// The keys and pages for which the claim says that nothing can be gained.
const DENSE: On = On { keys: Keys::Dense, pages: Pages::Thp, size: PageSize::Huge };

/// art/4.3.
pub fn together(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let (count, mut lines) = (lab.plan.keys(KEYS), Vec::new());
    for on in [SPARSE, DENSE] {
        for exponent in EXPONENTS {
            if lab.looks() {
                lines.extend(looked(lab, on, count, exponent)?);
            }
            if lab.wants(Level::Clock) {
                lines.extend(paid::clock(lab, on, count, exponent)?);
            }
        }
    }
    Ok(lines)
}

/// Facts and figures of one tree.
fn looked(lab: &Lab, on: On, count: usize, exponent: f64) -> Result<Vec<Evidence>, Error> {
    let mut tree =
        Sampled::<Recorded<Pooled>>::new(on.keys, count, exponent, on.pages, lab.plan.seed)?;
    let (later, contents) = (tree.later(), tree.entries()?);
    let before = tree.reads(lab, &later, on.size)?;
    let report = tree.reorganize(on.policy())?;
    let after = tree.reads(lab, &later, on.size)?;
    let (name, mut lines) = (on.name(exponent), Vec::new());
    if lab.wants(Level::Fact) {
        lines.push(pages(&name, on, [before, after], &report));
        let beside = tree.beside(&later)?;
        lines.push(unharmed(&name, &beside));
        let changed = differing(&contents, &tree.entries()?);
        let what = format!("{name}: entries that are not what they were");
        let line = Evidence::fact(what, Unit::Number(0), Expected::exactly(0.0), changed as f64);
        lines.push(line.with(&format!("(of {})", contents.len())));
    }
    if let [Some(_), Some(_)] = [before.point, after.point] {
        lines.extend(modelled(&name, on, [before, after]));
    }
    Ok(lines)
}

/// The pages must fall to a quarter. A smaller fall is less than the claim needs.
const A_QUARTER: Expected = Expected::AtLeast(4.0, 1.0);
/// The number of pages below which they cannot fall to a quarter, because the root's page and one
/// more remain.
const FEW_PAGES: usize = 8;

fn pages(name: &str, on: On, [before, after]: [Reads; 2], report: &Report) -> Evidence {
    let what =
        format!("{name}: pages of 4 KiB with 90 % of what later lookups read, before over after");
    let found = before.small as f64 / after.small.max(1) as f64;
    let more = format!(
        "({} → {}; of 2 MiB {} → {}; {} nodes and {} leaves moved)",
        before.small, after.small, before.huge, after.huge, report.nodes, report.leaves
    );
    if !on.helps() {
        let line = Evidence::fact(what, Unit::Number(1), Expected::least(0.0), found);
        return Evidence { expected: "(nothing is claimed)".into(), ..line.with(&more).aside() };
    }
    let few = (before.small < FEW_PAGES)
        .then(|| format!("{} pages cannot become a quarter: give it more --keys", before.small));
    Evidence::fact(what, Unit::Number(1), A_QUARTER, found).with(&more).unless(few)
}

/// The effect of reorganizations on lookups of other threads.
fn unharmed(name: &str, beside: &Beside) -> Evidence {
    let what = format!("{name}: lookups beside reorganizations that missed a key");
    let more = format!(
        "(of {} while {} reorganizations moved {} objects; the longest took {} µs, without any in as much time {} µs)",
        beside.lookups,
        beside.rounds,
        beside.moved,
        beside.longest.as_micros(),
        beside.longest_alone.as_micros()
    );
    let none = (beside.failed == 0 && beside.lookups == 0)
        .then(|| "no lookup began and ended while nodes were moved: give it a second core".into());
    let failed = beside.failed as f64;
    Evidence::fact(what, Unit::Number(0), Expected::exactly(0.0), failed).with(&more).unless(none)
}

const FALLS: Expected = Expected::AtLeast(CHANGE, 0.0);

fn modelled(name: &str, on: On, reads: [Reads; 2]) -> Vec<Evidence> {
    let of = |part: fn(&super::curve::Point) -> f64| {
        let [before, after] = reads.map(|reads| reads.point.as_ref().map_or(0.0, part));
        (before, after)
    };
    let (misses, walks, cycles) =
        (of(|point| point.tlb_misses), of(|point| point.walks), of(|point| point.cycles));
    let what = |figure: &str| format!("{name}: {figure}");
    if on.helps() {
        let none = "the translations of the model hold all that is hot: give it more --keys";
        let gain = Expected::AtLeast(CHANGE, 0.0);
        return vec![
            Evidence::falls(&what("TLB misses fall by"), misses, FALLS, none),
            Evidence::falls(&what("walks of the page table fall by"), walks, FALLS, none),
            Evidence::falls(&what("cycles per lookup fall by"), cycles, gain, "no reads").aside(),
        ];
    }
    let line = Evidence::model(
        what("cycles per lookup change by"),
        Unit::Share,
        Expected::Within(-CHANGE, CHANGE),
        cycles.1 / cycles.0 - 1.0,
    );
    let figures = format!(
        "({:.2} → {:.2}; TLB misses {:.3} → {:.3})",
        cycles.0, cycles.1, misses.0, misses.1
    );
    vec![line.with(&figures)]
}

#[cfg(test)]
mod tests {
    use super::super::curve::Point;
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    fn reads(small: usize, [tlb_misses, walks, cycles]: [f64; 3]) -> Reads {
        let point = Point { cycles, tlb_misses, walks, ..Point::default() };
        Reads { small, huge: 1, point: Some(point) }
    }

    #[test]
    fn misses_have_to_fall_and_where_there_are_none_nothing_changes() {
        let judged = |on, after| {
            let lines = modelled("keys", on, [reads(0, [1.0, 0.5, 100.0]), reads(0, after)]);
            verdict(&lines)
        };
        assert_eq!(judged(SPARSE, [0.9, 0.4, 100.0]), Verdict::Confirmed);
        assert_eq!(judged(SPARSE, [0.96, 0.4, 50.0]), Verdict::NotSeen);
        assert_eq!(judged(SPARSE, [0.5, 0.49, 50.0]), Verdict::NotSeen);
        assert_eq!(judged(SPARSE, [0.5, 0.51, 50.0]), Verdict::Contradicted);
        assert_eq!(judged(DENSE, [2.0, 2.0, 104.0]), Verdict::Confirmed);
        for cycles in [94.0, 106.0] {
            assert_eq!(judged(DENSE, [0.0, 0.0, cycles]), Verdict::Contradicted);
        }
        let none = [reads(0, [0.005, 0.0, 20.0]), reads(0, [0.0, 0.0, 20.0])];
        assert_eq!(verdict(&modelled("keys", SPARSE, none)), Verdict::CannotBeShown);
    }

    #[test]
    fn a_miss_beside_a_reorganization_is_the_opposite_and_no_lookup_says_nothing() {
        let judged = |lookups, failed| {
            let beside = Beside { lookups, failed, ..Beside::default() };
            unharmed("keys", &beside).verdict
        };
        assert_eq!(judged(10, 0), Verdict::Confirmed);
        assert_eq!(judged(10, 1), Verdict::Contradicted);
        assert_eq!(judged(0, 1), Verdict::Contradicted);
        assert_eq!(judged(0, 0), Verdict::CannotBeShown);
    }
}
