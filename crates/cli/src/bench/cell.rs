//! One cell: contenders take turns, and are checked.

use super::plan::Plan;
use super::report::{Footprint, Report};
use super::rows::Rows;
use super::trace::Traced;
use crate::catalogue::Make;
use crate::catalogue::select::Chosen;
use crate::drive::keys::BenchKey;
use crate::drive::nothing::Nothing;
use crate::drive::run::{self, Failure, Ledger, RunSpec};
use crate::drive::scans::ScanBy;
use crate::drive::shape::{self, Sampled};
use crate::drive::subject::{Crew, Outcome, Subject, Traffic};
use crate::drive::timed::Times;
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::host::alloc;
use crate::host::memory::{self, Resident};
use crate::progress::Progress;
use silvics::{AllocError, Options};
use silvics_workload::{Mix, Op, Window};
use std::cell::RefCell;
use std::time::Duration;

/// One cell of a benchmark.
pub struct Cell<'a, K: BenchKey + ?Sized> {
    pub traffic: &'a Traffic<K>,
    pub plan: &'a Plan,
    pub crew: &'a Crew,
    pub progress: &'a Progress,
    /// The number of the cell, from 0.
    pub number: usize,
    /// The errors of contenders that are left out.
    pub left_out: RefCell<Vec<String>>,
}

/// The way in which a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Finished,
    /// The user interrupted it. Finished cells are reported.
    Interrupted,
}

/// The quantity that a run of a cell measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    Throughput,
    /// The time of each call.
    Latency,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) mix: Mix,
    pub(super) batch: usize,
    pub(super) threads: usize,
    pub(super) scan_by: ScanBy,
    pub(super) scan_length: usize,
}

impl Config {
    /// All configurations of a plan. Only mixes with scans take each length of scans.
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        let mut configs = Vec::new();
        for &threads in &plan.threads {
            for &mix in &plan.mixes {
                let ways = if mix.scans() { &plan.scan_bys[..] } else { &[ScanBy::Range] };
                for &scan_by in ways {
                    let takes_length = mix.scans() && scan_by != ScanBy::Whole;
                    let lengths = if takes_length { &plan.scan_lengths[..] } else { &[1] };
                    for &batch in &plan.batches {
                        let of = |&scan_length| Self { mix, batch, threads, scan_by, scan_length };
                        configs.extend(lengths.iter().map(of));
                    }
                }
            }
        }
        configs
    }

    /// The way of scans, if there are any.
    pub(super) fn scan_by(&self) -> Option<&'static str> {
        self.mix.scans().then(|| self.scan_by.name())
    }

    /// The number of entries that a scan reads, if there are scans and they have a length.
    pub(super) fn scan_length(&self) -> Option<usize> {
        let has_length = self.mix.scans() && self.scan_by != ScanBy::Whole;
        has_length.then_some(self.scan_length)
    }
}

/// A contender in a cell.
pub(super) struct Slot<K: BenchKey + ?Sized> {
    pub(super) chosen: Chosen,
    /// The place of its nodes, unless it is a peer.
    pub(super) place: Place,
    make: Make<K>,
    live: Option<Live<K>>,
    /// The bytes that the index has from the global allocator, if they were counted.
    counted: Option<usize>,
    pub(super) footprint: Option<Footprint>,
    /// The loads, by round.
    pub(super) loads: Vec<Outcome>,
    /// The outcomes of runs that measure throughput, by configuration and round.
    pub(super) outcomes: Vec<Vec<Outcome>>,
    /// The times of calls, by configuration.
    pub(super) latencies: Vec<Times>,
    /// The runs whose shape was sampled.
    pub(super) traced: Vec<Traced>,
    pub(super) checked: bool,
    /// Whether it is left out from now on.
    is_out: bool,
}

/// A loaded index.
struct Live<K: BenchKey + ?Sized> {
    subject: Subject<K>,
    ledger: Ledger,
    window: Window,
    /// Whether there has been a run after the load.
    has_run: bool,
    /// Whether a run has removed keys.
    has_removed: bool,
    /// Whether a run has changed the size by more than chance.
    has_grown: bool,
}

impl<K: BenchKey + ?Sized> Live<K> {
    /// Notes what a run has done.
    fn book(&mut self, config: &Config, outcome: &Outcome) {
        self.ledger.book(&outcome.tally);
        self.window = outcome.window;
        self.has_run = true;
        self.has_removed |= config.mix.share(Op::Remove) > 0;
        self.has_grown |= !config.mix.keeps_size();
    }
}

impl<K: BenchKey + ?Sized> Cell<'_, K> {
    /// Runs the cell and adds its rows to the report.
    pub fn run(&self, report: &mut Report) -> Result<Flow, Error> {
        let configs = Config::all(self.plan);
        let (mut slots, mut own) = (Vec::new(), vec![Vec::new(); configs.len()]);
        let mut clock = vec![Times::default(); configs.len()];
        let filled = self.fill(&configs, &mut slots, &mut own, &mut clock);
        for error in self.left_out.take() {
            if !report.left_out.contains(&error) {
                report.left_out.push(error);
            }
        }
        let flow = match filled {
            Ok(()) => Flow::Finished,
            Err(Stop::Interrupted) => Flow::Interrupted,
            Err(Stop::Error(error)) => return Err(error),
        };
        report.cells += 1;
        let (plan, crew, choice, number) =
            (self.plan, self.crew, &self.traffic.choice, self.number);
        let (configs, own, clock) = (&configs[..], &own[..], &clock[..]);
        Rows { plan, crew, choice, number, slots: &slots, configs, own, clock }.add_to(report);
        drop(slots);
        alloc::trim();
        Ok(flow)
    }

    /// Measures and checks the contenders. Unless this fails, the content of `slots` is reported.
    /// `own` takes the outcomes of an index that does nothing, and `clock` its
    /// times, by configuration.
    fn fill(
        &self,
        configs: &[Config],
        slots: &mut Vec<Slot<K>>,
        own: &mut [Vec<Outcome>],
        clock: &mut [Times],
    ) -> Result<(), Stop> {
        let mut why = self.nothing();
        for (chosen, place) in self.plan.contenders() {
            let Some(mut slot) = self.slot(chosen, place, configs.len())? else { continue };
            match self.count(&mut slot) {
                Ok(()) => slots.push(slot),
                Err(failure) => why = self.leave_out(chosen, failure, true)?,
            }
        }
        // Runs with times come after all others, so that these are the same without them.
        for &measured in self.plan.measured() {
            for round in 1..=self.plan.rounds {
                if slots.is_empty() {
                    return Err(why.into());
                }
                let mut turns: Vec<usize> = (0..slots.len()).collect();
                if round % 2 == 0 {
                    turns.reverse(); // A B C, then C B A
                }
                let ended: Result<(), Stop> = turns.into_iter().try_for_each(|turn| {
                    let slot = &mut slots[turn];
                    if let Err((failure, loading)) = self.turn(configs, slot, round, measured) {
                        why = self.leave_out(slot.chosen, failure, loading)?;
                        slot.is_out = true;
                    }
                    self.progress.step();
                    Ok(())
                });
                slots.retain(|slot| !slot.is_out); // also if the user has interrupted the round
                ended?;
                match measured {
                    Measured::Throughput => self.run_nothing(configs, round, own)?,
                    Measured::Latency => self.time_nothing(configs, round, clock)?,
                }
            }
        }
        if slots.is_empty() { Err(why.into()) } else { Ok(()) }
    }

    /// A contender that takes the keys. `None` if it is left out.
    fn slot(&self, chosen: Chosen, place: Place, configs: usize) -> Result<Option<Slot<K>>, Stop> {
        if let Some(longest) = K::longest(&self.traffic.space)
            && let Err(note) = chosen.takes_length(longest)?
        {
            if self.number == 0 {
                self.progress.note(&note); // once, not in every cell
            }
            return Ok(None);
        }
        let make = chosen.make::<K>(place, self.plan.types);
        Ok(make.map(|make| Slot {
            chosen,
            place,
            make,
            live: None,
            counted: None,
            footprint: None,
            loads: Vec::new(),
            outcomes: vec![Vec::new(); configs],
            latencies: vec![Times::default(); configs],
            traced: Vec::new(),
            checked: false,
            is_out: false,
        }))
    }

    /// If the index does not know its bytes, loads it and counts the bytes that it has from the
    /// global allocator, and those that its pools hold. This is done before all rounds: a collector
    /// that several indexes share may free blocks of one index later, which would count against
    /// another.
    fn count(&self, slot: &mut Slot<K>) -> Result<(), Failure> {
        let fresh = self.build(slot)?;
        if fresh.bytes().is_none() {
            drop(fresh);
            self.progress.doing(format!("{}: bytes", slot.chosen.name()));
            let (load, bytes) = alloc::count_live(|| self.load(slot));
            load?;
            // In the shared place, nodes are blocks of the global allocator, too.
            let is_pooled = slot.place != Place::Shared || slot.chosen.entry.is_peer();
            let pooled = slot.live.as_ref().filter(|_| is_pooled);
            let pooled = pooled.map_or(0, |live| live.subject.pooled_bytes());
            (slot.live, slot.counted) = (None, bytes.map(|bytes| bytes + pooled));
        }
        Ok(())
    }

    fn build(&self, slot: &Slot<K>) -> Result<Subject<K>, Failure> {
        let counting = self.plan.counting;
        let options = Options { counting, ..slot.place.options(self.plan.memory_limit) };
        (slot.make)(&options).map_err(|error| Failure::Alloc { error, done: 0 })
    }

    /// A peer that is wrong has no rows, and a note says so. The failure of any other contender
    /// ends the run.
    fn leave_out(&self, chosen: Chosen, failure: Failure, loading: bool) -> Result<Error, Stop> {
        let is_wrong = matches!(failure, Failure::Wrong(_) | Failure::Panicked);
        match self.stop(chosen, failure, loading) {
            Stop::Error(error) if is_wrong && chosen.entry.is_peer() => {
                self.progress.note(&format!("{error}; it has no rows"));
                self.left_out.borrow_mut().push(error.to_string());
                Ok(error)
            }
            stop => Err(stop),
        }
    }

    /// One contender's turn: a fresh index if the round has one, and a run per configuration. The
    /// flag beside a failure says whether a load failed.
    fn turn(
        &self,
        configs: &[Config],
        slot: &mut Slot<K>,
        round: usize,
        measured: Measured,
    ) -> Result<(), (Failure, bool)> {
        let name = slot.chosen.name();
        if round <= self.plan.loads {
            self.progress.doing(format!("{name}: load {round}"));
            let load = self.load_first(slot).map_err(|failure| (failure, true))?;
            if measured == Measured::Throughput {
                slot.loads.push(load);
            }
            self.warm_up(slot).map_err(|failure| (failure, false))?;
        }
        for (at, config) in configs.iter().enumerate() {
            if !slot.chosen.can(config.mix, K::TYPE) {
                continue;
            }
            let (grows, upserts) = (!config.mix.keeps_size(), config.mix.upserts());
            let is_used = |live: &Live<K>| {
                live.has_grown || (grows && live.has_run) || (upserts && live.has_removed)
            };
            if slot.live.as_ref().is_none_or(is_used) {
                self.progress.doing(format!("{name}: load for mix {}", config.mix));
                if round == self.plan.rounds {
                    self.check(slot).map_err(|failure| (failure, false))?;
                }
                self.load(slot).map_err(|failure| (failure, true))?;
                self.warm_up(slot).map_err(|failure| (failure, false))?;
            }
            self.progress.doing(format!("{name}: round {round}, mix {}", config.mix));
            let number = (round * configs.len() + at) as u64;
            match measured {
                Measured::Throughput => {
                    let (outcome, sampled) = self
                        .run_config(slot, config, number)
                        .map_err(|failure| (failure, false))?;
                    slot.outcomes[at].push(outcome);
                    let traced = |sampled| Traced { config: *config, round, outcome, sampled };
                    slot.traced.extend(sampled.map(traced));
                }
                Measured::Latency => {
                    let times = self.time_config(slot, config, number);
                    slot.latencies[at].add(times.map_err(|failure| (failure, false))?);
                }
            }
        }
        if round == self.plan.rounds {
            self.progress.doing(format!("{name}: check"));
            self.check(slot).map_err(|failure| (failure, false))?;
            slot.checked = true;
        }
        if round < self.plan.loads || round == self.plan.rounds {
            slot.live = None;
        }
        Ok(())
    }

    fn run_config(
        &self,
        slot: &mut Slot<K>,
        config: &Config,
        number: u64,
    ) -> Result<(Outcome, Option<Sampled>), Failure> {
        let Some(live) = &mut slot.live else { unreachable!("it was loaded") };
        let spec = self.spec(config, number, self.plan.time, live.window);
        let (outcome, sampled) = if self.plan.trace.is_some() {
            let (outcome, sampled) = shape::run(&live.subject, self.traffic, &spec, self.crew)?;
            (outcome, Some(sampled))
        } else {
            (live.subject.run(self.traffic, &spec, self.crew)?, None)
        };
        live.book(config, &outcome);
        Ok((outcome, sampled))
    }

    fn time_config(
        &self,
        slot: &mut Slot<K>,
        config: &Config,
        number: u64,
    ) -> Result<Times, Failure> {
        let Some(live) = &mut slot.live else { unreachable!("it was loaded") };
        let spec = self.spec(config, number, self.plan.time, live.window);
        let (outcome, times) = live.subject.run_timed(self.traffic, &spec, self.crew)?;
        live.book(config, &outcome);
        Ok(times)
    }

    /// A run that changes the size of the index ends when a tenth of the keys that it can insert or
    /// remove is left.
    fn spec(&self, config: &Config, number: u64, time: Duration, window: Window) -> RunSpec {
        let limit = run::growth(config.mix, &self.traffic.choice);
        let Config { mix, batch, threads, scan_by, scan_length } = *config;
        RunSpec { mix, batch, scan_by, scan_length, threads, time, number, window, limit }
    }

    /// Loads a fresh index as [`Cell::load`] does, the first time with its footprint.
    fn load_first(&self, slot: &mut Slot<K>) -> Result<Outcome, Failure> {
        if slot.footprint.is_some() {
            return self.load(slot);
        }
        alloc::trim();
        let before = Resident::now();
        let load = self.load(slot)?;
        let Some(live) = &slot.live else { unreachable!("it was loaded") };
        let footprint = self.footprint(&live.subject, before, slot.counted);
        if let Some(reason) = &footprint.fallback {
            let (name, pages) = (slot.chosen.name(), slot.place.pages());
            self.progress.note(&format!("`{name}` on --pages {pages}: {reason}"));
        }
        slot.footprint = Some(footprint);
        Ok(load)
    }

    /// Looks keys up for a moment. These lookups do not count.
    fn warm_up(&self, slot: &Slot<K>) -> Result<(), Failure> {
        const WARM_UP: Duration = Duration::from_millis(100);
        let Some(live) = &slot.live else { unreachable!("it was loaded") };
        let lookups = Config {
            mix: Mix::LOOKUPS,
            batch: 1,
            threads: self.plan.threads.iter().copied().max().unwrap_or(1),
            scan_by: ScanBy::Range,
            scan_length: 1,
        };
        let spec = self.spec(&lookups, 0, self.plan.time.min(WARM_UP), live.window);
        live.subject.run(self.traffic, &spec, self.crew)?;
        Ok(())
    }

    /// Replaces the index by a fresh one, and loads it.
    fn load(&self, slot: &mut Slot<K>) -> Result<Outcome, Failure> {
        slot.live = None;
        alloc::trim();
        let mut subject = self.build(slot)?;
        let load = subject.load(self.traffic, self.plan.reuse, self.crew)?;
        let mut ledger = Ledger::default();
        ledger.book(&load.tally);
        let window = self.traffic.choice.start();
        slot.live = Some(Live {
            subject,
            ledger,
            window,
            has_run: false,
            has_removed: false,
            has_grown: false,
        });
        Ok(load)
    }

    /// Checks the content of the index, if there is one.
    fn check(&self, slot: &Slot<K>) -> Result<(), Failure> {
        let scans = slot.chosen.entry.scans(K::TYPE);
        let check =
            |live: &Live<K>| live.subject.verify(self.traffic, live.ledger, scans, self.crew);
        slot.live.as_ref().map_or(Ok(()), check)
    }

    /// Runs each configuration on an index that does nothing, which shows the cost of the loops.
    fn run_nothing(
        &self,
        configs: &[Config],
        round: usize,
        own: &mut [Vec<Outcome>],
    ) -> Result<(), Stop> {
        self.progress.doing("the loops themselves".to_owned());
        let nothing = Subject::of(Nothing::<K>::default());
        for (at, config) in configs.iter().enumerate() {
            let spec = self.spec_of_nothing(config, (round * configs.len() + at) as u64);
            own[at].push(nothing.run(self.traffic, &spec, self.crew).map_err(stop_of_nothing)?);
        }
        Ok(())
    }

    /// Times the calls of an index that does nothing, in each configuration.
    fn time_nothing(
        &self,
        configs: &[Config],
        round: usize,
        clock: &mut [Times],
    ) -> Result<(), Stop> {
        self.progress.doing("the clock".to_owned());
        let nothing = Subject::of(Nothing::<K>::default());
        for (at, config) in configs.iter().enumerate() {
            let spec = self.spec_of_nothing(config, (round * configs.len() + at) as u64);
            let run = nothing.run_timed(self.traffic, &spec, self.crew);
            clock[at].add(run.map_err(stop_of_nothing)?.1);
        }
        Ok(())
    }

    /// A short run on an index that does nothing.
    fn spec_of_nothing(&self, config: &Config, number: u64) -> RunSpec {
        const TIME: Duration = Duration::from_millis(20);
        let time = self.plan.time.min(TIME);
        let start = self.traffic.choice.start();
        RunSpec { limit: None, ..self.spec(config, number, time, start) }
    }

    fn footprint(
        &self,
        subject: &Subject<K>,
        before: Option<Resident>,
        counted: Option<usize>,
    ) -> Footprint {
        let grown = || Some(Resident::now()?.since(before?));
        let grown_bytes = grown().map(|grown| grown.bytes).filter(|&bytes| bytes > 0);
        alloc::settle();
        let grown = grown();
        let pools = subject.pool_stats();
        let regions: Vec<_> = pools.iter().flat_map(|pool| pool.regions.clone()).collect();
        let (bytes_source, bytes) = match (subject.bytes(), counted) {
            (Some(exact), _) => ("exact", Some(exact)),
            (None, Some(counted)) => ("malloc", Some(counted)),
            (None, None) => ("rss", grown_bytes),
        };
        let keys = self.traffic.choice.present() as f64;
        Footprint {
            bytes_per_key: bytes.map(|bytes| bytes as f64 / keys),
            bytes_source,
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
}

fn stop_of_nothing(failure: Failure) -> Stop {
    match failure {
        Failure::Interrupted => Stop::Interrupted,
        other => Stop::Error(other.of("the loops that measure")),
    }
}
