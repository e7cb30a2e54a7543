//! The longest keys: each index of byte strings takes any key of 65 535 bytes with a suffix, and
//! refuses longer keys by its documented limit.

use silvics::key::ByteKey;
use silvics::structures::STRUCTURES;
use silvics::{
    AllocError, AsKey, Check, Create, Lookup, Map, Options, OrderedIndex, OrderedScan, PinIndex,
    SkipList,
};
use silvics_api_tests::mixed;
use std::cmp::Reverse;

/// The bytes of a user's longest key.
const LONG: usize = u16::MAX as usize;

type Versioned = (Vec<u8>, Reverse<u64>);

/// Keys of 65 535 bytes, among them those whose encoding is longest and shortest.
fn contents() -> Vec<Vec<u8>> {
    let of = |byte: fn(usize) -> u8| (0..LONG).map(byte).collect::<Vec<u8>>();
    let mut contents = vec![
        of(|_| 0),
        of(|_| 1),
        of(|_| 255),
        of(|n| (n % 2) as u8),
        of(|n| 1 - (n % 2) as u8),
        of(|n| mixed(n as u64) as u8),
        of(|n| u8::from(n % 128 == 127)),
    ];
    // Keys that part from the others at their last byte.
    let ends = contents.iter().map(|key| [&key[..LONG - 1], &[key[LONG - 1] ^ 2]].concat());
    let ends: Vec<_> = ends.collect();
    contents.extend(ends);
    contents
}

/// Inserts, finds, scans and removes versions of the longest keys in an index of their forms.
fn takes_long_keys<I: Create + Lookup<Key: ByteKey> + OrderedIndex + OrderedScan + Check>() {
    let of = <I::Key as ByteKey>::of_bytes;
    let mut index = I::with_options(&Options::default()).unwrap();
    let versions = [0, 1, 255, u64::MAX - 1, u64::MAX];
    let keys = contents();
    let mut sorted = Vec::new();
    {
        let index = index.pin();
        for (key, version) in keys.iter().flat_map(|key| versions.map(|version| (key, version))) {
            AsKey::<Versioned>::with_form(&(key, Reverse(version)), |form| {
                assert_eq!(index.insert(of(form), version), Ok(None));
                assert_eq!(index.get(of(form)), Some(version));
            });
            sorted.push((key, Reverse(version)));
        }
        sorted.sort();
        let values = sorted.iter().map(|(_, Reverse(version))| *version);
        assert!(index.range(..).map(|(_, version)| version).eq(values.clone()));
        assert!(index.range_rev(..).map(|(_, version)| version).eq(values.rev()));
        // Shorter keys are absent: the nodes on their way are deeper than they are long.
        AsKey::<Versioned>::with_form(&(&keys[1], Reverse(0)), |form| {
            for len in (0..100).chain(LONG - 100..LONG).chain(LONG..form.len()) {
                assert_eq!(index.get(of(&form[..len])), None, "{len} bytes of a key");
            }
        });
    }
    assert_eq!(index.check(), Ok(sorted.len()));
    for (at, version) in sorted.iter().enumerate() {
        let removed = AsKey::<Versioned>::with_form(version, |form| index.pin().remove(of(form)));
        assert_eq!(removed, Ok(Some(version.1.0)));
        if at % 16 == 0 {
            assert_eq!(index.check(), Ok(sorted.len() - at - 1));
        }
    }
}

/// Takes a key of the length of the limit, and refuses a longer one with an error that names it.
fn refuses_longer_keys<I: Create + Lookup<Key: ByteKey> + OrderedIndex>(limit: Option<usize>) {
    let of = <I::Key as ByteKey>::of_bytes;
    let index = I::with_options(&Options::default()).unwrap();
    let index = index.pin();
    let longest = vec![7; limit.unwrap_or(4 << 20)];
    assert_eq!((index.insert(of(&longest), 1), index.get(of(&longest))), (Ok(None), Some(1)));
    if let Some(limit) = limit {
        let longer = [&longest[..], b"x"].concat();
        let error = index.insert(of(&longer), 2).unwrap_err();
        assert_eq!(error, AllocError::KeyLength { bytes: limit + 1, limit });
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
        assert_eq!(index.get(of(&longer)), None);
    }
}

macro_rules! indexes {
    ($structure:ident $build:ident byte_keys $runs:ident $capability:ident $faults:ident $index:ty) => {
        takes_long_keys::<$index>();
        let name = stringify!($structure);
        let row = STRUCTURES.iter().find(|row| row.name.replace('-', "_") == name).unwrap();
        refuses_longer_keys::<$index>(row.max_key_bytes);
    };
    ($($other:tt)*) => {};
}

#[test]
fn every_index_of_byte_strings() {
    silvics::for_each_index! { indexes }
}

#[test]
fn a_map_of_long_keys() {
    let map: Map<Versioned, usize> = Map::new();
    let list: Map<Versioned, usize, SkipList<[u8]>> = Map::default();
    for (at, key) in contents().iter().enumerate() {
        assert!(map.insert((key, Reverse(7)), at).is_none());
        assert!(list.insert((key, Reverse(7)), at).is_none());
    }
    for (at, key) in contents().iter().enumerate() {
        assert_eq!(map.get((key, Reverse(7))).as_deref(), Some(&at));
        assert_eq!(list.get((key, Reverse(7))).as_deref(), Some(&at));
    }
    let mut sorted = contents();
    sorted.sort();
    assert!(map.pin().keys().map(|(key, _)| key.into_owned()).eq(sorted));

    let blocks = STRUCTURES.iter().find(|row| row.name == "blocks").unwrap();
    let limit = blocks.max_key_bytes.unwrap();
    let map: Map<(Vec<u8>, u64), ()> = Map::new();
    let refused = map.try_upsert((vec![1; limit], 7), ()).unwrap_err().to_string();
    assert!(refused.contains(&limit.to_string()), "{refused}");
    assert!(refused.contains(&(limit + 10).to_string()), "{refused}");
}
