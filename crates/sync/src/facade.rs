//! The facade: one name for each primitive, whether the machine or a model checker runs it.
//!
//! `loom` and `shuttle` need their own atomics to see and schedule every access. The cfgs are
//! `silvics_loom` and `silvics_shuttle`. A plain `loom` would also switch dependencies that know
//! this cfg.

#[cfg(all(silvics_loom, not(feature = "loom")))]
compile_error!("`--cfg silvics_loom` needs the feature `loom` of silvics-sync");
#[cfg(all(silvics_shuttle, not(feature = "shuttle")))]
compile_error!("`--cfg silvics_shuttle` needs the feature `shuttle` of silvics-sync");

/// Atomic types, fences and orderings.
pub mod atomic {
    #[cfg(all(silvics_shuttle, not(silvics_loom)))]
    pub use crate::model::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
    #[cfg(silvics_loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
    #[cfg(not(any(silvics_loom, silvics_shuttle)))]
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
}

/// The machine's own atomics, for state that no model checker shall see.
pub(crate) mod machine {
    pub(crate) use std::sync::atomic::AtomicU8;
    #[cfg(not(silvics_shuttle))]
    pub(crate) use std::sync::atomic::Ordering;
    #[cfg(silvics_shuttle)]
    pub use std::sync::atomic::Ordering;
    #[cfg(silvics_shuttle)]
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
}

/// Interior mutability that loom can check.
pub mod cell {
    #[cfg(silvics_loom)]
    pub use loom::cell::UnsafeCell;

    /// A cell accessed through closures, as loom's is, so that code which uses it can be checked.
    #[cfg(not(silvics_loom))]
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    #[cfg(not(silvics_loom))]
    impl<T> UnsafeCell<T> {
        /// Makes a cell that contains `value`.
        pub const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }
    }

    #[cfg(not(silvics_loom))]
    impl<T: ?Sized> UnsafeCell<T> {
        /// Calls `f` with a pointer to the content. A caller that reads through it promises that no
        /// thread writes meanwhile.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with a pointer to the content. A caller that writes through it promises that
        /// no other thread accesses the content meanwhile.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// The hint of spin loops.
pub mod hint {
    #[cfg(all(silvics_shuttle, not(silvics_loom)))]
    pub use crate::model::yield_now as spin_loop;
    #[cfg(silvics_loom)]
    pub use loom::hint::spin_loop;
    #[cfg(not(any(silvics_loom, silvics_shuttle)))]
    pub use std::hint::spin_loop;
}

/// Threads that the model checkers can schedule.
pub mod thread {
    #[cfg(all(silvics_shuttle, not(silvics_loom)))]
    pub use crate::model::yield_now;
    #[cfg(silvics_loom)]
    pub use loom::thread::{JoinHandle, Thread, current, park, spawn, yield_now};
    #[cfg(all(silvics_shuttle, not(silvics_loom)))]
    pub use shuttle::thread::{JoinHandle, Thread, current, park, spawn};
    #[cfg(not(any(silvics_loom, silvics_shuttle)))]
    pub use std::thread::{JoinHandle, Thread, current, park, spawn, yield_now};
}

#[cfg(all(silvics_shuttle, not(silvics_loom)))]
pub use crate::model::{Mutex, MutexGuard};

#[cfg(any(silvics_loom, not(silvics_shuttle)))]
mod mutex {
    #[cfg(silvics_loom)]
    use loom::sync as blocking;
    #[cfg(not(silvics_loom))]
    use std::sync as blocking;

    pub use blocking::MutexGuard;

    /// A blocking mutex for slow paths, without poisoning: every path that can unwind leaves the
    /// protected value consistent.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(blocking::Mutex<T>);

    impl<T> Mutex<T> {
        /// Makes a mutex that protects `value`.
        pub fn new(value: T) -> Self {
            Self(blocking::Mutex::new(value))
        }

        /// Locks the mutex, blocking the thread while another holds it.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}
#[cfg(any(silvics_loom, not(silvics_shuttle)))]
pub use mutex::{Mutex, MutexGuard};

/// Declares thread-local variables that loom and shuttle can model.
///
/// ```
/// use std::cell::Cell;
/// silvics_sync::thread_local! { static DEPTH: Cell<u32> = Cell::new(0); }
/// DEPTH.with(|d| d.set(d.get() + 1));
/// assert_eq!(DEPTH.with(Cell::get), 1);
/// ```
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
#[macro_export]
macro_rules! thread_local {
    ($($body:tt)*) => { ::std::thread_local! { $($body)* } };
}
/// Declares thread-local variables that loom can model.
#[cfg(silvics_loom)]
#[macro_export]
macro_rules! thread_local {
    ($($body:tt)*) => { $crate::model::thread_local! { $($body)* } };
}
/// Declares thread-local variables that shuttle can model.
#[cfg(all(silvics_shuttle, not(silvics_loom)))]
#[macro_export]
macro_rules! thread_local {
    ($($body:tt)*) => { $crate::model::thread_local! { $($body)* } };
}
