//! Wrong calls, limits, and destructors.

use super::*;
use silvics::versions::{BatchError, Drawn, MAX_VERSION, PutError, WatermarkError};
use silvics::{AllocError, WordTree};

/// The bytes of a map with a limit, and more keys than it takes.
const LIMIT: usize = if cfg!(miri) { 1 << 17 } else { 1 << 20 };
const MANY: u64 = if cfg!(miri) { 10_000 } else { 100_000 };

/// Wrong numbers are errors that return the value, and change nothing.
#[test]
fn wrong_numbers_are_refused() {
    let map: VersionedMap<u64, String, Given> = map(Retain::All);
    let text = || "text".to_string();
    map.put(1, 10, text()).unwrap();
    assert_eq!(map.pin().get_latest(1).map(|found| found.number), Some(10));
    assert_eq!(map.snapshot().get(1), None, "10 is not published");
    map.publish(10).unwrap();
    assert_eq!(map.snapshot().get(1), Some(&text()));
    let late = PutError::TooLate { watermark: 10, value: Some(text()) };
    assert_eq!(map.put(1, 9, text()), Err(late));
    let large = PutError::TooLarge { number: MAX_VERSION + 1, value: Some(text()) };
    assert_eq!(map.put(1, MAX_VERSION + 1, text()), Err(large));
    assert_eq!(map.publish(9), Err(WatermarkError { number: 9, now: 10 }));
    assert_eq!(map.prune(11), Err(WatermarkError { number: 11, now: 10 }));
    let conflict = PutError::Conflict { latest: Some(10), value: Some(text()) };
    assert_eq!(map.put_if_latest(1, None, 12, text()), Err(conflict));
    map.delete(1, 20).unwrap();
    // The deletion is newer than the version that is to be put.
    let not_newer = PutError::NotNewer { newest: 20, value: Some(text()) };
    assert_eq!(map.put_if_latest(1, None, 15, text()), Err(not_newer));
    map.put_if_latest(1, None, 25, text()).unwrap();
    assert_eq!(map.pin().history(1).len(), 3);
    map.put(2, MAX_VERSION, text()).unwrap();
    assert_eq!(map.publish(u64::MAX), Err(WatermarkError { number: u64::MAX, now: 10 }));
    map.publish(MAX_VERSION).unwrap();
    let snapshot = map.snapshot();
    let value = snapshot.get(2);
    map.prune(MAX_VERSION).unwrap();
    map.flush();
    assert_eq!(value, Some(&text()));
}

/// A batch over the memory limit returns all its writes. None of it was visible.
#[test]
fn a_batch_over_the_limit_comes_back() {
    let live: Arc<AtomicI64> = Arc::default();
    let new = |n| Tracked::new(n, &live);
    let options = Options { memory_limit: Some(LIMIT), pages: Pages::Small, ..Options::default() };
    let map: VersionedMap<u64, Tracked> =
        VersionedMap::with_options(&options, Retain::default()).unwrap();
    for key in 0..100 {
        map.put(2 * key, new(key)).unwrap();
    }
    for _ in 0..3 {
        let before = map.snapshot();
        let mut batch = map.batch();
        for key in (0..MANY).rev() {
            batch.put(key, new(key));
        }
        let error = batch.commit().unwrap_err();
        assert!(matches!(error, BatchError::Alloc(AllocError::Limit { .. })), "{error:?}");
        assert_eq!(batch.len() as u64, MANY);
        for snapshot in [before, map.snapshot()] {
            let found = snapshot.iter().map(|(key, value)| (key, value.number()));
            assert!(found.eq((0..100).map(|key| (2 * key, key))));
        }
        assert_eq!(map.key_count(), 100, "versions that were taken back have left the index");
    }
    let mut map = map;
    map.settle_memory();
    assert_eq!(live.load(Ordering::Relaxed), 100);
    // A batch that fits takes effect.
    let mut batch = map.batch();
    (0..100).for_each(|key| batch.put(key, new(0)));
    batch.commit().unwrap();
    assert_eq!(map.snapshot().iter().count(), 150);
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// A map at its limit returns the value, and takes versions again when others have been dropped.
#[test]
fn a_map_at_its_limit_returns_values() {
    let live: Arc<AtomicI64> = Arc::default();
    let new = |n| Tracked::new(n, &live);
    let options = Options { memory_limit: Some(LIMIT), pages: Pages::Small, ..Options::default() };
    let map: VersionedMap<u64, Tracked> =
        VersionedMap::with_options(&options, Retain::All).unwrap();
    for _ in 0..3 {
        let (mut written, key) = (0, 5);
        let refused = loop {
            match map.put(key, new(written)) {
                Ok(_) => written += 1,
                Err(refused) => break refused,
            }
        };
        assert!(written > MANY / 20, "{written} versions");
        assert!(matches!(refused, PutError::Alloc { error: AllocError::Limit { .. }, .. }));
        assert_eq!(refused.into_value().map(|value| value.number()), Some(written));
        assert_eq!(map.pin().get_latest(key).map(|found| found.value.number()), Some(written - 1));
        let versions = map.pin().history(key).len();
        assert_eq!(map.prune(map.now()), Ok(versions - 1));
        assert_eq!(map.pin().history(key).len(), 1);
        map.flush();
    }
    drop(map);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Values may have destructors that write to the map.
#[test]
fn destructors_may_write() {
    struct Writes(Option<Arc<VersionedMap<u64, Writes>>>, u64);
    impl Drop for Writes {
        fn drop(&mut self) {
            if let Some(map) = self.0.take() {
                let _ = map.put(self.1 + 100, Writes(None, 0));
                assert!(!self.1.is_multiple_of(7), "a destructor panics");
            }
        }
    }
    let map = Arc::new(map::<u64, Writes, Drawn>(Retain::Snapshots));
    for key in 0..50 {
        map.put(key, Writes(Some(Arc::clone(&map)), key)).unwrap();
    }
    for key in 0..50 {
        map.delete(key).unwrap();
    }
    for _ in 0..4 {
        map.flush();
    }
    let found = map.snapshot().iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert!(found.into_iter().eq(100..150));
}

/// Values of large alignment lie at their alignment, in pools and in heaps; and values of no size.
#[test]
fn values_have_their_alignment() {
    #[repr(align(64))]
    struct Aligned(u64);
    fn check<P: silvics::Placement>() {
        let map: VersionedMap<u64, Aligned, Drawn, WordTree<u64, P>> =
            VersionedMap::with_options(&apart(), Retain::Snapshots).unwrap();
        let before = map.snapshot();
        for key in (0..200).chain(0..100) {
            map.put(key, Aligned(key)).unwrap();
        }
        let now = map.snapshot();
        for (key, value) in &now {
            assert_eq!((value.0, std::ptr::from_ref(value).addr() % 64), (key, 0));
        }
        assert_eq!((now.iter().count(), before.iter().count()), (200, 0));
    }
    check::<silvics::Pooled>();
    check::<silvics::Shared>();
    let map: VersionedMap<u64, (), Drawn> = map(Retain::Snapshots);
    (0..10).for_each(|key| drop(map.put(key / 2, ())));
    assert_eq!(map.snapshot().iter().count(), 5);
}

/// A map with a limit whose values write to it, in the middle of batches, goes on.
#[test]
fn destructors_that_write_at_the_limit() {
    /// The bytes fill the map.
    struct Writes(std::sync::Weak<VersionedMap<u64, Writes>>, u64, [u8; 800]);
    impl Drop for Writes {
        fn drop(&mut self) {
            if let Some(map) = self.0.upgrade() {
                let _ = map.put(self.1, Writes(std::sync::Weak::new(), 0, self.2));
            }
        }
    }
    let options =
        Options { memory_limit: Some(1 << 18), pages: Pages::Small, ..Options::default() };
    let map = VersionedMap::with_options(&options, Retain::Snapshots).unwrap();
    let map: Arc<VersionedMap<u64, Writes>> = Arc::new(map);
    let mut refused = 0;
    for round in 0..work(400) {
        let mut batch = map.batch();
        for key in 0..100 + round % 50 {
            batch.put(key * 7 % 200, Writes(Arc::downgrade(&map), key, [0; 800]));
        }
        let held = (round % 3 > 0).then(|| map.snapshot());
        refused += u64::from(batch.commit().is_err());
        drop(held);
    }
    assert!(map.bytes() <= 1 << 18);
    assert!(cfg!(miri) || refused > 0 && refused < work(400), "{refused} batches");
}
