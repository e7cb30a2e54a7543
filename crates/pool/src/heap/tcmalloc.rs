//! tcmalloc, as its user gets it.

use super::Heap;
use libtcmalloc_sys::{
    BridgeTCMallocInternalNewAlignedNothrow as new_aligned,
    TCMallocInternalDeleteSizedAligned as delete_sized_aligned,
};
use std::alloc::Layout;
use std::ffi::c_int;
use std::ptr::NonNull;

unsafe extern "C" {
    /// The bytes tcmalloc takes for so many, aligned to 2^`flags`. It is compiled into
    /// `libtcmalloc_sys`, which does not name it.
    safe fn nallocx(size: usize, flags: c_int) -> usize;
}

/// Google's tcmalloc: objects of one size class side by side, whatever their kind, through the cache of
/// the processor or, where the C library keeps restartable sequences to itself, of the thread.
///
/// Its options are tcmalloc's own: among them it samples one object in about 2 MiB, which lies on a
/// page of its own (8 KiB) that [`Heap::bytes`] does not count.
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
        // SAFETY: they may be called with any size and a power of two.
        NonNull::new(unsafe { new_aligned(layout.size(), layout.align()) }.cast())
    }

    #[inline]
    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise: allocated with this size and alignment.
        unsafe { delete_sized_aligned(object.as_ptr().cast(), layout.size(), layout.align()) };
    }
}
