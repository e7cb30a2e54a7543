//! The stand-in.

use crate::lock::{RawLock, SpinLock};

/// A spin lock of a `pthread_mutex_t`'s size.
#[derive(Debug, Default)]
pub struct PthreadLock {
    spin: SpinLock,
    _size: [u64; 4],
}

impl RawLock for PthreadLock {
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
