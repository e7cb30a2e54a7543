//! Scans under the locking policies protect the gap behind their range.

#![cfg(not(any(silvics_loom, silvics_shuttle, miri)))]

mod support;

use silvics_store::index::{MultiLists, Points};
use silvics_store::{
    Column, Error, Index, IndexSpec, Locking, NoWait, Policy, Schema, Store, Table, Tx, Type,
    WaitDie,
};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use support::pausing::{Pausing, after_walk};

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

/// A store with a table whose indexes pause.
struct Rows<P: Policy> {
    store: Store<P>,
    table: Table<P>,
    by_id: Index<P, u64, Pausing>,
    by_mark: Index<P, u64, Pausing>,
    id: Column<u64>,
    mark: Column<u64>,
}

impl<P: Policy> Rows<P> {
    /// The rows 10 and 100 with the marks 1010 and 1100.
    fn new() -> Arc<Self> {
        let store = Store::<P>::new().unwrap();
        let schema = Schema::new("t")
            .column("id", Type::U64)
            .column("mark", Type::U64)
            .index(IndexSpec::primary(["id"]).over::<Pausing>())
            .index(IndexSpec::unique("by_mark", ["mark"]).over::<Pausing>());
        let table = store.create_table(schema).unwrap();
        let rows = Self {
            by_id: table.index_over("primary").unwrap(),
            by_mark: table.index_over("by_mark").unwrap(),
            id: table.column("id").unwrap(),
            mark: table.column("mark").unwrap(),
            table,
            store,
        };
        for id in [10, 100] {
            rows.store.transact(|tx| rows.add(tx, id, 1000 + id)).unwrap();
        }
        Arc::new(rows)
    }

    fn add(&self, tx: &Tx<'_, P>, id: u64, mark: u64) -> Result<(), Error> {
        tx.insert(&self.table, |row| {
            row.set(self.id, id)?;
            row.set(self.mark, mark)
        })
    }

    /// The marks from 1020 to 1030.
    fn marks(&self, tx: &Tx<'_, P>) -> Result<Vec<u64>, Error> {
        let rows = tx.scan(&self.by_mark, 1020..=1030).rows()?;
        rows.iter().map(|row| row.get(self.mark)).collect()
    }
}

/// A scan holds the row with the mark 1100 for the gap in front of it. `refused` places the mark
/// 1050, and gives it up since the gap is held. Meanwhile, a third transaction has placed the mark
/// 1025 in front of it. It took 1050 for the next mark, looked at the lock of its row when that was
/// free again, and was committed: a phantom.
fn a_mark_that_is_given_up_hides_no_scan<P: Policy>(
    refused: impl FnOnce(&Rows<P>, &Tx<'_, P>) -> Result<(), Error> + Send + 'static,
    walks: usize,
) {
    let rows = Rows::<P>::new();
    let scan = rows.store.begin();
    assert_eq!(rows.marks(&scan), Ok(vec![]));
    let (has_placed, may_insert) = channel();
    let (has_walked, may_give_up) = channel();
    let (has_given_up, may_go_on) = channel();
    let shared = Arc::clone(&rows);
    let refused = std::thread::spawn(move || {
        let tx = shared.store.begin();
        after_walk(walks, move || {
            has_placed.send(()).unwrap();
            may_give_up.recv().unwrap();
        });
        let done = refused(&shared, &tx);
        drop(tx);
        has_given_up.send(()).unwrap();
        done
    });
    let shared = Arc::clone(&rows);
    let third = std::thread::spawn(move || {
        may_insert.recv().unwrap();
        let tx = shared.store.begin();
        // The walk of the primary index comes first.
        after_walk(1, move || {
            has_walked.send(()).unwrap();
            may_go_on.recv().unwrap();
        });
        shared.add(&tx, 200, 1025).and_then(|()| tx.commit())
    });
    assert!(matches!(refused.join().unwrap(), Err(Error::Aborted(_))));
    let third = third.join().unwrap();
    assert!(matches!(third, Err(Error::Aborted(_))), "{third:?}");
    assert_eq!(rows.marks(&scan), Ok(vec![]), "a phantom");
    scan.commit().unwrap();
}

/// The mark is given up by an insertion, or by a row that got it.
#[test]
fn marks_that_are_given_up_hide_no_scans() {
    fn inserts<P: Policy>(rows: &Rows<P>, tx: &Tx<'_, P>) -> Result<(), Error> {
        rows.add(tx, 150, 1050)
    }
    fn updates<P: Policy>(rows: &Rows<P>, tx: &Tx<'_, P>) -> Result<(), Error> {
        tx.update(&rows.by_id, 10, |row| row.set(rows.mark, 1050)).map(|_| ())
    }
    a_mark_that_is_given_up_hides_no_scan::<Locking<NoWait>>(inserts, 1);
    a_mark_that_is_given_up_hides_no_scan::<Locking<NoWait>>(updates, 0);
    a_mark_that_is_given_up_hides_no_scan::<Locking<WaitDie>>(inserts, 1);
    a_mark_that_is_given_up_hides_no_scan::<Locking<WaitDie>>(updates, 0);
}

/// A transaction that had scanned a gap and then inserted into it did not wait for a younger one
/// that held the row behind the gap, too: it was aborted.
#[test]
fn the_oldest_waits_for_a_younger_reader_of_its_gap() {
    let rows = Rows::<Locking<WaitDie>>::new();
    let old = rows.store.begin();
    assert_eq!(rows.marks(&old), Ok(vec![]));
    let (has_read, may_insert) = channel();
    let shared = Arc::clone(&rows);
    let young = std::thread::spawn(move || {
        let tx = shared.store.begin();
        assert!(tx.get(&shared.by_id, 100).unwrap().is_some());
        has_read.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(100)); // the insertion waits
        tx.commit()
    });
    may_insert.recv().unwrap();
    rows.add(&old, 200, 1025).unwrap();
    young.join().unwrap().unwrap();
    old.commit().unwrap();
}

/// In an index of lists, a scan protects the gaps of its list alone.
fn lists_have_their_own_gaps<P: Policy>() {
    type Lists = MultiLists<Points<silvics::BronsonTree>>;
    let store = Store::<P>::new().unwrap();
    let by_name = IndexSpec::multi("by_name", ["name"]).over::<Lists>();
    let schema = Schema::new("t").column("id", Type::U64).column("name", Type::U64);
    let table = store.create_table(schema.primary(["id"]).index(by_name)).unwrap();
    let by_name = table.multi::<u64>("by_name").unwrap();
    let (id, name) = (table.column::<u64>("id").unwrap(), table.column::<u64>("name").unwrap());
    let add = |number: u64, of: u64| {
        let tx = store.begin();
        let added = tx.insert(&table, |row| {
            row.set(id, number)?;
            row.set(name, of)
        });
        added.and_then(|()| tx.commit())
    };
    for number in [10, 20] {
        add(number, 5).unwrap();
    }
    let count = |tx: &Tx<'_, P>, of| tx.find_all(&by_name, of).rows().map(|rows| rows.len());
    let scan = store.begin();
    assert_eq!((count(&scan, 5), count(&scan, 7)), (Ok(2), Ok(0)));
    for (number, of) in [(5, 5), (15, 5), (25, 5), (6, 7)] {
        let added = add(number, of);
        assert!(matches!(added, Err(Error::Aborted(_))), "{number} in {of}: {added:?}");
    }
    assert_eq!((count(&scan, 5), count(&scan, 7)), (Ok(2), Ok(0)));
    // Three lists, because two keys can have one lock.
    let others = [(100, 4), (101, 6), (102, 8)].map(|(number, of)| add(number, of));
    assert!(others.contains(&Ok(())), "{others:?}");
    scan.commit().unwrap();
    assert_eq!(add(25, 5), Ok(()));
}

#[test]
fn scans_of_lists_meet_no_phantoms() {
    lists_have_their_own_gaps::<Locking<NoWait>>();
    lists_have_their_own_gaps::<Locking<WaitDie>>();
}
