//! Counted entries, in a tree whose base nodes are split and joined all the time. `silvics-skipmap`
//! has the other tests.

use super::*;
use silvics::ord::counted::{Ends, IfPresent, Map};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

type Counted<K, V> = Map<K, V, Restless>;

/// Ranges of which some is taken between writes return the entry that is next at each step.
fn steps_see_each_write<K: Ord + Clone + Debug>(key: impl Fn(u64) -> K) {
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let (rng, keys) = (Rng::new(seed), [30, 3000][seed as usize % 2]);
        let mut map: Counted<K, u64> = Map::new().expect("there is memory");
        let mut model = BTreeMap::new();
        for n in 0..work(30_000) / 4 {
            let k = key(rng.below(keys));
            drop(map.insert(k.clone(), n, &IfPresent::Replace));
            model.insert(k, n);
        }
        let mut ends = Ends::new(&map);
        let mut taken = [None::<K>, None];
        for n in 0..work(10_000) {
            let k = key(rng.below(keys));
            match rng.below(16) {
                0 => {
                    drop(map.insert(k.clone(), n, &IfPresent::Replace));
                    model.insert(k, n);
                }
                1 => {
                    let removed = map.remove(&k).map(|entry| *entry.value());
                    assert_eq!(removed, model.remove(&k));
                }
                2 if rng.below(20) == 0 => (ends, taken) = (Ends::new(&map), [None, None]),
                3 => {
                    let high = taken[1].clone().map_or(Bound::Unbounded, Bound::Excluded);
                    let found = ends.next_back::<K>(&..).map(|e| (e.key().clone(), *e.value()));
                    let low = taken[0].clone().map_or(Bound::Unbounded, Bound::Excluded);
                    let last = model.range((Bound::Unbounded, high)).next_back();
                    let last = last.filter(|(key, _)| (low, Bound::Unbounded).contains(key));
                    assert_eq!(found, last.map(|(key, value)| (key.clone(), *value)));
                    taken[1] = found.map(|(key, _)| key).or(taken[1].take());
                }
                _ => {
                    let low = taken[0].clone().map_or(Bound::Unbounded, Bound::Excluded);
                    let found = ends.next::<K>(&..).map(|e| (e.key().clone(), *e.value()));
                    let high = taken[1].clone().map_or(Bound::Unbounded, Bound::Excluded);
                    let first = model.range((low, Bound::Unbounded)).next();
                    let first = first.filter(|(key, _)| (Bound::Unbounded, high).contains(key));
                    assert_eq!(found, first.map(|(key, value)| (key.clone(), *value)));
                    taken[0] = found.map(|(key, _)| key).or(taken[0].take());
                }
            }
        }
        drop(ends);
        assert_eq!(map.check(), Ok(model.len()));
        assert!(map.into_entries().eq(model));
    }
}

#[test]
fn steps_along_integers_see_each_write() {
    steps_see_each_write(|n| n);
    steps_see_each_write(|n| n as i16);
}

#[test]
fn steps_along_other_keys_see_each_write() {
    steps_see_each_write(|n| n.to_string());
    steps_see_each_write(|n| (n % 7, n));
}

/// Threads insert, replace, remove and keep entries. All pairs are dropped once, and none while an
/// entry has it.
#[test]
fn entries_survive_splits_and_joins() {
    let live: Arc<AtomicI64> = Arc::default();
    let map: Counted<Tracked, Tracked> = Map::new().expect("there is memory");
    let rng = Rng::new(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut kept = Vec::new();
                for n in 0..work(30_000) {
                    let key = Tracked::new(rng.below(500), &live);
                    let value = || Tracked::new(n, &live);
                    let entry = match rng.below(8) {
                        0 | 1 => Some(map.insert(key, value(), &IfPresent::Replace)),
                        2 => Some(map.insert(key, value(), &IfPresent::Keep)),
                        3 => {
                            let even = |old: &Tracked| old.number().is_multiple_of(2);
                            Some(map.insert(key, value(), &IfPresent::ReplaceIf(&even)))
                        }
                        4 | 5 => map.remove(&key),
                        6 => {
                            let mut ends = Ends::new(&map);
                            let range = (Bound::Excluded(&key), Bound::Unbounded);
                            (0..9).find_map(|_| {
                                ends.next::<Tracked>(&range).filter(|_| rng.below(9) == 0)
                            })
                        }
                        _ => map.get(&key),
                    };
                    kept.extend(entry);
                    if kept.len() > 30 {
                        let entry = kept.swap_remove(rng.below(30) as usize);
                        assert!(entry.key().number() < 500 && entry.value().number() < 30_000);
                        kept.extend(entry.beside::<true>());
                    }
                }
            });
        }
    });
    let mut map = map;
    let len = map.check().expect("the tree is sound");
    assert_eq!(len, map.len());
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}
