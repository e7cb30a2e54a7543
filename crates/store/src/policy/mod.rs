//! Concurrency control as a policy: how transactions are kept apart.
//!
//! | policy | conflict | reads | source |
//! |---|---|---|---|
//! | [`Optimistic`] | found at the commit | write nothing shared | Tu, Zheng, Kohler, Liskov and Madden, SOSP 2013 (Silo) |
//! | [`Locking<NoWait>`] | the transaction is aborted at once | lock the row shared | Bernstein and Goodman, ACM Computing Surveys 1981; DBx1000 |
//! | [`Locking<WaitDie>`] | an older transaction waits, a younger one is aborted | lock the row shared | Rosenkrantz, Stearns and Lewis, TODS 1978 |
//!
//! All of them are strictly serializable, scans and lookups of absent keys included.

mod held;
mod locking;
mod optimistic;

pub use locking::{Locking, NoWait, OnConflict, WaitDie};
pub use optimistic::Optimistic;

use crate::error::Conflict;
use crate::index::{ErasedIndex, IndexCore};
use crate::key::KeyRef;
use crate::rows::{RowLayout, RowRef};
use crate::tx::arena::Stored;
use crate::tx::state::{IndexPtr, Inner};
use silvics::AllocError;
use silvics_memtable::BatchError;
use std::ops::Bound;

pub(crate) mod private {
    pub trait Sealed {}
}

/// The state in which a transaction finds a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Seen {
    /// The row is there, and its columns are copied. The number is the policy's knowledge of it.
    Present(u64),
    /// The row is deleted, or was never committed.
    Absent,
    /// The transaction itself writes the row: the number of the write.
    Own(usize),
}

/// The reason why an internal step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Stop {
    /// The transaction must be aborted.
    Conflict(Conflict),
    /// There is no memory.
    Alloc(AllocError),
    /// A call of the transaction has unwound, and may have done a part of its work.
    Unwound,
    /// The log has failed, so nothing can be written.
    ReadOnly,
    /// The transaction does not fit into a record of the log.
    Record(BatchError),
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

impl From<AllocError> for Stop {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// A part of an index that a transaction has scanned.
#[doc(hidden)]
pub struct Scanned {
    pub(crate) index: IndexPtr,
    pub(crate) low: Bound<Stored>,
    pub(crate) high: Bound<Stored>,
    pub(crate) descending: bool,
}

/// A concurrency control, with the layout of rows. The trait is sealed.
pub trait Policy: private::Sealed + Sized + Send + Sync + 'static {
    /// The layout of rows, and the lock or version in each.
    type Rows: RowLayout;
    /// The memory of a transaction.
    #[doc(hidden)]
    type Log: Default + Send;

    /// The name in reports.
    fn name() -> String;

    /// Whether a scan repeats its walk if it finds an entry without its row.
    #[doc(hidden)]
    const WAITS_FOR_ROWS: bool;

    /// The number of elements for which the lists of a log have room.
    #[doc(hidden)]
    fn room(log: &Self::Log) -> usize;

    /// The header of a row that this transaction makes: nobody else can use the row before the
    /// commit.
    #[doc(hidden)]
    fn new_header(ts: u64) -> <Self::Rows as RowLayout>::Header;

    /// The header of a row that is committed, and that nobody else knows yet.
    #[doc(hidden)]
    fn loaded_header() -> <Self::Rows as RowLayout>::Header;

    /// Remembers a row that this transaction has made. Returns what [`Write::mark`] keeps.
    ///
    /// [`Write::mark`]: crate::tx::state::Write
    #[doc(hidden)]
    fn made(inner: &mut Inner<'_, Self>, row: RowRef<Self::Rows>) -> Result<u64, Stop>;

    /// Reads a row into `image`.
    #[doc(hidden)]
    fn read(
        inner: &mut Inner<'_, Self>,
        row: RowRef<Self::Rows>,
        image: &mut [u64],
    ) -> Result<Seen, Stop>;

    /// Reads a row that the transaction is about to write.
    #[doc(hidden)]
    fn read_to_write(
        inner: &mut Inner<'_, Self>,
        row: RowRef<Self::Rows>,
        image: &mut [u64],
    ) -> Result<Seen, Stop>;

    /// Protects the absence of a key. The caller looks the key up once more if this returns true.
    #[doc(hidden)]
    fn missed(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<bool, Stop>;

    /// Called before an entry with this key is placed in a unique index.
    #[doc(hidden)]
    fn claim(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop>;

    /// Called before an entry is placed for a row that this transaction updates: write number `at`.
    #[doc(hidden)]
    fn hold(inner: &mut Inner<'_, Self>, at: usize) -> Result<(), Conflict>;

    /// Takes `hold` back, when the update is not made.
    #[doc(hidden)]
    fn unhold(inner: &mut Inner<'_, Self>, at: usize);

    /// Called before this transaction removes an entry that it has placed, and goes on.
    #[doc(hidden)]
    fn unplacing(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop>;

    /// Called after an entry with this key was placed in an index.
    #[doc(hidden)]
    fn placed(
        inner: &mut Inner<'_, Self>,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
    ) -> Result<(), Stop>;

    /// Protects a part of an index whose entries are in the segment of `inner`. Returns whether
    /// they are all: if not, the caller walks again.
    #[doc(hidden)]
    fn scanned(inner: &mut Inner<'_, Self>, scanned: Scanned) -> Result<bool, Stop>;

    /// Fails if something that was read is not true any more. An error that a transaction returns
    /// without a commit is checked by it, so that it does not follow from an inconsistent view.
    #[doc(hidden)]
    fn recheck(inner: &Inner<'_, Self>) -> Result<(), Conflict>;

    /// The last step that can fail: afterwards nobody can read or change what the transaction
    /// writes, and what it has read is still true.
    #[doc(hidden)]
    fn prepare(inner: &mut Inner<'_, Self>) -> Result<(), Conflict>;

    /// Called after an entry that no commit has confirmed was removed, or put on the list of
    /// postponed removals, and before its row is released. Called as well after an entry of that
    /// list was removed.
    #[doc(hidden)]
    fn withdrawn(index: &IndexCore);

    /// Called before a commit removes an entry from an index.
    #[doc(hidden)]
    fn removing(index: &IndexCore);

    /// Ends a commit, after the rows were changed: their new states can be read from now on.
    #[doc(hidden)]
    fn publish(inner: &mut Inner<'_, Self>);

    /// Ends an abort: the rows that the transaction has made are absent.
    #[doc(hidden)]
    fn release(inner: &mut Inner<'_, Self>);
}
