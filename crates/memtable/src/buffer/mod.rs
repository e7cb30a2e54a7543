//! The write buffer: tables that take writes in groups, a log, snapshots, flushes and recovery.
//!
//! # Source
//! RocksDB's write path (`db/db_impl/db_impl_write.cc`, D50589): one log record for each batch, one
//! append for each group, followers that insert in parallel, a sequence number that is published
//! when all have finished, and tables that are frozen, flushed and dropped. `unordered_write` is
//! its mode of that name.
//!
//! # Algorithm
//! The module `group` says how writers form groups.
//! ```text
//! write:   in a group: number the batches, append them to the log, sync, insert them in parallel,
//!          publish the last number
//! get(s):  from the newest table to the oldest: find the newest version up to s, and the newest
//!          tombstone of a range over the key; the first table that has one of them decides
//! switch:  as a leader: sync the log, begin another one, freeze the table, begin another one
//! flush:   give the oldest frozen table to the caller's function; when it is durable elsewhere,
//!          take the table out, and remove the logs that only it needed
//! recover: read the logs in order, up to the first hole, into tables
//! ```
//!
//! # Invariants
//! * W1: the sequence numbers of operations are contiguous, in the order of the log, and a table's
//!   are greater than those of the tables before it.
//! * W2: `visible` is the last number of a group. All entries up to it are in the tables, or were
//!   flushed. In the unordered mode, entries of running writes may be missing.
//! * W3: a log is synced before the next one is begun. So if a record survives a loss of power, all
//!   records of earlier logs do.
//! * W4: a log is removed only after the tables with its records were flushed. The next log's
//!   header has the first number that comes after it, and is synced when it is made. So no number
//!   is given twice, also if all logs but an empty one are gone.
//! * W5: after a failed append, sync or insert the buffer takes no more writes; in a pipeline, from
//!   the turn of the failed group on. Neither this group nor one behind it is published, and no
//!   table with its numbers is frozen, so no reader sees a part of it, and the log keeps all of it.
//! * W6: `tables` leads to the present `Tables`. A replaced one is dropped when no guard of the
//!   domain that could have read it is left, or with the buffer, which its readers borrow.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `visible` | store of `publish` | Release | load | the group's entries, tombstones and bits come before |
//! | `visible` | load | Acquire | store | a reader with this number finds them |
//! | `tables` | swap of `change_tables` | `AcqRel` | load | publishes the tables; under the mutex `changing` |
//! | `tables` | load | Acquire | swap | they are initialised |
//! | `pending` | add by a leader, sub by a writer | Relaxed / Release | load | the leader that switches sees the inserted entries |
//! | `pending` | load before a switch | Acquire | sub | the entries of all pending batches are inserted |
//! | `broken`, `refused` | all | Relaxed | – | ordered by the turns of groups (`group/turns.rs`) |
//! | counts | all | Relaxed | – | statistics |
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `write`, success | the store of `visible` of its group |
//! | `get`, `view`, `snapshot`, `cursor` | the load of `visible` |
//!
//! **Why writes are linearizable.** A write returns after the store of `visible` that has its last
//! number. Groups are published in the order of their numbers (W1, G2; in a pipeline by turns). A
//! read loads `visible` once and sees exactly the operations up to that number: those entries are
//! in the tables (W2), later ones have greater numbers and are filtered out, and no entry changes
//! (T1). The load of `tables` comes after that of `visible`. If a switch comes between the two, the
//! newer tables still have all these entries; if a flush does, the entries that are missing are
//! durable elsewhere. So each read is the state after some group, at a moment during the call, and
//! a whole batch is visible or none of it.
//!
//! # Progress and reclamation
//! Reads are wait-free except for `skiplist`'s expected length and the blocks' scans; they pin a
//! domain and write nothing shared. Writers block while their group is written, and in a pipeline
//! until the groups before it are visible; one of them may publish others, too. A dropped or
//! flushed table is freed once no view or cursor keeps it.
//!
//! # Checked by
//! The tests of this crate: an oracle, threads, schedules, each fault of the storage, losses of
//! power and kills. `silvics verify --index memtable`: histories. Canaries: a sequence number
//! published early, a torn record accepted, a lost bit, a batch that is claimed and forgotten, a
//! switch that ignores pending batches.

mod error;
mod flush;
mod options;
mod recover;
mod tables;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;
mod view;
mod write;

pub use error::{Failure, FlushError, OpenError, SwitchError, WriteError};
pub use flush::FrozenTable;
pub use options::{BufferOptions, SyncPolicy, WriteMode, WriteOptions};
pub use view::View;

use crate::batch::WriteBatch;
use crate::cursor::Cursor;
use crate::group::{Queue, Turns, WaitCounts};
use crate::index::{ByteIndex, Index};
use crate::key::Seqno;
use crate::log::LogStorage;
use crate::table::Table;
use silvics::{Domain, Guard};
use silvics_pool::ArenaStats;
use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use silvics_sync::cell::UnsafeCell;
use silvics_sync::{CachePadded, Mutex};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tables::{Tables, Taking};
use write::Lead;

/// A sequence number that reads take: they see the writes up to it, and no later ones.
pub type Snapshot = Seqno;

/// Tables that were replaced, until the deferred call has dropped them.
struct Retired<I: Index>(Mutex<Option<Replaced<I>>>);

/// The pointer of replaced tables, which owns them. It is no box, because readers may still have
/// references.
struct Replaced<I: Index>(*mut Tables<I>);

// SAFETY: tables may be dropped on any thread.
unsafe impl<I: Index> Send for Replaced<I> {}

impl<I: Index> Drop for Replaced<I> {
    fn drop(&mut self) {
        // SAFETY: W6: the tables were replaced once, and no guard that could have read them is
        // left.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Counts of the write path. They are exact while no thread writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// The groups that were numbered.
    pub groups: u64,
    /// The writes in them.
    pub writes: u64,
    /// The appends to the log.
    pub log_appends: u64,
    /// The syncs of the log for groups.
    pub log_syncs: u64,
    /// The mutex acquisitions of the write path: those that change the set of tables.
    pub mutexes: u64,
    /// The waits of writers.
    pub waits: WaitCounts,
}

/// A write buffer over tables with an index: see the [module](self).
///
/// ```
/// use silvics_memtable::{BufferOptions, WriteBuffer};
///
/// let buffer: WriteBuffer = WriteBuffer::new(BufferOptions::default())?;
/// buffer.put(b"plum", b"3")?;
/// let before = buffer.snapshot();
/// buffer.put(b"plum", b"4")?;
/// buffer.delete(b"plum")?;
/// let view = buffer.view();
/// assert_eq!(view.get(b"plum"), None);
/// assert_eq!(view.get_at(b"plum", before), Some(&b"3"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WriteBuffer<I: Index = ByteIndex> {
    queue: Queue<WriteError>,
    /// The turns of groups in the pipelined mode.
    turns: Turns,
    /// Whether a group of the pipeline was not inserted, so that none behind it is published. It
    /// belongs to the thread whose turn it is.
    broken: AtomicBool,
    /// The last sequence number that reads may see.
    visible: CachePadded<AtomicU64>,
    tables: AtomicPtr<Tables<I>>,
    /// The batches of the unordered mode that are not inserted yet.
    pending: CachePadded<AtomicUsize>,
    /// G2: belongs to the leader.
    lead: CachePadded<UnsafeCell<Lead<I>>>,
    failure: OnceLock<Failure>,
    groups: AtomicU64,
    writes: AtomicU64,
    log_appends: AtomicU64,
    log_syncs: AtomicU64,
    mutexes: AtomicU64,
    /// Held by a thread that changes `tables`: the tables that were replaced, and that a guard may
    /// still read.
    changing: Mutex<Vec<Arc<Retired<I>>>>,
    /// Held by the thread that flushes.
    flushing: Mutex<()>,
    storage: Option<Arc<dyn LogStorage>>,
    domain: Domain,
    options: BufferOptions,
}

// SAFETY: `lead` belongs to one leader at a time (G2), which the queue orders. Everything else is
// atomic, or behind a mutex.
unsafe impl<I: Index> Sync for WriteBuffer<I> {}
// SAFETY: nothing is bound to a thread.
unsafe impl<I: Index> Send for WriteBuffer<I> {}

impl<I: Index> WriteBuffer<I> {
    /// Makes an empty buffer without a log: its content is lost when the process ends.
    pub fn new(options: BufferOptions) -> Result<Self, OpenError> {
        options.check()?;
        let domain = Domain::new();
        let table = Arc::new(Table::new(&options.table, domain.clone())?);
        let active = Arc::new(Taking { table, log: 0, first: 1 });
        let lead = Lead::new(Arc::clone(&active), 1);
        Ok(Self::of_parts(options, domain, None, lead, Tables { active, frozen: Vec::new() }))
    }

    fn of_parts(
        options: BufferOptions,
        domain: Domain,
        storage: Option<Arc<dyn LogStorage>>,
        lead: Lead<I>,
        tables: Tables<I>,
    ) -> Self {
        Self {
            queue: Queue::new(options.adaptive_yield),
            turns: Turns::new(),
            broken: AtomicBool::new(false),
            visible: CachePadded::new(AtomicU64::new(lead.next - 1)),
            tables: AtomicPtr::new(Box::into_raw(Box::new(tables))),
            pending: CachePadded::default(),
            lead: CachePadded::new(UnsafeCell::new(lead)),
            failure: OnceLock::new(),
            groups: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            log_appends: AtomicU64::new(0),
            log_syncs: AtomicU64::new(0),
            mutexes: AtomicU64::new(0),
            changing: Mutex::default(),
            flushing: Mutex::default(),
            storage,
            domain,
            options,
        }
    }

    /// Writes one value. For several operations that are visible together, see
    /// [`WriteBuffer::write`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Seqno, WriteError> {
        self.write_one(|batch| batch.put(key, value))
    }

    /// Deletes one key.
    pub fn delete(&self, key: &[u8]) -> Result<Seqno, WriteError> {
        self.write_one(|batch| batch.delete(key))
    }

    /// Deletes the keys from `from` up to `to`, which is excluded.
    pub fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<Seqno, WriteError> {
        self.write_one(|batch| batch.delete_range(from, to))
    }

    fn write_one(
        &self,
        fill: impl FnOnce(&mut WriteBatch) -> Result<(), crate::batch::BatchError>,
    ) -> Result<Seqno, WriteError> {
        let mut batch = WriteBatch::new();
        fill(&mut batch)?;
        self.write(&batch, WriteOptions::default())
    }

    /// The last sequence number that reads see now. A read at it sees the same state for as long as
    /// its entries are in the buffer. See [`WriteMode::UnorderedUnrepeatableReads`] for the
    /// exception.
    #[inline]
    pub fn snapshot(&self) -> Snapshot {
        self.visible.load(Ordering::Acquire)
    }

    /// Pins the buffer for reads at the present snapshot, and at older ones.
    ///
    /// No table that is flushed meanwhile is freed while the view lives, so keep it for
    /// milliseconds. A [`Cursor`] keeps its tables only.
    #[inline]
    pub fn view(&self) -> View<'_, I> {
        View::new(self)
    }

    /// The value of a key, copied. [`View::get`] copies nothing.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.view().get(key).map(<[u8]>::to_vec)
    }

    /// A cursor over the live entries at the present snapshot, which has no position yet.
    pub fn cursor(&self) -> Cursor<I> {
        self.cursor_at(self.snapshot())
    }

    /// A cursor over the live entries at a snapshot.
    pub fn cursor_at(&self, snapshot: Snapshot) -> Cursor<I> {
        self.with_tables(|tables| Cursor::new(tables.newest_first().cloned(), snapshot))
    }

    /// The settings.
    pub fn options(&self) -> &BufferOptions {
        &self.options
    }

    /// The failure since which the buffer takes no writes, if there was one.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    /// The number of tables that wait for their flush.
    pub fn frozen(&self) -> usize {
        self.with_tables(|tables| tables.frozen.len())
    }

    /// The bytes that all tables hold from the system.
    pub fn bytes(&self) -> usize {
        self.with_tables(|tables| tables.newest_first().map(|table| table.bytes()).sum())
    }

    /// The table that takes writes now.
    pub fn active(&self) -> Arc<Table<I>> {
        self.with_tables(|tables| Arc::clone(&tables.active.table))
    }

    /// The numbers of the arena of the table that takes writes.
    pub fn arena_stats(&self) -> ArenaStats {
        self.with_tables(|tables| tables.active.table.arena_stats())
    }

    /// The counts of the write path.
    pub fn stats(&self) -> WriteStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WriteStats {
            groups: read(&self.groups),
            writes: read(&self.writes),
            log_appends: read(&self.log_appends),
            log_syncs: read(&self.log_syncs),
            mutexes: read(&self.mutexes),
            waits: self.queue.waiting.counts(),
        }
    }

    /// The present tables, which stay while the guard lives.
    #[inline]
    fn tables<'g>(&'g self, _guard: &'g Guard) -> &'g Tables<I> {
        // SAFETY: W6: the guard is one of the buffer's domain.
        unsafe { &*self.tables.load(Ordering::Acquire) }
    }

    /// Calls a function with the present tables.
    fn with_tables<R>(&self, call: impl FnOnce(&Tables<I>) -> R) -> R {
        let guard = self.domain.pin();
        call(self.tables(&guard))
    }

    /// Replaces the tables.
    ///
    /// The old ones stay in `retired` until no guard that could have read them is left. The
    /// deferred call only refers to them: tables keep the domain, so a call that owned tables would
    /// keep itself.
    fn change_tables(&self, change: impl FnOnce(&Tables<I>) -> Tables<I>) {
        self.mutexes.fetch_add(1, Ordering::Relaxed);
        let mut retired = self.changing.lock();
        retired.retain(|old| old.0.lock().is_some());
        let guard = self.domain.pin();
        let new = Box::into_raw(Box::new(change(self.tables(&guard))));
        let old = Replaced(self.tables.swap(new, Ordering::AcqRel));
        let old = Arc::new(Retired(Mutex::new(Some(old))));
        let waiting = Arc::downgrade(&old);
        retired.push(old);
        guard.defer(move || {
            let tables = waiting.upgrade().and_then(|old| old.0.lock().take());
            drop(tables); // not under the lock
        });
        drop(guard);
        drop(retired);
        self.domain.flush();
    }

    /// The state of the leader.
    ///
    /// # Safety
    /// The calling thread leads, and makes no other reference to the state meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the leader's alone")]
    unsafe fn lead_mut(&self) -> &mut Lead<I> {
        // SAFETY: G2 and the caller's promise.
        self.lead.with_mut(|lead| unsafe { &mut *lead })
    }
}

impl<I: Index> Drop for WriteBuffer<I> {
    fn drop(&mut self) {
        // SAFETY: W6: nobody else has the buffer, so nobody reads the tables.
        drop(unsafe { Box::from_raw(self.tables.load(Ordering::Relaxed)) });
    }
}

impl<I: Index> fmt::Debug for WriteBuffer<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBuffer")
            .field("index", &I::NAME)
            .field("snapshot", &self.snapshot())
            .field("frozen", &self.frozen())
            .field("failure", &self.failure())
            .finish_non_exhaustive()
    }
}
