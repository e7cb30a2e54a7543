//! Everything that explains: the feature `analysis` of the crate.

mod census;
mod facts;
pub mod findings;
mod model;
mod moves;
mod pagemap;
mod paths;
mod replay;
mod runs;
mod sets;
mod trace;
pub mod views;

pub use census::{Census, FREED, KindId};
pub use facts::{Facts, Shares, Survey};
pub use model::{
    Cache, Counts, Entries, Inclusion, Latencies, Level, Machine, MachineError, Model, PageSize,
    Reached, Tlb,
};
pub use moves::{Among, Moves, Slot};
pub use pagemap::{Frames, PagemapError};
pub use paths::{Collocation, Paths};
pub use replay::Replay;
pub use sets::{SetHash, Sets};
pub use trace::{LineFault, Trace, TraceError, TraceKind, TraceObject};

/// The bytes of a small page, by which heaps and pictures divide memory.
const PAGE: usize = 4 << 10;
