//! Locks of absent keys: a table of lock words, to which keys are hashed.
//!
//! Two keys with one word share its lock. That costs an abort at times, and is never wrong.

use super::WordLock;
use silvics::AllocError;

/// The number of words: 512 KiB. A transaction that inserts holds a word for each key, so with 13
/// keys on each of two threads, some 0.2 % of the transactions meet in a word by chance.
const WORDS: usize = if cfg!(any(silvics_shuttle, miri)) { 64 } else { 1 << 16 };

/// A table of locks.
pub(crate) struct LockTable(Box<[WordLock]>);

impl LockTable {
    pub(crate) fn new() -> Result<Self, AllocError> {
        locks().map(Self).ok_or(AllocError::System { requested: WORDS * size_of::<WordLock>() })
    }

    /// The lock of a key, given a number that spreads keys.
    pub(crate) fn of(&self, spread: u64) -> &WordLock {
        &self.0[(spread >> 32) as usize % WORDS]
    }

    /// The bytes of the table.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Locks that are free. The system gives pages of zeros when they are used, so a table takes the
/// memory of the pages that it needs.
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
#[expect(clippy::disallowed_methods, reason = "`Store::bytes` counts it, and it can fail")]
fn locks() -> Option<Box<[WordLock]>> {
    use std::alloc::{Layout, alloc_zeroed};
    let layout = Layout::array::<WordLock>(WORDS).ok()?;
    // SAFETY: the layout is not empty.
    let words = std::ptr::NonNull::new(unsafe { alloc_zeroed(layout) })?.cast::<WordLock>();
    let words = std::ptr::slice_from_raw_parts_mut(words.as_ptr(), WORDS);
    // SAFETY: the global allocator has returned the memory for this layout, and a word of zeros is
    // a free lock (`WordLock` is one atomic word).
    Some(unsafe { Box::from_raw(words) })
}

/// Locks that are free.
#[cfg(any(silvics_loom, silvics_shuttle))]
#[expect(clippy::unnecessary_wraps, reason = "outside of models it can fail")]
fn locks() -> Option<Box<[WordLock]>> {
    Some((0..WORDS).map(|_| WordLock::default()).collect())
}
