//! Records concurrent histories of a [`VersionedMap`](silvics::VersionedMap) and checks them.
//! They have single writes and batches, snapshots and other readers at a version, lists of
//! versions, and `prune`. Either the map draws the numbers of versions, or the caller gives them.
//! `silvics verify` runs it.
//!
//! # Method
//! Histories are recorded as in [`crate::verify`], by `traffic.rs`: each call is stamped before and
//! after, and its answer is noted with the number of each version. A snapshot is noted from before
//! the call that begins it until after its drop. The check begins when all threads have ended, so
//! the number of each version is known. The files check:
//!
//! | file | condition |
//! |---|---|
//! | `written.rs` | each number is that of one write; conditional writes found what they expected |
//! | `reads.rs` | each read at `s` finds the newest version of its key with a number up to `s` |
//! | `moments.rs` | one order of all calls |
//! | `latest.rs` | if the caller gives the numbers: one order of the calls on each key's newest version |
//! | `kept.rs` | `history` lists what a reader needs, and nothing that was pruned; the horizon |
//!
//! # Why these conditions are right
//! **The map draws the numbers.** A write draws its number when it takes effect, so the numbers are
//! the order of all writes. A batch draws one number, so it is one write in this order. *Moment n*
//! is the time between the write with the number `n` and the next one. The answer of each call
//! belongs to some moments:
//! * `snapshot`, `now`, and a reader that is refused name their moment.
//! * `get_latest`, `history`, a write whose condition fails, and a deletion that finds nothing
//!   belong to the moments at which the newest version of the key is the one found.
//!
//! If a call returned before another one began, its moment is not the later one. `moments.rs` gives
//! each call the least moment that both rules allow. If it finds one for each call, then the order
//! of moments is a linearization: it explains each answer, and keeps the order of calls that do not
//! overlap. If it does not, no linearization has the writes in the order of their numbers. So the
//! condition is exact, and no search is needed.
//!
//! The order includes snapshots, by their numbers. Therefore a snapshot that began after a commit
//! had returned has a number from that of the commit on. A snapshot that began before a write was
//! called has a smaller number than the write. If one snapshot follows another in time, its number
//! is not smaller. Each read of a snapshot finds the state at its number (`reads.rs`). So it sees
//! the commit, does not see the later write, and sees no older state than the earlier snapshot.
//!
//! **The caller gives the numbers.** They are not the order of the writes. The state at `s` is
//! still known: the versions with numbers up to `s` whose writes have succeeded. Moments are the
//! watermarks here. `publish`, `now` and `snapshot` name theirs, and a successful write with the
//! number `n` takes effect at a watermark below `n`. So no such write can begin after a snapshot at
//! `n` has begun. The newest version of a key does not follow from the numbers: `latest.rs`
//! searches for an order of the calls on each key.
//!
//! # What they miss
//! * If the caller gives the numbers, the watermark and each key are checked apart. An order of the
//!   calls on all of them together may be missing although each has one. `Exists` is only compared
//!   with the writes that have succeeded, and `NotNewer` may name a version that came too late.
//! * `history` is not an atomic read: only its first version belongs to a moment.
//! * A version that stays too long is noticed after a `prune` only.
//! * The number of versions that `prune` returns is not checked.
//!
//! # Complexity
//! Reads and moments take O(n log n) for n calls, and a reader at an old number time for each
//! snapshot. A list takes time for each version of its key, times the calls of `prune`, times the
//! snapshots. See [`crate::linearizable`] for the search.

mod call;
mod kept;
mod latest;
mod moments;
mod reads;
mod record;
mod report;
mod subject;
mod traffic;
mod written;

pub use call::{Answer, Call, Event, Expected, Found, History, Life, Unreadable, Write};
pub use report::Wrong;
pub use subject::{NumberedKey, Numbering, Reader, Subject, versioned};

use crate::clock::Clock;
use crate::crew::together;
use crate::verify::{self, Kinds, Plan, Report, in_sequence};
use crate::{Failure, Outcome};
use record::Recorder;
use silvics::Options;
use silvics::versions::Retain;
use traffic::{Caller, Shared};
use written::Written;

/// The number of keys of a history.
pub const KEYS: u32 = 256;

/// Makes an empty map.
pub type Make<'a> = &'a (dyn Fn(&Options, Retain) -> Result<Box<dyn Subject>, Failure> + Sync);

/// Makers of maps of each kind.
#[derive(Clone, Copy)]
pub struct Makers<'a> {
    /// Makes a map that draws the numbers of versions.
    pub drawn: Make<'a>,
    /// Makes a map whose caller gives them.
    pub given: Make<'a>,
}

/// The result of checking a history that is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The number of keys whose check was given up.
    pub undecided: u64,
    /// The first of these keys.
    pub given_up: Option<u32>,
}

/// Checks a history.
pub fn judge(history: &History) -> Result<Judged, verify::Wrong> {
    let judged = || -> Result<Written<'_>, Wrong> {
        let written = Written::of(history)?;
        written.reads()?;
        written.conditions()?;
        written.moments()?;
        written.kept()?;
        Ok(written)
    };
    let written = judged().map_err(verify::Wrong::Versions)?;
    if history.drawn {
        return Ok(Judged::default());
    }
    let given_up = written.latest().map_err(verify::Wrong::History)?;
    Ok(Judged { undecided: u64::from(given_up.is_some()), given_up })
}

/// Records and checks histories according to `plan`, or until `stop` returns true, which it asks
/// before each history. Histories take turns: the map draws the numbers or its caller gives them,
/// and the map drops versions itself or retains them.
pub fn verify_versions(
    plan: &Plan,
    clock: &Clock,
    makers: Makers<'_>,
    stop: impl Fn() -> bool + Sync,
) -> Report {
    let record = |number, threads| record(plan, number, clock, makers, threads);
    in_sequence(plan, stop, record, check)
}

/// Checks a history, and adds it to a report. Returns its fault.
fn check(history: &History, report: &mut Report) -> Option<verify::Wrong> {
    let judged = judge(history);
    report.kinds.add(&Kinds::of_versions(&history.events));
    let judged = match judged {
        Ok(judged) => judged,
        Err(wrong) => return Some(wrong),
    };
    report.undecided += judged.undecided;
    match judged.given_up {
        None => report.operations += history.events.len() as u64,
        Some(key) => _ = report.given_up.get_or_insert_with(|| format!("key {key}")),
    }
    None
}

/// Records history `number`. Returns also whether the map at its end is as it must be.
fn record(
    plan: &Plan,
    number: u64,
    clock: &Clock,
    makers: Makers<'_>,
    threads: usize,
) -> Result<(History, Outcome), Failure> {
    let turn = number / plan.threads.len() as u64;
    let (drawn, retains_all) = (turn.is_multiple_of(2), turn / 2 % 3 == 2);
    let make = if drawn { makers.drawn } else { makers.given };
    let map = make(&plan.options, if retains_all { Retain::All } else { Retain::Snapshots })?;
    let shared = Shared::default();
    let mut calls = together(threads, |thread, crew| {
        let recorder = Recorder::new(&*map, clock, thread);
        let kind = (drawn, retains_all);
        Caller::new(recorder, &shared, plan, number, (thread, threads), kind).run(crew)
    })?;
    let mut recorder = Recorder::new(&*map, clock, 0);
    let present = traffic::at_rest(&mut recorder, &shared, &mut calls, drawn);
    let mut history = History { number, threads, drawn, retains_all, ..History::default() };
    for calls in calls {
        history.events.extend(calls.events);
        history.lives.extend(calls.lives);
    }
    history.events.append(&mut recorder.events);
    history.lives.append(&mut recorder.lives);
    Ok((history, present.and_then(|present| map.at_rest(present))))
}

#[cfg(all(test, not(miri)))]
mod broken;
#[cfg(test)]
mod tests;
