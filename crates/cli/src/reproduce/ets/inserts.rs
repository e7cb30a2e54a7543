//! ets/5.2: threads insert ascending integers, each into a range of its own.
//!
//! The old table is `ca-tree:avl-coarse`: one AVL tree under one readers–writer lock. The new one
//! is `ca-tree:avl`, with the same container and lock, as Erlang's. The third row is `ca-tree`.

use super::erlang;
use crate::drive::stats::Interval;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::progress::Progress;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use silvics::ca::build::{Adaptive, Avl, AvlCoarse, Build};
use silvics::{Adapts, AllocError, CaTree, Lookup, Options, OrderedIndex, Pooled};
use std::sync::Barrier;
use std::time::Instant;

const KEYS: usize = 4_000_000;
/// The numbers of threads in the source.
const THREADS: [usize; 3] = [1, 2, 4];
/// The writes that one thread may make until all base nodes are joined.
const JOINED_WITHIN: u64 = 10_000_000;
/// The inserts under one pin.
const PINNED: u64 = 64;

/// A table of the experiment.
#[derive(Clone, Copy)]
struct Table {
    name: &'static str,
    by: By,
}

/// The way to fill a fresh table with this many keys, by this many threads.
#[derive(Clone, Copy)]
enum By {
    Us(fn(u64, usize) -> Result<Filled, Error>),
    Erlang(erlang::Table),
}

const OLD: Table = Table { name: "ca-tree:avl-coarse", by: By::Us(fill::<AvlCoarse>) };
const NEW: Table = Table { name: "ca-tree:avl", by: By::Us(fill::<Avl>) };
const OURS: Table = Table { name: "ca-tree", by: By::Us(fill::<Adaptive>) };
const ERLANG_OLD: Table = Table { name: "ETS, old", by: By::Erlang(erlang::Table::Old) };
const ERLANG_NEW: Table = Table { name: "ETS, new", by: By::Erlang(erlang::Table::New) };

impl Table {
    fn fill(&self, lab: &Lab, keys: u64, threads: usize) -> Result<Filled, Error> {
        match (self.by, &lab.erlang) {
            (By::Us(fill), _) => fill(keys, threads),
            (By::Erlang(table), Some(erlang)) => {
                let filled = erlang.inserts(table, threads, keys);
                let inserts = filled.map_err(|problem| super::failed(self.name, problem))?;
                Ok(Filled { seconds: inserts.seconds, splits: None })
            }
            (By::Erlang(_), None) => unreachable!("it is asked only with Erlang"),
        }
    }
}

/// A filled table.
#[derive(Clone, Copy, Debug)]
struct Filled {
    seconds: f64,
    /// `None` if the table does not tell.
    splits: Option<u64>,
}

type Tree<B> = CaTree<u64, Pooled, B>;

fn out_of_memory(error: AllocError) -> Error {
    Error::Alloc { index: "ca-tree".into(), error }
}

/// Inserts the numbers below `keys` by threads, and checks that they are all there.
fn fill<B: Build>(keys: u64, threads: usize) -> Result<Filled, Error> {
    let (tree, seconds) = filled::<B>(keys, threads)?;
    let guard = tree.domain().pin();
    let is_right = |key: &u64| tree.get(*key, &guard) == Some(*key);
    if tree.len() as u64 != keys || !(0..keys).all(|key| is_right(&key)) {
        let what = format!("it has {} keys instead of {keys}, or wrong values", tree.len());
        return Err(Error::Wrong { index: "ca-tree".into(), what });
    }
    Ok(Filled { seconds, splits: Some(tree.adaptation(&guard).splits) })
}

/// A tree that threads have filled, and the time from the first insert to the last one.
fn filled<B: Build>(keys: u64, threads: usize) -> Result<(Tree<B>, f64), Error> {
    let tree = Tree::<B>::with_options(&Options::default()).map_err(out_of_memory)?;
    let barrier = Barrier::new(threads);
    let insert = |thread: u64| -> Result<(Instant, Instant), AllocError> {
        let bound = |thread: u64| keys * thread / threads as u64;
        barrier.wait();
        let begun = Instant::now();
        let mut pinned = tree.pin();
        for key in bound(thread)..bound(thread + 1) {
            pinned.insert(key, key)?;
            if key % PINNED == 0 {
                pinned.repin();
            }
        }
        Ok((begun, Instant::now()))
    };
    let laps = Crew::new().work(threads, |share| insert(share.thread as u64), || ());
    let laps = laps.map_err(|failure| failure.of("ca-tree"))?;
    let times: Vec<_> = laps.into_iter().collect::<Result<_, _>>().map_err(out_of_memory)?;
    let begun = times.iter().map(|(begun, _)| *begun).min();
    let ended = times.iter().map(|(_, ended)| *ended).max();
    let seconds = begun.zip(ended).map_or(0.0, |(begun, ended)| (ended - begun).as_secs_f64());
    Ok((tree, seconds))
}

/// ets/5.2.
pub fn inserts(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let keys = lab.plan.keys(KEYS) as u64;
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(joined(keys)?);
    }
    if lab.wants(Level::Clock) {
        lines.extend(clock(lab, keys)?);
    }
    Ok(lines)
}

/// Lines on the base nodes that threads have made, and that one thread joins again. Threads may not
/// contend, or may have joined them before the end: then the tree is divided.
fn joined(keys: u64) -> Result<Vec<Evidence>, Error> {
    const DIVIDED: usize = 64;
    let threads = 4 * Crew::new().threads;
    let (mut tree, _) = filled::<Adaptive>(keys, threads)?;
    let loaded = tree.pin().adaptation();
    let mut begun = loaded.base_nodes.len();
    if begun < 2 {
        begun = tree.divide(DIVIDED).map_err(out_of_memory)?;
    }
    let mut writes = 0;
    while tree.pin().adaptation().base_nodes.len() > 1 && writes < JOINED_WITHIN {
        let pinned = tree.pin();
        for _ in 0..10_000 {
            writes += 1;
            let key = writes.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys;
            pinned.insert(key, key).map_err(out_of_memory)?;
        }
    }
    let left = tree.pin().adaptation().base_nodes.len();
    let (fresh, _) = filled::<Adaptive>(keys, 1)?;
    let [bytes, of_fresh] = [&tree, &fresh].map(|tree| {
        tree.shrink();
        tree.bytes() as f64
    });
    let most = format!("{JOINED_WITHIN} writes of one thread");
    Ok(vec![
        Evidence::fact(
            format!("{threads} threads insert {keys} keys: splits (by chance)"),
            Unit::Number(0),
            Expected::AtLeast(1.0, 0.0),
            loaded.splits as f64,
        )
        .with(&format!("({} base nodes at the end)", loaded.base_nodes.len()))
        .aside(),
        Evidence::fact(
            format!("{begun} base nodes, after at most {most}"),
            Unit::Number(0),
            Expected::exactly(1.0),
            left as f64,
        )
        .with(&format!("(after {writes})")),
        Evidence::fact(
            "bytes then, after `shrink`, over those of a tree that one thread has filled",
            Unit::Number(3),
            Expected::AtMost(1.05, 1.5),
            bytes / of_fresh,
        )
        .aside(),
    ])
}

/// The times of a table, by the number of threads and the round.
struct Times {
    table: Table,
    by_threads: Vec<Vec<Filled>>,
}

impl Times {
    fn row(&self) -> Evidence {
        let seconds = |filled: &Vec<Filled>| {
            let seconds: Vec<f64> = filled.iter().map(|filled| filled.seconds).collect();
            Interval::of(&seconds).map_or(f64::NAN, |seconds| seconds.median)
        };
        let shown: Vec<String> =
            self.by_threads.iter().map(|filled| format!("{:.3}", seconds(filled))).collect();
        let splits: Vec<u64> = self
            .by_threads
            .iter()
            .filter_map(|filled| filled.iter().filter_map(|filled| filled.splits).max())
            .collect();
        let shown = shown.join(", ");
        let found = if splits.is_empty() {
            format!("{shown} s")
        } else {
            format!("{shown} s; at most {splits:?} splits")
        };
        let what = format!("{}: time with {THREADS:?} threads", self.table.name);
        Evidence::noted(Level::Clock, what, found)
    }
}

/// Lines on the times of tables, which take turns.
fn clock(lab: &Lab, keys: u64) -> Result<Vec<Evidence>, Error> {
    let rounds = if lab.plan.quick { 3 } else { 7 };
    let erlang: &[Table] = if lab.erlang.is_some() { &[ERLANG_OLD, ERLANG_NEW] } else { &[] };
    let tables = [&[OLD, NEW, OURS], erlang].concat();
    let fresh = |&table| Times { table, by_threads: vec![Vec::new(); THREADS.len()] };
    let mut times: Vec<Times> = tables.iter().map(fresh).collect();
    let progress = Progress::new(rounds * tables.len() * THREADS.len());
    for round in 0..rounds {
        for (at, threads) in THREADS.into_iter().enumerate() {
            for turn in 0..tables.len() {
                let turn = if round % 2 == 0 { turn } else { tables.len() - 1 - turn };
                let table = tables[turn];
                progress.doing(format!("{}: {threads} threads", table.name));
                times[turn].by_threads[at].push(table.fill(lab, keys, threads)?);
                progress.step();
                if interrupt::pending() {
                    return Err(Error::Interrupted);
                }
            }
        }
    }
    Ok(judge(&times))
}

/// The lines on the times of the old table, the new one, ours, and Erlang's if they were measured.
fn judge(times: &[Times]) -> Vec<Evidence> {
    let [old, new, ours, erlang @ ..] = times else { return Vec::new() };
    let ratio = |(above, threads): (&Times, usize), (below, of): (&Times, usize)| {
        let pairs = above.by_threads[threads].iter().zip(&below.by_threads[of]);
        let ratios: Vec<f64> = pairs.map(|(above, below)| above.seconds / below.seconds).collect();
        Interval::of(&ratios)
    };
    let (one, four) = (0, 2);
    let claims = [
        ("one lock: time with 4 threads over 1", ratio((old, four), (old, one)), AT_LEAST),
        ("adapting: time with 4 threads over 1", ratio((new, four), (new, one)), most(1.2)),
        ("1 thread: adapting over one lock", ratio((new, one), (old, one)), most(1.5)),
        ("4 threads: adapting over one lock", ratio((new, four), (old, four)), most(1.0)),
    ];
    let mut lines: Vec<Evidence> = times.iter().map(Times::row).collect();
    for (what, ratio, expected) in claims {
        lines.extend(ratio.map(|ratio| Evidence::clock(what, expected, ratio)));
    }
    let blocks = ratio((ours, four), (new, four));
    let what = "4 threads: blocks and version locks over AVL trees and readers–writer locks";
    lines.extend(blocks.map(|ratio| Evidence::clock(what, most(1.0), ratio).aside()));
    if let [_, erlang] = erlang {
        let what = "4 threads: time of Erlang's adapting table over that of ca-tree";
        let ratio = ratio((erlang, four), (ours, four));
        let expected = Expected::AtLeast(5.0, 1.0);
        lines.extend(ratio.map(|ratio| Evidence::clock(what, expected, ratio).aside()));
    }
    lines
}

/// The slowdown of one lock in the source, by less than which it is not seen.
const AT_LEAST: Expected = Expected::AtLeast(1.5, 1.0);

/// At most this ratio of times. Twice as much is the opposite.
fn most(ratio: f64) -> Expected {
    Expected::AtMost(ratio, 2.0 * ratio)
}
