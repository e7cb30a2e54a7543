//! bst/1.11: the facts that allocators should report, as `silvics inspect` reports them.

use super::sets::{self, ONE_NODE, ROWS};
use super::straddling::{self, COLLOCATED, SHIFTED};
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::{Bed, Lab, Look};
use silvics_layout::{Level as CacheLevel, SetHash};

/// bst/1.11.
pub fn questions(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    if !lab.wants(Level::Fact) {
        return Ok(Vec::new());
    }
    let mut lines = answers(lab)?;
    lines.extend(own_types(lab)?);
    for pair in pairs(lab)? {
        lines.extend(named(lab, &pair)?);
    }
    Ok(lines)
}

/// The three questions on a tree in a database.
fn answers(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let keys = lab.plan.keys(1_000_000);
    let report = lab.look(&Bed::mixed(ONE_NODE[0], keys).beside(ROWS))?;
    let mut classes = Vec::new();
    for name in ["node", "row", "wrapper"] {
        classes.push(format!("{name} {}", report.class(name)?));
    }
    let (found, expected) = (classes.join(", "), String::from("node 64, row 64, wrapper 64"));
    let holds = found == expected;
    let what = "1. size classes of a tree's nodes between a database's rows";
    let mut lines = vec![Evidence::plain(what, expected, found, holds)];
    let nodes = report.kind("node")?;
    for name in ["row", "wrapper"] {
        let found = nodes.in_neighbours.get(name).copied().unwrap_or(0.0);
        let what = format!("2. {name}s in the lines beside nodes");
        lines.push(Evidence::fact(what, Unit::Share, Expected::about(0.5, 0.01), found));
    }
    let what = "3. sets of the last level that nodes map to";
    lines.push(match lab.plan.machine.llc.hash {
        SetHash::Slices(12) => {
            sets::coverage(lab, what.into(), nodes, CacheLevel::Llc, sets::A_THIRD)
        }
        _ => Evidence::missing(Level::Fact, what.into(), sets::not_sliced(lab)),
    });
    Ok(lines)
}

/// The three questions about objects that are not of an index of ours: the locks of a program, of
/// 48 bytes.
fn own_types(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let keys = lab.plan.keys(400_000);
    let report = lab.look(&Bed::mixed(ONE_NODE[0], keys).beside(&["lock:48"]))?;
    let locks = report.kind("lock")?;
    let itself = locks.in_lines.get("lock").copied().unwrap_or(0.0);
    let (class, all) = (Expected::exactly(48.0), Expected::AtLeast(0.99, 0.5));
    let what = "1. size class of a program's locks";
    let mut lines = vec![Evidence::fact(what, Unit::Number(0), class, report.class("lock")?)];
    let what = "2. locks in the lines of locks";
    lines.push(Evidence::fact(what, Unit::Share, Expected::least(0.95), itself));
    let what = "3. sets of the last level that locks map to";
    lines.push(sets::coverage(lab, what.into(), locks, CacheLevel::Llc, all));
    Ok(lines)
}

/// A layout with a problem, and one without.
struct Pair {
    finding: &'static str,
    experiment: &'static str,
    wrong: Bed,
    right: Bed,
    /// The cache whose sets the problem is about, if it is about sets.
    cache: Option<CacheLevel>,
}

fn pairs(lab: &Lab) -> Result<Vec<Pair>, Error> {
    let (keys, fewer) = (lab.plan.keys(1_000_000), lab.plan.keys(400_000));
    let pair =
        |finding, experiment, wrong, right| Pair { finding, experiment, wrong, right, cache: None };
    let variants = sets::Variants::of(sets::INT_LF, keys);
    let rows = |bed: Bed| bed.beside(ROWS);
    let locks = |host| Bed::mixed(ONE_NODE[0], fewer).beside(host);
    Ok(vec![
        pair(
            "straddling",
            "bst/1.4",
            Bed::mixed("citrus:fixed", fewer),
            straddling::on_lines("citrus:fixed", fewer)?,
        ),
        Pair {
            // The nearest cache has the fewest sets, and is half used as the other caches are.
            cache: Some(CacheLevel::L1),
            ..pair("set-underutilization", "bst/1.5", variants.mixed, variants.segregated.clone())
        },
        pair("useless-neighbours", "bst/1.5", variants.noisy, variants.segregated),
        Pair {
            cache: Some(CacheLevel::Llc),
            ..pair(
                SLICED,
                "bst/1.6",
                rows(Bed::mixed(ONE_NODE[0], keys)),
                rows(Bed::segregated(ONE_NODE[0], keys)),
            )
        },
        pair(
            "lost-collocation",
            "bst/1.7",
            Bed::mixed(SHIFTED, keys),
            Bed::mixed(COLLOCATED, keys),
        ),
        pair("lock-false-sharing", "bst/1.9", locks(&["lock:48"]), locks(&["lock:64"])),
    ])
}

/// The problem that only a last level in slices has.
const SLICED: &str = "sliced-stride";

/// Lines on whether a problem is named where it exists, and not named where it does not.
fn named(lab: &mut Lab, pair: &Pair) -> Result<Vec<Evidence>, Error> {
    let Pair { finding, experiment, wrong, right, cache } = pair;
    let missing = |why| Evidence::missing(Level::Fact, format!("{experiment}, {finding}"), why);
    if *finding == SLICED && lab.plan.machine.llc.hash != SetHash::Slices(12) {
        return Ok(vec![missing(sets::not_sliced(lab))]);
    }
    let is = lab.look(wrong)?;
    if let Some(cache) = cache
        && let Some(why) = sets::too_few(lab, is.kind("node")?, *cache)
    {
        return Ok(vec![missing(why)]);
    }
    let isnt = lab.look(right)?;
    let what = |report: &Look| {
        let host = if report.config.host.is_empty() {
            String::new()
        } else {
            format!(" beside {}", report.config.host.join(" "))
        };
        format!("{experiment}, {} {}{host}", report.config.placement, report.config.index)
    };
    let there = seen(lab, &is, finding);
    let not = seen(lab, &isnt, finding);
    let absent = String::from("no such finding");
    Ok(vec![
        Evidence::plain(
            what(&is),
            (*finding).into(),
            there.clone().unwrap_or_else(|| absent.clone()),
            there.is_some(),
        ),
        Evidence::plain(
            what(&isnt),
            format!("no {finding}"),
            not.clone().unwrap_or(absent),
            not.is_none(),
        ),
    ])
}

/// The name of a finding in a report, if the report has it. Only a model can say that the remedy
/// would not pay.
fn seen(lab: &Lab, report: &Look, finding: &str) -> Option<String> {
    let row = report.findings.iter().find(|row| row.id == finding)?;
    let pays = row.pays || !lab.wants(Level::Model);
    let pays = if pays { "" } else { ", of which it says that the remedy would not pay here" };
    Some(format!("{finding}{pays}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::lab;
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    /// A missing finding says nothing if there are too few nodes for a stride to show.
    #[test]
    fn few_keys_say_nothing_of_sets() {
        let mut lab = lab();
        lab.plan.keys = Some(1000);
        let pairs = pairs(&lab).unwrap();
        let sliced = pairs.iter().find(|pair| pair.finding == SLICED).unwrap();
        let lines = named(&mut lab, sliced).unwrap();
        assert_eq!(verdict(&lines), Verdict::CannotBeShown, "{lines:#?}");
        assert!(lines[0].found.contains("too few"), "{lines:#?}");
        // There are enough nodes for the sets of the nearest cache.
        let halved = pairs.iter().find(|pair| pair.finding == "set-underutilization").unwrap();
        let lines = named(&mut lab, halved).unwrap();
        assert_eq!((lines.len(), verdict(&lines)), (2, Verdict::Confirmed), "{lines:#?}");
    }

    /// Swaps the layout with the problem and the one without.
    #[test]
    fn what_is_not_named_or_named_wrongly_contradicts_the_claim() {
        let mut lab = lab();
        let beds = || [Bed::mixed(SHIFTED, 10_000), Bed::mixed(COLLOCATED, 10_000)];
        let pair = |[wrong, right]: [Bed; 2]| Pair {
            finding: "lost-collocation",
            experiment: "bst/1.7",
            wrong,
            right,
            cache: None,
        };
        let lines = named(&mut lab, &pair(beds())).unwrap();
        assert_eq!(verdict(&lines), Verdict::Confirmed, "{lines:#?}");
        let [wrong, right] = beds();
        let lines = named(&mut lab, &pair([right, wrong])).unwrap();
        assert!(lines.iter().all(|line| line.verdict == Verdict::Contradicted), "{lines:#?}");
    }
}
