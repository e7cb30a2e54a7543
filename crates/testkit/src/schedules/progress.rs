//! Progress while one task stands still for good.

use super::{
    Act, Log, MAX_STEPS, Step, begin, config, end, keep_failures, message, persistence, report,
    run_task,
};
use crate::{Subject, size};
use shuttle::scheduler::RandomScheduler;
use shuttle::{FailurePersistence, Runner};
use silvics_sync::model::stop;
use silvics_sync::thread;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A task that stops, and another that must finish.
#[derive(Debug)]
pub struct Stops {
    /// What it is about, in kebab case.
    pub name: &'static str,
    /// All keys in it are below this.
    pub keys: u64,
    /// Calls before the tasks start.
    pub before: &'static [Step],
    /// The call that stops in the middle.
    pub victim: Step,
    /// The calls that must all return meanwhile.
    pub other: &'static [Step],
}

std::thread_local! {
    /// Whether the victim came to its stop in any schedule of this round.
    static REACHED: Cell<bool> = const { Cell::new(false) };
}

/// Schedules per place to stop at: the other task may be anywhere when the victim stops.
const SCHEDULES: usize = 20;

/// Stops the victim before its first scheduling point, its second, and so on until it has none
/// left. The number of places, or the first at which the other task could not finish, with what
/// then happened.
pub fn stops<I: Subject>(
    structure: &str,
    stops: &'static Stops,
    act: Act<I>,
) -> Result<u64, (u64, String)> {
    let schedules = size::schedules().map_or(SCHEDULES, |s| (s / 50).max(SCHEDULES));
    keep_failures(persistence());
    for n in 1.. {
        REACHED.set(false);
        let random = RandomScheduler::new_from_seed(size::seed().wrapping_add(n), schedules);
        let runner = Runner::new(random, config(FailurePersistence::None));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            runner.run(move || play(stops, act, n));
        }));
        if let Err(payload) = outcome {
            return Err((n, message(&*payload)));
        }
        if !REACHED.get() {
            report(&format!("progress {structure} {} stops {}", stops.name, n - 1));
            return Ok(n - 1);
        }
        assert!((n as usize) < MAX_STEPS, "an operation of {n} steps");
    }
    unreachable!("the numbers do not end")
}

fn play<I: Subject>(stops: &'static Stops, act: Act<I>, n: u64) {
    let (index, log) = begin(stops.keys, stops.before, act);
    let victim = {
        let index = Arc::clone(&index);
        thread::spawn(move || {
            let mut log = Log::new(1, stops.keys);
            stop::arm(n);
            run_task(&index, &mut log, &[stops.victim], act);
            REACHED.set(stop::disarm() || REACHED.get());
            log
        })
    };
    let other = {
        let index = Arc::clone(&index);
        thread::spawn(move || {
            let mut log = Log::new(2, stops.keys);
            run_task(&index, &mut log, stops.other, act);
            log
        })
    };
    let other = other.join().expect("a task's panic ends the schedule");
    stop::release(victim.thread());
    let victim = victim.join().expect("a task's panic ends the schedule");
    end(index, log, vec![victim, other]);
}
