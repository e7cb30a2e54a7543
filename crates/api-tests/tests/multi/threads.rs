//! Writers of few keys, beside readers.

use super::*;
use silvics_sync::atomic::AtomicBool;
use std::thread::scope;

/// Two writers insert and remove values of their own below each key, beside values that stay. Each
/// reader finds the values in ascending order, each once, and those that stay.
#[test]
fn lists_are_read_at_one_moment() {
    fn play<V: Value + Ord>(make: impl Fn(u64) -> V + Sync, number: impl Fn(&V) -> u64 + Sync) {
        let mut map: MultiMap<u64, V> = map();
        let (done, keys, stays) = (AtomicBool::new(false), 3, work(2000));
        for n in 0..stays {
            map.insert(n % keys, make(10 * n));
        }
        let sums = scope(|s| {
            let (map, done, make, number) = (&map, &done, &make, &number);
            let writers: Vec<_> = (1..3)
                .map(|seed| {
                    s.spawn(move || {
                        let (mut rng, mut sum) = (Rng(seed), 0i64);
                        for _ in 0..work(30_000) {
                            let key = rng.below(keys);
                            let value = make(10 * rng.below(stays) + seed);
                            if rng.below(2) == 0 {
                                sum += i64::from(map.insert(key, value).is_added());
                            } else {
                                sum -= i64::from(map.remove(key, &value).is_some());
                            }
                        }
                        sum
                    })
                })
                .collect();
            for back in [false, true] {
                s.spawn(move || {
                    let mut view = map.pin();
                    while !done.load(Ordering::SeqCst) {
                        for key in 0..keys {
                            let values = view.values(key);
                            let count = values.len();
                            let mut found: Vec<u64> = if back {
                                values.rev().map(|value| number(&value)).collect()
                            } else {
                                values.map(|value| number(&value)).collect()
                            };
                            if back {
                                found.reverse();
                            }
                            assert_eq!(found.len(), count);
                            assert!(found.windows(2).all(|two| two[0] < two[1]), "{found:?}");
                            let stay = found.iter().filter(|n| n.is_multiple_of(10));
                            assert!(stay.copied().eq((key..stays).step_by(3).map(|n| 10 * n)));
                        }
                        view.repin();
                    }
                });
            }
            let sums: Vec<i64> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            done.store(true, Ordering::SeqCst);
            sums
        });
        let pairs = stays as i64 + sums.iter().sum::<i64>();
        assert_eq!((map.len() as i64, check(&mut map) as i64), (pairs, pairs));
    }
    play(|n| n, |n| *n);
    play(|n| format!("{n:09}"), |text| text.parse().unwrap());
}

/// Values are appended, taken out, and removed with their keys. The map has the
/// values that were added and not removed at the end, and every value is dropped once.
#[test]
fn sums_agree() {
    let live: Arc<AtomicI64> = Arc::default();
    let mut map: MultiMap<String, Tracked, Inserted> = map();
    let sum: i64 = scope(|s| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                let (map, live) = (&map, &live);
                s.spawn(move || {
                    let (mut rng, mut sum) = (Rng(seed), 0);
                    for _ in 0..work(30_000) {
                        let key = format!("key {}", rng.below(3));
                        match rng.below(40) {
                            0..22 => {
                                let value = Tracked::new(rng.below(50), live);
                                sum += i64::from(map.insert(&key, value).is_added());
                            }
                            22..39 => {
                                let value = Tracked::new(rng.below(50), live);
                                sum -= i64::from(map.pin().remove(&key, &value).is_some());
                            }
                            _ => sum -= map.remove_all(&key) as i64,
                        }
                    }
                    sum
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((map.len() as i64, check(&mut map) as i64), (sum, sum));
    assert_eq!(live.load(Ordering::Relaxed), sum);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn counts_agree() {
    let mut set: MultiSet<u64> = MultiSet::with_options(&options()).unwrap();
    let sum: i64 = scope(|s| {
        let threads: Vec<_> = (0..3)
            .map(|seed| {
                let set = &set;
                s.spawn(move || {
                    let (mut rng, mut sum) = (Rng(seed), 0);
                    for _ in 0..work(50_000) {
                        let key = rng.below(4);
                        match rng.below(20) {
                            0..9 => {
                                set.insert(key);
                                sum += 1;
                            }
                            9..18 => sum -= i64::from(set.remove(key).is_some()),
                            18 => sum -= set.remove_all(key) as i64,
                            _ => sum -= set.pop_first().map_or(0, |(_, count)| count as i64),
                        }
                    }
                    sum
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(set.len() as i64, sum);
    assert_eq!(set.check(), Ok(set.distinct()));
}

/// A sum that is read beside writers is not exact, and does not wrap around.
#[test]
fn lengths_beside_writers_do_not_wrap_around() {
    let set: MultiSet<u64> = MultiSet::with_options(&options()).unwrap();
    let map: MultiMap<u64, u64> = map();
    let done = AtomicBool::new(false);
    scope(|s| {
        let (set, map, done) = (&set, &map, &done);
        let writers: Vec<_> = (0..3)
            .map(|seed| {
                s.spawn(move || {
                    for n in 0..work(50_000) {
                        let key = n % 2;
                        set.insert_copies(key, 5);
                        set.remove(key);
                        set.remove_all(key);
                        (0..3).for_each(|n| _ = map.insert(key, 3 * n + seed));
                        map.remove(key, &seed);
                        map.remove_all(key);
                    }
                })
            })
            .collect();
        s.spawn(move || {
            while !done.load(Ordering::SeqCst) {
                assert!(set.len() < 1 << 40 && map.len() < 1 << 40);
            }
        });
        let all_ended = writers.into_iter().all(|writer| writer.join().is_ok());
        done.store(true, Ordering::SeqCst);
        assert!(all_ended);
    });
    set.clear();
    map.clear();
    assert_eq!((set.len(), map.len()), (0, 0));
}
