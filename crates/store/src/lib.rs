//! A transactional store in memory, embedded in a program.
//!
//! A [`Store`] has tables with typed columns, and indexes over any structure of silvics. Its
//! transactions are strictly serializable: they take effect as if they ran one after the other, in
//! an order in which a transaction that ended before another began comes first. The concurrency
//! control is a [policy]: optimistic by default, or two-phase locking. A store that is made by
//! [`Store::open`] is durable.
//!
//! `docs/store.md` introduces the store to users of SQL databases; [`Store`] has an example.
//!
//! | module | holds |
//! |---|---|
//! | `store`, `table`, `schema`, `column` | stores, tables and their definitions |
//! | `tx` | transactions |
//! | [`policy`] | concurrency control |
//! | [`durability`] | the log, checkpoints and recovery of durable stores |
//! | [`lock`] | locks of rows and absent keys |
//! | `rows`, `row` | rows in memory, and as transactions show them |
//! | [`index`], `key` | indexes of tables, and the forms of keys |

pub mod durability;
pub mod index;
pub mod lock;
pub mod policy;

#[cfg(feature = "canaries")]
pub mod canary;
#[cfg(not(feature = "canaries"))]
#[allow(dead_code, unreachable_pub)] // public with the feature
mod canary;
mod column;
mod error;
mod key;
mod postponed;
mod row;
mod rows;
mod schema;
mod store;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod tx;

pub use column::{Column, Field, Type};
pub use error::{Conflict, Error, SchemaError, ValueError};
pub use key::{KeyForm, KeyRef, RowKey};
pub use policy::{Locking, NoWait, Optimistic, Policy, WaitDie};
pub use row::{Row, RowMut};
pub use rows::{Inline, RowLayout, RowPart, Study};
pub use schema::{IndexSpec, KEY_COLUMNS, ROW_BYTES, Schema};
pub use store::{Stats, Store, StoreOptions};
pub use table::{Index, MemoryUse, Multi, Table};
pub use tx::{Scan, Tx};

/// All threads may use these.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<(Store<Optimistic>, Table<Optimistic>, Stats)>();
    shared::<(Store<Locking<WaitDie>>, Multi<Locking<NoWait>, u64>)>();
    shared::<Index<Optimistic, u64, index::Named<u64>>>();
};
