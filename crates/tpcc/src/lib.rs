//! TPC-C as transactions of a [`Store`](silvics_store::Store).
//!
//! # Source
//! TPC Benchmark C, Standard Specification, revision 5.11. The inputs of transactions and the rows
//! of the load are those of [`silvics_workload::tpcc`], whose departures from the specification are
//! listed there.
//!
//! | module | holds |
//! |---|---|
//! | `tables` | the tables, their columns and indexes |
//! | [`keys`] | keys as numbers |
//! | `database` | the database and its load |
//! | `transactions`, `orders` | the five transactions |
//! | `notes` | what transactions read and write, as versions of items |
//! | [`serial`] | whether transactions have a serial order |
//! | `scrambled` | an index of scrambled keys, for trees that do not balance themselves |
//! | `conditions` | the consistency conditions 1 to 12, and one on the stock |
//!
//! # Departures from the specification
//! 1. Screens are not drawn. A transaction returns a few values of its screen, and reads only these
//!    and those that it needs.
//! 2. A delivery is one transaction, which runs at once. Clause 2.7.2 defers it to a queue.
//! 3. A text is a byte string. Money is counted in cents, and rates in parts of 10 000, so that no
//!    sum is rounded; the amount of an order is rounded down to cents.

mod conditions;
mod database;
pub mod keys;
mod notes;
mod orders;
mod scrambled;
pub mod serial;
mod tables;
mod transactions;

pub use conditions::{Condition, Violation};
pub use database::{Database, Session, Unit};
pub use notes::Notes;
pub use orders::{Entered, EnteredLine};
pub use scrambled::Scrambled;
pub use tables::Structures;
pub use transactions::{Delivered, Failure, LastOrder, Outcome, Paid};
