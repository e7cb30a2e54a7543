//! Random calls beside maps of the standard library.

use super::*;
use silvics::AsKey;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::Bound;

/// A model of the values of one key.
trait Model<V>: Default {
    type Order: FindOrder<V>;
    fn insert(&mut self, value: V) -> bool;
    fn remove(&mut self, value: &V) -> bool;
    fn list(&self) -> Vec<V>;
}

impl<V: Value + Ord + Clone> Model<V> for BTreeSet<V> {
    type Order = Sorted;
    fn insert(&mut self, value: V) -> bool {
        BTreeSet::insert(self, value)
    }
    fn remove(&mut self, value: &V) -> bool {
        BTreeSet::remove(self, value)
    }
    fn list(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

impl<V: Value + PartialEq + Clone> Model<V> for Vec<V> {
    type Order = Inserted;
    fn insert(&mut self, value: V) -> bool {
        self.push(value);
        true
    }
    fn remove(&mut self, value: &V) -> bool {
        let at = self.iter().position(|other| other == value);
        at.map(|at| Vec::remove(self, at)).is_some()
    }
    fn list(&self) -> Vec<V> {
        self.clone()
    }
}

/// A map and its model.
struct Play<K: Key, V: Value, M: Model<V>, I: silvics::map::MapIndex<Key = K::Form>> {
    map: MultiMap<K, V, M::Order, I>,
    model: BTreeMap<K, M>,
    rng: Rng,
}

impl<K, V, M, I> Play<K, V, M, I>
where
    K: Key + Ord + Clone + Debug,
    V: Value + Ord + Clone + Debug,
    M: Model<V>,
    I: silvics::map::MapIndex<Key = K::Form> + Check,
    for<'a> &'a K: AsKey<K>,
{
    fn step(&mut self, key: &K, value: V) {
        let Self { map, model, rng } = self;
        match rng.below(10) {
            0..5 => {
                let is_new = model.entry(key.clone()).or_default().insert(value.clone());
                let done = map.insert(key, value.clone());
                assert_eq!(done.is_added(), is_new);
                assert_eq!(done.into_value(), (!is_new).then_some(value));
            }
            5..8 => {
                let was_there = model.get_mut(key).is_some_and(|values| values.remove(&value));
                if rng.below(2) == 0 {
                    let removed = map.remove(key, &value);
                    assert_eq!(removed.as_deref(), was_there.then_some(&value));
                } else {
                    let view = map.pin();
                    assert_eq!(view.remove(key, &value).as_deref(), was_there.then_some(&value));
                }
            }
            8 if rng.below(200) == 0 => {
                let values = model.remove(key).map_or(0, |values| values.list().len());
                assert_eq!(map.remove_all(key), values);
            }
            _ => {
                let values = model.get(key).map(M::list).unwrap_or_default();
                assert_eq!(map.contains(key, &value), values.contains(&value));
            }
        }
        model.retain(|_, values| !values.list().is_empty());
        let values = model.get(key).map(M::list).unwrap_or_default();
        let view = map.pin();
        assert_eq!(view.count(key), values.len());
        assert_eq!(view.contains_key(key), !values.is_empty());
        assert_eq!(map.first_of(key).as_deref(), values.first());
        assert_eq!(view.last_of(key).as_deref(), values.last());
        same_values(view.values(key), &values, rng);
    }

    fn look(&mut self) {
        let Self { map, model, rng } = self;
        let pairs: Vec<(K, V)> = model
            .iter()
            .flat_map(|(key, values)| values.list().into_iter().map(|value| (key.clone(), value)))
            .collect();
        assert_eq!((map.len(), map.key_count()), (pairs.len(), model.len()));
        assert_eq!(map.is_empty(), pairs.is_empty());
        let view = map.pin();
        let own = |(key, value): (K::Ref<'_>, silvics::ValueRef<'_, V>)| -> (K, V) {
            (K::to_owned(key), (*value).clone())
        };
        assert!(view.iter().map(own).eq(pairs.iter().cloned()));
        assert!(view.iter_rev().map(own).eq(pairs.iter().rev().cloned()));
        // Both ends of a part.
        let (low, high) = (rng.below(pairs.len() as u64 + 1), rng.below(pairs.len() as u64 + 1));
        let Some((from, to)) = pairs.get(low as usize).zip(pairs.get(high as usize)) else {
            return;
        };
        let (from, to) = (from.0.clone().min(to.0.clone()), from.0.clone().max(to.0.clone()));
        let part = pairs.iter().filter(|(key, _)| (&from..=&to).contains(&key)).cloned();
        let mut part: std::collections::VecDeque<_> = part.collect();
        let mut range = view.range(&from..=&to);
        while !part.is_empty() {
            let (ours, theirs) = if rng.below(2) == 0 {
                (range.next(), part.pop_front())
            } else {
                (range.next_back(), part.pop_back())
            };
            assert_eq!(ours.map(own), theirs);
        }
        assert!(range.next().is_none() && range.next_back().is_none());
        drop(range);
        assert!(view.keys().map(K::to_owned).eq(model.keys().cloned()));
        let groups = view.groups(..).map(|(key, values)| (K::to_owned(key), values.len()));
        assert!(groups.eq(model.iter().map(|(key, values)| (key.clone(), values.list().len()))));
        drop(view);
        assert_eq!(check(map), map.len());
    }
}

/// Reads values from both ends, and jumps.
fn same_values<V: Value + PartialEq + Debug>(
    mut values: silvics::multi::ListedValues<'_, V>,
    expected: &[V],
    rng: &mut Rng,
) {
    let mut left = expected.iter();
    while left.len() > 0 {
        assert_eq!(values.len(), left.len());
        let (ours, theirs) = match rng.below(5) {
            0..2 => (values.next(), left.next()),
            2..4 => (values.next_back(), left.next_back()),
            _ => {
                let skipped = rng.below(70) as usize;
                (values.nth(skipped), left.nth(skipped))
            }
        };
        assert_eq!(ours.as_deref(), theirs);
    }
    assert!(values.next().is_none() && values.next_back().is_none());
}

/// Make keys and values of numbers.
type Make<K, V> = (fn(u64) -> K, fn(u64) -> V);

fn play<K, V, M, I>(seed: u64, rounds: u64, of: Make<K, V>, most: u64)
where
    K: Key + Ord + Clone + Debug,
    V: Value + Ord + Clone + Debug,
    M: Model<V>,
    I: silvics::map::MapIndex<Key = K::Form> + Check,
    for<'a> &'a K: AsKey<K>,
{
    let map = MultiMap::with_options(&options()).expect("there is memory");
    let mut play: Play<K, V, M, I> = Play { map, model: BTreeMap::new(), rng: Rng(seed) };
    let mut keys = 8;
    for round in 0..work(rounds) {
        if round % 64 == 0 {
            keys = 1 + play.rng.below(40);
        }
        let (key, value) = (play.rng.below(keys), play.rng.below(most));
        play.step(&of.0(key), of.1(value));
        if round % work(500).max(5) == 0 {
            play.look();
        }
    }
    play.look();
}

fn number(n: u64) -> u64 {
    // One of three is escaped.
    if n.is_multiple_of(3) { n | ESCAPED } else { mixed(n) }
}

fn text(n: u64) -> String {
    format!("{:x}/{n}", mixed(n) % 17)
}

fn small(n: u64) -> u64 {
    n
}

#[test]
fn sorted_values_agree() {
    play::<u64, u64, BTreeSet<u64>, DefaultIndex<u64>>(1, 6000, (small, number), 300);
    play::<u64, String, BTreeSet<String>, DefaultIndex<u64>>(2, 6000, (small, text), 30);
    play::<String, u64, BTreeSet<u64>, DefaultIndex<String>>(3, 6000, (text, number), 30);
    play::<String, String, BTreeSet<String>, DefaultIndex<String>>(4, 6000, (text, text), 300);
}

#[test]
fn values_in_order_of_insertion_agree() {
    play::<u64, u64, Vec<u64>, DefaultIndex<u64>>(5, 6000, (small, number), 300);
    play::<u64, String, Vec<String>, DefaultIndex<u64>>(6, 6000, (small, text), 30);
    play::<String, u64, Vec<u64>, DefaultIndex<String>>(7, 6000, (text, number), 30);
    play::<String, String, Vec<String>, DefaultIndex<String>>(8, 6000, (text, text), 300);
}

#[test]
fn values_from_a_heap_agree() {
    play::<u64, u64, Vec<u64>, DefaultIndex<u64, Shared>>(9, 3000, (small, number), 300);
    play::<String, String, BTreeSet<String>, DefaultIndex<String, Shared>>(
        10,
        3000,
        (text, text),
        100,
    );
}

/// One key with up to thousands of values, in several orders of inserts and removals.
#[test]
fn long_lists_agree() {
    let count = work(20_000);
    let orders: [fn(u64, u64) -> u64; 4] = [
        |n, _| n,
        |n, count| count - 1 - n,
        |n, count| n * 7919 % count,
        |n, count| if n % 2 == 0 { n / 2 } else { count - 1 - n / 2 },
    ];
    for insert in orders {
        for remove in orders {
            let mut map: MultiMap<u64, u64> = map();
            for n in 0..count {
                assert!(map.insert(7, insert(n, count)).is_added());
                assert_eq!(map.count(7), n as usize + 1);
                if n.is_power_of_two() {
                    check(&mut map);
                }
            }
            assert!(map.pin().values(7).map(|value| *value).eq(0..count));
            assert!(map.pin().values(7).rev().map(|value| *value).eq((0..count).rev()));
            assert_eq!(map.pin().values(7).nth(count as usize / 2).as_deref(), Some(&(count / 2)));
            assert_eq!(map.insert(7, 5), Insertion::Present { value: 5 });
            let lists = map.memory().lists;
            assert!(cfg!(miri) || lists <= 20 * count as usize, "{lists} bytes of lists");
            for n in 0..count {
                let value = remove(n, count);
                assert_eq!(map.remove(7, &value).as_deref(), Some(&value));
                let left = count - 1 - n;
                if left.is_power_of_two() || left == 0 {
                    assert_eq!(check(&mut map), left as usize);
                    let lists = map.memory().lists as u64;
                    assert!(lists <= 60 * left + 1000, "{lists} bytes for {left} values");
                }
            }
            assert!(map.is_empty());
        }
    }
}

/// The values of one key between two bounds, in lists of one leaf and of several levels.
#[test]
fn ranges_of_values_agree() {
    let mut rng = Rng(11);
    for size in [0, 1, 2, 63, 64, 65, work(1000), work(20_000)] {
        let map: MultiMap<u64, String> = map();
        let text = |n: u64| format!("{n:05}");
        let model: BTreeSet<String> = (0..size).map(|n| text(2 * n)).collect();
        map.extend(model.iter().rev().map(|value| (1, value.clone())));
        let view = map.pin();
        for _ in 0..200 {
            let ends = [(); 2].map(|()| text(rng.below(2 * size + 2)));
            let [low, high] = [0, 1].map(|at| match rng.below(5) {
                0 => Bound::Unbounded,
                1 | 2 => Bound::Included(ends[at].as_str()),
                _ => Bound::Excluded(ends[at].as_str()),
            });
            let is_over = |value: &&String| match low {
                Bound::Included(low) => value.as_str() >= low,
                Bound::Excluded(low) => value.as_str() > low,
                Bound::Unbounded => true,
            };
            let is_below = |value: &&String| match high {
                Bound::Included(high) => value.as_str() <= high,
                Bound::Excluded(high) => value.as_str() < high,
                Bound::Unbounded => true,
            };
            let expected: Vec<_> = model.iter().filter(is_over).filter(is_below).collect();
            let values = view.values_range::<str>(1, (low, high));
            assert_eq!(values.len(), expected.len(), "{low:?} to {high:?} of {size}");
            assert!(values.clone().zip(&expected).all(|(value, other)| *value == **other));
            assert!(
                values.rev().zip(expected.iter().rev()).all(|(value, other)| *value == **other)
            );
        }
        assert_eq!(view.values_range::<str>(2, ..).len(), 0, "the key is absent");
    }
}

/// Values that come and go leave no small nodes behind.
#[test]
fn lists_do_not_decay() {
    let mut map: MultiMap<u64, u64> = map();
    let (mut rng, size) = (Rng(3), work(5000));
    for value in 0..size {
        map.insert(1, value << 32);
    }
    for round in 0..20 * size {
        let view = map.pin();
        let at = rng.below(size) as usize;
        let value = *view.values(1).nth(at).unwrap();
        assert!(view.remove(1, &value).is_some());
        assert!(view.insert(1, rng.below(size << 32) | round).is_added() || size < 1000);
    }
    check(&mut map);
    let (lists, count) = (map.memory().lists, map.count(1));
    assert!(lists <= 24 * count, "{lists} bytes for {count} values");
}

/// Each value is dropped once, whichever call removes it.
#[test]
fn values_are_dropped_once() {
    fn drops<O: FindOrder<Tracked>, I>(mut map: MultiMap<u64, Tracked, O, I>)
    where
        I: silvics::map::MapIndex<Key = u64> + Check,
    {
        let live: Arc<AtomicI64> = Arc::default();
        let mut rng = Rng(1);
        for _ in 0..work(20_000) {
            let (key, value) = (rng.below(8), Tracked::new(rng.below(300), &live));
            match rng.below(20) {
                0..12 => drop(map.insert(key, value)),
                12..19 => drop(map.remove(key, &value)),
                _ if rng.below(50) == 0 => _ = map.remove_all(key),
                _ => {}
            }
        }
        map.flush();
        let pairs = check(&mut map);
        assert_eq!(live.load(Ordering::Relaxed), pairs as i64);
        let view = map.pin();
        let kept: Vec<_> = view.values(1).collect();
        let numbers: Vec<u64> = kept.iter().map(|value| value.number()).collect();
        assert_eq!(map.clear(), pairs);
        assert!(kept.iter().map(|value| value.number()).eq(numbers), "the view protects them");
        drop(kept);
        drop(view);
        assert_eq!((map.len(), map.key_count()), (0, 0));
        check(&mut map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
        (0..1000).for_each(|n| drop(map.insert(n % 10, Tracked::new(n, &live))));
        drop(map);
        assert_eq!(live.load(Ordering::Relaxed), 0);
    }
    drops(map::<u64, Tracked, Sorted>());
    drops(map::<u64, Tracked, Inserted>());
    drops(Heaped::<u64, Tracked, Sorted>::with_options(&options()).unwrap());
}

#[test]
fn sets_agree() {
    let mut set: MultiSet<String> = MultiSet::with_options(&options()).unwrap();
    let (mut model, mut rng) = (BTreeMap::<String, u64>::new(), Rng(4));
    for round in 0..work(20_000) {
        let key = text(rng.below(100));
        match rng.below(12) {
            0..5 => {
                let count = model.entry(key.clone()).or_default();
                *count += 1;
                assert_eq!(set.insert(&key), *count);
            }
            5 => {
                let more = rng.below(5);
                let count = model.entry(key.clone()).or_default();
                *count += more;
                assert_eq!(set.pin().insert_copies(&key, more), *count);
            }
            6..10 => {
                let left = model.get_mut(&key).map(|count| {
                    *count -= 1;
                    *count
                });
                assert_eq!(set.remove(&key), left);
            }
            10 => assert_eq!(set.remove_all(&key), model.remove(&key).unwrap_or(0)),
            _ if rng.below(10) == 0 => assert_eq!(set.pop_first(), model.pop_first()),
            _ if rng.below(10) == 0 => assert_eq!(set.pop_last(), model.pop_last()),
            _ => {}
        }
        model.retain(|_, count| *count > 0);
        assert_eq!(set.count(&key), model.get(&key).copied().unwrap_or(0));
        assert_eq!(set.contains(&key), model.contains_key(&key));
        let own = |entry: (&String, &u64)| (entry.0.clone(), *entry.1);
        assert_eq!(set.first(), model.first_key_value().map(own));
        assert_eq!(set.last(), model.last_key_value().map(own));
        if round % work(200).max(5) == 0 {
            let view = set.pin();
            let expected = || model.iter().map(|(key, count)| (key.as_str(), *count));
            assert!(view.iter().eq(expected()));
            assert!(view.range_rev(..).eq(expected().rev()));
            assert_eq!((set.len(), set.distinct()), (model.values().sum(), model.len()));
            drop(view);
            assert_eq!(set.check(), Ok(model.len()));
        }
    }
    set.clear();
    assert_eq!((set.distinct(), set.len()), (0, 0));
}

#[test]
fn maps_are_collected_and_printed() {
    let map: MultiMap<String, u64> = [("b", 2), ("a", 3), ("b", 1)].into_iter().collect();
    assert_eq!(format!("{map:?}"), r#"{"a": [3], "b": [1, 2]}"#);
    let mut log: MultiMap<(String, u64), char, Inserted> = MultiMap::new();
    Extend::extend(&mut log, [(("x", 1), 'b'), (("x", 2), 'a'), (("x", 1), 'b'), (("y", 1), 'c')]);
    let view = log.pin();
    let found: String = view.prefix(("x",)).map(|(_, value)| *value).collect();
    assert_eq!(found, "bba");
    assert_eq!(log.remove_range(("x", 2)..), 2);
    assert_eq!(log.len(), 2);
    let set: MultiSet<u64> = [3, 1, 3].into_iter().collect();
    assert_eq!(format!("{set:?}"), "{1: 1, 3: 2}");
}
