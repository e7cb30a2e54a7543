//! Ranges and cursors that copy entries do as a `BTreeMap` does, while the map changes.

use super::*;
use silvics::ord::{Natural, OrdCursor, OwnedRange};
use std::cmp::Ordering::{Greater, Less};
use std::collections::BTreeMap;
use std::ops::Bound;

type Texts = Map<String, u64, Natural>;
type Bounds = (Bound<String>, Bound<String>);

fn filled(keys: u64, rng: &Rng) -> (Arc<Texts>, BTreeMap<String, u64>) {
    let (map, mut model) = (Arc::new(map(Natural)), BTreeMap::new());
    for n in 0..keys {
        let key = rng.below(2 * keys).to_string();
        map.insert(key.clone(), n);
        model.insert(key, n);
    }
    (map, model)
}

fn bounds(rng: &Rng, keys: u64) -> Bounds {
    let bound = || {
        let key = rng.below(2 * keys).to_string();
        [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded]
            [rng.below(3) as usize]
            .clone()
    };
    (bound(), bound())
}

fn is_empty((low, high): &Bounds) -> bool {
    let key = |bound: &Bound<String>| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
        Bound::Unbounded => None,
    };
    let (Some(low_key), Some(high_key)) = (key(low), key(high)) else { return false };
    let both = matches!((low, high), (Bound::Excluded(_), Bound::Excluded(_)));
    low_key > high_key || low_key == high_key && both
}

/// A range that is taken from both ends has the entries of the range, each once.
fn takes_all<M>(
    range: OwnedRange<String, u64, Natural, M, Pooled, Restless, String, Bounds>,
    expected: &[(String, u64)],
    rng: &Rng,
) where
    M: std::ops::Deref<Target = Texts>,
{
    let (mut range, mut front, mut back) = (range, Vec::new(), Vec::new());
    let way = rng.below(3);
    loop {
        let from_front = way == 0 || way == 2 && rng.below(3) == 0;
        let next = if from_front { range.next() } else { range.next_back() };
        let Some(entry) = next else { break };
        if from_front { front.push(entry) } else { back.push(entry) }
    }
    assert!(range.next().is_none() && range.next_back().is_none());
    back.reverse();
    assert_eq!([front, back].concat(), expected);
}

#[test]
fn copied_ranges_have_the_entries_of_ranges() {
    let rng = Rng::new(7);
    for keys in [0, 3, 50, 2000] {
        let (map, model) = filled(keys, &rng);
        for _ in 0..work(2500).max(20) / 10 {
            let range = bounds(&rng, keys.max(1));
            let expected: Vec<_> = if is_empty(&range) {
                Vec::new()
            } else {
                model.range(range.clone()).map(|(key, value)| (key.clone(), *value)).collect()
            };
            takes_all(map.range_unpinned(range.clone()), &expected, &rng);
            takes_all(map.range_owned(range), &expected, &rng);
        }
    }
}

/// A range that outlives changes of the map returns each key that stays, and none twice.
#[test]
fn copied_ranges_see_all_that_stays() {
    let rng = Rng::new(3);
    let (map, _) = filled(0, &rng);
    for n in 0..work(4000) {
        map.insert(format!("{n:05}"), n);
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in (1..work(4000)).step_by(2) {
                map.remove(&format!("{n:05}"));
                map.insert(format!("{n:05}+"), n);
            }
        });
        let mut range = map.range_owned(String::new()..);
        let (mut low, mut high, mut seen) = (String::new(), "x".to_string(), 0);
        loop {
            let from_front = rng.below(2) == 0;
            let next = if from_front { range.next() } else { range.next_back() };
            let Some((key, value)) = next else { break };
            assert!(low < key && key < high && key.starts_with(&format!("{value:05}")));
            seen += u64::from(value % 2 == 0);
            if from_front { low = key } else { high = key }
        }
        assert_eq!(seen, work(4000).div_ceil(2));
        writer.join().expect("it writes");
    });
}

#[test]
fn cursors_agree() {
    let rng = Rng::new(11);
    for keys in [0, 2, 40, 1500] {
        let (map, mut model) = filled(keys, &rng);
        let mut cursor: OrdCursor<_, _, _, _, _> = map.cursor();
        // The key where the cursor stands, or the end of the map: true if behind the last entry.
        let mut at: Result<String, bool> = Err(false);
        for n in 0..work(3000) {
            let key = rng.below(2 * keys.max(1)).to_string();
            let first = |range: (Bound<&String>, Bound<&String>)| {
                model.range::<String, _>(range).next().map(|(key, _)| key.clone())
            };
            let last = |range: (Bound<&String>, Bound<&String>)| {
                model.range::<String, _>(range).next_back().map(|(key, _)| key.clone())
            };
            let open = Bound::Unbounded;
            let (moved, next) = match rng.below(12) {
                0 => (cursor.seek(key.as_str()), first((Bound::Included(&key), open)).ok_or(true)),
                1 => {
                    let last = last((open, Bound::Included(&key)));
                    (cursor.seek_for_prev(&key), last.ok_or(false))
                }
                2 => (cursor.seek_to_first(), first((open, open)).ok_or(true)),
                3 => (cursor.seek_to_last(), last((open, open)).ok_or(false)),
                4..=7 => {
                    let next = match &at {
                        Ok(key) => first((Bound::Excluded(key), open)),
                        Err(false) => first((open, open)),
                        Err(true) => None,
                    };
                    (cursor.next(), next.ok_or(true))
                }
                8..=10 => {
                    let next = match &at {
                        Ok(key) => last((open, Bound::Excluded(key))),
                        Err(true) => last((open, open)),
                        Err(false) => None,
                    };
                    (cursor.prev(), next.ok_or(false))
                }
                // The cursor has copied entries behind its place, so it is sent there anew.
                _ => {
                    map.remove(key.as_str());
                    model.remove(&key);
                    map.insert(format!("{key}+"), n);
                    model.insert(format!("{key}+"), n);
                    let moved = cursor.seek_to_first();
                    (moved, model.keys().next().cloned().ok_or(true))
                }
            };
            assert_eq!(moved, next.is_ok());
            assert_eq!(cursor.key(), next.as_ref().ok());
            assert_eq!(cursor.value(), next.as_ref().ok().map(|key| &model[key]));
            at = next;
        }
    }
}

/// A cursor whose entry is removed goes on from there, on another thread.
#[test]
fn cursors_keep_their_place() {
    let map: Arc<Texts> = Arc::new(map(Natural));
    for n in 0..100 {
        map.insert(format!("{n:02}"), n);
    }
    let mut cursor = map.cursor();
    assert!(cursor.seek("50"));
    map.pin().remove_range::<str>((Bound::Included("40"), Bound::Excluded("60")));
    let handle = std::thread::spawn(move || {
        assert_eq!(cursor.current(), Some((&"50".to_string(), &50)));
        assert!(cursor.prev() && cursor.value() == Some(&39));
        assert!(cursor.next() && cursor.value() == Some(&60));
    });
    handle.join().expect("it walks");
}

/// A key whose clones panic when the number of those that are left is zero.
struct Fragile(u64);

std::thread_local!(static CLONES_LEFT: std::cell::Cell<u64> = const { std::cell::Cell::new(u64::MAX) });

impl Clone for Fragile {
    fn clone(&self) -> Self {
        CLONES_LEFT.set(CLONES_LEFT.get().checked_sub(1).expect("a clone that panics"));
        Self(self.0)
    }
}

/// Clones panic in each place in turn. The range then goes on as if it had not been called.
#[test]
fn clones_that_panic_lose_no_entry() {
    let map: Map<Fragile, u64, _> = map(|a: &Fragile, b: &Fragile| a.0.cmp(&b.0));
    for n in 0..40 {
        map.insert(Fragile(n), n);
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    for left in 0..90 {
        let rng = Rng::new(left);
        let (mut range, mut front, mut back) = (map.range_unpinned(..), Vec::new(), Vec::new());
        CLONES_LEFT.set(left);
        loop {
            let from_front = rng.below(2) == 0;
            let step = std::panic::AssertUnwindSafe(|| {
                if from_front { range.next() } else { range.next_back() }
            });
            match std::panic::catch_unwind(step) {
                Ok(Some((_, value))) if from_front => front.push(value),
                Ok(Some((_, value))) => back.push(value),
                Ok(None) => break,
                Err(_) => CLONES_LEFT.set(u64::MAX),
            }
        }
        back.reverse();
        assert!([front, back].concat().into_iter().eq(0..40), "{left}");
    }
    std::panic::set_hook(hook);
}

/// An order that never answers "equal" ends each range.
#[test]
fn ranges_end_although_keys_are_equal_to_none() {
    let order = |a: &u32, b: &u32| if a < b { Less } else { Greater };
    let map: Map<u32, u64, _> = map(order);
    for n in 0..1000 {
        map.insert(n * 7 % 1000, 0);
    }
    assert!(map.range_unpinned(..).count() <= 1000);
    assert!(map.range_unpinned(..).rev().count() <= 1000);
}
