//! The conformance suite on `int-lf`.

use silvics::bst::build::Baseline;
use silvics::{HowleyTree, Pooled, Shared};
use silvics_testkit::index_suite;

index_suite!(int_lf_pooled, HowleyTree<Pooled>);
index_suite!(int_lf_shared, HowleyTree<Shared>);
index_suite!(int_lf_baseline_pooled, HowleyTree<Pooled, Baseline>);
index_suite!(int_lf_baseline_shared, HowleyTree<Shared, Baseline>);
