//! The locks of a node: two versions in one word, with all their transitions.

use super::super::side::Side;
use super::canaries::compared_bits;
use silvics_sync::atomic::{AtomicU64, Ordering};

/// The position in the word of the lock of the edge on `side`.
fn shift(side: Side) -> u32 {
    32 * side.index() as u32
}

/// The lowest bit of each half, which says whether that lock is taken. The other bits are the
/// lock's version. So a half counts up by one when the lock is taken, and when it is given back
/// after a change.
pub(super) const TAKEN: u32 = 1;
/// The bits that say that both locks are taken.
const BOTH_TAKEN: u64 = (TAKEN as u64) << 32 | TAKEN as u64;

/// The two locks of a node, one for each edge.
#[derive(Default)]
pub struct Locks(AtomicU64);

/// The locks as a thread has seen them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen(u64);

impl Seen {
    fn half(self, side: Side) -> u32 {
        (self.0 >> shift(side)) as u32
    }

    /// Whether the lock was taken. If so, the edge may be about to change, or never changes again.
    pub(super) fn is_taken(self, side: Side) -> bool {
        self.half(side) & TAKEN != 0
    }

    /// Whether the lock was the same at both times.
    fn agrees(self, other: Self, side: Side) -> bool {
        (self.half(side) ^ other.half(side)) & compared_bits() == 0
    }
}

impl Locks {
    /// The current locks. An edge that is read afterwards is no older.
    #[inline(always)]
    pub(super) fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Takes a lock if it is free and its version is the one that was seen.
    #[must_use]
    pub(super) fn try_take(&self, side: Side, seen: Seen) -> bool {
        let mut now = seen;
        while !now.is_taken(side) && now.agrees(seen, side) {
            let taken = now.0 + (u64::from(TAKEN) << shift(side));
            match self.0.compare_exchange(now.0, taken, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => now = Seen(other), // the other half alone may have changed
            }
        }
        false
    }

    /// Takes both locks if they are free and their versions are those that were seen.
    #[must_use]
    pub(super) fn try_take_both(&self, seen: Seen) -> bool {
        let taken = seen.0 | BOTH_TAKEN;
        let is_free = seen.0 & BOTH_TAKEN == 0;
        is_free
            && self.0.compare_exchange(seen.0, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives a lock back: with the next version if the edge has `changed`, else as it was before it
    /// was taken.
    ///
    /// # Safety
    /// The caller owns the lock.
    pub(super) unsafe fn give_back(&self, side: Side, changed: bool) {
        // Relaxed: only the owner of the lock changes this half.
        let half = Seen(self.0.load(Ordering::Relaxed)).half(side);
        debug_assert!(half & TAKEN != 0, "given back without being taken");
        let free = if changed { half.wrapping_add(1) } else { half - 1 };
        // The difference keeps a version that wraps to zero from carrying into the other half.
        let difference = u64::from(free).wrapping_sub(u64::from(half)) << shift(side);
        self.0.fetch_add(difference, Ordering::Release);
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    const SIDES: [Side; 2] = [Side::LEFT, Side::RIGHT];

    #[test]
    fn a_lock_is_taken_at_its_version_only() {
        for side in SIDES {
            let locks = Locks::default();
            let first = locks.look();
            assert!(locks.try_take(side, first) && locks.look().is_taken(side));
            assert!(!locks.try_take(side, first) && !locks.try_take(side, locks.look()));
            // SAFETY: the lock was taken above.
            unsafe { locks.give_back(side, false) };
            assert!(locks.try_take(side, first), "nothing has changed");
            // SAFETY: the lock was taken above.
            unsafe { locks.give_back(side, true) };
            assert!(!locks.try_take(side, first) && !locks.try_take_both(first));
            assert!(locks.try_take(side, locks.look()));
        }
    }

    #[test]
    fn one_side_does_not_disturb_the_other() {
        let [left, right] = SIDES;
        let locks = Locks::default();
        let seen = locks.look();
        assert!(locks.try_take(left, seen) && !locks.try_take_both(seen));
        assert!(locks.try_take(right, seen) && !locks.try_take_both(locks.look()));
        // SAFETY: both locks were taken above.
        unsafe {
            locks.give_back(left, true);
            locks.give_back(right, false);
        }
        assert!(!locks.try_take_both(seen) && locks.try_take(right, seen));
        // SAFETY: the lock was taken above.
        unsafe { locks.give_back(right, true) };
        let seen = locks.look();
        assert!(locks.try_take_both(seen));
        assert!(SIDES.iter().all(|side| locks.look().is_taken(*side)));
    }

    #[test]
    fn versions_begin_again_without_carrying() {
        for side in SIDES {
            let last = u64::from(u32::MAX - 1) << shift(side);
            let locks = Locks(AtomicU64::new(last));
            assert!(locks.try_take(side, locks.look()));
            // SAFETY: the lock was taken above.
            unsafe { locks.give_back(side, true) };
            assert_eq!(locks.look().0, 0);
        }
    }
}

/// Loom checks the locks in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::atomic::AtomicUsize;
    use silvics_sync::cell::UnsafeCell;
    use std::sync::Arc;

    /// A node: its locks, its edges, and the cells that the owner of each lock may write.
    #[derive(Default)]
    struct Node {
        locks: Locks,
        edges: [AtomicUsize; 2],
        owned: [UnsafeCell<usize>; 2],
    }
    // SAFETY: only the owner of its lock accesses a cell; loom checks that.
    unsafe impl Sync for Node {}
    // SAFETY: a node has no tie to the thread that made it.
    unsafe impl Send for Node {}

    impl Node {
        fn touch(&self, side: Side) {
            // SAFETY: the caller owns the lock.
            self.owned[side].with_mut(|cell| unsafe { *cell += 1 });
        }

        /// Updates the edge: reads version and edge, in this order, and adds one to the edge if it
        /// can take its lock.
        fn update(&self, side: Side, take: fn(&Locks, Side, Seen) -> bool) -> bool {
            let seen = self.locks.look();
            let edge = self.edges[side].load(Ordering::SeqCst);
            let taken = take(&self.locks, side, seen);
            if taken {
                self.touch(side);
                self.edges[side].store(edge + 1, Ordering::SeqCst);
                // SAFETY: the lock was taken above.
                unsafe { self.locks.give_back(side, true) };
            }
            taken
        }

        /// Removes the node: takes both locks for good.
        fn cut(&self) -> Option<[usize; 2]> {
            let seen = self.locks.look();
            self.locks.try_take_both(seen).then(|| {
                self.touch(Side::LEFT);
                self.touch(Side::RIGHT);
                self.edges.each_ref().map(|edge| edge.load(Ordering::SeqCst))
            })
        }
    }

    fn spawn<T: 'static>(
        node: &Arc<Node>,
        work: impl FnOnce(&Node) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let node = Arc::clone(node);
        thread::spawn(move || work(&node))
    }

    fn updates_are_not_lost(take: fn(&Locks, Side, Seen) -> bool) {
        loom::model(move || {
            let node = Arc::new(Node::default());
            let other = spawn(&node, move |n| {
                [Side::RIGHT, Side::LEFT].map(|side| usize::from(n.update(side, take)))
            });
            let own = usize::from(node.update(Side::LEFT, take));
            let [right, left] = other.join().unwrap();
            let edges = node.edges.each_ref().map(|edge| edge.load(Ordering::SeqCst));
            assert_eq!(edges, [own + left, right], "an update is lost");
            assert!(right == 1 && own + left > 0, "one of all takes the lock");
        });
    }

    /// I3: a thread that takes the lock at the version it has read replaces the edge that it has
    /// read.
    #[test]
    fn who_takes_a_lock_finds_the_edge_as_it_was() {
        updates_are_not_lost(Locks::try_take);
    }

    #[test]
    #[should_panic(expected = "an update is lost")]
    fn a_lock_taken_at_any_version_is_caught() {
        updates_are_not_lost(|locks, side, _| locks.try_take(side, locks.look()));
    }

    /// I4: the edges that a removal finds when it has taken both locks of a node never change
    /// again.
    #[test]
    fn nothing_changes_below_a_node_that_was_cut_out() {
        loom::model(|| {
            let node = Arc::new(Node::default());
            let updates = [Side::LEFT, Side::RIGHT]
                .map(|side| spawn(&node, move |n| n.update(side, Locks::try_take)));
            let cut = node.cut();
            let updated = updates.map(|update| usize::from(update.join().unwrap()));
            let edges = node.edges.each_ref().map(|edge| edge.load(Ordering::SeqCst));
            assert_eq!(edges, updated);
            if let Some(found) = cut {
                assert_eq!(found, edges, "an edge of a removed node has changed");
                assert!(!node.update(Side::LEFT, Locks::try_take));
            }
        });
    }
}
