//! Whose memory a process runs in: its own, a copy of its parent's, or its parent's itself.
//!
//! `fork` copies the memory. The copy's owner is the child, which begins a trace of its own; other
//! threads of the parent may have been in the middle of anything. `vfork` copies nothing: what the
//! child allocates is its parent's afterwards, and goes to the parent's trace.
//!
//! # How a copy is told
//! By a word in memory that the kernel wipes in a copy and nowhere else (`MADV_WIPEONFORK`, Linux
//! 4.14, madvise(2)). Handlers of `fork` (`pthread_atfork`) are not enough: those of libraries whose
//! constructors ran before ours come first in a child and may allocate, and `clone` calls none. Nor
//! is there one that keeps the lock over the fork: it would have it while other libraries' handlers
//! wait for threads that allocate.
//!
//! Where the kernel does not wipe, a handler does. A process that has another number than the owner,
//! and was not told, may be of either kind: it is not traced, which costs a system call each time.
//!
//! # Memory ordering
//!
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | the word | `in_copy` load | Acquire | `in_copy` to `TAKEN_OVER` | what was taken over is seen |
//! | the word | `in_copy` to `TAKING_OVER` | Acquire | – | taking over begins behind it |
//! | the word | `in_copy` to `TAKEN_OVER` | Release | `in_copy` load | publishes what was taken over |
//! | the word | all others | Relaxed | – | before tracing begins, by the one thread of a child, or for a value that this process does not change |
//! | `WORD` | all | Relaxed | – | set before tracing begins, and not changed then |
//! | `OWNER` | all | Relaxed | – | set before tracing begins or before the word; an old value is not this process's number |

use crate::sites::Mapped;
use libc::{MADV_WIPEONFORK, c_int};
use silvics_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Memory that a `fork` copied and nobody took over: what the kernel leaves of the word.
const COPY: u32 = 0;
const TAKING_OVER: u32 = 1;
/// A copy that is its process's own.
const TAKEN_OVER: u32 = 2;
/// No copy since tracing began.
const ORIGINAL: u32 = 3;

/// The word that the kernel wipes, or null where it does not.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// The word where the kernel does not wipe.
static KEPT: AtomicU32 = AtomicU32::new(ORIGINAL);
/// The process that the memory is of.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Makes this process the owner. Before tracing begins.
pub(crate) fn begin() {
    OWNER.store(process(), Ordering::Relaxed);
    if let Some(word) = wiped() {
        WORD.store(std::ptr::from_ref(word).cast_mut(), Ordering::Relaxed);
    }
    // This may be a child of a process that traced nothing.
    word().store(ORIGINAL, Ordering::Relaxed);
}

/// A word that the kernel wipes in copies, if it does such a thing.
fn wiped() -> Option<&'static AtomicU32> {
    // SAFETY: zero is an atomic word's value.
    let words = unsafe { Mapped::<AtomicU32>::zeros(1) }?;
    let word: *const AtomicU32 = words.as_ref().first()?;
    // SAFETY: the page that was mapped above.
    let advise = |advice: c_int| unsafe {
        libc::madvise(word.cast_mut().cast(), size_of::<AtomicU32>(), advice) == 0
    };
    // An emulator that passes over all advice accepts this, too (qemu, as `fork_detect.c` of BoringSSL
    // has it).
    if advise(-1) || !advise(MADV_WIPEONFORK) {
        return None;
    }
    std::mem::forget(words);
    // SAFETY: never unmapped.
    Some(unsafe { &*word })
}

fn word() -> &'static AtomicU32 {
    // SAFETY: null, or the word that `begin` found, which stays mapped.
    unsafe { WORD.load(Ordering::Relaxed).as_ref() }.unwrap_or(&KEPT)
}

/// The number of the process that the memory is of.
pub(crate) fn owner() -> u32 {
    OWNER.load(Ordering::Relaxed)
}

/// Whether this process is the one that the memory is of, and no child in the midst of it.
pub(crate) fn is_owner() -> bool {
    owner() == process()
}

/// Whether the memory is a copy that nobody has taken over.
pub(crate) fn is_copy() -> bool {
    word().load(Ordering::Relaxed) == COPY
}

/// Whether the memory was copied at any time since tracing began: locks of the C library may be held
/// by threads that stayed behind.
pub(crate) fn was_copied() -> bool {
    word().load(Ordering::Relaxed) != ORIGINAL
}

/// Whether the memory may be a copy or its parent's: nobody told.
pub(crate) fn is_untold() -> bool {
    WORD.load(Ordering::Relaxed).is_null() && !is_copy() && !is_owner()
}

/// What the kernel does elsewhere. In the child of a `fork`.
pub(crate) fn tell() {
    KEPT.store(COPY, Ordering::Relaxed);
}

/// Calls `take_over` in a copy, with this process as its owner; other threads wait.
///
/// Once, unless a signal handler forks meanwhile: its child comes back to here with the word wiped, and
/// takes over from its own parent.
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
            // SAFETY: always succeeds.
            unsafe { libc::sched_yield() };
        }
    }
}

fn process() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::getpid() as u32 }
}
