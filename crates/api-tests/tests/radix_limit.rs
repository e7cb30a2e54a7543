//! Removal from the radix tree needs no memory: it succeeds while every allocation fails.

use silvics::art::ArtKey;
use silvics::{
    AllocError, ArtTree, Check, IndexKey, Lookup, Map, Options, OrderedEnds, OrderedIndex,
    OrderedScan, Pages, Placement,
};
use silvics_api_tests::mixed;
use silvics_testkit::faulty::{Faulty, Plan, under};
use std::collections::BTreeMap;

fn limited<K: ArtKey>(limit: usize) -> ArtTree<K> {
    let options = Options { memory_limit: Some(limit), pages: Pages::Small, ..Options::default() };
    ArtTree::with_options(&options).expect("there is room for a root")
}

/// Fills a tree up to its memory limit. Some of its leaves have two, three and four keys.
fn fill<K: ArtKey + for<'a> IndexKey<Ref<'a> = K> + Ord + Copy>(
    tree: &ArtTree<K>,
    key: impl Fn(u64) -> K,
) -> BTreeMap<K, u64> {
    let mut model = BTreeMap::new();
    for n in 0.. {
        // With each new pin, the objects replaced under the one before can be reclaimed.
        match tree.insert(key(n), n, &tree.domain().pin()) {
            Ok(old) => assert_eq!(old, model.insert(key(n), n)),
            Err(AllocError::Limit { .. }) if n > 1000 => return model,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("there is a limit")
}

fn shuffled<K: Copy + Ord>(model: &BTreeMap<K, u64>) -> Vec<K> {
    let mut keys: Vec<K> = model.keys().copied().collect();
    keys.sort_by_key(|key| mixed(model[key] + 99));
    keys
}

fn same<K: ArtKey + for<'a> IndexKey<Ref<'a> = K> + Ord + Copy + std::fmt::Debug>(
    tree: &ArtTree<K>,
    model: &BTreeMap<K, u64>,
    of: &[K],
) {
    let guard = tree.domain().pin();
    for key in of {
        assert_eq!(tree.get(*key, &guard), model.get(key).copied(), "{key:?}");
    }
    let entries = || model.iter().map(|(key, value)| (*key, *value));
    assert!(tree.range(.., &guard).eq(entries()));
    assert!(tree.range_rev(.., &guard).eq(entries().rev()));
    for from in of.iter().step_by(of.len() / 100 + 1) {
        let up = model.range(*from..).map(|(key, value)| (*key, *value));
        assert!(tree.range(*from.., &guard).take(9).eq(up.take(9)), "from {from:?}");
        let down = model.range(..=*from).rev().map(|(key, value)| (*key, *value));
        assert!(tree.range_rev(..=*from, &guard).take(9).eq(down.take(9)), "down from {from:?}");
    }
    let pair = |(key, value): (&K, &u64)| (*key, *value);
    assert_eq!(tree.first(&guard), model.first_key_value().map(pair));
    assert_eq!(tree.last(&guard), model.last_key_value().map(pair));
}

fn is_emptied<K: ArtKey + for<'a> IndexKey<Ref<'a> = K> + Ord + Copy + std::fmt::Debug>(
    key: impl Fn(u64) -> K,
) {
    // One pin for all, so that removed objects are not reclaimed.
    let mut tree = limited::<K>(1 << 20);
    let mut model = fill(&tree, &key);
    let all = shuffled(&model);
    let guard = tree.domain().pin();
    for (n, key) in (0..).zip(&all) {
        let value = model.remove(key);
        assert_eq!(tree.remove(*key, &guard), Ok(value));
        assert_eq!(tree.remove(*key, &guard), Ok(None));
        if n % (all.len() / 8) == 0 {
            same(&tree, &model, &all);
        }
    }
    assert!(tree.is_empty() && tree.range(.., &guard).next().is_none());
    drop(guard);
    assert_eq!(tree.check(), Ok(0));

    // Removes half of the keys, and inserts again.
    let mut tree = limited::<K>(1 << 20);
    let mut model = fill(&tree, &key);
    let all = shuffled(&model);
    let guard = tree.domain().pin();
    for key in &all[..all.len() / 2] {
        assert_eq!(tree.remove(*key, &guard), Ok(model.remove(key)));
    }
    for _ in 0..all.len() / 20 {
        let pair = |(key, value): (K, u64)| (key, value);
        assert_eq!(tree.pop_first(&guard), Ok(model.pop_first().map(pair)));
        assert_eq!(tree.pop_last(&guard), Ok(model.pop_last().map(pair)));
    }
    drop(guard);
    same(&tree, &model, &all);
    assert_eq!(tree.check(), Ok(model.len()));
    let mut again = 0;
    for (n, key) in (0..).zip(&all) {
        if tree.insert(*key, n, &tree.domain().pin()).is_ok() {
            again += 1;
            model.insert(*key, n);
        }
    }
    assert!(again > all.len() / 2, "{again} of {} found room", all.len());
    same(&tree, &model, &all);
    assert_eq!(tree.check(), Ok(model.len()));
    tree.settle();
    assert_eq!(tree.check(), Ok(model.len()));
}

#[test]
fn a_full_tree_of_integers_is_emptied_under_one_pin() {
    is_emptied::<u64>(|n| mixed(n) >> 20);
    is_emptied::<u64>(|n| (mixed(n / 3) << 8) | (n % 3));
    is_emptied::<u128>(|n| u128::from(mixed(n / 2)) << 40 | u128::from(n % 2) << 3);
}

#[test]
fn a_full_map_is_cleared() {
    let map: Map<u64, u64, ArtTree<u64>> =
        Map::builder().memory_limit(1 << 20).build().expect("room");
    let mut full = 0;
    while map.try_upsert(mixed(full), full).is_ok() {
        full += 1;
    }
    let view = map.pin();
    assert_eq!(view.retain(|_, value| value % 2 == 0) as u64, full / 2);
    assert_eq!(view.clear() as u64, full - full / 2);
    drop(view);
    assert!((0..full / 2).all(|n| map.try_upsert(mixed(n), n).is_ok()), "there is room again");
}

#[test]
fn no_allocation_that_fails_is_in_the_way() {
    fn judged<P: Placement>(tree: &mut ArtTree<u64, P>) {
        // Leaves of one to four keys.
        let keys: Vec<u64> = (0..400).map(|n| mixed(n / 4) | ((n % 4) << 1)).collect();
        for key in &keys {
            tree.insert(*key, !*key, &tree.domain().pin()).expect("no fault yet");
        }
        let mut left: BTreeMap<u64, u64> = keys.iter().map(|key| (*key, !*key)).collect();
        for (n, key) in keys.iter().enumerate() {
            let plan = if n % 3 == 0 { Plan::FailOnce(1) } else { Plan::FailFrom(1) };
            let removed = under(plan, || match n % 5 {
                4 => tree.pop_last(&tree.domain().pin()).map(|entry| entry.map(|(key, _)| key)),
                _ => tree.remove(*key, &tree.domain().pin()).map(|old| old.map(|old| !old)),
            });
            let theirs = match n % 5 {
                4 => left.pop_last().map(|(key, _)| key),
                _ => left.remove(key).map(|_| *key),
            };
            assert_eq!(removed.outcome, Some(Ok(theirs)));
            assert_eq!(tree.check(), Ok(left.len()));
        }
    }
    judged(&mut ArtTree::<u64, Faulty>::with_options(&Options::default()).expect("no fault yet"));
}
