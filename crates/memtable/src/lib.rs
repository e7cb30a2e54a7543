//! The memtable of an LSM tree.

mod batch;
mod bloom;
#[cfg(feature = "canaries")]
pub mod canary;
#[cfg(not(feature = "canaries"))]
#[allow(unreachable_pub, dead_code)] // public with the feature
mod canary;
mod entry;
mod key;
pub mod log;
pub mod skiplist;

pub use batch::{
    BatchError, BatchRef, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, Op, Ops, ParseError,
    ParseReason, WriteBatch,
};
pub use bloom::{DynamicBloom, KeyHash};
pub use entry::{Draft, EncodedKey, Entry};
pub use log::{LogFolder, LogStorage};
pub use key::{
    ByteOrder, Bytewise, Comparator, InternalKey, Kind, MAX_SEQNO, ReverseBytewise, Seqno, pack,
};
