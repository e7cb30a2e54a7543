//! Code of users that runs inside a call of a map: it calls the same map, or it lies. Panics of
//! such code are in `failures.rs` and `keyed.rs`. CONTRIBUTING lists it all.

use crate::Counted;
use silvics::key::{Decoder, Encoder, FormRef};
use silvics::map::Operation;
use silvics::{AsKey, Check, Key, Map};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use silvics_testkit::make::apart;
use std::sync::Arc;

type Numbers = Map<u64, u64>;

/// Calls that write at both ends of a map, and beside `key`.
fn call(map: &Numbers, key: u64) {
    map.insert(key + 1, 1);
    map.remove(key + 1);
    map.insert(key, 7);
    map.insert(1 << 40, 1);
    assert_eq!(map.pop_last().map(|(key, _)| key), Some(1 << 40));
    assert!(map.pin().range(..=key).count() > 0);
}

/// A key that calls a map while it is encoded, before and after the call that it is for.
struct Calling<'m>(&'m Numbers, u64);

impl AsKey<u64> for Calling<'_> {
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, u64>) -> R) -> R {
        call(self.0, self.1);
        let done = then(self.1);
        call(self.0, self.1);
        done
    }
    fn write(&self, _: &mut Encoder) {}
}

/// No lock is held while such code runs, so it does not wait for itself. A call decides after the
/// calls that its closure made.
#[test]
fn the_code_of_users_may_call_the_map() {
    let map = Numbers::with_options(&apart()).unwrap();
    let view = map.pin();
    for key in [5, 5, 6] {
        view.compute::<()>(key, |_| {
            call(&map, key);
            Operation::Insert(8)
        });
        assert_eq!(view.get(key).as_deref(), Some(&8));
    }
    view.update(5, |value| {
        call(&map, 9);
        value + 1
    });
    assert_eq!(view.get(5).as_deref(), Some(&9));
    view.get_or_insert_with(20, || {
        call(&map, 20);
        3
    });
    assert_eq!(view.get(20).as_deref(), Some(&7), "the closure's own insert came first");
    drop(view.remove_if(20, |_| {
        call(&map, 21);
        true
    }));
    assert!(!view.contains_key(20) && view.contains_key(21));
    view.retain(|key, _| {
        call(&map, 30);
        key % 2 == 1 || *key == 30
    });
    view.extend((40..140).inspect(|key| call(&map, *key)).map(|key| (key, 2)));
    assert!((40..140).all(|key| view.contains_key(key)));
    view.insert(Calling(&map, 200), 4);
    assert_eq!(view.get(Calling(&map, 200)).as_deref(), Some(&7), "the last call was the key's");
    view.remove(Calling(&map, 201));
    assert!(view.contains_key(201));
    drop(view);
    let mut map = map;
    map.check().unwrap();
}

/// A value whose comparison and whose copy call the map that it is in.
struct Guest(Arc<Map<u64, Self>>, u64);

impl Guest {
    fn call(&self) {
        self.0.insert(self.1 + 100, Self(Arc::clone(&self.0), self.1 + 100));
        self.0.remove(self.1 + 100);
    }
}

impl PartialEq for Guest {
    fn eq(&self, other: &Self) -> bool {
        self.call();
        self.1 == other.1
    }
}

impl Clone for Guest {
    fn clone(&self) -> Self {
        self.call();
        Self(Arc::clone(&self.0), self.1)
    }
}

#[test]
fn values_may_call_the_map_when_they_are_compared_and_copied() {
    let map: Arc<Map<u64, Guest>> = Arc::new(Map::with_options(&apart()).unwrap());
    let guest = |number| Guest(Arc::clone(&map), number);
    for number in 0..100 {
        map.insert(number, guest(number));
    }
    let view = map.pin();
    let exchanged = view.compare_exchange(3, Some(&guest(3)), Some(guest(4)));
    assert!(exchanged.is_ok());
    drop(exchanged);
    let numbers = Map::range_owned(&map, ..50).map(|(key, guest)| (key, guest.1));
    assert!(numbers.eq((0..50).map(|key| (key, if key == 3 { 4 } else { key }))));
    drop(view);
    map.clear(); // the values hold the map
    map.flush();
}

/// A key that is another one each time it is encoded, and that is read as yet another one.
#[derive(Clone, Debug)]
struct Fickle(Arc<AtomicU64>);

impl PartialEq for Fickle {
    fn eq(&self, _: &Self) -> bool {
        self.next().is_multiple_of(2)
    }
}

impl Fickle {
    fn next(&self) -> u64 {
        let seed = self.0.fetch_add(1, Ordering::Relaxed);
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54
    }
}

impl AsKey<Self> for Fickle {
    fn with_form<R>(&self, then: impl FnOnce(u64) -> R) -> R {
        then(self.next())
    }
    fn form(&self) -> Option<u64> {
        Some(self.next())
    }
    fn write(&self, to: &mut Encoder) {
        to.push(&self.next().to_be_bytes());
    }
}

impl Key for Fickle {
    type Form = u64;
    type Ref<'a> = Self;
    type Part<'a> = Self;

    fn from_form(form: FormRef<'_, Self>) -> Self::Ref<'_> {
        Self(Arc::new(AtomicU64::new(form)))
    }
    fn read<'a>(_: &mut Decoder<'a>) -> Self::Part<'a> {
        Self(Arc::default())
    }
    fn into_part(key: Self::Ref<'_>) -> Self::Part<'_> {
        key
    }
    fn part_to_owned(part: Self::Part<'_>) -> Self {
        part
    }
}

#[test]
fn keys_that_lie_find_wrong_entries_and_lose_none() {
    let live = Arc::new(AtomicI64::new(0));
    let value = || Counted::new(1, &live);
    let map: Arc<Map<Fickle, Counted>> = Arc::new(Map::with_options(&apart()).unwrap());
    let key = Fickle(Arc::new(AtomicU64::new(1)));
    let view = map.pin();
    for round in 0..2000 {
        match round % 8 {
            0..4 => drop(view.insert(&key, value())),
            4 => drop(view.remove(&key)),
            5 => drop(view.compute::<()>(&key, |_| Operation::Insert(value()))),
            6 => drop(view.insert_many((0..9).map(|_| (key.clone(), value())))),
            _ => drop(view.remove_range(&key..&key)),
        }
        let seen = view.range(&key..).take(5).count();
        assert!(seen <= 5);
        let mut found = [None, None];
        view.get_many(&[&key, &key], &mut found);
    }
    let mut cursor = map.cursor();
    assert!(cursor.seek_to_first());
    assert!((0..2000).all(|_| {
        cursor.seek(&key);
        cursor.next() || cursor.seek_to_first()
    }));
    drop(cursor);
    drop(view);
    let mut map = Arc::into_inner(map).unwrap();
    let entries = map.len();
    map.settle();
    assert_eq!(map.check(), Ok(entries));
    assert_eq!(live.load(Ordering::Relaxed), entries as i64);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}
