//! YCSB's core workload and the YCSB of the ATC'18 study, as seeded streams of operations.
//!
//! A [`Workload`] is read from YCSB's own property files. [`Workload::stream`] draws the operations
//! of a thread, a [`Block`] at a time. The module knows no engine: an operation names *records* by
//! their numbers, and [`Workload::key_word`] or [`Workload::write_key`] turns a number into a key.
//!
//! # Source
//! * Cooper, Silberstein, Tam, Ramakrishnan and Sears, "Benchmarking cloud serving systems with
//!   YCSB", SoCC 2010, and the class `CoreWorkload` of YCSB as of 2020, whose defaults these are.
//! * Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly generating billion-record
//!   synthetic databases", SIGMOD 1994: the method of [`Zipf`].
//! * Arbel-Raviv, Brown and Morrison, "Getting to the root of concurrent binary search tree
//!   performance", USENIX ATC 2018, section on DBx1000, and the code of DBx1000: [`Study`].
//!
//! # From a file to operations
//! ```
//! use silvics_workload::Share;
//! use silvics_workload::ycsb::{Block, Op, Properties, Workload};
//!
//! let mut properties = Properties::new();
//! properties.add_text("workloada", "readproportion=0.5\nupdateproportion=0.5\n")?;
//! properties.set("recordcount=1000")?;
//! let workload = Workload::from_properties(&properties)?;
//!
//! // The load: each thread inserts its part of the records.
//! let part = workload.load_part(Share { thread: 0, threads: 2 });
//! assert_eq!(part, 0..500);
//! let mut key = Vec::new();
//! workload.write_key(part.start, &mut key);
//! assert_eq!(key, b"user6284781860667377211");
//!
//! // The run: blocks of 64 operations, four to a transaction.
//! let inserts = workload.inserts();
//! let mut stream = workload.stream(42, Share::ALONE, &inserts);
//! let mut block = Block::new(4);
//! stream.fill(&mut block);
//! for transaction in block.transactions() {
//!     assert_eq!(transaction.len(), 4);
//!     for op in transaction {
//!         match *op {
//!             Op::Read { record, .. } | Op::Update { record, .. } => assert!(record < 1000),
//!             Op::Insert => inserts.begin().acknowledge(), // insert its record before this
//!             Op::Scan { .. } | Op::ReadModifyWrite { .. } => {}
//!         }
//!     }
//! }
//! # Ok::<(), silvics_workload::ycsb::PropertyError>(())
//! ```
//!
//! # Guarantees
//! * The operations of a thread depend only on the properties, the seed, the thread's
//!   [`Share`](crate::Share) and the number of acknowledged inserts at each fill. Without inserts,
//!   or with one thread, they are the same in every run.
//! * No request names a record that is neither loaded nor inserted and acknowledged.
//!
//! # Departures from YCSB
//! 1. **Blocks.** YCSB draws one operation at a time. A block sees the inserts acknowledged before
//!    its fill, so `latest` lags by up to one block. A block of one operation has no lag.
//! 2. **Numbers of inserts.** [`Op::Insert`] has no number. The thread takes it with
//!    [`Inserts::begin`] when it executes the operation, so no number waits in a block. If an
//!    insert fails, its number is used again, whereas YCSB acknowledges it and later misses the
//!    record.
//! 3. **Zipfian requests.** Ranks are drawn from 10^10 items, as in YCSB (commit cd1589ce,
//!    `ScrambledZipfianGenerator`). The hottest records are those of YCSB, unless a workload with
//!    inserts expects several runs ([`Workload::of_runs`]). After [`REDRAWS`] draws that name no
//!    record, the next draw is scattered among the records present, where YCSB draws on. This
//!    happens if many more inserts are expected than records are present.
//! 4. **Latest requests.** The oldest record can be chosen, and the distribution follows the number
//!    of records ([`Zipf`] lists this departure).
//! 5. **Exponential requests.** One draw from the distribution between the youngest and the oldest
//!    record, instead of draws that are repeated until one names a record.
//! 6. **Sequential requests.** Thread t of T chooses the records t, t + T, t + 2T and so on,
//!    instead of taking them from a counter that all threads share.
//! 7. **Parts of a table.** If `insertstart` and `insertcount` select a part of `recordcount`, no
//!    request names another part, because the load and the run share a process.
//! 8. **Errors.** YCSB takes `recordcount=0` for 2^31 - 1, any `insertorder` but `hashed` for
//!    `ordered`, any flag but `true` for `false`, and proportions that do not sum to 1. Here these
//!    are errors. `workload` may be missing.
//! 9. **Field values** can be checked: see [`fill_field`].

mod error;
mod fields;
mod inserts;
mod keys;
mod properties;
mod requests;
mod settings;
mod stream;
mod study;
#[cfg(test)]
mod tests;
mod workload;
mod zipf;

pub use error::PropertyError;
pub use fields::{FieldError, HEAD_BYTES, check_field, check_head, fill_field};
pub use inserts::{Insert, Inserts};
pub use keys::fnv_hash;
pub use properties::{FILE_MAX, Origin, Properties, Property};
pub use requests::REDRAWS;
pub use settings::{
    FieldLengthDist, InsertOrder, Note, Proportions, RECORDS_MAX, RequestDist, ScanLengthDist,
    Settings,
};
pub use stream::{Block, Fields, Op, Stream};
pub use study::{Request, Study, StudyError, StudyStream};
pub use workload::Workload;
pub use zipf::{EXPONENT_MAX, YCSB_EXPONENT, Zipf};
