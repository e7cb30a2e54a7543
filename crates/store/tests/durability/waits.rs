//! Waiting for the log, and its failures.

use super::disk::{Delay, Disk};
use super::gate::{Numbers, nobody_is_told_too_early};
use super::support::kinds::{STRUCTURES, each_policy, within};
use super::support::{Model, Op, Person, Structures, World};
use silvics_memtable::log::Action;
use silvics_memtable::log::forgetful::{Fault, FaultError, Forgetful};
use silvics_store::durability::CheckpointError;
use silvics_store::{Error, Policy, Schema, SchemaError, Store, StoreOptions, Tx, Type};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

#[test]
fn nobody_is_told_of_what_is_not_durable() {
    within("waits", || {
        each_policy!(nobody_is_told_too_early(true));
        each_policy!(nobody_is_told_too_early(false));
    });
}

/// A reader does not wait if everything is durable: the sync would never return.
#[test]
fn readers_of_durable_rows_do_not_wait() {
    within("readers", || {
        let gate = Arc::new(Mutex::new(()));
        let disk = Disk(Forgetful::new(), Delay::Gate(Arc::clone(&gate)));
        let numbers = Numbers::<silvics_store::Optimistic>::open(disk.durability(true));
        numbers.insert(1).unwrap();
        let _closed = gate.lock();
        assert!(numbers.has(1).unwrap());
        assert!(!numbers.has(2).unwrap());
        // A transaction without an effect has no record.
        let by_id = numbers.table.index::<u64>("primary").unwrap();
        let id = numbers.table.column::<u64>("id").unwrap();
        let done = numbers.store.transact(|tx| {
            tx.insert(&numbers.table, |row| row.set(id, 5))?;
            tx.delete(&by_id, 5)?;
            tx.update(&by_id, 1, |row| row.set(id, 1))
        });
        assert_eq!(done, Ok(true));
    });
}

/// A storage panicked under a thread that was panicking already. The writer went on with the group,
/// and the next sync acknowledged it.
#[test]
fn a_storage_that_panics_during_a_panic_is_final() {
    struct Inserts<'a>(&'a Numbers<silvics_store::Optimistic>);
    impl Drop for Inserts<'_> {
        fn drop(&mut self) {
            let inserted = std::panic::catch_unwind(AssertUnwindSafe(|| self.0.insert(2)));
            assert!(inserted.is_err(), "the sync panics");
        }
    }
    let panics = Arc::new(AtomicBool::new(false));
    let disk = Disk(Forgetful::new(), Delay::Panic(Arc::clone(&panics)));
    let numbers = Numbers::open(disk.durability(true));
    numbers.insert(1).unwrap();
    panics.store(true, Ordering::Relaxed);
    let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _inserts = Inserts(&numbers);
        panic!("planted, too");
    }));
    assert!(unwound.is_err());
    panics.store(false, Ordering::Relaxed);
    let refused = numbers.insert(3);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
}

/// A checkpoint that could not be written stayed on the full disk.
#[test]
fn a_failed_checkpoint_leaves_no_file() {
    let mut failed = 0;
    for after in 0..12 {
        let disk = Disk::default();
        let numbers = Numbers::<silvics_store::Optimistic>::open(disk.durability(true));
        numbers.insert(1).unwrap();
        disk.0.inject(Fault::once(Action::Append, after));
        let written = numbers.store.checkpoint();
        let unfinished = disk.content().into_iter().filter(|(number, _)| number >> 62 == 1);
        assert_eq!(unfinished.count(), 0, "append {after}: {written:?}");
        failed += u32::from(matches!(written, Err(CheckpointError::Storage { .. })));
    }
    assert!(failed >= 3, "{failed}: its header, its rows and its trailer");
}

/// The log fails: the store says so, and takes no more writes.
fn is_read_only_after<P: Policy>(fault: Fault) {
    let disk = Disk::default();
    let numbers = Numbers::<P>::open(disk.durability(true));
    numbers.insert(1).unwrap();
    disk.0.inject(fault);
    let error = numbers.insert(2).unwrap_err();
    assert!(matches!(error, Error::Unacknowledged { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("log 1 could not be") && text.contains("injected"), "{text}");
    for _ in 0..2 {
        let error = numbers.insert(3).unwrap_err();
        assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
        assert!(error.to_string().contains("injected"), "{error}");
    }
    // It could have read a row that a recovery does not find.
    assert!(matches!(numbers.has(1), Err(Error::Unacknowledged { .. })));
    let by_id = numbers.table.index::<u64>("primary").unwrap();
    let has = |tx: &Tx<'_, P>| Ok::<_, Error>(tx.get(&by_id, 1)?.is_some());
    let (found, ticket) = numbers.store.transact_deferred(has).unwrap();
    assert!(found && !numbers.store.is_durable(ticket));
    assert!(matches!(numbers.store.wait(ticket), Err(Error::Unacknowledged { .. })));
    let refused = numbers.store.checkpoint().unwrap_err();
    assert!(matches!(refused, CheckpointError::Log { .. }), "{refused}");
    drop(numbers);
    let numbers = Numbers::<P>::open(disk.power_loss(7).durability(true));
    assert!(numbers.has(1).unwrap());
    numbers.insert(3).unwrap();
}

#[test]
fn a_failed_call_is_final() {
    // One call fails, and later ones would succeed.
    each_policy!(is_read_only_after(Fault::once(Action::Append, 0)));
    each_policy!(is_read_only_after(Fault::once(Action::Sync, 0)));
    let (action, error) = (Some(Action::Append), FaultError::NoSpace);
    let full = Fault { action, after: 0, error, partly: true, lasting: true };
    each_policy!(is_read_only_after(full));
}

/// A commit that the log refuses gives back the keys that rows have taken over.
fn gives_keys_back<P: Policy>(structures: Structures) {
    let disk = Disk::default();
    let create = |store: &Store<P>| World::create(store, structures);
    let opened = Store::open(&StoreOptions::default(), disk.durability(true), create);
    let world = World::over(opened.unwrap().0).unwrap();
    let mut model = Model::default();
    let person = |code| Person { code, town: 1, balance: 5 };
    let people: Vec<Op> = (0..4).map(|id| Op::Insert(id, person(id))).collect();
    assert_eq!(world.transaction_strict(&mut model, &people), None);
    // Nothing is pending, so readers need not wait.
    disk.0.inject(Fault::once(Action::Create, 0));
    let refused = world.store.checkpoint().unwrap_err();
    assert!(matches!(refused, CheckpointError::Log { .. }), "{refused}");
    let rotations = [
        vec![Op::Move(1, 6), Op::Move(2, 1), Op::Move(3, 2), Op::Move(1, 3)],
        vec![Op::Delete(1), Op::Insert(6, person(1)), Op::Delete(2), Op::Insert(2, person(7))],
    ];
    for ops in rotations {
        let refused = world.transaction_strict(&mut model, &ops);
        assert!(matches!(refused, Some(Error::ReadOnly { .. })), "{refused:?}");
        world.check(&model).unwrap();
        world.check_entries(&model);
        world.check_unlocked(&model);
    }
}

#[test]
fn a_refused_commit_has_no_effect() {
    for structures in STRUCTURES {
        each_policy!(gives_keys_back(structures));
    }
}

/// A checkpoint that fails leaves the log and the earlier checkpoint.
#[test]
fn a_failed_checkpoint_can_be_tried_again() {
    let disk = Disk::default();
    let numbers = Numbers::<silvics_store::Optimistic>::open(disk.durability(true));
    numbers.insert(1).unwrap();
    numbers.store.checkpoint().unwrap();
    numbers.insert(2).unwrap();
    disk.0.inject(Fault::once(Action::Rename, 0));
    let error = numbers.store.checkpoint().unwrap_err();
    assert!(matches!(error, CheckpointError::Storage { checkpoint: 3, .. }), "{error}");
    numbers.insert(3).unwrap();
    disk.0.inject(Fault::once(Action::Remove, 1)); // the first one is that of the unfinished file
    let error = numbers.store.checkpoint().unwrap_err();
    assert!(matches!(error, CheckpointError::Removal { checkpoint: 4, .. }), "{error}");
    numbers.insert(4).unwrap();
    let lost = disk.power_loss(3);
    for (disk, written) in [(lost, 5), (disk, 6)] {
        let numbers = Numbers::<silvics_store::Optimistic>::open(disk.durability(true));
        assert_eq!(numbers.table.len(), 4);
        numbers.insert(5).unwrap();
        let checkpoint = numbers.store.checkpoint().unwrap();
        assert_eq!((checkpoint.rows, disk.content().len()), (5, 2), "{written}: {checkpoint:?}");
    }
}

/// A storage that panics counts as one that has failed, and no thread waits for ever.
#[test]
fn a_storage_may_panic() {
    within("panics", || {
        let panics = Arc::new(AtomicBool::new(false));
        let disk = Disk(Forgetful::new(), Delay::Panic(Arc::clone(&panics)));
        let numbers = Numbers::<silvics_store::Optimistic>::open(disk.durability(true));
        numbers.insert(1).unwrap();
        panics.store(true, Ordering::Relaxed);
        let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| numbers.insert(2)));
        assert!(unwound.is_err());
        assert!(matches!(numbers.insert(3), Err(Error::ReadOnly { .. })));
        assert!(matches!(numbers.has(1), Err(Error::Unacknowledged { .. })));
        panics.store(false, Ordering::Relaxed);
        drop(numbers);
        let numbers = Numbers::<silvics_store::Optimistic>::open(disk.durability(true));
        assert!(numbers.has(1).unwrap());
    });
}

#[test]
fn stores_without_a_log_are_durable_at_once() {
    let store: Store = Store::new().unwrap();
    let (value, ticket) = store.transact_deferred(|_| Ok::<_, Error>(7)).unwrap();
    assert!(value == 7 && store.is_durable(ticket));
    assert_eq!(store.wait(ticket), Ok(()));
    let refused = store.checkpoint().unwrap_err();
    assert!(matches!(refused, CheckpointError::NotDurable), "{refused}");
    let other: Store = Store::new().unwrap();
    assert!(!other.is_durable(ticket));
    assert_eq!(other.wait(ticket), Err(Error::Foreign));
}

#[test]
fn the_tables_of_a_durable_store_are_fixed() {
    let numbers = Numbers::<silvics_store::Optimistic>::open(Disk::default().durability(false));
    let schema = Schema::new("more").column("id", Type::U64).primary(["id"]);
    let refused = numbers.store.create_table(schema).unwrap_err();
    assert!(matches!(refused, Error::Schema(SchemaError::Fixed { .. })), "{refused}");
}
