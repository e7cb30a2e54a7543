//! jemalloc on huge pages as the global allocator.

use std::ffi::c_char;

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
