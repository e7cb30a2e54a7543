//! The facts of ets/5.4: the base nodes that a range uses fall, and ranges are atomic.

use super::subjects::{CA, LFCA, apart};
use crate::drive::draws::Draws;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::evidence::{Evidence, Expected, Unit, Verdict};
use crate::reproduce::lab::Lab;
use silvics::ca::build::{Build, ETS, Limits, Restless};
use silvics::{
    Adapts, AllocError, AtomicRanges, BulkLoadError, CaTree, Guard, LfcaTree, Lookup, OrderedIndex,
    Pooled, RangeUpdates,
};
use silvics_testkit::clock::Clock;
use silvics_testkit::make;
use silvics_testkit::verify::{self, Plan, RangesRead, RangesUpdated, Until, verify};

/// The base nodes at first.
const PARTS: usize = 64;
/// The entries of a tree.
const ENTRIES: u64 = 6400;
/// The calls after which a tree is given up.
const MOST_CALLS: u64 = 100_000;

/// The recorded histories of each build.
const HISTORIES: u64 = 200;
const QUICK_HISTORIES: u64 = 20;

/// All facts.
pub fn lines(lab: &Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = used_by_updates()?;
    lines.push(used_by_reads(lab.plan.seed)?);
    lines.extend(histories(lab)?);
    Ok(lines)
}

fn failed(name: &'static str) -> impl Fn(AllocError) -> Error {
    move |error| Error::Alloc { index: name.into(), error }
}

/// The base nodes that a range over all keys uses. It is exact while no other thread runs.
fn used(tree: &impl Adapts, guard: &Guard) -> usize {
    tree.adaptation(guard).base_nodes.len()
}

/// The number of calls of `range`, which uses all base nodes, until there is one, and the number of
/// base nodes then.
fn until_joined(
    tree: &impl Adapts,
    guard: &mut Guard,
    mut range: impl FnMut(&Guard) -> Result<(), AllocError>,
) -> Result<(u64, usize), AllocError> {
    let mut calls = 0;
    while used(tree, guard) > 1 && calls < MOST_CALLS {
        range(guard)?;
        guard.repin();
        calls += 1;
    }
    Ok((calls, used(tree, guard)))
}

fn joined(what: String, before: usize, (calls, now): (u64, usize)) -> Evidence {
    let (unit, expected) = (Unit::Number(0), Expected::exactly(1.0));
    Evidence::fact(what, unit, expected, now as f64)
        .with(&format!("({before} → {now}, {calls} calls)"))
}

/// Lines on the lock-based tree. A read of a range takes locks only if writers disturb it, so an
/// update stands for it.
fn used_by_updates() -> Result<Vec<Evidence>, Error> {
    let failed = failed(CA);
    let mut tree = CaTree::<u64>::with_options(&apart()).map_err(&failed)?;
    for key in 0..ENTRIES {
        tree.pin().insert(key, key).map_err(&failed)?;
    }
    let before = tree.divide(PARTS).map_err(&failed)?;
    let mut guard = tree.domain().pin();
    for _ in 0..100 {
        tree.collect_range(.., &guard).map_err(&failed)?;
    }
    let read = used(&tree, &guard);
    let update = |guard: &Guard| tree.update_range(.., guard, |_, value| value).map(|_| ());
    let found = until_joined(&tree, &mut guard, update).map_err(&failed)?;
    let what = format!("{CA}: base nodes that an update of all entries locks, after joins");
    let kept = Evidence::fact(
        format!("{CA}: base nodes after 100 reads of all entries that no writer disturbs"),
        Unit::Number(0),
        Expected::exactly(PARTS as f64),
        read as f64,
    );
    // The source says nothing of it: these reads write nothing, so they leave no statistics.
    Ok(vec![joined(what, before, found), kept.aside()])
}

/// A tree that splits a base node at each write. Reads join base nodes as ever.
struct Splitting;

impl Build for Splitting {
    const LIMITS: Limits = ETS;

    fn nudge(_write: u64) -> i64 {
        2 * ETS.split
    }
}

/// A line on the lock-free tree, whose reads note that they have used several base nodes. It
/// chooses the base node to join by addresses, so the number of calls may differ from run to run.
fn used_by_reads(seed: u64) -> Result<Evidence, Error> {
    let failed = failed(LFCA);
    let mut tree = LfcaTree::<u64, Pooled, Splitting>::with_options(&apart()).map_err(&failed)?;
    let entries: Vec<(u64, u64)> = (0..ENTRIES).map(|key| (key, key)).collect();
    tree.bulk_load(&entries).map_err(|error| match error {
        BulkLoadError::Alloc(error) => failed(error),
        other => Error::Wrong { index: LFCA.into(), what: other.to_string() },
    })?;
    let (mut guard, mut draws) = (tree.domain().pin(), Draws::new(seed, 0, 0));
    for _ in 0..MOST_CALLS {
        if used(&tree, &guard) == PARTS {
            break;
        }
        let key = draws.below(ENTRIES);
        tree.insert(key, key, &guard).map_err(&failed)?;
        guard.repin();
    }
    let before = used(&tree, &guard);
    if before < PARTS {
        let what = format!("it has {before} base nodes, and must have {PARTS}");
        return Err(Error::Wrong { index: LFCA.into(), what });
    }
    let read = |guard: &Guard| tree.collect_range(.., guard).map(|_| ());
    let found = until_joined(&tree, &mut guard, read).map_err(&failed)?;
    let what = format!("{LFCA}: base nodes that a read of all entries uses, after joins");
    Ok(joined(what, before, found))
}

/// Lines on recorded histories of both trees, as they are and with splits and joins without
/// contention.
fn histories(lab: &Lab) -> Result<Vec<Evidence>, Error> {
    let clock = Clock::new();
    let histories = if lab.plan.quick { QUICK_HISTORIES } else { HISTORIES };
    let plan = Plan {
        threads: vec![2, 3],
        seed: lab.plan.seed,
        until: Until::Histories(histories),
        ..Plan::default()
    };
    let read = |make| verify(make, &plan, &clock, RangesRead, interrupt::pending_beat);
    let updated = |make| verify(make, &plan, &clock, RangesUpdated, interrupt::pending_beat);
    let (steady, restless) = ("", ":restless");
    [
        (CA, steady, updated(make::updates::<CaTree<u64>>)),
        (CA, restless, updated(make::updates::<CaTree<u64, Pooled, Restless>>)),
        (LFCA, steady, read(make::atomic::<LfcaTree<u64>>)),
        (LFCA, restless, read(make::atomic::<LfcaTree<u64, Pooled, Restless>>)),
    ]
    .into_iter()
    .map(|(tree, build, report)| history(format!("{tree}{build}"), &report))
    .collect()
}

fn history(index: String, report: &verify::Report) -> Result<Evidence, Error> {
    if interrupt::pending() {
        return Err(Error::Interrupted);
    }
    if let Some(failure) = &report.exhausted {
        return Err(Error::Exhausted { index, problem: failure.to_string() });
    }
    let kinds = report.kinds.iter().filter(|(kind, _)| kind.ends_with("_range"));
    let ranges: u64 = kinds.map(|(_, count)| count).sum();
    let found = match &report.found {
        Some(found) => format!("history {}: {}", found.history, found.what),
        None => format!(
            "none in {} histories with {} calls, {ranges} of atomic ranges; {} checks given up",
            report.histories, report.operations, report.undecided
        ),
    };
    let what = format!("{index}: histories that are not linearizable");
    let line = Evidence::plain(what, "none".into(), found, report.found.is_none());
    let undecided = report.undecided > 0 && report.found.is_none();
    Ok(if undecided { Evidence { verdict: Verdict::NotSeen, ..line } } else { line })
}
