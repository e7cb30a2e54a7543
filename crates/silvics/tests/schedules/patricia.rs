//! Patricia tries in many schedules.

use super::explore_all;
use super::scenarios::{COMMON, SCANS, TRIES};
use silvics::PatriciaTree;
use silvics::patricia::build::{Compact, Paper};
use silvics::patricia::policy::{Spin, StandIn};
use silvics_testkit::schedules::{Model, scans};

/// Teleportation, whose sections lock after two tries, and hand-over-hand locking.
#[test]
fn patricia() {
    let lists = [COMMON, SCANS, TRIES];
    explore_all::<PatriciaTree<u64, Model>>("patricia-16", &lists, scans);
    explore_all::<PatriciaTree<[u8], Model>>("patricia-16-bytes", &[TRIES], scans);
    let name = "patricia-16:paper";
    explore_all::<PatriciaTree<u64, Model, Paper<16>>>(name, &lists, scans);
    let name = "patricia-2:paper-bytes";
    explore_all::<PatriciaTree<[u8], Model, Paper<2>>>(name, &[TRIES], scans);
    let name = "patricia-16:stand-in";
    explore_all::<PatriciaTree<u64, Model, Compact<16>, StandIn>>(name, &[TRIES], scans);
    let name = "patricia-4:spin";
    explore_all::<PatriciaTree<u64, Model, Compact<4>, Spin>>(name, &[TRIES], scans);
    let name = "patricia-16:paper-spin";
    explore_all::<PatriciaTree<u64, Model, Paper<16>, Spin>>(name, &[TRIES], scans);
}
