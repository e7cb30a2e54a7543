//! What makes an index work: it is loaded, measured and checked here, for every verb.
//!
//! | module | holds |
//! |---|---|
//! | `keys` | the key types, and the key spaces that positions are turned into keys by |
//! | `run` | what a run is told to do, and what comes of it |
//! | `subject` | one contender under measurement: threads, clocks, loads, runs and checks |
//! | `worker` | the loops that are measured, monomorphic for each contender |
//! | `inspected` | an index whose reads are recorded, for `silvics inspect` |
//! | `stats` | medians of ratios, and their intervals |

pub mod inspected;
pub mod keys;
pub mod run;
pub mod stats;
pub mod subject;
mod worker;
