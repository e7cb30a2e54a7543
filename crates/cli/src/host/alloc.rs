//! The global allocator, which serves the peers, and our indexes where they are placed `shared`.

use silvics_layout::Among;
use std::alloc::Layout;

#[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
mod jemalloc {
    use std::ffi::c_char;

    #[global_allocator]
    static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// Options as jemalloc reads them: a pointer to a C string, found by its name.
    #[repr(transparent)]
    pub struct Options(*const c_char);

    // SAFETY: it points to a literal, which nobody writes.
    unsafe impl Sync for Options {}

    /// Read once, before `main`.
    // SAFETY: the name and the type are those that jemalloc declares, as a weak symbol to be
    // overridden by the program.
    #[used]
    #[unsafe(export_name = "_rjem_malloc_conf")]
    static OPTIONS: Options = Options(c"thp:always".as_ptr());

    /// Moves what lies between two addresses to huge pages, wherever three quarters of one are in
    /// use: fewer would be mostly memory that was given back.
    #[cfg(target_os = "linux")]
    pub fn collapse(start: usize, end: usize) {
        use silvics_pool::{HUGE_PAGE, SMALL_PAGE};
        /// Since Linux 6.1; before that nothing happens.
        const MADV_COLLAPSE: libc::c_int = 25;
        let mut resident = [0_u8; HUGE_PAGE / SMALL_PAGE];
        for at in (start.next_multiple_of(HUGE_PAGE)..end).step_by(HUGE_PAGE) {
            let page = std::ptr::without_provenance_mut(at);
            // SAFETY: the vector has a byte for every page of the range, and nothing else is
            // written; what is not mapped is an error.
            let known = unsafe { libc::mincore(page, HUGE_PAGE, resident.as_mut_ptr()) } == 0;
            let used = resident.iter().filter(|&&byte| byte & 1 == 1).count();
            if known && used >= resident.len() / 4 * 3 {
                // SAFETY: the advice changes no content, whatever is mapped there.
                unsafe { libc::madvise(page, HUGE_PAGE, MADV_COLLAPSE) };
            }
        }
    }

    /// Returns free pages of all arenas to the system.
    pub fn trim() {
        /// jemalloc's number for all arenas together (`MALLCTL_ARENAS_ALL`).
        const PURGE_ALL: &std::ffi::CStr = c"arena.4096.purge";
        let none = std::ptr::null_mut();
        // SAFETY: the name is a C string, and the command takes and returns nothing.
        unsafe {
            tikv_jemalloc_sys::mallctl(PURGE_ALL.as_ptr(), none, none.cast(), none, 0);
        }
    }
}

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
    // A chunk has a word of its own, and is a multiple of two (glibc manual, malloc/malloc.c).
    let glibc = cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"));
    glibc.then(|| (layout.size() + 8).next_multiple_of(16).max(32))
}

/// The objects that lie beside an object of the allocator: those of its size class, or whichever
/// was allocated next.
pub fn among() -> Among {
    let classes = cfg!(all(feature = "alloc-jemalloc", not(target_env = "msvc")));
    if classes { Among::Size } else { Among::All }
}

/// The name of the allocator in results.
pub fn name() -> &'static str {
    if cfg!(all(feature = "alloc-jemalloc", not(target_env = "msvc"))) {
        "jemalloc thp:always"
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
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
