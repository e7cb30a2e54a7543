//! The context switches of a thread.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// The number of times that a thread gave its core to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::unsafe_derive_deserialize, reason = "the unsafe code trusts no field")]
pub struct Switches {
    /// Because it waited, for example in a system call that blocks.
    pub voluntary: u64,
    /// Although it could have gone on. Linux also counts `sched_yield` here, if another thread ran.
    pub involuntary: u64,
}

impl Switches {
    /// The switches of the calling thread since its start, if the system counts them by thread.
    #[cfg(target_os = "linux")]
    pub fn of_this_thread() -> Option<Self> {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call writes a `rusage` there; zeroes are one, too.
        let (done, usage) = unsafe {
            let done = libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            (done, usage.assume_init())
        };
        let count = |count| u64::try_from(count).unwrap_or(0);
        let switches =
            Self { voluntary: count(usage.ru_nvcsw), involuntary: count(usage.ru_nivcsw) };
        (done == 0).then_some(switches)
    }

    /// The switches of the calling thread since its start, if the system counts them by thread.
    #[cfg(not(target_os = "linux"))]
    pub fn of_this_thread() -> Option<Self> {
        None
    }
}

impl Add for Switches {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
}

impl Sub for Switches {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            voluntary: self.voluntary - before.voluntary,
            involuntary: self.involuntary - before.involuntary,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_gives_its_core_away() {
        let before = Switches::of_this_thread().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let switches = Switches::of_this_thread().unwrap() - before;
        assert!(switches.voluntary >= 1, "{switches:?}");
    }
}
