//! Orders that lie, panic, or call the map, and destructors that do.

use super::*;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{OnceLock, Weak};

/// Calls every verb of a map, whatever comes back.
fn call_all<C: Compares<Tracked, Tracked>>(
    map: &Map<Tracked, Tracked, C>,
    rng: &Rng,
    live: &Arc<AtomicI64>,
) {
    let new = |bound| Tracked::new(rng.below(bound), live);
    let view = map.pin();
    match rng.below(14) {
        0..4 => drop(view.insert(new(200), new(9))),
        4 => drop(view.try_insert(new(200), new(9))),
        5 | 6 => drop(view.remove(&new(200))),
        7 => {
            _ = view.pop_first().map(|(key, value)| key.number() + value.number());
            _ = view.pop_last().map(|(key, value)| key.number() + value.number());
        }
        8 => {
            _ = view.update(&new(200), |value| Tracked::new(value.number() + 1, live));
            _ = view.remove_if(&new(200), |value| value.number() % 2 == 0);
        }
        9 => {
            use silvics::map::Operation;
            let key = new(200);
            _ = view.compute(key, |value| match value {
                Some(value) if value.number() % 2 == 0 => Operation::Remove,
                Some(value) => Operation::Insert(Tracked::new(value.number() + 1, live)),
                None => Operation::Abort(()),
            });
        }
        10 => {
            let (low, high) = (new(200), new(200));
            let bounds = (Bound::Included(&low), Bound::Excluded(&high));
            let sum = |key: u64, (a, b): (silvics::ValueRef<'_, Tracked>, _)| {
                let b: silvics::ValueRef<'_, Tracked> = b;
                key + a.number() + b.number()
            };
            let forth = view.range(bounds).fold(0, sum);
            let back = view.range(bounds).rev().fold(0, sum);
            let mut both = view.range(bounds);
            while both.next().is_some() && both.next_back().is_some() {}
            _ = forth + back;
        }
        11 => {
            view.iter().for_each(|(key, value)| _ = key.number() + value.number());
            view.iter().rev().for_each(|(key, value)| _ = key.number() + value.number());
        }
        12 => {
            let key = new(200);
            _ = view.get(&key).map(|value| value.number());
            _ = view.lower_bound(Bound::Excluded(&key)).map(|(key, _)| key.number());
            _ = view.upper_bound(Bound::Included(&key)).map(|(key, _)| key.number());
            _ = view.first().zip(view.last()).map(|((a, _), (b, _))| a.number() + b.number());
        }
        _ if rng.below(40) == 0 => _ = view.retain(|key, _| key.number() % 3 != 0),
        _ => {
            let (low, high) = (new(200), new(200));
            _ = view.remove_range((Bound::Included(&low), Bound::Excluded(&high)));
        }
    }
}

/// Calls all verbs from some threads with an order that may do anything. Afterwards each key and
/// each value has been dropped once.
fn survives<C: Compares<Tracked, Tracked>>(order: C) {
    let live = Arc::default();
    let map: Map<Tracked, Tracked, C> = map(order);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (map, live) = (&map, &live);
            scope.spawn(move || {
                let rng = Rng::new(thread);
                for _ in 0..work(4000) {
                    let call = AssertUnwindSafe(|| call_all(map, &rng, live));
                    _ = catch_unwind(call).map_err(|panic| match panic.downcast::<Planned>() {
                        Ok(_) => {}
                        Err(panic) => std::panic::resume_unwind(panic),
                    });
                }
            });
        }
    });
    let mut map = map;
    map.settle();
    // All that does not depend on the order holds.
    if let Ok(Err(violation)) = catch_unwind(AssertUnwindSafe(|| map.check())) {
        assert!(["order", "N2", "T2"].contains(&violation.invariant), "{violation}");
    }
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0, "keys and values are dropped once");
}

/// The payload of a panic that a test wants.
struct Planned;

fn panics() -> ! {
    std::panic::resume_unwind(Box::new(Planned)) // without a message of the hook
}

type Order = fn(&Tracked, &Tracked) -> Ordering;

#[test]
fn constant_orders_do_no_harm() {
    for order in [
        (|_, _| Ordering::Less) as Order,
        |_, _| Ordering::Equal,
        |_, _| Ordering::Greater,
        // Each number is smaller than the next third of them, in a circle.
        |a, b| ((b.number() + 200 - a.number()) % 200).cmp(&100),
        // Only even numbers are in order.
        |a, b| if a.number() % 2 == 0 { a.number().cmp(&b.number()) } else { Ordering::Greater },
    ] {
        survives(order);
    }
}

#[test]
fn random_orders_do_no_harm() {
    let rng = Rng::new(7);
    survives(move |a: &Tracked, b: &Tracked| {
        _ = a.number() + b.number();
        [Ordering::Less, Ordering::Equal, Ordering::Greater][rng.below(3) as usize]
    });
}

/// One comparison in a hundred is wrong: the maps get large, and have many base nodes.
#[test]
fn orders_that_are_sometimes_wrong_do_no_harm() {
    let rng = Rng::new(8);
    survives(move |a: &Tracked, b: &Tracked| {
        let order = a.number().cmp(&b.number());
        if rng.below(100) == 0 { order.reverse() } else { order }
    });
}

#[test]
fn orders_that_panic_do_no_harm() {
    let rng = Rng::new(9);
    survives(move |a: &Tracked, b: &Tracked| {
        if rng.below(50) == 0 {
            panics();
        }
        a.number().cmp(&b.number())
    });
}

/// Heads that have another order than the keys.
#[test]
fn wrong_heads_do_no_harm() {
    struct Headed;
    impl silvics::ord::Comparator<Tracked> for Headed {
        fn compare(&self, a: &Tracked, b: &Tracked) -> Ordering {
            a.number().cmp(&b.number())
        }
        fn has_heads() -> bool {
            true
        }
        fn head(&self, key: &Tracked) -> u64 {
            key.number() * 0x9E37_79B9 % 17
        }
    }
    impl Compares<Tracked, Tracked> for Headed {
        fn compare_with(&self, key: &Tracked, asked: &Tracked) -> Ordering {
            key.number().cmp(&asked.number())
        }
    }
    survives(Headed);
}

/// Comparisons call the map that they compare for.
#[test]
fn orders_may_call_the_map() {
    type Own = Map<Tracked, Tracked, Calls>;
    struct Calls {
        map: OnceLock<Weak<Own>>,
        rng: Rng,
        live: Arc<AtomicI64>,
    }
    thread_local!(static DEPTH: Cell<u32> = const { Cell::new(0) });
    impl silvics::ord::Comparator<Tracked> for Calls {
        fn compare(&self, a: &Tracked, b: &Tracked) -> Ordering {
            let depth = DEPTH.get();
            let map = self.map.get().and_then(Weak::upgrade);
            if let Some(map) = map.filter(|_| depth < 2 && self.rng.below(40) == 0) {
                DEPTH.set(depth + 1);
                call_all(&map, &self.rng, &self.live);
                DEPTH.set(depth);
            }
            a.number().cmp(&b.number())
        }
    }
    impl Compares<Tracked, Tracked> for Calls {
        fn compare_with(&self, key: &Tracked, asked: &Tracked) -> Ordering {
            silvics::ord::Comparator::compare(self, key, asked)
        }
    }
    let live: Arc<AtomicI64> = Arc::default();
    let order = Calls { map: OnceLock::new(), rng: Rng::new(3), live: Arc::clone(&live) };
    let map: Arc<Own> = Arc::new(map(order));
    assert!(map.order().map.set(Arc::downgrade(&map)).is_ok());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (map, live) = (&map, &live);
            scope.spawn(move || {
                let rng = Rng::new(thread);
                (0..work(2000)).for_each(|_| call_all(map, &rng, live));
            });
        }
    });
    let mut map = Arc::into_inner(map).expect("no comparison runs");
    let len = map.len();
    assert_eq!(map.check(), Ok(len));
    drop(map);
    assert_eq!(live.load(Memory::Relaxed), 0);
}

/// Each comparison writes to the map that it compares for, close to the key that is searched.
#[test]
fn orders_may_write_to_the_map() {
    type Own = Map<u64, u64, Writes, Adaptive>;
    struct Writes(OnceLock<Weak<Own>>, AtomicU64);
    thread_local!(static IS_WRITING: Cell<bool> = const { Cell::new(false) });
    impl silvics::ord::Comparator<u64> for Writes {
        fn compare(&self, a: &u64, b: &u64) -> Ordering {
            let map = self.0.get().and_then(Weak::upgrade);
            if let Some(map) = map.filter(|_| !IS_WRITING.get()) {
                IS_WRITING.set(true);
                map.insert(1_000_000, self.1.fetch_add(1, Memory::Relaxed));
                IS_WRITING.set(false);
            }
            a.cmp(b)
        }
    }
    impl Compares<u64, u64> for Writes {
        fn compare_with(&self, key: &u64, asked: &u64) -> Ordering {
            silvics::ord::Comparator::compare(self, key, asked)
        }
    }
    let map: Arc<Own> = Arc::new(map(Writes(OnceLock::new(), AtomicU64::new(0))));
    assert!(map.order().0.set(Arc::downgrade(&map)).is_ok());
    for n in 0..work(2000) {
        assert!(map.insert(n, n).is_none());
        assert!(map.update(&(n / 2), |value| value + 1).is_some());
        assert_eq!(map.remove(&(n + 1)).map(|old| *old), None);
    }
    assert_eq!(map.remove_if(&7, |_| true).map(|old| old.is_some()), Ok(true));
    let writes = map.order().1.load(Memory::Relaxed);
    assert!(writes > work(2000), "{writes} writes by comparisons");
    assert_eq!(map.pin().retain(|key, _| *key >= 1000), 999.min(work(2000) as usize - 1));
    let map = Arc::into_inner(map).expect("no comparison runs");
    drop(map);
}

/// Answers in a cycle, with which each search finds another key than the one before.
#[test]
fn orders_that_alternate_do_not_hang() {
    use Ordering::{Equal, Greater, Less};
    for answers in [
        vec![Greater, Less, Equal, Greater, Greater, Equal],
        vec![Greater, Equal, Less, Equal],
        vec![Less, Equal, Equal],
        vec![Equal, Less, Equal, Greater],
    ] {
        for start in 0..answers.len() {
            let (is_on, next) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(start as u64));
            let (switch, answers) = (Arc::clone(&is_on), answers.clone());
            let map: Map<u64, u64, _, Adaptive> = map(move |a: &u64, b: &u64| {
                if switch.load(Memory::Relaxed) == 0 {
                    return a.cmp(b);
                }
                answers[next.fetch_add(1, Memory::Relaxed) as usize % answers.len()]
            });
            for n in 0..2 {
                map.insert(n, n);
            }
            is_on.store(1, Memory::Relaxed);
            for _ in 0..100 {
                _ = map.remove_if(&0, |_| true);
                _ = map.update(&0, |value| value + 1);
                _ = map.compare_exchange(&0, &1, Some(0));
                _ = map.pin().retain(|_, _| false);
                map.insert(2, 2);
            }
        }
    }
}

/// A scan that removes looks at the keys that it removes, also if others exchange equal ones.
#[test]
fn retain_sees_the_key_that_it_removes() {
    /// Ordered by name alone.
    struct File(u64, AtomicU64);
    let order = |a: &File, b: &File| a.0.cmp(&b.0);
    let map: Map<File, u64, _> = map(order);
    let is_done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..work(20_000) {
                // A large file has an even value.
                map.remove(&File(1, AtomicU64::new(0)));
                map.insert(File(1, AtomicU64::new(round % 2)), 2 * round + 1 - round % 2);
            }
            is_done.store(1, Memory::Relaxed);
        });
        scope.spawn(|| {
            while is_done.load(Memory::Relaxed) == 0 {
                map.pin().retain(|file, value| {
                    assert_eq!(
                        file.1.load(Memory::Relaxed),
                        (value + 1) % 2,
                        "another entry's key"
                    );
                    value % 2 == 1
                });
            }
        });
    });
}

/// Keys and values whose destructors call the map, and panic.
#[test]
fn destructors_may_call_the_map_and_panic() {
    type Own = OrdMap<Key, Value>;
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Key(u64);
    struct Value(u64, Weak<Own>);
    static DROPPED: AtomicU64 = AtomicU64::new(0);
    impl Drop for Key {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Memory::Relaxed);
            if self.0.is_multiple_of(7) && !std::thread::panicking() {
                panics();
            }
        }
    }
    impl Drop for Value {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Memory::Relaxed);
            if let Some(map) = self.1.upgrade() {
                _ = map.contains_key(&*std::mem::ManuallyDrop::new(Key(self.0 + 1)));
            }
            if self.0.is_multiple_of(11) && !std::thread::panicking() {
                panics();
            }
        }
    }
    let map: Arc<Own> = Arc::default();
    let rounds = work(5000);
    let rng = Rng::new(1);
    for _ in 0..rounds {
        let number = rng.below(50);
        let value = Value(number, Arc::downgrade(&map));
        _ = catch_unwind(AssertUnwindSafe(|| drop(map.insert(Key(number), value))));
        let asked = std::mem::ManuallyDrop::new(Key(rng.below(50)));
        _ = catch_unwind(AssertUnwindSafe(|| drop(map.remove(&*asked))));
    }
    drop(map);
    assert_eq!(DROPPED.load(Memory::Relaxed), 2 * rounds);
}

/// The check names two keys that are not in order.
#[test]
fn the_check_names_positions() {
    let rng = Rng::new(5);
    let mut map: Map<u64, u64, _> = map(move |a: &u64, b: &u64| match rng.below(3) {
        0 => Ordering::Less,
        _ => a.cmp(b),
    });
    (0..200).for_each(|n| _ = map.insert(n * 37 % 200, n));
    let violation = (0..100).find_map(|_| map.check().err()).expect("keys are not in order");
    let text = violation.to_string();
    assert!(text.contains("the keys at positions") && text.contains("no total order"), "{text}");
}

/// As the test above, with keys and values that lie in the nodes.
#[test]
fn retain_sees_the_character_that_it_removes() {
    let order = |a: &char, b: &char| a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase());
    let map: Map<char, (), _> = map(order);
    map.insert('a', ());
    let is_done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..work(20_000) {
                // Nobody else removes an 'A'.
                if map.remove(&'a').is_some() {
                    map.insert('A', ());
                    assert!(map.remove(&'a').is_some(), "an upper case letter was removed");
                }
                map.insert('a', ());
            }
            is_done.store(1, Memory::Relaxed);
        });
        scope.spawn(|| {
            while is_done.load(Memory::Relaxed) == 0 {
                map.pin().retain(|letter, ()| letter.is_uppercase());
            }
        });
    });
}

/// A map asks once whether its order has heads.
#[test]
fn an_order_may_change_its_mind_about_heads() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    struct Fickle;
    impl silvics::ord::Comparator<String> for Fickle {
        fn compare(&self, a: &String, b: &String) -> Ordering {
            a.cmp(b)
        }
        fn has_heads() -> bool {
            ASKED.fetch_add(1, Memory::Relaxed).is_multiple_of(2)
        }
    }
    impl Compares<String, String> for Fickle {
        fn compare_with(&self, key: &String, asked: &String) -> Ordering {
            key.cmp(asked)
        }
    }
    for made in 1..=2 {
        let mut map: Map<String, u64, Fickle> = map(Fickle);
        (0..500).for_each(|n| _ = map.insert(n.to_string(), n));
        assert_eq!(map.check(), Ok(500));
        assert_eq!(map.pin().iter().count(), 500);
        assert_eq!(ASKED.load(Memory::Relaxed), made);
    }
}
