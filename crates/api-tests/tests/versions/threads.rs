//! Writers beside snapshots.

use super::*;
use silvics::versions::{Drawn, PutError};
use silvics_sync::atomic::{AtomicBool, AtomicU64};
use std::thread::scope;

const ACCOUNTS: u64 = 40;

/// Batches move money between accounts. Each snapshot has the same sum, by lookups and by ranges,
/// and reads the same again.
#[test]
fn batches_are_atomic() {
    let map: VersionedMap<u64, u64> = map(Retain::Snapshots);
    for account in 0..ACCOUNTS {
        map.put(account, 100).unwrap();
    }
    let (done, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    scope(|s| {
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                let (map, moved) = (&map, &moved);
                s.spawn(move || {
                    let mut rng = Rng(seed);
                    for _ in 0..work(20_000) {
                        let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
                        if from == to {
                            continue;
                        }
                        let mut batch = map.batch();
                        {
                            let view = map.pin();
                            let [a, b] =
                                [from, to].map(|account| view.get_latest(account).unwrap());
                            let amount = rng.below(10).min(*a);
                            batch.put_if_latest(from, Some(a.number), *a - amount);
                            batch.put_if_latest(to, Some(b.number), *b + amount);
                        }
                        moved.fetch_add(u64::from(batch.commit().is_ok()), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let readers = [false, true].map(|by_range| {
            let (map, done) = (&map, &done);
            s.spawn(move || {
                let mut read = 0;
                while !done.load(Ordering::SeqCst) || read == 0 {
                    let snapshot = map.snapshot();
                    let sum = || {
                        let values = 0..ACCOUNTS;
                        if by_range {
                            snapshot.iter().rev().map(|(_, value)| *value).sum::<u64>()
                        } else {
                            values.map(|account| *snapshot.get(account).unwrap()).sum()
                        }
                    };
                    assert_eq!([sum(), sum()], [100 * ACCOUNTS; 2], "at {}", snapshot.number());
                    read += 1;
                }
            })
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert!(moved.into_inner() > 10);
    let now = map.now();
    map.prune(now).unwrap();
    assert_eq!(map.snapshot().iter().map(|(_, value)| *value).sum::<u64>(), 100 * ACCOUNTS);
    assert_eq!((0..ACCOUNTS).map(|key| map.pin().history(key).len()).sum::<usize>(), 40);
}

/// Conditional writes lose no update.
#[test]
fn conditional_writes_lose_nothing() {
    let map: VersionedMap<u64, u64> = map(Retain::Snapshots);
    let rounds = work(20_000);
    scope(|s| {
        for seed in 0..3 {
            let map = &map;
            s.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..rounds {
                    let key = rng.below(3);
                    loop {
                        let latest = map.pin().get_latest(key).map(|found| (found.number, *found));
                        let (number, value) = latest.unzip();
                        if map.put_if_latest(key, number, value.unwrap_or(0) + 1).is_ok() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(map.snapshot().iter().map(|(_, value)| *value).sum::<u64>(), 3 * rounds);
    assert!(map.now() >= 3 * rounds, "each write draws a number");
}

/// Keys come and go beside snapshots. Each number that a snapshot has read stays, and a value says
/// which key and which write it is of.
#[test]
fn snapshots_are_stable() {
    let live: Arc<AtomicI64> = Arc::default();
    let map: VersionedMap<u64, (u64, Tracked), Drawn> = map(Retain::Snapshots);
    let done = AtomicBool::new(false);
    scope(|s| {
        let writers = [1, 2].map(|seed| {
            let (map, live) = (&map, &live);
            s.spawn(move || {
                let mut rng = Rng(seed);
                for round in 0..work(50_000) {
                    let key = rng.below(64);
                    if rng.below(3) == 0 {
                        map.delete(key).unwrap();
                    } else {
                        map.put(key, (key, Tracked::new(round, live))).unwrap();
                    }
                }
            })
        });
        let (map, done) = (&map, &done);
        for seed in [3, 4] {
            s.spawn(move || {
                let mut rng = Rng(seed);
                while !done.load(Ordering::SeqCst) {
                    let snapshot = map.snapshot();
                    let read = || -> Vec<(u64, u64, u64)> {
                        let found =
                            snapshot.iter().map(|(key, (of, value))| (key, *of, value.number()));
                        found.collect()
                    };
                    let first = read();
                    assert!(first.iter().all(|(key, of, _)| key == of));
                    for _ in 0..rng.below(4) {
                        std::thread::yield_now();
                        let key = rng.below(64);
                        let of_range =
                            first.iter().find(|entry| entry.0 == key).map(|entry| entry.2);
                        assert_eq!(snapshot.get(key).map(|(_, value)| value.number()), of_range);
                    }
                    assert_eq!(read(), first);
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    let mut map = map;
    map.prune(map.now()).unwrap();
    map.settle_memory();
    let left = map.snapshot().iter().count();
    assert_eq!(live.load(Ordering::Relaxed), left as i64);
    assert_eq!(map.check(), Ok(left));
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Replicas put the versions of the same keys out of order while the watermark rises: each snapshot
/// sees exactly the versions up to its number.
#[test]
fn given_versions_beside_snapshots() {
    let map: VersionedMap<u64, u64, Given> = map(Retain::Snapshots);
    let done = AtomicBool::new(false);
    let window = 64;
    scope(|s| {
        let (map, done) = (&map, &done);
        s.spawn(move || {
            let mut rng = Rng(9);
            for first in (1..work(30_000)).step_by(window as usize) {
                // Number n is of key n % 8, and its value is n.
                let mut numbers: Vec<u64> = (first..first + window).collect();
                for at in (1..numbers.len()).rev() {
                    numbers.swap(at, rng.below(at as u64 + 1) as usize);
                }
                let (left, right) = numbers.split_at(numbers.len() / 2);
                scope(|s| {
                    for part in [left, right] {
                        s.spawn(|| part.iter().for_each(|n| map.put(n % 8, *n, *n).unwrap()));
                    }
                });
                map.publish(first + window - 1).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            s.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    let snapshot = map.snapshot();
                    let now = snapshot.number();
                    for key in 0..8 {
                        let newest = (0..=now).rev().take(8).find(|n| *n > 0 && n % 8 == key);
                        assert_eq!(snapshot.get(key).copied(), newest.filter(|_| now > 0));
                    }
                }
            });
        }
    });
    // The writers of later windows have dropped what no snapshot can see.
    let left: usize = (0..8).map(|key| map.pin().history(key).len()).sum();
    assert!(left <= 3 * window as usize, "{left} versions");
    let now = map.now();
    map.prune(now).unwrap();
    assert_eq!((0..8).map(|key| map.pin().history(key).len()).sum::<usize>(), 8);
}

/// Versions that arrive while the watermark passes them are refused, or are there before it: no
/// snapshot reads twice, and differently.
#[test]
fn late_versions_change_no_snapshot() {
    let map: VersionedMap<u64, u64, Given> = map(Retain::Snapshots);
    let (done, puts) = (AtomicBool::new(false), AtomicU64::new(0));
    scope(|s| {
        let (map, done, puts) = (&map, &done, &puts);
        for seed in 0..2 {
            s.spawn(move || {
                let mut rng = Rng(seed);
                while !done.load(Ordering::SeqCst) {
                    let number = map.now() + 1 + rng.below(2);
                    match map.put(rng.below(2), number, number) {
                        Err(PutError::TooLate { value, .. }) => {
                            assert_eq!(value, Some(number));
                        }
                        Ok(()) | Err(PutError::Exists { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    puts.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            s.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    let snapshot = map.snapshot();
                    let read = || [0, 1].map(|key| snapshot.get_version(key));
                    let first = read();
                    for _ in 0..5 {
                        assert_eq!(read(), first, "at {}", snapshot.number());
                    }
                }
            });
        }
        for number in 1.. {
            map.publish(number).unwrap();
            if puts.load(Ordering::Relaxed) >= work(50_000) {
                break;
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    let mut map = map;
    assert_eq!(map.check(), Ok(map.key_count()));
}
