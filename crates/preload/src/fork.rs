//! The memory in which a process runs: its own, a copy of its parent's, or its parent's itself.
//!
//! `fork` copies the memory. The child owns the copy and begins a trace of its own; at the fork,
//! other threads of the parent may have been in the middle of anything. `vfork` copies nothing:
//! objects that the child allocates belong to its parent afterwards, and go to the parent's trace.
//!
//! # How a copy is recognised
//! A word lies in memory that the kernel wipes in a copy and nowhere else (`MADV_WIPEONFORK`, Linux
//! 4.14, madvise(2)). Handlers of `fork` (`pthread_atfork`) are not enough. In a child, handlers of
//! libraries whose constructors ran before ours come first and may allocate, and `clone` calls
//! none. A handler that keeps the lock over the fork is no solution either: it would hold the lock
//! while handlers of other libraries wait for threads that allocate.
//!
//! If the kernel does not wipe, a handler does. A process with another number than the owner, which
//! no handler has marked, may be of either kind. It is not traced, and the check costs a system
//! call each time.
//!
//! # Memory ordering
//!
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | the word | `in_copy` load | Acquire | `in_copy` to `TAKEN_OVER` | the thread sees the state that was taken over |
//! | the word | `in_copy` to `TAKING_OVER` | Acquire | – | the take-over begins after it |
//! | the word | `in_copy` to `TAKEN_OVER` | Release | `in_copy` load | publishes the state that was taken over |
//! | the word | all others | Relaxed | – | before tracing begins, or by the only thread of a child, or for a value that this process does not change |
//! | `WORD` | all | Relaxed | – | set before tracing begins, and constant from then on |
//! | `OWNER` | all | Relaxed | – | set before tracing begins or before the word; an old value is not this process's number |

use crate::sites::Mapped;
use libc::{MADV_WIPEONFORK, c_int};
use silvics_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The memory is a copy made by `fork` that no thread has taken over: the value to which the kernel
/// wipes the word.
const COPY: u32 = 0;
const TAKING_OVER: u32 = 1;
/// The memory is a copy that its own process has taken over.
const TAKEN_OVER: u32 = 2;
/// The memory has not been copied since tracing began.
const ORIGINAL: u32 = 3;

/// The word that the kernel wipes, or null if it does not.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// The word that is used if the kernel does not wipe.
static KEPT: AtomicU32 = AtomicU32::new(ORIGINAL);
/// The number of the process that owns the memory.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Makes this process the owner. Called before tracing begins.
pub(crate) fn begin() {
    OWNER.store(process(), Ordering::Relaxed);
    if let Some(word) = wiped() {
        WORD.store(std::ptr::from_ref(word).cast_mut(), Ordering::Relaxed);
    }
    // This process may be a child of one that traced nothing.
    word().store(ORIGINAL, Ordering::Relaxed);
}

/// Makes a word that the kernel wipes in copies, if it supports that.
fn wiped() -> Option<&'static AtomicU32> {
    // SAFETY: zero is a valid value of an atomic word.
    let words = unsafe { Mapped::<AtomicU32>::zeros(1) }?;
    let word: *const AtomicU32 = words.as_ref().first()?;
    // SAFETY: the range is the page mapped above.
    let advise = |advice: c_int| unsafe {
        libc::madvise(word.cast_mut().cast(), size_of::<AtomicU32>(), advice) == 0
    };
    // An emulator that ignores all advice accepts invalid advice too (qemu, according to
    // `fork_detect.c` of BoringSSL).
    if advise(-1) || !advise(MADV_WIPEONFORK) {
        return None;
    }
    std::mem::forget(words);
    // SAFETY: the page is never unmapped.
    Some(unsafe { &*word })
}

fn word() -> &'static AtomicU32 {
    // SAFETY: null, or the word that `begin` made, which stays mapped.
    unsafe { WORD.load(Ordering::Relaxed).as_ref() }.unwrap_or(&KEPT)
}

/// The number of the process that owns the memory.
pub(crate) fn owner() -> u32 {
    OWNER.load(Ordering::Relaxed)
}

/// Whether this process owns the memory, and is not a child that runs in it.
pub(crate) fn is_owner() -> bool {
    owner() == process()
}

/// Whether the memory is a copy that no thread has taken over.
pub(crate) fn is_copy() -> bool {
    word().load(Ordering::Relaxed) == COPY
}

/// Whether the memory was copied at any time since tracing began. Then threads that stayed behind
/// may hold locks of the C library.
pub(crate) fn was_copied() -> bool {
    word().load(Ordering::Relaxed) != ORIGINAL
}

/// Whether it is unknown if the memory is a copy or the parent's: neither the kernel nor a handler
/// marked it.
pub(crate) fn is_untold() -> bool {
    WORD.load(Ordering::Relaxed).is_null() && !is_copy() && !is_owner()
}

/// Wipes the word as the kernel would. Called in the child of a `fork`.
pub(crate) fn tell() {
    KEPT.store(COPY, Ordering::Relaxed);
}

/// Calls `take_over` if the memory is a copy, with this process as its owner. Other threads wait.
///
/// It is called once, unless a signal handler forks meanwhile. That handler's child returns to this
/// function with the word wiped, and takes over from its own parent.
pub(crate) fn in_copy(take_over: impl Fn()) {
    let word = word();
    let step =
        |from, to, ordering| word.compare_exchange(from, to, ordering, Ordering::Relaxed).is_ok();
    while word.load(Ordering::Acquire) < TAKEN_OVER {
        if step(COPY, TAKING_OVER, Ordering::Acquire) {
            OWNER.store(process(), Ordering::Relaxed);
            take_over();
            step(TAKING_OVER, TAKEN_OVER, Ordering::Release);
        } else {
            // SAFETY: `sched_yield` has no precondition.
            unsafe { libc::sched_yield() };
        }
    }
}

fn process() -> u32 {
    // SAFETY: `getpid` has no precondition.
    unsafe { libc::getpid() as u32 }
}
