//! Durability: a log of the transactions, checkpoints, and recovery.

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
    /// seconds. It loses none that is followed by one that it keeps.
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
/// record is written by the next transaction, `wait` or checkpoint, or when the store is dropped.
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
