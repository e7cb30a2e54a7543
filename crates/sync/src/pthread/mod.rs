//! The C library's mutex, of 40 bytes: what trees had in each node before a study found that a spin
//! lock serves them better (Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, section 3.1).
//!
//! It is had on x86-64 Linux. Elsewhere, and where a model checker or Miri runs, a
//! [`crate::lock::SpinLock`] of the same size stands in, so that layouts stay what they are.

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

pub use platform::PthreadLock;

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
}
