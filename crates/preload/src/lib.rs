//! A shared object that traces the allocations and frees of a program, for `silvics inspect
//! --trace`.
//!
//! ```text
//! cargo build --release -p silvics-preload
//! SILVICS_TRACE=/tmp/trace.%p LD_PRELOAD=target/release/libsilvics_preload.so PROGRAM
//! ```
//!
//! | variable | meaning |
//! |---|---|
//! | `SILVICS_TRACE` | the file to write, in which `%p` stands for the number of the process; without it nothing is traced |
//! | `SILVICS_TRACE_DEPTH` | the number of frames that make up a site, from 1 (the default: the direct caller) to 16 |
//!
//! If a value cannot be used, the tracer prints one sentence on standard error, and the program
//! runs untraced.
//!
//! # What is traced
//! The tracer records `malloc`, `calloc`, `realloc`, `free`, `posix_memalign`, `aligned_alloc`,
//! `memalign`, `valloc` and `pvalloc`, with the requested sizes. It begins with the first call
//! after the C library has started. `silvics_layout::Trace` describes the format.
//!
//! Kinds are allocation sites. A site is named after the address to which the call returns:
//! `OBJECT!FUNCTION+0xOFFSET`, or `OBJECT+0xOFFSET` if no dynamic symbol contains it. (`addr2line
//! -f -e OBJECT 0xOFFSET` shows more if there is debug information.) Code that belongs to no object
//! is named `?+0xADDRESS`. If all sites lie in a wrapper (`operator new`, `g_malloc`), record more
//! frames. They are joined by `<`, the innermost first, and found by unwinding, which costs about a
//! microsecond each.
//!
//! The tracer does not see `mmap`. Nor does it see programs that are linked statically, that bring
//! their own `malloc`, or that run with more rights than their user. If a library was unloaded,
//! code loaded in its place may get the name of one of its sites.
//!
//! # Processes
//! One process at a time writes to a file, and locks it meanwhile. Children leave their parent's
//! file alone; with `%p` in the name each process has its own. (So `timeout 9 PROGRAM` without `%p`
//! traces `timeout`: write `timeout 9 env LD_PRELOAD=… PROGRAM`.)
//!
//! A child's trace begins at the fork, so frees of older objects are unknown in it. Its sites have
//! names if the C library finds an object without a lock (glibc 2.35); otherwise they are addresses
//! of one frame. After an `exec`, the new program's trace replaces the old one's. If another
//! process is writing to the file, the tracer silently leaves it alone.
//!
//! A child of `vfork` allocates in its parent's memory, so the parent's trace contains its events.
//! If the child cannot write them, because it closed the descriptor or lowered a limit, the parent
//! does so later. It keeps 128 KiB of text; further events are lost, and their number is printed on
//! standard error.
//!
//! Some kernels (before Linux 4.14) and emulators do not let the tracer distinguish a child of
//! `vfork` from a copy. There the events of such a child are missing. So are the events of a `fork`
//! child's handlers that libraries registered before this object (`pthread_atfork`), and all events
//! of a child that was made without handlers.
//!
//! # When the last lines are written
//! The buffer is written at `exit`, `_exit` and `exec` (except `execl` and its variants). A program
//! killed by a signal loses at most its last 64 KiB of text. The trace ends early, with a sentence
//! on standard error, if the file cannot be written any more or memory for the name of a site
//! cannot be allocated. The part written by then is valid.
//!
//! # Effects on the program
//! The tracer takes time, a descriptor with a high number, and a key for thread-specific values. It
//! preserves error numbers. Its memory is static or mapped; only unwinding may allocate, untraced.
//! All threads take turns at one lock, under which `realloc` runs.

// On other platforms the object is empty.
#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod file;
mod fork;
pub mod hooks;
mod lock;
mod name;
mod next;
mod say;
mod sites;
mod text;
mod tracer;
