//! ets/5.4: ranges of contention adapting trees.

use super::subjects::{CA, Driver, LFCA, LOCKED, Locked, Mix, Ranged, SKIPLIST, Subject};
use super::subjects::{all, apart, fill};
use super::{moments, switched};
use crate::drive::draws::Draws;
use crate::drive::run::Failure;
use crate::drive::stats::Interval;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::reproduce::Experiment;
use crate::reproduce::evidence::{Evidence, Level, Verdict};
use crate::reproduce::lab::Lab;
use crate::reproduce::turns::{Rounds, at_least, in_turns, median, rate, ratio, run};
use silvics::{AllocError, CaTree, Guard, RangeUpdates};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::ops::Range;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: "ets/5.4",
    title: "ranges and bulk updates",
    source: "Sagonas and Winblad, JPDC 115, 2018; Winblad, Sagonas and Jonsson, SPAA 2018",
    machine: "haswell",
    claim: "with range queries, the contention adapting tree is over 50 % faster than the best \
            other structure, and with range updates over 12 times; the lock-free tree is over \
            twice as fast as related lock-free structures in many scenarios; a tree that is asked \
            for longer ranges joins base nodes, and splits them when ranges are short again",
    carried_by: "fact; clock reported",
    seen_if: "ranges are linearizable by the checker; base nodes per query fall after joins; after \
            a switch from ranges of 10 to 100 000 keys the route nodes fall to a plateau, and \
            return after the switch back; lookups of the lock-free variant write nothing",
    elsewhere: true,
    cannot_show: &[
        "the source's throughput on up to 128 hardware threads: this needs such a machine",
        "the source's other structures with atomic ranges: a lock around a map takes their place, \
         and skiplist and words, whose ranges are not atomic",
        "that lookups of lfca-tree write nothing: this needs a process whose memory is \
         write-protected, as in `cargo test -p silvics --test lookups_write_nothing`",
    ],
    gather,
};

/// The keys below which all keys are drawn.
const KEYS: usize = 1_000_000;

/// The longest ranges: the source's, and the divisor of the keys that limits them for fewer keys.
pub const LONGEST: [u64; 3] = [10, 1000, 100_000];
const PART: u64 = 10;

/// The threads from which on a claim about many threads can be judged.
const MANY: usize = 32;

fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let mut lines = Vec::new();
    if lab.wants(Level::Fact) {
        lines.extend(moments::lines(lab)?);
    }
    if lab.wants(Level::Clock) {
        let bench = Bench::new(lab);
        let subjects = all(bench.keys, bench.seed)?;
        lines.extend(bench.mixes(&subjects)?);
        lines.extend(bench.teams(&subjects)?);
        drop(subjects);
        lines.push(bench.bulk()?);
        lines.extend(switched::lines(&bench, lab.plan.quick)?);
    }
    Ok(lines)
}

/// The setting of all measurements.
pub struct Bench {
    pub crew: Crew,
    pub keys: u64,
    pub seed: u64,
    rounds: Rounds,
}

impl Bench {
    fn new(lab: &Lab) -> Self {
        let keys = lab.plan.keys(KEYS) as u64;
        let rounds = Rounds::new(lab.plan.quick);
        Self { crew: Crew::new(), keys, seed: lab.plan.seed, rounds }
    }

    /// The longest range, if the source has this one.
    pub fn longest(&self, of_source: u64) -> u64 {
        of_source.min(self.keys / PART)
    }

    /// Throughput of all maps in each mix.
    fn mixes(&self, subjects: &[Subject]) -> Result<Vec<Evidence>, Error> {
        let mut mixes: Vec<(Mix, u64)> =
            [50, 20, 1].map(|updates| (Mix { updates, ranges: 0 }, 1)).to_vec();
        let ranges = LONGEST.map(|most| (Mix { updates: 20, ranges: 25 }, self.longest(most)));
        mixes.extend(ranges);
        let (mut lines, mut ahead) = (Vec::new(), 0);
        for (number, &(mix, longest)) in mixes.iter().enumerate() {
            let samples = self.mixed(subjects, mix, longest, number as u64)?;
            let of = Samples { subjects, samples: &samples };
            let name = match mix.ranges {
                0 => format!("{} % updates", mix.updates),
                ranges => format!("{} % updates, {ranges} % ranges of ≤ {longest}", mix.updates),
            };
            let line = of.line(&name, (LFCA, SKIPLIST), (2.0, "over twice in many scenarios"));
            ahead += usize::from(line.verdict == Verdict::Confirmed);
            lines.push(line.with(&of.speeds("M/s", 1e-6)));
            if mix.ranges > 0 {
                lines.push(of.line(&name, (CA, LOCKED), (1.5, "over 50 %")));
                let other = of.best_other();
                if other != LOCKED {
                    let claimed = "faster than others, but this one's are not atomic";
                    lines.push(of.line(&name, (CA, other), (1.0, claimed)));
                }
            }
        }
        let what = format!("mixes in which {LFCA} is at least twice as fast as {SKIPLIST}");
        lines.push(Evidence {
            level: Level::Clock,
            what,
            expected: format!("at least {} (the source: many)", mixes.len() / 2),
            found: format!("{ahead} of {}", mixes.len()),
            value: Some(ahead as f64),
            verdict: if ahead >= mixes.len() / 2 { Verdict::Confirmed } else { Verdict::NotSeen },
            decides: false,
        });
        Ok(lines)
    }

    fn mixed(
        &self,
        subjects: &[Subject],
        mix: Mix,
        longest: u64,
        number: u64,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let longest = AtomicU64::new(longest);
        in_turns(subjects.len(), self.rounds.rounds, |subject, round| {
            let Subject { name, map } = &subjects[subject];
            let driver = Driver { map: &**map, keys: self.keys, mix, longest: &longest };
            let work = |thread: usize, ended: &_| {
                let draws = Draws::new(self.seed, 1 + 100 * number + round, thread);
                Ok(driver.drive(draws, ended)?.ops)
            };
            let laps = run(&self.crew, self.crew.threads, self.rounds.time, &work);
            Ok(rate(&laps.map_err(|failure| failure.of(name))?))
        })
    }

    /// Some threads update, and others read ranges: entries read per second.
    fn teams(&self, subjects: &[Subject]) -> Result<Vec<Evidence>, Error> {
        let team = (self.crew.threads / 2).max(1);
        let longest = AtomicU64::new(self.longest(1000));
        let samples = in_turns(subjects.len(), self.rounds.rounds, |subject, round| {
            let Subject { name, map } = &subjects[subject];
            let driver = |mix| Driver { map: &**map, keys: self.keys, mix, longest: &longest };
            let writer = driver(Mix { updates: 100, ranges: 0 });
            let reader = driver(Mix { updates: 0, ranges: 100 });
            let work = |thread: usize, ended: &_| {
                let draws = Draws::new(self.seed, 1000 + round, thread);
                let driver = if thread < team { &writer } else { &reader };
                Ok(driver.drive(draws, ended)?.entries)
            };
            let laps = run(&self.crew, 2 * team, self.rounds.time, &work);
            let laps = laps.map_err(|failure| failure.of(name))?;
            Ok::<_, Error>(rate(&laps[team..]))
        })?;
        let of = Samples { subjects, samples: &samples };
        let most = longest.load(Ordering::Relaxed);
        let name = format!("{team} + {team} threads, updates and ranges of ≤ {most}, entries read");
        let line = of.line(&name, (LFCA, SKIPLIST), (2.0, "over twice in many scenarios"));
        let other = of.line(&name, (CA, LOCKED), (1.5, "over 50 %"));
        Ok(vec![line.with(&of.speeds("M entries/s", 1e-6)), other])
    }

    /// Updates of ranges.
    fn bulk(&self) -> Result<Evidence, Error> {
        let failed = |name: &str| {
            let index = name.to_owned();
            move |error| Error::Alloc { index, error }
        };
        let tree = CaTree::<u64>::with_options(&apart()).map_err(failed(CA))?;
        let (tree, locked) = (super::subjects::Atomic(tree), Locked::new());
        fill(&tree, self.keys, self.seed).map_err(failed(CA))?;
        fill(&locked, self.keys, self.seed).map_err(failed(LOCKED))?;
        let subjects: [(&str, &dyn Updated); 2] = [(CA, &tree), (LOCKED, &locked)];
        let length = self.longest(1000);
        let sums = subjects.map(|(_, map)| map.sum());
        let updated = [AtomicU64::new(0), AtomicU64::new(0)];
        let samples = in_turns(2, self.rounds.rounds, |subject, round| {
            let (name, map) = subjects[subject];
            let work = |thread: usize, ended: &crate::reproduce::turns::Ended| {
                let mut draws = Draws::new(self.seed, 2000 + round, thread);
                let (mut guard, mut done, mut entries) = (map.pin(), 0, 0);
                while !ended.is_over() {
                    let key = draws.below(self.keys);
                    let update = map.add_one(key..key + length, &guard);
                    entries += update.map_err(|error| Failure::Alloc { error, done: 0 })?;
                    done += 1;
                    guard.repin();
                }
                updated[subject].fetch_add(entries as u64, Ordering::Relaxed);
                Ok(done)
            };
            let laps = run(&self.crew, self.crew.threads, self.rounds.time, &work);
            Ok::<_, Error>(rate(&laps.map_err(|failure| failure.of(name))?))
        })?;
        for (at, (name, map)) in subjects.iter().enumerate() {
            // Relaxed: the threads have ended.
            if map.sum() != sums[at].wrapping_add(updated[at].load(Ordering::Relaxed)) {
                let what = "updates of ranges were lost or doubled".into();
                return Err(Error::Wrong { index: (*name).into(), what });
            }
        }
        let threads = self.crew.threads;
        let what =
            format!("{threads} threads, updates of all values of {length} keys: {CA} / {LOCKED}");
        let claimed = "over 12 × with 128 threads";
        let line = at_least(what, 12.0, claimed, ratio(&samples[0], &samples[1]));
        let speeds = samples.iter().map(|of| format!("{:.1}", median(of) / 1e3));
        let speeds = speeds.collect::<Vec<_>>().join(" and ");
        Ok(few_threads(line.with(&format!("({speeds} k/s)")), threads))
    }
}

/// The line. On few threads, a ratio below the bar says nothing about many.
fn few_threads(line: Evidence, threads: usize) -> Evidence {
    if line.verdict != Verdict::NotSeen || threads >= MANY {
        return line;
    }
    Evidence { verdict: Verdict::CannotBeShown, ..line }
}

/// The results of all maps, in the same order.
struct Samples<'a> {
    subjects: &'a [Subject],
    samples: &'a [Vec<f64>],
}

impl Samples<'_> {
    fn of(&self, name: &str) -> &[f64] {
        let at = self.subjects.iter().position(|subject| subject.name == name);
        at.map_or(&[], |at| &self.samples[at])
    }

    /// The fastest map that does not adapt.
    fn best_other(&self) -> &'static str {
        let others = self.subjects.iter().map(|subject| subject.name);
        let others = others.filter(|name| ![CA, LFCA].contains(name));
        let speed = |name: &&str| median(self.of(name));
        others.max_by(|a, b| speed(a).total_cmp(&speed(b))).unwrap_or(LOCKED)
    }

    fn ratio(&self, (of, to): (&str, &str)) -> Interval {
        ratio(self.of(of), self.of(to))
    }

    /// A line on the ratio of two maps, with the bar and the source's words.
    fn line(&self, mix: &str, pair: (&str, &str), (bar, claimed): (f64, &str)) -> Evidence {
        at_least(format!("{mix}: {} / {}", pair.0, pair.1), bar, claimed, self.ratio(pair))
    }

    /// The speeds of all maps.
    fn speeds(&self, unit: &str, scale: f64) -> String {
        let speed = |(subject, samples): (&Subject, &Vec<f64>)| {
            format!("{} {:.3}", subject.name, median(samples) * scale)
        };
        let speeds: Vec<String> = self.subjects.iter().zip(self.samples).map(speed).collect();
        format!("({unit}: {})", speeds.join(", "))
    }
}

/// A map that updates all values of a range at one moment.
trait Updated: Ranged {
    /// Adds one to the value of each entry of a range. Returns the number of entries.
    fn add_one(&self, range: Range<u64>, guard: &Guard) -> Result<usize, AllocError>;
    /// The sum of all values.
    fn sum(&self) -> u64;
}

impl Updated for super::subjects::Atomic<CaTree<u64>> {
    fn add_one(&self, range: Range<u64>, guard: &Guard) -> Result<usize, AllocError> {
        self.0.update_range(range, guard, |_, value| value + 1)
    }

    fn sum(&self) -> u64 {
        self.0.pin().range(..).fold(0, |sum, (_, value)| sum.wrapping_add(value))
    }
}

impl Updated for Locked {
    fn add_one(&self, range: Range<u64>, _guard: &Guard) -> Result<usize, AllocError> {
        let mut entries = 0;
        for (_, value) in self.write_lock().range_mut(range) {
            *value += 1;
            entries += 1;
        }
        Ok(entries)
    }

    fn sum(&self) -> u64 {
        self.write_lock().values().fold(0, |sum, value| sum.wrapping_add(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_about_many_threads_is_not_judged_on_few() {
        let line = |median| {
            let ratio = Interval { median, low: median, high: median };
            at_least("a".into(), 12.0, "12 ×", ratio)
        };
        assert_eq!(few_threads(line(13.0), 2).verdict, Verdict::Confirmed);
        assert_eq!(few_threads(line(3.0), 2).verdict, Verdict::CannotBeShown);
        assert_eq!(few_threads(line(3.0), 64).verdict, Verdict::NotSeen);
        assert_eq!(few_threads(line(0.5), 2).verdict, Verdict::Contradicted);
    }
}
