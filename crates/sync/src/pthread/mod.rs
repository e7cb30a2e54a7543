//! The C library's mutexes of 40 bytes, for comparison.
//!
//! The trees of the literature had one in each node, until a study found that a spin lock serves
//! them better (Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, section 3.1). It is available on
//! x86-64 Linux, and the adaptive one, which spins before it sleeps, with glibc. On other systems,
//! and under a model checker or Miri, a [`crate::lock::SpinLock`] of equal size replaces it, so
//! that layouts stay as they are.

#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    not(any(silvics_loom, silvics_shuttle, miri))
))]
#[path = "libc.rs"]
mod platform;
#[cfg(not(all(
    target_os = "linux",
    target_arch = "x86_64",
    not(any(silvics_loom, silvics_shuttle, miri))
)))]
#[path = "spin.rs"]
mod platform;

pub use platform::{AdaptiveLock, PthreadLock};

#[cfg(not(silvics_loom))]
const _: () = assert!(size_of::<PthreadLock>() == 40 && align_of::<PthreadLock>() == 8);

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::lock::tests::{excludes, try_lock_fails_while_owned};

    #[test]
    fn it_is_a_lock() {
        excludes::<PthreadLock>();
        try_lock_fails_while_owned::<PthreadLock>();
    }

    #[test]
    fn the_adaptive_one_is_a_lock() {
        excludes::<AdaptiveLock>();
        try_lock_fails_while_owned::<AdaptiveLock>();
    }
}
