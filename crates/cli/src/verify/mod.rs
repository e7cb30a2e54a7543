//! `silvics verify`: records histories of indexes and checks them, or checks a history in a file.

mod buffers;
mod plan;
mod report;
mod stores;

use crate::catalogue::Verify;
use crate::catalogue::select;
use crate::flags::args::{Format, VerifyArgs};
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::output::{File, Outputs};
use crate::progress::{self, Progress};
use plan::{Plan, Schedule, Target};
use report::{Checked, Report, Row};
use silvics::key::encode_u128;
use silvics_testkit::clock::Clock;
use silvics_testkit::linearizable::Verdict;
use silvics_testkit::trace::{self, TraceKey};
use silvics_testkit::verify::{self, Found, History, Numbers, Wrong};
use silvics_testkit::{Failure, Resource, TestKey};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The exit code if something is not linearizable.
const WRONG: u8 = 1;
/// The exit code if a check was given up, so that nothing is known.
const UNDECIDED: u8 = 3;

/// Runs the verb and returns its exit code.
pub fn verify(args: &VerifyArgs) -> Result<u8, Error> {
    match (&args.check, &args.store) {
        (Some(path), _) => check(path, args),
        (None, Some(stores)) => stores::verify(args, stores.as_deref()),
        (None, None) => record(args),
    }
}

/// Checks the history in a file.
fn check(path: &Path, args: &VerifyArgs) -> Result<u8, Error> {
    plan::alone("--check", args)?;
    let others = [
        ("--replay", args.replay.is_some()),
        ("--history", args.history.is_some()),
        ("--seconds", args.seconds.is_some()),
    ];
    plan::refuse("--check", "one reads a history, the other makes some", others)?;
    let format = Format::parse(&args.format)?;
    let error = |problem: String| Error::File { flag: "--check", path: path.into(), problem };
    let text = fs::read(path).map_err(|e| error(format!("cannot be read: {e}")))?;
    let trace = trace::read(&text).map_err(|e| error(format!("is not a history: {e}")))?;
    let operations = trace.events.len();
    let verdict = trace.judge();
    let code = match &verdict {
        Verdict::Linearizable => 0,
        Verdict::Violation(_) => WRONG,
        Verdict::Undecided { .. } => UNDECIDED,
    };
    Checked::of(operations, verdict).print(format)?;
    Ok(code)
}

/// Records histories and checks them.
fn record(args: &VerifyArgs) -> Result<u8, Error> {
    let plan = Plan::new(args)?;
    let history = args.history.as_deref().map(|path| File::new("--history", path)).transpose()?;
    let schedule =
        args.schedule.as_deref().map(|path| File::new("--schedule", path)).transpose()?;
    File::distinct([&history, &schedule])?;
    interrupt::catch();
    let clock = Arc::new(Clock::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut report = Report::new(&plan, &clock, Machine::this(cores));
    let progress = Progress::new(plan.targets.len());
    // The last history, or the wrong one, and the schedule that makes the wrong one again.
    let (mut last, mut again) = (None, None);
    for target in &plan.targets {
        progress.doing(format!("{} {}", target.index, target.place.name()));
        let begun = Instant::now();
        select::plant(target.canary);
        let recorded = watch(target.verify, &plan.recorded(target), &clock, STUCK);
        select::plant(None);
        if let Some(failure) = recorded.exhausted {
            return Err(exhausted(target, &failure));
        }
        again = recorded.found.as_ref().map(|found| plan.schedule(target, found.history));
        report.rows.push(Row::of(target, &recorded, begun.elapsed()));
        progress.step();
        // A map with versions leaves no history for a file.
        let recorded = recorded.last.map(|history| (target, history));
        last = if again.is_some() { recorded } else { recorded.or(last) };
        if again.is_some() || interrupt::pending() {
            break;
        }
    }
    drop(progress);
    report.sum(interrupt::pending());
    let mut outputs = Outputs::default();
    outputs.tried(report.print(plan.format));
    outputs.tried(write_history(history.as_ref(), last.as_ref()));
    outputs.tried(write_schedule(schedule.as_ref(), again.as_ref()));
    // Findings count for more than a file that cannot be written.
    match (report.violations > 0, outputs.finish()) {
        (true, Err(error)) => progress::note(&error.to_string()),
        (_, written) => written?,
    }
    let undecided = report.undecided > 0;
    Ok(match (report.violations > 0, report.interrupted) {
        (true, _) => WRONG,
        (false, true) => interrupt::EXIT_CODE,
        (false, false) if undecided => UNDECIDED,
        (false, false) => 0,
    })
}

/// The error for a run that could not go on.
fn exhausted(target: &Target, failure: &Failure) -> Error {
    let problem = failure.reason();
    match failure.exhausted() {
        Some(Resource::Threads) => Error::value(
            "--threads",
            format_args!("{problem}: name fewer, or raise its limits of threads and memory"),
        ),
        _ => Error::Exhausted { index: target.index.clone(), problem: problem.into() },
    }
}

/// Writes the history, if it is requested and there is one.
fn write_history(file: Option<&File>, last: Option<&(&Target, History)>) -> Result<(), Error> {
    match (file, last) {
        (Some(output), Some((target, last))) => {
            let lines = lines(target, last);
            output.write(&lines.map_err(|e| output.error(format!("cannot be written: {e}")))?)?;
        }
        (Some(output), None) => {
            let (flag, path) = (output.flag, output.path.display());
            progress::note(&format!(
                "{flag}: there are no calls for a file, `{path}` is as it was"
            ));
        }
        (None, _) => {}
    }
    Ok(())
}

/// Writes the schedule, if it is requested and there is one.
fn write_schedule(file: Option<&File>, again: Option<&Schedule>) -> Result<(), Error> {
    if let (Some(output), Some(again)) = (file, again) {
        let mut text = serde_json::to_vec_pretty(again)
            .map_err(|e| output.error(format!("cannot be written: {e}")))?;
        text.push(b'\n');
        output.write(&text)?;
    }
    Ok(())
}

/// The time after which a call is taken to never return. A history takes some milliseconds.
const STUCK: Duration = Duration::from_secs(15);

/// Records on a thread of its own, and gives up if that thread gets stuck. Stuck threads are left
/// behind.
fn watch(
    verify: Verify,
    plan: &verify::Plan,
    clock: &Arc<Clock>,
    stuck: Duration,
) -> verify::Report {
    let first = interrupt::beats(); // there is one before each history
    let mut beats = (first, Instant::now());
    let (send, receive) = channel();
    let clock = Arc::clone(clock);
    let spawned = std::thread::Builder::new().spawn({
        let plan = plan.clone();
        move || {
            let _ = send.send(verify(&plan, &clock)); // nobody listens once it was given up
        }
    });
    let thread = match spawned {
        Ok(thread) => thread,
        Err(error) => return verify::Report::without_threads(plan, &error),
    };
    loop {
        match receive.recv_timeout(Duration::from_millis(100)) {
            Ok(report) => return report,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return verify::Report::default(),
            },
            Err(RecvTimeoutError::Timeout) if interrupt::beats() != beats.0 => {
                beats = (interrupt::beats(), Instant::now());
            }
            Err(RecvTimeoutError::Timeout) if beats.1.elapsed() >= stuck => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let what = format!("no history has ended for {stuck:?}: a call never returns");
    let history = match plan.numbers {
        Numbers::All => beats.0.saturating_sub(first + 1),
        Numbers::Only(number) => number,
    };
    let threads = plan.threads[(history % plan.threads.len() as u64) as usize];
    let found = Found { history, threads, what: Wrong::Other(what) };
    verify::Report { found: Some(found), ..verify::Report::default() }
}

/// A history as JSON lines. A key of 128 bits is written as its 16 bytes, the highest first.
fn lines(target: &Target, history: &History) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let key = |number: u32| match target.key_type {
        KeyType::U64 => TraceKey::Word(<u64 as TestKey>::nth(u64::from(number))),
        KeyType::U128 => {
            TraceKey::Bytes(encode_u128(<u128 as TestKey>::nth(u64::from(number))).into())
        }
        KeyType::Bytes | KeyType::String => {
            TraceKey::Bytes(<[u8] as TestKey>::nth(u64::from(number)).into_vec())
        }
    };
    trace::write(&history.threads, &history.ends, key, &mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_never_returns_is_told() {
        fn never(_: &verify::Plan, _: &Clock) -> verify::Report {
            interrupt::pending_beat();
            loop {
                std::thread::park();
            }
        }
        let plan = verify::Plan { threads: vec![2, 3], ..verify::Plan::default() };
        let stuck = Duration::from_millis(300);
        let report = watch(never, &plan, &Arc::new(Clock::counter()), stuck);
        let found = report.found.unwrap();
        assert_eq!((found.history, found.threads), (0, 2));
        assert!(found.what.to_string().contains("300ms: a call never returns"), "{}", found.what);
    }
}
