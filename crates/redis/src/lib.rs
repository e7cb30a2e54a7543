//! An ordered map with byte keys for Valkey and Redis.
//!
//! With the feature `module` the crate is the shared object that a server loads: `docs/cluster.md`
//! says how, and lists the commands. The rest of the crate needs Rust alone, and is tested without
//! a server.
//!
//! # Parts
//! * [`map`]: [`ByteMap`](map::ByteMap), the type behind a key of the server. [`value`]: the
//!   values. [`scan`]: scans in steps.
//! * [`request`]: the arguments of commands. [`aggregate`]: sums, minima and maxima.
//! * [`codec`]: the entries of a map in a snapshot.
//! * `module/`, with the feature `module`: the commands, the thread of long scans, snapshots.
//! * `client/`, with the feature `client`: a cursor over the shards of a large map.

pub mod aggregate;
#[cfg(feature = "client")]
pub mod client;
pub mod codec;
pub mod map;
#[cfg(feature = "module")]
mod module;
pub mod request;
pub mod scan;
pub mod value;
