//! Loads, measures and checks indexes, for every verb.
//!
//! | module | holds |
//! |---|---|
//! | `keys` | the key types, and the key spaces that map positions to keys |
//! | `run` | the parameters of a run, its tally, the ledger, and failures |
//! | `subject` | one contender under measurement: threads, clocks, loads, runs and checks |
//! | `scans` | the ways in which scans read entries |
//! | `worker` | the loops that are measured, monomorphic for each contender |
//! | `timed` | the same loops over sessions whose calls are timed, and the times |
//! | `shape` | runs with samples of an index that adapts |
//! | `draws` | random numbers of threads, and random orders |
//! | `check` | the checks of answers |
//! | `nothing` | an index that does nothing |
//! | `inspected` | an index whose reads are recorded, for `silvics inspect` and `silvics store` |
//! | `replayed` | reads that run through a model, counted for the index and the rest |
//! | `stats` | medians of ratios, and their intervals |

mod check;
pub mod draws;
pub mod inspected;
pub mod keys;
pub mod nothing;
pub mod replayed;
pub mod run;
pub mod scans;
pub mod shape;
pub mod stats;
pub mod subject;
pub mod timed;
mod worker;
