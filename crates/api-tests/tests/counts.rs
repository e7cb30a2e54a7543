//! Order statistics of maps: ranks, entries by number, counts of ranges and samples.

use silvics::key::AsKey;
use silvics::map::MapIndex;
use silvics::{ArtTree, CaTree, Check, Domain, Key, Map, NatarajanTree, OrderStatistics, SkipList};
use std::collections::BTreeMap;

/// A generator of numbers (Steele, Lea, Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let n = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        n ^ (n >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A map must have the same ranks as a reference after each of some steps, in which keys come and
/// go in random order, in ascending order and at both ends.
fn agrees<K, I>(mut map: Map<K, u64, I>, key: impl Fn(u64) -> K, steps: u64, seed: u64)
where
    K: Key + Ord + Clone + std::fmt::Debug,
    for<'a> &'a K: AsKey<K>,
    I: MapIndex<Key = K::Form> + OrderStatistics + Check,
{
    let mut random = Random(seed);
    let mut all = BTreeMap::new();
    for step in 0..steps {
        let many = random.below(400);
        let start = random.below(10_000);
        for n in 0..many {
            let n = match step % 4 {
                0 => random.below(10_000),
                1 => start + n,
                2 => 10_000 - n,
                _ => random.next(),
            };
            if random.below(steps) > step {
                map.insert(key(n), n);
                all.insert(key(n), n);
            } else {
                map.remove(key(n));
                all.remove(&key(n));
                let near = all.range(key(n)..).next().map(|(key, _)| key.clone());
                if let Some(near) = near {
                    map.remove(&near);
                    all.remove(&near);
                }
            }
        }
        assert_eq!(map.check().unwrap(), all.len());
        let view = map.pin();
        for _ in 0..20 {
            let (a, b) = (key(random.below(20_000)), key(random.below(20_000)));
            let rank = all.range(..&a).count();
            assert_eq!(view.rank(&a), rank);
            let counted = if a < b { all.range(&a..&b).count() } else { 0 };
            assert_eq!(view.count(&a..&b), counted);
            assert_eq!(view.count(..=&a), all.range(..=&a).count());
            assert_eq!(view.count(&a..), all.len() - rank);
            let number = random.below(all.len() as u64 + 2) as usize;
            let nth = view.nth(number).map(|(key, value)| (<K as Key>::to_owned(key), *value));
            assert_eq!(nth, all.iter().nth(number).map(|(key, value)| (key.clone(), *value)));
        }
        assert_eq!(view.count(..), all.len());
    }
}

#[test]
fn ranks_agree_with_a_reference() {
    let counted = || Map::<u64, u64>::builder().counted().build().unwrap();
    agrees(counted(), |n| n, 60, 1);
    agrees(counted(), |n| n << 40, 60, 2);
}

#[test]
fn ranks_of_strings_agree_with_a_reference() {
    let counted = || Map::<String, u64>::builder().counted().build().unwrap();
    agrees(counted(), |n| format!("{n}"), 40, 3);
    agrees(counted(), |n| format!("a prefix that all keys share/{n:020}"), 40, 4);
    agrees(counted(), |n| format!("{}/{n:08}", ["etc", "usr/share"][n as usize % 2]), 40, 5);
    agrees(counted(), |n| "x".repeat(n as usize % 300), 40, 6);
    // Heads are padded with zeros, which are bytes of keys, too.
    let zeros = |n: u64| {
        let mut key = b"the same".to_vec();
        key.extend((0..n % 9).map(|at| (n >> (8 * at)) as u8 % 2));
        key
    };
    agrees(Map::<Vec<u8>, u64>::builder().counted().build().unwrap(), zeros, 40, 7);
}

#[test]
fn ranks_in_other_indexes_agree_with_a_reference() {
    let wide = |n: u64| u128::from(n) << 70 | u128::from(n % 3);
    agrees(Map::<u128, u64>::builder().counted().build().unwrap(), wide, 40, 8);
    let builder = Map::<u128, u64>::builder;
    agrees(builder().index::<ArtTree<u128>>().counted().build().unwrap(), wide, 40, 9);
    let builder = Map::<u64, u64>::builder;
    agrees(builder().index::<SkipList<u64>>().counted().build().unwrap(), |n| n, 40, 10);
    agrees(builder().index::<ArtTree<u64>>().counted().build().unwrap(), |n| n, 40, 11);
    agrees(builder().index::<CaTree<u64>>().counted().build().unwrap(), |n| n, 40, 12);
    agrees(builder().index::<NatarajanTree>().counted().build().unwrap(), |n| n, 20, 13);
}

/// A bucket that many keys have come to is divided into buckets of the usual size, at once.
#[test]
fn appended_keys_are_in_small_buckets() {
    let appended = if cfg!(miri) { 2000 } else { 200_000 };
    let mut map = Map::<u64, u64>::builder().counted().build().unwrap();
    map.extend((0..1000).map(|n| (n, n)));
    assert_eq!(map.rank(1000), 1000);
    map.extend((1000..appended).map(|n| (n, n)));
    assert_eq!(map.rank(appended), appended as usize);
    let pools = map.pool_stats();
    let counts = pools.iter().find(|pool| pool.kind == "counts").expect("there is a directory");
    // A bucket has 64 keys at most, and takes 16 bytes at least.
    let least = appended as usize / 64 * 16;
    assert!(counts.live_bytes >= least, "{} bytes, {least} expected", counts.live_bytes);
    map.check().unwrap();
}

/// Threads insert and remove their own keys, and ask for ranks. A rank may differ by the operations
/// under way: one of each other thread. At the end, all ranks are exact.
#[test]
fn ranks_are_right_beside_writers() {
    const KEYS: u64 = 3000;
    let (threads, rounds) = if cfg!(miri) { (2_u64, 20_u64) } else { (3, 6000) };
    let mut map = Map::<u64, u64>::builder().counted().build().unwrap();
    map.extend((0..KEYS).map(|n| (10 * n, n)));
    // The keys that stay, and the most that the threads add.
    let present = KEYS as usize;
    std::thread::scope(|scope| {
        for thread in 1..=threads {
            let map = &map;
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut own = std::collections::BTreeSet::new();
                for round in 0..rounds {
                    let key = 10 * random.below(KEYS) + thread;
                    if random.below(3) > 0 {
                        map.insert(key, 0);
                        own.insert(key);
                    } else if let Some(key) = own.pop_first() {
                        map.remove(key);
                    }
                    let asked = 10 * random.below(KEYS);
                    let least = asked as usize / 10 + own.range(..asked).count();
                    let most = least + (threads as usize - 1) * (asked as usize / 10);
                    let rank = map.rank(asked);
                    assert!((least..=most).contains(&rank), "{rank} is not in {least}..={most}");
                    // Nobody else writes these keys, so their number is exact.
                    let mine = 10 * (KEYS + thread * 1000);
                    map.insert(mine + round, 0);
                    assert_eq!(map.count(mine..mine + 10_000), 1 + usize::from(round > 0));
                    if round > 0 {
                        map.remove(mine + round - 1);
                    }
                    assert_eq!(map.count(mine..mine + 10_000), 1);
                    let number = random.below(present as u64) as usize;
                    let (key, _) = map.nth(number).expect("so many keys stay");
                    assert!(key <= 10 * number as u64, "key {key} has the number {number}");
                }
                map.remove(10 * (KEYS + thread * 1000) + rounds - 1);
                for key in own {
                    map.remove(key);
                }
            });
        }
    });
    assert_eq!(map.check().unwrap(), present);
    for n in 0..KEYS {
        assert_eq!(map.rank(10 * n), n as usize);
        assert_eq!(map.nth(n as usize).map(|(key, _)| key), Some(10 * n));
    }
    map.check().unwrap();
}

/// If nodes of the directory cannot be allocated, updates and ranks go on.
#[test]
fn a_map_at_its_limit_has_right_ranks() {
    let map = Map::<u64, u64>::builder().memory_limit(400 << 10).counted().build().unwrap();
    let mut keys = 0;
    while map.try_upsert(keys, keys).is_ok() {
        keys += 1;
        if keys % 1000 == 0 {
            assert_eq!(map.rank(keys), keys as usize);
        }
    }
    assert!(keys > 1000, "{keys} keys");
    assert_eq!((map.rank(u64::MAX), map.len()), (keys as usize, keys as usize));
    for key in (0..keys).step_by(7) {
        assert_eq!(map.rank(key), key as usize);
        assert_eq!(map.nth(key as usize).map(|(key, _)| key), Some(key));
    }
    assert!(map.bytes() <= 400 << 10);
    map.clear();
    assert_eq!((map.rank(u64::MAX), map.nth(0).is_none()), (0, true));
}

/// A window of keys that moves on: buckets that have become empty are given back.
#[test]
fn a_moving_window_keeps_the_directory_small() {
    const WINDOW: u64 = 2000;
    // Pins of other tests would hold back nodes that are retired.
    let domain = Domain::new();
    let map = Map::<u64, u64>::builder().counted().domain(domain).build().unwrap();
    let live = || {
        map.pool_stats()
            .iter()
            .filter(|pool| pool.kind == "counts")
            .map(|pool| pool.live_bytes)
            .sum::<usize>()
    };
    let (mut most, rounds) = (0, if cfg!(miri) { 3 } else { 200 });
    for round in 0..rounds {
        for key in round * WINDOW / 4..(round + 4) * WINDOW / 4 {
            map.insert(key * 1000, key);
        }
        map.remove_range(..round * WINDOW / 4 * 1000);
        assert_eq!(map.rank(u64::MAX), map.len());
        map.flush();
        if round == rounds / 4 {
            most = live();
        }
    }
    assert!(live() <= 3 * most.max(1000), "{} bytes of counts, {most} before", live());
}

#[test]
fn a_loaded_map_has_ranks() {
    let builder = Map::<u64, u64>::builder().counted();
    let mut map = builder.from_sorted((0..100_000).map(|n| (3 * n, n))).unwrap();
    assert_eq!((map.rank(30_000), map.nth(77_000).map(|(key, _)| key)), (10_000, Some(231_000)));
    assert_eq!(map.count(3..=30), 10);
    assert_eq!(map.count((std::ops::Bound::Excluded(3), std::ops::Bound::Excluded(30))), 8);
    assert_eq!(map.check().unwrap(), 100_000);
}

/// Each entry is in a sample equally often, and none twice.
#[test]
fn samples_are_uniform() {
    const KEYS: u64 = 1000;
    let map = Map::<u64, u64>::builder().counted().build().unwrap();
    map.extend((0..KEYS).map(|n| (n, n)));
    let (mut random, mut seen) = (Random(9), [0_u32; KEYS as usize]);
    let rounds = if cfg!(miri) { 1 } else { 1000 };
    for _ in 0..rounds {
        let view = map.pin();
        let sample = view.sample(100, |below| random.below(below as u64) as usize);
        let sample: Vec<u64> = sample.map(|(key, _)| key).collect();
        assert_eq!(sample.len(), 100);
        assert!(sample.is_sorted_by(|a, b| a < b), "a key comes twice");
        for key in sample {
            seen[key as usize] += 1;
        }
    }
    if !cfg!(miri) {
        // The standard deviation is 9.5, so this is more than 6 of them.
        assert!(seen.iter().all(|seen| (40..160).contains(seen)), "{seen:?}");
    }
    let all = map.pin().sample(usize::MAX, |below| below - 1).count();
    assert_eq!(all, KEYS as usize);
}
