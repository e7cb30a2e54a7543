//! Runs of entries, which the C functions of both memtables fill.
//!
//! An iterator of RocksDB gets entries in runs, each by one call. Entries never go away, so a run
//! stays right after the call. An entry that is inserted between two entries of a run is not in it.
//! No reader misses such an entry: its sequence number is greater than that of the reader's
//! snapshot, which was taken before.

use crate::entry::split;
use silvics::AllocError;
use silvics_memtable::InternalKey;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::process::abort;
use std::slice;

/// Room for the addresses of entries.
pub(crate) type Run = [MaybeUninit<*const u8>];

/// A key of RocksDB: null stands for the end of the table from which a walk begins.
///
/// # Safety
/// `len` bytes lie at `key`, of which the last eight are a trailer, or it is null. They stay
/// unchanged as long as the result is used.
#[inline(always)]
pub(crate) unsafe fn start<'a>(key: *const u8, len: usize) -> Bound<InternalKey<'a>> {
    if key.is_null() {
        Bound::Unbounded
    } else {
        // SAFETY: the caller's promise.
        Bound::Included(unsafe { split(key, len) })
    }
}

/// The room of C++ for a run.
///
/// # Safety
/// `room` addresses fit at `run`, which nobody else uses as long as the result is used.
#[inline(always)]
pub(crate) unsafe fn run<'r>(run: *mut *const u8, room: usize) -> &'r mut Run {
    // SAFETY: the caller's promise. Uninitialised addresses are valid as `MaybeUninit`.
    unsafe { slice::from_raw_parts_mut(run.cast(), room) }
}

/// Ends the process: RocksDB has no way to refuse an insert.
#[cold]
pub(crate) fn fail(table: &str, error: AllocError) -> ! {
    eprintln!("{table}: {error}. RocksDB cannot refuse an insert, so the process ends.");
    abort()
}
