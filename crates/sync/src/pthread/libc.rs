//! The lock of the C library.

use crate::lock::RawLock;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

/// A `pthread_mutex_t` of kind `PTHREAD_MUTEX_NORMAL`: a thread that locks it twice deadlocks. (To
/// lock one of the default kind twice is undefined behaviour.) The C libraries of Linux store no
/// address in such a mutex, so it may be moved. While a thread waits for it, the thread's borrow
/// keeps it in place.
pub struct PthreadLock(UnsafeCell<libc::pthread_mutex_t>);

/// An unlocked mutex, of which all locks are copies.
static UNLOCKED: LazyLock<Unlocked> = LazyLock::new(|| {
    let (mut kind, mut mutex) = (MaybeUninit::uninit(), libc::PTHREAD_MUTEX_INITIALIZER);
    // SAFETY: each call uses the attributes only if the first one has initialised them, and the
    // last one ends their use. Nobody uses the mutex, and its initialiser owns nothing.
    let made = unsafe {
        libc::pthread_mutexattr_init(kind.as_mut_ptr()) == 0
            && libc::pthread_mutexattr_settype(kind.as_mut_ptr(), libc::PTHREAD_MUTEX_NORMAL) == 0
            && libc::pthread_mutex_init(&raw mut mutex, kind.as_ptr()) == 0
            && libc::pthread_mutexattr_destroy(kind.as_mut_ptr()) == 0
    };
    assert!(made, "the C libraries of Linux allocate nothing for a normal mutex");
    Unlocked(mutex)
});

struct Unlocked(libc::pthread_mutex_t);

// SAFETY: the mutex is copied, and never locked.
unsafe impl Send for Unlocked {}
// SAFETY: the mutex is copied, and never locked.
unsafe impl Sync for Unlocked {}

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
        Self(UnsafeCell::new(UNLOCKED.0))
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
