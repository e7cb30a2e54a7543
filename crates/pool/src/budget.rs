//! Counts the bytes that an index holds, and limits them.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | `held` | `take`, `give`, `held` | Relaxed | a count: the RMWs lose nothing and publish nothing |
//! | `reserved` | all | Relaxed | a count; a stale one admits or refuses a few bytes |

use crate::AllocError;
use silvics_sync::Refused;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::per_thread::Account;
use std::cell::Cell;

std::thread_local! {
    /// Whether this thread may use reserves.
    static MAY_USE: Cell<bool> = const { Cell::new(false) };
}

/// The bytes held from the system by the pools that share this budget, and their limit.
///
/// A pool takes whole slabs, so it writes this line once per slab, not per object. A pool that
/// [starts small](crate::Config::starting_small) writes it for each chunk of its first objects.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    limit: usize,
    /// The bytes below the limit that are kept for [`Budget::with_reserves`].
    reserved: AtomicUsize,
}

impl Budget {
    /// Makes a budget of `limit` bytes, or an unlimited one for `None`.
    pub fn new(limit: Option<usize>) -> Self {
        let (held, reserved) = Default::default();
        Self { held, limit: limit.unwrap_or(usize::MAX), reserved }
    }

    /// Takes `bytes`, unless that would exceed the limit, less the bytes that are reserved.
    pub fn take(&self, bytes: usize) -> Result<(), AllocError> {
        let reserved = if MAY_USE.get() { 0 } else { self.reserved.load(Ordering::Relaxed) };
        let most = self.limit - reserved;
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|&after| after <= most)
            })
            .map(|_| ())
            .map_err(|held| {
                let held = held.saturating_add(reserved);
                AllocError::Limit { requested: bytes, held, limit: self.limit }
            })
    }

    /// Keeps up to `bytes` below the limit for [`Budget::with_reserves`], and at most a sixteenth
    /// of the limit for all callers. Returns the number of bytes, 0 if there is no limit.
    pub fn reserve(&self, bytes: usize) -> usize {
        let Some(limit) = self.limit() else { return 0 };
        let more = |reserved: usize| reserved + bytes.min((limit / 16).saturating_sub(reserved));
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let before = self.reserved.fetch_update(success, failure, |now| Some(more(now)));
        before.map_or(0, |before| more(before) - before)
    }

    /// Keeps these bytes no longer.
    pub fn unreserve(&self, bytes: usize) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Lets this thread take reserved bytes of all budgets meanwhile. This is for work that needs
    /// some memory in order to return more.
    pub fn with_reserves<R>(work: impl FnOnce() -> R) -> R {
        struct Reset(bool);
        impl Drop for Reset {
            fn drop(&mut self) {
                MAY_USE.set(self.0);
            }
        }
        let _reset = Reset(MAY_USE.replace(true));
        work()
    }

    /// The error of an object of `requested` bytes that was not made.
    pub fn error_of(&self, refused: Refused, requested: usize) -> AllocError {
        match refused {
            Refused::Account => {
                AllocError::Limit { requested, held: self.held(), limit: self.limit }
            }
            Refused::Allocation => AllocError::System { requested },
        }
    }

    /// Returns `bytes` to the budget.
    pub fn give(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "gave back {bytes} of {before}");
    }

    /// The bytes held at this moment. O(1).
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The bytes left below the limit; almost all of the address space if there is no limit.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.held())
    }

    /// The limit, or `None` if there is none.
    pub fn limit(&self) -> Option<usize> {
        (self.limit != usize::MAX).then_some(self.limit)
    }
}

impl Account for Budget {
    fn admit(&self, bytes: usize) -> bool {
        self.take(bytes).is_ok()
    }

    fn refund(&self, bytes: usize) {
        self.give(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_for_those_who_may_use_it() {
        let budget = Budget::new(Some(1600));
        assert_eq!((budget.reserve(60), budget.reserve(60)), (60, 40));
        assert_eq!(budget.take(1500), Ok(()));
        let refused = AllocError::Limit { requested: 1, held: 1600, limit: 1600 };
        assert_eq!(budget.take(1), Err(refused));
        assert_eq!(Budget::with_reserves(|| budget.take(90)), Ok(()));
        assert!(budget.take(1).is_err());
        budget.unreserve(100);
        assert_eq!((budget.take(10), budget.held()), (Ok(()), 1600));
        assert_eq!(Budget::new(None).reserve(60), 0);
    }

    #[test]
    fn the_limit_is_exact_and_failure_takes_nothing() {
        let budget = Budget::new(Some(100));
        assert_eq!(budget.take(60), Ok(()));
        assert_eq!(budget.take(41), Err(AllocError::Limit { requested: 41, held: 60, limit: 100 }));
        assert_eq!(budget.take(40), Ok(()));
        assert_eq!(budget.held(), 100);
        budget.give(100);
        assert_eq!(budget.held(), 0);
        assert!(Budget::new(None).take(usize::MAX).is_ok());
    }
}
