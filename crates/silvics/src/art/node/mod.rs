//! Nodes of the four sizes, over what their places hold.
//!
//! [`lines`] has the nodes whose places lie with their keys (`Node4`, `Node14`, `Node56`), [`full`]
//! the node with a place for each byte (`Node256`), [`any`] a node whose size a word says, and
//! [`layout`] the descriptions of all of them.

mod any;
mod full;
mod keys;
mod layout;
mod lines;

pub(super) use any::{AnyPlace, AnySize, NodeRef, Visit, full, header, place};
pub(super) use full::Node256;
pub(super) use layout::{LINE, NODES, PREFIX, line_of, places, prefetch_whole};
pub(super) use lines::{Node4, Node14, Node56, four};

use super::digits::Digits;
use super::key::Digit;
use super::word::Content;
use silvics_sync::atomic::{AtomicU32, Ordering};
use silvics_sync::version::VersionLock;

/// The head of every node.
#[repr(C)]
pub(super) struct Header {
    pub(super) lock: VersionLock,
    /// The bytes in which all keys below agree, as far as a word holds them: see
    /// [`DigitKey::before`](super::key::DigitKey::before).
    pub(super) prefix: u64,
    /// The number of places that are not empty. Protected by the lock.
    live: AtomicU32,
    /// The number of places that belong to a digit. Protected by the lock. Unused in a `Node256`.
    used: AtomicU32,
}

impl Header {
    fn new(prefix: u64) -> Self {
        Self { lock: VersionLock::new(), prefix, live: AtomicU32::new(0), used: AtomicU32::new(0) }
    }

    /// The number of places that are not empty. Exact under the lock.
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed) as usize
    }

    /// Changes the number of places that are not empty. The caller holds the lock.
    pub(super) fn count(&self, change: isize) {
        let live = self.live().wrapping_add_signed(change);
        self.live.store(live as u32, Ordering::Relaxed);
    }

    /// The number of places that belong to a digit. Exact under the lock.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed) as usize
    }

    /// Lets `add` give a place to a digit, unless `limit` places belong to one. Returns whether it
    /// did. The caller holds the lock.
    fn use_another(&self, limit: usize, add: impl FnOnce() -> bool) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        let added = (used as usize) < limit && add();
        if added {
            self.used.store(used + 1, Ordering::Relaxed);
        }
        added
    }
}

/// A node of one of the sizes.
pub(super) trait Node<C: Content>: Sized + Send + 'static {
    /// The most digits that the node takes.
    const LIMIT: usize;

    fn new(prefix: u64) -> Self;
    fn header(&self) -> &Header;
    /// The place of a digit, if it has one.
    fn find(&self, digit: Digit) -> Option<&C::Atomic>;
    /// Gives a place to a digit that has none. Returns false if no place is left. The caller holds
    /// the lock, or without `SHARED` the node is not linked yet.
    fn add<const SHARED: bool>(&self, digit: Digit, content: C) -> bool;
    /// The digits that may have a place that is not empty.
    fn digits(&self) -> Digits;
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::super::digits::number;
    use super::*;

    /// Every order of digits finds its places, up to the node's limit.
    fn takes_any_digits<N: Node<u64>>() {
        let most = N::LIMIT;
        for step in [1_u8, 3, 16, 17, 64, 85, 255] {
            for end in [0, most / 2, most] {
                let node = N::new(0);
                let mut taken = Vec::new();
                let mut byte = 7_u8;
                let take = |digit: Digit, taken: &mut Vec<Digit>| {
                    let added =
                        node.find(digit).is_none() && node.add::<true>(digit, number(digit) as u64);
                    taken.extend(added.then_some(digit));
                    added
                };
                while taken.len() < most {
                    // A full first line has no place for the end.
                    if taken.len() == end && !taken.contains(&None) && take(None, &mut taken) {
                        continue;
                    }
                    if !take(Some(byte), &mut taken) {
                        byte = byte.wrapping_add(1);
                    }
                    byte = byte.wrapping_add(step);
                }
                let more = (0..=255).find(|byte| node.find(Some(*byte)).is_none()).unwrap();
                assert!(!node.add::<true>(Some(more), 1));
                for digit in (0..=255).map(Some).chain([None]) {
                    let found = node.find(digit).map(u64::load);
                    let wanted = taken.contains(&digit).then_some(number(digit) as u64);
                    assert_eq!(found, wanted, "{digit:?} of {taken:?}");
                }
                assert!(end > 0 || taken[0].is_none());
            }
        }
    }

    #[test]
    fn nodes_take_any_digits() {
        takes_any_digits::<Node4<u64>>();
        takes_any_digits::<Node14<u64>>();
        takes_any_digits::<Node56<u64>>();
    }
}
