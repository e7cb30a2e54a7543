//! Words of a block that follow a protocol: the count of updates, and the order of the entries.

use silvics_sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
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

/// The number of entries in order while the order is written.
const UNORDERED: u8 = u8::MAX;

/// The order of the first `n` entries of a block: `n`, and words of eight numbers each.
///
/// One thread at a time writes. The order of the first `n` entries never changes, and `n` grows. So
/// a reader that finds the same `n` before and after it has read the words has read that order.
pub(super) struct Order<'g> {
    pub(super) ordered: &'g AtomicU8,
    pub(super) words: &'g [AtomicU64],
}

impl Order<'_> {
    /// Copies the order to `order`, and returns the number of entries.
    #[inline]
    pub(super) fn read(&self, order: &mut [u8]) -> usize {
        let mut backoff = Backoff::new();
        loop {
            let ordered = self.ordered.load(Ordering::Acquire);
            if ordered != UNORDERED {
                for (to, word) in order[..usize::from(ordered)].chunks_mut(8).zip(self.words) {
                    let bytes = word.load(Ordering::Relaxed).to_le_bytes();
                    to.copy_from_slice(&bytes[..to.len()]);
                }
                fence(Ordering::Acquire);
                // Relaxed: see the Acquire fence.
                if self.ordered.load(Ordering::Relaxed) == ordered {
                    return usize::from(ordered);
                }
            }
            backoff.wait();
        }
    }

    /// Writes the order of the first entries.
    pub(super) fn write(&self, order: &[u8]) {
        self.begin_write(Ordering::Release);
        for (word, numbers) in self.words.iter().zip(order.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..numbers.len()].copy_from_slice(numbers);
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        self.ordered.store(order.len() as u8, Ordering::Release);
    }

    /// Says that the order is being written. The fence keeps the words behind it.
    #[inline(always)]
    fn begin_write(&self, ordering: Ordering) {
        self.ordered.store(UNORDERED, Ordering::Relaxed);
        if ordering == Ordering::Release {
            fence(ordering);
        }
    }
}

/// Loom explores every execution of these tests (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
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

    /// A reader beside a writer that replaces the order of one entry by that of nine.
    fn orders_are_whole(begin: Ordering) {
        loom::model(move || {
            let words = [AtomicU64::new(0), AtomicU64::new(0)];
            let shared = Arc::new((AtomicU8::new(9), words));
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let order = Order { ordered: &shared.0, words: &shared.1 };
                    order.begin_write(begin);
                    shared.1[0].store(1, Ordering::Relaxed);
                    shared.1[1].store(1, Ordering::Relaxed);
                    shared.0.store(10, Ordering::Release);
                })
            };
            let (ordered, words) = &*shared;
            // One attempt of `read`.
            let first = ordered.load(Ordering::Acquire);
            if first != UNORDERED {
                let seen = [words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed)];
                fence(Ordering::Acquire);
                if ordered.load(Ordering::Relaxed) == first {
                    let whole = u64::from(first == 10);
                    assert_eq!(seen, [whole, whole], "a torn order");
                }
            }
            writer.join().unwrap();
        });
    }

    #[test]
    fn a_reader_never_takes_a_torn_order() {
        orders_are_whole(Ordering::Release);
    }

    /// A twin without the fence of the writer.
    #[test]
    #[should_panic(expected = "a torn order")]
    fn without_its_fence_a_writer_tears_the_order() {
        orders_are_whole(Ordering::Relaxed);
    }
}
