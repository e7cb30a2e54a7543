//! Maps that are built from sorted entries.

use super::*;
use silvics::ord::{Natural, OrdSet};
use silvics::{AllocError, BulkLoadError};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn by_number(a: &Tracked, b: &Tracked) -> std::cmp::Ordering {
    a.number().cmp(&b.number())
}

type Built<K, V, C> = Result<Map<K, V, C>, BulkLoadError>;

/// Maps of many sizes have their entries, take changes, and drop each key and value once.
#[test]
fn sorted_entries_are_loaded_and_changed() {
    let live = Arc::default();
    let new = |n| Tracked::new(n, &live);
    // Leaves have at most 55 entries, and inner nodes 55 children.
    for len in [0, 1, 2, 3, 54, 55, 56, 63, 64, 110, 111, 300, 3025, 3026, work(20_000)] {
        if cfg!(miri) && len > 400 {
            continue;
        }
        let entries = (0..len).map(|n| (new(2 * n), new(n)));
        let map: Built<_, _, _> = Map::from_sorted(by_number, &apart(), entries);
        let mut map = map.unwrap();
        assert_eq!((map.check(), map.len()), (Ok(len as usize), len as usize));
        assert_eq!(live.load(Memory::Relaxed), 2 * len as i64);
        let mut model: BTreeMap<u64, u64> = (0..len).map(|n| (2 * n, n)).collect();
        let rng = Rng::new(len);
        for _ in 0..len {
            let (inserted, removed) = (rng.below(2 * len + 1), rng.below(2 * len + 1));
            let old = map.insert(new(inserted), new(removed)).map(|old| old.number());
            assert_eq!(old, model.insert(inserted, removed));
            let old = map.remove(&new(removed)).map(|old| old.number());
            assert_eq!(old, model.remove(&removed));
        }
        let found: Vec<_> =
            map.pin().iter().map(|(key, value)| (key.number(), value.number())).collect();
        assert_eq!(Vec::from_iter(model), found);
        assert_eq!(map.check(), Ok(found.len()));
        drop(map);
        assert_eq!(live.load(Memory::Relaxed), 0);
    }
}

/// Maps whose nodes have the numbers themselves, or heads of strings, are as those that insertions
/// in random order make, and smaller.
#[test]
fn numbers_and_strings_are_loaded() {
    let len = work(20_000);
    let built: Built<i32, u64, _> =
        Map::from_sorted(Natural, &apart(), (0..len).map(|n| (n as i32 - 50, n)));
    let (mut built, mut grown) = (built.unwrap(), map::<i32, u64, _, Adaptive>(Natural));
    let rng = Rng::new(3);
    let mut order: Vec<u64> = (0..len).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, rng.below(at as u64 + 1) as usize);
    }
    for n in &order {
        grown.insert(*n as i32 - 50, *n);
    }
    assert_eq!(built.check(), grown.check());
    assert!(built.pin().iter().map(|entry| *entry.0).eq(-50..len as i32 - 50));
    assert_eq!(built.get(&-50).as_deref(), Some(&0));
    grown.shrink();
    assert!(cfg!(miri) || built.bytes() < grown.bytes(), "{} {}", built.bytes(), grown.bytes());

    let words = (0..len).map(|n| format!("{n:07}"));
    let set = OrdSet::<String, Natural, Pooled, Restless>::from_sorted(Natural, &apart(), words);
    let mut set = set.unwrap();
    assert_eq!(set.check(), Ok(len as usize));
    assert!(set.contains("0000007") && !set.contains("7"));
    assert!(!set.insert("0000007".to_string()) && set.insert("7".to_string()));
}

/// Entries that are not in order, a limit, and user code that panics: all entries are dropped.
#[test]
fn what_is_not_loaded_is_dropped() {
    let live = Arc::default();
    let new = |n| (Tracked::new(n, &live), Tracked::new(n, &live));
    let load = |numbers: &[u64]| -> Option<BulkLoadError> {
        let entries = numbers.iter().map(|n| new(*n));
        let built: Built<_, _, _> = Map::from_sorted(by_number, &apart(), entries);
        let error = built.err();
        assert_eq!(live.load(Memory::Relaxed), 0);
        error
    };
    assert_eq!(load(&[1, 2, 5]), None);
    assert_eq!(load(&[1, 2, 0, 0]), Some(BulkLoadError::Unsorted { position: 2 }));
    assert_eq!(load(&[1, 1, 0, 3]), Some(BulkLoadError::Duplicate { position: 1 }));

    // The size decides whether the limit ends within the keys or within the nodes.
    let limited = Options { memory_limit: Some(1 << 17), pages: Pages::Small, ..apart() };
    let mut refused = [0; 2];
    for len in (500..2600).step_by(if cfg!(miri) { 2000 } else { 10 }) {
        let drawn = std::cell::Cell::new(0);
        let entries = (0..len).inspect(|_| drawn.set(drawn.get() + 1)).map(new);
        let built: Built<_, _, _> = Map::from_sorted(by_number, &limited, entries);
        match built {
            Ok(map) => assert_eq!(map.len(), len as usize),
            Err(BulkLoadError::Alloc(AllocError::Limit { .. })) => {
                refused[usize::from(drawn.get() == len)] += 1;
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(live.load(Memory::Relaxed), 0);
    }
    assert!(cfg!(miri) || refused[0] > 3 && refused[1] > 3, "{refused:?}");

    for panics_at in [0, 1, 5, 98] {
        let compared = AtomicU64::new(0);
        let order = move |a: &Tracked, b: &Tracked| {
            assert_ne!(compared.fetch_add(1, Memory::Relaxed), panics_at, "a comparison panics");
            by_number(a, b)
        };
        let load = || -> Built<_, _, _> { Map::from_sorted(order, &apart(), (0..100).map(new)) };
        assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
        assert_eq!(live.load(Memory::Relaxed), 0);
    }
    let load = || -> Built<_, _, _> {
        let entries = (0..100).map(|n| if n < 50 { new(n) } else { panic!("no more entries") });
        Map::from_sorted(by_number, &apart(), entries)
    };
    assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Orders that lie make maps that keep what the tree relies on, and drop each entry once.
#[test]
fn orders_that_lie_do_no_harm() {
    let live = Arc::default();
    let new = |n| Tracked::new(n, &live);
    let rng = Arc::new(Rng::new(5));
    let at_rest = Arc::new(AtomicU64::new(1));
    let (draws, rests) = (Arc::clone(&rng), Arc::clone(&at_rest));
    let order = move |a: &Tracked, b: &Tracked| match rests.load(Memory::Relaxed) {
        0 => [std::cmp::Ordering::Less, std::cmp::Ordering::Greater][draws.below(2) as usize],
        _ => b.number().cmp(&a.number()).then(std::cmp::Ordering::Less),
    };
    let entries = (0..work(5000)).rev().map(|n| (new(n), new(n)));
    let built: Built<_, _, _> = Map::from_sorted(order, &apart(), entries);
    let mut map = built.unwrap();
    at_rest.store(0, Memory::Relaxed);
    for _ in 0..work(5000) {
        map.insert(new(rng.below(9000)), new(1));
        map.remove(&new(rng.below(9000)));
    }
    let violation = map.check();
    assert!(violation.is_err_and(|violation| violation.invariant == "order"));
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Small values under a function lie in the words, and sets refuse what is not in order.
#[test]
fn numbers_in_another_order_and_sets() {
    let descending = |a: &u64, b: &u64| b.cmp(a);
    let entries = (0..work(3000)).rev().map(|n| (n, n + 1));
    let built: Built<u64, u64, _> = Map::from_sorted(descending, &apart(), entries);
    let mut map = built.unwrap();
    assert_eq!(map.check(), Ok(work(3000) as usize));
    assert_eq!(
        map.pin().first().map(|(key, value)| (*key, *value)),
        Some((work(3000) - 1, work(3000)))
    );
    let error = OrdSet::<u64>::from_sorted(Natural, &apart(), [1, 2, 2]).map(drop);
    assert_eq!(error, Err(BulkLoadError::Duplicate { position: 2 }));
}
