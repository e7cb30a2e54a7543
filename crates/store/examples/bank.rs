//! A bank: threads that transfer money between accounts and write a log, and an auditor that adds
//! up all balances by a scan at the same time. Each transfer is atomic, so the sum never changes.
//!
//! ```sh
//! cargo run --release -p silvics-store --example bank
//! ```

use silvics_store::index::Named;
use silvics_store::{Column, Error, Index, IndexSpec, Multi, Schema, Store, Table, Tx, Type};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 100;
const EACH: i64 = 1000;
const THREADS: u64 = 3;
const TIME: Duration = Duration::from_millis(600);

/// The handles of the tables, their indexes and columns. They are made once.
struct Bank {
    store: Store,
    accounts: Table,
    by_id: Index<silvics_store::Optimistic, u64, Named<u64>>,
    by_email: Index<silvics_store::Optimistic, String, Named<[u8]>>,
    id: Column<u64>,
    email: Column<str>,
    balance: Column<i64>,
    log: Table,
    log_from: Multi<silvics_store::Optimistic, u64>,
    number: Column<u64>,
    from: Column<u64>,
    to: Column<u64>,
    amount: Column<i64>,
}

/// The reasons for which a transfer fails.
enum Refused {
    NoAccount,
    NotEnough,
    Store(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Bank {
    fn open() -> Result<Self, Error> {
        let store = Store::new()?;
        let accounts = store.create_table(
            Schema::new("accounts")
                .column("id", Type::U64)
                .column("email", Type::Text(40))
                .column("balance", Type::I64)
                .primary(["id"])
                .index(IndexSpec::unique("by_email", ["email"])),
        )?;
        let log = store.create_table(
            Schema::new("log")
                .column("number", Type::U64)
                .column("from", Type::U64)
                .column("to", Type::U64)
                .column("amount", Type::I64)
                .primary(["number"])
                .index(IndexSpec::multi("by_from", ["from"])),
        )?;
        let bank = Self {
            by_id: accounts.index("primary")?,
            by_email: accounts.index("by_email")?,
            id: accounts.column("id")?,
            email: accounts.column("email")?,
            balance: accounts.column("balance")?,
            log_from: log.multi("by_from")?,
            number: log.column("number")?,
            from: log.column("from")?,
            to: log.column("to")?,
            amount: log.column("amount")?,
            accounts,
            log,
            store,
        };
        bank.store.transact(|tx| (0..ACCOUNTS).try_for_each(|id| bank.add(tx, id)))?;
        Ok(bank)
    }

    fn add(&self, tx: &Tx<'_>, id: u64) -> Result<(), Error> {
        tx.insert(&self.accounts, |row| {
            row.set(self.id, id)?;
            row.set(self.email, &email(id))?;
            row.set(self.balance, EACH)
        })
    }

    /// Moves an amount between two accounts, and writes it to the log under this number.
    fn transfer(
        &self,
        tx: &Tx<'_>,
        (from, to): (&str, &str),
        amount: i64,
        number: u64,
    ) -> Result<(), Refused> {
        let find = |email: &str| -> Result<u64, Refused> {
            let row = tx.get(&self.by_email, email)?;
            let row = row.ok_or(Refused::NoAccount)?;
            Ok(row.get(self.id)?)
        };
        let (from, to) = (find(from)?, find(to)?);
        tx.update(&self.by_id, from, |row| {
            let balance = row.get(self.balance)?;
            if balance < amount {
                return Err(Refused::NotEnough);
            }
            Ok(row.set(self.balance, balance - amount)?)
        })?;
        tx.update(&self.by_id, to, |row| {
            let balance = row.get(self.balance)?;
            row.set(self.balance, balance + amount)
        })?;
        tx.insert(&self.log, |row| {
            row.set(self.number, number)?;
            row.set(self.from, from)?;
            row.set(self.to, to)?;
            row.set(self.amount, amount)
        })?;
        Ok(())
    }

    /// Adds up all balances in one transaction.
    fn total(&self) -> Result<i64, Error> {
        self.store.transact(|tx| {
            let rows = tx.scan(&self.by_id, ..).rows()?;
            rows.iter().map(|row| row.get(self.balance)).sum()
        })
    }
}

fn email(id: u64) -> String {
    format!("{id}@example.org")
}

/// Transfers until the time is up. Returns how many transfers were done and refused.
fn work(bank: &Bank, thread: u64, stop: &AtomicBool) -> Result<(u64, u64), Error> {
    let (mut done, mut refused) = (0, 0);
    let mut random = thread + 1;
    while !stop.load(Ordering::Relaxed) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (from, to) = ((random >> 33) % ACCOUNTS, (random >> 43) % ACCOUNTS);
        let (from, to, amount) = (email(from), email(to), (random >> 53) as i64 % 900);
        let number = done * THREADS + thread;
        match bank.store.transact(|tx| bank.transfer(tx, (&from, &to), amount, number)) {
            Ok(()) => done += 1,
            Err(Refused::NotEnough | Refused::NoAccount) => refused += 1,
            Err(Refused::Store(error)) => return Err(error),
        }
    }
    Ok((done, refused))
}

fn main() -> Result<(), Error> {
    let bank = Bank::open()?;
    let stop = AtomicBool::new(false);
    let mut audits = 0;
    let counts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (bank, stop) = (&bank, &stop);
                scope.spawn(move || work(bank, thread, stop))
            })
            .collect();
        let begun = Instant::now();
        while begun.elapsed() < TIME {
            assert_eq!(bank.total(), Ok(ACCOUNTS as i64 * EACH), "an audit in between");
            audits += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let joined = workers.into_iter().map(|worker| worker.join().expect("a worker"));
        joined.collect::<Result<Vec<_>, Error>>()
    })?;
    let (done, refused) = counts.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    assert_eq!(bank.log.len() as u64, done, "each transfer is in the log");

    // A panic in the middle of a transfer undoes it, and leaves no lock.
    std::panic::set_hook(Box::new(|_| {}));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        bank.store.transact(|tx| {
            bank.transfer(tx, (&email(1), &email(2)), 0, u64::MAX)?;
            assert!(tx.get(&bank.by_id, ACCOUNTS)?.is_some(), "a mistake of the program");
            Ok::<(), Refused>(())
        })
    }));
    drop(std::panic::take_hook());
    assert!(panicked.is_err());
    assert_eq!(bank.log.len() as u64, done);

    // An email address belongs to one account.
    let twice = bank
        .store
        .transact(|tx| tx.update(&bank.by_id, 1, |row| row.set(bank.email, &email(2))).map(|_| ()));
    assert!(matches!(twice, Err(Error::Unique { .. })));

    assert_eq!(bank.total()?, ACCOUNTS as i64 * EACH);
    let of_one =
        bank.store.transact(|tx| Ok::<_, Error>(tx.find_all(&bank.log_from, 1).rows()?.len()))?;
    let aborts: u64 = bank.store.stats().aborts.iter().map(|&(_, count)| count).sum();
    println!("{done} transfers by {THREADS} threads, {of_one} of them from account 1");
    println!("{refused} refused for lack of money, {aborts} attempts repeated after a conflict");
    println!("{audits} audits in between; the total is {}", bank.total()?);
    Ok(())
}
