//! The rows of a cell: what its contenders' outcomes come to.

use super::cell::{Config, Slot};
use super::latency;
use super::plan::Plan;
use super::report::{LoadRow, Report, Row, RowKey};
use crate::drive::keys::BenchKey;
use crate::drive::stats::Interval;
use crate::drive::subject::{Crew, Outcome, counted};
use crate::drive::timed::Times;
use crate::flags::place::SYSTEM_PAGES;
use crate::host::alloc;
use crate::host::counters::PerOp;
use silvics_workload::{Choice, KeySet, Mix, Op};

/// The result of a cell, on its way to the report.
pub(super) struct Rows<'a, K: BenchKey + ?Sized> {
    pub(super) plan: &'a Plan,
    pub(super) crew: &'a Crew,
    pub(super) choice: &'a Choice,
    pub(super) number: usize,
    pub(super) slots: &'a [Slot<K>],
    pub(super) configs: &'a [Config],
    /// The outcomes of an index that does nothing, by configuration and round.
    pub(super) own: &'a [Vec<Outcome>],
    /// The times of an index that does nothing, by configuration.
    pub(super) clock: &'a [Times],
}

impl<K: BenchKey + ?Sized> Rows<'_, K> {
    /// Adds the rows to the report. A contender that was left out of a configuration, or not
    /// reached, has no row there.
    pub(super) fn add_to(&self, report: &mut Report) {
        let loads = |slot: &Slot<K>| samples(&slot.loads, |_, load| Some(load.mops()));
        let first = self.slots.first().and_then(loads);
        for slot in self.slots {
            let (Some(mops), Some(first)) = (loads(slot), &first) else { continue };
            report.loads.extend(self.load_row(slot, mops, first));
        }
        for (at, config) in self.configs.iter().enumerate() {
            let mut ran = self.slots.iter().map(|slot| &slot.outcomes[at][..]);
            let Some(first) = ran.find(|outcomes| !outcomes.is_empty()) else {
                continue;
            };
            let rows = self.slots.iter();
            report.results.extend(rows.filter_map(|slot| self.row(slot, config, at, first)));
        }
        if let Some(trace) = &mut report.trace {
            let of = |slot| self.key(slot);
            let runs =
                self.slots.iter().flat_map(|slot| slot.traced.iter().map(move |run| (slot, run)));
            trace.runs.extend(runs.map(|(slot, run)| run.row(of(slot))));
        }
    }

    fn key(&self, slot: &Slot<K>) -> RowKey {
        let ours = !slot.chosen.entry.is_peer();
        RowKey {
            cell: self.number,
            index: slot.chosen.name(),
            variant: slot.chosen.variant.name,
            placement: if ours { slot.place.name() } else { "own" },
            pages: if ours { slot.place.pages() } else { SYSTEM_PAGES.into() },
            keys: self.choice.present(),
            key_space: self.choice.len(),
            key_type: self.plan.types.key.name(),
            keyset: self.plan.set.map(KeySet::name),
            value_type: self.plan.types.value.name(),
            dist: self.choice.dist().to_string(),
            allocator: alloc::name(),
        }
    }

    fn load_row(&self, slot: &Slot<K>, samples: Vec<f64>, first: &[f64]) -> Option<LoadRow> {
        let ratios: Vec<f64> =
            samples.iter().zip(first).map(|(mops, first)| mops / first).collect();
        Some(LoadRow {
            key: self.key(slot),
            threads: self.crew.loaders,
            mops: Interval::of(&samples)?,
            samples,
            ratio: Interval::of(&ratios),
            footprint: slot.footprint.clone()?,
        })
    }

    fn row(&self, slot: &Slot<K>, config: &Config, at: usize, first: &[Outcome]) -> Option<Row> {
        let outcomes = &slot.outcomes[at][..];
        let mops = samples(outcomes, |_, outcome| Some(outcome.mops()))?;
        let against = |of: fn(&Outcome) -> Option<f64>| {
            interval(outcomes, |round, outcome| Some(of(outcome)? / of(first.get(round)?)?))
        };
        let ratio = against(|outcome| Some(outcome.mops()));
        let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum();
        Some(Row {
            key: self.key(slot),
            threads: config.threads,
            mix: config.mix.to_string(),
            batch: config.batch,
            scan_by: config.scan_by(),
            scan_length: config.scan_length(),
            mops: Interval::of(&mops)?,
            samples: mops,
            ratio_to_first: ratio.map(|ratio| ratio.median),
            ratio,
            own_ns: interval(&self.own[at], |_, own| Some(own.ns(config.threads)))
                .map(|own| own.median),
            entry_ns: self.entry_ns(slot, config, at),
            lookups: sum(|outcome| outcome.tally.lookups),
            hits: sum(|outcome| outcome.tally.hits),
            scanned: sum(|outcome| outcome.tally.scanned),
            footprint: slot.footprint.clone()?,
            cpu_share: interval(outcomes, |_, outcome| outcome.cpu_share).map(|share| share.median),
            cpu_mops: interval(outcomes, |_, outcome| outcome.cpu_mops()),
            cpu_ratio: against(Outcome::cpu_mops),
            counters: PerOp::of(counted(outcomes)),
            latency: latency::of(&slot.latencies[at], &self.clock[at], config),
            checked: slot.checked,
        })
    }

    /// The time of one more entry, in a mix of scans alone: how much longer than the shortest scans
    /// that were measured these take, over the entries by which they are longer.
    fn entry_ns(&self, slot: &Slot<K>, config: &Config, at: usize) -> Option<Interval> {
        let alike = |of: &Config| Config { scan_length: config.scan_length, ..*of } == *config;
        let others = self.configs.iter().enumerate().filter(|(_, of)| alike(of));
        let (short, shortest) = others.min_by_key(|(_, of)| of.scan_length)?;
        if config.mix.share(Op::Scan) < Mix::WHOLE || shortest.scan_length == config.scan_length {
            return None;
        }
        interval(&slot.outcomes[at], |round, long| {
            one_more_entry(slot.outcomes[short].get(round)?, long, config.threads)
        })
    }
}

/// The nanoseconds by which the scans of a run take longer than those of another, for each entry
/// that they read more. `None` if they read no more.
fn one_more_entry(short: &Outcome, long: &Outcome, threads: usize) -> Option<f64> {
    let entries = |of: &Outcome| of.tally.scanned as f64 / of.tally.ops as f64;
    let more = entries(long) - entries(short);
    (more > 0.0).then(|| (long.ns(threads) - short.ns(threads)) / more)
}

/// A figure of each round, up to the first round that lacks it. `None` if there is none.
fn samples(outcomes: &[Outcome], of: impl Fn(usize, &Outcome) -> Option<f64>) -> Option<Vec<f64>> {
    let rounds = outcomes.iter().enumerate();
    let samples: Vec<f64> = rounds.map_while(|(round, outcome)| of(round, outcome)).collect();
    (!samples.is_empty()).then_some(samples)
}

fn interval(outcomes: &[Outcome], of: impl Fn(usize, &Outcome) -> Option<f64>) -> Option<Interval> {
    Interval::of(&samples(outcomes, of)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::run::Tally;
    use silvics_workload::Window;

    #[test]
    fn one_more_entry_is_the_slope_between_two_lengths() {
        let scans = |seconds: f64, each: u64| Outcome {
            tally: Tally { ops: 1000, scanned: 1000 * each, ..Tally::default() },
            seconds,
            cpu_seconds: None,
            cpu_share: None,
            counts: None,
            window: Window { inserted: 0, removed: 0 },
        };
        // With two threads, scans of 10 take 400 ns and those of 100 take 2200 ns.
        let (short, long) = (scans(0.000_2, 10), scans(0.001_1, 100));
        let ns = one_more_entry(&short, &long, 2).unwrap();
        assert!((ns - 20.0).abs() < 1e-9, "{ns}");
        assert_eq!(one_more_entry(&long, &long, 2), None);
    }

    #[test]
    fn figures_end_with_the_first_round_that_lacks_one() {
        let outcome = Outcome {
            tally: Tally::default(),
            seconds: 1.0,
            cpu_seconds: None,
            cpu_share: None,
            counts: None,
            window: Window { inserted: 0, removed: 0 },
        };
        let outcomes = [outcome; 3];
        let figures = |lacking| samples(&outcomes, |round, _| (round < lacking).then_some(1.0));
        assert_eq!(figures(2), Some(vec![1.0; 2]));
        assert_eq!(figures(0), None);
    }
}
