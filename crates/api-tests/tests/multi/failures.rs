//! Allocations that fail, and code of the user that panics or lies.

use super::*;
use silvics::multi::CountError;
use silvics::{AllocError, Heap, Map, SkipList};
use std::alloc::Layout;
use std::cmp;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// A map at its limit returns values, keeps its lists, and takes values again when others are gone.
#[test]
fn a_map_at_its_limit_returns_values() {
    const LIMIT: usize = if cfg!(miri) { 1 << 17 } else { 1 << 20 };
    fn fill<O: FindOrder<Tracked>>(keys: u64) {
        let live: Arc<AtomicI64> = Arc::default();
        let options =
            Options { memory_limit: Some(LIMIT), pages: Pages::Small, ..Options::default() };
        let mut map: MultiMap<u64, Tracked, O> = MultiMap::with_options(&options).unwrap();
        let mut removed = 0;
        for round in 0..3 {
            let mut inserted = 0;
            let rejected = loop {
                let value = Tracked::new(inserted, &live);
                match map.try_insert(inserted % keys, value) {
                    Ok(insertion) => assert!(insertion.is_added()),
                    Err(rejected) => break rejected,
                }
                inserted += 1;
            };
            assert!(matches!(rejected.error, AllocError::Limit { .. }), "{rejected}");
            assert_eq!(rejected.value.number(), inserted);
            let least = if cfg!(miri) { 100 } else { LIMIT as u64 / 200 };
            assert!(inserted > least, "{inserted} in round {round}");
            assert_eq!(map.len(), inserted as usize);
            assert!(map.bytes() <= LIMIT);
            for n in 0..inserted {
                assert!(n % 997 > 0 || map.contains(n % keys, &Tracked::new(n, &live)));
            }
            // A removal may need memory for a copy. If there is none, nothing has changed.
            let (mut gone, mut view) = (0, map.pin());
            for n in (0..inserted).step_by(3).take(work(3000) as usize) {
                let value = Tracked::new(n, &live);
                match view.try_remove(n % keys, &value) {
                    Ok(removed) => gone += usize::from(removed.is_some()),
                    Err(error) => assert!(matches!(error, AllocError::Limit { .. })),
                }
                if n % 200 == 0 {
                    view.repin();
                }
            }
            drop(view);
            // A method of the map itself returns memory, and tries once more.
            for n in (1..inserted).step_by(3).take(100) {
                let value = Tracked::new(n, &live);
                gone +=
                    usize::from(map.try_remove(n % keys, &value).is_ok_and(|old| old.is_some()));
            }
            removed += gone;
            assert_eq!(map.len(), inserted as usize - gone);
            drop(rejected);
            assert_eq!(check(&mut map), map.len());
            assert_eq!(live.load(Ordering::Relaxed), map.len() as i64);
            // Whole keys leave without memory.
            let view = map.pin();
            (0..keys).for_each(|key| _ = view.remove_all(key));
            drop(view);
            assert!(map.is_empty());
            map.settle();
            map.shrink();
        }
        assert!(removed > 0, "no removal has succeeded");
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
    fill::<Sorted>(3);
    fill::<Sorted>(100_000);
    fill::<Inserted>(20);
}

/// A heap whose n-th allocation fails.
#[derive(Debug, Default)]
struct Faulty {
    /// Counts down; the allocation at zero fails, and all later ones succeed.
    left: AtomicI64,
    live: AtomicI64,
}

#[allow(clippy::disallowed_methods)] // this is a heap
// SAFETY: memory comes from the global allocator, and goes back to it.
unsafe impl Heap for Faulty {
    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return None;
        }
        self.live.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: our contract.
        unsafe { std::alloc::dealloc(object.as_ptr(), layout) };
    }
}

/// Each allocation of an insert or a removal fails in turn. The call returns the value, or succeeds
/// since it tries twice, and the map has the pairs that it says.
#[test]
fn each_allocation_fails_in_turn() {
    let sizes: &[u64] = if cfg!(miri) { &[1, 63] } else { &[0, 1, 2, 3, 62, 63, 64, 500, 4000] };
    for &size in sizes {
        for nth in 0..12 {
            for (removes, at) in [(false, size), (false, 0), (false, size / 2), (true, size / 2)] {
                let heap = Arc::new(Faulty { left: AtomicI64::new(i64::MAX), ..Faulty::default() });
                let options = Options { heap: Some(heap.clone()), ..options() };
                let live: Arc<AtomicI64> = Arc::default();
                let mut map = Heaped::<u64, Tracked, Sorted>::with_options(&options).unwrap();
                (0..size).for_each(|n| drop(map.insert(5, Tracked::new(2 * n + 1, &live))));
                let number = if removes { 2 * at + 1 } else { 2 * at };
                let value = Tracked::new(number, &live);
                heap.left.store(nth, Ordering::Relaxed);
                let view = map.pin();
                let change = if removes {
                    let removed = view.try_remove(5, &value);
                    drop(value);
                    removed.map_or(0, |removed| -i64::from(removed.is_some()))
                } else {
                    match view.try_insert(5, value) {
                        Ok(insertion) => i64::from(insertion.is_added()),
                        Err(rejected) => {
                            assert_eq!(rejected.value.number(), number);
                            0
                        }
                    }
                };
                drop(view);
                heap.left.store(i64::MAX, Ordering::Relaxed);
                assert_eq!(map.len() as i64, size as i64 + change);
                assert_eq!(check(&mut map), map.len());
                drop(map);
                assert_eq!(live.load(Ordering::Relaxed), 0, "values are live");
                assert_eq!(heap.live.load(Ordering::Relaxed), 0, "objects are live");
            }
        }
    }
}

/// A value whose order panics, lies, or calls the map.
struct Odd {
    number: u64,
    tracked: Tracked,
    mood: Arc<AtomicI64>,
}

thread_local! {
    static LIES: std::cell::RefCell<Rng> = const { std::cell::RefCell::new(Rng(0)) };
}

impl Odd {
    fn new(number: u64, live: &Arc<AtomicI64>, mood: &Arc<AtomicI64>) -> Self {
        Self { number, tracked: Tracked::new(number, live), mood: Arc::clone(mood) }
    }
}

const PANICS: i64 = 1;
const LIES_ABOUT_ORDER: i64 = 2;

impl Ord for Odd {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        assert_eq!((self.tracked.number(), other.tracked.number()), (self.number, other.number));
        let random = LIES.with_borrow_mut(|rng| rng.below(6));
        match self.mood.load(Ordering::Relaxed) {
            PANICS if random == 0 => resume_unwind(Box::new("a wanted panic")),
            LIES_ABOUT_ORDER if random == 1 => cmp::Ordering::Less,
            LIES_ABOUT_ORDER if random == 2 => cmp::Ordering::Greater,
            _ => self.number.cmp(&other.number),
        }
    }
}
impl PartialOrd for Odd {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Odd {}

/// Orders that panic leave the map as it was. Orders that lie mix values up, and lose none.
#[test]
fn odd_orders_do_no_harm() {
    fn play<O: FindOrder<Odd>>(mood: i64) {
        let (live, moods) = (Arc::<AtomicI64>::default(), Arc::<AtomicI64>::default());
        let mut map: MultiMap<u64, Odd, O> = map();
        let (mut rng, mut pairs) = (Rng(7), 0);
        moods.store(mood, Ordering::Relaxed);
        for _ in 0..work(10_000) {
            let (key, number) = (rng.below(4), rng.below(500));
            let value = Odd::new(number, &live, &moods);
            let is_insert = rng.below(3) > 0;
            let call = AssertUnwindSafe(|| {
                if is_insert {
                    i64::from(map.insert(key, value).is_added())
                } else {
                    -i64::from(map.remove(key, &value).is_some())
                }
            });
            pairs += catch_unwind(call).unwrap_or(0);
            assert_eq!(map.len() as i64, pairs);
        }
        map.flush();
        moods.store(0, Ordering::Relaxed);
        let view = map.pin();
        assert_eq!(view.iter().count() as i64, pairs);
        assert!(view.iter().all(|(_, value)| value.tracked.number() == value.number));
        drop(view);
        if mood == PANICS {
            assert_eq!(check(&mut map) as i64, pairs);
        }
        map.settle();
        assert_eq!(live.load(Ordering::Relaxed), pairs);
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
    for mood in [PANICS, LIES_ABOUT_ORDER] {
        play::<Sorted>(mood);
        play::<Inserted>(mood);
    }
}

/// Ranges of values by an order that panics or lies have values of the key and no others.
#[test]
fn ranges_by_odd_orders_do_no_harm() {
    let (live, moods) = (Arc::<AtomicI64>::default(), Arc::<AtomicI64>::default());
    let map: MultiMap<u64, Odd> = map();
    let (mut rng, count) = (Rng(5), work(5000));
    map.extend((0..count).map(|number| (1, Odd::new(number, &live, &moods))));
    for mood in [PANICS, LIES_ABOUT_ORDER] {
        moods.store(mood, Ordering::Relaxed);
        let view = map.pin();
        for _ in 0..work(5000) {
            let [low, high] = [(); 2].map(|()| Odd::new(rng.below(count), &live, &moods));
            let found = catch_unwind(AssertUnwindSafe(|| view.values_range(1, low..high)));
            assert!(found.is_ok() || mood == PANICS, "no comparison panics");
            let Ok(values) = found else { continue };
            assert!(values.len() <= count as usize);
            assert!(values.take(100).all(|value| value.tracked.number() == value.number));
        }
    }
    moods.store(0, Ordering::Relaxed);
    assert_eq!(map.len(), count as usize);
}

/// A comparison that changes the list it is called for.
#[test]
fn comparisons_may_call_the_map() {
    struct Calls(u64, std::sync::Weak<MultiMap<u64, Calls>>);
    impl Ord for Calls {
        fn cmp(&self, other: &Self) -> cmp::Ordering {
            if let Some(map) = other.1.upgrade() {
                map.insert(1, Calls(other.0 + 1000, std::sync::Weak::new()));
                map.remove(1, &Calls(self.0 ^ 1, std::sync::Weak::new()));
            }
            self.0.cmp(&other.0)
        }
    }
    impl PartialOrd for Calls {
        fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl PartialEq for Calls {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }
    impl Eq for Calls {}
    let map: Arc<MultiMap<u64, Calls>> = Arc::new(map());
    for n in 0..work(200).max(10) {
        map.insert(1, Calls(n * 7 % 200, Arc::downgrade(&map)));
        let view = map.pin();
        assert!(view.values(1).zip(view.values(1).skip(1)).all(|(a, b)| a.0 < b.0));
        assert!(view.contains(1, &Calls(n * 7 % 200 + 1000, std::sync::Weak::new())) || n == 0);
    }
}

/// Destructors may call the map, and panic.
#[test]
fn destructors_may_call_the_map() {
    struct Writes(u64, Option<Arc<MultiMap<u64, Writes, Inserted>>>);
    impl Drop for Writes {
        fn drop(&mut self) {
            if let Some(map) = self.1.take() {
                map.insert(self.0 + 100, Writes(self.0, None));
                if self.0.is_multiple_of(7) {
                    resume_unwind(Box::new("a wanted panic"));
                }
            }
        }
    }
    let map: Arc<MultiMap<u64, Writes, Inserted>> = Arc::new(map());
    for n in 0..90 {
        map.insert(n % 9, Writes(n % 9, Some(Arc::clone(&map))));
    }
    (0..9).for_each(|key| assert_eq!(map.remove_all(key), 10));
    (0..4).for_each(|_| map.flush());
    assert_eq!((map.len(), map.key_count()), (90, 9));
    assert!((0..9).all(|key| map.count(key + 100) == 10));
}

#[test]
fn counts_do_not_overflow() {
    let mut set: MultiSet<u64> = MultiSet::with_options(&options()).unwrap();
    assert_eq!(set.try_insert_copies(1, u64::MAX - 1), Ok(u64::MAX - 1));
    assert_eq!(set.insert(1), u64::MAX);
    let error = CountError::Overflow { count: u64::MAX, more: 1 };
    assert_eq!(set.try_insert(1), Err(error));
    assert_eq!(set.len(), u64::MAX);
    assert_eq!(set.insert_copies(2, 0), 0);
    assert!(!set.contains(2));
    assert_eq!(set.remove(1), Some(u64::MAX - 1));
    assert_eq!((set.check(), set.len()), (Ok(1), u64::MAX - 1));
    assert_eq!(set.pin().pop_last(), Some((1, u64::MAX - 1)));
    assert_eq!((set.len(), set.distinct()), (0, 0));
    // A sum that does not fit is `u64::MAX`, and is exact again when it fits.
    (0..4).for_each(|key| assert_eq!(set.insert_copies(key, u64::MAX - key), u64::MAX - key));
    assert_eq!((set.check(), set.len()), (Ok(4), u64::MAX));
    (0..3).for_each(|key| assert_eq!(set.remove_all(key), u64::MAX - key));
    assert_eq!((set.check(), set.len()), (Ok(1), u64::MAX - 3));
}

/// A set at its limit returns an error, and removals need no memory.
#[test]
fn a_set_at_its_limit() {
    let options =
        Options { memory_limit: Some(1 << 17), pages: Pages::Small, ..Options::default() };
    let set: MultiSet<String> = MultiSet::with_options(&options).unwrap();
    let failed = (0..1 << 17).find(|n| set.try_insert(format!("{n}")).is_err()).unwrap();
    assert_eq!((set.distinct(), set.len()), (failed, failed as u64));
    assert!((0..failed).all(|n| set.remove(format!("{n}")) == Some(0)));
    assert!(set.is_empty());
}

/// An insert at the limit frees the nodes of removed keys, and tries once more. A map does the
/// same.
#[test]
fn a_set_at_its_limit_uses_memory_of_removed_keys() {
    type Skipping = SkipList<u64>;
    fn played(mut insert: impl FnMut(u64) -> bool, mut remove: impl FnMut(u64)) -> usize {
        let failed = (0..1 << 17).find(|n| !insert(*n)).expect("there is a limit");
        (0..40).for_each(&mut remove);
        (0..40).filter(|n| insert(failed + n)).count()
    }
    let options =
        Options { memory_limit: Some(1 << 18), pages: Pages::Small, ..Options::default() };
    let set: MultiSet<u64, Skipping> = MultiSet::with_options(&options).unwrap();
    let again = played(|n| set.try_insert(n).is_ok(), |n| assert_eq!(set.remove(n), Some(0)));
    assert!(again > 0, "no key was inserted");
    let map: Map<u64, u64, Skipping> = Map::with_options(&options).unwrap();
    let again = played(|n| map.try_insert(n, n).is_ok(), |n| assert!(map.remove(n).is_some()));
    assert!(again > 0, "a map inserts");
}

/// A removal needs a new leaf if the only value that is left is escaped, and none if it is not.
#[test]
fn escaped_pairs_at_the_limit() {
    let options =
        Options { memory_limit: Some(1 << 17), pages: Pages::Small, ..Options::default() };
    let mut map: MultiMap<u64, u64> = MultiMap::with_options(&options).unwrap();
    let is_full = |n: &u64| map.try_insert(n / 2, n % 2 * ESCAPED + n).is_err();
    let failed = (0..1 << 17).find(is_full).expect("there is a limit");
    let (mut len, mut view) = (failed as usize, map.pin());
    for key in 0..failed / 2 {
        let (plain, escaped) = (2 * key, ESCAPED + 2 * key + 1);
        if key % 2 == 0 {
            assert_eq!(view.remove(key, &escaped).as_deref(), Some(&escaped));
            len -= 1;
        } else {
            match view.try_remove(key, &plain) {
                Ok(removed) => len -= usize::from(removed.is_some()),
                Err(error) => assert!(matches!(error, AllocError::Limit { .. })),
            }
        }
        assert_eq!(view.len(), len);
        view.repin();
    }
    drop(view);
    assert!(len < failed as usize, "no value was removed");
    assert_eq!(check(&mut map), len);
}
