//! Bounded waiting for another thread.

use crate::hint::spin_loop;
use crate::thread::yield_now;

/// Exponential backoff: the thread pauses, twice as long each time, and after a few waits yields
/// the processor.
///
/// A waiter must yield eventually: with more threads than cores, the thread it waits for may not be
/// running. [`Backoff::wait`] never blocks for longer than one scheduling quantum.
#[derive(Debug, Default)]
pub struct Backoff {
    step: u32,
}

impl Backoff {
    /// Pauses double up to 2^`SPIN_LIMIT`, some hundreds of nanoseconds. Every later wait yields.
    const SPIN_LIMIT: u32 = 6;

    /// Makes a backoff whose first wait is one pause.
    pub const fn new() -> Self {
        Self { step: 0 }
    }

    /// Waits a little: longer than at the previous call.
    #[inline]
    pub fn wait(&mut self) {
        if cfg!(any(silvics_loom, silvics_shuttle)) || self.step > Self::SPIN_LIMIT {
            yield_now();
            return;
        }
        for _ in 0..1u32 << self.step {
            spin_loop();
        }
        self.step += 1;
    }

    /// Waits while `busy` returns true. The caller must check the condition again afterwards: a
    /// model checker may show a stale value forever, so under one this waits only once.
    #[inline]
    pub fn wait_while(&mut self, busy: impl Fn() -> bool) {
        loop {
            self.wait();
            if cfg!(any(silvics_loom, silvics_shuttle)) || !busy() {
                return;
            }
        }
    }

    /// Whether the next wait yields the processor.
    pub const fn yields(&self) -> bool {
        self.step > Self::SPIN_LIMIT
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn pauses_come_before_yields_and_are_bounded() {
        let mut backoff = Backoff::new();
        let mut waits = 0;
        while !backoff.yields() {
            backoff.wait();
            waits += 1;
        }
        assert_eq!(waits, Backoff::SPIN_LIMIT + 1);
    }
}
