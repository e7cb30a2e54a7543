//! Maps beside a model, with every allocation failing once, and beside a reader.

use super::testing::Counting;
use super::*;
use crate::scan::Scan;
use proptest::prelude::*;
use silvics::Domain;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const ALL: Bounds<'static> = (Bound::Unbounded, Bound::Unbounded);

fn map(heap: &Arc<Counting>) -> ByteMap {
    ByteMap::new(Arc::<Counting>::clone(heap), 7).unwrap()
}

fn owned<'v>(entries: impl Iterator<Item = Entry<'v>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut digits = Digits::default();
    entries.map(|(key, value)| (key.to_vec(), value.bytes(&mut digits).to_vec())).collect()
}

fn pairs(model: &Model) -> Vec<(Vec<u8>, Vec<u8>)> {
    model.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Compares all that can be read, and the count of bytes with that of the heap.
fn assert_same(map: &ByteMap, model: &Model, heap: &Counting) {
    let view = map.pin();
    assert_eq!(owned(view.range(ALL)), pairs(model));
    assert_eq!(owned(view.range_rev(ALL)), pairs(model).into_iter().rev().collect::<Vec<_>>());
    assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
    // SAFETY: this thread alone has the map, and the guard is the map's.
    let quiet = unsafe {
        let guard = map.unprotected();
        owned(map.scan_under(&guard))
    };
    assert_eq!(quiet, pairs(model));
    let memory = map.memory();
    assert_eq!(memory.total, memory.tree + memory.values);
    // Batches of removed objects are not in this heap.
    assert!(memory.total >= heap.live());
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, Vec<u8>, Condition),
    Swap(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>),
    Remove(Vec<u8>),
    Pop(bool),
    RemoveRange(Vec<u8>, Vec<u8>, usize),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0), Just(b'a'), Just(b'b'), Just(255)], 0..4)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..30),
        any::<i64>().prop_map(|integer| integer.to_string().into_bytes()),
        Just(b"same".to_vec()),
        Just(b"the same, in a block".to_vec()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    use Condition::{Absent, Always, Present};
    let condition = prop_oneof![Just(Always), Just(Absent), Just(Present)];
    let state = || proptest::option::of(value());
    prop_oneof![
        4 => (key(), value(), condition).prop_map(|(key, value, when)| Step::Set(key, value, when)),
        2 => (key(), state(), state()).prop_map(|(key, old, new)| Step::Swap(key, old, new)),
        1 => key().prop_map(Step::Remove),
        1 => any::<bool>().prop_map(Step::Pop),
        1 => (key(), key(), 0..9_usize).prop_map(|(from, to, most)| Step::RemoveRange(from, to, most)),
    ]
}

/// Does a step in the map and in the model, and compares what it returns. If an allocation fails,
/// both are as before.
fn play(map: &ByteMap, model: &mut Model, step: &Step) -> Result<(), WriteError> {
    let (view, mut digits) = (map.pin(), Digits::default());
    let mut bytes = |value: Option<Value<'_>>| value.map(|value| value.bytes(&mut digits).to_vec());
    match step {
        Step::Set(key, value, condition) => {
            let set = view.set(key, value, *condition)?;
            let present = model.contains_key(key);
            let writes = match condition {
                Condition::Always => true,
                Condition::Absent => !present,
                Condition::Present => present,
            };
            let old = model.get(key).cloned();
            assert_eq!((set.written, bytes(set.old)), (writes, old));
            if writes {
                model.insert(key.clone(), value.clone());
            }
        }
        Step::Swap(key, expected, new) => {
            let done = view.compare_and_set(key, expected.as_deref(), new.as_deref())?;
            assert_eq!(done, model.get(key) == expected.as_ref());
            if done {
                match new {
                    Some(new) => model.insert(key.clone(), new.clone()),
                    None => model.remove(key),
                };
            }
        }
        Step::Remove(key) => assert_eq!(bytes(view.remove(key)?), model.remove(key)),
        Step::Pop(last) => {
            assert_eq!(owned(view.end(*last).into_iter()).pop(), end(model, *last));
            let popped = view.pop(*last)?;
            let expected = if *last { model.pop_last() } else { model.pop_first() };
            assert_eq!(owned(popped.into_iter()).pop(), expected);
        }
        Step::RemoveRange(from, to, most) => {
            let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
            let inside = |key: &&Vec<u8>| *key >= from && *key < to;
            let gone: Vec<_> = model.keys().filter(inside).take(*most).cloned().collect();
            assert_eq!(map.remove_range(bounds, *most)?, gone.len());
            model.retain(|key, _| !gone.contains(key));
        }
    }
    Ok(())
}

fn end(model: &Model, last: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let entry = if last { model.last_key_value() } else { model.first_key_value() };
    entry.map(|(key, value)| (key.clone(), value.clone()))
}

proptest! {
    #[test]
    fn a_map_does_what_its_model_does(steps in proptest::collection::vec(step(), 0..200)) {
        let (heap, mut model) = (Arc::new(Counting::default()), Model::new());
        let map = map(&heap);
        for step in &steps {
            play(&map, &mut model, step).unwrap();
        }
        assert_same(&map, &model, &heap);
        let keys: Vec<&[u8]> = model.keys().map(Vec::as_slice).chain([&b"absent"[..]]).collect();
        let mut digits = Digits::default();
        let view = map.pin();
        for (key, found) in keys.iter().zip(view.get_many(&keys)) {
            let found = found.map(|value| value.bytes(&mut digits).to_vec());
            prop_assert_eq!(found.as_ref(), model.get(*key));
        }
        drop(view);
        let copy = ByteMap::copy_of(&map, 8).unwrap();
        assert_same(&copy, &model, &Counting::default());
    }

    /// The bounds of a scan that goes on in steps are those of a range.
    #[test]
    fn a_scan_in_steps_is_a_range(entries in proptest::collection::btree_map(key(), value(), 0..60),
                                  from in key(), most in 1..9_usize, descends: bool) {
        let heap = Arc::new(Counting::default());
        let map = map(&heap);
        for (key, value) in &entries {
            map.pin().set(key, value, Condition::Always).unwrap();
        }
        let bounds = (Bound::Excluded(&from[..]), Bound::Unbounded);
        let (mut scan, mut found) = (Scan::new(bounds, descends), Vec::new());
        while !scan.step(&map.pin(), most, |key, value| {
            found.extend(owned([(key, value)].into_iter()));
            ControlFlow::Continue(())
        }) {}
        let mut expected = pairs(&entries);
        expected.retain(|(key, _)| *key > from);
        if descends {
            expected.reverse();
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_map_returns_all_memory() {
    let heap = Arc::new(Counting::default());
    let map = map(&heap);
    let write = |number: u32, value: &str| {
        let key = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
        map.pin().set(&key, value.as_bytes(), Condition::Always).unwrap();
    };
    for number in 0..10_000 {
        write(number, "a value with a block of its own");
        write(number / 3, "another one");
    }
    assert!(heap.live() > 10_000 * 40);
    map.remove_range(ALL, 4000).unwrap();
    drop(map);
    assert_freed(&heap);
}

/// Waits until the heap is empty: other tests may pin the domain that all maps share.
fn assert_freed(heap: &Counting) {
    for _ in 0..10_000 {
        Domain::shared().flush();
        if heap.live() == 0 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} bytes are left", heap.live());
}

/// Every allocation of a script fails once: the step returns an error, and the map is unchanged.
#[test]
fn failing_allocations_change_nothing() {
    let heap = Arc::new(Counting::default());
    let mut failures = 0;
    for number in 1.. {
        let (map, mut model) = (map(&heap), Model::new());
        heap.fail_at(number);
        let mut failed = false;
        for step in 0..200_u32 {
            let key = (step.wrapping_mul(0x9e37_79b9) % 64).to_be_bytes().to_vec();
            let value = format!("a value with a block of its own {step}").into_bytes();
            let step = match step % 5 {
                0..=2 => Step::Set(key, value, Condition::Always),
                3 => Step::Swap(key, None, Some(value)),
                _ => Step::Remove(key),
            };
            if play(&map, &mut model, &step).is_err() {
                failed = true;
                let view = map.pin();
                assert_eq!(owned(view.range(ALL)), pairs(&model), "allocation {number}");
            }
        }
        assert_same(&map, &model, &Counting::default());
        if heap.cancel_failure() > 0 {
            break;
        }
        failures += usize::from(failed);
    }
    assert!(failures > 100, "only {failures} allocations failed");
}

#[test]
fn loads_return_what_they_took_if_they_fail() {
    const PIECE: usize = 20_000;
    let heap = Arc::new(Counting::default());
    let load = |len: usize| {
        let mut load = Load::new(ByteMap::new(Arc::<Counting>::clone(&heap), 1)?);
        load.most = PIECE * 88;
        for number in 0..len {
            load.push(&number.to_be_bytes(), b"a value with a block of its own")?;
        }
        load.finish()
    };
    let len = PIECE + 100; // two pieces
    heap.fail_at(10 * len);
    let loaded = load(len).unwrap();
    let allocations = 10 * len - heap.cancel_failure();
    let written = map(&heap);
    for (key, value) in loaded.pin().range(ALL) {
        let value = value.bytes(&mut Digits::default()).to_vec();
        written.pin().set(key, &value, Condition::Always).unwrap();
    }
    assert!(loaded.memory().tree <= written.memory().tree, "{:?}", loaded.memory());
    drop(written);
    assert_eq!(loaded.len(), len);
    drop(loaded);
    assert_freed(&heap);
    // Values of the first piece, its tree, values of the second piece, its keys.
    let last = allocations;
    for number in [1, 2, 100, PIECE, PIECE + 20, last - 150, last - 60, last - 1, last] {
        heap.fail_at(number);
        let loaded = load(len);
        assert!(loaded.is_err() || heap.cancel_failure() == 0, "allocation {number}");
        drop(loaded);
        assert_freed(&heap);
    }
}

#[test]
fn keys_have_a_longest() {
    let heap = Arc::new(Counting::default());
    let map = map(&heap);
    let long = vec![1; 600 << 10];
    let view = map.pin();
    let error = view.set(&long, b"a value with a block of its own", Condition::Always).unwrap_err();
    let WriteError::KeyLength { bytes, limit } = error else { panic!("{error}") };
    assert_eq!((bytes, limit), (long.len(), 512 << 10));
    assert_eq!((map.is_empty(), map.memory().values), (true, 0));
    assert!(view.set(&long[..limit], b"1", Condition::Always).unwrap().written);
}

/// A reader scans in steps while a writer replaces, inserts and removes. It finds every key that
/// stays, in order, and no value that was never written.
#[test]
fn a_scan_beside_a_writer_finds_what_stays() {
    let heap = Arc::new(Counting::default());
    let map = map(&heap);
    let key = |number: u32| number.to_be_bytes();
    let value = |number: u32, round: u32| format!("{number} has had this value in round {round}");
    for number in 0..4000 {
        map.pin().set(&key(number), value(number, 0).as_bytes(), Condition::Always).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20 {
                for number in 0..4000 {
                    let view = map.pin();
                    if number % 2 == 0 {
                        let value = value(number, round);
                        view.set(&key(number), value.as_bytes(), Condition::Always).unwrap();
                    } else if round % 2 == 0 {
                        view.remove(&key(number)).unwrap();
                    } else {
                        view.set(&key(number), b"1", Condition::Absent).unwrap();
                    }
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut scans = 0;
        while scans < 3 || !done.load(Ordering::SeqCst) {
            let (mut scan, mut even, mut last) = (Scan::new(ALL, false), 0, None);
            while !scan.step(&map.pin(), 64, |key, value| {
                let number = u32::from_be_bytes(key.try_into().unwrap());
                assert!(last.replace(number).is_none_or(|last| last < number));
                let mut digits = Digits::default();
                let text = str::from_utf8(value.bytes(&mut digits)).unwrap();
                let known = text.starts_with(&format!("{number} has had this value in round "));
                assert!(known || number % 2 == 1 && text == "1", "{text}");
                even += u32::from(number % 2 == 0);
                ControlFlow::Continue(())
            }) {}
            assert_eq!(even, 2000);
            scans += 1;
        }
    });
}

/// A map of which most was removed holds little, while nothing is pinned.
#[test]
fn removals_free_at_once() {
    let heap = Arc::new(Counting::default());
    let map = map(&heap);
    for number in 0..20_000_u32 {
        let value = b"a value with a block of its own";
        map.pin().set(&number.to_be_bytes(), value, Condition::Always).unwrap();
    }
    let full = map.memory().total;
    assert_eq!(map.remove_range(ALL, 19_000).unwrap(), 19_000);
    // Other tests may have pinned the domain that all maps share.
    for _ in 0..10_000 {
        map.settle();
        if map.memory().total < full / 10 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{:?} of {full}", map.memory());
}
