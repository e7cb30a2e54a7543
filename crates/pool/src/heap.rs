//! Heaps: allocators that serve objects of every kind and size, as a program usually has one.
//!
//! Structures placed in [`Shared`](crate::Shared) take their objects from a heap: the program's
//! global allocator, or one chosen at run time. The heap decides which objects lie side by side.
//! [`SizeClassHeap`] does so deterministically, so that a test can assert it. The general
//! allocators of the literature are heaps behind features of their names.
//!
//! | heap | feature | kinds | [`Heap::bytes`] |
//! |---|---|---|---|
//! | [`Global`] | | mixed | the requested size |
//! | [`SizeClassHeap`] | | mixed | exact |
//! | `Jemalloc` | `jemalloc` | mixed | exact |
//! | `SegregatedJemalloc` | `jemalloc` | an arena each | exact |
//! | `Mimalloc` | `mimalloc` | mixed | exact up to 512 KiB; beyond, the touched bytes |
//! | `Tcmalloc` | `tcmalloc` | mixed | exact except for sampled objects |
//!
//! *Invariants* of [`SizeClassHeap`]:
//! * H1: a block is free, or `alloc` returned it once since it was last free.
//! * H2: a block lies within a run of its class, at a multiple of the class's size from the start
//!   of the run, which is page aligned.
//! * H3: the first word of a free block points to the next free block of its thread and class.

use crate::pages::Mapping;
use crate::{HUGE_PAGE, Pages, SMALL_PAGE};
use silvics_layout::study_class;
use silvics_sync::lock::{RawLock, TicketLock};
use silvics_sync::per_thread::{PerThread, thread_index};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::fmt;
use std::ptr::{NonNull, null_mut};

#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
pub(crate) mod jemalloc;
#[cfg(feature = "mimalloc")]
pub(crate) mod mimalloc;
#[cfg(all(test, not(any(silvics_loom, silvics_shuttle, miri))))]
mod promises;
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
pub(crate) mod segregated;
#[cfg(all(feature = "tcmalloc", target_os = "linux"))]
pub(crate) mod tcmalloc;

/// An allocator of objects of every kind and size, chosen at run time.
///
/// # Safety
/// `alloc` returns memory of the layout. It belongs to the caller alone until `free` takes it back
/// or the heap is dropped. All threads may call both. `free` and `bytes` do not unwind: callers
/// call them after their own work is complete. None of the functions calls an index: its caller may
/// hold locks of one.
pub unsafe trait Heap: fmt::Debug + Send + Sync + 'static {
    /// The bytes that an object takes from the heap, as far as it knows.
    fn bytes(&self, layout: Layout) -> usize {
        layout.size()
    }

    /// Allocates memory for an object called `kind`. Returns `None` if the allocation failed. The
    /// layout is not empty.
    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes an object back.
    ///
    /// # Safety
    /// The object came from `alloc` of this heap with these arguments, is freed only once, and
    /// nobody uses it any more.
    unsafe fn free(&self, kind: &'static str, object: NonNull<u8>, layout: Layout);
}

/// The program's global allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Global;

#[allow(clippy::disallowed_methods)] // this type wraps the global allocator
// SAFETY: the standard library's contract of its global allocator.
unsafe impl Heap for Global {
    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }
    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(object.as_ptr(), layout) };
    }
}

/// The granules of a mapping. Many, so that patterns of blocks continue for long; the address space
/// is backed only when touched.
const GRANULES: usize = if cfg!(all(unix, not(miri))) { 512 } else { 1 };

/// The largest class. Larger objects come from the global allocator.
const LARGEST: usize = HUGE_PAGE;

/// The number of classes: 8; 16 to 128; 192 to 512; 1024 to 2 MiB.
const CLASSES: usize = 1 + 8 + 6 + 12;

/// A deterministic heap with the size classes of the ATC'18 study.
///
/// It models the common behaviour of the allocators of that time (Arbel-Raviv, Brown and Morrison,
/// USENIX ATC 2018, section 2; jemalloc, tcmalloc) without the details of any one:
/// ```text
/// alloc(size): class = the study's class of that size
///              the thread's newest free block of the class, or
///              the next block of the class's run, or
///              the first block of a new run: the thread's next pages, one of 4 KiB for small
///              classes
/// free(block): it becomes the thread's newest free block of its class
/// ```
/// So objects of one class follow one another whatever their kind, runs of different classes
/// alternate, and the thread that frees a block gets it next. Blocks above 2 MiB come from the
/// global allocator. Every thread has its own memory, which returns to the system when the heap is
/// dropped.
///
/// ```
/// use silvics_pool::{Heap, Pages, SizeClassHeap};
/// use std::alloc::Layout;
///
/// let heap = SizeClassHeap::new(Pages::Small);
/// let block = |kind, bytes| heap.alloc(kind, Layout::from_size_align(bytes, 8).unwrap()).unwrap();
/// let (node, descriptor) = (block("node", 40), block("descriptor", 48));
/// assert_eq!(descriptor.addr().get() - node.addr().get(), 48); // one class, whatever the kind
/// ```
pub struct SizeClassHeap {
    pages: Pages,
    threads: PerThread<Own>,
}

/// The memory of one thread. Any thread frees a block into its own lists.
#[derive(Default)]
struct Own {
    /// Only contended if one thread ends and another begins with the same index meanwhile.
    lock: TicketLock,
    shelf: UnsafeCell<Shelf>,
}

// SAFETY: the shelf is accessed only under the lock.
unsafe impl Sync for Own {}

struct Shelf {
    classes: [Class; CLASSES],
    /// The start of the next run. `left` bytes remain for runs.
    next: *mut u8,
    left: usize,
    mappings: Vec<Mapping>,
}

// SAFETY: its pointers lead into its own mappings, or to free blocks, which belong to the heap.
unsafe impl Send for Shelf {}

#[derive(Clone, Copy)]
struct Class {
    newest: *mut u8,
    next: *mut u8,
    left: usize,
}

impl Default for Shelf {
    fn default() -> Self {
        let class = Class { newest: null_mut(), next: null_mut(), left: 0 };
        Self { classes: [class; CLASSES], next: null_mut(), left: 0, mappings: Vec::new() }
    }
}

impl fmt::Debug for SizeClassHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SizeClassHeap").field("pages", &self.pages).finish_non_exhaustive()
    }
}

/// The bytes and the class index of a block for an object of this layout, or `None` beyond the
/// largest class.
fn class_of(layout: Layout) -> Option<(usize, usize)> {
    let mut bytes = study_class(layout.size());
    // Runs are page aligned, so a block is aligned to every power of two up to 4 KiB that divides
    // its size.
    while bytes <= LARGEST && !bytes.is_multiple_of(layout.align()) {
        bytes = study_class(bytes + 1);
    }
    let index = match bytes {
        8 => 0,
        16..=128 => bytes / 16,
        129..=512 => 8 + (bytes - 128) / 64,
        ..=LARGEST => 14 + bytes.trailing_zeros() as usize - 9,
        _ => return None,
    };
    Some((bytes, index))
}

impl SizeClassHeap {
    /// Makes an empty heap on these pages.
    pub fn new(pages: Pages) -> Self {
        Self { pages, threads: PerThread::new(()) }
    }

    /// Calls `work` with the calling thread's memory. Returns `None` if the allocation of that
    /// thread's tables failed.
    fn with<T>(&self, work: impl FnOnce(&mut Shelf) -> Option<T>) -> Option<T> {
        let own = self.threads.get_or_make(thread_index()?)?;
        own.lock.lock();
        // SAFETY: the shelf is accessed under its lock, taken above.
        let done = work(unsafe { &mut *own.shelf.get() });
        // SAFETY: the lock was taken above.
        unsafe { own.lock.unlock() };
        done
    }
}

impl Shelf {
    fn alloc(&mut self, bytes: usize, index: usize, pages: Pages) -> Option<NonNull<u8>> {
        let class = &mut self.classes[index];
        if let Some(block) = NonNull::new(class.newest) {
            // SAFETY: H3.
            class.newest = unsafe { block.cast::<*mut u8>().read() };
            return Some(block);
        }
        if class.left < bytes {
            let run = bytes.next_multiple_of(SMALL_PAGE);
            let start = self.run(run, pages)?;
            self.classes[index] = Class { newest: null_mut(), next: start, left: run };
        }
        let class = &mut self.classes[index];
        let block = class.next;
        class.next = block.wrapping_add(bytes);
        class.left -= bytes;
        NonNull::new(block)
    }

    /// Takes the thread's next pages, for a run of `bytes`.
    fn run(&mut self, bytes: usize, pages: Pages) -> Option<*mut u8> {
        if self.left < bytes {
            self.mappings.try_reserve(1).ok()?;
            let mapping = Mapping::new(GRANULES, pages).or_else(|_| Mapping::new(1, pages)).ok()?;
            if pages != Pages::Small {
                mapping.advise(mapping.start(), mapping.len(), true);
            }
            (self.next, self.left) = (mapping.start(), mapping.len());
            self.mappings.push(mapping);
        }
        let start = self.next;
        self.next = start.wrapping_add(bytes);
        self.left -= bytes;
        Some(start)
    }
}

// SAFETY: H1: each block has one owner. H2: it has the size and alignment of its class.
unsafe impl Heap for SizeClassHeap {
    fn bytes(&self, layout: Layout) -> usize {
        class_of(layout).map_or(layout.size(), |(bytes, _)| bytes)
    }

    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        let Some((bytes, index)) = class_of(layout) else { return Global.alloc(kind, layout) };
        self.with(|shelf| shelf.alloc(bytes, index, self.pages))
    }

    unsafe fn free(&self, kind: &'static str, object: NonNull<u8>, layout: Layout) {
        let Some((_, index)) = class_of(layout) else {
            // SAFETY: the caller's promise: `alloc` took it from the global allocator.
            return unsafe { Global.free(kind, object, layout) };
        };
        // If this thread's table cannot be allocated, the block is lost until the heap is dropped.
        let _ = self.with(|shelf| {
            let class = &mut shelf.classes[index];
            // SAFETY: the caller's promise; a block has room for a word (H3), and nobody uses it.
            unsafe { object.cast::<*mut u8>().write(class.newest) };
            class.newest = object.as_ptr();
            Some(())
        });
    }
}

#[cfg(all(test, not(silvics_loom)))]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn classes_hold_and_align_what_they_are_for() {
        let mut classes = Vec::new();
        for size in 1..=LARGEST.min(70_000) {
            for align in [1, 8, 16, 32, 64] {
                let (bytes, index) = class_of(layout(size, align)).unwrap();
                assert!(bytes >= size && bytes.is_multiple_of(align) && index < CLASSES);
                classes.push((index, bytes));
            }
        }
        classes.sort_unstable();
        classes.dedup();
        assert!(classes.windows(2).all(|pair| pair[0].0 != pair[1].0 && pair[0].1 < pair[1].1));
        assert_eq!(class_of(layout(LARGEST, 8)), Some((LARGEST, CLASSES - 1)));
        assert_eq!(class_of(layout(LARGEST + 1, 8)), None);
    }

    #[test]
    fn kinds_of_one_class_take_turns_and_the_newest_free_block_comes_first() {
        let heap = SizeClassHeap::new(Pages::Small);
        let of = layout(64, 8);
        let blocks: Vec<_> = (0..200)
            .map(|n| heap.alloc(if n % 2 == 0 { "node" } else { "descriptor" }, of).unwrap())
            .collect();
        // A run is a page: 64 blocks. No other class takes a page in between here.
        assert!(blocks.windows(2).all(|pair| pair[1].addr().get() - pair[0].addr().get() == 64));
        assert_eq!(blocks[0].addr().get() % SMALL_PAGE, 0);
        let other = heap.alloc("key", layout(48, 8)).unwrap();
        assert_eq!(other.addr().get() % SMALL_PAGE, 0, "a class has runs of its own");
        // SAFETY: allocated above, used no more.
        unsafe {
            heap.free("node", blocks[4], of);
            heap.free("descriptor", blocks[7], of);
        }
        assert_eq!(heap.alloc("node", of), Some(blocks[7]));
        assert_eq!(heap.alloc("node", of), Some(blocks[4]));
        assert_eq!(
            [40, 41, LARGEST + 1].map(|size| heap.bytes(layout(size, 8))),
            [48, 48, LARGEST + 1]
        );
        let huge = heap.alloc("huge", layout(LARGEST + 1, 8)).unwrap();
        // SAFETY: allocated above, with room for it; used no more afterwards.
        unsafe {
            huge.as_ptr().write_bytes(1, LARGEST + 1);
            heap.free("huge", huge, layout(LARGEST + 1, 8));
        }
    }

    #[test]
    fn threads_have_memory_of_their_own_and_free_what_others_allocated() {
        let heap = SizeClassHeap::new(Pages::Small);
        let of = layout(32, 8);
        let mine = heap.alloc("node", of).unwrap();
        let address = mine.addr();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let theirs = heap.alloc("node", of).unwrap();
                assert!(theirs.addr().get().abs_diff(address.get()) >= SMALL_PAGE);
            });
        });
        struct Block(NonNull<u8>);
        // SAFETY: the block moves to one other thread as a whole.
        unsafe impl Send for Block {}
        let handed = Block(mine);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let block = { handed };
                // SAFETY: allocated above, used no more.
                unsafe { heap.free("node", block.0, of) };
                assert_eq!(heap.alloc("node", of).map(NonNull::addr), Some(address));
            });
        });
    }
}
