//! The memtable of an LSM tree.

mod entry;
mod key;
pub mod skiplist;

pub use entry::{Draft, EncodedKey, Entry};
pub use key::{
    ByteOrder, Bytewise, Comparator, InternalKey, Kind, MAX_SEQNO, ReverseBytewise, Seqno, pack,
};
