//! The processor's and the system's counters, read around each thread's part of a run.
//!
//! # Definitions
//! * An [`Event`] is the subject of a figure. A source names the event of this system that stands
//!   for it.
//! * A *group* of events is on the counters of a core together or not at all. If groups need more
//!   counters than there are, they take turns (they are *multiplexed*). A count then covers only a
//!   part of the time, and is multiplied by time enabled / time running.
//!
//! # Method
//! Each event is opened alone once, before anything is measured, to find out which events are
//! available. Then groups are filled. A group that does not fit, or does not run although it has
//! the counters to itself, is split. Each thread opens these groups for itself before a run, starts
//! them just before its clock starts, and stops them just after its clock has stopped. Nothing is
//! read in between.
//!
//! A figure that is not available is absent, never zero. An event has no figure for a run if some
//! thread could not open it, or if it never ran on some thread. `refused` words the reasons.
//!
//! Counts cover user mode only, except context switches, which happen in the kernel.
//!
//! # Source
//! Linux, `perf_event_open(2)`, read through `perf-event2`.

#[cfg(target_os = "linux")]
mod perf;
mod refused;
#[cfg(all(test, unix))]
mod tests;

use crate::names;
use crate::progress;
use refused::{Cause, Refused};
use serde::{Deserialize, Serialize};
use silvics_sync::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// An event that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Cycles,
    Instructions,
    LlcMisses,
    DtlbMisses,
    PageWalks,
    PageFaults,
    ContextSwitches,
}

impl Event {
    /// All events, those of the processor first.
    pub const ALL: [Self; 7] = [
        Self::Cycles,
        Self::Instructions,
        Self::LlcMisses,
        Self::DtlbMisses,
        Self::PageWalks,
        Self::PageFaults,
        Self::ContextSwitches,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::LlcMisses => "llc_misses",
            Self::DtlbMisses => "dtlb_misses",
            Self::PageWalks => "page_walks",
            Self::PageFaults => "page_faults",
            Self::ContextSwitches => "context_switches",
        }
    }

    /// Whether the processor counts it; the kernel counts the others.
    pub fn is_hardware(self) -> bool {
        !matches!(self, Self::PageFaults | Self::ContextSwitches)
    }

    /// The heading of its column, with the unit.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Cycles => "cycles/op",
            Self::Instructions => "instr./op",
            Self::LlcMisses => "LLC misses/op",
            Self::DtlbMisses => "dTLB misses/op",
            Self::PageWalks => "walks/op",
            Self::PageFaults => "faults/Mop",
            Self::ContextSwitches => "switches/Mop",
        }
    }

    /// A figure per operation, formatted for its column.
    pub fn shown(self, per_op: f64) -> String {
        match self {
            Self::Cycles | Self::Instructions => format!("{per_op:.0}"),
            Self::LlcMisses | Self::DtlbMisses | Self::PageWalks => format!("{per_op:.3}"),
            Self::PageFaults | Self::ContextSwitches => format!("{:.1}", 1e6 * per_op),
        }
    }
}

/// A count, and the time that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    count: u64,
    /// The nanoseconds between start and stop in which the thread ran.
    enabled: u64,
    /// The nanoseconds of `enabled` in which the event was counted.
    running: u64,
}

impl Reading {
    /// The share of the time in which the event was counted. `None` if it never was.
    fn share(self) -> Option<f64> {
        (self.running > 0).then(|| self.running as f64 / self.enabled.max(self.running) as f64)
    }
}

/// Events of the calling thread that are counted together.
trait Group {
    /// Counts from now on.
    fn start(&mut self) -> io::Result<()>;
    /// Counts no longer.
    fn stop(&mut self) -> io::Result<()>;
    /// The readings, in the order of the events.
    fn read(&mut self) -> io::Result<Vec<Reading>>;
}

/// A system with counters: the real one, or one that a test makes up.
trait Source: fmt::Debug + Send + Sync {
    /// The system's name of the event that stands for an [`Event`], if there is one.
    fn used(&self, event: Event) -> Option<String>;
    /// Opens a group for the calling thread, stopped.
    fn open(&self, events: &[Event]) -> io::Result<Box<dyn Group>>;
    /// The value of `kernel.perf_event_paranoid`, if it can be read.
    fn paranoid(&self) -> Option<i64>;
}

/// The counters that are available.
#[derive(Debug)]
pub struct Counters {
    source: Box<dyn Source>,
    groups: Vec<Vec<Event>>,
    /// The events that were not available from the start.
    refused: Refused,
    /// The events that were not available in some run.
    missed: Mutex<Refused>,
}

impl Counters {
    /// The counters of this system. Reports unavailable events on standard error.
    pub fn of_this_system() -> Self {
        #[cfg(target_os = "linux")]
        let counters = Self::of(perf::System::new());
        #[cfg(not(target_os = "linux"))]
        let counters = Self::of(NoSystem);
        if let Some(sentence) = counters.refused.sentence() {
            progress::note(&format!("--counters: {sentence}"));
        }
        counters
    }

    fn of(source: impl Source + 'static) -> Self {
        let mut counters = Self {
            source: Box::new(source),
            groups: Vec::new(),
            refused: Refused::default(),
            missed: Mutex::default(),
        };
        for hardware in [true, false] {
            let events = Event::ALL.into_iter().filter(|event| event.is_hardware() == hardware);
            for group in counters.fill(events) {
                if counters.runs(&group) {
                    counters.groups.push(group);
                } else {
                    counters.groups.extend(group.into_iter().map(|event| vec![event]));
                }
            }
        }
        counters
    }

    /// Groups of the available events, each as large as the system accepts.
    fn fill(&mut self, events: impl Iterator<Item = Event>) -> Vec<Vec<Event>> {
        let mut groups: Vec<Vec<Event>> = Vec::new();
        for event in events {
            if self.source.used(event).is_none() {
                self.refused.add(event, Cause::NoEvent);
                continue;
            }
            if let Err(error) = self.source.open(&[event]) {
                self.refused.add(event, Cause::of(&error, event, &*self.source));
                continue;
            }
            let larger = groups.last().map(|group| [&group[..], &[event]].concat());
            match larger.filter(|events| self.source.open(events).is_ok()) {
                Some(larger) => *groups.last_mut().expect("it was made larger") = larger,
                None => groups.push(vec![event]),
            }
        }
        groups
    }

    /// Whether a group runs when it has the counters to itself.
    fn runs(&self, events: &[Event]) -> bool {
        /// A time longer than the turns of other programs' groups.
        const PATIENCE: Duration = Duration::from_millis(20);
        let Ok(mut group) = self.source.open(events) else { return false };
        let begin = Instant::now();
        if group.start().is_err() {
            return false;
        }
        loop {
            let ran = |readings: Vec<Reading>| readings.iter().all(|reading| reading.running > 0);
            match group.read().map(ran) {
                Ok(true) => return true,
                Ok(false) if begin.elapsed() < PATIENCE => {}
                _ => return false,
            }
        }
    }

    /// Opens the available groups for the calling thread.
    pub fn open(&self) -> Open<'_> {
        let mut groups = Vec::with_capacity(self.groups.len());
        for events in &self.groups {
            match self.source.open(events) {
                Ok(group) => groups.push((&events[..], group)),
                Err(error) => self.miss(events, &error),
            }
        }
        Open { counters: self, groups }
    }

    fn miss(&self, events: &[Event], error: &io::Error) {
        for &event in events {
            self.missed.lock().add(event, Cause::of(error, event, &*self.source));
        }
    }

    /// The part of a result about counters. Reports events that only some runs lacked on standard
    /// error.
    pub fn tell(&self) -> Counted {
        let missed =
            self.missed.lock().sentence().map(|sentence| format!("in some runs {sentence}"));
        if let Some(sentence) = &missed {
            progress::note(&format!("--counters: {sentence}"));
        }
        let refused: Vec<String> =
            [self.refused.sentence(), missed].into_iter().flatten().collect();
        let events = self.groups.iter().flatten();
        let used = events.filter_map(|&event| Some((event.name(), self.source.used(event)?)));
        Counted {
            counters: Some(used.collect()),
            counters_refused: (!refused.is_empty()).then(|| refused.join("; ")),
        }
    }
}

/// The part of a result about its counters. The default says that none were requested.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    /// The system's name of each counted event; null without `--counters`.
    #[serde(deserialize_with = "names::keys")]
    pub counters: Option<BTreeMap<&'static str, String>>,
    /// The events that were not counted, in all runs or in some, with the reason and the remedy.
    pub counters_refused: Option<String>,
}

/// A thread's counters, open.
pub struct Open<'c> {
    counters: &'c Counters,
    groups: Vec<(&'c [Event], Box<dyn Group>)>,
}

impl Open<'_> {
    /// Counts from now on.
    pub fn start(&mut self) {
        self.groups.retain_mut(|(events, group)| match group.start() {
            Ok(()) => true,
            Err(error) => {
                self.counters.miss(events, &error);
                false
            }
        });
    }

    /// Stops counting and returns the counts since the start.
    pub fn stop(mut self) -> Counts {
        // All groups are stopped before any is read, because reading takes longer.
        let stopped: Vec<io::Result<()>> =
            self.groups.iter_mut().map(|(_, group)| group.stop()).collect();
        let mut counts = Counts::default();
        for ((events, mut group), stopped) in self.groups.into_iter().zip(stopped) {
            let readings = match stopped.and_then(|()| group.read()) {
                Ok(readings) => readings,
                Err(error) => {
                    self.counters.miss(events, &error);
                    continue;
                }
            };
            for (&event, reading) in events.iter().zip(readings) {
                match reading.share() {
                    Some(share) => counts.set(event, Count::of(reading, share)),
                    None => self.counters.missed.lock().add(event, Cause::NeverRan),
                }
            }
        }
        counts
    }
}

/// The number of times that an event happened.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    events: f64,
    /// The least share of a thread's time in which the event was counted.
    share: f64,
}

impl Count {
    fn of(reading: Reading, share: f64) -> Self {
        Self { events: reading.count as f64 / share, share }
    }

    fn join(self, other: Self) -> Self {
        Self { events: self.events + other.events, share: self.share.min(other.share) }
    }
}

/// The number of times that each event happened in a run. The default knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts([Option<Count>; Event::ALL.len()]);

impl Counts {
    fn set(&mut self, event: Event, count: Count) {
        self.0[event as usize] = Some(count);
    }

    /// Adds the counts of another thread. Only events with counts in both keep one.
    pub fn join(mut self, other: Self) -> Self {
        for (this, other) in self.0.iter_mut().zip(other.0) {
            *this = this.zip(other).map(|(this, other)| this.join(other));
        }
        self
    }
}

/// Events per operation; null for events that were not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerOp {
    pub cycles: Option<f64>,
    pub instructions: Option<f64>,
    pub llc_misses: Option<f64>,
    pub dtlb_misses: Option<f64>,
    pub page_walks: Option<f64>,
    pub page_faults: Option<f64>,
    pub context_switches: Option<f64>,
    /// The least share of a thread's time in which one of the events was counted. Below 1, figures
    /// are scaled.
    pub time_counted: f64,
}

impl PerOp {
    /// The figures of runs, given with their operations. Each event's counts are summed over the
    /// runs that counted it and divided by the operations of these runs. `None` if nothing was
    /// counted.
    pub fn of(runs: impl Iterator<Item = (Counts, u64)>) -> Option<Self> {
        let mut sums = [None::<(Count, u64)>; Event::ALL.len()];
        for (counts, ops) in runs {
            for (sum, count) in sums.iter_mut().zip(counts.0) {
                let Some(count) = count else { continue };
                *sum = Some(match *sum {
                    Some((before, ops_before)) => (before.join(count), ops_before + ops),
                    None => (count, ops),
                });
            }
        }
        let shares = sums.iter().flatten().map(|(count, _)| count.share);
        let time_counted = shares.min_by(f64::total_cmp)?;
        let per_op = |event: Event| {
            let (count, ops) = sums[event as usize].filter(|&(_, ops)| ops > 0)?;
            Some(count.events / ops as f64)
        };
        Some(Self {
            cycles: per_op(Event::Cycles),
            instructions: per_op(Event::Instructions),
            llc_misses: per_op(Event::LlcMisses),
            dtlb_misses: per_op(Event::DtlbMisses),
            page_walks: per_op(Event::PageWalks),
            page_faults: per_op(Event::PageFaults),
            context_switches: per_op(Event::ContextSwitches),
            time_counted,
        })
    }

    /// The events for which at least one of `of` has a figure.
    pub fn known<'a>(of: impl Iterator<Item = &'a Self>) -> Vec<Event> {
        let mut known: Vec<Event> = of
            .flat_map(|per_op| Event::ALL.into_iter().filter(|&event| per_op.get(event).is_some()))
            .collect();
        known.sort_unstable();
        known.dedup();
        known
    }

    /// The least share of the time in which one of `of` was counted, if figures are scaled.
    pub fn scaled<'a>(of: impl Iterator<Item = &'a Self>) -> Option<f64> {
        let least = of.map(|per_op| per_op.time_counted).min_by(f64::total_cmp)?;
        (least < 0.999).then_some(least)
    }

    /// The figure of an event.
    pub fn get(&self, event: Event) -> Option<f64> {
        match event {
            Event::Cycles => self.cycles,
            Event::Instructions => self.instructions,
            Event::LlcMisses => self.llc_misses,
            Event::DtlbMisses => self.dtlb_misses,
            Event::PageWalks => self.page_walks,
            Event::PageFaults => self.page_faults,
            Event::ContextSwitches => self.context_switches,
        }
    }
}

/// A system whose counters cannot be read.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct NoSystem;

#[cfg(not(target_os = "linux"))]
impl Source for NoSystem {
    fn used(&self, event: Event) -> Option<String> {
        Some(event.name().into())
    }

    fn open(&self, _: &[Event]) -> io::Result<Box<dyn Group>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn paranoid(&self) -> Option<i64> {
        None
    }
}
