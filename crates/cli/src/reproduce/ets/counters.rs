//! ets/5.5: counters of entries that threads share, or that each thread has for itself.
//!
//! # Method
//! An index counts its keys in one line that all threads write (`Counting::Single`), or in a line
//! for each thread once it has about a thousand keys (`Counting::Striped`). The line that threads
//! share adds up the keys that were counted in it, which is how often it was written. Each thread
//! has keys of its own, so that it meets others at the counter alone, if the index allows this.

use super::erlang::Counters;
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::Experiment;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, at_least, in_turns, median, rate, ratio, run};
use silvics::frame::Algorithm;
use silvics::{AllocError, CaTree, Counting, Index, Lookup, Options, OrderedIndex, WordTree};
use std::hint::black_box;
use std::time::Instant;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: "ets/5.5",
    title: "decentralized counters",
    source: "Erlang/OTP pull requests 2190 and 2229",
    machine: "haswell",
    claim: "counting entries and memory on a line for each scheduler takes the write of a shared \
            line out of each insert and removal, so that these scale; an exact count then needs a \
            snapshot of all lines and is slower, so a table can have a single counter",
    carried_by: "fact; clock reported",
    seen_if: "shared-line writes per insert 1 → 0; len exact when quiescent; the cost of len \
            reported",
    elsewhere: false,
    cannot_show: &[
        "the counter of memory: pools here count the memory that they take from the system, and \
         no single entry",
        "the effect for many schedulers: this needs a machine with many cores",
    ],
    gather,
};

const BOTH: [Counting; 2] = [Counting::Single, Counting::Striped];

/// The threads of the measurements.
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// The threads that insert and remove for the facts.
const WRITERS: usize = 4;

/// The keys of an index before threads work on it: enough for a counter with a line for each
/// thread.
const FIRST: u64 = 4096;
/// The keys that a thread has inserted and not yet removed.
const WINDOW: u64 = 256;
/// The calls in a sample of the cost of a count.
const CALLS: u32 = 2000;

fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        let keys = lab.plan.keys(1 << 20) as u64 / WRITERS as u64;
        for kind in Kind::ALL {
            for counting in BOTH {
                lines.extend(facts(kind, counting, keys)?);
            }
        }
    }
    if lab.wants(Level::Clock) {
        let rounds = Rounds::new(lab.plan.quick);
        for kind in Kind::ALL {
            for threads in THREADS {
                lines.push(speeds(kind, threads, rounds)?);
            }
            lines.extend(costs(kind, rounds)?);
        }
        lines.extend(of_erlang(lab)?);
    }
    Ok(lines)
}

/// Lines on Erlang's tables, if they are measured.
fn of_erlang(lab: &Lab) -> Result<Vec<Evidence>, Error> {
    let (Some(erlang), keys) = (&lab.erlang, lab.plan.keys(1 << 20) as u64) else {
        return Ok(Vec::new());
    };
    let mut lines = Vec::new();
    for (counters, name) in [(Counters::Single, "single"), (Counters::Striped, "striped")] {
        let mut seconds = Vec::new();
        let mut micros = 0.0;
        for threads in THREADS {
            let counted = erlang.counters(counters, threads, keys);
            let counted = counted.map_err(|problem| super::failed("ETS", problem))?;
            seconds.push(format!("{:.3}", counted.seconds));
            micros = counted.size_micros;
        }
        let what = format!("ETS, {name}: time of {keys} inserts with {THREADS:?} processes");
        let found = format!("{} s; reading the size takes {micros:.2} µs", seconds.join(", "));
        lines.push(Evidence::noted(Level::Clock, what, found));
    }
    Ok(lines)
}

/// An index that counts its keys.
trait Counted: OrderedIndex + Lookup<Key = u64> {
    /// The number of inserts and removals that have written the line that threads share.
    fn in_shared_line(&self) -> u64;
}

impl<A: Algorithm<Key = u64>> Counted for Index<A> {
    fn in_shared_line(&self) -> u64 {
        self.counted_in_shared_line()
    }
}

/// The indexes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Words,
    Ca,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Words, Self::Ca];

    fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Ca => "ca-tree",
        }
    }

    fn failed(self, error: AllocError) -> Error {
        Error::Alloc { index: self.name().into(), error }
    }

    /// An index with its first keys.
    fn make(self, counting: Counting) -> Result<Box<dyn Counted>, Error> {
        let options = Options { counting, ..super::subjects::apart() };
        let made: Result<Box<dyn Counted>, AllocError> = match self {
            Self::Words => {
                WordTree::<u64>::with_options(&options).map(|index| Box::new(index) as _)
            }
            Self::Ca => CaTree::<u64>::with_options(&options).map(|index| Box::new(index) as _),
        };
        let index = made.map_err(|error| self.failed(error))?;
        let guard = index.domain().pin();
        for key in 0..FIRST {
            index.insert(key, key, &guard).map_err(|error| self.failed(error))?;
        }
        drop(guard);
        Ok(index)
    }
}

fn name(counting: Counting) -> &'static str {
    match counting {
        Counting::Single => "single",
        Counting::Striped => "striped",
    }
}

/// A key that no other thread has.
fn key(thread: usize, number: u64) -> u64 {
    (1 + thread as u64) << 40 | number
}

/// Threads insert keys, and remove every other one. Lines on the shared line, and on the count.
fn facts(kind: Kind, counting: Counting, keys: u64) -> Result<[Evidence; 2], Error> {
    let index = kind.make(counting)?;
    let before = index.in_shared_line();
    let work = |thread: usize| -> Result<(), Failure> {
        let failed = |error| Failure::Alloc { error, done: 0 };
        for number in 0..keys {
            let guard = index.domain().pin();
            index.insert(key(thread, number), number, &guard).map_err(failed)?;
            if number % 2 == 1 {
                index.remove(key(thread, number), &guard).map_err(failed)?;
            }
            if interrupt::pending() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(())
    };
    let done = Crew::new().work(WRITERS, |share| work(share.thread), || ());
    let done = done.and_then(|done| done.into_iter().collect::<Result<Vec<()>, _>>());
    done.map_err(|failure| failure.of(kind.name()))?;
    let (threads, inserts, removals) = (WRITERS as u64, keys, keys / 2);
    let writes = threads * (inserts + removals);
    let shared = index.in_shared_line() - before;
    let title = format!("{}, {}", kind.name(), name(counting));
    let expected = Expected::exactly(if counting == Counting::Single { 1.0 } else { 0.0 });
    let what = format!("{title}: writes of the shared line for each insert or removal");
    let found = shared as f64 / writes as f64;
    let line = Evidence::fact(what, Unit::Number(3), expected, found);
    let wanted = (FIRST + threads * (inserts - removals)) as usize;
    let (len, snapshot) = (index.len(), index.len_snapshot());
    let found = format!("{len}, and a snapshot {}", text(snapshot));
    let exact = len == wanted && snapshot == Some(wanted);
    let what = format!("{title}: `len` after {WRITERS} threads have written");
    let len = Evidence::plain(what, wanted.to_string(), found, exact);
    Ok([line.with(&format!("({shared} of {writes})")), len])
}

fn text(snapshot: Option<usize>) -> String {
    snapshot.map_or("none".into(), |len| len.to_string())
}

/// Each thread inserts keys and removes those it has inserted some time before.
fn speeds(kind: Kind, threads: usize, rounds: Rounds) -> Result<Evidence, Error> {
    let [single, striped] = BOTH.map(|counting| kind.make(counting));
    let indexes = [single?, striped?];
    let crew = Crew::new();
    let samples = in_turns(2, rounds.rounds, |subject, round| {
        let index = &*indexes[subject];
        let work = |thread: usize, ended: &crate::reproduce::turns::Ended| {
            let failed = |error| Failure::Alloc { error, done: 0 };
            // A round has keys of its own.
            let (first, mut number) = (round << 30, round << 30);
            let mut guard = index.domain().pin();
            while !ended.is_over() {
                index.insert(key(thread, number), number, &guard).map_err(failed)?;
                if number >= first + WINDOW {
                    index.remove(key(thread, number - WINDOW), &guard).map_err(failed)?;
                }
                number += 1;
                if number % 16 == 0 {
                    guard.repin();
                }
            }
            for left in number.saturating_sub(WINDOW).max(first)..number {
                index.remove(key(thread, left), &guard).map_err(failed)?;
            }
            Ok(2 * (number - first))
        };
        let laps = run(&crew, threads, rounds.time, &work);
        Ok::<_, Error>(rate(&laps.map_err(|failure| failure.of(kind.name()))?))
    })?;
    for index in &indexes {
        if index.len() != FIRST as usize {
            let what = format!("`len` is {} and must be {FIRST}", index.len());
            return Err(Error::Wrong { index: kind.name().into(), what });
        }
    }
    let what = format!(
        "{}, {threads} thread{}, inserts and removals: striped / single",
        kind.name(),
        crate::flags::units::plural(threads)
    );
    let ratio = ratio(&samples[1], &samples[0]);
    let line = match threads {
        1 => Evidence::no_slower(what, ratio),
        _ => Evidence::faster(what, "scales", ratio),
    };
    let [single, striped] = [0, 1].map(|at| median(&samples[at]) / 1e6);
    Ok(line.with(&format!("(M/s: single {single:.2}, striped {striped:.2})")))
}

/// The time that a count takes, once several threads have written.
fn costs(kind: Kind, rounds: Rounds) -> Result<[Evidence; 2], Error> {
    let threads = THREADS[THREADS.len() - 1];
    let crew = Crew::new();
    let [single, striped] = BOTH.map(|counting| kind.make(counting));
    let indexes = [single?, striped?];
    for index in &indexes {
        let work = |thread: usize| {
            let guard = index.domain().pin();
            index.insert(key(thread, 0), 0, &guard).map(|_| ())
        };
        let done = crew.work(threads, |share| work(share.thread), || ());
        let done = done.map_err(|failure| failure.of(kind.name()))?;
        done.into_iter().collect::<Result<Vec<()>, _>>().map_err(|error| kind.failed(error))?;
    }
    let len: fn(&dyn Counted) -> Option<usize> = |index| Some(index.len());
    let snapshot: fn(&dyn Counted) -> Option<usize> = |index| index.len_snapshot();
    let ways = [(0, len), (1, len), (0, snapshot), (1, snapshot)];
    let samples = in_turns(ways.len(), rounds.rounds, |way, _| {
        let (at, count) = ways[way];
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(count(black_box(&*indexes[at])));
        }
        if interrupt::pending() {
            return Err(Error::Interrupted);
        }
        Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS))
    })?;
    let line = |call: &str, [single, striped]: [usize; 2]| {
        let what = format!(
            "{}, lines of {threads} threads: time of `{call}`, striped / single",
            kind.name()
        );
        let ratio = ratio(&samples[striped], &samples[single]);
        let [single, striped] = [single, striped].map(|at| median(&samples[at]));
        let figures = format!("(single {single:.1} ns, striped {striped:.1} ns)");
        at_least(what, 1.0, "slower", ratio).with(&figures)
    };
    Ok([line("len", [0, 1]), line("len_snapshot", [2, 3])])
}
