//! Every verb agrees with a `BTreeMap`, and no update of concurrent threads is lost.

use crate::{Counted, ROUNDS, Rng, map};
use silvics::map::{CompareExchangeError, Compute, MapIndex, Operation, TryInsertError};
use silvics::{
    ArtTree, BlockTree, BulkLoadError, Check, Key, Map, NatarajanTree, Pooled, Shared, SkipList,
    WordTree,
};
use silvics_sync::atomic::{AtomicI64, Ordering};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

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
                let mut found = [const { None }; 140];
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
    agrees::<u64, u64, WordTree<u64>>(|n| n * n * n * 1_000_003, |n| n);
    agrees::<i32, i8, WordTree<u64>>(|n| n as i32 - 100, |n| n as i8);
    agrees::<u64, bool, SkipList<u64>>(|n| n, |n| n % 2 == 0);
    agrees::<char, char, NatarajanTree>(
        |n| char::from_u32(n as u32 * 100).unwrap(),
        |n| n as u8 as char,
    );
    agrees::<u128, f64, WordTree<u128>>(|n| u128::from(n) << 60, |n| n as f64);
    agrees::<u64, u64, ArtTree<u64>>(|n| n * n * n * 1_000_003, |n| n);
    agrees::<u128, f64, ArtTree<u128>>(|n| u128::from(n) << 60, |n| n as f64);
}

#[test]
fn strings_and_tuples_agree_with_btreemap() {
    let text = |n: u64| format!("{:\u{0}>1$}", n, (n % 7) as usize);
    agrees::<String, String, BlockTree<[u8]>>(text, |n| n.to_string());
    agrees::<String, Arc<str>, SkipList<[u8]>>(text, |n| n.to_string().into());
    agrees::<String, Arc<str>, ArtTree<[u8]>>(text, |n| n.to_string().into());
    agrees::<Option<Vec<u8>>, Vec<u64>, ArtTree<[u8]>>(
        |n| n.checked_sub(1).map(|n| n.to_le_bytes()[..(n % 4) as usize].to_vec()),
        |n| vec![n; (n % 5) as usize],
    );
    agrees::<(String, i64), [u64; 3], BlockTree<[u8], Shared>>(
        |n| ((n % 9).to_string(), 50 - n as i64),
        |n| [n; 3],
    );
    agrees::<Option<Vec<u8>>, Vec<u64>, BlockTree<[u8], Pooled>>(
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
    judged::<WordTree<u64>>();
    judged::<WordTree<u64, Shared>>();
    judged::<SkipList<u64>>();
    judged::<ArtTree<u64>>();
    judged::<NatarajanTree>();
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
    agrees::<u64, [u64; 1200], WordTree<u64>>(|n| n % 40, |n| [n; 1200]);
    agrees::<u64, Aligned, WordTree<u64>>(|n| n, |n| Aligned(n as u8));
    agrees::<u64, Lined, WordTree<u64, Shared>>(|n| n, |n| Lined(n as u8));
    agrees::<u64, Nothing, WordTree<u64>>(|n| n, |_| Nothing);
    agrees::<u64, (), WordTree<u64>>(|n| n, |_| ());
    let map: Map<u64, Aligned> = Map::new();
    map.insert(1, Aligned(1));
    let address = std::ptr::from_ref(&*map.get(1).unwrap()).addr();
    assert_eq!(address % 8192, 0);
}

/// The keys that begin with a prefix end before the next byte string of its length, if there is
/// one.
#[test]
fn prefixes_in_both_directions() {
    const BYTES: [u8; 4] = [0, 1, 0xFE, 0xFF];
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for len in 0..3 {
        let longer = keys.iter().filter(|key| key.len() == len);
        let longer = longer.flat_map(|key| BYTES.map(|byte| [&key[..], &[byte]].concat()));
        keys.extend(longer.collect::<Vec<_>>());
    }
    keys.sort_unstable();
    let map: Map<Vec<u8>, usize> = map();
    for (at, key) in keys.iter().enumerate() {
        assert!(map.insert(key.clone(), at).is_none());
    }
    let view = map.pin();
    for prefix in &keys {
        let begins = |at: &usize| keys[*at].starts_with(prefix);
        let wanted: Vec<usize> = (0..keys.len()).filter(begins).collect();
        let ascending: Vec<usize> = view.prefix(&prefix[..]).map(|(_, at)| *at).collect();
        assert_eq!(ascending, wanted, "{prefix:?}");
        let mut descending: Vec<usize> = view.prefix_rev(&prefix[..]).map(|(_, at)| *at).collect();
        descending.reverse();
        assert_eq!(descending, wanted, "{prefix:?}, descending");
    }
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
    judged::<BlockTree<[u8]>>();
    judged::<ArtTree<[u8]>>();
    judged::<SkipList<[u8]>>();
}

#[test]
fn entries_in_any_order_make_a_map() {
    fn judged<K: Key, I: MapIndex<Key = K::Form> + Check>(key: impl Fn(u64) -> K) {
        let live = Arc::new(AtomicI64::new(0));
        let orders: [Vec<u64>; 6] = [
            Vec::new(),
            (0..3_000).collect(),
            (0..3_000).rev().collect(),
            (0..3_000).map(|n| n * 7 % 1_009).collect(),
            (0..3_000).map(|n| n / 3).collect(),
            vec![5; 100],
        ];
        for order in &orders {
            let mut model = BTreeMap::new();
            for (at, n) in (0..).zip(order) {
                model.insert(*n, at);
            }
            let entries = (0..).zip(order).map(|(at, n)| (key(*n), Counted::new(at, &live)));
            let mut map: Map<K, Counted, I> = entries.collect();
            map.settle();
            assert_eq!(live.load(Ordering::Relaxed), model.len() as i64, "replaced ones are gone");
            assert_eq!(map.check(), Ok(model.len()));
            for (n, at) in &model {
                assert_eq!(map.remove(key(*n)).expect("it was there").number, *at, "{n}");
            }
            assert_eq!(map.len(), 0);
            drop(map);
            assert_eq!(live.load(Ordering::Relaxed), 0);
        }
    }
    judged::<u64, WordTree<u64>>(|n| n << 20);
    judged::<u32, WordTree<u64>>(|n| n as u32);
    judged::<u128, WordTree<u128>>(|n| u128::from(n) << 70);
    judged::<u64, NatarajanTree>(|n| n << 20);
    judged::<String, BlockTree<[u8]>>(|n| n.to_string());
    judged::<String, ArtTree<[u8]>>(|n| n.to_string());
    judged::<String, SkipList<[u8]>>(|n| n.to_string());
}

/// No increment by `compute`, `update` or `compare_exchange` is lost. Values are in words or slots.
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
