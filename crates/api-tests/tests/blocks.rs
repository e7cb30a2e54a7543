//! Keys that are made to do harm to blocks: equal tags, equal prefixes, one order, one bit apart.
//! Each set takes at most twice the memory of as many random keys of the same lengths, and no step
//! takes time in proportion to the tree.

use silvics::{
    BlockKey, BlockTree, Check, Lookup, Options, OrderedEnds, OrderedIndex, OrderedScan,
};
use silvics_api_tests::mixed;
use std::collections::BTreeMap;

/// Inserts the keys in this order, compares the tree with a map, and removes the keys again.
/// Returns the bytes of the objects of the full tree.
fn bytes_of(name: &str, keys: &[Vec<u8>]) -> usize {
    let options = Options { domain: Some(silvics::Domain::new()), ..Options::default() };
    let mut tree: BlockTree<[u8]> = BlockTree::with_options(&options).unwrap();
    let mut model = BTreeMap::new();
    {
        for (n, key) in keys.iter().enumerate() {
            // Under one pin, nothing that is replaced could be freed.
            let replaced = tree.pin().insert(key, n as u64).unwrap();
            assert_eq!(replaced, model.insert(key.as_slice(), n as u64), "{name}");
        }
        let guard = tree.domain().pin();
        let expected = || model.iter().map(|(key, value)| (*key, *value));
        assert!(tree.range::<std::ops::RangeFull>(.., &guard).eq(expected()), "{name}");
        assert!(tree.range_rev::<std::ops::RangeFull>(.., &guard).eq(expected().rev()), "{name}");
        for (key, value) in expected() {
            assert_eq!(tree.get(key, &guard), Some(value), "{name}");
            let from_here = tree.range(key.., &guard).next();
            assert_eq!(from_here, Some((key, value)), "{name}");
            let up_to_here = tree.range_rev(..key, &guard).next();
            assert_eq!(up_to_here, model.range(..key).next_back().map(|(k, v)| (*k, *v)), "{name}");
        }
    }
    assert_eq!(tree.check(), Ok(model.len()), "{name}");
    let bytes = object_bytes(&mut tree);
    let guard = tree.domain().pin();
    for (at, key) in model.keys().enumerate() {
        if at % 2 == 0 {
            assert_eq!(tree.remove(key, &guard).unwrap(), Some(model[key]), "{name}");
        }
    }
    let mut left = model.iter().skip(1).step_by(2).map(|(key, value)| (*key, *value));
    while let Some(popped) = tree.pop_first(&guard).unwrap() {
        assert_eq!(Some(popped), left.next(), "{name}");
    }
    assert_eq!((left.next(), tree.len()), (None, 0), "{name}");
    bytes
}

/// The bytes of the objects of a tree, each rounded up to its slot.
fn object_bytes(tree: &mut BlockTree<[u8]>) -> usize {
    tree.settle();
    tree.pool_stats().iter().map(|stats| stats.live_bytes).sum()
}

/// Random keys with the lengths of these.
fn random_like(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let random = |n: usize, len: usize| {
        let byte = |at: usize| mixed(((n << 20) + at) as u64) as u8;
        (0..len).map(byte).collect()
    };
    keys.iter().enumerate().map(|(n, key)| random(n, key.len())).collect()
}

fn harmless(name: &str, keys: &[Vec<u8>]) {
    let (bytes, random) = (bytes_of(name, keys), bytes_of("random", &random_like(keys)));
    println!("{name}: {} keys, {bytes} bytes, {random} random", keys.len());
    assert!(bytes <= 2 * random, "{name}: {bytes} bytes, {random} of random keys");
}

/// As many keys as a run takes.
const MANY: u64 = if cfg!(debug_assertions) { 20_000 } else { 200_000 };

#[test]
fn equal_tags() {
    let keys = (0..).map(|n: u64| mixed(n).to_be_bytes().repeat(2));
    let same = |key: &Vec<u8>| <[u8] as BlockKey>::hash(key) >> 56 == 77;
    harmless("equal tags", &keys.filter(same).take(MANY as usize / 20).collect::<Vec<_>>());
}

#[test]
fn equal_prefixes() {
    let keys = (0..MANY).map(|n| [&[b'x'; 90][..], &mixed(n).to_be_bytes()].concat());
    harmless("equal prefixes", &keys.collect::<Vec<_>>());
    let keys = (0..MANY).map(|n| [&mixed(n).to_be_bytes()[..], &[b'x'; 90]].concat());
    harmless("equal ends", &keys.collect::<Vec<_>>());
}

#[test]
fn floods() {
    let ascending = (0..MANY).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>();
    harmless("ascending", &ascending);
    let descending = ascending.iter().rev().cloned().collect::<Vec<_>>();
    harmless("descending", &descending);
}

#[test]
fn long_keys_that_differ_in_the_last_byte() {
    let key = |n: u8| [vec![7; (64 << 10) - 1], vec![n]].concat();
    harmless("last byte", &(0..=255).map(key).collect::<Vec<_>>());
}

/// Some keys fill a block, and then come others that differ from them in the very first bit. They
/// belong behind all of them, or before. The first ones are byte strings that differ too far from
/// their start for gaps, or integers, which have no gaps.
#[test]
fn first_bits() {
    for last in [false, true] {
        let top = |of: bool| if of == last { 0x80 } else { 0 };
        let long = |n: u8| [vec![top(false); 5000], vec![n]].concat();
        let mut keys: Vec<Vec<u8>> = (0..47).map(long).collect();
        keys.extend((0..4).map(|n| vec![top(true), n]));
        harmless("first bits", &keys);
        let mut tree: BlockTree<u64> = BlockTree::with_options(&Options::default()).unwrap();
        let word = |of: bool, n: u64| n | u64::from(of == last) << 63;
        let words = (0..48).map(|n| word(false, n)).chain((0..4).map(|n| word(true, n)));
        for (at, key) in words.enumerate() {
            assert_eq!(tree.pin().insert(key, key).unwrap(), None);
            assert_eq!(tree.check(), Ok(at + 1));
        }
    }
}

/// Few keys, which differ in few bits, far from the start or in their lengths, in random order.
#[test]
fn awkward_keys() {
    let mut state = 1;
    let mut random = move |below: usize| {
        state = mixed(state).wrapping_add(0x9E37_79B9_7F4A_7C15);
        (state >> 33) as usize % below
    };
    let starts = [vec![], vec![0], vec![0x80], b"ab".to_vec(), vec![7; 31], vec![7; 5000]];
    for round in 0..200 {
        let starts = &starts[..=round % starts.len()];
        let mut tree: BlockTree<[u8]> = BlockTree::with_options(&Options::default()).unwrap();
        let mut model = BTreeMap::new();
        for n in 0..70 {
            let mut key = starts[random(starts.len())].clone();
            key.extend((0..random(4)).map(|_| [0, 1, 0x7F, 0x80, 0xFF][random(5)]));
            if random(4) == 0 {
                assert_eq!(tree.pin().remove(&key).unwrap(), model.remove(&key));
            } else {
                assert_eq!(tree.pin().insert(&key, n).unwrap(), model.insert(key.clone(), n));
            }
            assert_eq!(tree.check(), Ok(model.len()), "round {round}");
            let guard = tree.domain().pin();
            let next = tree.range(key.as_slice().., &guard).next();
            assert_eq!(next, model.range(key.clone()..).next().map(|(k, v)| (k.as_slice(), *v)));
            let before = tree.range_rev(..key.as_slice(), &guard).next();
            let expected = model.range(..key.clone()).next_back();
            assert_eq!(before, expected.map(|(k, v)| (k.as_slice(), *v)));
        }
    }
}

/// Each key is the one before and a byte 0. They differ in their lengths only.
#[test]
fn zeros() {
    harmless("zeros", &(0..2000).map(|len| vec![0; len]).collect::<Vec<_>>());
}

/// Each key differs from all later ones in one bit, far from those of the others, so that each node
/// has few children.
#[test]
fn spines() {
    let key = |at: usize, n: u64| {
        let mut key = vec![0; 9 * 60 + 8];
        key[9 * at] = 1;
        key[9 * at + 1..][..8].copy_from_slice(&mixed(n).to_be_bytes());
        key
    };
    let keys = (0..60).flat_map(|at| (0..60).map(move |n| (at, n)));
    let keys: Vec<Vec<u8>> = keys.map(|(at, n)| key(at, n)).collect();
    harmless("spines, from above", &keys);
    harmless("spines, from below", &keys.into_iter().rev().collect::<Vec<_>>());
}

/// Each pair of keys parts far from the others, so that the path to the last block has more nodes
/// than a scan remembers. The block is the last, or the first, at each of them.
#[test]
fn long_paths() {
    for last in *b"Ab" {
        let key = |n: usize| [vec![b'a'; 9 * n], vec![last]].concat();
        harmless("long paths", &(0..400).map(key).collect::<Vec<_>>());
    }
}

/// Blocks that have lost most of their entries are merged.
#[test]
fn thinned_trees_are_small() {
    let options = Options { domain: Some(silvics::Domain::new()), ..Options::default() };
    let mut tree: BlockTree<[u8]> = BlockTree::with_options(&options).unwrap();
    let keys: Vec<Vec<u8>> = (0..MANY).map(|n| mixed(n).to_be_bytes().repeat(5)).collect();
    for key in &keys {
        tree.pin().insert(key, 0).unwrap();
    }
    let full = object_bytes(&mut tree);
    for key in keys.iter().enumerate().filter(|(at, _)| at % 16 != 0).map(|(_, key)| key) {
        tree.pin().remove(key).unwrap();
    }
    let thinned = object_bytes(&mut tree);
    assert_eq!(tree.check(), Ok(keys.len().div_ceil(16)));
    println!("{full} bytes full, {thinned} thinned to a sixteenth");
    assert!(thinned <= full / 6, "{thinned} bytes after {full}");
}

/// A bound may be longer than any key, and differ from all keys behind their longest length.
#[test]
fn bounds_longer_than_keys() {
    let tree: BlockTree<[u8]> = BlockTree::with_options(&Options::default()).unwrap();
    let guard = tree.domain().pin();
    let key = |zeros: usize| [b"ab".to_vec(), vec![0; zeros]].concat();
    for zeros in 0..200 {
        tree.insert(&key(zeros), zeros as u64, &guard).unwrap();
    }
    for tail in [0, 1] {
        let bound = [key((16 << 20) + 77), vec![tail]].concat();
        assert_eq!(tree.range(bound.as_slice().., &guard).next(), None);
        assert_eq!(tree.range(..bound.as_slice(), &guard).count(), 200);
        assert_eq!(tree.get(&bound, &guard), None);
        assert!(tree.insert(&bound, 0, &guard).is_err());
    }
}

/// Long keys of removed entries do not stay with their block.
#[test]
fn removed_long_keys_are_freed() {
    let tree: BlockTree<[u8]> = BlockTree::with_options(&Options::default()).unwrap();
    let key = |n: u8| [vec![7; 256 << 10], vec![n]].concat();
    tree.pin().insert(&key(0), 0).unwrap();
    for n in 1..=255 {
        tree.pin().insert(&key(n), 0).unwrap();
        tree.pin().remove(&key(n)).unwrap();
    }
    tree.shrink();
    assert!(tree.bytes() < 8 << 20, "{} bytes for one key", tree.bytes());
}
