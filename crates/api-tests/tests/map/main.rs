//! `Map` as its users call it: its verbs, the life of its values, and failures of the user's code
//! and of memory.

mod agreement;
mod domains;
mod failures;
mod guests;
mod keyed;
mod values;

use silvics::map::MapIndex;
use silvics::{Key, Map, Options, Pages};
use silvics_api_tests::Counted;
use silvics_testkit::make::apart;

/// The operations of each thread in tests of several.
const ROUNDS: u64 = if cfg!(miri) { 500 } else { 100_000 };

/// Steele, Lea and Flood's `SplitMix64`.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % bound
    }
}

fn map<K: Key, V: silvics::map::Value, I: MapIndex<Key = K::Form>>() -> Map<K, V, I> {
    Map::with_options(&Options { pages: Pages::Small, ..apart() }).unwrap()
}
