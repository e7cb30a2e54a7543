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
//! | `read`, `try_read` load | `SeqCst` | `unlock` Release, `upgrade` | the reader sees at least the state of the version it returns; see below |
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
//!
//! # Readers that are counted
//! [`Readers`] beside a version lock make a readers–writer lock of the two. Its readers need not
//! validate, and writers wait for them:
//!
//! * A **reader** adds itself to the count, and then looks at the lock. If a writer owns it, the
//!   reader takes itself off again and waits. So writers come first.
//! * A **writer** takes the lock, and then waits until the count is zero.
//!
//! | site | ordering | pairs with | why |
//! |---|---|---|---|
//! | `enter` addition, then load of the lock | `SeqCst` | `lock` CAS, then load of the count | one sees the other |
//! | `enter` load of the lock | as Acquire | `unlock` Release | the reader sees what the last writer has done |
//! | `leave` subtraction | Release | load of the count, as Acquire | the reader has read before the writer writes |
//! | `enter` subtraction | Relaxed | – | this reader has read nothing |

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
            if let Some(version) = self.try_read()? {
                return Ok(version);
            }
            backoff.wait();
        }
    }

    /// Returns the version, or `None` if a writer owns the lock. It does not wait.
    #[inline]
    pub fn try_read(&self) -> Result<Option<Version>, Obsolete> {
        let word = self.word.load(Ordering::SeqCst);
        if word & OBSOLETE != 0 {
            return Err(Obsolete);
        }
        Ok((word & LOCKED == 0).then_some(Version(word)))
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

/// The readers of what a [`VersionLock`] protects, counted. See the module docs.
#[derive(Debug, Default)]
pub struct Readers {
    count: AtomicU64,
}

impl Readers {
    /// Makes a count of no readers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Becomes a reader, waiting for writers. Returns whether it had to wait.
    #[inline]
    pub fn enter(&self, lock: &VersionLock) -> Result<bool, Obsolete> {
        let mut waited = false;
        loop {
            self.count.fetch_add(1, Ordering::SeqCst);
            if lock.word.load(Ordering::SeqCst) & (LOCKED | OBSOLETE) == 0 {
                return Ok(waited);
            }
            self.count.fetch_sub(1, Ordering::Relaxed);
            waited = true;
            lock.read()?;
        }
    }

    /// Ends the reading.
    ///
    /// # Safety
    /// The caller has become a reader by [`Readers::enter`], and has not left since.
    #[inline]
    pub unsafe fn leave(&self) {
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Whether no thread reads. If the caller owns the lock, no reader enters before it unlocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // loom takes SeqCst accesses for weaker ones. An addition reads the latest count.
        #[cfg(silvics_loom)]
        return self.count.fetch_add(0, Ordering::SeqCst) == 0;
        #[cfg(not(silvics_loom))]
        return self.count.load(Ordering::SeqCst) == 0;
    }

    /// Waits until no thread reads. The caller owns the lock. Returns whether it had to wait.
    #[inline]
    pub fn wait(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut backoff = Backoff::new();
        while !self.is_empty() {
            backoff.wait();
        }
        true
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::times;
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
                for i in 1..=times(100_000) {
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

    #[test]
    fn counted_readers_and_writers_exclude_each_other() {
        let (lock, readers) = (VersionLock::new(), Readers::new());
        assert_eq!((readers.enter(&lock), readers.enter(&lock)), (Ok(false), Ok(false)));
        lock.lock().unwrap();
        assert!(!readers.is_empty());
        // SAFETY: both have entered above.
        unsafe {
            readers.leave();
            readers.leave();
        }
        assert!(readers.is_empty() && !readers.wait());
        // SAFETY: locked above.
        unsafe { lock.unlock_obsolete() };
        assert_eq!(readers.enter(&lock), Err(Obsolete));
        assert!(readers.is_empty());
    }

    /// Writers keep two words equal, and no reader ever sees them differ.
    #[test]
    fn counted_readers_see_no_write_in_part() {
        let shared = (VersionLock::new(), Readers::new(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..times(20_000) {
                        shared.0.lock().unwrap();
                        shared.1.wait();
                        let next = shared.2.load(Ordering::Relaxed) + 1;
                        shared.2.store(next, Ordering::Relaxed);
                        shared.3.store(next, Ordering::Relaxed);
                        // SAFETY: locked above.
                        unsafe { shared.0.unlock() };
                    }
                });
                scope.spawn(|| {
                    for _ in 0..times(20_000) {
                        shared.1.enter(&shared.0).unwrap();
                        let pair = (&shared.2, &shared.3);
                        assert_eq!(pair.0.load(Ordering::Relaxed), pair.1.load(Ordering::Relaxed));
                        // SAFETY: entered above.
                        unsafe { shared.1.leave() };
                    }
                });
            }
        });
        assert_eq!(shared.2.load(Ordering::Relaxed), 2 * times(20_000));
    }
}
