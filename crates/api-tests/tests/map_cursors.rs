//! Cursors and owned pins of maps: positions and values that outlive threads, pins and writers.

use silvics::map::{Cursor, MapIndex, OwnedValueGuard, OwnedView, View};
use silvics::{BlockTree, Domain, Key, Map, NatarajanTree, SkipList, ValueGuard, WordTree};
use silvics_api_tests::Counted;
use silvics_sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

fn is_sent<T: Send>() {}
fn is_shared<T: Sync>() {}

#[test]
fn what_can_be_sent() {
    is_sent::<Cursor<String, Arc<str>, BlockTree<[u8]>>>();
    is_sent::<OwnedView<'static, u64, String, WordTree<u64>>>();
    is_shared::<OwnedView<'static, u64, String, WordTree<u64>>>();
    is_sent::<silvics::ValueRef<'static, String>>();
    is_sent::<OwnedValueGuard<'static, String>>();
    is_shared::<OwnedValueGuard<'static, String>>();
    is_sent::<Map<u64, String>>();
    is_shared::<Map<u64, String>>();
}

/// These types must not be `Send`. If one were, both impls would apply, and the ambiguous call
/// would not compile.
#[test]
fn what_cannot_be_sent() {
    trait Ambiguous<A> {
        fn here() {}
    }
    impl<T: ?Sized> Ambiguous<()> for T {}
    #[allow(dead_code)]
    struct Sent;
    impl<T: ?Sized + Send> Ambiguous<Sent> for T {}
    <View<'static, u64, String, WordTree<u64>> as Ambiguous<_>>::here();
    <ValueGuard<'static, String> as Ambiguous<_>>::here();
}

/// Makes random moves while no other thread writes, and compares each with a `BTreeMap`.
fn moves<K, I>(key: impl Fn(u64) -> K)
where
    K: Key + Ord + Clone + Debug,
    I: MapIndex<Key = K::Form>,
{
    let map: Arc<Map<K, u64, I>> = Arc::new(Map::default());
    let mut model = BTreeMap::new();
    for n in 0..500 {
        map.insert(key(2 * n), n);
        model.insert(key(2 * n), n);
    }
    let mut cursor = map.cursor();
    assert_eq!(cursor.key().map(drop), None);
    let mut at: Option<K> = None;
    let (mut before, mut seed) = (true, 7u64);
    let mut random = move |bound| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % bound
    };
    for _ in 0..20_000 {
        let runs = random(90);
        let (found, moved) = match random(8) {
            0 => {
                let to = key(random(1010));
                (model.range(&to..).next(), cursor.seek(&to))
            }
            1 => {
                let to = key(random(1010));
                (model.range(..=&to).next_back(), cursor.seek_for_prev(&to))
            }
            choice => {
                let forward = choice % 2 == 0;
                let mut last = (at.as_ref().and_then(|at| model.get_key_value(at)), at.is_some());
                for _ in 0..runs.max(1) {
                    let from = last.0.map(|(key, _)| key.clone());
                    let entry = match (&from, forward) {
                        (Some(from), true) => {
                            model.range((Bound::Excluded(from), Bound::Unbounded)).next()
                        }
                        (Some(from), false) => model.range(..from).next_back(),
                        (None, true) if before => model.iter().next(),
                        (None, false) if !before => model.iter().next_back(),
                        (None, _) => None,
                    };
                    let moved = if forward { cursor.next() } else { cursor.prev() };
                    assert_eq!(moved, entry.is_some());
                    if entry.is_none() {
                        before = !forward;
                    }
                    last = (entry, moved);
                }
                last
            }
        };
        assert_eq!(moved, found.is_some());
        let current = cursor.current().map(|(key, value)| (K::to_owned(key), value));
        assert_eq!(current, found.map(|(key, value)| (key.clone(), Some(*value))));
        let present = cursor.with_current(|_, value| value.copied());
        assert_eq!(present, found.map(|(_, value)| Some(*value)));
        at = found.map(|(key, _)| key.clone());
        if at.is_none() && !moved {
            before = cursor_is_before(&mut cursor);
        }
    }
}

/// Whether a cursor beyond an end is before the first entry. The cursor keeps its place.
fn cursor_is_before<K: Key, I: MapIndex<Key = K::Form>>(cursor: &mut Cursor<K, u64, I>) -> bool {
    if cursor.prev() {
        assert!(!cursor.next());
        return false;
    }
    true
}

#[test]
fn moves_agree_with_btreemap() {
    moves::<u64, WordTree<u64>>(|n| n << 20);
    moves::<String, BlockTree<[u8]>>(|n| format!("{n:06}/{n}"));
    moves::<(u8, String), SkipList<[u8]>>(|n| ((n / 200) as u8, format!("{n:06}")));
    moves::<i64, NatarajanTree>(|n| n as i64 - 500);
}

/// A cursor moves while other threads write: it sees each key that is always present once, in
/// order, in both directions.
#[test]
fn cursors_miss_nothing_beside_writers() {
    const KEYS: u64 = 3000;
    let map: Arc<Map<u64, String>> = Arc::new(Map::new());
    for key in (0..KEYS).step_by(3) {
        map.insert(key, key.to_string());
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0u64;
            while !done.load(Ordering::Relaxed) {
                let key = round * 7919 % KEYS;
                if key.is_multiple_of(3) {
                    map.update(key, Clone::clone).expect("always there");
                } else if round.is_multiple_of(2) {
                    map.insert(key, key.to_string());
                } else {
                    map.remove(key);
                }
                round += 1;
            }
        });
        for round in 0..if cfg!(miri) { 2 } else { 60 } {
            let (mut cursor, mut last, mut seen) = (map.cursor(), None, 0);
            let descends = round % 2 == 1;
            if descends {
                cursor.seek_for_prev(u64::MAX);
            } else {
                cursor.next();
            }
            while let Some(key) = cursor.key() {
                assert!(last.is_none_or(|last| if descends { key < last } else { key > last }));
                last = Some(key);
                if key % 3 == 0 {
                    seen += 1;
                    assert_eq!(cursor.current(), Some((key, Some(key.to_string()))));
                    let present = cursor.with_current(|_, value| value.cloned());
                    assert_eq!(present, Some(Some(key.to_string())));
                }
                if descends {
                    cursor.prev()
                } else {
                    cursor.next()
                };
            }
            assert_eq!(seen, KEYS / 3);
        }
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
}

#[test]
fn a_cursor_tells_what_has_gone_and_goes_on() {
    let map: Arc<Map<u64, Vec<u64>>> = Arc::new(Map::new());
    map.extend((0..10).map(|n| (n, vec![n])));
    let mut cursor = map.cursor();
    assert!(cursor.seek(4));
    map.remove(4);
    assert_eq!(cursor.key(), Some(4));
    assert_eq!(cursor.current(), Some((4, None)));
    assert_eq!(cursor.with_current(|key, value| (key, value.cloned())), Some((4, None)));
    map.insert(4, vec![40]);
    assert_eq!(cursor.current(), Some((4, Some(vec![40]))));
    map.clear();
    while cursor.next() {}
    assert!(!cursor.prev());
    assert!(!cursor.next());
    map.insert(1, vec![]);
    assert!(cursor.seek(0) && !cursor.next() && cursor.prev() && !cursor.prev());
}

/// Symptom: the loop of the docs ended early and silently, because `current` was `None` at an entry
/// that another thread had removed. Now it is `None` only if the cursor stands at no entry.
#[test]
fn a_loop_over_current_does_not_end_at_a_removed_entry() {
    for ahead in [false, true] {
        let map: Arc<Map<u64, String>> = Arc::new(Map::new());
        map.extend((0..200).map(|n| (n, n.to_string())));
        let mut cursor = map.cursor();
        if ahead {
            cursor = cursor.values_ahead();
        }
        let (mut seen, mut gone) = (Vec::new(), 0);
        assert!(cursor.seek_to_first());
        while let Some((key, value)) = cursor.current() {
            seen.push(key);
            gone += u64::from(value.is_none());
            // The cursor has read some of these entries ahead.
            map.remove(key + 1);
            cursor.next();
        }
        assert!(seen.is_sorted() && seen[0] == 0 && seen.len() >= 100, "{seen:?}");
        assert!((0..200).step_by(2).all(|key| seen.contains(&key) || seen.contains(&(key - 1))));
        assert_eq!(gone > 0, !ahead);
    }
}

/// A cursor with bounds stays within them, and agrees with a `BTreeMap` that has nothing else.
#[test]
fn cursors_stay_within_their_bounds() {
    use Bound::{Excluded, Included, Unbounded};
    let map: Arc<Map<u64, u64>> = Arc::new((0..40).map(|n| (2 * n, n)).collect());
    let ends = |at| [Included(at), Excluded(at), Unbounded];
    let bounds = (0..82).step_by(9).flat_map(ends);
    for low in bounds.clone() {
        for high in bounds.clone() {
            let within: Vec<u64> = map.pin().range((low, high)).map(|(key, _)| key).collect();
            let mut cursor = map.cursor_range((low, high));
            assert_eq!(
                cursor.seek_to_first().then(|| cursor.key()),
                within.first().map(|k| Some(*k))
            );
            assert!(!cursor.prev() && cursor.key().is_none());
            assert_eq!(
                cursor.seek_to_last().then(|| cursor.key()),
                within.last().map(|k| Some(*k))
            );
            assert!(!cursor.next() && cursor.key().is_none());
            for to in 0..82 {
                let next = within.iter().find(|key| **key >= to);
                assert_eq!(cursor.seek(to).then(|| cursor.key().unwrap()), next.copied());
                if next.is_none() {
                    assert_eq!(cursor.prev(), !within.is_empty());
                    assert_eq!(cursor.key(), within.last().copied());
                }
                let prev = within.iter().rfind(|key| **key <= to);
                assert_eq!(cursor.seek_for_prev(to).then(|| cursor.key().unwrap()), prev.copied());
                if prev.is_none() {
                    assert_eq!(cursor.next(), !within.is_empty());
                    assert_eq!(cursor.key(), within.first().copied());
                }
            }
            let mut cursor = map.cursor_range((low, high));
            let mut up = Vec::new();
            while cursor.next() {
                up.extend(cursor.current().map(|(key, value)| (key, value.unwrap())));
            }
            assert!(up.iter().map(|(key, _)| *key).eq(within.iter().copied()));
            let mut down = Vec::new();
            while cursor.prev() {
                down.extend(cursor.current().map(|(key, value)| (key, value.unwrap())));
            }
            assert!(down.iter().rev().eq(&up));
        }
    }
}

/// A kept cursor holds no memory back, at whichever entry it stands. An owned pin does, until it is
/// dropped.
#[test]
fn cursors_block_no_reclamation_and_owned_pins_do() {
    let live = Arc::new(AtomicI64::new(0));
    let value = || Counted::new(0, &live);
    let domain = Domain::new();
    let map = Arc::new(Map::<u64, Counted>::builder().domain(domain).build().unwrap());
    for key in 0..100 {
        map.insert(key, value());
    }
    let mut cursor = map.cursor();
    cursor.seek(50);
    let churn = || {
        for round in 0..10_000 {
            map.insert(round % 100, value());
        }
        map.flush();
        live.load(Ordering::Relaxed)
    };
    assert!(churn() < 1000, "a cursor holds nothing back");
    let view = map.pin_owned();
    assert!(churn() >= 10_000, "an owned pin holds everything back");
    std::thread::scope(|scope| {
        // The pin is dropped on another thread than the one that made it.
        scope.spawn(move || drop(view));
    });
    assert!(churn() < 1000, "a dropped pin releases everything");
    drop(cursor);
    let map = Arc::into_inner(map).expect("no other thread has it");
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Several threads at a time use owned pins, beside writers that replace every value.
#[test]
fn what_owned_pins_lend_can_be_read_anywhere() {
    let map: Map<u64, String> = Map::new();
    let done = AtomicBool::new(false);
    for key in 0..64 {
        map.insert(key, format!("{key} at first"));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                map.insert(round % 64, format!("{} in round {round}", round % 64));
                round += 1;
            }
        });
        for round in 0..if cfg!(miri) { 5 } else { 300u64 } {
            let view = map.pin_owned();
            let lent: Vec<_> = (0..64).filter_map(|key| view.get(key)).collect();
            let replaced = view.insert(round % 64, format!("{} owned", round % 64));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for (key, value) in lent.iter().enumerate() {
                            assert!(value.starts_with(&format!("{key} ")), "{key}: {value}");
                        }
                        let replaced = replaced.as_deref().expect("present");
                        assert!(replaced.starts_with(&format!("{} ", round % 64)));
                        view.get(round % 64).expect("present");
                    });
                }
            });
        }
        done.store(true, Ordering::Relaxed);
    });
}
