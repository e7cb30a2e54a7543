//! Planted mistakes, each of which a test on real threads must find.
#![cfg(feature = "canaries")]

use silvics_memtable::canary::{Canary, plant};
use silvics_memtable::{DynamicBloom, KeyHash};
use silvics_pool::{ConcurrentArena, Config};
use std::sync::{Arc, Barrier, Mutex};

/// A canary is planted for the whole process, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

/// Calls `work` while a canary is planted, or none.
fn with<R>(canary: Option<Canary>, work: impl FnOnce() -> R) -> R {
    plant(canary);
    let result = work();
    plant(None);
    result
}

/// Whether two threads that add at once lose a key of one round.
fn a_key_is_lost(round: u64) -> bool {
    let arena = Arc::new(ConcurrentArena::new(&Config::default(), 1 << 20));
    let bloom = DynamicBloom::new(4096, 6, &arena).expect("no limit");
    let key = |thread: u64, number: u64| {
        KeyHash::of(&[round, thread, number].map(u64::to_ne_bytes).concat())
    };
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (bloom, start) = (&bloom, &start);
            scope.spawn(move || {
                start.wait();
                for number in 0..300 {
                    bloom.add_concurrently(key(thread, number));
                }
            });
        }
    });
    (0..2).any(|thread| (0..300).any(|number| !bloom.may_contain(key(thread, number))))
}

#[test]
fn a_lost_bloom_bit_is_found() {
    let _turn = TURN.lock();
    assert!(!with(None, || (0..300).any(a_key_is_lost)), "a key is lost without a canary");
    let found =
        with(Some(Canary::LostBloomBit), || (0..100_000).find(|&round| a_key_is_lost(round)));
    println!("{}: found in round {found:?}", Canary::LostBloomBit.name());
    assert!(found.is_some(), "no key was lost");
}
