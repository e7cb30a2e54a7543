//! The population of a database before a run, as clause 4.3.3.1 defines it.

use super::draws::{
    Constants, LastName, alphanumerics, digits, letters, percent, shuffle, uniform,
};
use super::rows::{
    Address, CustomerRow, DistrictRow, HistoryRow, ItemRow, OrderLineRow, OrderRow, StockRow,
    WarehouseRow,
};
use super::{DISTRICTS, LINES, Scale};
use crate::bijection::mix;
use crate::choice::label;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::RangeInclusive;

/// The one payment of each customer, in cents.
const PAYMENT_CENTS: i64 = 1000;
const CREDIT_LIMIT_CENTS: i64 = 5_000_000;
/// How many of its item each line orders.
const QUANTITY: u8 = 5;
/// The length of the information that a stock has for a district.
const DISTRICT_INFO: usize = 24;
const ORIGINAL: &str = "ORIGINAL";

/// The rows with which a run begins.
///
/// Each row depends only on the scale, the seed, the time and the row's primary key. A payment has
/// no key of its own, and depends on its customer's. So threads can load disjoint parts of the
/// tables, and any division among threads loads the same rows.
///
/// Pass warehouses from 1 to [`Scale::warehouses`] and districts from 1 to [`DISTRICTS`]. For other
/// numbers a call returns rows, too, but they do not belong in the database.
///
/// ```
/// use silvics_workload::tpcc::{Population, Scale};
///
/// let scale = Scale::reduced(1)?;
/// let population = Population::new(scale, 42, 1_700_000_000_000_000);
/// assert_eq!(population.items(1..=scale.items()).count(), 1000);
/// let new_orders = population.orders(1, 10).filter(|(_, _, is_new)| *is_new);
/// assert_eq!(new_orders.count(), 18);
/// # Ok::<(), silvics_workload::tpcc::ScaleError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Population {
    scale: Scale,
    /// The seed of all rows, made from the caller's.
    seed: u64,
    now: u64,
    constants: Constants,
}

impl Population {
    /// The population for this seed. All dates are `now`, in microseconds since the epoch.
    pub fn new(scale: Scale, seed: u64, now: u64) -> Self {
        let constants = Constants::of_load(seed);
        Self { scale, seed: label(seed, "tpcc population"), now, constants }
    }

    /// The rows of the items in `range`. Numbers that no item has are skipped.
    pub fn items(self, range: RangeInclusive<u32>) -> impl Iterator<Item = ItemRow> {
        self.numbers(range).map(move |id| {
            let rng = &mut self.rng("item", [0, 0, id]);
            ItemRow {
                id,
                image: uniform(rng, 1..=10_000),
                name: alphanumerics(rng, 14..=24),
                price_cents: i64::from(uniform(rng, 100..=10_000)),
                data: brand_data(rng),
            }
        })
    }

    /// The row of a warehouse.
    pub fn warehouse(self, warehouse: u32) -> WarehouseRow {
        let rng = &mut self.rng("warehouse", [warehouse, 0, 0]);
        WarehouseRow {
            id: warehouse,
            name: alphanumerics(rng, 6..=10),
            address: address(rng),
            tax: uniform(rng, 0..=2000),
            ytd_cents: i64::from(DISTRICTS) * self.district_ytd_cents(),
        }
    }

    /// The rows of a warehouse's stock of the items in `range`. Numbers that no item has are
    /// skipped.
    pub fn stock(
        self,
        warehouse: u32,
        range: RangeInclusive<u32>,
    ) -> impl Iterator<Item = StockRow> {
        self.numbers(range).map(move |item| {
            let rng = &mut self.rng("stock", [warehouse, 0, item]);
            StockRow {
                item,
                warehouse,
                quantity: uniform(rng, 10..=100) as i32,
                district_infos: std::array::from_fn(|_| letters(rng, DISTRICT_INFO)),
                ytd: 0,
                orders: 0,
                remotes: 0,
                data: brand_data(rng),
            }
        })
    }

    /// The row of a district.
    pub fn district(self, warehouse: u32, district: u8) -> DistrictRow {
        let rng = &mut self.rng("district", [warehouse, district.into(), 0]);
        DistrictRow {
            warehouse,
            id: district,
            name: alphanumerics(rng, 6..=10),
            address: address(rng),
            tax: uniform(rng, 0..=2000),
            ytd_cents: self.district_ytd_cents(),
            next_order: self.scale.customers() + 1,
        }
    }

    /// The rows of a district's customers in ascending order, each with its only payment.
    pub fn customers(
        self,
        warehouse: u32,
        district: u8,
    ) -> impl Iterator<Item = (CustomerRow, HistoryRow)> {
        (1..=self.scale.customers()).map(move |id| {
            let rng = &mut self.rng("customer", [warehouse, district.into(), id]);
            (
                self.customer(rng, warehouse, district, id),
                self.payment(rng, warehouse, district, id),
            )
        })
    }

    /// The rows of a district's orders in ascending order: the order, its lines, and whether it is
    /// a new order. Each customer has one order.
    pub fn orders(
        self,
        warehouse: u32,
        district: u8,
    ) -> impl Iterator<Item = (OrderRow, Vec<OrderLineRow>, bool)> {
        let mut customers: Vec<u32> = (1..=self.scale.customers()).collect();
        let rng = &mut self.rng("customers of orders", [warehouse, district.into(), 0]);
        shuffle(rng, &mut customers);
        (1..).zip(customers).map(move |(id, customer)| {
            let rng = &mut self.rng("order", [warehouse, district.into(), id]);
            let is_delivered = id <= self.scale.delivered_orders();
            let order = OrderRow {
                warehouse,
                district,
                id,
                customer,
                entry: self.now,
                carrier: is_delivered.then(|| uniform(rng, 1..=10) as u8),
                line_count: uniform(rng, 5..=LINES as u32) as u8,
                is_local: true,
            };
            let lines = (1..=order.line_count).map(|number| self.line(rng, &order, number));
            let lines = lines.collect();
            (order, lines, !is_delivered)
        })
    }

    fn customer(
        self,
        rng: &mut Xoshiro256PlusPlus,
        warehouse: u32,
        district: u8,
        id: u32,
    ) -> CustomerRow {
        let in_order = id <= self.scale.last_names();
        let last = u16::try_from(id - 1).ok().filter(|_| in_order).and_then(LastName::new);
        CustomerRow {
            warehouse,
            district,
            id,
            first: alphanumerics(rng, 8..=16),
            middle: "OE".into(),
            last: last.unwrap_or_else(|| self.constants.last_name(rng, self.scale)),
            address: address(rng),
            phone: digits(rng, 16),
            since: self.now,
            credit_is_good: !percent(rng, 10),
            credit_limit_cents: CREDIT_LIMIT_CENTS,
            discount: uniform(rng, 0..=5000),
            balance_cents: -PAYMENT_CENTS,
            ytd_payment_cents: PAYMENT_CENTS,
            payments: 1,
            deliveries: 0,
            data: alphanumerics(rng, 300..=500),
        }
    }

    fn payment(
        self,
        rng: &mut Xoshiro256PlusPlus,
        warehouse: u32,
        district: u8,
        customer: u32,
    ) -> HistoryRow {
        HistoryRow {
            customer_warehouse: warehouse,
            customer_district: district,
            customer,
            warehouse,
            district,
            date: self.now,
            amount_cents: PAYMENT_CENTS,
            data: alphanumerics(rng, 12..=24),
        }
    }

    /// A line of an order. Those of delivered orders cost nothing.
    fn line(self, rng: &mut Xoshiro256PlusPlus, order: &OrderRow, number: u8) -> OrderLineRow {
        let delivery = order.carrier.map(|_| order.entry);
        OrderLineRow {
            warehouse: order.warehouse,
            district: order.district,
            order: order.id,
            number,
            item: uniform(rng, 1..=self.scale.items()),
            supplier: order.warehouse,
            delivery,
            quantity: QUANTITY,
            amount_cents: if delivery.is_some() { 0 } else { uniform(rng, 1..=999_999).into() },
            district_info: letters(rng, DISTRICT_INFO),
        }
    }

    /// The payments of a district's customers.
    fn district_ytd_cents(self) -> i64 {
        i64::from(self.scale.customers()) * PAYMENT_CENTS
    }

    /// Those numbers of a range that items have.
    fn numbers(self, range: RangeInclusive<u32>) -> impl Iterator<Item = u32> {
        let items = self.scale.items();
        range.skip_while(|&number| number == 0).take_while(move |&number| number <= items)
    }

    /// The generator of a row, which its table and its primary key determine.
    fn rng(self, table: &str, key: [u32; 3]) -> Xoshiro256PlusPlus {
        let step = |state: u64, part: u32| mix(state.wrapping_add(u64::from(part)));
        Xoshiro256PlusPlus::seed_from_u64(key.into_iter().fold(label(self.seed, table), step))
    }
}

fn address(rng: &mut Xoshiro256PlusPlus) -> Address {
    Address {
        street_1: alphanumerics(rng, 10..=20),
        street_2: alphanumerics(rng, 10..=20),
        city: alphanumerics(rng, 10..=20),
        state: letters(rng, 2),
        zip: digits(rng, 4) + "11111",
    }
}

/// The data of an item or a stock: in 10 % of all cases, 8 of the characters are `ORIGINAL`.
fn brand_data(rng: &mut Xoshiro256PlusPlus) -> String {
    let mut data = alphanumerics(rng, 26..=50);
    if percent(rng, 10) {
        let at = uniform(rng, 0..=(data.len() - ORIGINAL.len()) as u32) as usize;
        data.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    data
}
