//! Spin locks small enough to sit in a node.
//!
//! # Memory ordering
//!
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `SpinLock.locked` | `try_lock` exchange | Acquire | `unlock` | the new owner sees the writes of the last owner |
//! | `SpinLock.locked` | `lock`'s spin load | Relaxed | – | only decides when to try the exchange |
//! | `SpinLock.locked` | `unlock` | Release | `try_lock` | publishes the critical section |
//! | `TicketLock` | `lock` fetch-add and loads | Acquire | `unlock` | the new owner sees the writes of the last owner; draws continue the release sequence of the last unlock |
//! | `TicketLock` | `try_lock` CAS | Acquire / Relaxed | `unlock` | the new owner sees the writes of the last owner |
//! | `TicketLock` | `unlock` RMW | Release | `lock` | publishes the critical section |

use crate::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::backoff::Backoff;

/// A mutual exclusion lock without data: the structure that contains it decides what it protects.
///
/// # Safety
/// A thread owns the lock from the return of [`lock`](Self::lock), or of a
/// [`try_lock`](Self::try_lock) that returns true, until it calls [`unlock`](Self::unlock). At most
/// one thread owns the lock at any time. An owner sees all writes of the owners before it. The
/// methods and `default` do not panic. A lock that no thread owns may be moved. A new lock is free.
pub unsafe trait RawLock: Default + Send + Sync {
    /// Waits until the caller owns the lock.
    fn lock(&self);

    /// Takes the lock if no thread owns it. Returns whether it did.
    #[must_use]
    fn try_lock(&self) -> bool;

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller owns the lock.
    unsafe fn unlock(&self);
}

/// A test-and-set lock: an exchange takes it, and a store releases it. It has one byte, is unfair,
/// and costs least of all if it is rarely contended.
#[derive(Debug, Default)]
pub struct SpinLock {
    locked: AtomicBool,
}

impl SpinLock {
    /// Makes an unlocked lock.
    pub fn new() -> Self {
        Self::default()
    }
}

// SAFETY: one thread at a time turns the flag from false to true, and the table above orders it.
unsafe impl RawLock for SpinLock {
    #[inline]
    fn lock(&self) {
        let mut backoff = Backoff::new();
        while !self.try_lock() {
            // Spin on a load: exchanges by waiters would steal the line from the owner.
            backoff.wait_while(|| self.locked.load(Ordering::Relaxed));
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Without end, loom can schedule a spinning exchange, which writes each time, before the
        // owner's store. A failed compare-exchange writes nothing.
        #[cfg(silvics_loom)]
        return self
            .locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        #[cfg(not(silvics_loom))]
        !self.locked.swap(true, Ordering::Acquire)
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

/// A ticket lock (Mellor-Crummey and Scott, TOCS 1991, section 2.2): first come, first served.
///
/// It has four bytes: the next ticket in the upper 16 bits, the served ticket in the lower 16. So
/// at most 65 535 threads may wait at once. Both are in one word, so that `try_lock` reads them
/// atomically.
#[derive(Debug, Default)]
pub struct TicketLock {
    word: AtomicU32,
}

impl TicketLock {
    const NEXT: u32 = 1 << 16;
    const SERVING: u32 = Self::NEXT - 1;

    /// Makes an unlocked lock.
    pub fn new() -> Self {
        Self::default()
    }
}

// SAFETY: each ticket is drawn once, and served after the one before it was returned.
unsafe impl RawLock for TicketLock {
    #[inline]
    fn lock(&self) {
        let mut word = self.word.fetch_add(Self::NEXT, Ordering::Acquire);
        let ticket = word >> 16;
        let mut backoff = Backoff::new();
        while word & Self::SERVING != ticket {
            backoff.wait();
            word = self.word.load(Ordering::Acquire);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word >> 16 == word & Self::SERVING
            && self
                .word
                .compare_exchange(
                    word,
                    word.wrapping_add(Self::NEXT),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // The lower half must not carry into the upper one.
        if self.word.load(Ordering::Relaxed) & Self::SERVING == Self::SERVING {
            self.word.fetch_sub(Self::SERVING, Ordering::Release);
        } else {
            self.word.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
pub(crate) mod tests {
    use super::*;
    use crate::cell::UnsafeCell;
    use crate::times;
    use std::sync::{Arc, Barrier};

    struct Guarded<L>(L, UnsafeCell<u64>);
    // SAFETY: the cell is only accessed under the lock.
    unsafe impl<L: RawLock> Sync for Guarded<L> {}

    /// Two threads increment a plain counter under the lock; a lost update fails the assertion.
    pub(crate) fn excludes<L: RawLock + 'static>() {
        let shared = Arc::new(Guarded(L::default(), UnsafeCell::new(0)));
        let start = Arc::new(Barrier::new(2));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (shared, start) = (Arc::clone(&shared), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    for _ in 0..times(50_000) {
                        shared.0.lock();
                        // SAFETY: under the lock taken above.
                        shared.1.with_mut(|c| unsafe { *c += 1 });
                        // SAFETY: taken above.
                        unsafe { shared.0.unlock() };
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        // SAFETY: both threads have ended.
        assert_eq!(shared.1.with(|c| unsafe { *c }), 2 * times(50_000));
    }

    #[test]
    fn spin_lock_excludes() {
        excludes::<SpinLock>();
    }

    #[test]
    fn ticket_lock_excludes() {
        excludes::<TicketLock>();
    }

    pub(crate) fn try_lock_fails_while_owned<L: RawLock>() {
        let lock = L::default();
        assert!(lock.try_lock());
        assert!(!lock.try_lock());
        // SAFETY: taken above.
        unsafe { lock.unlock() };
        assert!(lock.try_lock());
    }

    #[test]
    fn locks_can_be_tried() {
        try_lock_fails_while_owned::<SpinLock>();
        try_lock_fails_while_owned::<TicketLock>();
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes, and has one thread")]
    fn ticket_numbers_wrap() {
        let lock = TicketLock::new();
        for _ in 0..70_000 {
            lock.lock();
            // SAFETY: taken above.
            unsafe { lock.unlock() };
        }
        assert!(lock.try_lock());
    }
}
