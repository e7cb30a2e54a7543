//! The server's allocator: as the global allocator of the module, and as the heap of its maps.
//!
//! So the server counts all memory of the module (`used_memory`), evicts keys when it exceeds
//! `maxmemory`, and a failed allocation is an error of the command.

use crate::map::{ByteMap, WriteError};
use redis_module::raw;
use silvics::Heap;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, OnceLock};

/// The alignment that the server's allocator grants for each size: jemalloc, as the servers build
/// it, has classes of 8, 24 and 40 bytes.
const GRANTED: usize = 8;

/// Allocates as the server does. A stricter alignment takes some bytes more: the object lies behind
/// the address that the server has returned, and that address lies in the word before the object.
pub(super) struct ServerAlloc;

#[global_allocator]
static GLOBAL: ServerAlloc = ServerAlloc;

// SAFETY: the server's allocator returns memory of its own for each call, aligned to `GRANTED`, on
// any thread. For a stricter alignment, `size + align` bytes from an address at a multiple of 8
// contain a multiple of `align` with a word before it and `size` bytes behind it.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the function is one of the server, and is only read here.
        let Some(allocate) = (unsafe { raw::RedisModule_TryAlloc }) else { return null_mut() };
        if layout.align() <= GRANTED {
            // SAFETY: the server's function takes any size.
            return unsafe { allocate(layout.size()) }.cast();
        }
        let Some(size) = layout.size().checked_add(layout.align()) else { return null_mut() };
        // SAFETY: the server's function takes any size, this one included.
        let start: *mut u8 = unsafe { allocate(size) }.cast();
        if start.is_null() {
            return start;
        }
        let object = start.map_addr(|start| (start + GRANTED).next_multiple_of(layout.align()));
        // SAFETY: the object begins `GRANTED` bytes or more behind the start.
        unsafe { object.cast::<*mut u8>().sub(1).write(start) };
        object
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let start = if layout.align() <= GRANTED {
            object
        } else {
            // SAFETY: `alloc` has written the word.
            unsafe { object.cast::<*mut u8>().sub(1).read() }
        };
        // SAFETY: the server has allocated the object, so it has set this function.
        if let Some(free) = unsafe { raw::RedisModule_Free } {
            // SAFETY: the server returned this address, and the caller frees it once.
            unsafe { free(start.cast::<c_void>()) };
        }
    }
}

/// The sizes that the allocator reserves for requests up to this size are looked up.
const PROBED: usize = 32 << 10;

/// A heap of single objects from the server's allocator.
#[derive(Debug)]
struct ServerHeap {
    /// The bytes of an object by its requested size, in steps of 8.
    reserved: Box<[u32]>,
}

impl ServerHeap {
    fn new() -> Self {
        let size_of = |words: usize| {
            let layout = Layout::array::<u64>(words.max(1)).unwrap_or(Layout::new::<u64>());
            // SAFETY: the layout is not empty; the object is freed with the same layout.
            unsafe {
                let object = ServerAlloc.alloc(layout);
                let size = raw::RedisModule_MallocSize
                    .filter(|_| !object.is_null())
                    .map_or(layout.size(), |size| size(object.cast()));
                ServerAlloc.dealloc(object, layout);
                size as u32
            }
        };
        Self { reserved: (0..=PROBED / 8).map(size_of).collect() }
    }

    /// The size class of a request. Above [`PROBED`] it is that of jemalloc: four classes between
    /// two powers of two.
    fn reserved(&self, size: usize) -> usize {
        match self.reserved.get(size.div_ceil(8)) {
            Some(&reserved) => reserved as usize,
            None => size.next_multiple_of(((size - 1).next_power_of_two() / 8).max(1)),
        }
    }
}

// SAFETY: the global allocator's contract. No function unwinds or calls an index.
unsafe impl Heap for ServerHeap {
    fn bytes(&self, layout: Layout) -> usize {
        let more = if layout.align() > GRANTED { layout.align() } else { 0 };
        self.reserved(layout.size() + more)
    }

    fn alloc(&self, _kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { ServerAlloc.alloc(layout) })
    }

    unsafe fn free(&self, _kind: &'static str, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { ServerAlloc.dealloc(object.as_ptr(), layout) };
    }
}

/// The heap of all maps.
pub(super) fn heap() -> Arc<dyn Heap> {
    static HEAP: OnceLock<Arc<ServerHeap>> = OnceLock::new();
    Arc::<ServerHeap>::clone(HEAP.get_or_init(|| Arc::new(ServerHeap::new())))
}

/// The bytes of an empty map that the map itself does not count. Relaxed: they are stored before
/// there are commands.
static FIXED: AtomicUsize = AtomicUsize::new(0);

/// Measures [`FIXED`] by the memory of the server. The server does nothing else meanwhile.
pub(super) fn measure_empty_map(used_memory: impl Fn() -> usize) -> Result<(), WriteError> {
    const MAPS: usize = 64;
    let map = || ByteMap::new(heap(), 0).map(Arc::new);
    drop(map()?); // makes what all maps share
    let mut maps = Vec::with_capacity(MAPS);
    let before = used_memory();
    for _ in 0..MAPS {
        maps.push(map()?);
    }
    let each = used_memory().saturating_sub(before) / MAPS;
    FIXED.store(each.saturating_sub(maps[0].memory().total), Ordering::Relaxed);
    Ok(())
}

/// All bytes of a map.
pub(super) fn bytes_of(map: &ByteMap) -> usize {
    map.memory().total + FIXED.load(Ordering::Relaxed)
}
