//! The batches in which retired objects wait until no guard protects them.
//!
//! A batch for each thread takes half a KiB. So the trees whose pools are made late
//! (`memory/late.rs`), and the boxed values of a map, begin with one batch, under a lock that all
//! threads share. It is sealed when it has a sixteenth of the bytes of its budget ([`FEW_PART`]).
//! They get batches for each thread once the index, or all indexes of its budget, hold
//! [`CELLS_FROM`] bytes. Other indexes have batches for each thread from the start. The invariants
//! are those of [`super`].

use super::{Batches, Domain, Guard, run_orphans, settle};
use silvics_pool::Budget;
use silvics_sync::cell::UnsafeCell;
use silvics_sync::per_thread::{PerThread, for_each_ended, thread_index};
use silvics_sync::{Mutex, OnceBox};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock, Weak};

/// The owner of retired objects, which takes them back when they are reclaimed.
///
/// # Safety
/// `reclaim` may be called on any thread.
pub(crate) unsafe trait Reclaim: Send + Sync + 'static {
    /// Whether dropping `self` releases every object, reclaimed or not.
    fn releases_whole(&self) -> bool;

    /// Takes an object back.
    ///
    /// # Safety
    /// The object is of this owner, no thread can reach it any more, and it is taken back once.
    unsafe fn reclaim(&self, object: NonNull<u8>);

    /// Returns the call that the collector runs for a sealed batch of `pool`, once no thread can
    /// reach its objects any more.
    fn sealed(pool: &Arc<Self>, batch: Sealed) -> impl FnOnce() + 'static
    where
        Self: Sized,
    {
        let pool = Hold::of(pool); // D3
        // SAFETY: D1 and D2: no later guard can reach the objects, and the collector runs the call
        // only after all earlier guards are gone.
        move || unsafe { pool.run(batch) }
    }
}

/// The link from a sealed batch to its pool (D3).
pub(crate) enum Hold<R: Reclaim> {
    /// The pool takes back object by object.
    Each(Arc<R>),
    /// Dropping the pool releases the batch's objects too.
    Whole(Weak<R>),
}

impl<R: Reclaim> Hold<R> {
    pub(crate) fn of(pool: &Arc<R>) -> Self {
        if pool.releases_whole() {
            Self::Whole(Arc::downgrade(pool))
        } else {
            Self::Each(Arc::clone(pool))
        }
    }

    /// Reclaims the objects of a batch of the pool, unless they have gone with it.
    ///
    /// # Safety
    /// D1 holds for the objects, they are of this pool, and no reader can reach them any more.
    pub(crate) unsafe fn run(self, batch: Sealed) {
        let pool = match self {
            Self::Each(pool) => Some(pool),
            Self::Whole(pool) => pool.upgrade(),
        };
        if let Some(pool) = pool {
            // SAFETY: the caller's promise.
            unsafe { batch.run(&*pool) };
        }
    }
}

/// The number of objects at which a batch is sealed. Under a model checker it is one, so that the
/// checker sees each object at once.
pub const BATCH_OBJECTS: usize = if cfg!(silvics_shuttle) { 1 } else { 64 };
/// The number of bytes at which a batch is sealed, if that comes before [`BATCH_OBJECTS`].
pub const BATCH_BYTES: usize = 256 << 10;

/// The bytes that an index holds from which on each thread has a batch of its own. Under a model
/// checker the first retired object is enough, so that schedules have both.
const CELLS_FROM: usize = if cfg!(silvics_shuttle) { 0 } else { 256 << 10 };

/// The batch of a small index is sealed when its objects have this part of the bytes that the
/// budget of the index holds, and at least [`FEW_BYTES`]. Without this rule, retired objects would
/// be most of a small index.
const FEW_PART: usize = 16;
const FEW_BYTES: usize = 1 << 10;

/// The objects that a thread has retired and not sealed yet.
struct Batch {
    objects: [MaybeUninit<NonNull<u8>>; BATCH_OBJECTS],
    len: usize,
    bytes: usize,
}

// SAFETY: the objects are unlinked (D1), and only the owner of the batch touches them.
unsafe impl Send for Batch {}

impl Batch {
    const EMPTY: Self =
        Self { objects: [const { MaybeUninit::uninit() }; BATCH_OBJECTS], len: 0, bytes: 0 };

    fn objects(&self) -> &[NonNull<u8>] {
        // SAFETY: `push` has initialised the first `len` objects.
        unsafe { std::slice::from_raw_parts(self.objects.as_ptr().cast(), self.len) }
    }

    /// Adds an object. Returns whether the batch is full now.
    fn push(&mut self, object: NonNull<u8>, bytes: usize) -> bool {
        self.objects[self.len].write(object);
        self.len += 1;
        self.bytes += bytes;
        self.len == BATCH_OBJECTS || self.bytes >= BATCH_BYTES
    }

    /// Empties the batch and returns its objects.
    fn take(&mut self) -> Sealed {
        let sealed = Sealed(self.objects().into());
        (self.len, self.bytes) = (0, 0);
        sealed
    }
}

/// A batch on its way through the collector.
pub(crate) struct Sealed(Box<[NonNull<u8>]>);

// SAFETY: the objects are unlinked (D1), and only the owner of the batch touches them.
unsafe impl Send for Sealed {}

impl Sealed {
    /// Reclaims the objects.
    ///
    /// # Safety
    /// D1 holds for the objects, they are of `pool`, and no reader can reach them any more.
    pub(crate) unsafe fn run<R: Reclaim>(self, pool: &R) {
        for &object in &self.0 {
            // SAFETY: the caller's promise.
            unsafe { pool.reclaim(object) };
        }
    }
}

struct BatchCell(UnsafeCell<Batch>);

// SAFETY: D5.
unsafe impl Sync for BatchCell {}

impl Default for BatchCell {
    fn default() -> Self {
        Self(UnsafeCell::new(Batch::EMPTY))
    }
}

/// The batch of a small index.
#[derive(Default)]
struct Few {
    objects: Vec<NonNull<u8>>,
    bytes: usize,
}

// SAFETY: the objects are unlinked (D1), and the batch is under a lock.
unsafe impl Send for Few {}

impl Few {
    /// Adds an object. Returns a batch to seal: all objects, if they are enough for a budget
    /// that holds `held` bytes, or this one alone if the list cannot grow.
    fn push(&mut self, object: NonNull<u8>, bytes: usize, held: usize) -> Option<Sealed> {
        if self.objects.try_reserve(1).is_err() {
            return Some(Sealed(Box::new([object])));
        }
        self.objects.push(object);
        self.bytes += bytes;
        let most = (held / FEW_PART).clamp(FEW_BYTES, BATCH_BYTES);
        let enough = self.objects.len() >= BATCH_OBJECTS || self.bytes >= most;
        enough.then(|| self.take())
    }

    /// Empties the batch and returns its objects.
    fn take(&mut self) -> Sealed {
        self.bytes = 0;
        Sealed(std::mem::take(&mut self.objects).into_boxed_slice())
    }
}

type Cells = PerThread<BatchCell, Arc<Budget>>;

/// The retired and unsealed objects of one pool: a few for all threads, or one batch for each.
pub(crate) struct Retired<R: Reclaim> {
    pool: Arc<R>,
    domain: Domain,
    budget: Arc<Budget>,
    /// The count of sealed batches of this pool that have not run, if there has been one.
    sealed: OnceLock<Batches>,
    few: Mutex<Few>,
    cells: OnceBox<Cells>,
    /// Whether the budget contains the bytes of `cells`.
    counts_cells: bool,
}

impl<R: Reclaim> Retired<R> {
    /// A batch for each thread, for objects of `pool`. The memory of the batches counts against
    /// `budget`.
    pub(crate) fn new(pool: Arc<R>, domain: Domain, budget: &Arc<Budget>) -> Self {
        let cells = OnceBox::from(PerThread::new(Arc::clone(budget)));
        let mut new = Self::starting_small(pool, domain, budget);
        (new.cells, new.counts_cells) = (cells, false);
        new
    }

    /// One batch for all threads until the index has grown. A thread that is stopped while it has
    /// the lock of this batch stops others, so this is not for the nodes of lock-free structures.
    /// The boxed values of a map take the lock over any index.
    pub(crate) fn starting_small(pool: Arc<R>, domain: Domain, budget: &Arc<Budget>) -> Self {
        let (budget, sealed) = (Arc::clone(budget), OnceLock::new());
        let (few, cells) = (Mutex::default(), OnceBox::default());
        Self { pool, domain, budget, sealed, few, cells, counts_cells: true }
    }

    /// The owner of the objects.
    pub(crate) fn owner(&self) -> &R {
        &self.pool
    }

    /// Retires `object` of `bytes` bytes: it is reclaimed when no guard protects it any more.
    /// Returns whether the call has sealed a batch.
    ///
    /// # Safety
    /// D1; `guard` is of the domain that readers of the object pin; the object is of this pool.
    pub(crate) unsafe fn retire(&self, object: NonNull<u8>, bytes: usize, guard: &Guard) -> bool {
        let Some(cells) = self.cells.get() else { return self.retire_few(object, bytes, guard) };
        let Some(cell) = thread_index().and_then(|index| cells.get_or_make(index)) else {
            // The thread is ending, or its cell cannot be allocated: seal a batch of one.
            self.seal(Sealed(Box::new([object])), guard);
            return true;
        };
        let full = cell.0.with_mut(|batch| {
            // SAFETY: D5: only this thread uses the cell, and no code in this block calls it again.
            let batch = unsafe { &mut *batch };
            batch.push(object, bytes).then(|| batch.take())
        });
        let Some(batch) = full else { return false };
        self.seal(batch, guard);
        true
    }

    /// Retires an object as `retire` does, in an index without cells.
    #[inline(never)]
    fn retire_few(&self, object: NonNull<u8>, bytes: usize, guard: &Guard) -> bool {
        let mut few = self.few.lock();
        let held = self.budget.held();
        let mut full = few.push(object, bytes, held);
        let make = || PerThread::new(Arc::clone(&self.budget));
        let is_large = held >= CELLS_FROM;
        if is_large && self.cells.get_or_make(&self.budget, make).is_ok() && full.is_none() {
            full = Some(few.take()); // the next objects go to the cells
        }
        drop(few);
        let Some(batch) = full else { return false };
        self.seal(batch, guard);
        true
    }

    /// Seals this thread's batch, full or not, and flushes the domain, which may run it.
    #[cold]
    pub(crate) fn flush(&self, guard: &Guard) {
        let own = thread_index().zip(self.cells.get()).and_then(|(index, cells)| cells.get(index));
        if let Some(cell) = own {
            self.seal_of(cell, guard);
        }
        let few = self.few.lock().take();
        if !few.0.is_empty() {
            self.seal(few, guard);
        }
        self.domain.flush();
    }

    /// Seals the batch of a cell whose index the calling thread has or borrows.
    fn seal_of(&self, cell: &BatchCell, guard: &Guard) {
        // SAFETY: D5; no code in this call uses the cell again.
        let batch = cell.0.with_mut(|batch| unsafe { &mut *batch }.take());
        if !batch.0.is_empty() {
            self.seal(batch, guard);
        }
    }

    /// Seals this thread's batch and those of ended threads, and runs all batches that no guard
    /// protects. The caller has no guard.
    pub(crate) fn flush_unpinned(&self) {
        let guard = self.domain.pin();
        if let Some(cells) = self.cells.get() {
            // An index that another call has borrowed is left to a later call.
            let _ = for_each_ended(|index| {
                if let Some(cell) = cells.get(index) {
                    self.seal_of(cell, &guard);
                }
            });
        }
        self.flush(&guard);
        drop(guard);
        self.settle();
    }

    /// Flushes until guards protect all sealed batches of this pool that are left.
    fn settle(&self) {
        // A flush does not advance the epoch while a thread is pinned, even for a moment.
        if let Some(sealed) = self.sealed.get() {
            settle(sealed, &self.domain.inner.batches, 8, || self.domain.flush());
        }
    }

    #[cold]
    fn seal(&self, batch: Sealed, guard: &Guard) {
        let own = self.sealed.get_or_init(Batches::default);
        let counted = (Arc::clone(own), Arc::clone(&self.domain.inner.batches));
        let sealed = R::sealed(&self.pool, batch);
        let run = move || {
            sealed();
            drop(counted);
        };
        // SAFETY: `Reclaim` allows the call on any thread, and the pool is `'static`.
        unsafe { guard.inner.defer_unchecked(run) };
        guard.inner.flush();
    }

    /// Reclaims all retired objects, sealed or not, except the sealed batches that a guard
    /// protects.
    pub(crate) fn drain(&mut self) {
        self.settle();
        self.reclaim_unsealed();
    }

    fn reclaim_unsealed(&mut self) {
        let cells = self.cells.get().into_iter().flat_map(PerThread::iter);
        // SAFETY: exclusive access (D5).
        let cells = cells.map(|cell| cell.0.with_mut(|batch| unsafe { &mut *batch }.take()));
        let few = self.few.lock().take();
        for batch in cells.chain([few]) {
            // SAFETY: readers borrow the index, so no reader is left; D1 holds.
            unsafe { batch.run(&*self.pool) };
        }
    }
}

impl<R: Reclaim> Drop for Retired<R> {
    fn drop(&mut self) {
        run_orphans();
        if !self.pool.releases_whole() {
            // Sealed batches hold the pool, and perhaps no thread pins this domain again. So run
            // them now, except those that a guard protects.
            self.settle();
            self.reclaim_unsealed();
        }
        if self.counts_cells && self.cells.get().is_some() {
            self.budget.give(OnceBox::<Cells>::BYTES);
        }
    }
}
