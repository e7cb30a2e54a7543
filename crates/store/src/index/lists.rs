//! The index of the study's database: a key leads to a list of rows.
//!
//! # Source
//! DBx1000, the database of the first source (Arbel-Raviv, Brown and Morrison, USENIX ATC 2018,
//! section 5): its indexes are maps from a key to the head of a list, and a lookup takes a lock of
//! the key while it reads the head.
//!
//! # Algorithm
//! ```text
//! lookup(key): lock the latch of the key's bucket; cell = index.get(key); read the cell; unlock
//! insert(key): lock; cell = index.get(key); occupied, or allocate a cell and insert it; unlock
//! remove(key): lock; remove the key from the index; free the cell; unlock
//! ```
//! A cell of 32 bytes has the address of the row. All accesses to the cells of a key are under its
//! latch, so a cell is freed at once.
//!
//! # Invariant
//! * L1: a word of the inner index is the address of a cell that `try_insert` allocated and that is
//!   not freed. Only the owner of the latch of its key reads, writes or frees it.

use super::{FormOf, Scannable, Search};
use crate::error::Error;
use crate::key::{KeyForm, KeyRef, spread};
use crate::rows::Source;
use silvics::{AllocError, Budget, Guard, Options, PoolStats};
use silvics_pool::Config;
use silvics_sync::lock::{RawLock, SpinLock};
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Arc;

/// The number of latches. The study's table has one for each bucket of keys.
const LATCHES: usize = 1 << 14;

/// The cells of lists, and the latches of keys.
pub(super) struct Cells {
    source: Source,
    latches: Box<[SpinLock]>,
}

impl Cells {
    /// Cells come from the heap of the options, or from a pool if they have none.
    pub(super) fn new(options: &Options) -> Result<Self, AllocError> {
        let mut latches = Vec::new();
        latches
            .try_reserve_exact(LATCHES)
            .map_err(|_| AllocError::System { requested: LATCHES })?;
        latches.resize_with(LATCHES, SpinLock::new);
        let budget = options.budget.clone().unwrap_or_else(|| Arc::new(Budget::new(None)));
        let mut config = Config::of_budget(options.pages, budget);
        config.tuning = options.tuning;
        let shared = options.heap.is_some();
        if let Some(heap) = &options.heap {
            config.heap = Arc::clone(heap);
        }
        Ok(Self { source: Source::new("cell", shared, &config), latches: latches.into() })
    }

    /// Locks the latch of a key.
    #[inline]
    pub(super) fn latch(&self, key: KeyRef<'_>) -> Held<'_> {
        let latch = &self.latches[(spread(0, key) >> 32) as usize % LATCHES];
        latch.lock();
        Held(latch)
    }

    /// Allocates a cell, and writes it.
    pub(super) fn alloc<C>(&self, cell: C) -> Result<NonNull<C>, AllocError> {
        let to = self.source.alloc(size_of::<C>())?.cast();
        // SAFETY: the cell has room, and no other thread knows it.
        unsafe { to.write(cell) };
        Ok(to)
    }

    /// # Safety
    /// `alloc` returned the cell. It is freed once, and nobody uses it.
    pub(super) unsafe fn free<C>(&self, cell: NonNull<C>) {
        // SAFETY: the caller's promise.
        unsafe { self.source.free(cell.cast(), size_of::<C>()) };
    }

    /// The bytes of the index in the lists, and of their latches.
    pub(super) fn bytes_with(&self, index: &impl Search) -> Option<usize> {
        Some(index.bytes()? + size_of_val(&*self.latches))
    }

    /// The memory of the index in the lists, and of the cells.
    pub(super) fn stats_with(&self, index: &impl Search) -> Vec<PoolStats> {
        let mut stats = index.pool_stats();
        stats.push(self.source.stats());
        stats
    }
}

/// The index `I`, whose words are the addresses of cells with the addresses of rows.
pub struct Lists<I: Search> {
    index: I,
    cells: Cells,
}

#[repr(C)]
struct Cell {
    row: u64,
    _rest: [u64; 3],
}

/// The bytes of a cell, which begins with the address of the row.
#[doc(hidden)]
pub const CELL_BYTES: usize = size_of::<Cell>();

const _: () = assert!(CELL_BYTES == 32);

/// A latch that is held.
pub(super) struct Held<'a>(&'a SpinLock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: `Lists::latch` locked it, and this value releases it once.
        unsafe { self.0.unlock() };
    }
}

impl<I: Search> Lists<I> {
    /// Makes the index around an empty one. Cells come from the heap of the options, or from a
    /// pool if they have none. `index` must be of the domain of the options.
    pub fn around(index: I, options: &Options) -> Result<Self, Error> {
        Ok(Self::with(index, options)?)
    }

    fn with(index: I, options: &Options) -> Result<Self, AllocError> {
        Ok(Self { index, cells: Cells::new(options)? })
    }

    #[inline]
    fn latch(&self, key: FormOf<'_, I>) -> Held<'_> {
        self.cells.latch(I::Form::erase(key))
    }

    /// Reads a cell. The caller holds the latch of its key.
    #[inline]
    fn row(word: u64) -> u64 {
        let cell = std::ptr::with_exposed_provenance::<Cell>(word as usize);
        // SAFETY: L1.
        unsafe { (*cell).row }
    }
}

// SAFETY: S1 to S3 are those of the inner index: under the latch of a key, its cell has the word
// that was inserted for it. A scan takes the latch of each key that it visits, and looks the key up
// again; so it visits each key that is present all the time (S4). S5: no code here calls the store.
// S6: a latch is released when a call unwinds, and a cell is not freed then.
unsafe impl<I: Search> Search for Lists<I> {
    type Form = I::Form;

    fn make(options: &Options) -> Result<Self, AllocError> {
        Self::with(I::make(options)?, options)
    }

    fn structure(&self) -> String {
        format!("lists of {}", self.index.structure())
    }

    #[inline]
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        let _held = self.latch(key);
        self.index.get(key, guard).map(Self::row)
    }

    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let _held = self.latch(key);
        if let Some(present) = self.index.get(key, guard) {
            return Ok(Some(Self::row(present)));
        }
        let cell = self.cells.alloc(Cell { row: word, _rest: [0; 3] })?;
        let address = cell.as_ptr().expose_provenance() as u64;
        // SAFETY: the caller's promise.
        let inserted = unsafe { self.index.try_insert(key, address, guard) };
        if !matches!(inserted, Ok(None)) {
            // SAFETY: allocated above, and the index has refused it.
            unsafe { self.cells.free(cell) };
        }
        // The latch is held, so the key is still absent.
        inserted.map(|present| present.map(Self::row))
    }

    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        let _held = self.latch(key);
        if let Some(present) = self.index.get(key, guard) {
            let cell = std::ptr::with_exposed_provenance_mut::<Cell>(present as usize);
            // SAFETY: L1.
            unsafe { (*cell).row = word };
        }
        Ok(())
    }

    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        let _held = self.latch(key);
        let Some(present) = self.index.get(key, guard) else { return Ok(()) };
        // SAFETY: the caller's promise.
        unsafe { self.index.remove(key, guard) }?;
        let cell = std::ptr::with_exposed_provenance_mut::<Cell>(present as usize);
        if let Some(cell) = NonNull::new(cell) {
            // SAFETY: L1: the index does not lead to the cell any more.
            unsafe { self.cells.free(cell) };
        }
        Ok(())
    }

    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        self.index.walk(bounds, descending, guard, &mut |key, _| match self.get(key, guard) {
            Some(word) => visit(key, word),
            None => true,
        });
    }

    fn scans(&self) -> bool {
        self.index.scans()
    }

    fn count(&self) -> usize {
        self.index.count()
    }

    fn bytes(&self) -> Option<usize> {
        self.cells.bytes_with(&self.index)
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.cells.stats_with(&self.index)
    }
}

impl<I: Scannable> Scannable for Lists<I> {}
