//! jemalloc as a heap, with its own defaults.

use super::Heap;
use std::alloc::Layout;
use std::ffi::c_int;
use std::ptr::NonNull;
use tikv_jemalloc_sys::{MALLOCX_ALIGN, mallocx, nallocx, sdallocx};

/// jemalloc: objects of one size class lie side by side, whatever their kind, in the arena of the
/// allocating thread and through its thread caches.
///
/// The program sets jemalloc's options as usual. The library may also be the program's global
/// allocator.
///
/// Source: jemalloc 5.3, its manual page (`mallocx`, `sdallocx`, `nallocx`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Jemalloc;

/// jemalloc's flags for an alignment that its size classes do not have anyway. A class of at least
/// 16 bytes is a multiple of 16 (its quantum on 64-bit machines).
pub(super) fn alignment(layout: Layout) -> c_int {
    let natural = layout.align() <= 16 && layout.align() <= layout.size();
    if natural { 0 } else { MALLOCX_ALIGN(layout.align()) }
}

/// The bytes that jemalloc takes for an object: those of its size class.
pub(super) fn class_bytes(layout: Layout) -> usize {
    // SAFETY: the layout is not empty.
    let bytes = unsafe { nallocx(layout.size(), alignment(layout)) };
    bytes.max(layout.size()) // `nallocx` returns 0 for sizes too large to allocate
}

// SAFETY: jemalloc's contract for `mallocx` and `sdallocx`; both may be called from all threads.
unsafe impl Heap for Jemalloc {
    fn bytes(&self, layout: Layout) -> usize {
        class_bytes(layout)
    }

    #[inline]
    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { mallocx(layout.size(), alignment(layout)) }.cast())
    }

    #[inline]
    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise: `alloc` used this size and these flags.
        unsafe { sdallocx(object.as_ptr().cast(), layout.size(), alignment(layout)) };
    }
}
