//! Entries that RocksDB has written into its arena, as entries of the byte index.
//!
//! Their form is that of [`silvics_memtable::Entry`]. RocksDB never changes an entry after it has
//! been inserted, and frees none before its memtable (`db/memtable.cc`, `MemTable::Add`).

use silvics::blocks::{self, EntryKey};
use silvics_memtable::{Entry, InternalKey};
use std::ptr::NonNull;
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

/// The address of an entry, whose user key has the order of bytes, or the reverse order.
///
/// RocksDB's order is: user keys by the comparator, and the greatest trailer first among those of a
/// user key. A set of the reverse order is walked backwards: then the greatest trailer is to come
/// last among those of a user key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle<const REVERSE: bool>(NonNull<u8>);

// SAFETY: an entry does not change, so all threads may read it.
unsafe impl<const REVERSE: bool> Send for Handle<REVERSE> {}
// SAFETY: an entry does not change, so all threads may read it.
unsafe impl<const REVERSE: bool> Sync for Handle<REVERSE> {}

impl<const REVERSE: bool> Handle<REVERSE> {
    /// The handle of an entry.
    ///
    /// # Safety
    /// An entry begins at the address. It neither changes nor is freed while the handle, a copy of
    /// it, or a set with it can be used.
    pub unsafe fn new(entry: NonNull<u8>) -> Self {
        Self(entry)
    }

    /// The address of the entry.
    #[inline(always)]
    pub fn address(self) -> *const u8 {
        self.0.as_ptr()
    }

    /// An internal key, as the set orders it.
    #[inline(always)]
    pub fn ordered(key: InternalKey<'_>) -> EntryKey<'_> {
        EntryKey::new(key.user, if REVERSE { key.trailer } else { !key.trailer })
    }
}

// SAFETY: `new` demands that the entry lives as long as the handle and its sets, and does not
// change. `from_word` gets the address that `into_word` has exposed.
unsafe impl<const REVERSE: bool> blocks::Entry for Handle<REVERSE> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    #[inline(always)]
    unsafe fn from_word(word: u64) -> Self {
        let entry = std::ptr::with_exposed_provenance_mut(word as usize);
        // SAFETY: the word is the address of an entry, which is not null.
        Self(unsafe { NonNull::new_unchecked(entry) })
    }

    #[inline(always)]
    unsafe fn key<'g>(self) -> EntryKey<'g> {
        // SAFETY: an entry begins at the address (`new`), and lives by the caller's promise.
        Self::ordered(unsafe { Entry::from_raw(self.0) }.key())
    }
}
