//! A pool for one type.

use crate::core::{ClassShape, Core};
use crate::growth::WHOLE_OF;
use crate::slab::MAX_SLOTS;
use crate::small::{LARGEST_ALIGN, LazyCore};
use crate::{AllocError, Config, PoolStats, SMALL_PAGE, SlotSize};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The default size of a slab, in bytes.
const SLAB: usize = 64 << 10;
/// Smaller slots than this keep their bitmap inside the slab if slabs are smaller than [`SLAB`]:
/// the header has no room for it.
const BITMAPPED: usize = 32;
/// The first capacity of a magazine. Schedules use the smallest, so that slots move between tasks.
const MAGAZINE: usize = if cfg!(silvics_shuttle) { 2 } else { 64 };
/// The bytes of a thread's first run. Later runs grow with what the thread has taken.
const FIRST_RUN: usize = 1 << 10;
/// The most slots of a run.
const RUN: usize = if cfg!(silvics_shuttle) { 2 } else { MAX_SLOTS };

/// A pool whose slots hold one `T` each. Slots of one thread are consecutive, in slabs of 64 KiB.
/// Any thread may allocate, and free a slot that another thread has allocated.
///
/// A slot has `size_of::<T>()` bytes, rounded up to a multiple of its alignment, and at least 16.
/// To give every `T` a larger alignment (a line of its own, for example), use `#[repr(align)]` on
/// `T`. To do so in one pool, use [`Tuning`](crate::Tuning). Dropping the pool unmaps its memory
/// and does not drop the objects in it.
///
/// An allocation or a free is O(1) amortised. It touches memory of other threads at most once in 32
/// calls, and never touches the object's memory.
pub struct Pool<T> {
    pub(crate) core: LazyCore<1, 1, MAGAZINE>,
    kind: &'static str,
    /// The bytes of a slot.
    size: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Pool<T> {
    /// The largest size of a `T`, in bytes: an eighth of a slab.
    pub const MAX_SIZE: usize = SLAB / 8;
    /// The largest alignment of a `T`: a small page.
    pub const MAX_ALIGN: usize = SMALL_PAGE;

    const SIZE: usize = {
        let align = if align_of::<T>() < 8 { 8 } else { align_of::<T>() };
        let size = size_of::<T>().next_multiple_of(align);
        if size < 16 { 16 } else { size }
    };

    /// The size of a `T` and of its slot, unless slots have an alignment of their own.
    pub const SLOT: SlotSize = {
        // A type with a larger alignment has no small slots.
        let slot = if align_of::<T>() > LARGEST_ALIGN { usize::MAX } else { Self::SIZE };
        SlotSize { object: size_of::<T>(), slot }
    };

    /// Makes an empty pool of objects called `kind`. It maps memory when it first needs a slab.
    ///
    /// # Panics
    /// Panics if `T` is larger than [`Pool::MAX_SIZE`] or more aligned than [`Pool::MAX_ALIGN`].
    /// Use a [`BytesPool`](crate::BytesPool) for larger objects.
    pub fn new(kind: &'static str, config: &Config) -> Self {
        assert!(size_of::<T>() <= Self::MAX_SIZE, "too large for slabs: use BytesPool");
        assert!(align_of::<T>() <= Self::MAX_ALIGN, "no alignment beyond a small page");
        let core = LazyCore::new(config, Self::slot(config), Self::core);
        let size = Self::slot(config).0;
        Self { core, kind, size, marker: PhantomData }
    }

    /// The bytes of a slot and its alignment.
    fn slot(config: &Config) -> (usize, usize) {
        let align = align_of::<T>().max(config.tuning.slot_alignment());
        (Self::SIZE.next_multiple_of(align), align)
    }

    fn core(config: &Config) -> Core<1, 1, MAGAZINE> {
        let (size, align) = Self::slot(config);
        let slab = config.tuning.slab(SLAB, 8 * size, MAX_SLOTS * size);
        let run = (slab / size).min(RUN);
        let shape = ClassShape { size, first: (FIRST_RUN / size).clamp(2, RUN).min(run), run };
        let bitmapped = if slab < SLAB { size.max(BITMAPPED) } else { size };
        Core::new(|_| shape, align, slab, (bitmapped, WHOLE_OF), config)
    }

    /// Allocates a slot. It is uninitialised and belongs to the caller alone.
    #[inline]
    pub fn alloc(&self) -> Result<NonNull<T>, AllocError> {
        let slot = self.core.alloc((0, self.size), Self::core)?;
        #[cfg(silvics_poison)]
        // SAFETY: a free slot of at least `size_of::<T>()` bytes.
        unsafe {
            crate::poison::hand_out(slot, size_of::<T>());
        }
        Ok(slot.cast())
    }

    /// Takes a slot back without dropping the object in it.
    ///
    /// # Safety
    /// The slot came from this pool, or from
    /// [`SmallObjects::alloc_first`](crate::SmallObjects::alloc_first) for its number. It is freed
    /// only once, and nobody uses it any more.
    #[inline]
    pub unsafe fn free(&self, slot: NonNull<T>) {
        #[cfg(silvics_poison)]
        // SAFETY: the caller's promise.
        unsafe {
            crate::poison::free(slot.cast(), size_of::<T>());
        }
        // SAFETY: the caller's promise.
        unsafe { self.core.free((0, self.size), slot.cast()) };
    }

    /// Gives unused slabs back to the system. Returns the number of bytes given back.
    ///
    /// A slab is unused if none of its slots is live or kept by another living thread for its next
    /// allocations. A slot that an ended thread kept is free. The call takes O(slabs + ended
    /// threads) time. A thread that needs a new slab, or a slab with free slots, waits for it. The
    /// pool reopens returned slabs before it maps new ones.
    ///
    /// A huge page becomes small pages if only a part of it is returned. Pages reserved by the
    /// administrator ([`Pages::HugeTlb`](crate::Pages)) are never returned.
    pub fn shrink(&self) -> usize {
        self.core.get().map_or(0, Core::shrink)
    }

    /// Returns the memory that the pool holds. O(regions + threads + small slots of the index).
    pub fn stats(&self) -> PoolStats {
        let own = self.core.get().map_or(0, |core| core.live(0));
        let live_slots = (own + self.core.small_slots().len() as i64).max(0) as usize;
        let (regions, pages, fallback) = self.core.regions();
        let live_bytes = live_slots * self.size;
        PoolStats { kind: self.kind, live_slots, live_bytes, regions, pages, fallback }
    }

    /// Iterates over the live slots, including those of retired objects, once each and in no
    /// particular order.
    ///
    /// The number of slots is that of `stats`. Only the owner of a slot knows whether it contains a
    /// `T`. The call takes O(slots) time, live or not. It also sorts the free slots that threads
    /// keep for themselves, using 8 bytes for each outside the budget. It does not change the pool.
    pub fn live(&mut self) -> impl Iterator<Item = NonNull<T>> {
        self.core.live_slots().map(|(slot, _)| slot.cast())
    }
}
