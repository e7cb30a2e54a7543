//! bst/1.11: what allocators should tell, told by `silvics inspect`.

use super::sets::{self, ONE_NODE, ROWS};
use super::straddling::{self, COLLOCATED, SHIFTED};
use crate::error::Error;
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
        _ => sets::not_sliced(lab, what.into()),
    });
    Ok(lines)
}

/// The same on what is no index of ours: the locks of a program, of 48 bytes.
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
}

fn pairs(lab: &Lab) -> Result<Vec<Pair>, Error> {
    let (keys, fewer) = (lab.plan.keys(1_000_000), lab.plan.keys(400_000));
    let pair = |finding, experiment, wrong, right| Pair { finding, experiment, wrong, right };
    let variants = sets::Variants::of(sets::INT_LF, keys);
    let locks = |host| Bed::mixed(ONE_NODE[0], fewer).beside(host);
    let mut pairs = vec![
        pair(
            "straddling",
            "bst/1.4",
            Bed::mixed("citrus:fixed", fewer),
            straddling::on_lines("citrus:fixed", fewer)?,
        ),
        pair("set-underutilization", "bst/1.5", variants.mixed, variants.segregated.clone()),
        pair("useless-neighbours", "bst/1.5", variants.noisy, variants.segregated),
        pair(
            "lost-collocation",
            "bst/1.7",
            Bed::mixed(SHIFTED, keys),
            Bed::mixed(COLLOCATED, keys),
        ),
        pair("lock-false-sharing", "bst/1.9", locks(&["lock:48"]), locks(&["lock:64"])),
    ];
    if lab.plan.machine.llc.hash == SetHash::Slices(12) {
        let wrong = Bed::mixed(ONE_NODE[0], keys).beside(ROWS);
        let right = Bed::segregated(ONE_NODE[0], keys).beside(ROWS);
        pairs.insert(3, pair("sliced-stride", "bst/1.6", wrong, right));
    }
    Ok(pairs)
}

/// Whether a problem is named where it is, and not where it is not.
fn named(lab: &mut Lab, pair: &Pair) -> Result<Vec<Evidence>, Error> {
    let Pair { finding, experiment, wrong, right } = pair;
    let (is, isnt) = (lab.look(wrong)?, lab.look(right)?);
    let what = |report: &Look| {
        let host = if report.config.host.is_empty() {
            String::new()
        } else {
            format!(" beside {}", report.config.host.join(" "))
        };
        format!("{experiment}, {} {}{host}", report.config.placement, report.config.index)
    };
    let there = seen(&is, finding);
    let not = seen(&isnt, finding);
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

/// How a report names a finding, if it does.
fn seen(report: &Look, finding: &str) -> Option<String> {
    let row = report.findings.iter().find(|row| row.id == finding)?;
    let pays = if row.pays { "" } else { ", of which it says that the remedy would not pay here" };
    Some(format!("{finding}{pays}"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::lab;
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    /// A layout with the problem in the place of one without, and the other way round.
    #[test]
    fn what_is_not_named_or_named_wrongly_contradicts_the_claim() {
        let mut lab = lab();
        let beds = || [Bed::mixed(SHIFTED, 10_000), Bed::mixed(COLLOCATED, 10_000)];
        let pair = |[wrong, right]: [Bed; 2]| Pair {
            finding: "lost-collocation",
            experiment: "bst/1.7",
            wrong,
            right,
        };
        let lines = named(&mut lab, &pair(beds())).unwrap();
        assert_eq!(verdict(&lines), Verdict::Confirmed, "{lines:#?}");
        let [wrong, right] = beds();
        let lines = named(&mut lab, &pair([right, wrong])).unwrap();
        assert!(lines.iter().all(|line| line.verdict == Verdict::Contradicted), "{lines:#?}");
    }
}
