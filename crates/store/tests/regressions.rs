//! Mistakes that reviews and checks have found. Each test tells the story of one.

#![cfg(not(any(silvics_loom, silvics_shuttle)))]

mod support;

use silvics::AllocError;
use silvics::key::{AsKey, Encoder};
use silvics_store::index::Named;
use silvics_store::{
    Column, Error, Index, IndexSpec, Locking, Multi, NoWait, Optimistic, Policy, Schema, Store,
    Table, Tx, Type, WaitDie,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use support::pausing::{Pausing, after_walk};

/// Orders with a number, a mark that is unique, and a state that is not.
struct Orders<P: Policy> {
    store: Store<P>,
    table: Table<P>,
    by_number: Index<P, u64, Named<u64>>,
    by_mark: Index<P, u64, Named<u64>>,
    by_state: Multi<P, u64>,
    number: Column<u64>,
    mark: Column<u64>,
    state: Column<u64>,
}

fn orders<P: Policy>(numbers: &[u64]) -> Orders<P> {
    let store = Store::new().unwrap();
    let schema = Schema::new("orders")
        .column("number", Type::U64)
        .column("mark", Type::U64)
        .column("state", Type::U64)
        .primary(["number"])
        .index(IndexSpec::unique("by_mark", ["mark"]))
        .index(IndexSpec::multi("by_state", ["state"]));
    let table = store.create_table(schema).unwrap();
    let orders = Orders {
        by_number: table.index("primary").unwrap(),
        by_mark: table.index("by_mark").unwrap(),
        by_state: table.multi("by_state").unwrap(),
        number: table.column("number").unwrap(),
        mark: table.column("mark").unwrap(),
        state: table.column("state").unwrap(),
        table,
        store,
    };
    let fill = |tx: &Tx<'_, P>| numbers.iter().try_for_each(|number| orders.add(tx, *number));
    orders.store.transact(fill).unwrap();
    orders
}

impl<P: Policy> Orders<P> {
    /// Adds an order whose mark is 1000 more than its number.
    fn add(&self, tx: &Tx<'_, P>, number: u64) -> Result<(), Error> {
        tx.insert(&self.table, |row| {
            row.set(self.number, number)?;
            row.set(self.mark, 1000 + number)
        })
    }

    fn set_state(&self, tx: &Tx<'_, P>, number: u64, state: u64) -> Result<bool, Error> {
        tx.update(&self.by_number, number, |row| row.set(self.state, state))
    }

    fn numbers(&self, tx: &Tx<'_, P>, from: u64, to: u64) -> Result<Vec<u64>, Error> {
        let rows = tx.scan(&self.by_number, from..=to).rows()?;
        rows.iter().map(|row| row.get(self.number)).collect()
    }
}

/// The entries that a transaction has placed for one table were compared with the keys of rows of
/// another table, whose rows can be shorter.
#[test]
fn a_transaction_writes_to_two_tables() {
    let orders = orders::<Optimistic>(&[1]);
    let schema = Schema::new("counters").column("id", Type::U64).column("at", Type::U8);
    let schema = schema.primary(["id"]).index(IndexSpec::multi("by_at", ["at"]));
    let counters = orders.store.create_table(schema).unwrap();
    let (id, at) = (counters.column::<u64>("id").unwrap(), counters.column::<u8>("at").unwrap());
    let by_id = counters.index::<u64>("primary").unwrap();
    orders
        .store
        .transact(|tx| {
            tx.insert(&counters, |row| row.set(id, 1))?;
            orders.add(tx, 2)?;
            tx.update(&by_id, 1, |row| row.set(at, 7))
        })
        .unwrap();
}

/// Two transactions give one row the same new key in an index that is not unique. The second one
/// found the entry of the first one, took it for that of another row, and returned `Unique`.
fn one_key_twice<P: Policy>() {
    let orders = orders::<P>(&[1, 2]);
    let (one, other) = (orders.store.begin(), orders.store.begin());
    let first = orders.set_state(&one, 1, 5);
    let second = orders.set_state(&other, 1, 5);
    assert!(matches!(second, Err(Error::Aborted(_))), "{second:?}");
    assert_eq!(first, Ok(true));
    drop(other);
    one.commit().unwrap();
    let tx = orders.store.begin();
    assert_eq!(tx.find_all(&orders.by_state, 5).rows().unwrap().len(), 1);
}

/// A row that is about to get another key was deleted by a second transaction. Its entry led to
/// memory that was free.
fn a_deleted_row_gets_a_key<P: Policy>() {
    let orders = orders::<P>(&[1, 2]);
    let (one, other) = (orders.store.begin(), orders.store.begin());
    let moved = one.update(&orders.by_number, 1, |row| row.set(orders.mark, 7));
    assert_eq!(moved, Ok(true));
    let deleted = other.delete(&orders.by_number, 1).and_then(|_| other.commit());
    assert!(matches!(deleted, Err(Error::Aborted(_))), "{deleted:?}");
    drop(one);
    let tx = orders.store.begin();
    assert!(tx.get(&orders.by_mark, 7).unwrap().is_none());
    assert_eq!(tx.get(&orders.by_mark, 1001).unwrap().unwrap().get(orders.number), Ok(1));
}

/// A transaction inserts a row, scans the gap in front of it, and deletes the row again. The row's
/// lock stood for the gap, so that nothing protected the gap any more.
fn a_gap_outlives_its_row<P: Policy>() {
    let orders = orders::<P>(&[10, 100]);
    let tx = orders.store.begin();
    orders.add(&tx, 50).unwrap();
    assert!(orders.numbers(&tx, 20, 30).unwrap().is_empty());
    assert_eq!(tx.delete(&orders.by_number, 50), Ok(true));
    let other = orders.store.begin();
    let added = orders.add(&other, 25).and_then(|()| other.commit());
    let again = orders.numbers(&tx, 20, 30);
    let committed = again.as_ref().is_ok_and(Vec::is_empty) && tx.commit().is_ok();
    assert!(added.is_err() || !committed, "the gap had no row and got one: {added:?}, {again:?}");
}

/// A scan did not see a row that has taken over the key of another row of its transaction.
fn scans_see_keys_that_are_taken_over<P: Policy>() {
    let orders = orders::<P>(&[1, 2]);
    let tx = orders.store.begin();
    assert_eq!(tx.delete(&orders.by_number, 1), Ok(true));
    let moved = tx.update(&orders.by_number, 2, |row| row.set(orders.mark, 1001));
    assert_eq!(moved, Ok(true));
    let rows = tx.scan(&orders.by_mark, 1000..=1003).rows().unwrap();
    let numbers: Vec<_> = rows.iter().map(|row| row.get(orders.number).unwrap()).collect();
    assert_eq!(numbers, [2]);
    tx.commit().unwrap();
    let tx = orders.store.begin();
    assert_eq!(tx.scan(&orders.by_mark, ..).rows().unwrap().len(), 1);
}

/// A transaction deletes a row and gives its place in an index to another one. It found an entry
/// there that a second transaction had placed for the deleted row, and removed when it was aborted.
/// By the commit the key was that of a third, committed row, whose entry was overwritten.
fn an_entry_of_another_transaction_is_taken_over<P: Policy>() {
    let orders = orders::<P>(&[1]);
    let (tx, second) = (orders.store.begin(), orders.store.begin());
    let deleted = tx.delete(&orders.by_number, 1);
    let moved = second.update(&orders.by_number, 1, |row| row.set(orders.mark, 1002));
    let added = orders.add(&tx, 2);
    drop(second);
    let third = orders.store.begin();
    let mut inserted = third.insert(&orders.table, |row| {
        row.set(orders.number, 3)?;
        row.set(orders.mark, 1002)
    });
    inserted = inserted.and_then(|()| third.commit());
    let committed = added.clone().and_then(|()| tx.commit());
    let what = format!("{deleted:?} {moved:?} {added:?} {inserted:?} {committed:?}");
    assert!(inserted.is_ok() != committed.is_ok(), "one of the two has the key: {what}");
    let tx = orders.store.begin();
    let found = tx.get(&orders.by_mark, 1002).unwrap().map(|row| row.get(orders.number).unwrap());
    assert_eq!(found, Some(if committed.is_ok() { 2 } else { 3 }), "{what}");
    let all = tx.scan(&orders.by_mark, ..).rows().unwrap();
    assert_eq!(all.len(), orders.numbers(&tx, 0, 9).unwrap().len(), "{what}");
}

/// A transaction deletes a row, and looks up a key whose entry another transaction has placed for
/// this row. Nothing protected the absence of the key. When the other transaction was aborted, a
/// third one could insert the key, before the first one in one row and behind it in another.
fn an_absent_key_of_an_own_row_is_protected<P: Policy>() {
    let orders = orders::<P>(&[1, 9]);
    let (tx, second, third) = (orders.store.begin(), orders.store.begin(), orders.store.begin());
    assert_eq!(tx.delete(&orders.by_number, 1), Ok(true));
    let moved = second.update(&orders.by_number, 1, |row| row.set(orders.mark, 1002));
    let missed = tx.get(&orders.by_mark, 1002).map(|row| row.is_none());
    drop(second);
    let inserted = third.insert(&orders.table, |row| {
        row.set(orders.number, 3)?;
        row.set(orders.mark, 1002)
    });
    let set = inserted.and_then(|()| orders.set_state(&third, 9, 5));
    let third = set.and_then(|_| third.commit());
    let read = tx.get(&orders.by_number, 9).map(|row| row.unwrap().get(orders.state).unwrap());
    let committed = tx.commit();
    let (is_before, is_behind) = (missed == Ok(true), read == Ok(5));
    assert!(
        !(is_before && is_behind && committed.is_ok()),
        "{moved:?} {missed:?} {third:?} {read:?} {committed:?}"
    );
}

/// A scan found the entry of a row, and the row got another key of the range before it was read.
/// The scan left it out, and the walk of the commit found the same rows, under other keys.
fn a_row_that_moves_within_a_scan_is_not_lost<P: Policy>() {
    let store = Arc::new(Store::<P>::new().unwrap());
    let schema = Schema::new("marks").column("number", Type::U64).column("mark", Type::U64);
    let by_mark = IndexSpec::unique("by_mark", ["mark"]).over::<Pausing>();
    let table = store.create_table(schema.primary(["number"]).index(by_mark)).unwrap();
    let by_number = table.index::<u64>("primary").unwrap();
    let by_mark = table.index_over::<u64, Pausing>("by_mark").unwrap();
    let [number, mark] = ["number", "mark"].map(|name| table.column::<u64>(name).unwrap());
    let fill = |tx: &Tx<'_, P>| {
        [(1, 10), (2, 20)].into_iter().try_for_each(|(of, has)| {
            tx.insert(&table, |row| {
                row.set(number, of)?;
                row.set(mark, has)
            })
        })
    };
    store.transact(fill).unwrap();
    let tx = store.begin();
    let shared = Arc::clone(&store);
    let change = move || {
        let change = |tx: &Tx<'_, P>| tx.update(&by_number, 1, |row| row.set(mark, 15));
        assert_eq!(shared.transact(change), Ok::<_, Error>(true));
    };
    after_walk(0, || std::thread::spawn(change).join().unwrap());
    let marks = tx
        .scan(&by_mark, 0..=30)
        .rows()
        .map(|rows| rows.iter().map(|row| row.get(mark).unwrap()).collect::<Vec<_>>());
    let committed = tx.commit();
    let is_right = matches!(&marks, Ok(marks) if *marks == [10, 20] || *marks == [15, 20]);
    assert!(is_right || committed.is_err(), "{marks:?} {committed:?}");
}

/// A key whose conversion uses the transaction: it deletes the row that is about to be updated.
struct Evil<'a, 's, P: Policy>(&'a Orders<P>, &'a Tx<'s, P>);

impl<P: Policy> AsKey<u64> for Evil<'_, '_, P> {
    fn with_form<R>(&self, then: impl FnOnce(u64) -> R) -> R {
        let result = then(1);
        assert_eq!(self.1.delete(&self.0.by_number, 1), Err(Error::Nested));
        result
    }
    fn write(&self, to: &mut Encoder) {
        AsKey::<u64>::write(&1_u64, to);
    }
}

/// The row that was found was changed by a row that was deleted in between.
fn keys_cannot_use_the_transaction<P: Policy>() {
    let orders = orders::<P>(&[1]);
    let tx = orders.store.begin();
    let key = Evil(&orders, &tx);
    let updated = tx.update(&orders.by_number, key, |row| row.set(orders.mark, 5));
    assert_eq!(updated, Ok(true));
    tx.commit().unwrap();
    let tx = orders.store.begin();
    assert_eq!(tx.get(&orders.by_mark, 5).unwrap().unwrap().get(orders.number), Ok(1));
}

/// A transaction that reads one row very often ran out of shared requests, was aborted, and ran
/// again for ever.
fn one_row_is_read_often<P: Policy>() {
    let reads = if cfg!(miri) { 100 } else { 20_000 };
    let orders = orders::<P>(&[1]);
    let tx = orders.store.begin();
    for _ in 0..reads {
        assert!(tx.get(&orders.by_number, 1).unwrap().is_some());
        assert!(tx.get(&orders.by_number, 2).unwrap().is_none());
    }
    assert_eq!(orders.set_state(&tx, 1, 1), Ok(true));
    tx.commit().unwrap();
}

/// Each request for a lock that a transaction held, and each update of a row of its own, walked all
/// of its locks and entries: a transaction of 16 000 rows took seconds.
fn a_large_transaction_meets_its_own_rows<P: Policy>() {
    let rows = if cfg!(miri) { 40 } else { 30_000 };
    let orders = orders::<P>(&[]);
    let fill = |tx: &Tx<'_, P>| (0..rows).try_for_each(|number| orders.add(tx, number));
    orders.store.transact(fill).unwrap();
    let tx = orders.store.begin();
    for number in 0..rows {
        assert!(tx.get(&orders.by_number, number).unwrap().is_some());
        assert!(tx.get(&orders.by_mark, 500_000 + number).unwrap().is_none());
    }
    let set = |number, mark| {
        let done = tx.update(&orders.by_number, number, |row| row.set(orders.mark, mark));
        assert_eq!(done, Ok(true));
    };
    // Marks of the transaction's own; then each row takes the first mark of the next one over.
    (0..rows).for_each(|number| set(number, 900_000 + number));
    for number in 0..rows {
        set(number, 1000 + (number + 1) % rows);
        assert!(tx.get(&orders.by_mark, 900_000 + number).unwrap().is_none());
    }
    assert_eq!(orders.numbers(&tx, 0, rows).unwrap(), (0..rows).collect::<Vec<_>>());
    for number in (0..rows).step_by(2) {
        assert_eq!(tx.delete(&orders.by_number, number), Ok(true));
    }
    tx.commit().unwrap();
    let tx = orders.store.begin();
    for number in 0..rows {
        let row = tx.get(&orders.by_mark, 1000 + (number + 1) % rows).unwrap();
        let found = row.map(|row| row.get(orders.number).unwrap());
        assert_eq!(found, (number % 2 == 1).then_some(number));
    }
}

/// Under the optimistic policy, a transaction that had inserted a key and deleted it again did not
/// conflict with one that inserted the key then, although it knew that the key had been absent. A
/// key of a unique index that a row got and gave up was not protected, either.
fn an_absence_outlives_an_own_entry<P: Policy>() {
    let orders = orders::<P>(&[1]);
    let tx = orders.store.begin();
    orders.add(&tx, 2).unwrap();
    assert_eq!(tx.delete(&orders.by_number, 2), Ok(true));
    ends_unless_excluded(&orders, tx, |tx| orders.add(tx, 2));

    let tx = orders.store.begin();
    for mark in [5, 6] {
        let done = tx.update(&orders.by_number, 1, |row| row.set(orders.mark, mark));
        assert_eq!(done, Ok(true));
    }
    ends_unless_excluded(&orders, tx, |tx| {
        tx.insert(&orders.table, |row| {
            row.set(orders.number, 3)?;
            row.set(orders.mark, 5)
        })
    });
}

/// If another transaction with this body can be committed, `tx` cannot be committed any more.
fn ends_unless_excluded<'s, P: Policy>(
    orders: &'s Orders<P>,
    tx: Tx<'s, P>,
    body: impl Fn(&Tx<'_, P>) -> Result<(), Error>,
) {
    let other = orders.store.begin();
    let done = body(&other).and_then(|()| other.commit());
    let excluded = matches!(done, Err(Error::Aborted(_)));
    assert!(excluded || done == Ok(()), "{done:?}");
    assert_eq!(tx.commit().is_ok(), excluded);
}

/// A scan visited rows again that got other keys while it went on: a raise for everybody was given
/// several times.
fn a_scan_does_not_meet_rows_again<P: Policy>() {
    let orders = orders::<P>(&(0..40).collect::<Vec<_>>());
    let tx = orders.store.begin();
    // A row that was inserted before belongs to the scan.
    orders.add(&tx, 40).unwrap();
    let mut marks = Vec::new();
    tx.scan(&orders.by_mark, ..)
        .for_each(|row| {
            let (number, mark) = (row.get(orders.number)?, row.get(orders.mark)?);
            marks.push(mark);
            tx.update(&orders.by_number, number, |row| row.set(orders.mark, mark + 500))?;
            if number == 40 {
                orders.add(&tx, 2000)?;
            }
            Ok::<_, Error>(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(marks, (1000..=1040).collect::<Vec<_>>());
    let rows = tx.scan(&orders.by_mark, ..).rows().unwrap();
    let now: Vec<u64> = rows.iter().map(|row| row.get(orders.mark).unwrap()).collect();
    assert_eq!(now, (1500..=1540).chain([3000]).collect::<Vec<_>>());
    tx.commit().unwrap();
}

/// A key that was longer than its index takes counted as a lack of memory, so the transaction ran
/// again.
fn a_key_that_is_too_long_is_tried_once<P: Policy>() {
    let store = Store::<P>::new().unwrap();
    let schema = Schema::new("t").column("long", Type::Bytes(60_000)).primary(["long"; 8]);
    let table = store.create_table(schema.index(IndexSpec::multi("twice", ["long"; 8]))).unwrap();
    let long = table.column::<[u8]>("long").unwrap();
    let (value, mut calls) = (vec![7; 60_000], 0);
    let done = store.transact(|tx| {
        calls += 1;
        tx.insert(&table, |row| row.set(long, &value))
    });
    assert!(matches!(done, Err(Error::Alloc(AllocError::KeyLength { .. }))), "{done:?}");
    assert_eq!((calls, table.len()), (1, 0));
}

macro_rules! policies {
    ($($test:ident)*) => {$(
        mod $test {
            use super::*;
            #[test]
            fn optimistic() {
                super::$test::<Optimistic>();
            }
            #[test]
            fn no_wait() {
                super::$test::<Locking<NoWait>>();
            }
            #[test]
            fn wait_die() {
                super::$test::<Locking<WaitDie>>();
            }
        }
    )*};
}

policies! {
    one_key_twice a_deleted_row_gets_a_key a_gap_outlives_its_row
    a_scan_does_not_meet_rows_again an_absence_outlives_an_own_entry
    an_absent_key_of_an_own_row_is_protected a_row_that_moves_within_a_scan_is_not_lost
    a_large_transaction_meets_its_own_rows an_entry_of_another_transaction_is_taken_over
    scans_see_keys_that_are_taken_over keys_cannot_use_the_transaction one_row_is_read_often
    a_key_that_is_too_long_is_tried_once
}
