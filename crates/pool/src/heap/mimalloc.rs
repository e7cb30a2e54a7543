//! mimalloc, as its user gets it.

use super::{Global, Heap, PAGE};
use libmimalloc_sys::{mi_free, mi_good_size, mi_malloc, mi_malloc_aligned};
use std::alloc::Layout;
use std::ptr::NonNull;

/// mimalloc: objects of one size class side by side, whatever their kind, in pages of the thread that
/// allocated them.
///
/// Its options are mimalloc's own. What it takes for an object whose alignment is not its size class's
/// depends on which blocks happen to be free. Here such an object gets a block of a class that is
/// aligned always: its size is rounded up to a power of two, above 4 KiB to whole pages. Alignments
/// beyond 4 KiB are left to the global allocator.
///
/// Beyond 512 KiB, where an object has a page of mimalloc's to itself, that page is up to an eighth larger
/// than [`Heap::bytes`] says: address space, which nobody touches.
///
/// Source: mimalloc 3.3, `src/alloc-aligned.c`, `mi_malloc_is_naturally_aligned`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mimalloc;

/// Blocks of 16 bytes or more are aligned to it.
const NATURAL: usize = 16;

/// The bytes and the alignment to ask for; `None` beyond what is always aligned.
fn request(layout: Layout) -> Option<(usize, usize)> {
    let (size, align) = (layout.size().max(layout.align()), layout.align());
    if align > PAGE {
        None
    } else if align <= NATURAL {
        Some((size, NATURAL))
    } else if size <= PAGE {
        Some((size.next_power_of_two(), align))
    } else {
        Some((size.next_multiple_of(PAGE), PAGE))
    }
}

// SAFETY: mimalloc's contract for `mi_malloc` and `mi_free`; both may be called from all threads.
unsafe impl Heap for Mimalloc {
    fn bytes(&self, layout: Layout) -> usize {
        // SAFETY: it only computes.
        request(layout).map_or(layout.size(), |(bytes, _)| unsafe { mi_good_size(bytes) })
    }

    #[inline]
    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        let Some((bytes, align)) = request(layout) else { return Global.alloc(kind, layout) };
        // SAFETY: they may be called with any size and a power of two.
        let object = unsafe {
            if align <= NATURAL { mi_malloc(bytes) } else { mi_malloc_aligned(bytes, align) }
        };
        NonNull::new(object.cast())
    }

    #[inline]
    unsafe fn free(&self, kind: &'static str, object: NonNull<u8>, layout: Layout) {
        if request(layout).is_none() {
            // SAFETY: the caller's promise: `alloc` took it from there.
            return unsafe { Global.free(kind, object, layout) };
        }
        // SAFETY: the caller's promise.
        unsafe { mi_free(object.as_ptr().cast()) };
    }
}
