//! A global allocator that counts the allocations of each thread and the live bytes of the process.
//!
//! ```
//! use silvics_testkit::counting::{self, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let before = (counting::allocations(), counting::live_bytes());
//! let kept = vec![0u8; 1000];
//! assert_eq!(counting::allocations(), before.0 + 1);
//! assert_eq!(counting::live_bytes(), before.1 + kept.len());
//! ```

use crate::failure::{Outcome, ensure};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    // The cell is neither lazy nor dropped, so an allocator may use it at any time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The number of allocations that the calling thread has made.
pub fn allocations() -> usize {
    ALLOCATIONS.with(Cell::get)
}

/// The bytes allocated and not yet freed by all threads. Exact while no thread allocates.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}

/// Fails unless [`Counting`] is this process's global allocator.
pub fn ensure_counted() -> Outcome {
    let before = allocations();
    drop(std::hint::black_box(Box::new(0u64)));
    ensure!(
        allocations() > before,
        "allocations are not counted: make `Counting` the global allocator of this test"
    );
    Ok(())
}

fn count(size: usize) {
    ALLOCATIONS.with(|allocations| allocations.set(allocations.get() + 1));
    LIVE_BYTES.fetch_add(size, Ordering::Relaxed);
}

// SAFETY: every method passes its arguments on to the system allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`, which is that of
        // `System`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`: `System` allocated the object with
        // `layout`.
        unsafe { System.dealloc(object, layout) };
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`: `System` allocated the object with
        // `layout`.
        unsafe { System.realloc(object, layout, size) }
    }
}
