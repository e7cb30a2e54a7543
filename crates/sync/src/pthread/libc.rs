//! The lock of the C library.

use crate::lock::RawLock;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

/// A mutex of the C library, of a kind. The C libraries of Linux store no address in such a mutex,
/// so it may be moved. While a thread waits for it, the thread's borrow keeps it in place.
pub struct Mutex<K>(UnsafeCell<libc::pthread_mutex_t>, PhantomData<K>);

/// A `pthread_mutex_t` of kind `PTHREAD_MUTEX_NORMAL`: a thread that locks it twice deadlocks. (To
/// lock one of the default kind twice is undefined behaviour.)
pub type PthreadLock = Mutex<Normal>;

/// A `pthread_mutex_t` of kind `PTHREAD_MUTEX_ADAPTIVE_NP`: a waiter spins for a while before it
/// sleeps.
#[cfg(target_env = "gnu")]
pub type AdaptiveLock = Mutex<Adaptive>;

/// Other C libraries have no adaptive mutex.
#[cfg(not(target_env = "gnu"))]
pub type AdaptiveLock = PthreadLock;

/// A kind of mutexes.
pub trait Kind: Send + Sync + 'static {
    /// An unlocked mutex, of which all locks are copies.
    #[doc(hidden)]
    fn unlocked() -> libc::pthread_mutex_t;
}

/// The kind of [`PthreadLock`].
#[derive(Debug)]
pub struct Normal;

/// The kind of [`AdaptiveLock`].
#[cfg(target_env = "gnu")]
#[derive(Debug)]
pub struct Adaptive;

impl Kind for Normal {
    #[inline]
    fn unlocked() -> libc::pthread_mutex_t {
        static UNLOCKED: LazyLock<Unlocked> =
            LazyLock::new(|| Unlocked::of(libc::PTHREAD_MUTEX_NORMAL));
        UNLOCKED.0
    }
}

#[cfg(target_env = "gnu")]
impl Kind for Adaptive {
    #[inline]
    fn unlocked() -> libc::pthread_mutex_t {
        static UNLOCKED: LazyLock<Unlocked> =
            LazyLock::new(|| Unlocked::of(libc::PTHREAD_MUTEX_ADAPTIVE_NP));
        UNLOCKED.0
    }
}

struct Unlocked(libc::pthread_mutex_t);

impl Unlocked {
    fn of(number: libc::c_int) -> Self {
        let (mut kind, mut mutex) = (MaybeUninit::uninit(), libc::PTHREAD_MUTEX_INITIALIZER);
        // SAFETY: each call uses the attributes only if the first one has initialised them, and the
        // last one ends their use. Nobody uses the mutex, and its initialiser owns nothing.
        let made = unsafe {
            libc::pthread_mutexattr_init(kind.as_mut_ptr()) == 0
                && libc::pthread_mutexattr_settype(kind.as_mut_ptr(), number) == 0
                && libc::pthread_mutex_init(&raw mut mutex, kind.as_ptr()) == 0
                && libc::pthread_mutexattr_destroy(kind.as_mut_ptr()) == 0
        };
        assert!(made, "the C libraries of Linux allocate nothing for such a mutex");
        Self(mutex)
    }
}

// SAFETY: the mutex is copied, and never locked.
unsafe impl Send for Unlocked {}
// SAFETY: the mutex is copied, and never locked.
unsafe impl Sync for Unlocked {}

// SAFETY: any thread may call the C library's functions.
unsafe impl<K: Kind> Send for Mutex<K> {}
// SAFETY: any thread may call the C library's functions, with a shared mutex.
unsafe impl<K: Kind> Sync for Mutex<K> {}

impl<K> fmt::Debug for Mutex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<K: Kind> Default for Mutex<K> {
    fn default() -> Self {
        Self(UnsafeCell::new(K::unlocked()), PhantomData)
    }
}

// SAFETY: POSIX: one thread at a time owns a mutex, and locking synchronizes memory. A mutex of
// these kinds that no thread owns has no address inside, so it may be moved.
unsafe impl<K: Kind> RawLock for Mutex<K> {
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
