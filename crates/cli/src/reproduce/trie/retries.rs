//! trie/3.6: limits of retries for sections that read and for sections that modify.
//!
//! # Method
//! Facts: one thread runs lookups whose transactions a stand-in aborts at known odds, so the number
//! of aborts follows from the limits. The clock: threads run the source's mix, with aborts that
//! come from other threads, for each pair of limits.

use super::subjects::{Subject, Turns, key};
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::heat::{Cell, HeatMap};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, median, ratio};
use silvics::patricia::build::Paper;
use silvics::patricia::policy::StandIn;
use silvics::patricia::{Injected, RetryPolicy, Section};
use std::time::Duration;

const KEYS: usize = 1_000_000;
/// The keys under contention, in the source's open question: few and short.
const FEW: usize = 64;

/// The lookups with injected aborts.
const LOOKUPS: usize = 100_000;

/// The limits of the map.
const LIMITS: [u32; 6] = [0, 2, 4, 6, 8, 10];

/// The threads for each core of the clock's maps: the source's sixteen on eight.
const FOR_EACH_CORE: usize = 2;

pub fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(facts(lab.plan.keys(KEYS).min(LOOKUPS))?);
    }
    if lab.wants(Level::Clock) {
        for keys in [lab.plan.keys(KEYS), FEW] {
            lines.extend(map(lab, keys)?);
        }
    }
    Ok(lines)
}

/// The aborts of each lookup, by limits, if half of the transactions are aborted.
fn facts(keys: usize) -> Result<Vec<Evidence>, Error> {
    let crew = Crew::new();
    let subject = Subject::new::<Paper<16>, StandIn>("stand-in")?.loaded(&crew, keys)?;
    let retries = subject.trie.retries();
    let mut aborts = [0.0; 2];
    for (limit, aborts) in [0, 10].into_iter().zip(&mut aborts) {
        let mut injected = Injected::default();
        injected.retry = 1 << 15;
        let mut policy = RetryPolicy::limits(limit, limit);
        policy.injected = injected;
        retries.set(policy);
        let before = retries.stats();
        let guard = subject.trie.domain().pin();
        for number in (0..keys as u64).cycle().take(LOOKUPS) {
            if subject.trie.get(key(2 * number), &guard) != Some(2 * number) {
                let what = format!("key {number} is not found");
                return Err(Error::Wrong { index: subject.name, what });
            }
            if number.is_multiple_of(4096) && interrupt::pending() {
                return Err(Error::Interrupted);
            }
        }
        let after = retries.stats();
        let of = after.aborted(Section::Read) - before.aborted(Section::Read);
        *aborts = of as f64 / LOOKUPS as f64;
    }
    // With a limit of 0, each lookup has one try in a transaction, which is aborted or not. With 10
    // it has up to eleven: the mean number of aborts of a geometric series is one.
    let lines = [(0, aborts[0], 0.5), (10, aborts[1], 1.0)].map(|(limit, found, expected)| {
        let what = format!("injected aborts for each lookup, limit {limit}");
        Evidence::fact(what, Unit::Number(3), Expected::about(expected, 0.02), found).aside()
    });
    Ok(lines.into())
}

/// Measures the throughput and the aborts for each pair of limits. Adds the map to the lab's, and
/// returns the lines that follow from it.
fn map(lab: &mut Lab, keys: usize) -> Result<Vec<Evidence>, Error> {
    let crew = Crew::new();
    let threads = FOR_EACH_CORE * crew.threads;
    let subject = Subject::teleporting::<Paper<16>>("teleportation", lab.plan.sync)?;
    let subject = subject.loaded(&crew, keys)?;
    let rounds = Rounds::new(lab.plan.quick);
    let rounds = Rounds { rounds: rounds.rounds / 3, time: rounds.time / 2 };
    let mut rows = Vec::new();
    for (at, modify) in LIMITS.into_iter().enumerate() {
        let mut row = Vec::new();
        for (column, read) in LIMITS.into_iter().enumerate() {
            let seed = lab.plan.seed.wrapping_add(((at * LIMITS.len() + column) as u64) << 32);
            let turns = Turns { crew: &crew, keys, rounds, seed };
            subject.trie.retries().set(RetryPolicy::limits(read, modify));
            let before = subject.trie.retries().stats().all_aborted();
            let samples = turns.speeds(&[(&subject, threads)])?;
            let aborted = subject.trie.retries().stats().all_aborted() - before;
            let throughput = median(&samples[0]);
            // One round more is run than counts.
            let time = rounds.time * (rounds.rounds as u32 + 1);
            let aborts = aborts_per_thousand(aborted, throughput, time);
            row.push(Cell { throughput, aborts });
        }
        rows.push(row);
    }
    let title = format!("{keys} keys, {threads} threads");
    let lines = gains(&title, &rows, keys != FEW);
    let (read_limits, modify_limits) = (LIMITS.into(), LIMITS.into());
    lab.maps.push(HeatMap { title, keys, threads, read_limits, modify_limits, rows });
    Ok(lines.into())
}

/// Lines on the gain from no retry to the most: of reads, one sample for each limit of changes, and
/// of changes, one for each limit of reads.
fn gains(title: &str, rows: &[Vec<Cell>], decides: bool) -> [Evidence; 2] {
    let last = LIMITS.len() - 1;
    let speed = |modify: usize, read: usize| rows[modify][read].throughput;
    let all = |cell: &dyn Fn(usize) -> f64| (0..=last).map(cell).collect::<Vec<f64>>();
    let reads = ratio(&all(&|at| speed(at, last)), &all(&|at| speed(at, 0)));
    let changes = ratio(&all(&|at| speed(last, at)), &all(&|at| speed(0, at)));
    let what = |of: &str| format!("{title}: gain by {} retries of {of}", LIMITS[last]);
    let claimed = "4.3 → 7.9 M/s with sixteen threads";
    let line = Evidence::faster(what("reads"), claimed, reads);
    let interval = format!("{:.2} ({:.2} – {:.2})", changes.median, changes.low, changes.high);
    let noted = Evidence::noted(Level::Clock, what("changes"), interval);
    [if decides { line.deciding() } else { line }, noted]
}

fn aborts_per_thousand(aborted: u64, rate: f64, time: Duration) -> f64 {
    1000.0 * aborted as f64 / (rate * time.as_secs_f64()).max(1.0)
}
