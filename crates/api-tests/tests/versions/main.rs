//! `VersionedMap` as its users call it.

mod agreement;
mod failures;
mod threads;

use silvics::versions::{Clock, Given, Retain, VersionedMap};
use silvics::{Options, Pages};
use silvics_api_tests::Tracked;
use silvics_sync::atomic::{AtomicI64, Ordering};
use silvics_testkit::make::apart;
use std::sync::Arc;

fn map<K: silvics::key::Key, V: silvics::map::Value, C: Clock>(
    retain: Retain,
) -> VersionedMap<K, V, C> {
    let options = Options { pages: Pages::Small, ..apart() };
    VersionedMap::with_options(&options, retain).expect("there is memory")
}

/// Steele, Lea and Flood's `SplitMix64`.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % bound
    }
}

/// The work of a test, less under an interpreter.
fn work(rounds: u64) -> u64 {
    if cfg!(miri) { rounds / 50 } else { rounds }
}
