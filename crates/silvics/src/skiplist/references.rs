//! The word that holds the number of references to a node, and its height.
//!
//! A reference is a level that links the node, a level that its builder will still link, or a
//! cursor that stands at it (I4). The thread that gives up the last reference retires the node.
//! After that no thread takes a reference.

use crate::canary::{Canary, planted};
use silvics_sync::atomic::{AtomicU32, Ordering};

/// The bits of the height in the word `references << 6 | (height - 1)`.
const HEIGHT_BITS: u32 = 6;
const HEIGHT_MASK: u32 = (1 << HEIGHT_BITS) - 1;
const ONE: u32 = 1 << HEIGHT_BITS;

const _: () = assert!(super::node::MAX_HEIGHT <= 1 << HEIGHT_BITS);

#[repr(transparent)]
pub(super) struct References {
    word: AtomicU32,
}

#[cfg(not(silvics_loom))] // loom's atomics are larger
const _: () = assert!(size_of::<References>() == 4);

/// Whether the reference given up was the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the last reference must retire the node"]
pub(super) enum Dropped {
    Last,
    Others,
}

impl References {
    /// The references of a new node: one for each level that it will be linked in.
    #[inline]
    pub(super) fn new(height: usize) -> Self {
        Self { word: AtomicU32::new((height as u32) << HEIGHT_BITS | (height as u32 - 1)) }
    }

    /// The node's height, which never changes.
    #[inline(always)]
    pub(super) fn height(&self) -> usize {
        (self.word.load(Ordering::Relaxed) & HEIGHT_MASK) as usize + 1
    }

    /// The number of references.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.word.load(Ordering::Relaxed) >> HEIGHT_BITS
    }

    /// Takes a reference. Returns false if the last one is gone.
    #[inline]
    #[must_use]
    pub(super) fn try_add(&self) -> bool {
        self.word
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
                if word > u32::MAX / 2 {
                    std::process::abort(); // 2^25 forgotten cursors, as `Arc` does
                }
                (word > HEIGHT_MASK).then_some(word + ONE)
            })
            .is_ok()
    }

    /// Gives up `count` references.
    #[inline]
    pub(super) fn give_up(&self, count: usize) -> Dropped {
        let given = ONE * count as u32;
        let before = self.word.fetch_sub(given, Ordering::AcqRel);
        debug_assert!(before >= given);
        if is_last(before, given) { Dropped::Last } else { Dropped::Others }
    }
}

/// Whether the word `before`, less the `given` references, counts none.
#[inline(always)]
fn is_last(before: u32, given: u32) -> bool {
    if planted(Canary::RetiredWhileLinked) {
        return before >> HEIGHT_BITS == (before & HEIGHT_MASK) + 1;
    }
    before - given <= HEIGHT_MASK
}

/// Loom explores every execution of these tests (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::cell::UnsafeCell;
    use std::sync::Arc;

    /// The protocol of the word, or of a weaker twin.
    trait Count: Send + Sync + 'static {
        fn try_add(&self) -> bool;
        fn give_up(&self, count: usize) -> Dropped;
    }

    impl Count for References {
        fn try_add(&self) -> bool {
            self.try_add()
        }
        fn give_up(&self, count: usize) -> Dropped {
            self.give_up(count)
        }
    }

    /// A twin that gives up references without acquiring the uses through other references.
    struct ReleaseOnly(References);
    impl Count for ReleaseOnly {
        fn try_add(&self) -> bool {
            self.0.try_add()
        }
        fn give_up(&self, count: usize) -> Dropped {
            let given = ONE * count as u32;
            let before = self.0.word.fetch_sub(given, Ordering::Release);
            if before - given <= HEIGHT_MASK { Dropped::Last } else { Dropped::Others }
        }
    }

    /// A twin that may take a reference to a node that has none.
    struct Resurrecting(References);
    impl Count for Resurrecting {
        fn try_add(&self) -> bool {
            let present = self.0.word.load(Ordering::Relaxed) > HEIGHT_MASK;
            if present {
                self.0.word.fetch_add(ONE, Ordering::Relaxed);
            }
            present
        }
        fn give_up(&self, count: usize) -> Dropped {
            self.0.give_up(count)
        }
    }

    /// A node: readers read `content`, and the thread that retires it writes it.
    struct Node<C> {
        references: C,
        content: UnsafeCell<u32>,
    }

    // SAFETY: a thread reads the content under a reference, and writes it when none is left; loom
    // checks this.
    unsafe impl<C: Sync> Sync for Node<C> {}
    // SAFETY: a node may be dropped by any thread: its content is a number.
    unsafe impl<C: Send> Send for Node<C> {}

    impl<C: Count> Node<C> {
        fn give_up(&self, count: usize) {
            if self.references.give_up(count) == Dropped::Last {
                // SAFETY: no thread has a reference, and this is the first use after the last one.
                let retired = self.content.with_mut(|content| unsafe {
                    *content += 1;
                    *content
                });
                assert_eq!(retired, 1, "retired twice");
            }
        }

        /// A cursor takes a reference, reads, and gives it up.
        fn visit(&self) {
            if self.references.try_add() {
                // SAFETY: we hold a reference.
                let retired = self.content.with(|content| unsafe { *content });
                assert_eq!(retired, 0, "a reference to a node that is retired");
                self.give_up(1);
            }
        }
    }

    /// A remover and a builder give up the two references of a node of height 2, while a cursor
    /// visits it.
    fn removed_while_visited<C: Count>(
        references: impl Fn(References) -> C + Send + Sync + 'static,
    ) {
        loom::model(move || {
            let references = references(References::new(2));
            let node = Arc::new(Node { references, content: UnsafeCell::new(0) });
            let spawn = |work: fn(&Node<C>)| {
                let node = Arc::clone(&node);
                thread::spawn(move || work(&node))
            };
            let others = [spawn(Node::visit), spawn(|node| node.give_up(1))];
            node.give_up(1);
            for other in others {
                other.join().unwrap();
            }
            // SAFETY: all threads have ended.
            assert_eq!(node.content.with(|content| unsafe { *content }), 1, "never retired");
        });
    }

    #[test]
    fn a_node_is_retired_once_and_after_its_last_use() {
        removed_while_visited(|references| references);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn giving_up_without_acquire_is_caught() {
        removed_while_visited(ReleaseOnly);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_reference_from_nothing_is_caught() {
        removed_while_visited(Resurrecting);
    }
}
