//! Databases that a user would choose instead of the store, each in memory.
//!
//! # How they are driven
//! | name | crate | how |
//! |---|---|---|
//! | `db:sqlite` | `rusqlite`, with SQLite compiled in | one connection to `:memory:` behind a mutex, prepared statements, a table with a column for each field |
//! | `db:redb` | `redb` on its in-memory backend | records as one value; one writer at a time |
//! | `db:surrealmx` | `surrealmx` | records as one value; conflicts are repeated |
//!
//! Reads and scans copy each record, as a client of YCSB gets it, and as the store does. SQLite has
//! no journal and never syncs. A commit of redb is not durable. surrealmx has its default settings,
//! which sync nothing.
//!
//! All threads share the connection to SQLite, so they wait for one another: with a second thread
//! SQLite is slower. So measure with `--threads 1,2`, and compare the best
//! rates of databases, which the report does. Several connections to one database in memory would
//! share a cache, whose tables are locked as a whole.
//!
//! A key-value store reads and writes whole records, so an update of one field copies the others.

mod redb;
mod sqlite;
mod surrealmx;

use super::engine::Engine;
use super::job::Job;
use super::run::Context;
use crate::flags::error::Error;
use crate::store::engine::Stop;
use silvics_workload::ycsb::{Fields, Insert, Op};
use std::fmt;

/// The names of all of them.
pub const NAMES: [&str; 3] = ["db:sqlite", "db:redb", "db:surrealmx"];

/// Makes the empty database with a name.
pub fn make(name: &str, job: &Job) -> Result<Box<dyn Engine>, Error> {
    let failed = |error: &dyn fmt::Display| Error::value("--index", format!("`{name}`: {error}"));
    Ok(match name {
        "db:sqlite" => Box::new(sqlite::Sqlite::new(job).map_err(|error| failed(&error))?),
        "db:redb" => Box::new(redb::Redb::new().map_err(|error| failed(&error))?),
        _ => Box::new(surrealmx::SurrealMx::new()), // `check_database` knows the names
    })
}

fn refused(error: impl fmt::Display) -> Stop {
    Stop::Refused(error.to_string())
}

/// Whether a transaction writes.
fn writes(ops: &[Op]) -> bool {
    ops.iter().any(|op| !matches!(op, Op::Read { .. } | Op::Scan { .. }))
}

/// The bytes of a field's length.
const LENGTH: usize = 4;

/// A record as one value: the length and the bytes of each field, each field in a place that has
/// room for the longest.
struct Record<'a> {
    job: &'a Job,
    value: Vec<u8>,
}

impl<'a> Record<'a> {
    fn new(job: &'a Job) -> Self {
        let bytes = job.fields() as usize * (LENGTH + job.field_bytes() as usize);
        Self { job, value: vec![0; bytes] }
    }

    fn field(&self, field: u32) -> std::ops::Range<usize> {
        let bytes = LENGTH + self.job.field_bytes() as usize;
        let start = field as usize * bytes;
        start..start + bytes
    }

    /// Fills some fields.
    fn fill(&mut self, record: u64, stamp: u64, fields: Fields) -> &[u8] {
        for field in (0..self.job.fields()).filter(|field| fields.contains(*field)) {
            let range = self.field(field);
            let (length, value) = self.value[range].split_at_mut(LENGTH);
            let bytes = self.job.fill(record, field, stamp, value).len() as u32;
            length.copy_from_slice(&bytes.to_le_bytes());
        }
        &self.value
    }

    /// Copies a value, as a client gets it.
    fn copy(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
        std::hint::black_box(&mut self.value);
    }

    /// Copies a value, and checks the first bytes of a field.
    fn check(&mut self, record: u64, fields: Fields, value: &[u8]) -> Result<(), Stop> {
        self.copy(value);
        let field = Job::checked(fields);
        let place = self.value.get(self.field(field)).and_then(|place| place.split_first_chunk());
        let bytes = place.and_then(|(length, bytes)| {
            bytes.get(..u32::from_le_bytes(*length) as usize) // of `LENGTH` bytes
        });
        let Some(bytes) = bytes else {
            return Err(Stop::Wrong(format!("record {record} has {} bytes", value.len())));
        };
        self.job.check(record, field, bytes).map_err(Stop::Wrong)
    }
}

/// The records that a transaction inserts, and the counts that it adds when it is committed.
struct Pending<'a> {
    numbers: Vec<Insert<'a>>,
    missed: u64,
    scanned: u64,
}

impl<'a> Pending<'a> {
    fn new(ops: &[Op], context: &Context<'a>) -> Self {
        let inserts = ops.iter().filter(|op| matches!(op, Op::Insert));
        Self { numbers: inserts.map(|_| context.inserts.begin()).collect(), missed: 0, scanned: 0 }
    }

    /// Begins an attempt: nothing has been counted.
    fn begin(&mut self) {
        (self.missed, self.scanned) = (0, 0);
    }

    fn commit(self, context: &mut Context<'_>) {
        context.tally.missed += self.missed;
        context.tally.scanned += self.scanned;
        context.tally.inserted += self.numbers.len() as u64;
        for number in self.numbers {
            number.acknowledge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_workload::ycsb::Study;

    #[test]
    fn records_with_wrong_bytes_are_seen() {
        let job = Job::study(Study { rows: 100, ..Study::ATC18 }, 1);
        let value = Record::new(&job).fill(7, 1, Fields::All).to_vec();
        let check = |record: u64, fields: Fields, value: &[u8]| {
            let checked = Record::new(&job).check(record, fields, value);
            assert!(matches!(checked, Ok(()) | Err(Stop::Wrong(_))));
            checked.is_ok()
        };
        assert!(check(7, Fields::All, &value) && check(7, Fields::One(9), &value));
        assert!(!check(8, Fields::All, &value), "that of another record");
        for bytes in [0, LENGTH - 1, LENGTH, LENGTH + 1] {
            assert!(!check(7, Fields::All, &value[..bytes]), "{bytes} bytes");
        }
        for at in 0..=LENGTH {
            let mut damaged = value.clone();
            damaged[at] ^= 0x55;
            assert!(!check(7, Fields::All, &damaged), "byte {at}");
            assert!(check(7, Fields::One(1), &damaged), "that of another field");
        }
    }
}
