//! Flushing frozen tables.

use super::tables::{Frozen, Tables};
use super::{FlushError, WriteBuffer};
use crate::cursor::TableCursor;
use crate::index::Index;
use crate::key::Seqno;
use crate::log::LogError;
use crate::table::{Table, TableStats};
use crate::tombstones::Tombstone;
use std::fmt;
use std::sync::Arc;

/// A table that takes no more writes, and that is to be written to a file.
pub struct FrozenTable<I: Index> {
    frozen: Frozen<I>,
}

impl<I: Index> FrozenTable<I> {
    /// The first sequence number that the table may have. Numbers of earlier tables are smaller.
    pub fn first_seqno(&self) -> Seqno {
        self.frozen.taken.first
    }

    /// The last sequence number that the table may have.
    pub fn last_seqno(&self) -> Seqno {
        self.frozen.last
    }

    /// A cursor over all versions, at the first one: user keys ascend, and the newest version of a
    /// key comes first.
    pub fn versions(&self) -> TableCursor<I> {
        let mut cursor = self.frozen.taken.table.cursor();
        cursor.first();
        cursor
    }

    /// The tombstones of ranges. They delete versions with smaller numbers, in this table and in
    /// older ones.
    pub fn range_tombstones(&self) -> Vec<Tombstone> {
        self.frozen.taken.table.range_tombstones()
    }

    /// The numbers of the table.
    pub fn stats(&self) -> TableStats {
        self.frozen.taken.table.stats()
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table<I>> {
        &self.frozen.taken.table
    }
}

impl<I: Index> fmt::Debug for FrozenTable<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrozenTable({}..={})", self.first_seqno(), self.last_seqno())
    }
}

impl<I: Index> WriteBuffer<I> {
    /// Gives the oldest frozen table to `write`, and takes it out of the buffer when `write` has
    /// returned. Returns the result of `write`, or `None` if no table is frozen.
    ///
    /// `write` must return only when the table is durable and when readers of files find it, since
    /// the logs of the table are removed afterwards. All entries of the table are in synced logs
    /// before `write` is called, so a file is never ahead of the log. If `write` fails or panics,
    /// the table stays, readable, for the next call.
    ///
    /// One thread flushes at a time, and others wait; `write` must not flush the same buffer, which
    /// would deadlock.
    pub fn flush<R, E>(
        &self,
        write: impl FnOnce(&FrozenTable<I>) -> Result<R, E>,
    ) -> Result<Option<R>, FlushError<E>> {
        let _one = self.flushing.lock();
        let oldest = self.with_tables(|tables| tables.frozen.last().cloned());
        let Some(frozen) = oldest else { return Ok(None) };
        let table = FrozenTable { frozen };
        let result = write(&table).map_err(FlushError::Write)?;
        let mut first_needed = 0;
        self.change_tables(|tables| {
            let mut frozen = tables.frozen.clone();
            frozen.pop();
            let oldest = frozen.last().map_or(&tables.active, |oldest| &oldest.taken);
            first_needed = oldest.log;
            Tables { active: Arc::clone(&tables.active), frozen }
        });
        drop(table);
        self.domain.flush();
        self.remove_logs(first_needed).map_err(FlushError::Log)?;
        Ok(Some(result))
    }

    /// Removes the logs before one, the oldest first (W4).
    fn remove_logs(&self, first_needed: u64) -> Result<(), LogError> {
        let Some(storage) = &self.storage else { return Ok(()) };
        let numbers = storage.numbers().map_err(LogError::list)?;
        for number in numbers.into_iter().filter(|number| *number < first_needed) {
            storage.remove(number).map_err(|error| LogError::remove(number, error))?;
        }
        Ok(())
    }
}
