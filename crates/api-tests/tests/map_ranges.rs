//! Ranges of maps: from both ends, without a pin, and beside writers.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use silvics::map::{MapIndex, OwnedRange, PinnedRange, SetRange};
use silvics::{BlockTree, DrachslerTree, Key, Map, NatarajanTree, Set, SkipList, WordTree};
use silvics_api_tests::Counted;
use silvics_sync::atomic::{AtomicBool, AtomicI64, Ordering};
use silvics_testkit::make::apart;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn is_sent<T: Send>() {}

#[test]
fn what_can_be_sent() {
    is_sent::<OwnedRange<String, Arc<str>>>();
    is_sent::<OwnedRange<u64, String, WordTree<u64>, &'static Map<u64, String>>>();
    is_sent::<PinnedRange<'static, String, Vec<u8>, BlockTree<[u8]>>>();
    is_sent::<SetRange<String>>();
}

/// Takes entries from the ends of `ours` as `steps` say, until nothing is left, and compares them
/// with those of a `BTreeMap`.
fn compare<T: PartialEq + Debug>(
    mut ours: impl DoubleEndedIterator<Item = T>,
    mut theirs: impl DoubleEndedIterator<Item = T>,
    steps: &[bool],
) {
    for back in steps.iter().cycle() {
        let (ours, theirs) = if *back {
            (ours.next_back(), theirs.next_back())
        } else {
            (ours.next(), theirs.next())
        };
        assert_eq!(ours, theirs);
        if theirs.is_none() {
            break;
        }
    }
    assert_eq!((ours.next(), ours.next_back()), (None, None));
}

/// Compares every kind of range with the range of a `BTreeMap`, which refuses inverted bounds.
fn every_kind<K, I>(model: &BTreeMap<K, String>, (from, to): (Bound<K>, Bound<K>), steps: &[bool])
where
    K: Key + Ord + Clone + Debug,
    I: MapIndex<Key = K::Form>,
{
    let map: Arc<Map<K, String, I>> = Arc::default();
    map.extend(model.iter().map(|(key, value)| (key, value.clone())));
    let set: Arc<Set<K, I>> = Arc::default();
    set.extend(model.keys());
    let ahead = |key: &K| match &from {
        Included(from) => key >= from,
        Excluded(from) => key > from,
        Unbounded => true,
    };
    let within = |key: &K| match &to {
        Included(to) => key <= to,
        Excluded(to) => key < to,
        Unbounded => true,
    };
    let entries: Vec<_> = model
        .iter()
        .filter(|(key, _)| ahead(key) && within(key))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let wanted = || entries.iter().cloned();
    let range = || (from.clone(), to.clone());
    let view = map.pin();
    let copied = |(key, value): (K::Ref<'_>, silvics::ValueRef<'_, String>)| {
        (K::to_owned(key), value.clone())
    };
    compare(view.range(range()).map(copied), wanted(), steps);
    compare(view.range_rev(range()).map(copied), wanted().rev(), steps);
    let owned = map.pin_owned();
    compare(owned.range(range()).map(copied), wanted(), steps);
    compare(map.range_owned(range()), wanted(), steps);
    compare(map.range_unpinned(range()), wanted(), steps);
    compare(set.range_owned(range()), wanted().map(|(key, _)| key), steps);
    compare(set.range_unpinned(range()), wanted().map(|(key, _)| key), steps);
    let keys = set.pin();
    compare(keys.range(range()).map(K::to_owned), wanted().map(|(key, _)| key), steps);
    // References, and steps of both kinds.
    let (mut ours, mut theirs) = (map.range_owned(range()), wanted());
    for (number, back) in (0..).zip(steps.iter().cycle()) {
        let theirs = if *back { theirs.next_back() } else { theirs.next() };
        let done = theirs.is_none();
        let ours = match (number % 3, back) {
            (0, false) => ours.next(),
            (0, true) => ours.next_back(),
            (_, false) => ours.next_ref().map(|(key, value)| (K::to_owned(key), value.clone())),
            (_, true) => ours.next_back_ref().map(|(key, value)| (K::to_owned(key), value.clone())),
        };
        assert_eq!(ours, theirs);
        if done {
            break;
        }
    }
}

fn bound() -> impl Strategy<Value = Bound<u16>> {
    prop_oneof![
        3 => (0..600u16).prop_map(Included),
        3 => (0..600u16).prop_map(Excluded),
        1 => Just(Unbounded),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 60 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Entries come once, from whichever end, and inverted ranges are empty.
    #[test]
    fn both_ends_agree_with_btreemap(
        model in btree_map(0..600u16, "[a-z]{0,3}", 0..500),
        from in bound(),
        to in bound(),
        steps in vec(any::<bool>(), 1..40),
        runs in 1..60usize,
    ) {
        let steps: Vec<bool> = steps.iter().flat_map(|step| vec![*step; runs]).collect();
        every_kind::<u16, WordTree<u64>>(&model, (from, to), &steps);
        let text = |key: u16| format!("{:02}/{key:05}", key % 7);
        let texts = model.iter().map(|(key, value)| (text(*key), value.clone())).collect();
        let bounds = (from.map(text), to.map(text));
        every_kind::<String, BlockTree<[u8]>>(&texts, bounds.clone(), &steps);
        every_kind::<String, SkipList<[u8]>>(&texts, bounds, &steps);
        every_kind::<u16, NatarajanTree>(&model, (from, to), &steps);
        every_kind::<u16, DrachslerTree>(&model, (from, to), &steps);
        let pairs = model.into_iter().map(|(key, value)| ((key % 5, key), value)).collect();
        let pair = |key| (key % 5, key);
        every_kind::<(u16, u16), BlockTree<[u8]>>(&pairs, (from.map(pair), to.map(pair)), &steps);
    }
}

/// Ranges are read from both ends while other threads write: each key that is always present comes
/// once, the front ascends and the back descends.
fn miss_nothing<'m, T>(range: T, round: u64, keys: u64)
where
    T: DoubleEndedIterator<Item = u64> + 'm,
{
    let mut range = range;
    let (mut front, mut back, mut seen, mut seed) = (None, None, 0, round);
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let from_back = match round % 4 {
            0 => false,
            1 => true,
            2 => seed >> 63 == 1,
            _ => seed >> 60 == 1,
        };
        let Some(key) = (if from_back { range.next_back() } else { range.next() }) else { break };
        let end = if from_back { &mut back } else { &mut front };
        assert!(end.is_none_or(|last| if from_back { key < last } else { key > last }));
        *end = Some(key);
        assert!(front.is_none() || back.is_none() || front < back);
        seen += u64::from(key % 3 == 0);
    }
    assert_eq!(seen, keys.div_ceil(3), "round {round}");
}

#[test]
fn ranges_miss_nothing_beside_writers() {
    const KEYS: u64 = 900;
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
                if round.is_multiple_of(5000) {
                    map.shrink();
                }
                round += 1;
            }
        });
        let value = |(key, value): (u64, String)| {
            assert_eq!(value, key.to_string());
            key
        };
        for round in 0..if cfg!(miri) { 4 } else { 200 } {
            miss_nothing(map.range_owned(..).map(value), round, KEYS);
            miss_nothing(map.range_unpinned(..KEYS).map(value), round, KEYS);
            let owned = map.pin_owned();
            let copy =
                |(key, text): (u64, silvics::ValueRef<'_, String>)| value((key, text.clone()));
            miss_nothing(owned.range(..).map(copy), round, KEYS);
            miss_nothing(map.pin().range(..).map(copy), round, KEYS);
        }
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
}

/// A range that is kept while the map is cleared and shrunk returns the entries that it has copied,
/// and then those that are present.
#[test]
fn a_kept_range_holds_nothing_and_goes_on() {
    let live = Arc::new(AtomicI64::new(0));
    let map = Arc::new(Map::<u64, Arc<Counted>>::with_options(&apart()).unwrap());
    let entry = |key| (key, Arc::new(Counted::new(key, &live)));
    map.extend((0..10_000).map(entry));
    let mut range = map.range_owned(..);
    assert_eq!(range.next().map(|(key, _)| key), Some(0));
    map.clear();
    map.flush();
    map.shrink();
    assert!(live.load(Ordering::Relaxed) < 200, "the range holds only its copies");
    let copied = range.by_ref().take_while(|(key, value)| *key == value.number).count();
    assert!(copied < 200);
    drop(range);
    map.extend((5000..5100).map(entry));
    let mut range = map.range_owned(4000..);
    assert_eq!(range.next_back().map(|(key, _)| key), Some(5099));
    map.clear();
    assert!(range.all(|(key, value)| key == value.number));
    drop(range);
    drop(Arc::into_inner(map).expect("no range is left"));
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

thread_local! {
    /// Runs when a [`Calling`] is cloned.
    static ON_CLONE: Cell<fn(u64)> = const { Cell::new(|_| ()) };
    static MAP: Cell<Option<Arc<Map<u64, Calling>>>> = const { Cell::new(None) };
}

/// A value whose clone runs code of the test.
#[derive(Debug, PartialEq)]
struct Calling(u64);

impl Clone for Calling {
    fn clone(&self) -> Self {
        ON_CLONE.get()(self.0);
        Self(self.0)
    }
}

/// `V::clone` may call the map: it may scan, insert, remove, flush and shrink.
#[test]
fn clones_may_call_the_map() {
    let map: Arc<Map<u64, Calling>> = Arc::default();
    map.extend((0..1000).map(|key| (key, Calling(key))));
    MAP.set(Some(Arc::clone(&map)));
    ON_CLONE.set(|number| {
        let map = MAP.take().expect("set");
        ON_CLONE.with(|on_clone| {
            let call = on_clone.replace(|_| ());
            map.remove(number);
            map.insert(number + 2000, Calling(number + 2000));
            assert!(map.range_unpinned(number..).next().is_some());
            map.flush();
            if number % 100 == 0 {
                map.shrink();
            }
            on_clone.set(call);
        });
        MAP.set(Some(map));
    });
    let seen = map.range_owned(..1000).map(|(key, value)| (key, value.0));
    assert!(seen.eq((0..1000).map(|key| (key, key))));
    let mut cursor = map.cursor_range(2000..2500).values_ahead();
    for key in 2000..2500 {
        assert!(cursor.next());
        assert_eq!(cursor.current().map(|(key, value)| (key, value.is_some())), Some((key, true)));
    }
    ON_CLONE.set(|_| ());
    MAP.set(None);
}

/// If `V::clone` panics, the range and the cursor stay where they are, and lose nothing.
#[test]
fn a_clone_that_panics_loses_nothing() {
    let map: Arc<Map<u64, Calling>> = Arc::default();
    map.extend((0..300).map(|key| (key, Calling(key))));
    let panics: fn(u64) = |number| assert_ne!(number % 50, 40, "as the test wants");
    let calm: fn(u64) = |_| ();
    let (mut range, mut cursor) = (map.range_owned(..), map.cursor().values_ahead());
    let (mut front, mut back, mut stood) = (Vec::new(), Vec::new(), Vec::new());
    let mut panicked = 0;
    while front.len() + back.len() < 300 {
        ON_CLONE.set(panics);
        let from_back = front.len() > 2 * back.len();
        let step = |range: &mut OwnedRange<u64, Calling>| {
            if from_back { range.next_back() } else { range.next() }
        };
        let entry = catch_unwind(AssertUnwindSafe(|| step(&mut range))).unwrap_or_else(|_| {
            panicked += 1;
            ON_CLONE.set(calm);
            step(&mut range)
        });
        let end = if from_back { &mut back } else { &mut front };
        end.push(entry.expect("there are 300").0);
    }
    ON_CLONE.set(panics);
    for key in 0..300 {
        let before = cursor.key();
        let moved = catch_unwind(AssertUnwindSafe(|| cursor.next())).unwrap_or_else(|_| {
            panicked += 1;
            assert_eq!(cursor.key(), before, "it stands where it stood");
            ON_CLONE.set(calm);
            let moved = cursor.next();
            ON_CLONE.set(panics);
            moved
        });
        assert!(moved);
        stood.push(cursor.key().expect("it moved"));
        assert_eq!(stood.last(), Some(&key));
    }
    ON_CLONE.set(calm);
    assert!(panicked > 4);
    front.extend(back.iter().rev());
    assert!(front.iter().copied().eq(0..300));
    assert_eq!((range.next(), range.next_back()), (None, None));
}

/// A range may be dropped where it is: over a bound that was dropped, half read, or not read.
#[test]
fn ranges_own_their_bounds() {
    let map: Arc<Map<String, u64>> = Arc::new((0..99).map(|n| (format!("{n:02}"), n)).collect());
    let (view, owned) = (map.pin(), map.pin_owned());
    let bounds = (String::from("10"), String::from("20"));
    let ranges = (
        view.range(&bounds.0..&bounds.1),
        owned.range(&bounds.0..&bounds.1),
        map.range_owned(&bounds.0..&bounds.1),
        map.cursor_range(&bounds.0..&bounds.1),
    );
    drop(bounds);
    let (mut a, mut b, mut c, mut d) = ranges;
    let moved = Box::new(a.next().map(|(key, _)| key.to_string()));
    let mut a = Box::new(a);
    assert_eq!(*moved, Some("10".to_string()));
    assert_eq!(a.next_back().map(|(_, value)| *value), Some(19));
    assert_eq!(b.next_back().map(|(_, value)| *value), Some(19));
    assert_eq!(c.next_back(), Some(("19".to_string(), 19)));
    assert!(d.seek_to_last() && d.key() == Some("19"));
    let inverted = String::from("20")..String::from("10");
    assert!(view.range(&inverted.start..&inverted.end).next_back().is_none());
    assert!(map.range_owned(&inverted.start..&inverted.end).next().is_none());
    assert!(!map.cursor_range(&inverted.start..&inverted.end).next());
}

#[test]
fn a_value_is_cloned_by_its_own_clone() {
    let map: Map<u64, Arc<str>> = Map::new();
    map.insert(1, "one".into());
    let view = map.pin();
    let value = view.get(1).expect("inserted");
    let copy: Arc<str> = value.clone();
    assert_eq!(Arc::strong_count(&copy), 2);
    let again = silvics::ValueRef::clone(&value);
    let text: &Arc<str> = again.into_ref().expect("not a number");
    assert_eq!((&**text, Arc::strong_count(&copy)), ("one", 2));
    let numbers: Map<u64, u64> = Map::new();
    numbers.insert(1, 1);
    assert_eq!(numbers.pin().get(1).expect("inserted").into_ref(), None);
    let kept = map.get_owned(1).expect("inserted");
    map.remove(1);
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(&**kept, "one"));
    });
}
