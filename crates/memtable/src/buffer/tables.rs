//! The tables of a buffer at one moment.

use crate::index::Index;
use crate::key::Seqno;
use crate::table::Table;
use std::sync::Arc;

/// The table that takes writes.
pub(super) struct Taking<I: Index> {
    pub(super) table: Arc<Table<I>>,
    /// The number of the log that has the first entry of the table.
    pub(super) log: u64,
    /// The sequence number that its first entry has.
    pub(super) first: Seqno,
}

/// A table that waits for its flush.
pub(super) struct Frozen<I: Index> {
    pub(super) taken: Arc<Taking<I>>,
    /// The last sequence number that it may have.
    pub(super) last: Seqno,
}

impl<I: Index> Clone for Frozen<I> {
    fn clone(&self) -> Self {
        Self { taken: Arc::clone(&self.taken), last: self.last }
    }
}

/// All tables, which readers load as one pointer.
///
/// All sequence numbers of a table are greater than those of the tables behind it.
pub(super) struct Tables<I: Index> {
    pub(super) active: Arc<Taking<I>>,
    /// The newest one first.
    pub(super) frozen: Vec<Frozen<I>>,
}

impl<I: Index> Tables<I> {
    /// The tables, the newest one first.
    #[inline]
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Arc<Table<I>>> {
        let frozen = self.frozen.iter().map(|frozen| &frozen.taken.table);
        std::iter::once(&self.active.table).chain(frozen)
    }
}
