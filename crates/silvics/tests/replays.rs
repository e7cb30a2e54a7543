//! A failing schedule comes back. Alone in its process: the way failures are kept holds for all of it.
#![cfg(all(silvics_shuttle, feature = "canaries"))]

use silvics::BronsonTree;
use silvics::canary::{Canary, plant};
use silvics_testkit::schedules::Step::{Get, Insert};
use silvics_testkit::schedules::{Model, Scenario, hunt, points, replay};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The insert of 2 moves 0 down, beside lookups.
const ROTATION: &[Scenario] = &[Scenario {
    name: "rotation",
    keys: 3,
    before: &[Insert(0, 1), Insert(1, 2)],
    tasks: &[&[Insert(2, 3)], &[Get(1), Get(1)]],
}];

/// The file of a failing schedule brings the same failure about, every time.
#[test]
fn a_failing_schedule_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    plant(Some(Canary::DescentUnvalidated));
    let found = hunt::<BronsonTree<Model>>(&[ROTATION], points, 2000, Some(folder.path())).unwrap();
    let files: Vec<_> = folder.path().read_dir().unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    for _ in 0..2 {
        let play = || replay::<BronsonTree<Model>>(found.scenario, points, &files[0]);
        let payload = catch_unwind(AssertUnwindSafe(play)).expect_err("it failed before");
        assert_eq!(payload.downcast_ref::<String>(), Some(&found.reason));
    }
}
