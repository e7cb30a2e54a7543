//! The conformance suite of `silvics-testkit` on the tree of Drachsler et al.

use silvics::bst::build::{Baseline, Fixed};
use silvics::{DrachslerTree, Pooled, Shared};
use silvics_testkit::index_suite;

index_suite!(log_int_pooled, DrachslerTree<Pooled, Fixed>, scans);
index_suite!(log_int_shared, DrachslerTree<Shared, Fixed>, scans);
index_suite!(log_int_baseline_pooled, DrachslerTree<Pooled, Baseline>, scans);
index_suite!(log_int_baseline_shared, DrachslerTree<Shared, Baseline>, scans);
