//! jemalloc with an arena per kind of object.

use super::Heap;
use super::jemalloc::{alignment, class_bytes};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_sync::per_thread::{PerThread, thread_index};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_int, c_uint};
use std::fmt;
use std::ptr::{NonNull, null_mut};
use tikv_jemalloc_sys::{
    MALLOCX_ARENA, MALLOCX_TCACHE, MALLOCX_TCACHE_NONE, mallctl, mallocx, sdallocx,
};

/// The most arenas that all such heaps of the program may have at once. jemalloc allows 4095, and
/// makes four per processor for itself.
const MOST_ARENAS: usize = 1024;

/// The number of arenas now. Relaxed: a count, which publishes nothing.
static ARENAS: AtomicUsize = AtomicUsize::new(0);

/// jemalloc with an arena per kind of object, so that no two kinds share a 4 KiB page.
///
/// Arbel-Raviv, Brown and Morrison (USENIX ATC 2018, section 5) segregated objects in this way,
/// with an instance of the allocator for each kind. (Unlike [`Pool`](crate::Pool)s, arenas of one
/// jemalloc may still share 2 MiB of address space.)
/// ```text
/// arena  = one per kind, made for its first object, destroyed with the heap
/// cache  = an explicit thread cache per kind and thread, made for the first object of the kind
/// alloc: from the cache, which refills itself from the arena
/// free:  into the cache of the thread that frees; it flushes itself into the arena
/// ```
/// A cache belongs to a thread index (`silvics_sync::per_thread`), and the next thread with that
/// index continues to use it. Some threads use the arena directly, under its locks. These are
/// threads whose thread-local variables are destroyed, and threads that find no cache left
/// (jemalloc allows 4094).
///
/// Dropping the heap returns all of its memory, including objects still allocated. While 1024
/// arenas exist in such heaps, the first object of another kind is refused.
///
/// Source: jemalloc 5.3, its manual page (`arenas.create`, `arena.<i>.destroy`, `tcache.create`).
///
/// # Invariants
/// * G1: a thread's cell is used only by the thread whose index it has (P1 and P2 of
///   `silvics_sync::per_thread`), or by the thread that drops the heap.
/// * G2: `arenas` has one arena per kind, all different and owned by the heap. Only objects of that
///   kind come from it, and only they go into its caches.
pub struct SegregatedJemalloc {
    threads: PerThread<Own>,
    arenas: Mutex<Vec<(&'static str, c_uint)>>,
}

/// The caches of one thread.
#[derive(Default)]
struct Own(UnsafeCell<Vec<Cache>>);

// SAFETY: G1.
unsafe impl Sync for Own {}

struct Cache {
    kind: &'static str,
    tcache: c_uint,
    /// The arena and the cache, as jemalloc takes them.
    flags: c_int,
}

impl Default for SegregatedJemalloc {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SegregatedJemalloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegregatedJemalloc")
            .field("arenas", &*self.arenas.lock())
            .finish_non_exhaustive()
    }
}

/// Creates an arena or a cache, by the name of jemalloc's command for it. Returns its number.
fn create(name: &CStr) -> Option<c_uint> {
    let (mut number, mut bytes): (c_uint, _) = (0, size_of::<c_uint>());
    // SAFETY: both commands that callers pass write an unsigned integer and read nothing.
    let error =
        unsafe { mallctl(name.as_ptr(), (&raw mut number).cast(), &raw mut bytes, null_mut(), 0) };
    (error == 0).then_some(number)
}

impl SegregatedJemalloc {
    /// Makes a heap without arenas.
    pub fn new() -> Self {
        Self { threads: PerThread::new(()), arenas: Mutex::default() }
    }

    /// The arena of `kind`, created if necessary.
    fn arena(&self, kind: &'static str) -> Option<c_uint> {
        let mut arenas = self.arenas.lock();
        if let Some(&(_, arena)) = arenas.iter().find(|(of, _)| *of == kind) {
            return Some(arena);
        }
        arenas.try_reserve(1).ok()?;
        if ARENAS.fetch_add(1, Ordering::Relaxed) >= MOST_ARENAS {
            ARENAS.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let arena = create(c"arenas.create");
        match arena {
            Some(arena) => arenas.push((kind, arena)),
            None => _ = ARENAS.fetch_sub(1, Ordering::Relaxed),
        }
        arena
    }

    /// jemalloc's flags for objects of `kind` on the calling thread, or `None` if their arena could
    /// not be created.
    #[inline]
    fn flags(&self, kind: &'static str) -> Option<c_int> {
        let own = thread_index().and_then(|index| self.threads.get_or_make(index));
        let Some(own) = own else { return self.uncached(kind) };
        // SAFETY: G1; nothing below calls `flags` again.
        let caches = unsafe { &mut *own.0.get() };
        match caches.iter().find(|c| std::ptr::eq(c.kind, kind) || c.kind == kind) {
            Some(cache) => Some(cache.flags),
            None => self.add_cache(caches, kind),
        }
    }

    #[cold]
    fn add_cache(&self, caches: &mut Vec<Cache>, kind: &'static str) -> Option<c_int> {
        let arena = self.arena(kind)?;
        let tcache = caches.try_reserve(1).ok().and_then(|()| create(c"tcache.create"));
        let Some(tcache) = tcache else { return self.uncached(kind) };
        let flags = MALLOCX_ARENA(arena as usize) | MALLOCX_TCACHE(tcache as usize);
        caches.push(Cache { kind, tcache, flags });
        Some(flags)
    }

    #[cold]
    fn uncached(&self, kind: &'static str) -> Option<c_int> {
        self.arena(kind).map(|arena| MALLOCX_ARENA(arena as usize) | MALLOCX_TCACHE_NONE)
    }
}

// SAFETY: jemalloc's contract for `mallocx` and `sdallocx`. All threads may call them, with an
// explicit cache only one at a time (G1). The arenas live as long as the heap.
unsafe impl Heap for SegregatedJemalloc {
    fn bytes(&self, layout: Layout) -> usize {
        class_bytes(layout)
    }

    #[inline]
    fn alloc(&self, kind: &'static str, layout: Layout) -> Option<NonNull<u8>> {
        let flags = self.flags(kind)? | alignment(layout);
        // SAFETY: the layout is not empty; arena and cache exist (G2).
        NonNull::new(unsafe { mallocx(layout.size(), flags) }.cast())
    }

    #[inline]
    unsafe fn free(&self, kind: &'static str, object: NonNull<u8>, layout: Layout) {
        // The kind has an arena, because the object came from it.
        let flags = self.flags(kind).unwrap_or(MALLOCX_TCACHE_NONE) | alignment(layout);
        // SAFETY: the caller's promise: allocated with this size and alignment; the cache is the
        // kind's (G2).
        unsafe { sdallocx(object.as_ptr().cast(), layout.size(), flags) };
    }
}

impl Drop for SegregatedJemalloc {
    fn drop(&mut self) {
        for own in self.threads.iter() {
            // SAFETY: G1: this thread drops the heap.
            for cache in unsafe { &*own.0.get() } {
                let (mut tcache, bytes) = (cache.tcache, size_of::<c_uint>());
                // SAFETY: the command reads the number of a cache; `add_cache` made it, and nobody
                // uses it any more.
                let error = unsafe {
                    let name = c"tcache.destroy".as_ptr();
                    mallctl(name, null_mut(), null_mut(), (&raw mut tcache).cast(), bytes)
                };
                debug_assert_eq!(error, 0, "tcache.destroy of {tcache}");
            }
        }
        for (kind, arena) in self.arenas.lock().drain(..) {
            let name = CString::new(format!("arena.{arena}.destroy")).unwrap_or_default();
            // SAFETY: the command reads and writes nothing. `arena` made the arena, no cache holds
            // anything of it any more, and its objects end with the heap.
            let error = unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
            debug_assert_eq!(error, 0, "arena.{arena}.destroy, of {kind}");
            ARENAS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
