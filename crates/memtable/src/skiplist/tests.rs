//! Lists beside a `BTreeSet`, alone and with threads.

use super::*;
use crate::entry::{Draft, EncodedKey};
use crate::key::{Bytewise, Comparator, InternalKey, ReverseBytewise, pack};
use proptest::prelude::*;
use silvics_sync::Mutex;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};

/// An arena of the global allocator, which keeps everything until it is dropped. It has pointers
/// and no boxes, which would claim their memory alone.
#[derive(Default)]
pub(super) struct Boxes(Mutex<Vec<NonNull<[u64]>>>);

// SAFETY: the pointers are only freed, by the owner of the arena.
unsafe impl Send for Boxes {}
// SAFETY: the list of pointers is behind a mutex.
unsafe impl Sync for Boxes {}

impl Drop for Boxes {
    fn drop(&mut self) {
        for memory in self.0.lock().drain(..) {
            // SAFETY: `alloc` has leaked a box, and nobody uses it any more.
            drop(unsafe { Box::from_raw(memory.as_ptr()) });
        }
    }
}

// SAFETY: leaked boxes stay at their address until the arena is dropped, and each is new.
unsafe impl Arena for Boxes {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        assert!(layout.align() <= 8);
        let memory = vec![0u64; layout.size().div_ceil(8)].into_boxed_slice();
        let memory = NonNull::from(Box::leak(memory));
        self.0.lock().push(memory);
        Ok(memory.cast())
    }
}

fn put<O: Order, L: Placing>(list: &SkipList<O, Boxes, L>, user: &[u8], seqno: u64) -> Place {
    let draft = Draft::new(user, pack(seqno, 1), b"value").unwrap();
    let place = list.allocate(draft.len()).unwrap();
    // SAFETY: the place has these bytes.
    unsafe { draft.write(place.entry()) };
    place
}

type Key = (Vec<u8>, u64);

fn order_of(reverse: bool, a: &Key, b: &Key) -> Ordering {
    let of_users = a.0.cmp(&b.0);
    let of_users = if reverse { of_users.reverse() } else { of_users };
    of_users.then(b.1.cmp(&a.1))
}

fn key(position: Option<Position<'_, impl Placing>>) -> Option<Key> {
    let key = position?.entry().key();
    Some((key.user.to_vec(), key.seqno()))
}

/// Inserts keys in four ways in turn, and compares every search with a sorted vector.
fn behaves<O, L>(
    order: O,
    reverse: bool,
    keys: &[Key],
    target: impl for<'t> Fn(InternalKey<'t>, &'t mut Option<EncodedKey>) -> O::Target<'t>,
) where
    O: Order,
    L: Placing,
{
    let mut list = SkipList::<O, Boxes, L>::new(order, Boxes::default());
    let (mut hint, mut other) = (InsertHint::default(), InsertHint::default());
    let mut model: Vec<Key> = Vec::new();
    for (i, (user, seqno)) in keys.iter().enumerate() {
        let place = put(&list, user, *seqno);
        // SAFETY: `put` has written the entry, and this is the only thread.
        let inserted = unsafe {
            match i % 4 {
                0 => list.insert(place),
                1 => list.insert_concurrently(place),
                2 => list.insert_with_hint(place, &mut hint),
                _ => list.insert_with_hint_concurrently(place, &mut other),
            }
        };
        let new = (user.clone(), *seqno);
        let at = model.binary_search_by(|other| order_of(reverse, other, &new));
        assert_eq!(inserted, at.is_err(), "{new:?}");
        if let Err(at) = at {
            model.insert(at, new);
        }
    }
    assert_eq!(list.check(), Ok(model.len()));
    assert_eq!(key(list.first()), model.first().cloned());
    assert_eq!(key(list.last()), model.last().cloned());
    for (user, seqno) in keys {
        for seqno in [seqno.saturating_sub(1), *seqno, seqno + 1] {
            let asked = InternalKey { user, trailer: pack(seqno, 1) };
            let mut encoded = None;
            let target = target(asked, &mut encoded);
            let wanted = (user.clone(), seqno);
            let at = model.partition_point(|other| order_of(reverse, other, &wanted).is_lt());
            let found = model.get(at) == Some(&wanted);
            assert_eq!(list.contains(target), found);
            assert_eq!(key(list.seek(target)), model.get(at).cloned());
            assert_eq!(key(list.seek_before(target)), model[..at].last().cloned());
            let until = at + usize::from(found);
            assert_eq!(key(list.seek_for_prev(target)), model[..until].last().cloned());
        }
    }
    let forward: Vec<Key> = std::iter::successors(list.first(), |at| list.next(*at))
        .filter_map(|at| key(Some(at)))
        .collect();
    let mut backward: Vec<Key> = std::iter::successors(list.last(), |at| list.prev(*at))
        .filter_map(|at| key(Some(at)))
        .collect();
    backward.reverse();
    assert_eq!(forward, model);
    assert_eq!(backward, model);
}

fn plain<'t>(key: InternalKey<'t>, _: &'t mut Option<EncodedKey>) -> InternalKey<'t> {
    key
}

fn encode<'t>(key: InternalKey<'t>, place: &'t mut Option<EncodedKey>) -> Entry<'t> {
    place.insert(EncodedKey::new(key)).entry()
}

fn in_all_orders(keys: &[Key]) {
    behaves::<_, Inline>(ByBytes::<false>, false, keys, plain);
    behaves::<_, Inline>(ByBytes::<true>, true, keys, plain);
    behaves::<_, BehindPointer>(ByBytes::<false>, false, keys, plain);
    behaves::<_, Inline>(ByComparator(Arc::new(ReverseBytewise)), true, keys, plain);
    let by_function = ByFunction(|a: Entry<'_>, b: Entry<'_>| {
        let (a, b) = (a.key(), b.key());
        Bytewise.compare(a.user, b.user).then(b.trailer.cmp(&a.trailer))
    });
    behaves::<_, Inline>(by_function, false, keys, encode);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]
    #[test]
    fn lists_behave_as_sets(
        keys in prop::collection::vec(
            (prop::collection::vec(prop::sample::select(vec![0u8, 1, 97, 255]), 0..5), 1u64..4),
            0..120,
        )
    ) {
        in_all_orders(&keys);
    }
}

#[test]
fn ascending_and_interleaved_runs() {
    let runs = if cfg!(miri) { 20 } else { 300u32 };
    let ascending: Vec<Key> = (0..runs).map(|i| (i.to_be_bytes().to_vec(), 1)).collect();
    in_all_orders(&ascending);
    let descending: Vec<Key> = ascending.iter().rev().cloned().collect();
    in_all_orders(&descending);
    let interleaved: Vec<Key> =
        (0..runs).map(|i| ([&[i as u8 % 3][..], &i.to_be_bytes()].concat(), 1)).collect();
    in_all_orders(&interleaved);
    let long = vec![5; 300];
    let alike: Vec<Key> =
        (0..runs).map(|i| ([&long[..], &i.to_le_bytes()].concat(), u64::from(i % 2) + 1)).collect();
    in_all_orders(&alike);
}

#[test]
fn threads_insert_every_key_once() {
    let (threads, keys) = (4, if cfg!(miri) { 30 } else { 4000u32 });
    for shift in [0, 24] {
        let mut list = InlineSkipList::new(ByBytes::<false>, Boxes::default());
        let start = Barrier::new(threads);
        let wins: usize = std::thread::scope(|scope| {
            let insert = |thread: usize| {
                let (list, start) = (&list, &start);
                move || {
                    start.wait();
                    let mut hint = InsertHint::default();
                    // Every key by two threads, of which one must win.
                    let mine = (0..keys).filter(|i| (*i as usize + thread).is_multiple_of(2));
                    mine.filter(|i| {
                        let place = put(list, &i.rotate_left(shift).to_be_bytes(), 1);
                        // SAFETY: `put` has written the entry, and all threads insert concurrently.
                        unsafe {
                            if thread < 2 {
                                list.insert_concurrently(place)
                            } else {
                                list.insert_with_hint_concurrently(place, &mut hint)
                            }
                        }
                    })
                    .count()
                }
            };
            let all: Vec<_> = (0..threads).map(|thread| scope.spawn(insert(thread))).collect();
            // A reader sees ascending keys, and those that were there before.
            for _ in 0..20 {
                let seen: Vec<_> = std::iter::successors(list.first(), |at| list.next(*at))
                    .map(|at| at.entry().key().user.to_vec())
                    .collect();
                assert!(seen.is_sorted_by(|a, b| a < b));
            }
            all.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((wins, list.check()), (keys as usize, Ok(keys as usize)));
        let users: BTreeSet<_> = std::iter::successors(list.first(), |at| list.next(*at))
            .map(|at| at.entry().key().user.to_vec())
            .collect();
        assert_eq!(users.len(), keys as usize);
    }
}

#[test]
fn a_comparator_that_panics_or_lies_does_no_harm() {
    struct Liar;
    impl Comparator for Liar {
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            match (a.len() + b.len()) % 5 {
                0 => Ordering::Greater,
                4 => panic!("as planned"),
                _ => Ordering::Less,
            }
        }
        fn name(&self) -> &'static str {
            "liar"
        }
    }
    let list = InlineSkipList::new(ByComparator(Arc::new(Liar)), Boxes::default());
    let mut hint = InsertHint::default();
    for i in 0..200usize {
        let place = put(&list, &vec![1; i * 7 % 13], i as u64);
        // A panic leaves the list as it was, or with a lower tower.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // SAFETY: `put` has written the entry, and this is the only thread.
            unsafe {
                match i % 3 {
                    0 => list.insert(place),
                    1 => list.insert_concurrently(place),
                    _ => list.insert_with_hint(place, &mut hint),
                }
            }
        }));
        let asked = InternalKey::seek(&[2, 2], 9);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| key(list.seek(asked))));
    }
    assert!(std::iter::successors(list.first(), |at| list.next(*at)).count() <= 200);
}
