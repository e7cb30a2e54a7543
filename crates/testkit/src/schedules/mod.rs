//! Explores small scenarios on whole structures in many schedules: `--cfg silvics_shuttle`.
//!
//! A [`Scenario`] consists of a few initial calls, and a few tasks with a few calls each.
//! [`explore`] plays it once per schedule. Every atomic operation of the structure is a scheduling
//! point (`silvics_sync::model`), nodes are in the [`Model`] placement, and the collector frees as
//! early as it may. Each schedule must end with
//!
//! * a linearizable history;
//! * a structure whose `check` passes and whose `len` is right, whose live objects of each kind are
//!   the reachable ones, and which frees every object it allocated once when it is dropped;
//! * no access to freed memory, and no freed memory written.
//!
//! Each schedule also chooses whether a task pins once or per call.
//!
//! The schedulers are shuttle's random walk and PCT (Burckhardt et al., ASPLOS 2010). PCT runs the
//! task of the highest priority and changes priorities at few places. So it finds mistakes that
//! need a long delay at one particular place.
//!
//! | setting | effect |
//! |---|---|
//! | `SILVICS_SCHEDULES` | the number of schedules per scenario and scheduler |
//! | `SILVICS_SEED` | selects other schedules |
//! | `SILVICS_SCHEDULE_FILE` | a folder to which the schedule of a failure is written, instead of being printed |
//! | `SILVICS_REPLAY` | a file with such a schedule, which is replayed instead of all others |
//! | `SILVICS_SCENARIO` | the only scenario that replays it, as the failure names it: `structure/scenario`, or `structure/scenario/place` for [`stops`] |

mod placement;
mod progress;
mod scenario;

pub use crate::linearizable::ordered::EndVerb;
pub use placement::Model;
pub use progress::{Stops, hunt_stop, stops};
pub use scenario::{Act, Log, Scenario, Step, atomic, ends, first_bytes, points, scans, updates};

use crate::{Subject, size};
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use silvics::{Create, Guard, Options};
use silvics_sync::{model, thread};
use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Once;

/// More steps than any terminating schedule of a scenario takes.
const MAX_STEPS: usize = 50_000;

/// One plus the number of priority changes, for each run of PCT. Most mistakes need two or three
/// changes.
const DEPTHS: [usize; 3] = [2, 3, 5];

std::thread_local! {
    /// The number of schedules begun on this operating system thread.
    static PLAYED: Cell<usize> = const { Cell::new(0) };
}

fn config(persistence: FailurePersistence) -> Config {
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.failure_persistence = persistence;
    config
}

/// How the schedules of failures are kept.
fn persistence() -> FailurePersistence {
    match std::env::var_os("SILVICS_SCHEDULE_FILE") {
        Some(folder) => {
            std::fs::create_dir_all(&folder).expect("SILVICS_SCHEDULE_FILE: a folder to write to");
            FailurePersistence::File(Some(folder.into()))
        }
        None => FailurePersistence::Print,
    }
}

/// Sets how the schedules of failures are kept from now on.
///
/// Shuttle's panic hook runs before an execution's own configuration applies, and uses that of the
/// first execution of a process. So that execution must not be one whose failure is expected and
/// not kept.
fn keep_failures(persistence: FailurePersistence) {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        Runner::new(RandomScheduler::new_from_seed(0, 1), config(persistence)).run(|| ());
    });
}

/// The schedule to replay and its scenario, if the environment names one.
fn replaying() -> Option<(PathBuf, String)> {
    let file = std::env::var_os("SILVICS_REPLAY")?;
    let name = std::env::var("SILVICS_SCENARIO");
    Some((
        file.into(),
        name.expect("SILVICS_REPLAY needs SILVICS_SCENARIO: the failure says which"),
    ))
}

/// Prints how to replay a failure, whose schedule shuttle has printed or written.
fn say_how_to_replay(name: &str) {
    report(&format!(
        "failed: replay its schedule with SILVICS_REPLAY=file SILVICS_SCENARIO={name}"
    ));
}

/// Prints a line for a collecting script, bypassing the test harness's capture.
pub fn report(line: &str) {
    // A closed pipe must not fail the test.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A program for structures that have other operations than an index: what its tasks share, their
/// calls, and what must hold then. It is played once for each schedule.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name.
    pub name: &'static str,
    /// Plays it. Tasks are threads of `silvics_sync::thread`. Objects are in the [`Model`]
    /// placement, and all of them are freed at the end.
    pub play: fn(),
}

impl Program {
    /// Plays one schedule.
    fn play(self) {
        reset();
        (self.play)();
        model::sequential(nothing_is_left);
    }
}

/// A task of a program, with what all tasks share.
pub type Task<T> = Box<dyn FnOnce(&T) + Send>;

/// Runs the tasks of a program beside one another, and returns what they shared.
///
/// # Panics
/// Panics if a task does, which ends the schedule.
pub fn beside_one_another<T: Send + Sync + 'static>(shared: T, tasks: Vec<Task<T>>) -> T {
    let shared = Arc::new(shared);
    let begin = |task: Task<T>| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || task(&shared))
    };
    let tasks: Vec<_> = tasks.into_iter().map(begin).collect();
    for task in tasks {
        task.join().expect("a task's panic ends the schedule");
    }
    Arc::into_inner(shared).expect("the tasks are done")
}

/// Plays `scenario` in `SILVICS_SCHEDULES` schedules, or the given number, of each scheduler.
///
/// # Panics
/// Panics if a schedule fails, with the reason and how to replay it.
pub fn explore<I: Create + Subject>(
    structure: &str,
    scenario: &'static Scenario,
    act: Act<I>,
    schedules: usize,
) {
    explore_play(structure, scenario.name, schedules, move || play(scenario, act));
}

/// Plays a program like [`explore`].
///
/// # Panics
/// Panics if a schedule fails, with the reason and how to replay it.
pub fn explore_program(structure: &str, program: Program, schedules: usize) {
    explore_play(structure, program.name, schedules, move || program.play());
}

fn explore_play(
    structure: &str,
    scenario: &'static str,
    schedules: usize,
    play: impl Fn() + Copy + Send + Sync + 'static,
) {
    let name = format!("{structure}/{scenario}");
    if let Some((file, wanted)) = replaying() {
        if wanted == name {
            report(&format!("replaying {name}"));
            replay_play(play, &file);
        }
        return;
    }
    keep_failures(persistence());
    let schedules = size::schedules().unwrap_or(schedules);
    let config = config(persistence());
    let mut counts = [0; 2];
    for (kind, scheduler) in schedulers(schedules) {
        let runner = Runner::new(scheduler, config.clone());
        let outcome = catch_unwind(AssertUnwindSafe(|| runner.run(play)));
        counts[kind] += outcome.unwrap_or_else(|payload| {
            say_how_to_replay(&name);
            resume_unwind(payload)
        });
    }
    let [random, pct] = counts;
    report(&format!("schedules {structure} {scenario} random {random} pct {pct}"));
}

/// Replays one schedule of `scenario` from the file that a failure has written.
///
/// # Panics
/// Panics if the file contains no schedule, and if the schedule panics.
pub fn replay<I: Create + Subject>(scenario: &'static Scenario, act: Act<I>, file: &Path) {
    replay_play(move || play(scenario, act), file);
}

fn replay_play(play: impl Fn() + Send + Sync + 'static, file: &Path) {
    let replay = ReplayScheduler::new_from_file(file).expect("a file with a schedule");
    Runner::new(replay, config(FailurePersistence::None)).run(play);
}

/// The first schedule that fails, among `schedules` of each scheduler and scenario.
#[derive(Debug)]
pub struct Found {
    /// The number of schedules played, this one included.
    pub schedules: usize,
    /// The name of the scenario.
    pub scenario: &'static str,
    /// The reason of the failure.
    pub reason: String,
}

/// Looks for a schedule that fails, among `schedules` of each scheduler and scenario, in turns. If
/// `folder` is given, the schedule is written there; all calls of a process must pass an equal
/// `folder`.
pub fn hunt<I: Create + Subject>(
    scenarios: &[&'static [Scenario]],
    act: Act<I>,
    schedules: usize,
    folder: Option<&Path>,
) -> Option<Found> {
    let scenarios = scenarios.iter().copied().flatten();
    let plays: Vec<_> =
        scenarios.map(|scenario| (scenario.name, move || play(scenario, act))).collect();
    hunt_play(&plays, schedules, folder)
}

/// Looks for a schedule of one of the programs that fails, like [`hunt`].
pub fn hunt_programs(programs: &[Program], schedules: usize) -> Option<Found> {
    let plays: Vec<_> =
        programs.iter().map(|&program| (program.name, move || program.play())).collect();
    hunt_play(&plays, schedules, None)
}

fn hunt_play(
    plays: &[(&'static str, impl Fn() + Copy + Send + Sync + 'static)],
    schedules: usize,
    folder: Option<&Path>,
) -> Option<Found> {
    let persistence = folder.map_or(FailurePersistence::None, |folder| {
        FailurePersistence::File(Some(folder.to_owned()))
    });
    keep_failures(persistence.clone());
    let before = PLAYED.get();
    let mut round = 60;
    let mut done = 0;
    // Rounds grow, so that no scenario waits for all schedules of another.
    while done < schedules {
        for (scenario, play) in plays {
            for (_, scheduler) in seeded(size::seed().wrapping_add(done as u64), round) {
                let runner = Runner::new(scheduler, config(persistence.clone()));
                let outcome = catch_unwind(AssertUnwindSafe(|| runner.run(*play)));
                if let Err(payload) = outcome {
                    let (schedules, reason) = (PLAYED.get() - before, message(&*payload));
                    return Some(Found { schedules, scenario, reason });
                }
            }
        }
        done += round;
        round *= 2;
    }
    None
}

fn message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without words".to_owned())
}

/// The schedulers of a run: number 0 is random, number 1 is PCT.
fn schedulers(schedules: usize) -> Vec<(usize, Box<dyn Scheduler + Send>)> {
    seeded(size::seed(), schedules)
}

fn seeded(seed: u64, schedules: usize) -> Vec<(usize, Box<dyn Scheduler + Send>)> {
    let mut all: Vec<(usize, Box<dyn Scheduler + Send>)> =
        vec![(0, Box::new(RandomScheduler::new_from_seed(seed, schedules)))];
    for (at, depth) in DEPTHS.into_iter().enumerate() {
        let share = schedules / DEPTHS.len() + usize::from(at < schedules % DEPTHS.len());
        if share > 0 {
            // If the schedule chooses the program, each scheduler plays other programs.
            let seed = seed ^ (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            all.push((1, Box::new(PctScheduler::new_from_seed(seed, depth, share))));
        }
    }
    all
}

/// How a task pins, as the schedule chooses.
#[derive(Clone, Copy)]
enum Pins {
    PerCall,
    Once,
    Repin,
}

impl Pins {
    fn choose() -> Self {
        match model::below(3) {
            0 => Self::PerCall,
            1 => Self::Once,
            _ => Self::Repin,
        }
    }
}

/// Makes a task's calls.
fn run_task<I: Create + Subject>(index: &Arc<I>, log: &mut Log, steps: &[Step], act: Act<I>) {
    let pins = Pins::choose();
    let mut guard: Option<Guard> = None;
    for &step in steps {
        if let Pins::PerCall = pins {
            guard = None;
        }
        let mut pinned = guard.take().unwrap_or_else(|| index.domain().pin());
        if let Pins::Repin = pins {
            pinned.repin();
        }
        act(index, log, step, &pinned);
        guard = Some(pinned);
    }
}

/// Forgets what an earlier schedule has left.
fn reset() {
    PLAYED.set(PLAYED.get() + 1);
    model::stop::reset();
    placement::reset();
    scenario::reset();
}

/// Fails if an object is not freed, or was written afterwards.
fn nothing_is_left() {
    let left = placement::live();
    assert!(left.is_empty(), "leaked: {}", left.join(", "));
    let written = placement::written();
    assert!(written.is_empty(), "written after free: {}", written.join(", "));
}

/// Begins a schedule with a fresh index, on which it makes the calls of `before`.
fn begin<I: Create + Subject>(keys: u64, before: &[Step], act: Act<I>) -> (Arc<I>, Log) {
    reset();
    model::sequential(|| {
        let index = Arc::new(I::with_options(&Options::default()).expect("memory"));
        let mut log = Log::new(0, keys);
        run_task(&index, &mut log, before, act);
        (index, log)
    })
}

/// Ends a schedule whose tasks are done, and checks all that must hold then.
fn end<I: Create + Subject>(index: Arc<I>, mut log: Log, tasks: Vec<Log>, act: Act<I>) {
    model::sequential(|| {
        let keys = log.seen_keys();
        let mut present = 0;
        {
            let guard = index.domain().pin();
            for key in 0..keys {
                act(&index, &mut log, Step::Get(key), &guard);
                present += usize::from(log.last_found());
            }
        }
        if let Err(failure) = log.check(tasks) {
            panic!("{failure}");
        }
        let mut index = Arc::into_inner(index).expect("the tasks are done");
        match index.check() {
            Ok(entries) => assert_eq!(entries, present, "check counts other entries than lookups"),
            Err(violation) => panic!("check: {violation}"),
        }
        assert_eq!(index.len(), present, "len differs from what lookups find");
        index.settle();
        let live: Vec<_> = index.pool_stats().iter().map(|p| (p.kind, p.live_slots)).collect();
        let reached = index.reachable().expect("checked above");
        assert!(live == reached, "{live:?} objects are live, {reached:?} can be reached");
        drop(index);
        nothing_is_left();
    });
}

/// Plays one schedule of a scenario.
fn play<I: Create + Subject>(scenario: &'static Scenario, act: Act<I>) {
    let (index, log) = begin(scenario.keys, scenario.before, act);
    let tasks: Vec<_> = scenario
        .tasks
        .iter()
        .enumerate()
        .map(|(at, &steps)| {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let mut log = Log::new(at + 1, scenario.keys);
                run_task(&index, &mut log, steps, act);
                log
            })
        })
        .collect();
    let logs = tasks.into_iter().map(|task| task.join().expect("a task's panic ends the schedule"));
    let logs = logs.collect();
    end(index, log, logs, act);
}
