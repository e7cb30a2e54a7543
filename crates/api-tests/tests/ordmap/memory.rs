//! The addresses and the memory of keys and values.

use super::*;
use silvics::map::TryInsertError;
use silvics::ord::Natural;
use std::ptr::from_ref;

/// A key and a value keep their addresses until they are removed, and each is dropped once.
#[test]
fn keys_and_values_keep_their_addresses() {
    let live = Arc::default();
    let order = |a: &Tracked, b: &Tracked| a.number().cmp(&b.number());
    let map: Map<Tracked, Tracked, _, Adaptive> = map(order);
    let len = work(20_000);
    let new = |n| Tracked::new(n, &live);
    map.insert(new(7), new(7));
    let view = map.pin();
    let (key, value) = view.get_key_value(&new(7)).expect("present");
    for n in (0..len).filter(|n| *n != 7) {
        view.insert(new(n), new(n));
    }
    assert!(view.insert(new(8), new(0)).is_some_and(|old| old.number() == 8));
    let (key_now, value_now) = view.get_key_value(&new(7)).expect("present");
    assert_eq!(from_ref(&*key), from_ref(&*key_now));
    assert_eq!(from_ref(&*value), from_ref(&*value_now));
    // Removed, they stay readable under the pin.
    assert!(view.remove(&new(7)).is_some());
    assert_eq!((key.number(), value.number()), (7, 7));
    drop(view);
    let mut map = map;
    map.settle();
    assert_eq!(live.load(Memory::Relaxed), 2 * (len as i64 - 1));
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Maps that gain and lose keys hold a bounded number of removed ones.
#[test]
fn removed_keys_are_dropped() {
    let live: Arc<AtomicI64> = Arc::default();
    let order = |a: &Tracked, b: &Tracked| a.number().cmp(&b.number());
    let map: Map<Tracked, Tracked, _> = map(order);
    let rng = Rng::new(1);
    let mut most = 0;
    for _ in 0..work(200_000) {
        let number = rng.below(100);
        map.insert(Tracked::new(number, &live), Tracked::new(number, &live));
        map.remove(&Tracked::new(rng.below(100), &live));
        most = most.max(live.load(Memory::Relaxed));
    }
    // 200 in the map, and some batches of removed ones.
    assert!(most < 2000, "{most} objects");
    map.flush();
    assert!(live.load(Memory::Relaxed) <= 200, "{:?}", live.load(Memory::Relaxed));
}

/// A map at its limit refuses an entry and returns it; it can be emptied, and takes entries again.
#[test]
fn a_map_at_its_limit_returns_entries() {
    let live = Arc::default();
    let new = |n| Tracked::new(n, &live);
    let options =
        Options { memory_limit: Some(1 << 20), pages: Pages::Small, ..Options::default() };
    let order = |a: &Tracked, b: &Tracked| a.number().cmp(&b.number());
    let map: Map<Tracked, Tracked, _> = OrdMap::with_options(order, &options).unwrap();
    for _ in 0..3 {
        let mut len = 0;
        let refused = loop {
            match map.try_upsert(new(len), new(len + 1)) {
                Ok(old) => assert!(old.is_none()),
                Err(refused) => break refused,
            }
            len += 1;
        };
        assert!(len > 1000 && map.bytes() <= 1 << 20, "{len} entries, {} bytes", map.bytes());
        let (key, value) = refused.value;
        assert_eq!((key.number(), value.number()), (len, len + 1));
        match map.try_insert(key, value) {
            Err(TryInsertError::Alloc(refused)) => assert_eq!(refused.value.0.number(), len),
            other => panic!("{other:?}"),
        }
        // A present key needs no memory.
        match map.try_insert(new(0), new(5)) {
            Err(TryInsertError::Occupied { present, value }) => {
                assert_eq!((present.number(), value.1.number()), (1, 5));
            }
            other => panic!("{other:?}"),
        }
        for n in 0..len {
            assert!(map.remove(&new(n)).is_some_and(|value| value.number() == n + 1), "{n}");
        }
        assert!(map.is_empty());
    }
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Integers in their natural order take no memory apart from the nodes, and others a slot each. A
/// dropped map has returned all bytes to its budget.
#[test]
fn bytes_return_to_the_budget() {
    let budget = Arc::new(silvics::Budget::new(None));
    let options =
        || Options { budget: Some(Arc::clone(&budget)), pages: Pages::Small, ..Options::default() };
    let numbers: Map<u64, u64, _> = OrdMap::with_options(Natural, &options()).unwrap();
    for n in 0..work(50_000) {
        numbers.insert(n, n);
    }
    assert!(numbers.pool_stats().iter().all(|pool| pool.kind != "value"));
    let memory = numbers.memory();
    assert_eq!(memory.bytes, budget.held());
    assert!(memory.index >= 16 * work(50_000) as usize && memory.values == 0);
    let texts: Map<String, String, _> = OrdMap::with_options(Natural, &options()).unwrap();
    for n in 0..work(5000) {
        texts.insert(n.to_string(), n.to_string());
        texts.remove(&(n / 2).to_string());
    }
    assert!(texts.memory().values >= texts.len() * size_of::<String>());
    let kinds: Vec<_> = texts.pool_stats().iter().map(|pool| pool.kind).collect();
    assert!(kinds.ends_with(&["key", "value"]), "{kinds:?}");
    numbers.clear();
    numbers.shrink();
    drop((numbers, texts));
    assert_eq!(budget.held(), 0);
}

/// A small map takes little more memory than its entries. Their copies had all sizes once, each of
/// which keeps free objects: then 100 integers took 48 KB, and 1000 took 103.
#[test]
#[cfg_attr(miri, ignore = "there, memory is another one")]
fn small_maps_are_small() {
    for (len, most) in [(10, 4 << 10), (100, 10 << 10), (1000, 50 << 10)] {
        let integers: Map<u64, u64, _, Adaptive> = map(Natural);
        let texts: Map<String, String, _, Adaptive> = map(Natural);
        for n in 0..len {
            let key = n * 1_000_003 % 1_299_709;
            integers.insert(key, n);
            texts.insert(key.to_string(), n.to_string());
        }
        assert!(integers.bytes() <= most, "{len} integers: {} bytes", integers.bytes());
        assert!(len > 100 || texts.bytes() <= 2 * most, "{len} strings: {} bytes", texts.bytes());
    }
}
