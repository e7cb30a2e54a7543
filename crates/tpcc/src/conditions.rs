//! The consistency conditions 1 to 12 (clause 3.3.2), on a database that no transaction uses.
//!
//! # Method
//! Rows are looked up by their keys, which are known: orders by the numbers below that of the next
//! one, lines by the numbers of their order, the history by the customers of the load and by the
//! numbers that sessions have taken. So the conditions can be checked over indexes that cannot
//! scan. The rows of each table are counted: a row that has none of these keys is a violation, too.
//!
//! # Complexity
//! One lookup for each key; memory for each customer, and for each stock of an item that was
//! ordered.

use crate::database::Database;
use crate::keys;
use crate::transactions::{Failure, missing};
use silvics_store::index::{Scannable, Search};
use silvics_store::{Error, Index, Policy, Row, Table, Tx};
use silvics_workload::tpcc::{DISTRICTS, LINES, Scale};
use std::collections::HashMap;
use std::fmt;

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its number in the specification. The specification has none for the number of rows, which is
    /// 0 here, and for the stock, which is 13.
    pub number: u8,
    /// The statement that must hold.
    pub text: &'static str,
}

/// The conditions, in the order of their numbers.
const CONDITIONS: [Condition; 14] = {
    const fn condition(number: u8, text: &'static str) -> Condition {
        Condition { number, text }
    }
    [
        condition(0, "each row has a key that transactions give"),
        condition(1, "W_YTD is the sum of D_YTD"),
        condition(2, "D_NEXT_O_ID follows the greatest O_ID and NO_O_ID"),
        condition(3, "the NO_O_ID of a district have no gap"),
        condition(4, "the sum of O_OL_CNT is the number of order lines of a district"),
        condition(5, "an order has no carrier if, and only if, it is a new order"),
        condition(6, "O_OL_CNT is the number of lines of an order"),
        condition(7, "a line has no delivery date if, and only if, its order has no carrier"),
        condition(8, "W_YTD is the sum of H_AMOUNT"),
        condition(9, "D_YTD is the sum of H_AMOUNT"),
        condition(10, "C_BALANCE is the sum of delivered OL_AMOUNT less that of H_AMOUNT"),
        condition(11, "as many orders as were delivered, at the load or since, are not new"),
        condition(12, "C_BALANCE and C_YTD_PAYMENT sum to the delivered OL_AMOUNT"),
        condition(
            13,
            "S_ORDER_CNT, S_REMOTE_CNT and S_YTD are those of order lines since the load",
        ),
    ]
};

impl Condition {
    /// All conditions.
    pub fn all() -> &'static [Self] {
        &CONDITIONS
    }
}

/// A violation of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The condition.
    pub condition: Condition,
    /// The place at which it does not hold, with both sides.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { number, text } = self.condition;
        write!(f, "condition {number} ({text}) does not hold: {}", self.found)
    }
}

/// The most violations of one condition that are kept.
const KEPT: usize = 3;

/// The violations so far.
#[derive(Default)]
struct Found {
    all: Vec<Violation>,
    counts: [usize; CONDITIONS.len()],
}

impl Found {
    /// Notes a violation, unless the two sides are equal.
    fn compare<T: PartialEq + fmt::Debug>(
        &mut self,
        number: u8,
        place: impl fmt::Display,
        (left, right): (T, T),
    ) {
        if left != right {
            self.note(number, format_args!("{place}: {left:?} and {right:?}"));
        }
    }

    #[cold]
    fn note(&mut self, number: u8, found: impl fmt::Display) {
        let at = usize::from(number);
        self.counts[at] += 1;
        if self.counts[at] <= KEPT {
            let condition = CONDITIONS[at];
            self.all.push(Violation { condition, found: found.to_string() });
        }
    }
}

/// Sums of amounts by customer.
#[derive(Clone, Copy, Debug, Default)]
struct OfCustomer {
    delivered: i64,
    paid: i64,
}

/// The sums of a database.
struct Sums {
    scale: Scale,
    customers: HashMap<u64, OfCustomer>,
    /// The orders, remote orders and quantities since the load, by the key of the stock.
    stocks: HashMap<u64, [u32; 3]>,
    /// The amounts of the history, by district.
    paid: HashMap<u64, i64>,
    /// The rows that were found, by table.
    orders: usize,
    lines: usize,
    new_orders: usize,
    history: usize,
}

/// The counts of the rows of a district.
#[derive(Default)]
struct OfDistrict {
    orders: usize,
    new_orders: Vec<u32>,
    /// The sum of `O_OL_CNT`, and the number of lines.
    line_counts: usize,
    lines: usize,
    last_order: u32,
}

/// The lookups of one transaction.
const BATCH: usize = 256;

impl<P: Policy, I: Scannable + Search<Form = u64>> Database<P, I> {
    /// Checks all conditions. Returns the violations, at most a few of each condition. No
    /// transaction may run at the same time.
    pub fn check(&self, scale: Scale) -> Result<Vec<Violation>, Failure> {
        let mut found = Found::default();
        let mut sums = Sums {
            scale,
            customers: HashMap::new(),
            stocks: HashMap::new(),
            paid: HashMap::new(),
            orders: 0,
            lines: 0,
            new_orders: 0,
            history: 0,
        };
        self.sum_history(&mut sums)?;
        for warehouse in 1..=scale.warehouses() {
            self.check_warehouse(warehouse, &mut sums, &mut found)?;
        }
        self.check_stocks(&sums, &mut found)?;
        self.count_rows(&sums, &mut found);
        Ok(found.all)
    }

    /// Calls `visit` with the rows of some keys that are there.
    pub(crate) fn each<V>(
        &self,
        index: &Index<P, u64, I>,
        keys: impl Iterator<Item = u64>,
        mut visit: V,
    ) -> Result<(), Failure>
    where
        V: FnMut(u64, Option<Row<'_>>) -> Result<(), Error>,
    {
        let mut keys = keys;
        loop {
            let batch: Vec<u64> = keys.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let tx = self.store.begin();
            each_of(&tx, index, &batch, &mut visit)?;
            tx.commit()?;
        }
    }

    fn sum_history(&self, sums: &mut Sums) -> Result<(), Failure> {
        let scale = sums.scale;
        let districts = (1..=scale.warehouses())
            .flat_map(|warehouse| (1..=DISTRICTS).map(move |d| keys::district(warehouse, d)));
        let loaded = districts.flat_map(|district| {
            (1..=scale.customers()).map(move |customer| keys::customer(district, customer))
        });
        let table = &self.tables.history;
        self.each(&table.rows, loaded.chain(self.numbers()), |_, row| {
            let Some(row) = row else { return Ok(()) };
            let amount = row.get(table.amount)?;
            sums.history += 1;
            sums.customers.entry(row.get(table.customer)?).or_default().paid += amount;
            *sums.paid.entry(row.get(table.district)?).or_default() += amount;
            Ok(())
        })
    }

    fn check_warehouse(
        &self,
        warehouse: u32,
        sums: &mut Sums,
        found: &mut Found,
    ) -> Result<(), Failure> {
        let key = u64::from(warehouse);
        let table = &self.tables.warehouses;
        let mut ytd = None;
        self.each(&table.rows, std::iter::once(key), |_, row| {
            ytd = row.map(|row| row.get(table.ytd)).transpose()?;
            Ok(())
        })?;
        let ytd = ytd.ok_or_else(|| missing("warehouse", key))?;
        let (mut of_districts, mut paid) = (0, 0);
        for number in 1..=DISTRICTS {
            let district = keys::district(warehouse, number);
            of_districts += self.check_district((warehouse, number), district, sums, found)?;
            paid += sums.paid.get(&district).copied().unwrap_or(0);
        }
        found.compare(1, format_args!("warehouse {warehouse}"), (ytd, of_districts));
        found.compare(8, format_args!("warehouse {warehouse}"), (ytd, paid));
        Ok(())
    }

    /// Checks a district, and returns its `D_YTD`.
    fn check_district(
        &self,
        (warehouse, number): (u32, u8),
        district: u64,
        sums: &mut Sums,
        found: &mut Found,
    ) -> Result<i64, Failure> {
        let table = &self.tables.districts;
        let mut row_of = None;
        self.each(&table.rows, std::iter::once(district), |_, row| {
            let values =
                |row: Row<'_>| Ok::<_, Error>((row.get(table.ytd)?, row.get(table.next_order)?));
            row_of = row.map(values).transpose()?;
            Ok(())
        })?;
        let (ytd, next) = row_of.ok_or_else(|| missing("district", district))?;
        let place = format!("district {number} of warehouse {warehouse}");
        let of = self.check_orders((district, &place), next, sums, found)?;
        found.compare(2, format_args!("{place}, orders"), (next, of.last_order + 1));
        if let (Some(first), Some(last)) = (of.new_orders.first(), of.new_orders.last()) {
            found.compare(2, format_args!("{place}, new orders"), (next, last + 1));
            let span = (last - first) as usize + 1;
            found.compare(3, &place, (span, of.new_orders.len()));
        }
        found.compare(4, &place, (of.line_counts, of.lines));
        let paid = sums.paid.get(&district).copied().unwrap_or(0);
        found.compare(9, &place, (ytd, paid));
        let delivered = self.check_customers((district, &place), sums, found)?;
        let loaded = sums.scale.delivered_orders() as usize;
        let not_new = of.orders - of.new_orders.len().min(of.orders);
        found.compare(11, &place, (not_new, loaded + delivered));
        sums.orders += of.orders;
        sums.new_orders += of.new_orders.len();
        sums.lines += of.lines;
        Ok(ytd)
    }

    /// Reads the orders of a district, with their lines.
    fn check_orders(
        &self,
        (district, place): (u64, &str),
        next: u32,
        sums: &mut Sums,
        found: &mut Found,
    ) -> Result<OfDistrict, Failure> {
        let mut of = OfDistrict::default();
        let new_orders = &self.tables.new_orders;
        let all = || (1..=next).map(|order| keys::order(district, order));
        self.each(&new_orders.rows, all(), |key, row| {
            of.new_orders.extend(row.map(|_| keys::order_number(key)));
            Ok(())
        })?;
        let mut orders = Vec::new();
        let table = &self.tables.orders;
        self.each(&table.rows, all(), |key, row| {
            let Some(row) = row else { return Ok(()) };
            let (carrier, lines) = (row.get(table.carrier)?, row.get(table.lines)?);
            orders.push((key, carrier, lines, row.get(table.customer)?));
            Ok(())
        })?;
        let lines = &self.tables.lines;
        for &(key, carrier, count, customer) in &orders {
            let order = keys::order_number(key);
            let place = || format!("order {order} of {place}");
            of.orders += 1;
            of.last_order = of.last_order.max(order);
            let is_new = of.new_orders.binary_search(&order).is_ok();
            found.compare(5, place(), (carrier == 0, is_new));
            let (mut there, mut amount, mut pending) = (0, 0, 0);
            let numbers = (0..=LINES as u8).map(|number| keys::line(key, number));
            self.each(&lines.rows, numbers, |_, row| {
                let Some(row) = row else { return Ok(()) };
                there += 1;
                if order > sums.scale.customers() {
                    let supplier = row.get(lines.supplier)?;
                    let key = keys::stock(supplier, row.get(lines.item)?);
                    let stock = sums.stocks.entry(key).or_default();
                    stock[0] += 1;
                    stock[1] += u32::from(keys::district(supplier, 0) != district & !0xF);
                    stock[2] += u32::from(row.get(lines.quantity)?);
                }
                let is_pending = row.get(lines.delivery)? == 0;
                pending += usize::from(is_pending);
                if !is_pending {
                    amount += row.get(lines.amount)?;
                }
                Ok(())
            })?;
            of.lines += there;
            of.line_counts += usize::from(count);
            found.compare(6, place(), (usize::from(count), there));
            let without = if carrier == 0 { there } else { 0 };
            found.compare(7, place(), (pending, without));
            sums.customers.entry(customer).or_default().delivered += amount;
        }
        Ok(of)
    }

    /// Checks the customers of a district. Returns how many orders of them were delivered since the
    /// load.
    fn check_customers(
        &self,
        (district, place): (u64, &str),
        sums: &Sums,
        found: &mut Found,
    ) -> Result<usize, Failure> {
        let table = &self.tables.customers;
        let mut delivered = 0;
        let all = (1..=sums.scale.customers()).map(|customer| keys::customer(district, customer));
        self.each(&table.rows, all, |key, row| {
            let number = keys::customer_number(key);
            let Some(row) = row else {
                found.note(0, format_args!("customer {number} of {place} is missing"));
                return Ok(());
            };
            let of = sums.customers.get(&key).copied().unwrap_or_default();
            let (balance, paid) = (row.get(table.balance)?, row.get(table.ytd_payment)?);
            let place = format_args!("customer {number} of {place}");
            found.compare(10, place, (balance, of.delivered - of.paid));
            found.compare(12, place, (balance + paid, of.delivered));
            delivered += row.get(table.deliveries)? as usize;
            Ok(())
        })?;
        Ok(delivered)
    }

    /// Compares the stock with the order lines.
    fn check_stocks(&self, sums: &Sums, found: &mut Found) -> Result<(), Failure> {
        let table = &self.tables.stocks;
        for warehouse in 1..=sums.scale.warehouses() {
            let all = (1..=sums.scale.items()).map(|item| keys::stock(warehouse, item));
            self.each(&table.rows, all, |key, row| {
                let place = format_args!("the stock with the key {key}");
                let Some(row) = row else {
                    found.note(0, format_args!("{place} is missing"));
                    return Ok(());
                };
                let of_lines = sums.stocks.get(&key).copied().unwrap_or_default();
                let counts = [table.orders, table.remotes, table.ytd];
                let [orders, remotes, ytd] = counts.map(|column| row.get(column));
                found.compare(13, place, ([orders?, remotes?, ytd?], of_lines));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Compares the rows of each table with those that were found by their keys.
    fn count_rows(&self, sums: &Sums, found: &mut Found) {
        let tables = &self.tables;
        let (warehouses, items) = (sums.scale.warehouses() as usize, sums.scale.items() as usize);
        let districts = warehouses * usize::from(DISTRICTS);
        let customers = districts * sums.scale.customers() as usize;
        let mut compare = |table: &Table<P>, rows: usize| {
            let parts = table.memory();
            for part in parts.iter().filter(|part| part.entries != rows) {
                let (table, name, has) = (table.name(), &part.name, part.entries);
                found.note(0, format_args!("{table}, {name}: {has} entries for {rows} rows"));
            }
        };
        compare(&tables.warehouses.table, warehouses);
        compare(&tables.districts.table, districts);
        compare(&tables.customers.table, customers);
        compare(&tables.history.table, sums.history);
        compare(&tables.new_orders.table, sums.new_orders);
        compare(&tables.orders.table, sums.orders);
        compare(&tables.lines.table, sums.lines);
        compare(&tables.items.table, items);
        compare(&tables.stocks.table, warehouses * items);
    }
}

/// Calls `visit` with the rows of some keys.
fn each_of<'t, P: Policy, I: Search<Form = u64>>(
    tx: &'t Tx<'_, P>,
    index: &Index<P, u64, I>,
    keys: &[u64],
    visit: &mut impl FnMut(u64, Option<Row<'t>>) -> Result<(), Error>,
) -> Result<(), Failure> {
    let mut rows = vec![None; keys.len()];
    tx.get_many(index, keys, &mut rows)?;
    for (key, row) in keys.iter().zip(rows) {
        visit(*key, row)?;
    }
    Ok(())
}
