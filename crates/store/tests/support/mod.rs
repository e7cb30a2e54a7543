//! A store with two tables beside a model of it: maps of the standard library. Each operation runs
//! on both, and the answers are compared.
#![allow(dead_code, unused_macros, unused_imports, reason = "each test uses a part")]

pub(crate) mod kinds;
pub(crate) mod pausing;

use proptest::prelude::*;
use silvics_store::index::{InTable, Named};
use silvics_store::{
    Column, Error, Index, IndexSpec, Multi, Policy, Row, RowKey, Schema, Store, StoreOptions,
    Table, Tx, Type,
};
use std::collections::BTreeMap;

/// The structures of the indexes: for numbers, and for byte strings.
pub(crate) type Structures = (&'static str, &'static str);

/// A person of the table `people`, without the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    /// The email address follows from the code, and both are unique.
    pub(crate) code: u64,
    pub(crate) town: u8,
    pub(crate) balance: i64,
}

/// The state of the store as it must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) people: BTreeMap<u64, Person>,
    /// The table `marks`: small rows with a unique value.
    pub(crate) marks: BTreeMap<u32, u32>,
}

impl Model {
    fn has_code(&self, code: u64) -> Option<u64> {
        self.people.iter().find(|(_, person)| person.code == code).map(|(&id, _)| id)
    }
}

/// An operation of a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Get(u64),
    ByCode(u64),
    ByEmail(u64),
    GetMany(Vec<u64>),
    Scan {
        from: u64,
        to: u64,
        descending: bool,
        limit: usize,
    },
    ScanCodes {
        from: u64,
        to: u64,
        descending: bool,
    },
    InTown(u8),
    Insert(u64, Person),
    /// Updates the balance and the town of a person.
    Change(u64, u8, i64),
    /// Gives a person another code and email address.
    Move(u64, u64),
    Delete(u64),
    DeleteByCode(u64),
    /// Inserts or updates a mark.
    Mark(u32, u32),
    Unmark(u32),
}

/// The end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    Abort,
    Drop,
}

/// A store with its handles.
pub(crate) struct World<P: Policy> {
    pub(crate) store: Store<P>,
    pub(crate) people: Table<P>,
    pub(crate) marks: Table<P>,
    id: Index<P, u64, Named<u64>>,
    by_code: Index<P, u64, Named<u64>>,
    by_email: Index<P, String, Named<[u8]>>,
    by_town: Multi<P, u8>,
    number: Column<u64>,
    code: Column<u64>,
    email: Column<str>,
    town: Column<u8>,
    balance: Column<i64>,
    note: Column<[u8]>,
    mark: Index<P, u32, Named<u64>>,
    by_value: Index<P, u32, Named<u64>>,
    mark_number: Column<u32>,
    mark_value: Column<u32>,
}

pub(crate) fn email(code: u64) -> String {
    format!("{code}@example.org")
}

/// A text that follows from a balance, so that torn rows are seen.
fn note(balance: i64) -> Vec<u8> {
    vec![balance as u8; 300 + (balance as u64 % 90) as usize]
}

fn unique<K: RowKey<Form: InTable>, P: Policy>(
    table: &Table<P>,
    name: &str,
) -> Result<Index<P, K, Named<K::Form>>, Error> {
    table.index(name)
}

impl<P: Policy> World<P> {
    pub(crate) fn new(options: &StoreOptions, structures: Structures) -> Result<Self, Error> {
        let store = Store::with_options(options)?;
        Self::within(store, structures)
    }

    pub(crate) fn within(store: Store<P>, structures: Structures) -> Result<Self, Error> {
        Self::create(&store, structures)?;
        Self::over(store)
    }

    /// Creates the tables.
    pub(crate) fn create(store: &Store<P>, (words, bytes): Structures) -> Result<(), Error> {
        store.create_table(
            Schema::new("people")
                .column("town", Type::U8)
                .column("number", Type::U64)
                .column("code", Type::U64)
                .column("email", Type::Text(40))
                .column("balance", Type::I64)
                .column("note", Type::Bytes(400))
                .index(IndexSpec::primary(["number"]).named(words))
                .index(IndexSpec::unique("by_code", ["code"]).named(words))
                .index(IndexSpec::unique("by_email", ["email"]).named(bytes))
                .index(IndexSpec::multi("by_town", ["town"]).named(bytes)),
        )?;
        store.create_table(
            Schema::new("marks")
                .column("number", Type::U32)
                .column("value", Type::U32)
                .index(IndexSpec::primary(["number"]).named(words))
                .index(IndexSpec::unique("by_value", ["value"]).named(words)),
        )?;
        Ok(())
    }

    /// The handles of a store that has the tables.
    pub(crate) fn over(store: Store<P>) -> Result<Self, Error> {
        let [people, marks] = ["people", "marks"].map(|name| store.table(name).unwrap());
        Ok(Self {
            id: unique(&people, "primary")?,
            by_code: unique(&people, "by_code")?,
            by_email: unique(&people, "by_email")?,
            by_town: people.multi("by_town")?,
            number: people.column("number")?,
            code: people.column("code")?,
            email: people.column("email")?,
            town: people.column("town")?,
            balance: people.column("balance")?,
            note: people.column("note")?,
            mark: unique(&marks, "primary")?,
            by_value: unique(&marks, "by_value")?,
            mark_number: marks.column("number")?,
            mark_value: marks.column("value")?,
            people,
            marks,
            store,
        })
    }

    fn person(&self, row: &Row<'_>) -> Result<(u64, Person), Error> {
        let balance = row.get(self.balance)?;
        let code = row.get(self.code)?;
        assert_eq!(row.get(self.email)?, email(code), "a torn row");
        assert_eq!(row.get(self.note)?, note(balance), "a torn row");
        Ok((row.get(self.number)?, Person { code, town: row.get(self.town)?, balance }))
    }

    fn persons(&self, rows: &[Row<'_>]) -> Result<Vec<(u64, Person)>, Error> {
        rows.iter().map(|row| self.person(row)).collect()
    }

    /// Runs an operation that reads, and compares its answer with the model.
    fn read(&self, tx: &Tx<'_, P>, model: &Model, op: &Op) -> Result<(), Error> {
        let all = || model.people.iter().map(|(&id, person)| (id, person.clone()));
        let one = |row: Option<Row<'_>>| row.map(|row| self.person(&row)).transpose();
        let of_code = |code: u64| all().find(|(_, person)| person.code == code);
        match *op {
            Op::Get(id) => {
                let found = one(tx.get(&self.id, id)?)?;
                assert_eq!(found, model.people.get(&id).map(|person| (id, person.clone())));
            }
            Op::ByCode(code) => {
                assert_eq!(one(tx.get(&self.by_code, code)?)?, of_code(code), "code {code}");
            }
            Op::ByEmail(code) => {
                let found = one(tx.get(&self.by_email, email(code))?)?;
                assert_eq!(found, of_code(code), "email of code {code}");
            }
            Op::GetMany(ref ids) => {
                let mut rows = vec![None; ids.len()];
                tx.get_many(&self.id, ids, &mut rows)?;
                for (id, row) in ids.iter().zip(rows) {
                    let expected = model.people.get(id).map(|person| (*id, person.clone()));
                    assert_eq!(one(row)?, expected);
                }
            }
            Op::Scan { from, to, descending, limit } => {
                let scan = tx.scan(&self.id, from..=to).limit(limit);
                let scan = if descending { scan.descending() } else { scan };
                let mut expected: Vec<_> =
                    all().filter(|(id, _)| (from..=to).contains(id)).collect();
                if descending {
                    expected.reverse();
                }
                expected.truncate(limit);
                assert_eq!(self.persons(&scan.rows()?)?, expected, "{op:?}");
            }
            Op::ScanCodes { from, to, descending } => {
                let scan = tx.scan(&self.by_code, from..=to);
                let scan = if descending { scan.descending() } else { scan };
                let covers = |(_, person): &(u64, Person)| (from..=to).contains(&person.code);
                let mut expected: Vec<_> = all().filter(covers).collect();
                expected.sort_by_key(|(_, person)| person.code);
                if descending {
                    expected.reverse();
                }
                assert_eq!(self.persons(&scan.rows()?)?, expected, "{op:?}");
            }
            Op::InTown(town) => {
                let rows = tx.find_all(&self.by_town, town).rows()?;
                let expected: Vec<_> = all().filter(|(_, person)| person.town == town).collect();
                assert_eq!(self.persons(&rows)?, expected, "{op:?}");
            }
            _ => {}
        }
        Ok(())
    }

    fn fill(&self, tx: &Tx<'_, P>, id: u64, person: &Person) -> Result<(), Error> {
        tx.insert(&self.people, |row| {
            row.set(self.number, id)?;
            row.set(self.code, person.code)?;
            row.set(self.email, &email(person.code))?;
            row.set(self.town, person.town)?;
            row.set(self.balance, person.balance)?;
            row.set(self.note, &note(person.balance))
        })
    }

    fn change(&self, tx: &Tx<'_, P>, id: u64, town: u8, balance: i64) -> Result<bool, Error> {
        tx.update(&self.id, id, |row| {
            row.set(self.town, town)?;
            row.set(self.balance, balance)?;
            row.set(self.note, &note(balance))
        })
    }

    fn give_code(&self, tx: &Tx<'_, P>, id: u64, code: u64) -> Result<bool, Error> {
        tx.update(&self.id, id, |row| {
            row.set(self.code, code)?;
            row.set(self.email, &email(code))
        })
    }

    fn add_mark(&self, tx: &Tx<'_, P>, number: u32, value: u32) -> Result<(), Error> {
        tx.insert(&self.marks, |row| {
            row.set(self.mark_number, number)?;
            row.set(self.mark_value, value)
        })
    }

    /// Runs an operation on the store and the model, and compares the answers. If an allocation
    /// fails, or another transaction is in the way, the model stays as it was.
    pub(crate) fn run(&self, tx: &Tx<'_, P>, model: &mut Model, op: &Op) -> Result<(), Error> {
        match *op {
            Op::Insert(id, ref person) => {
                let fits = !model.people.contains_key(&id) && model.has_code(person.code).is_none();
                if accepted(self.fill(tx, id, person), fits, op)? {
                    model.people.insert(id, person.clone());
                }
            }
            Op::Change(id, town, balance) => {
                let done = self.change(tx, id, town, balance)?;
                assert_eq!(done, model.people.contains_key(&id), "{op:?}");
                if let Some(person) = model.people.get_mut(&id) {
                    (person.town, person.balance) = (town, balance);
                }
            }
            Op::Move(id, code) => {
                let done = self.give_code(tx, id, code);
                let is_there = model.people.contains_key(&id);
                let fits = !is_there || model.has_code(code).is_none_or(|of| of == id);
                if accepted(done.map(|done| assert_eq!(done, is_there)), fits, op)? {
                    model.people.entry(id).and_modify(|person| person.code = code);
                }
            }
            Op::Delete(id) => {
                let done = tx.delete(&self.id, id)?;
                assert_eq!(done, model.people.remove(&id).is_some(), "{op:?}");
            }
            Op::DeleteByCode(code) => {
                let done = tx.delete(&self.by_code, code)?;
                let id = model.has_code(code);
                assert_eq!(done, id.is_some(), "{op:?}");
                id.map(|id| model.people.remove(&id));
            }
            Op::Mark(number, value) => self.set_mark(tx, model, (number, value), op)?,
            Op::Unmark(number) => {
                let done = tx.delete(&self.mark, number)?;
                assert_eq!(done, model.marks.remove(&number).is_some(), "{op:?}");
            }
            _ => self.read(tx, model, op)?,
        }
        Ok(())
    }

    /// Runs an operation whose answer other transactions decide. A refused write is no error.
    pub(crate) fn attempt(&self, tx: &Tx<'_, P>, op: &Op) -> Result<(), Error> {
        let one = |row: Option<Row<'_>>| row.map(|row| self.person(&row)).transpose();
        let done = match *op {
            Op::Get(id) => one(tx.get(&self.id, id)?).map(|_| ()),
            Op::ByCode(code) => one(tx.get(&self.by_code, code)?).map(|_| ()),
            Op::ByEmail(code) => one(tx.get(&self.by_email, email(code))?).map(|_| ()),
            Op::GetMany(ref ids) => tx.get_many(&self.id, ids, &mut vec![None; ids.len()]),
            Op::Scan { from, to, .. } => {
                self.persons(&tx.scan(&self.id, from..=to).rows()?).map(|_| ())
            }
            Op::ScanCodes { from, to, .. } => {
                self.persons(&tx.scan(&self.by_code, from..=to).rows()?).map(|_| ())
            }
            Op::InTown(town) => tx.find_all(&self.by_town, town).rows().map(|_| ()),
            Op::Insert(id, ref person) => self.fill(tx, id, person),
            Op::Change(id, town, balance) => self.change(tx, id, town, balance).map(|_| ()),
            Op::Move(id, code) => self.give_code(tx, id, code).map(|_| ()),
            Op::Delete(id) => tx.delete(&self.id, id).map(|_| ()),
            Op::DeleteByCode(code) => tx.delete(&self.by_code, code).map(|_| ()),
            Op::Mark(number, value) => {
                tx.delete(&self.mark, number).and_then(|_| self.add_mark(tx, number, value))
            }
            Op::Unmark(number) => tx.delete(&self.mark, number).map(|_| ()),
        };
        match done {
            Err(Error::Unique { .. }) => Ok(()),
            done => done,
        }
    }

    /// Whether the indexes of people have the same rows.
    pub(crate) fn agree(&self, tx: &Tx<'_, P>) -> Result<bool, Error> {
        let by_id = self.persons(&tx.scan(&self.id, ..).rows()?)?;
        let mut by_code = self.persons(&tx.scan(&self.by_code, ..).rows()?)?;
        by_code.sort_unstable_by_key(|(id, _)| *id);
        let mut by_email = Vec::new();
        for (id, person) in &by_id {
            let row = tx.get(&self.by_email, email(person.code))?;
            by_email.extend(row.map(|row| self.person(&row)).transpose()?.filter(|of| of.0 == *id));
        }
        Ok(by_id == by_code && by_id == by_email)
    }

    /// Makes a model of what the primary indexes have.
    pub(crate) fn read_model(&self, tx: &Tx<'_, P>, model: &mut Model) -> Result<(), Error> {
        model.people = self.persons(&tx.scan(&self.id, ..).rows()?)?.into_iter().collect();
        let marks = tx.scan(&self.mark, ..).rows()?;
        let marks =
            marks.iter().map(|row| Ok((row.get(self.mark_number)?, row.get(self.mark_value)?)));
        model.marks = marks.collect::<Result<_, Error>>()?;
        Ok(())
    }

    fn set_mark(
        &self,
        tx: &Tx<'_, P>,
        model: &mut Model,
        (number, value): (u32, u32),
        op: &Op,
    ) -> Result<(), Error> {
        let fits = model.marks.iter().all(|(&of, &has)| has != value || of == number);
        let done = if model.marks.contains_key(&number) {
            let done = tx.update(&self.mark, number, |row| row.set(self.mark_value, value));
            done.map(|done| assert!(done, "{op:?}"))
        } else {
            self.add_mark(tx, number, value)
        };
        if accepted(done, fits, op)? {
            model.marks.insert(number, value);
        }
        Ok(())
    }

    /// Reads all tables by all indexes in one transaction.
    pub(crate) fn check(&self, model: &Model) -> Result<(), Error> {
        self.store.transact(|tx| {
            for descending in [false, true] {
                let to = u64::MAX;
                let scan = Op::Scan { from: 0, to, descending, limit: usize::MAX };
                self.read(tx, model, &scan)?;
                self.read(tx, model, &Op::ScanCodes { from: 0, to, descending })?;
            }
            for town in 0..TOWNS {
                self.read(tx, model, &Op::InTown(town))?;
            }
            for id in 0..IDS {
                self.read(tx, model, &Op::Get(id))?;
            }
            for code in 0..CODES {
                self.read(tx, model, &Op::ByCode(code))?;
                self.read(tx, model, &Op::ByEmail(code))?;
            }
            let rows = tx.scan(&self.by_value, ..).rows()?;
            let found =
                rows.iter().map(|row| Ok((row.get(self.mark_value)?, row.get(self.mark_number)?)));
            let found = found.collect::<Result<Vec<_>, Error>>()?;
            let mut marks: Vec<_> = model.marks.iter().map(|(&of, &value)| (value, of)).collect();
            marks.sort_unstable();
            assert_eq!(found, marks);
            Ok(())
        })
    }

    /// Checks that each index has an entry for each row, and no other one, while no transaction is
    /// under way.
    pub(crate) fn check_entries(&self, model: &Model) {
        for (table, rows) in [(&self.people, model.people.len()), (&self.marks, model.marks.len())]
        {
            for part in table.memory() {
                assert_eq!(part.entries, rows, "{} of {}", part.name, table.name());
            }
        }
    }

    /// Checks that nothing is locked: a transaction changes everything, inserts what is absent, and
    /// is undone.
    pub(crate) fn check_unlocked(&self, model: &Model) {
        let (tx, mut now) = (self.store.begin(), model.clone());
        for id in 0..IDS {
            let op = if model.people.contains_key(&id) {
                Op::Move(id, CODES + id)
            } else {
                Op::Insert(id, Person { code: CODES + id, town: 0, balance: 1 })
            };
            self.run(&tx, &mut now, &op).unwrap();
        }
        for id in 0..IDS {
            self.run(&tx, &mut now, &Op::Delete(id)).unwrap();
        }
        for code in 0..CODES.min(IDS) {
            let person = Person { code, town: 0, balance: 1 };
            self.run(&tx, &mut now, &Op::Insert(code, person)).unwrap();
        }
        tx.abort();
    }

    /// Runs a transaction in which no operation may fail. Returns the error that ended it.
    pub(crate) fn transaction_strict(&self, model: &mut Model, ops: &[Op]) -> Option<Error> {
        let mut after = model.clone();
        let done = self.store.transact(|tx| {
            after.clone_from(model);
            ops.iter().try_for_each(|op| self.run(tx, &mut after, op))
        });
        match done {
            Ok(()) => *model = after,
            Err(error) => return Some(error),
        }
        None
    }

    /// Runs a transaction, which goes on if an allocation fails. Returns the error that ended it.
    pub(crate) fn transaction(&self, model: &mut Model, ops: &[Op], end: End) -> Option<Error> {
        let (tx, mut now) = (self.store.begin(), model.clone());
        for op in ops {
            match self.run(&tx, &mut now, op) {
                Ok(()) | Err(Error::Alloc(_)) => {}
                Err(error) => return Some(error),
            }
        }
        match end {
            End::Commit => match tx.commit() {
                Ok(()) => *model = now,
                Err(error) => return Some(error),
            },
            End::Abort => tx.abort(),
            End::Drop => drop(tx),
        }
        None
    }
}

/// Whether a write was done. It must be refused if it does not fit the unique indexes.
fn accepted(done: Result<(), Error>, fits: bool, op: &Op) -> Result<bool, Error> {
    match done {
        Ok(()) => assert!(fits, "{op:?} was not refused"),
        Err(Error::Unique { index, .. }) => {
            assert!(!fits, "{op:?} was refused by {index}");
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

pub(crate) const IDS: u64 = 8;
pub(crate) const CODES: u64 = 8;
pub(crate) const TOWNS: u8 = 3;

fn person() -> impl Strategy<Value = Person> {
    (0..CODES, 0..TOWNS, 0..100_i64).prop_map(|(code, town, balance)| Person {
        code,
        town,
        balance,
    })
}

/// A random operation.
pub(crate) fn op() -> impl Strategy<Value = Op> {
    let (id, code) = (0..IDS, 0..CODES);
    prop_oneof![
        2 => id.clone().prop_map(Op::Get),
        2 => code.clone().prop_map(Op::ByCode),
        1 => code.clone().prop_map(Op::ByEmail),
        1 => prop::collection::vec(id.clone(), 0..5).prop_map(Op::GetMany),
        2 => (id.clone(), id.clone(), any::<bool>(), 0..6_usize).prop_map(
            |(from, to, descending, limit)| Op::Scan { from, to, descending, limit }
        ),
        2 => (code.clone(), code.clone(), any::<bool>()).prop_map(
            |(from, to, descending)| Op::ScanCodes { from, to, descending }
        ),
        1 => (0..TOWNS).prop_map(Op::InTown),
        6 => (id.clone(), person()).prop_map(|(id, person)| Op::Insert(id, person)),
        2 => (id.clone(), 0..TOWNS, 0..100_i64).prop_map(
            |(id, town, balance)| Op::Change(id, town, balance)
        ),
        6 => (id.clone(), code.clone()).prop_map(|(id, code)| Op::Move(id, code)),
        3 => id.prop_map(Op::Delete),
        1 => code.prop_map(Op::DeleteByCode),
        2 => (0..5_u32, 0..5_u32).prop_map(|(number, value)| Op::Mark(number, value)),
        1 => (0..5_u32).prop_map(Op::Unmark),
    ]
}
