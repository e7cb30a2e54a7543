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
