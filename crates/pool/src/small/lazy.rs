//! The core of a pool that may start with small slots.

use super::list::POOLS;
use super::{
    ALL_BYTES, LARGE_INDEX, LARGEST, LARGEST_ALIGN, MANY_USES, MORE_USES, SmallObjects, small_bytes,
};
use crate::core::Core;
use crate::{AllocError, Config, Fallback, Pages, Region, Tuning};
use silvics_sync::OnceBox;
use silvics_sync::atomic::{AtomicU32, Ordering};
use std::ptr::NonNull;
use std::sync::Arc;

/// The core of a pool: made with the pool, or when the pool has outgrown the source.
pub(crate) struct LazyCore<const G: usize, const N: usize, const MAG: usize> {
    core: OnceBox<Core<G, N, MAG>>,
    small: Option<Small>,
}

/// A pool's part in the small objects of its index.
struct Small {
    objects: Arc<SmallObjects>,
    /// The number of the pool.
    pool: u16,
    /// The tuning of the core, which the pool makes later.
    tuning: Tuning,
    /// The bytes of the pool's first objects, and those that it has taken from the source before it
    /// had a core, less those that it freed before that.
    taken: AtomicU32,
    /// The allocations of the pool without a core.
    uses: AtomicU32,
}

impl Small {
    /// Whether the pool may have a slot of these bytes, or else makes its core.
    fn has_room(&self, bytes: usize) -> bool {
        let taken = self.taken.load(Ordering::Relaxed) as usize;
        let is_used_much = || {
            let uses = self.uses.load(Ordering::Relaxed);
            let is_large = || self.objects.opened.load(Ordering::Relaxed) >= LARGE_INDEX;
            uses >= MANY_USES && is_large() || uses >= MORE_USES
        };
        taken + bytes <= small_bytes(bytes) && !is_used_much()
    }

    /// Allocates a slot: see [`SmallObjects::alloc`].
    fn alloc(&self, bytes: usize, most: usize) -> Result<Option<NonNull<u8>>, AllocError> {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.saturating_add(1), Ordering::Relaxed);
        let slot = self.objects.alloc(self.pool, bytes, most)?;
        if slot.is_some() {
            self.taken.fetch_add(bytes as u32, Ordering::Relaxed);
        }
        Ok(slot)
    }
}

impl<const G: usize, const N: usize, const MAG: usize> LazyCore<G, N, MAG> {
    /// A core that `make` makes now, or later if the settings say so and slots of this size and
    /// alignment can be the source's.
    pub(crate) fn new(
        config: &Config,
        (size, align): (usize, usize),
        make: impl FnOnce(&Config) -> Core<G, N, MAG>,
    ) -> Self {
        let fits = size <= LARGEST && align <= LARGEST_ALIGN;
        // The settings may have been changed since, but only the size of slabs.
        let same = |objects: &&Arc<SmallObjects>| {
            let of = &objects.config;
            let budget = Arc::ptr_eq(&of.budget, &config.budget);
            budget && of.tuning.is_like(&config.tuning) && of.pages == config.pages
        };
        let small = config.small.as_ref().filter(same).and_then(|objects| {
            // Each pool has a number. Those that are too many have cores at once.
            let next = |pools| (pools < POOLS).then_some(pools + 1);
            let pool = objects.pools.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
            let pool = pool.ok().filter(|_| fits)?.try_into().ok()?;
            objects.alive.fetch_add(1, Ordering::Relaxed);
            let first = objects.list.lock().of(pool).map(|noted| noted.bytes() as u32).sum();
            let (objects, tuning) = (Arc::clone(objects), config.tuning);
            let (taken, uses) = (AtomicU32::new(first), AtomicU32::new(0));
            Some(Small { objects, pool, tuning, taken, uses })
        });
        let core = if small.is_some() { OnceBox::default() } else { OnceBox::from(make(config)) };
        Self { core, small }
    }

    /// The core, if it has been made.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&Core<G, N, MAG>> {
        self.core.get()
    }

    /// Allocates a slot of `class`, which has `bytes` bytes.
    #[inline(always)]
    pub(crate) fn alloc(
        &self,
        (class, bytes): (usize, usize),
        make: impl FnOnce(&Config) -> Core<G, N, MAG>,
    ) -> Result<NonNull<u8>, AllocError> {
        match self.get() {
            Some(core) => core.alloc(class).or_else(|error| self.alloc_beside(bytes, error)),
            None => self.alloc_early((class, bytes), make),
        }
    }

    /// Allocates a slot for a pool without a core.
    #[cold]
    fn alloc_early(
        &self,
        (class, bytes): (usize, usize),
        make: impl FnOnce(&Config) -> Core<G, N, MAG>,
    ) -> Result<NonNull<u8>, AllocError> {
        let small = self.small.as_ref().expect("a pool without a core starts small");
        let is_small = bytes <= LARGEST;
        if is_small
            && small.has_room(bytes)
            && let Some(slot) = small.alloc(bytes, ALL_BYTES)?
        {
            return Ok(slot);
        }
        match self.grow(small, make) {
            Ok(core) => core.alloc(class).or_else(|error| self.alloc_beside(bytes, error)),
            Err(error @ AllocError::Limit { .. }) if is_small => {
                small.alloc(bytes, usize::MAX).ok().flatten().ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Allocates a slot for a pool whose core was refused a slab with `error`. If a memory limit is
    /// the reason, there may be room for a small slot.
    #[cold]
    fn alloc_beside(&self, bytes: usize, error: AllocError) -> Result<NonNull<u8>, AllocError> {
        match (&self.small, error) {
            (Some(small), AllocError::Limit { .. }) if bytes <= LARGEST => {
                small.objects.alloc(small.pool, bytes, usize::MAX).ok().flatten().ok_or(error)
            }
            _ => Err(error),
        }
    }

    /// Takes back a slot of `class`, which has `bytes` bytes.
    ///
    /// # Safety
    /// The slot came from this pool with this class, and nobody uses it any more.
    #[inline(always)]
    pub(crate) unsafe fn free(&self, (class, bytes): (usize, usize), slot: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.get() {
                Some(core) => core.free(class, slot),
                None => self.free_early(bytes, slot),
            }
        }
    }

    /// Takes back a slot as `free` does, for a pool without a core.
    ///
    /// # Safety
    /// That of `free`.
    #[cold]
    unsafe fn free_early(&self, bytes: usize, slot: NonNull<u8>) {
        let small = self.small.as_ref().expect("a pool without a core starts small");
        // SAFETY: F3: the pool had no core, so the slot is of the source.
        let freed = unsafe { small.objects.free(slot) };
        debug_assert_eq!(freed, bytes, "a slot of another size");
        // The count may lack a first object that was allocated while the pool was made.
        let less = |taken: u32| Some(taken.saturating_sub(bytes as u32));
        _ = small.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Makes the core, unless another thread has made it meanwhile.
    fn grow(
        &self,
        small: &Small,
        make: impl FnOnce(&Config) -> Core<G, N, MAG>,
    ) -> Result<&Core<G, N, MAG>, AllocError> {
        let config = Config { tuning: small.tuning, ..small.objects.config.clone() };
        let core = || make(&config).with_small(&small.objects);
        let requested = OnceBox::<Core<G, N, MAG>>::BYTES;
        let made = self.core.get_or_make(&*config.budget, core);
        made.map_err(|refused| config.budget.error_of(refused, requested))
    }

    /// The small slots of the pool, with their bytes: those handed out, and, if it has a core,
    /// those that its magazines hold.
    pub(crate) fn small_slots(&self) -> Vec<(NonNull<u8>, usize)> {
        self.small.as_ref().map_or_else(Vec::new, |small| small.objects.of(small.pool))
    }

    /// The live slots and their bytes: see [`Core::live_slots`].
    pub(crate) fn live_slots(&mut self) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        let mut small = self.small_slots();
        let own = self.core.get_mut().map(|core| core.live_slots(&mut small));
        own.into_iter().flatten().chain(small)
    }

    /// See [`Core::regions`]. Without a core there are none, on the requested pages.
    pub(crate) fn regions(&self) -> (Vec<Region>, Pages, Option<Fallback>) {
        self.get().map_or_else(
            || {
                let small = self.small.as_ref();
                (Vec::new(), small.map_or_else(Pages::default, |s| s.objects.config.pages), None)
            },
            Core::regions,
        )
    }
}

impl<const G: usize, const N: usize, const MAG: usize> Drop for LazyCore<G, N, MAG> {
    fn drop(&mut self) {
        let Some(small) = &self.small else { return };
        let budget = &small.objects.config.budget;
        // The core goes first: its magazines may hold small slots.
        let core = std::mem::take(&mut self.core);
        let has_core = core.get().is_some();
        drop(core);
        if has_core {
            budget.give(OnceBox::<Core<G, N, MAG>>::BYTES);
        }
        let pools = small.objects.alive.fetch_sub(1, Ordering::Relaxed);
        // If only pools refer to the small objects, these go with the last pool. Pools of an index
        // are dropped together.
        let stay = Arc::strong_count(&small.objects) > pools as usize;
        if stay {
            // SAFETY: using or freeing a slot takes a reference to the pool, and the pool goes now.
            unsafe { small.objects.free_all(small.pool) };
        }
    }
}
