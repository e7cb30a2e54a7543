//! The conformance suite of `silvics-testkit` on every structure of the table, in each build, with
//! each type of keys, and in pools and shared memory. In debug builds, which the gate runs, only
//! the radix tree and the map are in shared memory; release builds and sanitizers run all.

use silvics::art::hot::Sampled;
use silvics::{ArtTree, Pooled, Shared};
use silvics_testkit::index_suite;
use silvics_testkit::mapped::Mapped;

macro_rules! suite {
    (alias $($build:tt)*) => {};
    (full ends $faults:ident $index:ty) => {
        suite!(@ both ends $index);
    };
    (full updates $faults:ident $index:ty) => {
        suite!(@ both updates $index);
    };
    (full $capability:ident $faults:ident $index:ty) => {
        suite!(suite $capability $faults $index);
        suite!(@ churn $index);
    };
    (locked $capability:ident $faults:ident $index:ty) => {
        suite!(suite $capability $faults $index);
    };
    (suite $capability:ident $faults:ident $index:ty) => {
        suite!(@ pooled $capability silvics::structures::At<$index, silvics::Pooled>);
        #[cfg(any(not(debug_assertions), silvics_poison))]
        suite!(@ shared $capability silvics::structures::At<$index, silvics::Shared>);
    };
    (@ both $capability:ident $index:ty) => {
        suite!(@ pooled $capability silvics::structures::At<$index, silvics::Pooled>);
        suite!(@ shared $capability silvics::structures::At<$index, silvics::Shared>);
        suite!(@ churn $index);
    };
    (@ churn $index:ty) => {
        /// Churn runs in constant memory over 300 000 pairs (`just stress`: a hundred million).
        #[test]
        fn long_churn() {
            silvics_testkit::holds(silvics_testkit::outcome!($index, points::memory::long_churn));
        }
    };
    (@ $name:ident $capability:ident $index:ty) => {
        silvics_testkit::index_suite!($name, $index, $capability);
    };
}

silvics::structure_modules!(suite);

// The table has the radix tree without samples of its lookups.
index_suite!(art_sampled, ArtTree<u64, Pooled, Sampled>, ends);
index_suite!(art_sampled_bytes, ArtTree<[u8], Pooled, Sampled>, ends);

index_suite!(map_pooled, Mapped<u64, Pooled>);
index_suite!(map_shared, Mapped<u64, Shared>);
index_suite!(map_u128_pooled, Mapped<u128, Pooled>);
index_suite!(map_bytes_pooled, Mapped<[u8], Pooled>);
index_suite!(map_bytes_shared, Mapped<[u8], Shared>);
