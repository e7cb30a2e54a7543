//! A pool for one type.

use crate::core::{ClassShape, Core};
use crate::slab::MAX_SLOTS;
use crate::{AllocError, Config, PoolStats};
use silvics_layout::Census;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Unless `Tuning` says otherwise.
const SLAB: usize = 64 << 10;
/// Smaller slabs have the bitmaps of slots below this themselves, as there is no room in the header.
const BITMAPPED: usize = 32;
/// In schedules as small as it may be: slots go from task to task.
const MAGAZINE: usize = if cfg!(silvics_shuttle) { 2 } else { 64 };
/// Slots of a run, at most.
const RUN: usize = if cfg!(silvics_shuttle) { 2 } else { MAX_SLOTS };

/// A pool whose slots hold one `T` each, consecutive in each thread's slabs of 64 KiB.
///
/// A slot is `size_of::<T>()` bytes rounded up to its alignment, at least 16. What every `T` needs
/// beyond its natural alignment (a line to itself, say) is said with `#[repr(align)]` on `T`; what one
/// pool is to have, with [`Tuning`](crate::Tuning).
/// Dropping the pool unmaps it without dropping the objects in it.
///
/// An allocation or a free is O(1) amortised, touches no other thread's memory but once in 32 calls
/// or more, and never the object's.
pub struct Pool<T> {
    core: Core<1, MAGAZINE>,
    kind: &'static str,
    marker: PhantomData<fn() -> T>,
}

impl<T> Pool<T> {
    /// The bytes of a `T`, at most: eight in a slab.
    pub const MAX_SIZE: usize = SLAB / 8;
    /// Its alignment, at most: a small page.
    pub const MAX_ALIGN: usize = 4 << 10;

    const SIZE: usize = {
        let align = if align_of::<T>() < 8 { 8 } else { align_of::<T>() };
        let size = size_of::<T>().next_multiple_of(align);
        if size < 16 { 16 } else { size }
    };

    /// An empty pool of objects called `kind`; nothing is mapped before the first allocation.
    ///
    /// # Panics
    /// If a `T` is larger than [`Pool::MAX_SIZE`] or [`Pool::MAX_ALIGN`] say: that is for [`BytesPool`](crate::BytesPool).
    pub fn new(kind: &'static str, config: &Config) -> Self {
        assert!(size_of::<T>() <= Self::MAX_SIZE, "too large for slabs: use BytesPool");
        assert!(align_of::<T>() <= Self::MAX_ALIGN, "no alignment beyond a small page");
        let tuning = &config.tuning;
        let align = align_of::<T>().max(tuning.slot_align);
        let size = Self::SIZE.next_multiple_of(align);
        let slab = tuning.slab(SLAB, 8 * size, MAX_SLOTS * size);
        let shape = ClassShape { size, run: (slab / size).min(RUN) };
        let bitmapped = if slab < SLAB { size.max(BITMAPPED) } else { size };
        let core = Core::new([shape], align, slab, bitmapped, config);
        Self { core, kind, marker: PhantomData }
    }

    /// A slot, uninitialised and the caller's alone.
    #[inline]
    pub fn alloc(&self) -> Result<NonNull<T>, AllocError> {
        let slot = self.core.alloc(0)?;
        #[cfg(silvics_poison)]
        // SAFETY: a free slot, `size_of::<T>()` bytes or larger.
        unsafe {
            crate::poison::hand_out(slot, size_of::<T>());
        }
        Ok(slot.cast())
    }

    /// Takes a slot back, without dropping what is in it.
    ///
    /// # Safety
    /// It came from this pool, is taken back once, and is used by nobody any more.
    #[inline]
    pub unsafe fn free(&self, slot: NonNull<T>) {
        #[cfg(silvics_poison)]
        // SAFETY: the caller's promise.
        unsafe {
            crate::poison::free(slot.cast(), size_of::<T>());
        }
        // SAFETY: the caller's promise.
        unsafe { self.core.free(0, slot.cast()) };
    }

    /// Gives memory back to the system: the slabs of which no slot is in use, or kept by another thread for its next
    /// allocations. Returns how many bytes. O(slabs); what needs a new slab, or one with free slots, waits meanwhile. The next slabs that
    /// are needed are these.
    ///
    /// Huge pages of which a part is given back become small ones; reserved ones ([`Pages::HugeTlb`](crate::Pages)) are kept.
    pub fn shrink(&self) -> usize {
        self.core.shrink()
    }

    /// What the pool holds. O(regions + threads).
    pub fn stats(&self) -> PoolStats {
        let live_slots = self.core.live(0);
        let (regions, pages, fallback) = self.core.regions();
        let live_bytes = live_slots * self.core.size(0);
        PoolStats { kind: self.kind, live_slots, live_bytes, regions, pages, fallback }
    }

    /// The slots handed out and not taken back, retired ones included, each once, in no particular
    /// order: as many as `stats` counts. Whether there is a `T` in one, its owner knows.
    ///
    /// O(slots), live or not, and a sort of the free ones that threads keep at hand, for which it takes 8
    /// bytes each, outside the budget. Leaves the pool as it is.
    pub fn live(&mut self) -> impl Iterator<Item = NonNull<T>> {
        self.core.live_slots().map(|(slot, _)| slot.cast())
    }

    /// Adds what [`live`](Self::live) finds to `census`, as a new kind with the pool's name: slots, with
    /// what rounding adds to a `T`, all of whose bytes searches may read. Where it is known which they do
    /// ([`Described`](silvics_layout::Described)), add the objects one by one, as the
    /// [crate's example](crate#where-objects-lie) does.
    pub fn census(&mut self, census: &mut Census) {
        let kind = census.kind(self.kind, None);
        for (slot, bytes) in self.core.live_slots() {
            census.add_sized(kind, slot.addr().get(), bytes);
        }
    }
}
