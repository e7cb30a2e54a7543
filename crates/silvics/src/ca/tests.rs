//! Splits and joins that tests force, against a model and under threads.

use super::CaTree;
use super::build::Restless;
use super::key::CaKey;
use crate::index::{Check, Lookup, Options, OrderedIndex, OrderedScan};
use silvics_pool::Pooled;
use std::collections::BTreeMap;

/// A number without a pattern.
fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

type RestlessTree<K> = CaTree<K, Pooled, Restless>;

fn agrees<K: CaKey + ?Sized>(tree: &mut RestlessTree<K>, model: &BTreeMap<K::Owned, u64>) {
    assert_eq!(tree.check(), Ok(model.len()));
    let guard = tree.domain().pin();
    let all = tree.range(.., &guard).map(|(key, value)| (K::to_owned(key), value));
    assert!(all.eq(model.iter().map(|(key, value)| (key.clone(), *value))));
    let all = tree.range_rev(.., &guard).map(|(key, value)| (K::to_owned(key), value));
    assert!(all.eq(model.iter().rev().map(|(key, value)| (key.clone(), *value))));
}

fn as_a_model<K: CaKey + ?Sized>(key: impl Fn(u64) -> K::Owned) {
    let mut tree = RestlessTree::<K>::with_options(&Options::default()).unwrap();
    let mut model = BTreeMap::new();
    let mut most = 0;
    for n in 0..60_000 {
        let key = key(mixed(n) % if n / 10_000 % 2 == 0 { 3000 } else { 300 });
        let guard = tree.domain().pin();
        if mixed(n + 7) % 5 < 3 - n / 20_000 {
            let old = tree.insert(K::borrow(&key), n, &guard).unwrap();
            assert_eq!(old, model.insert(key, n));
        } else {
            let old = tree.remove(K::borrow(&key), &guard).unwrap();
            assert_eq!(old, model.remove(&key));
        }
        drop(guard);
        if n % 997 == 0 || n < 100 {
            agrees(&mut tree, &model);
            let routes = tree.reachable().unwrap()[0].1;
            most = most.max(routes);
        }
    }
    assert!(most > 5, "{most} route nodes");
    agrees(&mut tree, &model);
    for key in std::mem::take(&mut model).into_keys() {
        assert!(tree.pin().remove(K::borrow(&key)).unwrap().is_some());
    }
    agrees(&mut tree, &model);
    let objects: usize = tree.reachable().unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!(objects, 1, "one base node");
}

#[test]
fn integers_that_split_and_join() {
    as_a_model::<u64>(|n| n);
    as_a_model::<u128>(|n| u128::from(mixed(n)) << 60);
}

#[test]
fn byte_strings_that_split_and_join() {
    as_a_model::<[u8]>(|n| n.to_string().into_bytes().into());
    as_a_model::<[u8]>(|n| format!("a prefix of all {}", mixed(n)).into_bytes().into());
}

fn under_threads<K: CaKey + ?Sized>(key: impl Fn(u64) -> K::Owned + Sync) {
    let mut tree = RestlessTree::<K>::with_options(&Options::default()).unwrap();
    for round in 0..20 {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (tree, key) = (&tree, &key);
                scope.spawn(move || {
                    let number = |n: u64| mixed(n + thread * 1_000_000 + round);
                    for n in 0..3000 {
                        // Each thread has keys of its own.
                        let of = number(n) % 200 * 3 + thread;
                        let (key, guard) = (key(of), tree.domain().pin());
                        if number(n + 7) % 2 == 0 {
                            tree.insert(K::borrow(&key), of, &guard).unwrap();
                            assert_eq!(tree.get(K::borrow(&key), &guard), Some(of));
                        } else {
                            tree.remove(K::borrow(&key), &guard).unwrap();
                            assert_eq!(tree.get(K::borrow(&key), &guard), None);
                        }
                    }
                });
            }
        });
        let present = tree.check().unwrap();
        let guard = tree.domain().pin();
        assert_eq!(tree.range(.., &guard).count(), present);
    }
    for of in 0..600 {
        tree.pin().remove(K::borrow(&key(of))).unwrap();
    }
    assert_eq!(tree.check(), Ok(0));
    tree.settle();
    let live: usize = tree.pool_stats().iter().map(|stats| stats.live_slots).sum();
    assert_eq!(live, 1, "one base node");
}

#[test]
fn threads_split_and_join() {
    under_threads::<u64>(|n| n);
    under_threads::<u128>(|n| u128::from(mixed(n)));
    under_threads::<[u8]>(|n| format!("a prefix of all {n}").into_bytes().into());
}
