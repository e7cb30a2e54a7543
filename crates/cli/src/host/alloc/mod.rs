//! The global allocator, which serves the peers, and our indexes where they are placed `shared`.

use silvics_layout::Among;
use std::alloc::Layout;

mod counting;
#[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
mod jemalloc;

pub use counting::count_live;

#[cfg(all(feature = "alloc-jemalloc", feature = "alloc-mimalloc"))]
compile_error!("there is one global allocator: choose alloc-jemalloc or alloc-mimalloc");

/// Brings the memory that the allocator wants on huge pages onto them, as the system itself would
/// in time: pages that were touched before their surroundings were mapped are small, and so are
/// those that were given back and taken again. Without `alloc-jemalloc` nothing: a program gets
/// the pages it gets.
pub fn settle() {
    #[cfg(all(feature = "alloc-jemalloc", target_os = "linux"))]
    for (start, len) in crate::host::memory::advised_mappings() {
        jemalloc::collapse(start, start + len);
    }
}

/// The distance from an object of this layout to the next one where objects of the size lie side by
/// side, if the allocator's rule is known.
pub fn bytes_for(layout: Layout) -> Option<usize> {
    if cfg!(all(feature = "alloc-jemalloc", not(target_env = "msvc"))) {
        #[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
        return Some(silvics_pool::Heap::bytes(&silvics_pool::Jemalloc, layout));
    }
    if cfg!(feature = "alloc-mimalloc") {
        #[cfg(feature = "mimalloc")]
        return Some(silvics_pool::Heap::bytes(&silvics_pool::Mimalloc, layout));
    }
    // A chunk has a word of its own, and is a multiple of two (glibc manual, malloc/malloc.c).
    let glibc = cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"));
    glibc.then(|| (layout.size() + 8).next_multiple_of(16).max(32))
}

/// The objects that lie beside an object of the allocator: those of its size class, or whichever
/// was allocated next.
pub fn among() -> Among {
    let jemalloc = cfg!(all(feature = "alloc-jemalloc", not(target_env = "msvc")));
    let classes = jemalloc || cfg!(feature = "alloc-mimalloc");
    if classes { Among::Size } else { Among::All }
}

/// The name of the allocator in results.
pub fn name() -> &'static str {
    if cfg!(all(feature = "alloc-jemalloc", not(target_env = "msvc"))) {
        "jemalloc thp:always"
    } else if cfg!(feature = "alloc-mimalloc") {
        "mimalloc"
    } else if cfg!(all(target_os = "linux", target_env = "gnu")) {
        "glibc malloc"
    } else {
        "system malloc"
    }
}

/// Returns free memory to the system. The resident set then grows by the size of the next index,
/// and not by what does not fit into earlier gaps.
pub fn trim() {
    #[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
    jemalloc::trim();
    #[cfg(feature = "alloc-mimalloc")]
    counting::collect();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
