//! Index calls of transactions, with the time that they take.

use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_store::index::{FormOf, Search};
use std::cell::Cell;
use std::ops::Bound;

thread_local! {
    /// The ticks that the calling thread has spent in lookups.
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// The ticks of this machine's time-stamp counter. It is not ordered with the reads before it,
/// which is within some nanoseconds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: each processor of this architecture has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Returns the ticks that the calling thread has spent in lookups since it last asked.
pub fn spent() -> u64 {
    SPENT.replace(0)
}

/// The index `I`, whose lookups are timed. A lookup includes the latch of its key.
pub struct Timed<I>(I);

// SAFETY: all methods are those of `I`, with the same options.
unsafe impl<I: Search> Search for Timed<I> {
    type Form = I::Form;

    fn make(options: &Options) -> Result<Self, AllocError> {
        I::make(options).map(Self)
    }

    fn structure(&self) -> String {
        self.0.structure()
    }

    #[inline]
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        let start = ticks();
        let found = self.0.get(key, guard);
        SPENT.set(SPENT.get() + ticks().saturating_sub(start));
        found
    }

    fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard) {
        let start = ticks();
        self.0.get_many(keys, words, guard);
        SPENT.set(SPENT.get() + ticks().saturating_sub(start));
    }

    fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        self.0.try_insert(key, word, guard)
    }

    fn replace(&self, key: FormOf<'_, Self>, word: u64, guard: &Guard) -> Result<(), AllocError> {
        self.0.replace(key, word, guard)
    }

    fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        self.0.remove(key, guard)
    }

    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        self.0.walk(bounds, descending, guard, visit);
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
