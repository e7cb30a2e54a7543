//! The conformance suite of `silvics-testkit` on every structure of the table, in each build, with
//! each type of keys, and in pools and shared memory.

use silvics::{Pooled, Shared};
use silvics_testkit::index_suite;
use silvics_testkit::mapped::Mapped;

macro_rules! suite {
    (full $capability:ident $faults:ident $index:ty) => {
        silvics_testkit::index_suite!(
            pooled, silvics::structures::At<$index, silvics::Pooled>, $capability);
        silvics_testkit::index_suite!(
            shared, silvics::structures::At<$index, silvics::Shared>, $capability);

        /// Churn runs in constant memory over a million pairs (`just stress`: a hundred million).
        #[test]
        fn long_churn() {
            silvics_testkit::holds(silvics_testkit::outcome!($index, points::memory::long_churn));
        }
    };
    (suite $capability:ident $faults:ident $index:ty) => {
        silvics_testkit::index_suite!(
            pooled, silvics::structures::At<$index, silvics::Pooled>, $capability);
        // The gate leaves these to `just stress`, by their name.
        silvics_testkit::index_suite!(
            policy_shared, silvics::structures::At<$index, silvics::Shared>, $capability);
    };
}

silvics::structure_modules!(suite);

index_suite!(map_pooled, Mapped<u64, Pooled>);
index_suite!(map_shared, Mapped<u64, Shared>);
index_suite!(map_u128_pooled, Mapped<u128, Pooled>);
index_suite!(map_bytes_pooled, Mapped<[u8], Pooled>);
index_suite!(map_bytes_shared, Mapped<[u8], Shared>);
