//! A pool for objects of many sizes.

use crate::core::{ClassShape, Core};
use crate::growth::WHOLE_OF_SIZES;
use crate::slab::MAX_SLOTS;
use crate::small::LazyCore;
use crate::{AllocError, Config, Pages, PoolStats, SlotSize};
use silvics_sync::Mutex;
use silvics_sync::tagged::addressable;
use std::alloc::Layout;
use std::ptr::{NonNull, null_mut};

/// The default size of a slab, in bytes.
const SLAB: usize = 16 << 10;
/// The first capacity of a magazine: a quarter of a `Pool`'s, as each class has a magazine.
pub(crate) const MAGAZINE: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };
/// The most slots of a run.
const RUN: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };

/// Smaller slots than this keep their bitmap inside the slab: in the header it would double its
/// size.
const BITMAPPED: usize = 32;

const SMALLEST: usize = 16;
/// Up to this size there is a class every 8 bytes.
const FINE: usize = 512;
/// From [`FINE`] up to this size there are eight classes per doubling, at most 12.5 % apart.
const LARGEST: usize = 8192;
/// The largest class of a pool whose slabs have less than [`LARGE_SLAB`] bytes.
pub(crate) const LARGEST_OF_SMALL_SLABS: usize = 4096;
/// From this size on, a slab holds enough of the largest slots.
const LARGE_SLAB: usize = 64 << 10;
const FINE_CLASSES: usize = (FINE - SMALLEST) / 8 + 1;
const CLASSES: usize = FINE_CLASSES + 8 * (LARGEST / FINE).ilog2() as usize;
/// The classes of a group: a thread needs magazines for the groups of the sizes that it allocates.
const GROUP: usize = 8;
/// The last group has a class that no object needs. It is like the one before.
const GROUPS: usize = CLASSES.div_ceil(GROUP);

/// The core of a [`BytesPool`].
pub(crate) type BytesCore = Core<GROUPS, GROUP, MAGAZINE>;

/// The class for `size` bytes, at most [`LARGEST`].
#[inline]
pub(crate) const fn class_of(size: usize) -> usize {
    if size <= SMALLEST {
        return 0;
    }
    if size <= FINE {
        return (size - SMALLEST).div_ceil(8);
    }
    // 2^(doubling + 9) < size ≤ 2^(doubling + 10), in eighths.
    let doubling = (size - 1).ilog2() - FINE.ilog2();
    let step = doubling + FINE.ilog2() - 3;
    let eighth = (size - (FINE << doubling)).div_ceil(1 << step);
    FINE_CLASSES + 8 * doubling as usize + eighth - 1
}

/// The slot size of `class`.
const fn size_of_class(class: usize) -> usize {
    if class < FINE_CLASSES {
        return SMALLEST + 8 * class;
    }
    let (doubling, eighth) = ((class - FINE_CLASSES) / 8, (class - FINE_CLASSES) % 8 + 1);
    (FINE << doubling) + eighth * (FINE >> 3 << doubling)
}

/// A pool for objects of any size.
///
/// There is a size class every 8 bytes up to 512, then classes with at most 12.5 % slack up to 4
/// KiB, or 8 KiB if [`Tuning::slab_bytes`](crate::Tuning::slab_bytes) is 64 KiB or more. Larger
/// objects come one by one from the global allocator. Objects are 8-byte aligned unless
/// [`Tuning::slot_align`](crate::Tuning::slot_align) asks for more; an object of whole cache lines,
/// up to 4 KiB, begins at a line. The caller passes an object's size again when freeing it.
///
/// All classes share the pool's regions, in slabs of 16 KiB. A thread takes up to 16 neighbouring
/// slots of a class at a time. A slab keeps its class until [`BytesPool::shrink`] returns it to the
/// system. So memory stays constant while sizes come and go in the same proportions. If the
/// proportions shift, the pool keeps the most memory that each class ever needed.
///
/// An allocation or a free is O(1) amortised, except for large objects. Dropping the pool releases
/// everything, large objects included, without dropping their contents.
pub struct BytesPool {
    core: LazyCore<GROUPS, GROUP, MAGAZINE>,
    large: Mutex<LargeList>,
    /// The size of the largest slot.
    largest: usize,
    /// The alignment of every object, at least that of `Large`.
    align: usize,
    budget: std::sync::Arc<crate::Budget>,
    kind: &'static str,
}

/// The bytes of a slab.
fn slab_bytes(config: &Config) -> usize {
    let smallest = size_of_class(0).next_multiple_of(config.tuning.slot_alignment());
    config.tuning.slab(SLAB, SLAB, MAX_SLOTS * smallest)
}

/// The size of the largest slot.
fn largest(config: &Config) -> usize {
    if slab_bytes(config) < LARGE_SLAB { LARGEST_OF_SMALL_SLABS } else { LARGEST }
}

/// A core with the classes of these settings. Classes that are too large for its slabs have no
/// objects, and are like the largest one that has.
fn core(config: &Config) -> BytesCore {
    let (align, largest) = (config.tuning.slot_alignment(), largest(config));
    let shape = |class: usize| {
        let size = size_of_class(class.min(CLASSES - 1)).min(largest).next_multiple_of(align);
        let run = (1024 / size).clamp(1, RUN);
        ClassShape { size, first: run, run }
    };
    Core::new(shape, align, slab_bytes(config), (BITMAPPED, WHOLE_OF_SIZES), config)
}

/// The source of small slots.
pub(crate) fn source() -> BytesCore {
    core(&Config::new(Pages::Small, None)).into_source()
}

/// Large objects, linked so that they can be released as a whole.
struct LargeList {
    head: *mut Large,
    objects: usize,
    bytes: usize,
}

// SAFETY: the list owns its objects' headers, under its lock.
unsafe impl Send for LargeList {}

/// The header in front of every large object.
#[repr(C)]
struct Large {
    next: *mut Large,
    previous: *mut Large,
    bytes: usize,
}

impl BytesPool {
    /// The size of an object of `size` bytes and of its slot, unless slots have an alignment of
    /// their own.
    pub const fn slot(size: usize) -> SlotSize {
        let slot = if size > LARGEST { size } else { size_of_class(class_of(size)) };
        SlotSize { object: size, slot }
    }

    /// Makes an empty pool of objects called `kind`. It maps memory when it first needs a slab.
    pub fn new(kind: &'static str, config: &Config) -> Self {
        let align = config.tuning.slot_alignment();
        // The classes of the source are those of unaligned slots.
        let small = if align == 8 { LARGEST_OF_SMALL_SLABS } else { usize::MAX };
        Self {
            core: LazyCore::new(config, (small, align), core),
            largest: largest(config),
            large: Mutex::new(LargeList { head: null_mut(), objects: 0, bytes: 0 }),
            align,
            budget: std::sync::Arc::clone(&config.budget),
            kind,
        }
    }

    /// The size of the largest slot. Larger objects come from the global allocator.
    pub fn largest_slot(&self) -> usize {
        self.largest
    }

    /// Allocates `size` bytes. They are uninitialised, aligned, and belong to the caller alone.
    #[inline]
    pub fn alloc(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        if size > self.largest {
            return self.alloc_large(size);
        }
        let class = class_of(size);
        let object = self.core.alloc((class, size_of_class(class)), core)?;
        #[cfg(silvics_poison)]
        // SAFETY: a free slot of a class with room for `size` bytes.
        unsafe {
            crate::poison::hand_out(object, size);
        }
        Ok(object)
    }

    /// Takes an object back without dropping its content.
    ///
    /// # Safety
    /// The object came from `alloc(size)` of this pool, or with this size from
    /// [`SmallObjects::alloc_first`](crate::SmallObjects::alloc_first) for the pool's number. It is
    /// freed only once, and nobody uses it.
    #[inline]
    pub unsafe fn free(&self, object: NonNull<u8>, size: usize) {
        if size <= self.largest {
            #[cfg(silvics_poison)]
            // SAFETY: the caller's promise.
            unsafe {
                crate::poison::free(object, size);
            }
            // SAFETY: the caller's promise.
            unsafe { self.core.free((class_of(size), size_of_class(class_of(size))), object) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.free_large(object) };
        }
    }

    /// Gives unused slabs back to the system. Returns the number of bytes given back; see
    /// [`Pool::shrink`](crate::Pool::shrink).
    pub fn shrink(&self) -> usize {
        self.core.get().map_or(0, Core::shrink)
    }

    /// Returns the memory that the pool holds. O(classes × threads + regions + small slots of the
    /// index).
    pub fn stats(&self) -> PoolStats {
        let small = self.core.small_slots();
        let bytes = small.iter().map(|(_, bytes)| *bytes as i64);
        let (mut live_slots, mut live_bytes) = (small.len() as i64, bytes.sum::<i64>());
        if let Some(core) = self.core.get() {
            for class in 0..CLASSES {
                let live = core.live(class);
                live_slots += live;
                live_bytes += live * core.size(class) as i64;
            }
        }
        let large = self.large.lock();
        let (regions, pages, fallback) = self.core.regions();
        PoolStats {
            kind: self.kind,
            live_slots: live_slots.max(0) as usize + large.objects,
            live_bytes: live_bytes.max(0) as usize + large.bytes,
            regions,
            pages,
            fallback,
        }
    }

    /// Iterates over the live objects, including retired ones, once each and in no particular
    /// order, with the bytes of each.
    ///
    /// The number of objects is that of `stats`. The bytes are those of the slot for an object up
    /// to 4 or 8 KiB, and the requested ones for a larger object. The call takes O(slots + large
    /// objects) time, live or not. It also sorts the free slots that threads keep for themselves,
    /// using 8 bytes for each outside the budget. It does not change the pool.
    pub fn live(&mut self) -> impl Iterator<Item = (NonNull<u8>, usize)> {
        let (head, front) = (self.large.lock().head, self.front());
        let next = |header: &NonNull<Large>| {
            // SAFETY: the list is alive and nobody changes it: the iterator has the pool to itself.
            NonNull::new(unsafe { header.as_ref() }.next)
        };
        let large = std::iter::successors(NonNull::new(head), next).map(move |header| {
            // SAFETY: as for `next`; the object lies behind its header.
            unsafe { (header.add(1).cast(), header.as_ref().bytes - front) }
        });
        self.core.live_slots().chain(large)
    }

    /// The bytes in front of a large object. The last of them are its header.
    fn front(&self) -> usize {
        size_of::<Large>().next_multiple_of(self.align)
    }

    #[cold]
    #[allow(clippy::disallowed_methods)] // this is the pool
    fn alloc_large(&self, size: usize) -> Result<NonNull<u8>, AllocError> {
        let failed = AllocError::System { requested: size };
        let bytes = size.checked_add(self.front()).ok_or(failed)?;
        let layout = Layout::from_size_align(bytes, self.align).map_err(|_| failed)?;
        self.budget.take(bytes)?;
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc(layout) };
        if start.is_null() || !addressable(start.wrapping_add(bytes & !7)) {
            self.budget.give(bytes);
            if start.is_null() {
                return Err(failed);
            }
            // SAFETY: allocated above.
            unsafe { std::alloc::dealloc(start, layout) };
            return Err(AllocError::Address);
        }
        let mut large = self.large.lock();
        // SAFETY: fresh memory, with room for the header in front; all headers on the list are
        // alive under its lock.
        unsafe {
            let header = start.add(self.front()).cast::<Large>().sub(1);
            header.write(Large { next: large.head, previous: null_mut(), bytes });
            if let Some(next) = large.head.as_mut() {
                next.previous = header;
            }
            large.head = header;
            large.objects += 1;
            large.bytes += bytes;
            Ok(NonNull::new_unchecked(header.add(1).cast()))
        }
    }

    #[cold]
    unsafe fn free_large(&self, object: NonNull<u8>) {
        let mut large = self.large.lock();
        // SAFETY: the caller's object has its header in front; every object on the list is alive.
        unsafe {
            let header = object.cast::<Large>().sub(1).as_ptr();
            let Large { next, previous, bytes } = header.read();
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => large.head = next,
            }
            large.objects -= 1;
            large.bytes -= bytes;
            self.release_large(header, bytes);
        }
    }

    /// # Safety
    /// `header` was made by `alloc_large` with `bytes` and is off the list.
    #[allow(clippy::disallowed_methods)] // this is the pool
    unsafe fn release_large(&self, header: *mut Large, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes, self.align);
            let start = header.add(1).cast::<u8>().sub(self.front());
            std::alloc::dealloc(start, layout);
        }
        self.budget.give(bytes);
    }
}

impl Drop for BytesPool {
    fn drop(&mut self) {
        let mut next = self.large.lock().head;
        while !next.is_null() {
            // SAFETY: the list's objects are the pool's, and nobody else has the pool.
            unsafe {
                let Large { next: after, bytes, .. } = next.read();
                self.release_large(next, bytes);
                next = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it_within_the_promised_slack() {
        for size in 1..=LARGEST {
            let class = class_of(size);
            let slot = size_of_class(class);
            assert!(slot >= size, "{size} in {slot}");
            assert!(
                class == 0 || size_of_class(class - 1) < size,
                "{size}: {slot} is not smallest"
            );
            if size > FINE {
                assert!(slot - size < size / 8 + 1, "{size} in {slot}");
            } else {
                assert!(slot - size < 8 || slot == SMALLEST);
            }
        }
        assert_eq!(size_of_class(CLASSES - 1), LARGEST);
    }

    /// Fills a pool with objects of a size, up to a number or a limit. Returns them.
    fn filled(pool: &BytesPool, size: usize, most: usize) -> Vec<NonNull<u8>> {
        (0..most).map_while(|_| pool.alloc(size).ok()).collect()
    }

    fn emptied(pool: &BytesPool, size: usize, objects: Vec<NonNull<u8>>) {
        for object in objects {
            // SAFETY: `filled` has allocated it with this size, and nobody else has it.
            unsafe { pool.free(object, size) };
        }
    }

    /// The slabs of sizes that are not in use any more serve others.
    #[test]
    fn a_pool_holds_one_size_after_the_other_in_the_same_slabs() {
        let config = Config::default();
        let pool = BytesPool::new("test", &config);
        for (round, size) in (2..16).map(|n| 64 * n).enumerate() {
            let objects = filled(&pool, size, (8 << 20) / size);
            let held = config.budget.held();
            assert!(held < 12 << 20, "{held} bytes in round {round}");
            emptied(&pool, size, objects);
        }
    }

    #[test]
    fn objects_of_whole_lines_begin_at_a_line() {
        for config in [Config::default(), Config::default().starting_small()] {
            let pool = BytesPool::new("test", &config);
            for size in (1..=64).map(|lines| 64 * lines) {
                let objects = filled(&pool, size, 300);
                assert!(
                    objects.iter().all(|object| object.addr().get().is_multiple_of(64)),
                    "{size}"
                );
                emptied(&pool, size, objects);
            }
        }
    }

    /// A few idle slabs serve a size to which the limit refuses a slab.
    #[test]
    fn a_refused_slab_is_looked_for_among_those_of_other_sizes() {
        let config = Config::new(Pages::Small, Some(1 << 20));
        let pool = BytesPool::new("test", &config);
        let mut objects = filled(&pool, 128, usize::MAX);
        assert!(pool.alloc(640).is_err());
        emptied(&pool, 128, objects.drain(..400).collect());
        let others = filled(&pool, 640, usize::MAX);
        assert!((20..80).contains(&others.len()), "{} objects", others.len());
        emptied(&pool, 640, others);
        emptied(&pool, 128, objects);
    }

    /// At a limit, too, a pool can be filled with each size in turn.
    #[test]
    fn a_pool_at_its_limit_serves_each_size_in_turn() {
        let config = Config::new(Pages::Small, Some(4 << 20));
        let pool = BytesPool::new("test", &config);
        for round in 0..6 {
            for size in [128, 640, 320] {
                let objects = filled(&pool, size, usize::MAX);
                let bytes = size * objects.len();
                assert!(bytes > 3 << 20, "{bytes} bytes in objects of {size}, round {round}");
                emptied(&pool, size, objects);
            }
        }
    }
}
