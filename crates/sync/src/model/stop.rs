//! Stops a task for good in the middle of an operation.
//!
//! The victim calls [`arm`], then the operation, then [`disarm`]. Right before its n-th scheduling
//! point it parks until [`release`] is called. If it stops there, the other tasks must continue
//! without it.

use std::cell::Cell;

#[derive(Clone, Copy)]
struct Victim {
    task: usize,
    /// The number of scheduling points left until it stops, including that one.
    left: u64,
    /// Whether it stands at that point.
    stopped: bool,
    /// Whether another task had a scheduling point while it stood there.
    passed: bool,
    /// Whether it need not stop any more.
    released: bool,
}

/// The progress of a victim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// Whether it came to its n-th scheduling point.
    pub came: bool,
    /// Whether other tasks continued while it stood there, and it did not just arrive after them.
    pub stood: bool,
}

std::thread_local! {
    static VICTIM: Cell<Option<Victim>> = const { Cell::new(None) };
    /// Whether the other tasks are done, perhaps before the victim has begun.
    static RELEASED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling task stop before its `n`-th scheduling point from now, counted from 1.
pub fn arm(n: u64) {
    let task = super::task().expect("only a task of an execution can stop");
    let released = RELEASED.get();
    VICTIM.set(Some(Victim { task, left: n, stopped: false, passed: false, released }));
}

/// Ends the count and returns how far the victim came.
pub fn disarm() -> Stop {
    VICTIM
        .take()
        .map_or(Stop::default(), |victim| Stop { came: victim.left == 0, stood: victim.passed })
}

/// Clears the state that an earlier schedule left.
pub fn reset() {
    VICTIM.set(None);
    RELEASED.set(false);
}

/// Lets the victim, whose thread this is, continue now, or later without stopping.
pub fn release(thread: &shuttle::thread::Thread) {
    RELEASED.set(true);
    if let Some(victim) = VICTIM.get() {
        VICTIM.set(Some(Victim { released: true, ..victim }));
        if victim.stopped {
            thread.unpark();
        }
    }
}

pub(super) fn step() {
    let Some(victim) = VICTIM.get() else { return };
    if super::task() != Some(victim.task) {
        let passed = victim.passed || victim.stopped && !victim.released;
        VICTIM.set(Some(Victim { passed, ..victim }));
        return;
    }
    if victim.left == 0 {
        return;
    }
    let left = victim.left - 1;
    let stopped = left == 0 && !victim.released;
    VICTIM.set(Some(Victim { left, stopped, ..victim }));
    if stopped {
        while VICTIM.get().is_some_and(|victim| !victim.released) {
            shuttle::thread::park();
        }
    }
}
