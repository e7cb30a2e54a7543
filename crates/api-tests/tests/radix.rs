//! Properties of the radix tree that the suite does not test: loading of sorted entries, long keys,
//! long paths, and the value that stands for none.

use silvics::art::ArtKey;
use silvics::error::{CompareExchangeError, TryInsertError};
use silvics::index::Cursor;
use silvics::{
    AllocError, ArtTree, Batches, BulkLoadError, Check, Create, IndexKey, Lookup, OrderedIndex,
    OrderedScan, PinIndex, Placement, Pooled, SkipList,
};
use silvics_api_tests::{mixed, threads};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_testkit::faulty::{Faulty, Plan, under};
use silvics_testkit::make::apart;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

fn tree<K: ArtKey + ?Sized>() -> ArtTree<K> {
    ArtTree::with_options(&apart()).unwrap()
}

/// Two threads insert, and two pop from the ends: each entry is popped once, and none is lost.
#[test]
fn a_queue_at_both_ends() {
    const KEYS: u64 = 30_000;
    let mut queue = tree::<u64>();
    let left = AtomicU64::new(KEYS);
    let mut taken: Vec<u64> = std::thread::scope(|scope| {
        for half in 0..2 {
            let queue = &queue;
            scope.spawn(move || {
                for n in (half..KEYS).step_by(2) {
                    // Some keys are consecutive, some far apart.
                    let key = if n % 3 == 0 { n } else { mixed(n) };
                    queue.pin().insert(key, n).unwrap();
                }
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|end| {
                let (queue, left) = (&queue, &left);
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    while left.load(Ordering::Relaxed) > 0 {
                        let pinned = queue.pin();
                        let entry = if end == 0 { pinned.pop_first() } else { pinned.pop_last() };
                        if let Some((_, value)) = entry.unwrap() {
                            taken.push(value);
                            left.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                    taken
                })
            })
            .collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..KEYS));
    assert_eq!(queue.check(), Ok(0));
}

/// A path is longer than a scan remembers if each of its keys is a prefix of the next.
#[test]
fn long_paths() {
    const LONGEST: usize = 150;
    let mut tree = tree::<[u8]>();
    let mut oracle = BTreeMap::new();
    for len in 0..LONGEST {
        let chain = vec![b'm'; len];
        for key in [chain.clone(), [&chain[..], b"a"].concat(), [&chain[..], b"z\0"].concat()] {
            if len % 7 != 3 || key == chain {
                tree.pin().insert(&key, oracle.len() as u64).unwrap();
                oracle.insert(key, oracle.len() as u64);
            }
        }
    }
    assert_eq!(tree.check(), Ok(oracle.len()));
    let pinned = tree.pin();
    let owned = |(key, value): (&[u8], u64)| (key.to_vec(), value);
    let chain = |len: usize, tail: &[u8]| [&vec![b'm'; len], tail].concat();
    let places = [0, 1, 15, 16, 17, 18, 40, 100, LONGEST - 1, LONGEST + 3];
    let tails: [&[u8]; 6] = [b"", b"\0", b"a", b"b", b"m\xff", b"\xff"];
    let bounds = places.iter().flat_map(|&len| tails.map(|tail| chain(len, tail)));
    let pairs = |bound: Vec<u8>| [Included(bound.clone()), Excluded(bound)];
    for bound in bounds.flat_map(pairs).chain([Unbounded]) {
        let lent = bound.as_ref().map(Vec::as_slice);
        let up: Vec<_> = pinned.range((lent, Unbounded)).map(owned).collect();
        let wanted = oracle.range((bound.clone(), Unbounded)).map(|(k, v)| (k.clone(), *v));
        assert!(up.iter().cloned().eq(wanted), "from {bound:?}");
        let down: Vec<_> = pinned.range_rev((Unbounded, lent)).map(owned).collect();
        let wanted = oracle.range((Unbounded, bound.clone())).rev().map(|(k, v)| (k.clone(), *v));
        assert!(down.into_iter().eq(wanted), "down from {bound:?}");
    }
    drop(pinned);
    // The first and the last lie below more nodes than a reader notes. Both are popped.
    let mut left: Vec<_> = oracle.into_iter().collect();
    while let Some((key, value)) = left.pop() {
        let pinned = tree.pin();
        assert_eq!(pinned.last().map(owned), Some((key.clone(), value)));
        assert_eq!(pinned.pop_last().unwrap().map(owned), Some((key, value)));
        if !left.is_empty() {
            let (key, value) = left.remove(0);
            assert_eq!(pinned.first().map(owned), Some((key.clone(), value)));
            assert_eq!(pinned.pop_first().unwrap().map(owned), Some((key, value)));
        }
        drop(pinned);
        if left.len().is_multiple_of(50) {
            assert_eq!(tree.check(), Ok(left.len()));
        }
    }
}

/// A scan stands deeper than it remembers while the nodes above it are removed. It still finds the
/// entries beyond, below the node or leaf that has replaced them.
#[test]
fn long_paths_that_merge() {
    for beyond in [&[&b"bbbc"[..]][..], &[b"bbba\xff", b"bbbca", b"bbbcz"]] {
        for taken in [20, 24] {
            let tree = tree::<[u8]>();
            let chain = [b'b'; 24];
            (1..=24).for_each(|len| assert_eq!(tree.pin().insert(&chain[..len], 0), Ok(None)));
            for key in beyond {
                assert_eq!(tree.pin().insert(key, 1), Ok(None));
            }
            let guard = tree.domain().pin();
            let mut range = tree.range(.., &guard);
            let mut seen: Vec<_> = range.by_ref().take(taken).map(|(key, _)| key).collect();
            (1..=24).for_each(|len| assert_eq!(tree.remove(&chain[..len], &guard), Ok(Some(0))));
            seen.extend(range.map(|(key, _)| key));
            let stays = beyond.iter().filter(|key| **key > &chain[..]);
            let found: Vec<_> = seen.iter().filter(|key| !chain.starts_with(key)).collect();
            assert!(found.iter().rev().zip(stays.rev()).all(|(found, stays)| found == &stays));
            assert_eq!(found.len(), beyond.len());
            assert!(seen.is_sorted_by(|a, b| a < b));
        }
    }
}

/// A node of values could not become smaller because allocation failed, and then has to store the
/// value that stands for none.
#[test]
fn the_absent_value_after_a_shortage() {
    const ABSENT: u64 = 0xA85E_4E7D_EC0D_E5ED;
    let mut tree: ArtTree<u64, Faulty> = ArtTree::with_options(&apart()).unwrap();
    (0..5).for_each(|key| assert_eq!(tree.pin().insert(key, key), Ok(None)));
    under(Plan::FailFrom(1), || (0..4).for_each(|key| _ = tree.pin().remove(key)));
    assert_eq!(tree.pin().insert(4, ABSENT), Ok(Some(4)));
    assert_eq!(tree.check(), Ok(1));
    assert_eq!(tree.pin().get(4), Some(ABSENT));
}

/// A removal succeeds although allocation fails when its node should become smaller.
#[test]
fn removals_that_cannot_tidy() {
    for plan in [Plan::FailFrom(1), Plan::Panic(1)] {
        let mut tree: ArtTree<u64, Faulty> = ArtTree::with_options(&apart()).unwrap();
        (0..5).for_each(|key| assert_eq!(tree.pin().insert(key, key), Ok(None)));
        assert_eq!(tree.pin().remove(0), Ok(Some(0)));
        let ran = under(plan, || tree.pin().remove(1));
        assert_eq!((ran.outcome, ran.faults > 0), (Some(Ok(Some(1))), true));
        assert_eq!(tree.check(), Ok(3));
        // This pops the end of a node of leaves.
        let ran = under(plan, || tree.pin().pop_first());
        assert!(matches!(ran.outcome, Some(Ok(Some((2, 2))))));
        assert_eq!(tree.check(), Ok(2));
    }
}

/// Scans of a prefix, in both structures with byte strings.
#[test]
fn prefixes() {
    fn are_as_wanted<I: Create + Batches + OrderedScan<Key = [u8]>>() {
        let index = I::with_options(&apart()).unwrap();
        let pinned = index.pin();
        let key = |n: u64| -> Vec<u8> {
            let bytes = mixed(n).to_le_bytes().map(|byte| if byte < 60 { 0xff } else { byte % 4 });
            bytes[..n as usize % 8].to_vec()
        };
        let mut keys: BTreeSet<Vec<u8>> = (0..900).map(key).collect();
        keys.insert(vec![0xff; 9]);
        for key in &keys {
            assert_eq!(pinned.insert(key, key.len() as u64), Ok(None));
        }
        for prefix in keys.iter().cloned().chain([vec![9], vec![0xff; 12]]) {
            let found = pinned.prefix(&prefix).map(|(key, value)| (key.to_vec(), value));
            let wanted = keys.iter().filter(|key| key.starts_with(&prefix));
            assert!(found.eq(wanted.map(|key| (key.clone(), key.len() as u64))), "{prefix:?}");
        }
    }
    are_as_wanted::<ArtTree<[u8]>>();
    are_as_wanted::<SkipList<[u8]>>();
}

/// Scans of such a path, while a writer adds to it and removes from it, return the keys that stay,
/// in order.
#[test]
fn long_paths_beside_a_writer() {
    let tree = Arc::new(tree::<[u8]>());
    let chain = |len: usize| vec![b'm'; len];
    (0..80).for_each(|len| assert_eq!(tree.pin().insert(&chain(2 * len), 0), Ok(None)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..3000 {
                let key = [chain(round * 7 % 160), vec![b"\0z"[round % 2]; 1 + round % 3]].concat();
                if tree.pin().insert(&key, 1).unwrap().is_some() {
                    tree.pin().remove(&key).unwrap();
                }
            }
        });
        for round in 0..300 {
            let stays = |key: &Vec<u8>| key.iter().all(|&byte| byte == b'm');
            let pinned = tree.pin();
            let mut keys: Vec<Vec<u8>> = if round % 2 == 0 {
                pinned.range(..).map(|(key, _)| key.to_vec()).collect()
            } else {
                pinned.range_rev(..).map(|(key, _)| key.to_vec()).collect()
            };
            if round % 2 == 1 {
                keys.reverse();
            }
            assert!(keys.is_sorted_by(|a, b| a < b));
            assert_eq!(keys.iter().filter(|key| stays(key)).count(), 80);
            let mut cursor = tree.cursor();
            assert!(cursor.seek(&chain(2 * (round % 80))));
        }
    });
}

#[test]
fn keys_up_to_512_kib() {
    const LIMIT: usize = 512 << 10;
    let mut tree = tree::<[u8]>();
    let longest: Vec<u8> = (0..LIMIT).map(|n| mixed(n as u64) as u8).collect();
    let (short, long) = (&longest[..LIMIT - 1], [&longest[..], b"x"].concat());
    let pinned = tree.pin();
    for (key, value) in [(&longest[..], 1), (short, 2)] {
        assert_eq!(pinned.insert(key, value), Ok(None));
    }
    assert_eq!((pinned.get(&longest), pinned.get(short)), (Some(1), Some(2)));
    let error = AllocError::KeyLength { bytes: LIMIT + 1, limit: LIMIT };
    assert_eq!(pinned.insert(&long, 3), Err(error));
    assert_eq!(pinned.try_insert(&long, 3), Err(TryInsertError::Alloc(error)));
    let refused = pinned.compare_exchange(&long, None, Some(3));
    assert_eq!(refused, Err(CompareExchangeError::Alloc(error)));
    assert!(error.to_string().contains("524288"), "{error}");
    // Calls that need no memory for the key succeed.
    assert_eq!((pinned.get(&long), pinned.remove(&long)), (None, Ok(None)));
    assert_eq!(pinned.compare_exchange(&long, None, None), Ok(()));
    assert_eq!(pinned.range(&long[..]..).count(), 0);
    let keys: Vec<_> = pinned.range(..).map(|(key, _)| key.len()).collect();
    assert_eq!(keys, [LIMIT - 1, LIMIT]);
    drop(pinned);
    assert_eq!(tree.check(), Ok(2));
}

/// The value that stands for none in nodes of values is a legal value.
#[test]
fn the_absent_value() {
    const ABSENT: u64 = 0xA85E_4E7D_EC0D_E5ED;
    // In nodes of 56 places, and of all bytes, whose writers need not read the place.
    for (verb, count) in (0..3).flat_map(|verb| [(verb, 40), (verb, 50)]) {
        let mut tree = tree::<u64>();
        let pinned = tree.pin();
        (0..count).for_each(|key| assert_eq!(pinned.insert(key, key), Ok(None)));
        match verb {
            0 => assert_eq!(pinned.insert(7, ABSENT), Ok(Some(7))),
            1 => assert_eq!(pinned.compare_exchange(7, Some(7), Some(ABSENT)), Ok(())),
            _ => assert_eq!(pinned.insert(50, ABSENT), Ok(None)),
        }
        let key = if verb == 2 { 50 } else { 7 };
        assert_eq!(pinned.get(key), Some(ABSENT));
        assert_eq!(pinned.try_insert(key, 1), Err(TryInsertError::Occupied(ABSENT)));
        assert_eq!(pinned.range(..).filter(|(_, value)| *value == ABSENT).count(), 1);
        let (mut values, keys) = ([None; 64], (0..64).collect::<Vec<_>>());
        pinned.get_many(&keys, &mut values);
        assert!(keys.iter().zip(&values).all(|(key, value)| *value == pinned.get(*key)));
        assert_eq!(pinned.compare_exchange(key, Some(ABSENT), Some(ABSENT)), Ok(()));
        assert_eq!(pinned.remove(key), Ok(Some(ABSENT)));
        assert_eq!(pinned.get(key), None);
        drop(pinned);
        assert_eq!(tree.check(), Ok(count as usize - usize::from(verb < 2)));
    }
    let mut tree = tree::<u64>();
    tree.bulk_load(&[0, 1, 2, 3, 4, 5].map(|key| (key, ABSENT)), NonZeroUsize::MIN).unwrap();
    assert!((0..6).all(|key| tree.pin().get(key) == Some(ABSENT)));
    assert_eq!(tree.check(), Ok(6));
}

/// The bytes of a `Node256`.
const LARGEST_NODE: usize = 33 * 64;

/// Loads these keys, on one thread and on three, and checks everything.
fn loads<K: ArtKey + ?Sized>(keys: &BTreeSet<K::Owned>) {
    let lent = keys.iter().enumerate().map(|(at, key)| (K::borrow(key), at as u64));
    let entries: Vec<_> = lent.collect();
    let inserted = tree::<K>();
    for (key, value) in &entries {
        assert_eq!(inserted.pin().insert(*key, *value), Ok(None));
    }
    for count in [1, 3] {
        let mut tree = tree::<K>();
        tree.bulk_load(&entries, threads(count)).unwrap();
        assert_eq!(tree.check(), Ok(keys.len()));
        let pinned = tree.pin();
        let found = pinned.range(..).map(|(key, value)| (K::to_owned(key), value));
        assert!(found.eq(entries.iter().map(|(key, value)| (K::to_owned(*key), *value))));
        assert!(entries.iter().all(|(key, value)| pinned.get(*key) == Some(*value)));
        drop(pinned);
        // No node but the root is larger than in a tree that was filled by insertion.
        let used = |tree: &ArtTree<K>| -> usize {
            tree.pool_stats().iter().map(|pool| pool.live_bytes).sum()
        };
        let most = used(&inserted) + if keys.is_empty() { 0 } else { LARGEST_NODE };
        assert!(used(&tree) <= most, "{} {}", used(&tree), used(&inserted));
        // The tree can be written like any other.
        for (key, value) in &entries {
            assert_eq!(tree.pin().remove(*key), Ok(Some(*value)));
        }
        assert_eq!(tree.check(), Ok(0));
    }
}

#[test]
fn sorted_entries_are_loaded() {
    loads::<u64>(&BTreeSet::new());
    loads::<u64>(&BTreeSet::from([u64::MAX]));
    loads::<u64>(&(0..3000).collect());
    loads::<u64>(&(0..3000).map(mixed).collect());
    loads::<u64>(&(0..2000).map(|n| if n % 2 == 0 { n } else { mixed(n) >> (n % 60) }).collect());
    loads::<u128>(&(0..2000).map(|n| u128::from(mixed(n)) << (n % 64)).collect());
    let text = |n: u64| {
        let text = format!("/{:x}/{}", mixed(n) % 7, "deep/".repeat((mixed(n) >> 8) as usize % 9));
        <[u8] as IndexKey>::to_owned(&text.as_bytes()[..text.len() - (n % 4) as usize])
    };
    loads::<[u8]>(&(0..3000).map(text).collect());
    loads::<[u8]>(&(0..300).map(|len| vec![b'm'; len].into()).collect());
    let last = |byte: u8| Box::from(&[b'k', byte][..]);
    let all: BTreeSet<Box<[u8]>> = (0..=255).map(last).chain([Box::from(&b"k"[..])]).collect();
    loads::<[u8]>(&all);
}

/// The number of live objects of a tree.
fn live<K: ArtKey + ?Sized, P: Placement>(tree: &ArtTree<K, P>) -> usize {
    tree.pool_stats().iter().map(|pool| pool.live_slots).sum()
}

#[test]
fn what_is_not_sorted_is_refused() {
    let entries: Vec<(u64, u64)> = (0..400).map(|n| (n * n, n)).collect();
    for count in [1, 3] {
        for at in [1, 2, 200, 399] {
            let mut tree = tree::<u64>();
            let (mut swapped, mut twice) = (entries.clone(), entries.clone());
            swapped.swap(at - 1, at);
            twice[at].0 = twice[at - 1].0;
            let unsorted = Err(BulkLoadError::Unsorted { position: at });
            assert_eq!(tree.bulk_load(&swapped, threads(count)), unsorted);
            let duplicate = Err(BulkLoadError::Duplicate { position: at });
            assert_eq!(tree.bulk_load(&twice, threads(count)), duplicate);
            assert_eq!((tree.check(), live(&tree)), (Ok(0), 0));
            tree.bulk_load(&entries, threads(count)).unwrap();
            let again = Err(BulkLoadError::NotEmpty { entries: 400 });
            assert_eq!(tree.bulk_load(&entries, threads(count)), again);
            assert_eq!(tree.check(), Ok(400));
        }
        let mut tree = tree::<[u8]>();
        let long = vec![b'z'; (512 << 10) + 1];
        let error = tree.bulk_load(&[(b"a", 1), (&long, 2)], threads(count)).unwrap_err();
        assert!(matches!(error, BulkLoadError::Alloc(AllocError::KeyLength { .. })));
        assert_eq!((tree.check(), live(&tree)), (Ok(0), 0));
    }
}

/// If any allocation fails or panics, the tree stays empty and nothing leaks.
fn load_without_memory<K: ArtKey + ?Sized>(entries: &[(K::Ref<'_>, u64)]) {
    let mut nth = 1;
    loop {
        for plan in [Plan::FailFrom(nth), Plan::Panic(nth)] {
            let mut tree: ArtTree<K, Faulty> = ArtTree::with_options(&apart()).unwrap();
            let ran = under(plan, || tree.bulk_load(entries, threads(1)));
            if ran.faults == 0 {
                assert_eq!((ran.outcome, tree.check()), (Some(Ok(())), Ok(entries.len())));
                assert!(nth > 10, "{nth}");
                return;
            }
            assert!(!matches!(ran.outcome, Some(Ok(()))), "{plan:?}");
            assert_eq!((tree.check(), live(&tree)), (Ok(0), 0), "{plan:?}");
        }
        nth += 1;
    }
}

#[test]
fn loading_without_memory() {
    let key = |n: u64| if n.is_multiple_of(2) { n } else { mixed(n) };
    let mut sorted: Vec<(u64, u64)> = (0..60).map(|n| (key(n), n)).collect();
    sorted.sort_unstable();
    load_without_memory::<u64>(&sorted);
    let chain = [b'm'; 40];
    let bytes: Vec<(&[u8], u64)> = (0..40).map(|len| (&chain[..len], len as u64)).collect();
    load_without_memory::<[u8]>(&bytes);
}

/// As many threads as a number can say: more than there are entries, and than a system has.
#[test]
fn more_threads_than_entries() {
    let many: Vec<(u64, u64)> = (0..20_000).map(|n| (n << 20, n)).collect();
    for count in [16, 1 << 61, usize::MAX] {
        for entries in [&[][..], &[(1, 2), (3, 4)], &many] {
            let mut tree: ArtTree<u64, Pooled> = tree();
            tree.bulk_load(entries, threads(count)).unwrap();
            assert_eq!(tree.check(), Ok(entries.len()));
        }
    }
}

/// Compares the scans from each of `starts`, in both directions, with the model's.
fn scans_agree(
    index: &impl OrderedScan<Key = [u8]>,
    model: &BTreeMap<Vec<u8>, u64>,
    starts: impl Iterator<Item = Vec<u8>>,
) {
    let view = index.pin();
    for start in starts {
        let up = view.range(&start[..]..).map(|(key, value)| (key.to_vec(), value));
        assert!(up.eq(model.range(start.clone()..).map(|(key, value)| (key.clone(), *value))));
        let down = view.range_rev(..&start[..]).map(|(key, value)| (key.to_vec(), value));
        assert!(
            down.eq(model.range(..start.clone()).rev().map(|(key, value)| (key.clone(), *value)))
        );
    }
}

#[test]
fn scans_of_a_deep_path_with_many_siblings() {
    // With keys a^n b, a^n c for each n, the paths of all smaller n lie beside the path to the next
    // key: more than scans keep.
    let index = tree::<[u8]>();
    let mut model = BTreeMap::new();
    let view = index.pin();
    for n in 0..400 {
        for end in ["", "b", "c", "cd"] {
            let key = ["a".repeat(n), end.to_string()].concat().into_bytes();
            view.insert(&key, n as u64).expect("no limit");
            model.insert(key, n as u64);
        }
    }
    let starts = model.keys().step_by(7).cloned().chain([Vec::new(), b"zz".to_vec()]);
    scans_agree(&index, &model, starts);
}

#[test]
fn scans_of_nodes_of_all_sizes() {
    let index = tree::<[u8]>();
    let mut model = BTreeMap::new();
    let view = index.pin();
    // Nodes of 2 to 256 children, whose places have leaves, nodes of these sizes, and ends.
    for (n, size) in [2_u16, 4, 5, 14, 16, 17, 56, 256].into_iter().enumerate() {
        for (m, below) in [1_u16, 3, 16, 40].into_iter().enumerate() {
            for first in 0..size {
                for second in 0..below {
                    let bytes = [n as u8, m as u8, first as u8, second as u8];
                    let key = &bytes[..if first % 3 == 0 && second == 0 { 3 } else { 4 }];
                    view.insert(key, u64::from(first)).expect("no limit");
                    model.insert(key.to_vec(), u64::from(first));
                }
            }
        }
    }
    scans_agree(&index, &model, model.keys().step_by(97).cloned());
}

/// Scans of dense integers, whose values lie side by side: of all, half and few of them, from every
/// key, in both directions.
#[test]
fn scans_of_values_side_by_side() {
    for every in [1, 2, 3, 40] {
        let tree = tree::<u64>();
        let view = tree.pin();
        let mut model = BTreeMap::new();
        for n in 0..1500 {
            let key = 700 + n;
            if key % 97 < 60 && mixed(key).is_multiple_of(every) {
                view.insert(key, n).unwrap();
                model.insert(key, n);
            }
        }
        for at in 690..2210 {
            let up = view.range(at..).take(70);
            assert!(up.eq(model.range(at..).take(70).map(|(key, value)| (*key, *value))), "{at}");
            let behind = (Excluded(at), Included(at + 50));
            let wanted = model.range(behind).map(|(key, value)| (*key, *value));
            assert!(view.range(behind).eq(wanted), "{at}");
            let down = view.range_rev(..at).take(70);
            let wanted = model.range(..at).rev().take(70);
            assert!(down.eq(wanted.map(|(key, value)| (*key, *value))), "{at}");
            let before = (Included(at - 50), Included(at));
            let wanted = model.range(before).rev().map(|(key, value)| (*key, *value));
            assert!(view.range_rev(before).eq(wanted), "{at}");
        }
    }
}
