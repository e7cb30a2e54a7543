//! The jemalloc heaps work beside jemalloc as the global allocator: one library serves both.

#![cfg(all(feature = "jemalloc", not(target_env = "msvc")))]

use silvics_pool::{Heap, Jemalloc, SegregatedJemalloc};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};

struct Everything;

// SAFETY: the heap's contract includes that of a global allocator.
unsafe impl GlobalAlloc for Everything {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Jemalloc.alloc("everything", layout).map_or(null_mut(), NonNull::as_ptr)
    }
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller passes an object of this allocator, which is not null, and its layout.
        unsafe { Jemalloc.free("everything", NonNull::new_unchecked(object), layout) };
    }
}

#[global_allocator]
static EVERYTHING: Everything = Everything;

#[test]
fn the_programs_objects_and_a_heaps_lie_apart() {
    let layout = Layout::new::<[u64; 6]>();
    let heap = SegregatedJemalloc::new();
    let (mut boxes, mut nodes) = (Vec::new(), Vec::new());
    for at in 0..10_000 {
        boxes.push(Box::new([at; 6]));
        nodes.push(heap.alloc("node", layout).unwrap());
    }
    let page = |address: usize| address / 4096;
    let theirs: std::collections::HashSet<_> = nodes.iter().map(|n| page(n.addr().get())).collect();
    assert!(boxes.iter().all(|object| !theirs.contains(&page((&raw const **object).addr()))));
    assert!(boxes.iter().enumerate().all(|(at, object)| **object == [at; 6]));
    for node in nodes {
        // SAFETY: allocated above, and no longer used.
        unsafe { heap.free("node", node, layout) };
    }
}
