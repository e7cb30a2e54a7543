//! The end of a transaction: commit and abort.

use super::state::{IndexPtr, Inner, Write, WriteKind, bytes, words};
use crate::canary;
use crate::error::Conflict;
use crate::index::ErasedIndex;
use crate::policy::{Policy, Stop};
use silvics::AllocError;
use std::ptr::NonNull;

impl<P: Policy> Inner<'_, P> {
    /// Commits. If it fails, the transaction is aborted, and the database is as if it had not been.
    pub(crate) fn commit(&mut self) -> Result<(), Stop> {
        let done = match self.doomed {
            Some(conflict) => Err(conflict.into()),
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
        P::prepare(self)?;
        if self.work.writes.is_empty() {
            P::publish(self);
            self.clear();
            return Ok(());
        }
        self.take_over()?;
        for at in 0..self.work.writes.all().len() {
            self.apply(at);
        }
        P::publish(self);
        self.retire(|kind| matches!(kind, WriteKind::Delete | WriteKind::Void));
        self.clear();
        self.store.tidy(&self.guard);
        Ok(())
    }

    /// Gives the keys that rows take over to these rows. If there is no memory, no key has changed.
    fn take_over(&mut self) -> Result<(), AllocError> {
        for at in 0..self.work.placed.len() {
            if !self.work.placed[at].takes_over {
                continue;
            }
            let placed = &self.work.placed[at];
            // SAFETY: T1; the arena is cleared after the transaction.
            let (index, key) = unsafe { (placed.index.get(), placed.key.get()) };
            index.replace(key, placed.row.word(), &self.guard)?;
        }
        Ok(())
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
            if canary::planted(canary::Canary::IndexNotUpdated) && index.core().name != "primary" {
                continue;
            }
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
                return;
            }
            P::removing(core);
            if index.remove(key, &self.guard).is_err() {
                self.store.postpone(IndexPtr::of(index), key, row.address);
            }
        });
    }

    /// Undoes everything.
    pub(crate) fn abort(&mut self) {
        self.unplace_from(0);
        P::release(self);
        self.retire(|kind| matches!(kind, WriteKind::Insert | WriteKind::Void));
        self.clear();
        self.store.tidy(&self.guard);
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
        self.work.segment.clear();
        // SAFETY: the rows of the transaction borrow it, so none is left at its end.
        unsafe { self.work.arena.clear() };
    }

    /// Remembers that the transaction cannot go on.
    pub(crate) fn doom(&mut self, conflict: Conflict) {
        self.doomed.get_or_insert(conflict);
    }
}
