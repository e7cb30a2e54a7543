//! Keys: each is packed into one word, so that any index of numbers can hold it.
//!
//! | key | bits, from the highest |
//! |---|---|
//! | warehouse | 14 |
//! | district | warehouse, 4 |
//! | customer | district, 12 |
//! | order, new order | district, 24 |
//! | order line | order, 4 |
//! | item | 17 |
//! | stock | warehouse, 17 |
//! | history | the number of the entry |
//! | last name | district, 10 |
//! | last name with customer | last name, 12 |
//! | customer with order | customer, 24 |
//!
//! Numbers are ordered as the tuples that they stand for.

use silvics_workload::tpcc::LastName;

pub(crate) const DISTRICT: u32 = 4;
pub(crate) const CUSTOMER: u32 = 12;
pub(crate) const ORDER: u32 = 24;
pub(crate) const LINE: u32 = 4;
pub(crate) const ITEM: u32 = 17;
const NAME: u32 = 10;

/// The greatest number of an order.
pub const ORDERS_MAX: u32 = (1 << ORDER) - 1;

/// The bits of the widest key.
pub(crate) const WIDEST: u32 = 14 + DISTRICT + CUSTOMER + ORDER;

const _: () = {
    use silvics_workload::tpcc::{CUSTOMERS, DISTRICTS, ITEMS, LINES, WAREHOUSES_MAX};
    assert!(WAREHOUSES_MAX < 1 << 14 && DISTRICTS < 1 << DISTRICT && CUSTOMERS < 1 << CUSTOMER);
    assert!(ITEMS < 1 << ITEM && LINES < 1 << LINE && WIDEST <= 64);
};

/// A district of a warehouse.
#[inline(always)]
pub fn district(warehouse: u32, district: u8) -> u64 {
    (u64::from(warehouse) << DISTRICT) | u64::from(district)
}

/// A customer of a district.
#[inline(always)]
pub fn customer(district: u64, customer: u32) -> u64 {
    (district << CUSTOMER) | u64::from(customer)
}

/// The number of the customer with a key.
#[inline(always)]
pub fn customer_number(key: u64) -> u32 {
    (key & ((1 << CUSTOMER) - 1)) as u32
}

/// An order of a district.
#[inline(always)]
pub fn order(district: u64, order: u32) -> u64 {
    (district << ORDER) | u64::from(order)
}

/// The number of the order with a key.
#[inline(always)]
pub fn order_number(key: u64) -> u32 {
    (key & ((1 << ORDER) - 1)) as u32
}

/// A line of an order.
#[inline(always)]
pub fn line(order: u64, number: u8) -> u64 {
    (order << LINE) | u64::from(number)
}

/// The stock of an item in a warehouse.
#[inline(always)]
pub fn stock(warehouse: u32, item: u32) -> u64 {
    (u64::from(warehouse) << ITEM) | u64::from(item)
}

/// A last name within a district.
#[inline(always)]
pub fn name(district: u64, name: LastName) -> u64 {
    (district << NAME) | u64::from(name.number())
}

/// A last name with a customer who has it.
#[inline(always)]
pub fn name_with_customer(name: u64, customer: u32) -> u64 {
    (name << CUSTOMER) | u64::from(customer)
}

/// A customer with one of the orders.
#[inline(always)]
pub fn customer_with_order(customer: u64, order: u32) -> u64 {
    (customer << ORDER) | u64::from(order)
}
