//! The functions that programs call instead of the C library's.
//!
//! Each allocating function is naked and passes its return address on as one more argument, because
//! Rust cannot read that address otherwise. The stack does not change, so unwinding sees the caller
//! next.

use crate::next;
use crate::tracer;
use libc::{ENOMEM, c_char, c_int, c_void, size_t};
use std::arch::naked_asm;

/// Defines an exported function with the given integer arguments, and names the function that does
/// its work.
macro_rules! entry {
    ($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $work:ident, $x86:literal, $arm:literal) => {
        /// See the C library's function of this name.
        ///
        /// # Safety
        /// That function's contract.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {work}", work = sym $work);
            #[cfg(target_arch = "aarch64")]
            naked_asm!(concat!("mov ", $arm, ", x30"), "b {work}", work = sym $work);
        }
    };
}

entry!(malloc(size: size_t) -> *mut c_void, malloc_for, "rsi", "x1");
entry!(valloc(size: size_t) -> *mut c_void, valloc_for, "rsi", "x1");
entry!(pvalloc(size: size_t) -> *mut c_void, pvalloc_for, "rsi", "x1");
entry!(calloc(count: size_t, size: size_t) -> *mut c_void, calloc_for, "rdx", "x2");
entry!(realloc(old: *mut c_void, size: size_t) -> *mut c_void, realloc_for, "rdx", "x2");
entry!(aligned_alloc(align: size_t, size: size_t) -> *mut c_void, aligned_alloc_for, "rdx", "x2");
entry!(memalign(align: size_t, size: size_t) -> *mut c_void, memalign_for, "rdx", "x2");
entry!(posix_memalign(to: *mut *mut c_void, align: size_t, size: size_t) -> c_int,
    posix_memalign_for, "rcx", "x3");

/// Allocates by `next`, which may be absent, and records an allocation of `size` bytes.
fn allocate(size: usize, caller: usize, next: impl FnOnce() -> Option<*mut c_void>) -> *mut c_void {
    let inside = tracer::enter();
    let at = next().unwrap_or_else(no_memory);
    if let Some(inside) = inside
        && !at.is_null()
    {
        inside.allocated(caller, at, size);
    }
    at
}

fn no_memory() -> *mut c_void {
    crate::file::set_errno(ENOMEM);
    std::ptr::null_mut()
}

// "See above" in the functions below means: the arguments are the caller's, under the contract of
// the C library function of that name, and that function is called.

unsafe extern "C" fn malloc_for(size: size_t, caller: usize) -> *mut c_void {
    if !tracer::ready() {
        return next::early(size);
    }
    // SAFETY: see above.
    allocate(size, caller, || next::MALLOC.get().map(|malloc| unsafe { malloc(size) }))
}

unsafe extern "C" fn calloc_for(count: size_t, size: size_t, caller: usize) -> *mut c_void {
    let bytes = count.saturating_mul(size);
    if !tracer::ready() {
        return next::early(bytes);
    }
    // SAFETY: see above.
    allocate(bytes, caller, || next::CALLOC.get().map(|calloc| unsafe { calloc(count, size) }))
}

unsafe extern "C" fn valloc_for(size: size_t, caller: usize) -> *mut c_void {
    tracer::ready();
    // SAFETY: see above.
    allocate(size, caller, || next::VALLOC.get().map(|valloc| unsafe { valloc(size) }))
}

unsafe extern "C" fn pvalloc_for(size: size_t, caller: usize) -> *mut c_void {
    tracer::ready();
    // SAFETY: see above.
    allocate(size, caller, || next::PVALLOC.get().map(|pvalloc| unsafe { pvalloc(size) }))
}

unsafe extern "C" fn aligned_alloc_for(align: size_t, size: size_t, caller: usize) -> *mut c_void {
    tracer::ready();
    // SAFETY: see above.
    allocate(size, caller, || next::ALIGNED_ALLOC.get().map(|next| unsafe { next(align, size) }))
}

unsafe extern "C" fn memalign_for(align: size_t, size: size_t, caller: usize) -> *mut c_void {
    tracer::ready();
    // SAFETY: see above.
    allocate(size, caller, || next::MEMALIGN.get().map(|next| unsafe { next(align, size) }))
}

unsafe extern "C" fn posix_memalign_for(
    to: *mut *mut c_void,
    align: size_t,
    size: size_t,
    caller: usize,
) -> c_int {
    tracer::ready();
    let inside = tracer::enter();
    let Some(next) = next::POSIX_MEMALIGN.get() else { return ENOMEM };
    // SAFETY: see above.
    let error = unsafe { next(to, align, size) };
    if let Some(inside) = inside
        && error == 0
    {
        // SAFETY: the successful call has written `to`.
        inside.allocated(caller, unsafe { *to }, size);
    }
    error
}

unsafe extern "C" fn realloc_for(old: *mut c_void, size: size_t, caller: usize) -> *mut c_void {
    if old.is_null() {
        // SAFETY: a `realloc` of null is a `malloc`, both for the program and for the trace.
        return unsafe { malloc_for(size, caller) };
    }
    if let Some(early) = next::early_size(old) {
        // SAFETY: the new block, if any, is separate and has room for the bytes common to both.
        unsafe {
            let new = malloc_for(size, caller);
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), early.min(size));
            }
            return new;
        }
    }
    tracer::ready();
    let Some(next) = next::REALLOC.get() else { return no_memory() };
    // SAFETY: see above.
    let realloc = || unsafe { next(old, size) };
    match tracer::enter() {
        Some(inside) => inside.moved(caller, old, size, realloc),
        None => realloc(),
    }
}

/// See the C library's function of this name.
///
/// # Safety
/// That function's contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(at: *mut c_void) {
    if at.is_null() || next::early_size(at).is_some() || !tracer::ready() {
        return;
    }
    let inside = tracer::enter();
    if let Some(inside) = &inside {
        inside.freed(at);
    }
    if let Some(free) = next::FREE.get() {
        // SAFETY: see above.
        unsafe { free(at) };
    }
}

fn exit_now(status: c_int) -> ! {
    tracer::finish(false);
    // SAFETY: ends the process. The next definition may not be known yet, so it is not called.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    std::process::abort()
}

/// See the C library's function of this name.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    exit_now(status)
}

/// See the C library's function of this name.
#[allow(non_snake_case, reason = "the C library's name")]
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    exit_now(status)
}

/// Defines functions that replace the program, which would discard the text in the buffer.
macro_rules! exec {
    ($($name:ident = $next:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// See the C library's function of this name.
        ///
        /// # Safety
        /// That function's contract.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            tracer::ready();
            tracer::finish(false);
            match next::$next.get() {
                // SAFETY: see above.
                Some(next) => unsafe { next($($argument),*) },
                None => {
                    crate::file::set_errno(libc::ENOSYS);
                    -1
                }
            }
        }
    )*};
}

exec! {
    execv = EXECV(path: *const c_char, arguments: *const *const c_char);
    execve = EXECVE(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char);
    execvp = EXECVP(file: *const c_char, arguments: *const *const c_char);
    execvpe = EXECVPE(file: *const c_char, arguments: *const *const c_char, environment: *const *const c_char);
    fexecve = FEXECVE(fd: c_int, arguments: *const *const c_char, environment: *const *const c_char);
}
