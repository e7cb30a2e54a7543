//! The suite passes on an index that is correct by inspection.

use silvics_testkit::index_suite;
use silvics_testkit::reference::LockedMap;

index_suite!(locked_u64, LockedMap<u64>, reference);
index_suite!(locked_bytes, LockedMap<[u8]>, reference);

#[test]
fn ends_of_the_reference() {
    use silvics_testkit::{ends, holds, make};
    holds(ends::sequential(make::exact::<LockedMap<u64>>));
    holds(ends::sequential(make::exact::<LockedMap<[u8]>>));
    holds(ends::histories(make::exact::<LockedMap<u64>>));
}

#[test]
fn ranges_of_the_reference_at_one_moment() {
    use silvics_testkit::{atomic_ranges, histories, holds, make};
    holds(atomic_ranges::reads(make::exact::<LockedMap<u64>>));
    holds(atomic_ranges::reads(make::exact::<LockedMap<[u8]>>));
    holds(atomic_ranges::updates(make::exact::<LockedMap<u64>>));
    holds(atomic_ranges::update_panics(make::exact::<LockedMap<u64>>));
    holds(histories::range_histories(make::exact::<LockedMap<u64>>));
    holds(histories::update_histories(make::exact::<LockedMap<u64>>));
}
