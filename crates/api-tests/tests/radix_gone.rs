//! Leaves of the radix tree with entries that are gone: every set of entries, every way to read
//! them, and moves to hot regions.

use silvics::art::ArtKey;
use silvics::art::hot::{Policy, Sampled, Sampling};
use silvics::{ArtTree, Check, Compression, IndexKey, Lookup, Objects};
use silvics_api_tests::mixed;
use silvics_testkit::faulty::{Faulty, Ledger, Plan, under};
use silvics_testkit::make::apart;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::num::NonZeroU32;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// An integer key, of which leaves have several.
trait Number: ArtKey + for<'a> IndexKey<Ref<'a> = Self> + Copy + Ord + Debug + Send {
    fn of(n: u64) -> Self;
    fn after(self) -> Self;
}

impl Number for u64 {
    fn of(n: u64) -> Self {
        n
    }
    fn after(self) -> Self {
        self.wrapping_add(1)
    }
}

impl Number for u128 {
    fn of(n: u64) -> Self {
        u128::from(n) << 64 | u128::from(mixed(n))
    }
    fn after(self) -> Self {
        self.wrapping_add(1)
    }
}

/// Groups of up to six close keys, each far from the others, so that leaves are full or have just
/// burst.
fn together<K: Number>(n: u64) -> K {
    let (cluster, at) = (n / 6, n % 6);
    let last = if at < 2 + cluster % 5 { mixed(n) & 0xff_ffff } else { at << 16 };
    K::of(mixed(cluster) & !0xff_ffff | last)
}

type Model<K> = BTreeMap<K, u64>;
type Tree<K> = ArtTree<K, Faulty, Sampled>;

/// The number of entries that are gone from leaves that are still linked.
fn gone<K: Number>(tree: &mut Tree<K>) -> usize {
    let keys = |kind: &str| kind.strip_prefix("leaf").map_or(0, |keys| keys.parse().unwrap());
    let kinds = tree.reachable().unwrap();
    assert!(kinds.iter().all(|(kind, count)| !kind.starts_with("values") || *count == 0));
    kinds.iter().map(|(kind, count)| keys(kind) * count).sum::<usize>() - tree.check().unwrap()
}

/// Checks that every read of the tree, at these keys and between all of them, agrees with the
/// model.
fn is<K: Number>(tree: &mut Tree<K>, model: &Model<K>, looked_at: &[K]) {
    assert_eq!(tree.check(), Ok(model.len()));
    let Some(Compression::Paths(paths)) = tree.compression() else { panic!("a radix tree") };
    assert_eq!(paths.keys, model.len());
    let view = tree.pin();
    let mut values = vec![Some(7); looked_at.len()];
    view.get_many(looked_at, &mut values);
    for (key, value) in looked_at.iter().zip(values) {
        let wanted = model.get(key).copied();
        assert_eq!((view.get(*key), value), (wanted, wanted), "{key:?}");
        assert_eq!(view.compare_exchange(*key, wanted, wanted), Ok(()), "{key:?}");
    }
    let pair = |(key, value): (&K, &u64)| (*key, *value);
    assert!(view.range(..).eq(model.iter().map(pair)));
    assert!(view.range_rev(..).eq(model.iter().rev().map(pair)));
    assert_eq!(view.first(), model.first_key_value().map(pair));
    assert_eq!(view.last(), model.last_key_value().map(pair));
    let both =
        |key: &K| [*key, key.after()].into_iter().flat_map(|key| [Included(key), Excluded(key)]);
    for from in looked_at.iter().flat_map(both) {
        let up: (Bound<K>, _) = (from, Unbounded);
        assert!(view.range(up).take(7).eq(model.range(up).map(pair).take(7)), "from {from:?}");
        let down: (_, Bound<K>) = (Unbounded, from);
        let wanted = model.range(down).rev().map(pair).take(7);
        assert!(view.range_rev(down).take(7).eq(wanted), "down from {from:?}");
    }
}

/// A verb that removes a key without allocating.
fn remove<K: Number>(tree: &Tree<K>, model: &mut Model<K>, verb: usize, key: K) {
    let view = tree.pin();
    let ran = under(Plan::FailFrom(1), || match verb {
        0 => assert_eq!(view.remove(key), Ok(model.remove(&key))),
        1 => assert_eq!(view.compare_exchange(key, model.remove(&key), None), Ok(())),
        2 => assert_eq!(view.pop_first(), Ok(model.pop_first())),
        _ => assert_eq!(view.pop_last(), Ok(model.pop_last())),
    });
    assert_eq!(ran.faults, ran.met);
}

/// A tree, and the ledger of its allocations.
fn recorded<K: Number>() -> (Tree<K>, std::sync::Arc<Ledger>) {
    Ledger::record(|| Tree::<K>::with_options(&apart()).unwrap())
}

/// Checks that every allocation was freed once.
fn ended<K: Number>(tree: Tree<K>, ledger: &Ledger) {
    drop(tree);
    assert!(ledger.live().is_empty(), "{:?}", ledger.live());
    assert_eq!(ledger.audit(), Ok(()));
}

/// Removes each set of entries of each leaf while allocation fails, checks the tree, and then
/// writes to it.
fn each_leaf<K: Number>(key: impl Fn(u64) -> K) {
    for (len, which) in (1..=4_u64).flat_map(|len| (0..1_u64 << len).map(move |which| (len, which)))
    {
        for then in 0..6 {
            let (mut tree, ledger) = recorded::<K>();
            let mut model = Model::new();
            let (leaf, others) = ((1..=len).map(|at| key(at << 8)), [key(1 << 60), key(1 << 61)]);
            let looked_at: Vec<K> =
                leaf.clone().chain(others).chain([key(0), key(5 << 8)]).collect();
            for (value, key) in leaf.clone().chain(others).enumerate() {
                assert_eq!(
                    tree.pin().insert(key, value as u64),
                    Ok(model.insert(key, value as u64))
                );
            }
            for (at, key) in leaf.enumerate().filter(|(at, _)| which >> at & 1 == 1) {
                remove(&tree, &mut model, at % 2, key);
                is(&mut tree, &model, &looked_at);
            }
            let removed = which.count_ones() as usize;
            assert_eq!(gone(&mut tree), if removed < len as usize { removed } else { 0 });
            match then {
                // The key is one that is left, one that is gone, or a new one, which may burst the
                // leaf.
                0..3 => {
                    let key = [key(1 << 8), key(len << 8), key(5 << 8)][then];
                    assert_eq!(tree.pin().insert(key, 77), Ok(model.insert(key, 77)));
                }
                // Now a smaller leaf can be allocated, or no leaf is left.
                3 => assert_eq!(tree.pin().pop_first(), Ok(model.pop_first())),
                4 => (0..2).for_each(|_| remove(&tree, &mut model, 2, key(0))),
                _ => (0..3).for_each(|_| remove(&tree, &mut model, 3, key(0))),
            }
            is(&mut tree, &model, &looked_at);
            ended(tree, &ledger);
        }
    }
}

#[test]
fn each_set_of_entries_of_a_leaf() {
    each_leaf::<u64>(|n| n);
    each_leaf::<u128>(|n| u128::from(n) << 64 | 5);
}

/// Leaves with entries that are gone are moved into a hot region and back.
fn moved<K: Number>() {
    let (mut tree, ledger) = recorded::<K>();
    let mut model = Model::new();
    let keys: Vec<K> = (0..if cfg!(miri) { 60 } else { 1200 }).map(together).collect();
    for (n, key) in (0..).zip(&keys) {
        assert_eq!(tree.pin().insert(*key, n), Ok(model.insert(*key, n)));
    }
    for round in 0..4 {
        for key in keys.iter().skip(round).step_by(6) {
            remove(&tree, &mut model, 0, *key);
        }
        assert!(gone(&mut tree) > 0, "no leaf had to stay");
        tree.sample(Some(Sampling { every: NonZeroU32::MIN, bytes: 4 << 20 }));
        let hot = keys.len() / 2 * (round % 2);
        for key in &keys[hot..hot + keys.len() / 2] {
            assert_eq!(tree.pin().get(*key), model.get(key).copied());
        }
        tree.sample(None);
        let policy = Policy { share: 1.0, least_gain: 0.0, ..Policy::default() };
        let report = tree.reorganize(policy).unwrap();
        assert!(report.leaves > 0 && report.missed == 0, "{report:?}");
        is(&mut tree, &model, &keys);
        for key in keys.iter().skip(round + 1).step_by(60) {
            assert_eq!(tree.pin().insert(*key, 7), Ok(model.insert(*key, 7)));
        }
        is(&mut tree, &model, &keys);
    }
    // Objects in hot regions count with their kinds.
    tree.settle();
    let live: Vec<_> = tree.pool_stats().iter().map(|of| (of.kind, of.live_slots)).collect();
    assert_eq!(tree.reachable().unwrap(), live);
    ended(tree, &ledger);
}

#[test]
fn leaves_with_gone_entries_move() {
    moved::<u64>();
    moved::<u128>();
}
