//! The scheduling points of shuttle.

use std::cell::Cell;
use std::sync::TryLockError;
use std::time::Duration;

pub use std::sync::MutexGuard;

std::thread_local! {
    /// Whether [`sequential`] is running on this operating system thread.
    static SEQUENTIAL: Cell<bool> = const { Cell::new(false) };
}

/// The number of the calling task in its execution, or `None` outside of an execution.
pub fn task() -> Option<usize> {
    shuttle::current::try_get_current_task().map(usize::from)
}

/// Whether another task may run now. The answer is no outside of an execution, in [`sequential`],
/// and while a failed task unwinds, whose destructors must only finish.
fn is_scheduled() -> bool {
    !SEQUENTIAL.get() && !std::thread::panicking() && task().is_some()
}

/// A scheduling point: any runnable task may continue here. Unlike [`yield_now`], it costs the
/// caller no priority.
pub fn step() {
    if is_scheduled() {
        super::stop::step();
        shuttle::thread::sleep(Duration::ZERO); // shuttle's plain switch, not a yield
    }
}

/// A scheduling point of a task that cannot continue by itself. Schedulers prefer other tasks.
pub fn yield_now() {
    if is_scheduled() {
        super::stop::step();
        shuttle::thread::yield_now();
    } else {
        std::thread::yield_now();
    }
}

/// Calls `f` without scheduling points. Use it for code that runs while no other task is runnable.
pub fn sequential<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            SEQUENTIAL.set(self.0);
        }
    }
    let _restore = Restore(SEQUENTIAL.replace(true));
    f()
}

/// A random word. It is part of the schedule, so a replay sees the same word. Outside of an
/// execution it is a constant.
pub fn random() -> u64 {
    use shuttle::rand::RngCore;
    if task().is_some() { shuttle::rand::thread_rng().next_u64() } else { u64::MAX }
}

/// A random number below `bound`, which must not be zero.
pub fn below(bound: u64) -> u64 {
    ((u128::from(random()) * u128::from(bound)) >> 64) as u64
}

/// A mutex whose waiters are at scheduling points. It is usable in statics and outside of
/// executions.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a mutex that protects `value`.
    pub fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Locks the mutex, letting other tasks run while one of them holds it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        step();
        loop {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => yield_now(),
            }
        }
    }
}
