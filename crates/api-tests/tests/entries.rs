//! Sets of entries that have their keys in memory of their own.

use silvics::blocks::{Entry, EntryKey, EntrySet};
use silvics::{AllocError, Options};
use silvics_api_tests::mixed;
use silvics_sync::atomic::{AtomicBool, Ordering};
use silvics_testkit::faulty::{Faulty, Plan, under};
use silvics_testkit::make::apart;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::thread::ScopedJoinHandle;

struct Record {
    key: Vec<u8>,
    number: u64,
}

impl Record {
    fn new(key: Vec<u8>, number: u64) -> Self {
        Self { key, number }
    }

    fn key(&self) -> (Vec<u8>, u64) {
        (self.key.clone(), self.number)
    }
}

/// The address of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handle(usize);

impl Handle {
    fn of(record: &Record) -> Self {
        Self(std::ptr::from_ref(record).expose_provenance())
    }

    fn record<'g>(self) -> &'g Record {
        // SAFETY: each test drops its records after its sets.
        unsafe { &*std::ptr::with_exposed_provenance(self.0) }
    }
}

// SAFETY: records do not change, and are dropped after the sets that have them.
unsafe impl Entry for Handle {
    fn into_word(self) -> u64 {
        self.0 as u64
    }
    unsafe fn from_word(word: u64) -> Self {
        Self(word as usize)
    }
    unsafe fn key<'g>(self) -> EntryKey<'g> {
        let record = self.record();
        EntryKey::new(&record.key, record.number)
    }
}

/// Keys that differ in their first bytes, far from them, in their lengths, or in their numbers.
fn records() -> Vec<Record> {
    let starts = [vec![], vec![0], vec![7; 31], vec![7; 600], b"a key".to_vec()];
    let record = |n: u64| {
        let mut key = starts[n as usize % starts.len()].clone();
        let drawn = mixed(n) >> 16;
        key.extend(
            (0..drawn % 4).map(|at| [0, 1, 0x80, 0xFF][(drawn >> (4 + 2 * at)) as usize % 4]),
        );
        let number = [0, 1, u64::MAX, drawn >> 16 & 7][(drawn >> 12) as usize % 4];
        Record::new(key, number)
    };
    (0..8000).map(record).collect()
}

#[test]
fn sets_agree_with_a_map() {
    let records = records();
    let mut set: EntrySet<Handle> = EntrySet::with_options(&Options::default()).unwrap();
    let mut model: BTreeMap<(Vec<u8>, u64), Handle> = BTreeMap::new();
    for (n, record) in records.iter().enumerate() {
        let (guard, handle) = (set.domain().pin(), Handle::of(record));
        let present = model.get(&record.key()).copied();
        assert_eq!(set.insert(handle, &guard), Ok(present));
        model.entry(record.key()).or_insert(handle);
        let key = EntryKey::new(&record.key, record.number);
        assert_eq!(set.get(key, &guard), model.get(&record.key()).copied());
        let from_here: Vec<_> = set.range(key.., &guard).take(3).collect();
        assert_eq!(
            from_here,
            model.range(record.key()..).map(|(_, h)| *h).take(3).collect::<Vec<_>>()
        );
        let before = set.range_rev((Unbounded, Excluded(key)), &guard).next();
        assert_eq!(before, model.range(..record.key()).next_back().map(|(_, handle)| *handle));
        if n % 100 == 0 {
            drop(guard);
            assert_eq!(set.check(), Ok(model.len()));
        }
    }
    assert_eq!((set.check(), set.len()), (Ok(model.len()), model.len()));
    let guard = set.domain().pin();
    assert!(set.range(.., &guard).eq(model.values().copied()));
    assert!(set.range_rev(.., &guard).eq(model.values().rev().copied()));
    assert_eq!(set.first(&guard), model.values().next().copied());
    assert_eq!(set.last(&guard), model.values().next_back().copied());
    let absent = EntryKey::new(b"no key", 7);
    assert_eq!(set.get(absent, &guard), None);
    let long = vec![0; 16 << 20];
    let beyond = (Included(EntryKey::new(&long, 0)), Unbounded);
    let behind = model.range((Included((long.clone(), 0)), Unbounded)).next();
    assert_eq!(set.range(beyond, &guard).next(), behind.map(|(_, handle)| *handle));
}

/// The newest version that a snapshot can see is the first one from there on.
#[test]
fn versions_come_newest_first() {
    let records: Vec<Record> =
        (0..1000).map(|n| Record::new(format!("key {}", n % 10).into(), !n)).collect();
    let set: EntrySet<Handle> = EntrySet::with_options(&Options::default()).unwrap();
    let guard = set.domain().pin();
    for record in &records {
        assert_eq!(set.insert(Handle::of(record), &guard), Ok(None));
    }
    for (key, snapshot) in [(3, 500), (3, 503), (9, 8), (0, 0)] {
        let text = format!("key {key}");
        let from = EntryKey::new(text.as_bytes(), !snapshot);
        let seen = set.range(from.., &guard).next().map(Handle::record);
        let seen = seen.filter(|seen| seen.key == text.as_bytes()).map(|seen| !seen.number);
        assert_eq!(seen, (0..=snapshot).rev().find(|n| n % 10 == key));
    }
}

/// A set takes the same memory for long keys as for short ones.
#[test]
fn keys_take_no_memory_in_a_set() {
    let bytes = [8, 5000].map(|len| {
        let key = |n: u64| [&mixed(n).to_be_bytes()[..], &vec![7; len - 8]].concat();
        let records: Vec<Record> = (0..5000).map(|n| Record::new(key(n), 0)).collect();
        let mut set: EntrySet<Handle> = EntrySet::with_options(&apart()).unwrap();
        for record in &records {
            set.insert(Handle::of(record), &set.domain().pin()).unwrap();
        }
        set.settle();
        set.pool_stats().iter().map(|stats| stats.live_bytes).sum::<usize>()
    });
    assert_eq!(bytes[0], bytes[1]);
    println!("{} bytes for each entry", bytes[0] as f64 / 5000.0);
    assert!(bytes[0] < 24 * 5000, "{bytes:?}");
    let long = Record::new(vec![0; (16 << 20) - 1], 0);
    let set: EntrySet<Handle> = EntrySet::with_options(&Options::default()).unwrap();
    let refused = set.insert(Handle::of(&long), &set.domain().pin());
    assert!(matches!(refused, Err(AllocError::KeyLength { .. })), "{refused:?}");
}

/// Threads insert while others read: each entry stays from its insertion on, in order.
#[test]
fn entries_stay() {
    const EACH: u64 = if cfg!(debug_assertions) { 5000 } else { 50_000 };
    let key = |n: u64| format!("{:03}/{:016x}", mixed(n) % 200, mixed(n)).into_bytes();
    let records: Vec<Record> = (0..2 * EACH).map(|n| Record::new(key(n), 0)).collect();
    let mut set: EntrySet<Handle> = EntrySet::with_options(&apart()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = records
            .chunks(EACH as usize)
            .map(|records| {
                let set = &set;
                scope.spawn(move || {
                    for (n, record) in records.iter().enumerate() {
                        let guard = set.domain().pin();
                        assert_eq!(set.insert(Handle::of(record), &guard), Ok(None));
                        let mine = &records[mixed(n as u64) as usize % (n + 1)];
                        let key = EntryKey::new(&mine.key, 0);
                        assert_eq!(set.get(key, &guard), Some(Handle::of(mine)));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let guard = set.domain().pin();
                let keys: Vec<_> =
                    set.range(.., &guard).map(|handle| &handle.record().key).collect();
                assert!(keys.windows(2).all(|pair| pair[0] < pair[1]) && keys.len() >= seen);
                seen = keys.len();
            }
        });
        let joined: Vec<_> = writers.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(joined.iter().all(Result::is_ok));
    });
    assert_eq!(set.check(), Ok(records.len()));
}

/// Allocations fail from one on, or one panics. The set has the entries until then.
#[test]
fn inserts_without_memory() {
    let records = &records()[..2000];
    for nth in 1.. {
        for plan in [Plan::FailFrom(nth), Plan::Panic(nth)] {
            let mut set: EntrySet<Handle, Faulty> = EntrySet::with_options(&apart()).unwrap();
            let ran = under(plan, || {
                for record in records {
                    set.insert(Handle::of(record), &set.domain().pin())?;
                }
                Ok::<(), AllocError>(())
            });
            let entries = set.len();
            assert_eq!(
                (set.check(), set.range(.., &set.domain().pin()).count()),
                (Ok(entries), entries)
            );
            assert_eq!(matches!(ran.outcome, Some(Ok(()))), ran.faults == 0, "{plan:?}");
            if ran.faults == 0 {
                assert!(nth > 10 && entries > 500, "{nth} {entries}");
                return;
            }
        }
    }
}
