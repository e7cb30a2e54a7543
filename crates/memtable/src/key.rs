//! Internal keys: a user key, a sequence number and a type, in the order of LSM stores.
//!
//! Versions of a user key are ordered from the newest to the oldest. The sequence number and the
//! type are packed into one word, the *trailer* (RocksDB, `db/dbformat.h`): the number in the upper
//! 56 bits, the type in the lower 8.

use std::cmp::Ordering;
use std::fmt;

/// A sequence number. The first write has 1, and 0 precedes all writes.
pub type Seqno = u64;

/// The greatest sequence number: a trailer has 56 bits for it.
pub const MAX_SEQNO: Seqno = (1 << 56) - 1;

/// The type of an entry, with the number that RocksDB gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The entry deletes its user key.
    Delete = 0x00,
    /// The entry has a value.
    Put = 0x01,
    /// The entry deletes a range of user keys.
    DeleteRange = 0x0F,
}

impl Kind {
    /// The type with this number, if there is one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::Delete,
            0x01 => Self::Put,
            0x0F => Self::DeleteRange,
            _ => return None,
        })
    }
}

/// The trailer of a sequence number and the byte of a type. A search for what a snapshot sees takes
/// the type 255, which precedes all others.
#[inline(always)]
pub fn pack(seqno: Seqno, kind: u8) -> u64 {
    seqno << 8 | u64::from(kind)
}

/// A user key with its trailer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InternalKey<'a> {
    /// The user key.
    pub user: &'a [u8],
    /// The sequence number and the type: see [`pack`].
    pub trailer: u64,
}

impl<'a> InternalKey<'a> {
    /// The key at which the versions of `user` begin that a snapshot sees.
    #[inline(always)]
    pub fn seek(user: &'a [u8], snapshot: Seqno) -> Self {
        Self { user, trailer: pack(snapshot.min(MAX_SEQNO), u8::MAX) }
    }

    /// The sequence number.
    #[inline(always)]
    pub fn seqno(&self) -> Seqno {
        self.trailer >> 8
    }

    /// The type, if the trailer has a known one.
    #[inline(always)]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_byte(self.trailer as u8)
    }
}

impl fmt::Debug for InternalKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}/{:?}", self.user.escape_ascii().to_string(), self.seqno(), self.kind())
    }
}

/// An order of user keys that structures know, so that they need not call a comparator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The order of byte slices.
    Forward,
    /// The reverse order.
    Reverse,
}

/// An order of user keys that is chosen at run time.
///
/// It must be a total order of byte strings, the same in all calls. With another function, calls
/// return wrong entries or none, panic, or do not end; no memory is harmed. A comparator may panic.
/// If it panics while a batch is inserted, the buffer refuses writes from then on. From any other
/// call the panic reaches the caller. Do not write to a buffer in its own comparator or storage:
/// the call would deadlock.
pub trait Comparator: Send + Sync + 'static {
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// The name of the order. A log has it, and recovery refuses another one.
    fn name(&self) -> &str;

    /// The order, if it is one that structures know.
    fn byte_order(&self) -> Option<ByteOrder> {
        None
    }
}

/// The order of byte slices, under the name that RocksDB gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytewise;

impl Comparator for Bytewise {
    #[inline(always)]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn name(&self) -> &'static str {
        "leveldb.BytewiseComparator"
    }

    fn byte_order(&self) -> Option<ByteOrder> {
        Some(ByteOrder::Forward)
    }
}

/// The reverse order of byte slices, under the name that RocksDB gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReverseBytewise;

impl Comparator for ReverseBytewise {
    #[inline(always)]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }

    fn name(&self) -> &'static str {
        "rocksdb.ReverseBytewiseComparator"
    }

    fn byte_order(&self) -> Option<ByteOrder> {
        Some(ByteOrder::Reverse)
    }
}
