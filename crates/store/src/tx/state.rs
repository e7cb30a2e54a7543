//! The state of a transaction: its writes, the entries that it has placed in indexes, and what its
//! policy keeps. A thread reuses the memory for its next transaction.

use super::arena::{Arena, Stored};
use super::entries::{Links, Placed};
use crate::durability::{Position, Redo};
use crate::index::ErasedIndex;
use crate::policy::{Policy, Stop};
use crate::rows::{Address, RowRef};
use crate::store::StoreCore;
use crate::table::TableCore;
use silvics::{AllocError, Guard};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// An index of the store, which lives as long as the store (T1).
#[derive(Clone, Copy)]
pub(crate) struct IndexPtr(NonNull<dyn ErasedIndex>);

// SAFETY: it is a reference to an index, which is `Sync`.
unsafe impl Send for IndexPtr {}

impl IndexPtr {
    pub(crate) fn of(index: &(dyn ErasedIndex + 'static)) -> Self {
        Self(NonNull::from(index))
    }

    /// # Safety
    /// The store that owns the index lives during `'a`.
    #[inline(always)]
    pub(crate) unsafe fn get<'a>(self) -> &'a (dyn ErasedIndex + 'static) {
        // SAFETY: the caller's promise: T1.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn is(self, other: Self) -> bool {
        std::ptr::addr_eq(self.0.as_ptr(), other.0.as_ptr())
    }
}

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// It has made the row.
    Insert,
    /// It changes a row.
    Update,
    /// It deletes a row.
    Delete,
    /// It has made the row and deleted it again.
    Void,
}

/// A row that a transaction writes. The row is changed at the commit.
pub(crate) struct Write<P: Policy> {
    pub row: RowRef<P::Rows>,
    pub table: NonNull<TableCore<P>>,
    pub kind: WriteKind,
    /// The columns that the row will have.
    pub new: NonNull<u64>,
    /// The columns that the row had, unless this transaction has made it.
    pub old: Option<NonNull<u64>>,
    /// Whether the optimistic policy has locked the row.
    pub locked: bool,
    /// The policy's knowledge of the row: the version that was read.
    pub mark: u64,
    /// The entries of the row, and those that take over its keys.
    pub entries: Links,
}

/// The memory of a transaction.
pub(crate) struct Workspace<P: Policy> {
    pub arena: Arena,
    pub writes: Writes<P>,
    pub placed: Vec<Placed>,
    /// The number of entries that the transaction has placed so far.
    pub placements: u64,
    /// Entries of rows that the transaction has placed and given up, whose removal has failed.
    pub stuck: Vec<(IndexPtr, Stored, Address)>,
    pub log: P::Log,
    /// The entries of the scan that is under way.
    pub segment: Vec<(Stored, Address)>,
    /// The memory of the record for the log.
    pub redo: Redo,
}

impl<P: Policy> Default for Workspace<P> {
    fn default() -> Self {
        Self {
            arena: Arena::default(),
            writes: Writes::default(),
            placed: Vec::new(),
            placements: 0,
            stuck: Vec::new(),
            log: P::Log::default(),
            segment: Vec::new(),
            redo: Redo::default(),
        }
    }
}

/// A workspace whose lists have room for more elements is not kept: a large transaction would leave
/// its memory to all later ones of its thread.
const MOST_ROOM: usize = 1 << 16;

impl<P: Policy> Workspace<P> {
    /// Whether a thread keeps this memory for its next transaction.
    pub(crate) fn is_kept(&self) -> bool {
        let lists = [
            self.writes.list.capacity(),
            self.placed.capacity(),
            self.stuck.capacity(),
            self.segment.capacity(),
            P::room(&self.log),
            self.redo.room(),
        ];
        lists.into_iter().sum::<usize>() <= MOST_ROOM
    }
}

// SAFETY: the pointers lead to rows and tables, which any thread may use, and into the arena, which
// moves with them.
unsafe impl<P: Policy> Send for Workspace<P> {}

/// The state of a transaction that is under way.
pub struct Inner<'s, P: Policy> {
    pub(crate) store: &'s StoreCore<P>,
    pub(crate) guard: Guard,
    /// Returned to the thread when the transaction has ended.
    pub(crate) work: ManuallyDrop<Box<Workspace<P>>>,
    /// The transaction's age: smaller is older. Wait-die keeps it when it runs a transaction again.
    pub(crate) ts: u64,
    /// Why the transaction cannot go on, if it cannot.
    pub(crate) doomed: Option<Stop>,
    /// Whether an allocation has failed.
    pub(crate) starved: bool,
    /// The state of repairs when the transaction began: see [`StoreCore::repairs`].
    pub(crate) repairs: u64,
    /// The position that must be durable before the result of the transaction is passed on.
    pub(crate) position: Position,
}

/// If there are more writes, they are found by a hash table.
const FEW: usize = 16;

/// The rows that a transaction writes, found by their addresses.
pub(crate) struct Writes<P: Policy> {
    list: Vec<Write<P>>,
    by_row: HashMap<Address, u32>,
}

impl<P: Policy> Default for Writes<P> {
    fn default() -> Self {
        Self { list: Vec::new(), by_row: HashMap::new() }
    }
}

impl<P: Policy> Writes<P> {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of the write of a row.
    #[inline]
    pub(crate) fn find(&self, row: Address) -> Option<usize> {
        if self.list.len() <= FEW {
            return self.list.iter().position(|write| write.row.address == row);
        }
        self.by_row.get(&row).map(|&at| at as usize)
    }

    /// Makes room for one more write.
    #[inline]
    pub(crate) fn reserve(&mut self) -> Result<(), AllocError> {
        let at = self.list.len();
        if at < self.list.capacity() && at < FEW {
            return Ok(());
        }
        reserve(&mut self.list)?;
        let requested = (at + 1) * size_of::<(Address, u32)>();
        self.by_row.try_reserve(FEW + 1).map_err(|_| AllocError::System { requested })
    }

    /// Adds a write, for which there is room. Returns its number.
    pub(crate) fn push(&mut self, write: Write<P>) -> usize {
        let at = self.list.len();
        if at >= FEW {
            if at == FEW {
                let rows = self.list.iter().enumerate();
                self.by_row.extend(rows.map(|(at, write)| (write.row.address, at as u32)));
            }
            self.by_row.insert(write.row.address, at as u32);
        }
        self.list.push(write);
        at
    }

    /// Takes back the last write.
    pub(crate) fn pop(&mut self) {
        if let Some(write) = self.list.pop() {
            self.by_row.remove(&write.row.address);
        }
        if self.list.len() <= FEW {
            self.by_row.clear(); // `push` fills it again
        }
    }

    #[inline]
    pub(crate) fn all(&self) -> &[Write<P>] {
        &self.list
    }

    #[inline]
    pub(crate) fn all_mut(&mut self) -> &mut [Write<P>] {
        &mut self.list
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        if !self.by_row.is_empty() {
            self.by_row.clear();
        }
    }
}

/// Appends to a list, or reports that there is no memory.
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, element: T) -> Result<(), AllocError> {
    reserve(list)?;
    list.push(element);
    Ok(())
}

/// Makes room for one more element of a list, or reports that there is no memory.
#[inline(always)]
pub(crate) fn reserve<T>(list: &mut Vec<T>) -> Result<(), AllocError> {
    if list.len() == list.capacity() { grow(list) } else { Ok(()) }
}

/// A list of more elements does not grow: they have numbers of 32 bits, and growing doubles a list.
const MOST: usize = 1 << 31;

#[cold]
fn grow<T>(list: &mut Vec<T>) -> Result<(), AllocError> {
    let requested = list.len().saturating_add(1).saturating_mul(size_of::<T>());
    let failed = AllocError::System { requested };
    if list.len() >= MOST {
        return Err(failed);
    }
    list.try_reserve(1).map_err(|_| failed)
}

/// Words in the arena of a transaction as a slice.
///
/// # Safety
/// The arena returned `words` words at `start`, has not released them during `'a`, and nobody
/// writes them during `'a`.
#[inline(always)]
pub(crate) unsafe fn words<'a>(start: NonNull<u64>, words: usize) -> &'a [u64] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), words) }
}

/// Words in the arena of a transaction as bytes.
///
/// # Safety
/// As for [`words`].
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(start: NonNull<u64>, words: usize) -> &'a [u8] {
    // SAFETY: the caller's promise; each word is eight bytes.
    unsafe { std::slice::from_raw_parts(start.as_ptr().cast(), words * 8) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Optimistic;

    #[test]
    fn the_memory_of_a_large_transaction_is_not_kept() {
        let mut work = Workspace::<Optimistic>::default();
        assert!(work.is_kept());
        work.segment.reserve(MOST_ROOM + 1);
        assert!(!work.is_kept());
    }
}
