//! The version lock: optimistic readers, exclusive writers, one word.
//!
//! # Source
//! Leis, Scheibner, Kemper, Neumann, "The ART of practical synchronization", DaMoN 2016, section
//! 3 (optimistic lock coupling); Boehm, "Can seqlocks get along with programming language memory
//! models?", MSPC 2012, for the fences.
//!
//! # Protocol
//! The word contains `version | obsolete | locked`.
//!
//! * A **reader** calls [`VersionLock::read`], reads the protected fields through atomics (Relaxed
//!   is enough), then calls [`VersionLock::validate`]. Only if that succeeds may it follow or
//!   return the values it read. A reader writes nothing.
//! * A **writer** takes the lock by [`VersionLock::lock`], or by [`VersionLock::upgrade`] from a
//!   version it has read. It writes through atomics and unlocks. Unlocking changes the version, so
//!   that every overlapping reader restarts. [`VersionLock::unlock_obsolete`] also marks the node
//!   as unlinked for good; readers and writers that meet it restart from above.
//!
//! # Memory ordering
//! | site | ordering | pairs with | why |
//! |---|---|---|---|
//! | `read` load | `SeqCst` | `unlock` Release, `upgrade` | the reader sees at least the state of the version it returns; see below |
//! | `is_obsolete` load | Acquire | `unlock_obsolete` Release | a thread that has seen what was linked after this lock became obsolete finds it obsolete |
//! | `validate` fence | Acquire, then Relaxed load | fence after locking | if a field read came from a writer, the writer's lock bit or a later version is seen here |
//! | `try_lock` load | Relaxed | – | the CAS that follows fails if the word has changed |
//! | `upgrade`/`lock` CAS | `SeqCst` | `unlock`, `read` | the owner sees the previous owner's writes; see below |
//! | fence after locking | Release | `validate` fence | the lock bit is visible before any write under it |
//! | `unlock` store | Release | `read` | publishes the writes |
//!
//! All reads of versions and all exchanges that take a lock, of all locks, are in one order. If a
//! read comes after an exchange of the same lock in this order, its reader sees what the owner has
//! done, or waits for it. So what is done under locks can be linearized where the lock was taken,
//! and a validated read where its version was read.

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::backoff::Backoff;

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const STEP: u64 = 4;

/// A version as seen by a reader, for [`VersionLock::validate`] or [`VersionLock::upgrade`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

/// The node was unlinked for good: restart from above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obsolete;

/// The node has changed since the version was read: restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed;

/// An optimistic lock of one word.
#[derive(Debug, Default)]
pub struct VersionLock {
    word: AtomicU64,
}

impl VersionLock {
    /// Makes an unlocked lock at version 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until no writer owns the lock, and returns the version.
    #[inline]
    pub fn read(&self) -> Result<Version, Obsolete> {
        let mut backoff = Backoff::new();
        loop {
            let word = self.word.load(Ordering::SeqCst);
            if word & OBSOLETE != 0 {
                return Err(Obsolete);
            }
            if word & LOCKED == 0 {
                return Ok(Version(word));
            }
            backoff.wait();
        }
    }

    /// Whether the lock is free and the node is not obsolete.
    pub fn is_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (LOCKED | OBSOLETE) == 0
    }

    /// Whether the node was unlinked for good.
    pub fn is_obsolete(&self) -> bool {
        self.word.load(Ordering::Acquire) & OBSOLETE != 0
    }

    /// Whether all reads since `version` was taken saw one consistent state.
    #[inline]
    #[must_use = "the values read may be torn unless this is true"]
    pub fn validate(&self, version: Version) -> bool {
        fence(Ordering::Acquire);
        self.word.load(Ordering::Relaxed) == version.0 // Relaxed: see the Acquire fence above
    }

    /// Becomes the writer if nothing has changed since `version` was read.
    #[inline]
    pub fn upgrade(&self, version: Version) -> Result<(), Changed> {
        self.word
            .compare_exchange(version.0, version.0 | LOCKED, Ordering::SeqCst, Ordering::Relaxed)
            .map_err(|_| Changed)?;
        fence(Ordering::Release);
        Ok(())
    }

    /// Becomes the writer, waiting for other writers.
    #[inline]
    pub fn lock(&self) -> Result<(), Obsolete> {
        loop {
            let version = self.read()?;
            if self.upgrade(version).is_ok() {
                return Ok(());
            }
        }
    }

    /// Becomes the writer if no other writer owns the lock and the node is not obsolete. It does
    /// not wait.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & (LOCKED | OBSOLETE) == 0 && self.upgrade(Version(word)).is_ok()
    }

    /// Releases the lock. Overlapping readers will fail to validate.
    ///
    /// # Safety
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        let word = self.word.load(Ordering::Relaxed);
        self.word.store((word & !LOCKED) + STEP, Ordering::Release);
    }

    /// Releases the lock and marks the node obsolete: unlinked for good.
    ///
    /// # Safety
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock_obsolete(&self) {
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(((word & !LOCKED) + STEP) | OBSOLETE, Ordering::Release);
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    #[test]
    fn a_write_invalidates_readers() {
        let lock = VersionLock::new();
        let before = lock.read().unwrap();
        assert!(lock.validate(before));
        lock.lock().unwrap();
        assert!(!lock.validate(before));
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        assert!(!lock.validate(before));
        assert_eq!(lock.upgrade(before), Err(Changed));
        let after = lock.read().unwrap();
        assert_eq!(lock.upgrade(after), Ok(()));
        assert!(!lock.try_lock());
        // SAFETY: `upgrade` has locked it.
        unsafe { lock.unlock() };
        assert!(lock.try_lock() && !lock.try_lock());
    }

    #[test]
    fn obsolete_is_final() {
        let lock = VersionLock::new();
        lock.lock().unwrap();
        // SAFETY: locked above.
        unsafe { lock.unlock_obsolete() };
        assert_eq!(lock.read(), Err(Obsolete));
        assert_eq!(lock.lock(), Err(Obsolete));
        assert!(!lock.try_lock());
    }

    /// Writers keep two words equal; a reader that validates must never see them differ.
    #[test]
    fn validated_reads_are_not_torn() {
        let shared = Arc::new((VersionLock::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let start = Arc::new(Barrier::new(2));
        let writer = {
            let (shared, start) = (Arc::clone(&shared), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                for i in 1..=100_000 {
                    shared.0.lock().unwrap();
                    shared.1.store(i, Ordering::Relaxed);
                    shared.2.store(i, Ordering::Relaxed);
                    // SAFETY: locked above.
                    unsafe { shared.0.unlock() };
                }
            })
        };
        start.wait();
        let mut validated = 0u32;
        while validated < 1000 || !writer.is_finished() {
            let version = shared.0.read().unwrap();
            let a = shared.1.load(Ordering::Relaxed);
            let b = shared.2.load(Ordering::Relaxed);
            if shared.0.validate(version) {
                assert_eq!(a, b);
                validated += 1;
            }
        }
        writer.join().unwrap();
    }
}
