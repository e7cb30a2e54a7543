//! A counter that threads share while it is small, and stripe when it is large or contended.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | stripe | `add` load and store | Relaxed | one writer at a time (P1 of [`crate::per_thread`]) |
//! | `shared`, `collisions` | `add` | Relaxed | an RMW loses nothing; nothing is published through it |
//! | stripe, `shared` | `sum` loads | Relaxed | exact only if the caller knows that the adders have stopped; it learned this by a join or a channel, which ordered their stores before |

use crate::OnceBox;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::per_thread::{Account, PerThread, thread_index};

/// The shared sum from which on threads add to stripes of their own: a stripe takes a cache line
/// for each thread.
const STRIPED_FROM: u64 = if cfg!(any(silvics_loom, silvics_shuttle)) { 1 } else { 1024 };
/// The number of additions that met another one from which on threads add to stripes, too.
const STRIPED_AFTER: u32 = 64;

/// A signed sum, striped over threads once it is large or contended.
///
/// Adding to a striped sum writes a cache line of the calling thread alone; reading visits all
/// stripes. The design follows the sources of section 5.5 of the contention adapting tree's
/// benchmarks (`erlang/otp#2190`). Before, the sum is one word, which all threads write.
#[derive(Debug)]
pub struct StripedCounter<A: Account + Clone = ()> {
    stripes: OnceBox<PerThread<AtomicU64, A>>,
    /// The sum of what was added before there were stripes, by threads whose thread-local variables
    /// are destroyed, and by those whose stripe could not be allocated.
    shared: AtomicU64,
    /// The number of additions to `shared` that met another thread's.
    collisions: AtomicU32,
    account: A,
}

impl<A: Account + Clone> StripedCounter<A> {
    /// Makes a counter at zero. `account` is charged for its stripes.
    pub fn new(account: A) -> Self {
        let (shared, collisions) = (AtomicU64::new(0), AtomicU32::new(0));
        Self { stripes: OnceBox::default(), shared, collisions, account }
    }

    /// Adds `delta`.
    #[inline]
    pub fn add(&self, delta: i64) {
        let own = |stripes| thread_index().and_then(|index| PerThread::get_or_make(stripes, index));
        match self.stripes.get().and_then(own) {
            Some(stripe) => {
                let sum = stripe.load(Ordering::Relaxed).wrapping_add(delta.cast_unsigned());
                stripe.store(sum, Ordering::Relaxed);
            }
            None => self.add_shared(delta),
        }
    }

    #[inline(never)]
    fn add_shared(&self, delta: i64) {
        let (delta, relaxed) = (delta.cast_unsigned(), Ordering::Relaxed);
        let is_large = |sum: u64| sum.cast_signed().unsigned_abs() >= STRIPED_FROM;
        let stripe = if cfg!(any(silvics_loom, silvics_shuttle)) {
            is_large(self.shared.fetch_add(delta, relaxed)) // one step of a schedule
        } else {
            let before = self.shared.load(relaxed);
            let after = before.wrapping_add(delta);
            if self.shared.compare_exchange(before, after, relaxed, relaxed).is_ok() {
                is_large(before)
            } else {
                self.shared.fetch_add(delta, relaxed);
                self.collisions.fetch_add(1, relaxed) >= STRIPED_AFTER
            }
        };
        if stripe {
            let make = || PerThread::new(self.account.clone());
            _ = self.stripes.get_or_make(&self.account, make); // else the sum stays shared
        }
    }

    /// Returns the sum. O(threads).
    ///
    /// The sum is exact if no thread adds meanwhile. Otherwise each concurrent addition may or may
    /// not be included, as the stripes are not read atomically.
    pub fn sum(&self) -> i64 {
        let stripes = self.stripes.get().into_iter().flat_map(PerThread::iter);
        let stripes = stripes.map(|s| s.load(Ordering::Relaxed));
        stripes.fold(self.shared.load(Ordering::Relaxed), u64::wrapping_add).cast_signed()
    }
}

impl<A: Account + Clone> Drop for StripedCounter<A> {
    fn drop(&mut self) {
        if self.stripes.get().is_some() {
            self.account.refund(OnceBox::<PerThread<AtomicU64, A>>::BYTES);
        }
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
                    for i in 0..4000 {
                        counter.add(if i % 4 == 3 { -1 } else { t });
                    }
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert!(counter.stripes.get().is_some(), "the stripes are tested");
        assert_eq!(counter.sum(), (1 + 2 + 3) * 3000 - 4 * 1000);
    }

    #[test]
    fn a_small_sum_is_striped_once_threads_collide() {
        let counter = StripedCounter::new(());
        for collisions in [0, STRIPED_AFTER] {
            counter.collisions.store(collisions, Ordering::Relaxed);
            (0..5000).for_each(|n| counter.add(if n % 2 == 0 { 1 } else { -1 }));
            assert!(counter.stripes.get().is_none(), "one thread meets no other");
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while counter.stripes.get().is_none() {
                        counter.add(1);
                        counter.add(-1);
                    }
                });
            }
        });
        assert_eq!(counter.sum(), 0);
    }
}
