//! An index that pauses, so that a test decides what happens between two steps of a transaction.

use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_store::index::{Named, Scannable, Search};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Bound;

type Call = Box<dyn FnOnce()>;

std::thread_local! {
    /// The calls after this thread's next walks.
    static CALLS: RefCell<VecDeque<Option<Call>>> = const { RefCell::new(VecDeque::new()) };
}

/// Calls `call` on this thread after a walk of a [`Pausing`] index, when some walks have been made
/// before it.
pub(crate) fn after_walk(walks: usize, call: impl FnOnce() + 'static) {
    CALLS.with_borrow_mut(|calls| {
        calls.resize_with(walks, || None);
        calls.push_back(Some(Box::new(call)));
    });
}

/// An index whose scans can be followed by other transactions before the rows are read.
pub(crate) struct Pausing(Named<u64>);

// SAFETY: each call is that of the inner index, which keeps S1 to S6. A call after a walk does not
// use the guard of the walk.
unsafe impl Search for Pausing {
    type Form = u64;

    fn make(options: &Options) -> Result<Self, AllocError> {
        Named::make(options).map(Self)
    }
    fn structure(&self) -> String {
        self.0.structure()
    }
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.0.get(key, guard)
    }
    fn get_many(&self, keys: &[u64], words: &mut [Option<u64>], guard: &Guard) {
        self.0.get_many(keys, words, guard);
    }
    unsafe fn try_insert(
        &self,
        key: u64,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.try_insert(key, word, guard) }
    }
    unsafe fn replace(&self, key: u64, word: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.replace(key, word, guard) }
    }
    unsafe fn remove(&self, key: u64, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.remove(key, guard) }
    }
    fn walk(
        &self,
        bounds: (Bound<u64>, Bound<u64>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(u64, u64) -> bool,
    ) {
        self.0.walk(bounds, descending, guard, visit);
        let next = |calls: &mut VecDeque<Option<Call>>| calls.pop_front().flatten();
        if let Some(call) = CALLS.with_borrow_mut(next) {
            call();
        }
    }
    fn scans(&self) -> bool {
        true
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

impl Scannable for Pausing {}
