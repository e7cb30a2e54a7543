//! Blocks of words: values that are marks, keys that make leaves change their form, and keys that
//! are far apart.

use silvics::error::CompareExchangeError;
use silvics::{
    BulkLoadError, Check, Domain, Lookup, Objects, Options, OrderedEnds, OrderedScan, WordKey,
    WordTree,
};
use silvics_api_tests::{mixed, threads};
use silvics_testkit::faulty::{Faulty, Plan, under};
use silvics_testkit::make::apart;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

/// The words that are marks, and some around them (`words/value.rs`).
fn marks() -> Vec<u64> {
    let first = 0xA85E_4E7D_EC0D_E5E8_u64;
    let sets = [first, first ^ 1 << 62];
    sets.iter().flat_map(|set| (0..6).map(move |n| set - 1 + n)).chain([0, u64::MAX]).collect()
}

fn new_tree<K: WordKey>() -> WordTree<K> {
    let options = Options { domain: Some(Domain::new()), ..Options::default() };
    WordTree::with_options(&options).unwrap()
}

/// The tree holds exactly the entries of the map, in both directions.
fn agree(tree: &mut WordTree<u64>, map: &BTreeMap<u64, u64>, what: &str) {
    {
        let guard = tree.domain().pin();
        let all: Vec<_> = tree.range(.., &guard).collect();
        assert_eq!(all, map.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>(), "{what}");
        let all: Vec<_> = tree.range_rev(.., &guard).collect();
        assert_eq!(all, map.iter().rev().map(|(k, v)| (*k, *v)).collect::<Vec<_>>(), "{what}");
        for (key, value) in map {
            assert_eq!(tree.get(*key, &guard), Some(*value), "{what}: {key}");
        }
        assert_eq!(tree.first(&guard), map.first_key_value().map(|(k, v)| (*k, *v)), "{what}");
        assert_eq!(tree.last(&guard), map.last_key_value().map(|(k, v)| (*k, *v)), "{what}");
    }
    assert_eq!(tree.check(), Ok(map.len()), "{what}");
}

/// Marks are put, exchanged and removed, beside other values, in blocks and in slots.
#[test]
fn marks_are_values() {
    let marks = marks();
    for (name, step) in [("dense", 1), ("sparse", 0x9E37_79B9_7F4A_7C15_u64)] {
        let (mut tree, mut map) = (new_tree::<u64>(), BTreeMap::new());
        for round in 0..6_000_u64 {
            let random = mixed(round) >> 8;
            let key = (random % 300).wrapping_mul(step);
            let value = if random.is_multiple_of(7) {
                marks[(random >> 20) as usize % marks.len()]
            } else {
                round
            };
            let tree = tree.pin();
            let old = map.get(&key).copied();
            match random >> 40 & 3 {
                0 => assert_eq!(tree.remove(key), Ok(map.remove(&key)), "{name} {round}"),
                1 => {
                    let exchanged = tree.compare_exchange(key, old, Some(value));
                    assert_eq!(exchanged, Ok(()), "{name} {round}");
                    map.insert(key, value);
                }
                _ => assert_eq!(
                    tree.insert(key, value),
                    Ok(map.insert(key, value)),
                    "{name} {round}"
                ),
            }
        }
        agree(&mut tree, &map, name);
        // Only marks: leaves have values of one set, however many keys that takes.
        for key in 0..200_u64 {
            let (key, value) = (key.wrapping_mul(step), marks[key as usize % marks.len()]);
            assert_eq!(tree.pin().insert(key, value), Ok(map.insert(key, value)), "{name}");
        }
        agree(&mut tree, &map, name);
        for key in map.keys() {
            assert_eq!(tree.pin().remove(*key), Ok(Some(map[key])), "{name}");
        }
        assert_eq!((tree.check(), tree.len()), (Ok(0), 0), "{name}");
    }
}

/// Threads count up by exchanges, from marks of both sets on. No step is lost.
#[test]
fn marks_are_counted_through() {
    const STEPS: u64 = 2_000;
    for keys in [1, 3, 40] {
        let tree = new_tree::<u64>();
        let starts = [marks()[0] - 40, marks()[6] - 40];
        for key in 0..keys {
            tree.pin().insert(key, starts[key as usize % 2]).unwrap();
        }
        let start = Barrier::new(2);
        let count = |seed: u64| {
            start.wait();
            for step in 0..STEPS {
                let (key, tree) = ((step * 7 + seed) % keys, tree.pin());
                let mut old = tree.get(key);
                while let Err(CompareExchangeError::Mismatch(other)) =
                    tree.compare_exchange(key, old, old.map(|n| n + 1))
                {
                    old = other;
                }
            }
        };
        thread::scope(|scope| {
            let threads = [scope.spawn(|| count(0)), scope.spawn(|| count(1))];
            for thread in threads {
                thread.join().unwrap();
            }
        });
        let tree = tree.pin();
        let counted = (0..keys).map(|key| tree.get(key).unwrap() - starts[key as usize % 2]);
        assert_eq!(counted.sum::<u64>(), 2 * STEPS, "{keys} keys");
    }
}

/// Keys come and go at the density at which a leaf changes its form. An array of slots is made of a
/// full block with ten of 64 keys or more, and stays until five are left. So between these no leaf
/// is replaced.
#[test]
fn leaves_do_not_flip_between_their_forms() {
    let mut tree = new_tree::<u64>();
    (0..30).for_each(|key| assert_eq!(tree.pin().insert(2 * key, key), Ok(None)));
    let addresses = |tree: &mut WordTree<u64>| {
        let mut seen = Vec::new();
        tree.census(&mut |placed| seen.push((placed.address, placed.bytes))).unwrap();
        seen
    };
    let before = addresses(&mut tree);
    assert!(before.iter().any(|(_, bytes)| *bytes == 576), "slots: {before:?}");
    for round in 0..1_000 {
        // Down to six keys and up again.
        (0..24).for_each(|key| assert_eq!(tree.pin().remove(2 * key), Ok(Some(key + round))));
        (0..24).for_each(|key| assert_eq!(tree.pin().insert(2 * key, key + round + 1), Ok(None)));
        assert_eq!(addresses(&mut tree), before, "round {round}");
    }
    // Only the last line has values then: two.
    (0..28).for_each(|key| assert!(tree.pin().remove(2 * key).unwrap().is_some()));
    let after = addresses(&mut tree);
    assert!(after.iter().all(|(_, bytes)| *bytes != 576), "a block again: {after:?}");
    assert_eq!(tree.check(), Ok(2));
}

/// A block whose keys are dense becomes arrays of slots at once: four if the keys are spread evenly
/// over 256 numbers. A range of 64 numbers with few keys gets a block.
#[test]
fn a_dense_block_becomes_several_arrays() {
    // More keys than a block has places.
    let even: Vec<u64> = (0..58).map(|n| n * 255 / 57).collect();
    let spread = |parts: [(u64, u64); 4]| {
        let keys =
            |(at, (keys, step)): (u64, (u64, u64))| (0..keys).map(move |n| 64 * at + step * n);
        (0..4).zip(parts).flat_map(keys).collect::<Vec<u64>>()
    };
    let uneven = spread([(36, 1), (16, 4), (0, 1), (6, 10)]);
    let skewed = spread([(24, 2), (20, 3), (9, 7), (5, 12)]);
    // (the keys, the number of arrays, the number of leaves)
    for (name, keys, arrays, leaves) in
        [("even", even, 4, 4), ("uneven", uneven, 2, 3), ("skewed", skewed, 2, 4)]
    {
        for base in [0_u64, 7 << 20, u64::MAX << 8] {
            let (mut tree, mut map) = (new_tree::<u64>(), BTreeMap::new());
            let mut keys = keys.clone();
            keys.sort_by_key(|key| mixed(base ^ key));
            for key in keys {
                assert_eq!(tree.pin().insert(base + key, key), Ok(map.insert(base + key, key)));
            }
            let mut seen = Vec::new();
            tree.census(&mut |placed| seen.push((placed.layout.kind, placed.bytes))).unwrap();
            let is_array = |(kind, bytes): &&(&str, usize)| *kind == "leaf" && *bytes == 576;
            let (found, all) = (
                seen.iter().filter(is_array).count(),
                seen.iter().filter(|(kind, _)| *kind == "leaf").count(),
            );
            assert_eq!((found, all), (arrays, leaves), "{name} from {base:#x}: {seen:?}");
            agree(&mut tree, &map, name);
        }
    }
}

/// A block that becomes arrays is below two places of a node that has as many bits as it may have.
/// So a node of two bits goes below these places.
#[test]
fn a_dense_block_below_two_places_becomes_arrays() {
    const RANGES: u64 = 256;
    let few = 100; // the range with few keys
    let keys = |range: u64| {
        let count = if range == few { 20 } else { 52 };
        (0..count).map(move |n| 256 * range + 255 * n / (count - 1))
    };
    let mut map: BTreeMap<u64, u64> = (0..RANGES).flat_map(keys).zip(0..).collect();
    let entries: Vec<(u64, u64)> = map.iter().map(|(key, value)| (*key, *value)).collect();
    let mut tree = new_tree::<u64>();
    tree.bulk_load(&entries, threads(1)).unwrap();
    let shapes = |tree: &mut WordTree<u64>| {
        let mut seen = Vec::new();
        tree.census(&mut |placed| seen.push((placed.layout.kind, placed.bytes))).unwrap();
        seen.sort_unstable();
        seen
    };
    let before = shapes(&mut tree);
    let leaves = before.iter().filter(|(kind, _)| *kind == "leaf").count();
    assert_eq!(leaves as u64, 2 * RANGES - 1, "a leaf for each place but two");
    assert_eq!(before.last(), Some(&("node", 64 + 8 * 512)), "the node has nine bits");
    for n in 0..60 {
        let key = 256 * few + n * 4 + 1;
        assert_eq!(tree.pin().insert(key, n), Ok(map.insert(key, n)));
    }
    let after = shapes(&mut tree);
    let count = |seen: &[(&str, usize)], shape| seen.iter().filter(|of| **of == shape).count();
    assert_eq!(count(&after, ("leaf", 576)) - count(&before, ("leaf", 576)), 4, "{after:?}");
    assert_eq!(count(&after, ("node", 128)) - count(&before, ("node", 128)), 1, "{after:?}");
    agree(&mut tree, &map, "arrays");
    for key in (0..255).map(|n| 256 * few + n) {
        assert_eq!(tree.pin().remove(key), Ok(map.remove(&key)));
    }
    agree(&mut tree, &map, "gone again");
}

/// Keys at every distance from each other: nodes above nodes, and places that share a child.
#[test]
fn keys_at_every_distance() {
    let (mut tree, mut map) = (new_tree::<u64>(), BTreeMap::new());
    let powers =
        (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, !(1 << bit), u64::MAX << bit]);
    let near = (0..64).flat_map(|bit| (0..60).map(move |n| (1_u64 << bit).wrapping_add(n * n)));
    for (n, key) in powers.chain(near).enumerate() {
        assert_eq!(tree.pin().insert(key, n as u64), Ok(map.insert(key, n as u64)), "{key:#x}");
    }
    agree(&mut tree, &map, "all");
    let keys: Vec<u64> = map.keys().copied().collect();
    for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 3 != 0) {
        assert_eq!(tree.pin().remove(*key), Ok(map.remove(key)), "{n}");
    }
    agree(&mut tree, &map, "a third");
    while let Some(popped) = tree.pin().pop_last().unwrap() {
        assert_eq!(Some(popped), map.pop_last());
    }
    assert!(map.is_empty());
    let mut objects = 0;
    tree.census(&mut |_| objects += 1).unwrap();
    assert_eq!(objects, 0, "objects are left in an empty tree");
}

/// Ranges of keys are filled and emptied, small ones beside large ones. So nodes lose all children
/// but one, which may be a node of a smaller range.
#[test]
fn ranges_come_and_go() {
    let rounds = if cfg!(miri) { 20 } else { 3_000 };
    let (mut tree, mut map) = (new_tree::<u64>(), BTreeMap::new());
    for round in 0..rounds {
        let random = mixed(round) >> 16;
        let bits = 4 + random % 10;
        let base = (random >> 8 & 15) << bits;
        let step = 1 << (random >> 12 & 7).min(bits - 3);
        let range = base..base + (1 << bits);
        for key in range.step_by(step) {
            if random >> 20 & 1 == 0 {
                assert_eq!(tree.pin().insert(key, round), Ok(map.insert(key, round)));
            } else {
                assert_eq!(tree.pin().remove(key), Ok(map.remove(&key)));
            }
        }
        assert_eq!(tree.check(), Ok(map.len()), "round {round}");
        if round % 100 == 0 {
            agree(&mut tree, &map, "a round");
        }
    }
}

/// Keys of 128 bits that differ in their first or in their last bits only.
#[test]
fn keys_of_two_words() {
    let mut tree = new_tree::<u128>();
    let keys =
        (0..3_000_u128).map(|n| (n % 3) << 126 | n << 62 | n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let map: BTreeMap<u128, u64> = keys.zip(0..).collect();
    for (key, value) in &map {
        assert_eq!(tree.pin().insert(*key, *value), Ok(None));
    }
    {
        let guard = tree.domain().pin();
        assert!(tree.range(.., &guard).eq(map.iter().map(|(k, v)| (*k, *v))));
        for (key, value) in &map {
            assert_eq!(tree.get(*key, &guard), Some(*value));
            assert_eq!(tree.get(key ^ 1 << 127, &guard), map.get(&(key ^ 1 << 127)).copied());
        }
    }
    assert_eq!(tree.check(), Ok(map.len()));
}

/// Sorted entries: dense, sparse, in ranges of every size, and with marks as values.
fn sorted(name: &str, count: u64) -> Vec<(u64, u64)> {
    let marks = marks();
    let key = |n: u64| match name {
        "dense" => n + n / 700,
        "half dense" => mixed(n) % (2 * count),
        "ranges" => mixed(n) >> (mixed(n % 40) % 60),
        "stairs" => (n % 64) << (n / 64 % 58),
        _ => mixed(n),
    };
    let value = |n: u64| if name == "marks" { marks[n as usize % marks.len()] } else { n };
    let map: BTreeMap<u64, u64> = (0..count).map(|n| (key(n), value(n))).collect();
    map.into_iter().collect()
}

const SETS: [&str; 6] = ["dense", "half dense", "ranges", "stairs", "marks", "sparse"];

/// Trees that are loaded at once have the entries, keep the invariants, and take more entries
/// afterwards. They take at most an eighth more memory than after as many inserts, or half as much
/// again if keys are crowded in small ranges or values are marks.
#[test]
fn bulk_loads() {
    for name in SETS {
        for count in [0, 1, 2, 40, 41, 65, 300, 5_000, 60_000] {
            let entries = sorted(name, count);
            let (mut tree, mut grown) = (new_tree::<u64>(), new_tree::<u64>());
            tree.bulk_load(&entries, threads(1)).unwrap();
            let mut map: BTreeMap<u64, u64> = entries.iter().copied().collect();
            agree(&mut tree, &map, name);
            for (key, value) in &entries {
                assert_eq!(grown.pin().insert(*key, *value), Ok(None));
            }
            let objects_of = |tree: &mut WordTree<u64>| {
                let mut objects = Vec::new();
                tree.census(&mut |placed| objects.push(placed.bytes)).unwrap();
                objects
            };
            let objects = objects_of(&mut tree);
            for count in [2, 3, usize::MAX] {
                let mut other = new_tree::<u64>();
                other.bulk_load(&entries, threads(count)).unwrap();
                agree(&mut other, &map, name);
                assert_eq!(objects_of(&mut other), objects, "{name} by {count} threads");
            }
            let at_once: usize = objects.into_iter().sum();
            let one_by_one: usize = objects_of(&mut grown).into_iter().sum();
            let scattered = matches!(name, "ranges" | "stairs" | "marks");
            let most = one_by_one + one_by_one / if scattered { 2 } else { 8 } + 512;
            assert!(at_once <= most, "{name} {count}: {at_once} bytes, {one_by_one} by inserts");
            for (key, _) in entries.iter().step_by(3) {
                assert_eq!(tree.pin().remove(*key), Ok(map.remove(key)));
                let other = key ^ 1 << 20;
                assert_eq!(tree.pin().insert(other, 7), Ok(map.insert(other, 7)));
            }
            agree(&mut tree, &map, name);
        }
    }
    let entries: Vec<(u128, u64)> = (0..5_000_u64).map(|n| (u128::from(n) << 115 | 9, n)).collect();
    for count in [1, 3] {
        let mut tree = new_tree::<u128>();
        tree.bulk_load(&entries, threads(count)).unwrap();
        assert_eq!(tree.check(), Ok(5_000));
        assert!(tree.pin().range(..).eq(entries.iter().copied()));
    }
}

/// Allocations of the calling thread fail or panic, while two others load parts.
fn faults_of_threads(entries: &[(u64, u64)]) {
    let mut faults = 0;
    for nth in 1..30 {
        for plan in [Plan::FailFrom(nth), Plan::Panic(nth)] {
            let mut tree: WordTree<u64, Faulty> = WordTree::with_options(&apart()).unwrap();
            let ran = under(plan, || tree.bulk_load(entries, threads(3)));
            let loaded = matches!(ran.outcome, Some(Ok(())));
            assert_eq!(loaded, ran.faults == 0, "{plan:?}");
            assert_eq!(tree.check(), Ok(if loaded { entries.len() } else { 0 }), "{plan:?}");
            tree.settle();
            let live: usize = tree.pool_stats().iter().map(|stats| stats.live_bytes).sum();
            assert_eq!(live == 0, !loaded, "{plan:?}");
            faults += ran.faults;
        }
    }
    assert!(faults > 10, "{faults}");
}

/// A bulk load by three threads that reaches the memory limit leaves the tree empty, and frees what
/// each thread has made.
fn limited(entries: &[(u64, u64)]) {
    let (mut loaded, mut failed) = (0, 0);
    for limit in (0..8).map(|n| n << 20) {
        let options = Options { memory_limit: Some(limit), ..Options::default() };
        let Ok(mut tree) = WordTree::<u64>::with_options(&options) else { continue };
        if tree.bulk_load(entries, threads(3)).is_ok() {
            assert_eq!(tree.check(), Ok(entries.len()));
            loaded += 1;
            continue;
        }
        assert_eq!((tree.check(), tree.pin().range(..).count()), (Ok(0), 0));
        tree.settle();
        let live: usize = tree.pool_stats().iter().map(|stats| stats.live_bytes).sum();
        assert_eq!(live, 0, "{limit}");
        failed += 1;
    }
    assert!(loaded > 0 && failed > 1, "{loaded} limits were large enough, {failed} were not");
}

/// A bulk load that fails leaves the tree empty, and frees all that it has made.
#[test]
fn failed_bulk_loads() {
    let mut entries = sorted("ranges", 3_000);
    for (key, _) in &mut entries {
        *key += 1;
    }
    for (position, count) in [1, 100, entries.len() - 1].into_iter().zip([1, 3, 2]) {
        let (mut tree, mut wrong) = (new_tree::<u64>(), entries.clone());
        let mut load = |entries: &[_]| tree.bulk_load(entries, threads(count));
        wrong[position] = entries[position - 1];
        assert_eq!(load(&wrong), Err(BulkLoadError::Duplicate { position }));
        wrong[position].0 = entries[position - 1].0 - 1;
        assert_eq!(load(&wrong), Err(BulkLoadError::Unsorted { position }));
        assert_eq!((tree.check(), tree.pin().range(..).count()), (Ok(0), 0));
        tree.bulk_load(&entries, threads(count)).unwrap();
        let again = Err(BulkLoadError::NotEmpty { entries: entries.len() });
        assert_eq!(tree.bulk_load(&entries, threads(count)), again);
        assert_eq!(tree.check(), Ok(entries.len()));
    }
    limited(&sorted("sparse", 60_000));
    faults_of_threads(&sorted("sparse", 4_000));
    for nth in 1.. {
        for plan in [Plan::FailFrom(nth), Plan::Panic(nth)] {
            let mut tree: WordTree<u64, Faulty> = WordTree::with_options(&apart()).unwrap();
            let ran = under(plan, || tree.bulk_load(&entries[..300], threads(1)));
            if ran.faults == 0 {
                assert_eq!((ran.outcome, tree.check()), (Some(Ok(())), Ok(300)));
                assert!(nth > 10, "{nth}");
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

/// If the heap panics while a removal takes room back, the removal has taken effect, and says so.
#[test]
fn a_panic_behind_a_removal_does_not_hide_it() {
    let mut tree: WordTree<u64, Faulty> = WordTree::with_options(&apart()).unwrap();
    let key = |n: u64| mixed(mixed(n) + 1);
    let mut panics = 0;
    for round in 0..20 {
        for n in 0..60 {
            _ = tree.pin().insert(key(n), round).unwrap();
        }
        for n in 0..60 {
            let ran = under(Plan::Panic(1), || tree.pin().remove(key(n)));
            panics += ran.faults;
            assert_eq!(ran.outcome, Some(Ok(Some(round))), "key {n} of round {round}");
        }
        assert_eq!(tree.check(), Ok(0));
    }
    assert!(panics > 20, "{panics} panics");
}

/// Small trees are small: they have no pools at first, and do not keep what they have retired.
#[test]
fn small_trees_take_little_memory() {
    for (keys, most) in [(0, 100), (10, 800), (100, 9_000), (1_000, 110_000)] {
        let tree = new_tree::<u64>();
        let key = |n: u64| mixed(mixed(n) + 1) >> 1;
        (0..keys).for_each(|n| assert_eq!(tree.pin().insert(key(n), n), Ok(None)));
        assert!(tree.bytes() < most, "{keys} keys: {} bytes", tree.bytes());
    }
}

/// A scan takes full arrays of slots in another way than others. It returns the present entries,
/// whatever arrays come after each other.
#[test]
fn scans_over_full_and_other_arrays() {
    let mut tree = new_tree::<u64>();
    let is_present = |key: &u64| key / 64 % 3 != 1 || key % 5 < 2;
    let map: BTreeMap<u64, u64> = (0..64 * 12).filter(is_present).map(|key| (key, !key)).collect();
    for (key, value) in &map {
        assert_eq!(tree.pin().insert(*key, *value), Ok(None));
    }
    agree(&mut tree, &map, "full and other arrays");
    let guard = tree.domain().pin();
    let pick = |mut list: Vec<(u64, u64)>, entry| {
        list.push(entry);
        list
    };
    for (from, to) in [(0, 767), (3, 700), (64, 127), (130, 191), (100, 400)] {
        let wanted: Vec<_> = map.range(from..=to).map(|(key, value)| (*key, *value)).collect();
        let mut found = tree.range_rev(from..=to, &guard).fold(Vec::new(), pick);
        found.reverse();
        assert_eq!(found, wanted, "descending, {from} to {to}");
        assert_eq!(tree.range(from..=to, &guard).fold(Vec::new(), pick), wanted, "{from} to {to}");
    }
}
