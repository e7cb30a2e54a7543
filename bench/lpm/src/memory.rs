//! Counts the usable bytes of live blocks, for tables that do not know their bytes.

use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};

pub struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The usable bytes of all live blocks.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

fn usable(block: *mut u8) -> usize {
    // SAFETY: the block is null or a live block of malloc.
    unsafe { libc::malloc_usable_size(block.cast()) }
}

// SAFETY: blocks come from the system's allocator, and go back to it.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc(layout) };
        LIVE.fetch_add(usable(block), Ordering::Relaxed);
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(usable(block), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
    }
}
