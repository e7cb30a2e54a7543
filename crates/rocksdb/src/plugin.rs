//! The part that is in C++.

unsafe extern "C" {
    fn silvics_rocksdb_register();
}

/// Registers the memtables in RocksDB's default object library, if that has not happened. A program
/// that has this crate among its dependencies calls it once, before it selects a memtable by name.
/// A program that loads the shared object need not: it registers them when it is loaded.
pub fn register() {
    // SAFETY: the function takes no arguments, and any thread may call it at any time.
    unsafe { silvics_rocksdb_register() }
}
