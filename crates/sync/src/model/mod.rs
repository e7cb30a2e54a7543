//! The calls by which structures and tests inform the model checkers.
//!
//! # Under `--cfg silvics_shuttle`
//! Shuttle runs the tasks of an execution as coroutines of one operating system thread. At each
//! *scheduling point* a scheduler decides which task continues. The facade's atomics are the
//! machine's own, of equal size and usable in statics, with one scheduling point (`step`) before
//! each operation. So every sequentially consistent interleaving of atomic operations can occur.
//! Weaker executions of the C11 model cannot; loom explores those.
//!
//! * `freed` contains the memory that was freed in this schedule. Every atomic operation checks its
//!   own address there, and [`touch`] checks that of a plain read.
//! * `stop` halts one task for good before the n-th of its operations. A structure is lock-free
//!   only if the other tasks still finish.
//! * `sequential` runs set-up and tear-down, which have nothing to interleave, without scheduling
//!   points.
//!
//! All of this is state of the operating system thread, and so of one execution at a time. A test
//! must call `freed::clear` between schedules. Outside of an execution the facade works as in a
//! default build.
//!
//! # In every build
//! [`touch`], which does nothing in a default build, and [`Setting`].

#[cfg(silvics_shuttle)]
pub(crate) mod atomic;
#[cfg(silvics_shuttle)]
pub mod freed;
#[cfg(silvics_shuttle)]
mod schedule;
#[cfg(silvics_shuttle)]
pub mod stop;

#[cfg(silvics_shuttle)]
pub use schedule::{Mutex, MutexGuard, below, random, sequential, step, task, yield_now};

#[cfg(silvics_loom)]
#[doc(hidden)]
pub use loom::{lazy_static, thread_local};
#[cfg(all(silvics_shuttle, not(silvics_loom)))]
#[doc(hidden)]
pub use shuttle::thread_local;

use crate::facade::machine;

/// Returns `pointer`, through which the caller is about to read memory without an atomic operation.
#[cfg(not(silvics_shuttle))]
#[inline(always)]
pub fn touch<T>(pointer: *mut T) -> *mut T {
    pointer
}

/// Returns `pointer`, through which the caller is about to read memory without an atomic operation.
///
/// # Panics
/// Panics if the memory was freed in this schedule.
#[cfg(silvics_shuttle)]
pub fn touch<T>(pointer: *mut T) -> *mut T {
    freed::check(pointer.addr());
    pointer
}

/// A small number that a test sets for the whole process. It is a switch beside the algorithms, not
/// part of any, and no scheduling point.
#[derive(Debug)]
pub struct Setting(machine::AtomicU8);

impl Setting {
    /// Makes a setting of `value`.
    pub const fn new(value: u8) -> Self {
        Self(machine::AtomicU8::new(value))
    }

    /// Returns its value.
    #[inline]
    pub fn get(&self) -> u8 {
        // Relaxed: a test sets it before it starts the threads that read it.
        self.0.load(machine::Ordering::Relaxed)
    }

    /// Replaces its value.
    pub fn set(&self, value: u8) {
        self.0.store(value, machine::Ordering::Relaxed);
    }
}
