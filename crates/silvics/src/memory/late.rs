//! Pools that an index makes when it has grown, for objects of many kinds that each thread retires
//! in one batch.
//!
//! The pools take some hundred bytes, and some hundred nanoseconds to make and drop. So an index in
//! a placement that [takes first objects](Placement::TAKES_FIRST) makes them when it has some KiB
//! of objects (`small.rs` of `silvics-pool`), and an empty index has neither.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `Made::pools` | load, store | Acquire, Release | each other | they are initialised; if null, look in `OnceBox` |

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;

use super::Memory;
use crate::domain::{Guard, Reclaim, Retired};
use crate::frame::Frame;
use silvics_layout::NodeLayout;
use silvics_pool::{AllocError, Config, Placement, PoolStats, SlotSize, SmallObjects};
use silvics_sync::atomic::{AtomicPtr, Ordering};
use silvics_sync::{Mutex, OnceBox};
use std::ptr::NonNull;
use std::sync::Arc;

/// The pools of an index. A retired object is a word that says of which kind it is.
///
/// # Safety
/// Any thread may call the pools. `new` makes one for each of [`PoolSet::KINDS`], in their order,
/// with the settings it is given or with other sizes of slabs. `free` gives an object back to the
/// pool that it came from.
pub(crate) unsafe trait PoolSet: Send + Sync + Sized + 'static {
    type Placement: Placement;
    /// The kinds of objects, one for each pool.
    const KINDS: &'static [NodeLayout];

    /// Makes the pools.
    fn new(config: &Config) -> Self;
    /// The memory of an object: its start and its bytes.
    ///
    /// # Safety
    /// The word leads to an object of such pools that is not reclaimed.
    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize);
    /// Frees an object.
    ///
    /// # Safety
    /// The word leads to an object of these pools, or to a first object of their index. Nobody else
    /// has it, and it is freed once.
    unsafe fn free(&self, object: NonNull<u8>);
    /// The statistics of each pool.
    fn stats(&self) -> Vec<PoolStats>;
    /// Returns the free memory of all pools to the system, and its bytes.
    fn shrink(&self) -> usize;
}

/// The pools of an index, and the objects that it had before them.
struct Late<S: PoolSet> {
    /// The first objects, if the pools are made later. They are dropped before the pools, so that
    /// these need not give back slot by slot.
    first: Option<Arc<SmallObjects>>,
    pools: OnceBox<S>,
    /// Held while the pools are made: they are numbered.
    making: Mutex<()>,
}

impl<S: PoolSet> Late<S> {
    fn new(config: &Config) -> Self {
        let takes_first = S::Placement::TAKES_FIRST;
        let first = takes_first.then(|| SmallObjects::before_pools(config)).flatten();
        let pools = match first {
            Some(_) => OnceBox::default(),
            None => OnceBox::from(S::new(&config.clone().starting_small())),
        };
        Self { first, pools, making: Mutex::default() }
    }

    fn first(&self) -> &Arc<SmallObjects> {
        self.first.as_ref().expect("pools are made later only after first objects")
    }

    /// The pools, made if necessary.
    fn pools(&self) -> Result<&S, AllocError> {
        self.pools.get().map_or_else(|| self.make(), Ok)
    }

    #[cold]
    fn make(&self) -> Result<&S, AllocError> {
        let _making = self.making.lock();
        let first = self.first();
        let made = self.pools.get_or_make(&**first.budget(), || S::new(&first.pool_config()));
        made.map_err(|refused| first.budget().error_of(refused, OnceBox::<S>::BYTES))
    }

    /// Allocates an object of a kind from the first objects, or else as `of` says.
    #[cold]
    fn alloc_first(
        &self,
        (kind, size): (usize, SlotSize),
        of: impl Fn(&S) -> Result<NonNull<u8>, AllocError>,
    ) -> Result<NonNull<u8>, AllocError> {
        let alloc = |refused| self.first().alloc_first(kind as u16, size, refused);
        if let Some(object) = alloc(None)? {
            return Ok(object);
        }
        match self.make() {
            Ok(pools) => of(pools),
            Err(refused) => alloc(Some(refused))?.ok_or(refused),
        }
    }

    /// Frees an object.
    ///
    /// # Safety
    /// As [`PoolSet::free`]. The pools are passed, unless the object was made before them.
    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, pools: Option<&S>) {
        // SAFETY: our contract.
        unsafe {
            let Some(pools) = pools else {
                let (memory, bytes) = S::extent(object);
                return self.first().free_first(memory, bytes);
            };
            pools.free(object);
        }
    }

    fn stats(&self) -> Vec<PoolStats> {
        let Some(pools) = self.pools.get() else {
            let of = |(kind, of): (usize, &NodeLayout)| self.first().stats(kind as u16, of.kind);
            return S::KINDS.iter().enumerate().map(of).collect();
        };
        pools.stats()
    }
}

impl<S: PoolSet> Drop for Late<S> {
    fn drop(&mut self) {
        if let (Some(first), Some(_)) = (&self.first, self.pools.get()) {
            first.budget().give(OnceBox::<S>::BYTES);
        }
    }
}

// SAFETY: pools may be shared by all threads. `reclaim` frees an object, as it should.
unsafe impl<S: PoolSet> Reclaim for Late<S> {
    fn releases_whole(&self) -> bool {
        S::Placement::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: `LatePools::retire` passed this word to the domain, once, after the object was
        // unlinked. The domain calls `reclaim` once, when no guard can reach the object. A thread
        // that has an object of a pool sees the pools.
        unsafe { self.free(object, self.pools.get()) };
    }
}

/// The pools of an index that has objects, and its retired objects.
struct Made<S: PoolSet> {
    /// The pools, or null if no thread has needed them yet. `Late` has this pointer too, but in a
    /// line that each batch of retired objects writes, as it counts its references.
    pools: AtomicPtr<S>,
    /// The batches, with the only reference to the pools beside those of sealed batches.
    retired: Retired<Late<S>>,
}

impl<S: PoolSet> Made<S> {
    fn new(Frame { config, domain, .. }: &Frame) -> Self {
        let late = Arc::new(Late::new(config));
        let retired = Retired::starting_small(late, domain.clone(), &config.budget);
        Self { pools: AtomicPtr::default(), retired }
    }

    fn late(&self) -> &Late<S> {
        self.retired.owner()
    }

    /// The pools, if they have been made.
    #[inline(always)]
    fn pools(&self) -> Option<&S> {
        // Acquire pairs with Release of `find_pools`: a thread that sees the pools sees them
        // initialised.
        match NonNull::new(self.pools.load(Ordering::Acquire)) {
            // SAFETY: `find_pools` has stored our pools, which stay as long as this.
            Some(pools) => Some(unsafe { pools.as_ref() }),
            None => self.find_pools(),
        }
    }

    #[cold]
    fn find_pools(&self) -> Option<&S> {
        let pools = self.late().pools.get()?;
        self.pools.store(NonNull::from(pools).as_ptr(), Ordering::Release);
        Some(pools)
    }

    #[inline]
    fn alloc(
        &self,
        kind: (usize, SlotSize),
        of: impl Fn(&S) -> Result<NonNull<u8>, AllocError>,
    ) -> Result<NonNull<u8>, AllocError> {
        match self.pools() {
            Some(pools) => of(pools),
            None => self.late().alloc_first(kind, of),
        }
    }
}

/// The memory of an index whose pools are made late.
pub(crate) struct LatePools<S: PoolSet> {
    pub(crate) frame: Frame,
    made: OnceBox<Made<S>>,
}

impl<S: PoolSet> LatePools<S> {
    /// Makes the pools at once in a placement that frees each object by itself.
    pub(crate) fn new(frame: Frame) -> Result<Self, AllocError> {
        let new = Self { frame, made: OnceBox::default() };
        if !S::Placement::RELEASES_WHOLE {
            new.make()?;
        }
        Ok(new)
    }

    #[inline]
    fn made_now(&self) -> Result<&Made<S>, AllocError> {
        self.made.get().map_or_else(|| self.make(), Ok)
    }

    #[cold]
    fn make(&self) -> Result<&Made<S>, AllocError> {
        let budget = &self.frame.config.budget;
        let made = self.made.get_or_make(budget, || Made::new(&self.frame));
        made.map_err(|refused| budget.error_of(refused, OnceBox::<Made<S>>::BYTES))
    }

    /// The pools and retired objects of an index that has had an object.
    #[inline]
    fn made(&self) -> &Made<S> {
        self.made.get().expect("the first object has made this")
    }

    /// The pools, made if necessary.
    pub(crate) fn pools(&self) -> Result<&S, AllocError> {
        self.made_now()?.late().pools()
    }

    /// Allocates an object of a kind and a size, from the pool that `of` calls. If that fails,
    /// flushes the objects that this thread has retired, and tries once more.
    #[inline]
    pub(crate) fn alloc(
        &self,
        kind: (usize, SlotSize),
        of: impl Fn(&S) -> Result<NonNull<u8>, AllocError>,
        guard: &Guard,
    ) -> Result<NonNull<u8>, AllocError> {
        let made = self.made_now()?;
        made.alloc(kind, &of).or_else(|_| {
            made.retired.flush(guard);
            made.alloc(kind, of)
        })
    }

    /// Allocates as [`LatePools::alloc`], but flushes nothing. For callers that can do without.
    pub(crate) fn alloc_at_hand(
        &self,
        kind: (usize, SlotSize),
        of: impl Fn(&S) -> Result<NonNull<u8>, AllocError>,
    ) -> Option<NonNull<u8>> {
        self.made_now().ok()?.alloc(kind, of).ok()
    }

    /// Retires an object.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once. The guard is of the index's domain.
    pub(crate) unsafe fn retire(&self, object: NonNull<u8>, guard: &Guard) {
        // SAFETY: the object has not been retired before (our contract), so it is not reclaimed.
        let (_, bytes) = unsafe { S::extent(object) };
        // SAFETY: our contract is that of `Retired::retire`.
        unsafe { self.made().retired.retire(object, bytes, guard) };
    }

    /// Hands the objects that this thread has retired to the domain, to be reclaimed as soon as
    /// guards allow it.
    pub(crate) fn flush(&self, guard: &Guard) {
        if let Some(made) = self.made.get() {
            made.retired.flush(guard);
        }
    }

    /// Frees an object at once.
    ///
    /// # Safety
    /// Nobody else has the object, or can reach it any more. It is freed once.
    pub(crate) unsafe fn free(&self, object: NonNull<u8>) {
        let made = self.made();
        // SAFETY: our contract. A thread that has an object of a pool sees the pools.
        unsafe { made.late().free(object, made.pools()) };
    }
}

impl<S: PoolSet> Drop for LatePools<S> {
    fn drop(&mut self) {
        if self.made.get().is_some() {
            self.frame.config.budget.give(OnceBox::<Made<S>>::BYTES);
        }
    }
}

impl<S: PoolSet> Memory for LatePools<S> {
    fn stats(&self) -> Vec<PoolStats> {
        let Some(made) = self.made.get() else {
            let pages = self.frame.config.pages;
            return S::KINDS.iter().map(|of| PoolStats::empty(of.kind, pages)).collect();
        };
        made.late().stats()
    }

    fn settle(&mut self) {
        if let Some(made) = self.made.get_mut() {
            made.retired.drain();
        }
    }

    fn shrink(&self) -> usize {
        let Some(made) = self.made.get() else { return 0 };
        made.retired.flush_unpinned();
        made.late().pools.get().map_or(0, S::shrink)
    }

    #[cfg(test)]
    fn has_pools(&self, make: bool) -> bool {
        let made = self.made.get().is_some_and(|made| made.late().pools.get().is_some());
        made || make && self.pools().is_ok()
    }
}
