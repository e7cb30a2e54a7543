//! The memtable of an LSM tree.

mod batch;
mod entry;
mod key;
pub mod skiplist;

pub use batch::{
    BatchError, BatchRef, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, Op, Ops, ParseError,
    ParseReason, WriteBatch,
};
pub use entry::{Draft, EncodedKey, Entry};
pub use key::{
    ByteOrder, Bytewise, Comparator, InternalKey, Kind, MAX_SEQNO, ReverseBytewise, Seqno, pack,
};
