//! The waits of removers in the tree of Arbel and Attiya.

use silvics::bst::build::{Baseline, Fixed};
use silvics::bst::citrus::build::Build;
use silvics::{Check, CitrusTree, Lookup, Options, OrderedIndex, Pooled, Shared};
use std::sync::Barrier;

/// Each thread holds one guard throughout. Under it the thread inserts and removes nodes with two
/// children, so that removers wait for each other's descents, and never for a guard.
fn removers_whose_callers_hold_guards<B: Build>() {
    const THREADS: u64 = 2;
    const ROUNDS: u64 = 400;
    const KEYS: u64 = 31;
    let mut tree: CitrusTree<Pooled, B> = CitrusTree::with_options(&Options::default()).unwrap();
    let (start, end) = (Barrier::new(THREADS as usize), Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tree, start, end) = (&tree, &start, &end);
            scope.spawn(move || {
                let guard = tree.domain().pin();
                // From the middle of each part down: every node but the leaves has two children.
                let keys = (1..=KEYS).map(|n| {
                    let level = n.ilog2();
                    let at = ((2 * (n - (1 << level)) + 1) << 4) >> level;
                    at * THREADS + thread
                });
                start.wait();
                for round in 0..ROUNDS {
                    for key in keys.clone() {
                        assert_eq!(tree.insert(key, round, &guard), Ok(None));
                    }
                    // Removes the upper nodes first: copies replace them.
                    for key in keys.clone() {
                        assert_eq!(tree.get(key, &guard), Some(round));
                        assert_eq!(tree.remove(key, &guard), Ok(Some(round)));
                        assert_eq!(tree.get(key, &guard), None);
                    }
                }
                end.wait(); // no guard is dropped before all are done
            });
        }
    });
    assert_eq!(tree.check(), Ok(0));
}

#[test]
fn removers_wait_for_no_guard() {
    removers_whose_callers_hold_guards::<Fixed>();
    removers_whose_callers_hold_guards::<Baseline>();
}

/// A remover waits for the descents of other threads, while its own thread and others hold guards
/// of its domain that are older than all its work.
#[test]
fn a_guard_that_is_never_dropped_holds_up_nobody() {
    let tree: CitrusTree = CitrusTree::with_options(&Options::default()).unwrap();
    let kept = std::mem::ManuallyDrop::new(tree.domain().pin());
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            let guard = tree.domain().pin();
            for key in [4u64, 2, 6, 5, 7] {
                tree.insert(key, key, &guard).unwrap();
            }
            tree.remove(4, &guard)
        });
        assert_eq!(remover.join().unwrap(), Ok(Some(4)));
    });
    assert_eq!(tree.get(5, &kept), Some(5));
}

/// The lines of the threads count in `bytes`, and are returned.
#[test]
fn the_lines_of_descents_are_in_the_account() {
    let lines = silvics_sync::rcu::PREPARED as usize * size_of::<silvics_sync::CachePadded<u64>>();
    let tree: CitrusTree<Shared> = CitrusTree::with_options(&Options::default()).unwrap();
    assert!(tree.bytes() >= lines, "{} bytes", tree.bytes());
    // A tree without room for lines still works, if it has room for its nodes.
    let room = |bytes| Options { memory_limit: Some(bytes), ..Options::default() };
    let small: CitrusTree<Shared> = CitrusTree::with_options(&room(600)).unwrap();
    let view = small.pin();
    let mut keys = 0;
    while view.insert(keys, keys).is_ok() {
        keys += 1;
    }
    assert!(keys > 0 && small.bytes() <= 600);
    for key in 0..keys {
        assert_eq!(view.get(key), Some(key));
        assert_eq!(view.remove(key), Ok(Some(key)));
    }
}
