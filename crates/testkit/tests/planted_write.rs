//! A lookup that writes dies: `lookups::write_nothing` does protect the regions.

use silvics_testkit::{broken, lookups, make};

/// The variable that is set in the child process, which has to die.
const PLANTED: &str = "SILVICS_PLANTED_WRITE";

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "runs a child process")]
fn a_write_in_a_lookup_is_fatal() {
    if std::env::var_os(PLANTED).is_some() {
        silvics_testkit::holds(lookups::write_nothing(make::exact::<broken::WritingLookup>));
    } else {
        silvics_testkit::holds(lookups::dies_by_signal("a_write_in_a_lookup_is_fatal", PLANTED));
    }
}

#[test]
fn an_index_without_regions_proves_nothing() {
    use silvics_testkit::reference::LockedMap;
    let failure = lookups::write_nothing(make::exact::<LockedMap<u64>>).unwrap_err();
    assert!(failure.reason().contains("no regions"), "{failure}");
}
