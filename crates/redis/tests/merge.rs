//! The cursor over shards, over shards in memory and over replies of a server.
#![cfg(feature = "client")]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::{Bound, RangeBounds};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use redis::{ConnectionLike, RedisResult, Value};
use silvics_redis::client::{Entry, Page, Pages, Reconnecting, Scan, Shards, ShardsError};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Maps = BTreeMap<String, Map>;

/// Shards in memory, which fail in the calls that `fails` names.
#[derive(Default)]
struct Fake {
    maps: Maps,
    /// Whether a call fails, by its number.
    fails: Vec<bool>,
    calls: usize,
    /// The most entries that one call returned.
    largest: usize,
    /// Runs before each call, with its number.
    meanwhile: Option<fn(&mut Maps, usize)>,
}

#[derive(Debug, PartialEq)]
struct Down;

impl Pages for Fake {
    type Error = Down;

    fn page(&mut self, page: &Page<'_>) -> Result<Vec<Entry>, Down> {
        self.calls += 1;
        if let Some(meanwhile) = self.meanwhile {
            meanwhile(&mut self.maps, self.calls);
        }
        if self.fails.get(self.calls - 1) == Some(&true) {
            return Err(Down);
        }
        let entries = self.maps.get(page.map).map(|map| {
            let within = |key: &[u8]| RangeBounds::<[u8]>::contains(&(page.min, page.max), key);
            let mut entries: Vec<Entry> = map
                .iter()
                .filter(|(key, _)| within(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if page.descending {
                entries.reverse();
            }
            entries.truncate(page.entries.get());
            entries
        });
        let entries = entries.unwrap_or_default();
        self.largest = self.largest.max(entries.len());
        Ok(entries)
    }
}

impl Fake {
    fn of(shards: &Shards, entries: &Map) -> Self {
        let mut fake = Self::default();
        for (key, value) in entries {
            let map = fake.maps.entry(shards.map_of(key).to_owned()).or_default();
            map.insert(key.clone(), value.clone());
        }
        fake
    }
}

/// Short keys over few bytes, so that prefixes, zeros, 0xFF and the signs of bounds are frequent.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0), Just(b'('), Just(b'-'), Just(b'['), Just(254), Just(255)], 0..4)
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        keys().prop_map(Bound::Included),
        keys().prop_map(Bound::Excluded)
    ]
}

/// The entries that one map with all of them would return.
fn expected(map: &Map, within: impl Fn(&[u8]) -> bool, descending: bool) -> Vec<Entry> {
    let mut entries: Vec<Entry> = map
        .iter()
        .filter(|(key, _)| within(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if descending {
        entries.reverse();
    }
    entries
}

proptest! {
    #[test]
    fn shards_are_as_one_map(
        map in btree_map(keys(), vec(any::<u8>(), 0..3), 0..60),
        count in 1_usize..9,
        page in 1_usize..7,
        range in (bounds(), bounds()),
        descending: bool,
        fails in vec(prop::bool::weighted(0.3), 0..40),
    ) {
        let shards = Shards::new("m", count).unwrap();
        let fake = Fake { fails, ..Fake::of(&shards, &map) };
        let mut scan = shards.scan().range(range.clone()).page(NonZeroUsize::new(page).unwrap());
        if descending {
            scan = scan.descending();
        }
        let mut failures = 0;
        let mut found = Vec::new();
        let mut merge = scan.merge(fake);
        for item in merge.by_ref() {
            match item {
                Ok(entry) => found.push(entry),
                Err(Down) => failures += 1,
            }
        }
        prop_assert!(merge.next().is_none());
        let fake = merge.into_source();
        let within = |key: &[u8]| {
            let range = (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice));
            RangeBounds::<[u8]>::contains(&range, key)
        };
        prop_assert_eq!(found, expected(&map, within, descending));
        prop_assert_eq!(failures, fake.fails.iter().take(fake.calls).filter(|&&fail| fail).count());
        prop_assert!(fake.largest <= page);
    }

    #[test]
    fn prefixes(map in btree_map(keys(), Just(vec![]), 0..60), prefix in keys()) {
        let shards = Shards::new("m", 3).unwrap();
        let merge = shards.scan().prefix(&prefix).merge(Fake::of(&shards, &map));
        let found: Result<Vec<Entry>, Down> = merge.collect();
        let expected = expected(&map, |key| key.starts_with(&prefix), false);
        prop_assert_eq!(found, Ok(expected));
    }
}

#[test]
fn equal_keys_come_once_per_shard_in_the_order_of_shards() {
    let shards = Shards::new("m", 3).unwrap();
    let mut fake = Fake::default();
    for (shard, name) in shards.names().iter().enumerate() {
        let entries = [(vec![1], vec![shard as u8]), (vec![2], vec![shard as u8])];
        fake.maps.insert(name.clone(), entries.into());
    }
    let found = |scan: Scan, fake: Fake| -> Vec<(u8, u8)> {
        let entries = scan.page(NonZeroUsize::MIN).merge(fake);
        entries.map(|entry| entry.map(|(key, value)| (key[0], value[0])).unwrap()).collect()
    };
    let again = Fake { maps: fake.maps.clone(), ..Fake::default() };
    let ascending = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)];
    assert_eq!(found(shards.scan(), fake), ascending);
    let descending = [(2, 0), (2, 1), (2, 2), (1, 0), (1, 1), (1, 2)];
    assert_eq!(found(shards.scan().descending(), again), descending);
}

#[test]
fn keys_that_stay_are_found_while_others_come_and_go() {
    let shards = Shards::new("m", 4).unwrap();
    let stay: Map = (0..200_u8).map(|key| (vec![key, 1], vec![])).collect();
    let meanwhile = |maps: &mut Maps, call: usize| {
        let shards = Shards::new("m", 4).unwrap();
        for key in 0..200_u8 {
            let key = vec![key, if call.is_multiple_of(2) { 0 } else { 2 }];
            let map = maps.entry(shards.map_of(&key).to_owned()).or_default();
            if (call / 2).is_multiple_of(2) {
                map.insert(key, vec![]);
            } else {
                map.remove(&key);
            }
        }
    };
    for descending in [false, true] {
        let fake = Fake { meanwhile: Some(meanwhile), ..Fake::of(&shards, &stay) };
        let scan = shards.scan().page(NonZeroUsize::new(3).unwrap());
        let scan = if descending { scan.descending() } else { scan };
        let keys: Vec<Vec<u8>> = scan.merge(fake).map(|entry| entry.unwrap().0).collect();
        assert!(keys.is_sorted_by(|a, b| if descending { a > b } else { a < b }));
        assert_eq!(keys.iter().filter(|key| key[1] == 1).count(), stay.len());
    }
}

#[test]
fn no_maps_no_entries() {
    let mut merge = Scan::over(Vec::<String>::new()).merge(Fake::default());
    assert_eq!(merge.next(), None);
    assert_eq!(merge.into_source().calls, 0);
}

#[test]
fn names_and_hashes_are_fixed() {
    let shards = Shards::new("orders", 16).unwrap();
    assert_eq!(shards.names()[..2], ["orders:{00}", "orders:{01}"]);
    assert_eq!(Shards::new("m", 1000).unwrap().names()[7], "m:{007}");
    // Check values of the catalogues of CRCs.
    let most = Shards::new("m", Shards::MOST).unwrap();
    assert_eq!(most.shard_of(b"123456789"), 0x31C3 % Shards::MOST);
    assert_eq!(most.shard_of(b""), 0);
    assert_eq!(most.shard_of(&[0xFF; 3]), 0xD26C % Shards::MOST);
    assert_eq!(Shards::new("m", 0), Err(ShardsError::Count { count: 0 }));
    assert_eq!(Shards::new("m{1}", 2), Err(ShardsError::Brace { name: "m{1}".into() }));
}

/// A server that answers each command with the next of these replies.
struct Replies {
    replies: Vec<Value>,
    commands: Vec<Vec<u8>>,
}

impl ConnectionLike for Replies {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.commands.push(command.to_vec());
        Ok(self.replies.remove(0))
    }

    fn req_packed_commands(&mut self, _: &[u8], _: usize, _: usize) -> RedisResult<Vec<Value>> {
        unreachable!("a page is one command")
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }
}

fn strings(words: &[&[u8]]) -> Value {
    Value::Array(words.iter().map(|word| Value::BulkString(word.to_vec())).collect())
}

fn packed(words: &[&[u8]]) -> Vec<u8> {
    let words = words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    redis::pack_command(&words)
}

#[test]
fn commands_continue_after_the_last_key() {
    let replies = vec![strings(&[b"a\0", b"1", b"b", b"2"]), strings(&[b"c", b"3"])];
    let mut server = Replies { replies, commands: vec![] };
    let scan = Scan::over(["m"]).range::<[u8]>((Bound::Included(&b"a"[..]), Bound::Unbounded));
    let two = NonZeroUsize::new(2).unwrap();
    let entries: RedisResult<Vec<Entry>> = scan.clone().page(two).merge(&mut server).collect();
    assert_eq!(entries.unwrap().len(), 3);
    assert_eq!(
        server.commands,
        [
            packed(&[b"OM.RANGE", b"m", b"[a", b"+", b"LIMIT", b"0", b"2"]),
            packed(&[b"OM.RANGE", b"m", b"(b", b"+", b"LIMIT", b"0", b"2"]),
        ]
    );

    let replies = vec![strings(&[b"c", b"3", b"b", b"2"]), strings(&[])];
    let mut server = Replies { replies, commands: vec![] };
    let entries: RedisResult<Vec<Entry>> = scan.descending().page(two).merge(&mut server).collect();
    assert_eq!(entries.unwrap().len(), 2);
    assert_eq!(
        server.commands,
        [
            packed(&[b"OM.REVRANGE", b"m", b"+", b"[a", b"LIMIT", b"0", b"2"]),
            packed(&[b"OM.REVRANGE", b"m", b"(b", b"[a", b"LIMIT", b"0", b"2"]),
        ]
    );
}

#[test]
fn wrong_replies_are_errors_and_the_position_stays() {
    let wrong = [
        strings(&[b"a"]),                     // no value
        strings(&[b"b", b"2", b"a", b"1"]),   // out of order
        strings(&[b"a", b"1", b"a", b"1"]),   // repeated
        Value::Nil,                           // no array
        Value::Array(vec![Value::Int(1); 2]), // no strings
    ];
    let wrongs = wrong.len();
    let replies = wrong.into_iter().chain([strings(&[b"a", b"1"])]).collect();
    let mut server = Replies { replies, commands: vec![] };
    let mut merge = Scan::over(["m"]).merge(&mut server);
    for _ in 0..wrongs {
        assert!(merge.next().unwrap().is_err());
    }
    assert_eq!(merge.next().unwrap().unwrap(), (b"a".to_vec(), b"1".to_vec()));
    assert!(merge.next().is_none());

    // A server that repeats a page cannot make the cursor run forever.
    let replies = vec![strings(&[b"a", b"1"]), strings(&[b"a", b"1"])];
    let mut server = Replies { replies, commands: vec![] };
    let mut merge = Scan::over(["m"]).page(NonZeroUsize::MIN).merge(&mut server);
    assert!(merge.next().unwrap().is_ok());
    assert!(merge.next().unwrap().is_err());
}

#[test]
fn a_source_connects_again_after_each_error() {
    let mut connections = 0;
    let source = Reconnecting::new(|| {
        connections += 1;
        match connections {
            1 => Err(std::io::Error::other("refused").into()),
            2 => Ok(vec![strings(&[b"a", b"1"]), Value::Nil]),
            _ => Ok(vec![strings(&[b"b", b"2"]), strings(&[])]),
        }
        .map(|replies| Replies { replies, commands: vec![] })
    });
    let merge = Scan::over(["m"]).page(NonZeroUsize::MIN).merge(source);
    let items: Vec<Option<Vec<u8>>> = merge.map(|item| item.ok().map(|entry| entry.0)).collect();
    assert_eq!(items, [None, Some(b"a".to_vec()), None, Some(b"b".to_vec())]);
    assert_eq!(connections, 3);
}
