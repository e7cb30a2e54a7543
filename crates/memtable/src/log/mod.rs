//! The write-ahead log: batches are appended to a file before they enter a table.
//!
//! A log belongs to one memtable. Once the memtable is in durable tables, its log is removed.
//!
//! # Source
//!
//! RocksDB's `db/log_writer.cc`, `db/log_reader.cc` and its recovery mode `kPointInTimeRecovery`.
//! The format is another one: a record is not cut into blocks of 32 KiB, since a reader has the
//! whole file in memory and never searches for a record behind a damaged one.
//!
//! # Format
//!
//! All numbers are little-endian. A file is a header and then records, without gaps.
//!
//! | offset | bytes | field of the header |
//! |---|---|---|
//! | 0 | 8 | magic: `silv-log` |
//! | 8 | 4 | version of the format: 1 |
//! | 12 | 8 | number of the log, which is that of its name |
//! | 20 | 8 | first sequence number: the one that follows all earlier logs |
//! | 28 | 2 | *n*: length of the name of the comparator |
//! | 30 | *n* | name of the comparator, in UTF-8 |
//! | 30 + *n* | 4 | CRC-32C of all bytes before it |
//!
//! | offset | bytes | field of a record |
//! |---|---|---|
//! | 0 | 4 | length of the payload: 12 and the bytes of the operations |
//! | 4 | 4 | CRC-32C of the fields of the header, the length above and the payload |
//! | 8 | 8 | payload: sequence number of the first operation |
//! | 16 | 4 | payload: number of operations |
//! | 20 | – | payload: the operations, in the form of a [`WriteBatch`](crate::WriteBatch) |
//!
//! The CRC of a record continues that of the header. So a record of another log, left behind in a
//! block that the file system has reused, is not accepted: the headers differ in their numbers.
//! No record consists of zeros, because a length is at least 12.
//!
//! # Rules
//!
//! R1. *The header is durable first.* [`LogWriter::create`] syncs the header before it returns. So
//! a file that is longer than a header has a durable one, and if that is invalid then the file is
//! not a log, or the medium has damaged it: that is an error. A file that is not longer has no
//! record. If its header is invalid then the power failed during its creation: it counts as empty.
//!
//! R2. *A failure is final.* After an append or a sync has failed, the writer refuses every call
//! and names the first cause. The bytes of a failed append may be in the file in part, so that a
//! later record would follow garbage. After a failed sync the system may have dropped the dirty
//! pages and report success the next time (`fsync` of Linux; Rebello et al., ATC'20).
//!
//! R3. *Sequence numbers have no gap.* A record begins with the number that follows the record
//! before it; the header of a log begins with the number that follows the log before it.
//!
//! R4. *A log is complete before the next one starts.* The owner syncs a log before it creates the
//! next one. So only the newest log has a tail that was not durable.
//!
//! R5. *Logs are removed from the oldest on*, each removal durable before the next, and never the
//! newest. So the remaining logs have no gap, and the header of the newest one says which numbers
//! were given, even if every record of them is flushed and removed. After a failed removal, that
//! log may come back with a power failure until another change of the storage is durable: see
//! [`LogStorage::remove`].
//!
//! # Recovery
//!
//! [`recover_logs`] reads the logs in ascending order. The first one may begin at any number.
//! A later one is applied if its first number continues what is applied (R3), and is left out
//! otherwise. Within a log, records are applied until the first one that is torn or damaged.
//!
//! *Nothing behind a hole is applied.* Assume that a record of log 6 is lost. The log that was
//! created after it begins behind the numbers of that record, so it does not continue what is
//! applied; nor do its successors. With R4, records that were synced are never behind a hole,
//! unless the medium loses what it has made durable. The report names the logs that were left out.
//!
//! *A torn tail that an earlier recovery has accepted is no hole.* The owner begins log 7 at the
//! number at which that recovery stopped. A second recovery reads the same part of log 6, stops at
//! the same place, and finds that log 7 continues there. To stop at every torn record that a later
//! log follows would lose the writes that were acknowledged since.
//!
//! *Recovered records stay.* After a crash of the process alone, recovery reads bytes that the
//! system has not written to the medium yet. If the power fails after log 7 was begun behind them,
//! log 7 would be behind a hole. So recovery makes each log that it has applied durable
//! ([`LogStorage::sync`]), also if a sync failed before that crash and the system has dropped
//! pages.
//!
//! # Checked by
//!
//! `log/tests`: each truncation and each flipped bit of a file; each call of the storage that
//! fails; and `Forgetful`, a storage that loses power and keeps some of the sectors that were not
//! synced. The fuzz target `log` writes records with valid checksums around any bytes.

mod error;
mod folder;
mod format;
mod reader;
mod recover;
mod storage;
mod writer;

#[cfg(any(test, feature = "testing"))]
pub mod forgetful;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod tests;

pub use error::{Action, HeaderError, LogError, RecoveryError, Stop, StopReason};
pub use folder::LogFolder;
pub use format::Header;
pub use reader::{LogReader, Record, read_log};
pub use recover::{Recovery, Stopped, recover_logs};
pub use storage::{LogFile, LogStorage};
pub use writer::LogWriter;
