//! The life of a value: it is dropped once, at the right time, and stays at its address until then.

use crate::{Counted, ROUNDS, Rng, map};
use silvics::map::{MapIndex, Operation};
use silvics::{
    BlockTree, Check, Key, Map, NatarajanTree, Options, Pooled, Shared, SkipList, WordTree,
};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use silvics_testkit::make::apart;
use std::sync::Arc;

/// Threads do anything; then exactly what is in the map lives, and after it nothing.
fn leaks_nothing<K: Key, I: MapIndex<Key = K::Form> + Check + silvics::OrderedEnds>(
    rounds: u64,
    key: impl Fn(u64) -> K + Sync,
) {
    let live = Arc::new(AtomicI64::new(0));
    let mut map = Arc::new(map::<K, Counted, I>());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (map, live, key) = (&map, &live, &key);
            scope.spawn(move || {
                let mut rng = Rng(thread);
                let mut view = map.pin();
                let mut cursor = map.cursor();
                for round in 0..rounds {
                    let (k, value) = (key(rng.below(512)), || Counted::new(round, live));
                    match rng.below(14) {
                        0..3 => drop(view.insert(k, value()).map(|old| old.number)),
                        3 => drop(view.try_insert(k, value()).map(|new| new.number)),
                        4..6 => drop(view.remove(k).map(|old| old.number)),
                        6 => drop(view.compute(k, |old| match old {
                            Some(old) if old.number % 2 == 0 => Operation::Remove,
                            Some(_) => Operation::Abort(()),
                            None => Operation::Insert(value()),
                        })),
                        7 => drop(view.pop_first().map(|(_, old)| old.number)),
                        8 => drop(map.pop_last().map(|(_, old)| old.number)),
                        9 => {
                            let sum: u64 =
                                view.range(k..).take(9).map(|(_, value)| value.number).sum();
                            std::hint::black_box(sum);
                        }
                        10 => drop(map.update(k, |old| Counted::new(old.number + 1, live))),
                        11 => match rng.below(3) {
                            0 => _ = cursor.seek(k),
                            1 => _ = cursor.next() && cursor.prev(),
                            _ => {
                                _ = cursor.with_current(|_, value| value.map(|value| value.number));
                            }
                        },
                        12 if rng.below(256) == 0 => match rng.below(4) {
                            0 => _ = map.extend((0..100).map(|n| (key(5 * n), value()))),
                            1 => _ = view.retain(|_, value| value.number % 3 != 0),
                            2 => _ = map.remove_range(k..),
                            _ => _ = map.shrink(),
                        },
                        12 => drop(map.pin_owned().insert(k, value()).map(|old| old.number)),
                        _ => drop(map.get(k).map(|value| value.number)),
                    }
                    if round % 64 == 0 {
                        view.repin();
                    }
                }
            });
        }
    });
    let map_alone = Arc::get_mut(&mut map).expect("cursors are gone");
    map_alone.settle();
    let entries = map_alone.check().unwrap();
    assert_eq!(
        live.load(Ordering::Relaxed),
        entries as i64,
        "what is in the map lives, and nothing else"
    );
    let stats = map_alone.pool_stats();
    for (kind, count) in map_alone.reachable().unwrap() {
        let live = stats
            .iter()
            .filter(|stats| stats.kind == kind)
            .map(|stats| stats.live_slots)
            .sum::<usize>();
        assert_eq!(live, count, "{kind}");
    }
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn nothing_leaks() {
    leaks_nothing::<u64, WordTree<u64>>(ROUNDS, |n| n << 9);
    leaks_nothing::<String, BlockTree<[u8]>>(ROUNDS, |n| format!("{n}/{}", n % 3));
    leaks_nothing::<u64, WordTree<u64, Shared>>(ROUNDS / 4, |n| n << 9);
}

/// Ten million of each; `just stress` runs it.
#[test]
#[ignore = "takes half a minute when optimised"]
fn nothing_leaks_in_ten_million_operations() {
    leaks_nothing::<u64, WordTree<u64>>(2_500_000, |n| n << 9);
    leaks_nothing::<u64, WordTree<u64>>(2_500_000, |n| n);
    leaks_nothing::<String, BlockTree<[u8]>>(2_500_000, |n| format!("{n}/{}", n % 3));
}

/// A value that can be changed in place is the same one for all.
#[test]
fn values_stay_at_one_address() {
    let map: Map<u32, AtomicU64> = Map::with_options(&apart()).unwrap();
    map.insert(7, AtomicU64::new(0));
    let address = || std::ptr::from_ref(&*map.get(7).unwrap()).addr();
    let at = address();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let map = &map;
            scope.spawn(move || {
                for round in 0..1000 {
                    map.get(7).unwrap().fetch_add(1, Ordering::Relaxed);
                    map.insert(1000 * (thread + 1) + round, AtomicU64::new(0)); // the tree grows
                }
            });
        }
    });
    assert_eq!(map.get(7).unwrap().load(Ordering::Relaxed), 4000);
    assert_eq!(address(), at);
}

/// Symptom: the collector ran a value's destructor under a lock of the index, and the destructor
/// called the map.
#[test]
fn destructors_may_call_the_map() {
    struct Chained {
        map: std::sync::Weak<Map<u64, Chained>>,
        next: u64,
        live: Arc<AtomicI64>,
    }
    impl Drop for Chained {
        fn drop(&mut self) {
            self.live.fetch_sub(1, Ordering::Relaxed);
            if let Some(map) = self.map.upgrade() {
                map.remove(self.next);
                map.get(self.next / 2);
            }
        }
    }
    let live = Arc::new(AtomicI64::new(0));
    let map = Arc::new(Map::<u64, Chained>::new());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (map, live) = (&map, &live);
            scope.spawn(move || {
                let mut rng = Rng(thread);
                for round in 0..ROUNDS / 4 {
                    live.fetch_add(1, Ordering::Relaxed);
                    let value = Chained {
                        map: Arc::downgrade(map),
                        next: rng.below(300),
                        live: Arc::clone(live),
                    };
                    map.insert(round % 300, value);
                }
            });
        }
    });
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A borrowed value stays readable under its pin, whatever happens to the map meanwhile.
#[test]
fn borrowed_values_stay_readable() {
    let map: Map<u64, String> = Map::with_options(&apart()).unwrap();
    map.insert(1, "one".into());
    let held = map.get(1).unwrap();
    let view = map.pin();
    let lent = view.insert(1, "two".into()).unwrap();
    let popped = view.pop_first().unwrap();
    for n in 0..10_000 {
        map.insert(n % 7, n.to_string());
    }
    assert_eq!((&**held, &**lent, &**popped.1), ("one", "one", "two"));
}

/// Destructors that waited for a guard run when the map is pinned again, without a write.
#[test]
fn pins_drop_what_has_been_removed() {
    let live = Arc::new(AtomicI64::new(0));
    let map: Map<u64, Counted> = Map::with_options(&apart()).unwrap();
    let view = map.pin();
    for n in 0..10_000 {
        view.insert(n % 100, Counted::new(n, &live));
    }
    assert!(live.load(Ordering::Relaxed) > 9000, "the view protects them");
    drop(view);
    let batches = 10_000 / silvics::domain::BATCH_OBJECTS;
    // The bound that `domain` documents, and a batch or two for each pin.
    let pins = 128 * (batches.div_ceil(8) + 2) + batches;
    for _ in 0..pins {
        map.contains_key(1);
    }
    let left = live.load(Ordering::Relaxed) as usize;
    assert!(left < 100 + silvics::domain::BATCH_OBJECTS, "{left} live after {pins} pins");
}

/// A map dropped while a guard of its domain lives gives its values back at once.
#[test]
fn a_dropped_map_drops_its_values_whatever_guards_there_are() {
    let domain = silvics::Domain::new();
    let live = Arc::new(AtomicI64::new(0));
    let options = Options { domain: Some(domain.clone()), ..apart() };
    let map = Map::<u64, Counted>::with_options(&options).unwrap();
    let guard = domain.pin();
    for n in 0..10_000 {
        map.insert(n % 100, Counted::new(n, &live));
    }
    assert!(live.load(Ordering::Relaxed) > 5000, "the guard protects them");
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
    drop(guard);
}

/// A map places its values in the memory that its index places nodes in: pools, or a shared heap.
#[test]
fn values_are_placed_like_the_nodes_of_the_index() {
    fn regions<I: MapIndex<Key = u64> + Check>() -> (usize, usize) {
        let mut map = map::<u64, String, I>();
        // More than the first objects, which have no region.
        map.extend((0..8000).map(|n| (n, n.to_string())));
        let stats = map.pool_stats();
        let (values, nodes): (Vec<_>, Vec<_>) =
            stats.iter().partition(|stats| stats.kind == "value");
        assert_eq!(values.iter().map(|stats| stats.live_slots).sum::<usize>(), 8000);
        let regions = |stats: &[&silvics::PoolStats]| stats.iter().map(|s| s.regions.len()).sum();
        let regions = (regions(&values), regions(&nodes));
        assert_eq!(map.check(), Ok(8000));
        regions
    }
    let in_pools = |(values, nodes): (usize, usize)| values > 0 && nodes > 0;
    assert_eq!(regions::<NatarajanTree<Shared>>(), (0, 0));
    assert_eq!(regions::<SkipList<u64, Shared>>(), (0, 0));
    assert_eq!(regions::<WordTree<u64, Shared>>(), (0, 0));
    assert!(in_pools(regions::<NatarajanTree<Pooled>>()));
    assert!(in_pools(regions::<SkipList<u64, Pooled>>()));
    assert!(in_pools(regions::<WordTree<u64, Pooled>>()));
}
