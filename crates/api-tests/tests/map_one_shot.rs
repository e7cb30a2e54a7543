//! The methods of maps that pin by themselves: they return the answers of `BTreeMap`, and behave as
//! documented when memory is short.

use silvics::map::{CompareExchangeError, Compute, Operation, TryInsertError};
use silvics::{AllocError, Map, Options, Pages, Set};
use silvics_api_tests::{Counted, mixed};
use silvics_sync::atomic::{AtomicI64, Ordering};
use silvics_testkit::make::apart;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};

#[test]
#[expect(clippy::too_many_lines, reason = "one arm for each verb")]
fn they_agree_with_btreemap() {
    let map: Map<String, String> = Map::new();
    let mut model = BTreeMap::new();
    let name = |n: u64| format!("key {}", n % 60);
    let mut asked = 0;
    for n in 0..20_000 {
        let (draw, key, value) = (mixed(n), name(mixed(n) >> 32), n.to_string());
        match draw % 16 {
            0 | 1 => {
                let old = map.insert(&key, value.clone()).map(|old| old.clone());
                assert_eq!(old, model.insert(key, value));
            }
            2 => match map.try_insert(&key, value.clone()) {
                Ok(present) => {
                    assert_eq!(*present, value);
                    assert_eq!(model.insert(key, value), None);
                }
                Err(TryInsertError::Occupied { present, value: back }) => {
                    assert_eq!((Some(&*present), back), (model.get(&key), value));
                }
                Err(error) => panic!("{error}"),
            },
            3 | 4 => {
                assert_eq!(map.remove(&key).map(|old| old.clone()), model.remove(&key));
            }
            5 => match map.remove_if(&key, |value| value.len() % 2 == 0) {
                Ok(removed) => {
                    assert_eq!(removed.map(|old| old.clone()), model.remove(&key));
                }
                Err(kept) => assert_eq!(Some(&*kept), model.get(&key)),
            },
            6 => {
                let new = map.update(&key, |old| format!("{}.", &old[..old.len().min(5)]));
                let theirs = model.get_mut(&key).map(|old| {
                    *old = format!("{}.", &old[..old.len().min(5)]);
                    old.clone()
                });
                assert_eq!(new.map(|new| new.clone()), theirs);
            }
            7 => {
                let state = model.get(&key).cloned();
                let decide = |old: Option<&String>| {
                    asked += 1;
                    assert_eq!(old, state.as_ref());
                    match (draw >> 8) % 3 {
                        0 => Operation::Insert(value.clone()),
                        1 => Operation::Remove,
                        _ => Operation::Abort(n),
                    }
                };
                match (map.compute(&key, decide), (draw >> 8) % 3) {
                    (Compute::Inserted(new), 0) => {
                        assert_eq!((&*new, &state), (&value, &None));
                        model.insert(key, value);
                    }
                    (Compute::Updated { old, new }, 0) => {
                        assert_eq!((Some(&*old), &*new), (state.as_ref(), &value));
                        model.insert(key, value);
                    }
                    (Compute::Removed(old), 1) => {
                        assert_eq!(old.as_deref(), model.remove(&key).as_ref());
                    }
                    (Compute::Aborted(told), 2) => assert_eq!(told, n),
                    (other, _) => panic!("{other:?}"),
                }
            }
            8 => {
                let expected = if draw >> 8 & 1 == 0 { model.get(&key).cloned() } else { None };
                let new = (draw >> 9 & 1 == 0).then_some(value);
                match map.compare_exchange(&key, expected.as_ref(), new.clone()) {
                    Ok(old) => {
                        assert_eq!(old.as_deref(), expected.as_ref());
                        assert_eq!(model.get(&key), expected.as_ref());
                        match new {
                            Some(new) => model.insert(key, new),
                            None => model.remove(&key),
                        };
                    }
                    Err(CompareExchangeError::Mismatch { present, new: back }) => {
                        assert_eq!((present.as_deref(), back), (model.get(&key), new));
                        assert_ne!(model.get(&key), expected.as_ref());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            9 => {
                let found = map.get_or_insert(&key, value.clone());
                assert_eq!(&*found, model.entry(key).or_insert(value));
            }
            10 => {
                let found = map.get_key_value(&key).map(|(key, value)| (key, value.clone()));
                assert_eq!(
                    found.as_ref().map(|(key, value)| (key, value)),
                    model.get_key_value(&key)
                );
            }
            11 => {
                let found = map.lower_bound(Excluded(&key)).map(|(key, _)| key);
                let theirs =
                    model.range::<String, _>((Excluded(&key), std::ops::Bound::Unbounded)).next();
                assert_eq!(found.as_ref(), theirs.map(|(key, _)| key));
                let found = map.upper_bound(Included(&key)).map(|(key, _)| key);
                assert_eq!(
                    found.as_ref(),
                    model.range::<String, _>(..=key).next_back().map(|(key, _)| key)
                );
            }
            12 => {
                let first = map.first().map(|(key, value)| (key, value.clone()));
                assert_eq!(first, model.first_key_value().map(|(k, v)| (k.clone(), v.clone())));
                let last = map.last().map(|(key, value)| (key, value.clone()));
                assert_eq!(last, model.last_key_value().map(|(k, v)| (k.clone(), v.clone())));
            }
            13 if (draw >> 8) % 8 == 0 => {
                let first = map.pop_first().map(|(key, value)| (key, value.clone()));
                assert_eq!(first, model.pop_first());
                let last = map.pop_last().map(|(key, value)| (key, value.clone()));
                assert_eq!(last, model.pop_last());
            }
            14 if (draw >> 8) % 64 == 0 => {
                let keep = |value: &String| value.len() != 4;
                let before = model.len();
                model.retain(|_, value| keep(value));
                assert_eq!(map.retain(|_, value| keep(value)), before - model.len());
                assert_eq!(map.remove_range(&key..), model.split_off(&key).len());
            }
            _ => assert_eq!(map.get(&key).as_deref(), model.get(&key)),
        }
    }
    assert!(asked > 500 && model.len() > 10);
    assert!(map.pin().iter().map(|(k, v)| (k.to_string(), String::clone(&v))).eq(model.clone()));
    assert_eq!(map.clear(), model.len());
    assert!(map.is_empty());
}

#[test]
fn sweeps_go_on_where_they_have_pinned_anew() {
    let map: Map<u64, u64> = Map::new();
    map.extend((0..10_000).map(|n| (n * 7, n)));
    let mut asked = Vec::new();
    let removed = map.retain(|key, value| {
        asked.push(*key);
        value % 5 == 0
    });
    assert!(asked.iter().copied().eq((0..10_000).map(|n| n * 7)), "each once, in order");
    assert_eq!((removed, map.len()), (8_000, 2_000));
    assert_eq!(map.remove_range(35..=35_000), 1_000);
    assert_eq!(map.clear(), 1_000);
    // Here the values are read ahead.
    let map: Map<u64, String> = Map::new();
    map.extend((0..5_000).map(|n| (n * 7, n.to_string())));
    asked.clear();
    let removed = map.retain(|key, value| {
        asked.push(*key);
        assert_eq!(*value, (key / 7).to_string());
        key % 2 == 0
    });
    assert!(asked.iter().copied().eq((0..5_000).map(|n| n * 7)), "each once, in order");
    assert_eq!((removed, map.clear()), (2_500, 2_500));
}

#[test]
fn what_a_batch_has_not_been_asked_for_stays() {
    let map: Map<u64, u64> = Map::new();
    map.insert(1, 10);
    let view = map.pin();
    let mut found = std::array::from_fn::<_, 100, _>(|_| view.get(1));
    view.get_many(&[2], &mut found);
    assert_eq!(
        (found[0].as_deref(), found[1].as_deref(), found[99].as_deref()),
        (None, Some(&10), Some(&10))
    );
    let before = view.insert_many([(1, 11), (2, 20), (1, 12)]);
    let before: Vec<Option<u64>> = before.into_iter().map(|old| old.map(|old| *old)).collect();
    assert_eq!(before, [Some(10), None, Some(11)]);
    assert_eq!(view.get(1).as_deref(), Some(&12));
}

#[test]
fn a_flush_and_a_new_pin_drop_what_has_been_removed() {
    let live = Arc::new(AtomicI64::new(0));
    let map: Map<u64, Counted> = Map::with_options(&apart()).unwrap();
    map.insert(1, Counted::new(1, &live));
    drop(map.remove(1));
    map.flush();
    assert_eq!(live.load(Ordering::Relaxed), 0, "the only one removed");

    let mut reader = map.pin();
    for n in 0..1000 {
        map.insert(n, Counted::new(n, &live));
        map.remove(n);
    }
    assert!(live.load(Ordering::Relaxed) > 500, "they can be read");
    for n in 0..1000 {
        reader.repin();
        map.insert(n, Counted::new(n, &live));
        map.remove(n);
    }
    assert!(live.load(Ordering::Relaxed) < 500, "{} are left", live.load(Ordering::Relaxed));
}

#[test]
fn a_full_map_takes_what_it_has_room_for_once_its_garbage_is_gone() {
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let limit = 3 << 20;
    let options = Options { memory_limit: Some(limit), pages: Pages::Small, ..Options::default() };
    let map = Map::<String, Counted>::with_options(&options).expect("there is room for none");
    let name = |n: u64| format!("{:016x}", mixed(n));
    let mut full = 0;
    let error = loop {
        match map.try_upsert(name(full), value(full)) {
            Ok(old) => assert!(old.is_none()),
            Err(rejected) => break rejected,
        }
        full += 1;
    };
    assert!(matches!(error.error, AllocError::Limit { .. }), "{error}");
    assert_eq!(error.value.number, full, "it comes back");
    drop(error);
    assert!(map.bytes() <= limit);
    // The key is present, and this is the answer even if there is no room.
    match map.try_insert(name(5), value(0)) {
        Err(TryInsertError::Occupied { present, .. }) => assert_eq!(present.number, 5),
        other => panic!("{other:?}"),
    }
    assert_eq!(map.get_or_insert(name(6), value(0)).number, 6);
    // Values are replaced and removed repeatedly: the removed ones make room for the new ones.
    map.remove(name(0)).expect("present");
    for n in 1..full {
        assert_eq!(map.insert(name(n), value(n + 1)).expect("present").number, n);
    }
    for n in 1..full {
        map.remove(name(n)).expect("present");
        assert!(map.insert(name(n), value(n)).is_none());
    }
    assert_eq!(map.len() as u64, full - 1);
    assert_eq!(map.clear() as u64, full - 1);
    map.flush();
    assert_eq!(live.load(Ordering::Relaxed), 0);
    // Keys of another size need other slabs.
    let long = |n: u64| format!("{:0100}", mixed(n));
    for n in 0..full / 8 {
        map.insert(long(n), value(n));
    }
    assert!(map.bytes() <= limit);
}

/// Entries and values that an owned view returns stay readable on another thread, after removal.
#[test]
fn an_owned_view_has_the_verbs_of_a_view() {
    let map: Map<String, String> = Map::new();
    let view = map.pin_owned();
    let name = |n: u64| format!("{n:03}");
    assert_eq!(view.extend((0..100).map(|n| (name(n), n.to_string()))), 100);
    assert_eq!(view.get_or_insert("100", "100".into()).as_str(), "100");
    let entries = [
        view.first(),
        view.last(),
        view.get_key_value("005"),
        view.lower_bound(Excluded("007")),
        view.upper_bound(Included("0099")),
        view.pop_first(),
        view.pop_last(),
    ];
    let removed = view.retain(|key, _| key.len() == 3 && *key < "050");
    assert_eq!((removed, view.remove_range("040"..)), (50, 10));
    assert_eq!((view.clear(), map.len()), (39, 0));
    map.flush();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let numbers = ["0", "100", "5", "8", "9", "0", "100"];
            for (entry, number) in entries.into_iter().zip(numbers) {
                let (key, value) = entry.expect("present");
                assert_eq!((key, value.as_str()), (format!("{number:0>3}"), number));
            }
        });
    });
}

/// A map at its limit, which has only garbage, in slabs of another size than that of [`long`] keys.
fn full_of_garbage() -> Map<String, ()> {
    let options =
        Options { memory_limit: Some(3 << 20), pages: Pages::Small, ..Options::default() };
    let map = Map::with_options(&options).expect("there is room for none");
    let mut full = 0;
    while map.try_upsert(format!("{:016x}", mixed(full)), ()).is_ok() {
        full += 1;
    }
    let view = map.pin();
    assert!((0..full).all(|n| view.remove(format!("{:016x}", mixed(n))).is_some()));
    drop(view);
    assert!(map.is_empty());
    map
}

fn long(n: u64) -> String {
    format!("{n:0100}")
}

#[test]
fn every_writer_tries_again_once_garbage_is_gone() {
    let map = full_of_garbage();
    assert!(map.pin().try_extend((0..500).map(|n| (long(n), ()))).is_err(), "so it is needed");
    assert_eq!(full_of_garbage().extend((0..500).map(|n| (long(n), ()))), 500);
    let set: Set<String> = full_of_garbage().into();
    assert!((0..500).all(|n| set.insert(long(n)) && set.remove(long(n)) && set.insert(long(n))));
    let map = full_of_garbage();
    let mut asked = 0;
    for n in 0..500 {
        let computed = map.compute(long(n), |_| {
            asked += 1;
            Operation::<_, ()>::Insert(())
        });
        assert!(matches!(computed, Compute::Inserted(_)));
    }
    assert!((501..510).contains(&asked), "{asked}");
}

#[test]
fn what_a_batch_could_not_take_comes_back_in_order() {
    let map = full_of_garbage();
    let entries = (0..100_000).map(|n| (long(n), ()));
    let error = map.try_extend(entries).expect_err("3 MiB are less");
    assert!(matches!(error.error, AllocError::Limit { .. }), "{error}");
    assert!(error.done > 2000 && map.len() == error.done);
    let rest: Vec<_> = error.rest.map(|(key, ())| key).collect();
    assert!(rest.into_iter().eq((error.done as u64..100_000).map(long)), "the others, in order");
    let too_long = [(long(0), ()), ("x".repeat(600_000), ()), (long(1), ())];
    let map: Map<String, ()> = Map::new();
    let error = map.try_extend(too_long).expect_err("it is too long");
    assert!(matches!(error.error, AllocError::KeyLength { .. }), "{error}");
    assert_eq!((error.done, error.rest.count(), map.len()), (1, 2, 1));
}

/// Makes a thread that pins, unpins, removes and flushes on command, while this thread is in a
/// call.
fn told(map: &'static Map<u64, Counted>) -> impl Fn(&str) {
    let (tell, told) = channel::<String>();
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        let mut view = None;
        for what in told {
            match &*what {
                "pin" => view = Some(map.pin()),
                "unpin" => drop(view.take()),
                "remove" => drop(map.remove(7)),
                _ => map.flush(),
            }
            done.send(()).expect("it waits");
        }
    });
    move |what| {
        for what in what.split(' ') {
            tell.send(what.into()).expect("it listens");
            is_done.recv().expect("it answers");
        }
    }
}

/// The map of [`what_is_lent_to_a_thread_that_ends_stays`].
static LENT: LazyLock<Map<u64, Counted>> = LazyLock::new(Map::new);

/// Whether the value that `remove_if` does not remove stays: it has the pin of the call.
fn keeps_a_value() -> bool {
    let live = Arc::new(AtomicI64::new(0));
    LENT.insert(7, Counted::new(7, &live));
    let (reader, writer) = (told(&LENT), told(&LENT));
    writer("pin unpin flush");
    reader("pin");
    writer("flush");
    let kept = LENT.remove_if(7, |_| {
        writer("remove flush");
        reader("unpin");
        writer("flush flush");
        false
    });
    let kept = kept.expect_err("it is kept");
    (0..10).for_each(|_| writer("flush"));
    live.load(Ordering::Relaxed) == 1 && kept.number == 7
}

/// Whether a value of a computation stays without the other one: each has a pin of its own.
fn keeps_one_of_two(keeps_old: bool) -> bool {
    let [of_old, of_new] = [(); 2].map(|()| Arc::new(AtomicI64::new(0)));
    LENT.insert(7, Counted::new(7, &of_old));
    let (reader, writer) = (told(&LENT), told(&LENT));
    writer("pin unpin flush");
    reader("pin");
    writer("flush");
    let computed = LENT.compute(7, |_| {
        writer("flush");
        reader("unpin");
        writer("flush flush");
        Operation::<_, ()>::Insert(Counted::new(8, &of_new))
    });
    let Compute::Updated { old, new } = computed else { return false };
    writer("remove flush");
    let (kept, live, number) = if keeps_old {
        drop(new);
        (old, of_old, 7)
    } else {
        drop(old);
        (new, of_new, 8)
    };
    (0..10).for_each(|_| writer("flush"));
    live.load(Ordering::Relaxed) == 1 && kept.number == number
}

/// Checks references that calls return on an ending thread, whose table of pins is gone. There each
/// pin is a registration of its own: only the pin under which a value was read keeps the value
/// valid.
#[test]
fn what_is_lent_to_a_thread_that_ends_stays() {
    static CALLS: AtomicI64 = AtomicI64::new(0);

    fn lend() {
        let stays = [keeps_a_value(), keeps_one_of_two(true), keeps_one_of_two(false)];
        CALLS.fetch_add(stays.map(i64::from).iter().sum(), Ordering::Relaxed);
    }

    struct AtTheEnd;
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            lend();
        }
    }
    std::thread_local! { static END: AtTheEnd = const { AtTheEnd }; }

    let late = std::thread::spawn(|| {
        END.with(|_| ()); // registered first, so it is dropped after all later thread-locals
        drop(LENT.get(1));
    });
    late.join().unwrap();
    let early = std::thread::spawn(|| {
        drop(LENT.get(1));
        END.with(|_| ());
    });
    early.join().unwrap();
    lend();
    assert_eq!(CALLS.load(Ordering::Relaxed), 9);
}
