//! The conformance suite of `silvics-testkit` on every structure, build and placement.

use silvics::bst::build::{Baseline, Fixed};
use silvics::{BronsonTree, NatarajanTree, Pooled, RamachandranTree, Shared, SkipList};
use silvics_testkit::index_suite;

index_suite!(occ_avl_pooled, BronsonTree<Pooled>);
index_suite!(occ_avl_shared, BronsonTree<Shared>);

index_suite!(edge_ext_lf_pooled, NatarajanTree<Pooled>, scans);
index_suite!(edge_ext_lf_shared, NatarajanTree<Shared>, scans);

index_suite!(edge_int_lf_pooled, RamachandranTree<Pooled, Fixed>);
index_suite!(edge_int_lf_shared, RamachandranTree<Shared, Fixed>);
index_suite!(edge_int_lf_baseline_pooled, RamachandranTree<Pooled, Baseline>);
index_suite!(edge_int_lf_baseline_shared, RamachandranTree<Shared, Baseline>);

index_suite!(skiplist_u64_pooled, SkipList<u64, Pooled>, scans);
index_suite!(skiplist_u64_shared, SkipList<u64, Shared>, scans);
index_suite!(skiplist_bytes_pooled, SkipList<[u8], Pooled>, scans);
index_suite!(skiplist_bytes_shared, SkipList<[u8], Shared>, scans);
