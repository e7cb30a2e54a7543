//! This package has tests only: `Map`, its keys, and the radix tree, as users of the library call
//! them. Several of the tests use what is here.

use silvics_sync::atomic::{AtomicI64, Ordering};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A number without a pattern.
#[must_use]
pub fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
}

/// A number of threads, at least one.
#[must_use]
#[allow(clippy::missing_panics_doc)]
pub fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// A value that is counted as long as it lives. The number of a dropped one is `u64::MAX`.
#[derive(Debug)]
pub struct Counted {
    /// The number by which a test knows the value.
    pub number: u64,
    live: Arc<AtomicI64>,
}

impl Counted {
    /// A value that adds itself to `live`.
    #[must_use]
    pub fn new(number: u64, live: &Arc<AtomicI64>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self { number, live: Arc::clone(live) }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.number, &self.live)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        self.number = u64::MAX;
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
