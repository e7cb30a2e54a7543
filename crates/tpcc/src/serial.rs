//! Checks whether transactions of TPC-C have a serial order that respects real time: by their
//! dependencies, as [`silvics_testkit::serial`] checks histories of single keys.
//!
//! # Method
//! A [`Recorder`] runs the transactions of a thread and keeps what they have read and written, as
//! versions of items (`notes.rs` lists these). [`Versions`] has the versions of all items of a
//! database at rest. It checks the transactions that ran since, takes over what they have written,
//! and so is compared with the database at the end: no write may be missing there.
//!
//! # What it misses
//! * Attempts that aborted are not kept. A transaction that read a write of one read a version that
//!   no transaction wrote. It passes if the next attempt wrote the same version, and overlapped it.
//! * A transaction that reads the right version of a row with other columns of an older one: of a
//!   customer, for example, the right counts with an older balance. The
//!   [conditions](crate::Condition) compare sums of these columns at the end.
//! * An anomaly that depends on choices that the checker leaves open. It counts them.
//!
//! # Complexity
//! O(n log n) for n items read and written, and one more for each pair of deliveries in a district.
//! Memory for all items of the database, and for what the transactions of one call of
//! [`Versions::check`] have read and written: about 35 operations of 64 bytes for a transaction of
//! the standard mix.

use crate::database::{Database, Session};
use crate::keys;
use crate::notes::{self, Attempt, Item, Part};
use crate::orders::stock;
use crate::tables::Second;
use crate::transactions::{Failure, Outcome, missing};
use rustc_hash::{FxHashMap, FxHashSet};
use silvics_store::Policy;
use silvics_store::index::{Scannable, Search};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{self, Anomaly, End, Entry, History, Operation, Verdict};
use silvics_workload::tpcc::{DISTRICTS, Scale, Transaction};
use std::collections::BTreeMap;
use std::fmt;

/// Runs the transactions of one thread, and keeps what they have read and written.
pub struct Recorder<'a> {
    clock: &'a Clock,
    thread: usize,
    session: Session<Attempt<'a>>,
    /// The transactions that are durable, and those behind them.
    committed: Vec<serial::Transaction>,
    deferred: Vec<serial::Transaction>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a thread with this number. All recorders of a check have one clock.
    pub fn new(clock: &'a Clock, thread: usize) -> Self {
        let session = Session::noting(Attempt::new(clock));
        Self { clock, thread, session, committed: Vec::new(), deferred: Vec::new() }
    }

    /// Runs a transaction, as [`Database::run`] does.
    pub fn run<P: Policy, I: Scannable + Search<Form = u64>>(
        &mut self,
        database: &Database<P, I>,
        transaction: &Transaction,
        now: u64,
    ) -> Result<Outcome, Failure> {
        let outcome = self.run_deferred(database, transaction, now)?;
        self.wait(database)?;
        Ok(outcome)
    }

    /// Runs a transaction, as [`Database::run_deferred`] does.
    pub fn run_deferred<P: Policy, I: Scannable + Search<Form = u64>>(
        &mut self,
        database: &Database<P, I>,
        transaction: &Transaction,
        now: u64,
    ) -> Result<Outcome, Failure> {
        let outcome = database.run_deferred(transaction, &mut self.session, now)?;
        let end = self.clock.end();
        if !matches!(outcome, Outcome::RolledBack) {
            let (thread, start, outcome) = (self.thread, self.session.notes.start, End::Committed);
            let operations = std::mem::take(&mut self.session.notes.operations);
            self.deferred.push(serial::Transaction { thread, start, end, outcome, operations });
        }
        Ok(outcome)
    }

    /// Waits until all transactions are durable.
    pub fn wait<P: Policy, I: Scannable + Search<Form = u64>>(
        &mut self,
        database: &Database<P, I>,
    ) -> Result<(), Failure> {
        database.wait(&self.session)?;
        self.committed.append(&mut self.deferred);
        Ok(())
    }

    /// The transactions that were committed, and are durable.
    pub fn committed(self) -> Vec<serial::Transaction> {
        self.committed
    }
}

/// A mistake that recorded transactions show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// No serial order explains what they have read and written.
    Anomaly {
        /// The transactions, with keys and values as numbers.
        anomaly: Box<Anomaly>,
        /// A line for each of these keys, and for each of the values.
        legend: Vec<String>,
    },
    /// A version of an item that they have written is not in the database.
    Lost {
        /// The item.
        item: String,
        /// The version that was written, if the item was not deleted.
        written: Option<u64>,
        /// The version in the database.
        found: Option<u64>,
    },
    /// The record cannot be checked.
    Unfit(String),
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = |version: &Option<u64>| {
            version.map_or("absent".into(), |version| format!("at {version}"))
        };
        match self {
            Self::Anomaly { anomaly, legend } => {
                write!(f, "the transactions have no serial order: {anomaly}")?;
                legend.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            Self::Lost { item, written, found } => write!(
                f,
                "transactions have left {item} {}, and in the database it is {}",
                state(written),
                state(found)
            ),
            Self::Unfit(why) => write!(f, "what was recorded cannot be checked: {why}"),
        }
    }
}

impl std::error::Error for Disorder {}

/// The versions of all items of a database, taken while no transaction runs. The default is an
/// empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions(BTreeMap<u64, u64>);

impl Versions {
    /// The versions in a database of this scale.
    pub fn of<P: Policy, I: Scannable + Search<Form = u64>>(
        database: &Database<P, I>,
        scale: Scale,
    ) -> Result<Self, Failure> {
        let (tables, mut all) = (&database.tables, BTreeMap::new());
        let warehouses = || 1..=scale.warehouses();
        let table = &tables.warehouses;
        database.each(&table.rows, warehouses().map(u64::from), |key, row| {
            if let Some(row) = row {
                all.insert(Part::WarehouseSum.item(key), row.get(table.ytd)? as u64);
            }
            Ok(())
        })?;
        let stocks = warehouses()
            .flat_map(|warehouse| (1..=scale.items()).map(move |of| keys::stock(warehouse, of)));
        let table = &tables.stocks;
        database.each(&table.rows, stocks, |key, row| {
            if let Some(row) = row {
                let version = stock(row.get(table.orders), row.get(table.quantity)?)?;
                all.insert(Part::Stock.item(key), version);
            }
            Ok(())
        })?;
        for warehouse in warehouses() {
            for number in 1..=DISTRICTS {
                let district = keys::district(warehouse, number);
                Self::of_district(database, (scale, district), &mut all)?;
            }
        }
        Ok(Self(all))
    }

    fn of_district<P: Policy, I: Scannable + Search<Form = u64>>(
        database: &Database<P, I>,
        (scale, district): (Scale, u64),
        all: &mut BTreeMap<u64, u64>,
    ) -> Result<(), Failure> {
        let (tables, mut next) = (&database.tables, None);
        let table = &tables.districts;
        database.each(&table.rows, std::iter::once(district), |key, row| {
            let Some(row) = row else { return Ok(()) };
            let number = row.get(table.next_order)?;
            next = Some(number);
            all.insert(Part::DistrictSum.item(key), row.get(table.ytd)? as u64);
            all.insert(Part::NextOrder.item(key), u64::from(number));
            Ok(())
        })?;
        let next = next.ok_or_else(|| missing("district", district))?;
        let table = &tables.customers;
        let customers = (1..=scale.customers()).map(|number| keys::customer(district, number));
        database.each(&table.rows, customers, |key, row| {
            let Some(row) = row else { return Ok(()) };
            let version = notes::pair(row.get(table.payments), row.get(table.deliveries))?;
            all.insert(Part::Customer.item(key), version);
            Ok(())
        })?;
        // The number behind the last one has no order.
        let orders = || (1..=next).map(|number| keys::order(district, number));
        database.each(&tables.new_orders.rows, orders(), |key, row| {
            all.extend(row.map(|_| (Part::NewOrder.item(key), 0)));
            Ok(())
        })?;
        let (table, mut lines, mut entries) = (&tables.orders, Vec::new(), Vec::new());
        database.each(&table.rows, orders(), |key, row| {
            let Some(row) = row else { return Ok(()) };
            all.insert(Part::Order.item(key), u64::from(row.get(table.carrier)?));
            let number = keys::order_number(key);
            entries.push((keys::customer_with_order(row.get(table.customer)?, number), key));
            lines.extend((1..=row.get(table.lines)?).map(|number| keys::line(key, number)));
            Ok(())
        })?;
        Self::of_entries(database, &entries, all)?;
        let table = &tables.lines;
        database.each(&table.rows, lines.into_iter(), |key, row| {
            if let Some(row) = row {
                all.insert(Part::Line.item(key), row.get(table.delivery)?);
            }
            Ok(())
        })
    }

    /// Looks orders up in the index by customer. Lists are not looked at: no transaction that can
    /// run over lists reads them.
    fn of_entries<P: Policy, I: Scannable + Search<Form = u64>>(
        database: &Database<P, I>,
        entries: &[(u64, u64)],
        all: &mut BTreeMap<u64, u64>,
    ) -> Result<(), Failure> {
        let Second::Range(index) = &database.tables.by_customer else {
            all.extend(entries.iter().map(|(entry, _)| (Part::OfCustomer.item(*entry), 0)));
            return Ok(());
        };
        let (table, mut orders) = (&database.tables.orders, entries.iter().map(|of| of.1));
        database.each(index, entries.iter().map(|of| of.0), |entry, row| {
            let order = orders.next();
            if let Some(row) = row
                && Some(row.get(table.key)?) == order
            {
                all.insert(Part::OfCustomer.item(entry), 0);
            }
            Ok(())
        })
    }

    /// Checks all transactions that ran since the database was as these versions say, and takes
    /// over what they have written. Returns the number of choices that the check left open: see
    /// [`Verdict::Serializable`].
    pub fn check(&mut self, transactions: Vec<serial::Transaction>) -> Result<u64, Disorder> {
        let mut names = Names::default();
        let history = names.history(&self.0, transactions);
        match serial::check(&history) {
            Verdict::Serializable { open } => {
                self.advance(&names, &history.transactions);
                Ok(open)
            }
            Verdict::Anomaly(anomaly) => {
                let legend = names.legend(&anomaly);
                Err(Disorder::Anomaly { anomaly, legend })
            }
            Verdict::Unfit(why) => Err(Disorder::Unfit(why)),
        }
    }

    /// Takes over the writes of transactions that have a serial order: versions grow, and nothing
    /// that was deleted comes back.
    fn advance(&mut self, names: &Names, transactions: &[serial::Transaction]) {
        let writes = || {
            transactions.iter().flat_map(|of| &of.operations).filter_map(|operation| {
                let Operation::Write { key, value } = *operation else { return None };
                Some((key, value.map(|name| names.versions[name as usize].1)))
            })
        };
        for (key, version) in writes() {
            if let Some(version) = version {
                let now = self.0.entry(key).or_default();
                *now = version.max(*now);
            }
        }
        for (key, version) in writes() {
            if version.is_none() {
                self.0.remove(&key);
            }
        }
    }

    /// Fails unless the database has what these transactions have written, or what later ones have
    /// made of it.
    pub fn cover(&self, transactions: &[serial::Transaction]) -> Result<(), Disorder> {
        for operation in transactions.iter().flat_map(|of| &of.operations) {
            let Operation::Write { key, value: written } = *operation else { continue };
            let found = self.0.get(&key).copied();
            // A new order that a later transaction has delivered is absent.
            let is_there = if Part::NewOrder.has(key) {
                written.is_some() || found.is_none()
            } else {
                found >= written
            };
            if !is_there {
                return Err(Disorder::Lost { item: Item(key).to_string(), written, found });
            }
        }
        Ok(())
    }

    /// Compares these versions with those of the database afterwards.
    pub fn compare(&self, found: &Self) -> Result<(), Disorder> {
        let differs = |key: &u64| {
            let (written, found) = (self.0.get(key).copied(), found.0.get(key).copied());
            let item = Item(*key).to_string();
            (written != found).then_some(Disorder::Lost { item, written, found })
        };
        let mut keys = self.0.keys().chain(found.0.keys());
        keys.find_map(differs).map_or(Ok(()), Err)
    }
}

/// The most entries of a scan that a legend explains: as many as are printed.
const EXPLAINED: usize = 8;

/// The names of versions in a history, in which all values are different.
#[derive(Default)]
struct Names {
    /// The items and versions by name.
    versions: Vec<Entry>,
    named: FxHashMap<Entry, u64>,
}

impl Names {
    /// A new name. A version that has one already is still found by the first one.
    fn add(&mut self, entry: Entry) -> u64 {
        let name = self.versions.len() as u64;
        self.versions.push(entry);
        self.named.entry(entry).or_insert(name);
        name
    }

    /// The name of a version. One that nobody wrote gets a name, too.
    fn name(&mut self, entry: Entry) -> u64 {
        self.named.get(&entry).copied().unwrap_or_else(|| self.add(entry))
    }

    /// The transactions with names for versions, and the versions before that concern them.
    fn history(
        &mut self,
        before: &BTreeMap<u64, u64>,
        mut transactions: Vec<serial::Transaction>,
    ) -> History {
        let operations = || transactions.iter().flat_map(|of| &of.operations);
        let mut concerned = FxHashSet::default();
        for operation in operations() {
            match operation {
                Operation::Read { key, .. } | Operation::Write { key, .. } => {
                    concerned.insert(*key);
                }
                Operation::Scan { range, entries } => {
                    if let Some((from, to)) = range.covered(entries) {
                        concerned.extend(before.range(from.0..=to.0).map(|(key, _)| *key));
                    }
                    concerned.extend(entries.iter().map(|(key, _)| *key));
                }
                Operation::Present { .. } | Operation::Find { .. } => {} // nobody notes these
            }
        }
        let known = |key: u64| before.get(&key).map(|&version| (key, version));
        let known: Vec<Entry> = concerned.into_iter().filter_map(known).collect();
        let initial = known.into_iter().map(|entry| (entry.0, self.add(entry))).collect();
        let mut written = Vec::new();
        for operation in operations() {
            if let Operation::Write { key, value: Some(version) } = *operation {
                written.push(self.add((key, version)));
            }
        }
        let mut written = written.into_iter();
        for operation in transactions.iter_mut().flat_map(|of| &mut of.operations) {
            match operation {
                Operation::Write { value: value @ Some(_), .. } => *value = written.next(),
                Operation::Read { key, value: Some(value) } => *value = self.name((*key, *value)),
                Operation::Scan { entries, .. } => {
                    for entry in entries {
                        entry.1 = self.name(*entry);
                    }
                }
                _ => {}
            }
        }
        History { initial, transactions }
    }

    /// The meanings of the numbers in an anomaly.
    fn legend(&self, anomaly: &Anomaly) -> Vec<String> {
        let operations = anomaly.transactions.iter().flat_map(|of| &of.operations);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for operation in operations {
            match operation {
                Operation::Read { key, value } | Operation::Write { key, value } => {
                    keys.push(*key);
                    values.extend(*value);
                }
                Operation::Scan { range, entries } => {
                    let entries = &entries[..entries.len().min(EXPLAINED)];
                    keys.extend([range.from, range.to]);
                    keys.extend(entries.iter().map(|entry| entry.0));
                    values.extend(entries.iter().map(|entry| entry.1));
                }
                Operation::Present { .. } | Operation::Find { .. } => {}
            }
        }
        let lists = [&mut keys, &mut values].map(|list| {
            list.sort_unstable();
            list.dedup();
            std::mem::take(list)
        });
        let [keys, values] = lists;
        let key = |key| format!("key {key}: {}", Item(key));
        let value = |value: u64| {
            let (item, version) = self.versions.get(value as usize).copied().unwrap_or_default();
            let (high, low) = (version >> 32, version & u64::from(u32::MAX));
            if Part::Customer.has(item) {
                format!("value {value}: {high} payments and {low} deliveries")
            } else if Part::Stock.has(item) {
                format!("value {value}: {high} orders, and {low} left")
            } else {
                format!("value {value}: {version}")
            }
        };
        keys.into_iter().map(key).chain(values.into_iter().map(value)).collect()
    }
}
