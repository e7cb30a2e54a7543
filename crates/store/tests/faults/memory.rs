//! Allocations that fail: in a heap, in the lists of transactions, and at a limit.

use super::disk::Disk;
use super::heap::{Fault, Refusing, end, in_heap};
use super::support::kinds::{STRUCTURES, each_policy, within};
use super::support::{End, Model, Op, Person, Structures, World};
use super::{check, fill};
use silvics::Options;
use silvics_store::{Error, Policy, Store, StoreOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

/// Transactions that place, move and remove entries in all ways.
pub(super) fn scripts() -> Vec<Vec<Op>> {
    let person = |code| Person { code, town: 1, balance: 33 };
    let whole = || Op::ScanCodes { from: 0, to: 99, descending: false };
    vec![
        vec![
            Op::Insert(5, person(5)),
            Op::Insert(6, person(6)),
            Op::Delete(5),
            Op::Insert(5, person(7)),
            Op::Mark(4, 4),
            whole(),
        ],
        vec![
            // Codes and addresses go round: three rows take over keys of others.
            Op::Move(1, 6),
            Op::Move(2, 1),
            Op::Move(3, 2),
            Op::Move(1, 3),
            Op::Mark(0, 9),
            Op::Mark(1, 0),
            Op::Mark(2, 1),
            whole(),
        ],
        vec![
            Op::Delete(1),
            Op::Insert(6, person(1)),
            Op::Delete(2),
            Op::Insert(2, person(7)),
            Op::Insert(7, person(2)),
            Op::Change(3, 2, 99),
            Op::Unmark(1),
            Op::Mark(5, 1),
            Op::InTown(1),
        ],
        vec![
            Op::Delete(0),
            Op::Delete(1),
            Op::Delete(2),
            Op::Delete(4),
            Op::Unmark(0),
            Op::Unmark(1),
            whole(),
        ],
    ]
}

/// Runs a script while the n-th allocation fails. Returns whether it made that many.
fn refused<P: Policy>(
    structures: Structures,
    ops: &[Op],
    end_with: End,
    nth: u64,
    lasts: bool,
) -> bool {
    let (world, heap) = in_heap::<P>(structures);
    let mut model = fill(&world);
    heap.arm(nth, if lasts { Fault::Lasting } else { Fault::One });
    let ended = world.transaction(&mut model, ops, end_with);
    assert!(matches!(ended, None | Some(Error::Alloc(_))), "{ended:?}");
    let was_refused = heap.refused() > 0;
    assert!(was_refused || ended.is_none());
    // Reads work without memory, unless several keys were to change their owners at the commit.
    match world.check(&model) {
        Ok(()) => {}
        Err(Error::Alloc(_)) => assert!(lasts && matches!(ended, Some(Error::Alloc(_)))),
        Err(error) => panic!("{error}"),
    }
    heap.disarm();
    check(&world, &mut model);
    end(world, &heap);
    was_refused
}

/// Runs a script again and again and undoes it, each time with another allocation that fails.
/// Returns the most bytes that were live.
fn repeated<P: Policy>(structures: Structures, ops: &[Op], faults: bool) -> usize {
    let (world, heap) = in_heap::<P>(structures);
    let mut model = fill(&world);
    let mut most = 0;
    for round in 0..1200 {
        if faults {
            heap.arm(round % 37 + 1, if round % 2 == 0 { Fault::Lasting } else { Fault::One });
        }
        assert_eq!(world.transaction(&mut model, ops, End::Drop), None);
        heap.disarm();
        most = heap.live().max(most);
    }
    check(&world, &mut model);
    end(world, &heap);
    most
}

/// Rows wait in batches for the end of pins, with failed allocations or without.
fn leaks_nothing<P: Policy>(structures: Structures, ops: &[Op]) {
    let [without, with] = [false, true].map(|faults| repeated::<P>(structures, ops, faults));
    assert!(with <= 2 * without + 20_000, "{with} bytes, and {without} without a fault");
}

/// Lets each allocation fail that a script makes, and counts them.
fn each_of_heap<P: Policy>(ops: &[Op], structures: Structures, struck: &mut u64) {
    for (end, lasts) in [(End::Commit, false), (End::Commit, true), (End::Abort, true)] {
        for nth in 1.. {
            let what = format!("{}, {structures:?}, {end:?}, {nth}, {lasts}", P::name());
            let ops = ops.to_vec();
            let one = || within(&what, move || refused::<P>(structures, &ops, end, nth, lasts));
            match std::panic::catch_unwind(one) {
                Ok(true) => *struck += 1,
                Ok(false) => break,
                Err(panic) => {
                    println!("failed: {what}");
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

#[test]
fn each_allocation_of_a_heap_may_fail() {
    for (number, ops) in scripts().into_iter().enumerate() {
        let mut struck = 0;
        for structures in STRUCTURES {
            each_policy!(each_of_heap(&ops, structures, &mut struck));
        }
        println!("script {number}: {struck} faults");
        assert!(struck > 20, "{ops:?}");
    }
}

#[test]
fn failed_allocations_leak_nothing() {
    for ops in scripts() {
        for structures in STRUCTURES {
            each_policy!(leaks_nothing(structures, &ops));
        }
    }
}

/// The system's allocator, which fails when [`without_memory`] asks for it.
struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

std::thread_local! {
    /// The number of the allocation that fails, among those of at least [`LEAST`] bytes. The next
    /// one is 1, and 0 is none.
    static FAILS: Cell<u64> = const { Cell::new(0) };
}

/// The least bytes of an allocation that fails. Those of the collector, of ranges whose type is not
/// known, and of this test are smaller, and end the process if they fail. Transactions allocate
/// their copies of rows in larger chunks.
const LEAST: usize = 3000;

// SAFETY: every call goes to the system's allocator, or fails.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LEAST && FAILS.get() > 0 {
            FAILS.set(FAILS.get() - 1);
            if FAILS.get() == 0 {
                return std::ptr::null_mut();
            }
        }
        // SAFETY: the caller keeps the contract, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is that of the system's allocator.
        unsafe { System.dealloc(object, layout) };
    }
}

/// Calls `work` while the n-th large allocation of this thread fails. Returns whether it made that
/// many.
fn without_memory(nth: u64, work: impl FnOnce()) -> bool {
    FAILS.set(nth);
    work();
    FAILS.replace(0) == 0
}

/// Runs a script on a new thread, whose first transaction allocates all of its lists, while one of
/// these allocations fails.
fn without_lists<P: Policy>(structures: Structures, ops: &[Op], end: End) {
    let ops: Vec<Op> = (0..8).flat_map(|_| ops.iter().cloned()).collect();
    for nth in 1.. {
        let what = format!("{}, {structures:?}, {end:?}, {nth}", P::name());
        let ops = ops.clone();
        let was_refused = within(&what, move || {
            let world = World::<P>::new(&StoreOptions::default(), structures).unwrap();
            let mut model =
                std::thread::scope(|scope| scope.spawn(|| fill(&world)).join().unwrap());
            world.store.begin().abort(); // the collector allocates its part of this thread
            let was_refused = without_memory(nth, || {
                let ended = world.transaction(&mut model, &ops, end);
                assert_eq!(ended, None, "a commit allocates no list");
            });
            check(&world, &mut model);
            was_refused
        });
        if !was_refused {
            assert!(nth > 2, "{what}");
            break;
        }
    }
}

#[test]
fn each_list_of_a_transaction_may_fail_to_grow() {
    for ops in scripts() {
        for end in [End::Commit, End::Abort] {
            each_policy!(without_lists(STRUCTURES[0], &ops, end));
            each_policy!(without_lists(STRUCTURES[1], &ops, end));
        }
    }
}

/// A row that moves gives up entries of this transaction in two indexes. If a list cannot grow on
/// the way, the row has all of its entries as before.
#[test]
fn each_list_may_fail_to_grow_while_a_row_moves() {
    let person = Person { code: 5, town: 1, balance: 33 };
    for reads in 0..6 {
        // The reads decide which step lets a list grow.
        let reads = (0..reads).map(|read| Op::Get(if read % 2 == 0 { 7 } else { 0 }));
        let moves = (0..20).flat_map(|n| {
            let looks = (6..9).flat_map(|code| [Op::ByCode(code), Op::ByEmail(code)]);
            std::iter::once(Op::Move(5, 6 + n % 3)).chain(looks)
        });
        let ops: Vec<Op> = reads.chain([Op::Insert(5, person.clone())]).chain(moves).collect();
        each_policy!(without_lists(STRUCTURES[0], &ops, End::Commit));
    }
}

/// A commit whose record cannot grow is undone, with the keys that rows have taken over.
fn without_record<P: Policy>() {
    let disk = Disk::default();
    let create = |store: &Store<P>| World::create(store, STRUCTURES[0]);
    let opened = Store::open(&StoreOptions::default(), disk.durability(true), create);
    let world = World::over(opened.unwrap().0).unwrap();
    let mut model = fill(&world);
    let person = |code| Person { code, town: 1, balance: 33 };
    let more = (5..8).map(|id| Op::Insert(id, person(id)));
    let moves = [Op::Move(1, 9), Op::Move(2, 1), Op::Move(3, 2), Op::Move(1, 3)];
    let changes = (0..8).map(|id| Op::Change(id, 2, 250 + id as i64));
    let ops: Vec<Op> = more.chain(moves).chain(changes).collect();
    let mut refused = 0;
    for nth in 1.. {
        let (tx, mut after) = (world.store.begin(), model.clone());
        for op in &ops {
            world.run(&tx, &mut after, op).unwrap();
        }
        let mut done = Ok(());
        let was_refused = without_memory(nth, || done = tx.commit_deferred().map(|_| ()));
        if !was_refused {
            assert_eq!(done, Ok(()));
            model = after;
            break;
        }
        assert!(matches!(done, Err(Error::Alloc(_))), "{done:?}");
        check(&world, &mut model);
        refused += 1;
    }
    assert!(refused > 0, "the record has not grown");
    check(&world, &mut model);
    drop(world);
    let opened = Store::open(&StoreOptions::default(), disk.durability(true), create);
    check(&World::over(opened.unwrap().0).unwrap(), &mut model);
}

#[test]
fn a_record_may_fail_to_grow() {
    each_policy!(without_record());
}

/// Structures whose removals allocate.
const TREES: Structures = ("lfca-tree", "lfca-tree");

/// A store in which person 1 has lost code 1, and the removal of the entries has failed. The heap
/// still fails.
fn with_postponed_entries<P: Policy>() -> (World<P>, Arc<Refusing>, Model) {
    let (world, heap) = in_heap::<P>(TREES);
    let mut model = fill(&world);
    let tx = world.store.begin();
    assert_eq!(world.run(&tx, &mut model, &Op::Move(1, 7)), Ok(()));
    heap.arm(1, Fault::Lasting); // the first allocation of the commit is that of a removal
    tx.commit().unwrap();
    assert!(heap.refused() > 0, "{}: no removal has failed", P::name());
    (world, heap, model)
}

/// A transaction deletes the row, and gives the key to another one: the entry stays until the
/// commit, which changes it.
fn a_postponed_entry_is_taken_over<P: Policy>() {
    let (world, heap, model) = with_postponed_entries::<P>();
    let tx = world.store.begin();
    heap.disarm();
    let mut now = model.clone();
    let mut added = world.run(&tx, &mut now, &Op::Delete(1));
    added = added.and_then(|()| {
        let person = Person { code: 1, town: 1, balance: 3 };
        world.run(&tx, &mut now, &Op::Insert(6, person))
    });
    // Another transaction tidies, and wants the key.
    let other = world.store.begin();
    let mut then = model.clone();
    let wanted = Op::Insert(5, Person { code: 1, town: 2, balance: 4 });
    let wanted = world.run(&other, &mut then, &wanted).and_then(|()| other.commit());
    let committed = added.clone().and_then(|()| tx.commit());
    let what = format!("{}: {added:?}, {wanted:?}, {committed:?}", P::name());
    assert!(wanted.is_ok() != committed.is_ok(), "{what}");
    check(&world, &mut if committed.is_ok() { now } else { then });
    end(world, &heap);
}

#[test]
fn postponed_entries_are_taken_over() {
    each_policy!(a_postponed_entry_is_taken_over());
}

/// A transaction, behind one that may have changed a row.
#[derive(Clone, Debug)]
struct Story {
    before: Option<Op>,
    ops: Vec<Op>,
    /// The operation whose allocations fail; if it is `None`, those of the transaction before do.
    faulty: Option<usize>,
}

/// Rows take over keys whose entries were to be removed, and the commit fails in the middle: these
/// keys go to nobody. The n-th allocation and all later ones fail, in one operation and in the
/// commit. Returns whether they did so in each of the two.
fn a_commit_goes_back<P: Policy>(story: &Story, nth: u64, of_commit: u64) -> (bool, bool) {
    let (world, heap) = in_heap::<P>(TREES);
    let mut model = fill(&world);
    if let Some(op) = &story.before {
        let (tx, mut now) = (world.store.begin(), model.clone());
        heap.arm(nth, Fault::Lasting);
        let done = world.run(&tx, &mut now, op).and_then(|()| tx.commit());
        heap.disarm();
        assert!(matches!(done, Ok(()) | Err(Error::Alloc(_))), "{done:?}");
        if done.is_ok() {
            model = now;
        }
    }
    let (tx, mut now) = (world.store.begin(), model.clone());
    for (at, op) in story.ops.iter().enumerate() {
        if story.faulty == Some(at) {
            heap.arm(nth, Fault::Lasting);
        }
        let done = world.run(&tx, &mut now, op);
        heap.disarm();
        assert!(matches!(done, Ok(()) | Err(Error::Alloc(_) | Error::Aborted(_))), "{done:?}");
    }
    let refused = heap.refused();
    heap.arm(of_commit, Fault::Lasting);
    let committed = tx.commit();
    let goes_back = heap.refused() > refused;
    heap.disarm();
    match committed {
        Ok(()) => model = now,
        Err(error) => assert!(matches!(error, Error::Alloc(_) | Error::Aborted(_)), "{error}"),
    }
    check(&world, &mut model);
    // Each code can be used, and the rows can go.
    let codes = (0..8).filter(|&code| model.people.values().all(|of| of.code != code));
    let ids = (20..).zip(codes.collect::<Vec<_>>());
    let fill = ids.map(|(id, code)| Op::Insert(id, Person { code, town: 0, balance: 1 }));
    assert_eq!(world.transaction_strict(&mut model, &fill.collect::<Vec<_>>()), None);
    let all: Vec<Op> = model.people.keys().map(|&id| Op::Delete(id)).collect();
    assert_eq!(world.transaction_strict(&mut model, &all), None);
    world.check(&model).unwrap();
    world.check_entries(&model);
    end(world, &heap);
    (refused > 0, goes_back)
}

#[test]
fn commits_of_rows_that_take_over_go_back() {
    fn all<P: Policy>(story: &Story, both: &mut u32) {
        for nth in 1.. {
            let mut has_failed = false;
            for of_commit in 1.. {
                let what = format!("{}, {nth}, {of_commit}, {story:?}", P::name());
                let story = story.clone();
                let one = within(&what, move || a_commit_goes_back::<P>(&story, nth, of_commit));
                has_failed = one.0;
                *both += u32::from(one.0 && one.1);
                if !one.1 {
                    break;
                }
            }
            if !has_failed {
                break;
            }
        }
    }
    let person = |code| Person { code, town: 1, balance: 33 };
    let moved = Story {
        before: Some(Op::Move(1, 7)),
        ops: vec![Op::Delete(1), Op::Insert(6, person(1)), Op::Delete(2), Op::Insert(5, person(2))],
        faulty: None,
    };
    let inserted = Story {
        before: None,
        ops: vec![
            Op::Insert(5, person(5)),
            Op::Move(5, 6),
            Op::Delete(2),
            Op::Insert(6, person(5)),
            Op::Insert(7, person(2)),
        ],
        faulty: Some(1),
    };
    for story in [moved, inserted] {
        let mut both = 0;
        each_policy!(all(&story, &mut both));
        assert!(both > 20, "{both} commits went back behind a failed removal: {story:?}");
    }
}

/// A row moves back to a key that the transaction has scanned, and whose entry could not be
/// removed.
fn a_scanned_key_comes_back<P: Policy>() {
    let (world, heap, mut model) = with_postponed_entries::<P>();
    let all = Op::ScanCodes { from: 0, to: 99, descending: false };
    let (tx, mut now) = (world.store.begin(), model.clone());
    assert_eq!(world.run(&tx, &mut now, &all), Ok(()));
    let moved = world.run(&tx, &mut now, &Op::Move(1, 1));
    match moved.and_then(|()| tx.commit()) {
        Ok(()) => model = now,
        Err(error) => assert!(matches!(error, Error::Alloc(_)), "{}: {error}", P::name()),
    }
    heap.disarm();
    check(&world, &mut model);
    end(world, &heap);
}

#[test]
fn scanned_keys_come_back() {
    each_policy!(a_scanned_key_comes_back());
}

/// Fills a store with a limit until an insertion fails, deletes everything, and does it again.
fn to_the_limit<P: Policy>(structures: Structures, limit: usize) {
    let indexes = Options { memory_limit: Some(limit), ..Options::default() };
    let options = StoreOptions { indexes, ..StoreOptions::default() };
    let world = match World::<P>::new(&options, structures) {
        Ok(world) => world,
        Err(Error::Alloc(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let mut counts = Vec::new();
    for _ in 0..4 {
        let mut model = Model::default();
        let refused = (0..100_000).find_map(|id| {
            let person = Person { code: id, town: id as u8 % 3, balance: 1 };
            world.transaction_strict(&mut model, &[Op::Insert(id, person)])
        });
        assert!(matches!(refused, Some(Error::Alloc(_))), "{refused:?}");
        assert!(world.store.bytes() <= limit + (512 << 10), "{} bytes", world.store.bytes());
        world.check(&model).unwrap();
        counts.push(model.people.len());
        for id in 0..counts[counts.len() - 1] as u64 {
            assert_eq!(world.transaction_strict(&mut model, &[Op::Delete(id)]), None, "{id}");
        }
        world.check(&model).unwrap();
        world.check_entries(&model);
    }
    // Pools keep their slabs for objects of one size, so a later round may have fewer rows.
    assert!(counts[0] < 100 || counts.iter().all(|&count| count > 0), "{counts:?} rows");
}

#[test]
fn a_store_at_its_limit_goes_on() {
    for structures in [STRUCTURES[0], STRUCTURES[1]] {
        for limit in [1 << 12, 1 << 16, 1 << 18, 1 << 20] {
            each_policy!(to_the_limit(structures, limit));
        }
    }
}
