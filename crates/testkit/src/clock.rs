//! Stamps, which order the beginnings and ends of calls.
//!
//! # Guarantee
//! If one call's end stamp is below another's start stamp, the first call had returned, and its
//! writes were visible to all threads, before the second began. Calls whose stamps overlap, or are
//! equal, may take effect in either order.
//!
//! # Source of time
//! Stamps come from the processor's time-stamp counter, if it runs at one rate on all cores and is
//! synchronous among them (invariant TSC; Intel SDM volume 3, 18.17.1) and a trial in
//! [`Clock::new`] confirms it. Otherwise they come from one counter that all threads increment,
//! whose line they then share.
//!
//! `RDTSC` is not ordered with other instructions. A start stamp therefore lies between two
//! `LFENCE`: it is taken after everything before it, and no load of the call precedes it. `MFENCE`
//! and `LFENCE` precede an end stamp: the call's stores have left the store buffer, and its loads
//! have their values.

use silvics_sync::CachePadded;
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;

/// The clock from which all stamps of a history come.
#[derive(Debug)]
pub struct Clock {
    source: Source,
    counter: CachePadded<AtomicU64>,
}

/// The source of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The time-stamp counter of the processor.
    Tsc,
    /// A counter that all threads increment.
    Counter,
}

impl Source {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Counter => "counter",
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::counter()
    }
}

impl Clock {
    /// Makes the best clock of this machine: its time-stamp counter if that passes a trial,
    /// otherwise a counter.
    pub fn new() -> Self {
        if tsc::is_invariant() {
            let clock = Self { source: Source::Tsc, counter: CachePadded::new(AtomicU64::new(0)) };
            if clock.is_monotonic(2000) {
                return clock;
            }
        }
        Self::counter()
    }

    /// Makes a clock that counts stamps.
    pub fn counter() -> Self {
        Self { source: Source::Counter, counter: CachePadded::new(AtomicU64::new(0)) }
    }

    /// The source of its stamps.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Returns the stamp of a call that begins now.
    #[inline(always)]
    pub fn start(&self) -> u64 {
        match self.source {
            Source::Tsc => tsc::start(),
            Source::Counter => self.count(),
        }
    }

    /// Returns the stamp of a call that has returned.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        match self.source {
            Source::Tsc => tsc::end(),
            Source::Counter => self.count(),
        }
    }

    /// Returns the next number. `SeqCst`: the stamps of all threads are in one total order, and no
    /// access of the call moves across its stamps.
    fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::SeqCst)
    }

    /// Whether stamps never go back while two threads take turns `turns` times. Each turn passes
    /// one word from one thread to the other. If the system does not start both threads, this is
    /// not known, and the answer is no.
    pub fn is_monotonic(&self, turns: u64) -> bool {
        let turn = AtomicU64::new(0);
        let last = AtomicU64::new(0);
        let backwards = AtomicU64::new(0);
        let missing = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for parity in 0..2 {
                let (turn, last, backwards, missing) = (&turn, &last, &backwards, &missing);
                let started = Builder::new().spawn_scoped(scope, move || {
                    for mine in (parity..turns).step_by(2) {
                        let mut spins = 0u32;
                        while turn.load(Ordering::Acquire) != mine {
                            if missing.load(Ordering::Relaxed) {
                                return;
                            }
                            spins += 1;
                            if spins > 1000 {
                                silvics_sync::thread::yield_now();
                            }
                        }
                        let (start, end) = (self.start(), self.end());
                        // An end and the next thread's start may be equal: such calls overlap.
                        if start < last.load(Ordering::Relaxed) || end < start {
                            backwards.fetch_add(1, Ordering::Relaxed);
                        }
                        last.store(end, Ordering::Relaxed);
                        turn.store(mine + 1, Ordering::Release);
                    }
                });
                if started.is_err() {
                    missing.store(true, Ordering::Relaxed);
                }
            }
        });
        backwards.into_inner() == 0 && !missing.into_inner()
    }
}

#[cfg(all(target_arch = "x86_64", not(miri), not(silvics_shuttle)))]
mod tsc {
    use std::arch::x86_64::{__cpuid, _mm_lfence, _mm_mfence, _rdtsc};

    /// Whether the counter is invariant: bit 8 of EDX in leaf `8000_0007H` of CPUID.
    #[allow(unused_unsafe)] // safe in newer toolchains
    pub(super) fn is_invariant() -> bool {
        const HIGHEST: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        // SAFETY: every x86-64 processor has CPUID.
        unsafe { __cpuid(HIGHEST).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0 }
    }

    #[inline(always)]
    pub(super) fn start() -> u64 {
        // SAFETY: every x86-64 processor has these instructions.
        unsafe {
            _mm_lfence();
            let stamp = _rdtsc();
            _mm_lfence();
            stamp
        }
    }

    #[inline(always)]
    pub(super) fn end() -> u64 {
        // SAFETY: every x86-64 processor has these instructions.
        unsafe {
            _mm_mfence();
            _mm_lfence();
            _rdtsc()
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri), not(silvics_shuttle))))]
mod tsc {
    pub(super) fn is_invariant() -> bool {
        false
    }
    pub(super) fn start() -> u64 {
        0
    }
    pub(super) fn end() -> u64 {
        0
    }
}

#[cfg(all(test, not(silvics_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_two_threads_never_go_back() {
        let turns = crate::size::pick(200_000, 20_000, 20) as u64;
        assert!(Clock::new().is_monotonic(turns));
        assert!(Clock::counter().is_monotonic(turns));
    }

    #[test]
    fn a_clock_that_goes_back_is_noticed() {
        // Another thread sets the counter back now and then.
        let clock = Clock::counter();
        let stop = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    clock.counter.store(0, Ordering::Relaxed);
                    std::thread::yield_now();
                }
            });
            let noticed = (0..1000).any(|_| !clock.is_monotonic(1000));
            stop.store(1, Ordering::Relaxed);
            assert!(noticed);
        });
    }
}
