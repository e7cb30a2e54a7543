//! The moments at which transactions are acknowledged, beside a disk whose sync waits.

use super::disk::{Delay, Disk};
use silvics_memtable::log::forgetful::Forgetful;
use silvics_store::durability::Durability;
use silvics_store::{Error, Policy, Schema, Store, StoreOptions, Table, Type};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store with one table of numbers.
pub(crate) struct Numbers<P: Policy> {
    pub(crate) store: Store<P>,
    pub(crate) table: Table<P>,
}

impl<P: Policy> Numbers<P> {
    pub(crate) fn open(durability: Durability) -> Self {
        let create = |store: &Store<P>| {
            store.create_table(
                Schema::new("numbers")
                    .column("id", Type::U64)
                    .column("number", Type::U64)
                    .primary(["id"]),
            )
        };
        let (store, table, _) = Store::open(&StoreOptions::default(), durability, create).unwrap();
        Self { store, table }
    }

    pub(crate) fn insert(&self, number: u64) -> Result<(), Error> {
        let id = self.table.column::<u64>("id")?;
        self.store.transact(|tx| tx.insert(&self.table, |row| row.set(id, number)))
    }

    pub(crate) fn has(&self, number: u64) -> Result<bool, Error> {
        let by_id = self.table.index::<u64>("primary")?;
        self.store.transact(|tx| Ok(tx.get(&by_id, number)?.is_some()))
    }
}

/// Other transactions see one that is not durable. They are not acknowledged before it is.
pub(crate) fn nobody_is_told_too_early<P: Policy>(reads_row: bool) {
    let gate = Arc::new(Mutex::new(()));
    let disk = Disk(Forgetful::new(), Delay::Gate(Arc::clone(&gate)));
    let numbers = &Numbers::<P>::open(disk.durability(true));
    numbers.insert(1).unwrap();
    let by_id = numbers.table.index::<u64>("primary").unwrap();
    assert!(numbers.has(1).unwrap());
    let closed = gate.lock();
    let [wrote, read, failed] = &[const { AtomicBool::new(false) }; 3].map(|flag| flag);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = &numbers.store;
            if reads_row {
                numbers.insert(2).unwrap();
            } else {
                store.transact(|tx| tx.delete(&by_id, 1)).unwrap();
            }
            wrote.store(true, Ordering::Release);
        });
        // The row is seen, or is missed, before its transaction is durable.
        let sees = |tx: &silvics_store::Tx<'_, P>| {
            Ok::<_, Error>(tx.get(&by_id, if reads_row { 2 } else { 1 })?.is_some() == reads_row)
        };
        let mut ticket = None;
        let begun = Instant::now();
        while ticket.is_none() {
            assert!(begun.elapsed() < Duration::from_secs(20), "it is not published");
            let (seen, of) = numbers.store.transact_deferred(sees).unwrap();
            ticket = seen.then_some(of);
        }
        let ticket = ticket.unwrap();
        scope.spawn(move || {
            assert!(numbers.store.transact(sees).unwrap());
            read.store(true, Ordering::Release);
        });
        scope.spawn(move || {
            // An error that follows from it, too.
            let refused =
                numbers.store.transact(|tx| if sees(tx)? { Err(Error::Nested) } else { Ok(()) });
            assert_eq!(refused, Err(Error::Nested));
            failed.store(true, Ordering::Release);
        });
        std::thread::sleep(Duration::from_millis(20));
        for flag in [wrote, read, failed] {
            assert!(!flag.load(Ordering::Acquire), "told before it is durable");
        }
        assert!(!numbers.store.is_durable(ticket));
        drop(closed);
        numbers.store.wait(ticket).unwrap();
        assert!(numbers.store.is_durable(ticket));
    });
}
