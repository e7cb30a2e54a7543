//! Reads of a buffer.

use super::tables::Tables;
use super::{Snapshot, WriteBuffer};
use crate::index::Index;
use crate::key::Kind;
use crate::table::Found;
use silvics::Guard;
use silvics_sync::atomic::Ordering;
use std::fmt;

/// A pinned buffer: see [`WriteBuffer::view`]. It cannot leave its thread. Values borrow it.
pub struct View<'b, I: Index> {
    // The tables stay while the guard lives (W6).
    tables: *const Tables<I>,
    snapshot: Snapshot,
    guard: Guard,
    buffer: &'b WriteBuffer<I>,
}

impl<'b, I: Index> View<'b, I> {
    #[inline]
    pub(super) fn new(buffer: &'b WriteBuffer<I>) -> Self {
        let guard = buffer.domain.pin();
        let snapshot = buffer.snapshot(); // LP(get), before the tables are loaded
        let tables = buffer.tables.load(Ordering::Acquire).cast_const();
        Self { tables, snapshot, guard, buffer }
    }

    /// The snapshot of the view: the one that was current when it was made.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    #[inline(always)]
    fn tables(&self) -> &Tables<I> {
        // SAFETY: W6: they were loaded under the guard, which lives as long as the view.
        unsafe { &*self.tables }
    }

    /// The value of a key at the view's snapshot. It is valid while the view lives.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.get_at(key, self.snapshot)
    }

    /// The value of a key at a snapshot. A later snapshot than the view's sees a part of what was
    /// written since.
    #[inline]
    pub fn get_at(&self, key: &[u8], snapshot: Snapshot) -> Option<&[u8]> {
        match self.find(key, snapshot) {
            Found::Value(value) => Some(value),
            Found::Deleted | Found::Absent => None,
        }
    }

    /// The state of a key at a snapshot. If it is absent from the buffer, the files of an LSM tree
    /// decide.
    ///
    /// Look into the buffer first and at the list of files afterwards: a flush adds a file before
    /// it takes the table out.
    #[inline]
    pub fn find(&self, key: &[u8], snapshot: Snapshot) -> Found<'_> {
        for table in self.tables().newest_first() {
            let cover =
                if table.has_range_tombstones() { table.covering(key, snapshot) } else { 0 };
            match table.newest(key, snapshot, &self.guard) {
                Some((entry, seqno, kind)) => {
                    if seqno < cover || kind != Some(Kind::Put) {
                        return Found::Deleted;
                    }
                    // SAFETY: T1: all entries of a table were written by `Draft::write`.
                    return Found::Value(unsafe { entry.value() });
                }
                None if cover > 0 => return Found::Deleted,
                None => {}
            }
        }
        Found::Absent
    }

    /// The values of several keys at the view's snapshot, which are one consistent state.
    pub fn get_many<'v>(&'v self, keys: &[&[u8]], mut each: impl FnMut(usize, Option<&'v [u8]>)) {
        for (number, key) in keys.iter().enumerate() {
            each(number, self.get(key));
        }
    }

    /// The buffer.
    pub fn buffer(&self) -> &'b WriteBuffer<I> {
        self.buffer
    }
}

impl<I: Index> fmt::Debug for View<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({:?} at {})", self.buffer, self.snapshot)
    }
}
