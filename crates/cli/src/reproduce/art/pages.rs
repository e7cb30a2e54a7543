//! art/4.2: the same lookups on pages of 4 KiB and of 2 MiB.

use super::curve::{Curve, Point, curves, inspection};
use super::held::Held;
use super::{EXPONENTS, FEW_KEYS, KEYS, Keys, zipf};
use crate::drive::subject::{Crew, Traffic};
use crate::flags::error::Error;
use crate::flags::units::Bytes;
use crate::host::memory::{self, Resident};
use crate::inspect::fix::{Compared, Pair};
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use silvics::Pages;
use silvics_layout::PageSize;
use silvics_pool::{HUGE_PAGE, SMALL_PAGE};
use std::cmp::Ordering;

/// The number of keys for the clock. The tree then exceeds the translations of any machine by far.
const MANY: usize = 10_000_000;

/// art/4.2.
pub fn pages(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let (count, mut lines) = (lab.plan.keys(KEYS), Vec::new());
    for keys in Keys::BOTH {
        if lab.wants(Level::Fact) {
            lines.extend(facts(lab, keys, count)?);
        }
        if lab.wants(Level::Model) {
            let both = [PageSize::Small, PageSize::Huge];
            let curves = curves(lab, keys, count, &both)?;
            lines.extend(judge(keys.name(), [&curves[0], &curves[1]]));
        }
        if lab.wants(Level::Clock) {
            lines.extend(clock(lab, keys, lab.plan.keys(MANY))?);
        }
    }
    Ok(lines)
}

/// The least share of huge pages for the comparison to be about huge pages.
const MOST: f64 = 0.5;

fn facts(lab: &Lab, keys: Keys, count: usize) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    for (pages, expected) in
        [(Pages::Small, Expected::exactly(0.0)), (Pages::Thp, Expected::AtLeast(MOST, 0.0))]
    {
        let held = Held::of(lab, keys, count, pages)?;
        let (small, huge, resident) = (held.small_pages, held.huge_pages, held.resident);
        let (name, on) = (keys.name(), pages.to_string());
        let what =
            format!("{name} on {on}: share of its memory on 2 MiB pages, as the system tells");
        let nodes = format!("nodes on {small} pages of 4 KiB, in {huge} of 2 MiB");
        let Some((resident, share)) = resident.and_then(|all| Some((all, all.huge_share()?)))
        else {
            let why = format!("the system does not tell; {nodes}");
            lines.push(Evidence::missing(Level::Fact, what, why));
            continue;
        };
        let line = Evidence::fact(what, Unit::Share, expected, share);
        let of = (Bytes(resident.huge_bytes), Bytes(resident.bytes));
        let line = line.with(&format!("({} of {}; {nodes})", of.0, of.1));
        // Each pool fills pages of 4 KiB before it gets one of 2 MiB.
        let few = (pages != Pages::Small && small * SMALL_PAGE < FULL).then(|| {
            format!("{small} pages of 4 KiB are too few to fill some of 2 MiB: give it more --keys")
        });
        lines.push(line.unless(few));
    }
    Ok(lines)
}

/// The least bytes of a tree with which a pool fills a huge page.
const FULL: usize = 2 * HUGE_PAGE;

/// The expected falls of misses, and of lines of the page table.
const A_FIFTH: Expected = Expected::AtLeast(0.8, 0.0);
const HALF: Expected = Expected::AtLeast(0.5, 0.0);

fn judge(name: &str, [small, huge]: [&Curve; 2]) -> Vec<Evidence> {
    let mut lines = Vec::new();
    let skews = || small.iter().zip(huge).filter(|(point, _)| point.exponent < FEW_KEYS);
    let none = "the translations of the model hold the whole tree: give it more --keys";
    for (small, huge) in skews() {
        let what = format!("{name}, exponent {}: TLB misses fall by", small.exponent);
        lines.push(Evidence::falls(&what, (small.tlb_misses, huge.tlb_misses), A_FIFTH, none));
    }
    // Pages of 2 MiB compete for few entries and, unlike small pages, have no second level. The
    // entries that they compete for depend on the system's choice of addresses, which decides
    // whether they miss less often all the same.
    lines.extend(skews().map(|(small, huge)| {
        let what = format!("{name}, exponent {}: walks of the page table fall by", small.exponent);
        Evidence::falls(&what, (small.walks, huge.walks), A_FIFTH, none).aside()
    }));
    // A statement about all skews below two holds if it holds for the one that gains least.
    let left = |(small, huge): (&Point, &Point)| huge.table_lines / small.table_lines.max(1.0);
    let least = skews().max_by(|a, b| left(*a).total_cmp(&left(*b)));
    if let Some((small, huge)) = least {
        let what = format!(
            "{name}, exponent {}, where least: lines of the page table in L2 fall by",
            small.exponent
        );
        let lines_of = (small.table_lines, huge.table_lines);
        lines.push(Evidence::falls(&what, lines_of, HALF, "L2 of the model has none"));
    }
    lines.extend(small.iter().zip(huge).map(|(small, huge)| {
        let exponent = small.exponent;
        let what = format!("{name}, exponent {exponent}: cycles per lookup fall by");
        let gain = match exponent.total_cmp(&FEW_KEYS) {
            Ordering::Less => Expected::AtLeast(0.01, 0.0),
            Ordering::Equal => Expected::least(0.0),
            Ordering::Greater => Expected::AtMost(0.01, 1.0),
        };
        let cycles = (small.cycles, huge.cycles);
        Evidence::falls(&what, cycles, gain, "there are no reads").aside()
    }));
    lines
}

/// The most bytes that a key takes in either tree.
const BYTES_OF_A_KEY: usize = 64;

fn clock(lab: &Lab, keys: Keys, count: usize) -> Result<Vec<Evidence>, Error> {
    let what = |exponent: f64| {
        let name = keys.name();
        format!("{name}, {count} keys, exponent {exponent}: lookups on thp / on 4k")
    };
    let needed = 2 * count * BYTES_OF_A_KEY;
    if let Some(available) = memory::available().filter(|available| *available < needed) {
        let (needed, available) = (Bytes(needed), Bytes(available));
        let why = format!("it needs about {needed} of memory, and {available} are available");
        let missing = |exponent| Evidence::missing(Level::Clock, what(exponent), why.clone());
        return Ok(EXPONENTS.into_iter().map(|exponent| missing(exponent).aside()).collect());
    }
    let [plan, huge] = [Pages::Small, Pages::Thp].map(|pages| inspection(lab, count, pages));
    let (plan, huge) = (plan?, huge?.subject);
    let Traffic { mut space, choice } = keys.traffic(count, lab.plan.seed);
    let pair = Pair::<u64>::load(&plan, &huge, &Traffic { space: space.clone(), choice })?;
    let void = why_void(pair.memory());
    let (crew, turns) = (Crew::new(), lab.turns());
    let mut lines = Vec::new();
    for exponent in EXPONENTS {
        let traffic = Traffic { space, choice: zipf(exponent, count, lab.plan.seed) };
        let Compared { time, .. } = pair.compare(&traffic, (&crew, turns))?;
        space = traffic.space;
        let ratio = time.inverse();
        let line = match exponent.total_cmp(&FEW_KEYS) {
            Ordering::Less => Evidence::faster(what(exponent), "1 to 32 % faster", ratio),
            Ordering::Equal => Evidence::no_slower(what(exponent), ratio),
            Ordering::Greater => Evidence::no_faster(what(exponent), ratio),
        };
        lines.push(line.unless(void.clone()));
    }
    Ok(lines)
}

/// The reason why two trees are not on the pages to be compared, if they are not.
fn why_void([small, huge]: [Option<Resident>; 2]) -> Option<String> {
    let share = |of: Option<Resident>| of.and_then(Resident::huge_share);
    match (share(small), share(huge)) {
        (Some(small), Some(huge)) if small < MOST && huge >= MOST => None,
        (Some(small), Some(huge)) => {
            let text = |share| Unit::Share.text(share);
            Some(format!(
                "{} of one and {} of the other are on huge pages",
                text(small),
                text(huge)
            ))
        }
        _ => Some("the system does not tell which pages they are on".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    fn curve(tlb_misses: f64, table_lines: f64) -> Curve {
        let some = Point { tlb_misses, table_lines, cycles: 100.0, ..Point::default() };
        EXPONENTS.map(|exponent| Point { exponent, ..some }).to_vec()
    }

    #[test]
    fn misses_and_lines_of_the_table_have_to_fall() {
        let judged = |huge: &Curve| verdict(&judge("keys", [&curve(1.0, 100.0), huge]));
        assert_eq!(judged(&curve(0.2, 50.0)), Verdict::Confirmed);
        assert_eq!(judged(&curve(0.21, 50.0)), Verdict::NotSeen);
        assert_eq!(judged(&curve(0.0, 51.0)), Verdict::NotSeen);
        assert_eq!(judged(&curve(1.1, 1.0)), Verdict::Contradicted);
        // One skew contradicts the claim, unless it has few hot keys.
        let with = |at: usize| {
            let mut curve = curve(0.1, 10.0);
            curve[at].table_lines = 90.0;
            curve[at].tlb_misses = 0.9;
            judged(&curve)
        };
        assert_eq!([0, 3, 4].map(with), [Verdict::NotSeen, Verdict::NotSeen, Verdict::Confirmed]);
        let few = judge("keys", [&curve(0.001, 100.0), &curve(0.0, 1.0)]);
        assert_eq!(verdict(&few), Verdict::CannotBeShown);
    }

    #[test]
    fn pages_that_are_not_as_asked_for_say_nothing() {
        let of = |huge_bytes| Some(Resident { bytes: 100, huge_bytes });
        assert_eq!(why_void([of(0), of(50)]), None);
        assert!(why_void([of(0), of(49)]).is_some_and(|why| why.contains("49.0 %")));
        assert!(why_void([of(90), of(90)]).is_some());
        assert!(why_void([None, of(90)]).is_some());
    }
}
