//! Every execution of two inserts and a reader.

use super::*;
use crate::entry::Draft;
use crate::key::pack;

/// Memory that is leaked: a model's executions are short.
struct Leaks;

// SAFETY: leaked memory lives forever.
unsafe impl Arena for Leaks {
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        let memory = vec![0u64; layout.size().div_ceil(8)].leak();
        Ok(NonNull::from(memory).cast())
    }
}

fn put(list: &InlineSkipList<ByBytes, Leaks>, user: &[u8]) -> Place {
    let draft = Draft::new(user, pack(1, 1), b"").unwrap();
    let place = Inline::allocate(&list.arena, 1, draft.len()).unwrap();
    // SAFETY: the place has these bytes.
    unsafe { draft.write(place.entry()) };
    place
}

fn insert_two(keys: [&'static [u8]; 2], wins: usize) {
    ::loom::model(move || {
        let list = Arc::new(InlineSkipList::new(ByBytes, Leaks));
        let other = Arc::clone(&list);
        let thread = ::loom::thread::spawn(move || {
            let place = put(&other, keys[0]);
            // SAFETY: `put` has written the entry.
            usize::from(unsafe { other.insert_concurrently(place) })
        });
        let place = put(&list, keys[1]);
        // SAFETY: `put` has written the entry.
        let won = usize::from(unsafe { list.insert_concurrently(place) });
        let seen = std::iter::successors(list.first(), |at| list.next(*at)).count();
        assert!((1..=2).contains(&seen));
        assert_eq!(won + thread.join().unwrap(), wins);
        let mut list = Arc::into_inner(list).expect("the other thread has ended");
        assert_eq!(list.check(), Ok(wins));
    });
}

#[test]
fn loom_two_neighbours_are_both_linked() {
    insert_two([b"a", b"b"], 2);
}

#[test]
fn loom_one_of_two_equal_keys_is_linked() {
    insert_two([b"a", b"a"], 1);
}
