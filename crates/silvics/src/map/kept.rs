//! Objects with code of the user in them, from their retirement until they are taken back: values
//! and keys of a map, whose destructors run then.
//!
//! A thread's batch of retired objects goes to the collector of the domain. It frees objects
//! without code of the user at once. If they have such code, it only marks the batch as ready: it
//! runs deferred calls wherever a thread pins, even under a lock of an index (V2 in `value.rs`).
//! The next calls of any thread take the objects of ready batches back.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `Waiting::ready` | store, by the collector | `SeqCst` | `take_ready` | reads by pinned threads happen before the drop; ordered before `some_ready` |
//! | `Waiting::ready` | `take_ready` | `SeqCst` | the store | reads by pinned threads happen before the drop |
//! | `some_ready` | store, swap | `SeqCst` | each other | if the swap comes first, the flag stays set; if the store comes first, the thread that swaps sees the ready batch |
//! | `some_ready` | load | Relaxed | – | a hint that a batch may be ready; a later call sees a batch that this load misses |

use crate::domain::{Domain, Guard, Hold, Reclaim, Retired, Sealed};
use crate::error::AllocError;
use silvics_pool::Budget;
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// The memory of objects, which takes them back one by one on any thread.
///
/// # Safety
/// Any thread may call the methods.
pub(crate) unsafe trait Objects: Send + Sync + 'static {
    /// Whether taking an object back may run code of the user.
    fn runs_user_code(&self) -> bool;

    /// Whether dropping the memory releases all objects, taken back or not.
    fn releases_whole(&self) -> bool;

    /// Takes an object back.
    ///
    /// # Safety
    /// The object is of this memory, no thread can reach it any more, and it is taken back once.
    unsafe fn take_back(&self, object: NonNull<u8>);
}

/// The objects of one map, and the retired ones that wait.
pub(crate) struct Kept<M: Objects> {
    retired: Retired<Owner<M>>,
    owner: Arc<Owner<M>>,
}

/// The owner of the objects.
struct Owner<M: Objects> {
    memory: M,
    /// Sealed batches, the oldest first. Empty unless taking back runs code of the user.
    waiting: Mutex<VecDeque<Waiting>>,
    /// Whether some of the batches may be ready.
    some_ready: Arc<AtomicBool>,
}

/// A batch of retired objects.
struct Waiting {
    batch: Sealed,
    /// Whether no guard protects the objects any more.
    ready: Arc<AtomicBool>,
}

// SAFETY: any thread may take objects back (the contract of `Objects`).
unsafe impl<M: Objects> Reclaim for Owner<M> {
    fn releases_whole(&self) -> bool {
        self.memory.releases_whole()
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { self.memory.take_back(object) };
    }

    fn sealed(pool: &Arc<Self>, batch: Sealed) -> impl FnOnce() + 'static {
        let (now, later) = if pool.memory.runs_user_code() {
            let ready = Arc::new(AtomicBool::new(false));
            pool.waiting.lock().push_back(Waiting { batch, ready: Arc::clone(&ready) });
            (None, Some((ready, Arc::clone(&pool.some_ready))))
        } else {
            (Some((batch, Hold::of(pool))), None)
        };
        move || {
            if let Some((batch, pool)) = now {
                // SAFETY: D1 and D2 of the domain: no later guard can reach the objects, and all
                // earlier guards are gone.
                unsafe { pool.run(batch) };
            }
            if let Some((ready, some_ready)) = later {
                ready.store(true, Ordering::SeqCst);
                some_ready.store(true, Ordering::SeqCst);
            }
        }
    }
}

impl<M: Objects> Owner<M> {
    /// Takes the oldest batch, if it is ready.
    fn take_ready(&self) -> Option<Sealed> {
        let mut waiting = self.waiting.lock();
        if !waiting.front()?.ready.load(Ordering::SeqCst) {
            return None;
        }
        waiting.pop_front().map(|waiting| waiting.batch)
    }

    /// Takes back the objects of at most `most` ready batches.
    fn drop_ready(&self, most: usize) {
        std::thread_local! {
            /// Set while this thread takes objects back. A destructor that writes to the map must
            /// not run others in recursion.
            static DROPPING: Cell<bool> = const { Cell::new(false) };
        }
        if DROPPING.try_with(|dropping| dropping.replace(true)).unwrap_or(true) {
            return;
        }
        self.some_ready.swap(false, Ordering::SeqCst);
        for left in (0..most).rev() {
            let Some(batch) = self.take_ready() else { break };
            if left == 0 {
                self.some_ready.store(true, Ordering::SeqCst); // there may be more
            }
            // SAFETY: each object was retired once, and the batch is ready: no guard protects it.
            unsafe { batch.run(self) };
        }
        DROPPING.with(|dropping| dropping.set(false));
    }
}

impl<M: Objects> Drop for Owner<M> {
    fn drop(&mut self) {
        if self.memory.releases_whole() {
            return;
        }
        while let Some(Waiting { batch, .. }) = { self.waiting.lock().pop_front() } {
            // SAFETY: V3: nothing that the map has returned is left, and each object was retired
            // once.
            unsafe { batch.run(self) };
        }
    }
}

/// The number of batches that a thread takes back for each batch that it seals: more than one, so
/// that the list becomes shorter.
const PAID: usize = 2;

impl<M: Objects> Kept<M> {
    pub(crate) fn new(memory: M, domain: &Domain, budget: &Arc<Budget>) -> Self {
        let (waiting, some_ready) = (Mutex::default(), Arc::new(AtomicBool::new(false)));
        let owner = Arc::new(Owner { memory, waiting, some_ready });
        let retired = Retired::starting_small(Arc::clone(&owner), domain.clone(), budget);
        Self { retired, owner }
    }

    #[inline(always)]
    pub(crate) fn memory(&self) -> &M {
        &self.owner.memory
    }

    /// Makes an object. If that fails, it flushes what this thread retired, and tries once more.
    #[inline(always)]
    pub(crate) fn made<T>(
        &self,
        guard: &Guard,
        make: impl Fn(&M) -> Result<T, AllocError>,
    ) -> Result<T, AllocError> {
        make(self.memory()).or_else(|_| self.made_after_flush(guard, make))
    }

    /// Makes an object like [`Kept::made`], and takes none back: the caller may hold a lock.
    #[inline(always)]
    pub(crate) fn made_under_lock<T>(
        &self,
        guard: &Guard,
        make: impl Fn(&M) -> Result<T, AllocError>,
    ) -> Result<T, AllocError> {
        make(self.memory()).or_else(|_| {
            self.retired.flush(guard);
            make(self.memory())
        })
    }

    /// Seals the objects that this thread retired, and takes all ready batches back, under a guard.
    #[cold]
    pub(crate) fn drop_all_ready(&self, guard: &Guard) {
        self.retired.flush(guard);
        self.owner.drop_ready(usize::MAX);
    }

    #[cold]
    fn made_after_flush<T>(
        &self,
        guard: &Guard,
        make: impl Fn(&M) -> Result<T, AllocError>,
    ) -> Result<T, AllocError> {
        self.drop_all_ready(guard);
        make(self.memory())
    }

    /// Retires an object of some bytes. The caller holds no lock.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once, under a guard of the domain.
    #[inline(always)]
    pub(crate) unsafe fn retire(&self, object: NonNull<u8>, bytes: usize, guard: &Guard) {
        // SAFETY: the caller's promise.
        let sealed = unsafe { self.retired.retire(object, bytes, guard) };
        if sealed && self.memory().runs_user_code() {
            self.owner.drop_ready(PAID);
        }
    }

    /// Retires an object like [`Kept::retire`], and takes none back: the caller may hold a lock.
    ///
    /// # Safety
    /// That of [`Kept::retire`].
    pub(crate) unsafe fn retire_only(&self, object: NonNull<u8>, bytes: usize, guard: &Guard) {
        // SAFETY: the caller's promise.
        _ = unsafe { self.retired.retire(object, bytes, guard) };
    }

    /// Takes back the objects of some ready batches, if there are any. The caller holds no lock.
    #[inline(always)]
    pub(crate) fn drop_some(&self) {
        if self.memory().runs_user_code() && self.owner.some_ready.load(Ordering::Relaxed) {
            self.owner.drop_ready(PAID);
        }
    }

    /// Seals the objects that this thread retired, flushes the domain, and takes all ready batches
    /// back.
    pub(crate) fn flush(&self) {
        self.retired.flush_unpinned();
        self.owner.drop_ready(usize::MAX);
    }

    /// Takes back every retired object that no guard protects, whichever thread retired it.
    pub(crate) fn settle(&mut self) {
        self.retired.drain();
        self.owner.drop_ready(usize::MAX);
    }
}
