//! The limits of `SegregatedJemalloc`, in a process of their own, as other tests would reach them
//! too.

#![cfg(all(feature = "jemalloc", target_os = "linux"))]

use silvics_pool::{Heap, SegregatedJemalloc};
use std::alloc::Layout;
use std::ptr::NonNull;

const LAYOUT: Layout = Layout::new::<[u64; 8]>();

fn is_mapped(object: NonNull<u8>) -> bool {
    let page = object.as_ptr().map_addr(|address| address & !4095);
    // SAFETY: the call writes one byte of ours. An unmapped page is reported as an error.
    unsafe { libc::mincore(page.cast(), 4096, &mut 0) == 0 }
}

#[test]
fn the_1025th_kind_is_refused_until_a_heap_is_gone() {
    let kinds: Vec<&'static str> =
        (0..1025).map(|number| &*String::leak(format!("kind {number}"))).collect();
    let heap = SegregatedJemalloc::new();
    let objects: Vec<_> =
        kinds[..1024].iter().map(|kind| heap.alloc(kind, LAYOUT).unwrap()).collect();
    assert_eq!(heap.alloc(kinds[1024], LAYOUT), None);
    assert_eq!(SegregatedJemalloc::new().alloc(kinds[0], LAYOUT), None);
    let again = heap.alloc(kinds[0], LAYOUT).unwrap();
    // SAFETY: allocated above, and no longer used.
    unsafe { heap.free(kinds[0], again, LAYOUT) };
    // Five times as many caches as arenas: more than jemalloc allows.
    let all_alive = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                all_alive.wait(); // so that each thread has an index of its own
                for kind in &kinds[..1024] {
                    let object = heap.alloc(kind, LAYOUT).unwrap();
                    // SAFETY: allocated above, and no longer used.
                    unsafe { heap.free(kind, object, LAYOUT) };
                }
                all_alive.wait();
            });
        }
    });
    assert!(objects.iter().all(|object| is_mapped(*object)));
    drop(heap);
    let left = objects.iter().filter(|object| is_mapped(**object)).count();
    assert_eq!(left, 0, "dropping the heap returns what was still allocated");
    assert!(SegregatedJemalloc::new().alloc(kinds[1024], LAYOUT).is_some());
}
