//! An index whose type is erased, so that the database of all trees is one type.
//!
//! A call goes through a table of functions, mixed and segregated alike.

use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_store::index::{Scannable, Search};

/// An index of numbers whose type is erased. It does not scan.
pub struct Erased(Box<dyn Points>);

/// The methods of [`Search`] that need no type.
trait Points: Send + Sync {
    fn structure(&self) -> String;
    fn get(&self, key: u64, guard: &Guard) -> Option<u64>;
    fn get_many(&self, keys: &[u64], words: &mut [Option<u64>], guard: &Guard);

    /// # Safety
    /// As for [`Search::try_insert`].
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError>;

    /// # Safety
    /// As for [`Search::replace`].
    unsafe fn replace(&self, key: u64, word: u64, guard: &Guard) -> Result<(), AllocError>;

    /// # Safety
    /// As for [`Search::remove`].
    unsafe fn remove(&self, key: u64, guard: &Guard) -> Result<(), AllocError>;

    fn count(&self) -> usize;
    fn bytes(&self) -> Option<usize>;
    fn pool_stats(&self) -> Vec<PoolStats>;
}

impl<I: Search<Form = u64>> Points for I {
    fn structure(&self) -> String {
        Search::structure(self)
    }
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        Search::get(self, key, guard)
    }
    fn get_many(&self, keys: &[u64], words: &mut [Option<u64>], guard: &Guard) {
        Search::get_many(self, keys, words, guard);
    }
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { Search::try_insert(self, key, word, guard) }
    }
    unsafe fn replace(&self, key: u64, word: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        unsafe { Search::replace(self, key, word, guard) }
    }
    unsafe fn remove(&self, key: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        unsafe { Search::remove(self, key, guard) }
    }
    fn count(&self) -> usize {
        Search::count(self)
    }
    fn bytes(&self) -> Option<usize> {
        Search::bytes(self)
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        Search::pool_stats(self)
    }
}

impl Erased {
    /// The index without its type.
    pub fn of(index: impl Search<Form = u64>) -> Self {
        Self(Box::new(index))
    }
}

// SAFETY: each call is that of the inner index, which keeps the clauses. It does not scan (S4).
unsafe impl Search for Erased {
    type Form = u64;

    /// Fails: only [`Erased::of`] knows a structure.
    fn make(_options: &Options) -> Result<Self, AllocError> {
        Err(AllocError::Address)
    }

    silvics_store::pass_on!(0: structure get get_many try_insert replace remove count bytes pool_stats);
}

/// Whether an index scans is known when a table is made, as for [`silvics_tpcc::Scrambled`].
impl Scannable for Erased {}
