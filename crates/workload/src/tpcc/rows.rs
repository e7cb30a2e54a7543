//! The rows of the nine tables, with the columns that clause 1.3 defines. The table of new orders
//! has no struct: its rows are the keys of orders.
//!
//! Money is in cents, a rate is in ten-thousandths, and a date is in microseconds since the epoch.

use super::draws::LastName;

/// An address, of which several tables have the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The first line of the street.
    pub street_1: String,
    /// The second line of the street.
    pub street_2: String,
    /// The city.
    pub city: String,
    /// The state, of two letters.
    pub state: String,
    /// The zip code, of nine digits.
    pub zip: String,
}

/// A row of the table WAREHOUSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarehouseRow {
    /// The number of the warehouse: the primary key.
    pub id: u32,
    /// The name.
    pub name: String,
    /// The address.
    pub address: Address,
    /// The sales tax, in ten-thousandths.
    pub tax: u32,
    /// The balance of the year to date.
    pub ytd_cents: i64,
}

/// A row of the table DISTRICT. The primary key is (`warehouse`, `id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistrictRow {
    /// The warehouse.
    pub warehouse: u32,
    /// The number of the district in its warehouse.
    pub id: u8,
    /// The name.
    pub name: String,
    /// The address.
    pub address: Address,
    /// The sales tax, in ten-thousandths.
    pub tax: u32,
    /// The balance of the year to date.
    pub ytd_cents: i64,
    /// The number of the next order.
    pub next_order: u32,
}

/// A row of the table CUSTOMER. The primary key is (`warehouse`, `district`, `id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerRow {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u8,
    /// The number of the customer in its district.
    pub id: u32,
    /// The first name.
    pub first: String,
    /// The middle name.
    pub middle: String,
    /// The last name, which several customers of a district may have.
    pub last: LastName,
    /// The address.
    pub address: Address,
    /// The phone number, of 16 digits.
    pub phone: String,
    /// The date of the first order.
    pub since: u64,
    /// Whether the credit is good ("GC") and not bad ("BC").
    pub credit_is_good: bool,
    /// The limit of the credit.
    pub credit_limit_cents: i64,
    /// The discount, in ten-thousandths.
    pub discount: u32,
    /// The balance: what deliveries cost, less the payments.
    pub balance_cents: i64,
    /// The payments of the year to date.
    pub ytd_payment_cents: i64,
    /// The number of payments.
    pub payments: u32,
    /// The number of deliveries.
    pub deliveries: u32,
    /// Miscellaneous information, of 300 to 500 characters.
    pub data: String,
}

/// A row of the table HISTORY: a payment. The table has no primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// The customer's warehouse.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u8,
    /// The customer.
    pub customer: u32,
    /// The warehouse that was paid.
    pub warehouse: u32,
    /// The district that was paid.
    pub district: u8,
    /// The date of the payment.
    pub date: u64,
    /// The amount.
    pub amount_cents: i64,
    /// Miscellaneous information.
    pub data: String,
}

/// A row of the table ORDER. The primary key is (`warehouse`, `district`, `id`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRow {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u8,
    /// The number of the order in its district.
    pub id: u32,
    /// The customer, of the same district.
    pub customer: u32,
    /// The date of the entry.
    pub entry: u64,
    /// The carrier, from 1 to 10, if the order is delivered.
    pub carrier: Option<u8>,
    /// The number of lines.
    pub line_count: u8,
    /// Whether all lines are supplied by the home warehouse.
    pub is_local: bool,
}

/// A row of the table ORDER-LINE. The primary key is (`warehouse`, `district`, `order`, `number`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderLineRow {
    /// The warehouse of the order.
    pub warehouse: u32,
    /// The district of the order.
    pub district: u8,
    /// The order.
    pub order: u32,
    /// The number of the line in its order.
    pub number: u8,
    /// The item.
    pub item: u32,
    /// The warehouse that supplies the item.
    pub supplier: u32,
    /// The date of the delivery, if the order is delivered.
    pub delivery: Option<u64>,
    /// How many are ordered.
    pub quantity: u8,
    /// The amount.
    pub amount_cents: i64,
    /// The information that the stock has for the district, of 24 letters.
    pub district_info: String,
}

/// A row of the table ITEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRow {
    /// The number of the item: the primary key.
    pub id: u32,
    /// The number of the image.
    pub image: u32,
    /// The name.
    pub name: String,
    /// The price.
    pub price_cents: i64,
    /// The brand. In 10 % of the rows it contains `ORIGINAL`.
    pub data: String,
}

/// A row of the table STOCK. The primary key is (`warehouse`, `item`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockRow {
    /// The item.
    pub item: u32,
    /// The warehouse.
    pub warehouse: u32,
    /// How many are in stock.
    pub quantity: i32,
    /// The information for each district, of 24 letters.
    pub district_infos: [String; super::DISTRICTS as usize],
    /// How many were sold in the year to date.
    pub ytd: u32,
    /// The number of order lines.
    pub orders: u32,
    /// The number of order lines from other warehouses.
    pub remotes: u32,
    /// Miscellaneous information. In 10 % of the rows it contains `ORIGINAL`.
    pub data: String,
}
