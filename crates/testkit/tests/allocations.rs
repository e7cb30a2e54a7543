//! Lookups that allocate are found. The counting allocator makes these tests a process of their
//! own.

use silvics_testkit::broken::{Broken, mistakes};
use silvics_testkit::counting::Counting;
use silvics_testkit::reference::LockedMap;
use silvics_testkit::{holds, lookups, make};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn lookups_of_a_locked_map_allocate_nothing() {
    holds(lookups::allocate_nothing(make::exact::<LockedMap<u64>>));
}

#[test]
fn a_lookup_that_allocates_is_found() {
    let failure =
        lookups::allocate_nothing(make::exact::<Broken<mistakes::AllocatingLookup>>).unwrap_err();
    assert!(failure.reason().contains("allocations in lookups"), "{failure}");
}

#[test]
fn a_scan_that_allocates_is_found() {
    // The reference map's scans are snapshots.
    let failure = lookups::scans_allocate_nothing(make::exact::<LockedMap<u64>>).unwrap_err();
    assert!(failure.reason().contains("allocations in lookups"), "{failure}");
}
