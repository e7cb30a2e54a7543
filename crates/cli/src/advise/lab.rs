//! Loads and runs of candidates, in turns.

use super::candidates::{Candidate, Goal, usual_place};
use super::plan::{self, Keys, Plan};
use crate::drive::keys::BenchKey;
use crate::drive::run::{Failure, RunSpec};
use crate::drive::scans::ScanBy;
use crate::drive::stats::Interval;
use crate::drive::subject::{Crew, Reuse, Subject, Traffic};
use crate::flags::error::Error;
use crate::flags::types::Types;
use crate::host::{alloc, memory};
use crate::interrupt;
use crate::progress::Progress;
use silvics::Options;
use silvics_workload::{Choice, KEYS_MAX, Mix, Window};
use std::time::{Duration, Instant};

/// The time of the lookups that warm an index up and do not count.
const WARM_UP: Duration = Duration::from_millis(20);
/// The bytes that an entry takes in the hungriest structures, beside its key, for a guess of what
/// fits into memory.
const BYTES_PER_ENTRY: usize = 160;

/// The machine with the keys of the present stage.
pub struct Lab<'a, K: BenchKey + ?Sized> {
    pub plan: &'a Plan,
    pub progress: &'a Progress,
    crew: &'a Crew,
    /// The key space of all keys.
    whole: K::Space,
    /// The keys of the present stage.
    pub traffic: Traffic<K>,
    began: Instant,
    /// Seconds after which the keys were there.
    ready: f64,
    runs: u64,
}

/// A candidate under measurement.
pub struct Trial<K: BenchKey + ?Sized> {
    pub candidate: Candidate,
    /// Million operations per second, by round.
    pub rates: Vec<f64>,
    /// Seconds that a load took, and how many keys it loaded.
    pub load: Option<(f64, usize)>,
    /// Bytes per key, by load.
    pub bytes: Vec<f64>,
    /// The pages that the system gave, if they are not the requested ones.
    pub fallback: Option<String>,
    live: Option<Live<K>>,
}

struct Live<K: BenchKey + ?Sized> {
    subject: Subject<K>,
    window: Window,
    has_run: bool,
}

impl<K: BenchKey + ?Sized> Trial<K> {
    /// A candidate that has not been measured.
    pub fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            rates: Vec::new(),
            load: None,
            bytes: Vec::new(),
            fallback: None,
            live: None,
        }
    }

    /// The same candidate before its first round. The time of its load is still known.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { load: self.load, ..Self::new(self.candidate) }
    }

    /// The median of the bytes per key, if they are known.
    pub fn bytes_per_key(&self) -> Option<f64> {
        Interval::of(&self.bytes).map(|bytes| bytes.median)
    }

    fn note_bytes(&mut self, bytes: Option<usize>, keys: i64) {
        self.bytes.extend(bytes.map(|bytes| bytes as f64 / keys.max(1) as f64));
    }

    /// The median rate.
    pub fn rate(&self) -> f64 {
        Interval::of(&self.rates).map_or(0.0, |rate| rate.median)
    }

    /// Seconds that the load of a key takes.
    pub fn seconds_per_key(&self) -> f64 {
        self.load.map_or(0.0, |(seconds, keys)| seconds / keys.max(1) as f64)
    }
}

impl<'a, K: BenchKey + ?Sized> Lab<'a, K> {
    /// A lab with all keys. The budget began when the program did.
    pub fn new(
        plan: &'a Plan,
        crew: &'a Crew,
        whole: K::Space,
        progress: &'a Progress,
        began: Instant,
    ) -> Result<Self, Error> {
        let traffic = match plan.source {
            Keys::Trace(_) => of_space(plan, K::part(&whole, &chunks(K::len(&whole), usize::MAX))),
            _ => of_space(plan, K::part(&whole, &[])),
        };
        let ready = began.elapsed().as_secs_f64();
        plan::is_enough(plan.budget.as_secs_f64(), ready)?;
        Ok(Self { plan, progress, crew, whole, traffic, began, ready, runs: 0 })
    }

    /// Seconds of the budget for the search and the prediction.
    pub fn seconds(&self) -> f64 {
        self.plan.budget.as_secs_f64() - self.ready
    }

    /// Seconds of the budget that are spent when this share of the search's is.
    pub fn end_of(&self, share: f64) -> f64 {
        self.ready + share * self.seconds()
    }

    /// The number of keys that are present in the whole workload.
    pub fn keys(&self) -> usize {
        match &self.plan.source {
            Keys::Trace(trace) => trace.present.len(),
            _ => K::len(&self.whole).div_ceil(2),
        }
    }

    /// The number of keys that are present in this stage.
    pub fn present(&self) -> usize {
        self.traffic.choice.present()
    }

    /// The longest key.
    pub fn longest(&self) -> Option<silvics_workload::Longest> {
        K::longest(&self.whole)
    }

    /// Seconds of the budget that are spent.
    pub fn spent(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Seconds of the budget that are left.
    pub fn left(&self) -> f64 {
        self.plan.budget.as_secs_f64() - self.spent()
    }

    /// Takes this number of keys for the next stage, at most all of them.
    pub fn take(&mut self, keys: usize) {
        if let Keys::Trace(_) = self.plan.source {
            return; // it is taken as a whole
        }
        let keys = keys.clamp(8, self.keys().max(8));
        if keys == self.present() {
            return;
        }
        let space = self.generated(keys);
        let part = || K::part(&self.whole, &chunks(K::len(&self.whole), 2 * keys));
        self.traffic = of_space(self.plan, space.unwrap_or_else(part));
    }

    /// Takes ten times the keys, which only generated keys can have.
    pub fn take_ten_times(&mut self) -> bool {
        let keys = 10 * self.keys();
        let fits = 2 * keys <= KEYS_MAX;
        let Some(space) = fits.then(|| self.generated(keys)).flatten() else { return false };
        self.traffic = of_space(self.plan, space);
        true
    }

    /// The key space of this number of keys, unless keys come from a file.
    fn generated(&self, keys: usize) -> Option<K::Space> {
        match self.plan.source {
            Keys::Generated => Some(K::generate(self.plan.dist, 2 * keys, self.plan.key_type)),
            Keys::Set(set) => Some(K::of_set(set, 2 * keys, self.plan.seed)),
            Keys::File(_) | Keys::Trace(_) => None,
        }
    }

    /// The most keys, by halves of all, that this number of indexes can have in memory at once.
    pub fn fitting(&self, indexes: usize) -> usize {
        let free = memory::available().unwrap_or(usize::MAX) / 2;
        let entry = BYTES_PER_ENTRY + self.longest().map_or(0, |longest| longest.bytes);
        let mut keys = self.keys();
        while keys > 1024 && indexes.saturating_mul(keys).saturating_mul(entry) > free {
            keys /= 2;
        }
        keys
    }

    /// Measures each trial in turns, A B C and then C B A. With `fresh`, each turn begins with a
    /// load. Stops after a whole round when `enough` says so.
    pub fn rounds(
        &mut self,
        trials: &mut Vec<Trial<K>>,
        time: Duration,
        fresh: bool,
        mut enough: impl FnMut(&Self, usize) -> bool,
    ) -> Result<(), Error> {
        let mut round = 0;
        while !enough(self, round) {
            let mut turns: Vec<usize> = (0..trials.len()).collect();
            if round % 2 == 1 {
                turns.reverse();
            }
            let mut out = Vec::new();
            for at in turns {
                let trial = &mut trials[at];
                self.progress.doing(trial.candidate.to_string());
                match self.turn(trial, time, fresh) {
                    Ok(()) => {}
                    // A structure that cannot hold the keys is no advice.
                    Err(Failure::Alloc { .. }) => out.push(trial.candidate),
                    Err(failure) => return Err(failure.of(&trial.candidate.chosen.name())),
                }
                if interrupt::pending() {
                    return Err(Error::Interrupted);
                }
            }
            trials.retain(|trial| !out.contains(&trial.candidate));
            if trials.is_empty() {
                break; // none can hold the keys
            }
            round += 1;
        }
        Ok(())
    }

    fn turn(&mut self, trial: &mut Trial<K>, time: Duration, fresh: bool) -> Result<(), Failure> {
        let wants_fresh = self.plan.wants_fresh();
        let used = trial.live.as_ref().is_none_or(|live| live.has_run && (fresh || wants_fresh));
        if used {
            self.load(trial)?;
        }
        let Some(live) = &mut trial.live else { unreachable!("it was loaded") };
        // A trace has its own operations, whatever the mix, and these would count.
        if !matches!(self.plan.source, Keys::Trace(_)) {
            let warm = self.spec(Mix::LOOKUPS, 1, WARM_UP.min(time), live.window, 0);
            live.subject.run(&self.traffic, &warm, self.crew)?;
        }
        self.runs += 1;
        let time = self.plan.time(time);
        let spec = self.spec(self.plan.mix, trial.candidate.batch, time, live.window, self.runs);
        let outcome = live.subject.run(&self.traffic, &spec, self.crew)?;
        (live.window, live.has_run) = (outcome.window, true);
        trial.rates.push(outcome.mops());
        if wants_fresh {
            let keys = self.traffic.choice.present() as i64 + outcome.tally.growth();
            let bytes = live.subject.bytes();
            trial.note_bytes(bytes, keys);
        }
        if fresh {
            trial.live = None;
        }
        Ok(())
    }

    /// Makes and loads the index of a trial.
    fn load(&self, trial: &mut Trial<K>) -> Result<(), Failure> {
        trial.live = None;
        alloc::trim();
        let candidate = &trial.candidate;
        let types = Types::words(self.plan.key_type);
        let Some(make) = candidate.chosen.make::<K>(candidate.place, types) else {
            unreachable!("candidates can be made")
        };
        let options = Options { counting: candidate.counting, ..candidate.place.options(None) };
        let mut subject = make(&options).map_err(|error| Failure::Alloc { error, done: 0 })?;
        let load = subject.load(&self.traffic, Reuse::Yes, self.crew)?;
        trial.load = Some((load.seconds, self.present()));
        if !self.plan.wants_fresh() {
            trial.note_bytes(subject.bytes(), self.present() as i64);
        }
        let pools = subject.pool_stats();
        trial.fallback = pools.into_iter().find_map(|pool| pool.fallback).map(|of| of.reason);
        let window = self.traffic.choice.start();
        trial.live = Some(Live { subject, window, has_run: false });
        Ok(())
    }

    /// Frees the indexes of all trials.
    pub fn free(trials: &mut [Trial<K>]) {
        for trial in trials {
            trial.live = None;
        }
        alloc::trim();
    }

    /// As in `bench`, a run of a mix that changes the size of the index ends when a tenth of the
    /// keys that it can insert or remove is left.
    fn spec(&self, mix: Mix, batch: usize, time: Duration, window: Window, number: u64) -> RunSpec {
        let choice = &self.traffic.choice;
        let is_warm_up = mix == Mix::LOOKUPS && number == 0;
        let limit = if is_warm_up { None } else { self.plan.limit(choice) };
        RunSpec {
            mix,
            batch,
            scan_by: ScanBy::Range,
            scan_length: self.plan.scan_length,
            threads: self.plan.threads,
            time,
            number,
            window,
            limit,
        }
    }
}

/// The scores of trials: rates, or one over bytes for those with half of the best rate. So each
/// stage keeps the fastest trial.
pub fn scores<K: BenchKey + ?Sized>(goal: Goal, trials: &[Trial<K>]) -> Vec<f64> {
    let fastest = trials.iter().map(Trial::rate).fold(0.0, f64::max);
    let score = |trial: &Trial<K>| match (goal, trial.bytes_per_key()) {
        (Goal::Speed, _) => trial.rate(),
        (Goal::Memory, Some(bytes)) if 2.0 * trial.rate() >= fastest => 1.0 / bytes,
        (Goal::Memory, _) => 0.0,
    };
    trials.iter().map(score).collect()
}

/// How good a trial is beside another: the ratios of their rates, round by round, or with the goal
/// of memory the bytes of the other over its bytes.
pub fn advantage<K: BenchKey + ?Sized>(
    goal: Goal,
    of: &Trial<K>,
    to: &Trial<K>,
) -> Option<Interval> {
    match goal {
        Goal::Speed => rate_ratio(of, to),
        Goal::Memory => {
            let ratios: Vec<f64> = to.bytes.iter().zip(&of.bytes).map(|(to, of)| to / of).collect();
            Interval::of(&ratios)
        }
    }
}

/// The fastest trial.
pub fn fastest<K: BenchKey + ?Sized>(trials: &[Trial<K>]) -> Option<&Trial<K>> {
    trials.iter().max_by(|a, b| a.rate().total_cmp(&b.rate()))
}

/// The ratios of two trials' rates, round by round.
pub fn rate_ratio<K: BenchKey + ?Sized>(of: &Trial<K>, to: &Trial<K>) -> Option<Interval> {
    let ratios: Vec<f64> = of.rates.iter().zip(&to.rates).map(|(a, b)| a / b).collect();
    Interval::of(&ratios)
}

/// Whether the index has the pages that were asked for. The usual place is what a program gets, on
/// whatever pages.
pub fn has_its_pages<K: BenchKey + ?Sized>(trial: &Trial<K>) -> bool {
    trial.candidate.place == usual_place() || trial.fallback.is_none()
}

fn of_space<K: BenchKey + ?Sized>(plan: &Plan, space: K::Space) -> Traffic<K> {
    let choice = match &plan.source {
        Keys::Trace(trace) => Choice::of_trace(trace, plan.seed),
        _ => Choice::new(plan.dist, K::len(&space).max(1), plan.seed),
    };
    Traffic { space, choice }
}

/// The wanted number of positions of a key space, in runs that are spread over it: within a run
/// neighbours stay neighbours, so prefixes stay shared.
fn chunks(len: usize, wanted: usize) -> Vec<u32> {
    const RUNS: usize = 32;
    if wanted >= len {
        return (0..len as u32).collect();
    }
    let run = wanted.div_ceil(RUNS);
    let starts = (0..RUNS).map(|at| at * (len - run) / (RUNS - 1));
    let mut positions: Vec<u32> = starts.flat_map(|at| (at..at + run).map(|p| p as u32)).collect();
    positions.sort_unstable();
    positions.dedup();
    positions.truncate(wanted);
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_spread_runs_without_repeats() {
        for (len, wanted) in [(10, 10), (10, 20), (1000, 64), (1000, 999), (100_000, 3200)] {
            let positions = chunks(len, wanted);
            assert!(positions.is_sorted_by(|a, b| a < b), "{len}, {wanted}");
            assert!(positions.iter().all(|&at| (at as usize) < len));
            assert!(positions.len() <= wanted && 10 * positions.len() >= 9 * wanted.min(len));
        }
        let positions = chunks(100_000, 3200);
        let neighbours = positions.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        assert!(neighbours > 3100 && positions[3199] > 99_000, "{neighbours}");
    }
}
