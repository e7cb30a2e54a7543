//! `Map`: what its methods do, that values are dropped once and none is forgotten, and what happens where
//! the user's code or memory fails.

#![cfg(not(any(silvics_loom, silvics_shuttle)))]

use silvics::map::{CompareExchangeError, Compute, MapIndex, Operation, TryInsertError};
use silvics::{
    AllocError, ArtTree, BulkLoadError, Check, Key, Map, NatarajanTree, Options, Pages, Pooled,
    Shared, SkipList,
};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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

/// A value that is counted as long as it lives.
#[derive(Debug)]
struct Counted {
    number: u64,
    live: Arc<AtomicI64>,
}

impl Counted {
    fn new(number: u64, live: &Arc<AtomicI64>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self { number, live: Arc::clone(live) }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.number, &self.live)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

fn map<K: Key, V: silvics::map::Value, I: MapIndex<Key = K::Form>>() -> Map<K, V, I> {
    Map::with_options(&Options { pages: Pages::Small, ..Options::default() }).unwrap()
}

/// Random operations by one thread, each compared with a `BTreeMap`'s.
#[expect(clippy::too_many_lines, reason = "one arm for each verb")]
fn agrees<K, V, I>(key: impl Fn(u64) -> K, value: impl Fn(u64) -> V)
where
    K: Key + Ord + Clone + Debug + for<'a> PartialEq<K>,
    V: silvics::map::Value + Clone + PartialEq + Debug,
    I: MapIndex<Key = K::Form> + Check,
{
    let mut map = map::<K, V, I>();
    let mut model = BTreeMap::<K, V>::new();
    let mut rng = Rng(1);
    let owned =
        |entry: (K::Ref<'_>, silvics::ValueRef<'_, V>)| (K::to_owned(entry.0), V::clone(&entry.1));
    for round in 0..6000u64 {
        let (k, v) = (key(rng.below(200)), value(round));
        let view = map.pin();
        match rng.below(18) {
            0..3 => assert_eq!(view.insert(&k, v.clone()).as_deref(), model.insert(k, v).as_ref()),
            3..5 => assert_eq!(view.remove(&k).as_deref(), model.remove(&k).as_ref()),
            5 => assert_eq!(view.get(&k).as_deref(), model.get(&k)),
            6 => match view.try_insert(&k, v.clone()) {
                Ok(new) => {
                    assert_eq!(*new, v);
                    assert_eq!(model.insert(k, v), None);
                }
                Err(TryInsertError::Occupied { present, value }) => {
                    assert_eq!(value, v);
                    assert_eq!(Some(&*present), model.get(&k));
                }
                Err(other) => panic!("{other}"),
            },
            7 => {
                let found = view.get_or_insert_with(&k, || v.clone());
                assert_eq!(*found, *model.entry(k).or_insert(v));
            }
            8 => {
                let odd = |value: &V| format!("{value:?}").len() % 2 == 1;
                match view.remove_if(&k, odd) {
                    Ok(removed) => assert_eq!(removed.as_deref(), model.remove(&k).as_ref()),
                    Err(kept) => {
                        assert!(!odd(&kept));
                        assert_eq!(Some(&*kept), model.get(&k));
                    }
                }
            }
            9 => {
                let new = view.update(&k, |_| v.clone());
                assert_eq!(
                    new.as_deref(),
                    model.get_mut(&k).map(|old| {
                        *old = v;
                        &*old
                    })
                );
            }
            10 => match view.compute(&k, |old| match (old, round % 3) {
                (_, 0) => Operation::Insert(v.clone()),
                (_, 1) => Operation::Remove,
                (old, _) => Operation::Abort(old.cloned()),
            }) {
                Compute::Inserted(new) => {
                    assert_eq!(*new, v);
                    assert_eq!(model.insert(k, v), None);
                }
                Compute::Updated { old, new } => {
                    assert_eq!(*new, v);
                    assert_eq!(model.insert(k, v).as_ref(), Some(&*old));
                }
                Compute::Removed(old) => assert_eq!(model.remove(&k).as_ref(), old.as_deref()),
                Compute::Aborted(seen) => assert_eq!(seen.as_ref(), model.get(&k)),
            },
            11 => {
                let expected = (round % 3 != 0).then(|| model.get(&k)).flatten().cloned();
                let new = (round % 2 == 0).then(|| v.clone());
                match view.compare_exchange(&k, expected.as_ref(), new.clone()) {
                    Ok(old) => {
                        assert_eq!(old.as_deref(), expected.as_ref());
                        assert_eq!(model.get(&k), expected.as_ref());
                        match new {
                            Some(new) => model.insert(k, new),
                            None => model.remove(&k),
                        };
                    }
                    Err(CompareExchangeError::Mismatch { present, new: back }) => {
                        assert_eq!(back, new);
                        assert_eq!(present.as_deref(), model.get(&k));
                        assert_ne!(model.get(&k), expected.as_ref());
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            12 => {
                let to = key(rng.below(200));
                let (from, to) = if k <= to { (k, to) } else { (to, k) };
                let ours: Vec<_> = view.range(&from..&to).map(owned).collect();
                let theirs = model.range(from.clone()..to.clone());
                assert!(ours.iter().map(|(k, v)| (k, v)).eq(theirs));
                let ours: Vec<_> = view.range_rev(&from..=&to).map(owned).collect();
                assert!(ours.iter().map(|(k, v)| (k, v)).eq(model.range(from..=to).rev()));
            }
            13 => {
                let found = view.lower_bound(Bound::Excluded(&k)).map(owned);
                let theirs = model.range((Bound::Excluded(&k), Bound::Unbounded)).next();
                assert_eq!(found.as_ref().map(|(k, v)| (k, v)), theirs);
                let found = view.upper_bound(Bound::Included(&k)).map(owned);
                assert_eq!(found.as_ref().map(|(k, v)| (k, v)), model.range(..=&k).next_back());
                assert_eq!(
                    view.get_key_value(&k).map(owned),
                    model.get_key_value(&k).map(|(k, v)| (k.clone(), v.clone()))
                );
            }
            14 => {
                let keys: Vec<K> = (0..150).map(|_| key(rng.below(250))).collect();
                let mut found = vec![None; 140];
                view.get_many(&keys, &mut found);
                for (key, found) in keys.iter().zip(found) {
                    assert_eq!(found.as_deref(), model.get(key));
                }
            }
            15 => {
                let entries: Vec<_> =
                    (0..rng.below(150)).map(|n| (key(rng.below(200)), value(n))).collect();
                assert_eq!(view.extend(entries.clone()), entries.len());
                model.extend(entries);
            }
            16 if rng.below(20) == 0 => {
                let from = key(100);
                assert_eq!(view.remove_range(&from..), model.split_off(&from).len());
            }
            17 if rng.below(20) == 0 => {
                let keep = |value: &V| format!("{value:?}").len() % 3 != 0;
                let before = model.len();
                model.retain(|_, value| keep(value));
                assert_eq!(view.retain(|_, value| keep(value)), before - model.len());
            }
            _ => assert_eq!(view.contains_key(&k), model.contains_key(&k)),
        }
        drop(view);
        if round % 500 == 0 {
            map.settle();
            assert_eq!(map.check(), Ok(model.len()));
            let view = map.pin();
            assert!(view.iter().map(owned).eq(model.clone()));
            assert!(view.iter_rev().map(owned).eq(model.clone().into_iter().rev()));
            assert_eq!(view.len(), model.len());
        }
    }
    assert_eq!(map.clear(), model.len());
    assert!(map.is_empty());
}

#[test]
fn numbers_agree_with_btreemap() {
    agrees::<u64, u64, ArtTree>(|n| n * n * n * 1_000_003, |n| n);
    agrees::<i32, i8, ArtTree>(|n| n as i32 - 100, |n| n as i8);
    agrees::<u64, bool, SkipList<u64>>(|n| n, |n| n % 2 == 0);
    agrees::<char, char, NatarajanTree>(
        |n| char::from_u32(n as u32 * 100).unwrap(),
        |n| n as u8 as char,
    );
    agrees::<u128, f64, ArtTree<u128>>(|n| u128::from(n) << 60, |n| n as f64);
}

#[test]
fn strings_and_tuples_agree_with_btreemap() {
    let text = |n: u64| format!("{:\u{0}>1$}", n, (n % 7) as usize);
    agrees::<String, String, ArtTree<[u8]>>(text, |n| n.to_string());
    agrees::<String, Arc<str>, SkipList<[u8]>>(text, |n| n.to_string().into());
    agrees::<(String, i64), [u64; 3], ArtTree<[u8], Shared>>(
        |n| ((n % 9).to_string(), 50 - n as i64),
        |n| [n; 3],
    );
    agrees::<Option<Vec<u8>>, Vec<u64>, ArtTree<[u8], Pooled>>(
        |n| n.checked_sub(1).map(|n| n.to_le_bytes()[..(n % 4) as usize].to_vec()),
        |n| vec![n; (n % 5) as usize],
    );
}

#[test]
fn counted_values_agree_with_btreemap_and_are_dropped() {
    fn judged<I: MapIndex<Key = u64> + Check>() {
        let live = Arc::new(AtomicI64::new(0));
        agrees::<u64, Counted, I>(|n| n << 30, |n| Counted::new(n, &live));
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
    judged::<ArtTree>();
    judged::<ArtTree<u64, Shared>>();
    judged::<SkipList<u64>>();
    judged::<NatarajanTree>();
}

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
                            _ => _ = cursor.with_current(|_, value| value.number),
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

const ROUNDS: u64 = if cfg!(miri) { 500 } else { 100_000 };

#[test]
fn nothing_leaks() {
    leaks_nothing::<u64, ArtTree>(ROUNDS, |n| n << 9);
    leaks_nothing::<String, ArtTree<[u8]>>(ROUNDS, |n| format!("{n}/{}", n % 3));
    leaks_nothing::<u64, ArtTree<u64, Shared>>(ROUNDS / 4, |n| n << 9);
}

/// Ten million of each; `just stress` runs it.
#[test]
#[ignore = "takes half a minute when optimised"]
fn nothing_leaks_in_ten_million_operations() {
    leaks_nothing::<u64, ArtTree>(2_500_000, |n| n << 9);
    leaks_nothing::<u64, ArtTree>(2_500_000, |n| n);
    leaks_nothing::<String, ArtTree<[u8]>>(2_500_000, |n| format!("{n}/{}", n % 3));
}

/// Increments by `compute`, `update` and `compare_exchange`, none of which is lost; of values in words and in slots.
#[test]
fn no_update_is_lost() {
    fn judged<V: silvics::map::Value + PartialEq>(of: fn(u64) -> V, number: fn(&V) -> u64) {
        let map = Map::<u64, V>::new();
        let each = ROUNDS / 20;
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let map = &map;
                scope.spawn(move || {
                    for round in 0..each {
                        let key = round % 3;
                        match (thread + round) % 3 {
                            0 => {
                                let add = |old: Option<&V>| {
                                    Operation::Insert::<_, ()>(of(
                                        old.map_or(1, |old| number(old) + 1)
                                    ))
                                };
                                map.pin().compute(key, add);
                            }
                            1 => {
                                if map.update(key, |old| of(number(old) + 1)).is_none()
                                    && map.try_insert(key, of(1)).is_err()
                                {
                                    map.update(key, |old| of(number(old) + 1))
                                        .expect("nobody removes");
                                }
                            }
                            _ => loop {
                                let view = map.pin();
                                let old = view.get(key);
                                let new = of(old.as_deref().map_or(1, |old| number(old) + 1));
                                if view.compare_exchange(key, old.as_deref(), Some(new)).is_ok() {
                                    break;
                                }
                            },
                        }
                    }
                });
            }
        });
        let sum: u64 = map.pin().values().map(|value| number(&value)).sum();
        assert_eq!(sum, 3 * each);
    }
    judged(|n| n, |n| *n);
    judged(|n| n.to_string(), |text| text.parse().unwrap());
}

/// A value that can be changed in place is the same one for all.
#[test]
fn values_stay_at_one_address() {
    let map: Map<u32, AtomicU64> = Map::new();
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

#[test]
fn large_aligned_and_empty_values() {
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(8192))]
    struct Aligned(u8);
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(256))]
    struct Lined(u8);
    #[derive(Clone, Debug, PartialEq)]
    struct Nothing;
    agrees::<u64, [u64; 1200], ArtTree>(|n| n % 40, |n| [n; 1200]);
    agrees::<u64, Aligned, ArtTree>(|n| n, |n| Aligned(n as u8));
    agrees::<u64, Lined, ArtTree<u64, Shared>>(|n| n, |n| Lined(n as u8));
    agrees::<u64, Nothing, ArtTree>(|n| n, |_| Nothing);
    agrees::<u64, (), ArtTree>(|n| n, |_| ());
    let map: Map<u64, Aligned> = Map::new();
    map.insert(1, Aligned(1));
    let address = std::ptr::from_ref(&*map.get(1).unwrap()).addr();
    assert_eq!(address % 8192, 0);
}

/// Symptom that this prevents: a value's destructor that calls the map, run by the collector under a lock
/// of the index.
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

/// Whether a call panics, whatever it returns.
fn panics<R>(call: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

#[test]
fn panics_of_the_users_code_lose_nothing() {
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let mut map: Map<u64, Counted> = Map::new();
    for n in 0..100 {
        map.insert(n, value(n));
    }
    let view = map.pin();
    assert!(panics(|| view.compute::<()>(1, |_| panic!("compute"))));
    assert!(panics(|| view.compute::<()>(500, |_| panic!("compute, absent"))));
    assert!(panics(|| view.update(2, |_| panic!("update"))));
    assert!(panics(|| view.get_or_insert_with(501, || panic!("make"))));
    assert!(panics(|| view.remove_if(3, |_| panic!("condition"))));
    let some = (0..).map(|n| if n == 70 { panic!("iterator") } else { (1000 + n, value(n)) });
    assert!(panics(|| view.extend(some)));
    assert_eq!(view.range(1000..).count(), 70, "what came before is in");
    assert_eq!(view.remove_range(1000..), 70);
    let mut asked = 0;
    let keep = |_: &u64, _: &Counted| {
        asked += 1;
        assert!(asked <= 10, "retain");
        asked % 2 == 0
    };
    assert!(panics(|| view.retain(keep)));
    assert_eq!(view.len(), 95, "what was decided is done");
    drop(view);
    map.settle();
    assert_eq!(map.check(), Ok(95));
    assert_eq!(live.load(Ordering::Relaxed), 95);
}

#[test]
fn panics_of_destructors_and_comparisons_lose_nothing() {
    struct Rude(Arc<AtomicI64>, u64);
    impl Drop for Rude {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
            assert!(!self.1.is_multiple_of(3), "destructor");
        }
    }
    impl PartialEq for Rude {
        fn eq(&self, _: &Self) -> bool {
            panic!("comparison")
        }
    }
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| {
        live.fetch_add(1, Ordering::Relaxed);
        Rude(Arc::clone(&live), n)
    };
    let mut map: Map<u64, Rude> = Map::new();
    for n in 0..1000 {
        map.insert(n % 200, value(n));
    }
    assert!(panics(|| map.pin().compare_exchange(1, Some(&value(1)), Some(value(2))).is_ok()));
    map.settle();
    assert_eq!(map.check(), Ok(200));
    assert_eq!(live.load(Ordering::Relaxed), 200);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A key that panics where it is encoded, before or after the call that it is for.
#[test]
fn panics_of_encodings_lose_nothing() {
    use silvics::AsKey;
    use silvics::key::{Encoder, FormRef};
    struct Early;
    struct Late(u64);
    impl AsKey<u64> for Early {
        fn with_form<R>(&self, _: impl FnOnce(FormRef<'_, u64>) -> R) -> R {
            panic!("early")
        }
        fn write(&self, _: &mut Encoder) {}
    }
    impl AsKey<u64> for Late {
        fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, u64>) -> R) -> R {
            let _done = then(self.0);
            panic!("late")
        }
        fn write(&self, _: &mut Encoder) {}
    }
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let mut map: Map<u64, Counted> = Map::new();
    let view = map.pin();
    assert!(panics(|| view.insert(Early, value(1))));
    assert!(panics(|| view.extend([(Early, value(1))])));
    assert!(view.is_empty());
    assert!(panics(|| view.insert(Late(1), value(1))));
    assert!(panics(|| view.try_insert(Late(2), value(2))));
    assert!(panics(|| view.insert(Late(2), value(3))));
    assert!(panics(|| view.remove(Late(1))));
    assert!(panics(|| view.compute::<()>(Late(4), |_| Operation::Insert(value(4)))));
    assert!(panics(|| view.compare_exchange(Late(2), Some(&value(3)), Some(value(5)))));
    let found: Vec<_> = view.iter().map(|(key, value)| (key, value.number)).collect();
    assert_eq!(found, [(2, 5), (4, 4)]);
    drop(view);
    map.settle();
    assert_eq!(live.load(Ordering::Relaxed), 2);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn at_the_limit_values_come_back() {
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let limit = 4 << 20;
    let options = Options { memory_limit: Some(limit), pages: Pages::Small, ..Options::default() };
    let map = Map::<u64, Counted>::with_options(&options).unwrap();
    let entries = (0..).map(|n: u64| (n << 20, value(n)));
    let error = map.try_extend(entries).expect_err("there is a limit");
    assert!(matches!(error.error, AllocError::Limit { .. }), "{error}");
    assert_eq!(error.to_string().split(' ').next(), Some(&*error.done.to_string()));
    assert!(map.bytes() <= limit && map.bytes() > limit / 2, "{}", map.bytes());
    assert_eq!(map.len(), error.done);
    let (next, refused) = { error.rest }.next().expect("the refused one");
    assert_eq!((next, refused.number), ((map.len() as u64) << 20, map.len() as u64));
    drop(refused);

    // One at a time, until there is room for neither value nor node.
    let view = map.pin();
    let mut last = 0;
    while let Ok(None) = view.try_upsert(1 << 60 | last << 20, value(last)) {
        last += 1;
    }
    let refused = |number: u64| assert_eq!(number, last);
    let key = 1 << 60 | last << 20;
    refused(view.try_upsert(key, value(last)).expect_err("full").value.number);
    match view.try_insert(key, value(last)) {
        Err(TryInsertError::Alloc(rejected)) => refused(rejected.value.number),
        other => panic!("{other:?}"),
    }
    let rejected = view.try_compute(key, |_| Operation::Insert::<_, ()>(value(last)));
    refused(rejected.expect_err("full").value.expect("was to be inserted").number);
    match view.compare_exchange(key, None, Some(value(last))) {
        Err(CompareExchangeError::Alloc(rejected)) => refused(rejected.value.unwrap().number),
        other => panic!("{other:?}"),
    }
    assert!(panics(|| view.insert(key, value(last))), "a sentence, and an end");
    assert!(!view.contains_key(key));
    assert_eq!(live.load(Ordering::Relaxed), view.len() as i64);
    view.remove(0).expect("present");
    drop(view);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn a_key_that_is_too_long_is_refused() {
    let map: Map<String, String> = Map::new();
    let key = "x".repeat(100_000);
    let view = map.pin();
    let rejected = view.try_upsert(&key, "value".to_string()).expect_err("too long");
    assert!(matches!(rejected.error, AllocError::KeyLength { .. }));
    assert_eq!(rejected.value, "value");
    let error =
        map.try_extend([("a", "1".to_string()), (&key, "2".to_string()), ("b", "3".to_string())]);
    let error = error.expect_err("too long");
    assert_eq!(error.done, 1);
    assert_eq!(error.rest.map(|(_, value)| value).collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(map.len(), 1);
    assert_eq!(view.get(&key), None);
}

#[test]
fn sorted_entries_make_a_map() {
    fn judged<I: MapIndex<Key = [u8]> + Check>() {
        let live = Arc::new(AtomicI64::new(0));
        let entry = |n: u64| (format!("{n:05}"), Counted::new(n, &live));
        let mut map = Map::<String, Counted, I>::from_sorted((0..5000).map(entry)).unwrap();
        assert_eq!(map.check(), Ok(5000));
        assert!(map.pin().values().map(|value| value.number).eq(0..5000));
        let unsorted = [1, 2, 4, 3, 5].map(entry);
        let error = Map::<String, Counted, I>::from_sorted(unsorted).map(drop);
        assert_eq!(error, Err(BulkLoadError::Unsorted { position: 3 }));
        let twice = [1, 2, 2].map(entry);
        let error = Map::<String, Counted, I>::from_sorted(twice).map(drop);
        assert_eq!(error, Err(BulkLoadError::Duplicate { position: 2 }));
        let error = Map::<String, Counted, I>::builder()
            .memory_limit(1 << 20)
            .from_sorted((0..90_000).map(entry))
            .map(drop);
        assert!(matches!(error, Err(BulkLoadError::Alloc(_))), "{error:?}");
        assert_eq!(live.load(Ordering::Relaxed), 5000);
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
    judged::<ArtTree<[u8]>>();
    judged::<SkipList<[u8]>>();
}

/// What is lent stays readable under its pin, whatever happens to the map meanwhile.
#[test]
fn what_is_lent_stays() {
    let map: Map<u64, String> = Map::new();
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
    let map: Map<u64, Counted> = Map::new();
    let view = map.pin();
    for n in 0..10_000 {
        view.insert(n % 100, Counted::new(n, &live));
    }
    assert!(live.load(Ordering::Relaxed) > 9000, "the view protects them");
    drop(view);
    let batches = 10_000 / silvics::domain::BATCH_OBJECTS;
    let pins = 128 * (batches.div_ceil(8) + 2) + batches; // as `domain` says, and a batch or two for each
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
    let options = Options { domain: Some(domain.clone()), ..Options::default() };
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

/// What stands for a string, and is not always text.
struct Latin(&'static [u8]);

impl silvics::AsKey<String> for Latin {
    fn with_form<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.0)
    }
    fn write(&self, to: &mut silvics::key::Encoder) {
        to.push_string(self.0);
    }
}

#[test]
fn what_is_no_text_does_not_come_among_strings() {
    let live = Arc::new(AtomicI64::new(0));
    let value = || Counted::new(1, &live);
    let (text, other) = (Latin(b"text"), Latin(b"na\xefve"));
    let mut map: Map<String, Counted> = Map::new();
    map.insert(&text, value());
    assert!(panics(|| map.insert(&other, value()).map(drop)));
    assert!(panics(|| map.try_insert(&other, value()).map(drop).is_ok()));
    assert!(panics(|| map.pin().insert_many([(&text, value()), (&other, value())]).len()));
    assert!(panics(|| map.extend([(&other, value())])));
    assert!(panics(|| drop(map.compute(&other, |_| Operation::<_, ()>::Insert(value())))));
    assert!(panics(|| map.get_or_insert_with(&other, value).number));
    assert!(panics(|| drop(map.pin().compare_exchange(&other, None, Some(value())))));
    let sorted = || [(&other, value()), (&text, value())];
    assert!(panics(|| Map::<String, Counted>::builder().from_sorted(sorted()).is_ok()));
    assert!(!map.contains_key(&other) && map.remove(&other).is_none());
    let keys: Vec<String> = map.pin().keys().map(String::from).collect();
    assert_eq!(keys, ["text"]);
    map.check().unwrap();
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}
