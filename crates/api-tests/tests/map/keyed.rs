//! Values that contain their keys.

use silvics::key::{Encoder, FormRef};
use silvics::map::{Keyed, KeyedSet};
use silvics::{AllocError, AsKey, Check, Map};
use silvics_api_tests::Counted;
use silvics_sync::atomic::{AtomicI64, Ordering};
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

struct Version {
    key: Vec<u8>,
    sequence: u64,
    value: Counted,
}

impl Keyed for Version {
    type Key = (Vec<u8>, Reverse<u64>);

    fn key(&self) -> impl AsKey<Self::Key> {
        (&self.key, Reverse(self.sequence))
    }
}

fn version(key: &[u8], sequence: u64, live: &Arc<AtomicI64>) -> Version {
    Version { key: key.to_vec(), sequence, value: Counted::new(sequence, live) }
}

#[test]
fn values_are_found_under_the_keys_that_they_contain() {
    let live = Arc::new(AtomicI64::new(0));
    let mut set: KeyedSet<Arc<Version>> = KeyedSet::new();
    for sequence in 0..100 {
        assert!(set.insert_keyed(Arc::new(version(b"a\0", sequence, &live))).is_none());
    }
    assert!(set.pin().values().map(|entry| entry.sequence).eq((0..100).rev()));
    {
        let old = set.insert_keyed(Arc::new(version(b"a\0", 7, &live))).unwrap();
        assert_eq!((old.sequence, set.len()), (7, 100));
        let view = set.pin();
        assert_eq!(view.insert_keyed(Arc::new(version(b"a\0", 8, &live))).unwrap().sequence, 8);
        assert_eq!(view.get((b"a\0", Reverse(8))).unwrap().value.number, 8);
    }
    assert_eq!(set.check(), Ok(100));
    set.clear();
    set.settle();
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn a_value_that_does_not_fit_comes_back() {
    let live = Arc::new(AtomicI64::new(0));
    let set: KeyedSet<Version> = Map::builder().memory_limit(1 << 20).build().unwrap();
    let key = [7; 1000];
    let rejected = (0..).find_map(|n| set.try_upsert_keyed(version(&key, n, &live)).err()).unwrap();
    assert!(matches!(rejected.error, AllocError::Limit { .. }));
    assert_eq!(rejected.value.value.number, rejected.value.sequence);
    let long = set.try_upsert_keyed(version(&vec![1; 1 << 20], 0, &live)).map(drop).unwrap_err();
    assert!(matches!(long.error, AllocError::KeyLength { .. } | AllocError::Limit { .. }));
    drop((rejected, long, set));
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A value whose key panics at a chosen place.
struct Panics {
    at: usize,
    _value: Counted,
}

/// The borrowed key of [`Panics`].
struct PanicsKey<'a>(&'a Panics);

impl AsKey<u64> for PanicsKey<'_> {
    fn with_form<R>(&self, then: impl FnOnce(FormRef<'_, u64>) -> R) -> R {
        assert_ne!(self.0.at, 1, "before the insertion");
        let done = then(self.0.at as u64);
        assert_ne!(self.0.at, 2, "behind the insertion");
        done
    }
    fn write(&self, to: &mut Encoder) {
        (self.0.at as u64).write(to);
    }
}

impl Drop for PanicsKey<'_> {
    fn drop(&mut self) {
        assert_ne!(self.0.at, 3, "when the key is dropped");
    }
}

impl Keyed for Panics {
    type Key = u64;

    fn key(&self) -> impl AsKey<u64> {
        assert_ne!(self.at, 0, "in the method");
        PanicsKey(self)
    }
}

#[test]
fn a_key_that_panics_leaves_the_map_whole() {
    let live = Arc::new(AtomicI64::new(0));
    let mut set: KeyedSet<Panics> = KeyedSet::new();
    for at in 0..5 {
        let value = Panics { at, _value: Counted::new(1, &live) };
        let inserted = catch_unwind(AssertUnwindSafe(|| set.insert_keyed(value).is_none()));
        assert_eq!(inserted.is_ok(), at == 4);
    }
    let held: Vec<u64> = set.pin().keys().collect();
    assert_eq!(held, [2, 3, 4], "those that were inserted before the panic");
    assert_eq!(live.load(Ordering::Relaxed), 3);
    assert_eq!(set.check(), Ok(3));
    drop(set);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}
