//! The node, and every access to its words.

use super::super::side::Side;
use super::build::Words;
use super::canaries::{is_move_versioned, is_presence_trusted, says_unlinked};
use silvics_sync::atomic::Ordering;
use silvics_sync::backoff::Backoff;
use silvics_sync::lock::RawLock;
use std::ptr::{NonNull, null_mut};

/// A node: an entry, or, with its value removed but two children, a routing node. The build says
/// where its words are. All that it uses are atomic, so that a reference to it allows what the
/// pointer it was made of allows, the node's retirement included.
#[repr(transparent)]
pub struct Node<W>(W);

/// Removed from the tree for good.
const UNLINKED: u64 = 1;
/// Being moved down by a rotation.
const SHRINKING: u64 = 2;
/// Has a value.
const PRESENT: u64 = 4;
/// Counts changes of `PRESENT`, in 30 bits.
const PRESENCE_STEP: u64 = 1 << 3;
/// Counts completed moves down, in 31 bits.
const SHRINK_STEP: u64 = 1 << 33;
/// The bits that presence alone changes. Descents that only pass ignore them.
const PRESENCE: u64 = (SHRINK_STEP - PRESENCE_STEP) | PRESENT;

/// A version word as somebody read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version(u64);

impl Version {
    /// That of a node that never moves: the holder's.
    pub(super) const STILL: Self = Self(0);

    #[inline(always)]
    pub(super) fn is_shrinking(self) -> bool {
        self.0 & SHRINKING != 0
    }

    #[inline(always)]
    pub(super) fn is_unlinked(self) -> bool {
        self.0 & UNLINKED != 0
    }

    #[inline(always)]
    pub(super) fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }
}

impl<W: Words> Node<W> {
    /// A node without children that is not linked yet.
    pub(super) fn new(key: u64, value: Option<u64>) -> Self {
        let version = if value.is_some() { PRESENT } else { 0 };
        Self(W::new(key, version, value.unwrap_or(0)))
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.0.key().load(Ordering::Relaxed)
    }

    pub(super) fn as_ptr(&self) -> *mut Self {
        std::ptr::from_ref(self).cast_mut()
    }

    pub(super) fn as_non_null(&self) -> NonNull<Self> {
        NonNull::from(self)
    }

    #[inline(always)]
    pub(super) fn version(&self) -> Version {
        Version(self.0.version().load(Ordering::Acquire))
    }

    /// Whether the node has moved down or left the tree since `version` was read. All that was
    /// read before this call was read through Acquire loads, which keep this load behind them.
    #[inline(always)]
    pub(super) fn has_shrunk_since(&self, version: Version) -> bool {
        (self.0.version().load(Ordering::Acquire) ^ version.0) & !PRESENCE != 0
    }

    /// Waits until a rotation that moves the node down is over.
    #[cold]
    pub(super) fn wait_while_shrinking(&self) {
        let mut backoff = Backoff::new();
        while self.version().is_shrinking() {
            backoff.wait();
        }
    }

    /// The child on `side`, initialised.
    ///
    /// # Safety
    /// The node was reached under a guard that lives as long as `'g`, or the tree is quiescent.
    #[inline(always)]
    pub(super) unsafe fn child<'g>(&self, side: Side) -> Option<&'g Self> {
        // SAFETY: the link is null or leads to a node that was initialised before the store of the
        // link. I6: that node is not reclaimed under the caller's guard.
        unsafe { self.0.children()[side].load(Ordering::Acquire).as_ref() }
    }

    /// Follows a link in a descent, which has just compared keys.
    ///
    /// # Safety
    /// As for [`Node::child`].
    #[inline(always)]
    pub(super) unsafe fn follow<'g>(&self, side: Side) -> Option<&'g Self> {
        // SAFETY: `side.load` returns one of the two links, loaded as in `child`, so the same
        // holds.
        unsafe { side.load(self.0.children(), |link| link.load(Ordering::Acquire)).as_ref() }
    }

    /// Whether the child is `node` (I3: seen again, after its version).
    #[inline(always)]
    pub(super) fn leads_to(&self, side: Side, node: &Self) -> bool {
        std::ptr::eq(self.0.children()[side].load(Ordering::Acquire), node)
    }

    /// The parent: a hint unless the caller holds its lock.
    ///
    /// # Safety
    /// As for [`Node::child`].
    pub(super) unsafe fn parent<'g>(&self) -> Option<&'g Self> {
        // SAFETY: the word is null or names a node that was initialised before it was linked. I6:
        // that node is not reclaimed under the caller's guard.
        unsafe { self.0.parent().load(Ordering::Acquire).as_ref() }
    }

    /// Whether `parent`, which is locked, is the node's parent.
    pub(super) fn is_child_of(&self, parent: &Held<'_, W>) -> bool {
        std::ptr::eq(self.0.parent().load(Ordering::Acquire), parent.as_ptr())
    }

    pub(super) fn has_two_children(&self) -> bool {
        let [left, right] = self.0.children();
        !left.load(Ordering::Acquire).is_null() && !right.load(Ordering::Acquire).is_null()
    }

    /// The value, if there is one: see the linearization points of `get`.
    #[inline(always)]
    pub(super) fn state(&self) -> Option<u64> {
        loop {
            let before = self.version();
            if !before.is_present() {
                return None; // LP(get, absent)
            }
            let value = self.0.value().load(Ordering::Acquire); // LP(get, found)
            // Relaxed: behind the Acquire above
            let after = self.0.version().load(Ordering::Relaxed);
            if (after ^ before.0) & PRESENCE == 0 || is_presence_trusted() {
                return Some(value);
            }
        }
    }

    pub(super) fn height(&self) -> i32 {
        self.0.height().load(Ordering::Relaxed).cast_signed()
    }

    /// Takes the node's lock.
    pub(super) fn lock(&self) -> Held<'_, W> {
        self.0.lock().lock();
        Held(self)
    }
}

/// A node whose lock the holder owns; dropping it gives the lock back. All changes go through it.
pub(super) struct Held<'a, W: Words>(&'a Node<W>);

impl<'a, W: Words> Held<'a, W> {
    /// The node, for as long as it lives, not only as long as it is locked.
    pub(super) fn node(&self) -> &'a Node<W> {
        self.0
    }
}

impl<W: Words> std::ops::Deref for Held<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Held<'_, W> {
    fn set_version(&self, change: impl FnOnce(u64) -> u64) {
        // Relaxed load: only the owner of the lock writes the word.
        let word = self.0.0.version().load(Ordering::Relaxed);
        self.0.0.version().store(change(word), Ordering::Release);
    }

    /// Replaces the value of a present node.
    pub(super) fn set_value(&self, value: u64) {
        debug_assert!(self.version().is_present());
        self.0.0.value().store(value, Ordering::Release);
    }

    /// Gives a node without value one.
    pub(super) fn make_present(&self, value: u64) {
        debug_assert!(!self.version().is_present() && !self.version().is_unlinked());
        // A reader that sees this value through an old presence sees that presence ended, too:
        // the store that ended it comes before this Release.
        self.0.0.value().store(value, Ordering::Release);
        self.set_version(|word| step_presence(word) | PRESENT);
    }

    /// Takes the value of a present node.
    pub(super) fn make_absent(&self) {
        debug_assert!(self.version().is_present());
        self.set_version(|word| step_presence(word) & !PRESENT);
    }

    /// The node has left the tree.
    pub(super) fn set_unlinked(&self) {
        debug_assert!(!self.version().is_present());
        if says_unlinked() {
            self.set_version(|word| word | UNLINKED);
        }
    }

    /// A rotation that moves the node down begins: searches wait or restart.
    pub(super) fn begin_shrink(&self) {
        if is_move_versioned() {
            self.set_version(|word| word | SHRINKING);
        }
    }

    /// Ends the shrinking of the node's key range, and counts the move.
    pub(super) fn end_shrink(&self) {
        if is_move_versioned() {
            self.set_version(|word| (word & !SHRINKING).wrapping_add(SHRINK_STEP));
        }
    }

    /// Sets the child on `side`. The store is a Release: who sees it sees the version that was
    /// set before.
    pub(super) fn set_child(&self, side: Side, child: Option<&Node<W>>) {
        let child = child.map_or(null_mut(), Node::as_ptr);
        self.0.0.children()[side].store(child, Ordering::Release);
    }

    /// Sets the parent of `child`, this node or one that is being linked below it. A node's parent
    /// is written under the lock of the node that was its parent so far.
    pub(super) fn adopt(&self, child: Option<&Node<W>>) {
        if let Some(child) = child {
            child.0.parent().store(self.0.as_ptr(), Ordering::Release);
        }
    }

    pub(super) fn set_height(&self, height: i32) {
        self.0.0.height().store(height.cast_unsigned(), Ordering::Relaxed);
    }
}

impl<W: Words> Drop for Held<'_, W> {
    fn drop(&mut self) {
        // SAFETY: `lock` alone makes one of these, when it has taken the lock, and only this drop
        // gives it back.
        unsafe { self.0.0.lock().unlock() };
    }
}

fn step_presence(word: u64) -> u64 {
    let count = PRESENCE & !PRESENT;
    word & !count | word.wrapping_add(PRESENCE_STEP) & count
}

#[cfg(test)]
mod tests {
    use super::super::build::Line;
    use super::*;

    type Node = super::Node<Line>;

    #[test]
    fn presence_and_shrinking_do_not_disturb_each_other() {
        let node = Node::new(1, Some(5));
        let passed = node.version();
        {
            let held = node.lock();
            held.make_absent();
            assert!(!node.has_shrunk_since(passed));
            assert_eq!(node.state(), None);
            held.make_present(7);
            assert!(!node.has_shrunk_since(passed));
            held.begin_shrink();
            assert!(node.has_shrunk_since(passed) && node.version().is_shrinking());
            held.end_shrink();
        }
        assert!(node.has_shrunk_since(passed) && !node.version().is_shrinking());
        assert_eq!((node.state(), node.height()), (Some(7), 1));
    }

    #[test]
    fn the_presence_count_wraps_without_spilling() {
        let full = PRESENCE & !PRESENT;
        assert_eq!(step_presence(full | UNLINKED), UNLINKED);
        assert_eq!(PRESENCE & (UNLINKED | SHRINKING | SHRINK_STEP), 0);
    }
}

/// Loom checks value and presence in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::super::build::Line;
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    type Node = super::Node<Line>;

    /// A writer takes a node through `states`; a reader looks twice, and never sees one that is not
    /// among them, nor goes back.
    fn seen_in_order(
        states: &'static [Option<u64>],
        write: fn(&Node),
        read: fn(&Node) -> Option<u64>,
    ) {
        loom::model(move || {
            let node = Arc::new(Node::new(5, states[0]));
            let writer = {
                let node = Arc::clone(&node);
                thread::spawn(move || write(&node))
            };
            let seen = [(); 2].map(|()| {
                let state = read(&node);
                states.iter().position(|s| *s == state).expect("a state that never was")
            });
            assert!(seen[0] <= seen[1], "{:?} after {:?}", states[seen[1]], states[seen[0]]);
            writer.join().unwrap();
            assert_eq!(node.state(), states.last().copied().flatten());
        });
    }

    const REINSERTED: &[Option<u64>] = &[Some(1), None, Some(2)];

    fn reinsert(node: &Node) {
        let node = node.lock();
        node.make_absent();
        node.make_present(2);
    }

    #[test]
    fn a_removal_and_an_insertion_are_seen_in_order() {
        seen_in_order(REINSERTED, reinsert, Node::state);
    }

    #[test]
    fn an_update_is_seen_after_an_insertion_and_before_a_removal() {
        let insert_and_update = |node: &Node| {
            let node = node.lock();
            node.make_present(1);
            node.set_value(2);
        };
        seen_in_order(&[None, Some(1), Some(2)], insert_and_update, Node::state);
        let update_and_remove = |node: &Node| {
            let node = node.lock();
            node.set_value(2);
            node.make_absent();
        };
        seen_in_order(&[Some(1), Some(2), None], update_and_remove, Node::state);
    }

    #[test]
    fn who_only_passes_sees_no_change() {
        loom::model(|| {
            let node = Arc::new(Node::new(5, Some(1)));
            let writer = {
                let node = Arc::clone(&node);
                thread::spawn(move || reinsert(&node))
            };
            let version = node.version();
            assert!(!node.has_shrunk_since(version));
            writer.join().unwrap();
            assert!(!node.has_shrunk_since(version));
        });
    }

    /// The reader with a weaker load of the value.
    fn state_by_relaxed_load(node: &Node) -> Option<u64> {
        loop {
            let before = node.version();
            if !before.is_present() {
                return None;
            }
            let value = node.0.value().load(Ordering::Relaxed);
            let after = node.0.version().load(Ordering::Relaxed);
            if (after ^ before.0) & PRESENCE == 0 {
                return Some(value);
            }
        }
    }

    #[test]
    #[should_panic(expected = "None after Some(2)")]
    fn a_relaxed_load_of_the_value_is_caught() {
        seen_in_order(REINSERTED, reinsert, state_by_relaxed_load);
    }

    #[test]
    #[should_panic(expected = "None after Some(2)")]
    fn a_relaxed_store_of_the_value_is_caught() {
        let write = |node: &Node| {
            let node = node.lock();
            node.make_absent();
            node.0.0.value().store(2, Ordering::Relaxed);
            node.set_version(|word| step_presence(word) | PRESENT);
        };
        seen_in_order(REINSERTED, write, Node::state);
    }

    /// The reader that looks at presence once.
    #[test]
    #[should_panic(expected = "after")]
    fn a_single_look_at_presence_is_caught() {
        let read = |node: &Node| {
            let present = node.version().is_present();
            present.then(|| node.0.value().load(Ordering::Acquire))
        };
        seen_in_order(REINSERTED, reinsert, read);
    }
}
