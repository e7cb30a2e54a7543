//! `MultiMap` and `MultiSet` as their users call them.

mod agreement;
mod failures;
mod threads;

use silvics::key::Key;
use silvics::map::{DefaultIndex, Value};
use silvics::multi::{FindOrder, Inserted, Insertion, Sorted};
use silvics::{Check, MultiMap, MultiSet, Options, Pages, Shared};
use silvics_api_tests::{Tracked, mixed};
use silvics_sync::atomic::{AtomicI64, Ordering};
use silvics_testkit::make::apart;
use std::sync::Arc;

/// Numbers with these upper bits are stored in a list: see `map/multi/node.rs`.
const ESCAPED: u64 = 0x96D3 << 48;

fn options() -> Options {
    Options { pages: Pages::Small, ..apart() }
}

fn map<K: Key, V: Value, O>() -> MultiMap<K, V, O> {
    MultiMap::with_options(&options()).expect("there is memory")
}

/// A map whose nodes and values come one by one from a heap.
type Heaped<K, V, O> = MultiMap<K, V, O, DefaultIndex<K, Shared>>;

/// Steele, Lea and Flood's `SplitMix64`.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0) % bound
    }
}

/// The work of a test, less under an interpreter.
fn work(rounds: u64) -> u64 {
    if cfg!(miri) { rounds / 50 } else { rounds }
}

/// Verifies a map, and that nothing is live that it does not reach.
fn check<K: Key, V: Value, O: FindOrder<V>, I>(map: &mut MultiMap<K, V, O, I>) -> usize
where
    I: silvics::map::MapIndex<Key = K::Form> + Check,
{
    let pairs = map.check().unwrap_or_else(|violation| panic!("{violation}"));
    map.settle();
    let reachable = map.reachable().expect("it was verified");
    for ((kind, count), stats) in reachable.into_iter().zip(map.pool_stats()) {
        assert_eq!((kind, count), (stats.kind, stats.live_slots), "live objects");
    }
    pairs
}
