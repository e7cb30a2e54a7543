//! YCSB's core workload as seeded streams of operations.

mod zipf;

pub use zipf::{EXPONENT_MAX, YCSB_EXPONENT, Zipf};
