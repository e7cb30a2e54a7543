//! The memtable of an LSM tree: writes in groups, a log, snapshots, and tables over several
//! indexes.
//!
//! A [`WriteBuffer`] takes the writes of an LSM store until they go to files. It is what RocksDB
//! has in `db/write_thread.cc`, `memtable/` and `db/log_writer.cc`, as a crate of its own:
//!
//! ```
//! use silvics_memtable::{BufferOptions, LogFolder, WriteBatch, WriteBuffer, WriteOptions};
//! use std::sync::Arc;
//!
//! # let folder = tempfile::tempdir()?;
//! let logs = Arc::new(LogFolder::open(folder.path())?);
//! let (buffer, recovery) = WriteBuffer::recover(BufferOptions::default(), logs)?;
//! assert_eq!(recovery.operations, 0); // a new folder
//!
//! let mut batch = WriteBatch::new(); // visible as a whole, and recovered as a whole
//! batch.put(b"apple", b"3")?;
//! batch.delete(b"plum")?;
//! let buffer: WriteBuffer = buffer;
//! buffer.write(&batch, WriteOptions { sync: true })?;
//!
//! let view = buffer.view(); // one pin for many reads of one state
//! assert_eq!(view.get(b"apple"), Some(&b"3"[..]));
//! let mut cursor = buffer.cursor(); // keeps its tables, may go to another thread
//! cursor.last();
//! assert_eq!(cursor.entry(), Some((&b"apple"[..], &b"3"[..])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it guarantees
//! * **Writes are linearizable, and batches atomic.** When a write returns, every later read sees
//!   it. A read sees the whole batch or nothing of it. `WriteMode::UnorderedUnrepeatableReads`
//!   gives up the latter, and says so in its name.
//! * **Snapshots.** A [`Snapshot`] is a sequence number. A read at it sees the same state until its
//!   tables are flushed: entries are never changed or removed.
//! * **Nothing acknowledged is lost.** A write with `sync` is on the disk when it returns. After a
//!   failed append or sync the buffer takes no more writes ([`Failure`]), and reads go on. Recovery
//!   stops at the first hole, and [`log::Recovery`] reports it.
//! * **Memory.** [`Table::bytes`] is O(1) and counts what the table holds from the system.
//!   [`TableOptions::limit`] is a limit; at it, writes fail. Lookups write nothing that other
//!   lookups or writers read; a pin of the domain is a word of its thread.
//!
//! # Which index
//! | index | use it | bytes for an entry, beside its own |
//! |---|---|---|
//! | [`ByteIndex`] (default) | in the bytewise order or its reverse: lookups, scans and inserts are fastest | some 26 |
//! | [`SkipIndex`] | in any order, or if memory counts most | some 14: links, padding |
//! | [`OrdIndex`] | in any order, if comparisons are dear | not measured |
//!
//! docs/memtable.md has the measurements. The parts are useful alone: [`Table`] is one memtable
//! without log and groups, [`skiplist`] and [`DynamicBloom`] are what it is made of, and [`log`] is
//! a write-ahead log over a storage that you can replace. `silvics-rocksdb` runs the indexes inside
//! RocksDB.
//!
//! # No-reclaim domain
//! RocksDB frees nothing before the memtable. [`SkipIndex`] does the same: nothing is ever
//! replaced. The other two copy blocks or leaves when they change, so their replaced nodes must be
//! reclaimed. A [`View`] pins the buffer's domain for the tables, whatever their index.
//!
//! # Files
//! | module | content |
//! |---|---|
//! | [`buffer`] | the write path, reads, switches, flushes, recovery |
//! | `group` | the list of writers, and waiting |
//! | [`log`] | the write-ahead log and its storages |
//! | [`table`], `cursor`, `tombstones` | one table, cursors, deletions of ranges |
//! | [`index`], [`skiplist`] | the indexes of tables |
//! | `bloom` | the filter |
//! | `key`, [`entry`], `batch` | internal keys, their bytes, batches of operations |

mod batch;
mod bloom;
pub mod buffer;
#[cfg(feature = "canaries")]
pub mod canary;
#[cfg(not(feature = "canaries"))]
#[allow(unreachable_pub, dead_code)] // public with the feature
mod canary;
mod cursor;
pub mod entry;
mod group;
pub mod index;
mod key;
pub mod log;
pub mod skiplist;
pub mod table;
mod tombstones;

pub use batch::{
    BatchError, BatchRef, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, Op, Ops, ParseError,
    ParseReason, WriteBatch,
};
pub use bloom::{DynamicBloom, KeyHash};
pub use buffer::{
    BufferOptions, Failure, FlushError, FrozenTable, OpenError, Snapshot, SwitchError, SyncPolicy,
    View, WriteBuffer, WriteError, WriteMode, WriteOptions, WriteStats,
};
pub use cursor::{Cursor, TableCursor};
pub use entry::{Draft, EncodedKey, Entry};
pub use group::WaitCounts;
pub use index::{ByteIndex, Index, OrdIndex, SkipIndex};
pub use key::{
    ByteOrder, Bytewise, Comparator, InternalKey, Kind, MAX_SEQNO, ReverseBytewise, Seqno, pack,
};
pub use log::{LogFolder, LogStorage};
pub use table::{BloomOptions, Found, PrefixOf, Table, TableOptions, TableStats};
pub use tombstones::Tombstone;
