//! Redo records: the changes of one transaction as the operations of one batch.
//!
//! | change | kind of operation | key | value |
//! |---|---|---|---|
//! | inserted row | put | tag | the columns |
//! | updated row | put | tag with key | runs of words |
//! | deleted row | delete | tag with key | – |
//!
//! * The *tag* is a varint: twice the number of the table, plus 1 if the primary key follows.
//! * The *primary key* is in the form of the primary index: 8 little-endian bytes for a number, or
//!   the encoded bytes.
//! * The *columns* are the bytes of the row as it lies in memory: see [`Type`](crate::Type).
//! * A *run* is a varint with the number of words between the run before and this one, a varint
//!   with the number of its words, and these words. Words between runs have not changed.
//!
//! A varint has seven bits in each byte, the lowest first; the top bit says that another byte
//! follows.
//!
//! A record has at most one operation for each primary key (W2).

use crate::canary::{self, Canary};
use crate::durability::Position;
use crate::durability::log::Log;
use crate::key::KeyRef;
use crate::policy::{Policy, Stop};
use crate::schema::form;
use crate::table::TableCore;
use crate::tx::state::{Inner, Write, WriteKind, bytes, words};
use silvics::AllocError;
use silvics_memtable::{BatchError, Op, WriteBatch};

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// The memory in which a transaction makes its record. It has none in a store without a log.
#[derive(Default)]
pub(crate) struct Redo {
    batch: WriteBatch,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<P: Policy> Inner<'_, P> {
    /// Notes the position that must be durable before the result of a reader is passed on.
    #[inline]
    pub(crate) fn see(&mut self) {
        if !canary::planted(Canary::ReadsNotAwaited) {
            self.position = self.store.seen();
        }
    }

    /// Gives the record of the transaction its place in the log, if the store has one. If it fails,
    /// the keys that rows have taken over are given back.
    #[inline]
    pub(crate) fn append(&mut self) -> Result<(), Stop> {
        let Some(log) = &self.store.log else { return Ok(()) };
        if canary::planted(Canary::AppendedLate) {
            return Ok(());
        }
        let appended = self.append_record(log);
        if appended.is_err() {
            self.give_back_keys();
        }
        appended
    }

    #[inline(never)]
    fn append_record(&mut self, log: &Log) -> Result<(), Stop> {
        let work = &mut *self.work;
        let redo = &mut work.redo;
        redo.batch.clear();
        for write in work.writes.all() {
            redo.add(write).map_err(|error| match error {
                BatchError::Alloc(error) => Stop::Alloc(error),
                error => Stop::Record(error),
            })?;
        }
        if redo.batch.is_empty() {
            self.position = self.store.seen();
            return Ok(());
        }
        self.position = Position(log.append(&mut redo.batch)?);
        Ok(())
    }

    /// A planted mistake: appends the record when the rows are published.
    #[inline(always)]
    pub(crate) fn append_late(&mut self) {
        if canary::planted(Canary::AppendedLate)
            && let Some(log) = &self.store.log
        {
            let _ = self.append_record(log);
        }
    }
}

impl Redo {
    /// The words for which it keeps memory, or more: a record that was refused stays in it.
    pub(crate) fn room(&self) -> usize {
        (self.batch.bytes().len() + self.key.capacity() + self.value.capacity()) / WORD
    }

    /// Adds the operation of a write.
    fn add<P: Policy>(&mut self, write: &Write<P>) -> Result<(), BatchError> {
        // SAFETY: T1: the store owns the table.
        let table = unsafe { write.table.as_ref() };
        let count = write.row.words;
        let is_whole = write.kind == WriteKind::Insert;
        self.key.clear();
        reserve(&mut self.key, VARINT)?;
        push_varint(&mut self.key, (table.number as usize) << 1 | usize::from(!is_whole));
        // SAFETY: the arena has the image, which nobody writes now.
        let new = unsafe { bytes(write.new, count) };
        match (write.kind, write.old) {
            (WriteKind::Insert, _) => return self.batch.put(&self.key, new),
            (WriteKind::Void, _) | (_, None) => return Ok(()),
            (WriteKind::Update, Some(old)) => {
                // SAFETY: the arena has the images, which nobody writes now.
                let (old, new) = unsafe { (words(old, count), words(write.new, count)) };
                self.diff(old, new)?;
                if self.value.is_empty() {
                    return Ok(());
                }
            }
            (WriteKind::Delete, Some(_)) => {}
        }
        // An update keeps the primary key, and `new` of a deletion are the columns before it or
        // those that the transaction has given the row.
        table.indexes[0].core().with_key(new, |key| push_key(&mut self.key, key))?;
        match write.kind {
            WriteKind::Delete => self.batch.delete(&self.key),
            _ => self.batch.put(&self.key, &self.value),
        }
    }

    /// Fills `value` with the runs of words that differ.
    fn diff(&mut self, old: &[u64], new: &[u64]) -> Result<(), BatchError> {
        self.value.clear();
        let (mut at, mut end) = (0, 0);
        while let Some(skipped) = old[at..].iter().zip(&new[at..]).position(|(old, new)| old != new)
        {
            let start = at + skipped;
            let equal = old[start..].iter().zip(&new[start..]).position(|(old, new)| old == new);
            let run = &new[start..equal.map_or(new.len(), |equal| start + equal)];
            reserve(&mut self.value, 2 * VARINT + size_of_val(run))?;
            push_varint(&mut self.value, start - end);
            push_varint(&mut self.value, run.len());
            for word in run {
                self.value.extend_from_slice(&word.to_ne_bytes());
            }
            at = start + run.len();
            end = at;
        }
        Ok(())
    }
}

/// The most bytes of a varint.
const VARINT: usize = 10;

fn reserve(list: &mut Vec<u8>, more: usize) -> Result<(), BatchError> {
    let requested = list.len() + more;
    list.try_reserve(more).map_err(|_| BatchError::Alloc(AllocError::System { requested }))
}

fn push_varint(list: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        list.push(number as u8 | 0x80);
        number >>= 7;
    }
    list.push(number as u8);
}

fn take_varint(from: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for (at, &byte) in from.iter().take(VARINT - 1).enumerate() {
        number |= usize::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            *from = &from[at + 1..];
            return Some(number);
        }
    }
    None
}

fn push_key(list: &mut Vec<u8>, key: KeyRef<'_>) -> Result<(), BatchError> {
    match key {
        KeyRef::Word(word) => {
            reserve(list, WORD)?;
            list.extend_from_slice(&word.to_le_bytes());
        }
        KeyRef::Bytes(bytes) => {
            reserve(list, bytes.len())?;
            list.extend_from_slice(bytes);
        }
    }
    Ok(())
}

/// An operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// A row is inserted, or replaces the one with its primary key.
    Row(&'a [u8]),
    /// The row with this primary key gets runs of words.
    Runs(&'a [u8], Runs<'a>),
    /// The row with this primary key is deleted.
    Gone(&'a [u8]),
}

/// Reads an operation: the number of the table, and the change.
pub(super) fn change(op: Op<'_>) -> Option<(usize, Change<'_>)> {
    let (mut key, value) = match op {
        Op::Put { key, value } => (key, Some(value)),
        Op::Delete { key } => (key, None),
        Op::DeleteRange { .. } => return None,
    };
    let tag = take_varint(&mut key)?;
    let change = match (tag & 1, value) {
        (0, Some(row)) if key.is_empty() => Change::Row(row),
        (1, Some(runs)) => Change::Runs(key, Runs(runs)),
        (1, None) => Change::Gone(key),
        _ => return None,
    };
    Some((tag >> 1, change))
}

/// The primary key of a change in a table.
pub(super) fn key<'a, P: Policy>(table: &TableCore<P>, key: &'a [u8]) -> Option<KeyRef<'a>> {
    match form(&table.indexes[0].core().columns) {
        crate::key::FormKind::Word => Some(KeyRef::Word(u64::from_le_bytes(key.try_into().ok()?))),
        crate::key::FormKind::Bytes => Some(KeyRef::Bytes(key)),
    }
}

/// Runs of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Runs<'a>(&'a [u8]);

impl Runs<'_> {
    /// Calls `store` with each word and its number, which is below `count`. Returns false if the
    /// runs are invalid.
    pub(super) fn each(mut self, count: usize, mut store: impl FnMut(usize, u64)) -> bool {
        let mut at = 0_usize;
        while !self.0.is_empty() {
            let (Some(skipped), Some(words)) = (take_varint(&mut self.0), take_varint(&mut self.0))
            else {
                return false;
            };
            let start = at.saturating_add(skipped);
            let end = start.saturating_add(words);
            if end > count {
                return false;
            }
            let Some((run, rest)) = self.0.split_at_checked(words * WORD) else { return false };
            for (number, word) in (start..end).zip(run.as_chunks().0) {
                store(number, u64::from_ne_bytes(*word));
            }
            (self.0, at) = (rest, end);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_turn_the_old_row_into_the_new_one(
            pairs in prop::collection::vec((0_u64..3, 0_u64..3), 0..300),
        ) {
            let (mut old, new): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
            let mut redo = Redo::default();
            redo.diff(&old, &new).unwrap();
            prop_assert_eq!(redo.value.is_empty(), old == new);
            let count = old.len();
            prop_assert!(Runs(&redo.value).each(count, |at, word| old[at] = word));
            prop_assert_eq!(&old, &new);
            // A cut is refused, and a row that is too short, too.
            let cut = redo.value.len().saturating_sub(1);
            let is_valid = |runs, count| Runs(runs).each(count, |_, _| ());
            prop_assert!(cut == 0 || !is_valid(&redo.value[..cut], count));
            prop_assert!(cut == 0 || !is_valid(&redo.value, 0));
        }

        #[test]
        fn varints_are_read_as_written(number: u32) {
            let mut list = Vec::new();
            push_varint(&mut list, number as usize);
            let mut rest = &*list;
            prop_assert_eq!(take_varint(&mut rest), Some(number as usize));
            prop_assert!(rest.is_empty());
        }
    }
}
