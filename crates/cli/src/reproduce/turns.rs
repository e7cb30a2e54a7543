//! Runs on threads that start together, and the ratio of runs in turns.

use super::evidence::{Evidence, Level, Verdict};
use crate::drive::run::Failure;
use crate::drive::stats::Interval;
use crate::drive::subject::Crew;
use crate::interrupt;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The work of a thread: it gets its number and the flag that ends the run, and returns the number
/// of things that it has done.
pub type Work<'a> = dyn Fn(usize, &Ended) -> Result<u64, Failure> + Sync + 'a;

/// The flag that ends a run.
#[derive(Default)]
pub struct Ended(AtomicBool);

impl Ended {
    /// Whether the run is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) // Relaxed: the flag publishes no other data
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread's part of a run.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    done: u64,
    start: Instant,
    end: Instant,
}

/// The number of things that threads have done per second, from the start of the first thread to
/// the end of the last.
pub fn rate(laps: &[Lap]) -> f64 {
    let done: u64 = laps.iter().map(|lap| lap.done).sum();
    let start = laps.iter().map(|lap| lap.start).min();
    let end = laps.iter().map(|lap| lap.end).max();
    let seconds = start.zip(end).map_or(0.0, |(start, end)| (end - start).as_secs_f64());
    done as f64 / seconds.max(1e-9)
}

/// Runs `work` on threads that start together, until `meanwhile` returns on the calling thread.
pub fn run_during(
    crew: &Crew,
    threads: usize,
    work: &Work<'_>,
    meanwhile: &mut dyn FnMut(&Ended),
) -> Result<Vec<Lap>, Failure> {
    let (ended, barrier) = (Ended::default(), Barrier::new(threads + 1));
    let lap = |thread| {
        barrier.wait();
        let start = Instant::now();
        let done = work(thread, &ended);
        if done.is_err() {
            ended.end();
        }
        Ok(Lap { done: done?, start, end: Instant::now() })
    };
    let laps = crew.work(
        threads,
        |share| lap(share.thread),
        || {
            barrier.wait();
            meanwhile(&ended);
            ended.end();
        },
    )?;
    if interrupt::pending() {
        return Err(Failure::Interrupted);
    }
    laps.into_iter().collect()
}

/// Runs `work` on threads for this time.
pub fn run(
    crew: &Crew,
    threads: usize,
    time: Duration,
    work: &Work<'_>,
) -> Result<Vec<Lap>, Failure> {
    run_during(crew, threads, work, &mut |ended| pause(time, ended))
}

/// Waits for this time, or until the run is over or the user has interrupted the command.
pub fn pause(time: Duration, ended: &Ended) {
    const STEP: Duration = Duration::from_millis(50);
    let until = Instant::now() + time;
    while !ended.is_over() && !interrupt::pending() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(STEP));
    }
}

/// The number of rounds in which runs take turns, and the time of a run.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    pub rounds: u64,
    pub time: Duration,
}

impl Rounds {
    /// The usual rounds.
    pub fn new(quick: bool) -> Self {
        let (rounds, millis) = if quick { (6, 15) } else { (12, 100) };
        Self { rounds, time: Duration::from_millis(millis) }
    }
}

/// Measures several subjects in turns, in reverse order in each second round. Each is run once
/// before, and that result does not count. Returns the results of each subject.
pub fn in_turns<E>(
    subjects: usize,
    rounds: u64,
    mut measure: impl FnMut(usize, u64) -> Result<f64, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut all = vec![Vec::new(); subjects];
    for round in 0..=rounds {
        for turn in 0..subjects {
            let subject = if round % 2 == 0 { turn } else { subjects - 1 - turn };
            let result = measure(subject, round)?;
            if round > 0 {
                all[subject].push(result);
            }
        }
    }
    Ok(all)
}

/// The median of samples.
pub fn median(samples: &[f64]) -> f64 {
    Interval::of(samples).map_or(f64::NAN, |interval| interval.median)
}

/// The ratio of two subjects, round by round.
pub fn ratio(samples: &[f64], to: &[f64]) -> Interval {
    let ratios: Vec<f64> = samples.iter().zip(to).map(|(of, to)| of / to).collect();
    let none = Interval { median: f64::NAN, low: f64::NAN, high: f64::NAN };
    Interval::of(&ratios).unwrap_or(none)
}

/// A line on a ratio that the source saw to be `bar` or more. The experiment's verdict does not
/// depend on it. Between 1 and the bar, the effect is not seen.
pub fn at_least(what: String, bar: f64, claimed: &str, ratio: Interval) -> Evidence {
    let Interval { median, low, high } = ratio;
    let verdict = match () {
        () if median >= bar => Verdict::Confirmed,
        () if high < 1.0 => Verdict::Contradicted,
        () => Verdict::NotSeen,
    };
    Evidence {
        level: Level::Clock,
        what,
        expected: format!("at least {bar} (the source: {claimed})"),
        found: format!("{median:.2} ({low:.2} – {high:.2})"),
        value: Some(median),
        verdict,
        decides: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns_forwards_and_backwards() {
        let mut order = Vec::new();
        let samples = in_turns(2, 2, |subject, round| {
            order.push(subject);
            Ok::<_, ()>((10 * round) as f64 + subject as f64)
        });
        assert_eq!(samples, Ok(vec![vec![10.0, 20.0], vec![11.0, 21.0]]));
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn a_ratio_below_the_bar_is_not_seen() {
        let judged = |low, median, high| {
            let line = at_least("a".into(), 2.0, "2 ×", Interval { median, low, high });
            assert!(!line.decides);
            line.verdict
        };
        assert_eq!(judged(1.9, 2.0, 2.1), Verdict::Confirmed);
        assert_eq!(judged(1.2, 1.5, 1.9), Verdict::NotSeen);
        assert_eq!(judged(0.7, 0.9, 1.1), Verdict::NotSeen);
        assert_eq!(judged(0.7, 0.8, 0.9), Verdict::Contradicted);
        assert_eq!(judged(f64::NAN, f64::NAN, f64::NAN), Verdict::NotSeen);
    }

    #[test]
    fn a_thread_that_fails_ends_the_run() {
        let crew = Crew::new();
        let work = |thread: usize, ended: &Ended| {
            if thread == 1 {
                return Err(Failure::Wrong("no".into()));
            }
            while !ended.is_over() {
                thread::yield_now();
            }
            Ok(1)
        };
        let failed = run(&crew, 2, Duration::from_mins(10), &work);
        assert!(matches!(failed, Err(Failure::Wrong(_))), "{failed:?}");
        let done = run(&crew, 1, Duration::from_millis(2), &work).unwrap();
        assert!(rate(&done) > 0.0);
    }
}
