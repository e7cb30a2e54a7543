//! An index that keeps the reads of its calls, and the rows to which they lead.
//!
//! One thread at a time may trace, and no other thread may use the database meanwhile: the cell of
//! a row is the one that its insertion into the index has allocated.

use crate::reproduce::bst::placed::heap::{Block, CELL, DESCRIPTOR, Divided, NODE};
use crate::reproduce::bst::placed::model::OfRow;
use silvics::{AllocError, Guard, Options};
use silvics_layout::record::{self, Read};
use silvics_store::index::{FormOf, Scannable, Search};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A step of a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// The reads of a call in the tree.
    Path(Vec<Read>),
    /// The nodes and descriptors that an insertion has allocated.
    New(Vec<Block>),
    /// A row that the index leads to.
    Row(Found),
}

/// A row that an index leads to.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The objects of the row; `None` if the heap has not recorded them one behind the other.
    pub row: Option<OfRow>,
    /// The number of the unique index, in the order in which they were made; `None` for one of
    /// lists.
    pub table: Option<usize>,
    /// Whether the row was inserted.
    pub is_new: bool,
}

/// The steps of transactions on a database whose heap keeps a record.
pub struct Tracer {
    heap: Arc<Divided>,
    is_on: AtomicBool,
    steps: Mutex<Vec<Step>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tracer {
    /// A tracer that is off.
    pub fn new(heap: Arc<Divided>) -> Self {
        Self { heap, is_on: AtomicBool::new(false), steps: Mutex::default() }
    }

    /// Returns the steps of `work`.
    pub fn of<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Step>) {
        // Relaxed: the thread that traces is the only one.
        self.is_on.store(true, Ordering::Relaxed);
        let result = work();
        self.is_on.store(false, Ordering::Relaxed); // likewise
        (result, std::mem::take(&mut lock(&self.steps)))
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) // Relaxed: see `of`
    }

    fn add(&self, step: Step) {
        lock(&self.steps).push(step);
    }
}

/// The index `I`, whose calls are traced.
pub struct Traced<I> {
    index: I,
    tracer: Arc<Tracer>,
    table: Option<usize>,
    /// The cells of this index by the addresses of the rows that they lead to.
    cells: Mutex<HashMap<u64, Block>>,
}

impl<I: Search> Traced<I> {
    /// The index, traced by `tracer`. A unique index has the number `table`.
    pub fn new(index: I, tracer: &Arc<Tracer>, table: Option<usize>) -> Self {
        Self { index, tracer: Arc::clone(tracer), table, cells: Mutex::default() }
    }

    /// Makes a call of the inner index, whose reads are a step.
    fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        if !self.tracer.is_on() {
            return call();
        }
        let mut path = Vec::new();
        let result = record::of(&mut path, call);
        self.tracer.add(Step::Path(path));
        result
    }

    /// The index leads to the row with this word.
    fn found(&self, word: u64, is_new: bool) {
        if self.tracer.is_on() {
            let cell = lock(&self.cells).get(&word).copied();
            let objects = self.tracer.heap.of_wrapper(word as usize);
            let row = objects.zip(cell).and_then(|([row, columns, wrapper, lock], cell)| {
                OfRow::among(&[row, columns, wrapper, lock, cell])
            });
            self.tracer.add(Step::Row(Found { row, table: self.table, is_new }));
        }
    }
}

// SAFETY: each call is that of the inner index, which keeps S1 to S6.
unsafe impl<I: Search> Search for Traced<I> {
    type Form = I::Form;

    const LISTS: bool = I::LISTS;

    /// Fails: an index that is made of options alone has no tracer.
    fn make(_options: &Options) -> Result<Self, AllocError> {
        Err(AllocError::Address)
    }
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        let word = self.call(|| self.index.get(key, guard))?;
        self.found(word, false);
        Some(word)
    }
    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let before = self.tracer.heap.allocated();
        // SAFETY: the caller's promise.
        let present = self.call(|| unsafe { self.index.try_insert(key, word, guard) })?;
        if let Some(present) = present {
            self.found(present, false);
            return Ok(Some(present));
        }
        let mut new = self.tracer.heap.since(before);
        if let Some(cell) = new.iter().find(|block| block.kind == CELL) {
            lock(&self.cells).insert(word, *cell);
        }
        if self.tracer.is_on() {
            new.retain(|block| [NODE, DESCRIPTOR].contains(&block.kind));
            self.tracer.add(Step::New(new));
            self.found(word, true);
        }
        Ok(None)
    }
    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        self.call(|| unsafe { self.index.replace(key, word, guard) })
    }
    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        // SAFETY: the caller's promise.
        self.call(|| unsafe { self.index.remove(key, guard) })
    }
    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        let mut words = Vec::new();
        self.call(|| {
            self.index.walk(bounds, descending, guard, &mut |key, word| {
                words.push(word);
                visit(key, word)
            });
        });
        for word in words {
            self.found(word, false);
        }
    }

    silvics_store::pass_on!(index: structure scans count bytes pool_stats);
}

impl<I: Scannable> Scannable for Traced<I> {}
