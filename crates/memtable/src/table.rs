//! A memtable: an index of entries, their arena, a Bloom filter and tombstones of ranges.
//!
//! # Invariants
//! * T1: entries and tombstones are added, never removed or changed, until the table is dropped.
//! * T2: the bits of a user key are set in the Bloom filter before its entry is in the index.
//! * T3: if no two writers add entries with one sequence number, each entry is added once.
//!
//! # Memory ordering
//! | word | site | ordering | why |
//! |---|---|---|---|
//! | `puts`, `deletes`, `data`, `newest` | all | Relaxed | counts; the buffer publishes sequence numbers |
//!
//! A reader asks with a sequence number that it has loaded with Acquire (`buffer`). The number was
//! stored with Release after all entries up to it had been added. So the reader sees these
//! entries, the bits of their keys, and the tombstones.

use crate::batch::Op;
use crate::bloom::{DynamicBloom, KeyHash};
use crate::cursor::TableCursor;
use crate::entry::{Draft, Entry};
use crate::index::{Index, Setup, SetupError};
use crate::key::{Comparator, InternalKey, Kind, Seqno, pack};
use crate::tombstones::{Tombstone, Tombstones};
use silvics::{AllocError, Domain, Guard, Options};
use silvics_pool::{ArenaStats, Budget, ConcurrentArena, Config, Pages};
use silvics_sync::CachePadded;
use silvics_sync::atomic::{AtomicU64, Ordering as Memory};
use std::fmt;
use std::sync::Arc;

/// The function that returns the prefix of a user key, by which a Bloom filter is asked too.
pub type PrefixOf = fn(&[u8]) -> Option<&[u8]>;

/// The Bloom filter of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomOptions {
    /// The bits of the filter.
    pub bits: usize,
    /// The bits that are set for each key: an even number up to 10. Others are rounded to one.
    pub probes: usize,
}

impl BloomOptions {
    /// RocksDB's number of probes.
    pub const PROBES: usize = 6;
}

/// The settings of tables.
#[derive(Clone)]
pub struct TableOptions {
    /// The order of user keys.
    pub comparator: Arc<dyn Comparator>,
    /// The pages of the arena and of the index.
    pub pages: Pages,
    /// The size of a block of the arena.
    pub block_bytes: usize,
    /// The most bytes that one table may hold. `None` for no limit.
    pub limit: Option<usize>,
    /// The Bloom filter over whole user keys. `None` for no filter. Tables in other orders than the
    /// bytewise one and its reverse have none.
    pub bloom: Option<BloomOptions>,
    /// The prefixes that the filter has, too, for
    /// [`Cursor::seek_prefix`](crate::Cursor::seek_prefix).
    pub prefix_of: Option<PrefixOf>,
}

impl TableOptions {
    /// RocksDB's default size of a block: an eighth of its write buffer, at most 1 MiB.
    pub const BLOCK_BYTES: usize = 1 << 20;

    /// Tables in an order, with the default of each other setting.
    pub fn new(comparator: Arc<dyn Comparator>) -> Self {
        Self {
            comparator,
            pages: Pages::default(),
            block_bytes: Self::BLOCK_BYTES,
            limit: None,
            bloom: None,
            prefix_of: None,
        }
    }
}

impl fmt::Debug for TableOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableOptions")
            .field("comparator", &self.comparator.name())
            .field("pages", &self.pages)
            .field("block_bytes", &self.block_bytes)
            .field("limit", &self.limit)
            .field("bloom", &self.bloom)
            .finish_non_exhaustive()
    }
}

/// The state of a user key in a table, as a snapshot sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'t> {
    /// The key has this value.
    Value(&'t [u8]),
    /// The key, or a range with it, was deleted.
    Deleted,
    /// The table has no version of the key, and no tombstone over it.
    Absent,
}

/// The numbers of a table. They are exact while no thread writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// The versions with a value.
    pub puts: u64,
    /// The versions that delete a key.
    pub deletes: u64,
    /// The tombstones of ranges.
    pub range_deletes: u64,
    /// The bytes of user keys and values.
    pub data_bytes: u64,
    /// The bytes held from the system.
    pub bytes: usize,
}

/// Counts of what was added. Each group of writes adds to them once for each writer.
#[derive(Debug, Default)]
struct Counts {
    puts: AtomicU64,
    deletes: AtomicU64,
    range_deletes: AtomicU64,
    data: AtomicU64,
}

/// Additions to the counts of a table, which a writer collects first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added {
    puts: u64,
    deletes: u64,
    range_deletes: u64,
    data: u64,
}

/// A table of entries over an index: see the [module](self).
pub struct Table<I: Index> {
    // Dropped before the arena, to which its nodes may lead.
    index: I,
    tombstones: Tombstones,
    bloom: Option<DynamicBloom>,
    counts: CachePadded<Counts>,
    arena: Arc<ConcurrentArena>,
    budget: Arc<Budget>,
    comparator: Arc<dyn Comparator>,
    prefix_of: Option<PrefixOf>,
    domain: Domain,
}

impl<I: Index> Table<I> {
    /// Makes an empty table. Its index takes the guards of the domain.
    pub fn new(options: &TableOptions, domain: Domain) -> Result<Self, SetupError> {
        let budget = Arc::new(Budget::new(options.limit));
        let config = Config::of_budget(options.pages, Arc::clone(&budget));
        let arena = Arc::new(ConcurrentArena::new(&config, options.block_bytes));
        let setup = Setup {
            comparator: Arc::clone(&options.comparator),
            arena: Arc::clone(&arena),
            options: Options {
                pages: options.pages,
                budget: Some(Arc::clone(&budget)),
                ..Options::default()
            },
            domain: domain.clone(),
        };
        let index = I::new(&setup)?;
        // Other orders may call keys equal that have other bytes.
        let filters = options.bloom.filter(|_| options.comparator.byte_order().is_some());
        let bloom = match filters {
            Some(bloom) => Some(DynamicBloom::new(bloom.bits, bloom.probes, &arena)?),
            None => None,
        };
        Ok(Self {
            index,
            tombstones: Tombstones::new(Arc::clone(&budget)),
            bloom,
            counts: CachePadded::default(),
            arena,
            budget,
            comparator: Arc::clone(&options.comparator),
            prefix_of: options.prefix_of,
            domain,
        })
    }

    /// The order of user keys.
    pub fn comparator(&self) -> &dyn Comparator {
        &*self.comparator
    }

    /// The domain whose guards the index takes.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Adds the version that an operation makes. After an error the table may have the bits of its
    /// key in the filter, and nothing else of it.
    ///
    /// # Safety
    /// If `shared` is false, no other thread adds meanwhile.
    pub unsafe fn add(
        &self,
        seqno: Seqno,
        op: Op<'_>,
        shared: bool,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        let mut added = Added::default();
        // SAFETY: the caller's promise.
        let result = unsafe { self.add_counted(seqno, op, shared, guard, &mut added) };
        self.count(added);
        result
    }

    /// Adds like [`Table::add`], and notes in `added` what [`Table::count`] has to count.
    ///
    /// # Safety
    /// As [`Table::add`] has it.
    #[inline]
    pub(crate) unsafe fn add_counted(
        &self,
        seqno: Seqno,
        op: Op<'_>,
        shared: bool,
        guard: &Guard,
        added: &mut Added,
    ) -> Result<(), AllocError> {
        let (key, value, kind) = match op {
            Op::Put { key, value } => (key, value, Kind::Put),
            Op::Delete { key } => (key, &[][..], Kind::Delete),
            Op::DeleteRange { from, to } => {
                let tombstone = Tombstone { start: from.into(), end: to.into(), seqno };
                self.tombstones.add(tombstone, &*self.comparator)?;
                added.range_deletes += 1;
                added.data += (from.len() + to.len()) as u64;
                return Ok(());
            }
        };
        if let Some(bloom) = &self.bloom {
            self.add_bits(bloom, key, shared); // T2
        }
        let length = |bytes: usize| AllocError::KeyLength { bytes, limit: u32::MAX as usize };
        let draft = Draft::new(key, pack(seqno, kind as u8), value);
        let draft = draft.ok_or_else(|| length(key.len().max(value.len())))?;
        // SAFETY: the caller's promise.
        let is_new = unsafe { self.index.add(draft, shared, guard)? };
        debug_assert!(is_new, "T3: two versions of {key:?} with the number {seqno}");
        match kind {
            Kind::Put => added.puts += 1,
            _ => added.deletes += 1,
        }
        added.data += (key.len() + value.len()) as u64;
        Ok(())
    }

    #[inline(never)]
    fn add_bits(&self, bloom: &DynamicBloom, key: &[u8], shared: bool) {
        let prefix = self.prefix_of.and_then(|prefix_of| prefix_of(key));
        for part in std::iter::once(key).chain(prefix) {
            if shared {
                bloom.add_concurrently(KeyHash::of(part));
            } else {
                bloom.add(KeyHash::of(part));
            }
        }
    }

    /// Counts what was added.
    pub(crate) fn count(&self, added: Added) {
        let counts = &*self.counts;
        for (count, more) in [
            (&counts.puts, added.puts),
            (&counts.deletes, added.deletes),
            (&counts.range_deletes, added.range_deletes),
            (&counts.data, added.data),
        ] {
            if more > 0 {
                count.fetch_add(more, Memory::Relaxed);
            }
        }
    }

    /// The newest version of a user key that a snapshot sees, with its sequence number. It
    /// disregards tombstones of ranges.
    #[inline]
    pub fn newest<'t>(
        &'t self,
        user: &[u8],
        snapshot: Seqno,
        guard: &Guard,
    ) -> Option<(Entry<'t>, Seqno, Option<Kind>)> {
        if self.bloom.as_ref().is_some_and(|bloom| !bloom.may_contain(KeyHash::of(user))) {
            return None;
        }
        let entry = self.index.seek(InternalKey::seek(user, snapshot), guard)?;
        let key = entry.key();
        let is_equal = if self.comparator.byte_order().is_some() {
            key.user == user
        } else {
            self.comparator.compare(key.user, user).is_eq()
        };
        is_equal.then(|| (entry, key.seqno(), key.kind()))
    }

    /// The greatest sequence number of a tombstone of a range that covers a user key and that a
    /// snapshot sees, or 0.
    #[inline]
    pub fn covering(&self, user: &[u8], snapshot: Seqno) -> Seqno {
        self.tombstones.covering(user, snapshot, &*self.comparator)
    }

    /// The state of a user key as a snapshot sees it in this table.
    #[inline]
    pub fn get(&self, user: &[u8], snapshot: Seqno, guard: &Guard) -> Found<'_> {
        let cover = self.covering(user, snapshot);
        match self.newest(user, snapshot, guard) {
            Some((entry, seqno, Some(Kind::Put))) if seqno > cover => {
                // SAFETY: T1: all entries of a table were written by `Draft::write`.
                Found::Value(unsafe { entry.value() })
            }
            None if cover == 0 => Found::Absent,
            _ => Found::Deleted,
        }
    }

    /// Whether a key with this prefix may be in the table. Without a filter and without prefixes,
    /// the answer is yes.
    pub fn may_have_prefix(&self, prefix: &[u8]) -> bool {
        let filter = self.bloom.as_ref().filter(|_| self.prefix_of.is_some());
        filter.is_none_or(|bloom| bloom.may_contain(KeyHash::of(prefix)))
    }

    /// A cursor over all versions, which has no position yet.
    pub fn cursor(self: &Arc<Self>) -> TableCursor<I> {
        TableCursor::new(Arc::clone(self))
    }

    /// The tombstones of ranges, by start, then from the newest to the oldest.
    pub fn range_tombstones(&self) -> Vec<Tombstone> {
        self.tombstones.all(&*self.comparator)
    }

    /// Whether there are tombstones of ranges.
    #[inline(always)]
    pub fn has_range_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// The index.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// The bytes held from the system: arena, index, filter and tombstones. O(1).
    pub fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// The bytes left below the limit.
    pub fn left(&self) -> usize {
        self.budget.left()
    }

    /// Whether the table holds a number of bytes and has an entry. An empty one is never full.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        self.bytes() >= bytes && !self.is_empty()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        let stats = self.stats();
        stats.puts + stats.deletes + stats.range_deletes == 0
    }

    /// The numbers of the table.
    pub fn stats(&self) -> TableStats {
        let read = |count: &AtomicU64| count.load(Memory::Relaxed);
        TableStats {
            puts: read(&self.counts.puts),
            deletes: read(&self.counts.deletes),
            range_deletes: read(&self.counts.range_deletes),
            data_bytes: read(&self.counts.data),
            bytes: self.bytes(),
        }
    }

    /// The numbers of the arena.
    pub fn arena_stats(&self) -> ArenaStats {
        self.arena.stats()
    }

    /// Verifies the index of the quiescent table, and returns the number of entries.
    pub fn check(&mut self) -> Result<usize, String> {
        let entries = self.index.check()?;
        let stats = self.stats();
        if entries as u64 != stats.puts + stats.deletes {
            return Err(format!("T1: {entries} entries in the index, {stats:?} counted"));
        }
        Ok(entries)
    }
}

impl<I: Index> fmt::Debug for Table<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("index", &I::NAME).field("stats", &self.stats()).finish()
    }
}
