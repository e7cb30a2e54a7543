//! The inputs of the five transactions. Warehouses, districts, customers and items are numbered
//! from 1 on.

use super::draws::LastName;
use super::{LINES, UNUSED_ITEM};

/// A transaction with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// Enters an order (clause 2.4).
    NewOrder(NewOrder),
    /// Books a payment of a customer (clause 2.5).
    Payment(Payment),
    /// Reads a customer's last order (clause 2.6).
    OrderStatus(OrderStatus),
    /// Delivers the oldest new order of each district (clause 2.7).
    Delivery(Delivery),
    /// Counts the items of recent orders of which little is in stock (clause 2.8).
    StockLevel(StockLevel),
}

/// A line of a new order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The item. If it is [`UNUSED_ITEM`], which does not exist, the order is rolled back.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supplier: u32,
    /// How many are ordered.
    pub quantity: u8,
}

/// The input of a new-order transaction (clause 2.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// The home warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u8,
    /// The customer.
    pub customer: u32,
    pub(super) lines: [Line; LINES],
    pub(super) count: u8,
}

impl NewOrder {
    /// The 5 to 15 lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines[..usize::from(self.count)]
    }

    /// Whether all lines are supplied by the home warehouse.
    pub fn is_local(&self) -> bool {
        self.lines().iter().all(|line| line.supplier == self.warehouse)
    }

    /// Whether an item does not exist, so that the transaction must roll back.
    pub fn rolls_back(&self) -> bool {
        self.lines().iter().any(|line| line.item == UNUSED_ITEM)
    }
}

/// How a customer is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Customer {
    /// By number.
    Number(u32),
    /// By last name, which several customers of the district may have.
    LastName(LastName),
}

/// The input of a payment transaction (clause 2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The warehouse that is paid.
    pub warehouse: u32,
    /// The district that is paid.
    pub district: u8,
    /// The customer's warehouse.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u8,
    /// The customer.
    pub customer: Customer,
    /// The amount in cents.
    pub cents: u32,
}

/// The input of an order-status transaction (clause 2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u8,
    /// The customer.
    pub customer: Customer,
}

/// The input of a delivery transaction (clause 2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The warehouse.
    pub warehouse: u32,
    /// The carrier, from 1 to 10.
    pub carrier: u8,
}

/// The input of a stock-level transaction (clause 2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockLevel {
    /// The warehouse.
    pub warehouse: u32,
    /// The district.
    pub district: u8,
    /// The quantity below which an item counts.
    pub threshold: u8,
}
