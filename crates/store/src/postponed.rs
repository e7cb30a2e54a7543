//! Removals of entries that were postponed, for lack of memory: some structures allocate to remove.
//!
//! The row of such an entry is absent, or does not have the key of the entry, so that transactions
//! pass over it. It is retired when its last entry has gone (R2). Each transaction that writes
//! tries again.

use crate::canary;
use crate::error::Conflict;
use crate::index::ErasedIndex;
use crate::key::KeyRef;
use crate::policy::{Policy, Stop};
use crate::rows::Address;
use crate::store::StoreCore;
use crate::table::TableCore;
use crate::tx::state::IndexPtr;
use silvics::{AllocError, Guard};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The entries that could not be removed from an index for lack of memory.
#[derive(Default)]
pub(crate) struct Postponed {
    any: AtomicBool,
    entries: Mutex<Vec<Entry>>,
    /// Rows that are to be retired when no entry leads to them any more, with their tables.
    rows: Mutex<Vec<(u64, Address)>>,
}

struct Entry {
    index: IndexPtr,
    key: Key,
    row: Address,
}

impl Entry {
    fn is(&self, index: &dyn ErasedIndex, key: KeyRef<'_>, row: Address) -> bool {
        // SAFETY: T1.
        let of = unsafe { self.index.get() }.core().serial;
        of == index.core().serial && self.row == row && self.key.get() == key
    }
}

/// Makes a call on an index. A panic, which only a heap of the user can cause, counts as a failed
/// allocation: a commit that has begun must be completed.
pub(crate) fn caught<T>(call: impl FnOnce() -> Result<T, AllocError>) -> Result<T, AllocError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        std::mem::forget(panic); // the panic hook has reported it; dropping it might panic, too
        Err(AllocError::System { requested: 0 })
    })
}

enum Key {
    Word(u64),
    Bytes(Box<[u8]>),
}

impl Key {
    fn get(&self) -> KeyRef<'_> {
        match self {
            Self::Word(word) => KeyRef::Word(*word),
            Self::Bytes(bytes) => KeyRef::Bytes(bytes),
        }
    }
}

impl<P: Policy> StoreCore<P> {
    /// Removes an entry of a row, now or later.
    pub(crate) fn remove(
        &self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        row: Address,
        guard: &Guard,
    ) {
        if caught(|| index.remove(key, guard)).is_err() {
            self.postpone(IndexPtr::of(index), key, row);
        }
    }

    /// Frees memory that no guard protects.
    pub(crate) fn flush(&self) {
        self.domain.flush();
    }

    /// Whether the removal of an entry was postponed.
    #[inline]
    pub(crate) fn is_postponed(
        &self,
        index: &dyn ErasedIndex,
        key: KeyRef<'_>,
        row: Address,
    ) -> bool {
        self.postponed.any.load(Ordering::Relaxed)
            && self.postponed.entries.lock().iter().any(|entry| entry.is(index, key, row))
    }

    /// Takes an entry off the list of those that are to be removed. Returns whether it was there.
    #[cold]
    pub(crate) fn adopt(&self, index: &dyn ErasedIndex, key: KeyRef<'_>, row: Address) -> bool {
        let mut entries = self.postponed.entries.lock();
        let at = entries.iter().position(|entry| entry.is(index, key, row));
        at.is_some_and(|at| {
            entries.swap_remove(at);
            true
        })
    }

    /// Why an entry cannot be placed where an absent row has one.
    pub(crate) fn obstructed(&self) -> Stop {
        if self.postponed.any.load(Ordering::Relaxed) {
            return Stop::Alloc(AllocError::System { requested: 0 });
        }
        Stop::Conflict(Conflict::Uncommitted)
    }

    /// Retires a row that is absent.
    pub(crate) fn retire(&self, table: &TableCore<P>, row: Address, guard: &Guard) {
        if canary::planted(canary::Canary::EntryLeft) {
            return; // an entry leads to the row
        }
        if self.postponed.any.load(Ordering::Relaxed) {
            let entries = self.postponed.entries.lock();
            if entries.iter().any(|entry| entry.row == row) {
                self.postponed.rows.lock().push((table.serial, row));
                return;
            }
        }
        let bytes = table.places.words * 8;
        // SAFETY: R2: no index leads to the row: its entries were removed, and none is postponed.
        unsafe { table.rows.retire(row.pointer(), bytes, guard) };
    }

    /// Leaves the removal of an entry to a later transaction.
    #[cold]
    pub(crate) fn postpone(&self, index: IndexPtr, key: KeyRef<'_>, row: Address) {
        let key = match key {
            KeyRef::Word(word) => Key::Word(word),
            KeyRef::Bytes(bytes) => Key::Bytes(bytes.into()),
        };
        self.postponed.entries.lock().push(Entry { index, key, row });
        self.postponed.any.store(true, Ordering::Relaxed);
    }

    /// Removes the entries whose removal was postponed, as far as there is memory.
    #[inline]
    pub(crate) fn tidy(&self, guard: &Guard) {
        if self.postponed.any.load(Ordering::Relaxed) {
            self.tidy_postponed(guard);
        }
    }

    #[cold]
    fn tidy_postponed(&self, guard: &Guard) {
        let mut entries = self.postponed.entries.lock();
        entries.retain(|entry| {
            // SAFETY: T1.
            let index = unsafe { entry.index.get() };
            index.look(entry.key.get(), guard) == Some(entry.row.word())
                && caught(|| index.remove(entry.key.get(), guard)).is_err()
        });
        let mut rows = self.postponed.rows.lock();
        let tables = self.tables.lock();
        rows.retain(|&(serial, row)| {
            if entries.iter().any(|entry| entry.row == row) {
                return true;
            }
            if let Some(table) = tables.iter().find(|table| table.serial == serial) {
                let bytes = table.places.words * 8;
                // SAFETY: R2: no entry leads to the row any more.
                unsafe { table.rows.retire(row.pointer(), bytes, guard) };
            }
            false
        });
        let any = !entries.is_empty() || !rows.is_empty();
        self.postponed.any.store(any, Ordering::Relaxed);
    }
}
