//! Waiting for the log, and its failures.

use super::disk::{Delay, Disk};
use super::gate::{Numbers, nobody_is_told_too_early};
use super::support::kinds::{each_policy, within};
use silvics_memtable::log::Action;
use silvics_memtable::log::forgetful::{Fault, Forgetful};
use silvics_store::durability::CheckpointError;
use silvics_store::{Error, Policy, Schema, SchemaError, Store, Type};
use silvics_sync::Mutex;
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

/// The log fails: the store says so, and takes no more writes.
fn is_read_only_after<P: Policy>(action: Action) {
    let disk = Disk::default();
    let numbers = Numbers::<P>::open(disk.durability(true));
    numbers.insert(1).unwrap();
    disk.0.inject(Fault::once(action, 0)); // one call fails, and later ones would succeed
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
    let (found, ticket) =
        numbers.store.transact_deferred(|tx| Ok::<_, Error>(tx.get(&by_id, 1)?.is_some())).unwrap();
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
    each_policy!(is_read_only_after(Action::Append));
    each_policy!(is_read_only_after(Action::Sync));
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
