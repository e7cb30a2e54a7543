//! The indexes that a table may have.
//!
//! | index | its entries | orders |
//! |---|---|---|
//! | [`SkipIndex`] | in its nodes: [`skiplist`](crate::skiplist) | all |
//! | [`ByteIndex`] | in the arena; blocks have words that lead to them: [`EntrySet`](silvics::blocks::EntrySet) | bytewise, and its reverse |
//! | [`OrdIndex`] | in the arena; a tree has pointers to them: [`OrdSet`](silvics::OrdSet) | all |
//!
//! Entries are never removed. So an entry that an index has returned lives as long as the table,
//! and no pin has to protect it. Nodes of [`ByteIndex`] and [`OrdIndex`] are replaced when they
//! change, and a pin protects them during a call.

mod bytes;
mod ord;
mod skip;

pub use bytes::{ByteIndex, Handle};
pub use ord::OrdIndex;
pub use skip::SkipIndex;

use crate::entry::{Draft, Entry};
use crate::key::{Comparator, InternalKey};
use silvics::{AllocError, Domain, Guard, Options};
use silvics_pool::ConcurrentArena;
use std::fmt;
use std::sync::Arc;

/// The parts that an index is made of.
#[derive(Clone)]
pub struct Setup {
    /// The order of user keys.
    pub comparator: Arc<dyn Comparator>,
    /// The memory of entries. The table keeps it until the index is dropped.
    pub arena: Arc<ConcurrentArena>,
    /// The budget and the pages of the index's own memory.
    pub options: Options,
    /// The domain that protects the index's nodes.
    pub domain: Domain,
}

/// The reason why an index was not made.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// The index cannot keep this order.
    Order {
        /// The name of the index.
        index: &'static str,
        /// The name of the comparator.
        comparator: String,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { index, comparator } => write!(
                f,
                "the index `{index}` takes the bytewise order and its reverse, not `{comparator}`: \
                 choose `skiplist` or `ordmap`"
            ),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<AllocError> for SetupError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// The bound from which a scan goes on.
#[derive(Clone, Copy, Debug)]
pub enum Start<'t, 'k> {
    /// The first entry, or the last one if the scan goes backwards.
    End,
    /// The first entry at or after a key; backwards, the last one at or before it.
    Key(InternalKey<'k>),
    /// The entry behind one of this index; backwards, the one before it.
    Beyond(Entry<'t>),
}

/// An ordered index of entries.
///
/// # Safety
/// An index returns only entries that were inserted, and whose bytes [`Index::add`] wrote to the
/// arena of its [`Setup`].
pub unsafe trait Index: Send + Sync + Sized + 'static {
    /// The name by which the command knows the index.
    const NAME: &'static str;

    /// The entries that a cursor reads at once after a seek, and the most that it reads later.
    const AHEAD: (usize, usize) = (4, 64);

    /// Makes an empty index.
    fn new(setup: &Setup) -> Result<Self, SetupError>;

    /// Writes an entry to the arena and inserts it. Returns false if there is an entry with its key
    /// already. After an error the index has the same entries as before.
    ///
    /// # Safety
    /// If `shared` is false, no other thread inserts meanwhile.
    unsafe fn add(&self, draft: Draft<'_>, shared: bool, guard: &Guard)
    -> Result<bool, AllocError>;

    /// The first entry whose key is at or after a key.
    fn seek(&self, key: InternalKey<'_>, guard: &Guard) -> Option<Entry<'_>>;

    /// Appends up to `count` entries to `to`, in order from a bound on; backwards in descending
    /// order.
    ///
    /// # Safety
    /// The entry of [`Start::Beyond`] is one that this index has returned.
    unsafe fn scan<'t>(
        &'t self,
        from: Start<'t, '_>,
        backwards: bool,
        count: usize,
        to: &mut Vec<Entry<'t>>,
        guard: &Guard,
    );

    /// The bytes that the index holds beside the arena.
    fn bytes(&self) -> usize;

    /// The number of times that an insert was repeated because of another thread's insert, if the
    /// index counts it.
    fn retries(&self) -> u64 {
        0
    }

    /// Verifies the quiescent index, and returns the number of its entries. The error says what is
    /// wrong.
    fn check(&mut self) -> Result<usize, String>;
}

/// Writes an entry to the arena.
fn write_to<'e>(arena: &ConcurrentArena, draft: Draft<'_>) -> Result<Entry<'e>, AllocError> {
    let layout = std::alloc::Layout::from_size_align(draft.len(), 1);
    let layout = layout.map_err(|_| AllocError::System { requested: draft.len() })?;
    let at = arena.alloc(layout)?;
    // SAFETY: the arena has given these bytes to this thread alone, and nobody writes there again.
    // The callers bind the entry to the index, which lives no longer than the arena.
    Ok(unsafe { draft.write(at) })
}
