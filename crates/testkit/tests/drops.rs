//! A drop that keeps memory is found. There is one test, so that no other thread allocates
//! meanwhile.

use silvics_testkit::broken::{Broken, mistakes};
use silvics_testkit::counting::{Counting, live_bytes};
use silvics_testkit::reference::LockedMap;
use silvics_testkit::{dropping, holds, make};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_drop_that_keeps_nodes_is_found_and_one_that_does_not_passes() {
    holds(dropping::dropping_returns_everything(make::exact::<LockedMap<u64>>, live_bytes));
    holds(dropping::dropping_and_flushing_returns_everything(
        make::exact::<LockedMap<[u8]>>,
        live_bytes,
    ));
    let all = dropping::dropping_returns_everything(
        make::exact::<Broken<mistakes::LeakyDrop>>,
        live_bytes,
    );
    let little = dropping::dropping_returns_everything(
        make::exact::<Broken<mistakes::ForgottenTable>>,
        live_bytes,
    );
    for leaky in [all, little] {
        let failure = leaky.unwrap_err();
        assert!(failure.reason().contains("the heap grew"), "{failure}");
    }
}
