//! The shape of a tree whose threads read short ranges, then long ones, then short ones again.
//!
//! # Method
//! All threads update keys and read ranges at all times. There are several threads for each core,
//! so that threads lose their core in the middle of an update, and others meet them. Another thread
//! switches the length of ranges, and looks at the shape of the tree now and then. A phase is
//! judged by the median of its last quarter.
//!
//! No fact can show this, so the verdict depends on the lines of both trees. The line of
//! `ca-tree:avl` is an aside. The lock-based trees take a tenth as much off the statistics for a
//! range, so 2.4 s may be too short for them on few cores. Reads of `ca-tree` take locks only if
//! writers disturb them twice, which is a departure from the source.

use super::ranges::{Bench, LONGEST};
use super::subjects::{Atomic, CA, Driver, LFCA, Mix, Ranged, apart, fill};
use crate::drive::draws::Draws;
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Level, Verdict};
use crate::reproduce::turns::{Ended, median, pause, run_during};
use silvics::ca::build::Avl;
use silvics::{Adapts, AllocError, AtomicRanges, CaTree, LfcaTree, Lookup, Pooled};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The threads for each core.
const THREADS_PER_CORE: usize = 4;

const MIX: Mix = Mix { updates: 20, ranges: 25 };

/// The time between two samples.
const EVERY: Duration = Duration::from_millis(50);

/// The samples of a phase: 2.4 s, as the source's.
const SAMPLES: usize = 48;
const QUICK: usize = 12;

/// The samples between two that are printed.
const PRINTED: usize = 4;

/// The lock-based tree as its source describes it: reads of ranges always take locks, which they
/// share.
const AVL: &str = "ca-tree:avl";

/// A line for each tree.
pub fn lines(bench: &Bench, quick: bool) -> Result<[Evidence; 3], Error> {
    let samples = if quick { QUICK } else { SAMPLES };
    let of = |name: &str| {
        let index = name.to_owned();
        move |error| Error::Alloc { index, error }
    };
    let ca = Atomic(CaTree::<u64>::with_options(&apart()).map_err(of(CA))?);
    let ca = line(bench, samples, CA, &ca)?;
    let lfca = Atomic(LfcaTree::<u64>::with_options(&apart()).map_err(of(LFCA))?);
    let lfca = line(bench, samples, LFCA, &lfca)?;
    let avl = CaTree::<u64, Pooled, Avl>::with_options(&apart()).map_err(of(AVL))?;
    let avl = line(bench, samples, AVL, &Atomic(avl))?;
    Ok([ca, avl.aside(), lfca])
}

/// The numbers of base nodes in each phase.
type Phases = [Vec<usize>; 3];

fn line<I>(bench: &Bench, samples: usize, name: &str, tree: &Atomic<I>) -> Result<Evidence, Error>
where
    I: Adapts + AtomicRanges + Lookup<Key = u64>,
{
    let failed = |error: AllocError| Error::Alloc { index: name.into(), error };
    fill(tree, bench.keys, bench.seed).map_err(failed)?;
    let [short, _, long] = LONGEST.map(|most| bench.longest(most));
    let lengths = [short, long, short];
    let longest = AtomicU64::new(short);
    let driver = Driver { map: tree, keys: bench.keys, mix: MIX, longest: &longest };
    let threads = THREADS_PER_CORE * bench.crew.threads;
    let work = |thread: usize, ended: &Ended| {
        Ok(driver.drive(Draws::new(bench.seed, 3000, thread), ended)?.ops)
    };
    let mut phases = Phases::default();
    let laps = run_during(&bench.crew, threads, &work, &mut |ended| {
        for (phase, length) in phases.iter_mut().zip(lengths) {
            longest.store(length, Ordering::Relaxed); // Relaxed: only the number counts
            for _ in 0..samples {
                pause(EVERY, ended);
                phase.push(tree.0.adaptation(&tree.pin()).base_nodes.len());
            }
        }
    });
    laps.map_err(|failure| failure.of(name))?;
    Ok(judged(name, threads, lengths, &phases))
}

fn judged(name: &str, threads: usize, [short, long, _]: [u64; 3], phases: &Phases) -> Evidence {
    let [before, between, after] = phases.each_ref().map(|phase| plateau(phase));
    let series = phases.each_ref().map(|phase| {
        let printed = phase.iter().skip(PRINTED - 1).step_by(PRINTED);
        printed.map(usize::to_string).collect::<Vec<_>>().join(" ")
    });
    Evidence {
        level: Level::Clock,
        what: format!(
            "{name}, {threads} threads: base nodes with ranges of ≤ {short}, then ≤ {long}, then \
             ≤ {short}"
        ),
        expected: "fewer with long ranges, more again with short ones".into(),
        found: format!(
            "{before} → {between} → {after} (each {} ms: {})",
            EVERY.as_millis() * PRINTED as u128,
            series.join(" | ")
        ),
        value: (after > 0.0).then(|| between / after),
        verdict: match () {
            () if between < before && after > between => Verdict::Confirmed,
            () if between > before && after < between => Verdict::Contradicted,
            () => Verdict::NotSeen,
        },
        decides: true,
    }
}

/// The median of the last quarter.
fn plateau(phase: &[usize]) -> f64 {
    let last = &phase[phase.len() * 3 / 4..];
    median(&last.iter().map(|&nodes| nodes as f64).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_judged_by_its_end() {
        assert_eq!(plateau(&[90, 80, 70, 60, 50, 40, 3, 5]).to_string(), "4");
        let verdict = |ends: [usize; 3]| {
            judged("a", 8, [10, 1000, 10], &ends.map(|end| vec![7, 7, 7, end])).verdict
        };
        assert_eq!(verdict([9, 1, 8]), Verdict::Confirmed);
        assert_eq!(verdict([1, 1, 1]), Verdict::NotSeen);
        assert_eq!(verdict([9, 1, 1]), Verdict::NotSeen);
        assert_eq!(verdict([1, 9, 1]), Verdict::Contradicted);
    }
}
