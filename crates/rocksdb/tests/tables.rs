//! The C functions of both memtables, beside a sorted list. These tests need no RocksDB.

use proptest::collection::vec;
use proptest::prelude::*;
use silvics_memtable::{Draft, Entry, InternalKey};
use silvics_rocksdb::art::{self, Art};
use silvics_rocksdb::skiplist::{self, Compare, KeyOrder, List, Memory};
use std::cmp::{Ordering, Reverse};
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null, null_mut};

/// A key, and its trailer.
type Key = (Vec<u8>, u64);

/// Memory that is never freed.
unsafe extern "C" fn leak(_: *mut c_void, bytes: usize) -> *mut u8 {
    vec![0u64; bytes.div_ceil(8)].leak().as_mut_ptr().cast()
}

/// The order of bytes, or its reverse if the context is not null.
unsafe extern "C" fn compare(context: *const c_void, a: *const u8, b: *const u8) -> c_int {
    // SAFETY: lists compare entries, which are never freed.
    let key = |at: *const u8| unsafe { Entry::from_raw(NonNull::new_unchecked(at.cast_mut())) };
    order(key(a).key(), key(b).key(), !context.is_null()) as c_int
}

fn order(a: InternalKey<'_>, b: InternalKey<'_>, is_reverse: bool) -> Ordering {
    let users = a.user.cmp(b.user);
    let users = if is_reverse { users.reverse() } else { users };
    users.then(Reverse(a.trailer).cmp(&Reverse(b.trailer)))
}

/// A memtable under test, by its C functions.
#[derive(Clone, Copy)]
enum Table {
    Art(&'static Art),
    List(&'static List, bool),
}

impl Table {
    /// All memtables of an order. They are never dropped, as their entries.
    fn all(is_reverse: bool) -> Vec<Self> {
        let known = if is_reverse { KeyOrder::ReverseBytes } else { KeyOrder::Bytes };
        let context = if is_reverse { NonNull::<c_void>::dangling().as_ptr() } else { null_mut() };
        let list = |order| {
            let compare = Compare { comparator: context, compare };
            let memory = Memory { allocator: null_mut(), alloc: leak };
            // SAFETY: the functions use no other memory, and what they allocate is never freed.
            unsafe { &*skiplist::silvics_skiplist_new(order, compare, memory) }
        };
        let art = art::silvics_art_new(is_reverse);
        // SAFETY: the allocation has not failed, and the table is never dropped.
        let art = unsafe { art.as_ref() }.expect("a table");
        vec![
            Self::Art(art),
            Self::List(list(known), false),
            Self::List(list(known), true),
            Self::List(list(KeyOrder::Other), true),
        ]
    }

    fn insert(self, (user, trailer): &Key) -> bool {
        let draft = Draft::new(user, *trailer, b"").expect("a short key");
        // SAFETY: places have the bytes of the entry. They are inserted once, by this thread.
        unsafe {
            match self {
                Self::Art(art) => {
                    let to = NonNull::new(leak(null_mut(), draft.len())).expect("memory");
                    art::silvics_art_insert(art, draft.write(to).as_ptr())
                }
                Self::List(list, is_concurrent) => {
                    let to = skiplist::silvics_skiplist_allocate(list, draft.len());
                    let entry = draft.write(to).as_ptr();
                    if is_concurrent {
                        skiplist::silvics_skiplist_insert_concurrently(list, entry)
                    } else {
                        skiplist::silvics_skiplist_insert(list, entry)
                    }
                }
            }
        }
    }

    /// The keys from one on, or from an end, in runs of some entries.
    fn walk(self, from: Option<&Key>, descends: bool, room: usize) -> Vec<Key> {
        let from = from.map(|(user, trailer)| [&user[..], &trailer.to_le_bytes()].concat());
        let (key, len) = from.as_ref().map_or((null(), 0), |key| (key.as_ptr(), key.len()));
        let mut run = vec![null::<u8>(); room];
        let (to, mut keys) = (run.as_mut_ptr(), Vec::new());
        // SAFETY: the key and the run have these lengths; the entries are those of the table.
        unsafe {
            let mut filled = match self {
                Self::Art(art) => art::silvics_art_seek(art, key, len, descends, to, room),
                Self::List(list, _) => {
                    skiplist::silvics_skiplist_seek(list, key, len, null_mut(), descends, to, room)
                }
            };
            loop {
                let run = std::slice::from_raw_parts(to, filled);
                for &entry in run {
                    let entry = Entry::from_raw(NonNull::new_unchecked(entry.cast_mut()));
                    keys.push((entry.key().user.to_vec(), entry.key().trailer));
                }
                let Some(&last) = run.last() else { return keys };
                let last = NonNull::new_unchecked(last.cast_mut());
                filled = match self {
                    Self::Art(art) => art::silvics_art_follow(art, last, descends, to, room),
                    Self::List(list, _) => {
                        skiplist::silvics_skiplist_follow(list, last, descends, to, room)
                    }
                };
            }
        }
    }
}

fn keys() -> impl Strategy<Value = Vec<Key>> {
    let users = prop_oneof![
        vec(prop_oneof![Just(0), Just(1), Just(255)], 0..6),
        vec(any::<u8>(), 0..3),
        (0..3u8, 118..300usize).prop_map(|(byte, len)| vec![byte; len]),
    ];
    vec((users, 0..4u64), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_have_the_order_of_rocksdb(keys in keys(), seeks in keys(), is_reverse: bool) {
        let ordered = |a: &Key, b: &Key| {
            let key = |(user, trailer): &'_ Key| (user.clone(), *trailer);
            let (a, b) = (key(a), key(b));
            let internal = |user, trailer| InternalKey { user, trailer };
            order(internal(&a.0, a.1), internal(&b.0, b.1), is_reverse)
        };
        let mut sorted = keys.clone();
        sorted.sort_by(ordered);
        sorted.dedup();
        for table in Table::all(is_reverse) {
            let mut present = std::collections::BTreeSet::new();
            for key in &keys {
                prop_assert_eq!(table.insert(key), present.insert(key));
            }
            for room in [1, 2, 7, 1000] {
                prop_assert_eq!(&table.walk(None, false, room), &sorted);
                let mut back = table.walk(None, true, room);
                back.reverse();
                prop_assert_eq!(&back, &sorted);
            }
            for key in seeks.iter().take(20) {
                let smaller = sorted.partition_point(|other| ordered(other, key).is_lt());
                let up_to = sorted.partition_point(|other| ordered(other, key).is_le());
                prop_assert_eq!(&table.walk(Some(key), false, 5)[..], &sorted[smaller..]);
                let mut back = table.walk(Some(key), true, 5);
                back.reverse();
                prop_assert_eq!(&back[..], &sorted[..up_to]);
            }
        }
    }
}

/// RocksDB recommends keys of 8 MB at most.
#[test]
fn keys_of_many_bytes_are_taken() {
    let long = |len: usize, last: u8| ([vec![7; len - 1], vec![last]].concat(), 0);
    for is_reverse in [false, true] {
        let mut keys = Vec::new();
        for len in [4096, (512 << 10) + 1, (16 << 20) - 2] {
            keys.extend([long(len, 7), long(len, 9)]);
        }
        for table in Table::all(is_reverse) {
            assert!(keys.iter().all(|key| table.insert(key)));
            let mut sorted = keys.clone();
            sorted.sort();
            for descends in [false, true] {
                let mut walked = table.walk(None, descends, 5);
                if is_reverse != descends {
                    walked.reverse();
                }
                assert!(walked == sorted);
            }
            for (at, key) in sorted.iter().enumerate() {
                assert!(table.walk(Some(key), is_reverse, 1) == sorted[at..]);
            }
        }
    }
}
