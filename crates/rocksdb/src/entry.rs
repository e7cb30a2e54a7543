//! Keys of entries that RocksDB has written into its arena.
//!
//! Their form is that of [`silvics_memtable::Entry`]. RocksDB never changes an entry after it has
//! been inserted, and frees none before its memtable (`db/memtable.cc`, `MemTable::Add`).

use silvics_memtable::InternalKey;
use std::slice;

/// The bytes of a trailer.
pub const TRAILER: usize = 8;

/// Splits an internal key.
///
/// # Safety
/// `len` bytes lie at `key`, of which the last eight are a trailer. They stay unchanged as long as
/// the result is used.
#[inline(always)]
pub unsafe fn split<'a>(key: *const u8, len: usize) -> InternalKey<'a> {
    let user = len.saturating_sub(TRAILER);
    // SAFETY: the caller's promise.
    let (user, trailer) = unsafe {
        (slice::from_raw_parts(key, user), key.add(user).cast::<[u8; TRAILER]>().read_unaligned())
    };
    InternalKey { user, trailer: u64::from_le_bytes(trailer) }
}
