//! Durable stores: losses of power, failing storages, damaged files.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

#[path = "durability/bank.rs"]
mod bank;
#[path = "durability/disk.rs"]
mod disk;
#[path = "durability/files.rs"]
mod files;
#[path = "durability/gate.rs"]
mod gate;
#[path = "durability/power.rs"]
mod power;
mod support;
#[path = "durability/threads.rs"]
mod threads;
#[path = "durability/waits.rs"]
mod waits;

use silvics_store::Policy;
use silvics_testkit::size;
use support::kinds::{each_policy, within};

fn all_lives<P: Policy>(seeds: u64) {
    let checkpoints: u64 = (0..seeds).map(|seed| threads::lives::<P>(seed + size::seed())).sum();
    assert!(checkpoints > 0, "no checkpoint was complete");
}

#[test]
fn nothing_that_was_told_is_lost() {
    let seeds = size::pick(1000, 30, 1) as u64;
    within("threads", move || each_policy!(all_lives(seeds)));
}
