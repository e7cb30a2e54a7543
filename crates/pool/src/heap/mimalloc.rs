//! mimalloc as a heap, with its own defaults.

use super::{Global, Heap};
use crate::SMALL_PAGE;
use libmimalloc_sys::{mi_free, mi_good_size, mi_malloc, mi_malloc_aligned};
use std::alloc::Layout;
use std::ptr::NonNull;

/// mimalloc: objects of one size class lie side by side, whatever their kind, in pages of the
/// allocating thread.
///
/// The program sets mimalloc's options as usual. If an object's alignment exceeds that of its size
/// class, the bytes mimalloc takes depend on which blocks happen to be free. This heap therefore
/// requests a block of a class that is always aligned: it rounds the size up to a power of two, or
/// above 4 KiB to whole pages. Objects with alignments beyond 4 KiB come from the global allocator.
///
/// An object beyond 512 KiB has a mimalloc page to itself. That page is up to an eighth larger than
/// [`Heap::bytes`] returns, by address space that nobody touches.
///
/// Source: mimalloc 3.3, `src/alloc-aligned.c`, `mi_malloc_is_naturally_aligned`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mimalloc;

/// The alignment of every block of 16 bytes or more.
const NATURAL: usize = 16;

/// The bytes and the alignment to request, or `None` for an alignment beyond 4 KiB.
fn request(layout: Layout) -> Option<(usize, usize)> {
    let (size, align) = (layout.size().max(layout.align()), layout.align());
    if align > SMALL_PAGE {
        None
    } else if align <= NATURAL {
        Some((size, NATURAL))
    } else if size <= SMALL_PAGE {
        Some((size.next_power_of_two(), align))
    } else {
        Some((size.next_multiple_of(SMALL_PAGE), SMALL_PAGE))
    }
}

// SAFETY: mimalloc's contract for `mi_malloc` and `mi_free`; both may be called from all threads.
unsafe impl Heap for Mimalloc {
    fn bytes(&self, layout: Layout) -> usize {
        // SAFETY: `mi_good_size` only computes.
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
            // SAFETY: the caller's promise: `alloc` took it from the global allocator.
            return unsafe { Global.free(kind, object, layout) };
        }
        // SAFETY: the caller's promise: `alloc` took it from mimalloc.
        unsafe { mi_free(object.as_ptr().cast()) };
    }
}
