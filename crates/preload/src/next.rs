//! The definitions that would be called if this object were not loaded, and memory for calls that
//! come before these are known.
//!
//! `dlsym` may allocate. Memory requested meanwhile comes from a small static arena and is never
//! reused; `free` and `realloc` recognise its addresses.
//!
//! # Memory ordering
//!
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `Next.at` | `get` | Relaxed | – | an address of code that was mapped before, or null until it is known |
//! | `Next.at` | `resolve` | Relaxed | – | read after the phase, whose store releases (`tracer.rs`) |
//! | `USED` | `fetch_add` | Relaxed | – | gives each caller bytes of its own; nothing is published |

use crate::name::DlFindObject;
use libc::{RTLD_NEXT, c_char, c_int, c_void, dlsym, size_t};
use silvics_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use silvics_sync::cell::UnsafeCell;
use std::ffi::CStr;
use std::marker::PhantomData;

/// A function of type `F` that a library loaded after this one defines.
pub(crate) struct Next<F> {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    const fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        Self { name, at: AtomicPtr::new(std::ptr::null_mut()), function: PhantomData }
    }

    fn resolve(&self) {
        // SAFETY: a C string, and a handle that is always valid.
        let at = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(at, Ordering::Relaxed);
    }

    /// The function, if there is one and [`resolve_all`] has run.
    pub(crate) fn get(&self) -> Option<F> {
        let at = self.at.load(Ordering::Relaxed);
        // SAFETY: F is a function pointer (its size is asserted, and each static below names one)
        // of the type that C gives to the symbol of this name.
        (!at.is_null()).then(|| unsafe { std::mem::transmute_copy(&at) })
    }
}

macro_rules! next {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        $(pub(crate) static $name: Next<unsafe extern "C" fn($($argument),*) -> $result> =
            Next::new($symbol);)*

        /// Looks up all of them. A missing one stays null; its callers report that there is no
        /// memory, or do without.
        pub(crate) fn resolve_all() {
            $($name.resolve();)*
        }
    };
}

type Words = *const *const c_char;

next! {
    MALLOC = c"malloc": fn(size_t) -> *mut c_void;
    CALLOC = c"calloc": fn(size_t, size_t) -> *mut c_void;
    REALLOC = c"realloc": fn(*mut c_void, size_t) -> *mut c_void;
    FREE = c"free": fn(*mut c_void) -> ();
    POSIX_MEMALIGN = c"posix_memalign": fn(*mut *mut c_void, size_t, size_t) -> c_int;
    ALIGNED_ALLOC = c"aligned_alloc": fn(size_t, size_t) -> *mut c_void;
    MEMALIGN = c"memalign": fn(size_t, size_t) -> *mut c_void;
    VALLOC = c"valloc": fn(size_t) -> *mut c_void;
    PVALLOC = c"pvalloc": fn(size_t) -> *mut c_void;
    EXECV = c"execv": fn(*const c_char, Words) -> c_int;
    EXECVE = c"execve": fn(*const c_char, Words, Words) -> c_int;
    EXECVP = c"execvp": fn(*const c_char, Words) -> c_int;
    EXECVPE = c"execvpe": fn(*const c_char, Words, Words) -> c_int;
    FEXECVE = c"fexecve": fn(c_int, Words, Words) -> c_int;
    DL_FIND_OBJECT = c"_dl_find_object": fn(*mut c_void, *mut DlFindObject) -> c_int;
}

/// The bytes of the arena. glibc requests some dozens.
const ARENA: usize = 16 << 10;
/// The alignment of blocks, sufficient for any type, and the room for the length in front of each.
const ALIGN: usize = 16;

#[repr(align(16))]
struct Arena(UnsafeCell<[u8; ARENA]>);
// SAFETY: `USED` gives each block to one caller.
unsafe impl Sync for Arena {}

static ARENA_BYTES: Arena = Arena(UnsafeCell::new([0; ARENA]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory of the arena for `size` bytes, or null if the arena is used up.
pub(crate) fn early(size: usize) -> *mut c_void {
    let whole = size.min(ARENA).next_multiple_of(ALIGN) + ALIGN;
    let start = USED.fetch_add(whole, Ordering::Relaxed);
    // A sum that is too large stays too large: there are not enough calls to wrap it.
    if size > ARENA || start + whole > ARENA {
        return std::ptr::null_mut();
    }
    ARENA_BYTES.0.with_mut(|arena| {
        let block = arena.cast::<u8>().wrapping_add(start);
        // SAFETY: inside the arena, aligned for a word, and this caller's alone.
        unsafe { block.cast::<usize>().write(size) };
        block.wrapping_add(ALIGN).cast()
    })
}

/// The length of the block of the arena that begins at `at`, or `None` for any other address.
pub(crate) fn early_size(at: *const c_void) -> Option<usize> {
    let arena = ARENA_BYTES.0.with(<*const [u8; ARENA]>::addr);
    // SAFETY: every address in the arena that a caller has came from `early`, and the length lies
    // in front of it.
    (arena..arena + ARENA)
        .contains(&at.addr())
        .then(|| unsafe { at.byte_sub(ALIGN).cast::<usize>().read() })
}
