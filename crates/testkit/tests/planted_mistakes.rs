//! The suite fails on every planted mistake, by the property named beside it.

use silvics_testkit::broken::{Broken, mistakes};
use silvics_testkit::{
    Outcome, cursors, ends, guards, histories, key_sum, limit, memory, presence, ranges, sequential,
};

/// Declares that a property refutes a mistake.
macro_rules! found {
    ($($test:ident: $mistake:ident by $file:ident::$property:ident,)*) => {
        $(
            #[test]
            fn $test() {
                let outcome: Outcome = $file::$property::<Broken<mistakes::$mistake>>();
                match outcome {
                    Err(failure) => println!("found: {failure}"),
                    Ok(()) => panic!("{} passes", stringify!($mistake)),
                }
            }
        )*
    };
}

found! {
    a_lost_update: LostUpdate by histories::histories,
    a_stale_value_from_remove: StaleRemove by histories::histories,
    two_removals_of_one_key: TwoWinners by key_sum::key_sum,
    two_removals_of_one_key_in_histories: TwoWinners by histories::histories,
    two_inserts_of_one_key: CheckThenInsert by key_sum::key_sum,
    a_drifting_len: DriftingLen by sequential::oracle,
    a_compare_exchange_that_does_not_compare: BlindExchange by sequential::oracle,
    a_try_insert_that_overwrites: OverwritingTryInsert by sequential::oracle,
    a_key_taken_for_a_sentinel: SentinelKey by sequential::extremes,
    a_batch_cut_short: WholeGroupsOnly by sequential::oracle,
    a_range_by_rank: RankedRange by ranges::under_writers,
    a_range_by_rank_in_histories: RankedRange by histories::scan_histories,
    a_bound_taken_for_another: ClosedRange by ranges::oracle,
    a_cursor_that_loses_its_place: LostPlace by cursors::oracle,
    a_cursor_that_loses_its_place_under_writers: LostPlace by cursors::under_writers,
    a_seek_in_two_steps: TwoStepSeek by cursors::under_writers,
    a_leak_in_churn: Leak by memory::churn,
    a_leak_by_objects: Leak by memory::live_objects_are_reachable,
    a_rare_leak: RareLeak by memory::live_objects_are_reachable,
    a_leak_by_threads: Leak by memory::threads_that_end,
    a_leak_at_the_limit: Leak by limit::limits,
    an_upsert_half_done: HalfUpsert by limit::limits,
    an_insert_half_done: LinkedThenRefused by limit::limits,
    an_insert_half_done_among_threads: LinkedThenRefused by limit::limit_among_threads,
    a_key_that_blinks: BlinkingUpsert by presence::under_writers,
    a_key_that_blinks_in_ranges: BlinkingUpsert by ranges::under_writers,
    a_first_that_never_was: UnvalidatedFirst by ends::histories,
    a_pop_in_two_steps: PopInTwoSteps by ends::histories,
    a_guard_trusted: FussyGuard by guards::foreign,
}

#[test]
fn objects_freed_at_once() {
    use silvics_testkit::reference::LockedMap;
    let failure = memory::held_guards_keep::<LockedMap<u64>>().unwrap_err();
    assert!(failure.reason().contains("freed under a guard"), "{failure}");
}
