//! Splits and joins that tests force, against a model and under threads. The tests of
//! [`crate::lfca`] use the same functions.

use super::CaTree;
use super::build::{AvlRestless, Build, Coarse, ETS, Fine, Limits, Lock, Restless};
use super::key::CaKey;
use super::node::max_entries;
use crate::domain::Domain;
use crate::encoding::IndexKey;
use crate::index::{
    AtomicRanges, Check, Create, Lookup, Options, OrderedIndex, OrderedScan, OwnedKey, RangeUpdates,
};
use crate::pinned::PinIndex;
use silvics_pool::Pooled;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A number without a pattern.
pub(crate) fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

type Tree<K, B> = CaTree<K, Pooled, B>;

/// A tree under test.
pub(crate) trait Tested: Create + OrderedScan + OrderedIndex<Key: CaKey> + Check {}
impl<T: Create + OrderedScan + OrderedIndex<Key: CaKey> + Check> Tested for T {}

/// A tree as [`Restless`] under spin locks.
struct SpinRestless;

impl Build for SpinRestless {
    const LIMITS: Limits = Restless::LIMITS;
    const LOCK: Lock = Lock::Spin;

    fn nudge(write: u64) -> i64 {
        Restless::nudge(write)
    }
}

/// Blocks under readers–writer locks.
struct SharedRestless;

impl Build for SharedRestless {
    const LIMITS: Limits = Restless::LIMITS;
    const LOCK: Lock = Lock::Shared;

    fn nudge(write: u64) -> i64 {
        Restless::nudge(write)
    }
}

/// A domain that no other test shares: its guards would hold back what is retired.
fn options() -> Options {
    Options { domain: Some(Domain::new()), ..Options::default() }
}

fn agrees<T: Tested>(tree: &mut T, model: &BTreeMap<OwnedKey<T>, u64>) {
    assert_eq!(tree.check(), Ok(model.len()));
    let guard = tree.domain().pin();
    let all =
        tree.range(.., &guard).map(|(key, value)| (<T::Key as IndexKey>::to_owned(key), value));
    assert!(all.eq(model.iter().map(|(key, value)| (key.clone(), *value))));
    let all =
        tree.range_rev(.., &guard).map(|(key, value)| (<T::Key as IndexKey>::to_owned(key), value));
    assert!(all.eq(model.iter().rev().map(|(key, value)| (key.clone(), *value))));
}

pub(crate) fn as_a_model<T: Tested>(key: impl Fn(u64) -> OwnedKey<T>) {
    let mut tree = T::with_options(&options()).unwrap();
    let mut model = BTreeMap::new();
    let mut most = 0;
    for n in 0..60_000 {
        let key = key(mixed(n) % if n / 10_000 % 2 == 0 { 3000 } else { 300 });
        let guard = tree.domain().pin();
        if mixed(n + 7) % 5 < 3 - n / 20_000 {
            let old = tree.insert(<T::Key as IndexKey>::borrow(&key), n, &guard).unwrap();
            assert_eq!(old, model.insert(key, n));
        } else {
            let old = tree.remove(<T::Key as IndexKey>::borrow(&key), &guard).unwrap();
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
        assert!(tree.pin().remove(<T::Key as IndexKey>::borrow(&key)).unwrap().is_some());
    }
    agrees(&mut tree, &model);
    let objects: usize = tree.reachable().unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!(objects, 1, "one base node");
}

#[test]
fn integers_that_split_and_join() {
    as_a_model::<Tree<u64, Restless>>(|n| n);
    as_a_model::<Tree<u128, Restless>>(|n| u128::from(mixed(n)) << 60);
    as_a_model::<Tree<u64, SpinRestless>>(|n| n);
    as_a_model::<Tree<u64, SharedRestless>>(|n| n);
}

#[test]
fn byte_strings_that_split_and_join() {
    as_a_model::<Tree<[u8], Restless>>(|n| n.to_string().into_bytes().into());
    as_a_model::<Tree<[u8], Restless>>(|n| {
        format!("a prefix of all {}", mixed(n)).into_bytes().into()
    });
}

#[test]
fn avl_trees_that_split_and_join() {
    as_a_model::<Tree<u64, AvlRestless>>(|n| n);
    as_a_model::<Tree<u128, AvlRestless>>(|n| u128::from(mixed(n)) << 60);
    as_a_model::<Tree<[u8], AvlRestless>>(|n| format!("a prefix of all {n}").into_bytes().into());
}

pub(crate) fn under_threads<T: Tested + Sync>(key: impl Fn(u64) -> OwnedKey<T> + Sync) {
    let mut tree = T::with_options(&options()).unwrap();
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
                            tree.insert(<T::Key as IndexKey>::borrow(&key), of, &guard).unwrap();
                            assert_eq!(
                                tree.get(<T::Key as IndexKey>::borrow(&key), &guard),
                                Some(of)
                            );
                        } else {
                            tree.remove(<T::Key as IndexKey>::borrow(&key), &guard).unwrap();
                            assert_eq!(tree.get(<T::Key as IndexKey>::borrow(&key), &guard), None);
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
        tree.pin().remove(<T::Key as IndexKey>::borrow(&key(of))).unwrap();
    }
    assert_eq!(tree.check(), Ok(0));
    tree.settle();
    let live: usize = tree.pool_stats().iter().map(|stats| stats.live_slots).sum();
    assert_eq!(live, 1, "one base node");
}

#[test]
fn threads_split_and_join() {
    under_threads::<Tree<u64, Restless>>(|n| n);
    under_threads::<Tree<u128, Restless>>(|n| u128::from(mixed(n)));
    under_threads::<Tree<[u8], Restless>>(|n| format!("a prefix of all {n}").into_bytes().into());
}

#[test]
fn threads_split_and_join_under_other_locks() {
    under_threads::<Tree<u64, AvlRestless>>(|n| n);
    under_threads::<Tree<[u8], AvlRestless>>(|n| {
        format!("a prefix of all {n}").into_bytes().into()
    });
    under_threads::<Tree<u64, SharedRestless>>(|n| n);
    under_threads::<Tree<u64, SpinRestless>>(|n| n);
}

fn is_divided<K: CaKey + ?Sized, B: Build>(key: impl Fn(u64) -> K::Owned) {
    let mut tree = Tree::<K, B>::with_options(&options()).unwrap();
    assert_eq!(tree.divide(7), Ok(1));
    let mut model: BTreeMap<_, _> = (0..5000).map(|n| (key(n), n)).collect();
    let entries: Vec<_> = model.iter().map(|(key, value)| (K::borrow(key), *value)).collect();
    tree.bulk_load(&entries).unwrap();
    for parts in [1, 2, 7, 64, 100_000, 3] {
        let now = parts.min(5000);
        assert_eq!(tree.divide(parts), Ok(now));
        agrees(&mut tree, &model);
        let shape = tree.pin().adaptation();
        assert_eq!((shape.base_nodes.len(), shape.route_nodes), (now, now - 1));
        assert_eq!(shape.splits - shape.joins, now as u64 - 1);
        assert!(shape.base_nodes.iter().all(|base| base.depth <= now.ilog2() + 1));
    }
    drop(entries);
    for n in 0..5000 {
        let key = key(n);
        let old = tree.pin().remove(K::borrow(&key)).unwrap();
        assert_eq!(old, model.remove(&key));
        if n % 499 == 0 {
            agrees(&mut tree, &model);
        }
    }
    tree.settle();
    let live: usize = tree.pool_stats().iter().map(|stats| stats.live_slots).sum();
    let objects: usize = tree.reachable().unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!(live, objects);
}

#[test]
fn trees_are_divided_evenly() {
    is_divided::<u64, Fine>(mixed);
    is_divided::<[u8], Fine>(|n| format!("a prefix of all {n}").into_bytes().into());
    is_divided::<u64, AvlRestless>(mixed);
    is_divided::<[u8], AvlRestless>(|n| format!("a prefix of all {n}").into_bytes().into());
}

std::thread_local! {
    /// Whether each eighth write of a base node splits it.
    static SPLITS: Cell<bool> = const { Cell::new(false) };
}

/// Base nodes are split as [`SPLITS`] says. Operations on several ones take `OFF` from their
/// statistics.
struct SplitFirst<const OFF: i64>;

impl<const OFF: i64> Build for SplitFirst<OFF> {
    const LIMITS: Limits = Limits { range: OFF, ..ETS };

    fn nudge(write: u64) -> i64 {
        if SPLITS.get() && write % 8 == 7 { 2 * ETS.split } else { 0 }
    }
}

/// The route nodes after updates of all entries.
fn routes_after_updates<B: Build>() -> (usize, usize) {
    let mut tree = CaTree::<u64, Pooled, B>::with_options(&options()).unwrap();
    SPLITS.set(true);
    for n in 0..2000 {
        tree.pin().insert(mixed(n), 0).unwrap();
    }
    SPLITS.set(false);
    let before = tree.reachable().unwrap()[0].1;
    for round in 0..400 {
        let guard = tree.domain().pin();
        let all = tree.update_range(.., &guard, |_, value| value + 1).unwrap();
        let seen = tree.collect_range(.., &guard).unwrap();
        assert!(all == 2000 && seen.len() == 2000 && seen.iter().all(|(_, n)| *n == round + 1));
    }
    tree.check().unwrap();
    (before, tree.reachable().unwrap()[0].1)
}

#[test]
fn operations_on_several_base_nodes_join_them() {
    let (before, after) = routes_after_updates::<SplitFirst<600>>();
    assert!(before >= 8 && after == 0, "{before} route nodes, then {after}");
    let (before, after) = routes_after_updates::<SplitFirst<0>>();
    assert!(before >= 8 && after >= 8, "{before} route nodes, then {after}");
}

/// A range that writers disturb is read with the locks of its base nodes. Transfers between entries
/// of different base nodes leave the sum as it is.
fn transfers_keep_the_sum<B: Build>() {
    const KEYS: u64 = 300;
    let tree = Tree::<u64, B>::with_options(&options()).unwrap();
    for key in 0..KEYS {
        tree.pin().insert(key, 1000).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                for n in 0..3000 {
                    let (from, to) = (mixed(n + thread) % KEYS, mixed(n + 7) % KEYS);
                    let guard = tree.domain().pin();
                    let (low, high) = (from.min(to), from.max(to));
                    let moved = tree.update_range(low..=high, &guard, |key, value| match key {
                        _ if from == to => value,
                        key if key == from => value.wrapping_sub(1),
                        key if key == to => value.wrapping_add(1),
                        _ => value,
                    });
                    assert_eq!(moved.unwrap() as u64, high - low + 1);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..1000 {
                let guard = tree.domain().pin();
                let all = tree.collect_range(.., &guard).unwrap();
                let sum = all.iter().fold(0, |sum: u64, (_, value)| sum.wrapping_add(*value));
                assert_eq!((all.len() as u64, sum), (KEYS, KEYS * 1000));
            }
        });
    });
}

#[test]
fn ranges_among_transfers_keep_the_sum() {
    transfers_keep_the_sum::<Restless>();
    transfers_keep_the_sum::<AvlRestless>();
    transfers_keep_the_sum::<SharedRestless>();
    transfers_keep_the_sum::<SpinRestless>();
}

/// Base nodes that lost their entries are joined by the search for an end, whatever the build: a
/// walk over as many would lock them all.
#[test]
fn ends_beside_many_empty_base_nodes() {
    const KEYS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    fn emptied() -> CaTree<u64, Pooled, Fine> {
        let mut tree = CaTree::with_options(&Options::default()).unwrap();
        let entries: Vec<(u64, u64)> = (0..KEYS).map(|key| (key, key)).collect();
        tree.bulk_load(&entries).unwrap();
        assert_eq!(tree.divide(KEYS as usize), Ok(KEYS as usize));
        for key in 0..KEYS {
            assert_eq!(tree.pin().remove(key), Ok(Some(key)));
        }
        tree
    }
    assert_eq!(emptied().pin().first(), None);
    assert_eq!(emptied().pin().last(), None);
    assert_eq!(emptied().pin().pop_first(), Ok(None));
    let mut tree = emptied();
    tree.bulk_load(&[(1, 1), (2, 2)]).unwrap();
    let shape = tree.pin().adaptation();
    assert_eq!((shape.base_nodes.len(), shape.splits), (1, shape.joins), "{shape:?}");
}

/// The entries of a leaf and the children of an inner node on average, after the insertion of keys
/// in this order.
fn per_node<T: Tested>(keys: impl Iterator<Item = OwnedKey<T>>) -> [usize; 2] {
    let mut tree = T::with_options(&options()).unwrap();
    for key in keys {
        assert_eq!(tree.pin().insert(<T::Key as IndexKey>::borrow(&key), 1), Ok(None));
    }
    let len = tree.check().unwrap();
    let objects = tree.reachable().unwrap();
    let of = |kind| objects.iter().find(|(name, _)| *name == kind).map_or(0, |(_, count)| *count);
    let (leaves, inner) = (of("leaf"), of("inner"));
    [len / leaves, (leaves + inner) / inner]
}

/// Keys that ascend or descend fill their nodes, also if several such runs take turns, or if other
/// keys are there. Without a rule for runs, nodes would be half full.
pub(crate) fn runs_fill_nodes<T: Tested>(key: impl Fn(u64) -> OwnedKey<T>) {
    let most = max_entries::<T::Key>(true);
    for runs in [1, 8] {
        for descends in [false, true] {
            let order = (0..8000_u64).flat_map(|n| (0..runs).map(move |run| (run, n)));
            let at =
                |(run, n): (u64, u64)| run * 1_000_000 + if descends { 100_000 - n } else { n };
            let [entries, _] = per_node::<T>(order.map(at).map(&key));
            assert!(10 * entries >= 9 * most, "{entries} entries, {runs} runs, {descends}");
        }
    }
    for others in [1000, 3000, 3843] {
        let down = (0..100_000).map(|n| 1_000_000 - n);
        let [entries, children] = per_node::<T>((0..others).chain(down).map(&key));
        assert!(10 * entries >= 9 * most && 10 * children >= 7 * most, "{entries}, {children}");
    }
    let [entries, _] = per_node::<T>((0..8000).map(|n| key(mixed(n) % 1_000_000_000)));
    assert!(10 * entries >= 6 * most, "{entries} entries");
}

/// No order makes many small nodes. These orders are the worst for a rule that divides a node where
/// its last two insertions were: each turn would leave a leaf of two entries and one of one.
pub(crate) fn no_order_leaves_small_nodes<T: Tested>(key: impl Fn(u64) -> OwnedKey<T>) {
    let most = max_entries::<T::Key>(true);
    for others in [most / 2, most - 3, most - 2, most - 1, most] {
        for step in [[0, 2, 1], [1, 0, 2], [2, 1, 0], [0, 1, 2]] {
            let turns = (1..20_000).flat_map(|turn| step.map(|n| 900_000_000 - 10 * turn + n));
            let all = (0..others as u64).chain([999_999_999]).chain(turns);
            let [entries, children] = per_node::<T>(all.map(&key));
            assert!(entries >= 8 && children >= 8, "{entries}, {children}, {others}, {step:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "its nodes need many entries")]
fn runs_of_keys_fill_nodes() {
    runs_fill_nodes::<Tree<u64, Coarse>>(|n| n);
    runs_fill_nodes::<Tree<u128, Coarse>>(u128::from);
    runs_fill_nodes::<Tree<[u8], Coarse>>(|n| format!("{n:09}").into_bytes().into());
    no_order_leaves_small_nodes::<Tree<u64, Coarse>>(|n| n);
}
