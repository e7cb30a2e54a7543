//! `OrdMap` as its users call it: keys in any order, and orders that panic, lie, or call the map.

mod agreement;
mod copied;
mod counted;
mod memory;
mod sorted;
mod user_code;

use silvics::ca::build::{Adaptive, Build, Restless};
use silvics::ord::{Compares, OrdMap};
use silvics::{Options, Pages, Pooled};
use silvics_api_tests::Tracked;
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering as Memory};
use silvics_testkit::make::apart;
use std::sync::Arc;

/// A map whose base nodes are split and joined by a hook, one write in eight each, unless the build
/// is another one.
type Map<K, V, C, B = Restless> = OrdMap<K, V, C, Pooled, B>;

fn map<K, V, C, B>(order: C) -> Map<K, V, C, B>
where
    K: silvics::map::Value,
    V: silvics::map::Value,
    C: Compares<K, K>,
    B: Build,
{
    let options = Options { pages: Pages::Small, ..apart() };
    OrdMap::with_options(order, &options).expect("there is memory")
}

/// Steele, Lea and Flood's `SplitMix64`, which several threads may call.
struct Rng(AtomicU64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn below(&self, bound: u64) -> u64 {
        let mut word = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Memory::Relaxed);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % bound
    }
}

/// The work of a test, less under an interpreter.
fn work(rounds: u64) -> u64 {
    if cfg!(miri) { rounds / 50 } else { rounds }
}
