//! Entries of a memtable, as RocksDB writes them into its arena.
//!
//! ```text
//! varint32 length of the internal key | user key | trailer, 8 bytes, little-endian | the value …
//! ```
//! RocksDB never changes an entry after it has been inserted, and frees none before its memtable
//! (`db/memtable.cc`, `MemTable::Add`).

use silvics::blocks::{Entry, EntryKey};
use silvics_memtable::InternalKey;
use std::ptr::NonNull;
use std::slice;

/// The bytes of a trailer.
pub const TRAILER: usize = 8;

/// The length of an internal key, and the address of its first byte.
///
/// # Safety
/// An entry begins at the address.
#[inline(always)]
unsafe fn internal(entry: *const u8) -> (usize, *const u8) {
    // SAFETY: the caller's promise: an entry has a byte at least.
    let first = unsafe { *entry };
    if first < 0x80 {
        // SAFETY: the key is behind its length.
        (usize::from(first), unsafe { entry.add(1) })
    } else {
        // SAFETY: the caller's promise.
        unsafe { long(entry) }
    }
}

/// As [`internal`], for lengths of several bytes.
///
/// # Safety
/// An entry begins at the address, and its length has a second byte.
#[cold]
unsafe fn long(entry: *const u8) -> (usize, *const u8) {
    let mut len = 0;
    for at in 0..5 {
        // SAFETY: the bytes before this one have announced it.
        let byte = usize::from(unsafe { *entry.add(at) });
        len |= (byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            // SAFETY: the key is behind its length.
            return (len, unsafe { entry.add(at + 1) });
        }
    }
    (len, entry.wrapping_add(5)) // RocksDB writes no such length
}

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

/// The internal key of an entry.
///
/// # Safety
/// An entry begins at the address. It lives as long as the result is used.
#[inline(always)]
pub unsafe fn key<'a>(entry: *const u8) -> InternalKey<'a> {
    // SAFETY: the caller's promise.
    unsafe {
        let (len, key) = internal(entry);
        split(key, len)
    }
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
unsafe impl<const REVERSE: bool> Entry for Handle<REVERSE> {
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
        Self::ordered(unsafe { key(self.0.as_ptr()) })
    }
}

/// Writes entries for tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An entry that is never freed.
    pub(crate) fn leaked(user: &[u8], trailer: u64) -> NonNull<u8> {
        let (mut entry, mut len) = (Vec::new(), user.len() + TRAILER);
        while len >= 0x80 {
            entry.push(len as u8 | 0x80);
            len >>= 7;
        }
        entry.push(len as u8);
        entry.extend_from_slice(user);
        entry.extend_from_slice(&trailer.to_le_bytes());
        NonNull::from(entry.leak()).cast()
    }

    #[test]
    fn keys_of_every_length_are_read() {
        for len in (0..300).chain([(1 << 14) - 9, (1 << 14) - 8, 1 << 14, 1 << 21]) {
            let user: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
            let entry = leaked(&user, 77 << 8 | 1);
            // SAFETY: the entry is never freed.
            let key = unsafe { key(entry.as_ptr()) };
            assert_eq!((key.user, key.trailer), (&user[..], 77 << 8 | 1));
        }
    }
}
