//! Programs with a `MultiMap`: writers of the values of one key, beside readers.

use silvics::multi::{Inserted, MultiSet, Order, Sorted};
use silvics::{Check, MultiMap, Options, WordTree};
use silvics_sync::model::sequential;
use silvics_testkit::schedules::{Model, Program, Task, beside_one_another};

/// A value in a slot of its own, so that the model finds a second free of it, and a leak.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word(u64);

type Map<O> = MultiMap<u64, Word, O, WordTree<u64, Model>>;

pub(crate) const MULTI: &[Program] = &[
    Program { name: "two-inserts", play: inserts },
    Program { name: "insert-beside-remove", play: insert_beside_remove },
    Program { name: "remove-beside-remove-all", play: remove_beside_remove_all },
    Program { name: "list-beside-one-value", play: one_value },
    Program { name: "appends-beside-removals", play: appends },
    Program { name: "long-list", play: long_list },
    Program { name: "counts", play: counts },
];

fn map<O: Order<Word>>(values: impl IntoIterator<Item = u64>) -> Map<O> {
    let map = Map::with_options(&Options::default()).expect("memory");
    sequential(|| values.into_iter().for_each(|value| _ = map.insert(0, Word(value))));
    map
}

/// The values of the key, read twice under one pin.
fn read<O>(map: &Map<O>) -> Vec<u64> {
    let view = map.pin();
    let values = view.values(0);
    let first: Vec<u64> = values.clone().map(|value| value.0).collect();
    silvics_sync::thread::yield_now();
    assert!(values.map(|value| value.0).eq(first.iter().copied()), "a list has changed");
    first
}

/// Runs tasks, and then checks the map alone.
fn run<O: Order<Word> + Sync>(map: Map<O>, tasks: Vec<Task<Map<O>>>, check: impl FnOnce(&Map<O>)) {
    let mut map = beside_one_another(map, tasks);
    sequential(|| {
        check(&map);
        map.check().unwrap_or_else(|violation| panic!("check: {violation}"));
        map.settle();
        let reachable = map.reachable().expect("it was verified");
        for ((kind, count), stats) in reachable.into_iter().zip(map.pool_stats()) {
            assert_eq!((kind, count), (stats.kind, stats.live_slots), "objects are live");
        }
    });
}

fn insert<O: Order<Word>>(values: &'static [u64]) -> Task<Map<O>> {
    Box::new(move |map| {
        for value in values {
            assert!(map.insert(0, Word(*value)).is_added(), "a list has {value} already");
        }
    })
}

fn remove(values: &'static [u64]) -> Task<Map<Sorted>> {
    Box::new(move |map| {
        for value in values {
            let removed = map.pin().remove(0, &Word(*value)).map(|value| value.0);
            assert_eq!(removed, Some(*value), "a list has lost a value");
        }
    })
}

fn expect(expected: &'static [u64]) -> impl FnOnce(&Map<Sorted>) {
    move |map| assert_eq!(read(map), expected, "a list has lost a value")
}

fn inserts() {
    let reads: Task<Map<Sorted>> = Box::new(|map| {
        let found = read(map);
        assert!(found.windows(2).all(|two| two[0] < two[1]), "a list is {found:?}");
    });
    run(map([]), vec![insert(&[4, 2]), insert(&[1, 3]), reads], expect(&[1, 2, 3, 4]));
}

fn insert_beside_remove() {
    let tasks = vec![insert(&[5, 1]), remove(&[2, 4]), insert(&[7])];
    run(map([2, 4, 6]), tasks, expect(&[1, 5, 6, 7]));
}

/// All values go, or all but those that came later. None is returned twice.
fn remove_beside_remove_all() {
    let removes: Task<Map<Sorted>> = Box::new(|map| {
        for value in [1, 2] {
            let view = map.pin();
            let removed = view.remove(0, &Word(value));
            assert!(removed.is_none_or(|removed| removed.0 == value));
        }
    });
    let all: Task<Map<Sorted>> = Box::new(|map| {
        let before = map.pin().remove_all(0);
        assert!((1..=4).contains(&before), "a list had {before} values");
    });
    let inserts: Task<Map<Sorted>> = Box::new(|map| {
        assert!(map.insert(0, Word(9)).is_added());
    });
    run(map([1, 2, 3]), vec![removes, all, inserts], |map| {
        let left = read(map);
        assert!(left.is_empty() || left == [9], "a list is {left:?}");
    });
}

/// A key has one value, and no list, at times.
fn one_value() {
    let tasks = vec![insert(&[3]), remove(&[2]), insert(&[1])];
    run(map([2]), tasks, expect(&[1, 3]));
}

/// Equal values are appended. Each removal takes the first one.
fn appends() {
    let appends = || insert::<Inserted>(&[1, 2]);
    let removes: Task<Map<Inserted>> = Box::new(|map| {
        let view = map.pin();
        for _ in 0..2 {
            assert!(view.remove(0, &Word(1)).is_some(), "a list has lost a value");
        }
    });
    run(map([1, 1]), vec![appends(), appends(), removes], |map| {
        let found = read(map);
        assert_eq!(found.len(), 4, "a list has lost a value: {found:?}");
        assert_eq!(found.iter().sum::<u64>(), 6, "a list has lost a value: {found:?}");
    });
}

/// A list of three levels, whose nodes are split and merged.
fn long_list() {
    let tasks = vec![remove(&[2, 4, 6, 8, 10, 12]), insert(&[5, 21, 7])];
    let map = map((1..=10).map(|n| 2 * n));
    run(map, tasks, expect(&[5, 7, 14, 16, 18, 20, 21]));
}

/// Counts of a set.
fn counts() {
    type Counts = MultiSet<u64, WordTree<u64, Model>>;
    let set = Counts::with_options(&Options::default()).expect("memory");
    let task = |removes: bool| -> Task<Counts> {
        Box::new(move |set| {
            set.insert(0);
            set.insert_copies(0, 2);
            let left = set.remove(0);
            assert!(left.is_some_and(|left| left >= 2), "a list has lost a value: {left:?}");
            if removes {
                assert!(set.remove_all(1) <= 2);
            } else {
                set.insert(1);
            }
        })
    };
    let mut set = beside_one_another(set, vec![task(true), task(false), task(false)]);
    sequential(|| {
        assert_eq!(set.count(0), 6, "a list has lost a value");
        set.check().unwrap_or_else(|violation| panic!("check: {violation}"));
    });
}
