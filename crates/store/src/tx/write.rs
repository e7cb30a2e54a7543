//! Insertions, updates and deletions: they are remembered until the commit, and place their entries
//! in indexes at once.
//!
//! An entry of an index is a hint: the row says whether it is there, and which key it has. So an
//! entry may come before the row has the key, and may stay a little longer than the row has it.

use super::arena::Stored;
use super::entries::{NO_ENTRIES, Placed};
use super::read::{Found, Opened};
use super::state::{IndexPtr, Inner, Write, WriteKind, bytes};
use crate::canary::{self, Canary};
use crate::error::Error;
use crate::index::{ErasedIndex, IndexCore};
use crate::key::KeyRef;
use crate::policy::{Policy, Seen, Stop};
use crate::postponed::removed;
use crate::rows::{Address, RowRef};
use crate::table::TableCore;
use silvics::AllocError;
use silvics_sync::backoff::Backoff;
use std::ptr::NonNull;

/// The attempts to place an entry whose place a row has that is not there.
const TRIES: usize = 32;

/// Why a row cannot be written.
pub(crate) enum Fail {
    Stop(Stop),
    Error(Error),
}

impl From<Stop> for Fail {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<AllocError> for Fail {
    fn from(error: AllocError) -> Self {
        Self::Stop(Stop::Alloc(error))
    }
}

impl<P: Policy> Inner<'_, P> {
    /// Inserts a row with the columns `new`, which lie in the arena.
    pub(crate) fn insert(&mut self, table: &TableCore<P>, new: NonNull<u64>) -> Result<(), Fail> {
        let primary = &*table.indexes[0];
        let words = table.places.words;
        // SAFETY: the words of the new row, which nobody writes now.
        let image = unsafe { bytes(new, words) };
        if let Some(at) = self.own_deleted(primary, image) {
            return self.revive(table, at, new);
        }
        self.work.writes.reserve()?;
        let row = table.rows.owner().alloc(P::new_header(self.ts))?;
        let row = row_of::<P>(row, words);
        let mark = match P::made(self, row) {
            Ok(mark) => mark,
            Err(stop) => {
                // SAFETY: the row was made above, and no other thread knows it.
                unsafe { table.rows.owner().dealloc(row.address) };
                return Err(stop.into());
            }
        };
        let kind = WriteKind::Insert;
        let table_of = NonNull::from(table);
        let (old, locked, entries) = (None, true, NO_ENTRIES);
        let write = Write { row, table: table_of, kind, new, old, locked, mark, entries };
        let at = self.work.writes.push(write);
        let placed = self.work.placed.len();
        for index in &table.indexes {
            let done = index.core().with_key(image, |key| self.place(table, &**index, key, at));
            if let Err(fail) = done {
                self.unplace_from(placed);
                // The row stays in the list, so that the end of the transaction frees it.
                self.work.writes.all_mut()[at].kind = WriteKind::Void;
                return Err(fail);
            }
        }
        Ok(())
    }

    /// The number of the write by which this transaction has deleted the row that has the primary
    /// key of `image`.
    fn own_deleted(&self, primary: &dyn ErasedIndex, image: &[u8]) -> Option<usize> {
        if self.work.writes.is_empty() {
            return None;
        }
        let word = primary.core().with_key(image, |key| primary.look(key, &self.guard))?;
        // SAFETY: R1: the word is one of an index.
        let at = self.work.writes.find(unsafe { Address::of(word) })?;
        (self.work.writes.all()[at].kind == WriteKind::Delete).then_some(at)
    }

    /// Inserts a row in place of one with the same primary key that this transaction has deleted.
    fn revive(&mut self, table: &TableCore<P>, at: usize, new: NonNull<u64>) -> Result<(), Fail> {
        let Some(old) = self.work.writes.all()[at].old else { return Ok(()) };
        self.reindex(table, at, old, new)?;
        let write = &mut self.work.writes.all_mut()[at];
        (write.kind, write.new) = (WriteKind::Update, new);
        Ok(())
    }

    /// Gives the row that `find` has found for writing the columns `new`, which lie in the arena.
    pub(crate) fn update(
        &mut self,
        table: &TableCore<P>,
        found: Found<P>,
        new: NonNull<u64>,
    ) -> Result<(), Fail> {
        match found.seen {
            Seen::Own(at) => {
                let now = self.work.writes.all()[at].new;
                self.reindex(table, at, now, new)?;
                self.work.writes.all_mut()[at].new = new;
            }
            Seen::Present(mark) => {
                // The row is in the list before its entries are placed: see `is_placed`.
                let at = self.push_write(table, found, WriteKind::Update, new, mark)?;
                if let Err(fail) = self.reindex(table, at, found.image, new) {
                    debug_assert_eq!(at + 1, self.work.writes.all().len());
                    // D1: another transaction may delete the row from now on.
                    self.remove_stuck(|row| row == found.row.address);
                    P::unhold(self, at);
                    self.work.writes.pop();
                    return Err(fail);
                }
                if canary::planted(Canary::IndexTorn) {
                    self.tear(at, true);
                }
            }
            Seen::Absent => {}
        }
        Ok(())
    }

    /// Deletes the row that `find` has found for writing.
    pub(crate) fn delete(&mut self, table: &TableCore<P>, found: Found<P>) -> Result<(), Fail> {
        match found.seen {
            Seen::Own(at) => {
                self.unplace_row(at, |_| true)?;
                let write = &mut self.work.writes.all_mut()[at];
                write.kind = if write.old.is_none() { WriteKind::Void } else { WriteKind::Delete };
            }
            Seen::Present(mark) => {
                self.push_write(table, found, WriteKind::Delete, found.image, mark)?;
            }
            Seen::Absent => {}
        }
        Ok(())
    }

    fn push_write(
        &mut self,
        table: &TableCore<P>,
        found: Found<P>,
        kind: WriteKind,
        new: NonNull<u64>,
        mark: u64,
    ) -> Result<usize, AllocError> {
        let (row, old) = (found.row, Some(found.image));
        self.work.writes.reserve()?;
        let table = NonNull::from(table);
        let (locked, entries) = (false, NO_ENTRIES);
        Ok(self.work.writes.push(Write { row, table, kind, new, old, locked, mark, entries }))
    }

    /// Places the entries for the keys that a row gets, and removes those that this transaction has
    /// placed for keys that it loses. `at` is the write of the row, and `now` are the columns that
    /// this transaction has seen so far.
    fn reindex(
        &mut self,
        table: &TableCore<P>,
        at: usize,
        now: NonNull<u64>,
        new: NonNull<u64>,
    ) -> Result<(), Fail> {
        let words = table.places.words;
        let &Write { row, old: committed, .. } = &self.work.writes.all()[at];
        // SAFETY: the arena has these images, which nobody writes now.
        let (now, new) = unsafe { (bytes(now, words), bytes(new, words)) };
        // SAFETY: likewise.
        let committed = committed.map(|committed| unsafe { bytes(committed, words) });
        let first = self.work.placed.len();
        for index in &table.indexes[1..] {
            let core = index.core();
            let has =
                same_key(core, now, new) || committed.is_some_and(|old| same_key(core, old, new));
            let done = core.with_key(new, |key| {
                if !has {
                    if canary::planted(Canary::IndexNotUpdated) {
                        return Ok(());
                    }
                    P::hold(self, at).map_err(Stop::from)?;
                    return self.place(table, &**index, key, at);
                }
                if self.is_taken_over(&**index, key, row.address) {
                    return Err(Fail::Error(unique(table, core)));
                }
                Ok(())
            });
            if let Err(fail) = done {
                self.unplace_from(first);
                return Err(fail);
            }
        }
        let is_old = |placed: &Placed| {
            // SAFETY: T1; the arena is cleared after the transaction.
            let (core, key) = unsafe { (placed.index.get().core(), placed.key.get()) };
            !core.with_key(new, |new| new == key)
        };
        let done = self.unplace_row(at, is_old);
        if done.is_err() {
            self.unplace_from(first);
        }
        Ok(done?)
    }

    /// Removes the entries of a row for which `is_old` holds. If this fails, none of them is
    /// removed. `at` is the write of the row.
    fn unplace_row(&mut self, at: usize, is_old: impl Fn(&Placed) -> bool) -> Result<(), Stop> {
        self.each_old(at, &is_old, |this, _, placed| {
            if placed.takes_over.is_some() {
                return Ok(());
            }
            // SAFETY: T1; the arena is cleared after the transaction.
            let (index, key) = unsafe { (placed.index.get(), placed.key.get()) };
            P::unplacing(this, index, key)
        })?;
        self.each_old(at, &is_old, |this, number, _| {
            let placed = this.work.drop_entry(number);
            this.unplace(&placed);
            Ok(())
        })
    }

    /// Calls `visit` with the number of each entry of a row for which `is_old` holds.
    fn each_old(
        &mut self,
        at: usize,
        is_old: impl Fn(&Placed) -> bool,
        mut visit: impl FnMut(&mut Self, usize, &Placed) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut next = self.work.entries(at).next().map(|(number, _)| number);
        while let Some(number) = next {
            let placed = self.work.placed[number];
            next = placed.after();
            if is_old(&placed) {
                visit(self, number, &placed)?;
            }
        }
        Ok(())
    }

    /// Places an entry.
    fn place(
        &mut self,
        table: &TableCore<P>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        at: usize,
    ) -> Result<(), Fail> {
        if index.core().is_unique() {
            P::claim(self, index, key)?;
        }
        let stored = self.work.arena.key(key)?;
        let row = self.work.writes.all()[at].row;
        // It is in the list before it is in the index, which may unwind.
        self.work.add_entry(at, IndexPtr::of(index), stored)?;
        let mut backoff = Backoff::new();
        for _ in 0..TRIES {
            let present = match index.place(key, row.address.word(), &self.guard) {
                Ok(None) => {
                    P::placed(self, index, key)?;
                    return Ok(());
                }
                Ok(Some(present)) => present,
                Err(error) => {
                    self.work.drop_last_entry();
                    return Err(error.into());
                }
            };
            if present == row.address.word() {
                if self.is_taken_over(index, key, row.address) {
                    self.work.drop_last_entry();
                    return Err(Fail::Error(unique(table, index.core())));
                }
                if self.adopts(index, key, row.address) {
                    P::placed(self, index, key)?;
                    return Ok(());
                }
                backoff.wait();
                continue;
            }
            match self.occupant(index, key, present) {
                Ok(Occupant::GivesUp) => {
                    // SAFETY: R1: the word is one of an index.
                    let displaced = unsafe { Address::of(present) };
                    if self.is_taken_over(index, key, displaced) {
                        return self.is_there(table, index);
                    }
                    match self.outlasts(index, (key, stored), displaced) {
                        Ok(Some(at)) => {
                            self.work.take_over_last(at);
                            return Ok(());
                        }
                        Ok(None) => {
                            self.store.tidy(&self.guard);
                            backoff.wait();
                        }
                        Err(stop) => {
                            self.work.drop_last_entry();
                            return Err(stop.into());
                        }
                    }
                }
                Ok(Occupant::Leaves) => {
                    self.store.tidy(&self.guard); // the removal of the entry may be postponed
                    backoff.wait();
                }
                Ok(Occupant::Stays) => return self.is_there(table, index),
                Err(stop) => {
                    self.work.drop_last_entry();
                    return Err(stop.into());
                }
            }
        }
        self.work.drop_last_entry();
        Err(self.store.obstructed().into())
    }

    /// Refuses the last entry: another row has its key, if what was read is still true.
    #[cold]
    fn is_there(&mut self, table: &TableCore<P>, index: &dyn ErasedIndex) -> Result<(), Fail> {
        self.work.drop_last_entry();
        P::recheck(self).map_err(Stop::from)?;
        Err(Fail::Error(unique(table, index.core())))
    }

    /// Whether the entry of a row that gives its key up stays until the commit, which can replace
    /// it then. An entry stays if its row was committed with the key. An entry whose removal has
    /// failed stays, too: this transaction keeps it from now on. Any other entry was placed by
    /// another transaction, which may remove it. Returns the number of the row's write if the entry
    /// stays.
    fn outlasts(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        (key, stored): (KeyRef<'_>, Stored),
        row: Address,
    ) -> Result<Option<usize>, Stop> {
        let Some(at) = self.work.writes.find(row) else { return Ok(None) };
        if self.had_key(at, index, key) || canary::planted(Canary::EntryStolen) {
            return Ok(Some(at));
        }
        if self.stuck(index, key, row).is_none() {
            P::hold(self, at)?; // D1: from now on, no other transaction deletes the row
            self.work.reserve_stuck()?;
            if !self.store.keep_postponed(IndexPtr::of(index), key, row) {
                return Ok(None);
            }
            self.work.stuck.push((IndexPtr::of(index), stored, row));
        }
        P::placed(self, index, key)?; // the key was absent
        Ok(Some(at))
    }

    /// Whether another row of this transaction takes over a key of a row at the commit.
    fn is_taken_over(
        &self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        row: Address,
    ) -> bool {
        let this = IndexPtr::of(index);
        self.work.takers(row).any(|taker| {
            // SAFETY: the arena is cleared after the transaction.
            taker.index.is(this) && unsafe { taker.key.get() } == key
        })
    }

    /// Reads the row that has an entry which this transaction wants to place.
    fn occupant(
        &mut self,
        index: &dyn ErasedIndex,
        key: KeyRef<'_>,
        word: u64,
    ) -> Result<Occupant, Stop> {
        let core = index.core();
        Ok(match self.open(core, key, word, core.words, false)? {
            Opened::Row(_) => Occupant::Stays,
            Opened::Gone => Occupant::Leaves,
            Opened::OwnGone => Occupant::GivesUp,
        })
    }

    /// Removes the entries that were placed since there were `first` of them.
    pub(crate) fn unplace_from(&mut self, first: usize) {
        while self.work.placed.len() > first {
            let placed = self.work.drop_last_entry();
            self.unplace(&placed);
        }
    }

    fn unplace(&mut self, placed: &Placed) {
        if placed.takes_over.is_some() {
            return;
        }
        self.remove_entry(placed.index, placed.key, placed.row);
    }

    /// Removes an entry, now or at the end: until then, another row of this transaction may take
    /// its key over, so no other thread may remove it.
    fn remove_entry(&mut self, index: IndexPtr, key: Stored, row: Address) {
        if !self.try_remove(index, key, row) {
            self.work.stuck.push((index, key, row));
        }
    }

    /// Keeps the entry of a row and a key, if its removal has failed. Returns whether it was so.
    #[cold]
    fn adopts(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        row: Address,
    ) -> bool {
        if let Some(at) = self.stuck(index, key, row) {
            self.work.stuck.swap_remove(at);
            return true;
        }
        self.store.keep_postponed(IndexPtr::of(index), key, row)
    }

    /// The number of an entry of this transaction whose removal has failed.
    fn stuck(
        &self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        row: Address,
    ) -> Option<usize> {
        self.work.stuck.iter().position(|&(of, stuck, to)| {
            // SAFETY: the arena is cleared after the transaction.
            to == row && of.is(IndexPtr::of(index)) && unsafe { stuck.get() } == key
        })
    }

    /// Removes an entry, unless another one has its place. Returns false if there is no memory.
    fn try_remove(&self, index: IndexPtr, key: Stored, row: Address) -> bool {
        // SAFETY: T1; the arena is cleared after the transaction.
        let (index, key) = unsafe { (index.get(), key.get()) };
        let is_gone = index.look(key, &self.guard) != Some(row.word())
            || removed(index, key, row, &self.guard);
        P::withdrawn(index.core());
        is_gone
    }

    /// Removes the entries of some rows whose removal has failed, now or in a later transaction.
    pub(crate) fn remove_stuck(&mut self, is_due: impl Fn(Address) -> bool) {
        let mut at = 0;
        while let Some(&(index, key, row)) = self.work.stuck.get(at) {
            if !is_due(row) {
                at += 1;
                continue;
            }
            self.work.stuck.swap_remove(at);
            if !self.try_remove(index, key, row) {
                // SAFETY: the arena is cleared after the transaction.
                self.store.postpone(index, unsafe { key.get() }, row, None);
                // Counted again: who has met the entry since the last count looks again, and finds
                // it on the list.
                // SAFETY: T1.
                P::withdrawn(unsafe { index.get() }.core());
            }
        }
    }
}

/// The row that has an entry which a transaction wants to place.
enum Occupant {
    /// It keeps the key: the index is unique.
    Stays,
    /// It is about to go, or to have the key.
    Leaves,
    /// This transaction deletes it, or gives it another key: the entry is replaced at the commit.
    GivesUp,
}

fn unique<P: Policy>(table: &TableCore<P>, index: &IndexCore) -> Error {
    Error::Unique { table: table.name.clone(), index: index.name.clone() }
}

fn same_key(core: &IndexCore, one: &[u8], other: &[u8]) -> bool {
    core.with_key(one, |one| core.with_key(other, |other| one == other))
}

fn row_of<P: Policy>(row: Address, words: usize) -> RowRef<P::Rows> {
    // SAFETY: the caller has just allocated the row.
    unsafe { RowRef::new(row, words) }
}
