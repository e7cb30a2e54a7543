//! Notes of what transactions read and write, from which [`serial`](crate::serial) finds out
//! whether they have a serial order.
//!
//! # Method
//! A transaction that writes a row gives one of its columns a value that this column has not had
//! before. This value is the version of the row, so no column is added for the check:
//!
//! | item | its versions |
//! |---|---|
//! | `W_YTD`, `D_YTD` | the sum, to which each payment adds |
//! | `D_NEXT_O_ID` | the number, to which each order adds 1 |
//! | a customer | `C_PAYMENT_CNT` and `C_DELIVERY_CNT`, of which each change adds 1 to one |
//! | a stock | `S_ORDER_CNT`, to which each line adds 1, with `S_QUANTITY` |
//! | an order | `O_CARRIER_ID`, 0 until it is delivered |
//! | an order line | `OL_DELIVERY_D`, 0 until it is delivered |
//! | a new order; the entry of an order in the index by customer | 0, while it is there |
//!
//! Columns that no transaction writes, and the index by last name, are not noted. Neither is the
//! history, which no transaction reads.

use crate::keys;
use silvics_store::Error;
use silvics_testkit::clock::Clock;
use silvics_testkit::serial::{Direction, Entry, Operation, Range};
use std::fmt;

/// The column or the table to which an item belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    WarehouseSum,
    DistrictSum,
    NextOrder,
    Customer,
    Stock,
    Order,
    NewOrder,
    Line,
    OfCustomer,
}

/// All parts, in their order.
const PARTS: [Part; 9] = [
    Part::WarehouseSum,
    Part::DistrictSum,
    Part::NextOrder,
    Part::Customer,
    Part::Stock,
    Part::Order,
    Part::NewOrder,
    Part::Line,
    Part::OfCustomer,
];

/// An item is a number: its low bits are a [key](crate::keys), the bits above say its part.
const KEY: u32 = 58;

const _: () = {
    assert!(keys::WIDEST <= KEY && PARTS.len() <= 1 << (64 - KEY));
    let mut at = 0;
    while at < PARTS.len() {
        assert!(PARTS[at] as usize == at);
        at += 1;
    }
};

impl Part {
    /// Whether an item is of this part.
    pub(crate) fn has(self, item: u64) -> bool {
        item >> KEY == self as u64
    }

    /// The item of a key.
    pub(crate) fn item(self, key: u64) -> u64 {
        (self as u64) << KEY | key
    }
}

/// An item of a history, for reports.
pub(crate) struct Item(pub(crate) u64);

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = |key: u64, bits: u32| (key >> bits, key & ((1 << bits) - 1));
        let of_district = |f: &mut fmt::Formatter<'_>, key| {
            let (warehouse, district) = low(key, keys::DISTRICT);
            write!(f, "district {district} of warehouse {warehouse}")
        };
        let of = |f: &mut fmt::Formatter<'_>, what: &str, (district, number): (u64, u64)| {
            write!(f, "{what} {number} of ")?;
            of_district(f, district)
        };
        let (part, key) = low(self.0, KEY);
        let Some(part) = PARTS.get(part as usize) else { return f.write_str("nothing") };
        match part {
            Part::WarehouseSum => write!(f, "W_YTD of warehouse {key}"),
            Part::DistrictSum => of_district(f, key).and_then(|()| f.write_str(": D_YTD")),
            Part::NextOrder => of_district(f, key).and_then(|()| f.write_str(": D_NEXT_O_ID")),
            Part::Customer => of(f, "customer", low(key, keys::CUSTOMER)),
            Part::Stock => {
                let (warehouse, item) = low(key, keys::ITEM);
                write!(f, "the stock of item {item} in warehouse {warehouse}")
            }
            Part::Order => of(f, "order", low(key, keys::ORDER)),
            Part::NewOrder => of(f, "new order", low(key, keys::ORDER)),
            Part::Line => {
                let (order, number) = low(key, keys::LINE);
                write!(f, "line {number} of ")?;
                of(f, "order", low(order, keys::ORDER))
            }
            Part::OfCustomer => {
                let (customer, order) = low(key, keys::ORDER);
                write!(f, "the entry of order {order} for ")?;
                of(f, "customer", low(customer, keys::CUSTOMER))
            }
        }
    }
}

/// The version of a customer or a stock, from two of its columns.
pub(crate) fn pair(count: Result<u32, Error>, other: Result<u32, Error>) -> Result<u64, Error> {
    Ok(u64::from(count?) << 32 | u64::from(other?))
}

mod sealed {
    pub trait Sealed {}
}

/// Takes notes of what a transaction reads and writes, or, as `()`, none.
pub trait Notes: sealed::Sealed {
    /// Whether notes are taken. If not, transactions read no column for them.
    const TAKEN: bool;

    /// Forgets all notes: an attempt begins.
    fn clear(&mut self);

    /// Takes a note.
    fn push(&mut self, operation: Operation);
}

impl sealed::Sealed for () {}

impl Notes for () {
    const TAKEN: bool = false;

    fn clear(&mut self) {}

    fn push(&mut self, _: Operation) {}
}

/// The notes of the transactions here.
pub(crate) trait Take: Notes {
    /// Notes the version of an item before this transaction writes it, or if it only reads it.
    #[inline(always)]
    fn read(
        &mut self,
        part: Part,
        key: u64,
        version: impl FnOnce() -> Result<u64, Error>,
    ) -> Result<(), Error> {
        if Self::TAKEN {
            self.push(Operation::Read { key: part.item(key), value: Some(version()?) });
        }
        Ok(())
    }

    /// Notes the version of an item that this transaction has read and written.
    #[inline(always)]
    fn write(
        &mut self,
        part: Part,
        key: u64,
        version: impl FnOnce() -> Result<u64, Error>,
    ) -> Result<(), Error> {
        if Self::TAKEN {
            self.push(Operation::Write { key: part.item(key), value: Some(version()?) });
        }
        Ok(())
    }

    /// Notes an item that was absent, and is not any more. Its version is 0.
    #[inline(always)]
    fn inserted(&mut self, part: Part, key: u64) {
        if Self::TAKEN {
            self.push(Operation::Read { key: part.item(key), value: None });
            self.push(Operation::Write { key: part.item(key), value: Some(0) });
        }
    }

    /// Notes an item that this transaction has read, and that is absent now.
    #[inline(always)]
    fn deleted(&mut self, part: Part, key: u64) {
        if Self::TAKEN {
            self.push(Operation::Write { key: part.item(key), value: None });
        }
    }

    /// Notes the items that a scan has found, with their versions. Both bounds are inclusive. With
    /// `only`, the scan had this direction and the limit 1.
    #[inline(always)]
    fn scanned(
        &mut self,
        part: Part,
        (from, to): (u64, u64),
        only: Option<Direction>,
        found: impl Iterator<Item = Entry>,
    ) {
        if Self::TAKEN {
            let range = Range::ascending(part.item(from), part.item(to));
            let range = match only {
                None => range,
                Some(Direction::Ascending) => range.limited(1),
                Some(Direction::Descending) => range.reversed().limited(1),
            };
            let entries = found.map(|(key, version)| (part.item(key), version)).collect();
            self.push(Operation::Scan { range, entries });
        }
    }
}

impl<N: Notes> Take for N {}

/// The notes of the last attempt of a transaction, and the stamp at which it began.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    clock: &'a Clock,
    pub(crate) start: u64,
    pub(crate) operations: Vec<Operation>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(clock: &'a Clock) -> Self {
        Self { clock, start: 0, operations: Vec::new() }
    }
}

impl sealed::Sealed for Attempt<'_> {}

impl Notes for Attempt<'_> {
    const TAKEN: bool = true;

    fn clear(&mut self) {
        self.operations.clear();
        self.start = self.clock.start();
    }

    fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }
}
