//! Payments, order status, deliveries and stock levels (clauses 2.5 to 2.8).

use crate::database::{Database, Session};
use crate::keys;
use crate::notes::{self, Notes, Part, Take};
use crate::orders::{Entered, stock};
use crate::tables::Second;
use silvics_store::index::{Scannable, Search};
use silvics_store::{Error, Policy, Row, Tx};
use silvics_testkit::serial::Direction;
use silvics_workload::tpcc::{
    Customer, DISTRICTS, Delivery, OrderStatus, Payment, StockLevel, Transaction,
};
use std::fmt;
use std::ops::ControlFlow;

/// The reason why a transaction has no result. The database is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A new order names an item that does not exist, as 1 % of them do.
    RolledBack,
    /// A row that must be there is missing: the database is not loaded, or not at this scale.
    Missing {
        /// The table.
        table: &'static str,
        /// The packed key.
        key: u64,
    },
    /// A district has no more numbers for orders.
    OrdersExhausted {
        /// The packed key of the district.
        district: u64,
    },
    /// The transaction scans, and the indexes cannot.
    NoScans,
    /// The store failed.
    Store(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RolledBack => f.write_str("the order names an item that does not exist"),
            Self::Missing { table, key } => write!(
                f,
                "the table `{table}` has no row with the key {key}: load the database at the scale \
                 of its terminals"
            ),
            Self::OrdersExhausted { district } => write!(
                f,
                "the district with the key {district} has used all numbers of orders below {}: \
                 load the database again",
                keys::ORDERS_MAX
            ),
            Self::NoScans => f.write_str(
                "this transaction scans, and the indexes cannot: choose a structure that scans, or \
                 run new orders and payments alone",
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

#[cold]
pub(crate) fn missing(table: &'static str, key: u64) -> Failure {
    Failure::Missing { table, key }
}

/// The result of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new order was entered.
    Entered(Box<Entered>),
    /// A new order was rolled back, because an item does not exist.
    RolledBack,
    /// A payment was booked.
    Paid(Paid),
    /// The last order of a customer.
    Status(LastOrder),
    /// Orders were delivered.
    Delivered(Delivered),
    /// The number of items of which little is in stock.
    Low(usize),
}

/// A payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    /// The number of the customer.
    pub customer: u32,
    /// The customer's balance, in cents.
    pub balance: i64,
}

/// The last order of a customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastOrder {
    /// The number of the customer.
    pub customer: u32,
    /// The customer's balance, in cents.
    pub balance: i64,
    /// The number of the order.
    pub order: u32,
    /// The carrier, or 0 if it is not delivered.
    pub carrier: u8,
    /// The number of its lines.
    pub lines: usize,
    /// The sum of their amounts, in cents.
    pub amount: i64,
}

/// The numbers of delivered orders, one for each district that had one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// By district.
    pub orders: [Option<u32>; DISTRICTS as usize],
}

/// The orders that a stock-level transaction looks at.
const RECENT: u32 = 20;

/// The text in front of the data of a customer with bad credit.
const DATA: usize = 500;

impl<P: Policy, I: Scannable + Search<Form = u64>> Database<P, I> {
    /// Runs a transaction until it is committed or rolled back, and durable. `now` is the time in
    /// microseconds.
    pub fn run<N: Notes>(
        &self,
        transaction: &Transaction,
        session: &mut Session<N>,
        now: u64,
    ) -> Result<Outcome, Failure> {
        let outcome = self.run_deferred(transaction, session, now)?;
        self.wait(session)?;
        Ok(outcome)
    }

    /// Runs a transaction until it is committed or rolled back. If the database has a log, do not
    /// pass the outcome on before [`Database::wait`] has returned.
    pub fn run_deferred<N: Notes>(
        &self,
        transaction: &Transaction,
        session: &mut Session<N>,
        now: u64,
    ) -> Result<Outcome, Failure> {
        Ok(match transaction {
            Transaction::NewOrder(input) => match self.new_order(input, session, now) {
                Ok(entered) => Outcome::Entered(Box::new(entered)),
                Err(Failure::RolledBack) => Outcome::RolledBack,
                Err(failure) => return Err(failure),
            },
            Transaction::Payment(input) => Outcome::Paid(self.payment(input, session, now)?),
            Transaction::OrderStatus(input) => Outcome::Status(self.order_status(input, session)?),
            Transaction::Delivery(input) => {
                Outcome::Delivered(self.delivery(*input, session, now)?)
            }
            Transaction::StockLevel(input) => Outcome::Low(self.stock_level(*input, session)?),
        })
    }

    /// The key of a customer. A last name stands for the customer in the middle of those who have
    /// it, in the order of their first names (clauses 2.5.2.2 and 2.6.2.2).
    fn customer_of(
        &self,
        tx: &Tx<'_, P>,
        district: u64,
        customer: Customer,
    ) -> Result<u64, Failure> {
        let name = match customer {
            Customer::Number(number) => return Ok(keys::customer(district, number)),
            Customer::LastName(name) => keys::name(district, name),
        };
        let rows: Vec<Row<'_>> = match &self.tables.by_name {
            Second::Range(index) => {
                let (first, end) =
                    (keys::name_with_customer(name, 0), keys::name_with_customer(name + 1, 0));
                tx.scan(index, first..end).rows()?
            }
            Second::Lists(lists) => tx.find_all(lists, name).rows()?,
        };
        let table = &self.tables.customers;
        let mut named = Vec::with_capacity(rows.len());
        for row in &rows {
            named.push((row.get(table.first)?, row.get(table.key)?));
        }
        named.sort_unstable();
        let middle = named.get(named.len().div_ceil(2).wrapping_sub(1));
        middle.map(|(_, key)| *key).ok_or_else(|| missing("customer", name))
    }

    /// Books a payment (clause 2.5).
    fn payment<N: Notes>(
        &self,
        input: &Payment,
        session: &mut Session<N>,
        now: u64,
    ) -> Result<Paid, Failure> {
        let number = self.number(session);
        self.transact(session, |tx, notes| self.pay(tx, input, (number, now), notes))
    }

    fn pay<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        input: &Payment,
        (number, now): (u64, u64),
        notes: &mut N,
    ) -> Result<Paid, Failure> {
        let amount = i64::from(input.cents);
        let (mut data, mut length) = ([0; 24], 0);
        let mut note = |name: &[u8]| {
            let to = &mut data[length..];
            let bytes = name.len().min(to.len());
            to[..bytes].copy_from_slice(&name[..bytes]);
            length += bytes;
        };
        let (table, key) = (&self.tables.warehouses, u64::from(input.warehouse));
        let found = tx.update(&table.rows, key, |row| -> Result<(), Failure> {
            note(row.get(table.name)?);
            notes.read(Part::WarehouseSum, key, || Ok(row.get(table.ytd)? as u64))?;
            row.set(table.ytd, row.get(table.ytd)? + amount)?;
            Ok(notes.write(Part::WarehouseSum, key, || Ok(row.get(table.ytd)? as u64))?)
        })?;
        if !found {
            return Err(missing("warehouse", key));
        }
        note(b"    ");
        let (table, key) =
            (&self.tables.districts, keys::district(input.warehouse, input.district));
        let found = tx.update(&table.rows, key, |row| -> Result<(), Failure> {
            note(row.get(table.name)?);
            notes.read(Part::DistrictSum, key, || Ok(row.get(table.ytd)? as u64))?;
            row.set(table.ytd, row.get(table.ytd)? + amount)?;
            Ok(notes.write(Part::DistrictSum, key, || Ok(row.get(table.ytd)? as u64))?)
        })?;
        if !found {
            return Err(missing("district", key));
        }
        let district = keys::district(input.customer_warehouse, input.customer_district);
        let customer = self.customer_of(tx, district, input.customer)?;
        let paid = self.pay_by(tx, input, customer, notes)?;
        let history = &self.tables.history;
        tx.insert(&history.table, |row| {
            row.set(history.key, number)?;
            row.set(history.customer, customer)?;
            row.set(history.district, key)?;
            row.set(history.date, now)?;
            row.set(history.amount, amount)?;
            row.set(history.data, &data[..length])
        })?;
        Ok(paid)
    }

    /// Changes the row of the customer who pays.
    fn pay_by<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        input: &Payment,
        customer: u64,
        notes: &mut N,
    ) -> Result<Paid, Failure> {
        let (table, amount) = (&self.tables.customers, i64::from(input.cents));
        let mut balance = 0;
        let found = tx.update(&table.rows, customer, |row| -> Result<(), Failure> {
            notes.read(Part::Customer, customer, || {
                notes::pair(row.get(table.payments), row.get(table.deliveries))
            })?;
            balance = row.get(table.balance)? - amount;
            row.set(table.balance, balance)?;
            row.set(table.ytd_payment, row.get(table.ytd_payment)? + amount)?;
            row.set(table.payments, row.get(table.payments)?.wrapping_add(1))?;
            notes.write(Part::Customer, customer, || {
                notes::pair(row.get(table.payments), row.get(table.deliveries))
            })?;
            if row.get(table.credit)? == b"BC" {
                let note = Note::of(input, customer);
                let (mut data, old) = ([0; DATA], row.get(table.data)?);
                let length = (note.length + old.len()).min(DATA);
                data[..note.length].copy_from_slice(&note.bytes[..note.length]);
                data[note.length..length].copy_from_slice(&old[..length - note.length]);
                row.set(table.data, &data[..length])?;
            }
            Ok(())
        })?;
        if !found {
            return Err(missing("customer", customer));
        }
        Ok(Paid { customer: keys::customer_number(customer), balance })
    }

    /// Reads the last order of a customer (clause 2.6).
    fn order_status<N: Notes>(
        &self,
        input: &OrderStatus,
        session: &mut Session<N>,
    ) -> Result<LastOrder, Failure> {
        self.transact(session, |tx, notes| {
            let district = keys::district(input.warehouse, input.district);
            let customer = self.customer_of(tx, district, input.customer)?;
            let table = &self.tables.customers;
            let row = tx.get(&table.rows, customer)?;
            let row = row.ok_or_else(|| missing("customer", customer))?;
            notes.read(Part::Customer, customer, || {
                notes::pair(row.get(table.payments), row.get(table.deliveries))
            })?;
            let balance = row.get(table.balance)?;
            let (last, carrier) = self.last_order(tx, customer, notes)?;
            let (mut lines, mut amount) = (0, 0);
            self.each_line(tx, (last, last), notes, |row| {
                lines += 1;
                amount += row.get(self.tables.lines.amount)?;
                Ok(())
            })?;
            Ok(LastOrder {
                customer: keys::customer_number(customer),
                balance,
                order: keys::order_number(last),
                carrier,
                lines,
                amount,
            })
        })
    }

    /// The key of the last order of a customer, and its carrier.
    fn last_order<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        customer: u64,
        notes: &mut N,
    ) -> Result<(u64, u8), Failure> {
        let all = (
            keys::customer_with_order(customer, 0),
            keys::customer_with_order(customer, keys::ORDERS_MAX),
        );
        let last = match &self.tables.by_customer {
            Second::Range(index) => tx.scan(index, all.0..=all.1).descending().limit(1).rows()?,
            Second::Lists(lists) => tx.find_all(lists, customer).descending().limit(1).rows()?,
        };
        let Some(last) = last.first() else { return Err(missing("orders", customer)) };
        let orders = &self.tables.orders;
        let (order, carrier) = (last.get(orders.key)?, last.get(orders.carrier)?);
        let entry = keys::customer_with_order(customer, keys::order_number(order));
        let only = Some(Direction::Descending);
        notes.scanned(Part::OfCustomer, all, only, std::iter::once((entry, 0)));
        notes.read(Part::Order, order, || Ok(u64::from(carrier)))?;
        Ok((order, carrier))
    }

    /// Calls `visit` with the lines of some orders.
    fn each_line<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        (first, last): (u64, u64),
        notes: &mut N,
        mut visit: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if !self.scans() {
            return Err(Failure::NoScans);
        }
        let (table, mut found) = (&self.tables.lines, Vec::new());
        let (from, end) = (keys::line(first, 0), keys::line(last + 1, 0));
        tx.scan(&table.rows, from..end).for_each(|row| {
            if N::TAKEN {
                found.push((row.get(table.key)?, row.get(table.delivery)?));
            }
            visit(&row)?;
            Ok::<_, Failure>(ControlFlow::Continue(()))
        })?;
        notes.scanned(Part::Line, (from, end - 1), None, found.into_iter());
        Ok(())
    }

    /// Delivers the oldest new order of each district (clause 2.7).
    fn delivery<N: Notes>(
        &self,
        input: Delivery,
        session: &mut Session<N>,
        now: u64,
    ) -> Result<Delivered, Failure> {
        if !self.scans() {
            return Err(Failure::NoScans);
        }
        self.transact(session, |tx, notes| {
            let mut delivered = Delivered::default();
            for (number, order) in (1..).zip(&mut delivered.orders) {
                let district = keys::district(input.warehouse, number);
                *order = self.deliver(tx, district, (input, now), notes)?;
            }
            Ok(delivered)
        })
    }

    /// Delivers the oldest new order of a district, and returns its number.
    fn deliver<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        district: u64,
        (input, now): (Delivery, u64),
        notes: &mut N,
    ) -> Result<Option<u32>, Failure> {
        let table = &self.tables.new_orders;
        let (from, end) = (keys::order(district, 0), keys::order(district + 1, 0));
        let oldest = tx.scan(&table.rows, from..end).limit(1).rows()?;
        let oldest = oldest.first().map(|row| row.get(table.key)).transpose()?;
        let found = oldest.into_iter().map(|key| (key, 0));
        notes.scanned(Part::NewOrder, (from, end - 1), Some(Direction::Ascending), found);
        let Some(key) = oldest else { return Ok(None) };
        tx.delete(&table.rows, key)?;
        notes.deleted(Part::NewOrder, key);
        let (orders, mut customer, mut count) = (&self.tables.orders, 0, 0);
        let found = tx.update(&orders.rows, key, |row| -> Result<(), Failure> {
            (customer, count) = (row.get(orders.customer)?, row.get(orders.lines)?);
            notes.read(Part::Order, key, || Ok(u64::from(row.get(orders.carrier)?)))?;
            row.set(orders.carrier, input.carrier)?;
            Ok(notes.write(Part::Order, key, || Ok(u64::from(input.carrier)))?)
        })?;
        if !found {
            return Err(missing("orders", key));
        }
        let amount = self.deliver_lines(tx, (key, count), now, notes)?;
        let customers = &self.tables.customers;
        let found = tx.update(&customers.rows, customer, |row| -> Result<(), Failure> {
            notes.read(Part::Customer, customer, || {
                notes::pair(row.get(customers.payments), row.get(customers.deliveries))
            })?;
            row.set(customers.balance, row.get(customers.balance)? + amount)?;
            row.set(customers.deliveries, row.get(customers.deliveries)?.wrapping_add(1))?;
            Ok(notes.write(Part::Customer, customer, || {
                notes::pair(row.get(customers.payments), row.get(customers.deliveries))
            })?)
        })?;
        if !found {
            return Err(missing("customer", customer));
        }
        Ok(Some(keys::order_number(key)))
    }

    /// Delivers the lines of an order, and returns the sum of their amounts.
    fn deliver_lines<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        (order, count): (u64, u8),
        now: u64,
        notes: &mut N,
    ) -> Result<i64, Failure> {
        let (lines, mut amount) = (&self.tables.lines, 0);
        for number in 1..=count {
            let key = keys::line(order, number);
            let found = tx.update(&lines.rows, key, |row| -> Result<(), Failure> {
                amount += row.get(lines.amount)?;
                notes.read(Part::Line, key, || row.get(lines.delivery))?;
                row.set(lines.delivery, now)?;
                Ok(notes.write(Part::Line, key, || Ok(now))?)
            })?;
            if !found {
                return Err(missing("order_line", key));
            }
        }
        Ok(amount)
    }

    /// Counts the items of the last 20 orders of which less than the threshold is in stock (clause
    /// 2.8).
    fn stock_level<N: Notes>(
        &self,
        input: StockLevel,
        session: &mut Session<N>,
    ) -> Result<usize, Failure> {
        self.transact(session, |tx, notes| {
            let tables = &self.tables;
            let key = keys::district(input.warehouse, input.district);
            let row = tx.get(&tables.districts.rows, key)?;
            let row = row.ok_or_else(|| missing("district", key))?;
            let next = row.get(tables.districts.next_order)?;
            notes.read(Part::NextOrder, key, || Ok(u64::from(next)))?;
            let (first, last) = (next.saturating_sub(RECENT), next.saturating_sub(1));
            let mut items = Vec::new();
            self.each_line(tx, (keys::order(key, first), keys::order(key, last)), notes, |row| {
                items.push(row.get(tables.lines.item)?);
                Ok(())
            })?;
            items.sort_unstable();
            items.dedup();
            let mut low = 0;
            for item in items {
                let key = keys::stock(input.warehouse, item);
                let row = tx.get(&tables.stocks.rows, key)?;
                let row = row.ok_or_else(|| missing("stock", key))?;
                let left = row.get(tables.stocks.quantity)?;
                notes.read(Part::Stock, key, || stock(row.get(tables.stocks.orders), left))?;
                low += usize::from(left < i32::from(input.threshold));
            }
            Ok(low)
        })
    }
}

/// The note about a payment that is put in front of the data of a customer with bad credit.
struct Note {
    bytes: [u8; 64],
    length: usize,
}

impl fmt::Write for Note {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let to = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

impl Note {
    fn of(input: &Payment, customer: u64) -> Self {
        use fmt::Write as _;
        let mut note = Self { bytes: [0; 64], length: 0 };
        let customer = keys::customer_number(customer);
        let (w, d) = (input.customer_warehouse, input.customer_district);
        // 64 bytes are enough for all of them.
        let _ = write!(
            note,
            "{customer} {d} {w} {} {} {}.{:02}|",
            input.district,
            input.warehouse,
            input.cents / 100,
            input.cents % 100
        );
        note
    }
}
