//! The suite passes on an index that is right by inspection.

use silvics_testkit::index_suite;
use silvics_testkit::reference::LockedMap;

index_suite!(locked_u64, LockedMap<u64>, reference);
index_suite!(locked_bytes, LockedMap<[u8]>, reference);

#[test]
fn ends_of_the_reference() {
    use silvics_testkit::{ends, holds};
    holds(ends::sequential::<LockedMap<u64>>());
    holds(ends::sequential::<LockedMap<[u8]>>());
    holds(ends::histories::<LockedMap<u64>>());
}
