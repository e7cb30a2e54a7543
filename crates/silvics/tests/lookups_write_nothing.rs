//! "No shared write on a lookup": every structure of the table is read, in pools, with its regions
//! write-protected. This needs a process of its own, since a write ends the process.

use silvics_testkit::{broken, holds, lookups, make};

// A build that is only another name of an earlier one has its lookups, too, and so has a build that
// is stressed alone. Lookups that take a lock write to it.
macro_rules! write_nothing {
    (alias $($build:tt)*) => {};
    (stress $($build:tt)*) => {};
    (locked $($build:tt)*) => {};
    ($runs:ident points $faults:ident $index:ty) => {
        #[test]
        #[cfg_attr(miri, ignore = "Miri has no memory protection")]
        fn lookups_write_nothing() {
            // Behind a trait object: a write that the face adds would be found, too.
            let make = silvics_testkit::make::points::<$index>;
            silvics_testkit::holds(silvics_testkit::lookups::write_nothing(make));
        }
    };
    ($runs:ident scans $faults:ident $index:ty) => {
        write_nothing!($runs points $faults $index);

        #[test]
        #[cfg_attr(miri, ignore = "Miri has no memory protection")]
        fn scans_write_nothing() {
            let make = silvics_testkit::make::exact::<$index>;
            silvics_testkit::holds(silvics_testkit::lookups::scans_write_nothing(make));
        }
    };
    ($runs:ident $ends:ident $faults:ident $index:ty) => {
        write_nothing!($runs scans $faults $index);
    };
}

silvics::structure_modules!(write_nothing);

/// The variable that is set in the child process, which has to die.
const PLANTED: &str = "SILVICS_PLANTED_WRITE";

/// The regions are protected: an index that counts its lookups in a pool does not survive them.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "runs a child process")]
fn a_planted_write_is_fatal() {
    if std::env::var_os(PLANTED).is_some() {
        holds(lookups::write_nothing(make::points::<broken::WritingLookup>));
    } else {
        holds(lookups::dies_by_signal("a_planted_write_is_fatal", PLANTED));
    }
}
