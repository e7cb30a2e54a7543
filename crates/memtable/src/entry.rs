//! Entries as bytes, in the encoding of RocksDB's memtable (`db/memtable.cc`).
//!
//! ```text
//! entry | length of the key, varint32 | user key | trailer, 8 bytes, little-endian |
//!       | length of the value, varint32 | value |
//! ```
//! The length of the key counts the trailer. A plug-in for RocksDB receives entries of this form,
//! so tables here have no other one. An index does not read what follows the trailer.
//!
//! # Invariants
//! * E1: an [`Entry`] points to such bytes. They are initialised, do not change, and live as long
//!   as the entry's lifetime says.

use crate::key::InternalKey;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

/// The bytes of the trailer.
pub(crate) const TRAILER: usize = 8;

/// The most bytes of a varint32.
pub(crate) const VARINT: usize = 5;

/// An entry of a table: see the [module](self).
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    at: NonNull<u8>,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: E1: the bytes do not change, so any thread may read them.
unsafe impl Send for Entry<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Entry<'_> {}

impl<'a> Entry<'a> {
    /// The entry at an address.
    ///
    /// # Safety
    /// The bytes of an entry lie there, initialised. They stay unchanged as long as the entry is
    /// used.
    #[inline(always)]
    pub unsafe fn from_raw(at: NonNull<u8>) -> Self {
        Self { at, bytes: PhantomData }
    }

    /// The address of the entry.
    #[inline(always)]
    pub fn as_ptr(self) -> NonNull<u8> {
        self.at
    }

    /// The internal key.
    #[inline(always)]
    pub fn key(self) -> InternalKey<'a> {
        let (user, trailer, _) = self.parts();
        InternalKey { user, trailer }
    }

    /// The value. Only entries of this crate's tables have one; an entry of another engine may end
    /// with its trailer.
    ///
    /// # Safety
    /// The entry was written by [`Draft::write`].
    #[inline(always)]
    pub unsafe fn value(self) -> &'a [u8] {
        let (_, _, end) = self.parts();
        // SAFETY: E1 and the caller's promise: a length and its bytes follow the trailer.
        unsafe {
            let (length, at) = read_varint(end);
            slice::from_raw_parts(at, length as usize)
        }
    }

    /// The user key, the trailer, and the address behind it.
    #[inline(always)]
    fn parts(self) -> (&'a [u8], u64, *const u8) {
        // SAFETY: E1: a length and that number of bytes lie there, of which the last eight are the
        // trailer.
        unsafe {
            let (length, user) = read_varint(self.at.as_ptr());
            let user_len = length as usize - TRAILER;
            let end = user.add(user_len);
            let trailer = u64::from_le(end.cast::<u64>().read_unaligned());
            (slice::from_raw_parts(user, user_len), trailer, end.add(TRAILER))
        }
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

/// Reads a varint32, and returns it with the address behind it.
///
/// # Safety
/// A varint32 lies at `at`.
#[inline(always)]
unsafe fn read_varint(at: *const u8) -> (u32, *const u8) {
    // SAFETY: the caller's promise: the first byte is there.
    let first = unsafe { at.read() };
    if first < 0x80 {
        // SAFETY: the byte was read, so the address behind it is in bounds or just past them.
        return (u32::from(first), unsafe { at.add(1) });
    }
    // SAFETY: the caller's promise.
    unsafe { read_long_varint(at) }
}

/// Reads a varint32 of any length.
///
/// # Safety
/// A varint32 lies at `at`.
#[inline(never)]
unsafe fn read_long_varint(mut at: *const u8) -> (u32, *const u8) {
    let (mut value, mut shift) = (0, 0);
    loop {
        // SAFETY: the caller's promise: the bytes up to the first one below 0x80 are there.
        let byte = unsafe { at.read() };
        // SAFETY: the byte was read.
        at = unsafe { at.add(1) };
        value |= u32::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 || shift > 28 {
            return (value, at);
        }
    }
}

/// The bytes of a varint32.
#[inline(always)]
pub(crate) fn varint_len(value: u32) -> usize {
    (38 - (value | 1).leading_zeros() as usize) / 7
}

/// Writes a varint32, and returns the address behind it.
///
/// # Safety
/// There is room for it at `to`, which is the caller's alone.
#[inline(always)]
unsafe fn write_varint(mut to: *mut u8, mut value: u32) -> *mut u8 {
    while value >= 0x80 {
        // SAFETY: the caller's promise.
        unsafe {
            to.write(value as u8 | 0x80);
            to = to.add(1);
        }
        value >>= 7;
    }
    // SAFETY: the caller's promise.
    unsafe {
        to.write(value as u8);
        to.add(1)
    }
}

/// The content of an entry that is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    user: &'a [u8],
    trailer: u64,
    value: &'a [u8],
}

impl<'a> Draft<'a> {
    /// The parts of an entry, or `None` if a length does not fit into 32 bits.
    pub fn new(user: &'a [u8], trailer: u64, value: &'a [u8]) -> Option<Self> {
        let fits =
            u32::try_from(user.len() + TRAILER).is_ok() && u32::try_from(value.len()).is_ok();
        fits.then_some(Self { user, trailer, value })
    }

    /// The bytes of the entry.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an entry has a trailer")]
    pub fn len(&self) -> usize {
        let key = self.user.len() + TRAILER;
        let value = self.value.len();
        varint_len(key as u32) + key + varint_len(value as u32) + value
    }

    /// Writes the entry.
    ///
    /// # Safety
    /// There are [`Draft::len`] bytes at `to`, which are the caller's alone. They live during `'e`,
    /// and the caller does not write to them again.
    #[inline]
    pub unsafe fn write<'e>(self, to: NonNull<u8>) -> Entry<'e> {
        let Self { user, trailer, value } = self;
        // SAFETY: the caller's promise; `len` counts each part, and `new` has checked the lengths.
        unsafe {
            let mut at = write_varint(to.as_ptr(), (user.len() + TRAILER) as u32);
            at.copy_from_nonoverlapping(user.as_ptr(), user.len());
            at = at.add(user.len());
            at.cast::<u64>().write_unaligned(trailer.to_le());
            at = write_varint(at.add(TRAILER), value.len() as u32);
            at.copy_from_nonoverlapping(value.as_ptr(), value.len());
            Entry::from_raw(to)
        }
    }
}

/// A key encoded as an entry without a value, for searches in orders that compare whole entries.
#[derive(Debug)]
pub struct EncodedKey(Box<[u8]>);

impl EncodedKey {
    /// Encodes a key.
    ///
    /// # Panics
    /// If the length of the key does not fit into 32 bits.
    pub fn new(key: InternalKey<'_>) -> Self {
        let length = u32::try_from(key.user.len() + TRAILER).expect("a key has less than 4 GiB");
        let mut bytes = Vec::with_capacity(VARINT + length as usize);
        let mut rest = length;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.extend_from_slice(key.user);
        bytes.extend_from_slice(&key.trailer.to_le_bytes());
        Self(bytes.into())
    }

    /// The entry, which has no value.
    pub fn entry(&self) -> Entry<'_> {
        // SAFETY: E1: `new` has written the bytes, and they live as long as the borrow.
        unsafe { Entry::from_raw(NonNull::from(&self.0[0])) }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::key::{Kind, pack};

    #[test]
    fn an_entry_has_what_was_written() {
        for user_len in [0, 1, 16, 119, 120, 121, 16_375, 16_376, 2_097_144] {
            for value_len in [0, 1, 127, 128, 16_384] {
                let (user, value) = (vec![7; user_len], vec![9; value_len]);
                let trailer = pack(77, Kind::Put as u8);
                let draft = Draft::new(&user, trailer, &value).unwrap();
                let mut bytes = vec![0; draft.len()];
                // SAFETY: the vector has these bytes, and they are not written again.
                let entry = unsafe { draft.write(NonNull::from(&mut bytes[0])) };
                let key = InternalKey { user: &user, trailer };
                // SAFETY: written by `Draft::write`.
                assert_eq!((entry.key(), unsafe { entry.value() }), (key, &value[..]));
                let encoded = EncodedKey::new(key);
                assert_eq!(encoded.entry().key(), key);
                assert!(bytes.starts_with(&encoded.0));
            }
        }
    }

    #[test]
    fn varints_have_their_least_length() {
        for shift in 0..32 {
            for value in [(1u32 << shift) - 1, 1 << shift] {
                let mut bytes = [0; VARINT];
                let start = bytes.as_mut_ptr();
                // SAFETY: five bytes are enough for any number.
                let (end, (read, behind)) =
                    unsafe { (write_varint(start, value), read_varint(start)) };
                assert_eq!(end.addr() - start.addr(), varint_len(value), "{value}");
                assert_eq!((read, behind.addr()), (value, end.addr()));
            }
        }
    }
}
