//! memtable/2.2: threads that insert concurrently.

use super::inline::scattered;
use super::{Fill, KEY_BYTES, KEYS, MEMTABLES, batches};
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::host::switches::Switches;
use crate::memtable::keys::Key;
use crate::memtable::plan::Memtable;
use crate::memtable::run::Sample;
use crate::reproduce::Experiment;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, at_least, in_turns, median, ratio};
use silvics_memtable::skiplist::{ByBytes, InlineSkipList};
use silvics_memtable::{Draft, Kind, TableOptions, WriteMode, pack};
use silvics_pool::{ConcurrentArena, Config};
use std::sync::Arc;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: "memtable/2.2",
    title: "concurrent adds",
    source: "RocksDB, review D50589, 2015",
    machine: super::MACHINE,
    claim: "threads of a write group insert in parallel, and the arena has a shard for each core; \
            fillrandom with values of 100 bytes and no log: about 440 k per second with 1 thread, \
            above 1 M with 16 on one socket, about 900 k with 30 on both; neutral without \
            parallelism, a gain with more than one thread; mutex acquisitions per write 2 → 1",
    carried_by: "fact; clock reported",
    seen_if: "once sharded, at most one in fifty inserts takes the main arena's lock; no key lost, \
            sequence numbers visible in order; one thread, concurrent against plain, at least \
            0.98; eight threads at least 0.9 × two threads, and with adaptive yield no more \
            involuntary context switches than without",
    elsewhere: true,
    cannot_show: &["16 and 30 threads of two sockets: this needs such a machine"],
    gather,
};

/// The bytes of a value.
const VALUE_BYTES: usize = 100;
/// The threads of the facts and of the last lines of the clock: more than a small machine's cores.
const MANY: usize = 8;
/// The threads with which the clock compares these.
const FEW: usize = 2;
/// The most acquisitions of the main arena's lock by an insert.
const MAIN_LOCKS: f64 = 1.0 / 50.0;

fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(list(lab.plan.keys(KEYS) as u64 / MANY as u64)?);
        for memtable in MEMTABLES {
            lines.extend(path(lab, memtable)?);
            lines.extend(batches::facts(lab, memtable)?);
        }
    }
    if lab.wants(Level::Clock) {
        for memtable in MEMTABLES {
            lines.push(alone(lab, memtable)?);
            lines.extend(together(lab, memtable)?);
        }
    }
    Ok(lines)
}

/// Threads insert into a skip list over an arena that has its shards.
fn list(keys: u64) -> Result<[Evidence; 3], Error> {
    let name = Memtable::SkipList.name();
    let failed = |error| Error::Alloc { index: name.into(), error };
    let arena = Arc::new(ConcurrentArena::new(&Config::default(), TableOptions::BLOCK_BYTES));
    arena.make_shards().map_err(failed)?;
    let mut list = InlineSkipList::<ByBytes, _>::new(ByBytes, Arc::clone(&arena));
    let shared = &list;
    let work = |thread: usize| {
        let (mut key, value) = (Key::new(KEY_BYTES), [0; VALUE_BYTES]);
        for number in 0..keys {
            let number = number * MANY as u64 + thread as u64;
            let key = key.of(scattered(number));
            let draft = Draft::new(key, pack(number + 1, Kind::Put as u8), &value);
            let draft = draft.ok_or_else(|| Failure::Wrong("an entry is too long".into()))?;
            let place = shared.allocate(draft.len());
            let place = place.map_err(|error| Failure::Alloc { error, done: 0 })?;
            // SAFETY: the place has these bytes, and the entry is not written again.
            let is_new = unsafe {
                draft.write(place.entry());
                shared.insert_concurrently(place)
            };
            if !is_new {
                return Err(Failure::Wrong(format!("entry {number} is taken for another one")));
            }
        }
        Ok(())
    };
    let done = Crew::new().work(MANY, |share| work(share.thread), || ());
    let done = done.and_then(|done| done.into_iter().collect::<Result<Vec<()>, _>>());
    done.map_err(|failure| failure.of(name))?;
    let (inserts, retries) = (keys * MANY as u64, list.retries());
    let found = list.check().map_err(|what| Error::Wrong { index: name.into(), what })? as u64;
    let stats = arena.stats();
    let (locks, sharded) =
        (stats.main_locks - stats.unsharded_locks, stats.allocations - stats.unsharded_locks);
    let figures = format!("({locks} of {sharded}, {} shards)", stats.shards);
    let what =
        format!("{name}, {MANY} threads: acquisitions of the main arena's lock by an insert");
    let of_insert = locks as f64 / sharded as f64;
    let line = Evidence::fact(what, Unit::Number(4), Expected::most(MAIN_LOCKS), of_insert);
    let lost = (inserts - found.min(inserts)) as f64;
    let what = format!("{name}, {MANY} threads: keys lost");
    let retried = format!("{retries} of {inserts} inserts");
    Ok([
        line.with(&figures),
        Evidence::fact(what, Unit::Number(0), Expected::exactly(0.0), lost),
        Evidence::noted(Level::Fact, format!("{name}, {MANY} threads: repeated CASes"), retried),
    ])
}

/// Threads write to a buffer.
fn path(lab: &Lab, memtable: Memtable) -> Result<[Evidence; 2], Error> {
    let (mode, threads, yields) = (WriteMode::Pipelined, MANY, true);
    let fill = Fill { memtable, mode, threads, value_size: VALUE_BYTES, yields };
    let Sample { counts, .. } = fill.run(lab, &Crew::new(), 0)?;
    let stats = counts.stats;
    let name = memtable.name();
    let what = format!("{name}, {MANY} threads: mutex acquisitions of a write");
    let of_write = stats.mutexes as f64 / stats.writes as f64;
    let mutexes = Evidence::fact(what, Unit::Number(3), Expected::most(1.0), of_write);
    let why = format!("({} of the buffer's by {} writes)", stats.mutexes, stats.writes);
    let arena = counts.arena;
    let groups = format!(
        "{:.3} writes in a group; {} locks of the main arena for {} allocations, {} of them before \
         it had shards; {} repeated CASes; the content is complete",
        stats.writes as f64 / stats.groups as f64,
        arena.main_locks,
        arena.allocations,
        arena.unsharded_locks,
        counts.retries,
    );
    let what = format!("{name}, {MANY} threads: fillrandom");
    Ok([mutexes.with(&why), Evidence::noted(Level::Fact, what, groups)])
}

/// One thread, which never meets another one.
fn alone(lab: &Lab, memtable: Memtable) -> Result<Evidence, Error> {
    let crew = Crew::new();
    let samples = in_turns(2, rounds(lab), |subject, round| {
        // A group of one is inserted as by one writer, except in the pipelined mode.
        let mode = [WriteMode::Serial, WriteMode::Pipelined][subject];
        let (threads, value_size, yields) = (1, VALUE_BYTES, true);
        let fill = Fill { memtable, mode, threads, value_size, yields };
        fill.run(lab, &crew, round).map(|sample| sample.ops_per_s)
    })?;
    let what = format!("{}, 1 thread: concurrent / plain", memtable.name());
    let [plain, concurrent] = [0, 1].map(|at| median(&samples[at]) / 1e3);
    let figures = format!("(kops/s: plain {plain:.0}, concurrent {concurrent:.0})");
    Ok(at_least(what, 0.98, "neutral", ratio(&samples[1], &samples[0])).with(&figures))
}

/// The rounds of a comparison. A run takes seconds.
fn rounds(lab: &Lab) -> u64 {
    Rounds::new(lab.plan.quick).rounds / 2
}

/// More threads than cores, beside fewer, beside threads that block at once, and beside groups that
/// do not overlap, as those of the source.
fn together(lab: &Lab, memtable: Memtable) -> Result<[Evidence; 4], Error> {
    const RUNS: [(usize, WriteMode, bool); 5] = [
        (FEW, WriteMode::Pipelined, true),
        (MANY, WriteMode::Pipelined, true),
        (MANY, WriteMode::Pipelined, false),
        (MANY, WriteMode::Serial, true),
        (MANY, WriteMode::Parallel, true),
    ];
    let crew = Crew::new();
    let mut switches: [Vec<Option<Switches>>; RUNS.len()] = Default::default();
    let samples = in_turns(RUNS.len(), rounds(lab), |subject, round| {
        let (threads, mode, yields) = RUNS[subject];
        let fill = Fill { memtable, mode, threads, value_size: VALUE_BYTES, yields };
        let sample = fill.run(lab, &crew, round)?;
        if round > 0 {
            switches[subject].push(sample.switches);
        }
        Ok::<_, Error>(sample.ops_per_s)
    })?;
    let name = memtable.name();
    let rates = |[a, b]: [usize; 2]| {
        let [a, b] = [a, b].map(|at| median(&samples[at]) / 1e3);
        format!("(kops/s: {a:.0} and {b:.0})")
    };
    let what = format!("{name}: {MANY} threads / {FEW} threads");
    let many = at_least(what, 0.9, "more threads gain", ratio(&samples[1], &samples[0]));
    let what = format!("{name}, {MANY} threads: concurrent / plain");
    let gain = Evidence::faster(what, "always a gain", ratio(&samples[1], &samples[3]));
    let what = format!("{name}, {MANY} threads: concurrent in one group at a time / plain");
    let of_groups = Evidence::faster(what, "always a gain", ratio(&samples[4], &samples[3]));
    let what = format!("{name}, {MANY} threads: involuntary switches with yielding / without");
    let line = switched(what, &switches[1], &switches[2]);
    let speed = ratio(&samples[1], &samples[2]);
    let speed = format!("; speed with / without {:.2}", speed.median);
    Ok([
        many.with(&rates([1, 0])),
        gain.with(&rates([1, 3])),
        of_groups.aside().with(&rates([4, 3])),
        line.with(&speed),
    ])
}

/// A line on involuntary switches.
fn switched(what: String, with: &[Option<Switches>], without: &[Option<Switches>]) -> Evidence {
    let of = |all: &[Option<Switches>], kind: fn(Switches) -> u64| -> Option<Vec<f64>> {
        all.iter().map(|switches| Some(kind((*switches)?) as f64)).collect()
    };
    let involuntary = |all| of(all, |switches| switches.involuntary);
    let voluntary =
        |all| of(all, |switches| switches.voluntary).map_or(f64::NAN, |all| median(&all));
    let counted = involuntary(with).zip(involuntary(without));
    let counted = counted.filter(|(_, without)| without.iter().all(|&switches| switches > 0.0));
    let Some((yielding, blocking)) = counted else {
        let why = "the system does not count the switches of threads, or there were none";
        return Evidence::missing(Level::Clock, what, why.into()).aside();
    };
    let found = ratio(&yielding, &blocking);
    let figures = format!(
        "({:.0} and {:.0}, of which Linux counts each yield to another thread; voluntary {:.0} and \
         {:.0})",
        median(&yielding),
        median(&blocking),
        voluntary(with),
        voluntary(without),
    );
    Evidence::clock(&what, Expected::most(1.0), found).aside().with(&figures)
}
