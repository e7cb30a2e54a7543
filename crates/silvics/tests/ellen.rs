//! The conformance suite on `ext-lf`.

use silvics::bst::build::{Baseline, Fixed};
use silvics::{EllenTree, Pooled, Shared};
use silvics_testkit::index_suite;

index_suite!(ext_lf_pooled, EllenTree<Pooled>, scans);
index_suite!(ext_lf_shared, EllenTree<Shared>, scans);
index_suite!(ext_lf_fixed_pooled, EllenTree<Pooled, Fixed>, scans);
index_suite!(ext_lf_fixed_shared, EllenTree<Shared, Fixed>, scans);
index_suite!(ext_lf_baseline_pooled, EllenTree<Pooled, Baseline>, scans);
index_suite!(ext_lf_baseline_shared, EllenTree<Shared, Baseline>, scans);
