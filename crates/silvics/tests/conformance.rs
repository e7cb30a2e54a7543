//! The conformance suite of `silvics-testkit` on every structure of the table, in each build, with
//! each type of keys, and in pools and shared memory. In debug builds, which the gate runs, only
//! one build of some structures is in shared memory, as the end of this file says; release builds
//! and sanitizers run all.

use silvics::art::hot::Sampled;
use silvics::blocks::Blocks;
use silvics::ca::build::Restless;
use silvics::counts::Counted;
use silvics::patricia::build::{Compact, Paper};
use silvics::patricia::policy::StandIn;
use silvics::words::Words;
use silvics::{ArtTree, Index, PatriciaTree, Pooled, Shared};
#[cfg(debug_assertions)]
use silvics::{BlockTree, CaTree, WordTree};
use silvics_testkit::index_suite;
use silvics_testkit::mapped::Mapped;
use silvics_testkit::ordmapped::OrdMapped;

macro_rules! suite {
    (alias $($build:tt)*) => {};
    (full $capability:ident $faults:ident $index:ty) => {
        suite!(suite $capability $faults $index);
        suite!(@ churn $index);
    };
    (locked $capability:ident $faults:ident $index:ty) => {
        suite!(suite $capability $faults $index);
    };
    (stress $capability:ident $faults:ident $index:ty) => {
        #[cfg(any(not(debug_assertions), silvics_poison))]
        suite!(suite $capability $faults $index);
    };
    (suite $capability:ident $faults:ident $index:ty) => {
        suite!(@ pooled $capability silvics::structures::At<$index, silvics::Pooled>);
        #[cfg(any(not(debug_assertions), silvics_poison))]
        suite!(@ shared $capability silvics::structures::At<$index, silvics::Shared>);
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

// A byte string in a trie of two characters has a long path. The stand-in of transactions aborts as
// often as its odds say, here never.
index_suite!(patricia_bits_of_bytes, PatriciaTree<[u8], Pooled, Compact<2>>, scans);
index_suite!(patricia_stand_in, PatriciaTree<u64, Pooled, Paper<16>, StandIn>, scans);

// Indexes that count their keys. In debug builds, some updates count them.
index_suite!(words_counted, Index<Counted<Words<u64, Pooled>>>, ends);
index_suite!(blocks_counted, Index<Counted<Blocks<[u8], Pooled>>>, ends);

#[cfg(debug_assertions)]
mod shared {
    use super::*;

    index_suite!(art, ArtTree<u64, Shared>, ends);
    index_suite!(art_bytes, ArtTree<[u8], Shared>, ends);
    index_suite!(words, WordTree<u64, Shared>, ends);
    index_suite!(blocks, BlockTree<[u8], Shared>, ends);
    index_suite!(ca, CaTree<u64, Shared>, updates);
}

index_suite!(map_pooled, Mapped<u64, Pooled>);
index_suite!(map_shared, Mapped<u64, Shared>);
index_suite!(map_u128_pooled, Mapped<u128, Pooled>);
index_suite!(map_bytes_pooled, Mapped<[u8], Pooled>);
index_suite!(map_bytes_shared, Mapped<[u8], Shared>);

index_suite!(ordmap_restless, OrdMapped<u64, Pooled, Restless>);
// The nodes of these have addresses of keys. Byte strings have destructors, which run in calls of
// the map alone, and the suite waits for objects in the domain: `api-tests` has them.
index_suite!(ordmap_u128_restless, OrdMapped<u128, Pooled, Restless>);
index_suite!(ordmap_u128_shared, OrdMapped<u128, Shared>);
