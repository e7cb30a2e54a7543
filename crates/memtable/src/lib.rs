//! The memtable of an LSM tree.

mod key;

pub use key::{
    ByteOrder, Bytewise, Comparator, InternalKey, Kind, MAX_SEQNO, ReverseBytewise, Seqno, pack,
};
