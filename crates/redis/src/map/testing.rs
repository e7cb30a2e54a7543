//! A heap that counts, and that can fail.

use silvics::Heap;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::ptr::NonNull;

/// The global allocator. It reserves 16 bytes more than requested for each object, counts them, and
/// fails once after [`Counting::fail_at`].
#[derive(Debug, Default)]
pub(crate) struct Counting {
    live: AtomicUsize,
    /// The number of allocations until one fails; 0 if none does.
    until_failure: AtomicUsize,
}

impl Counting {
    /// The bytes of all live objects.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    /// Makes the allocation with this number fail, counted from 1.
    pub(crate) fn fail_at(&self, number: usize) {
        self.until_failure.store(number, Ordering::SeqCst);
    }

    /// Cancels the failure. Returns the number of allocations until it, or 0 if it has come.
    pub(crate) fn cancel_failure(&self) -> usize {
        self.until_failure.swap(0, Ordering::SeqCst)
    }
}

#[allow(clippy::disallowed_methods)] // this type wraps the global allocator
// SAFETY: the contract of the global allocator.
unsafe impl Heap for Counting {
    fn bytes(&self, layout: Layout) -> usize {
        layout.size() + 16
    }

    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        let before = self.until_failure.load(Ordering::SeqCst);
        if before > 0 {
            self.until_failure.store(before - 1, Ordering::SeqCst);
            if before == 1 {
                return None;
            }
        }
        self.live.fetch_add(self.bytes(layout), Ordering::SeqCst);
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        self.live.fetch_sub(self.bytes(layout), Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(object.as_ptr(), layout) };
    }
}
