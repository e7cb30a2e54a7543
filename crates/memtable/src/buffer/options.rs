//! The settings of a buffer.

use super::OpenError;
use crate::key::{Bytewise, Comparator};
use crate::table::TableOptions;
use std::sync::Arc;

/// The way in which the batches of a group are inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// The leader inserts all batches, as RocksDB without `allow_concurrent_memtable_write` does.
    Serial,
    /// The writers of a group insert in parallel, and the next group begins when the group before
    /// it is visible.
    Parallel,
    /// Groups insert beside one another: the next group begins when the group before it is logged.
    /// Each becomes visible in its turn, so readers see what they see with `Serial` and `Parallel`.
    #[default]
    Pipelined,
    /// A write is visible before older ones are: RocksDB's `unordered_write`.
    ///
    /// The sequence number of a group is published once its log is written. Each writer inserts its
    /// own batch afterwards, and returns when that is done. So a thread reads its own writes, and a
    /// write that began after another had returned has the greater number. But a snapshot may
    /// change: a read at it may return a write that an earlier read at the same snapshot missed.
    /// And a reader may see a part of a batch.
    UnorderedUnrepeatableReads,
}

/// The writes after which a log is synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Those that ask for it ([`WriteOptions::sync`]).
    #[default]
    OnRequest,
    /// All: each group is synced once.
    EveryGroup,
}

/// The settings of a [`WriteBuffer`](super::WriteBuffer).
#[derive(Clone, Debug)]
pub struct BufferOptions {
    /// The settings of its tables.
    pub table: TableOptions,
    /// A table is frozen, and another one takes its place, when it holds this number of bytes.
    pub table_bytes: usize,
    /// The most tables that wait for their flush.
    pub max_frozen: usize,
    /// The way in which groups are inserted.
    pub mode: WriteMode,
    /// Whether waiting writers yield for some time before they block.
    pub adaptive_yield: bool,
    /// The writes after which a log is synced.
    pub sync: SyncPolicy,
    /// Whether recovery may remove logs with records that do not continue those before them,
    /// because one of these is damaged or missing.
    pub drop_left_out: bool,
}

impl BufferOptions {
    /// RocksDB's default size of a write buffer.
    pub const TABLE_BYTES: usize = 64 << 20;

    /// The defaults, in an order of user keys.
    pub fn ordered_by(comparator: Arc<dyn Comparator>) -> Self {
        Self {
            table: TableOptions::new(comparator),
            table_bytes: Self::TABLE_BYTES,
            max_frozen: 2,
            mode: WriteMode::default(),
            adaptive_yield: true,
            sync: SyncPolicy::default(),
            drop_left_out: false,
        }
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
        let wrong = |name, problem: String| Err(OpenError::Option { name, problem });
        if self.table_bytes == 0 {
            return wrong("table_bytes", "0: a table holds at least one byte".into());
        }
        if self.max_frozen == 0 {
            return wrong("max_frozen", "0: at least one table must be able to wait".into());
        }
        let of_filter = self.table.bloom.map_or(0, |bloom| bloom.bits / 8);
        if of_filter > self.table_bytes / 2 {
            let problem = format!(
                "a filter of {of_filter} bytes, above half of `table_bytes` ({}): fewer bits, or \
                 larger tables",
                self.table_bytes
            );
            return wrong("table.bloom", problem);
        }
        if let Some(limit) = self.table.limit.filter(|limit| *limit <= self.table_bytes) {
            let problem = format!(
                "{limit}, not above `table_bytes` ({}): a table must be frozen before it is at its \
                 limit",
                self.table_bytes
            );
            return wrong("table.limit", problem);
        }
        Ok(())
    }
}

impl Default for BufferOptions {
    fn default() -> Self {
        Self::ordered_by(Arc::new(Bytewise))
    }
}

/// The settings of one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the write returns only after its log record is on the disk.
    pub sync: bool,
}
