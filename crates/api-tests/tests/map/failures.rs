//! Panics of the user's code, the memory limit, and keys that a map refuses lose and leak no value.

use crate::Counted;
use silvics::map::{CompareExchangeError, Operation, TryInsertError};
use silvics::{AllocError, Check, Map, Options, Pages};
use silvics_sync::atomic::{AtomicBool, AtomicI64, Ordering};
use silvics_testkit::make::apart;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Whether a call panics, whatever it returns.
fn panics<R>(call: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

#[test]
fn panics_of_the_users_code_lose_nothing() {
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let mut map: Map<u64, Counted> = Map::with_options(&apart()).unwrap();
    for n in 0..100 {
        map.insert(n, value(n));
    }
    let view = map.pin();
    assert!(panics(|| view.compute::<()>(1, |_| panic!("compute"))));
    assert!(panics(|| view.compute::<()>(500, |_| panic!("compute, absent"))));
    assert!(panics(|| view.update(2, |_| panic!("update"))));
    assert!(panics(|| view.get_or_insert_with(501, || panic!("make"))));
    assert!(panics(|| view.remove_if(3, |_| panic!("condition"))));
    let some = (0..).map(|n| if n == 70 { panic!("iterator") } else { (1000 + n, value(n)) });
    assert!(panics(|| view.extend(some)));
    assert_eq!(view.range(1000..).count(), 70, "what came before is in");
    assert_eq!(view.remove_range(1000..), 70);
    let mut asked = 0;
    let keep = |_: &u64, _: &Counted| {
        asked += 1;
        assert!(asked <= 10, "retain");
        asked % 2 == 0
    };
    assert!(panics(|| view.retain(keep)));
    assert_eq!(view.len(), 95, "what was decided is done");
    drop(view);
    map.settle();
    assert_eq!(map.check(), Ok(95));
    assert_eq!(live.load(Ordering::Relaxed), 95);
}

#[test]
fn panics_of_destructors_and_comparisons_lose_nothing() {
    struct Rude(Arc<AtomicI64>, u64);
    impl Drop for Rude {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
            assert!(!self.1.is_multiple_of(3), "destructor");
        }
    }
    impl PartialEq for Rude {
        fn eq(&self, _: &Self) -> bool {
            panic!("comparison")
        }
    }
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| {
        live.fetch_add(1, Ordering::Relaxed);
        Rude(Arc::clone(&live), n)
    };
    let mut map: Map<u64, Rude> = Map::with_options(&apart()).unwrap();
    for n in 0..1000 {
        map.insert(n % 200, value(n));
    }
    assert!(panics(|| map.pin().compare_exchange(1, Some(&value(1)), Some(value(2))).is_ok()));
    map.settle();
    assert_eq!(map.check(), Ok(200));
    assert_eq!(live.load(Ordering::Relaxed), 200);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A key that panics where it is encoded, before or after the call that it is for.
#[test]
fn panics_of_encodings_lose_nothing() {
    use silvics::AsKey;
    use silvics::key::{Encoder, FormRef};
    struct Early;
    struct Late(u64);
    impl AsKey<u64> for Early {
        fn with_form<R>(&self, _: impl FnOnce(FormRef<'_, u64>) -> R) -> R {
            panic!("early")
        }
        fn write(&self, _: &mut Encoder) {}
    }
    impl AsKey<u64> for Late {
        fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, u64>) -> R) -> R {
            let _done = then(self.0);
            panic!("late")
        }
        fn write(&self, _: &mut Encoder) {}
    }
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let mut map: Map<u64, Counted> = Map::with_options(&apart()).unwrap();
    let view = map.pin();
    assert!(panics(|| view.insert(Early, value(1))));
    assert!(panics(|| view.extend([(Early, value(1))])));
    assert!(view.is_empty());
    assert!(panics(|| view.insert(Late(1), value(1))));
    assert!(panics(|| view.try_insert(Late(2), value(2))));
    assert!(panics(|| view.insert(Late(2), value(3))));
    assert!(panics(|| view.remove(Late(1))));
    assert!(panics(|| view.compute::<()>(Late(4), |_| Operation::Insert(value(4)))));
    assert!(panics(|| view.compare_exchange(Late(2), Some(&value(3)), Some(value(5)))));
    let found: Vec<_> = view.iter().map(|(key, value)| (key, value.number)).collect();
    assert_eq!(found, [(2, 5), (4, 4)]);
    drop(view);
    map.settle();
    assert_eq!(live.load(Ordering::Relaxed), 2);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn at_the_limit_values_come_back() {
    let live = Arc::new(AtomicI64::new(0));
    let value = |n| Counted::new(n, &live);
    let limit = 4 << 20;
    let options = Options { memory_limit: Some(limit), pages: Pages::Small, ..apart() };
    let map = Map::<u64, Counted>::with_options(&options).unwrap();
    let entries = (0..).map(|n: u64| (n << 20, value(n)));
    let error = map.try_extend(entries).expect_err("there is a limit");
    assert!(matches!(error.error, AllocError::Limit { .. }), "{error}");
    assert_eq!(error.to_string().split(' ').next(), Some(&*error.done.to_string()));
    assert!(map.bytes() <= limit && map.bytes() > limit / 2, "{}", map.bytes());
    assert_eq!(map.len(), error.done);
    let (next, refused) = { error.rest }.next().expect("the refused one");
    assert_eq!((next, refused.number), ((map.len() as u64) << 20, map.len() as u64));
    drop(refused);

    // One at a time, until there is room for neither value nor node.
    let view = map.pin();
    let mut last = 0;
    while let Ok(None) = view.try_upsert(1 << 60 | last << 20, value(last)) {
        last += 1;
    }
    let refused = |number: u64| assert_eq!(number, last);
    let key = 1 << 60 | last << 20;
    refused(view.try_upsert(key, value(last)).expect_err("full").value.number);
    match view.try_insert(key, value(last)) {
        Err(TryInsertError::Alloc(rejected)) => refused(rejected.value.number),
        other => panic!("{other:?}"),
    }
    let rejected = view.try_compute(key, |_| Operation::Insert::<_, ()>(value(last)));
    refused(rejected.expect_err("full").value.expect("was to be inserted").number);
    match view.compare_exchange(key, None, Some(value(last))) {
        Err(CompareExchangeError::Alloc(rejected)) => refused(rejected.value.unwrap().number),
        other => panic!("{other:?}"),
    }
    assert!(panics(|| view.insert(key, value(last))), "a sentence, and an end");
    assert!(!view.contains_key(key));
    assert_eq!(live.load(Ordering::Relaxed), view.len() as i64);
    view.remove(0).expect("present");
    drop(view);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A method of a map at its limit drops the value of its first attempt before the second. If that
/// panics, no pin is left behind: removed values are dropped as before.
#[test]
fn a_destructor_that_panics_between_two_attempts_leaves_no_pin() {
    static ARMED: AtomicBool = AtomicBool::new(false);
    struct Rude(bool, #[expect(dead_code, reason = "counted")] Counted);
    impl Drop for Rude {
        fn drop(&mut self) {
            assert!(!(self.0 && ARMED.load(Ordering::Relaxed)), "destructor");
        }
    }
    let live = Arc::new(AtomicI64::new(0));
    let value = |is_rude| Rude(is_rude, Counted::new(1, &live));
    let options = Options { memory_limit: Some(1 << 20), pages: Pages::Small, ..apart() };
    let mut map = Map::<u64, Rude>::with_options(&options).unwrap();
    drop(map.try_extend((0..).map(|n: u64| (n, value(false)))).expect_err("there is a limit"));
    let held = map.pin(); // keeps the old values, so that room runs out
    ARMED.store(true, Ordering::Relaxed);
    let update = |key| panics(|| map.try_update(key, |_| value(true)).is_ok());
    assert!((0..held.len() as u64).any(update), "some update finds no room");
    ARMED.store(false, Ordering::Relaxed);
    drop(held);
    assert!(map.clear() > 0);
    map.settle();
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn a_key_that_is_too_long_is_refused() {
    let map: Map<String, String> = Map::new();
    let key = "x".repeat(600_000);
    let view = map.pin();
    let rejected = view.try_upsert(&key, "value".to_string()).expect_err("too long");
    assert!(matches!(rejected.error, AllocError::KeyLength { .. }));
    assert_eq!(rejected.value, "value");
    let error =
        map.try_extend([("a", "1".to_string()), (&key, "2".to_string()), ("b", "3".to_string())]);
    let error = error.expect_err("too long");
    assert_eq!(error.done, 1);
    assert_eq!(error.rest.map(|(_, value)| value).collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(map.len(), 1);
    assert_eq!(view.get(&key), None);
}

/// A stand-in for a string that is not always UTF-8.
struct Latin(&'static [u8]);

impl silvics::AsKey<String> for Latin {
    fn with_form<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.0)
    }
    fn write(&self, to: &mut silvics::key::Encoder) {
        to.push_string(self.0);
    }
}

#[test]
fn what_is_no_text_does_not_come_among_strings() {
    let live = Arc::new(AtomicI64::new(0));
    let value = || Counted::new(1, &live);
    let (text, other) = (Latin(b"text"), Latin(b"na\xefve"));
    let mut map: Map<String, Counted> = Map::with_options(&apart()).unwrap();
    map.insert(&text, value());
    assert!(panics(|| map.insert(&other, value()).map(drop)));
    assert!(panics(|| map.try_insert(&other, value()).map(drop).is_ok()));
    assert!(panics(|| map.pin().insert_many([(&text, value()), (&other, value())]).len()));
    assert!(panics(|| map.extend([(&other, value())])));
    assert!(panics(|| drop(map.compute(&other, |_| Operation::<_, ()>::Insert(value())))));
    assert!(panics(|| map.get_or_insert_with(&other, value).number));
    assert!(panics(|| drop(map.pin().compare_exchange(&other, None, Some(value())))));
    let sorted = || [(&other, value()), (&text, value())];
    assert!(panics(|| Map::<String, Counted>::builder().from_sorted(sorted()).is_ok()));
    assert!(!map.contains_key(&other) && map.remove(&other).is_none());
    let keys: Vec<String> = map.pin().keys().map(String::from).collect();
    assert_eq!(keys, ["text"]);
    map.check().unwrap();
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A value whose drop panics if the flag is set.
struct Fuse(Counted, bool);

impl Drop for Fuse {
    fn drop(&mut self) {
        assert!(!self.1 || std::thread::panicking(), "number {}", self.0.number);
    }
}

/// Another value of the same key comes later, and the drop of the first one panics. As elsewhere,
/// the map goes on, and each value is dropped once.
#[test]
fn a_destructor_that_panics_while_a_map_is_collected_loses_nothing() {
    let live = Arc::new(AtomicI64::new(0));
    for fused in 0..4 {
        let entries = (0..4).map(|n| (n % 2, Fuse(Counted::new(n, &live), n == fused)));
        let map: Map<u64, Fuse> = entries.collect();
        assert_eq!((map.len(), live.load(Ordering::Relaxed)), (2, 2));
        assert!(map.pin().values().map(|value| value.0.number).eq(2..4));
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0, "{fused}");
    }
}
