//! Every structure of the table while its allocations fail or panic.

use silvics::art::hot::Sampled;
use silvics::blocks::Blocks;
use silvics::counts::Counted;
use silvics::words::Words;
use silvics::{ArtTree, Index};
use silvics_testkit::{fault_suite, faulty::Faulty, mapped::Mapped};

macro_rules! faults {
    (full $capability:ident $faults:ident $index:ty) => {
        silvics_testkit::fault_suite!(
            faulty, silvics::structures::At<$index, silvics_testkit::faulty::Faulty>, $faults);
    };
    // A build for tests splits base nodes after its operations. Such a failure is swallowed.
    (locked $capability:ident none $index:ty) => {};
    (locked $capability:ident $faults:ident $index:ty) => {
        faults!(full $capability $faults $index);
    };
    ($runs:ident $($build:tt)*) => {};
}

silvics::structure_modules!(faults);

// The table has the radix tree without samples of its lookups.
fault_suite!(art_sampled, ArtTree<u64, Faulty, Sampled>, scans);

// Some updates count keys in debug builds: see `counts/ops.rs`.
fault_suite!(words_counted, Index<Counted<Words<u64, Faulty>>>, points);
fault_suite!(blocks_counted, Index<Counted<Blocks<[u8], Faulty>>>, points);

fault_suite!(map, Mapped<u64, Faulty>);
fault_suite!(map_bytes, Mapped<[u8], Faulty>);
