//! A bank with threads that move money: its total holds, each transaction has two traces, and rows
//! take unique keys of one another.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use silvics_store::durability::{Durability, OpenError, Recovery, Ticket};
use silvics_store::index::Named;
use silvics_store::{
    Column, Error, Index, IndexSpec, Policy, Row, Schema, Store, StoreOptions, Table, Tx, Type,
};
use silvics_sync::Mutex;
use std::collections::BTreeMap;

pub(crate) const THREADS: u64 = 3;
const ACCOUNTS: u64 = 12;
const SEATS: u64 = 8;
const MONEY: i64 = 100;

/// The last numbers of transactions that somebody knows to be committed, by thread.
pub(crate) type Told = BTreeMap<u64, u64>;

/// The content of a bank: balances, traces and seats.
pub(crate) type Content = [BTreeMap<u64, u64>; 3];

/// A store with its handles. Each table has a column of numbers.
pub(crate) struct Bank<P: Policy> {
    pub(crate) store: Store<P>,
    /// Balances of accounts. Those from `ACCOUNTS` on come and go.
    accounts: Numbers<P>,
    /// Each thread has two rows: the number of its last transaction.
    traces: Numbers<P>,
    /// The unique seats of guests. Guest `SEATS` is nobody, and has the free seat.
    seats: Numbers<P>,
    by_seat: Index<P, u64, Named<u64>>,
    told: Mutex<Told>,
    /// Called with each transaction of a thread that somebody knows to be committed.
    pub(crate) report: Option<Box<dyn Fn(u64, u64) + Send + Sync>>,
}

struct Numbers<P: Policy> {
    table: Table<P>,
    by_id: Index<P, u64, Named<u64>>,
    id: Column<u64>,
    number: Column<u64>,
}

impl<P: Policy> Numbers<P> {
    fn of(store: &Store<P>, name: &str) -> Self {
        let table = store.table(name).unwrap();
        Self {
            by_id: table.index("primary").unwrap(),
            id: table.column("id").unwrap(),
            number: table.column("number").unwrap(),
            table,
        }
    }

    fn insert(&self, tx: &Tx<'_, P>, id: u64, number: u64) -> Result<(), Error> {
        tx.insert(&self.table, |row| {
            row.set(self.id, id)?;
            row.set(self.number, number)
        })
    }

    fn get(&self, tx: &Tx<'_, P>, id: u64) -> Result<Option<u64>, Error> {
        tx.get(&self.by_id, id)?.map(|row| row.get(self.number)).transpose()
    }

    /// Gives a row a number, and returns the one before.
    fn set(&self, tx: &Tx<'_, P>, id: u64, number: u64) -> Result<u64, Error> {
        let mut before = 0;
        let is_there = tx.update(&self.by_id, id, |row| {
            before = row.get(self.number)?;
            row.set(self.number, number)
        })?;
        assert!(is_there, "row {id}");
        Ok(before)
    }

    fn add(&self, tx: &Tx<'_, P>, id: u64, more: i64) -> Result<bool, Error> {
        tx.update(&self.by_id, id, |row| {
            let now = row.get(self.number)?;
            row.set(self.number, now.wrapping_add_signed(more))
        })
    }

    fn pairs(&self, rows: &[Row<'_>]) -> Result<Vec<(u64, u64)>, Error> {
        rows.iter().map(|row| Ok((row.get(self.id)?, row.get(self.number)?))).collect()
    }

    fn all(&self, tx: &Tx<'_, P>) -> Result<BTreeMap<u64, u64>, Error> {
        Ok(self.pairs(&tx.scan(&self.by_id, ..).rows()?)?.into_iter().collect())
    }
}

impl<P: Policy> Bank<P> {
    pub(crate) fn open(durability: Durability) -> Result<(Self, Recovery), OpenError> {
        let create = |store: &Store<P>| {
            for name in ["accounts", "traces", "seats"] {
                let schema = Schema::new(name)
                    .column("id", Type::U64)
                    .column("number", Type::U64)
                    .column("note", Type::Text(90))
                    .primary(["id"]);
                let seats = IndexSpec::unique("by_number", ["number"]);
                store.create_table(if name == "seats" { schema.index(seats) } else { schema })?;
            }
            Ok(())
        };
        let (store, (), recovery) = Store::open(&StoreOptions::default(), durability, create)?;
        let [accounts, traces, seats] =
            ["accounts", "traces", "seats"].map(|name| Numbers::of(&store, name));
        let by_seat = seats.table.index("by_number").unwrap();
        let bank =
            Self { store, accounts, traces, seats, by_seat, told: Mutex::default(), report: None };
        Ok((bank, recovery))
    }

    /// Fills an empty bank.
    pub(crate) fn fill(&self) {
        let done = self.store.transact(|tx| {
            if self.traces.get(tx, 0)?.is_some() {
                return Ok(());
            }
            (0..ACCOUNTS).try_for_each(|id| self.accounts.insert(tx, id, MONEY as u64))?;
            (0..2 * THREADS).try_for_each(|id| self.traces.insert(tx, id, 0))?;
            (0..=SEATS).try_for_each(|id| self.seats.insert(tx, id, id))
        });
        done.unwrap();
    }

    /// A transaction of a thread.
    fn change(
        &self,
        tx: &Tx<'_, P>,
        thread: u64,
        number: u64,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Result<(), Error> {
        for id in [2 * thread, 2 * thread + 1] {
            let before = self.traces.set(tx, id, number)?;
            assert!(before < number);
        }
        let amount = chance.random_range(0..50);
        let (from, to) = (chance.random_range(0..ACCOUNTS), chance.random_range(0..ACCOUNTS));
        self.accounts.add(tx, from, -amount)?;
        // Money lies in an account that comes and goes.
        let own = ACCOUNTS + thread;
        match self.accounts.get(tx, own)? {
            Some(money) => {
                tx.delete(&self.accounts.by_id, own)?;
                self.accounts.add(tx, to, amount.wrapping_add_unsigned(money))?;
            }
            None => self.accounts.insert(tx, own, amount as u64)?,
        }
        if chance.random_bool(0.5) {
            let guest = chance.random_range(0..SEATS);
            let Some(free) = self.seats.get(tx, SEATS)? else { panic!("nobody has no seat") };
            // Nobody gets a seat that does not exist, the guest the free one, and nobody the old.
            self.seats.set(tx, SEATS, 1000 + thread)?;
            let old = self.seats.set(tx, guest, free)?;
            self.seats.set(tx, SEATS, old)?;
        }
        Ok(())
    }

    /// Runs transactions of a thread until the log fails or `stop` returns true.
    pub(crate) fn write(&self, thread: u64, seed: u64, stop: impl Fn() -> bool) {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ thread << 40);
        let first = self.store.transact(|tx| self.traces.get(tx, 2 * thread));
        let Ok(Some(first)) = first else { return };
        let mut deferred: Option<(u64, Ticket)> = None;
        for number in first + 1.. {
            if stop() {
                return;
            }
            let waits = chance.random_bool(0.7);
            let mut run = |tx: &Tx<'_, P>| self.change(tx, thread, number, &mut chance);
            let done = if waits {
                self.store.transact(run)
            } else {
                self.store.transact_deferred(&mut run).map(|((), ticket)| {
                    deferred = Some((number, ticket));
                })
            };
            if !is_done(done) {
                return;
            }
            if waits {
                self.tell(thread, number);
            } else if let Some((number, ticket)) = deferred
                && chance.random_bool(0.3)
            {
                if self.store.wait(ticket).is_err() {
                    return;
                }
                assert!(self.store.is_durable(ticket));
                self.tell(thread, number);
            }
        }
    }

    /// Reads the traces until the log fails or `stop` returns true.
    pub(crate) fn read(&self, stop: impl Fn() -> bool) {
        while !stop() {
            let traces = self.store.transact(|tx| self.traces.all(tx));
            let Ok(traces) = traces else { return };
            for thread in 0..THREADS {
                assert_eq!(traces[&(2 * thread)], traces[&(2 * thread + 1)], "half a transaction");
                self.tell(thread, traces[&(2 * thread)]);
            }
        }
    }

    fn tell(&self, thread: u64, number: u64) {
        let mut told = self.told.lock();
        let known = told.entry(thread).or_default();
        *known = number.max(*known);
        if let Some(report) = &self.report {
            report(thread, number);
        }
    }

    pub(crate) fn told(&self) -> Told {
        self.told.lock().clone()
    }

    /// The content, which is checked.
    pub(crate) fn content(&self) -> Content {
        let read = self.store.transact_deferred(|tx| {
            let by_seat = self.seats.pairs(&tx.scan(&self.by_seat, ..).rows()?)?;
            let all = [&self.accounts, &self.traces, &self.seats].map(|table| table.all(tx));
            let [accounts, traces, seats] = all;
            Ok::<_, Error>(([accounts?, traces?, seats?], by_seat))
        });
        let ((content, by_seat), _) = read.unwrap();
        let [accounts, traces, seats] = &content;
        if traces.is_empty() {
            assert!(accounts.is_empty() && seats.is_empty(), "half of the first transaction");
            return content;
        }
        let total = accounts.values().fold(0, |sum: u64, money| sum.wrapping_add(*money));
        assert_eq!(total, ACCOUNTS * MONEY as u64, "money is lost");
        for thread in 0..THREADS {
            assert_eq!(traces[&(2 * thread)], traces[&(2 * thread + 1)], "half a transaction");
        }
        assert!(by_seat.iter().map(|(_, seat)| *seat).eq(0..=SEATS), "{by_seat:?}");
        assert_eq!(by_seat.into_iter().collect::<BTreeMap<_, _>>(), *seats);
        content
    }
}

/// Whether a transaction is durable. Otherwise the log has failed.
fn is_done(done: Result<(), Error>) -> bool {
    match done {
        Ok(()) => true,
        Err(Error::ReadOnly { .. } | Error::Unacknowledged { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}
