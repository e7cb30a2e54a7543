//! One cell: contenders are built, take turns, and are checked.

use super::plan::Plan;
use super::report::{Footprint, LoadRow, Report, Row, RowKey};
use crate::catalogue::select::Chosen;
use crate::drive::keys::BenchKey;
use crate::drive::run::{Failure, Ledger, RunSpec};
use crate::drive::stats::Interval;
use crate::drive::subject::{Crew, Outcome, Subject, Traffic, counted};
use crate::flags::error::Error;
use crate::flags::place::{Place, SYSTEM_PAGES};
use crate::host::alloc;
use crate::host::counters::PerOp;
use crate::host::memory::{self, Resident};
use crate::progress::Progress;
use silvics::AllocError;
use silvics_workload::{Mix, Window};
use std::time::Duration;

/// One cell of a benchmark.
pub struct Cell<'a, K: BenchKey + ?Sized> {
    pub traffic: &'a Traffic<K>,
    pub plan: &'a Plan,
    pub crew: &'a Crew,
    pub progress: &'a Progress,
    /// The number of the cell, from 0.
    pub number: usize,
}

/// The way in which a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Finished,
    /// The user interrupted it. Finished cells are reported.
    Interrupted,
}

/// The reason why a cell ends early.
enum Stop {
    Interrupted,
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The configuration of a run.
#[derive(Clone, Copy, Debug)]
struct Config {
    mix: Mix,
    batch: usize,
    threads: usize,
}

/// A contender in a cell.
struct Slot<K: BenchKey + ?Sized> {
    chosen: Chosen,
    /// The place of its nodes, unless it is a peer.
    place: Place,
    subject: Subject<K>,
    ledger: Ledger,
    window: Window,
    footprint: Footprint,
    load: Outcome,
    /// The outcomes, by configuration and round.
    outcomes: Vec<Vec<Outcome>>,
    checked: bool,
}

impl<K: BenchKey + ?Sized> Cell<'_, K> {
    /// Runs the cell and adds its rows to the report.
    pub fn run(&self, report: &mut Report) -> Result<Flow, Error> {
        let configs = self.configs();
        let mut slots = Vec::new();
        let flow = match self.fill(&configs, &mut slots) {
            Ok(()) => Flow::Finished,
            Err(Stop::Interrupted) => Flow::Interrupted,
            Err(Stop::Error(error)) => return Err(error),
        };
        report.cells += 1;
        report.loads.extend(slots.iter().map(|slot| self.load_row(slot)));
        for (at, config) in configs.iter().enumerate() {
            // A contender that was left out of a configuration, or not reached, has no row.
            let mut ran = slots.iter().map(|slot| &slot.outcomes[at][..]);
            let Some(first) = ran.find(|outcomes| !outcomes.is_empty()) else {
                continue;
            };
            let rows = slots.iter();
            let rows = rows.filter_map(|slot| self.row(slot, config, &slot.outcomes[at], first));
            report.results.extend(rows);
        }
        drop(slots);
        alloc::trim();
        Ok(flow)
    }

    fn configs(&self) -> Vec<Config> {
        let plan = self.plan;
        let mut configs = Vec::new();
        for &threads in &plan.threads {
            for &mix in &plan.mixes {
                for &batch in &plan.batches {
                    configs.push(Config { mix, batch, threads });
                }
            }
        }
        configs
    }

    /// Builds, measures and checks the contenders. Unless this fails, the content of `slots` is
    /// reported.
    fn fill(&self, configs: &[Config], slots: &mut Vec<Slot<K>>) -> Result<(), Stop> {
        for (chosen, place) in self.plan.contenders() {
            self.progress.doing(format!("{}: load", chosen.name()));
            slots.extend(self.build(chosen, place, configs.len())?);
            self.progress.step();
        }
        if slots.is_empty() {
            return Err(self.nothing().into());
        }
        self.rounds(configs, slots)?;
        let mut wrong = Vec::new();
        for (at, slot) in slots.iter_mut().enumerate() {
            self.progress.doing(format!("{}: check", slot.chosen.name()));
            let scans = slot.chosen.entry.scans(K::TYPE);
            match slot.subject.verify(self.traffic, slot.ledger, scans, self.crew) {
                Ok(()) => slot.checked = true,
                Err(failure) => {
                    self.leave_out(slot.chosen, failure)?;
                    wrong.push(at);
                }
            }
            self.progress.step();
        }
        for at in wrong.into_iter().rev() {
            slots.remove(at);
        }
        Ok(())
    }

    /// A peer that is wrong, and was not named, has no rows, and a note says so. The failure of any
    /// other contender ends the run.
    fn leave_out(&self, chosen: Chosen, failure: Failure) -> Result<(), Stop> {
        let tolerated =
            chosen.entry.is_peer() && !chosen.named && matches!(failure, Failure::Wrong(_));
        match self.stop(chosen, failure, false) {
            Stop::Error(error) if tolerated => {
                self.progress.note(&error.to_string());
                Ok(())
            }
            stop => Err(stop),
        }
    }

    /// The rounds, the first of which does not count.
    fn rounds(&self, configs: &[Config], slots: &mut [Slot<K>]) -> Result<(), Stop> {
        for round in 0..=self.plan.rounds {
            let mut turns: Vec<usize> = (0..slots.len()).collect();
            if round % 2 == 0 {
                turns.reverse(); // the first round that counts goes forwards
            }
            for turn in turns {
                self.turn(configs, &mut slots[turn], round)?;
                self.progress.step();
            }
        }
        Ok(())
    }

    /// One contender's turn: a run per configuration.
    fn turn(&self, configs: &[Config], slot: &mut Slot<K>, round: usize) -> Result<(), Stop> {
        let name = slot.chosen.name();
        for (at, config) in configs.iter().enumerate() {
            if !slot.chosen.can(config.mix, K::TYPE) {
                continue;
            }
            self.progress.doing(match round {
                0 => format!("{name}: warm-up"),
                _ => format!("{name}: round {round}, mix {}", config.mix),
            });
            let spec = RunSpec {
                mix: config.mix,
                batch: config.batch,
                scan_length: self.plan.scan_length,
                threads: config.threads,
                time: self.time(round),
                number: (round * configs.len() + at) as u64,
                window: slot.window,
            };
            let outcome = slot
                .subject
                .run(self.traffic, &spec, self.crew)
                .map_err(|failure| self.stop(slot.chosen, failure, false))?;
            slot.ledger.book(&outcome.tally);
            slot.window = outcome.window;
            if round > 0 {
                slot.outcomes[at].push(outcome);
            }
        }
        Ok(())
    }

    fn time(&self, round: usize) -> Duration {
        const WARM_UP: Duration = Duration::from_millis(100);
        match round {
            0 => self.plan.time.min(WARM_UP),
            _ => self.plan.time,
        }
    }

    /// Builds and loads one contender. `None` if it is left out.
    fn build(&self, chosen: Chosen, place: Place, configs: usize) -> Result<Option<Slot<K>>, Stop> {
        if let Some(longest) = K::longest(&self.traffic.space)
            && let Err(note) = chosen.takes_length(longest)?
        {
            if self.number == 0 {
                self.progress.note(&note); // once, not in every cell
            }
            return Ok(None);
        }
        let Some(make) = chosen.make::<K>(place, self.plan.types) else {
            return Ok(None);
        };
        alloc::trim();
        let before = Resident::now();
        let options = place.options(self.plan.memory_limit);
        let mut subject = make(&options).map_err(|error| {
            let failure = Failure::Alloc { error, done: 0 };
            self.stop(chosen, failure, true)
        })?;
        let load = subject
            .load(self.traffic, self.plan.reuse, self.crew)
            .map_err(|failure| self.stop(chosen, failure, true))?;
        let mut ledger = Ledger::default();
        ledger.book(&load.tally);
        let footprint = self.footprint(&subject, before);
        if let Some(reason) = &footprint.fallback {
            let note = format!("`{}` on --pages {}: {reason}", chosen.name(), place.pages());
            self.progress.note(&note);
        }
        Ok(Some(Slot {
            chosen,
            place,
            subject,
            ledger,
            window: self.traffic.choice.start(),
            footprint,
            load,
            outcomes: vec![Vec::new(); configs],
            checked: false,
        }))
    }

    fn footprint(&self, subject: &Subject<K>, before: Option<Resident>) -> Footprint {
        let grown = || Some(Resident::now()?.since(before?));
        let grown_bytes = grown().map(|grown| grown.bytes).filter(|&bytes| bytes > 0);
        alloc::settle();
        let grown = grown();
        let pools = subject.pool_stats();
        let regions: Vec<_> = pools.iter().flat_map(|pool| pool.regions.clone()).collect();
        let exact = subject.bytes();
        let bytes = exact.or(grown_bytes);
        let keys = self.traffic.choice.present() as f64;
        Footprint {
            bytes_per_key: bytes.map(|bytes| bytes as f64 / keys),
            bytes_source: if exact.is_some() { "exact" } else { "rss" },
            huge_page_share: memory::of_regions(&regions).or(grown).and_then(Resident::huge_share),
            pages_given: pools
                .first()
                .filter(|pool| !pool.regions.is_empty())
                .map(|pool| pool.pages.to_string()),
            fallback: pools
                .into_iter()
                .find_map(|pool| pool.fallback)
                .map(|fallback| fallback.reason),
        }
    }

    fn stop(&self, chosen: Chosen, failure: Failure, loading: bool) -> Stop {
        let index = chosen.name();
        Stop::Error(match failure {
            Failure::Interrupted => return Stop::Interrupted,
            Failure::Alloc { error: AllocError::Limit { limit, .. }, done } => Error::MemoryLimit {
                index,
                limit,
                done,
                keys: self.traffic.choice.present(),
                loading,
            },
            other => other.of(&index),
        })
    }

    fn nothing(&self) -> Error {
        let names: Vec<String> = self.plan.chosen.iter().map(Chosen::name).collect();
        Error::Nothing { indexes: names.join(","), why: "takes these keys in this placement" }
    }

    fn key(&self, slot: &Slot<K>) -> RowKey {
        let ours = !slot.chosen.entry.is_peer();
        RowKey {
            cell: self.number,
            index: slot.chosen.name(),
            variant: slot.chosen.variant.name,
            placement: if ours { slot.place.name() } else { "own" },
            pages: if ours { slot.place.pages() } else { SYSTEM_PAGES.into() },
            keys: self.traffic.choice.present(),
            key_space: self.traffic.choice.len(),
            key_type: self.plan.types.key.name(),
            value_type: self.plan.types.value.name(),
            dist: self.traffic.choice.dist().to_string(),
            allocator: alloc::name(),
        }
    }

    fn load_row(&self, slot: &Slot<K>) -> LoadRow {
        LoadRow {
            key: self.key(slot),
            threads: self.crew.threads,
            mops: slot.load.mops(),
            seconds: slot.load.seconds,
        }
    }

    fn row(
        &self,
        slot: &Slot<K>,
        config: &Config,
        outcomes: &[Outcome],
        first: &[Outcome],
    ) -> Option<Row> {
        let samples: Vec<f64> = outcomes.iter().map(Outcome::mops).collect();
        let ratios: Vec<f64> =
            samples.iter().zip(first).map(|(mops, first)| mops / first.mops()).collect();
        let ratio = Interval::of(&ratios);
        let cpu_share: Option<Vec<f64>> =
            outcomes.iter().map(|outcome| outcome.cpu_share).collect();
        let cpu_mops: Option<Vec<f64>> = outcomes.iter().map(Outcome::cpu_mops).collect();
        let pairs = outcomes.iter().zip(first);
        let cpu_ratios: Option<Vec<f64>> =
            pairs.map(|(this, first)| Some(this.cpu_mops()? / first.cpu_mops()?)).collect();
        let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum();
        Some(Row {
            key: self.key(slot),
            threads: config.threads,
            mix: config.mix.to_string(),
            batch: config.batch,
            scan_length: config.mix.scans().then_some(self.plan.scan_length),
            mops: Interval::of(&samples)?,
            samples,
            ratio_to_first: ratio.map(|ratio| ratio.median),
            ratio,
            lookups: sum(|outcome| outcome.tally.lookups),
            hits: sum(|outcome| outcome.tally.hits),
            scanned: sum(|outcome| outcome.tally.scanned),
            footprint: slot.footprint.clone(),
            load_mops: slot.load.mops(),
            cpu_share: interval(cpu_share).map(|share| share.median),
            cpu_mops: interval(cpu_mops),
            cpu_ratio: interval(cpu_ratios),
            counters: PerOp::of(counted(outcomes)),
            checked: slot.checked,
        })
    }
}

fn interval(samples: Option<Vec<f64>>) -> Option<Interval> {
    Interval::of(&samples?)
}
