//! A value behind a lock that survives `fork`.
//!
//! The C library's mutex and not the standard library's, because it is taken in one handler of
//! `fork` and given back in another, and recursive, because other libraries' handlers in between may
//! allocate.

use libc::{
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, pthread_mutex_lock, pthread_mutex_t,
    pthread_mutex_unlock,
};
use silvics_sync::cell::UnsafeCell;

/// A value of which one thread at a time has the use.
pub(crate) struct Locked<T> {
    mutex: UnsafeCell<pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is touched under the mutex alone.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            mutex: UnsafeCell::new(PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `with` under the lock.
    ///
    /// # Safety
    /// The calling thread is in no such call.
    pub(crate) unsafe fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        self.lock();
        // SAFETY: no other thread has the mutex, and this one has no reference by the contract.
        let result = self.value.with_mut(|value| with(unsafe { &mut *value }));
        self.unlock();
        result
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) {
        // SAFETY: initialised above. Fails for recursion 2^32 deep alone.
        self.mutex.with_mut(|mutex| unsafe { pthread_mutex_lock(mutex) });
    }

    /// Gives it back; nothing happens where another thread has it.
    pub(crate) fn unlock(&self) {
        // SAFETY: initialised above.
        self.mutex.with_mut(|mutex| unsafe { pthread_mutex_unlock(mutex) });
    }

    /// Makes the lock free, whoever has it.
    ///
    /// # Safety
    /// No other thread knows of it: this is the child of a `fork`, where the thread has another
    /// number than the one that took it.
    pub(crate) unsafe fn renew(&self) {
        // SAFETY: by the contract.
        self.mutex.with_mut(|mutex| unsafe { mutex.write(PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP) });
    }
}
