//! A check whether transactions of TPC-C have a serial order that respects real time: by their
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
//!   no transaction wrote, and is found by this, unless another one wrote the same version.
//! * A transaction that reads the right version with other columns of an older one. The
//!   [conditions](crate::Condition) compare these.
//!
//! # Complexity
//! O(n log n) for n items read and written. Memory for all items of the database, and for what the
//! transactions of one call of [`Versions::check`] have read and written: 35 items of 40 bytes for
//! a transaction of the standard mix.

use crate::database::{Database, Session};
use crate::keys;
use crate::notes::{self, Item, Part};
use crate::transactions::{Failure, Outcome, missing};
use rustc_hash::{FxHashMap, FxHashSet};
use silvics_store::Policy;
use silvics_store::index::{Scannable, Search};
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{
    self, Anomaly, Direction, End, Entry, History, Operation, Range, Verdict,
};
use silvics_workload::tpcc::{DISTRICTS, Scale, Transaction};
use std::collections::BTreeMap;
use std::fmt;

/// Runs the transactions of one thread, and keeps what they have read and written.
pub struct Recorder<'a> {
    clock: &'a Clock,
    thread: usize,
    session: Session<Vec<Operation>>,
    committed: Vec<serial::Transaction>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a thread with this number. All recorders of a check have one clock.
    pub fn new(clock: &'a Clock, thread: usize) -> Self {
        Self { clock, thread, session: Session::default(), committed: Vec::new() }
    }

    /// Runs a transaction, as [`Database::run`] does.
    pub fn run<P: Policy, I: Scannable + Search<Form = u64>>(
        &mut self,
        database: &Database<P, I>,
        transaction: &Transaction,
        now: u64,
    ) -> Result<Outcome, Failure> {
        let start = self.clock.start();
        let outcome = database.run(transaction, &mut self.session, now)?;
        let end = self.clock.end();
        if !matches!(outcome, Outcome::RolledBack) {
            let (thread, outcome) = (self.thread, End::Committed);
            let operations = std::mem::take(&mut self.session.notes);
            self.committed.push(serial::Transaction { thread, start, end, outcome, operations });
        }
        Ok(outcome)
    }

    /// The transactions that were committed.
    pub fn committed(self) -> Vec<serial::Transaction> {
        self.committed
    }
}

/// What is wrong with transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// No serial order explains what they have read and written.
    Anomaly {
        /// The transactions, with keys and values as numbers.
        anomaly: Box<Anomaly>,
        /// A line for each of these keys, and for each of the values.
        legend: Vec<String>,
    },
    /// The last version of an item that they have written is not the one in the database.
    Lost {
        /// The item.
        item: String,
        /// The version that was written last, if the item is not absent.
        written: Option<u64>,
        /// The version in the database.
        found: Option<u64>,
    },
    /// What was recorded cannot be checked.
    Unfit(String),
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = |version: &Option<u64>| {
            version.map_or("absent".into(), |version| format!("at version {version}"))
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

/// The versions of all items of a database that no transaction uses. The default is an empty one.
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
                all.insert(Part::Stock.item(key), u64::from(row.get(table.orders)?));
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
            let version = notes::customer(row.get(table.payments), row.get(table.deliveries))?;
            all.insert(Part::Customer.item(key), version);
            Ok(())
        })?;
        // The number behind the last one has no order.
        let orders = || (1..=next).map(|number| keys::order(district, number));
        database.each(&tables.new_orders.rows, orders(), |key, row| {
            all.extend(row.map(|_| (Part::NewOrder.item(key), 0)));
            Ok(())
        })?;
        let (table, mut lines) = (&tables.orders, Vec::new());
        database.each(&table.rows, orders(), |key, row| {
            let Some(row) = row else { return Ok(()) };
            all.insert(Part::Order.item(key), u64::from(row.get(table.carrier)?));
            let number = keys::order_number(key);
            let entry = keys::customer_with_order(row.get(table.customer)?, number);
            all.insert(Part::OfCustomer.item(entry), 0);
            lines.extend((1..=row.get(table.lines)?).map(|number| keys::line(key, number)));
            Ok(())
        })?;
        let table = &tables.lines;
        database.each(&table.rows, lines.into_iter(), |key, row| {
            if let Some(row) = row {
                all.insert(Part::Line.item(key), row.get(table.delivery)?);
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
    /// A new name. A version that has one keeps it.
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
                    let (from, to) = covered(range, entries);
                    concerned.extend(before.range(from..=to).map(|(key, _)| *key));
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

    /// What the numbers of an anomaly stand for.
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
            let version = self.versions.get(value as usize).map_or(0, |entry| entry.1);
            format!("value {value}: version {version}")
        };
        keys.into_iter().map(key).chain(values.into_iter().map(value)).collect()
    }
}

/// The keys that a scan has covered.
fn covered(range: &Range, entries: &[Entry]) -> (u64, u64) {
    let last = entries.last().filter(|_| range.limit.is_some_and(|most| entries.len() >= most));
    match (last, range.direction) {
        (None, _) => (range.from, range.to),
        (Some((key, _)), Direction::Ascending) => (range.from, *key),
        (Some((key, _)), Direction::Descending) => (*key, range.to),
    }
}
