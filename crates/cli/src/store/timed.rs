//! An index that measures its share of a thread's time.
//!
//! Each [`SAMPLED`]th transaction is timed by the processor's time-stamp counter, from its
//! beginning to that of the next one, and so are all calls of the index in it. The index's share of
//! these transactions counts for all of them. A pause of the thread is in both times, so the share
//! is never above 1. The time of the measurement itself, measured at first, is taken off. Without
//! such a counter, as on other machines than x86-64, the time is that of [`std::time::Instant`].
//!
//! A timed call begins when all reads before it have ended, and ends when its own have. So a timed
//! transaction takes longer than others, whose lookups may overlap.
//!
//! A scan's time includes that of the store's visitor, which is called for each entry: it copies
//! the key and begins to fetch the row.

use silvics::{AllocError, Guard, Options};
use silvics_store::index::{FormOf, Scannable, Search};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::LazyLock;

/// One of this many transactions is timed. The number is prime, so that what happens once in a
/// number of transactions is not always, or never, in one that is timed.
pub const SAMPLED: u32 = 19;

/// The index `I`, whose calls are timed.
pub struct Timed<I>(pub I);

/// Ticks of transactions that were timed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// All ticks, and those in the index.
    all: u64,
    index: u64,
    /// The calls of the index.
    calls: u64,
}

impl Sum {
    const ZERO: Self = Self { all: 0, index: 0, calls: 0 };

    /// The sums of two threads.
    pub fn and(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            index: self.index + other.index,
            calls: self.calls + other.calls,
        }
    }

    /// The index's share of the time, from 0 to 1, or `None` if nothing was timed.
    pub fn share(self) -> Option<f64> {
        if self.all == 0 {
            return None;
        }
        let calls = self.calls as f64;
        let (own, index) = (calls * EMPTY.own, calls * EMPTY.index);
        let all = (self.all as f64 - own).max(1.0);
        Some(((self.index as f64 - index) / all).clamp(0.0, 1.0))
    }
}

std::thread_local! {
    static SUM: Cell<Sum> = const { Cell::new(Sum::ZERO) };
    /// The sum of a transaction that is being timed.
    static CURRENT: Cell<Option<Sum>> = const { Cell::new(None) };
    /// When the current transaction began.
    static START: Cell<u64> = const { Cell::new(0) };
    static TURN: Cell<u32> = const { Cell::new(0) };
}

/// Returns the sum of this thread since the last call of this function. A transaction that has not
/// ended is not in it.
pub fn take() -> Sum {
    CURRENT.set(None);
    TURN.set(0);
    SUM.take()
}

/// A transaction of this thread begins, and the one before has ended.
#[inline]
pub fn begin() {
    if let Some(ended) = CURRENT.take() {
        let all = ticks().saturating_sub(START.get());
        SUM.set(SUM.get().and(Sum { all, ..ended }));
    }
    let turn = TURN.get();
    TURN.set((turn + 1) % SAMPLED);
    if turn == SAMPLED - 1 {
        CURRENT.set(Some(Sum::ZERO));
        START.set(ticks());
    }
}

/// The ticks that a timed call takes without what it calls.
struct Empty {
    /// All of them, and the part that counts as time of the index.
    own: f64,
    index: f64,
}

static EMPTY: LazyLock<Empty> = LazyLock::new(|| {
    const CALLS: u32 = 100;
    let before = CURRENT.get();
    let mut rounds: Vec<(u64, u64)> = (0..101)
        .map(|_| {
            CURRENT.set(Some(Sum::ZERO));
            let start = ticks();
            (0..CALLS).for_each(|_| timed(|| ()));
            let own = ticks().saturating_sub(start);
            (own, CURRENT.get().map_or(0, |sum| sum.index))
        })
        .collect();
    CURRENT.set(before);
    rounds.sort_unstable();
    let (own, index) = rounds[rounds.len() / 2];
    let each = |ticks: u64| ticks as f64 / f64::from(CALLS);
    Empty { own: each(own), index: each(index) }
});

/// The processor's time-stamp counter, when all reads before it have ended, and before later ones
/// begin: the misses of a call are in its time.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: each x86-64 processor has these instructions.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// The nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn ticks() -> u64 {
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Makes a call, and times it if the current transaction is timed.
#[inline(always)]
fn timed<T>(call: impl FnOnce() -> T) -> T {
    if CURRENT.get().is_none() {
        return call();
    }
    let start = ticks();
    let result = call();
    let index = ticks().saturating_sub(start);
    CURRENT.set(CURRENT.get().map(|sum| sum.and(Sum { all: 0, index, calls: 1 })));
    result
}

// SAFETY: each call is that of the inner index, which keeps S1 to S6.
unsafe impl<I: Search> Search for Timed<I> {
    type Form = I::Form;

    const LISTS: bool = I::LISTS;

    fn make(options: &Options) -> Result<Self, AllocError> {
        I::make(options).map(Self)
    }
    #[inline(always)]
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        timed(|| self.0.get(key, guard))
    }
    #[inline]
    fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard) {
        timed(|| self.0.get_many(keys, words, guard));
    }
    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        // SAFETY: the caller's promise.
        timed(|| unsafe { self.0.try_insert(key, word, guard) })
    }
    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        timed(|| unsafe { self.0.replace(key, word, guard) })
    }
    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        timed(|| unsafe { self.0.remove(key, guard) })
    }
    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        timed(|| self.0.walk(bounds, descending, guard, visit));
    }

    silvics_store::pass_on!(0: structure scans count bytes pool_stats);
}

impl<I: Scannable> Scannable for Timed<I> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Transactions that spend half of their time in the index.
    fn transactions(number: u32) {
        let sleep = || std::thread::sleep(Duration::from_micros(100));
        for _ in 0..number {
            begin();
            timed(sleep);
            sleep();
        }
    }

    #[test]
    fn sampled_transactions_stand_for_all() {
        take();
        transactions(3 * SAMPLED);
        begin();
        let sum = take();
        assert_eq!(sum.calls, 3);
        let share = sum.share().unwrap();
        assert!(share > 0.0 && share < 1.0, "{sum:?}");
        assert!(sum.index < sum.all, "the other half is not in the index: {sum:?}");
    }

    #[test]
    fn transactions_that_are_not_timed_or_have_not_ended_do_not_count() {
        take();
        transactions(SAMPLED);
        let sum = take();
        assert_eq!((sum.calls, sum.share()), (0, None));
        timed(|| ());
        assert_eq!(take().calls, 0);
    }

    /// A thousand empty calls are no time of the index.
    #[test]
    fn the_measurement_does_not_count() {
        assert!(EMPTY.index > 0.0 && EMPTY.index <= EMPTY.own);
        let index = (1000.0 * EMPTY.index) as u64;
        let all = (1000.0 * EMPTY.own) as u64 + 1_000_000;
        let share = Sum { all, index, calls: 1000 }.share().unwrap();
        assert!(share < 1e-3, "{share}");
        let half = Sum { all, index: index + 500_000, calls: 1000 }.share().unwrap();
        assert!((0.499..0.501).contains(&half), "{half}");
    }
}
