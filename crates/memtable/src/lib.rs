//! The memtable of an LSM tree.

mod batch;
mod bloom;
mod buffer;
#[cfg(feature = "canaries")]
pub mod canary;
#[cfg(not(feature = "canaries"))]
#[allow(unreachable_pub, dead_code)] // public with the feature
mod canary;
mod cursor;
mod entry;
mod group;
pub mod index;
mod key;
pub mod log;
pub mod skiplist;
mod table;
mod tombstones;

pub use batch::{
    BatchError, BatchRef, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, Op, Ops, ParseError,
    ParseReason, WriteBatch,
};
pub use bloom::{DynamicBloom, KeyHash};
pub use buffer::{
    BufferOptions, Failure, FlushError, FrozenTable, OpenError, Snapshot, SwitchError, SyncPolicy,
    View, WriteBuffer, WriteError, WriteMode, WriteOptions, WriteStats,
};
pub use cursor::{Cursor, TableCursor};
pub use entry::{Draft, EncodedKey, Entry};
pub use group::WaitCounts;
pub use index::{ByteIndex, Index, OrdIndex, SkipIndex};
pub use key::{
    ByteOrder, Bytewise, Comparator, InternalKey, Kind, MAX_SEQNO, ReverseBytewise, Seqno, pack,
};
pub use log::{LogFolder, LogStorage};
pub use table::{BloomOptions, Found, PrefixOf, Table, TableOptions, TableStats};
pub use tombstones::Tombstone;
