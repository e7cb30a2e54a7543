//! Notes of what transactions read and write, from which [`serial`](crate::serial) finds out
//! whether they have a serial order.
//!
//! # Method
//! The transactions themselves leave a value in each row that it has never had before. This value
//! is the version of the item, so the rows need no column for the check:
//!
//! | item | its versions |
//! |---|---|
//! | `W_YTD`, `D_YTD` | the sum, to which each payment adds |
//! | `D_NEXT_O_ID` | the number, to which each order adds 1 |
//! | a customer | `C_PAYMENT_CNT` and `C_DELIVERY_CNT`, of which each change adds 1 to one |
//! | a stock | `S_ORDER_CNT`, to which each line adds 1 |
//! | an order | `O_CARRIER_ID`, 0 until it is delivered |
//! | an order line | `OL_DELIVERY_D`, 0 until it is delivered |
//! | a new order; the entry of an order in the index by customer | 0, while it is there |
//!
//! Columns that no transaction writes, and the index by last name, are not noted. Neither is the
//! history, which no transaction reads.

use silvics_store::Error;
use silvics_testkit::serial::{Direction, Entry, Operation, Range};
use std::fmt;

/// The kind of an item: what the versions of its key are those of.
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

/// The bits of a [key](crate::keys), below those of the part.
const KEY: u32 = 58;

impl Part {
    /// The name of the column or the table.
    fn name(self) -> &'static str {
        match self {
            Self::WarehouseSum => "W_YTD",
            Self::DistrictSum => "D_YTD",
            Self::NextOrder => "D_NEXT_O_ID",
            Self::Customer => "the customer",
            Self::Stock => "the stock",
            Self::Order => "the order",
            Self::NewOrder => "the new order",
            Self::Line => "the order line",
            Self::OfCustomer => "the order in the index by customer",
        }
    }

    /// The key of an item in a history.
    pub(crate) fn item(self, key: u64) -> u64 {
        debug_assert!(key < 1 << KEY);
        (self as u64) << KEY | key
    }
}

/// An item of a history, for reports.
pub(crate) struct Item(pub(crate) u64);

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = PARTS.get((self.0 >> KEY) as usize).map_or("nothing", |part| part.name());
        write!(f, "{part} with the key {}", self.0 & ((1 << KEY) - 1))
    }
}

/// The version of a customer, from the two columns.
pub(crate) fn customer(
    payments: Result<u32, Error>,
    deliveries: Result<u32, Error>,
) -> Result<u64, Error> {
    Ok(u64::from(payments?) << 32 | u64::from(deliveries?))
}

/// Takes notes of what a transaction reads and writes, or, as `()`, none.
pub trait Notes {
    /// Whether notes are taken. If not, transactions read no column for them.
    const TAKEN: bool;

    /// Forgets all notes: an attempt begins.
    fn clear(&mut self);

    /// Takes a note.
    fn push(&mut self, operation: Operation);
}

impl Notes for () {
    const TAKEN: bool = false;

    fn clear(&mut self) {}

    fn push(&mut self, _: Operation) {}
}

impl Notes for Vec<Operation> {
    const TAKEN: bool = true;

    fn clear(&mut self) {
        self.clear();
    }

    fn push(&mut self, operation: Operation) {
        self.push(operation);
    }
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

    /// Notes the items that a scan has found, with their versions. It was one from the first key to
    /// the last one, both inclusive, and found the first or the last item if it has a direction,
    /// and otherwise all of them.
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
