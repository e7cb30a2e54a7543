//! tcmalloc as a heap, with its own defaults.

use super::Heap;
use libtcmalloc_sys::{
    BridgeTCMallocInternalNewAlignedNothrow as new_aligned,
    TCMallocInternalDeleteSizedAligned as delete_sized_aligned,
};
use std::alloc::Layout;
use std::ffi::c_int;
use std::ptr::NonNull;

unsafe extern "C" {
    /// The bytes tcmalloc takes for an object of `size` bytes, aligned to 2^`flags`.
    /// `libtcmalloc_sys` contains this function but does not declare it.
    safe fn nallocx(size: usize, flags: c_int) -> usize;
}

/// Google's tcmalloc: objects of one size class lie side by side, whatever their kind. They go
/// through the cache of the processor, or that of the thread if the C library uses restartable
/// sequences itself.
///
/// The program sets tcmalloc's options as usual. By default it samples one object in about 2 MiB. A
/// sampled object lies on a page of its own (8 KiB), which [`Heap::bytes`] does not count.
///
/// Source: github.com/google/tcmalloc, `tcmalloc/tcmalloc.cc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcmalloc;

// SAFETY: tcmalloc's contract for its `new` and `delete`; both may be called from all threads.
unsafe impl Heap for Tcmalloc {
    fn bytes(&self, layout: Layout) -> usize {
        nallocx(layout.size(), layout.align().trailing_zeros() as c_int)
    }

    #[inline]
    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: `new_aligned` accepts any size, and any power of two as alignment.
        NonNull::new(unsafe { new_aligned(layout.size(), layout.align()) }.cast())
    }

    #[inline]
    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise: allocated with this size and alignment.
        unsafe { delete_sized_aligned(object.as_ptr().cast(), layout.size(), layout.align()) };
    }
}
