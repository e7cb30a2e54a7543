//! Many small maps, and one map that many threads filled.

use crate::measure::{Figures, named, resident, resident_trimmed, timed};
use crossbeam_skiplist::SkipMap;
use silvics::map::Value;
use silvics::{Key, Map, OrdMap};
use std::sync::{Barrier, OnceLock};
use std::thread;

/// A concurrent map, as these cases use it.
pub(crate) trait Client<K, V>: Default + Send + Sync + 'static {
    fn put(&self, key: K, value: V);
    fn count(&self) -> usize;
    /// Removes all entries and returns memory to the system, as far as the map can.
    fn empty(&self);
}

impl<K: Key, V: Value> Client<K, V> for Map<K, V> {
    fn put(&self, key: K, value: V) {
        self.insert(key, value);
    }
    fn count(&self) -> usize {
        self.len()
    }
    fn empty(&self) {
        self.clear();
        self.flush();
        self.shrink();
    }
}

impl<K: Value + Ord, V: Value> Client<K, V> for OrdMap<K, V> {
    fn put(&self, key: K, value: V) {
        self.insert(key, value);
    }
    fn count(&self) -> usize {
        self.len()
    }
    fn empty(&self) {
        self.clear();
        self.flush();
        self.shrink();
    }
}

impl<K: Ord + Send + Sync + 'static, V: Send + Sync + 'static> Client<K, V> for SkipMap<K, V> {
    fn put(&self, key: K, value: V) {
        self.insert(key, value);
    }
    fn count(&self) -> usize {
        self.len()
    }
    fn empty(&self) {
        self.clear();
    }
}

/// The bytes and the times of `maps` maps, each with `entries` entries that `entry` makes.
fn each<K, V, C: Client<K, V>>(
    maps: usize,
    entries: usize,
    entry: impl Fn(usize) -> (K, V),
) -> Figures {
    let before = resident();
    let made = |_| {
        let map = C::default();
        for at in 0..entries {
            let (key, value) = entry(at);
            map.put(key, value);
        }
        map
    };
    let (all, create) = timed(|| (0..maps).map(made).collect::<Vec<_>>());
    let held = resident() - before;
    assert!(all.iter().all(|map| map.count() == entries));
    let ((), drops) = timed(|| drop(all));
    let (left, trimmed) = (resident() - before, resident_trimmed() - before);
    let maps = maps as f64;
    named([
        ("bytes", held / maps),
        ("create", create / maps),
        ("drop", drops / maps),
        ("left", left),
        ("trimmed", trimmed),
    ])
}

/// Maps of ten integers.
pub(crate) fn integers<C: Client<u64, u64>>(maps: usize) -> Figures {
    each::<_, _, C>(maps, 10, |at| (at as u64, at as u64))
}

/// Maps without an entry.
pub(crate) fn empty<C: Client<u64, u64>>(maps: usize) -> Figures {
    each::<_, _, C>(maps, 0, |_| unreachable!("no entries"))
}

/// Maps of a hundred strings.
pub(crate) fn strings<C: Client<String, String>>(maps: usize) -> Figures {
    each::<_, _, C>(maps, 100, |at| (format!("key {at:08}"), format!("value {at:08}")))
}

/// Maps in each of which 16 threads inserted an integer. The threads live while the maps are
/// measured.
pub(crate) fn shared<C: Client<u64, u64>>(maps: usize) -> Figures {
    const THREADS: u64 = 16;
    let all: OnceLock<Vec<C>> = OnceLock::new();
    let step = Barrier::new(THREADS as usize + 1);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (all, step) = (&all, &step);
            scope.spawn(move || {
                step.wait(); // the thread has its stack
                step.wait(); // the maps are made
                for map in all.get().expect("set") {
                    map.put(thread, thread);
                }
                step.wait(); // the entries are inserted
                step.wait(); // the maps are measured
            });
        }
        step.wait();
        let before = resident();
        let all = all.get_or_init(|| (0..maps).map(|_| C::default()).collect());
        step.wait();
        step.wait();
        let held = resident() - before;
        assert!(all.iter().all(|map| map.count() == THREADS as usize));
        step.wait();
        named([("bytes", held / maps as f64)])
    })
}

/// A map in which each of `threads` threads inserted `entries` strings. All threads live at once
/// and have ended when the map is measured.
pub(crate) fn ended<C: Client<String, String>>(threads: usize, entries: usize) -> Figures {
    let before = resident();
    let map = C::default();
    let all_live = Barrier::new(threads);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (map, all_live) = (&map, &all_live);
            scope.spawn(move || {
                all_live.wait();
                for at in 0..entries {
                    map.put(format!("thread {thread:03} key {at:06}"), format!("value {at:06}"));
                }
                all_live.wait();
            });
        }
    });
    let held = resident() - before;
    assert_eq!(map.count(), threads * entries);
    map.empty();
    let (left, trimmed) = (resident() - before, resident_trimmed() - before);
    named([("bytes", held), ("left", left), ("trimmed", trimmed)])
}
