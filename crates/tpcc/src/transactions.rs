//! Payments, order status, deliveries and stock levels (clauses 2.5 to 2.8).

use crate::database::{Database, Session};
use crate::keys;
use crate::orders::Entered;
use crate::tables::Second;
use silvics_store::index::{Scannable, Search};
use silvics_store::{Error, Policy, Row, Tx};
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
    /// Runs a transaction until it is committed or rolled back. `now` is the time in microseconds.
    pub fn run(
        &self,
        transaction: &Transaction,
        session: &mut Session,
        now: u64,
    ) -> Result<Outcome, Failure> {
        Ok(match transaction {
            Transaction::NewOrder(input) => match self.new_order(input, now) {
                Ok(entered) => Outcome::Entered(Box::new(entered)),
                Err(Failure::RolledBack) => Outcome::RolledBack,
                Err(failure) => return Err(failure),
            },
            Transaction::Payment(input) => Outcome::Paid(self.payment(input, session, now)?),
            Transaction::OrderStatus(input) => Outcome::Status(self.order_status(input)?),
            Transaction::Delivery(input) => Outcome::Delivered(self.delivery(*input, now)?),
            Transaction::StockLevel(input) => Outcome::Low(self.stock_level(input)?),
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
    pub fn payment(
        &self,
        input: &Payment,
        session: &mut Session,
        now: u64,
    ) -> Result<Paid, Failure> {
        let number = self.number(session);
        self.store.transact(|tx| self.pay(tx, input, number, now))
    }

    fn pay(&self, tx: &Tx<'_, P>, input: &Payment, number: u64, now: u64) -> Result<Paid, Failure> {
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
            Ok(row.set(table.ytd, row.get(table.ytd)? + amount)?)
        })?;
        if !found {
            return Err(missing("warehouse", key));
        }
        note(b"    ");
        let (table, key) =
            (&self.tables.districts, keys::district(input.warehouse, input.district));
        let found = tx.update(&table.rows, key, |row| -> Result<(), Failure> {
            note(row.get(table.name)?);
            Ok(row.set(table.ytd, row.get(table.ytd)? + amount)?)
        })?;
        if !found {
            return Err(missing("district", key));
        }
        let district = keys::district(input.customer_warehouse, input.customer_district);
        let customer = self.customer_of(tx, district, input.customer)?;
        let paid = self.pay_by(tx, input, customer)?;
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
    fn pay_by(&self, tx: &Tx<'_, P>, input: &Payment, customer: u64) -> Result<Paid, Failure> {
        let (table, amount) = (&self.tables.customers, i64::from(input.cents));
        let mut balance = 0;
        let found = tx.update(&table.rows, customer, |row| -> Result<(), Failure> {
            balance = row.get(table.balance)? - amount;
            row.set(table.balance, balance)?;
            row.set(table.ytd_payment, row.get(table.ytd_payment)? + amount)?;
            row.set(table.payments, row.get(table.payments)?.wrapping_add(1))?;
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
    pub fn order_status(&self, input: &OrderStatus) -> Result<LastOrder, Failure> {
        self.store.transact(|tx| {
            let district = keys::district(input.warehouse, input.district);
            let customer = self.customer_of(tx, district, input.customer)?;
            let (table, orders) = (&self.tables.customers, &self.tables.orders);
            let row = tx.get(&table.rows, customer)?;
            let balance = row.ok_or_else(|| missing("customer", customer))?.get(table.balance)?;
            let last = match &self.tables.by_customer {
                Second::Range(index) => {
                    let first = keys::customer_with_order(customer, 0);
                    let last = keys::customer_with_order(customer, keys::ORDERS_MAX);
                    tx.scan(index, first..=last).descending().limit(1).rows()?
                }
                Second::Lists(lists) => {
                    tx.find_all(lists, customer).descending().limit(1).rows()?
                }
            };
            let Some(last) = last.first() else { return Err(missing("orders", customer)) };
            let order = last.get(orders.key)?;
            let (mut lines, mut amount) = (0, 0);
            self.each_line(tx, (order, order), |row| {
                lines += 1;
                amount += row.get(self.tables.lines.amount)?;
                Ok(())
            })?;
            Ok(LastOrder {
                customer: keys::customer_number(customer),
                balance,
                order: keys::order_number(order),
                carrier: last.get(orders.carrier)?,
                lines,
                amount,
            })
        })
    }

    /// Calls `visit` with the lines of some orders.
    fn each_line(
        &self,
        tx: &Tx<'_, P>,
        (first, last): (u64, u64),
        mut visit: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if !self.scans() {
            return Err(Failure::NoScans);
        }
        let lines = keys::line(first, 0)..keys::line(last + 1, 0);
        tx.scan(&self.tables.lines.rows, lines).for_each(|row| {
            visit(&row)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Delivers the oldest new order of each district (clause 2.7).
    pub fn delivery(&self, input: Delivery, now: u64) -> Result<Delivered, Failure> {
        if !self.scans() {
            return Err(Failure::NoScans);
        }
        self.store.transact(|tx| {
            let mut delivered = Delivered::default();
            for (number, order) in (1..).zip(&mut delivered.orders) {
                *order = self.deliver(tx, keys::district(input.warehouse, number), input, now)?;
            }
            Ok(delivered)
        })
    }

    /// Delivers the oldest new order of a district, and returns its number.
    fn deliver(
        &self,
        tx: &Tx<'_, P>,
        district: u64,
        input: Delivery,
        now: u64,
    ) -> Result<Option<u32>, Failure> {
        let tables = &self.tables;
        let all = keys::order(district, 0)..keys::order(district + 1, 0);
        let oldest = tx.scan(&tables.new_orders.rows, all).limit(1).rows()?;
        let Some(oldest) = oldest.first() else { return Ok(None) };
        let key = oldest.get(tables.new_orders.key)?;
        tx.delete(&tables.new_orders.rows, key)?;
        let (orders, mut customer, mut count) = (&tables.orders, 0, 0);
        let found = tx.update(&orders.rows, key, |row| -> Result<(), Failure> {
            (customer, count) = (row.get(orders.customer)?, row.get(orders.lines)?);
            Ok(row.set(orders.carrier, input.carrier)?)
        })?;
        if !found {
            return Err(missing("orders", key));
        }
        let (lines, mut amount) = (&tables.lines, 0);
        for number in 1..=count {
            let key = keys::line(key, number);
            let found = tx.update(&lines.rows, key, |row| -> Result<(), Failure> {
                amount += row.get(lines.amount)?;
                Ok(row.set(lines.delivery, now)?)
            })?;
            if !found {
                return Err(missing("order_line", key));
            }
        }
        let customers = &tables.customers;
        let found = tx.update(&customers.rows, customer, |row| -> Result<(), Failure> {
            row.set(customers.balance, row.get(customers.balance)? + amount)?;
            Ok(row.set(customers.deliveries, row.get(customers.deliveries)?.wrapping_add(1))?)
        })?;
        if !found {
            return Err(missing("customer", customer));
        }
        Ok(Some(keys::order_number(key)))
    }

    /// Counts the items of the last 20 orders of which less than the threshold is in stock (clause
    /// 2.8).
    pub fn stock_level(&self, input: &StockLevel) -> Result<usize, Failure> {
        self.store.transact(|tx| {
            let tables = &self.tables;
            let key = keys::district(input.warehouse, input.district);
            let row = tx.get(&tables.districts.rows, key)?;
            let row = row.ok_or_else(|| missing("district", key))?;
            let next = row.get(tables.districts.next_order)?;
            let (first, last) = (next.saturating_sub(RECENT), next.saturating_sub(1));
            let mut items = Vec::new();
            self.each_line(tx, (keys::order(key, first), keys::order(key, last)), |row| {
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
