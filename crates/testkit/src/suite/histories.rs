//! Property: concurrent runs on few keys are linearizable, whichever verbs meet. [`crate::verify`]
//! makes the runs and checks them.

use crate::clock::Clock;
use crate::failure::ensure;
use crate::make::Make;
use crate::verify::{
    AllScans, Mix, NoScans, OrderedCalls, Plan, RangesRead, RangesUpdated, ScansAndEnds, Until,
    verify,
};
use crate::{Failure, Outcome, ScanSubject, Subject, size};
use silvics::{AtomicRanges, OrderedEnds, RangeUpdates};

/// The number of indexes that are checked, one after the other.
const HISTORIES: usize = size::pick(200, 30, 1);

fn hold<I: Subject + ?Sized, S: OrderedCalls<I>>(
    make: Make<I>,
    histories: usize,
    mix: Mix,
    ordered: S,
) -> Outcome {
    let until = Until::Histories(histories as u64);
    let plan = Plan { mix, until, ..Plan::default() };
    let report = verify(make, &plan, &Clock::new(), ordered, || false);
    if let Some(found) = report.found {
        return Err(Failure::new(format!("history {}: {}", found.history, found.what)));
    }
    // By chance, a thread that has lost its core overlaps with all calls of the others, and then
    // too many orders are possible. Such a history shows nothing, and most must show something.
    let (undecided, given_up) = (report.undecided, report.given_up.unwrap_or_default());
    let is_rare = undecided <= histories as u64 / 20;
    ensure!(is_rare, "{undecided} checks of {histories} histories are undecided: {given_up}");
    ensure!(report.histories == histories as u64, "{} histories checked", report.histories);
    Ok(())
}

/// Runs all point operations against each other.
pub fn histories<I: Subject + ?Sized>(make: Make<I>) -> Outcome {
    hold(make, HISTORIES, Mix::default(), NoScans)
}

/// Runs point operations, ranges and cursors against each other. The state in which a scan saw a
/// key is checked like the answer of a lookup of that key.
pub fn scan_histories<I: ScanSubject + ?Sized>(make: Make<I>) -> Outcome {
    let mix = Mix { lookups: 30, inserts: 30, removals: 25, scans: 15 };
    hold(make, HISTORIES, mix, AllScans)
}

/// Runs point operations, scans and the calls on both ends against each other. Each history is
/// checked as one object.
pub fn end_histories<I: ScanSubject + OrderedEnds + ?Sized>(make: Make<I>) -> Outcome {
    hold(make, HISTORIES, Mix::default(), ScansAndEnds)
}

/// The shares of calls in histories with atomic ranges.
const WITH_RANGES: Mix = Mix { lookups: 30, inserts: 30, removals: 25, scans: 15 };

/// Runs all other calls and atomic reads of ranges against each other. Each history is
/// checked as one object.
pub fn range_histories<I: ScanSubject + OrderedEnds + AtomicRanges + ?Sized>(
    make: Make<I>,
) -> Outcome {
    hold(make, HISTORIES, WITH_RANGES, RangesRead)
}

/// Runs all other calls and updates of ranges against each other. Each history is checked as one
/// object.
pub fn update_histories<I: ScanSubject + OrderedEnds + RangeUpdates + ?Sized>(
    make: Make<I>,
) -> Outcome {
    hold(make, HISTORIES, WITH_RANGES, RangesUpdated)
}
