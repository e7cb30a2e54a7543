//! Hardware transactions: Intel's restricted transactional memory (RTM), where the CPU has it.
//!
//! [`Rtm::detect`] asks the CPU, and only the [`Rtm`] that it returns can begin a transaction. So
//! the instruction is never executed on a CPU without it. `tests` proves this by a count of the
//! transactions begun.
//!
//! # Protocol
//! [`Rtm::run`] begins a transaction, calls the body, and commits. The CPU undoes all that an
//! aborted body has written, in memory and in registers, and returns to the beginning with a
//! [`Status`]. The body itself aborts by returning an error, which then becomes the explicit abort
//! with code [`BUSY`]: what it has written is undone as well. A body must not unwind.
//!
//! # Memory ordering
//! A committed transaction is atomic: all its accesses take effect at one point of the total order
//! of the machine. A body that reads and writes by atomics needs no ordering stronger than one that
//! is correct without the transaction.

/// The code of an explicit abort because another thread owns a lock.
pub const BUSY: u8 = 0xFF;

/// The reason of an abort, as the CPU reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u32);

impl Status {
    /// The program has aborted, by `xabort` with a code.
    pub const EXPLICIT: u32 = 1;
    /// The transaction may succeed if it is tried again.
    pub const RETRY: u32 = 1 << 1;
    /// Another thread has accessed the same memory.
    pub const CONFLICT: u32 = 1 << 2;
    /// The transaction has accessed more memory than the CPU can keep track of.
    pub const CAPACITY: u32 = 1 << 3;

    /// A status of these bits, with the code of an explicit abort in the highest eight.
    pub const fn of(bits: u32) -> Self {
        Self(bits)
    }

    /// The status of an explicit abort with a code.
    pub const fn explicit(code: u8) -> Self {
        Self(Self::EXPLICIT | (code as u32) << 24)
    }

    /// The whole word.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether a bit is set.
    pub const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// The code of an explicit abort.
    pub const fn code(self) -> Option<u8> {
        if self.has(Self::EXPLICIT) { Some((self.0 >> 24) as u8) } else { None }
    }
}

/// A CPU with restricted transactional memory.
#[derive(Clone, Copy, Debug)]
pub struct Rtm(());

#[cfg(all(target_arch = "x86_64", not(any(miri, silvics_loom, silvics_shuttle))))]
mod cpu {
    use super::{Rtm, Status};
    use std::arch::asm;

    /// The status of a transaction that has begun.
    const STARTED: u32 = u32::MAX;

    /// The number of transactions that were begun in a build with debug assertions.
    #[cfg(debug_assertions)]
    pub(super) static BEGUN: crate::atomic::AtomicU64 = crate::atomic::AtomicU64::new(0);

    impl Rtm {
        /// The CPU, if it has restricted transactional memory.
        #[inline]
        pub fn detect() -> Option<Self> {
            std::is_x86_feature_detected!("rtm").then_some(Self(()))
        }

        /// Runs a body in a transaction. Fails with the status if the transaction is aborted, and
        /// with that of an explicit abort if the body returns an error.
        ///
        /// # Safety
        /// The body does not unwind, makes no system call that must not be repeated, and leaves
        /// nothing outside memory and registers.
        #[inline(always)]
        pub unsafe fn run<R, E>(self, body: impl FnOnce() -> Result<R, E>) -> Result<R, Status> {
            #[cfg(debug_assertions)]
            BEGUN.fetch_add(1, crate::atomic::Ordering::Relaxed); // a count of tests
            let mut status = STARTED;
            // SAFETY: `self` proves that the CPU has the instruction. If the transaction aborts,
            // the CPU restores all registers but `eax` and all memory, and goes on at the label, as
            // if the instruction had just ended with another status.
            unsafe {
                asm!("xbegin 2f", "2:", inout("eax") status, options(nostack));
            }
            if status != STARTED {
                return Err(Status(status));
            }
            if let Ok(result) = body() {
                // SAFETY: a transaction is open: it began above, and the body has not ended it.
                unsafe { asm!("xend", options(nostack)) };
                return Ok(result);
            }
            // SAFETY: the CPU has the instruction. It goes back to the beginning, with the code
            // `BUSY`.
            unsafe { asm!("xabort 0xff", options(nostack)) };
            unreachable!("an open transaction was aborted")
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(any(miri, silvics_loom, silvics_shuttle)))))]
impl Rtm {
    /// No CPU of this architecture has it, and no model checker.
    #[inline]
    pub fn detect() -> Option<Self> {
        None
    }

    /// Never called, since there is no value of this type.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn run<R, E>(self, _body: impl FnOnce() -> Result<R, E>) -> Result<R, Status> {
        Err(Status(0))
    }
}

/// The number of transactions begun so far; always 0 in a build without debug assertions.
pub fn begun() -> u64 {
    #[cfg(all(
        debug_assertions,
        target_arch = "x86_64",
        not(any(miri, silvics_loom, silvics_shuttle))
    ))]
    return cpu::BEGUN.load(crate::atomic::Ordering::Relaxed); // a count of tests
    #[allow(unreachable_code)]
    0
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_bits_and_a_code() {
        let status = Status::explicit(BUSY);
        assert_eq!(status.bits(), 0xFF00_0001);
        assert_eq!((status.code(), status.has(Status::RETRY)), (Some(BUSY), false));
        let both = Status::of(Status::CONFLICT | Status::RETRY);
        assert_eq!((both.code(), both.bits()), (None, 6));
        assert!(
            both.has(Status::RETRY) && both.has(Status::CONFLICT) && !both.has(Status::CAPACITY)
        );
    }

    /// On a CPU that has them, transactions commit or abort, and an error aborts them.
    #[test]
    fn a_cpu_that_has_transactions_runs_them() {
        let Some(rtm) = Rtm::detect() else {
            assert_eq!(begun(), 0, "nothing else can begin one");
            return;
        };
        let mut memory = 0u64;
        for _ in 0..1000 {
            // SAFETY: the body writes memory alone, and does not unwind.
            let outcome = unsafe {
                rtm.run(|| {
                    (&raw mut memory).write_volatile(1);
                    Err::<(), ()>(())
                })
            };
            assert!(outcome.is_err());
            // SAFETY: the memory is this function's own.
            assert_eq!(unsafe { (&raw const memory).read_volatile() }, 0, "undone");
        }
    }
}
