//! This package has tests only: `Map`, its keys, and the radix tree, as users of the library call
//! them. Several of the tests use what is here.

use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
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

const LIVE: u64 = 0x0011_1715_A11E_0000;

/// A key or a value that knows whether it was dropped. Each use of a dropped one fails, as far as
/// its memory was not used again.
#[derive(Debug)]
pub struct Tracked {
    number: u64,
    state: AtomicU64,
    live: Arc<AtomicI64>,
}

impl Tracked {
    /// One that adds itself to `live`.
    #[must_use]
    pub fn new(number: u64, live: &Arc<AtomicI64>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self { number, state: AtomicU64::new(LIVE), live: Arc::clone(live) }
    }

    /// Its number.
    ///
    /// # Panics
    /// If it was dropped.
    #[must_use]
    pub fn number(&self) -> u64 {
        assert_eq!(self.state.load(Ordering::Relaxed), LIVE, "a dropped object is used");
        self.number
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        assert_eq!(self.state.swap(0, Ordering::Relaxed), LIVE, "dropped twice");
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Tracked {
    fn eq(&self, other: &Self) -> bool {
        self.number() == other.number()
    }
}
impl Eq for Tracked {}
impl PartialOrd for Tracked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Tracked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number().cmp(&other.number())
    }
}
