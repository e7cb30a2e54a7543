//! A value behind a lock that a `fork` does not hold for ever.
//!
//! The C library's mutex and not the standard library's, because it can be made anew in a child
//! whose parent's threads had it.

use libc::{
    PTHREAD_MUTEX_INITIALIZER, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_trylock,
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
        Self { mutex: UnsafeCell::new(PTHREAD_MUTEX_INITIALIZER), value: UnsafeCell::new(value) }
    }

    /// Calls `with` under the lock.
    ///
    /// # Safety
    /// The calling thread is in no such call.
    pub(crate) unsafe fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: initialised above, and not this thread's by the contract.
        self.mutex.with_mut(|mutex| unsafe { pthread_mutex_lock(mutex) });
        // SAFETY: no other thread has the mutex, and this one has no reference by the contract.
        let result = self.value.with_mut(|value| with(unsafe { &mut *value }));
        // SAFETY: locked above.
        self.mutex.with_mut(|mutex| unsafe { pthread_mutex_unlock(mutex) });
        result
    }

    /// Makes the lock free, and says whether somebody had it.
    ///
    /// # Safety
    /// No other thread knows of it: this is the child of a `fork`, the first to touch it.
    pub(crate) unsafe fn renew(&self) -> bool {
        // SAFETY: by the contract.
        self.mutex.with_mut(|mutex| unsafe {
            let held = pthread_mutex_trylock(mutex) != 0;
            mutex.write(PTHREAD_MUTEX_INITIALIZER);
            held
        })
    }
}
