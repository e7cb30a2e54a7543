//! A contender under measurement: threads, clocks, and the checks of its answers.
//!
//! # Definitions
//! * A *load* inserts the keys that are present at the start, from one thread or from several.
//! * A *run* is one measurement: threads start together, work until a flag is raised, and each
//!   takes its own time. Throughput is the operations of all threads over the time from the first
//!   thread's start to the last one's end.
//! * A *ledger* is what must be in the index: how many keys, and the sum of their weights.
//!
//! # Checks
//! 1. Every insert of a load must find its key absent.
//! 2. The value of every hit must be the value that follows from the key.
//! 3. One scan of sixteen is checked entry by entry: from the asked key on, strictly ascending,
//!    right values, no more entries than asked for.
//! 4. The key-sum rule, at the end: a lookup of every key of the key space, and a scan of
//!    everything where there are scans, find as many keys as the ledger says, with the same sum.

use super::check;
use super::run::{Failure, Ledger, Left, RunSpec, Tally};
use super::timed::{self, Times};
use super::worker::{Driven, End, Loops};
use crate::contender::Contender;
use crate::drive::keys::BenchKey;
use crate::host::counters::{Counters, Counts, Open};
use crate::interrupt;
use core_affinity::CoreId;
use silvics::{Adaptation, AllocError, PoolStats};
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use silvics_workload::{Choice, Share, Stream, Window};
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The keys of one experiment; all contenders share them.
pub struct Traffic<K: BenchKey + ?Sized> {
    /// The key space, which maps positions to keys.
    pub space: K::Space,
    /// The distribution, which chooses positions.
    pub choice: Choice,
}

/// Whether memory that a load retires may be reused before the load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    Yes,
    /// It may not, as in the ATC'18 study, whose trees never freed memory.
    No,
}

/// A change of an index, at a position of its key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Removes a key that is present.
    Remove(u32),
    /// Inserts a key that is absent.
    Insert(u32),
}

/// The outcome of a run or of a load.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The sum over all threads.
    pub tally: Tally,
    /// The time from the first thread's start to the last thread's end.
    pub seconds: f64,
    /// The mean processor time of the threads. `None` if the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// The processor time of the threads over their wall time. It is below 1 if threads waited or
    /// if other programs took the cores.
    pub cpu_share: Option<f64>,
    /// The events that were counted, if counting was requested.
    pub counts: Option<Counts>,
    /// The window of `latest` at the end.
    pub window: Window,
}

impl Outcome {
    /// Million operations per second.
    pub fn mops(&self) -> f64 {
        self.tally.ops as f64 / self.seconds / 1e6
    }

    /// Nanoseconds of a thread per operation.
    pub fn ns(&self, threads: usize) -> f64 {
        1e9 * self.seconds * threads as f64 / self.tally.ops as f64
    }

    /// Million operations per second of processor time. On a busy machine this figure is closer to
    /// the throughput of an idle machine, but time spent waiting for a lock does not count.
    pub fn cpu_mops(&self) -> Option<f64> {
        let seconds = self.cpu_seconds.filter(|&seconds| seconds > 0.0)?;
        Some(self.tally.ops as f64 / seconds / 1e6)
    }
}

/// The counts of each run that counted events, with the number of its operations.
pub fn counted(outcomes: &[Outcome]) -> impl Iterator<Item = (Counts, u64)> {
    outcomes.iter().filter_map(|outcome| Some((outcome.counts?, outcome.tally.ops)))
}

/// The cores that threads are pinned to: thread t to core t, round and round.
#[derive(Clone, Debug)]
pub struct Crew {
    cores: Vec<CoreId>,
    /// Threads that check.
    pub threads: usize,
    /// Threads that load.
    pub loaders: usize,
    /// The most threads of a run.
    pub runners: usize,
    /// The counters that are read around each run.
    pub counters: Option<Arc<Counters>>,
}

impl Crew {
    /// A crew on all cores that this process may use, with one thread per core for loads and
    /// checks.
    pub fn new() -> Self {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let threads = match cores.len() {
            0 => thread::available_parallelism().map_or(1, usize::from),
            cores => cores,
        };
        Self { cores, threads, loaders: threads, runners: threads, counters: None }
    }

    /// Loads with this number of threads.
    #[must_use]
    pub fn loading(self, loaders: usize) -> Self {
        Self { loaders, ..self }
    }

    /// Makes runs of up to this number of threads.
    #[must_use]
    pub fn running(self, runners: usize) -> Self {
        Self { runners, ..self }
    }

    /// Counts events during runs if `wanted`.
    pub fn counting(self, wanted: bool) -> Self {
        let counters = wanted.then(|| Arc::new(Counters::of_this_system()));
        Self { counters, ..self }
    }

    /// Runs `work` on pinned threads, and `meanwhile` on the calling thread. If the system does not
    /// start all threads, those that it has started do nothing.
    pub fn work<T: Send>(
        &self,
        threads: usize,
        work: impl Fn(Share) -> T + Sync,
        meanwhile: impl FnOnce(),
    ) -> Result<Vec<T>, Failure> {
        let all_started = OnceLock::<bool>::new();
        thread::scope(|scope| {
            let start = |thread| {
                let (work, all_started) = (&work, &all_started);
                thread::Builder::new().spawn_scoped(scope, move || {
                    if !*all_started.wait() {
                        return None;
                    }
                    if !self.cores.is_empty() {
                        core_affinity::set_for_current(self.cores[thread % self.cores.len()]);
                    }
                    Some(work(Share { thread, threads }))
                })
            };
            let mut handles = Vec::new();
            for thread in 0..threads {
                match start(thread) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        let _ = all_started.set(false); // it is set once
                        return Err(Failure::Threads { started: thread, asked: threads, error });
                    }
                }
            }
            let _ = all_started.set(true); // it is set once
            meanwhile();
            let joined: Vec<Result<Option<T>, Box<dyn Any + Send>>> =
                handles.into_iter().map(ScopedJoinHandle::join).collect();
            let done = |result: Result<Option<T>, _>| result.ok().flatten();
            joined.into_iter().map(|result| done(result).ok_or(Failure::Panicked)).collect()
        })
    }

    /// Runs `work` on threads that start together. Each thread gets the gate, with the flag that
    /// ends the run. The calling thread calls `meanwhile`.
    fn timed(
        &self,
        threads: usize,
        work: &(dyn Fn(Share, &Gate) -> Result<Lap, Failure> + Sync),
        meanwhile: &mut dyn FnMut(&Gate),
    ) -> Result<Outcome, Failure> {
        let gate = Gate::new(threads);
        let laps = self.work(
            threads,
            |share| work(share, &gate),
            || {
                gate.open();
                meanwhile(&gate);
            },
        )?;
        let laps: Vec<Lap> = laps.into_iter().collect::<Result<_, _>>()?;
        Ok(Outcome::of(&laps))
    }
}

impl Default for Crew {
    fn default() -> Self {
        Self::new()
    }
}

/// The time between two looks at the flag of Ctrl-C.
const GLANCE: Duration = Duration::from_millis(20);

/// The work of the calling thread while a run goes on.
pub struct Watch<'a> {
    /// The time between two calls.
    pub every: Duration,
    /// Called again and again. It takes a part of a core's time from the threads of the run.
    pub look: &'a mut dyn FnMut(),
}

/// A gate at which threads wait for one another, with the flag that ends their run.
struct Gate {
    awaited: AtomicUsize,
    stop: AtomicBool,
}

impl Gate {
    fn new(threads: usize) -> Self {
        Self { awaited: AtomicUsize::new(threads + 1), stop: AtomicBool::new(false) }
    }

    /// Waits until all threads have arrived.
    fn pass(&self) {
        self.awaited.fetch_sub(1, Ordering::AcqRel);
        let mut turns = 0_u32;
        while self.awaited.load(Ordering::Acquire) > 0 {
            turns += 1;
            if turns < 1000 {
                silvics_sync::hint::spin_loop();
            } else {
                thread::yield_now(); // more threads than cores
            }
        }
    }

    /// Lets the waiting threads pass when the last one has arrived.
    fn open(&self) {
        // The calling thread opens the gate last, so that the workers see it open first.
        while self.awaited.load(Ordering::Acquire) > 1 {
            thread::yield_now();
        }
        self.awaited.store(0, Ordering::Release);
    }

    /// Closes the gate after this time. Until then, calls `look` at the start, and then each time
    /// that `every` is over.
    fn close_after(&self, time: Duration, Watch { every, look }: &mut Watch<'_>) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // Relaxed, here and in the workers: the flag publishes no other data.
            if left.is_zero() || interrupt::pending() || self.stop.load(Ordering::Relaxed) {
                break;
            }
            look();
            thread::sleep(left.min(*every));
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// One thread's part of a run.
struct Lap {
    tally: Tally,
    start: Instant,
    end: Instant,
    cpu: Option<Duration>,
    counts: Option<Counts>,
    window: Window,
}

impl Outcome {
    fn of(laps: &[Lap]) -> Self {
        let mut tally = Tally::default();
        for lap in laps {
            tally.add(&lap.tally);
        }
        let start = laps.iter().map(|lap| lap.start).min();
        let end = laps.iter().map(|lap| lap.end).max();
        let wall: f64 = laps.iter().map(|lap| (lap.end - lap.start).as_secs_f64()).sum();
        let cpu: Option<Duration> = laps.iter().map(|lap| lap.cpu).sum();
        let counts: Option<Vec<Counts>> = laps.iter().map(|lap| lap.counts).collect();
        let window = laps.iter().map(|lap| lap.window).reduce(Window::join);
        let (Some(start), Some(end), Some(window)) = (start, end, window) else {
            unreachable!("there is at least one thread");
        };
        Self {
            tally,
            // A load of a handful of keys takes less than the clock can tell.
            seconds: (end - start).as_secs_f64().max(1e-9),
            cpu_seconds: cpu.map(|cpu| cpu.as_secs_f64() / laps.len() as f64),
            cpu_share: cpu.map(|cpu| (cpu.as_secs_f64() / wall.max(1e-9)).min(1.0)),
            counts: counts.and_then(|counts| counts.into_iter().reduce(Counts::join)),
            window,
        }
    }
}

/// The processor time of the calling thread.
fn thread_cpu_time() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a timespec of ours.
        let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Times `work` on the calling thread from the moment when all threads have arrived, and counts its
/// events.
fn lap(
    gate: &Gate,
    counters: Option<&Counters>,
    work: &mut dyn FnMut() -> Result<(Tally, Window), Failure>,
) -> Result<Lap, Failure> {
    let mut counted = counters.map(Counters::open);
    gate.pass();
    if let Some(counted) = &mut counted {
        counted.start();
    }
    let (start, cpu_before) = (Instant::now(), thread_cpu_time());
    let result = work();
    let (end, cpu_after) = (Instant::now(), thread_cpu_time());
    let counts = counted.map(Open::stop);
    let (tally, window) = result.inspect_err(|_| gate.stop.store(true, Ordering::Relaxed))?;
    Ok(Lap {
        tally,
        start,
        end,
        cpu: cpu_before.zip(cpu_after).map(|(before, after)| after.saturating_sub(before)),
        counts,
        window,
    })
}

/// A contender under measurement. Only the measured loops ([`Loops`]) are compiled for each
/// contender; all contenders share the code that starts threads and checks answers.
pub struct Subject<K: BenchKey + ?Sized>(Box<dyn Loops<K>>);

impl<K: BenchKey + ?Sized> Subject<K> {
    /// Wraps a contender.
    pub fn of(contender: impl Contender<Key = K>) -> Self {
        Self(Box::new(Driven(contender)))
    }

    /// Loads the keys that are present at the start. It must be called once.
    pub fn load(
        &mut self,
        traffic: &Traffic<K>,
        reuse: Reuse,
        crew: &Crew,
    ) -> Result<Outcome, Failure> {
        let held = (reuse == Reuse::No).then(|| self.0.hold());
        let done = AtomicUsize::new(0);
        let work = |share, gate: &Gate| {
            lap(gate, None, &mut || {
                let part = traffic.choice.load_part(share);
                let (tally, result) = self.0.load(&traffic.space, part, &gate.stop);
                done.fetch_add(tally.inserted as usize, Ordering::Relaxed);
                result.map(|()| (tally, traffic.choice.start()))
            })
        };
        let result = crew.timed(crew.loaders, &work, &mut |_| ());
        drop(held);
        let divided = self.0.loaded(crew.runners);
        let divided = divided.map_err(|error| Failure::Alloc { error, done: 0 });
        // The failure comes from one thread; the error counts the inserts of all threads.
        result.and_then(|outcome| divided.map(|()| outcome)).map_err(|failure| match failure {
            Failure::Alloc { error, .. } => {
                Failure::Alloc { error, done: done.load(Ordering::Relaxed) }
            }
            other => other,
        })
    }

    /// Loads the keys on the calling thread alone, and calls `between` after each insert.
    pub fn load_between(
        &mut self,
        traffic: &Traffic<K>,
        reuse: Reuse,
        mut between: impl FnMut() -> Result<(), AllocError>,
    ) -> Result<(), AllocError> {
        let held = (reuse == Reuse::No).then(|| self.0.hold());
        let (space, mut calls) = (&traffic.space, self.0.calls());
        for position in traffic.choice.load_part(Share::ALONE) {
            calls.insert(K::key(space, position), K::value(space, position))?;
            between()?;
            calls.refresh();
        }
        drop(calls);
        drop(held);
        self.0.loaded(1)
    }

    /// Makes changes on the calling thread alone.
    pub fn change(
        &self,
        space: &K::Space,
        changes: impl Iterator<Item = Change>,
    ) -> Result<(), AllocError> {
        let mut calls = self.0.calls();
        for change in changes {
            match change {
                Change::Remove(position) => calls.remove(K::key(space, position))?,
                Change::Insert(position) => {
                    calls.insert(K::key(space, position), K::value(space, position))?
                }
            };
            calls.refresh();
        }
        Ok(())
    }

    /// Runs the operations of a mix for the given time, or until the index has grown as far as the
    /// run may let it.
    pub fn run(
        &self,
        traffic: &Traffic<K>,
        spec: &RunSpec,
        crew: &Crew,
    ) -> Result<Outcome, Failure> {
        self.run_watched(traffic, spec, crew, Watch { every: GLANCE, look: &mut || () })
    }

    /// Runs operations as [`Subject::run`] does, and looks at the run meanwhile.
    pub fn run_watched(
        &self,
        traffic: &Traffic<K>,
        spec: &RunSpec,
        crew: &Crew,
        watch: Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let part =
            |stream: &mut Stream<'_>, end: End<'_>| self.0.run(&traffic.space, stream, spec, end);
        Self::run_parts(traffic, spec, crew, watch, crew.counters.as_deref(), &part)
    }

    /// Runs operations as [`Subject::run`] does, and times each call.
    pub fn run_timed(
        &self,
        traffic: &Traffic<K>,
        spec: &RunSpec,
        crew: &Crew,
    ) -> Result<(Outcome, Times), Failure> {
        let all = Mutex::new(Times::default());
        let part = |stream: &mut Stream<'_>, end: End<'_>| {
            let (tally, times) = timed::run(self.0.calls(), &traffic.space, stream, spec, end)?;
            all.lock().unwrap_or_else(PoisonError::into_inner).add(times);
            Ok(tally)
        };
        let watch = Watch { every: GLANCE, look: &mut || () };
        let outcome = Self::run_parts(traffic, spec, crew, watch, None, &part)?;
        Ok((outcome, all.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Runs `part` on each thread, with the operations of the thread.
    fn run_parts(
        traffic: &Traffic<K>,
        spec: &RunSpec,
        crew: &Crew,
        mut watch: Watch<'_>,
        counters: Option<&Counters>,
        part: &(dyn Fn(&mut Stream<'_>, End<'_>) -> Result<Tally, Failure> + Sync),
    ) -> Result<Outcome, Failure> {
        let left = spec.limit.map(|limit| Left::of(limit, spec.threads));
        let work = |share, gate: &Gate| {
            let mut stream = traffic.choice.stream(spec.mix, spec.number, share, spec.window);
            let end = End { stop: &gate.stop, left: left.as_ref(), share };
            lap(gate, counters, &mut || {
                let tally = part(&mut stream, end)?;
                Ok((tally, stream.window()))
            })
        };
        let mut meanwhile = |gate: &Gate| gate.close_after(spec.time, &mut watch);
        let outcome = crew.timed(spec.threads, &work, &mut meanwhile)?;
        if interrupt::pending() {
            return Err(Failure::Interrupted);
        }
        Ok(outcome)
    }

    /// Checks the content against the ledger. No thread may write meanwhile. `scans` says whether
    /// the contender can scan.
    pub fn verify(
        &self,
        traffic: &Traffic<K>,
        ledger: Ledger,
        scans: bool,
        crew: &Crew,
    ) -> Result<(), Failure> {
        let look_up = |share| check::look_up_all(&mut *self.0.calls(), &traffic.space, share);
        let (mut looked_up, mut least) = (Ledger::default(), None);
        for part in crew.work(crew.threads, look_up, || {})? {
            let (tally, found) = part?;
            looked_up.book(&tally);
            least = least.into_iter().chain(found).min();
        }
        compare(ledger, looked_up, "lookups of every key")?;
        if scans {
            // Scans begin at the least key present, because some peers search long for a key before
            // it.
            let from = least.unwrap_or_else(|| K::to_owned(K::shorten(K::LEAST)));
            let scan = |_| check::scan_all(&mut *self.0.calls(), from.clone());
            for tally in crew.work(1, scan, || {})? {
                let mut scanned = Ledger::default();
                scanned.book(&tally?);
                compare(ledger, scanned, "a scan of everything")?;
            }
        }
        Ok(())
    }

    /// See [`Contender::bytes`].
    pub fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }

    /// See [`Contender::pooled_bytes`].
    pub fn pooled_bytes(&self) -> usize {
        self.0.pooled_bytes()
    }

    /// See [`Contender::pool_stats`].
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }

    /// See [`Contender::adaptation`].
    pub fn adaptation(&self) -> Option<Adaptation> {
        self.0.adaptation()
    }
}

fn compare(ledger: Ledger, found: Ledger, how: &str) -> Result<(), Failure> {
    if ledger == found {
        return Ok(());
    }
    Err(Failure::Wrong(format!(
        "{} keys with the sum {:#x} must be present, but {how} found {} with the sum {:#x}",
        ledger.keys, ledger.weight, found.keys, found.weight
    )))
}
