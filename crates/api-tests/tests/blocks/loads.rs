//! Building a tree from sorted entries.

use super::{Bytes, around, new_tree, object_bytes};
use silvics::key::Prefixed;
use silvics::{BlockTree, BulkLoadError, Check, Lookup, Objects, Options, OrderedIndex};
use silvics_api_tests::{mixed, threads};
use silvics_testkit::faulty::{Faulty, Plan, under};
use silvics_testkit::make::apart;

/// Trees that are loaded at once have the entries, keep the invariants, take no more memory than
/// after as many inserts, and take more entries afterwards.
#[test]
fn bulk_loads() {
    let key =
        |n: u64| [&mixed(n % 40).to_be_bytes().repeat(12)[..], &mixed(n).to_be_bytes()].concat();
    let spread = |n: u64| [vec![7; (mixed(n) % 600) as usize], n.to_be_bytes().to_vec()].concat();
    let spine = |n: u64| {
        [vec![0; (n % 60 * 9) as usize], vec![1], mixed(n).to_be_bytes().to_vec()].concat()
    };
    let zeros = |n: u64| vec![0; n as usize % 700];
    type Set<'s> = (&'s str, &'s dyn Fn(u64) -> Vec<u8>);
    let sets: [Set<'_>; 4] =
        [("prefixes", &key), ("lengths", &spread), ("spine", &spine), ("zeros", &zeros)];
    for (name, key) in sets {
        for count in [0, 1, 2, 47, 48, 49, 97, 500, 5000] {
            let mut keys: Vec<Vec<u8>> = (0..count).map(key).collect();
            keys.sort();
            keys.dedup();
            loaded_at_once::<[u8]>(name, &keys);
            loaded_at_once::<Prefixed<'static>>(name, &keys);
        }
    }
    for count in [0, 1, 49, 10_000] {
        let mut words: Vec<(u64, u64)> = (0..count).map(|n| (mixed(n) >> (n % 60), n)).collect();
        words.sort_unstable();
        words.dedup_by_key(|(word, _)| *word);
        for count in [1, 3] {
            let mut tree: BlockTree<u64> = BlockTree::with_options(&Options::default()).unwrap();
            tree.bulk_load(&words, threads(count)).unwrap();
            assert_eq!(tree.check(), Ok(words.len()));
            assert!(tree.pin().range(..).eq(words.iter().copied()));
        }
    }
}

fn loaded_at_once<K: Bytes + ?Sized>(name: &str, keys: &[Vec<u8>]) {
    let (mut tree, mut grown) = (new_tree::<K>(), new_tree::<K>());
    let entries: Vec<_> = (0..).zip(keys).map(|(n, key)| (K::of_bytes(key), n)).collect();
    tree.bulk_load(&entries, threads(1)).unwrap();
    assert_eq!(tree.check(), Ok(keys.len()), "{name}");
    let objects_of = |tree: &mut BlockTree<K>| {
        let mut objects = Vec::new();
        tree.census(&mut |placed| objects.push(placed.bytes)).unwrap();
        objects
    };
    let objects = objects_of(&mut tree);
    for count in [2, 3, usize::MAX] {
        let mut other = new_tree::<K>();
        other.bulk_load(&entries, threads(count)).unwrap();
        assert_eq!(other.check(), Ok(keys.len()), "{name}");
        let guard = other.domain().pin();
        let expected = (0..).zip(keys).map(|(n, key)| (key.clone(), n));
        assert!(around(&other, &[], &guard)[0].by_ref().eq(expected), "{name}");
        drop(guard);
        assert_eq!(objects_of(&mut other), objects, "{name} by {count} threads");
    }
    {
        let guard = tree.domain().pin();
        let expected = (0..).zip(keys).map(|(n, key)| (key.clone(), n));
        assert!(around(&tree, &[], &guard)[0].by_ref().eq(expected), "{name}");
        for (key, value) in &entries {
            assert_eq!(tree.get(*key, &guard), Some(*value), "{name}");
            grown.insert(*key, *value, &guard).unwrap();
        }
    }
    let (at_once, one_by_one) = (object_bytes(&mut tree), object_bytes(&mut grown));
    // A few blocks may divide in a place where less of their slots is left over.
    let most = one_by_one + one_by_one / 16;
    assert!(at_once <= most, "{name}: {at_once} bytes at once, {one_by_one} by inserts");
    for (n, key) in (0..).zip(keys) {
        let more = [key.as_slice(), b"+"].concat();
        let replaced = tree.pin().insert(K::of_bytes(&more), n).unwrap();
        assert_eq!(replaced.is_none(), keys.binary_search(&more).is_err(), "{name}");
        assert!(tree.pin().remove(K::of_bytes(key)).unwrap().is_some(), "{name}");
    }
    tree.check().unwrap();
}

/// The error of a load that has failed. It has left nothing behind.
fn is_empty(
    tree: &mut BlockTree<Prefixed<'static>>,
    outcome: Result<(), BulkLoadError>,
) -> BulkLoadError {
    let error = outcome.unwrap_err();
    assert_eq!((tree.check(), tree.pin().range(..).count()), (Ok(0), 0));
    assert_eq!(object_bytes(tree), 0, "{error}");
    error
}

/// The first of several mistakes is reported, whatever thread finds it.
#[test]
fn the_first_mistake_of_a_bulk_load() {
    let mut entries: Vec<(u64, u64)> =
        (0..6000).map(|n| (if n < 5 { n } else { 1 << 63 | n }, n)).collect();
    entries[3000].0 = entries[2999].0;
    let long = vec![0; 17 << 20];
    for position in [2999, 2500, 100, 2, 1] {
        entries[position].0 = entries[position - 1].0;
        for count in [1, 2, 4] {
            let mut tree: BlockTree<u64> = BlockTree::with_options(&Options::default()).unwrap();
            let found = tree.bulk_load(&entries, threads(count));
            assert_eq!(found, Err(BulkLoadError::Duplicate { position }), "{count}");
            let keys: Vec<_> = entries.iter().map(|(key, _)| key.to_be_bytes()).collect();
            let mut texts: Vec<(&[u8], u64)> = keys.iter().map(|key| (&key[..], 0)).collect();
            texts[4000].0 = &long;
            let mut tree = new_tree::<[u8]>();
            let found = tree.bulk_load(&texts, threads(count));
            assert_eq!(found, Err(BulkLoadError::Duplicate { position }), "{count}");
            texts[0].0 = &long;
            let found = tree.bulk_load(&texts, threads(count));
            assert!(matches!(found, Err(BulkLoadError::Alloc(_))), "{found:?}");
        }
    }
}

/// A bulk load that fails leaves the tree empty, and frees all that it has made.
#[test]
fn failed_bulk_loads() {
    let key = |n: u64| [vec![7; 300 * (n % 3) as usize], n.to_be_bytes().to_vec()].concat();
    let mut keys: Vec<Vec<u8>> = (0..3000).map(key).collect();
    keys.sort();
    let entries: Vec<_> = keys.iter().map(|key| (Prefixed::from(key), 7)).collect();
    let fails =
        |tree: &mut BlockTree<Prefixed<'static>>, entries: &[(Prefixed<'_>, u64)], count| {
            let outcome = tree.bulk_load(entries, threads(count));
            is_empty(tree, outcome)
        };
    for (position, count) in [1, 100, 2999].into_iter().flat_map(|at| [(at, 1), (at, 3)]) {
        let mut wrong = entries.clone();
        wrong[position] = entries[position - 1];
        let mut tree = new_tree();
        assert_eq!(fails(&mut tree, &wrong, count), BulkLoadError::Duplicate { position });
        wrong[position] = (Prefixed::default(), 0);
        assert_eq!(fails(&mut tree, &wrong, count), BulkLoadError::Unsorted { position });
        let long = vec![255; (512 << 10) + 1];
        wrong[position] = (Prefixed::from(&long), 0);
        assert!(matches!(fails(&mut tree, &wrong, count), BulkLoadError::Alloc(_)));
        tree.bulk_load(&entries, threads(count)).unwrap();
        assert_eq!(tree.check(), Ok(entries.len()));
        let again = Err(BulkLoadError::NotEmpty { entries: 3000 });
        assert_eq!(tree.bulk_load(&entries, threads(count)), again);
    }
    let mut tree: BlockTree<Prefixed<'static>> = new_tree();
    tree.bulk_load(&entries, threads(1)).unwrap();
    let objects = object_bytes(&mut tree);
    let (mut loaded, mut failed) = (0, 0);
    for (limit, count) in (0..40).map(|n| (n * (64 << 10), 1 + n % 3)) {
        let options = Options { memory_limit: Some(limit), ..Options::default() };
        let Ok(mut tree) = BlockTree::with_options(&options) else { continue };
        let outcome = tree.bulk_load(&entries, threads(count));
        if outcome.is_ok() && limit >= objects {
            assert_eq!(tree.check(), Ok(entries.len()));
            loaded += 1;
        } else {
            is_empty(&mut tree, outcome);
            failed += 1;
        }
    }
    assert!(loaded > 0 && failed > 3, "{loaded} limits were large enough, {failed} were not");
}

/// Each allocation of a bulk load fails once, or panics.
#[test]
fn bulk_loads_without_memory() {
    let key = |n: u64| [vec![7; 300 * (n % 3) as usize], mixed(n).to_be_bytes().to_vec()].concat();
    let mut keys: Vec<Vec<u8>> = (0..200).map(key).collect();
    keys.sort();
    let entries: Vec<_> = keys.iter().map(|key| (Prefixed::from(key), 7)).collect();
    for nth in 1.. {
        for plan in [Plan::FailFrom(nth), Plan::Panic(nth)] {
            let mut tree: BlockTree<Prefixed<'static>, Faulty> =
                BlockTree::with_options(&apart()).unwrap();
            let ran = under(plan, || tree.bulk_load(&entries, threads(1)));
            if ran.faults == 0 {
                assert_eq!((ran.outcome, tree.check()), (Some(Ok(())), Ok(200)));
                assert!(nth > 20, "{nth}");
                return;
            }
            assert!(!matches!(ran.outcome, Some(Ok(()))), "{plan:?}");
            assert_eq!(tree.check(), Ok(0), "{plan:?}");
            tree.settle();
            let live: usize = tree.pool_stats().iter().map(|stats| stats.live_bytes).sum();
            assert_eq!(live, 0, "{plan:?}");
        }
    }
}
