//! Records concurrent histories of an index and checks them, without end. `silvics verify` runs it,
//! and the suite's property [`crate::histories`] runs a small version.
//!
//! # Method
//! A *history* consists of all calls on one index between its creation and its drop: some thousand
//! calls of several threads on a few keys (see `traffic`), each stamped before and after
//! ([`crate::clock`]). At its end all threads are joined and every key is looked up.
//! [`silvics::Lookup::len`] must then be the number of keys found, and the structure's own
//! check must pass. While the next history is recorded, another thread checks the calls on each key
//! ([`crate::linearizable`]). If the index has ends, some rounds also call `first`, `last`,
//! `pop_first` and `pop_last`. Such a history is checked as a whole
//! ([`crate::linearizable::ordered`]).
//!
//! The observation of a key by a scan counts as a lookup at some moment of the scan: this is the
//! guarantee of [`silvics::OrderedScan`]. The order of a scan is checked at once.
//!
//! A history follows from the seed and its number, as far as threads can repeat themselves: it has
//! equal verbs on equal keys, which meet in new ways. (A compare-exchange expects the state that
//! its thread has seen.) [`Numbers::Only`] repeats one history.

mod foreign;
mod judge;
mod kinds;
mod ordered;
mod traffic;

pub use foreign::{Foreign, ForeignCalls, verify_foreign};
pub use kinds::Kinds;
pub use ordered::{
    AllScans, MapEnds, NoScans, OrderedCalls, Ranges, RangesRead, RangesUpdated, ScansAndEnds,
};
pub use traffic::Write;

use crate::clock::Clock;
use crate::crew::together;
use crate::history::{Calls, Event, Recorder};
use crate::keys::{TestKey, nth};
use crate::linearizable::Violation;
use crate::linearizable::ordered::OrderedEvent;
use crate::make::Make;
use crate::rest::counts;
use crate::{Failure, Outcome, Subject};
use judge::Judge;
use silvics::{Options, OwnedKey};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use traffic::{Caller, KEYS, ROUNDS, TURNS};

/// The shares of calls, out of a hundred, if threads choose at random.
///
/// If threads sweep over keys, one pass inserts and the next removes. Inserts and removals then
/// share the calls that are no lookups or scans, unless one of the two shares is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// The share of `get`, `get_many`, `first` and `last`.
    pub lookups: u32,
    /// The share of `try_insert`, `insert`, `insert_many` and `compare_exchange` to a value.
    pub inserts: u32,
    /// The share of `remove`, `compare_exchange` to absent, `pop_first` and `pop_last`.
    pub removals: u32,
    /// The share of ranges, descending ranges and cursors; lookups if an index has no scans.
    pub scans: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { lookups: 38, inserts: 32, removals: 28, scans: 2 }
    }
}

/// The numbers of the histories to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// All histories from 0 on.
    All,
    /// One history, again and again.
    Only(u64),
}

/// The time to stop, unless something is found before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Stop after this many histories.
    Histories(u64),
    /// Stop after this time.
    Elapsed(Duration),
}

/// The plan of a run: the histories to record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The numbers of threads, which successive histories use in turn; each at most
    /// [`THREADS_MAX`].
    pub threads: Vec<usize>,
    /// The shares of calls.
    pub mix: Mix,
    /// The seed of all random choices.
    pub seed: u64,
    /// The numbers of the histories.
    pub numbers: Numbers,
    /// When to stop.
    pub until: Until,
    /// The options with which indexes are made.
    pub options: Options,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            threads: vec![2, 3],
            mix: Mix::default(),
            seed: crate::size::seed(),
            numbers: Numbers::All,
            until: Until::Histories(1),
            options: Options::default(),
        }
    }
}

/// The most threads of a history. More threads would write each other's values.
pub const THREADS_MAX: usize = 256;

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of calls whose answers were checked. Each lookup of a batch counts as one, and so
    /// does a scan.
    pub operations: u64,
    /// The number of indexes created, driven and dropped.
    pub histories: u64,
    /// The number of calls of each kind, also of those whose check was given up.
    pub kinds: Kinds,
    /// The number of checks that were given up, each of a key or of a whole history. Their calls
    /// are not in `operations`.
    pub undecided: u64,
    /// The first of these checks, and the limit that it met.
    pub given_up: Option<String>,
    /// The processor time spent on checking.
    pub checking: Duration,
    /// The mistake found, which ends the run.
    pub found: Option<Found>,
    /// The last history checked, or the wrong one, unless its calls were lost with a thread that
    /// could not continue.
    pub last: Option<History>,
    /// Why no more histories could be recorded: an allocation failed, or a thread was not started.
    pub exhausted: Option<Failure>,
}

impl Report {
    /// The report of a run for which the system did not even start the threads that record and
    /// check.
    pub fn without_threads(plan: &Plan, error: &std::io::Error) -> Self {
        let asked = plan.threads.iter().copied().max().unwrap_or(0);
        Self { exhausted: Some(Failure::threads(0, asked, error)), ..Self::default() }
    }
}

/// A wrong history.
#[derive(Debug)]
pub struct Found {
    /// The number of the history.
    pub history: u64,
    /// The number of its threads.
    pub threads: usize,
    /// The fault of the history.
    pub what: Wrong,
}

/// The fault of a history.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// No order explains these calls.
    History(Violation),
    /// These calls on a map with versions contradict each other.
    Versions(crate::versions::Wrong),
    /// Another fault: of the structure's own check, the count, the order of a scan, or a panic.
    Other(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::History(violation) => violation.fmt(f),
            Self::Versions(wrong) => wrong.fmt(f),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

/// The calls of one history, by thread.
#[derive(Debug, Default)]
pub struct History {
    /// The number of the history.
    pub number: u64,
    /// The calls of each thread on keys, in order.
    pub threads: Vec<Vec<Event>>,
    /// The calls on ends, and on atomic ranges.
    pub ends: Vec<OrderedEvent<u32>>,
    scans: u64,
    /// The number of events that are not calls of their own: parts of scans.
    parts: u64,
}

impl History {
    /// The history with the given calls of each thread.
    fn of(number: u64, threads: Vec<Calls>) -> Self {
        let mut history = Self { number, ..Self::default() };
        for calls in threads {
            history.threads.push(calls.events);
            history.ends.extend(calls.ends);
            history.scans += calls.scans;
            history.parts += calls.parts;
        }
        history
    }
}

/// The keys of recorded events, indexed by their number.
pub fn keys<I: Subject + ?Sized>() -> Vec<OwnedKey<I>> {
    (0..u64::from(KEYS)).map(nth::<I>).collect()
}

/// Records and checks histories according to `plan`, or until `stop` returns true. It asks `stop`
/// before it records each history and before it checks each one.
pub fn verify<I: Subject + ?Sized, S: OrderedCalls<I>>(
    make: Make<I>,
    plan: &Plan,
    clock: &Clock,
    ordered: S,
    stop: impl Fn() -> bool + Sync,
) -> Report {
    let keys = keys::<I>();
    record_all::<I::Key>(plan, &keys, stop, |number, spare| {
        record::<I, S>(make, plan, number, clock, &keys, ordered, spare)
    })
}

/// Records histories by `record`, which gets their number, and checks them meanwhile.
fn record_all<K: TestKey + ?Sized>(
    plan: &Plan,
    keys: &[K::Owned],
    stop: impl Fn() -> bool + Sync,
    record: impl Fn(u64, &Spare) -> Recorded,
) -> Report {
    let found = AtomicBool::new(false);
    let spare = Mutex::new(Vec::new());
    let (send, receive) = sync_channel::<Recorded>(2);
    std::thread::scope(|scope| {
        let judge = Builder::new().spawn_scoped(scope, || {
            let receive = receive; // dropped with the judge
            check_all::<K>(&receive, keys, &found, &spare, || {
                stop();
            })
        });
        let judge = match judge {
            Ok(judge) => judge,
            Err(error) => return Report::without_threads(plan, &error),
        };
        let begun = Instant::now();
        let over = |done: u64| match plan.until {
            Until::Histories(histories) => done >= histories,
            Until::Elapsed(time) => begun.elapsed() >= time,
        };
        let mut done = 0;
        while !over(done) && !found.load(Ordering::Relaxed) && !stop() {
            let number = match plan.numbers {
                Numbers::All => done,
                Numbers::Only(number) => number,
            };
            if send.send(record(number, &spare)).is_err() {
                break; // the judge has found a mistake
            }
            done += 1;
        }
        drop(send);
        judge.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The result of one history before its calls are checked.
struct Recorded {
    /// The calls, unless some thread could not continue.
    history: Option<History>,
    found: Option<Found>,
    exhausted: Option<Failure>,
}

/// Checks received histories until the sender is gone.
fn check_all<K: TestKey + ?Sized>(
    receive: &Receiver<Recorded>,
    keys: &[K::Owned],
    found: &AtomicBool,
    spare: &Spare,
    beat: impl Fn(),
) -> Report {
    let mut report = Report::default();
    let mut judge = Judge::new(KEYS as usize);
    while report.found.is_none()
        && report.exhausted.is_none()
        && let Ok(recorded) = receive.recv()
    {
        report.exhausted = recorded.exhausted;
        report.found = recorded.found;
        let Some(history) = recorded.history else {
            report.last = None;
            continue;
        };
        report.histories += 1;
        beat();
        let begun = Instant::now();
        report.kinds.add(&Kinds::of(&history));
        match judge.judge(&history, |key| K::show(&keys[key])) {
            Ok(judged) => {
                report.undecided += judged.undecided;
                report.given_up = report.given_up.or(judged.given_up);
                report.operations += judged.events.saturating_sub(history.parts);
            }
            Err(violation) => {
                let (number, threads) = (history.number, history.threads.len());
                let what = Wrong::History(violation);
                report.found = Some(Found { history: number, threads, what });
            }
        }
        report.checking += begun.elapsed();
        let last = report.last.replace(history);
        spare.lock().extend(last.into_iter().flat_map(|history| history.threads));
    }
    found.store(true, Ordering::Relaxed);
    report
}

/// Records history `number`, and checks the index at its end.
fn record<I: Subject + ?Sized, S: OrderedCalls<I>>(
    make: Make<I>,
    plan: &Plan,
    number: u64,
    clock: &Clock,
    keys: &[OwnedKey<I>],
    ordered: S,
    spare: &Spare,
) -> Recorded {
    recorded(plan, number, |threads, history| {
        let mut index: Arc<I> = Arc::from(make(&plan.options)?);
        let calls = together(threads, |thread, crew| {
            let recorder = Recorder::new(&*index, clock, keys, thread, buffer(spare));
            let caller = Caller::new(plan, number, &index, recorder, thread, ordered);
            Ok(caller.run(crew)?.calls)
        })?;
        let history = history.insert(History::of(number, calls));
        look_up_all(&*index, clock, keys, history);
        at_rest(&mut index, history)
    })
}

/// Buffers for events that earlier histories have filled.
type Spare = Mutex<Vec<Vec<Event>>>;

/// Returns an empty buffer for the events of one thread.
fn buffer(spare: &Spare) -> Vec<Event> {
    let mut events = spare.lock().pop().unwrap_or_default();
    events.clear();
    events.reserve(ROUNDS * TURNS as usize + KEYS as usize);
    events
}

/// Runs `record`, which gets the number of threads and leaves the history, and catches its panic.
fn recorded(
    plan: &Plan,
    number: u64,
    record: impl FnOnce(usize, &mut Option<History>) -> Outcome,
) -> Recorded {
    let threads = plan.threads[(number % plan.threads.len() as u64) as usize];
    let mut history = None;
    let (mut exhausted, mut wrong) = (None, None);
    match catch_unwind(AssertUnwindSafe(|| record(threads, &mut history))) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) if failure.exhausted().is_some() => {
            (exhausted, history) = (Some(failure), None);
        }
        Ok(Err(failure)) => wrong = Some(failure.reason().to_owned()),
        Err(panic) => {
            wrong = Some(format!("a call panicked: {}", told(&*panic)));
            history = None; // it is incomplete
        }
    }
    let found = wrong.map(|why| Found { history: number, threads, what: Wrong::Other(why) });
    Recorded { history, found, exhausted }
}

/// Runs `record` with the number of threads of a history, which this returns, and catches a panic.
pub(crate) fn caught<T>(
    plan: &Plan,
    number: u64,
    record: impl FnOnce(usize) -> Result<T, Failure>,
) -> (usize, Result<T, Failure>) {
    let threads = plan.threads[(number % plan.threads.len() as u64) as usize];
    let result = catch_unwind(AssertUnwindSafe(|| record(threads)));
    let panicked = |panic: Box<dyn Any + Send>| {
        Err(Failure::new(format!("a call panicked: {}", told(&*panic))))
    };
    (threads, result.unwrap_or_else(panicked))
}

/// Records and checks histories one after the other according to `plan`, or until `stop` returns
/// true, which it asks before each history. `record` gets the number of a history and that of its
/// threads, and returns also whether the map at its end is as it must be. `check` adds a history to
/// the report, and returns its fault.
pub(crate) fn in_sequence<H>(
    plan: &Plan,
    stop: impl Fn() -> bool,
    record: impl Fn(u64, usize) -> Result<(H, Outcome), Failure>,
    check: impl Fn(&H, &mut Report) -> Option<Wrong>,
) -> Report {
    let mut report = Report::default();
    let begun = Instant::now();
    let over = |done: u64| match plan.until {
        Until::Histories(histories) => done >= histories,
        Until::Elapsed(time) => begun.elapsed() >= time,
    };
    while !over(report.histories) && !stop() {
        let number = match plan.numbers {
            Numbers::All => report.histories,
            Numbers::Only(number) => number,
        };
        let (threads, recorded) = caught(plan, number, |threads| record(number, threads));
        let found = match recorded {
            Ok((history, rests)) => {
                report.histories += 1;
                // The calls say more than the map at rest.
                let rests = rests.err().map(|failure| Wrong::Other(failure.reason().to_owned()));
                let begun = Instant::now();
                let found = check(&history, &mut report);
                report.checking += begun.elapsed();
                found.or(rests)
            }
            Err(failure) if failure.exhausted().is_some() => {
                report.exhausted = Some(failure);
                break;
            }
            Err(failure) => Some(Wrong::Other(failure.reason().to_owned())),
        };
        report.found = found.map(|what| Found { history: number, threads, what });
        if report.found.is_some() {
            break;
        }
    }
    report
}

/// Looks up every key, as one more round of the first thread.
fn look_up_all<I: Subject + ?Sized>(
    index: &I,
    clock: &Clock,
    keys: &[OwnedKey<I>],
    history: &mut History,
) {
    let events = std::mem::take(&mut history.threads[0]);
    let mut recorder = Recorder::new(index, clock, keys, 0, events);
    let guard = index.domain().pin();
    for key in 0..KEYS {
        recorder.get(key, &guard);
    }
    history.threads[0] = recorder.calls.events;
}

/// Checks an index that no thread uses any more.
fn at_rest<I: Subject + ?Sized>(index: &mut Arc<I>, history: &History) -> Result<(), Failure> {
    let last = history.threads[0].iter().rev().take(KEYS as usize);
    let present = last.filter(|event| event.op.saw_presence()).count();
    match Arc::get_mut(index) {
        Some(index) => counts(index, present),
        None => Err(Failure::new("something keeps the index that nobody uses any more")),
    }
}

/// The message of a panic.
fn told(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}
