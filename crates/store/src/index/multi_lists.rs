//! The index of the study's database in which several rows have one key: a key leads to a list.
//!
//! # Source
//! As for [`Lists`](super::Lists): DBx1000, whose indexes for customers by last name and for orders
//! by customer have a list of rows for each key.
//!
//! # Algorithm
//! ```text
//! key of the store: the key of the list, and the primary key of the row (8 bytes each)
//! lookup:    lock the latch of the list; cell = index.get(list); follow the cells; unlock
//! insert:    lock; find the place among the cells; allocate a cell and link it; if it is the first
//!            one, index.insert(list → cell); unlock
//! remove:    lock; unlink the cell; if it was the first one, index.replace or index.remove; free
//!            the cell; unlock
//! walk:      as a lookup, for the next few cells within the bounds; then visits them, and repeats
//! ```
//! The cells of a list are in descending order of their primary keys, so that a row with the
//! greatest one is inserted at the head, as in the study. The study's lists have no order; here the
//! order makes a list a range, so that transactions protect it as any other one.
//!
//! # Invariants
//! * L1: a word of the inner index is the address of the first cell of the list of its key, and
//!   `next` is 0 or the address of a cell of that list. A cell is freed after it was unlinked. Only
//!   the owner of the latch of the list reads, writes or frees its cells. It calls nothing that
//!   takes another lock meanwhile, except the inner index.
//! * L2: a range lies within one list. Lists have no order among one another, so the store takes
//!   the end of a list for the end of the index: see `policy/locking.rs`, P2.
//!
//! # Complexity
//! The number of cells with greater primary keys, for each call. A walk reads the list once for
//! each [`CHUNK`] of its entries.

use super::lists::Cells;
use super::{FormOf, Search};
use crate::error::Error;
use crate::key::KeyRef;
use silvics::{AllocError, Guard, Options, PoolStats};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::ops::Bound;
use std::ptr::NonNull;

/// The index `I` as one in which a key leads to a list of rows. It is for an
/// [`IndexSpec::multi`](crate::IndexSpec::multi) over one column of 8 bytes, in a table whose
/// primary key is such a column. `I` need not scan.
pub struct MultiLists<I: Search<Form = u64>> {
    index: I,
    cells: Cells,
    /// The number of cells.
    count: AtomicUsize,
}

#[repr(C)]
struct Cell {
    row: u64,
    primary: u64,
    next: u64,
    _rest: u64,
}

const _: () = assert!(size_of::<Cell>() == 32);

/// The bytes of the key of a list, and of a primary key.
const WORD: usize = 8;

/// The entries that a walk visits at a time.
const CHUNK: usize = 32;

/// The list and the primary key of a key of the store, or `None` if it has not both.
fn split(key: &[u8]) -> Option<(u64, u64)> {
    let (list, primary) = key.split_first_chunk::<WORD>()?;
    Some((u64::from_be_bytes(*list), u64::from_be_bytes(primary.try_into().ok()?)))
}

/// Borrows a cell.
///
/// # Safety
/// L1: `word` is the address of a cell, and the caller owns the latch of its list during `'a`.
unsafe fn cell<'a>(word: u64) -> Option<&'a mut Cell> {
    let cell = std::ptr::with_exposed_provenance_mut::<Cell>(word as usize);
    // SAFETY: the caller's promise. The caller uses no two references to one cell.
    unsafe { cell.as_mut() }
}

/// The next entries of a walk.
struct Next<'a> {
    list: u64,
    bounds: (Bound<&'a [u8]>, Bound<&'a [u8]>),
    /// The primary key that was visited last.
    last: Option<u64>,
    descending: bool,
}

impl Next<'_> {
    /// Whether the entry with a primary key is among those that are left.
    fn has(&self, primary: u64) -> bool {
        let is_left = match self.last {
            None => true,
            Some(last) if self.descending => primary < last,
            Some(last) => primary > last,
        };
        let mut key = [0; 2 * WORD];
        key[..WORD].copy_from_slice(&self.list.to_be_bytes());
        key[WORD..].copy_from_slice(&primary.to_be_bytes());
        is_left && std::ops::RangeBounds::<&[u8]>::contains(&self.bounds, &&key[..])
    }
}

/// A position in a list.
#[derive(Clone, Copy)]
struct Position {
    /// The last cell with a greater primary key, or 0.
    before: u64,
    /// The first cell with the primary key or a smaller one, or 0.
    at: u64,
}

impl<I: Search<Form = u64>> MultiLists<I> {
    /// Makes the index around an empty one, which must be of the domain of the options. Cells come
    /// from the heap of the options, or from a pool if they have none.
    pub fn around(index: I, options: &Options) -> Result<Self, Error> {
        Ok(Self::with(index, options)?)
    }

    fn with(index: I, options: &Options) -> Result<Self, AllocError> {
        Ok(Self { index, cells: Cells::new(options)?, count: AtomicUsize::new(0) })
    }

    /// Finds a primary key. The caller owns the latch of the list.
    fn find(&self, (list, primary): (u64, u64), guard: &Guard) -> Position {
        let (mut before, mut at) = (0, self.index.get(list, guard).unwrap_or(0));
        // SAFETY: L1.
        while let Some(here) = unsafe { cell(at) }
            && here.primary > primary
        {
            (before, at) = (at, here.next);
        }
        Position { before, at }
    }

    /// Copies the next entries of a walk, in its order, and returns their number.
    fn entries(&self, next: &Next<'_>, guard: &Guard, to: &mut [(u64, u64); CHUNK]) -> usize {
        let _held = self.cells.latch(KeyRef::Word(next.list));
        let mut at = self.index.get(next.list, guard).unwrap_or(0);
        let mut count = 0;
        // SAFETY: L1.
        while let Some(here) = unsafe { cell(at) } {
            at = here.next;
            if next.has(here.primary) {
                to[count % CHUNK] = (here.primary, here.row);
                count += 1;
                if count == CHUNK && next.descending {
                    break;
                }
            }
        }
        let found = count.min(CHUNK);
        if !next.descending {
            // The last entries that were met, the oldest of which is behind the newest.
            if count > CHUNK {
                to.rotate_left(count % CHUNK);
            }
            to[..found].reverse();
        }
        found
    }

    /// The position of a primary key, if there is a cell with it. The caller owns the latch of the
    /// list.
    fn present(&self, key: (u64, u64), guard: &Guard) -> Option<Position> {
        let position = self.find(key, guard);
        // SAFETY: L1.
        let found = unsafe { cell(position.at) }?;
        (found.primary == key.1).then_some(position)
    }
}

// SAFETY: S1 to S3: under the latch of a list, a cell has the word that was inserted for its key.
// S4: a range is a part of one list, and a walk goes on behind the primary key that it has visited
// last. S5: no code here calls
// the store. S6: a latch is released when a call unwinds, and cells are linked after all calls of
// the inner index that can unwind.
unsafe impl<I: Search<Form = u64>> Search for MultiLists<I> {
    type Form = [u8];

    const LISTS: bool = true;

    fn make(options: &Options) -> Result<Self, AllocError> {
        Self::with(I::make(options)?, options)
    }

    fn structure(&self) -> String {
        format!("lists of {}", self.index.structure())
    }

    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        let key = split(key)?;
        let _held = self.cells.latch(KeyRef::Word(key.0));
        let position = self.present(key, guard)?;
        // SAFETY: L1.
        unsafe { cell(position.at) }.map(|found| found.row)
    }

    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        // The store has no other keys for such an index: see `StoreCore::create_index`.
        let Some((list, primary)) = split(key) else { return Err(AllocError::Address) };
        let _held = self.cells.latch(KeyRef::Word(list));
        let Position { before, at } = self.find((list, primary), guard);
        // SAFETY: L1.
        if let Some(present) = unsafe { cell(at) }
            && present.primary == primary
        {
            return Ok(Some(present.row));
        }
        let new = self.cells.alloc(Cell { row: word, primary, next: at, _rest: 0 })?;
        let address = new.as_ptr().expose_provenance() as u64;
        if before == 0 {
            let first = match at {
                // SAFETY: the caller's promise, for the words of the inner index.
                0 => unsafe { self.index.try_insert(list, address, guard) }.map(|_| ()),
                // SAFETY: the caller's promise, for the words of the inner index.
                _ => unsafe { self.index.replace(list, address, guard) },
            };
            if let Err(error) = first {
                // SAFETY: allocated above, and the index has refused it.
                unsafe { self.cells.free(new) };
                return Err(error);
            }
        }
        // SAFETY: L1.
        if let Some(before) = unsafe { cell(before) } {
            before.next = address;
        }
        self.count.fetch_add(1, Ordering::Relaxed); // a count alone
        Ok(None)
    }

    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        let Some(key) = split(key) else { return Ok(()) };
        let _held = self.cells.latch(KeyRef::Word(key.0));
        let position = self.present(key, guard);
        // SAFETY: L1.
        if let Some(found) = position.and_then(|position| unsafe { cell(position.at) }) {
            found.row = word;
        }
        Ok(())
    }

    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        let Some(key) = split(key) else { return Ok(()) };
        let _held = self.cells.latch(KeyRef::Word(key.0));
        let Some(Position { before, at }) = self.present(key, guard) else { return Ok(()) };
        // SAFETY: L1.
        let next = unsafe { cell(at) }.map_or(0, |found| found.next);
        if before == 0 {
            match next {
                // SAFETY: the caller's promise, for the words of the inner index.
                0 => unsafe { self.index.remove(key.0, guard) },
                // SAFETY: the caller's promise, for the words of the inner index.
                _ => unsafe { self.index.replace(key.0, next, guard) },
            }?;
        }
        // SAFETY: L1.
        if let Some(before) = unsafe { cell(before) } {
            before.next = next;
        }
        self.count.fetch_sub(1, Ordering::Relaxed); // a count alone
        let unlinked = std::ptr::with_exposed_provenance_mut::<Cell>(at as usize);
        if let Some(unlinked) = NonNull::new(unlinked) {
            // SAFETY: L1: nothing leads to the cell any more.
            unsafe { self.cells.free(unlinked) };
        }
        Ok(())
    }

    /// Visits a part of the list that the lower bound names.
    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        let (Bound::Included(low) | Bound::Excluded(low)) = bounds.0 else { return };
        let Some((list, _)) = low.split_first_chunk::<WORD>() else { return };
        let mut key = [0; 2 * WORD];
        key[..WORD].copy_from_slice(list);
        let mut last = None;
        loop {
            let next = Next { list: u64::from_be_bytes(*list), bounds, last, descending };
            let mut entries = [(0, 0); CHUNK];
            let count = self.entries(&next, guard, &mut entries);
            for &(primary, row) in &entries[..count] {
                key[WORD..].copy_from_slice(&primary.to_be_bytes());
                if !visit(&key, row) {
                    return;
                }
            }
            if count < CHUNK {
                return;
            }
            last = Some(entries[CHUNK - 1].0);
        }
    }

    /// Within one list.
    fn scans(&self) -> bool {
        true
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> Option<usize> {
        self.cells.bytes_with(&self.index)
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.cells.stats_with(&self.index)
    }
}
