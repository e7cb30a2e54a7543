//! Every planted mistake must be caught by a schedule: see `silvics::canary` and
//! `silvics_testkit::schedules`.
#![cfg(all(silvics_shuttle, feature = "canaries"))]

mod scenarios;

use scenarios::{CHAINS, COMMON, ROTATIONS, SCANS, TOWERS};
use silvics::canary::{Canary, plant};
use silvics::{BronsonTree, NatarajanTree, SkipList};
use silvics_testkit::schedules::{Found, Model, hunt, points, report, scans};
use std::time::Instant;

/// Schedules within which a canary must be caught, per scenario and scheduler.
const SCHEDULES: usize = 20_000;

fn catch(canary: Canary) -> Option<Found> {
    match canary.index() {
        "edge-ext-lf" => hunt::<NatarajanTree<Model>>(&[CHAINS, COMMON], points, SCHEDULES, None),
        "occ-avl" => hunt::<BronsonTree<Model>>(&[ROTATIONS, COMMON], points, SCHEDULES, None),
        "skiplist" => {
            hunt::<SkipList<u64, Model>>(&[TOWERS, SCANS, COMMON], scans, SCHEDULES, None)
        }
        index => panic!("{canary:?} is in {index}, which has no scenarios"),
    }
}

/// One test: what is planted holds for the whole process.
#[test]
fn every_canary_is_caught() {
    let mut alive = Vec::new();
    for &canary in Canary::ALL {
        let start = Instant::now();
        plant(Some(canary));
        let found = catch(canary);
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
