//! The lock of the C library.

use crate::lock::RawLock;
use std::cell::UnsafeCell;
use std::fmt;

/// A `pthread_mutex_t` of kind `PTHREAD_MUTEX_NORMAL`: a thread that locks it twice deadlocks. The
/// C libraries of Linux store no address in such a mutex, so it may be moved. While a thread waits
/// for it, the thread's borrow keeps it in place.
pub struct PthreadLock(UnsafeCell<libc::pthread_mutex_t>);

const _: () = assert!(libc::PTHREAD_MUTEX_DEFAULT == libc::PTHREAD_MUTEX_NORMAL);

// SAFETY: any thread may call the C library's functions.
unsafe impl Send for PthreadLock {}
// SAFETY: any thread may call the C library's functions, with a shared mutex.
unsafe impl Sync for PthreadLock {}

impl fmt::Debug for PthreadLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PthreadLock").finish_non_exhaustive()
    }
}

impl Default for PthreadLock {
    fn default() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}

impl RawLock for PthreadLock {
    #[inline]
    fn lock(&self) {
        // SAFETY: the mutex is initialised, and may have moved. A mutex of this kind fails only if
        // the C library detects a misuse.
        let failed = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(failed, 0);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: the mutex is initialised, and may have moved.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the mutex is initialised, and may have moved; the caller owns it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}
