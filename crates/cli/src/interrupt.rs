//! Ctrl-C: a run stops at the next opportunity and what is finished is printed.

use silvics_sync::atomic::{AtomicBool, AtomicU64, Ordering};

static PENDING: AtomicBool = AtomicBool::new(false);

/// The exit code of a command that was interrupted: 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

/// Catches the interrupt from now on. A second one ends the process at once.
pub fn catch() {
    // Without a handler the interrupt ends the process: no reason to refuse to run.
    let _ = ctrlc::set_handler(|| {
        if PENDING.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_CODE));
        }
    });
}

/// Whether there was an interrupt.
#[inline]
pub fn pending() -> bool {
    PENDING.load(Ordering::Relaxed)
}

/// How often somebody has asked, which tells that the work goes on.
static BEATS: AtomicU64 = AtomicU64::new(0);

/// Whether the user has interrupted the command. Also counts the call.
pub fn pending_beat() -> bool {
    BEATS.fetch_add(1, Ordering::Relaxed);
    pending()
}

/// How often [`pending_beat`] was called.
pub fn beats() -> u64 {
    BEATS.load(Ordering::Relaxed)
}
