//! Every planted mistake must be caught by a schedule: see `silvics::canary` and
//! `silvics_testkit::schedules`.
#![cfg(all(silvics_shuttle, feature = "canaries"))]

mod scenarios;

use scenarios::{CHAINS, COMMON, ROTATIONS, SCANS, TOWERS};
use silvics::canary::{Canary, plant};
use silvics::{BronsonTree, NatarajanTree, SkipList};
use silvics_testkit::schedules::{Found, Model, hunt, points, replay, report, scans};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Schedules within which a canary must be caught, per scenario and scheduler.
const SCHEDULES: usize = 20_000;

fn catch(canary: Canary, folder: Option<&Path>) -> Option<Found> {
    match canary.index() {
        "edge-ext-lf" => hunt::<NatarajanTree<Model>>(&[CHAINS, COMMON], points, SCHEDULES, folder),
        "occ-avl" => hunt::<BronsonTree<Model>>(&[ROTATIONS, COMMON], points, SCHEDULES, folder),
        "skiplist" => {
            hunt::<SkipList<u64, Model>>(&[TOWERS, SCANS, COMMON], scans, SCHEDULES, folder)
        }
        index => panic!("{canary:?} is in {index}, which has no scenarios"),
    }
}

/// What is planted holds for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn every_canary_is_caught() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut alive = Vec::new();
    for &canary in Canary::ALL {
        let start = Instant::now();
        plant(Some(canary));
        let found = catch(canary, None);
        plant(None);
        let seconds = start.elapsed().as_secs_f32();
        let name = canary.name();
        match found {
            Some(Found { schedules, scenario, reason }) => report(&format!(
                "canary {} {name} schedules {schedules} scenario {} seconds {seconds:.2}: {}",
                canary.index(),
                scenario.name,
                reason.lines().next().unwrap_or_default(),
            )),
            None => alive.push(name),
        }
    }
    assert!(alive.is_empty(), "not caught: {}", alive.join(", "));
}

/// The file of a failing schedule brings the same failure about again, every time.
#[test]
fn a_failing_schedule_can_be_replayed() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    plant(Some(Canary::DescentUnvalidated));
    let found = catch(Canary::DescentUnvalidated, Some(folder.path())).unwrap();
    let files: Vec<_> =
        folder.path().read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let play = || replay::<BronsonTree<Model>>(found.scenario, points, &files[0]);
    for _ in 0..2 {
        let payload = catch_unwind(AssertUnwindSafe(play)).expect_err("it failed before");
        assert_eq!(payload.downcast_ref::<String>(), Some(&found.reason));
    }
    plant(None);
}
