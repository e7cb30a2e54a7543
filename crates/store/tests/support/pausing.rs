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

    silvics_store::pass_on!(0: structure get get_many try_insert replace remove count bytes pool_stats scans);
}

impl Scannable for Pausing {}
