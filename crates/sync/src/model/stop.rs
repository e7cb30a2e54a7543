//! A task that stops for good in the middle of an operation.
//!
//! The victim calls [`arm`], then the operation, then [`disarm`]. Right before its n-th scheduling
//! point it parks until [`release`] is called: if it stands there, the others go on without it.

use std::cell::Cell;

#[derive(Clone, Copy)]
struct Victim {
    task: usize,
    /// Scheduling points still to pass, the one it stops at included.
    left: u64,
    /// Stands at it.
    stopped: bool,
    /// Need not stop any more.
    released: bool,
}

std::thread_local! {
    static VICTIM: Cell<Option<Victim>> = const { Cell::new(None) };
}

/// Makes the calling task stop before its `n`-th scheduling point from here, counted from 1.
pub fn arm(n: u64) {
    let task = super::task().expect("only a task of an execution can stop");
    VICTIM.set(Some(Victim { task, left: n, stopped: false, released: false }));
}

/// Ends the count. Whether the task has come to its n-th scheduling point.
pub fn disarm() -> bool {
    VICTIM.take().is_some_and(|victim| victim.left == 0)
}

/// Forgets what an earlier schedule left.
pub fn reset() {
    VICTIM.set(None);
}

/// Lets the victim, whose thread this is, go on, if it stands or when it would.
pub fn release(thread: &shuttle::thread::Thread) {
    if let Some(victim) = VICTIM.get() {
        VICTIM.set(Some(Victim { released: true, ..victim }));
        if victim.stopped {
            thread.unpark();
        }
    }
}

pub(super) fn step() {
    let Some(victim) = VICTIM.get() else { return };
    if victim.left == 0 || super::task() != Some(victim.task) {
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
