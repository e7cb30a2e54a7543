//! Changes of indexes that transactions leave to later ones, for lack of memory.
//!
//! A transaction that ends removes entries of its indexes. In some structures that needs memory. If
//! there is none, the entry stays, and leads to a row that is absent, or does not have its key. So
//! no transaction takes it for a row. It is removed when a later transaction ends, or wants its
//! place.
//!
//! # Invariant
//! * D1: a row is not retired while an entry in the list leads to it, or will lead to it as its
//!   owner. A transaction that takes an entry off the list holds the lock of the row until the
//!   entry is removed, or put back.

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
use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The entries that could not be removed from an index, or changed, for lack of memory.
#[derive(Default)]
pub(crate) struct Postponed {
    any: AtomicBool,
    /// See [`StoreCore::repairs`].
    repairs: AtomicU64,
    entries: Mutex<Vec<Entry>>,
    /// Rows that are to be retired when no entry leads to them any more, with their tables.
    rows: Mutex<Vec<(u64, Address)>>,
}

struct Entry {
    index: IndexPtr,
    key: Key,
    row: Address,
    /// The row to which the key belongs; `None` if the entry is to be removed.
    owner: Option<Address>,
}

impl Entry {
    fn is_of(&self, index: IndexPtr, key: KeyRef<'_>, row: Address) -> bool {
        self.row == row && self.index.is(index) && self.key.get() == key
    }

    /// Whether the row must not be freed yet.
    fn needs(&self, row: Address) -> bool {
        self.row == row || self.owner == Some(row)
    }

    /// Removes or changes the entry. Returns false if there is no memory.
    fn settle(&self, guard: &Guard) -> bool {
        // SAFETY: T1.
        let (index, key) = (unsafe { self.index.get() }, self.key.get());
        if index.look(key, guard) != Some(self.row.word()) {
            return true;
        }
        match self.owner {
            Some(owner) => replaced(index, key, owner, guard).is_ok(),
            None => removed(index, key, self.row, guard),
        }
    }
}

/// Makes a call on an index. A panic, which only a heap of the user can cause, counts as a failed
/// allocation: a commit that has begun must be completed.
fn caught(call: impl FnOnce() -> Result<(), AllocError>) -> Result<(), AllocError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        std::mem::forget(panic); // the panic hook has reported it; dropping it might panic, too
        Err(AllocError::System { requested: 0 })
    })
}

/// Removes the entry of a key, which leads to a row. Returns false if there is no memory.
pub(crate) fn removed(
    index: &dyn ErasedIndex,
    key: KeyRef<'_>,
    row: Address,
    guard: &Guard,
) -> bool {
    // A call that has unwound may be done (S6).
    caught(|| index.remove(key, guard)).is_ok() || index.look(key, guard) != Some(row.word())
}

/// Lets a key lead to another row.
pub(crate) fn replaced(
    index: &dyn ErasedIndex,
    key: KeyRef<'_>,
    row: Address,
    guard: &Guard,
) -> Result<(), AllocError> {
    match caught(|| index.replace(key, row.word(), guard)) {
        // A call that has unwound may be done (S6).
        Err(_) if index.look(key, guard) == Some(row.word()) => Ok(()),
        done => done,
    }
}

/// The number in a transaction that cannot use the store before it is repaired.
pub(crate) const NEEDS_REPAIRS: u64 = u64::MAX;

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
            return; // an entry may lead to the row
        }
        if self.postponed.any.load(Ordering::Relaxed) {
            // Held until the row is noted, so that `tidy_postponed` finds both or none.
            let entries = self.postponed.entries.lock();
            if entries.iter().any(|entry| entry.needs(row)) {
                self.postponed.rows.lock().push((table.serial, row));
                return;
            }
        }
        let bytes = table.places.words * 8;
        // SAFETY: R2: no index leads to the row: its entries were removed, and none is postponed.
        unsafe { table.rows.retire(row.pointer(), bytes, guard) };
    }

    /// The state of repairs: odd while a key leads to a row to which it does not belong, and the
    /// row to which it belongs cannot be found. A commit of several such keys has failed in the
    /// middle, and could not go back for lack of memory.
    ///
    /// Each transaction compares it with the state at its beginning, before each operation and
    /// after the commit has locked its rows, and is aborted if it differs. The failed commit
    /// changes the state before it releases its locks. So no transaction commits that has missed a
    /// row, or deletes the owner of such a key.
    #[inline(always)]
    pub(crate) fn repairs(&self) -> u64 {
        self.postponed.repairs.load(Ordering::Relaxed)
    }

    /// Leaves the removal of an entry to a later transaction, or its change if it has an owner.
    #[cold]
    pub(crate) fn postpone(
        &self,
        index: IndexPtr,
        key: KeyRef<'_>,
        row: Address,
        owner: Option<Address>,
    ) {
        let key = match key {
            KeyRef::Word(word) => Key::Word(word),
            KeyRef::Bytes(bytes) => Key::Bytes(bytes.into()),
        };
        let mut entries = self.postponed.entries.lock();
        entries.push(Entry { index, key, row, owner });
        self.postponed.note(&entries, true);
    }

    /// Whether the removal of an entry was postponed.
    #[inline]
    pub(crate) fn is_postponed(
        &self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        row: Address,
    ) -> bool {
        // Acquire: who does not find an entry on the list any more sees that it was counted.
        if !self.postponed.any.load(Ordering::Acquire) {
            return false;
        }
        let index = IndexPtr::of(index);
        self.postponed.entries.lock().iter().any(|of| of.is_of(index, key, row))
    }

    /// Takes an entry whose removal was postponed off the list: the caller keeps or removes it, and
    /// it holds the row (D1). Returns false if there is none.
    pub(crate) fn keep_postponed(&self, index: IndexPtr, key: KeyRef<'_>, row: Address) -> bool {
        if !self.postponed.any.load(Ordering::Relaxed) {
            return false;
        }
        let mut entries = self.postponed.entries.lock();
        let is_this = |of: &Entry| of.is_of(index, key, row) && of.owner.is_none();
        let found = entries.iter().position(is_this);
        found.map(|at| entries.swap_remove(at)).is_some()
    }

    /// Removes the entries whose removal was postponed, as far as there is memory.
    #[inline]
    pub(crate) fn tidy(&self, guard: &Guard) {
        if self.postponed.any.load(Ordering::Relaxed) {
            self.tidy_postponed(guard);
        }
    }

    #[cold]
    pub(crate) fn tidy_postponed(&self, guard: &Guard) {
        let mut entries = self.postponed.entries.lock();
        entries.retain(|entry| {
            let is_settled = entry.settle(guard);
            if is_settled {
                // SAFETY: T1.
                P::withdrawn(unsafe { entry.index.get() }.core());
            }
            !is_settled
        });
        let mut rows = self.postponed.rows.lock();
        let tables = self.tables.lock();
        rows.retain(|&(serial, row)| {
            if entries.iter().any(|entry| entry.needs(row)) {
                return true;
            }
            if let Some(table) = tables.iter().find(|table| table.serial == serial) {
                let bytes = table.places.words * 8;
                // SAFETY: R2: no entry leads to the row any more.
                unsafe { table.rows.retire(row.pointer(), bytes, guard) };
            }
            false
        });
        self.postponed.note(&entries, !rows.is_empty());
    }
}

impl Postponed {
    /// Notes the state of the list. The caller has its lock. Relaxed: a transaction that depends on
    /// `repairs` has acquired the lock or the version of a row that the failed commit has released
    /// after this call.
    fn note(&self, entries: &[Entry], has_rows: bool) {
        // Release: see `is_postponed`.
        self.any.store(!entries.is_empty() || has_rows, Ordering::Release);
        let state = self.repairs.load(Ordering::Relaxed);
        if needs_repairs(state) != entries.iter().any(|entry| entry.owner.is_some()) {
            self.repairs.store(state + 1, Ordering::Relaxed);
        }
    }
}

/// Whether a state of repairs says that a key leads to a row to which it does not belong.
pub(crate) fn needs_repairs(state: u64) -> bool {
    !state.is_multiple_of(2)
}
