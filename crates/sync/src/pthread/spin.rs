//! The replacement on platforms without the C library's mutex.

use crate::lock::{RawLock, SpinLock};

/// A spin lock with the size of a `pthread_mutex_t`.
#[derive(Debug, Default)]
pub struct PthreadLock {
    spin: SpinLock,
    _size: [u64; 4],
}

/// The replacement of the adaptive mutex.
pub type AdaptiveLock = PthreadLock;

// SAFETY: `SpinLock` meets the contract, and each method forwards to it.
unsafe impl RawLock for PthreadLock {
    #[inline]
    fn lock(&self) {
        self.spin.lock();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.spin.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.spin.unlock() };
    }
}
