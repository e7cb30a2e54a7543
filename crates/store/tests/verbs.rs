//! The verbs of transactions, one transaction at a time, under each policy.

#![cfg(not(any(silvics_loom, silvics_shuttle)))]

use silvics::map::KeyRange;
use silvics_store::index::{Named, Scans};
use silvics_store::lock::{Latched, Padded, SpinLock};
use silvics_store::{
    Column, Error, Index, IndexSpec, Inline, Locking, Multi, NoWait, Optimistic, Policy, Row,
    RowPart, Schema, SchemaError, Store, Study, Table, Tx, Type, ValueError, WaitDie,
};
use silvics_sync::pthread::PthreadLock;
use std::ops::ControlFlow;

type StudyLock = Latched<PthreadLock>;

/// Declares each test once for each policy.
macro_rules! policies {
    ($($test:ident)*) => {
        policies! { @ optimistic: Optimistic, $($test)* }
        policies! { @ no_wait: Locking<NoWait>, $($test)* }
        policies! { @ wait_die: Locking<WaitDie>, $($test)* }
        policies! { @ latched: Locking<NoWait, Inline<Latched<SpinLock>>>, $($test)* }
        policies! { @ study: Locking<NoWait, Study<StudyLock>>, $($test)* }
        policies! { @ study_padded: Locking<WaitDie, Study<Padded<StudyLock>>>, $($test)* }
    };
    (@ $module:ident: $policy:ty, $($test:ident)*) => {
        mod $module {
            use super::*;
            $(#[test]
            fn $test() {
                super::$test::<$policy>();
            })*
        }
    };
}

policies! {
    rows_come_back unique_keys_are_unique scans_see_their_own_writes keys_move_between_rows
    a_failed_closure_changes_nothing a_panic_leaves_no_lock aborts_undo_everything
    many_writes_are_found batches_are_lookups handles_of_others_are_refused nesting_is_refused
    memory_comes_back deleted_rows_can_be_inserted_again descending_scans_are_mirrored
    parts_are_where_rows_lie
}

/// People with a number, a unique email address, a town, and a balance.
struct People<P: Policy> {
    store: Store<P>,
    table: Table<P>,
    id: Index<P, u64, Named<u64>>,
    by_email: Index<P, String, Named<[u8]>>,
    by_town: Multi<P, String>,
    number: Column<u64>,
    email: Column<str>,
    town: Column<str>,
    balance: Column<i64>,
}

fn schema() -> Schema {
    Schema::new("people")
        .column("number", Type::U64)
        .column("email", Type::Text(20))
        .column("town", Type::Text(20))
        .column("balance", Type::I64)
        .primary(["number"])
        .index(IndexSpec::unique("by_email", ["email"]))
        .index(IndexSpec::multi("by_town", ["town"]))
}

fn people<P: Policy>() -> People<P> {
    let store = Store::new().unwrap();
    let table = store.create_table(schema()).unwrap();
    People {
        id: table.index("primary").unwrap(),
        by_email: table.index("by_email").unwrap(),
        by_town: table.multi("by_town").unwrap(),
        number: table.column("number").unwrap(),
        email: table.column("email").unwrap(),
        town: table.column("town").unwrap(),
        balance: table.column("balance").unwrap(),
        table,
        store,
    }
}

impl<P: Policy> People<P> {
    fn add(&self, tx: &Tx<'_, P>, number: u64, email: &str, town: &str) -> Result<(), Error> {
        tx.insert(&self.table, |row| {
            row.set(self.number, number)?;
            row.set(self.email, email)?;
            row.set(self.town, town)?;
            row.set(self.balance, 10 * number as i64)
        })
    }

    /// Adds people number 1 to `count`, in three towns.
    fn fill(&self, count: u64) {
        for number in 1..=count {
            let (email, town) = (format!("{number}@x"), format!("town {}", number % 3));
            self.store.transact(|tx| self.add(tx, number, &email, &town)).unwrap();
        }
    }

    fn numbers(&self, tx: &Tx<'_, P>, range: impl KeyRange<u64>) -> Vec<u64> {
        self.all(&tx.scan(&self.id, range).rows().unwrap())
    }

    fn in_town(&self, tx: &Tx<'_, P>, town: &str) -> Vec<u64> {
        self.all(&tx.find_all(&self.by_town, town).rows().unwrap())
    }

    fn all(&self, rows: &[Row<'_>]) -> Vec<u64> {
        rows.iter().map(|row| row.get(self.number).unwrap()).collect()
    }

    /// The number of the person with this address.
    fn of(&self, tx: &Tx<'_, P>, email: &str) -> Option<u64> {
        tx.get(&self.by_email, email).unwrap().map(|row| row.get(self.number).unwrap())
    }

    /// Runs a transaction that only reads.
    fn look<T>(&self, read: impl Fn(&Tx<'_, P>) -> T) -> T {
        self.store.transact(|tx| Ok::<T, Error>(read(tx))).unwrap()
    }
}

fn rows_come_back<P: Policy>() {
    let people = people::<P>();
    people.fill(20);
    people.look(|tx| {
        let row = tx.get(&people.id, 7).unwrap().unwrap();
        assert_eq!(row.get(people.email), Ok("7@x"));
        assert_eq!(row.get(people.balance), Ok(70));
        assert!(tx.get(&people.id, 21).unwrap().is_none());
        assert_eq!(people.of(tx, "7@x"), Some(7));
        assert_eq!(people.numbers(tx, ..), (1..=20).collect::<Vec<_>>());
        assert_eq!(people.numbers(tx, 5..8), [5, 6, 7]);
        assert_eq!(people.in_town(tx, "town 1"), [1, 4, 7, 10, 13, 16, 19]);
        assert!(people.in_town(tx, "town").is_empty(), "a prefix of a town is another town");
    });
    let changed = people.store.transact(|tx| {
        let changed = tx.update(&people.id, 7, |row| row.set(people.balance, -1))?;
        let row = tx.get(&people.id, 7)?.unwrap();
        assert_eq!(row.get(people.balance), Ok(-1), "own writes are visible");
        assert!(!tx.update(&people.id, 99, |row| row.set(people.balance, -1))?);
        Ok::<bool, Error>(changed && tx.delete(&people.by_email, "8@x")?)
    });
    assert_eq!(changed, Ok(true));
    people.look(|tx| {
        assert_eq!(tx.get(&people.id, 7).unwrap().unwrap().get(people.balance), Ok(-1));
        assert!(tx.get(&people.id, 8).unwrap().is_none());
        assert_eq!((people.of(tx, "8@x"), people.of(tx, "9@x")), (None, Some(9)));
        assert_eq!(people.in_town(tx, "town 2"), [2, 5, 11, 14, 17, 20]);
    });
    assert_eq!(people.table.len(), 19);
    let stats = people.store.stats();
    assert!(stats.commits >= 22 && stats.aborts.iter().all(|&(_, count)| count == 0), "{stats:?}");
}

fn unique_keys_are_unique<P: Policy>() {
    let people = people::<P>();
    people.fill(3);
    let unique = |index: &str| Err(Error::Unique { table: "people".into(), index: index.into() });
    let tx = people.store.begin();
    assert_eq!(people.add(&tx, 2, "new@x", "town 1"), unique("primary"));
    assert_eq!(people.add(&tx, 4, "2@x", "town 1"), unique("by_email"));
    let moved = tx.update(&people.id, 1, |row| row.set(people.email, "3@x"));
    assert_eq!(moved, unique("by_email").map(|()| false));
    let renumbered = tx.update(&people.id, 1, |row| row.set(people.number, 9));
    assert_eq!(renumbered, Err(Error::PrimaryKey { table: "people".into() }));
    // The transaction goes on, and the refused rows are not there.
    assert_eq!((people.of(&tx, "new@x"), people.of(&tx, "1@x")), (None, Some(1)));
    assert_eq!(people.in_town(&tx, "town 1"), [1]);
    people.add(&tx, 4, "4@x", "town 1").unwrap();
    tx.commit().unwrap();
    assert_eq!(people.look(|tx| people.numbers(tx, ..)), [1, 2, 3, 4]);
}

fn scans_see_their_own_writes<P: Policy>() {
    let people = people::<P>();
    people.fill(9);
    let tx = people.store.begin();
    people.add(&tx, 100, "100@x", "town 0").unwrap();
    tx.delete(&people.id, 6).unwrap();
    tx.update(&people.id, 3, |row| row.set(people.town, "elsewhere")).unwrap();
    tx.update(&people.id, 1, |row| row.set(people.town, "town 0")).unwrap();
    assert_eq!(people.in_town(&tx, "town 0"), [1, 9, 100]);
    assert_eq!(people.in_town(&tx, "elsewhere"), [3]);
    assert_eq!(people.numbers(&tx, 5..), [5, 7, 8, 9, 100]);
    // A visitor may write; its writes are visible to later scans.
    let mut seen = Vec::new();
    tx.scan(&people.id, ..)
        .for_each(|row| {
            let number = row.get(people.number)?;
            seen.push(number);
            tx.update(&people.id, number, |row| row.set(people.balance, 5))?;
            let flow = if number < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
            Ok::<_, Error>(flow)
        })
        .unwrap();
    assert_eq!(seen, [1, 2, 3, 4]);
    tx.commit().unwrap();
    people.look(|tx| {
        assert_eq!(people.in_town(tx, "town 0"), [1, 9, 100]);
        assert_eq!(people.in_town(tx, "elsewhere"), [3]);
        let balances = tx.scan(&people.id, ..).rows().unwrap();
        let balances: Vec<_> =
            balances.iter().map(|row| row.get(people.balance).unwrap()).collect();
        assert_eq!(balances, [5, 5, 5, 5, 50, 70, 80, 90, 1000]);
    });
}

fn keys_move_between_rows<P: Policy>() {
    let people = people::<P>();
    people.fill(3);
    let set = |tx: &Tx<'_, P>, number: u64, email: &str| {
        tx.update(&people.id, number, |row| row.set(people.email, email))
    };
    // Two rows exchange their addresses by way of a third one.
    people
        .store
        .transact(|tx| {
            set(tx, 1, "free@x")?;
            set(tx, 2, "1@x")?;
            assert_eq!(people.of(tx, "1@x"), Some(2), "the key is taken over at once for itself");
            assert!(set(tx, 3, "1@x").is_err(), "and is taken then");
            set(tx, 1, "2@x")?;
            assert_eq!((people.of(tx, "2@x"), people.of(tx, "free@x")), (Some(1), None));
            Ok::<(), Error>(())
        })
        .unwrap();
    people.look(|tx| {
        let of = |email| people.of(tx, email);
        assert_eq!(
            (of("1@x"), of("2@x"), of("3@x"), of("free@x")),
            (Some(2), Some(1), Some(3), None)
        );
    });
    // A new row takes the address of a deleted one; the deleted row cannot come back with it.
    let tx = people.store.begin();
    assert!(tx.delete(&people.id, 3).unwrap());
    people.add(&tx, 30, "3@x", "town 0").unwrap();
    assert!(people.add(&tx, 3, "3@x", "town 0").is_err());
    people.add(&tx, 3, "other@x", "town 0").unwrap();
    tx.commit().unwrap();
    people.look(|tx| {
        assert_eq!((people.of(tx, "3@x"), people.of(tx, "other@x")), (Some(30), Some(3)));
        assert_eq!(people.in_town(tx, "town 0"), [3, 30]);
    });
    // The same, undone.
    let tx = people.store.begin();
    set(&tx, 1, "free@x").unwrap();
    set(&tx, 2, "2@x").unwrap();
    tx.abort();
    people.look(|tx| {
        let of = |email| people.of(tx, email);
        assert_eq!((of("1@x"), of("2@x"), of("free@x")), (Some(2), Some(1), None));
    });
    // There and back again.
    let tx = people.store.begin();
    set(&tx, 1, "a@x").unwrap();
    set(&tx, 1, "b@x").unwrap();
    set(&tx, 1, "2@x").unwrap();
    assert_eq!((people.of(&tx, "a@x"), people.of(&tx, "b@x")), (None, None));
    tx.commit().unwrap();
    assert_eq!(people.look(|tx| (people.of(tx, "2@x"), people.of(tx, "a@x"))), (Some(1), None));
}

fn a_failed_closure_changes_nothing<P: Policy>() {
    #[derive(Debug, PartialEq)]
    enum Mine {
        No,
        Store(Error),
    }
    impl From<Error> for Mine {
        fn from(error: Error) -> Self {
            Self::Store(error)
        }
    }
    let people = people::<P>();
    people.fill(2);
    let result = people.store.transact(|tx| {
        let refused = tx.update(&people.id, 1, |row| {
            row.set(people.balance, 77)?;
            Err(Mine::No)
        });
        assert_eq!(refused, Err(Mine::No));
        let row = tx.get(&people.id, 1)?.unwrap();
        assert_eq!(row.get(people.balance)?, 10);
        let long = tx.update(&people.id, 1, |row| row.set(people.town, "a town with a long name"));
        let too_long = ValueError::TooLong { bytes: 23, max: 20 };
        assert_eq!(long, Err(Error::Value(too_long)));
        tx.update::<_, _, Mine>(&people.id, 2, |row| Ok(row.set(people.balance, 5)?))?;
        Err::<(), Mine>(Mine::No)
    });
    assert_eq!(result, Err(Mine::No));
    people.look(|tx| {
        assert_eq!(tx.get(&people.id, 2).unwrap().unwrap().get(people.balance), Ok(20));
    });
}

fn a_panic_leaves_no_lock<P: Policy>() {
    let people = people::<P>();
    people.fill(5);
    for at in 0..4 {
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            people.store.transact(|tx| {
                people.numbers(tx, ..);
                tx.get(&people.id, 1)?;
                tx.get(&people.id, 77)?;
                people.add(tx, 6, "6@x", "town 0")?;
                assert_ne!(at, 0);
                tx.update(&people.id, 2, |row| {
                    assert_ne!(at, 1);
                    row.set(people.email, "moved@x")
                })?;
                tx.delete(&people.id, 3)?;
                assert_ne!(at, 2);
                tx.scan(&people.id, ..).for_each(|_| {
                    assert_ne!(at, 3);
                    Ok::<_, Error>(ControlFlow::Continue(()))
                })
            })
        }));
        assert!(panics.is_err());
        // Nothing has happened, and everything can be locked.
        people
            .store
            .transact(|tx| {
                assert_eq!(people.numbers(tx, ..), [1, 2, 3, 4, 5]);
                for number in 1..=5 {
                    assert!(tx.update(&people.id, number, |row| row.set(people.balance, 1))?);
                }
                people.add(tx, 77, "77@x", "town 0")?;
                assert_eq!(people.of(tx, "moved@x"), None);
                tx.delete(&people.id, 77)
            })
            .unwrap();
    }
    assert_eq!(people.table.len(), 5);
}

fn aborts_undo_everything<P: Policy>() {
    let people = people::<P>();
    people.fill(5);
    for round in 0..3 {
        let tx = people.store.begin();
        people.add(&tx, 9, "9@x", "town 9").unwrap();
        people.add(&tx, 8, "8@x", "town 9").unwrap();
        tx.delete(&people.id, 8).unwrap();
        tx.update(&people.id, 1, |row| row.set(people.email, "one@x")).unwrap();
        tx.delete(&people.id, 2).unwrap();
        people.add(&tx, 2, "two@x", "town 9").unwrap();
        match round {
            0 => tx.abort(),
            _ => drop(tx),
        }
        people.look(|tx| {
            assert_eq!(people.numbers(tx, ..), [1, 2, 3, 4, 5]);
            assert_eq!(people.of(tx, "1@x"), Some(1));
            assert_eq!(people.of(tx, "2@x"), Some(2));
            assert_eq!(people.of(tx, "one@x").or(people.of(tx, "two@x")), None);
            assert!(people.in_town(tx, "town 9").is_empty());
        });
    }
    assert_eq!(people.table.memory()[2].entries, 5, "no entry stays in an index");
}

/// More writes than a list finds quickly.
fn many_writes_are_found<P: Policy>() {
    if cfg!(miri) {
        return; // it takes minutes there
    }
    let people = people::<P>();
    people.fill(100);
    people
        .store
        .transact(|tx| {
            for number in (1..=100).chain(20..=40) {
                tx.update(&people.id, number, |row| {
                    let now = row.get(people.balance)?;
                    row.set(people.balance, now + 1)
                })?;
            }
            for number in 101..200 {
                people.add(tx, number, &format!("{number}@x"), "town 7")?;
            }
            for number in 150..200 {
                assert!(tx.delete(&people.id, number)?);
                assert!(!tx.delete(&people.id, number)?);
            }
            assert_eq!(people.in_town(tx, "town 7").len(), 49);
            Ok::<(), Error>(())
        })
        .unwrap();
    people.look(|tx| {
        for row in tx.scan(&people.id, ..=100).rows().unwrap() {
            let number = row.get(people.number).unwrap() as i64;
            let twice = i64::from((20..=40).contains(&number));
            assert_eq!(row.get(people.balance), Ok(10 * number + 1 + twice));
        }
        assert_eq!(people.numbers(tx, 101..), (101..150).collect::<Vec<_>>());
    });
}

fn batches_are_lookups<P: Policy>() {
    if cfg!(miri) {
        return; // it takes minutes there
    }
    let people = people::<P>();
    people.fill(90);
    let tx = people.store.begin();
    tx.delete(&people.id, 50).unwrap();
    tx.update(&people.id, 51, |row| row.set(people.balance, 1)).unwrap();
    let keys: Vec<u64> = (0..100).rev().collect();
    let mut rows = vec![None; 99];
    tx.get_many(&people.id, &keys, &mut rows).unwrap();
    for (key, row) in keys.iter().zip(&rows) {
        let alone = tx.get(&people.id, *key).unwrap();
        assert_eq!(alone.map(|row| row.bytes()), row.map(|row| row.bytes()), "{key}");
        assert_eq!(row.is_some(), (1..=90).contains(key) && *key != 50);
    }
    let mails: Vec<String> = (0..60).map(|number| format!("{number}@x")).collect();
    let mut rows = vec![None; 60];
    tx.get_many(&people.by_email, &mails, &mut rows).unwrap();
    let found = rows.iter().flatten().count();
    assert_eq!(found, 58, "neither 0 nor 50");
    tx.commit().unwrap();
}

fn parts_of<P: Policy>(tx: &Tx<'_, P>, people: &People<P>, number: u64) -> Vec<RowPart> {
    tx.parts(&people.id, number).unwrap().unwrap()
}

fn parts_are_where_rows_lie<P: Policy>() {
    let people = people::<P>();
    people.fill(20);
    let tx = people.store.begin();
    people.add(&tx, 21, "21@x", "").unwrap();
    let (mut places, mut names) = (Vec::new(), Vec::new());
    for number in 1..=21_u64 {
        let parts = parts_of(&tx, &people, number);
        assert_eq!(tx.parts(&people.by_email, format!("{number}@x")).unwrap().unwrap(), parts);
        names = parts.iter().map(|part| part.name).collect();
        places.extend(parts.iter().map(|part| (part.address, part.address + part.bytes)));
        let [.., columns] = parts[..] else { panic!("{parts:?}") };
        let row = tx.get(&people.id, number).unwrap().unwrap();
        assert_eq!(columns.bytes, row.bytes().len());
        let start = std::ptr::with_exposed_provenance(columns.address);
        // SAFETY: the row is in the store, which no other thread uses.
        let there: &[u8] = unsafe { std::slice::from_raw_parts(start, columns.bytes) };
        // The columns of a new row are written by its commit.
        assert_eq!(there == row.bytes(), number <= 20, "{number}");
    }
    let sizes: Vec<usize> = parts_of(&tx, &people, 5).iter().map(|part| part.bytes).collect();
    match names[..] {
        ["lock", "columns"] => assert!(matches!(sizes[0], 8 | 16), "{sizes:?}"),
        ["wrapper", "row", "lock", "columns"] => {
            assert_eq!(sizes[..3], [8, 16, size_of::<StudyLock>()], "a lock without its padding");
        }
        _ => panic!("{names:?}"),
    }
    places.sort_unstable();
    assert!(places.windows(2).all(|parts| parts[0].1 <= parts[1].0), "{places:?}");
    assert_eq!(tx.parts(&people.id, 22), Ok(None));
    assert_eq!(tx.parts(&self::people::<P>().id, 1), Err(Error::Foreign));
    tx.commit().unwrap();
    let parts = |tx: &Tx<'_, P>| tx.parts(&people.id, 21_u64).unwrap();
    let before = parts(&people.store.begin());
    people
        .store
        .transact(|tx| tx.update(&people.id, 21, |row| row.set(people.balance, 1)))
        .unwrap();
    assert_eq!(parts(&people.store.begin()), before, "a row keeps its place");
}

fn handles_of_others_are_refused<P: Policy>() {
    let (one, other) = (people::<P>(), people::<P>());
    one.fill(1);
    let tx = one.store.begin();
    assert_eq!(tx.get(&other.id, 1).err(), Some(Error::Foreign));
    assert_eq!(other.add(&tx, 3, "3@x", ""), Err(Error::Foreign));
    assert_eq!(tx.scan(&other.id, ..).rows().err(), Some(Error::Foreign));
    let row = tx.get(&one.id, 1).unwrap().unwrap();
    assert_eq!(row.get(other.balance), Err(Error::Foreign));
    assert_eq!(row.get(one.balance), Ok(10));
    // Handles may live longer than their stores.
    let (id, table) = (other.id.clone(), other.table.clone());
    drop(other);
    assert_eq!(tx.get(&id, 1).err(), Some(Error::Foreign));
    assert!(table.is_empty());
    let wrong = one.table.index::<u32>("primary").unwrap_err();
    assert!(matches!(wrong, Error::Schema(SchemaError::Type { .. })), "{wrong}");
    let wrong = one.table.index_over::<u64, Scans<silvics::SkipList<u64>>>("primary").unwrap_err();
    assert!(matches!(wrong, Error::Schema(SchemaError::Type { .. })), "{wrong}");
    let wrong = one.table.column::<u64>("email").unwrap_err();
    assert_eq!(wrong.to_string(), "`email` has the type text(20): u64 does not suit it");
    assert!(one.table.multi::<String>("by_email").is_err());
}

fn nesting_is_refused<P: Policy>() {
    let people = people::<P>();
    people.fill(2);
    let tx = people.store.begin();
    let nested = tx.update(&people.id, 1, |_| tx.get(&people.id, 2).map(|_| ()));
    assert_eq!(nested, Err(Error::Nested));
    let nested = tx.insert(&people.table, |_| tx.delete(&people.id, 2).map(|_| ()));
    assert_eq!(nested, Err(Error::Nested));
    assert_eq!(people.numbers(&tx, ..), [1, 2]);
    // Two transactions of one thread: the scan and the insertion cannot both be committed.
    let other = people.store.begin();
    let added = people.add(&other, 5, "5@x", "").and_then(|()| other.commit());
    let refused = |result| matches!(result, Err(Error::Aborted(_)));
    assert_ne!(refused(added), refused(tx.commit()));
}

fn memory_comes_back<P: Policy>() {
    let people = people::<P>();
    let mut sizes = Vec::new();
    let count = if cfg!(miri) { 4 } else { 300 };
    for _ in 0..6 {
        people.fill(count);
        sizes.push(people.store.bytes());
        for number in 1..=count {
            assert_eq!(people.store.transact(|tx| tx.delete(&people.id, number)), Ok(true));
        }
        assert_eq!(people.table.len(), 0);
    }
    let (first, last) = (sizes[1], sizes[5]);
    assert!(last <= first + first / 4, "churn in constant memory: {sizes:?}");
}

fn deleted_rows_can_be_inserted_again<P: Policy>() {
    let people = people::<P>();
    people.fill(3);
    people
        .store
        .transact(|tx| {
            assert!(tx.delete(&people.id, 2)?);
            assert!(tx.get(&people.id, 2)?.is_none());
            people.add(tx, 2, "2@y", "town 2")?;
            assert_eq!((people.of(tx, "2@y"), people.of(tx, "2@x")), (Some(2), None));
            assert!(tx.delete(&people.id, 2)?);
            assert_eq!(people.of(tx, "2@y"), None);
            people.add(tx, 2, "2@z", "town 2")?;
            people.add(tx, 4, "4@x", "town 2")?;
            assert!(tx.delete(&people.id, 4)?);
            people.add(tx, 4, "4@z", "town 2")
        })
        .unwrap();
    people.look(|tx| {
        let of = |email| people.of(tx, email);
        assert_eq!((of("2@x"), of("2@y"), of("2@z"), of("4@z")), (None, None, Some(2), Some(4)));
        assert_eq!(people.in_town(tx, "town 2"), [2, 4]);
    });
    assert_eq!(people.table.memory()[2].entries, 4);
}

fn descending_scans_are_mirrored<P: Policy>() {
    // More than a scan reads at a time.
    let count = if cfg!(miri) { 40 } else { 600 };
    let people = people::<P>();
    people.fill(count);
    people.look(|tx| {
        let down = tx.scan(&people.id, 5..count - 10).descending().rows().unwrap();
        assert_eq!(people.all(&down), (5..count - 10).rev().collect::<Vec<_>>());
        let three = tx.scan(&people.id, ..).descending().limit(3).rows().unwrap();
        assert_eq!(people.all(&three), [count, count - 1, count - 2]);
        let some = tx.scan(&people.id, 10..).limit(count as usize / 2).rows().unwrap();
        assert_eq!(people.all(&some), (10..10 + count / 2).collect::<Vec<_>>());
        assert!(tx.scan(&people.id, 7..).limit(0).rows().unwrap().is_empty());
        let last = tx.find_all(&people.by_town, "town 0").descending().limit(1).rows().unwrap();
        assert_eq!(people.all(&last), [count - count % 3]);
    });
}
