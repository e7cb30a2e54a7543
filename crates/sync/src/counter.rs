//! A counter that threads share while it is small, and stripe when it is large or contended.
//!
//! # Source
//! `erlang/otp#2190`: counters with a line for each scheduler, and a snapshot that reads them all.
//! That snapshot swaps the lines for fresh ones; here, it reads them twice.
//!
//! # Algorithm
//! A tally is two sums that never get smaller: of what was added and of what was taken off. Each
//! thread has a tally of its own, and there is one that threads share.
//! ```text
//! add(d):     d > 0 ? added += d : taken += −d, in the thread's own tally, or in the shared one
//! sum:        read all tallies
//! snapshot:   read all tallies, and read them again. If the totals are the same, no tally has
//!             changed between its two reads, since none gets smaller. So all had these values
//!             between the two passes.
//! ```
//! The totals wrap around. Two passes could agree by chance only if the threads had counted 2^64
//! between them.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | own tally | `add` load | Relaxed | – | one writer at a time (P1 of [`crate::per_thread`]) |
//! | own tally | `add` store | Release | loads of `snapshot` | a snapshot that has an addition in its first pass sees those before it in the second |
//! | shared tally | `add` | Release | loads of `snapshot` | an RMW loses nothing; as the own tally |
//! | tallies | `snapshot` loads | Acquire | `add` | see the stores; the loads of the second pass come after those of the first |
//! | – | fence of `snapshot`, between its passes | `SeqCst` | each other | of two snapshots, that with the later fence sees in its second pass what either thread has added before its own fence; so they agree on an order of the additions |
//! | `collisions` | `add` | Relaxed | – | only the number counts |
//! | tallies | `sum` loads | Relaxed | – | exact only if the caller knows that the adders have stopped; it learned this by a join or a channel, which ordered their stores before |

use crate::OnceBox;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::per_thread::{Account, PerThread, thread_index};

/// The shared sum from which on threads add to stripes of their own: a stripe takes a cache line
/// for each thread.
const STRIPED_FROM: u64 = if cfg!(any(silvics_loom, silvics_shuttle)) { 1 } else { 1024 };
/// The number of additions that met another one from which on threads add to stripes, too.
const STRIPED_AFTER: u32 = 64;

/// The attempts of a snapshot.
const ATTEMPTS: u32 = if cfg!(any(silvics_loom, silvics_shuttle)) { 2 } else { 1000 };

/// Whether the threads that add to a counter share one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Once the sum is large, or threads collide, each thread adds to a cache line of its own.
    /// Reading the sum takes O(threads).
    #[default]
    Striped,
    /// All threads write one cache line. Reading the sum takes O(1).
    Single,
}

/// The sums of all additions to a counter, and of all that was taken off it.
#[derive(Debug, Default)]
struct Tally {
    added: AtomicU64,
    taken: AtomicU64,
}

impl Tally {
    /// The word to which a change is added, and the number that is added to it.
    #[inline(always)]
    fn place(&self, delta: i64) -> (&AtomicU64, u64) {
        (if delta < 0 { &self.taken } else { &self.added }, delta.unsigned_abs())
    }

    fn read(&self, ordering: Ordering) -> Totals {
        Totals { added: self.added.load(ordering), taken: self.taken.load(ordering) }
    }
}

/// The sums of several tallies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Totals {
    added: u64,
    taken: u64,
}

impl Totals {
    fn sum(self) -> i64 {
        self.added.wrapping_sub(self.taken).cast_signed()
    }
}

/// A signed sum, striped over threads once it is large or contended.
///
/// Adding to a striped sum writes a cache line of the calling thread alone; reading visits all
/// stripes. Before, the sum is two words of one line, which all threads write.
#[derive(Debug)]
pub struct StripedCounter<A: Account + Clone = ()> {
    stripes: OnceBox<PerThread<Tally, A>>,
    /// The sums of additions before there were stripes, by threads whose thread-local variables are
    /// destroyed, and by those whose stripe could not be allocated.
    shared: Tally,
    /// The number of additions to `shared` that met another thread's.
    collisions: AtomicU32,
    counting: Counting,
    account: A,
}

impl<A: Account + Clone> StripedCounter<A> {
    /// Makes a counter at zero. `account` is charged for its stripes.
    pub fn new(counting: Counting, account: A) -> Self {
        let collisions = AtomicU32::new(0);
        Self {
            stripes: OnceBox::default(),
            shared: Tally::default(),
            collisions,
            counting,
            account,
        }
    }

    /// Adds `delta`.
    #[inline]
    pub fn add(&self, delta: i64) {
        let own = |stripes| thread_index().and_then(|index| PerThread::get_or_make(stripes, index));
        match self.stripes.get().and_then(own) {
            Some(stripe) => {
                let (word, more) = stripe.place(delta);
                let sum = word.load(Ordering::Relaxed).wrapping_add(more);
                word.store(sum, Ordering::Release);
            }
            None => self.add_shared(delta),
        }
    }

    #[inline(never)]
    fn add_shared(&self, delta: i64) {
        let (word, more) = self.shared.place(delta);
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        let is_large = || self.shared.read(relaxed).sum().unsigned_abs() > STRIPED_FROM;
        let stripe = if cfg!(any(silvics_loom, silvics_shuttle)) {
            word.fetch_add(more, release); // one step of a schedule
            is_large()
        } else {
            let before = word.load(relaxed);
            let after = before.wrapping_add(more);
            if word.compare_exchange(before, after, release, relaxed).is_ok() {
                is_large()
            } else {
                word.fetch_add(more, release);
                self.collisions.fetch_add(1, relaxed) >= STRIPED_AFTER
            }
        };
        if stripe && self.counting == Counting::Striped {
            let make = || PerThread::new(self.account.clone());
            _ = self.stripes.get_or_make(&self.account, make); // else the sum stays shared
        }
    }

    /// The sum of all numbers that were added in the line that threads share, or taken off there.
    /// For changes by one this is how often they have written it.
    #[doc(hidden)]
    pub fn in_shared_line(&self) -> u64 {
        let Totals { added, taken } = self.shared.read(Ordering::Relaxed);
        added.wrapping_add(taken)
    }

    /// The totals of all tallies, each read once.
    fn totals(&self, ordering: Ordering) -> Totals {
        let stripes = self.stripes.get().into_iter().flat_map(PerThread::iter);
        stripes.fold(self.shared.read(ordering), |all, tally| {
            let Totals { added, taken } = tally.read(ordering);
            Totals { added: all.added.wrapping_add(added), taken: all.taken.wrapping_add(taken) }
        })
    }

    /// Returns the sum. O(threads).
    ///
    /// The sum is exact if no thread adds meanwhile. Otherwise each concurrent addition may or may
    /// not be included, as the stripes are not read atomically.
    pub fn sum(&self) -> i64 {
        self.totals(Ordering::Relaxed).sum()
    }

    /// Returns the sum at one moment during the call: linearizable with all additions. It writes
    /// nothing, and no addition waits for it. Nothing if other threads have added something during
    /// each of 1000 attempts.
    ///
    /// An attempt reads the line of each thread twice. So it fails if an addition comes within some
    /// hundred nanoseconds for each thread.
    pub fn snapshot(&self) -> Option<i64> {
        let mut before = self.totals(Ordering::Acquire);
        for _ in 0..ATTEMPTS {
            fence(Ordering::SeqCst);
            let now = self.totals(Ordering::Acquire);
            if now == before {
                return Some(now.sum());
            }
            before = now;
        }
        None
    }
}

impl<A: Account + Clone> Drop for StripedCounter<A> {
    fn drop(&mut self) {
        if self.stripes.get().is_some() {
            self.account.refund(OnceBox::<PerThread<Tally, A>>::BYTES);
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::times;
    use std::sync::Arc;

    #[test]
    fn sums_what_all_threads_added() {
        let counter = Arc::new(StripedCounter::new(Counting::Striped, ()));
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
        let shared = counter.in_shared_line();
        // How many depends on when threads collide.
        assert!((1..16_000).contains(&shared), "{shared} in the shared line");
        assert_eq!(counter.sum(), (1 + 2 + 3) * 3000 - 4 * 1000);
    }

    #[test]
    fn a_large_sum_is_striped() {
        for delta in [1, -1] {
            let counter = StripedCounter::new(Counting::Striped, ());
            (0..STRIPED_FROM).for_each(|_| counter.add(delta));
            assert!(counter.stripes.get().is_none());
            (0..10).for_each(|_| counter.add(delta));
            assert!(counter.stripes.get().is_some());
            assert_eq!(counter.in_shared_line(), STRIPED_FROM + 1);
            assert_eq!(counter.sum().unsigned_abs(), STRIPED_FROM + 10);
        }
    }

    #[test]
    fn a_small_sum_is_striped_once_threads_collide() {
        let counter = StripedCounter::new(Counting::Striped, ());
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

    #[test]
    fn a_single_counter_has_no_stripes() {
        let counter = StripedCounter::new(Counting::Single, ());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..times(100_000)).for_each(|_| counter.add(1)));
            }
        });
        assert!(counter.stripes.get().is_none());
        let all = 2 * times(100_000);
        assert_eq!((counter.sum(), counter.snapshot()), (all as i64, Some(all as i64)));
        assert_eq!(counter.in_shared_line(), all);
    }

    /// One unit moves from thread to thread: each takes it off before the next one adds it, so the
    /// sum is 0 or 1 at each moment. Reading the stripes once may see it twice, or find it in none.
    #[test]
    fn snapshots_are_sums_at_one_moment() {
        for counting in [Counting::Striped, Counting::Single] {
            let counter = StripedCounter::new(counting, ());
            counter.add(5000);
            let (turn, done) = (AtomicU32::new(0), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    let (counter, turn, done) = (&counter, &turn, &done);
                    scope.spawn(move || {
                        for round in 0..500 {
                            while turn.load(Ordering::Acquire) != 2 * round + thread {
                                crate::thread::yield_now();
                            }
                            counter.add(1);
                            counter.add(-1);
                            turn.fetch_add(1, Ordering::Release);
                        }
                        done.fetch_add(1, Ordering::Release);
                    });
                }
                let mut snapshots = u32::from(counter.snapshot().is_some());
                while done.load(Ordering::Acquire) < 2 {
                    if let Some(sum) = counter.snapshot() {
                        assert!((5000..=5001).contains(&sum), "{counting:?}: {sum}");
                        snapshots += 1;
                    }
                }
                assert!(snapshots > 0);
            });
            assert_eq!(counter.snapshot(), Some(5000));
        }
    }
}
