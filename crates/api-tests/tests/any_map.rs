//! Maps whose structure is chosen at run time, beside the standard library's map.

use silvics::dynamic::{AnyMap, AnyOrdered, InTable, Structure, StructureError};
use silvics::key::Key;
use silvics::{AllocError, Check, Domain, Options};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

/// A value that counts those of its kind.
#[derive(Debug)]
struct Counted(u64, Arc<AtomicUsize>);

impl Counted {
    fn new(number: u64, count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(number, Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// The names of all structures that scan.
fn names<F: InTable + ?Sized>() -> Vec<String> {
    Structure::<F>::names(true).split(", ").map(str::to_string).collect()
}

/// A domain of its own: a pin of another test must not keep values.
fn options() -> Options {
    Options { domain: Some(Domain::new()), ..Options::default() }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A map, its model, and the number of values.
struct Twins<K: Key<Form: InTable> + Ord> {
    map: AnyMap<K, Counted>,
    model: BTreeMap<K, u64>,
    count: Arc<AtomicUsize>,
}

impl<K> Twins<K>
where
    K: Key<Form: InTable> + Ord + Clone + Debug,
    for<'a> &'a K: silvics::AsKey<K>,
{
    fn value(&self, number: u64) -> Counted {
        Counted::new(number, &self.count)
    }

    /// Makes a random call that writes.
    fn write(&mut self, call: u64, key: K, step: u64) {
        let view = self.map.pin();
        match call {
            0..3 => {
                let old = view.try_upsert(&key, self.value(step)).expect("memory");
                assert_eq!(old.map(|old| old.0), self.model.insert(key, step));
            }
            3 => {
                let fails = view.try_insert(&key, self.value(step)).is_err();
                assert_eq!(fails, self.model.contains_key(&key));
                self.model.entry(key).or_insert(step);
            }
            4 => assert_eq!(view.remove(&key).map(|old| old.0), self.model.remove(&key)),
            5 => {
                let expected = self.model.get(&key).map(|&number| self.value(number));
                let new = Some(self.value(step));
                let old = view.compare_exchange(&key, expected.as_ref(), new).expect("expected");
                assert_eq!(old.map(|old| old.0), self.model.insert(key.clone(), step));
                let wrong = self.value(u64::MAX);
                view.compare_exchange(&key, Some(&wrong), None).expect_err("another value");
            }
            _ => {
                let Some(ends) = view.ends() else { return };
                let pair = |(key, value): (K::Ref<'_>, silvics::ValueRef<'_, Counted>)| {
                    (K::to_owned(key), value.0)
                };
                let (model, copy) = (&mut self.model, |(key, at): (&K, &u64)| (key.clone(), *at));
                assert_eq!(ends.first().map(pair), model.first_key_value().map(copy));
                assert_eq!(ends.last().map(pair), model.last_key_value().map(copy));
                if step.is_multiple_of(2) {
                    assert_eq!(ends.try_pop_first().expect("memory").map(pair), model.pop_first());
                    assert_eq!(ends.try_pop_last().expect("memory").map(pair), model.pop_last());
                }
            }
        }
    }

    /// Makes a random call that reads.
    fn read(&self, call: u64, number: u64, key: impl Fn(u64) -> K) {
        let (view, chosen, model) = (self.map.pin(), key(number), &self.model);
        let from = (Bound::Included(&chosen), Bound::Unbounded);
        let above = model.range(chosen.clone()..);
        match call {
            0 => {
                let all = view.range(from).map(|(key, value)| (K::to_owned(key), value.0));
                assert!(all.eq(above.map(|(key, number)| (key.clone(), *number))));
                assert!(
                    view.iter_rev()
                        .map(|(key, _)| K::to_owned(key))
                        .eq(model.keys().rev().cloned())
                );
            }
            1 => {
                let keys = [key(number), key(number + 1), key(number + 300)];
                let mut found = [const { None }; 3];
                view.get_many(&keys.each_ref()[..], &mut found);
                let found = found.map(|found| found.map(|value| value.0));
                assert_eq!(found, keys.map(|key| model.get(&key).copied()));
            }
            _ => {
                let Some(ranks) = view.ranks() else { return };
                assert_eq!(ranks.rank(&chosen), model.range(..chosen.clone()).count());
                assert_eq!(ranks.count(from), above.count());
                let nth = ranks.nth(number as usize);
                let wanted = model.iter().nth(number as usize);
                assert_eq!(
                    nth.map(|(key, value)| (K::to_owned(key), value.0)),
                    wanted.map(|(key, value)| (key.clone(), *value))
                );
            }
        }
    }

    /// Checks the map at rest, and that it drops its values once no cursor has it.
    fn finish(mut self) {
        let entries = self.model.len();
        let values = || self.count.load(Ordering::Relaxed);
        self.map.settle();
        assert_eq!(self.map.check(), Ok(entries));
        assert_eq!((self.map.len(), values()), (entries, entries));
        let map = Arc::new(self.map);
        let mut cursor = map.cursor();
        drop(map);
        for key in self.model.keys() {
            assert!(cursor.next() && cursor.key().map(K::to_owned).as_ref() == Some(key));
        }
        assert!(!cursor.next());
        assert_eq!(values(), entries);
        drop(cursor);
        assert_eq!(values(), 0);
    }
}

/// Makes the same random calls of a map and of the model, and compares all results.
fn compare<K>(map: AnyMap<K, Counted>, key: impl Fn(u64) -> K)
where
    K: Key<Form: InTable> + Ord + Clone + Debug,
    for<'a> &'a K: silvics::AsKey<K>,
{
    let mut twins = Twins { map, model: BTreeMap::new(), count: Arc::default() };
    let mut state = 7;
    for step in 0..4000 {
        let number = random(&mut state) % 300;
        match random(&mut state) % 10 {
            call @ 0..7 => twins.write(call, key(number), step),
            call => twins.read(call - 7, number, &key),
        }
    }
    twins.finish();
}

#[test]
fn all_structures_with_number_keys_behave_as_the_model() {
    let names = names::<u64>();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let structure = Structure::<u64>::named(&name).expect("in the table");
        let map = structure.map::<u64, _>(&options()).expect("memory");
        assert!(!map.has_ranks());
        compare(map, |number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

#[test]
fn all_structures_with_string_keys_behave_as_the_model() {
    let names = names::<[u8]>();
    assert!(names.len() > 3, "{names:?}");
    for name in names {
        let structure = Structure::<[u8]>::named(&name).expect("in the table");
        let map = structure.map::<String, _>(&options()).expect("memory");
        compare(map, |number| format!("key {number}"));
    }
}

#[test]
fn counted_maps_behave_as_the_model() {
    let map = AnyMap::<u64, _>::counted(&options()).expect("memory");
    assert!(map.has_ranks() && map.has_ends());
    compare(map, |number| number * 3);
    let map = AnyMap::<String, _>::counted(&options()).expect("memory");
    compare(map, |number| format!("{number:05}"));
}

#[test]
fn maps_load_sorted_and_unsorted_entries() {
    for name in names::<u64>() {
        let structure = Structure::<u64>::named(&name).expect("in the table");
        let mut map = structure.map::<u64, u64>(&Options::default()).expect("memory");
        map.extend((0..1000).rev().map(|number| (number, number)));
        assert_eq!(map.check(), Ok(1000), "{name}");
    }
    // The default structure is built from sorted entries.
    let map: AnyMap<u64, String> = (0..1000_u64).rev().map(|n| (n, n.to_string())).collect();
    let view = map.pin();
    assert!(
        view.iter()
            .map(|(key, value)| (key, value.clone()))
            .eq((0..1000).map(|n| (n, n.to_string())))
    );
    let sorted = AnyMap::<Vec<u8>, u64>::from_sorted(
        [("a", 1), ("b", 2)].map(|(k, v)| (k.as_bytes().to_vec(), v)),
    );
    assert_eq!(sorted.expect("sorted").len(), 2);
}

#[test]
fn a_map_keeps_its_limit() {
    for name in names::<u64>() {
        let options = Options { memory_limit: Some(1 << 20), ..Options::default() };
        let structure = Structure::<u64>::named(&name).expect("in the table");
        let map = structure.map::<u64, [u64; 4]>(&options).expect("memory");
        let refused = (0..1 << 20).find_map(|number| map.try_upsert(number, [number; 4]).err());
        let refused = refused.unwrap_or_else(|| panic!("{name}: the limit holds not a million"));
        assert!(matches!(refused.error, AllocError::Limit { limit: 1_048_576, .. }), "{name}");
        assert_eq!(refused.value[0] as usize, map.len(), "{name}");
        assert!(map.bytes() <= 1 << 20, "{name}");
    }
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    let error = Structure::<u64>::named("rope").expect_err("no such structure");
    let text = error.to_string();
    assert!(
        text.starts_with("there is no structure `rope`: choose one of edge-ext-lf, "),
        "{text}"
    );
    let error = Structure::<[u8]>::named("words").expect_err("numbers only");
    assert!(matches!(&error, StructureError::Keys { keys: "byte strings", .. }), "{error}");
    assert!(Structure::<u64>::named("edge-ext-lf:rope").is_err());
    let citrus = Structure::<u64>::named("citrus").expect("in the table");
    assert!(!citrus.scans());
    let error = citrus.map::<u64, u64>(&Options::default()).map(drop).expect_err("no scans");
    assert_eq!(Err(error), Structure::<u64>::scanning("citrus").map(drop));
    assert!(citrus.index(&Options::default()).is_ok());
    let baseline = Structure::<u64>::named("edge-ext-lf:baseline").expect("in the table");
    assert_eq!(baseline.name(), "edge-ext-lf");
}

/// The index of a map is an index itself: it can be shared and has a cursor.
#[test]
fn an_index_of_any_structure_has_cursors() {
    use silvics::index::Cursor;
    use silvics::{Lookup, OrderedIndex, OrderedScan, SkipList};
    let index =
        AnyOrdered::new(SkipList::<u64>::with_options(&Options::default()).expect("memory"));
    let index = Arc::new(index);
    for key in 0..10 {
        index.insert(key, key + 1, &index.domain().pin()).expect("memory");
    }
    let mut cursor = index.cursor();
    assert!(cursor.seek(5) && cursor.value() == Some(6) && cursor.prev());
    assert_eq!(cursor.key(), Some(4));
    assert_eq!(format!("{index:?}"), "AnyOrdered(10 keys)");
}
