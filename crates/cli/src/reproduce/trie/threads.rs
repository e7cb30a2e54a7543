//! trie/3.5: more threads than cores. All tries with all numbers of threads take turns.

use super::subjects::{Subject, Turns, millions};
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, median, ratio};
use silvics::patricia::build::Paper;
use silvics::patricia::policy::{Adaptive, Pthread, Spin};

/// A tenth of the source's keys: the tries of ten million would need 14 GiB.
const KEYS: usize = 1_000_000;

/// The name of the trie with spin locks.
const SPIN: &str = "spin locks";

/// The most threads for a core.
const MOST: usize = 16;

/// The share of the best rate that is left with four threads for each core.
const TELEPORT_KEEPS: f64 = 0.7;
const SPIN_KEEPS: f64 = 0.5;

pub fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    if !lab.wants(Level::Clock) {
        return Ok(Vec::new());
    }
    let (keys, crew) = (lab.plan.keys(KEYS), Crew::new());
    let tries = [
        Subject::teleporting::<Paper<16>>("teleportation", lab.plan.sync)?.loaded(&crew, keys)?,
        Subject::new::<Paper<16>, Spin>(SPIN)?.loaded(&crew, keys)?,
        Subject::new::<Paper<16>, Pthread>("mutexes")?.loaded(&crew, keys)?,
        Subject::new::<Paper<16>, Adaptive>("adaptive mutexes")?.loaded(&crew, keys)?,
        #[cfg(feature = "peers")]
        Subject::new::<Paper<16>, super::parking::Parking>("parking_lot")?.loaded(&crew, keys)?,
    ];
    let cores = crew.threads;
    let counts: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n))
        .take_while(|n| *n <= MOST * cores)
        .collect();
    let (rounds, seed) = (Rounds::new(lab.plan.quick), lab.plan.seed);
    let turns = Turns { crew: &crew, keys, rounds, seed };
    let runs: Vec<(&Subject, usize)> =
        counts.iter().flat_map(|threads| tries.iter().map(|trie| (trie, *threads))).collect();
    let samples = turns.speeds(&runs)?;
    let by_threads: Vec<&[Vec<f64>]> = samples.chunks(tries.len()).collect();
    let mut lines = Vec::new();
    for (&threads, samples) in counts.iter().zip(&by_threads) {
        let pairs = tries.iter().zip(*samples).skip(1);
        lines.extend(pairs.map(|(trie, other)| beats(threads, &trie.name, [&samples[0], other])));
    }
    let many = counts.iter().position(|threads| *threads >= 4 * cores).unwrap_or(0);
    let share = |trie: usize| {
        let of = |at: usize| by_threads[at][trie].as_slice();
        let best = (0..counts.len()).max_by(|a, b| median(of(*a)).total_cmp(&median(of(*b))));
        let what = format!(
            "{}: {} threads, relative to its best number of threads",
            tries[trie].name, counts[many]
        );
        (what, ratio(of(many), best.map_or(&[], of)))
    };
    let (what, kept) = share(0);
    lines.push(Evidence::clock(&what, Expected::AtLeast(TELEPORT_KEEPS, SPIN_KEEPS), kept));
    let (what, kept) = share(1);
    lines.push(Evidence::clock(&what, Expected::AtMost(SPIN_KEEPS, TELEPORT_KEEPS), kept));
    Ok(lines)
}

/// The line on teleportation beside one kind of locks. Spin locks are those of the claim.
fn beats(threads: usize, locks: &str, [teleporting, locking]: [&[f64]; 2]) -> Evidence {
    let what = format!("{threads} threads: teleportation / {locks}");
    let line = Evidence::faster(what, "it is faster", ratio(teleporting, locking));
    let figures = format!("(M/s: {}, {})", millions(teleporting), millions(locking));
    let line = line.with(&figures);
    if locks == SPIN && threads > 1 { line.deciding() } else { line }
}
