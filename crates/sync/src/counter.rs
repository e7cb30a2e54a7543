//! A counter without a shared cache line.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | stripe | `add` load and store | Relaxed | one writer at a time (P1 of [`crate::per_thread`]) |
//! | `orphans` | `add` | Relaxed | an RMW loses nothing; nothing is published through it |
//! | both | `sum` loads | Relaxed | exact only if the caller knows that the adders have stopped; it learned this by a join or a channel, which ordered their stores before |

use crate::atomic::{AtomicU64, Ordering};
use crate::per_thread::{Account, PerThread, thread_index};

/// A signed sum striped over threads.
///
/// Adding writes a cache line of the calling thread alone; reading visits all stripes. The design
/// follows the sources of section 5.5 of the contention adapting tree's benchmarks
/// (`erlang/otp#2190`).
#[derive(Debug)]
pub struct StripedCounter<A: Account = ()> {
    stripes: PerThread<AtomicU64, A>,
    /// The shared stripe, for threads whose thread-local variables are destroyed or whose stripe
    /// could not be allocated.
    orphans: AtomicU64,
}

impl<A: Account> StripedCounter<A> {
    /// Makes a counter at zero. `account` is charged for its stripes.
    pub fn new(account: A) -> Self {
        Self { stripes: PerThread::new(account), orphans: AtomicU64::new(0) }
    }

    /// Adds `delta`.
    #[inline]
    pub fn add(&self, delta: i64) {
        match thread_index().and_then(|index| self.stripes.get_or_make(index)) {
            Some(stripe) => {
                let sum = stripe.load(Ordering::Relaxed).wrapping_add(delta.cast_unsigned());
                stripe.store(sum, Ordering::Relaxed);
            }
            None => {
                self.orphans.fetch_add(delta.cast_unsigned(), Ordering::Relaxed);
            }
        }
    }

    /// Returns the sum. O(threads).
    ///
    /// The sum is exact if no thread adds meanwhile. Otherwise each concurrent addition may or may
    /// not be included, as the stripes are not read atomically.
    pub fn sum(&self) -> i64 {
        let stripes = self.stripes.iter().map(|s| s.load(Ordering::Relaxed));
        stripes.fold(self.orphans.load(Ordering::Relaxed), u64::wrapping_add).cast_signed()
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn sums_what_all_threads_added() {
        let counter = Arc::new(StripedCounter::new(()));
        let threads: Vec<_> = (0..4)
            .map(|t| {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    for i in 0..1000 {
                        counter.add(if i % 4 == 3 { -1 } else { t });
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(counter.sum(), (1 + 2 + 3) * 750 - 4 * 250);
    }
}
