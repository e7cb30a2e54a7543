//! The global allocator, which can count the bytes of live blocks.
//!
//! A block counts with its usable bytes, those that the allocator has set aside for it. While
//! nobody counts, an allocation costs one more read and a branch that is predicted.

use silvics_sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::alloc::{GlobalAlloc, Layout};

#[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
type Inner = tikv_jemallocator::Jemalloc;
#[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
const INNER: Inner = tikv_jemallocator::Jemalloc;
#[cfg(feature = "alloc-mimalloc")]
type Inner = mimalloc::MiMalloc;
#[cfg(feature = "alloc-mimalloc")]
const INNER: Inner = mimalloc::MiMalloc;
#[cfg(not(any(
    all(feature = "alloc-jemalloc", not(target_env = "msvc")),
    feature = "alloc-mimalloc"
)))]
type Inner = std::alloc::System;
#[cfg(not(any(
    all(feature = "alloc-jemalloc", not(target_env = "msvc")),
    feature = "alloc-mimalloc"
)))]
const INNER: Inner = std::alloc::System;

#[global_allocator]
static GLOBAL: Counting = Counting(INNER);

struct Counting(Inner);

/// Whether somebody counts.
static COUNTS: AtomicBool = AtomicBool::new(false);
/// The bytes of the blocks that were allocated since, less those that were freed.
static LIVE: AtomicI64 = AtomicI64::new(0);

/// Calls `work` and returns its result with the bytes of the blocks that the process has allocated
/// meanwhile, less those of the blocks that it has freed, older ones included. `None` if the usable
/// bytes of a block are not known on this system, or if somebody counts already.
pub fn count_live<T>(work: impl FnOnce() -> T) -> (T, Option<usize>) {
    if !KNOWN || COUNTS.load(Ordering::Relaxed) {
        return (work(), None);
    }
    // Relaxed everywhere: the threads of `work` begin and end within it.
    LIVE.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    let result = work();
    COUNTS.store(false, Ordering::Relaxed);
    (result, usize::try_from(LIVE.load(Ordering::Relaxed)).ok())
}

/// Whether [`usable`] is known.
const KNOWN: bool = cfg!(any(
    all(feature = "alloc-jemalloc", not(target_env = "msvc")),
    feature = "alloc-mimalloc",
    all(target_os = "linux", target_env = "gnu"),
));

/// The usable bytes of a block.
///
/// # Safety
/// The block is live, and comes from `INNER`.
#[inline]
unsafe fn usable(block: *mut u8) -> usize {
    #[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
    // SAFETY: the caller's promise.
    return unsafe { tikv_jemallocator::usable_size(block) };
    #[cfg(feature = "alloc-mimalloc")]
    // SAFETY: the caller's promise.
    return unsafe { INNER.usable_size(block) };
    #[cfg(all(
        not(feature = "alloc-jemalloc"),
        not(feature = "alloc-mimalloc"),
        target_os = "linux",
        target_env = "gnu"
    ))]
    // SAFETY: the caller's promise; the system's allocator is malloc.
    return unsafe { libc::malloc_usable_size(block.cast()) };
    #[allow(unreachable_code)] // on systems where it is not known
    {
        _ = block;
        0
    }
}

/// Counts a block that is new.
#[inline]
fn count(block: *mut u8) {
    if COUNTS.load(Ordering::Relaxed) && !block.is_null() {
        // SAFETY: it has just been allocated.
        LIVE.fetch_add(unsafe { usable(block) } as i64, Ordering::Relaxed);
    }
}

/// Counts a block that is about to be freed.
///
/// # Safety
/// The block is live, and comes from `INNER`.
#[inline]
unsafe fn discount(block: *mut u8) {
    if COUNTS.load(Ordering::Relaxed) {
        // SAFETY: the caller's promise.
        LIVE.fetch_sub(unsafe { usable(block) } as i64, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to an allocator, and its answer is passed on.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.0.alloc(layout) };
        count(block);
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        count(block);
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe {
            discount(block);
            self.0.dealloc(block, layout);
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !COUNTS.load(Ordering::Relaxed) {
            // SAFETY: the caller's promise.
            return unsafe { self.0.realloc(block, layout, bytes) };
        }
        // SAFETY: the caller's promise.
        let before = unsafe { usable(block) };
        // SAFETY: the caller's promise.
        let new = unsafe { self.0.realloc(block, layout, bytes) };
        if !new.is_null() {
            // SAFETY: it has just been allocated.
            let more = unsafe { usable(new) } as i64 - before as i64;
            LIVE.fetch_add(more, Ordering::Relaxed);
        }
        new
    }
}

/// Lets mimalloc return free memory to the system.
#[cfg(feature = "alloc-mimalloc")]
pub(super) fn collect() {
    // SAFETY: it may be called at any time.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
