//! New orders (clause 2.4).

use crate::database::{Database, Session};
use crate::keys;
use crate::notes::{self, Notes, Part, Take};
use crate::tables::DISTRICT_INFO;
use crate::transactions::{Failure, missing};
use silvics_store::index::{Scannable, Search};
use silvics_store::{Error, Policy, Tx};
use silvics_workload::tpcc::{LINES, Line, NewOrder, OrderRow, UNUSED_ITEM};

/// A line of an order, as it is shown to the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnteredLine {
    /// The price of the item, in cents.
    pub price: i64,
    /// The amount, in cents.
    pub amount: i64,
    /// The quantity that is left in stock.
    pub left: i32,
    /// Whether both the item and the stock are original goods.
    pub is_brand: bool,
}

/// An order, as it is shown to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The number of the order.
    pub order: u32,
    /// The amount of all lines with discount and taxes, in cents.
    pub total: i64,
    /// The lines, of which the first `count` ones count.
    pub lines: [EnteredLine; LINES],
    /// The number of lines.
    pub count: usize,
}

/// A rate of 1.
const ONE: i64 = 10_000;

/// The word by which original goods are known.
const ORIGINAL: &[u8] = b"ORIGINAL";

fn is_original(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|part| part == ORIGINAL)
}

/// The version of a stock: its orders, and the quantity.
pub(crate) fn stock(orders: Result<u32, Error>, quantity: i32) -> Result<u64, Error> {
    notes::pair(orders, Ok(quantity as u32))
}

/// The facts that a new order has read before its lines.
struct Head {
    order: u64,
    number: u32,
    /// The factors of the amount.
    discounted: i64,
    taxed: i64,
}

impl<P: Policy, I: Scannable + Search<Form = u64>> Database<P, I> {
    /// Enters an order. Fails with [`Failure::RolledBack`] if an item does not exist; then nothing
    /// has changed.
    pub(crate) fn new_order<N: Notes>(
        &self,
        input: &NewOrder,
        session: &mut Session<N>,
        now: u64,
    ) -> Result<Entered, Failure> {
        self.transact(session, |tx, notes| self.enter(tx, input, now, notes))
    }

    fn enter<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        input: &NewOrder,
        now: u64,
        notes: &mut N,
    ) -> Result<Entered, Failure> {
        let head = self.head(tx, input, now, notes)?;
        let lines = input.lines();
        let mut keys = [0; LINES];
        for (key, line) in keys.iter_mut().zip(lines) {
            *key = u64::from(line.item);
        }
        let mut items = [None; LINES];
        let items = &mut items[..lines.len()];
        tx.get_many(&self.tables.items.rows, &keys[..lines.len()], items)?;
        let mut entered = [EnteredLine::default(); LINES];
        for (at, (line, item)) in lines.iter().zip(&*items).enumerate() {
            let Some(item) = item else {
                let is_unused = line.item == UNUSED_ITEM;
                let key = u64::from(line.item);
                return Err(if is_unused { Failure::RolledBack } else { missing("item", key) });
            };
            let (left, is_original_stock, info) = self.take(tx, input, line, notes)?;
            let price = item.get(self.tables.items.price)?;
            let amount = price * i64::from(line.quantity);
            let is_brand = is_original_stock && is_original(item.get(self.tables.items.data)?);
            entered[at] = EnteredLine { price, amount, left, is_brand };
            let (table, key) = (&self.tables.lines, keys::line(head.order, at as u8 + 1));
            notes.inserted(Part::Line, key);
            tx.insert(&table.table, |row| {
                row.set(table.key, key)?;
                row.set(table.item, line.item)?;
                row.set(table.supplier, line.supplier)?;
                row.set(table.quantity, line.quantity)?;
                row.set(table.amount, amount)?;
                row.set(table.district_info, &info)
            })?;
        }
        let sum: i64 = entered.iter().map(|line| line.amount).sum();
        let total = sum * head.discounted * head.taxed / (ONE * ONE);
        Ok(Entered { order: head.number, total, lines: entered, count: lines.len() })
    }

    /// Reads warehouse and customer, takes the number of the order from the district, and inserts
    /// the order.
    fn head<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        input: &NewOrder,
        now: u64,
        notes: &mut N,
    ) -> Result<Head, Failure> {
        let tables = &self.tables;
        let district = keys::district(input.warehouse, input.district);
        let warehouse = u64::from(input.warehouse);
        let row = tx.get(&tables.warehouses.rows, warehouse)?;
        let row = row.ok_or_else(|| missing("warehouse", warehouse))?;
        let warehouse_tax = row.get(tables.warehouses.tax)?;
        let customer = keys::customer(district, input.customer);
        let row = tx.get(&tables.customers.rows, customer)?;
        let row = row.ok_or_else(|| missing("customer", customer))?;
        let discount = row.get(tables.customers.discount)?;
        let (table, mut number, mut tax) = (&tables.districts, 0, 0);
        let found = tx.update(&table.rows, district, |row| -> Result<(), Failure> {
            (number, tax) = (row.get(table.next_order)?, row.get(table.tax)?);
            if number == keys::ORDERS_MAX {
                return Err(Failure::OrdersExhausted { district });
            }
            notes.read(Part::NextOrder, district, || Ok(u64::from(number)))?;
            row.set(table.next_order, number + 1)?;
            Ok(notes.write(Part::NextOrder, district, || Ok(u64::from(number + 1)))?)
        })?;
        if !found {
            return Err(missing("district", district));
        }
        let order = OrderRow {
            warehouse: input.warehouse,
            district: input.district,
            id: number,
            customer: input.customer,
            entry: now,
            carrier: None,
            line_count: input.lines().len() as u8,
            is_local: input.is_local(),
        };
        let key = keys::order(district, number);
        notes.inserted(Part::Order, key);
        notes.inserted(Part::NewOrder, key);
        notes.inserted(Part::OfCustomer, keys::customer_with_order(customer, number));
        self.order(tx, &order, true)?;
        Ok(Head {
            order: key,
            number,
            discounted: ONE - i64::from(discount),
            taxed: ONE + i64::from(warehouse_tax) + i64::from(tax),
        })
    }

    /// Takes the goods of a line from the stock. Returns what is left, whether the goods are
    /// original, and the text of the district.
    fn take<N: Notes>(
        &self,
        tx: &Tx<'_, P>,
        input: &NewOrder,
        line: &Line,
        notes: &mut N,
    ) -> Result<(i32, bool, [u8; DISTRICT_INFO]), Failure> {
        let (table, key) = (&self.tables.stocks, keys::stock(line.supplier, line.item));
        let (mut left, mut original, mut info) = (0, false, [0; DISTRICT_INFO]);
        let found = tx.update(&table.rows, key, |row| -> Result<(), Failure> {
            let before = row.get(table.quantity)?;
            notes.read(Part::Stock, key, || stock(row.get(table.orders), before))?;
            left = before - i32::from(line.quantity);
            if left < 10 {
                left += 91;
            }
            row.set(table.quantity, left)?;
            row.set(table.ytd, row.get(table.ytd)?.wrapping_add(u32::from(line.quantity)))?;
            row.set(table.orders, row.get(table.orders)?.wrapping_add(1))?;
            notes.write(Part::Stock, key, || stock(row.get(table.orders), left))?;
            if line.supplier != input.warehouse {
                row.set(table.remotes, row.get(table.remotes)?.wrapping_add(1))?;
            }
            original = is_original(row.get(table.data)?);
            let from = DISTRICT_INFO * (usize::from(input.district) - 1);
            if let Some(part) = row.get(table.district_infos)?.get(from..from + DISTRICT_INFO) {
                info.copy_from_slice(part);
            }
            Ok(())
        })?;
        if found { Ok((left, original, info)) } else { Err(missing("stock", key)) }
    }
}
