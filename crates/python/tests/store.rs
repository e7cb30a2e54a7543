//! The store beside a map of the standard library, over structures with and without ends and ranks.

use _silvics::store::{Entries, Key, Keys, OwnedKey, Store};
use silvics::Options;
use std::collections::BTreeMap;
use std::ops::Bound;

const STRUCTURES: [Option<&str>; 4] =
    [None, Some("skiplist"), Some("edge-ext-lf"), Some("ca-tree")];

fn stores() -> impl Iterator<Item = Store> {
    let options = Options::default();
    let both = STRUCTURES.iter().flat_map(|name| [(true, *name), (false, *name)]);
    both.map(move |(words, name)| Store::new(words, name, &options)).filter_map(Result::ok)
}

fn key(store: &Store, number: u64) -> OwnedKey {
    if store.are_words() {
        OwnedKey::Word(number)
    } else {
        OwnedKey::Block(format!("{number:04}").into_bytes())
    }
}

fn number(key: Key<'_>) -> u64 {
    match key {
        Key::Word(word) => word,
        Key::Block(block) => std::str::from_utf8(block).unwrap().parse().unwrap(),
    }
}

fn all(store: &Store, reverse: bool) -> Vec<(u64, u64)> {
    let mut entries = Entries::empty(store.are_words());
    store.scan(&(Bound::Unbounded, Bound::Unbounded), reverse, usize::MAX, &mut entries).unwrap();
    let keys = (0..entries.keys.len()).map(|at| number(entries.keys.get(at)));
    keys.zip(entries.words.iter().copied()).collect()
}

#[test]
fn a_store_is_a_sorted_map() {
    for store in stores() {
        let mut model = BTreeMap::new();
        let mut seed = 7_u64;
        for _ in 0..3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (at, verb) = (seed >> 33 & 255, seed >> 60);
            let owned = key(&store, at);
            let form = owned.borrow();
            match verb {
                0..6 => assert_eq!(store.upsert(form, seed).unwrap(), model.insert(at, seed)),
                6..10 => assert_eq!(store.remove(form).unwrap(), model.remove(&at)),
                10 => {
                    let present = model.get(&at).copied();
                    let exchanged = store.compare_exchange(form, present, Some(seed)).unwrap();
                    assert_eq!(exchanged, Ok(()));
                    let refused = store.compare_exchange(form, Some(seed + 1), None).unwrap();
                    assert_eq!(refused, Err(Some(seed)));
                    model.insert(at, seed);
                }
                11 => {
                    let present = store.insert_absent(form, seed).unwrap();
                    assert_eq!(present, model.get(&at).copied());
                    model.entry(at).or_insert(seed);
                }
                12 => {
                    let popped = store.pop_end(at & 1 == 1).unwrap();
                    let popped = popped.map(|(key, word)| (number(key.borrow()), word));
                    let wanted = if at & 1 == 1 { model.pop_last() } else { model.pop_first() };
                    assert_eq!(popped, wanted);
                }
                _ => assert_eq!(store.get(form), model.get(&at).copied()),
            }
        }
        assert_eq!(store.len(), model.len());
        let entries: Vec<_> = model.iter().map(|(key, word)| (*key, *word)).collect();
        assert_eq!(all(&store, false), entries);
        assert_eq!(all(&store, true), entries.iter().rev().copied().collect::<Vec<_>>());
        assert_eq!(store.check(), Ok(model.len()));
        let end = store.end(true).map(|(key, _)| number(key.borrow()));
        assert_eq!(end, model.last_key_value().map(|(key, _)| *key));
    }
}

#[test]
fn many_keys_at_once() {
    for store in stores() {
        let mut keys = Keys::empty(store.are_words());
        (0..1000).for_each(|at| keys.push(key(&store, at * 7 % 1000).borrow()).unwrap());
        let words: Vec<u64> = (0..1000).collect();
        store.extend(&keys, &words, 0).unwrap();
        let mut old = Vec::new();
        store.insert_many(&keys, &words, 0, |word| old.push(word)).unwrap();
        assert_eq!(old, words);
        keys.push(key(&store, 5000).borrow()).unwrap();
        let mut found = Vec::new();
        store.get_many(&keys, |word| found.push(word));
        let wanted = words.iter().copied().map(Some).chain([None]);
        assert_eq!(found, wanted.collect::<Vec<_>>());
    }
}

#[test]
fn ranks_belong_to_the_default_structure() {
    for store in stores() {
        (0..500).for_each(|at| _ = store.upsert(key(&store, at * 2).borrow(), at).unwrap());
        let probe = key(&store, 301);
        let range = (Bound::Included(key(&store, 10)), Bound::Excluded(key(&store, 20)));
        if store.has_ranks() {
            assert_eq!(store.rank(probe.borrow()), Some(151));
            assert_eq!(store.count(&range), Some(5));
            assert_eq!(store.nth(7), Some((key(&store, 14), 7)));
            assert!(store.has_ends());
        } else {
            assert_eq!(store.rank(probe.borrow()), None);
            assert_eq!((store.count(&range), store.nth(7)), (None, None));
        }
    }
}

#[test]
fn a_limit_refuses_and_keeps_the_rest() {
    let options = Options { memory_limit: Some(1 << 20), ..Options::default() };
    let store = Store::new(true, None, &options).unwrap();
    let mut keys = Keys::empty(true);
    (0..1_000_000).for_each(|at| keys.push(Key::Word(at)).unwrap());
    let words = vec![1; 1_000_000];
    let (done, _) = store.extend(&keys, &words, 0).unwrap_err();
    assert!(done > 1000 && done == store.len() && store.bytes() <= 1 << 20);
    let (more, _) = store.insert_many(&keys, &words, 0, |_| ()).unwrap_err();
    assert!(more >= done);
}
