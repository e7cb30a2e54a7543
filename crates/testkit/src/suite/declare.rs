//! The suite as macros that declare its tests.

use crate::Outcome;

/// Fails a test whose property does not hold.
///
/// # Panics
/// Panics with the failure's evidence.
#[track_caller]
pub fn holds(outcome: Outcome) {
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// Implements the trait of a file's properties for types of keys.
macro_rules! suites {
    ($file:ident $face:ident [$($key:ty),*] $properties:tt) => {
        $(suites! { @ $file $face $key, $properties })*
    };
    (@ $file:ident $face:ident $key:ty, { $($property:ident)* }) => {
        impl Suite for $key {
            $(
                fn $property(make: Make<dyn $face<Self>>) -> Outcome {
                    crate::$file::$property(make)
                }
            )*
        }
    };
}

/// Declares the functions that the suite's tests call: properties of indexes whose type is hidden.
/// They are not generic, so they are compiled here once, and not for every index and test binary.
macro_rules! compiled {
    ($form:ident, $face:ident: $($file:ident: $($property:ident)*;)*) => {
        pub mod $form {
            $(
                pub mod $file {
                    use crate::Outcome;
                    use crate::make::Make;
                    use silvics::dynamic::$face;
                    use silvics::key::Prefixed;

                    /// The properties in this file, for a type of keys.
                    pub trait Suite {
                        $(fn $property(make: Make<dyn $face<Self>>) -> Outcome;)*
                    }
                    suites! { $file $face [u64, u128, [u8], Prefixed<'static>] { $($property)* } }
                }
            )*
        }
    };
}

/// The properties that [`crate::index_suite!`] and [`crate::fault_suite!`] call, by maker and file.
#[doc(hidden)]
pub mod compiled {
    compiled! { points, Points:
        sequential: oracle oracle_long orders extremes;
        key_sum: key_sum;
        presence: under_writers;
        batches: as_one_by_one under_writers nth_faults;
        histories: histories;
        memory: churn long_churn live_objects_are_reachable threads_that_end
            dropped_with_garbage_elsewhere held_guards_keep;
        limit: limits limit_among_threads;
        shrinking: shrink;
        guards: foreign foreign_garbage shared;
        reclaim: garbage_under_a_held_pin;
        faults: nth_fails nth_panics creation among_threads user_panics;
    }
    compiled! { scans, Scans:
        ranges: oracle syntax under_writers under_a_held_guard;
        cursors: oracle under_writers sent_and_parked;
        histories: scan_histories;
        memory: live_objects_after_scans;
        reclaim: scans_under_churn parked_cursors unfinished_scans;
        guards: foreign_scans;
        faults: user_panics_in_scans;
    }
    compiled! { ends, Ends:
        ends: sequential histories held_guards_keep;
        histories: end_histories;
    }
    compiled! { atomic, Atomic:
        atomic_ranges: reads foreign_guards;
        histories: range_histories;
    }
    compiled! { updates, Updates:
        atomic_ranges: updates update_panics;
        histories: update_histories;
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
/// With `scans`, the type is an [`silvics::OrderedScan`], and its properties are added. With
/// `ends`, it is also an [`silvics::OrderedEnds`], with `atomic` an [`silvics::AtomicRanges`], too,
/// and with `updates` an [`silvics::RangeUpdates`]. `points` is the form without any. The key
/// type is the index's. (`reference` is for [`crate::reference::LockedMap`], which scans but has no
/// nodes that a guard could keep.) The properties run on the index behind a trait object
/// ([`crate::make`]), so another index costs little to compile.
#[macro_export]
macro_rules! index_suite {
    ($name:ident, $index:ty) => {
        $crate::index_suite!(@module $name, $index, [
            held_guards_keep: memory::held_guards_keep,
            garbage_under_a_held_pin: reclaim::garbage_under_a_held_pin,
        ],);
    };
    ($name:ident, $index:ty, points) => {
        $crate::index_suite!($name, $index);
    };
    ($name:ident, $index:ty, ends) => {
        $crate::index_suite!(@ends $name, $index,);
    };
    ($name:ident, $index:ty, atomic) => {
        $crate::index_suite!(@atomic $name, $index,);
    };
    ($name:ident, $index:ty, updates) => {
        $crate::index_suite!(@atomic $name, $index, updates: [
            updates_as_a_map: atomic_ranges::updates,
            updates_that_panic: atomic_ranges::update_panics,
            update_histories: histories::update_histories,
        ],);
    };
    (@atomic $name:ident, $index:ty, $($more:tt)*) => {
        $crate::index_suite!(@ends $name, $index, atomic: [
            ranges_at_one_moment: atomic_ranges::reads,
            foreign_guards_on_ranges: atomic_ranges::foreign_guards,
            range_histories: histories::range_histories,
        ], $($more)*);
    };
    (@ends $name:ident, $index:ty, $($more:tt)*) => {
        $crate::index_suite!(@scans $name, $index, [
            held_guards_keep: memory::held_guards_keep,
            garbage_under_a_held_pin: reclaim::garbage_under_a_held_pin,
        ], ends: [
            ends_one_by_one: ends::sequential,
            ends_histories: ends::histories,
            long_histories_with_ends: histories::end_histories,
            held_guards_keep_what_is_popped: ends::held_guards_keep,
        ], $($more)*);
    };
    ($name:ident, $index:ty, scans) => {
        $crate::index_suite!(@scans $name, $index, [
            held_guards_keep: memory::held_guards_keep,
            garbage_under_a_held_pin: reclaim::garbage_under_a_held_pin,
        ],);
    };
    ($name:ident, $index:ty, reference) => {
        $crate::index_suite!(@scans $name, $index, [],);
    };
    (@scans $name:ident, $index:ty, $points:tt, $($more:tt)*) => {
        $crate::index_suite!(@module $name, $index, $points, scans: [
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
        ], $($more)*);
    };
    (@module $name:ident, $index:ty, [$($points:tt)*], $($form:ident: [$($more:tt)*],)*) => {
        mod $name {
            #[allow(unused_imports, clippy::wildcard_imports)]
            use super::*;
            $crate::index_suite!(@tests $index, points,
                oracle: sequential::oracle,
                oracle_long: sequential::oracle_long,
                insertion_orders: sequential::orders,
                extreme_keys_and_values: sequential::extremes,
                key_sum: key_sum::key_sum,
                presence_under_writers: presence::under_writers,
                batches_as_one_by_one: batches::as_one_by_one,
                batches_under_writers: batches::under_writers,
                histories: histories::histories,
                churn: memory::churn,
                live_objects_are_reachable: memory::live_objects_are_reachable,
                threads_that_end: memory::threads_that_end,
                dropped_with_garbage_elsewhere: memory::dropped_with_garbage_elsewhere,
                memory_limits: limit::limits,
                memory_limit_among_threads: limit::limit_among_threads,
                shrink: shrinking::shrink,
                foreign_guards: guards::foreign,
                foreign_guards_keep_no_garbage: guards::foreign_garbage,
                guards_shared_by_indexes: guards::shared,
                $($points)*
            );
            $($crate::index_suite!(@tests $index, $form, $($more)*);)*
        }
    };
    (@tests $index:ty, $form:ident, $($test:ident: $file:ident::$property:ident,)*) => {
        $(
            #[test]
            fn $test() {
                $crate::index_suite!(@holds $index, $form, $file::$property);
            }
        )*
    };
    (@holds $index:ty, $form:ident, $file:ident::$property:ident) => {
        $crate::holds($crate::outcome!($index, $form::$file::$property));
    };
}

/// Runs a property of the suite on an index type and returns its [`Outcome`](crate::Outcome):
/// `outcome!(Type, points::file::name)`, or `scans` for a property that needs ranges.
#[macro_export]
macro_rules! outcome {
    ($index:ty, $form:ident::$file:ident::$property:ident) => {
        <$crate::make::KeyOf<$index> as $crate::compiled::$form::$file::Suite>::$property(
            $crate::make::$form::<$index>,
        )
    };
}
