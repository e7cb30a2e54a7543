//! Scans under wait-die protect the gap behind their range.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

use silvics_store::{Error, Locking, Schema, Store, Type, WaitDie};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A scan locks the row behind its range, for the gap in front of it. It waited for the lock while
/// the holder inserted another row into that gap, and then had the lock of a row that was not the
/// next one any more. So a third transaction could insert a row into the range. Now the scan looks
/// again when it has the lock.
#[test]
fn a_row_may_come_in_between_while_a_scan_waits() {
    let store: Store<Locking<WaitDie>> = Store::new().unwrap();
    let schema = Schema::new("t").column("id", Type::U64).column("n", Type::U64).primary(["id"]);
    let table = store.create_table(schema).unwrap();
    let by_id = table.index::<u64>("primary").unwrap();
    let (id, n) = (table.column::<u64>("id").unwrap(), table.column::<u64>("n").unwrap());
    for number in [1, 10] {
        store.transact(|tx| tx.insert(&table, |row| row.set(id, number))).unwrap();
    }
    let (to_other, go) = channel();
    let (to_main, done) = channel();
    let tx = store.begin(); // the ages of this thread are smaller, so it waits
    std::thread::scope(|scope| {
        let (store, table, by_id) = (&store, &table, &by_id);
        scope.spawn(move || {
            let tx = store.begin();
            assert_eq!(tx.update(by_id, 10, |row| row.set(n, 1)), Ok::<bool, Error>(true));
            to_main.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(100)); // the scan waits for the lock of 10
            tx.insert(table, |row| row.set(id, 7)).unwrap();
            tx.commit().unwrap();
            go.recv().unwrap();
            let tx = store.begin();
            let inserted = tx.insert(table, |row| row.set(id, 3)).and_then(|()| tx.commit());
            assert!(matches!(inserted, Err(Error::Aborted(_))), "{inserted:?}");
            to_main.send(()).unwrap();
        });
        let count = || tx.scan(by_id, ..5).rows().map(|rows| rows.len());
        done.recv().unwrap();
        assert_eq!(count(), Ok(1));
        to_other.send(()).unwrap();
        done.recv().unwrap();
        assert_eq!(count(), Ok(1), "a phantom");
    });
    tx.commit().unwrap();
}
