//! YCSB's core workload as seeded streams of operations.

mod error;
mod properties;
mod zipf;

pub use error::PropertyError;
pub use properties::{FILE_MAX, Origin, Properties, Property};
pub use zipf::{EXPONENT_MAX, YCSB_EXPONENT, Zipf};
