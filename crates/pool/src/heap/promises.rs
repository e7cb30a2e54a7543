//! Checks the contract of every allocator that is available as a heap.

#![cfg(any(feature = "jemalloc", feature = "mimalloc", feature = "tcmalloc"))]

use super::Heap;
use crate::SMALL_PAGE;
use std::alloc::Layout;
use std::collections::HashSet;
use std::ptr::NonNull;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

struct Object(NonNull<u8>, Layout);
// SAFETY: the object moves to another thread as a whole.
unsafe impl Send for Object {}

impl Object {
    fn new(heap: &dyn Heap, of: Layout, fill: u8) -> Self {
        let object = heap.alloc("node", of).unwrap();
        assert_eq!(object.addr().get() % of.align(), 0, "{of:?}");
        // SAFETY: `of.size()` bytes that are ours alone.
        unsafe { object.write_bytes(fill, of.size()) };
        Self(object, of)
    }

    /// Frees the object, after checking that nobody else wrote to it.
    fn free(self, heap: &dyn Heap, fill: u8) {
        // SAFETY: written by `new`.
        let content = unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.1.size()) };
        assert!(content.iter().all(|&byte| byte == fill));
        // SAFETY: allocated by `new`, used no more.
        unsafe { heap.free("node", self.0, self.1) };
    }
}

fn free_all(heap: &dyn Heap, objects: impl IntoIterator<Item = Object>, fill: u8) {
    for object in objects {
        object.free(heap, fill);
    }
}

/// Checks alignment, `bytes` against the size that the allocator itself reports (`None`: not
/// exact), frees by another thread, and that freed memory is reused.
fn keeps_its_promises(heap: &dyn Heap, usable: impl Fn(NonNull<u8>) -> Option<usize>) {
    let sizes =
        [1, 8, 9, 16, 24, 40, 48, 64, 65, 100, 112, 200, 320, 1000, 1024, 4096, 5000, 12_288];
    let large = [40_000, 100_000, 600_000, 3 << 20];
    let mut objects = Vec::new();
    for size in sizes.into_iter().chain(large) {
        for align in [1, 8, 16, 32, 64, 128, 4096] {
            // Several, as the first may be aligned by chance.
            for _ in 0..if size > SMALL_PAGE { 2 } else { 20 } {
                let of = layout(size, align);
                let object = Object::new(heap, of, objects.len() as u8);
                assert!(heap.bytes(of) >= size);
                if let Some(usable) = usable(object.0) {
                    assert_eq!(heap.bytes(of), usable, "{of:?}");
                }
                objects.push(object);
            }
        }
    }
    let distinct: HashSet<_> = objects.iter().map(|object| object.0).collect();
    assert_eq!(distinct.len(), objects.len());
    let others = objects.split_off(objects.len() / 2);
    let from = objects.len();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (at, object) in others.into_iter().enumerate() {
                object.free(heap, (from + at) as u8);
            }
        });
    });
    for (at, object) in objects.into_iter().enumerate() {
        object.free(heap, at as u8);
    }
}

/// Allocates the same objects many times, each freed by a thread that did not allocate it. If freed
/// memory were not reused, there would be many addresses.
fn recycles_what_others_free(heap: &dyn Heap) {
    const BATCH: usize = 1000;
    let of = layout(48, 8);
    let (send, receive) = std::sync::mpsc::sync_channel::<Vec<Object>>(0);
    let mut addresses = HashSet::new();
    std::thread::scope(|scope| {
        scope.spawn(move || free_all(heap, receive.iter().flatten(), 7));
        for _ in 0..200 {
            let batch: Vec<_> = (0..BATCH).map(|_| Object::new(heap, of, 7)).collect();
            addresses.extend(batch.iter().map(|object| object.0));
            send.send(batch).unwrap();
        }
        drop(send);
    });
    assert!(addresses.len() < 40 * BATCH, "{} places for 200 batches of {BATCH}", addresses.len());
}

/// Eight threads each allocate objects for the next one to free.
fn threads_share(heap: &dyn Heap) {
    let (sends, receives): (Vec<_>, Vec<_>) =
        (0..8).map(|_| std::sync::mpsc::channel::<Object>()).unzip();
    std::thread::scope(|scope| {
        for (at, receive) in receives.into_iter().enumerate() {
            let send = sends[(at + 1) % 8].clone();
            scope.spawn(move || {
                for round in 0..5000 {
                    let of = layout(16 + round * 8 % 200, 8);
                    send.send(Object::new(heap, of, 3)).unwrap();
                    free_all(heap, receive.try_iter(), 3);
                }
                drop(send);
                free_all(heap, receive.iter(), 3);
            });
        }
        drop(sends);
    });
}

#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
mod jemalloc {
    use super::*;
    use crate::{Jemalloc, SegregatedJemalloc};
    use std::sync::Arc;

    #[test]
    fn both_keep_their_promises() {
        for heap in [&Jemalloc as &dyn Heap, &SegregatedJemalloc::new()] {
            keeps_its_promises(heap, |object| {
                // SAFETY: an object of jemalloc's.
                Some(unsafe { tikv_jemalloc_sys::sallocx(object.as_ptr().cast(), 0) })
            });
            recycles_what_others_free(heap);
            threads_share(heap);
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let of = layout(isize::MAX as usize - 7, 8);
        assert!(Jemalloc.alloc("node", of).is_none());
        assert!(SegregatedJemalloc::new().alloc("node", of).is_none());
    }

    const KINDS: [&str; 3] = ["node", "descriptor", "value"];

    /// The 4 KiB pages of 3 × 5000 objects allocated in turns, by kind.
    fn pages(heap: &dyn Heap) -> [HashSet<usize>; 3] {
        let mut pages = [const { Vec::new() }; 3];
        for at in 0..15_000 {
            let of = layout(48, 8);
            let start = heap.alloc(KINDS[at % 3], of).unwrap().addr().get();
            pages[at % 3].extend([start / SMALL_PAGE, (start + heap.bytes(of) - 1) / SMALL_PAGE]);
        }
        pages.map(|pages| pages.into_iter().collect())
    }

    #[test]
    fn kinds_share_no_page_when_segregated_and_do_otherwise() {
        let heap = SegregatedJemalloc::new();
        let segregated = pages(&heap);
        // 5000 of 48 bytes fill 59 pages.
        assert!(segregated.iter().all(|pages| (59..120).contains(&pages.len())));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert!(segregated[a].is_disjoint(&segregated[b]), "{} and {}", KINDS[a], KINDS[b]);
        }
        let mixed = pages(&Jemalloc); // stays allocated: the heap is the process's
        assert!(!mixed[0].is_disjoint(&mixed[1]));
    }

    /// Objects of one kind freed by one thread are not handed out as another kind's by any.
    #[test]
    fn freed_objects_stay_with_their_kind() {
        let heap = SegregatedJemalloc::new();
        let of = layout(64, 8);
        let nodes: Vec<_> = (0..5000).map(|_| Object::new(&heap, of, 1)).collect();
        let addresses: HashSet<_> = nodes.iter().map(|node| node.0.addr()).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                free_all(&heap, nodes, 1);
                for _ in 0..10_000 {
                    let value = heap.alloc("value", of).unwrap();
                    assert!(!addresses.contains(&value.addr()));
                }
            });
        });
    }

    /// Threads that come and go use the caches of earlier threads, and the arenas end with the
    /// heap. Otherwise this many heaps and threads would exhaust both.
    #[test]
    fn arenas_and_caches_are_given_back() {
        for _ in 0..600 {
            let heap = Arc::new(SegregatedJemalloc::new());
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let heap = Arc::clone(&heap);
                    std::thread::spawn(move || {
                        for kind in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                            let object = heap.alloc(kind, layout(64, 8)).unwrap();
                            // SAFETY: allocated above with this kind and layout, used no more.
                            unsafe { heap.free(kind, object, layout(64, 8)) };
                        }
                        heap.alloc("a", layout(64, 8)).unwrap(); // released with the heap
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        }
    }

    /// A thread allocates while it ends, after its index is gone.
    #[test]
    fn a_threads_last_moments_use_the_arena_directly() {
        struct Late(Arc<SegregatedJemalloc>, Option<Object>);
        impl Drop for Late {
            fn drop(&mut self) {
                Object::new(&*self.0, layout(64, 8), 9).free(&*self.0, 9);
                self.1.take().unwrap().free(&*self.0, 5);
            }
        }
        std::thread_local! {
            static LATE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
        }
        let heap = Arc::new(SegregatedJemalloc::new());
        let ours = Arc::clone(&heap);
        std::thread::spawn(move || {
            LATE.with(|_| ()); // registered first, so destroyed last
            let object = Object::new(&*ours, layout(64, 8), 5);
            LATE.set(Some(Late(ours, Some(object))));
        })
        .join()
        .unwrap();
        assert_eq!(Arc::strong_count(&heap), 1, "the last moments have come");
    }
}

#[cfg(feature = "mimalloc")]
#[test]
fn mimalloc_keeps_its_promises() {
    use crate::Mimalloc;
    keeps_its_promises(&Mimalloc, |object| {
        // SAFETY: an object of mimalloc's.
        let usable = unsafe { libmimalloc_sys::mi_usable_size(object.as_ptr().cast()) };
        (usable <= 512 << 10).then_some(usable)
    });
    let of = layout(600_000, 64);
    let object = Object::new(&Mimalloc, of, 1);
    // SAFETY: an object of mimalloc's.
    let usable = unsafe { libmimalloc_sys::mi_usable_size(object.0.as_ptr().cast()) };
    let bytes = Mimalloc.bytes(of);
    assert!((bytes..=bytes + bytes / 8).contains(&usable), "{usable} for {bytes}");
    object.free(&Mimalloc, 1);
    recycles_what_others_free(&Mimalloc);
    threads_share(&Mimalloc);
    let of = layout(100, 1 << 16);
    Object::new(&Mimalloc, of, 1).free(&Mimalloc, 1); // from the global allocator
}

#[cfg(all(feature = "tcmalloc", target_os = "linux"))]
#[test]
fn tcmalloc_keeps_its_promises() {
    use crate::Tcmalloc;
    unsafe extern "C" {
        /// The allocated size; for a sampled object, the size it would have if it were not sampled.
        fn MallocExtension_Internal_GetAllocatedSize(object: *const u8) -> usize;
    }
    keeps_its_promises(&Tcmalloc, |object| {
        // SAFETY: an object of tcmalloc's.
        Some(unsafe { MallocExtension_Internal_GetAllocatedSize(object.as_ptr()) })
    });
    recycles_what_others_free(&Tcmalloc);
    threads_share(&Tcmalloc);
}
