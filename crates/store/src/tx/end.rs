//! The end of a transaction: commit and abort.

use super::entries::Placed;
use super::state::{IndexPtr, Inner, Write, WriteKind, bytes, words};
use crate::canary::{self, Canary};
use crate::error::Conflict;
use crate::index::ErasedIndex;
use crate::policy::{Policy, Stop};
use crate::postponed::{NEEDS_REPAIRS, removed, replaced};
use crate::rows::Address;
use silvics::AllocError;
use silvics_sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

impl<P: Policy> Inner<'_, P> {
    /// Commits. If it fails, the transaction is aborted, and the database is as if it had not been.
    pub(crate) fn commit(&mut self) -> Result<(), Stop> {
        let done = match self.doomed {
            Some(stop) => Err(stop),
            None => self.try_commit(),
        };
        match done {
            Ok(()) => self.store.count_commit(),
            Err(_) => self.abort(),
        }
        if let Err(Stop::Conflict(conflict)) = done {
            self.store.count_abort(conflict);
        }
        done
    }

    fn try_commit(&mut self) -> Result<(), Stop> {
        let prepared = catch_unwind(AssertUnwindSafe(|| P::prepare(self)));
        prepared.unwrap_or_else(|panic| {
            self.abort(); // the index has panicked, and nothing has been changed
            resume_unwind(panic)
        })?;
        self.check_repairs()?; // after the locks: see `StoreCore::repairs`
        if self.work.writes.is_empty() {
            self.see();
            P::publish(self);
            self.clear();
            return Ok(());
        }
        self.take_over()?;
        self.append()?;
        for at in 0..self.work.writes.all().len() {
            self.apply(at);
        }
        self.remove_stuck(|_| true);
        P::publish(self);
        self.append_late();
        self.retire(|kind| matches!(kind, WriteKind::Delete | WriteKind::Void));
        self.clear();
        self.store.tidy(&self.guard);
        Ok(())
    }

    /// Fails if the store needs repairs, or has been repaired since the transaction began.
    #[inline(always)]
    pub(crate) fn check_repairs(&self) -> Result<(), Stop> {
        if self.store.repairs() == self.repairs { Ok(()) } else { Err(self.repairs_differ()) }
    }

    #[cold]
    fn repairs_differ(&self) -> Stop {
        if self.repairs == NEEDS_REPAIRS {
            return Stop::Alloc(AllocError::System { requested: 0 });
        }
        Conflict::RangeChanged.into()
    }

    /// Gives the keys that rows take over to these rows. If there is no memory, each key is given
    /// back to the row that had it, now or before another transaction uses the store.
    fn take_over(&mut self) -> Result<(), AllocError> {
        for at in 0..self.work.placed.len() {
            if self.work.placed[at].takes_over.is_none() {
                continue;
            }
            if let Err(error) = self.replace(at, |placed| Some(placed.row)) {
                (0..at).rev().for_each(|earlier| self.give_back_key(earlier));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives all keys that rows have taken over back to the rows before.
    #[cold]
    pub(crate) fn give_back_keys(&self) {
        (0..self.work.placed.len()).rev().for_each(|at| self.give_back_key(at));
    }

    /// Gives the key of an entry to a row, if there is one.
    fn replace(
        &self,
        at: usize,
        row: impl Fn(&Placed) -> Option<Address>,
    ) -> Result<(), AllocError> {
        let placed = &self.work.placed[at];
        let Some(row) = row(placed) else { return Ok(()) };
        // SAFETY: T1; the arena is cleared after the transaction.
        let (index, key) = unsafe { (placed.index.get(), placed.key.get()) };
        replaced(index, key, row, &self.guard)
    }

    /// Gives a key that was taken over back to the row before, now or later.
    #[cold]
    fn give_back_key(&self, at: usize) {
        if self.replace(at, |placed| placed.takes_over).is_ok() {
            return;
        }
        let &Placed { index, key, row, takes_over, .. } = &self.work.placed[at];
        // SAFETY: T1; the arena is cleared after the transaction.
        let (of, key) = unsafe { (index.get(), key.get()) };
        // The key may be one that the row before does not have, of an entry that was to be removed.
        let had_key = |row: &Address| {
            self.work.writes.find(*row).is_some_and(|before| self.had_key(before, of, key))
        };
        self.store.postpone(index, key, row, takes_over.filter(had_key));
    }

    /// Changes a row, and removes the entries of keys that it has no more.
    fn apply(&mut self, at: usize) {
        let &Write { row, kind, new, old, .. } = &self.work.writes.all()[at];
        // SAFETY: the arena has the images, which nobody writes now.
        let images = unsafe { (words(new, row.words), old.map(|old| words(old, row.words))) };
        match kind {
            WriteKind::Insert | WriteKind::Update => row.store(images.0, images.1),
            WriteKind::Delete | WriteKind::Void => {}
        }
        // SAFETY: T1: the store owns the table.
        let table = unsafe { self.work.writes.all()[at].table.as_ref() };
        let first = match kind {
            WriteKind::Insert | WriteKind::Void => return,
            WriteKind::Update => 1, // the primary key stays
            WriteKind::Delete => 0,
        };
        let Some(old) = old else { return };
        for index in &table.indexes[first..] {
            self.remove_old_entry(&**index, at, new, old);
        }
    }

    fn remove_old_entry(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        at: usize,
        new: NonNull<u64>,
        old: NonNull<u64>,
    ) {
        let &Write { row, kind, .. } = &self.work.writes.all()[at];
        // SAFETY: the arena has the images, which nobody writes now.
        let (new, old) = unsafe { (bytes(new, row.words), bytes(old, row.words)) };
        let core = index.core();
        core.with_key(old, |key| {
            let stays = kind == WriteKind::Update && core.with_key(new, |new| new == key);
            if stays || index.look(key, &self.guard) != Some(row.address.word()) {
                return; // another row of this transaction has taken the key over
            }
            P::removing(core);
            if !removed(index, key, row.address, &self.guard) {
                self.store.postpone(IndexPtr::of(index), key, row.address, None);
            }
        });
    }

    /// Undoes everything, and counts the conflict, if there was one.
    #[allow(clippy::unnecessary_wraps)] // as `commit`
    pub(crate) fn abort_counted(&mut self) -> Result<(), Stop> {
        if let Some(Stop::Conflict(conflict)) = self.doomed {
            self.store.count_abort(conflict);
        }
        self.abort();
        Ok(())
    }

    /// Undoes everything.
    pub(crate) fn abort(&mut self) {
        if canary::planted(Canary::IndexTorn) {
            (0..self.work.writes.all().len()).for_each(|at| self.tear(at, false));
        }
        if !canary::planted(Canary::EntryLeft) {
            self.unplace_from(0);
            self.remove_stuck(|_| true);
        }
        P::release(self);
        self.retire(|kind| matches!(kind, WriteKind::Insert | WriteKind::Void));
        self.clear();
        self.store.tidy(&self.guard);
    }

    /// A planted mistake: removes the entries of keys that a row gives up, or places them again.
    pub(crate) fn tear(&self, at: usize, removes: bool) {
        let &Write { row, new, old, ref table, .. } = &self.work.writes.all()[at];
        let Some(old) = old else { return };
        // SAFETY: the arena has the images, which nobody writes now; T1: the store owns the table.
        let (new, old, table) =
            unsafe { (bytes(new, row.words), bytes(old, row.words), table.as_ref()) };
        for index in &table.indexes[1..] {
            let core = index.core();
            core.with_key(old, |key| {
                let stays = core.with_key(new, |new| new == key);
                if !stays && !removes {
                    let _ = index.place(key, row.address.word(), &self.guard);
                } else if !stays && index.look(key, &self.guard) == Some(row.address.word()) {
                    let _ = index.remove(key, &self.guard);
                }
            });
        }
    }

    /// Retires the rows that are absent now.
    fn retire(&mut self, is_absent: impl Fn(WriteKind) -> bool) {
        for write in self.work.writes.all() {
            if is_absent(write.kind) {
                // SAFETY: T1: the store owns the table.
                let table = unsafe { write.table.as_ref() };
                self.store.retire(table, write.row.address, &self.guard);
            }
        }
    }

    fn clear(&mut self) {
        self.work.writes.clear();
        self.work.placed.clear();
        self.work.placements = 0;
        self.work.segment.clear();
        // SAFETY: the rows of the transaction borrow it, so none is left at its end.
        unsafe { self.work.arena.clear() };
    }

    /// Remembers that an allocation has failed: the next transaction frees retired objects before
    /// it begins. This one has a pin, which keeps those that were retired since it began.
    #[cold]
    pub(crate) fn starve(&mut self) {
        self.starved = true;
        self.store.starved.store(true, Ordering::Relaxed);
    }

    /// Remembers that the transaction cannot go on.
    pub(crate) fn doom(&mut self, why: Stop) {
        self.doomed.get_or_insert(why);
    }
}
