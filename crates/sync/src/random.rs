//! Random numbers for structures, such as the heights of towers.

/// A random number that the schedule chooses, so that a replay builds the same towers.
#[cfg(silvics_shuttle)]
pub use crate::model::random;

/// A random number by Marsaglia's xorshift64*, with one stream per thread. Its upper 16 bits are 0.
#[cfg(not(silvics_shuttle))]
#[inline]
pub fn random() -> u64 {
    use std::cell::Cell;
    crate::thread_local! {
        static STATE: Cell<u64> = Cell::new(0);
    }
    STATE
        .try_with(|state| {
            let mut x = state.get();
            if x == 0 {
                let index = crate::per_thread::thread_index().map_or(0, |i| i.get() as u64);
                x = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            }
            x ^= x >> 12;
            x ^= x << 25;
            x ^= x >> 27;
            state.set(x);
            x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
        })
        .unwrap_or(u64::MAX) // a thread that ends; a list takes a tower of one level
}
