//! Memtables for RocksDB: `silvics_art` and `silvics_skiplist`.
//!
//! The shared object registers both in RocksDB's object registry when it is loaded, so a program
//! selects one by its name. See `docs/rocksdb.md` for its use.
//!
//! # Parts
//! RocksDB calls a memtable through C++ classes with virtual functions. These classes are in `cpp/`
//! and are compiled with the feature `plugin`. They call the C functions of this crate, which hold
//! no C++ type: they see entries as addresses, and keys as bytes.
//!
//! # Panics
//! No panic crosses the border: a C function that panics ends the process, with a message. The
//! language guarantees it (`extern "C"` does not unwind). No call of RocksDB could return the error
//! instead: its inserts and reads of a memtable have no failure.

pub mod art;
pub mod entry;
pub mod skiplist;
mod table;

#[cfg(feature = "plugin")]
mod plugin;
#[cfg(feature = "plugin")]
pub use plugin::register;
