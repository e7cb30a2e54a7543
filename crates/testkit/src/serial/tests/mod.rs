//! Tests of the checker: histories by hand, random histories, and broken stores.

#[cfg(not(miri))]
mod broken;
mod by_hand;
mod orders;
mod overlaps;
#[cfg(feature = "suite")]
mod random;
#[cfg(not(miri))]
mod recording;

use super::*;

/// A committed transaction.
pub(super) fn committed(thread: usize, start: u64, end: u64, of: &[Operation]) -> Transaction {
    Transaction { thread, start, end, outcome: End::Committed, operations: of.to_vec() }
}

pub(super) fn read(key: u64, value: impl Into<Option<u64>>) -> Operation {
    Operation::Read { key, value: value.into() }
}

pub(super) fn write(key: u64, value: impl Into<Option<u64>>) -> Operation {
    Operation::Write { key, value: value.into() }
}

pub(super) fn find(value: u64, found: impl Into<Option<u64>>) -> Operation {
    Operation::Find { value, found: found.into() }
}

pub(super) fn scan(range: Range, entries: &[Entry]) -> Operation {
    Operation::Scan { range, entries: entries.to_vec() }
}
