//! Records histories on a store, while another thread checks the ones before.

use super::anomaly::Anomaly;
use super::check::{Verdict, check};
use super::face::{Make, Transactions};
use super::history::{End, Entry, GROUPS, History, Range};
use super::program::{Script, THREADS, Verbs};
use super::record::Recorder;
use crate::clock::Clock;
use crate::crew::together;
use crate::{Failure, Outcome};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The number of rounds of a history.
const ROUNDS: usize = crate::size::pick(12, 12, 2);
/// The turns of a thread in a round.
const TURNS: usize = crate::size::pick(60, 40, 4);
/// The most attempts of a turn, which ends with the first one that commits.
const ATTEMPTS: usize = 3;
/// The keys of a store: few, so that transactions meet.
const KEYS: u64 = 24;
/// How often the transaction that reads everything at the end of a history is tried.
const TRIES_AT_REST: usize = 1000;

/// The time to stop, unless an anomaly is found before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Stop when this number of transactions has committed.
    Transactions(u64),
    /// Stop after this time.
    Elapsed(Duration),
}

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The numbers of threads, which successive histories use in turn. Each is taken to be at
    /// least 1 and at most [`THREADS_MAX`](Self::THREADS_MAX). If the list is empty, two threads
    /// record.
    pub threads: Vec<usize>,
    /// The numbers of keys, which successive stores have in turn: from 0 on. Each round of a
    /// history uses a few neighbours among them. Each is taken to be at least 1. If the list is
    /// empty, a store has 24.
    pub keys: Vec<u64>,
    /// The seed of all random choices.
    pub seed: u64,
    /// When to stop.
    pub until: Until,
    /// The number of histories on one store, one after the other, before the next store is made.
    pub histories_per_store: u64,
}

impl Plan {
    /// The most threads of a history.
    pub const THREADS_MAX: usize = THREADS as usize - 1;
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            threads: vec![2, 3],
            keys: vec![KEYS, 8 * KEYS],
            seed: crate::size::seed(),
            until: Until::Transactions(10_000),
            histories_per_store: 64,
        }
    }
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The committed transactions of the histories that were checked.
    pub committed: u64,
    /// The aborted attempts of these histories, voluntary ones included.
    pub aborted: u64,
    /// The operations of the committed transactions. A scan counts as one.
    pub operations: u64,
    /// The number of histories checked.
    pub histories: u64,
    /// The number of choices left open. See [`Verdict::Serializable`].
    pub open: u64,
    /// The time spent on checking.
    pub checking: Duration,
    /// The mistake found, which ends the run.
    pub found: Option<Found>,
    /// Why no more histories could be recorded: an allocation failed, or a thread was not started.
    pub exhausted: Option<Failure>,
}

/// A wrong history.
#[derive(Debug)]
pub struct Found {
    /// The number of the history.
    pub number: u64,
    /// The number of its threads.
    pub threads: usize,
    /// The fault of the history.
    pub what: Wrong,
    /// The history, unless it was lost with a thread that could not continue.
    pub history: Option<History>,
}

/// The fault of a history.
#[derive(Clone, Debug)]
pub enum Wrong {
    /// No serial order explains the transactions.
    Anomaly(Box<Anomaly>),
    /// Another fault: of the store's own check, or a panic.
    Other(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anomaly(anomaly) => anomaly.fmt(f),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

/// A store that serves several histories.
struct Session {
    store: Box<dyn Transactions>,
    /// The number of keys.
    keys: u64,
    /// The entries at the end of the last history.
    entries: Vec<Entry>,
    /// The number of values that a thread has written at most.
    written: u64,
    histories: u64,
}

/// A recorded history, or the reason why there is none.
struct Recording {
    number: u64,
    threads: usize,
    history: Option<History>,
    /// Whether the store was as it must be at the end.
    rests: Outcome,
}

/// Records and checks histories according to `plan`, or until `stop` returns true. It asks `stop`
/// before it records each history and before it checks each one.
pub fn verify_transactions(
    make: Make<'_>,
    plan: &Plan,
    clock: &Clock,
    stop: impl Fn() -> bool + Sync,
) -> Report {
    let over = AtomicBool::new(false);
    let (send, receive) = sync_channel::<Recording>(2);
    std::thread::scope(|scope| {
        let judge = Builder::new().spawn_scoped(scope, || {
            let receive = receive; // dropped with the judge
            check_all(&receive, &over, || _ = stop())
        });
        let judge = match judge {
            Ok(judge) => judge,
            Err(error) => {
                let exhausted = Some(Failure::threads(0, most(plan), &error));
                return Report { exhausted, ..Report::default() };
            }
        };
        let begun = Instant::now();
        let (mut number, mut committed) = (0, 0);
        let mut session = None;
        while !over.load(Ordering::Relaxed) && !stop() {
            let done = match plan.until {
                Until::Transactions(transactions) => committed >= transactions,
                Until::Elapsed(time) => begun.elapsed() >= time,
            };
            if done {
                break;
            }
            let recording = record(make, plan, clock, number, &mut session);
            committed += recording.history.as_ref().map_or(0, |history| count(history).0);
            let failed = recording.history.is_none();
            if send.send(recording).is_err() || failed {
                break; // the judge has found a mistake, or will find this one
            }
            number += 1;
        }
        drop(send);
        judge.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn most(plan: &Plan) -> usize {
    plan.threads.iter().copied().max().unwrap_or(0)
}

/// The number of committed transactions, of aborted ones, and of committed operations.
fn count(history: &History) -> Counts {
    let mut counts = Counts(0, 0, 0);
    for of in &history.transactions {
        match of.outcome {
            End::Committed => {
                counts.0 += 1;
                counts.2 += of.operations.len() as u64;
            }
            End::Aborted => counts.1 += 1,
        }
    }
    counts
}

/// Checks received histories until the sender is gone.
fn check_all(receive: &Receiver<Recording>, over: &AtomicBool, beat: impl Fn()) -> Report {
    let mut report = Report::default();
    while report.found.is_none()
        && report.exhausted.is_none()
        && let Ok(Recording { number, threads, history, rests }) = receive.recv()
    {
        beat();
        let begun = Instant::now();
        let wrong = history.as_ref().and_then(|history| {
            let Counts(committed, aborted, operations) = count(history);
            report.committed += committed;
            report.aborted += aborted;
            report.operations += operations;
            report.histories += 1;
            match check(history) {
                Verdict::Serializable { open } => {
                    report.open += open;
                    None
                }
                Verdict::Anomaly(anomaly) => Some(Wrong::Anomaly(anomaly)),
                Verdict::Unfit(why) => Some(Wrong::Other(why)),
            }
        });
        report.checking += begun.elapsed();
        // The transactions say more than the store at rest.
        let what = match (wrong, rests) {
            (Some(wrong), _) => wrong,
            (None, Ok(())) => continue,
            (None, Err(failure)) if failure.exhausted().is_some() => {
                report.exhausted = Some(failure);
                continue;
            }
            (None, Err(failure)) => Wrong::Other(failure.reason().to_owned()),
        };
        report.found = Some(Found { number, threads, what, history });
    }
    over.store(true, Ordering::Relaxed);
    report
}

/// Records history `number` on the store of the session, or on a new one, and catches a panic.
fn record(
    make: Make<'_>,
    plan: &Plan,
    clock: &Clock,
    number: u64,
    session: &mut Option<Session>,
) -> Recording {
    let turn = number % plan.threads.len().max(1) as u64;
    let threads = plan.threads.get(turn as usize).map_or(2, |&threads| threads);
    let threads = threads.clamp(1, Plan::THREADS_MAX);
    let attempt = || {
        if session.as_ref().is_none_or(|of| of.histories >= plan.histories_per_store) {
            *session = None;
            let turn = number / plan.histories_per_store.max(1) % plan.keys.len().max(1) as u64;
            let keys = plan.keys.get(turn as usize).map_or(KEYS, |&keys| keys);
            *session = Some(Session::new(make, keys.max(1))?);
        }
        match session {
            Some(session) => session.record(plan, clock, number, threads),
            None => Err(Failure::new("no store was made")),
        }
    };
    let caught = catch_unwind(AssertUnwindSafe(attempt))
        .unwrap_or_else(|panic| Err(Failure::new(format!("a call panicked: {}", told(&*panic)))));
    match caught {
        Ok((history, rests)) => Recording { number, threads, history: Some(history), rests },
        Err(failure) => Recording { number, threads, history: None, rests: Err(failure) },
    }
}

impl Session {
    fn new(make: Make<'_>, keys: u64) -> Result<Self, Failure> {
        let entry = |key: u64| (key, (key + 1) * THREADS + THREADS - 1);
        let entries: Vec<Entry> = (0..keys).step_by(2).map(entry).collect();
        Ok(Self { store: make(&entries)?, keys, entries, written: 0, histories: 0 })
    }

    /// Records one history.
    fn record(
        &mut self,
        plan: &Plan,
        clock: &Clock,
        number: u64,
        threads: usize,
    ) -> Result<(History, Outcome), Failure> {
        let store = &*self.store;
        let (keys, written) = (self.keys, self.written);
        let (scans, finds, groups) = (store.scans(), store.finds(), store.groups());
        let verbs = Verbs { scans, finds, groups };
        let recorded = together(threads, |thread, crew| {
            let mut recorder = Recorder::new(store, clock, thread);
            let mut script = Script::new(plan.seed, number, thread, keys, verbs);
            script.written = written;
            for _ in 0..ROUNDS {
                let round = script.round();
                crew.meet()?;
                for _ in 0..TURNS {
                    for _ in 0..ATTEMPTS {
                        let ended = recorder.attempt(|on| script.run(round, on))?;
                        if ended == End::Committed {
                            break;
                        }
                        std::thread::yield_now();
                    }
                }
            }
            Ok((recorder.transactions, script.written))
        })?;
        let mut history = History { initial: self.entries.clone(), transactions: Vec::new() };
        for (transactions, written) in recorded {
            history.transactions.extend(transactions);
            self.written = self.written.max(written);
        }
        self.histories += 1;
        let mut recorder = Recorder::new(store, clock, 0);
        self.entries = read_all(&mut recorder, keys, verbs)?;
        history.transactions.append(&mut recorder.transactions);
        Ok((history, store.at_rest(&self.entries)))
    }
}

/// Reads everything in one transaction, when no other one is under way. Returns the entries.
fn read_all(recorder: &mut Recorder<'_>, keys: u64, verbs: Verbs) -> Result<Vec<Entry>, Failure> {
    let keys: Vec<u64> = (0..keys).collect();
    for _ in 0..TRIES_AT_REST {
        let mut entries = Vec::new();
        let ended = recorder.attempt(|on| {
            let values = on.read_many(&keys)?;
            let present = keys.iter().zip(values);
            entries = present.filter_map(|(&key, value)| Some((key, value?))).collect();
            if verbs.scans {
                let all = Range::ascending(0, u64::MAX);
                on.scan(all)?;
                on.scan(all.reversed())?;
            }
            if verbs.groups {
                let all = Range::ascending(0, GROUPS - 1).by_group();
                on.scan(all)?;
                on.scan(all.reversed())?;
            }
            if verbs.finds {
                for &(_, value) in &entries {
                    on.find(value)?;
                }
            }
            Ok(())
        })?;
        if ended == End::Committed {
            return Ok(entries);
        }
    }
    Err(Failure::new(format!(
        "a transaction aborted {TRIES_AT_REST} times, although no other one was under way"
    )))
}

/// The message of a panic.
fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Committed transactions, aborted ones, and committed operations.
#[derive(Default)]
struct Counts(u64, u64, u64);
