//! An index that measures its own time.
//!
//! One call of [`SAMPLED`] is timed by the processor's time-stamp counter, and counts for all of
//! them. The counter's own time, measured at first, is taken off. Without such a counter, as on
//! other machines than x86-64, the time is that of [`std::time::Instant`].

use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_store::index::{FormOf, Scannable, Search};
use std::cell::Cell;
use std::ops::Bound;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// One of this many calls is timed.
pub const SAMPLED: u32 = 16;

/// The index `I`, whose calls are timed.
pub struct Timed<I>(pub I);

/// The time of calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    ticks: u64,
    calls: u64,
}

impl Sum {
    /// The ticks of all calls, extrapolated from those that were timed.
    pub fn ticks(self) -> f64 {
        let own = self.calls as f64 * CLOCK.own;
        (self.ticks as f64 - own).max(0.0) * f64::from(SAMPLED)
    }

    /// The time of all calls.
    pub fn seconds(self) -> f64 {
        self.ticks() * CLOCK.seconds
    }
}

std::thread_local! {
    static SUM: Cell<Sum> = const { Cell::new(Sum { ticks: 0, calls: 0 }) };
    static TURN: Cell<u32> = const { Cell::new(0) };
}

/// Returns the time of this thread's calls since the last call of this function.
pub fn take() -> Sum {
    SUM.take()
}

/// The counter: the seconds of a tick, and the ticks between two readings.
struct Clock {
    seconds: f64,
    own: f64,
}

static CLOCK: LazyLock<Clock> = LazyLock::new(|| {
    let (start, first) = (Instant::now(), ticks());
    while start.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    let (time, passed) = (start.elapsed(), ticks().wrapping_sub(first));
    let mut own: Vec<u64> = (0..1000)
        .map(|_| {
            let first = ticks();
            ticks().wrapping_sub(first)
        })
        .collect();
    own.sort_unstable();
    Clock { seconds: time.as_secs_f64() / passed.max(1) as f64, own: own[own.len() / 2] as f64 }
});

/// The processor's time-stamp counter. It is not ordered with the reads before it, which is within
/// some nanoseconds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: each x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn ticks() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Makes a call, and times it if it is its turn.
#[inline(always)]
fn timed<T>(call: impl FnOnce() -> T) -> T {
    let turn = TURN.get();
    TURN.set(turn.wrapping_add(1));
    if !turn.is_multiple_of(SAMPLED) {
        return call();
    }
    let start = ticks();
    let result = call();
    let mut sum = SUM.get();
    sum.ticks += ticks().wrapping_sub(start);
    sum.calls += 1;
    SUM.set(sum);
    result
}

// SAFETY: each call is that of the inner index, which keeps S1 to S5.
unsafe impl<I: Search> Search for Timed<I> {
    type Form = I::Form;

    fn make(options: &Options) -> Result<Self, AllocError> {
        I::make(options).map(Self)
    }
    fn structure(&self) -> String {
        self.0.structure()
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
    fn scans(&self) -> bool {
        self.0.scans()
    }
    fn count(&self) -> usize {
        self.0.count()
    }
    fn bytes(&self) -> Option<usize> {
        self.0.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }
}

impl<I: Scannable> Scannable for Timed<I> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_calls_stand_for_all() {
        take();
        for _ in 0..10 * SAMPLED {
            timed(|| std::thread::sleep(Duration::from_micros(10)));
        }
        let sum = take();
        assert_eq!(sum.calls, 10);
        // Each call sleeps for 10 µs or more.
        assert!(sum.seconds() > 10e-6 * 5.0 * f64::from(SAMPLED), "{sum:?}");
        assert_eq!(take().calls, 0);
    }
}
