//! Locks of absent keys: a table of lock words, to which keys are hashed.
//!
//! Two keys with one word share its lock. That costs an abort at times, and is never wrong.

use super::WordLock;
use silvics::AllocError;

/// The number of words: 64 KiB.
const WORDS: usize = if cfg!(any(silvics_shuttle, miri)) { 64 } else { 1 << 13 };

/// A table of locks.
pub(crate) struct LockTable(Box<[WordLock]>);

impl LockTable {
    pub(crate) fn new() -> Result<Self, AllocError> {
        let mut words = Vec::new();
        let requested = WORDS * size_of::<WordLock>();
        words.try_reserve_exact(WORDS).map_err(|_| AllocError::System { requested })?;
        words.resize_with(WORDS, WordLock::default);
        Ok(Self(words.into_boxed_slice()))
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
