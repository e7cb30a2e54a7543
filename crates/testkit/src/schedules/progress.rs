//! Checks progress while one task stands still for good.

use super::{
    Act, Log, MAX_STEPS, Step, begin, config, end, keep_failures, message, persistence, replaying,
    report, run_task, say_how_to_replay,
};
use crate::{Subject, size};
use shuttle::scheduler::{RandomScheduler, ReplayScheduler};
use shuttle::{FailurePersistence, Runner};
use silvics::Create;
use silvics_sync::model::stop::{self, Stop};
use silvics_sync::thread;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// A scenario of a task that stops, and another that must finish.
#[derive(Debug)]
pub struct Stops {
    /// The name, in kebab case.
    pub name: &'static str,
    /// The bound of all keys: they are below it.
    pub keys: u64,
    /// The calls before the tasks start.
    pub before: &'static [Step],
    /// The call that stops in the middle.
    pub victim: Step,
    /// The calls that must all return meanwhile. If there are none, the victim runs alone.
    pub other: &'static [Step],
}

std::thread_local! {
    /// How far the victim has come in any schedule for this place.
    static STOP: Cell<Stop> = Cell::default();
}

/// The number of schedules per place: the other task may be at different steps when the victim
/// stops.
const SCHEDULES: usize = 20;

/// The most rounds of that many schedules until the victim has stood at the place while the other
/// ran.
const ROUNDS: u64 = 50;
/// The other task begins about this many steps before the stop.
const NEAR: u64 = 30;

/// The place at which the victim stopped when the other task could not finish, and its panic.
type Stuck = (u64, Box<dyn std::any::Any + Send>);

/// Stops the victim before its first scheduling point, its second, and so on until it has none
/// left: at each of them at least once while the other task still runs. Returns the number of
/// places, or `None` when a failure is replayed.
///
/// # Panics
/// Panics if the other task cannot finish, with the reason and how to replay it.
pub fn stops<I: Create + Subject>(
    structure: &str,
    stops: &'static Stops,
    act: Act<I>,
) -> Option<u64> {
    let whole = format!("{structure}/{}", stops.name);
    if let Some((file, name)) = replaying() {
        let place = name.strip_prefix(&whole).and_then(|place| place.strip_prefix('/'))?;
        let n: u64 = place.parse().expect("SILVICS_SCENARIO ends with the place to stop at");
        let replay = ReplayScheduler::new_from_file(file).expect("a file with a schedule");
        let runner = Runner::new(replay, config(FailurePersistence::None));
        report(&format!("replaying {whole}/{n}"));
        runner.run(move || play(stops, act, n));
        return None;
    }
    match each_place(stops, act, &persistence()) {
        Ok(places) => {
            report(&format!("progress {structure} {} stops {places}", stops.name));
            Some(places)
        }
        Err((n, payload)) => {
            say_how_to_replay(&format!("{whole}/{n}"));
            resume_unwind(payload)
        }
    }
}

/// Stops the victim at each place as [`stops`] does, for an index that may block the other task.
/// The error is the place at which it did, and the message of the panic.
pub fn hunt_stop<I: Create + Subject>(
    stops: &'static Stops,
    act: Act<I>,
) -> Result<u64, (u64, String)> {
    each_place(stops, act, &FailurePersistence::None).map_err(|(n, what)| (n, message(&*what)))
}

fn each_place<I: Create + Subject>(
    stops: &'static Stops,
    act: Act<I>,
    failures: &FailurePersistence,
) -> Result<u64, Stuck> {
    let schedules = size::schedules().map_or(SCHEDULES, |s| (s / 50).max(SCHEDULES));
    keep_failures(persistence());
    for n in 1.. {
        STOP.take();
        for round in 0..ROUNDS {
            let seed = size::seed().wrapping_add(n).wrapping_add(round << 32);
            let random = RandomScheduler::new_from_seed(seed, schedules);
            let runner = Runner::new(random, config(failures.clone()));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                runner.run(move || play(stops, act, n));
            }));
            if let Err(payload) = outcome {
                return Err((n, payload));
            }
            let Stop { came, stood } = STOP.get();
            if stood || !came || stops.other.is_empty() {
                break;
            }
        }
        let Stop { came, stood } = STOP.get();
        if !came {
            return Ok(n - 1);
        }
        assert!(
            stood || stops.other.is_empty(),
            "{}: nobody ran while the victim stood at {n}",
            stops.name
        );
        assert!((n as usize) < MAX_STEPS, "an operation of {n} steps");
    }
    unreachable!("the numbers do not end")
}

fn play<I: Create + Subject>(stops: &'static Stops, act: Act<I>, n: u64) {
    let (index, log) = begin(stops.keys, stops.before, act);
    let victim = {
        let index = Arc::clone(&index);
        thread::spawn(move || {
            let mut log = Log::new(1, stops.keys);
            stop::arm(n);
            run_task(&index, &mut log, &[stops.victim], act);
            let (stop, before) = (stop::disarm(), STOP.get());
            let (came, stood) = (stop.came || before.came, stop.stood || before.stood);
            STOP.set(Stop { came, stood });
            log
        })
    };
    let other = {
        let index = Arc::clone(&index);
        thread::spawn(move || {
            let mut log = Log::new(2, stops.keys);
            // A random scheduler lets both tasks make about as many steps. Without these yields,
            // this task would be finished when the victim comes to a late stop.
            (NEAR..n).for_each(|_| thread::yield_now());
            run_task(&index, &mut log, stops.other, act);
            log
        })
    };
    let other = other.join().expect("a task's panic ends the schedule");
    stop::release(victim.thread());
    let victim = victim.join().expect("a task's panic ends the schedule");
    end(index, log, vec![victim, other], act);
}
