//! What structures and tests tell the model checkers.
//!
//! # Under `--cfg silvics_shuttle`
//! Shuttle runs the tasks of an execution as coroutines of one operating system thread, and a
//! scheduler decides at each *scheduling point* which goes on. The facade's atomics are the
//! machine's own, of the same size and usable in statics, behind one scheduling point each
//! (`step`). So every sequentially consistent interleaving of atomic operations can come up; the
//! weaker ones of the C11 model cannot: those are loom's part.
//!
//! * `freed` knows the memory that has been freed in this schedule. Every atomic operation looks
//!   itself up there, and [`touch`] does the same for a plain read.
//! * `stop` halts one task for good before the n-th of its operations: a structure is lock-free
//!   only if the others still finish.
//! * `sequential` runs set-up and tear-down, where there is nothing to interleave, without
//!   scheduling points.
//!
//! All of this is state of the operating system thread, and so of one execution at a time; a
//! `freed::clear` between schedules is the test's part. Outside of an execution the facade
//! works as in a default build.
//!
//! # In every build
//! [`touch`], which is nothing in a default build, and [`Setting`].

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

/// The pointer, through which memory is about to be read without an atomic operation.
#[cfg(not(silvics_shuttle))]
#[inline(always)]
pub fn touch<T>(pointer: *mut T) -> *mut T {
    pointer
}

/// The pointer, through which memory is about to be read without an atomic operation.
///
/// # Panics
/// If it has been freed in this schedule.
#[cfg(silvics_shuttle)]
pub fn touch<T>(pointer: *mut T) -> *mut T {
    freed::check(pointer.addr());
    pointer
}

/// A small number set by a test for the whole process: a switch beside the algorithms, not part of
/// any, and no scheduling point.
#[derive(Debug)]
pub struct Setting(machine::AtomicU8);

impl Setting {
    /// A setting at `value`.
    pub const fn new(value: u8) -> Self {
        Self(machine::AtomicU8::new(value))
    }

    /// Its value.
    #[inline]
    pub fn get(&self) -> u8 {
        // Relaxed: whoever sets it starts the threads that read it afterwards.
        self.0.load(machine::Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set(&self, value: u8) {
        self.0.store(value, machine::Ordering::Relaxed);
    }
}
