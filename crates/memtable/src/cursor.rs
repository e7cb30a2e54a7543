//! Cursors over the versions of a table, and over what a snapshot sees of several tables.

use crate::entry::Entry;
use crate::index::{Index, Start};
use crate::key::{InternalKey, Kind, Seqno};
use crate::table::Table;
use std::fmt;
use std::sync::Arc;

/// A cursor over all versions in a table, in both directions.
///
/// It keeps the table, and pins nothing between its steps. It reads some entries ahead. Entries
/// that are added meanwhile may be missed, so it sees all entries that were there when it was
/// positioned.
pub struct TableCursor<I: Index> {
    // Dropped before the table.
    run: Vec<Entry<'static>>,
    at: usize,
    backwards: bool,
    /// The entries to read ahead next time.
    ahead: usize,
    /// C1: the entries of `run` lie in this table.
    table: Arc<Table<I>>,
}

impl<I: Index> TableCursor<I> {
    pub(crate) fn new(table: Arc<Table<I>>) -> Self {
        Self { run: Vec::new(), at: 0, backwards: false, ahead: I::AHEAD.0, table }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table<I>> {
        &self.table
    }

    /// Reads a run of entries.
    fn read(&mut self, from: Start<'_, '_>, backwards: bool) {
        let from = match from {
            Start::End => Start::End,
            Start::Key(key) => Start::Key(key),
            // SAFETY: C1: the entry is one of the run, which lies in the table.
            Start::Beyond(entry) => Start::Beyond(unsafe { Entry::from_raw(entry.as_ptr()) }),
        };
        self.run.clear();
        let guard = self.table.domain().pin();
        // SAFETY: C1: `self` keeps the table, and hands entries out for the time of a borrow.
        let table: &'static Table<I> = unsafe { &*Arc::as_ptr(&self.table) };
        // SAFETY: C1: the entry was one of the run, which the index has returned.
        unsafe { table.index().scan(from, backwards, self.ahead, &mut self.run, &guard) };
        (self.at, self.backwards) = (0, backwards);
        self.ahead = (self.ahead * 2).min(I::AHEAD.1);
    }

    /// The entry at which the cursor stands.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        self.run.get(self.at).copied()
    }

    /// The internal key at which the cursor stands.
    #[inline]
    pub fn key(&self) -> Option<InternalKey<'_>> {
        self.entry().map(Entry::key)
    }

    /// The value at which the cursor stands. It is empty if the version deletes its key.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        // SAFETY: C1: all entries of a table were written by `Draft::write`.
        self.entry().map(|entry| unsafe { entry.value() })
    }

    /// Moves to the first entry.
    pub fn first(&mut self) {
        self.ahead = I::AHEAD.0;
        self.read(Start::End, false);
    }

    /// Moves to the last entry.
    pub fn last(&mut self) {
        self.ahead = I::AHEAD.0;
        self.read(Start::End, true);
    }

    /// Moves to the first entry at or after a key.
    pub fn seek(&mut self, key: InternalKey<'_>) {
        self.ahead = I::AHEAD.0;
        self.read(Start::Key(key), false);
    }

    /// Moves to the last entry at or before a key.
    pub fn seek_for_prev(&mut self, key: InternalKey<'_>) {
        self.ahead = I::AHEAD.0;
        self.read(Start::Key(key), true);
    }

    /// Leaves the cursor without an entry.
    fn clear(&mut self) {
        self.run.clear();
    }

    /// Moves to the next entry. A cursor without an entry stays so.
    #[inline]
    pub fn next(&mut self) {
        self.step(false);
    }

    /// Moves to the previous entry. A cursor without an entry stays so.
    #[inline]
    pub fn prev(&mut self) {
        self.step(true);
    }

    #[inline]
    fn step(&mut self, backwards: bool) {
        if self.backwards == backwards && self.at + 1 < self.run.len() {
            self.at += 1;
            return;
        }
        if let Some(entry) = self.run.get(self.at).copied() {
            self.read(Start::Beyond(entry), backwards);
        }
    }
}

impl<I: Index> fmt::Debug for TableCursor<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableCursor({:?})", self.entry())
    }
}

/// A cursor over the live entries that a snapshot sees in several tables, in both directions.
///
/// It keeps the tables, and pins nothing between its steps. It may be sent to another thread.
pub struct Cursor<I: Index> {
    tables: Vec<TableCursor<I>>,
    snapshot: Seqno,
    backwards: bool,
    /// The table and the address of the version at which the cursor stands.
    current: Option<(usize, Entry<'static>)>,
    /// The prefix of all keys at which it may stand.
    prefix: Option<Box<[u8]>>,
}

impl<I: Index> Cursor<I> {
    pub(crate) fn new(tables: impl Iterator<Item = Arc<Table<I>>>, snapshot: Seqno) -> Self {
        let tables = tables.map(TableCursor::new).collect();
        Self { tables, snapshot, backwards: false, current: None, prefix: None }
    }

    /// The sequence number whose state the cursor shows.
    pub fn snapshot(&self) -> Seqno {
        self.snapshot
    }

    /// The user key at which the cursor stands, and its value.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        let (_, entry) = self.current?;
        // SAFETY: `self` keeps the table of the entry, whose entries were written by
        // `Draft::write`.
        Some((entry.key().user, unsafe { entry.value() }))
    }

    /// Moves to the first user key.
    pub fn first(&mut self) {
        self.prefix = None;
        self.tables.iter_mut().for_each(TableCursor::first);
        self.settle(false);
    }

    /// Moves to the last user key.
    pub fn last(&mut self) {
        self.prefix = None;
        self.tables.iter_mut().for_each(TableCursor::last);
        self.settle(true);
    }

    /// Moves to the first user key at or after a key.
    pub fn seek(&mut self, user: &[u8]) {
        self.prefix = None;
        let key = InternalKey { user, trailer: u64::MAX };
        self.tables.iter_mut().for_each(|table| table.seek(key));
        self.settle(false);
    }

    /// Moves to the last user key at or before a key.
    pub fn seek_for_prev(&mut self, user: &[u8]) {
        self.prefix = None;
        let key = InternalKey { user, trailer: 0 };
        self.tables.iter_mut().for_each(|table| table.seek_for_prev(key));
        self.settle(true);
    }

    /// Moves to the first user key that begins with a prefix. Until the next seek the cursor stands
    /// at keys with this prefix only.
    ///
    /// Tables whose filter excludes the prefix are left out. They have a filter of prefixes if
    /// [`TableOptions::bloom`](crate::TableOptions::bloom) and
    /// [`TableOptions::prefix_of`](crate::TableOptions::prefix_of) are set, and then the prefix
    /// must be one that `prefix_of` returns for such keys. The order must keep keys with the prefix
    /// together and none of them before it, as the bytewise order does.
    pub fn seek_prefix(&mut self, prefix: &[u8]) {
        let key = InternalKey { user: prefix, trailer: u64::MAX };
        for table in &mut self.tables {
            if table.table().may_have_prefix(prefix) {
                table.seek(key);
            } else {
                table.clear();
            }
        }
        self.prefix = Some(prefix.into());
        self.settle(false);
    }

    /// Moves to the next user key. A cursor without an entry stays so.
    pub fn next(&mut self) {
        let Some((_, entry)) = self.current else { return };
        if self.backwards {
            let key = InternalKey { user: entry.key().user, trailer: 0 };
            self.tables.iter_mut().for_each(|table| table.seek(key));
            self.skip_user(entry.key().user, false); // a version with trailer 0
        }
        self.settle(false);
    }

    /// Moves to the previous user key. A cursor without an entry stays so.
    pub fn prev(&mut self) {
        let Some((_, entry)) = self.current else { return };
        if !self.backwards {
            let key = InternalKey { user: entry.key().user, trailer: u64::MAX };
            self.tables.iter_mut().for_each(|table| table.seek_for_prev(key));
            self.skip_user(entry.key().user, true);
        }
        self.settle(true);
    }

    /// Goes on to the next user key that is visible. The cursors of all tables stand at versions of
    /// keys beyond the current one.
    fn settle(&mut self, backwards: bool) {
        self.backwards = backwards;
        self.current = None;
        while let Some(nearest) = self.nearest(backwards) {
            let at = self.entry_of(nearest);
            let user = at.key().user;
            if self.prefix.as_ref().is_some_and(|prefix| !user.starts_with(prefix)) {
                return;
            }
            let newest = self.pass(user, backwards);
            if self.tables[nearest].entry().is_some_and(|now| now.as_ptr() == at.as_ptr()) {
                // A comparator that calls no key equal to itself: see `Comparator`.
                let table = &mut self.tables[nearest];
                if backwards { table.prev() } else { table.next() }
            }
            let Some((table, entry)) = newest else { continue };
            let key = entry.key();
            if key.kind() == Some(Kind::Put) && self.cover(user) < key.seqno() {
                self.current = Some((table, entry));
                return;
            }
        }
    }

    /// The table whose cursor stands at the nearest version.
    fn nearest(&self, backwards: bool) -> Option<usize> {
        let mut best: Option<(usize, InternalKey<'_>)> = None;
        for (number, table) in self.tables.iter().enumerate() {
            let Some(entry) = table.entry() else { continue };
            let key = entry.key();
            let is_nearer = best.is_none_or(|(_, other)| {
                let of_users = table.table().comparator().compare(key.user, other.user);
                if backwards { of_users.is_gt() } else { of_users.is_lt() }
            });
            if is_nearer {
                best = Some((number, key));
            }
        }
        best.map(|(number, _)| number)
    }

    /// The entry at which the cursor of a table stands.
    fn entry_of(&self, table: usize) -> Entry<'static> {
        let entry = self.tables[table].entry().expect("`nearest` has found it");
        // SAFETY: `self` keeps the table while it uses the entry.
        unsafe { Entry::from_raw(entry.as_ptr()) }
    }

    /// Moves the cursors of all tables past the versions of a user key. Returns the newest one that
    /// the snapshot sees.
    fn pass(&mut self, user: &[u8], backwards: bool) -> Option<(usize, Entry<'static>)> {
        let mut newest: Option<(usize, Entry<'static>)> = None;
        for number in 0..self.tables.len() {
            while self.tables[number].entry().is_some_and(|at| self.is_of(number, at, user)) {
                let entry = self.entry_of(number);
                let seqno = entry.key().seqno();
                if seqno <= self.snapshot
                    && newest.is_none_or(|(_, other)| other.key().seqno() < seqno)
                {
                    newest = Some((number, entry));
                }
                let table = &mut self.tables[number];
                if backwards { table.prev() } else { table.next() }
            }
        }
        newest
    }

    /// Moves the cursors of all tables past a user key.
    fn skip_user(&mut self, user: &[u8], backwards: bool) {
        self.pass(user, backwards);
    }

    fn is_of(&self, table: usize, entry: Entry<'_>, user: &[u8]) -> bool {
        self.tables[table].table().comparator().compare(entry.key().user, user).is_eq()
    }

    /// The greatest sequence number of a visible tombstone that covers a user key, or 0.
    fn cover(&self, user: &[u8]) -> Seqno {
        let covers = self.tables.iter().map(|table| table.table().covering(user, self.snapshot));
        covers.max().unwrap_or(0)
    }
}

impl<I: Index> fmt::Debug for Cursor<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({:?} at {})", self.current.map(|(_, entry)| entry), self.snapshot)
    }
}
