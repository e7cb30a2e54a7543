//! Durability: a log of the transactions, checkpoints, and recovery.
//!
//! The content of a store that is made by [`Store::open`](crate::Store::open) survives the end of
//! its process and a power failure. The page `docs/store.md` says what is promised; this page says
//! why it holds.
//!
//! # Source
//! * Tu, Zheng, Kohler, Liskov and Madden, SOSP 2013 (Silo), section 4.10: records of changed
//!   values, and transactions that are acknowledged after they are published.
//! * `DeWitt`, Katz, Olken, Shapiro, Stonebraker and Wood, SIGMOD 1984: group commit. Johnson,
//!   Pandis, Stoica, Athanassoulis and Ailamaki, PVLDB 2010 (Aether): locks that are released when
//!   the record has its place in the log, and before it is durable.
//! * Mohan, Haderle, Lindsay, Pirahesh and Schwarz, TODS 1992 (ARIES): redo of physical changes,
//!   which may be repeated, over a fuzzy checkpoint. There is nothing to undo: a row changes after
//!   its transaction has a place in the log, and never on the medium.
//!
//! The files of the log are those of [`silvics_memtable::log`], with its rules R1 to R5.
//!
//! # Algorithm
//! ```text
//! commit:      the policy prepares: all write locks are held, nothing else can fail
//!              make the record; append it to the queue: it has its place        (W1)
//!              change the rows; publish them, which releases all locks
//!              wait until the record is durable; return                         (W3)
//! commit of a reader:
//!              the policy prepares; note the end of the queue, unless all of it is durable
//!              release all locks; wait until that end is durable; return        (W3)
//! wait:        until the position is durable: if no thread has the writer, take it, take the
//!              queue, write it, sync, note what is durable, give the writer back, wake all
//!              waiting threads; else sleep until the writer comes back
//! checkpoint:  take the writer; write the queue, sync, begin log file L         (W4)
//!              for each table: read its rows by small transactions, write them
//!              write the queue and sync; write the end of the log into the trailer (W7)
//!              finish the file; remove logs and checkpoints before L, the oldest first
//! open:        load the rows of the newest checkpoint L by their primary keys
//!              apply the records of the logs from L on, in their order          (W6)
//!              place all rows in the other indexes                              (W8)
//!              begin a new log
//! ```
//!
//! # Departures
//! 1. Silo has a log for each worker, and epochs. One queue under one mutex is enough here: an
//!    append exchanges two lists of bytes, and makes its record outside. The log of the memtable
//!    has one order.
//! 2. No thread waits in the background. The waiting transactions elect the one that writes, so a
//!    store that is idle costs nothing. A deferred transaction is written by a later one.
//!
//! # Invariants
//! * **W1**: A record gets its place while its transaction holds all of its write locks, after the
//!   last step that can fail, and before a row is changed or published.
//! * **W2**: A record has at most one operation for a primary key. The rows that a transaction
//!   writes are different rows. Two of them have one primary key only if one takes it over from a
//!   row that this transaction has made and deleted, which has no operation.
//! * **W3**: A result is acknowledged when everything that it depends on is durable. A writer waits
//!   for its own record, and what it has read has an earlier place. A reader has loaded a position
//!   after it has read: a row or an absence that it has read was published after the record of its
//!   writer got its place, so the position is behind that. An error of a transaction's own code is
//!   acknowledged in this way, too.
//! * **W4**: A transaction of the checkpoint sees all transactions whose record is in a log before
//!   L. Such a transaction got its place before the checkpoint took the queue. From before that
//!   moment until it is published, its rows are locked and its entries are in the indexes; so a
//!   transaction that begins afterwards finds its results, or conflicts with it and runs again. The
//!   queue's mutex decides which of the two came first: the append, or the checkpoint.
//! * **W5**: A failure is final (R2). The store becomes read-only. Records that were in the queue
//!   are never written, so no record follows a hole.
//! * **W6**: After the replay, each row is as the last record left it. Look at the records of one
//!   primary key from L on. The image has the row as some of the first of them left it, at least as
//!   it was at L (W4). If one of the records inserts or deletes the row, the row is exact behind
//!   it, whatever was before: an insertion replaces all columns, and a change of a row that is not
//!   there is ignored. Otherwise the row is there all the time, and each word has the value of the
//!   last record that changes it, or has not changed since L.
//! * **W7**: The log reaches behind everything that the checkpoint contains, and is synced so far,
//!   before the checkpoint is finished. Otherwise a transaction could be in the checkpoint by one
//!   row, and be lost with its record by another one. Recovery refuses a shorter log.
//! * **W8**: Only primary indexes are filled during the replay. In a fuzzy image, row A may have
//!   the key that it had before row B took it over, and B may have it already. When all rows are
//!   exact, their keys are unique, as they were in the store.
//!
//! # The order of the log
//! A recovery finds a prefix of the log: is it a state that transactions could have made?
//!
//! * If U reads or overwrites what T has written, or inserts a key that T has deleted, then T was
//!   published before, so T has the earlier place (W1). So a prefix with U has T.
//! * If U overwrites what T has only read, T comes before U in the serial order. Under two-phase
//!   locking T holds its shared locks until it is published, so it has the earlier place: the order
//!   of the log is a serial order of the writers. Under the optimistic policy, U may lock the row
//!   after T was validated, and get its place before T. A prefix may then have U without T. It is a
//!   state that transactions could have made: U has not read what T wrote, and neither has any
//!   transaction of the prefix, so all of them would have done the same if T had never run. T was
//!   not acknowledged. With T, the prefix has the state of the serial order, because the rows that
//!   both write are in order.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `unsettled` | store in `append` | Release | `seen` | who sees a row of the record sees its position |
//! | `unsettled` | `seen`, behind a fence | Acquire | publications, removals from indexes | reads are before it |
//! | `unsettled` | exchange for 0 in `settle` | Release / Relaxed | `seen` | no record follows the group |
//! | `is_long` | all | Relaxed | – | a hint; the mutex of the queue orders its stores |
//! | `durable` | store in `settle` | Release | `is_durable` | the group was written before |
//!
//! # Progress
//! An append takes one mutex for a short time. Threads that wait sleep, after some spins. A leader
//! writes one group and gives the writer back, so a thread waits for at most two groups, the one
//! under way and its own, and for checkpoints, which take the writer before transactions.
//!
//! # Checked by
//! `tests/durability.rs`: a loss of power after each number of calls of the storage, beside a
//! model; threads with checkpoints and losses of power, whose acknowledged transactions and reads
//! must all be found; a disk whose sync waits; each truncation and a flipped bit of each byte of a
//! checkpoint and a log. `tests/kills.rs` kills processes. The canaries `reads-not-awaited` and
//! `appended-late` must be found.

mod checkpoint;
mod error;
mod image;
mod load;
mod log;
mod open;
mod redo;
mod schema;
mod storage;

pub use checkpoint::Checkpoint;
pub use error::{CheckpointError, OpenError};
pub use open::Recovery;
pub use storage::{CheckpointFile, CheckpointStorage, StoreFolder};

pub(crate) use checkpoint::Checkpoints;
pub(crate) use log::Log;
pub(crate) use redo::Redo;

use crate::error::Error;
use crate::policy::Policy;
use crate::store::{Store, StoreCore};
use silvics_memtable::log::LogStorage;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of a durable store: the places of its log and checkpoints, and when a transaction
/// counts as durable.
#[derive(Clone)]
pub struct Durability {
    /// The storage of the log.
    pub logs: Arc<dyn LogStorage>,
    /// The storage of the checkpoints.
    pub checkpoints: Arc<dyn CheckpointStorage>,
    /// Whether a transaction is acknowledged only after its record is synced. Without it, the
    /// record is written, and the system may keep it in memory: a crash of the process loses
    /// nothing that was acknowledged, and a power failure may lose the transactions of the last
    /// seconds. It keeps a prefix of them.
    pub sync: bool,
}

impl fmt::Debug for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durability").field("sync", &self.sync).finish_non_exhaustive()
    }
}

impl Durability {
    /// Keeps logs and checkpoints as files of a folder, which is created if it does not exist, and
    /// syncs each group of transactions.
    ///
    /// Two stores, also of two processes, must not use one folder at the same time: each would
    /// remove the files of the other.
    pub fn folder(path: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = Arc::new(StoreFolder::open(path)?);
        Ok(Self { logs: Arc::<StoreFolder>::clone(&folder), checkpoints: folder, sync: true })
    }
}

/// A position in the log of a store; 0 is durable in each store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position(pub(crate) u64);

/// A promise that a transaction will be durable, which
/// [`Store::transact_deferred`](crate::Store::transact_deferred) and
/// [`Tx::commit_deferred`](crate::Tx::commit_deferred) return.
///
/// The transaction is committed in memory, and other transactions see it. Do not pass on what it
/// has read or written before [`Store::wait`](crate::Store::wait) has returned without an error, or
/// [`Store::is_durable`](crate::Store::is_durable) has returned true: a crash could still undo it.
///
/// A thread can run many such transactions and then wait once: tickets of one thread are durable
/// in their order. Something must wait at last, because there is no thread in the background: the
/// record is written by the next transaction, `wait` or checkpoint. When the store is dropped, it
/// writes the record unless the thread unwinds, and nobody hears of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    store: u64,
    position: Position,
}

impl<P: Policy> StoreCore<P> {
    /// A position behind the records of all transactions from which the caller has read.
    #[inline]
    pub(crate) fn seen(&self) -> Position {
        self.log.as_ref().map_or_else(Position::default, |log| Position(log.seen()))
    }

    /// Waits until everything before a position is durable.
    #[inline]
    pub(crate) fn wait(&self, position: Position) -> Result<(), Error> {
        match &self.log {
            Some(log) if !log.is_durable(position.0) => log.wait(position.0),
            _ => Ok(()),
        }
    }

    pub(crate) fn ticket(&self, position: Position) -> Ticket {
        if let Some(log) = &self.log
            && log.is_long()
        {
            let _ = log.wait(position.0); // `Store::wait` returns the error again
        }
        Ticket { store: self.number, position }
    }
}

impl<P: Policy> Store<P> {
    /// Waits until the transaction of a ticket is durable, and everything that it has read. If no
    /// thread writes the log, this one does. Returns at once if the store has no log.
    pub fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        if ticket.store != self.core.number {
            return Err(Error::Foreign);
        }
        self.core.wait(ticket.position)
    }

    /// Whether the transaction of a ticket is durable, and everything that it has read. A ticket of
    /// another store is not. The call writes nothing: see [`Ticket`].
    pub fn is_durable(&self, ticket: Ticket) -> bool {
        let log = self.core.log.as_ref();
        ticket.store == self.core.number && log.is_none_or(|log| log.is_durable(ticket.position.0))
    }
}
