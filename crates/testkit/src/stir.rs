//! Interruptions in the middle of operations.
//!
//! With as many threads as cores an operation of a microsecond is hardly ever interrupted, and
//! helping paths, stale pointers and half-done states are seen by nobody. So one thread more sends
//! the others signals some ten thousand times a second; the handler yields the core and then spins
//! for a while, wherever the interrupted thread happens to be.

#[cfg(all(unix, not(miri)))]
pub(crate) use signals::Stirrer;

#[cfg(all(unix, not(miri)))]
mod signals {
    use crate::rng::Rng;
    use silvics_sync::Mutex;
    use silvics_sync::atomic::{AtomicBool, Ordering};
    use std::sync::Once;
    use std::time::Duration;

    /// Ignored by default, so that a stray one does no harm.
    const SIGNAL: libc::c_int = libc::SIGURG;
    /// Between two signals; the system's timers make it some three times that.
    const PERIOD: Duration = Duration::from_micros(30);
    /// How long the handler spins: some ten microseconds.
    const SPINS: usize = 200;

    /// Interrupts the threads that enlist.
    pub(crate) struct Stirrer {
        threads: Mutex<Vec<libc::pthread_t>>,
        done: AtomicBool,
    }

    /// While it lives, its thread is interrupted.
    pub(crate) struct Enlisted<'a> {
        stirrer: &'a Stirrer,
        thread: libc::pthread_t,
    }

    impl Stirrer {
        pub(crate) fn new() -> Self {
            static HANDLER: Once = Once::new();
            HANDLER.call_once(install);
            Self { threads: Mutex::new(Vec::new()), done: AtomicBool::new(false) }
        }

        /// Enlists the calling thread.
        pub(crate) fn enlist(&self) -> Enlisted<'_> {
            // SAFETY: always allowed.
            let thread = unsafe { libc::pthread_self() };
            self.threads.lock().push(thread);
            Enlisted { stirrer: self, thread }
        }

        /// Interrupts enlisted threads at random until [`Stirrer::end`].
        pub(crate) fn stir(&self, mut rng: Rng) {
            while !self.done.load(Ordering::Relaxed) {
                {
                    let threads = self.threads.lock();
                    if !threads.is_empty() {
                        let thread = threads[rng.below(threads.len() as u64) as usize];
                        // SAFETY: the thread is alive: it takes the lock to leave the list.
                        unsafe { libc::pthread_kill(thread, SIGNAL) };
                    }
                }
                std::thread::sleep(PERIOD);
            }
        }

        /// Ends [`Stirrer::stir`].
        pub(crate) fn end(&self) {
            self.done.store(true, Ordering::Relaxed);
        }
    }

    impl Drop for Enlisted<'_> {
        fn drop(&mut self) {
            self.stirrer.threads.lock().retain(|thread| *thread != self.thread);
        }
    }

    fn install() {
        // SAFETY: the handler only makes a system call that cannot fail, and spins: it is safe
        // wherever a signal is. An all-zero `sigaction` is a valid one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupt as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut());
        }
    }

    extern "C" fn interrupt(_: libc::c_int) {
        // SAFETY: allowed in a signal handler, and leaves `errno` alone.
        unsafe { libc::sched_yield() };
        for _ in 0..SPINS {
            std::hint::spin_loop();
        }
    }
}

/// Where there are no signals, nobody is interrupted.
#[cfg(not(all(unix, not(miri))))]
pub(crate) struct Stirrer;

#[cfg(not(all(unix, not(miri))))]
impl Stirrer {
    pub(crate) fn new() -> Self {
        Self
    }
    #[allow(clippy::unused_self)]
    pub(crate) fn enlist(&self) {}
    #[allow(clippy::unused_self, clippy::needless_pass_by_value)]
    pub(crate) fn stir(&self, _: crate::rng::Rng) {}
    #[allow(clippy::unused_self)]
    pub(crate) fn end(&self) {}
}
