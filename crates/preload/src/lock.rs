//! A value behind a lock that a `fork` cannot leave locked for ever.
//!
//! It uses the C library's mutex, not the standard library's, because a child whose parent's
//! threads held it can initialise it again.

use libc::{
    PTHREAD_MUTEX_INITIALIZER, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_trylock,
    pthread_mutex_unlock,
};
use silvics_sync::cell::UnsafeCell;

/// A value that one thread at a time uses.
pub(crate) struct Locked<T> {
    mutex: UnsafeCell<pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only accessed under the mutex.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { mutex: UnsafeCell::new(PTHREAD_MUTEX_INITIALIZER), value: UnsafeCell::new(value) }
    }

    /// Calls `with` under the lock.
    ///
    /// # Safety
    /// The calling thread is not inside such a call.
    pub(crate) unsafe fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the mutex is initialised, and by the contract this thread does not hold it.
        self.mutex.with_mut(|mutex| unsafe { pthread_mutex_lock(mutex) });
        // SAFETY: no other thread holds the mutex, and by the contract this one has no reference.
        let result = self.value.with_mut(|value| with(unsafe { &mut *value }));
        // SAFETY: locked above.
        self.mutex.with_mut(|mutex| unsafe { pthread_mutex_unlock(mutex) });
        result
    }

    /// Unlocks the lock for good. Returns whether a thread held it.
    ///
    /// # Safety
    /// No other thread knows of the lock: this is the child of a `fork`, and this thread is the
    /// first to use it.
    pub(crate) unsafe fn renew(&self) -> bool {
        // SAFETY: by the contract, no other thread uses the mutex.
        self.mutex.with_mut(|mutex| unsafe {
            let held = pthread_mutex_trylock(mutex) != 0;
            mutex.write(PTHREAD_MUTEX_INITIALIZER);
            held
        })
    }
}
