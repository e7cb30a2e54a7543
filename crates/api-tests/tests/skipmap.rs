//! `silvics-skipmap`: entries that are kept, the moment when keys and values are dropped, and code
//! of the user that misbehaves.

use silvics_api_tests::Tracked;
use silvics_skipmap::{SkipMap, SkipSet};
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering as Memory};
use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, LazyLock, Mutex, MutexGuard, PoisonError};

type Map = SkipMap<Tracked, Tracked>;

/// Tests run one after the other: a pin of another thread would hold back removed pairs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pseudorandom number below a bound: the high bits of Knuth's multiplicative generator.
fn below(state: &Cell<u64>, bound: u64) -> u64 {
    state.set(state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    (state.get() >> 33) % bound
}

fn work(rounds: u64) -> u64 {
    if cfg!(miri) { rounds / 100 } else { rounds }
}

#[test]
fn an_entry_keeps_its_key_and_value() {
    let _alone = alone();
    let live = Arc::default();
    let new = |n| Tracked::new(n, &live);
    let map = Map::new();
    let first = map.insert(new(1), new(10));
    let second = map.insert(new(1), new(20));
    assert!(first.is_removed() && !second.is_removed());
    assert_eq!((first.value().number(), second.value().number()), (10, 20));
    assert_eq!(live.load(Memory::Relaxed), 4);
    let copy = second.clone();
    assert!(second.remove() && !copy.remove() && copy.is_removed() && map.is_empty());
    drop((first, second));
    map.shrink();
    assert_eq!((copy.key().number(), live.load(Memory::Relaxed)), (1, 2));
    std::thread::scope(|scope| {
        scope.spawn(move || assert_eq!(copy.value().number(), 20));
    });
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// The pairs that a map refuses, those of a map that is dropped, and those that are moved out.
#[test]
fn each_pair_is_dropped_once() {
    let _alone = alone();
    let live = Arc::default();
    let new = |n| Tracked::new(n, &live);
    let map: Map = (0..1000).map(|n| (new(n % 500), new(n))).collect();
    assert_eq!((map.len(), live.load(Memory::Relaxed)), (500, 1000));
    for n in 0..100 {
        assert!(map.remove(&new(n)).is_some_and(|entry| entry.value().number() == n));
    }
    std::mem::forget(map.get(&new(200)));
    let mut pairs = map.into_iter();
    assert_eq!(pairs.next().map(|(key, value)| key.number() + value.number()), Some(200));
    assert_eq!(pairs.by_ref().take(99).count(), 99);
    assert!(live.load(Memory::Relaxed) <= 800);
    drop(pairs);
    assert_eq!(live.load(Memory::Relaxed), 0);
    drop((0..300).map(|n| (new(n), new(n))).collect::<Map>());
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Threads that write, read, walk and keep entries. No count is lost, and no entry is used after
/// its drop.
#[test]
fn threads_lose_no_count() {
    let _alone = alone();
    let live: Arc<AtomicI64> = Arc::default();
    let map = Map::new();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (map, live, start) = (&map, &live, &start);
            scope.spawn(move || {
                let state = Cell::new(thread);
                let new = |n| Tracked::new(n, live);
                let mut kept = Vec::new();
                start.wait();
                for call in 0..work(20_000) {
                    let key = new(below(&state, 60));
                    let entry =
                        match below(&state, 10) {
                            0..=2 => Some(map.insert(key, new(call))),
                            3 => Some(map.get_or_insert(key, new(call))),
                            4 => Some(map.compare_insert(key, new(call), |old| {
                                old.number().is_multiple_of(2)
                            })),
                            5 => map.remove(&key),
                            6 => map.pop_front(),
                            7 => {
                                let mut last = None;
                                for entry in map.range(key..).take(20) {
                                    let number = entry.key().number();
                                    assert!(last.replace(number).is_none_or(|last| last < number));
                                }
                                let mut range = map.iter();
                                (range.next(), range.next_back()).0
                            }
                            _ => map.get(&key),
                        };
                    kept.extend(entry);
                    if kept.len() > 20 {
                        let entry = kept.swap_remove(below(&state, 20) as usize);
                        assert!(entry.key().number() < 60 && entry.value().number() < 20_000);
                        if below(&state, 2) == 0 {
                            entry.remove();
                            assert!(entry.is_removed());
                        }
                        kept.extend(entry.next());
                    }
                }
            });
        }
    });
    // A removed key may stay where contention has split the tree.
    map.shrink();
    let (entries, live_now) = (map.len() as i64, live.load(Memory::Relaxed));
    assert!((2 * entries..2 * entries + 2000).contains(&live_now), "{entries} {live_now}");
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Only one of several threads removes an entry, and only one inserts a key.
#[test]
fn one_thread_wins() {
    let _alone = alone();
    for _ in 0..work(300) {
        let map: SkipMap<u64, u64> = SkipMap::new();
        let start = Barrier::new(3);
        let wins = AtomicU64::new(0);
        let kept = map.insert(7, 0);
        std::thread::scope(|scope| {
            for thread in 1..4 {
                let (map, start, wins, kept) = (&map, &start, &wins, kept.clone());
                scope.spawn(move || {
                    start.wait();
                    wins.fetch_add(u64::from(kept.remove()), Memory::Relaxed);
                    assert!(kept.is_removed());
                    let entry = map.get_or_insert(8, thread);
                    assert!(!entry.is_removed());
                    wins.fetch_add(10 * u64::from(*entry.value() == thread), Memory::Relaxed);
                });
            }
        });
        assert_eq!(wins.load(Memory::Relaxed), 11);
    }
}

/// A program that inserts and removes for ever holds a bounded number of pairs.
#[test]
fn removed_pairs_are_dropped() {
    let _alone = alone();
    let live: Arc<AtomicI64> = Arc::default();
    let map = Map::new();
    let (state, mut most) = (Cell::new(1), 0);
    for _ in 0..if cfg!(miri) { 300 } else { 200_000 } {
        let number = below(&state, 100);
        map.insert(Tracked::new(number, &live), Tracked::new(number, &live));
        map.remove(&Tracked::new(below(&state, 100), &live));
        most = most.max(live.load(Memory::Relaxed));
    }
    // 200 in the map, and some batches of removed ones.
    assert!(most < 1000, "{most} objects");
    map.shrink();
    assert_eq!(live.load(Memory::Relaxed), 2 * map.len() as i64);
}

std::thread_local! {
    /// The comparisons of `Odd` panic after this number of calls.
    static CALLS_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Whether the comparisons of `Odd` answer at random.
    static LIES: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
struct Odd(Tracked);

impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Odd {}
impl PartialOrd for Odd {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Odd {
    fn cmp(&self, other: &Self) -> Ordering {
        std::thread_local!(static RANDOM: Cell<u64> = const { Cell::new(3) });
        CALLS_LEFT.with(|left| {
            assert!(left.get() > 0, "a comparison that panics");
            left.set(left.get() - 1);
        });
        let truth = self.0.cmp(&other.0);
        if !LIES.get() {
            return truth;
        }
        [Ordering::Less, Ordering::Equal, Ordering::Greater][RANDOM.with(|r| below(r, 3)) as usize]
    }
}

/// Calls each method with a key, and `before` in front of each call.
fn every_method(map: &SkipMap<Odd, Tracked>, n: u64, live: &Arc<AtomicI64>, before: impl Fn()) {
    let key = || Odd(Tracked::new(n, live));
    let value = || Tracked::new(n, live);
    let calls: [&dyn Fn(); 11] = [
        &|| drop(map.insert(key(), value())),
        &|| drop(map.get_or_insert(key(), value())),
        &|| drop(map.compare_insert(key(), value(), |old| old.number().is_multiple_of(2))),
        &|| drop(map.get(&key())),
        &|| drop(map.remove(&key())),
        &|| drop(map.insert(key(), value())),
        &|| drop(map.range(key()..).take(10).collect::<Vec<_>>()),
        &|| drop(map.range(..key()).rev().take(10).collect::<Vec<_>>()),
        &|| drop(map.front().map(|entry| (entry.next(), entry.is_removed()))),
        &|| drop(map.lower_bound(std::ops::Bound::Included(&key()))),
        &|| drop(map.get(&key()).map(|entry| (entry.prev(), entry.remove()))),
    ];
    for call in calls {
        before();
        _ = catch_unwind(AssertUnwindSafe(call));
    }
}

/// Comparisons panic in each place in turn. The keys still ascend then, and nothing is lost.
#[test]
fn comparisons_that_panic() {
    let _alone = alone();
    let live = Arc::default();
    let map: SkipMap<Odd, Tracked> = SkipMap::new();
    let keys = if cfg!(miri) { 60 } else { 3000 };
    for n in 0..keys {
        map.insert(Odd(Tracked::new(n, &live)), Tracked::new(n, &live));
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let (state, panics) = (Cell::new(5), Cell::new(0));
    for _ in 0..work(3000) {
        every_method(&map, below(&state, keys), &live, || {
            panics.set(panics.get() + u64::from(CALLS_LEFT.get() == 0));
            CALLS_LEFT.set(below(&state, 40));
        });
    }
    std::panic::set_hook(hook);
    CALLS_LEFT.set(u64::MAX);
    assert!(panics.get() > work(3000) && map.len() > keys as usize / 4, "{panics:?} {}", map.len());
    let numbers: Vec<u64> = map.iter().map(|entry| entry.key().0.number()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.len() == map.len());
    for n in 0..keys {
        let is_there = map.contains_key(&Odd(Tracked::new(n, &live)));
        assert_eq!(is_there, numbers.binary_search(&n).is_ok());
    }
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// An order that is none ends each call, and drops each pair once.
#[test]
fn comparisons_that_lie() {
    let _alone = alone();
    let live = Arc::default();
    let map: SkipMap<Odd, Tracked> = SkipMap::new();
    let state = Cell::new(9);
    for round in 0..work(3000) {
        LIES.set(round % 20 > 10);
        every_method(&map, below(&state, 2000), &live, || ());
    }
    LIES.set(true);
    for n in 0..20 {
        map.insert(Odd(Tracked::new(n, &live)), Tracked::new(n, &live));
    }
    map.clear();
    assert!(map.is_empty());
    LIES.set(false);
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// A destructor writes to the map that drops the pair.
#[test]
fn destructors_call_the_map() {
    let _alone = alone();
    static MAP: LazyLock<SkipMap<u64, Writes>> = LazyLock::new(SkipMap::new);
    struct Writes(u64, bool);
    impl Drop for Writes {
        fn drop(&mut self) {
            if self.1 {
                MAP.insert(1_000_000 + self.0, Writes(0, false));
            }
        }
    }
    let map = &*MAP;
    for n in 0..work(10_000) {
        map.insert(n % 50, Writes(n, true));
    }
    map.shrink();
    assert_eq!(map.range(1_000_000..).count() as u64, work(10_000) - 50);
}

/// A destructor that panics: the pair is gone, and others are dropped.
#[test]
fn destructors_that_panic() {
    let _alone = alone();
    struct Panics(Tracked);
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(self.0.number() != 13 || std::thread::panicking(), "a destructor that panics");
        }
    }
    let live = Arc::default();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    for removes in [false, true] {
        let map: SkipMap<u64, Panics> = SkipMap::new();
        for n in 0..50 {
            map.insert(n, Panics(Tracked::new(n, &live)));
        }
        if removes {
            let kept = map.remove(&13);
            map.shrink();
            assert!(catch_unwind(AssertUnwindSafe(|| drop(kept))).is_err());
            assert_eq!(live.load(Memory::Relaxed), 49);
        }
        drop(map);
        assert_eq!(live.load(Memory::Relaxed), 0);
    }
    std::panic::set_hook(hook);
}

/// Keys and values need not be `'static`, nor `Sync`, as long as one thread has the map.
#[test]
fn keys_of_any_lifetime() {
    let _alone = alone();
    let text = String::from("beech ash cedar");
    let map: SkipMap<&str, Cell<usize>> =
        text.split(' ').enumerate().map(|(at, word)| (word, Cell::new(at))).collect();
    assert_eq!(map.get("ash").map(|entry| entry.value().get()), Some(1));
    assert_eq!(map.front().map(|entry| entry.key().len()), Some(3));
    let set: SkipSet<&str> = text.split(' ').collect();
    assert!(set.contains("cedar") && set.range("b"..).count() == 2);
}

/// A small map takes little memory, and one without entries none.
#[test]
#[cfg_attr(miri, ignore = "there, memory is another one")]
fn small_maps_are_small() {
    let _alone = alone();
    let map: SkipMap<String, u64> = SkipMap::new();
    assert_eq!(map.bytes(), 0);
    for n in 0..100 {
        map.insert(n.to_string(), n);
    }
    assert!(map.bytes() < 24 << 10, "{} bytes", map.bytes());
}

/// Entries and ranges can be sent and shared.
#[test]
fn entries_and_ranges_can_be_sent() {
    fn can_be_sent<T: Send + Sync>(_: &T) {}
    let map: SkipMap<String, Vec<u8>> = SkipMap::new();
    can_be_sent(&map);
    can_be_sent(&map.insert(String::new(), vec![]));
    can_be_sent(&map.iter());
    can_be_sent(&map.range(String::new()..));
}
