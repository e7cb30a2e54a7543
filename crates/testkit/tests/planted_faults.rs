//! Every mistake of `broken::slips` and `broken::lists` fails or unwinds at the wrong moment. The
//! property named beside it refutes it for the right reason, behind a trait object, as the suite
//! runs.

use silvics_testkit::broken::lists::{self, SlippingList};
use silvics_testkit::broken::slips::{self, FaultyMap};
use silvics_testkit::reference::LockedMap;
use silvics_testkit::{fault_suite, faults, holds, make, outcome, reclaim};

fault_suite!(no_mistake, FaultyMap<slips::NoSlip>);
fault_suite!(no_mistake_in_a_list, SlippingList<lists::NoSlip>, scans);

#[test]
fn no_mistake_in_what_is_live() {
    type List = SlippingList<lists::NoSlip>;
    holds(outcome!(List, scans::reclaim::scans_under_churn));
    holds(outcome!(List, points::reclaim::garbage_under_a_held_pin));
    holds(outcome!(List, points::memory::live_objects_are_reachable));
    holds(outcome!(List, scans::memory::live_objects_after_scans));
    holds(outcome!(FaultyMap<slips::NoSlip>, points::memory::live_objects_are_reachable));
}

/// The runs of a property, at most. With threads, a mistake shows in some orders of their calls
/// only, and on busy cores a run may have none of these.
const RUNS: usize = 5;

/// Declares that a property refutes a mistake, with the given text in its reason.
macro_rules! found {
    ($($test:ident: $index:ty, by $form:ident::$file:ident::$property:ident, $reason:literal;)*) => {
        $(
            #[test]
            fn $test() {
                let run = || outcome!($index, $form::$file::$property).err();
                let failure = (0..RUNS).find_map(|_| run()).expect("the mistake passes");
                assert!(failure.reason().contains($reason), "for another reason: {failure}");
                println!("found: {failure}");
            }
        )*
    };
}

found! {
    a_spare_leaked: FaultyMap<slips::LeaksSpare>, by points::faults::nth_fails, "keeps {\"leaf\": 1}";
    a_spare_leaked_among_threads: FaultyMap<slips::LeaksSpare>,
        by points::faults::among_threads, "left objects behind";
    a_spare_leaked_by_a_panic: FaultyMap<slips::LeaksOnUnwind>,
        by points::faults::nth_panics, "keeps {\"leaf\": 1}";
    a_spare_leaked_by_a_panic_among_threads: FaultyMap<slips::LeaksOnUnwind>,
        by points::faults::among_threads, "0 % failed, 20 % panicked";
    an_entry_linked_too_early: FaultyMap<slips::LinksFirst>,
        by points::faults::nth_fails, "did not happen";
    an_entry_linked_before_a_panic: FaultyMap<slips::LinksFirst>,
        by points::faults::nth_panics, "did not happen";
    an_entry_linked_too_early_among_threads: FaultyMap<slips::LinksFirst>,
        by points::faults::among_threads, "inserted";
    a_lock_kept: FaultyMap<slips::KeepsLock>, by points::faults::nth_panics, "a lock was not released";
    a_pin_kept: FaultyMap<slips::KeepsPin>, by points::faults::nth_panics, "pins the domain";
    a_pin_kept_among_threads: FaultyMap<slips::PinningLookup>,
        by points::faults::user_panics, "pins the domain";
    a_double_free: FaultyMap<slips::FreesTwice>, by points::faults::nth_fails, "freed twice";
    a_write_after_free: FaultyMap<slips::WritesFreed>, by points::faults::nth_fails, "was written to";
    no_second_attempt: FaultyMap<slips::GivesUpAtOnce>,
        by points::faults::nth_fails, "with one failed attempt";
    a_root_leaked: FaultyMap<slips::LeaksRoot>, by points::faults::creation, "left objects behind";
    a_root_leaked_at_drop: FaultyMap<slips::LeaksAtDrop>,
        by points::faults::nth_fails, "left objects behind";
    a_pin_kept_by_unwinding: SlippingList<lists::PinnedByUnwinding>,
        by scans::faults::user_panics_in_scans, "pins the domain";
    another_placement: LockedMap<u64>, by points::faults::nth_fails, "is not on `Faulty`";
    a_range_that_keeps_an_entry: SlippingList<lists::LeakyRange>,
        by scans::reclaim::unfinished_scans, "objects";
    a_range_rev_that_keeps_an_entry: SlippingList<lists::LeakyRangeRev>,
        by scans::reclaim::unfinished_scans, "objects";
    a_range_that_keeps_a_pin: SlippingList<lists::PinnedRange>,
        by scans::reclaim::unfinished_scans, "pins the domain";
    a_range_that_keeps_a_pin_under_churn: SlippingList<lists::PinnedRange>,
        by scans::reclaim::scans_under_churn, "objects are in use";
    a_cursor_forgotten: SlippingList<lists::ForgottenCursor>,
        by scans::reclaim::unfinished_scans, "objects";
    a_cursor_that_keeps_a_pin: SlippingList<lists::PinningCursor>,
        by scans::reclaim::parked_cursors, "pins the domain";
    a_cursor_that_keeps_its_past: SlippingList<lists::ChainedCursor>,
        by scans::reclaim::parked_cursors, "objects";
    a_reference_lost: SlippingList<lists::LostReference>,
        by points::memory::live_objects_are_reachable, "can be reached";
    a_range_that_keeps_an_entry_at_rest: SlippingList<lists::LeakyRange>,
        by scans::memory::live_objects_after_scans, "can be reached";
    a_range_rev_that_keeps_an_entry_at_rest: SlippingList<lists::LeakyRangeRev>,
        by scans::memory::live_objects_after_scans, "can be reached";
    a_range_that_keeps_a_pin_at_rest: SlippingList<lists::PinnedRange>,
        by scans::memory::live_objects_after_scans, "can be reached";
    a_cursor_forgotten_at_rest: SlippingList<lists::ForgottenCursor>,
        by scans::memory::live_objects_after_scans, "can be reached";
    a_removal_that_keeps_a_pin: SlippingList<lists::PinnedRemove>,
        by points::reclaim::garbage_under_a_held_pin, "pins after the guard is gone";
    objects_freed_under_a_pin: LockedMap<u64>,
        by points::reclaim::garbage_under_a_held_pin, "freed under a guard";
}

#[test]
fn slips_are_found_in_an_index_as_it_is() {
    let leaked = faults::nth_fails(make::exact::<FaultyMap<slips::LeaksSpare>>).unwrap_err();
    assert!(leaked.reason().contains("keeps {\"leaf\": 1}"), "{leaked}");
    let kept =
        reclaim::unfinished_scans(make::exact::<SlippingList<lists::LeakyRange>>).unwrap_err();
    assert!(kept.reason().contains("objects"), "{kept}");
}
