//! Splits and joins that tests force, against a model and under threads.

use super::LfcaTree;
use crate::ca::build::Restless;
use crate::ca::key::CaKey;
use crate::ca::tests::{
    as_a_model, mixed, no_order_leaves_small_nodes, runs_fill_nodes, under_threads,
};
use crate::index::{AtomicRanges, Check, Lookup, Options, OrderedEnds, OrderedIndex};
use silvics_pool::Pooled;
use std::collections::BTreeMap;
use std::ops::Bound;

type RestlessTree<K> = LfcaTree<K, Pooled, Restless>;

#[test]
fn integers_that_split_and_join() {
    as_a_model::<RestlessTree<u64>>(|n| n);
    as_a_model::<RestlessTree<u128>>(|n| u128::from(mixed(n)) << 60);
}

#[test]
fn byte_strings_that_split_and_join() {
    as_a_model::<RestlessTree<[u8]>>(|n| n.to_string().into_bytes().into());
    as_a_model::<RestlessTree<[u8]>>(|n| {
        format!("a prefix of all {}", mixed(n)).into_bytes().into()
    });
}

#[test]
#[cfg_attr(miri, ignore = "its nodes need many entries")]
fn runs_of_keys_fill_nodes() {
    runs_fill_nodes::<LfcaTree<u64>>(|n| n);
    no_order_leaves_small_nodes::<LfcaTree<u64>>(|n| n);
}

#[test]
fn threads_split_and_join() {
    under_threads::<RestlessTree<u64>>(|n| n);
    under_threads::<RestlessTree<u128>>(|n| u128::from(mixed(n)));
    under_threads::<RestlessTree<[u8]>>(|n| format!("a prefix of all {n}").into_bytes().into());
}

/// Snapshots and ends agree with a model, whatever base nodes there are.
fn snapshots_of<K: CaKey + ?Sized>(key: impl Fn(u64) -> K::Owned) {
    let tree = RestlessTree::<K>::with_options(&Options::default()).unwrap();
    let mut model = BTreeMap::new();
    for n in 0..20_000 {
        let of = key(mixed(n) % 500);
        let guard = tree.domain().pin();
        match mixed(n + 3) % 8 {
            0..4 => {
                let old = tree.insert(K::borrow(&of), n, &guard).unwrap();
                assert_eq!(old, model.insert(of, n));
            }
            4..7 => assert_eq!(tree.remove(K::borrow(&of), &guard).unwrap(), model.remove(&of)),
            _ => {
                let popped = tree.pop_first(&guard).unwrap();
                let popped = popped.map(|(key, value)| (K::to_owned(key), value));
                assert_eq!(popped, model.pop_first());
            }
        }
        if n % 50 == 0 {
            let (low, high) = (key(mixed(n) % 500), key(mixed(n + 1) % 500));
            let (low, high) = if low < high { (low, high) } else { (high, low) };
            let range = (Bound::Excluded(K::borrow(&low)), Bound::Included(K::borrow(&high)));
            let found = tree.collect_range(range, &guard).unwrap();
            let found = found.into_iter().map(|(key, value)| (K::to_owned(key), value));
            let range = (Bound::Excluded(low.clone()), Bound::Included(high.clone()));
            let wanted = model.range(range).map(|(key, value)| (key.clone(), *value));
            assert!(low == high || found.eq(wanted));
            let own =
                |found: Option<(K::Ref<'_>, u64)>| found.map(|(key, n)| (K::to_owned(key), n));
            let of = |entry: (&K::Owned, &u64)| (entry.0.clone(), *entry.1);
            assert_eq!(own(tree.first(&guard)), model.first_key_value().map(of));
            assert_eq!(own(tree.last(&guard)), model.last_key_value().map(of));
        }
    }
}

#[test]
fn snapshots_agree_with_a_model() {
    snapshots_of::<u64>(|n| n);
    snapshots_of::<[u8]>(|n| format!("a prefix of all {n}").into_bytes().into());
}

/// A writer gives all keys one value after the other, in ascending order. So the values of a
/// snapshot descend by one at most, and once.
#[test]
fn snapshots_are_atomic() {
    const KEYS: u64 = 100;
    let mut tree = RestlessTree::<u64>::with_options(&Options::default()).unwrap();
    for key in 0..KEYS {
        tree.pin().insert(key, 0).unwrap();
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..400 {
                for key in 0..KEYS {
                    tree.pin().insert(key, round).unwrap();
                }
            }
        });
        let mut snapshots = 0;
        while !writer.is_finished() || snapshots < 10 {
            let guard = tree.domain().pin();
            let found = tree.collect_range(.., &guard).unwrap();
            assert!(found.iter().map(|(key, _)| *key).eq(0..KEYS));
            let steps = found.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
            let (first, last) = (found[0].1, found[KEYS as usize - 1].1);
            assert!(steps <= 1 && first - last == steps as u64, "{found:?}");
            snapshots += 1;
        }
    });
    assert_eq!(tree.check(), Ok(KEYS as usize));
}
