//! The conformance suite of `silvics-testkit` on the builds of `edge-ext-lf` beside the default one.

use silvics::bst::build::Fixed;
use silvics::bst::natarajan::build::{Baseline2, Collocated, Fixed2, Shifted};
use silvics::{NatarajanTree, Pooled, Shared};
use silvics_testkit::index_suite;

index_suite!(edge_ext_lf_fixed_pooled, NatarajanTree<Pooled, Fixed>, scans);
index_suite!(edge_ext_lf_fixed_shared, NatarajanTree<Shared, Fixed>, scans);
index_suite!(edge_ext_lf_shifted_pooled, NatarajanTree<Pooled, Shifted>, scans);
index_suite!(edge_ext_lf_shifted_shared, NatarajanTree<Shared, Shifted>, scans);
index_suite!(edge_ext_lf_collocated_pooled, NatarajanTree<Pooled, Collocated>, scans);
index_suite!(edge_ext_lf_collocated_shared, NatarajanTree<Shared, Collocated>, scans);

index_suite!(edge_ext_lf_2_fixed_pooled, NatarajanTree<Pooled, Fixed2>, scans);
index_suite!(edge_ext_lf_2_fixed_shared, NatarajanTree<Shared, Fixed2>, scans);
index_suite!(edge_ext_lf_2_baseline_pooled, NatarajanTree<Pooled, Baseline2>, scans);
index_suite!(edge_ext_lf_2_baseline_shared, NatarajanTree<Shared, Baseline2>, scans);
