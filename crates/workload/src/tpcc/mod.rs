//! TPC-C: the rows of its tables before a run, and the inputs of its transactions.
//!
//! * [`Scale`]: the size of the database.
//! * [`Population`]: the rows with which the tables are loaded, such as [`CustomerRow`].
//! * [`Terminal`]: draws the [`Transaction`]s of a thread.
//!
//! # Source
//! TPC Benchmark C, Standard Specification, revision 5.11 (clauses are those of this text); the
//! half mix is that of Arbel-Raviv, Brown and Morrison (USENIX ATC 2018) in DBx1000.
//!
//! ```
//! use silvics_workload::Share;
//! use silvics_workload::tpcc::{Mix, Scale, Transaction};
//!
//! // Two warehouses, and a thread that is the terminal of the first one.
//! let scale = Scale::new(2)?;
//! let share = Share { thread: 0, threads: 2 };
//! let mut terminal = scale.terminal(Mix::Standard, 42, share);
//! let orders = (0..100).filter(|_| matches!(terminal.draw(), Transaction::NewOrder(_))).count();
//! assert_eq!(orders, 45);
//! # Ok::<(), silvics_workload::tpcc::ScaleError>(())
//! ```
//!
//! # Guarantees
//! * The inputs of a thread depend only on the scale, the mix, the seed and the thread's
//!   [`Share`](crate::Share).
//! * A row of the population depends only on the scale, the seed, the time of the load and the
//!   row's primary key.
//! * The population meets the consistency conditions of clause 3.3.2, also at a reduced scale.
//!
//! # Departures from the specification
//! 1. Terminals neither think nor type (clause 5.2.5), so a thread is a terminal whose next
//!    transaction begins when the last one ends. There may be fewer terminals than ten for each
//!    warehouse.
//! 2. A terminal draws another district for each stock-level transaction. The specification gives
//!    each terminal one (clause 2.8.1.1), and has one for each district.
//! 3. The deck of the standard mix has 100 cards. Clause 5.2.4.2 has a deck of 23, with 43.5 % of
//!    payments and as many new orders.
//! 4. A [reduced scale](Scale::reduced) has fewer items, customers and last names than clause
//!    4.3.3.1 demands. The balances of the warehouses and districts are lower in proportion.
//! 5. All dates of a load are the same.

mod draws;
mod inputs;
mod population;
mod rows;
mod terminal;

pub use draws::{Constants, LastName};
pub use inputs::{
    Customer, Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Transaction,
};
pub use population::Population;
pub use rows::{
    Address, CustomerRow, DistrictRow, HistoryRow, ItemRow, OrderLineRow, OrderRow, StockRow,
    WarehouseRow,
};
pub use terminal::{Mix, Terminal};

use std::fmt;

/// The items that are sold, and the kinds of goods in the stock of each warehouse.
pub const ITEMS: u32 = 100_000;
/// The number of an item that does not exist. An order of it is rolled back.
pub const UNUSED_ITEM: u32 = 0;
/// The districts of a warehouse.
pub const DISTRICTS: u8 = 10;
/// The customers of a district.
pub const CUSTOMERS: u32 = 3000;
/// The most lines of an order.
pub const LINES: usize = 15;
/// The most warehouses.
pub const WAREHOUSES_MAX: u32 = 10_000;

/// The size of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    warehouses: u32,
    items: u32,
    customers: u32,
}

/// The reason why there is no such scale: the number of warehouses is 0 or above
/// [`WAREHOUSES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleError(u32);

impl fmt::Display for ScaleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a database of TPC-C cannot have {} warehouses: choose from 1 to {WAREHOUSES_MAX}",
            self.0
        )
    }
}

impl std::error::Error for ScaleError {}

impl Scale {
    /// A database with this number of warehouses, [`ITEMS`] items, and [`CUSTOMERS`] customers in
    /// each district.
    pub fn new(warehouses: u32) -> Result<Self, ScaleError> {
        Self::sized(warehouses, ITEMS, CUSTOMERS)
    }

    /// A small database for tests, with 1000 items and 60 customers in each district. No figure
    /// that is measured with it is one of TPC-C.
    pub fn reduced(warehouses: u32) -> Result<Self, ScaleError> {
        Self::sized(warehouses, 1000, 60)
    }

    fn sized(warehouses: u32, items: u32, customers: u32) -> Result<Self, ScaleError> {
        if (1..=WAREHOUSES_MAX).contains(&warehouses) {
            Ok(Self { warehouses, items, customers })
        } else {
            Err(ScaleError(warehouses))
        }
    }

    /// The number of warehouses, whose numbers begin with 1.
    pub fn warehouses(self) -> u32 {
        self.warehouses
    }

    /// The number of items, whose numbers begin with 1.
    pub fn items(self) -> u32 {
        self.items
    }

    /// The number of customers of a district, whose numbers begin with 1. A loaded district has as
    /// many orders.
    pub fn customers(self) -> u32 {
        self.customers
    }

    /// The number of orders of a loaded district that are delivered: the first 70 %. The others are
    /// new orders.
    pub fn delivered_orders(self) -> u32 {
        self.customers * 7 / 10
    }

    /// The number of last names that customers of a district have: a third of the customers, so
    /// that some share one.
    fn last_names(self) -> u32 {
        (self.customers / 3).min(LastName::COUNT)
    }
}

#[cfg(test)]
mod tests;
