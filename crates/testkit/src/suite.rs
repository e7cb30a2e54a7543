//! The suite as declarations.

use crate::Outcome;

/// Fails a test whose property does not hold.
///
/// # Panics
/// With the failure's evidence.
#[track_caller]
pub fn holds(outcome: Outcome) {
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Declares a module of tests, one per property, for an index type:
///
/// ```
/// use silvics_testkit::index_suite;
///
/// index_suite!(skiplist_u64_pooled, silvics::SkipList<u64, silvics::Pooled>, scans);
/// index_suite!(edge_ext_lf_shared, silvics::NatarajanTree<silvics::Shared>);
/// # fn main() {} // nothing runs here: the tests belong to a test binary
/// ```
///
/// With `scans` the type is an [`silvics::OrderedScan`], whose properties are added. The key type
/// is the index's. (`reference` is for [`crate::reference::LockedMap`], which scans but has no
/// nodes that a guard could keep.)
#[macro_export]
macro_rules! index_suite {
    ($name:ident, $index:ty) => {
        $crate::index_suite!(@module $name, $index,
            held_guards_keep: memory::held_guards_keep,
            garbage_under_a_held_pin: reclaim::garbage_under_a_held_pin,
        );
    };
    ($name:ident, $index:ty, scans) => {
        $crate::index_suite!(@scans $name, $index,
            held_guards_keep: memory::held_guards_keep,
            garbage_under_a_held_pin: reclaim::garbage_under_a_held_pin,
        );
    };
    ($name:ident, $index:ty, reference) => {
        $crate::index_suite!(@scans $name, $index,);
    };
    (@scans $name:ident, $index:ty, $($test:ident: $file:ident::$property:ident,)*) => {
        $crate::index_suite!(@module $name, $index,
            ranges_as_the_oracle: ranges::oracle,
            ranges_in_every_syntax: ranges::syntax,
            ranges_under_writers: ranges::under_writers,
            ranges_under_a_held_guard: ranges::under_a_held_guard,
            cursors_as_the_oracle: cursors::oracle,
            cursors_under_writers: cursors::under_writers,
            cursors_sent_and_parked: cursors::sent_and_parked,
            scan_histories: histories::scan_histories,
            live_objects_after_scans: memory::live_objects_after_scans,
            scans_under_churn: reclaim::scans_under_churn,
            foreign_guards_on_scans: guards::foreign_scans,
            $($test: $file::$property,)*
        );
    };
    (@module $name:ident, $index:ty, $($test:ident: $file:ident::$property:ident,)*) => {
        mod $name {
            #[allow(unused_imports, clippy::wildcard_imports)]
            use super::*;
            $crate::index_suite!(@tests $index,
                oracle: sequential::oracle,
                oracle_long: sequential::oracle_long,
                insertion_orders: sequential::orders,
                extreme_keys_and_values: sequential::extremes,
                key_sum: key_sum::key_sum,
                presence_under_writers: presence::under_writers,
                histories: histories::histories,
                churn: memory::churn,
                live_objects_are_reachable: memory::live_objects_are_reachable,
                threads_that_end: memory::threads_that_end,
                dropped_with_garbage_elsewhere: memory::dropped_with_garbage_elsewhere,
                memory_limits: limit::limits,
                memory_limit_among_threads: limit::limit_among_threads,
                foreign_guards: guards::foreign,
                foreign_guards_keep_no_garbage: guards::foreign_garbage,
                guards_shared_by_indexes: guards::shared,
                $($test: $file::$property,)*
            );
            $crate::index_suite!(@long $index,
                long_churn: memory::long_churn,
            );
        }
    };
    (@tests $index:ty, $($test:ident: $file:ident::$property:ident,)*) => {
        $(
            #[test]
            fn $test() {
                $crate::holds($crate::$file::$property::<$index>());
            }
        )*
    };
    (@long $index:ty, $($test:ident: $file:ident::$property:ident,)*) => {
        $(
            #[test]
            #[ignore = "runs for minutes: just stress"]
            fn $test() {
                $crate::holds($crate::$file::$property::<$index>());
            }
        )*
    };
}
