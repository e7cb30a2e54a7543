//! Reclamation: domains, guards, and the batches in which retired objects wait.
//!
//! # Source
//! Fraser, "Practical lock-freedom", 2004, section 5.2.3 (epochs), in the form of the
//! `crossbeam-epoch` crate, whose collector does the counting here.
//!
//! # Algorithm
//! A thread *pins* a domain before it reads nodes and unpins when it holds none any more. A node
//! that has been unlinked is *retired*: it goes into the calling thread's batch of the node's pool
//! (`Retired`). A full batch is *sealed*: one deferred call, holding one reference to the pool,
//! is handed to the collector together with the current epoch. Once every thread pinned at that
//! moment has unpinned, the collector runs the call on some thread, and the slots go back to the
//! pool.
//!
//! # Departures from `crossbeam-epoch` as usually used
//! 1. Batches are ours, per pool and thread, and the collector sees one call per batch. A call
//!    per object would need a reference to the pool in each, a shared write per removal, to keep
//!    the pool alive until its last retired slot has run.
//! 2. A sealed batch is flushed into the collector's global queue at once. So an unsealed batch is
//!    reachable only through the index, whose drop takes it along, and a thread that goes idle
//!    holds back less than [`BATCH_OBJECTS`] objects of each pool, never somebody's pool.
//! 3. An index that is dropped runs what is sealed. What a guard still protects is run when the
//!    guard is gone and a thread comes by: one that pins, makes or flushes a domain for the first
//!    time, or drops an index (`ORPHANS`).
//!
//! # Invariants
//! * D1: an object is in a batch only after it was unlinked for new readers, and once.
//! * D2: a batch is sealed under a guard of its domain, after its last object was retired.
//! * D3: whoever may still run a sealed batch holds a reference to its pool; regions are unmapped
//!   only when the last one is gone.
//! * D4: a guard protects only nodes of indexes of its own domain; every operation that is given
//!   another domain's guard pins its own (`enter`), for as long as what it returns borrows the
//!   guard (`adopt`).
//! * D5: a batch cell is touched only by the thread whose index it has (P1 of
//!   `silvics_sync::per_thread`), or under exclusive access to the index.
//!
//! # Under `--cfg silvics_shuttle`
//! `model_epoch` stands in for the collector and runs a call the moment nothing holds it back.
//!
//! # Bounds
//! While pins are short, a thread's garbage is its unsealed batches plus what the collector has
//! not yet run, some two epochs' worth. Under a held pin garbage grows with what is retired.
//! Afterwards b sealed batches are run within 128 (⌈b/8⌉ + 2) pins of any thread, or within
//! ⌈(⌈b/8⌉ + 2) / 3⌉ calls of [`Domain::flush`]: the collector looks every 128 pins, runs eight
//! batches at a time, and moves the epoch by one, of which the last batch needs two. The collector
//! itself allocates a few KiB per sealed batch from the global allocator, outside the pools'
//! limits.
//!
//! A writer that meets its index's limit flushes once. That frees nothing its own pin, or another
//! thread's, still protects: a thread that removes and inserts at the limit under one long pin
//! gets an error that the next pin would not.

#[cfg(silvics_shuttle)]
use crate::model_epoch as epoch;
#[cfg(not(silvics_shuttle))]
use crossbeam_epoch as epoch;
use silvics_pool::Budget;
use silvics_sync::Mutex;
use silvics_sync::cell::UnsafeCell;
use silvics_sync::per_thread::{PerThread, thread_index};
use std::cell::RefCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock};

/// An epoch collector of its own, shareable by several indexes. Cloning gives another handle to
/// the same domain.
#[derive(Clone)]
pub struct Domain {
    inner: Arc<Inner>,
}

struct Inner {
    collector: epoch::Collector,
    identity: Identity,
    batches: Batches,
}

/// Held by each sealed batch that has not run, so that they are counted.
type Batches = Arc<()>;

/// How many batches are sealed and have not run.
fn unrun(batches: &Batches) -> usize {
    Arc::strong_count(batches) - 1
}

/// Calls `flush` until so many calls have run nothing: guards protect what is left.
fn settle(batches: &Batches, calls: usize, flush: impl Fn()) {
    let (mut idle, mut left) = (0, unrun(batches));
    while left > 0 && idle < calls {
        flush();
        let now = unrun(batches);
        idle = if now < left { 0 } else { idle + 1 };
        left = now;
    }
}

/// The collectors of domains that are gone, with batches that guards protected then.
#[cfg(not(silvics_shuttle))]
static ORPHANS: LazyLock<Mutex<Vec<(epoch::Collector, Batches)>>> = LazyLock::new(Mutex::default);

/// Runs what can be run of batches whose domain is gone; of a few domains, in turn, for a guard that
/// is never dropped would cost every passer-by.
#[cfg(not(silvics_shuttle))]
fn run_orphans() {
    const DOMAINS: usize = 2;
    let orphans: Vec<_> = {
        let mut all = ORPHANS.lock();
        let some = all.len().min(DOMAINS);
        all.drain(..some).collect()
    };
    for (collector, batches) in orphans {
        let handle = collector.register();
        // The first moves the epoch, and so does the second, if nothing is pinned.
        settle(&batches, 3, || handle.pin().flush());
        if unrun(&batches) > 0 {
            ORPHANS.lock().push((collector, batches));
        }
    }
}

/// The model's collector runs everything in time, and lives no longer than an execution.
#[cfg(silvics_shuttle)]
fn run_orphans() {}

/// A slot in every thread's table of handles, reused after the domain is gone, and a number that
/// never is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    slot: usize,
    serial: u64,
}

/// Free slots, slots ever used, serials ever used.
static IDENTITIES: LazyLock<Mutex<(Vec<usize>, usize, u64)>> = LazyLock::new(Mutex::default);

std::thread_local! {
    /// This thread's registration with each domain it has pinned, by slot.
    static HANDLES: RefCell<Vec<Option<(u64, epoch::LocalHandle)>>> =
        const { RefCell::new(Vec::new()) };
}

impl Drop for Inner {
    fn drop(&mut self) {
        #[cfg(not(silvics_shuttle))]
        if unrun(&self.batches) > 0 {
            ORPHANS.lock().push((self.collector.clone(), Arc::clone(&self.batches)));
        }
        IDENTITIES.lock().0.push(self.identity.slot);
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Domain({})", self.inner.identity.serial)
    }
}

impl Domain {
    /// A domain that shares nothing with others.
    pub fn new() -> Self {
        run_orphans();
        let identity = {
            let mut identities = IDENTITIES.lock();
            identities.2 += 1;
            let slot = identities.0.pop().unwrap_or_else(|| {
                identities.1 += 1;
                identities.1 - 1
            });
            Identity { slot, serial: identities.2 }
        };
        let collector = epoch::Collector::new();
        Self { inner: Arc::new(Inner { collector, identity, batches: Batches::default() }) }
    }

    /// Pins the domain for this thread: what is retired from now on stays readable until the
    /// guard is dropped. Nested pins are cheap.
    #[inline]
    pub fn pin(&self) -> Guard {
        let Identity { slot, serial } = self.inner.identity;
        let pinned = HANDLES.try_with(|handles| match handles.try_borrow().ok()?.get(slot) {
            Some(Some((owner, handle))) if *owner == serial => Some(handle.pin()),
            _ => None,
        });
        let guard = match pinned {
            Ok(Some(guard)) => guard,
            _ => self.register(),
        };
        Guard { inner: guard, serial, adopted: RefCell::new(Vec::new()) }
    }

    /// Pins the domain for whoever has the guard, on whatever thread, until it is dropped. Costs a registration,
    /// some hundred nanoseconds, where [`Domain::pin`] costs some nanoseconds.
    pub(crate) fn pin_owned(&self) -> OwnedGuard {
        run_orphans();
        let handle = self.inner.collector.register();
        OwnedGuard { _guard: handle.pin(), _handle: handle }
    }

    /// Registers this thread, keeping the handle if its table still exists.
    #[cold]
    fn register(&self) -> epoch::Guard {
        run_orphans();
        let Identity { slot, serial } = self.inner.identity;
        let handle = self.inner.collector.register();
        let guard = handle.pin();
        // The slot's previous domain is gone; its handle is dropped outside the borrow, since
        // that may run deferred calls.
        let previous = HANDLES.try_with(|handles| {
            let mut handles = handles.try_borrow_mut().ok()?;
            if handles.len() <= slot {
                handles.resize_with(slot + 1, || None);
            }
            handles[slot].replace((serial, handle))
        });
        drop(previous);
        guard
    }

    /// Whether the guard is this domain's.
    #[inline(always)]
    pub(crate) fn is_of(&self, guard: &Guard) -> bool {
        guard.serial == self.inner.identity.serial
    }

    /// The given guard if it is this domain's, else one of its own (D4).
    #[inline(always)]
    pub(crate) fn enter<'g>(&self, guard: &'g Guard) -> Entered<'g> {
        if self.is_of(guard) { Entered::Given(guard) } else { Entered::Own(self.pin()) }
    }

    /// Makes `guard` protect this domain's nodes too, until it is dropped or pinned again: for
    /// operations whose results borrow the guard (D4).
    #[inline(always)]
    pub(crate) fn adopt(&self, guard: &Guard) {
        if !self.is_of(guard) {
            self.adopt_foreign(guard);
        }
    }

    #[cold]
    fn adopt_foreign(&self, guard: &Guard) {
        let serial = self.inner.identity.serial;
        if guard.adopted.borrow().iter().all(|(adopted, _)| *adopted != serial) {
            let own = self.pin().inner;
            guard.adopted.borrow_mut().push((serial, own));
        }
    }

    /// Runs what can be run: pushes the epoch on and collects, a few times. What guards still
    /// protect stays, as do unsealed batches.
    pub fn flush(&self) {
        // Garbage of epoch e may go once the epoch is e + 2; a third round runs what is left.
        for _ in 0..3 {
            self.pin().inner.flush();
        }
    }

    /// Flushes until guards protect what is left of all that is sealed.
    fn settle(&self) {
        // A flush moves the epoch unless a thread is pinned, if only for a moment.
        settle(&self.inner.batches, 8, || self.flush());
    }
}

/// A pinned domain. Dropping it unpins. It belongs to its thread.
pub struct Guard {
    inner: epoch::Guard,
    serial: u64,
    /// Pins of other domains, for references that borrow this guard: see [`Domain::adopt`].
    adopted: RefCell<Vec<(u64, epoch::Guard)>>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard(domain {})", self.serial)
    }
}

impl Guard {
    /// Unpins and pins again: references read under the old pin are gone, which the exclusive
    /// borrow makes sure of. Has no effect while another guard of the domain lives on this thread.
    #[inline]
    pub fn repin(&mut self) {
        self.adopted.get_mut().clear();
        self.inner.repin();
    }
}

/// A pin that belongs to no thread.
pub(crate) struct OwnedGuard {
    // Dropped first.
    _guard: epoch::Guard,
    _handle: epoch::LocalHandle,
}

// SAFETY: a registration of its own, of which nothing is bound to the thread that made it: nobody else refers to it,
// and only who drops the guard touches it again.
unsafe impl Send for OwnedGuard {}
// SAFETY: there is nothing that could be done with a reference.
unsafe impl Sync for OwnedGuard {}

/// A guard that is certainly of the right domain.
pub(crate) enum Entered<'g> {
    Given(&'g Guard),
    Own(Guard),
}

impl Deref for Entered<'_> {
    type Target = Guard;

    #[inline(always)]
    fn deref(&self) -> &Guard {
        match self {
            Self::Given(guard) => guard,
            Self::Own(guard) => guard,
        }
    }
}

/// Where a reclaimed object goes.
///
/// # Safety
/// `reclaim` may be called on any thread.
pub(crate) unsafe trait Reclaim: Send + Sync + 'static {
    /// Whether dropping `self` releases every object, reclaimed or not.
    fn releases_whole(&self) -> bool;

    /// Takes an object back.
    ///
    /// # Safety
    /// The object came from here, nobody can reach it any more, and it is taken back once.
    unsafe fn reclaim(&self, object: NonNull<u8>);

    /// What the collector is to do with a sealed batch of `pool`, once nobody can reach its objects any more.
    fn sealed(pool: &Arc<Self>, batch: Sealed) -> impl FnOnce() + 'static
    where
        Self: Sized,
    {
        let pool = Arc::clone(pool); // D3
        // SAFETY: by D1 and D2 no guard taken later can reach the objects, and the call runs only
        // after all earlier ones are gone.
        move || unsafe { batch.run(&*pool) }
    }
}

/// A batch is sealed at this many objects (one under a model checker, to see each at once) …
pub const BATCH_OBJECTS: usize = if cfg!(silvics_shuttle) { 1 } else { 64 };
/// … or at this many bytes, whichever comes first.
pub const BATCH_BYTES: usize = 256 << 10;

/// The objects a thread has retired and not yet sealed.
struct Batch {
    objects: [MaybeUninit<NonNull<u8>>; BATCH_OBJECTS],
    len: usize,
    bytes: usize,
}

// SAFETY: the objects are unlinked (D1); whoever has the batch is the only one to touch them.
unsafe impl Send for Batch {}

impl Batch {
    const EMPTY: Self =
        Self { objects: [const { MaybeUninit::uninit() }; BATCH_OBJECTS], len: 0, bytes: 0 };

    fn objects(&self) -> &[NonNull<u8>] {
        // SAFETY: the first `len` are initialised.
        unsafe { std::slice::from_raw_parts(self.objects.as_ptr().cast(), self.len) }
    }

    /// Adds an object; whether the batch is full now.
    fn push(&mut self, object: NonNull<u8>, bytes: usize) -> bool {
        self.objects[self.len].write(object);
        self.len += 1;
        self.bytes += bytes;
        self.len == BATCH_OBJECTS || self.bytes >= BATCH_BYTES
    }

    /// Empties it.
    fn take(&mut self) -> Sealed {
        let sealed = Sealed(self.objects().into());
        (self.len, self.bytes) = (0, 0);
        sealed
    }
}

/// A batch on its way through the collector.
pub(crate) struct Sealed(Box<[NonNull<u8>]>);

// SAFETY: as of `Batch`.
unsafe impl Send for Sealed {}

impl Sealed {
    /// # Safety
    /// D1, and no reader is left.
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

/// The retired objects of one pool that are not yet sealed, a batch per thread.
pub(crate) struct Retired<R: Reclaim> {
    pool: Arc<R>,
    domain: Domain,
    cells: PerThread<BatchCell, Arc<Budget>>,
}

impl<R: Reclaim> Retired<R> {
    /// Objects of `pool`; what the batches take is at the expense of `budget`.
    pub(crate) fn new(pool: Arc<R>, domain: Domain, budget: &Arc<Budget>) -> Self {
        Self { pool, domain, cells: PerThread::new(Arc::clone(budget)) }
    }

    /// Retires `object` of `bytes` bytes: it is reclaimed when no guard can see it any more. Whether that has sealed a
    /// batch.
    ///
    /// # Safety
    /// D1; `guard` is of the domain that readers of the object pin; the object is of this pool.
    pub(crate) unsafe fn retire(&self, object: NonNull<u8>, bytes: usize, guard: &Guard) -> bool {
        let Some(cell) = thread_index().and_then(|index| self.cells.get_or_make(index)) else {
            // The thread is ending, or there is no memory for its cell: a batch of one.
            self.seal(Sealed(Box::new([object])), guard);
            return true;
        };
        let full = cell.0.with_mut(|batch| {
            // SAFETY: D5, and nothing in here calls back.
            let batch = unsafe { &mut *batch };
            batch.push(object, bytes).then(|| batch.take())
        });
        let Some(batch) = full else { return false };
        self.seal(batch, guard);
        true
    }

    /// Seals this thread's batch, full or not, and flushes the domain, which can run it then.
    #[cold]
    pub(crate) fn flush(&self, guard: &Guard) {
        if let Some(cell) = thread_index().and_then(|index| self.cells.get(index)) {
            // SAFETY: D5.
            let batch = cell.0.with_mut(|batch| unsafe { &mut *batch }.take());
            if !batch.0.is_empty() {
                self.seal(batch, guard);
            }
        }
        self.domain.flush();
    }

    /// Seals this thread's batch and runs all that no guard protects: for whoever has none.
    pub(crate) fn flush_unpinned(&self) {
        self.flush(&self.domain.pin());
        self.domain.settle();
    }

    #[cold]
    fn seal(&self, batch: Sealed, guard: &Guard) {
        let counted = Arc::clone(&self.domain.inner.batches);
        let sealed = R::sealed(&self.pool, batch);
        let run = move || {
            sealed();
            drop(counted);
        };
        // SAFETY: `Reclaim` allows any thread; the pool is `'static`.
        unsafe { guard.inner.defer_unchecked(run) };
        guard.inner.flush();
    }

    /// Reclaims what is retired, sealed or not, but for the sealed batches that a guard protects.
    pub(crate) fn drain(&mut self) {
        self.domain.settle();
        self.reclaim_unsealed();
    }

    fn reclaim_unsealed(&mut self) {
        for cell in self.cells.iter() {
            // SAFETY: exclusive access (D5).
            let batch = cell.0.with_mut(|batch| unsafe { &mut *batch }.take());
            // SAFETY: readers borrow the index, so none is left.
            unsafe { batch.run(&*self.pool) };
        }
    }
}

impl<R: Reclaim> Drop for Retired<R> {
    fn drop(&mut self) {
        // Sealed batches hold the pool, and nobody may pin this domain again: run them now, unless
        // a guard is in the way.
        self.domain.settle();
        run_orphans();
        if !self.pool.releases_whole() {
            self.reclaim_unsealed();
        }
    }
}
