//! How a thread waits for another.

use crate::hint::spin_loop;
use crate::thread::yield_now;

/// Exponential backoff: a few pauses, doubling, then giving the processor away.
///
/// A waiter must yield sooner or later: with more threads than cores the thread it waits for may
/// not be running. [`Backoff::wait`] never blocks for longer than one scheduling quantum.
#[derive(Debug, Default)]
pub struct Backoff {
    step: u32,
}

impl Backoff {
    /// Pauses double up to 2^`SPIN_LIMIT`, some hundreds of nanoseconds; then every wait yields.
    const SPIN_LIMIT: u32 = 6;

    /// A fresh backoff: the first wait is one pause.
    pub const fn new() -> Self {
        Self { step: 0 }
    }

    /// Waits a little, longer than the last time.
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

    /// Waits while `busy` holds, as far as the caller can see: it must look again. (A model checker
    /// may show a stale value forever, so there this waits once.)
    #[inline]
    pub fn wait_while(&mut self, busy: impl Fn() -> bool) {
        loop {
            self.wait();
            if cfg!(any(silvics_loom, silvics_shuttle)) || !busy() {
                return;
            }
        }
    }

    /// Whether the next wait gives the processor away.
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
