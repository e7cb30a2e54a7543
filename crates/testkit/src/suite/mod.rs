//! The suite: its properties, and the indexes and allocators that they need.
//!
//! | files | hold |
//! |---|---|
//! | `sequential`, `key_sum`, `presence`, `batches`, `histories`, `ranges`, `atomic_ranges`, `cursors`, `ends` | properties of answers |
//! | `memory`, `dropping`, `reclaim`, `shrinking`, `limit`, `faults`, `lookups` | properties of memory |
//! | `guards` | properties of guards |
//! | `grid` | keys with fixed roles, for scans and lookups among writers |
//! | `faulty`, `counting` | allocators that fail by plan, and that count |
//! | `reference`, `broken` | an index that is correct by inspection, and indexes with a planted mistake each |
//! | `fuzz` | the fuzz targets, which compare with the reference, too |
//! | `declare` | the macros that declare the tests |

pub mod atomic_ranges;
pub mod batches;
pub mod broken;
pub mod counting;
pub mod cursors;
mod declare;
pub mod dropping;
pub mod ends;
pub mod faults;
pub mod faulty;
pub mod fuzz;
pub(crate) mod grid;
pub mod guards;
pub mod histories;
pub mod key_sum;
pub mod limit;
pub mod lookups;
pub mod memory;
pub mod presence;
pub mod ranges;
pub mod reclaim;
pub mod reference;
pub mod sequential;
pub mod shrinking;

pub use declare::{compiled, holds};
