//! A database of TPC-C: its store, and its load.

use crate::keys;
use crate::notes::Notes;
use crate::tables::{Second, Structures, Tables};
use crate::transactions::Failure;
use silvics_store::durability::Ticket;
use silvics_store::index::{Scannable, Search};
use silvics_store::{Error, MemoryUse, Policy, Store, Tx};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_workload::tpcc::{
    CustomerRow, DISTRICTS, HistoryRow, ItemRow, OrderLineRow, OrderRow, Population, Scale,
    StockRow,
};
use std::ops::RangeInclusive;

/// A database of TPC-C.
pub struct Database<P: Policy, I> {
    pub(crate) store: Store<P>,
    pub(crate) tables: Tables<P, I>,
    /// The next number of the history that no session has taken.
    history: AtomicU64,
}

/// Sets the columns of an address.
macro_rules! set_address {
    ($row:ident, $table:ident, $address:expr) => {
        $row.set($table.street_1, $address.street_1.as_bytes())?;
        $row.set($table.street_2, $address.street_2.as_bytes())?;
        $row.set($table.city, $address.city.as_bytes())?;
        $row.set($table.state, $address.state.as_bytes())?;
        $row.set($table.zip, $address.zip.as_bytes())?;
    };
}

/// The numbers of the history that a session takes at a time.
const NUMBERS: u64 = 1024;

/// The numbers of the history of run transactions begin with this one: those of the load are keys
/// of customers.
const FIRST: u64 = 1 << 30;

/// The state that a thread keeps from one transaction to the next.
#[derive(Clone, Debug)]
pub struct Session<N = ()> {
    /// The next number of the history, and the end of those that it has taken.
    next: u64,
    end: u64,
    /// The notes of the last transaction.
    pub(crate) notes: N,
    /// The ticket of the last transaction.
    ticket: Option<Ticket>,
}

impl Default for Session {
    fn default() -> Self {
        Self::noting(())
    }
}

impl<N> Session<N> {
    /// A session that takes these notes.
    pub(crate) fn noting(notes: N) -> Self {
        Self { next: 0, end: 0, notes, ticket: None }
    }
}

/// A part of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Some items.
    Items(RangeInclusive<u32>),
    /// The row of a warehouse.
    Warehouse(u32),
    /// The stock of some items in a warehouse.
    Stock(u32, RangeInclusive<u32>),
    /// A district with its customers, history and orders.
    District(u32, u8),
}

/// The items of a unit.
const ITEMS: u32 = 5000;

/// The rows of a transaction of the load, on average. Two larger transactions would nearly always
/// share one of the 65 536 locks for absent keys of a store with locks.
const BATCH: usize = 96;

impl Unit {
    /// The units of a load.
    pub fn all(scale: Scale) -> Vec<Self> {
        let items = scale.items();
        let parts = || {
            let begins = (1..=items).step_by(ITEMS as usize);
            begins.map(move |from| from..=(from + ITEMS - 1).min(items))
        };
        let mut units: Vec<Self> = parts().map(Self::Items).collect();
        for warehouse in 1..=scale.warehouses() {
            units.push(Self::Warehouse(warehouse));
            units.extend(parts().map(|items| Self::Stock(warehouse, items)));
            units.extend((1..=DISTRICTS).map(|district| Self::District(warehouse, district)));
        }
        units
    }
}

impl<P: Policy, I: Scannable + Search<Form = u64>> Database<P, I> {
    /// Creates the tables in a store without any.
    pub fn create_tables(store: &Store<P>, structures: &Structures<I>) -> Result<(), Error> {
        Tables::create(store, structures)
    }

    /// The database in a store that has the tables, which may be loaded.
    pub fn new(store: Store<P>) -> Result<Self, Error> {
        let tables = Tables::of(&store)?;
        let next = Self::next_number(&store, &tables)?;
        Ok(Self { store, tables, history: AtomicU64::new(next) })
    }

    /// The number behind those of the history. If the indexes cannot scan, the database is new.
    fn next_number(store: &Store<P>, tables: &Tables<P, I>) -> Result<u64, Error> {
        let history = &tables.history;
        if matches!(tables.by_name, Second::Lists(_)) {
            return Ok(FIRST);
        }
        let last = store.transact(|tx| {
            let last = tx.scan(&history.rows, ..).descending().limit(1).rows()?;
            last.first().map(|row| row.get(history.key)).transpose()
        })?;
        Ok(last.map_or(FIRST, |last: u64| FIRST.max(last + 1)))
    }

    /// The numbers of warehouses, items, and customers of a district, of a database that is loaded.
    pub fn scale(&self) -> (u32, u32, u32) {
        let tables = &self.tables;
        let warehouses = tables.warehouses.table.len();
        let districts = (warehouses * usize::from(DISTRICTS)).max(1);
        let customers = tables.customers.table.len() / districts;
        (warehouses as u32, tables.items.table.len() as u32, customers as u32)
    }

    /// The store.
    pub fn store(&self) -> &Store<P> {
        &self.store
    }

    /// Whether all five transactions can run: the indexes scan.
    pub fn scans(&self) -> bool {
        matches!(self.tables.by_name, Second::Range(_))
    }

    /// The memory of each table, and of its indexes.
    pub fn memory(&self) -> Vec<(String, Vec<MemoryUse>)> {
        let tables = self.tables.all();
        tables.into_iter().map(|table| (table.name().to_string(), table.memory())).collect()
    }

    /// A number for an entry of the history.
    pub(crate) fn number<N>(&self, session: &mut Session<N>) -> u64 {
        if session.next == session.end {
            // Relaxed: the numbers need only differ.
            session.next = self.history.fetch_add(NUMBERS, Ordering::Relaxed);
            session.end = session.next + NUMBERS;
        }
        session.next += 1;
        session.next - 1
    }

    /// Runs `body` until it is committed, with the notes of the session.
    pub(crate) fn transact<T, N: Notes>(
        &self,
        session: &mut Session<N>,
        body: impl Fn(&Tx<'_, P>, &mut N) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let notes = &mut session.notes;
        let (value, ticket) = self.store.transact_deferred(|tx| {
            notes.clear();
            body(tx, notes)
        })?;
        session.ticket = Some(ticket);
        Ok(value)
    }

    /// Waits until all transactions of the session are durable.
    pub fn wait<N>(&self, session: &Session<N>) -> Result<(), Failure> {
        session.ticket.map_or(Ok(()), |ticket| Ok(self.store.wait(ticket)?))
    }

    /// The numbers of the history that sessions have taken.
    pub(crate) fn numbers(&self) -> std::ops::Range<u64> {
        FIRST..self.history.load(Ordering::Relaxed)
    }

    /// Loads a part of the population. Returns the number of rows.
    pub fn load(&self, population: &Population, unit: &Unit) -> Result<u64, Failure> {
        match unit {
            Unit::Items(range) => {
                self.insert_all(1, population.items(range.clone()), |tx, row| self.item(tx, row))
            }
            Unit::Warehouse(warehouse) => self.load_warehouse(population, *warehouse),
            Unit::Stock(warehouse, range) => {
                let rows = population.stock(*warehouse, range.clone());
                self.insert_all(1, rows, |tx, row| self.stock(tx, row))
            }
            Unit::District(warehouse, district) => {
                self.load_district(population, (*warehouse, *district))
            }
        }
    }

    /// Inserts items of `each` rows, several in each transaction, and waits until they are durable.
    /// Returns the number of items.
    fn insert_all<T>(
        &self,
        each: usize,
        rows: impl Iterator<Item = T>,
        insert: impl Fn(&Tx<'_, P>, &T) -> Result<(), Error>,
    ) -> Result<u64, Failure> {
        let (mut rows, mut batch) = (rows, Vec::with_capacity(BATCH / each));
        let (mut count, mut last) = (0, None);
        loop {
            batch.clear();
            batch.extend(rows.by_ref().take(BATCH / each));
            if batch.is_empty() {
                last.map_or(Ok(()), |ticket| self.store.wait(ticket))?;
                return Ok(count);
            }
            let insert_all = |tx: &Tx<'_, P>| batch.iter().try_for_each(|row| insert(tx, row));
            last = Some(self.store.transact_deferred(insert_all)?.1);
            count += batch.len() as u64;
        }
    }

    fn load_warehouse(&self, population: &Population, warehouse: u32) -> Result<u64, Failure> {
        let (row, table) = (population.warehouse(warehouse), &self.tables.warehouses);
        self.insert_all(1, std::iter::once(row), |tx, of| {
            tx.insert(&table.table, |row| {
                row.set(table.key, u64::from(of.id))?;
                row.set(table.name, of.name.as_bytes())?;
                set_address!(row, table, of.address);
                row.set(table.tax, of.tax)?;
                row.set(table.ytd, of.ytd_cents)
            })
        })
    }

    fn load_district(
        &self,
        population: &Population,
        (warehouse, district): (u32, u8),
    ) -> Result<u64, Failure> {
        let (row, table) = (population.district(warehouse, district), &self.tables.districts);
        let mut count = self.insert_all(1, std::iter::once(row), |tx, of| {
            tx.insert(&table.table, |row| {
                row.set(table.key, keys::district(warehouse, district))?;
                row.set(table.name, of.name.as_bytes())?;
                set_address!(row, table, of.address);
                row.set(table.tax, of.tax)?;
                row.set(table.ytd, of.ytd_cents)?;
                row.set(table.next_order, of.next_order)
            })
        })?;
        let customers = population.customers(warehouse, district);
        count += 2 * self.insert_all(2, customers, |tx, (customer, history)| {
            self.customer(tx, customer)?;
            let key = keys::customer(keys::district(warehouse, district), customer.id);
            self.history(tx, key, history)
        })?;
        let mut lines = 0;
        let orders = population.orders(warehouse, district).inspect(|(order, _, is_new)| {
            lines += u64::from(order.line_count) + u64::from(*is_new);
        });
        count += self.insert_all(12, orders, |tx, (order, lines, is_new)| {
            self.order(tx, order, *is_new)?;
            lines.iter().try_for_each(|line| self.line(tx, line))
        })?;
        Ok(count + lines)
    }

    fn item(&self, tx: &Tx<'_, P>, of: &ItemRow) -> Result<(), Error> {
        let table = &self.tables.items;
        tx.insert(&table.table, |row| {
            row.set(table.key, u64::from(of.id))?;
            row.set(table.image, of.image)?;
            row.set(table.name, of.name.as_bytes())?;
            row.set(table.price, of.price_cents)?;
            row.set(table.data, of.data.as_bytes())
        })
    }

    fn stock(&self, tx: &Tx<'_, P>, of: &StockRow) -> Result<(), Error> {
        let table = &self.tables.stocks;
        tx.insert(&table.table, |row| {
            row.set(table.key, keys::stock(of.warehouse, of.item))?;
            row.set(table.quantity, of.quantity)?;
            row.set(table.ytd, of.ytd)?;
            row.set(table.orders, of.orders)?;
            row.set(table.remotes, of.remotes)?;
            row.set(table.district_infos, of.district_infos.concat().as_bytes())?;
            row.set(table.data, of.data.as_bytes())
        })
    }

    fn customer(&self, tx: &Tx<'_, P>, of: &CustomerRow) -> Result<(), Error> {
        let table = &self.tables.customers;
        let district = keys::district(of.warehouse, of.district);
        let name = keys::name(district, of.last);
        let name = match self.tables.by_name {
            Second::Range(_) => keys::name_with_customer(name, of.id),
            Second::Lists(_) => name,
        };
        tx.insert(&table.table, |row| {
            row.set(table.key, keys::customer(district, of.id))?;
            row.set(table.by_name, name)?;
            row.set(table.first, of.first.as_bytes())?;
            row.set(table.middle, of.middle.as_bytes())?;
            row.set(table.last, of.last.to_string().as_bytes())?;
            set_address!(row, table, of.address);
            row.set(table.phone, of.phone.as_bytes())?;
            row.set(table.since, of.since)?;
            row.set(table.credit, if of.credit_is_good { b"GC" } else { b"BC" })?;
            row.set(table.credit_limit, of.credit_limit_cents)?;
            row.set(table.discount, of.discount)?;
            row.set(table.balance, of.balance_cents)?;
            row.set(table.ytd_payment, of.ytd_payment_cents)?;
            row.set(table.payments, of.payments)?;
            row.set(table.deliveries, of.deliveries)?;
            row.set(table.data, of.data.as_bytes())
        })
    }

    pub(crate) fn history(&self, tx: &Tx<'_, P>, key: u64, of: &HistoryRow) -> Result<(), Error> {
        let table = &self.tables.history;
        let district = keys::district(of.customer_warehouse, of.customer_district);
        tx.insert(&table.table, |row| {
            row.set(table.key, key)?;
            row.set(table.customer, keys::customer(district, of.customer))?;
            row.set(table.district, keys::district(of.warehouse, of.district))?;
            row.set(table.date, of.date)?;
            row.set(table.amount, of.amount_cents)?;
            row.set(table.data, of.data.as_bytes())
        })
    }

    /// Inserts an order, and the entry that says that it is new.
    pub(crate) fn order(&self, tx: &Tx<'_, P>, of: &OrderRow, is_new: bool) -> Result<(), Error> {
        let table = &self.tables.orders;
        let district = keys::district(of.warehouse, of.district);
        let (key, customer) = (keys::order(district, of.id), keys::customer(district, of.customer));
        let by_customer = match self.tables.by_customer {
            Second::Range(_) => keys::customer_with_order(customer, of.id),
            Second::Lists(_) => customer,
        };
        tx.insert(&table.table, |row| {
            row.set(table.key, key)?;
            row.set(table.by_customer, by_customer)?;
            row.set(table.customer, customer)?;
            row.set(table.entry, of.entry)?;
            row.set(table.carrier, of.carrier.unwrap_or(0))?;
            row.set(table.lines, of.line_count)?;
            row.set(table.is_local, u8::from(of.is_local))
        })?;
        if is_new {
            let table = &self.tables.new_orders;
            tx.insert(&table.table, |row| {
                row.set(table.key, key)?;
                row.set(table.order, key)
            })?;
        }
        Ok(())
    }

    fn line(&self, tx: &Tx<'_, P>, of: &OrderLineRow) -> Result<(), Error> {
        let table = &self.tables.lines;
        let order = keys::order(keys::district(of.warehouse, of.district), of.order);
        tx.insert(&table.table, |row| {
            row.set(table.key, keys::line(order, of.number))?;
            row.set(table.item, of.item)?;
            row.set(table.supplier, of.supplier)?;
            row.set(table.delivery, of.delivery.unwrap_or(0))?;
            row.set(table.quantity, of.quantity)?;
            row.set(table.amount, of.amount_cents)?;
            row.set(table.district_info, of.district_info.as_bytes())
        })
    }
}
