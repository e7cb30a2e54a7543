//! The memtable of a storage engine: versions of user keys, with values of 100 bytes.
//!
//! User keys have 16 bytes, as in `db_bench`: numbers with leading zeros. They are written in a
//! random order, twice each, so that half of the versions are the newest of their user key.

use crate::measure::{Figures, named, peak, resident, timed};
use crossbeam_skiplist::SkipMap;
use silvics::map::Value;
use silvics::{Key, Map, OrdMap};
use std::ops::Bound::Included;
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

/// A version of a user key, the newest one first. The derive also implements `Ord`, by which the
/// skip list and `OrdMap` sort.
#[derive(Key, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) user: Box<[u8]>,
    #[key(reverse)]
    pub(crate) sequence: u64,
}

/// How often each user key is written.
const VERSIONS: usize = 2;
const VALUE_BYTES: usize = 100;

/// The text of a user key.
pub(crate) fn write_user(number: usize, user: &mut [u8]) {
    let mut rest = number;
    for byte in user.iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// The numbers below `count` in a random order.
pub(crate) fn shuffled(count: usize) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        numbers.swap(at, (state >> 20) as usize % (at + 1));
    }
    numbers
}

/// A memtable, as these cases use it.
pub(crate) trait Memtable<V>: Default + Sync {
    fn put(&self, user: &[u8], sequence: u64, value: V);
    /// Calls `read` with the newest version of `key.user` that `key.sequence` sees. The caller
    /// reuses the key, so that no side allocates one.
    fn seen<R>(&self, key: &Version, read: impl FnOnce(u64, &V) -> R) -> Option<R>;
}

impl<V: Value> Memtable<V> for Map<Version, V> {
    fn put(&self, user: &[u8], sequence: u64, value: V) {
        self.insert(VersionRef { user: user.into(), sequence }, value);
    }
    fn seen<R>(&self, key: &Version, read: impl FnOnce(u64, &V) -> R) -> Option<R> {
        let view = self.pin();
        let (found, value) = view.lower_bound(Included(key))?;
        (*found.user == *key.user).then(|| read(found.sequence, &value))
    }
}

impl<V: Value> Memtable<V> for OrdMap<Version, V> {
    fn put(&self, user: &[u8], sequence: u64, value: V) {
        self.insert(Version { user: user.into(), sequence }, value);
    }
    fn seen<R>(&self, key: &Version, read: impl FnOnce(u64, &V) -> R) -> Option<R> {
        let view = self.pin();
        let (found, value) = view.lower_bound(Included(key))?;
        (found.user == key.user).then(|| read(found.sequence, &value))
    }
}

impl<V: Value> Memtable<V> for SkipMap<Version, V> {
    fn put(&self, user: &[u8], sequence: u64, value: V) {
        self.insert(Version { user: user.into(), sequence }, value);
    }
    fn seen<R>(&self, key: &Version, read: impl FnOnce(u64, &V) -> R) -> Option<R> {
        let found = self.lower_bound(Included(key))?;
        (found.key().user == key.user).then(|| read(found.key().sequence, found.value()))
    }
}

/// A memtable of `count` versions with values that `value` makes.
pub(crate) fn filled<V, M: Memtable<V>>(count: usize, value: impl Fn(u64) -> V) -> M {
    let (users, memtable) = (shuffled(count / VERSIONS), M::default());
    for sequence in 0..users.len() * VERSIONS {
        let mut user = [0; 16];
        write_user(users[sequence % users.len()] as usize, &mut user);
        memtable.put(&user, sequence as u64, value(sequence as u64));
    }
    memtable
}

/// The value of a version, which differs from its neighbours'.
pub(crate) fn shared_value(sequence: u64) -> Arc<[u8]> {
    [sequence as u8; VALUE_BYTES].into()
}

/// Runs `each` for the numbers below `count`, split among threads that begin together. Returns the
/// nanoseconds from the first begin to the last end, for each number.
fn split(threads: usize, count: usize, each: impl Fn(Range<usize>) + Sync) -> f64 {
    let ready = Barrier::new(threads);
    let times: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let begun = |thread| {
            let (ready, each) = (&ready, &each);
            scope.spawn(move || {
                ready.wait();
                let start = Instant::now();
                each(count * thread / threads..count * (thread + 1) / threads);
                (start, Instant::now())
            })
        };
        let workers: Vec<_> = (0..threads).map(begun).collect();
        workers.into_iter().map(|worker| worker.join().expect("it works")).collect()
    });
    let start = times.iter().map(|time| time.0).min().expect("a thread");
    let end = times.iter().map(|time| time.1).max().expect("a thread");
    (end - start).as_nanos() as f64 / count as f64
}

/// Inserts `count` versions, looks the newest one of each user key up as often, and drops all.
pub(crate) fn lives<M: Memtable<Arc<[u8]>>>(threads: usize, count: usize) -> Figures {
    let users = shuffled(count / VERSIONS);
    let before = resident();
    let memtable = M::default();
    let insert = split(threads, count, |numbers| {
        let mut user = [0; 16];
        for number in numbers {
            write_user(users[number % users.len()] as usize, &mut user);
            memtable.put(&user, number as u64, shared_value(number as u64));
        }
    });
    let held = resident() - before;
    let get = split(threads, count, |numbers| {
        let mut key = Version { user: [0; 16].into(), sequence: u64::MAX };
        for number in numbers {
            // Another order than that of the insertions.
            let at = number * 7919 % users.len();
            write_user(users[at] as usize, &mut key.user);
            let newest = (at + (VERSIONS - 1) * users.len()) as u64;
            let is_newest = |sequence, value: &Arc<[u8]>| {
                sequence == newest && value[VALUE_BYTES - 1] == newest as u8
            };
            assert_eq!(memtable.seen(&key, is_newest), Some(true));
        }
    });
    let peak = peak() - before;
    let ((), drops) = timed(|| drop(memtable));
    named([("insert", insert), ("get", get), ("drop", drops), ("held", held), ("peak", peak)])
}
