//! Programs with a `VersionedMap`: writers of few keys beside snapshots.

use silvics::versions::{BatchError, Clock, Drawn, Given, PutError, Retain, VersionedMap};
use silvics::{Options, WordTree};
use silvics_sync::atomic::AtomicBool;
use silvics_sync::atomic::Ordering::SeqCst;
use silvics_sync::model::sequential;
use silvics_testkit::schedules::{Model, Program, Task, beside_one_another};
use std::sync::Arc;

type Map<C> = VersionedMap<u64, u64, C, WordTree<u64, Model>>;

pub(crate) const VERSIONS: &[Program] = &[
    Program { name: "batches-beside-a-snapshot", play: batches },
    Program { name: "overwrites-beside-a-snapshot", play: overwrites },
    Program { name: "conditional-writes", play: conditional_writes },
    Program { name: "batches-that-fail", play: failing_batches },
    Program { name: "late-versions", play: late_versions },
    Program { name: "versions-between-others", play: between },
    Program { name: "one-number-twice", play: one_number_twice },
    Program { name: "two-overwrites", play: two_overwrites },
];

fn map<C: Clock>() -> Map<C> {
    let options = Options::default();
    VersionedMap::with_options(&options, Retain::Snapshots).expect("memory")
}

/// Runs tasks, and then checks the map alone.
fn run<C: Clock>(map: Map<C>, tasks: Vec<Task<Map<C>>>, check: impl FnOnce(&Map<C>)) {
    let mut map = beside_one_another(map, tasks);
    sequential(|| {
        check(&map);
        map.prune(map.now()).expect("now");
        let keys = map.check().unwrap_or_else(|violation| panic!("check: {violation}"));
        map.settle_memory();
        let stats = map.pool_stats().pop().expect("that of the versions comes last");
        assert_eq!(stats.live_slots, keys, "objects are live, beside one version of each key");
    });
}

/// Reads some keys at a snapshot, twice.
fn read<C: Clock, const N: usize>(map: &Map<C>, keys: [u64; N]) -> [Option<u64>; N] {
    let snapshot = map.snapshot();
    let read = || keys.map(|key| snapshot.get(key).copied());
    let first = read();
    assert_eq!(read(), first, "a snapshot at {} has changed", snapshot.number());
    first
}

/// A batch moves one from a key to another, and another batch moves it back.
fn batches() {
    let map = map::<Drawn>();
    sequential(|| [0, 1].map(|key| map.put(key, 10).expect("memory")));
    let moves = |from: u64, to: u64| -> Task<Map<Drawn>> {
        Box::new(move |map| {
            let view = map.pin();
            let mut batch = map.batch();
            for (key, add) in [(from, -1), (to, 1)] {
                let version = view.get_latest(key).expect("it stays");
                batch.put_if_latest(key, Some(version.number), version.wrapping_add_signed(add));
            }
            _ = batch.commit();
        })
    };
    let sums = Box::new(|map: &Map<Drawn>| {
        let sum: u64 = read(map, [1, 0]).into_iter().flatten().sum();
        assert_eq!(sum, 20, "a snapshot sees a part of a batch");
    });
    run(map, vec![moves(0, 1), moves(1, 0), sums], |map| {
        let sum: u64 = map.snapshot().iter().map(|(_, value)| *value).sum();
        assert_eq!(sum, 20, "a snapshot sees a batch that was built on an older version");
    });
}

/// A key is overwritten and deleted while snapshots come and go.
fn overwrites() {
    let map = map::<Drawn>();
    sequential(|| map.put(0, 1).expect("memory"));
    let writes = Box::new(|map: &Map<Drawn>| {
        map.put(0, 2).expect("memory");
        map.delete(0).expect("memory");
        map.put(0, 3).expect("memory");
    });
    let reads = || {
        Box::new(|map: &Map<Drawn>| {
            let [found] = read(map, [0]);
            assert!(
                found.is_none_or(|value| (1..=3).contains(&value)),
                "a snapshot sees {found:?}"
            );
        })
    };
    run(map, vec![writes, reads(), reads()], |map| {
        assert_eq!(map.snapshot().get(0), Some(&3), "a snapshot sees an older version");
    });
}

/// Two tasks overwrite a key, whose older versions each of them drops.
fn two_overwrites() {
    let map = map::<Drawn>();
    sequential(|| map.put(0, 1).expect("memory"));
    let writes = |value: u64| -> Task<Map<Drawn>> {
        Box::new(move |map| {
            map.put(0, value).expect("memory");
            map.put(0, value + 1).expect("memory");
        })
    };
    let prunes = Box::new(|map: &Map<Drawn>| {
        _ = map.prune(0).expect("the beginning");
    });
    run(map, vec![writes(2), writes(4), prunes], |map| {
        assert!([3, 5].contains(map.snapshot().get(0).expect("a snapshot sees it")));
    });
}

/// Tasks add to a key, if nobody has written meanwhile.
fn conditional_writes() {
    let add = || -> Task<Map<Drawn>> {
        Box::new(|map| {
            for _ in 0..2 {
                loop {
                    let latest = map.pin().get_latest(0).map(|found| (found.number, *found));
                    let (number, value) = latest.unzip();
                    match map.put_if_latest(0, number, value.unwrap_or(0) + 1) {
                        Ok(_) => break,
                        Err(error) => assert!(matches!(error, PutError::Conflict { .. })),
                    }
                }
            }
        })
    };
    run(map(), vec![add(), add()], |map| {
        assert_eq!(map.snapshot().get(0), Some(&4), "a snapshot sees that a write is lost");
    });
}

/// A batch has put two versions, and fails at its third key. Others read and overwrite the second
/// key.
fn failing_batches() {
    let map = map::<Drawn>();
    sequential(|| [0, 1, 2].map(|key| map.put(key, 1).expect("memory")));
    let fails = Box::new(|map: &Map<Drawn>| {
        let mut batch = map.batch();
        batch.put(0, 5);
        batch.put(1, 5);
        batch.put_if_latest(2, None, 5);
        assert_eq!(batch.commit(), Err(BatchError::Conflict { latest: Some(3) }));
        let writes = [0, 1, 2].map(|key| (key, Some(5)));
        assert!(batch.take_writes().eq(writes), "the batch has its writes");
    });
    let writes = Box::new(|map: &Map<Drawn>| {
        let mut batch = map.batch();
        batch.put(1, 2);
        batch.delete(3);
        batch.commit().expect("memory");
        map.put(1, 3).expect("memory");
    });
    let reads = Box::new(|map: &Map<Drawn>| {
        for _ in 0..2 {
            let found = map.pin().get_latest(1).map(|found| *found).expect("it stays");
            assert!((1..=3).contains(&found), "a snapshot sees {found}");
        }
        let [found] = read(map, [1]);
        assert!(found.is_some_and(|found| found != 5), "a snapshot sees a failed batch");
    });
    run(map, vec![fails, writes, reads], |map| {
        assert_eq!(map.snapshot().get(1), Some(&3), "a snapshot sees the last write");
    });
}

/// A version arrives while the watermark passes its number.
fn late_versions() {
    let map = map::<Given>();
    sequential(|| {
        map.put(0, 1, 1).expect("memory");
        map.publish(1).expect("one");
    });
    let writes = Box::new(|map: &Map<Given>| {
        match map.put(0, 2, 2) {
            Ok(()) => {}
            Err(error) => assert!(matches!(error, PutError::TooLate { value: Some(2), .. })),
        }
        map.put(0, 4, 4).expect("it is not published");
    });
    let publishes = Box::new(|map: &Map<Given>| map.publish(3).expect("it rises"));
    let reads = Box::new(|map: &Map<Given>| _ = read(map, [0]));
    run(map, vec![writes, publishes, reads], |map| {
        let found = map.snapshot().get(0).copied();
        assert!([Some(1), Some(2)].contains(&found), "a snapshot sees {found:?}");
        map.publish(4).expect("it rises");
        assert_eq!(map.snapshot().get(0), Some(&4));
    });
}

/// Versions go between others, below a first one, and over the newest one, and some are dropped.
fn between() {
    let map = map::<Given>();
    sequential(|| map.put(0, 50, 50).expect("memory"));
    let puts = |numbers: &'static [u64]| -> Task<Map<Given>> {
        Box::new(move |map| {
            for number in numbers {
                let put = map.put(0, *number, *number);
                assert!(put.is_ok() || matches!(put, Err(PutError::TooLate { .. })), "{put:?}");
            }
        })
    };
    let publishes = Box::new(|map: &Map<Given>| {
        map.publish(20).expect("it rises");
        let [found] = read(map, [0]);
        assert!(found.is_none_or(|found| found <= 20), "a snapshot sees {found:?}");
        map.prune(20).expect("published");
    });
    run(map, vec![puts(&[10, 60]), puts(&[30, 20]), publishes], |map| {
        let history: Vec<_> = map.pin().history(0).into_iter().map(|(number, _)| number).collect();
        assert!(history.starts_with(&[60, 50, 30]), "{history:?}");
        map.publish(60).expect("it rises");
    });
}

/// Two tasks put a version with one number between others, while the watermark passes it. If one of
/// them finds that the version exists, the other one has put it.
fn one_number_twice() {
    let map = map::<Given>();
    sequential(|| map.put(0, 50, 50).and_then(|()| map.put(0, 60, 60)).expect("memory"));
    let found = Arc::new([const { AtomicBool::new(false) }; 2]);
    let puts = |value: u64| -> Task<Map<Given>> {
        let found = Arc::clone(&found);
        Box::new(move |map| match map.put(0, 10, value) {
            Ok(()) => found[0].store(true, SeqCst),
            Err(PutError::Exists { number: 10, .. }) => found[1].store(true, SeqCst),
            Err(error) => assert!(matches!(error, PutError::TooLate { watermark: 10, .. })),
        })
    };
    let publishes = Box::new(|map: &Map<Given>| map.publish(10).expect("it rises"));
    run(map, vec![puts(1), puts(2), publishes], |map| {
        let [is_put, exists] = [0, 1].map(|at| found[at].load(SeqCst));
        assert!(is_put || !exists, "a version exists that nobody has put");
        assert_eq!(map.snapshot().get(0).is_some(), is_put, "a snapshot sees it");
        map.publish(60).expect("it rises");
    });
}
