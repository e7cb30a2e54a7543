//! Counts of keys: striped over threads, or single.

use silvics::{CaTree, Counting, Lookup, Map, Options, OrderedIndex, PinIndex, SkipList};
use silvics_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use silvics_testkit::make::apart;

fn options(counting: Counting) -> Options {
    Options { counting, ..apart() }
}

fn exact_at_rest<I: OrderedIndex<Key = u64> + Lookup<Key = u64>>(index: &I) {
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                for n in 0..4000 {
                    index.pin().insert(n * 3 + thread, n).unwrap();
                }
                for n in 0..1000 {
                    index.pin().remove(n * 3 + thread).unwrap();
                }
            });
        }
    });
    assert_eq!((index.len(), index.len_snapshot()), (9000, Some(9000)));
}

#[test]
fn counts_are_exact_at_rest() {
    for counting in [Counting::Striped, Counting::Single] {
        exact_at_rest(&SkipList::<u64>::with_options(&options(counting)).unwrap());
        exact_at_rest(&CaTree::<u64>::with_options(&options(counting)).unwrap());
        let map: Map<u64, String> = Map::builder().counting(counting).build().unwrap();
        map.insert(7, "seven".into());
        assert_eq!((map.len(), map.len_snapshot()), (1, Some(1)));
    }
}

/// Each thread inserts a key before it removes the last one, so there are never fewer keys than at
/// first, and never more than one more for each thread. A count that reads one thread before and
/// another one after a change may be outside.
#[test]
fn snapshots_are_counts_at_one_moment() {
    const THREADS: usize = 2;
    for counting in [Counting::Striped, Counting::Single] {
        let tree = CaTree::<u64>::with_options(&options(counting)).unwrap();
        for key in 0..2000 {
            tree.pin().insert(key, 0).unwrap();
        }
        let (seen, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..THREADS as u64 {
                let (tree, stop) = (&tree, &stop);
                scope.spawn(move || {
                    let mut key = 10_000 + thread * 1_000_000;
                    while !stop.load(Ordering::Relaxed) {
                        tree.pin().insert(key + 1, 0).unwrap();
                        tree.pin().remove(key).unwrap();
                        key += 1;
                        silvics_sync::thread::yield_now(); // now and then, a snapshot succeeds
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..100_000 {
                    if seen.load(Ordering::Relaxed) == 300 {
                        break;
                    }
                    let Some(len) = tree.len_snapshot() else { continue };
                    // The first removal of each thread finds no key.
                    assert!((2000..=2000 + 2 * THREADS).contains(&len), "{counting:?}: {len}");
                    seen.fetch_add(1, Ordering::Relaxed);
                }
                stop.store(true, Ordering::Relaxed);
            });
        });
        assert!(seen.load(Ordering::Relaxed) > 0, "{counting:?}");
    }
}
