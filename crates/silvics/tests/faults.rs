//! Every structure of the table while its allocations fail or panic.

use silvics_testkit::{fault_suite, faulty::Faulty, mapped::Mapped};

macro_rules! faults {
    (full $capability:ident $faults:ident $index:ty) => {
        silvics_testkit::fault_suite!(
            faulty, silvics::structures::At<$index, silvics_testkit::faulty::Faulty>, $faults);
    };
    (suite $($build:tt)*) => {};
}

silvics::structure_modules!(faults);

fault_suite!(map, Mapped<u64, Faulty>);
fault_suite!(map_bytes, Mapped<[u8], Faulty>);
