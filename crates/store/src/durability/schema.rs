//! The description of the tables of a store, which its log and its checkpoints have.
//!
//! It names the tables in the order in which they were created, their columns with their types, and
//! the columns of the primary key. Other indexes are not part of it: recovery builds them anew, so
//! a program may add or remove them.

use crate::policy::Policy;
use crate::table::TableCore;
use std::fmt::Write;
use std::sync::Arc;

/// The version of the format of records and checkpoints.
pub(super) const VERSION: u32 = 1;

/// The beginning of each description, before the version.
const PROGRAM: &str = "silvics-store ";

/// A longer description is replaced by its hash: the log has 64 KiB for it.
const MOST_BYTES: usize = 16 << 10;

/// The description of tables.
pub(super) fn describe<P: Policy>(tables: &[Arc<TableCore<P>>]) -> String {
    let mut text = format!("{PROGRAM}{VERSION}");
    for table in tables {
        let names = |columns: &[crate::schema::Place]| {
            let column =
                |column: &crate::schema::Place| format!("{:?} {}", column.name, column.kind);
            columns.iter().map(column).collect::<Vec<_>>().join(", ")
        };
        let columns = names(&table.places.columns);
        let key = names(&table.indexes[0].core().columns);
        let _ = write!(text, "\ntable {:?} ({columns}) primary ({key})", table.name);
    }
    if text.len() > MOST_BYTES {
        let hash = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        text = format!("{PROGRAM}{VERSION}\n{} tables with the hash {hash:032x}", tables.len());
    }
    text
}

/// How a description differs from the one of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// It is not one of a store.
    Foreign,
    /// It has another version.
    Version(String),
    /// A table differs: the description of the file, and that of this program.
    Table { found: String, declared: String },
}

/// Compares a description of a file with that of this program.
pub(super) fn difference(found: &str, declared: &str) -> Difference {
    let Some(rest) = found.strip_prefix(PROGRAM) else { return Difference::Foreign };
    let version = rest.lines().next().unwrap_or_default();
    if version != VERSION.to_string() {
        return Difference::Version(version.into());
    }
    let none = "no further table";
    let mut lines = (found.lines().skip(1), declared.lines().skip(1));
    loop {
        let pair = (lines.0.next(), lines.1.next());
        if pair.0 != pair.1 || pair == (None, None) {
            let text = |line: Option<&str>| line.unwrap_or(none).to_string();
            return Difference::Table { found: text(pair.0), declared: text(pair.1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let found = "silvics-store 1\ntable a\ntable b";
        let table = |found: &str, declared: &str| Difference::Table {
            found: found.into(),
            declared: declared.into(),
        };
        let with = |declared| difference(found, declared);
        assert_eq!(with("silvics-store 1\ntable a\ntable c"), table("table b", "table c"));
        assert_eq!(with("silvics-store 1\ntable a"), table("table b", "no further table"));
        assert_eq!(difference("leveldb", found), Difference::Foreign);
        assert_eq!(difference("silvics-store 2\n", found), Difference::Version("2".into()));
    }
}
