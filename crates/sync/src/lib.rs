//! The building blocks of concurrent indexes: atomics, locks, tagged pointers, per-thread tables,
//! RCU.
//!
//! All code of silvics that accesses memory shared between threads uses this crate. One `--cfg`
//! therefore replaces the real machine by a model checker. The cfg makes the choice, so a feature
//! that another crate enables changes nothing. The feature of the same name only adds the
//! dependency:
//!
//! | build | source of [`atomic`], [`cell`], [`thread`], [`thread_local!`] |
//! |---|---|
//! | default | `std` |
//! | `--cfg silvics_loom` | `loom` |
//! | `--cfg silvics_shuttle` | `std`, with a scheduling point of `shuttle` before each operation |
//!
//! `loom` explores every execution of the C11 memory model, `shuttle` sequentially consistent
//! schedules.
//!
//! Every lock here is a [`lock::RawLock`] without data, small enough to sit in a node. The
//! structure decides what it protects:
//!
//! ```
//! use silvics_sync::atomic::{AtomicU64, Ordering};
//! use silvics_sync::lock::{RawLock, SpinLock};
//!
//! #[derive(Default)]
//! struct Node { lock: SpinLock, hits: AtomicU64 }
//!
//! let node = Node::default();
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         scope.spawn(|| {
//!             node.lock.lock();
//!             let hits = node.hits.load(Ordering::Relaxed); // ordered by the lock
//!             node.hits.store(hits + 1, Ordering::Relaxed);
//!             // SAFETY: locked above.
//!             unsafe { node.lock.unlock() };
//!         });
//!     }
//! });
//! assert_eq!(node.hits.load(Ordering::Relaxed), 2);
//! ```
//!
//! # Contents
//! * [`lock`]: a test-and-set spin lock and a ticket lock behind the trait [`lock::RawLock`];
//! * [`pthread`]: the C library's mutexes, for comparison;
//! * [`htm`]: hardware transactions, where the CPU has them;
//! * [`version`]: the optimistic lock (read, validate, upgrade, obsolete), and counted readers,
//!   with which it is a readers–writer lock;
//! * [`tagged`]: a pointer with mark bits below it and a 16-bit hint above it;
//! * [`backoff`]: bounded exponential waiting;
//! * [`prefetch`](fn@prefetch): a hint to the cache about a line that will be read soon;
//! * [`per_thread`]: dense thread indexes, and tables with one padded cell per thread;
//! * [`OnceBox`]: a place for an object that is made when it is first needed;
//! * [`counter`]: a counter that is striped over threads once it is large or contended;
//! * [`stamp`]: numbers that are unique in the process;
//! * [`random`]: random numbers for structures, with one stream per thread;
//! * [`rcu`]: read-copy-update, with readers that announce themselves in such cells and writers
//!   that wait for them;
//! * [`model`]: the calls by which structures and tests inform the model checkers.
//!
//! Each module documents its protocol, its memory orderings and the tests that check it.
//! `tests/loom.rs` explores the small pieces exhaustively, and it must reject a weakened twin of
//! each.

pub mod backoff;
pub mod counter;
mod facade;
pub mod htm;
pub mod lock;
pub mod model;
mod once_box;
pub mod per_thread;
mod prefetch;
pub mod pthread;
pub mod random;
pub mod rcu;
pub mod stamp;
pub mod tagged;
pub mod version;

pub use crossbeam_utils::CachePadded;
pub use facade::{Mutex, MutexGuard, atomic, cell, hint, thread};
pub use once_box::{OnceBox, Refused};
pub use prefetch::prefetch;

/// How often a test repeats something: Miri, which is slow, repeats it a hundredth of that.
#[cfg(test)]
pub(crate) fn times(all: u64) -> u64 {
    if cfg!(miri) { all / 100 } else { all }
}
