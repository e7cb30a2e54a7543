//! The property named beside each planted mistake refutes it. The properties run behind a trait
//! object, as the suite does, so that this layer hides no mistake.

use silvics_testkit::broken::{Broken, mistakes};
use silvics_testkit::{
    Outcome, atomic_ranges, ends, histories, key_sum, limit, make, memory, outcome, ranges,
};

/// The runs of a property in which it must refute a mistake once. Many mistakes show only if
/// threads meet, which is rarer on a machine that has much else to do. A run takes a part of a
/// second, and the first that refutes the mistake is the last.
const RUNS: usize = 32;

/// Fails unless a property refutes a mistake.
#[track_caller]
fn refuted(mistake: &str, property: impl FnMut() -> Outcome) {
    match std::iter::repeat_with(property).take(RUNS).find_map(Outcome::err) {
        Some(failure) => println!("found: {failure}"),
        None => panic!("{mistake} passes"),
    }
}

/// Declares that a property refutes a mistake.
macro_rules! found {
    ($($test:ident: $mistake:ident by $form:ident::$file:ident::$property:ident,)*) => {
        $(
            #[test]
            fn $test() {
                refuted(stringify!($mistake), || {
                    outcome!(Broken<mistakes::$mistake>, $form::$file::$property)
                });
            }
        )*
    };
}

found! {
    a_lost_update: LostUpdate by points::histories::histories,
    a_stale_value_from_remove: StaleRemove by points::histories::histories,
    two_removals_of_one_key: TwoWinners by points::key_sum::key_sum,
    two_removals_of_one_key_in_histories: TwoWinners by points::histories::histories,
    two_inserts_of_one_key: CheckThenInsert by points::key_sum::key_sum,
    a_drifting_len: DriftingLen by points::sequential::oracle,
    a_compare_exchange_that_does_not_compare: BlindExchange by points::sequential::oracle,
    a_try_insert_that_overwrites: OverwritingTryInsert by points::sequential::oracle,
    a_key_taken_for_a_sentinel: SentinelKey by points::sequential::extremes,
    a_batch_cut_short: WholeGroupsOnly by points::sequential::oracle,
    a_batch_in_another_order: FirstOfDuplicates by points::batches::as_one_by_one,
    a_batch_that_looks_first: BatchLooksFirst by points::histories::histories,
    a_batch_that_goes_on: BatchGoesOn by points::limit::limits,
    a_range_by_rank: RankedRange by scans::ranges::under_writers,
    a_range_by_rank_in_histories: RankedRange by scans::histories::scan_histories,
    a_bound_taken_for_another: ClosedRange by scans::ranges::oracle,
    a_cursor_that_loses_its_place: LostPlace by scans::cursors::oracle,
    a_cursor_that_loses_its_place_under_writers: LostPlace by scans::cursors::under_writers,
    a_seek_in_two_steps: TwoStepSeek by scans::cursors::under_writers,
    a_leak_in_churn: Leak by points::memory::churn,
    a_leak_by_objects: Leak by points::memory::live_objects_are_reachable,
    a_rare_leak: RareLeak by points::memory::live_objects_are_reachable,
    a_leak_by_threads: Leak by points::memory::threads_that_end,
    a_leak_at_the_limit: Leak by points::limit::limits,
    an_upsert_half_done: HalfUpsert by points::limit::limits,
    an_insert_half_done: LinkedThenRefused by points::limit::limits,
    an_insert_half_done_among_threads: LinkedThenRefused by points::limit::limit_among_threads,
    a_key_that_blinks: BlinkingUpsert by points::presence::under_writers,
    a_key_that_blinks_in_ranges: BlinkingUpsert by scans::ranges::under_writers,
    a_guard_trusted: FussyGuard by points::guards::foreign,
}

/// Declares that a property refutes a mistake, on an index whose type is not hidden.
macro_rules! found_as_it_is {
    ($($test:ident: $mistake:ident by $file:ident::$property:ident,)*) => {
        $(
            #[test]
            fn $test() {
                refuted(stringify!($mistake), || {
                    $file::$property(make::exact::<Broken<mistakes::$mistake>>)
                });
            }
        )*
    };
}

found_as_it_is! {
    a_first_that_never_was: UnvalidatedFirst by ends::histories,
    a_first_that_never_was_in_long_histories: UnvalidatedFirst by histories::end_histories,
    a_pop_in_two_steps: PopInTwoSteps by ends::histories,
    a_pop_in_two_steps_in_long_histories: PopInTwoSteps by histories::end_histories,
    a_pop_of_the_next_entry: PopOfNext by ends::histories,
    a_pop_of_the_next_entry_in_long_histories: PopOfNext by histories::end_histories,
    an_entry_popped_twice: PopTwice by ends::histories,
    an_entry_popped_twice_in_long_histories: PopTwice by histories::end_histories,
    a_range_in_halves: RangeInHalves by histories::range_histories,
    a_bound_of_a_moment_taken_for_another: ClosedMoment by atomic_ranges::reads,
    a_range_update_in_parts: RangeUpdateInParts by histories::update_histories,
    a_range_update_half_done: HalfUpdate by atomic_ranges::update_panics,
    a_lost_update_as_it_is: LostUpdate by histories::histories,
    two_inserts_of_one_key_as_they_are: CheckThenInsert by key_sum::key_sum,
    a_range_by_rank_as_it_is: RankedRange by ranges::under_writers,
    a_leak_by_objects_as_it_is: Leak by memory::live_objects_are_reachable,
    an_upsert_half_done_as_it_is: HalfUpsert by limit::limits,
}

#[test]
fn objects_freed_at_once() {
    use silvics_testkit::reference::LockedMap;
    let failure = outcome!(LockedMap<u64>, points::memory::held_guards_keep).unwrap_err();
    assert!(failure.reason().contains("freed under a guard"), "{failure}");
}
