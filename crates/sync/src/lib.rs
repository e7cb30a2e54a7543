//! The words that concurrent indexes are made of.
//!
//! Everything in silvics that touches memory shared between threads goes through this crate, so
//! that one `--cfg` swaps the real machine for a model checker:
//!
//! | build | [`atomic`], [`cell`], [`thread`], [`thread_local!`] come from |
//! |---|---|
//! | default | `std` |
//! | `--cfg silvics_loom` | `loom`, which explores every execution of the C11 model |
//! | `--cfg silvics_shuttle` | `std`, each operation behind a scheduling point of `shuttle`, which explores sequentially consistent schedules |
//!
//! On top of that facade stand the field's usual pieces:
//!
//! * [`lock`]: test-and-set spin lock and ticket lock behind one [`lock::RawLock`];
//! * [`pthread`]: the C library's mutex, to compare with;
//! * [`version`]: the optimistic lock (read, validate, upgrade, obsolete);
//! * [`tagged`]: a pointer with mark bits in its low bits, and room for a hint in its high ones;
//! * [`backoff`]: how a thread waits;
//! * [`prefetch`](fn@prefetch): lines that will be read soon;
//! * [`per_thread`]: dense thread indexes and one padded cell per thread;
//! * [`counter`]: a counter striped over those cells;
//! * [`stamp`]: numbers that are given out once;
//! * [`rcu`]: readers that announce themselves there, and writers that wait for them;
//! * [`model`]: what structures and tests tell the model checkers.

pub mod backoff;
pub mod counter;
mod facade;
pub mod lock;
pub mod model;
pub mod per_thread;
mod prefetch;
pub mod pthread;
pub mod rcu;
pub mod stamp;
pub mod tagged;
pub mod version;

pub use crossbeam_utils::CachePadded;
pub use facade::{Mutex, MutexGuard, atomic, cell, hint, thread};
pub use prefetch::prefetch;
