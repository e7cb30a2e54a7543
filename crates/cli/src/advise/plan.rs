//! The workload to advise on, and the budget: the command line, checked.

use super::candidates::{Goal, Need};
use crate::drive::run::{self, Limit};
use crate::flags::advise::AdviseArgs;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::source::{KeySource, key_set, key_type};
use crate::flags::types::KeyType;
use crate::flags::values::{THREADS_MAX, list, number, parse, seconds, seed, single};
use silvics_layout::Machine;
use silvics_workload::trace::{Trace, TraceKeys};
use silvics_workload::{Choice, Dist, KEYS_MAX, KeySet, Mix};
use std::time::Duration;

/// The source of keys.
pub enum Keys {
    Generated,
    Set(KeySet),
    File(KeySource),
    /// A trace, with its operations.
    Trace(Box<Trace>),
}

/// A workload, and how to advise on it.
pub struct Plan {
    pub key_type: KeyType,
    pub source: Keys,
    /// The number of keys that are present; a key file has its own.
    pub keys: usize,
    pub dist: Dist,
    pub mix: Mix,
    pub scan_length: usize,
    /// The most keys of a call.
    pub batch: usize,
    pub threads: usize,
    pub needs: Vec<Need>,
    pub goal: Goal,
    /// The machine to predict for, beside this one.
    pub machine: Option<Machine>,
    pub budget: Duration,
    pub exhaustive: bool,
    pub seed: u64,
    pub format: Format,
}

/// The least seconds in which each structure can be loaded and run once.
const BUDGET_LEAST: f64 = 2.0;
const BATCH_MAX: usize = 4096;

impl Plan {
    /// Reads the flags. `cores` is the default number of threads.
    pub fn new(args: &AdviseArgs, cores: usize) -> Result<Self, Error> {
        let plan = Self::described(args, cores)?;
        let Some(path) = &args.trace else { return Ok(plan) };
        let wrong = |error| Error::Trace { path: path.clone(), error };
        Ok(plan.of_trace(Trace::read(path).map_err(wrong)?, cores))
    }

    /// The plan with the workload of a trace.
    fn of_trace(self, trace: Trace, cores: usize) -> Self {
        Self {
            key_type: match trace.keys {
                TraceKeys::U64(_) => KeyType::U64,
                TraceKeys::U128(_) => KeyType::U128,
                TraceKeys::Bytes(_) => KeyType::Bytes,
            },
            keys: trace.present.len(),
            mix: Mix::of_counts(trace.counts()),
            scan_length: trace.scan_length,
            batch: self.batch.max(trace.batch.min(BATCH_MAX)),
            needs: if trace.has_ends && !self.needs.contains(&Need::Ends) {
                [&self.needs[..], &[Need::Ends]].concat()
            } else {
                self.needs
            },
            threads: trace.threads.clamp(1, cores),
            source: Keys::Trace(Box::new(trace)),
            ..self
        }
    }

    fn described(args: &AdviseArgs, cores: usize) -> Result<Self, Error> {
        let dist = single("--dist", &args.dist, parse)?;
        let set = key_set(&args.key_file, &[dist])?;
        let file = KeySource::new(&args.key_file, args.keys.is_some(), &[dist])?;
        let key_type = key_type(&args.key_file, file.as_ref(), KeyType::of_indexes)?;
        let keys = args.keys.as_deref().unwrap_or("1M");
        let mix: Mix = single("--mix", &args.mix, parse)?;
        if mix.upserts() && matches!(dist, Dist::Disjoint | Dist::Latest) {
            let problem = format!(
                "{mix} has upserts, which choose loaded keys, but --dist {dist} does not: choose \
                 another mix or distribution"
            );
            return Err(Error::value("--mix", problem));
        }
        let threads =
            |text: &String| single("--threads", text, |text| number(text, 1, THREADS_MAX));
        Ok(Self {
            key_type,
            keys: single("--keys", keys, |text| number(text, 16, KEYS_MAX / 2))?,
            source: match (set, file) {
                (Some(set), _) => Keys::Set(set),
                (None, Some(file)) => Keys::File(file),
                (None, None) => Keys::Generated,
            },
            dist,
            mix,
            scan_length: single("--scan-length", &args.scan_length, |text| {
                number(text, 1, u32::MAX as usize)
            })?,
            batch: single("--batch", &args.batch, |text| number(text, 1, BATCH_MAX))?,
            threads: args.threads.as_ref().map_or(Ok(cores), threads)?,
            needs: args
                .needs
                .as_deref()
                .map_or(Ok(Vec::new()), |needs| list("--needs", needs, Need::parse))?,
            goal: single("--goal", &args.goal, Goal::parse)?,
            machine: args.machine.as_deref().map(machine).transpose()?,
            budget: budget(&args.budget)?,
            exhaustive: args.exhaustive,
            seed: single("--seed", &args.seed, seed)?,
            format: format(&args.format)?,
        })
    }
}

impl Plan {
    /// The limit that ends a run before its time is over.
    pub fn limit(&self, choice: &Choice) -> Option<Limit> {
        match &self.source {
            Keys::Trace(trace) => Some(Limit::Operations(self.operations(trace))),
            _ => run::growth(self.mix, choice),
        }
    }

    /// The operations of a run of a trace: all of them, again and again if they are few and keep
    /// the size, but no more than the budget allows.
    fn operations(&self, trace: &Trace) -> u64 {
        const FEW: u64 = 100_000;
        const EACH_SECOND: f64 = 10_000.0;
        let once = trace.steps.len() as u64;
        let all = if trace.grows() { once } else { once * FEW.div_ceil(once).max(1) };
        all.min((EACH_SECOND * self.budget.as_secs_f64()) as u64)
    }

    /// The share of the operations of a trace that a run makes, up to 1. It is 1 without a trace.
    pub fn share(&self) -> f64 {
        match &self.source {
            Keys::Trace(trace) => {
                (self.operations(trace) as f64 / trace.steps.len() as f64).min(1.0)
            }
            _ => 1.0,
        }
    }

    /// Whether a run needs a fresh index after another run: if it changes the size, and for a
    /// trace, whose operations find what was there at its start.
    pub fn wants_fresh(&self) -> bool {
        matches!(self.source, Keys::Trace(_)) || !self.mix.keeps_size()
    }

    /// The time of a run. The operations of a trace end before.
    pub fn time(&self, time: Duration) -> Duration {
        match self.source {
            Keys::Trace(_) => time.max(self.budget / 20),
            _ => time,
        }
    }
}

fn budget(text: &str) -> Result<Duration, Error> {
    let budget = single("--budget", text, seconds)?;
    if budget.as_secs_f64() < BUDGET_LEAST {
        let problem = format!(
            "`{text}` seconds are too few to load and measure each structure once: give it at least \
             {BUDGET_LEAST}"
        );
        return Err(Error::value("--budget", problem));
    }
    Ok(budget)
}

/// Whether a budget lasts for a search, if the keys were there after `ready` seconds.
pub fn is_enough(budget: f64, ready: f64) -> Result<(), Error> {
    if budget - ready >= BUDGET_LEAST / 4.0 {
        return Ok(());
    }
    let problem = format!(
        "{ready:.1} of {budget} seconds were spent before the keys were read: give it at least {:.0}",
        (ready + BUDGET_LEAST).ceil()
    );
    Err(Error::value("--budget", problem))
}

fn machine(name: &str) -> Result<Machine, Error> {
    Machine::named(name).map_err(|error| Error::value("--machine", error))
}

fn format(text: &str) -> Result<Format, Error> {
    match Format::parse(text)? {
        Format::Csv => {
            let problem = "advice has several parts: choose table or json";
            Err(Error::value("--format", problem))
        }
        format => Ok(format),
    }
}

#[cfg(test)]
mod tests {
    use super::is_enough;

    #[test]
    fn the_budget_has_to_last_after_the_keys_are_read() {
        assert!(is_enough(60.0, 59.0).is_ok());
        let error = is_enough(60.0, 59.8).expect_err("it is spent").to_string();
        assert_eq!(
            error,
            "--budget: 59.8 of 60 seconds were spent before the keys were read: give it at least 62"
        );
    }
}
