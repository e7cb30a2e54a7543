//! Counts the bytes that an index holds, and limits them.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | `held` | `take`, `give`, `held` | Relaxed | a count: the RMWs lose nothing and publish nothing |

use crate::AllocError;
use silvics_sync::Refused;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::per_thread::Account;

/// The bytes held from the system by the pools that share this budget, and their limit.
///
/// A pool takes whole slabs, so it writes this line once per slab, not per object. A pool that
/// [starts small](crate::Config::starting_small) writes it for each chunk of its first objects.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    limit: usize,
}

impl Budget {
    /// Makes a budget of `limit` bytes, or an unlimited one for `None`.
    pub fn new(limit: Option<usize>) -> Self {
        Self { held: AtomicUsize::new(0), limit: limit.unwrap_or(usize::MAX) }
    }

    /// Takes `bytes`, unless that would exceed the limit.
    pub fn take(&self, bytes: usize) -> Result<(), AllocError> {
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|&after| after <= self.limit)
            })
            .map(|_| ())
            .map_err(|held| AllocError::Limit { requested: bytes, held, limit: self.limit })
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
        self.limit - self.held()
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
