//! Writes what a program allocates and frees, as a trace for `silvics inspect --trace`.
//!
//! ```text
//! cargo build --release -p silvics-preload
//! SILVICS_TRACE=/tmp/trace.%p LD_PRELOAD=target/release/libsilvics_preload.so PROGRAM
//! ```
//!
//! | variable | means |
//! |---|---|
//! | `SILVICS_TRACE` | the file to write, `%p` in it the number of the process; without it nothing is traced |
//! | `SILVICS_TRACE_DEPTH` | frames that make up a site, from 1 (the default: the direct caller) to 16 |
//!
//! A value that cannot be used is one sentence on standard error, and the program runs untraced.
//!
//! # What is traced
//! `malloc`, `calloc`, `realloc`, `free`, `posix_memalign`, `aligned_alloc`, `memalign`, `valloc` and
//! `pvalloc`, with the sizes that were asked for, from the first that follows the start of the C
//! library. The format is that of `silvics_layout::Trace`. Kinds are allocation sites:
//! `OBJECT!FUNCTION+0xOFFSET` of the address that the call returns to, or `OBJECT+0xOFFSET` where no
//! dynamic symbol holds it (`addr2line -f -e OBJECT 0xOFFSET` knows more, where there is debug
//! information), or `?+0xADDRESS` in code that belongs to no object. If all sites lie in a wrapper
//! (`operator new`, `g_malloc`), take more frames: they are joined by `<`, the innermost first, and
//! found by unwinding, which costs about a microsecond each.
//!
//! Nothing is seen of programs that are linked statically, bring their own `malloc` or run with more
//! rights than their user, nor of `mmap`. A site in a library that was unloaded may lend its name to
//! code that is loaded in its place.
//!
//! # Processes
//! One process at a time writes to a file, which is locked meanwhile: children leave their parent's
//! alone, and with `%p` in the name each has its own. (So of `timeout 9 PROGRAM` without `%p` it is
//! `timeout` that is traced: write `timeout 9 env LD_PRELOAD=… PROGRAM`.) A child's trace begins at
//! the fork: frees of older objects are unknown in it. Its sites have names where the C library finds
//! an object without a lock (glibc 2.35); elsewhere they are addresses of one frame. After an `exec`
//! the new program's trace takes the place of the old one's. A file that another process is writing
//! is left to it without a word.
//!
//! A child of `vfork` allocates in its parent's memory, so the parent's trace has it. What the child
//! cannot write, because it closed the descriptor or lowered a limit, its parent writes: of more than
//! 128 KiB of text the rest is missing, and its events are counted on standard error. Only where the
//! kernel cannot tell it from a copy (before Linux 4.14, and in some emulators) it is missing; so is
//! there what a child of `fork` allocates in handlers that libraries registered before this object
//! (`pthread_atfork`), and all of a child that was made without handlers.
//!
//! # When the last lines are written
//! At `exit`, `_exit` and `exec` (except `execl` and its like). A program that is killed by a signal
//! loses at most 64 KiB of text, its last lines. A file that cannot be written any more, or no memory
//! for the name of a site, ends the trace, with a sentence on standard error; what it holds by then is
//! whole.
//!
//! # What the program notices
//! Time, a descriptor with a high number, and a key for thread-specific values. Error numbers are
//! kept. The tracer's memory is static or mapped; only unwinding may allocate, untraced. All threads
//! take turns at one lock, under which `realloc` runs.

// Elsewhere the object is empty.
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
