//! The global allocator, which serves the peers, and our indexes where they are placed `shared`.

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

/// Its name, as rows of results carry it.
pub fn name() -> &'static str {
    if cfg!(all(feature = "alloc-jemalloc", not(target_env = "msvc"))) {
        "jemalloc thp:always"
    } else if cfg!(all(target_os = "linux", target_env = "gnu")) {
        "glibc malloc"
    } else {
        "system malloc"
    }
}

/// Returns what is free to the system, so that the growth of the resident set tells what is built
/// next, and not how it fits into the gaps of what was there before.
pub fn trim() {
    #[cfg(all(feature = "alloc-jemalloc", not(target_env = "msvc")))]
    jemalloc::trim();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
