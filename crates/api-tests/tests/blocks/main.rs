//! Keys that are made to do harm to blocks: equal tags, equal prefixes, one order, one bit apart.
//! Each set takes at most twice the memory of as many random keys of the same lengths, and no step
//! takes time in proportion to the tree.

mod loads;

use silvics::key::{ByteKey, Prefixed};
use silvics::{
    BlockKey, BlockTree, Budget, Check, Compression, IndexKey, Lookup, Objects, Options,
    OrderedEnds, OrderedIndex, OrderedScan, PrefixCompression, Shared,
};
use silvics_api_tests::{mixed, threads};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Byte strings, with all bytes in each, or with common prefixes once.
trait Bytes: BlockKey + ByteKey<Owned = Box<[u8]>> {}
impl Bytes for [u8] {}
impl Bytes for Prefixed<'static> {}

fn new_tree<K: Bytes + ?Sized>() -> BlockTree<K> {
    let options = Options { domain: Some(silvics::Domain::new()), ..Options::default() };
    BlockTree::with_options(&options).unwrap()
}

fn owned<K: Bytes + ?Sized>((key, value): (K::Ref<'_>, u64)) -> (Vec<u8>, u64) {
    (<K as IndexKey>::to_owned(key).into(), value)
}

/// The entries from a key on, and those before it from behind.
fn around<'g, K: Bytes + ?Sized>(
    tree: &'g BlockTree<K>,
    key: &'g [u8],
    guard: &'g silvics::Guard,
) -> [Box<dyn Iterator<Item = (Vec<u8>, u64)> + 'g>; 2] {
    let from = (Bound::Included(K::of_bytes(key)), Bound::Unbounded);
    let to = (Bound::Unbounded, Bound::Excluded(K::of_bytes(key)));
    let ascending = OrderedScan::range(tree, from, guard).map(owned::<K>);
    let descending = OrderedScan::range_rev(tree, to, guard).map(owned::<K>);
    [Box::new(ascending), Box::new(descending)]
}

/// Inserts the keys in this order, compares the tree with a map, and removes the keys again.
/// Returns the bytes of the objects of the full tree.
fn bytes_of<K: Bytes + ?Sized>(name: &str, keys: &[Vec<u8>]) -> usize {
    let mut tree = new_tree::<K>();
    let mut model = BTreeMap::new();
    {
        for (n, key) in keys.iter().enumerate() {
            // Under one pin, nothing that is replaced could be freed.
            let replaced = tree.pin().insert(K::of_bytes(key), n as u64).unwrap();
            assert_eq!(replaced, model.insert(key.clone(), n as u64), "{name}");
        }
        let guard = tree.domain().pin();
        let expected = || model.iter().map(|(key, value)| (key.clone(), *value));
        let [all, none] = around(&tree, &[], &guard);
        assert!(all.eq(expected()) && none.count() == 0, "{name}");
        assert!(around(&tree, &[255; 1 << 10], &guard)[1].by_ref().eq(expected().rev()), "{name}");
        for (key, value) in &model {
            assert_eq!(tree.get(K::of_bytes(key), &guard), Some(*value), "{name}");
            let [mut from_here, mut up_to_here] = around(&tree, key, &guard);
            assert_eq!(from_here.next(), Some((key.clone(), *value)), "{name}");
            let before = model.range(..key.clone()).next_back();
            assert_eq!(up_to_here.next(), before.map(|(k, v)| (k.clone(), *v)), "{name}");
        }
    }
    assert_eq!(tree.check(), Ok(model.len()), "{name}");
    let bytes = object_bytes(&mut tree);
    let guard = tree.domain().pin();
    for (at, key) in model.keys().enumerate() {
        if at % 2 == 0 {
            let removed = tree.remove(K::of_bytes(key), &guard).unwrap();
            assert_eq!(removed, Some(model[key]), "{name}");
        }
    }
    let mut left = model.iter().skip(1).step_by(2).map(|(key, value)| (key.clone(), *value));
    while let Some(popped) = tree.pop_first(&guard).unwrap() {
        assert_eq!(Some(owned::<K>(popped)), left.next(), "{name}");
    }
    assert_eq!((left.next(), tree.len()), (None, 0), "{name}");
    bytes
}

/// The bytes of the objects of a tree, each rounded up to its slot.
fn object_bytes<K: Bytes + ?Sized>(tree: &mut BlockTree<K>) -> usize {
    tree.settle();
    tree.pool_stats().iter().map(|stats| stats.live_bytes).sum()
}

/// Both trees count the prefixes that one of them stores.
#[test]
fn prefixes_are_counted() {
    fn found<K: Bytes + ?Sized>(keys: &[&str]) -> PrefixCompression {
        let mut tree = new_tree::<K>();
        let entries: Vec<_> = keys.iter().map(|key| (K::of_bytes(key.as_bytes()), 0)).collect();
        tree.bulk_load(&entries, threads(1)).unwrap();
        match tree.compression() {
            Some(Compression::Prefixes(found)) => found,
            other => panic!("{other:?}"),
        }
    }
    let long = "/etc/hosts".repeat(100);
    for once in [false, true] {
        let of = if once { found::<Prefixed<'static>> } else { found::<[u8]> };
        // They agree in nine bytes, and a prefix has a multiple of four.
        let two = of(&["/etc/hostname", "/etc/hosts"]);
        assert_eq!((two.once, two.shared_bytes, two.prefix_bytes), (once, 16, 8));
        assert_eq!((two.blocks, two.keys, two.key_bytes), (1, 2, 23));
        // A long key lies outside. If it is the last one, its block has no prefix.
        let both = of(&["/etc/hosts", &long]);
        assert_eq!((both.blocks, both.keys, both.key_bytes, both.shared_bytes), (1, 1, 10, 0));
        assert_eq!(of(&[]), PrefixCompression { once, ..PrefixCompression::default() });
    }
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
    let random = random_like(keys);
    let whole = (bytes_of::<[u8]>(name, keys), bytes_of::<[u8]>("random", &random));
    let of_pieces = bytes_of::<Prefixed<'static>>;
    let pieces = (of_pieces(name, keys), of_pieces("random", &random));
    println!("{name}: {} keys, bytes and those of random keys {whole:?}, {pieces:?}", keys.len());
    for (bytes, random) in [whole, pieces] {
        assert!(bytes <= 2 * random, "{name}: {bytes} bytes, {random} of random keys");
    }
}

/// Keys with long common prefixes take a part of the memory if prefixes are stored once.
#[test]
fn prefixes_are_stored_once() {
    let prefix = |n: u64| mixed(n % 64).to_be_bytes().repeat(12);
    let key = |n: u64| [&prefix(n)[..], &mixed(n).to_be_bytes()].concat();
    let keys: Vec<Vec<u8>> = (0..MANY).map(key).collect();
    let whole = bytes_of::<[u8]>("whole", &keys);
    let pieces = bytes_of::<Prefixed<'static>>("prefixes", &keys);
    println!("{whole} bytes with whole keys, {pieces} with prefixes once");
    assert!(3 * pieces <= whole, "{pieces} bytes instead of {whole}");
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

/// Few keys, which differ in few bits, far from the start or in their lengths, in random order. The
/// longest of them do not lie in their blocks.
#[test]
fn awkward_keys() {
    of_awkward_keys::<[u8]>();
    of_awkward_keys::<Prefixed<'static>>();
}

fn of_awkward_keys<K: Bytes + ?Sized>() {
    let mut state = 1;
    let mut random = move |below: usize| {
        state = mixed(state).wrapping_add(0x9E37_79B9_7F4A_7C15);
        (state >> 33) as usize % below
    };
    let mut starts = vec![vec![], vec![0], vec![0x80], b"ab".to_vec()];
    starts.extend([vec![7; 31], vec![7; 510], [vec![7; 20], vec![8; 30]].concat(), vec![7; 5000]]);
    for round in 0..200 {
        let last = round / 2 % starts.len();
        let starts = &starts[if round % 2 == 0 { 0 } else { last }..=last];
        let mut tree = new_tree::<K>();
        let mut model = BTreeMap::new();
        for n in 0..70 {
            let mut key = starts[random(starts.len())].clone();
            key.extend((0..random(4)).map(|_| [0, 1, 0x7F, 0x80, 0xFF][random(5)]));
            let form = K::of_bytes(&key);
            if random(4) == 0 {
                assert_eq!(tree.pin().remove(form).unwrap(), model.remove(&key));
            } else {
                assert_eq!(tree.pin().insert(form, n).unwrap(), model.insert(key.clone(), n));
            }
            assert_eq!(tree.check(), Ok(model.len()), "round {round}");
            let guard = tree.domain().pin();
            let [mut from_here, mut up_to_here] = around(&tree, &key, &guard);
            let copied = |(k, v): (&Vec<u8>, &u64)| (k.clone(), *v);
            assert_eq!(from_here.next(), model.range(key.clone()..).next().map(copied));
            assert_eq!(up_to_here.next(), model.range(..key.clone()).next_back().map(copied));
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
    let mut tree = new_tree::<[u8]>();
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

/// Keys lose their common prefix, and then the block is larger than others.
#[test]
fn a_prefix_that_all_keys_lose() {
    let key = |n: u8| [vec![0; 400], vec![1 + n / 46 * 0x7F, n], vec![5; 10]].concat();
    let mut tree = new_tree::<Prefixed<'static>>();
    let (mut model, mut largest) = (BTreeMap::new(), 0);
    let shorter = [vec![0], vec![0; 2], vec![0, 0, 3]];
    for key in (0..47).map(key).chain(shorter).chain((47..90).map(key)) {
        assert_eq!(tree.pin().insert(Prefixed::from(&key), 1), Ok(model.insert(key, 1)));
        let seen = tree.census(&mut |object| largest = largest.max(object.bytes));
        assert_eq!(seen, Ok(model.len()));
    }
    // Such a block has more than 8 KiB, until the next entry comes.
    assert!((8193..=26 << 10).contains(&largest), "{largest}");
    let guard = tree.domain().pin();
    let [all, _] = around(&tree, &[], &guard);
    assert!(all.eq(model));
}

/// A bound may be longer than any key, and differ from all keys behind their longest length.
#[test]
fn bounds_longer_than_keys() {
    of_long_bounds::<[u8]>();
    of_long_bounds::<Prefixed<'static>>();
}

fn of_long_bounds<K: Bytes + ?Sized>() {
    let tree = new_tree::<K>();
    let guard = tree.domain().pin();
    let key = |zeros: usize| [b"ab".to_vec(), vec![0; zeros]].concat();
    for zeros in 0..200 {
        tree.insert(K::of_bytes(&key(zeros)), zeros as u64, &guard).unwrap();
    }
    for tail in [0, 1] {
        let bound = [key((16 << 20) + 77), vec![tail]].concat();
        let [mut from_there, up_to_there] = around(&tree, &bound, &guard);
        assert_eq!((from_there.next(), up_to_there.count()), (None, 200));
        assert_eq!(tree.get(K::of_bytes(&bound), &guard), None);
        assert!(tree.insert(K::of_bytes(&bound), 0, &guard).is_err());
    }
}

/// Long keys of removed entries do not stay with their block.
#[test]
fn removed_long_keys_are_freed() {
    long_keys_are_freed::<[u8]>();
    long_keys_are_freed::<Prefixed<'static>>();
}

fn long_keys_are_freed<K: Bytes + ?Sized>() {
    let tree = new_tree::<K>();
    let key = |n: u8| [vec![7; 256 << 10], vec![n]].concat();
    tree.pin().insert(K::of_bytes(&key(0)), 0).unwrap();
    for n in 1..=255 {
        tree.pin().insert(K::of_bytes(&key(n)), 0).unwrap();
        tree.pin().remove(K::of_bytes(&key(n))).unwrap();
    }
    tree.shrink();
    assert!(tree.bytes() < 8 << 20, "{} bytes for one key", tree.bytes());
}

/// Entries that are removed under one pin, while the tree is at its limit, leave empty and small
/// blocks behind: a node without such a block cannot be allocated. A shrink gives these blocks up.
#[test]
fn a_shrink_gives_up_what_a_full_tree_had_to_leave() {
    for kept in [usize::MAX, 100] {
        let options = Options { memory_limit: Some(3 << 20), ..Options::default() };
        let mut tree: BlockTree<[u8]> = BlockTree::with_options(&options).unwrap();
        let key = |n: u64| format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).into_bytes();
        let refused = (0..200_000).find(|n| tree.pin().insert(&key(*n), *n).is_err());
        let full = refused.expect("3 MiB are less");
        assert!(full > 30_000, "{full} entries");
        let stays = |n: &u64| (*n as usize).is_multiple_of(kept);
        let pinned = tree.pin();
        for n in (0..full).filter(|n| !stays(n)) {
            assert_eq!(pinned.remove(&key(n)), Ok(Some(n)));
        }
        drop(pinned);
        let before = tree.bytes();
        let (given, less) = (tree.shrink(), before - tree.bytes());
        // New slabs, for copies, were opened meanwhile; some batches were freed.
        assert!(given > less - less / 50, "{given} returned, {less} less");
        let left = (0..full).filter(stays).count();
        assert!(tree.bytes() < 1 << 20, "{} of {before} bytes, {left} left", tree.bytes());
        let live: usize = tree.pool_stats().iter().map(|pool| pool.live_bytes).sum();
        assert!(live < (8 << 10) + 200 * left, "{live} bytes live, {left} left");
        assert_eq!(tree.check(), Ok(left));
        assert!((0..full).filter(stays).all(|n| tree.pin().get(&key(n)) == Some(n)));
    }
}

/// A tree of any size that was emptied at its limit is given up as a whole, even if there was no
/// memory for a node.
#[test]
fn a_shrink_of_a_full_tree_has_memory_for_its_first_node() {
    for limit in (16..200).map(|n| n * (4 << 10)) {
        let options = Options { memory_limit: Some(limit), ..Options::default() };
        let mut tree: BlockTree<[u8]> = BlockTree::with_options(&options).unwrap();
        let key = |n: u64| format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).into_bytes();
        let refused = (0..100_000).find(|n| tree.pin().insert(&key(*n), *n).is_err()).unwrap();
        let pinned = tree.pin();
        assert!((0..refused).all(|n| pinned.remove(&key(n)) == Ok(Some(n))));
        drop(pinned);
        tree.shrink();
        let live: usize = tree.pool_stats().iter().map(|pool| pool.live_slots).sum();
        assert_eq!((live, tree.check()), (0, Ok(0)), "limit {limit}");
    }
}

/// Threads fill a tree up to its limit and empty it again, while another one shrinks it. No entry
/// is lost, and the tree is whole afterwards.
#[test]
fn a_full_tree_is_shrunk_beside_its_writers() {
    const WRITERS: u64 = 2;
    let options = Options { memory_limit: Some(1 << 20), ..Options::default() };
    let mut tree: BlockTree<[u8]> = BlockTree::with_options(&options).unwrap();
    let key = |n: u64| format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).into_bytes();
    let write = |writer: u64| {
        let mut count = 0;
        for _ in 0..20 {
            let own = (0..100_000).map(|n| WRITERS * n + writer);
            let put: Vec<u64> =
                own.take_while(|n| tree.pin().insert(&key(*n), *n).is_ok()).collect();
            let pinned = tree.pin();
            count += put.len();
            for n in put {
                assert_eq!(pinned.remove(&key(n)), Ok(Some(n)));
            }
        }
        count
    };
    let (counts, shrunk) = std::thread::scope(|scope| {
        let (tree, write) = (&tree, &write);
        let threads: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let mut shrunk = 0;
        while threads.iter().any(|thread| !thread.is_finished()) {
            shrunk += tree.shrink();
        }
        (threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>(), shrunk)
    });
    assert!(counts > 2_000 && shrunk > 0, "{counts} entries, {shrunk} bytes");
    assert_eq!(tree.check(), Ok(0));
}

/// A tree that cannot be made reserves nothing of a budget that others share.
#[test]
fn a_tree_that_is_not_made_reserves_nothing() {
    let budget = Arc::new(Budget::new(Some(64)));
    let options = Options { budget: Some(Arc::clone(&budget)), ..Options::default() };
    assert!(BlockTree::<[u8], Shared>::with_options(&options).is_err());
    assert_eq!((budget.held(), budget.take(64)), (0, Ok(())));
}
