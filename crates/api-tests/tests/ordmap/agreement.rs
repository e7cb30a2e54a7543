//! Maps do as a `BTreeMap` in the same order.

use super::*;
use silvics::ord::{ByHead, Entry, KeyHead, Natural, OnBorrowed, OrdView};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

/// A range has these entries from the front, from the back, and from both ends in turns.
fn range_agrees<K, M, C, B>(
    view: &OrdView<'_, K, u64, C, Pooled, B>,
    bounds: (Bound<&K>, Bound<&K>),
    of: impl Fn(&K) -> M,
    expected: &[(M, u64)],
    rng: &Rng,
) where
    K: silvics::map::Value,
    M: Ord + Clone + Debug,
    C: Compares<K, K>,
    B: Build,
{
    let own = |(key, value): Entry<'_, K, u64>| (of(&key), *value);
    let found: Vec<_> = view.range(bounds).map(own).collect();
    assert_eq!(found, expected);
    let mut back: Vec<_> = view.range(bounds).rev().map(own).collect();
    back.reverse();
    assert_eq!(back, expected);
    let mut range = view.range(bounds);
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while let Some(()) = if rng.below(2) == 0 {
        range.next().map(|entry| front.push(own(entry)))
    } else {
        range.next_back().map(|entry| back.push(own(entry)))
    } {}
    back.reverse();
    assert_eq!([front, back].concat(), expected);
}

/// A key and its neighbours are those of the model.
fn neighbours_agree<K, M, C, B>(
    view: &OrdView<'_, K, u64, C, Pooled, B>,
    new: &K,
    of: impl Fn(&K) -> M,
    model: &BTreeMap<M, u64>,
) where
    K: silvics::map::Value,
    M: Ord + Clone + Debug,
    C: Compares<K, K>,
    B: Build,
{
    let at = of(new);
    let own = |(key, value): Entry<'_, K, u64>| (of(&key), *value);
    let in_model = |(key, value): (&M, &u64)| (key.clone(), *value);
    assert_eq!(view.get(new).map(|value| *value), model.get(&at).copied());
    assert_eq!(view.get_key_value(new).map(own), model.get_key_value(&at).map(in_model));
    assert_eq!(view.first().map(own), model.first_key_value().map(in_model));
    assert_eq!(view.last().map(own), model.last_key_value().map(in_model));
    let lower = view.lower_bound(Bound::Excluded(new)).map(own);
    let range = (Bound::Excluded(at.clone()), Bound::Unbounded);
    assert_eq!(lower, model.range(range).next().map(in_model));
    let upper = view.upper_bound(Bound::Included(new)).map(own);
    assert_eq!(upper, model.range(..=at).next_back().map(in_model));
}

/// Runs random operations on a map and on a model whose keys are in the natural order of `of`.
fn agrees<K, M, C, B>(order: C, key: impl Fn(u64) -> K, of: impl Fn(&K) -> M)
where
    K: silvics::map::Value,
    M: Ord + Clone + Debug,
    C: Compares<K, K>,
    B: Build,
{
    let mut map: Map<K, u64, C, B> = map(order);
    let mut model: BTreeMap<M, u64> = BTreeMap::new();
    let rng = Rng::new(1);
    for round in 0..work(30_000) {
        let view = map.pin();
        let new = key(rng.below(500));
        let at = of(&new);
        match rng.below(12) {
            0..4 => assert_eq!(view.insert(new, round).map(|old| *old), model.insert(at, round)),
            4 => {
                let is_new = view.try_insert(new, round).is_ok();
                assert_eq!(is_new, !model.contains_key(&at));
                model.entry(at).or_insert(round);
            }
            5..8 => assert_eq!(view.remove(&new).map(|old| *old), model.remove(&at)),
            8 => {
                let popped = view.pop_first().map(|(key, value)| (of(&key), *value));
                assert_eq!(popped, model.pop_first());
            }
            9 => {
                let updated = view.update(&new, |value| value + 1).map(|value| *value);
                let expected = model.get_mut(&at).map(|value| {
                    *value += 1;
                    *value
                });
                assert_eq!(updated, expected);
            }
            10 => {
                let (low, high) = (key(rng.below(500)), key(rng.below(500)));
                let (low, high) = if of(&low) <= of(&high) { (low, high) } else { (high, low) };
                for bounds in [
                    (Bound::Included(&low), Bound::Excluded(&high)),
                    (Bound::Excluded(&low), Bound::Included(&high)),
                ] {
                    let is_empty = of(&low) == of(&high);
                    let in_model = (bounds.0.map(&of), bounds.1.map(&of));
                    let expected: Vec<_> = if is_empty {
                        Vec::new()
                    } else {
                        model.range(in_model).map(|(key, value)| (key.clone(), *value)).collect()
                    };
                    range_agrees(&view, bounds, &of, &expected, &rng);
                }
            }
            _ => neighbours_agree(&view, &new, &of, &model),
        }
        drop(view);
        assert_eq!(map.len(), model.len());
        if round % 1000 == 0 {
            assert_eq!(map.check(), Ok(model.len()));
        }
    }
    assert_eq!(map.check(), Ok(model.len()));
    let removed = map.pin().retain(|_, value| value % 2 == 0);
    let before = model.len();
    model.retain(|_, value| *value % 2 == 0);
    assert_eq!((removed, map.len()), (before - model.len(), model.len()));
    assert_eq!(map.clear(), model.len());
    assert_eq!(map.check(), Ok(0));
}

#[test]
fn integers_agree() {
    agrees::<u64, _, _, Restless>(Natural, |n| n << 50, |key| *key);
    agrees::<i32, _, _, Restless>(Natural, |n| n as i32 - 250, |key| *key);
    agrees::<u8, _, _, Adaptive>(Natural, |n| n as u8, |key| *key);
}

#[test]
fn integers_in_another_order_agree() {
    let order = |a: &u64, b: &u64| b.cmp(a);
    agrees::<u64, _, _, Restless>(order, |n| n, |key| Reverse(*key));
    agrees::<u64, _, _, Adaptive>(order, |n| n, |key| Reverse(*key));
}

#[test]
fn strings_agree() {
    // Paths, whose first eight bytes are often the same.
    let path = |n: u64| format!("/srv/{}/{n}", ["a", "long/name", "b"][n as usize % 3]);
    agrees::<String, _, _, Restless>(Natural, path, String::clone);
    agrees::<Vec<u8>, _, _, Restless>(
        Natural,
        |n| n.to_be_bytes()[8 - (n as usize % 9)..].to_vec(),
        Vec::clone,
    );
    let order = OnBorrowed::new(|a: &str, b: &str| (b.len(), b).cmp(&(a.len(), a)));
    agrees::<String, _, _, Restless>(order, path, |key| Reverse((key.len(), key.clone())));
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Headed(u64, String);

impl KeyHead for Headed {
    fn head(&self) -> u64 {
        self.0
    }
}

#[test]
fn keys_with_heads_agree() {
    let key = |n: u64| Headed(n / 100, (n % 100).to_string());
    agrees::<Headed, _, _, Restless>(ByHead, key, |key| (key.0, key.1.clone()));
}

/// Lookups take borrowed forms, whose heads are compared if they are known.
#[test]
fn lookups_take_borrowed_forms() {
    let map: OrdMap<String, u64> = OrdMap::new();
    for n in 0..200 {
        map.insert(format!("key {n:03}"), n);
    }
    assert_eq!(map.get("key 017").as_deref(), Some(&17));
    assert_eq!(map.get(&"key 017".to_string()).as_deref(), Some(&17));
    assert_eq!(map.remove("key 018").as_deref(), Some(&18));
    let view = map.pin();
    let bounds = (Bound::Included("key 016"), Bound::Excluded("key 020"));
    let some: Vec<_> = view.range::<str, _>(bounds).map(|(_, n)| *n).collect();
    assert_eq!(some, [16, 17, 19]);

    // A borrowed form of another type than the table of heads knows.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    #[repr(transparent)]
    struct Name(String);
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Owner(Name);
    impl std::borrow::Borrow<Name> for Owner {
        fn borrow(&self) -> &Name {
            &self.0
        }
    }
    let map: OrdMap<Owner, u64> = OrdMap::new();
    map.insert(Owner(Name("a".into())), 1);
    assert_eq!(map.get(&Name("a".into())).as_deref(), Some(&1));
    assert!(map.get(&Name("b".into())).is_none());
}

/// A borrowed form of integers that is none itself: it is searched by its order alone.
#[test]
fn integers_are_found_by_other_forms() {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    #[repr(transparent)]
    struct Wrapped(i64);
    impl std::borrow::Borrow<Wrapped> for i64 {
        fn borrow(&self) -> &Wrapped {
            // SAFETY: `Wrapped` has the layout of its field.
            unsafe { &*std::ptr::from_ref(self).cast() }
        }
    }
    let map: Map<i64, u64, Natural> = map(Natural);
    for n in -50..50 {
        map.insert(2 * n, 0);
    }
    let view = map.pin();
    assert!(view.contains_key(&Wrapped(-20)) && !view.contains_key(&Wrapped(-21)));
    let all = |low: i64, high: i64| {
        let (low, high) = (Wrapped(low), Wrapped(high));
        let bounds = (Bound::Included(&low), Bound::Excluded(&high));
        view.range::<Wrapped, _>(bounds).map(|(key, _)| *key).collect::<Vec<_>>()
    };
    assert_eq!(all(-3, 4), [-2, 0, 2]);
    assert_eq!(all(i64::MIN, -97), [-100, -98]);
    assert_eq!(all(97, i64::MAX), [98]);
    assert_eq!(view.remove(&Wrapped(-20)).as_deref(), Some(&0));
    assert!(!view.contains_key(&-20));
}

/// A range whose start is behind its end, or equal to it and excluded, has no entry.
#[test]
fn ranges_that_are_none_are_empty() {
    let map: OrdMap<u64, u64> = (0..100).map(|n| (n, n)).collect();
    let words: OrdMap<String, u64> = (0..100).map(|n| (format!("{n:02}"), n)).collect();
    let (map, words) = (map.pin(), words.pin());
    let backwards = (Bound::Included(7), Bound::Excluded(3));
    assert_eq!((map.range(backwards).count(), map.range(backwards).rev().count()), (0, 0));
    let backwards = (Bound::Included("7"), Bound::Included("3"));
    assert_eq!(words.range::<str, _>(backwards).count(), 0);
    let nothing = (Bound::Excluded("50"), Bound::Excluded("50"));
    assert_eq!(words.range::<str, _>(nothing).count(), 0);
    assert_eq!(words.range::<str, _>(nothing).rev().count(), 0);
}

/// Threads insert and remove keys of their own beside scans of all.
#[test]
fn threads_agree() {
    const THREADS: u64 = 4;
    let order = |a: &String, b: &String| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
    let map: Map<String, u64, _> = map(order);
    let rounds = work(20_000);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let map = &map;
            scope.spawn(move || {
                let rng = Rng::new(thread);
                let mut own = BTreeMap::new();
                for round in 0..rounds {
                    let number = rng.below(300) * THREADS + thread;
                    let key = number.to_string();
                    if rng.below(3) < 2 {
                        let old = map.insert(key, round).map(|old| *old);
                        assert_eq!(old, own.insert(number, round));
                    } else {
                        assert_eq!(map.remove(&key).map(|old| *old), own.remove(&number));
                    }
                    if round % 500 == 0 {
                        let view = map.pin();
                        let keys: Vec<u64> =
                            view.keys().map(|key| key.parse().expect("a number")).collect();
                        assert!(keys.is_sorted(), "{keys:?}");
                        let mine = keys.into_iter().filter(|key| key % THREADS == thread);
                        assert!(mine.eq(own.keys().copied()));
                    }
                }
            });
        }
    });
    let mut map = map;
    let len = map.len();
    assert_eq!(map.check(), Ok(len));
}

/// Containers with several levels of nodes: leaves and inner nodes at the edges of others become
/// empty, are put together with neighbours, and get new first entries.
#[test]
fn high_containers_agree() {
    let order = |a: &u64, b: &u64| b.cmp(a);
    let mut map: Map<u64, u64, _, Adaptive> = map(order);
    let mut model = BTreeMap::new();
    let rng = Rng::new(3);
    let len = work(6000);
    for round in 0..8 {
        for n in (0..len).map(|n| if round % 2 == 0 { n } else { len - n }) {
            if rng.below(10) > 0 {
                map.insert(n, round);
                model.insert(n, round);
            }
        }
        assert_eq!(map.check(), Ok(model.len()));
        // Runs in both directions empty full leaves beside full ones.
        for _ in 0..40 {
            let (from, run, ascends) = (rng.below(len), rng.below(len / 20), rng.below(2) == 0);
            for n in 0..run {
                let key = if ascends { from + n } else { (from + run).saturating_sub(n) };
                assert_eq!(map.remove(&key).map(|old| *old), model.remove(&key));
            }
            assert_eq!(map.check(), Ok(model.len()));
        }
        let view = map.pin();
        let found = view.iter().map(|(key, value)| (*key, *value));
        assert!(found.eq(model.iter().rev().map(|(key, value)| (*key, *value))));
    }
}

/// Scans of an owned view go on, on other threads, over base nodes that others split and join.
#[test]
fn owned_scans_move_between_threads() {
    let order = |a: &String, b: &String| a.cmp(b);
    let map: Map<String, u64, _> = map(order);
    for n in 0..work(5000) {
        map.insert(format!("{n:04}"), n);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..work(5000)).filter(|n| n % 2 == 1) {
                map.remove(&format!("{n:04}"));
            }
        });
        for _ in 0..3 {
            let view = map.pin_owned();
            let mut range = view.range(String::from("0010")..);
            let mut seen = Vec::new();
            let mut is_over = false;
            while !is_over {
                // A thread of its own for each part.
                (range, seen, is_over) = std::thread::scope(|scope| {
                    let part = scope.spawn(move || {
                        for _ in 0..700 {
                            match range.next() {
                                Some((key, value)) => {
                                    assert_eq!(key.parse(), Ok(*value));
                                    seen.push(*value);
                                }
                                None => return (range, seen, true),
                            }
                        }
                        (range, seen, false)
                    });
                    part.join().expect("the part is read")
                });
            }
            assert!(seen.is_sorted() && seen.first() == Some(&10), "{seen:?}");
            let even = seen.iter().filter(|n| *n % 2 == 0).count() as u64;
            assert_eq!(even, (work(5000) - 10).div_ceil(2));
        }
    });
}

#[test]
fn sets_have_keys_alone() {
    use silvics::OrdSet;
    let set: OrdSet<String> = ["b", "a", "c", "b"].into_iter().map(String::from).collect();
    assert_eq!(set.len(), 3);
    assert!(set.contains("a") && !set.insert("a".into()) && set.try_insert("d".into()).is_ok());
    assert!(set.remove("c") && !set.remove("c"));
    assert_eq!(set.first().as_deref().map(String::as_str), Some("a"));
    assert_eq!(set.pop_last().as_deref().map(String::as_str), Some("d"));
    let view = set.pin();
    assert_eq!(view.get("b").as_deref().map(String::as_str), Some("b"));
    assert!(view.iter().rev().map(|key| key.clone()).eq(["b", "a"]));
    assert!(view.range::<str, _>((Bound::Excluded("a"), Bound::Unbounded)).count() == 1);
    assert!(view.take("a").is_some_and(|key| *key == "a"));
    drop(view);
    let mut set = set;
    assert_eq!(set.check(), Ok(1));
    assert!(format!("{:?}", set.pin()).contains('b'));
}

/// Leaves of high containers become empty one after the other, because their neighbours are full:
/// also the first ones below their node, whose first entry is a bound of the nodes above.
#[test]
fn first_leaves_of_inner_nodes_vanish() {
    let keys = if cfg!(miri) { 3000 } else { 4000 };
    let mut map: Map<u64, u64, _, Adaptive> = map(|a: &u64, b: &u64| a.cmp(b));
    for n in 0..keys {
        map.insert(n, n);
    }
    let (first, last) = (keys / 4, keys - keys / 4);
    for n in first..last {
        assert_eq!(map.remove(&n).map(|value| *value), Some(n));
        if n % 20 == 0 {
            assert_eq!(map.check(), Ok((keys - 1 - (n - first)) as usize));
        }
        for near in [first - 1, n + 1] {
            assert_eq!(map.get(&near).map(|value| *value), Some(near));
        }
    }
}
