//! The count of the updates in progress in a block.

use silvics_sync::atomic::{AtomicU32, Ordering};
use silvics_sync::backoff::Backoff;

/// The bit that keeps updates out.
const BARRED: u32 = 1 << 31;

/// The number of updates in progress, and whether further ones are kept out.
///
/// An update counts itself, and leaves again if it finds itself barred. A thread that removes
/// entries or copies the block bars updates, and waits until none is counted.
pub(super) struct Updates(AtomicU32);

impl Updates {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts an update. Returns false if updates are kept out.
    #[inline]
    #[must_use]
    pub(super) fn begin(&self) -> bool {
        if self.0.fetch_add(1, Ordering::Acquire) & BARRED == 0 {
            return true;
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Ends an update that [`Updates::begin`] has counted.
    #[inline(always)]
    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Keeps updates out, and waits for those in progress.
    pub(super) fn bar(&self) {
        let mut backoff = Backoff::new();
        self.0.fetch_or(BARRED, Ordering::Acquire);
        while self.0.load(Ordering::Acquire) != BARRED {
            backoff.wait();
        }
    }

    /// Lets updates in again.
    pub(super) fn unbar(&self) {
        self.0.fetch_and(!BARRED, Ordering::Release);
    }

    /// Whether no update is in progress, and none is kept out.
    pub(super) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Loom explores every execution of these tests (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::atomic::AtomicU64;
    use std::sync::Arc;

    /// A value that updates replace, and a thread that bars updates copies.
    fn no_update_is_lost(end: fn(&Updates)) {
        loom::model(move || {
            let shared = Arc::new((Updates::new(), AtomicU64::new(0)));
            let update = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (updates, value) = &*shared;
                    let counted = updates.begin();
                    if counted {
                        value.store(1, Ordering::Relaxed);
                        end(updates);
                    }
                    counted
                })
            };
            let (updates, value) = &*shared;
            updates.bar();
            let copied = value.load(Ordering::Relaxed);
            let counted = update.join().unwrap();
            // The update came first, and the copy has it; or it was kept out.
            assert_eq!(copied == 1, counted, "an update is lost");
        });
    }

    #[test]
    fn a_copy_has_every_update_that_was_counted() {
        no_update_is_lost(Updates::end);
    }

    /// A twin whose updates do not publish what they have written.
    #[test]
    #[should_panic(expected = "an update is lost")]
    fn an_update_that_publishes_nothing_is_lost() {
        no_update_is_lost(|updates| {
            updates.0.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
