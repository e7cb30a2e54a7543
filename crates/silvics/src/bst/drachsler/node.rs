//! The node, and every access to its words.

use super::super::side::Side;
use super::build::Words;
use super::canaries::is_linked_backwards_first;
use silvics_layout::NodeLayout;
use silvics_layout::record::{Read, Why};
use silvics_sync::atomic::{AtomicPtr, Ordering};
use silvics_sync::lock::RawLock;
use std::ptr::{NonNull, null_mut};

/// A node: an entry, or one of the two ends of the list. The build says where its words are. All of
/// them are atomic, so that a reference to it allows what the pointer it was made of allows, the
/// node's retirement included.
#[repr(transparent)]
pub struct Node<W>(W);

impl<W: Words> Node<W> {
    /// A node that leads nowhere yet.
    pub(super) fn new(key: u64, value: u64) -> Self {
        Self(W::new(key, value))
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.0.key().load(Ordering::Relaxed)
    }

    fn as_ptr(&self) -> *mut Self {
        std::ptr::from_ref(self).cast_mut()
    }

    pub(super) fn as_non_null(&self) -> NonNull<Self> {
        NonNull::from(self)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// The child on `side`, initialised.
    ///
    /// # Safety
    /// The node was reached under a guard that lives as long as `'g`, by an operation that began
    /// under it (I6), or the tree is quiescent.
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

    /// The node before it in the list, at least as far back as the last one whose insertion or
    /// removal there is complete.
    ///
    /// # Safety
    /// As for [`Node::child`], and the node is in the list or has been.
    #[inline(always)]
    pub(super) unsafe fn pred<'g>(&self) -> &'g Self {
        // SAFETY: a node has both neighbours from before it enters the list (I1), so the word is
        // not null. I6: the node that it names is not reclaimed under the caller's guard.
        unsafe { &*self.0.pred().load(Ordering::Acquire) }
    }

    /// The node after it in the list.
    ///
    /// # Safety
    /// As for [`Node::pred`].
    #[inline(always)]
    pub(super) unsafe fn succ<'g>(&self) -> &'g Self {
        // SAFETY: a node has both neighbours from before it enters the list (I1), so the word is
        // not null. I6: the node that it names is not reclaimed under the caller's guard.
        unsafe { &*self.0.succ().load(Ordering::Acquire) }
    }

    /// The read of a search that goes on along the list.
    pub(super) fn neighbour_read(&self, word: fn(&W) -> &AtomicPtr<Self>) -> Read {
        let offset = std::ptr::from_ref(word(&self.0)).addr() - std::ptr::from_ref(self).addr();
        let layout: &'static NodeLayout = &W::NODE;
        layout.read(self, offset, size_of::<usize>(), Why::Step)
    }

    /// The read of the key, by which such a search sees whether it has come to the place.
    pub(super) fn key_read(&self) -> Read {
        let layout: &'static NodeLayout = &W::NODE;
        layout.read(self, layout.search[0].offset, size_of::<u64>(), Why::Step)
    }

    /// The parent: a hint unless the caller holds its tree lock.
    ///
    /// # Safety
    /// As for [`Node::pred`].
    pub(super) unsafe fn parent<'g>(&self) -> &'g Self {
        // SAFETY: a node has a parent from before it enters the list (I4), so the word is not null.
        // I6: the node that it names is not reclaimed under the caller's guard.
        unsafe { &*self.0.parent().load(Ordering::Acquire) }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.0.marked().load(Ordering::Acquire)
    }

    /// The value, if the node is not removed. A value is not written any more once the node is
    /// marked, and the mark stays: so a value with no mark behind it was the key's when it was
    /// read.
    #[inline(always)]
    pub(super) fn state(&self) -> Option<u64> {
        let value = self.0.value().load(Ordering::Acquire); // LP(get, found)
        (!self.is_marked()).then_some(value)
    }

    /// Makes the end of a list or a new node ready to be linked.
    pub(super) fn lay(&self, pred: &Self, succ: &Self, parent: &Self) {
        // Relaxed: private until the Release that publishes the node.
        self.0.pred().store(pred.as_ptr(), Ordering::Relaxed);
        self.0.succ().store(succ.as_ptr(), Ordering::Relaxed);
        self.0.parent().store(parent.as_ptr(), Ordering::Relaxed);
    }

    /// Takes the lock of the interval after it.
    pub(super) fn lock_succ(&self) -> Interval<'_, W> {
        self.0.succ_lock().lock();
        Interval(self)
    }

    /// Takes the lock of its place in the tree.
    pub(super) fn lock_tree(&self) -> Held<'_, W> {
        self.0.tree_lock().lock();
        Held(self)
    }

    /// Takes the tree lock unless another thread holds it.
    pub(super) fn try_lock_tree(&self) -> Option<Held<'_, W>> {
        // Made only if it is ours: dropping one gives the lock back.
        self.0.tree_lock().try_lock().then(|| Held(self))
    }
}

/// A node whose succ lock the holder owns; dropping it gives the lock back. All changes of the list
/// and of values go through it.
pub(super) struct Interval<'a, W: Words>(&'a Node<W>);

impl<W: Words> std::ops::Deref for Interval<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Interval<'_, W> {
    /// Puts a node that is laid out, and locked, between this one and `succ`, which follows it.
    pub(super) fn insert(&self, node: &Interval<'_, W>, succ: &Node<W>) {
        let back = || succ.0.pred().store(node.0.as_ptr(), Ordering::Release);
        if is_linked_backwards_first() {
            back();
        }
        self.0.0.succ().store(node.0.as_ptr(), Ordering::Release); // LP(insert of an absent key)
        // A thread that comes to the node from behind finds it in the list. Its lock keeps others
        // from putting one behind it, before this link says that it is there.
        if !is_linked_backwards_first() {
            back();
        }
    }

    /// Takes out the node after this one, which is locked too.
    ///
    /// # Safety
    ///
    /// `node` follows this one in the list.
    pub(super) unsafe fn unlink(&self, node: &Interval<'_, W>) {
        // Relaxed: written under the lock we own
        let succ = node.0.0.succ().load(Ordering::Relaxed);
        // SAFETY: I1: `node` is in the list. `succ` follows `node` in the list, and cannot leave it
        // while the succ lock of `node` is held, so it is not retired.
        unsafe { &*succ }.0.pred().store(self.0.as_ptr(), Ordering::Release);
        self.0.0.succ().store(succ, Ordering::Release);
    }

    /// The value.
    pub(super) fn value(&self) -> u64 {
        self.0.0.value().load(Ordering::Relaxed) // Relaxed: written under the lock we own
    }

    /// Replaces the value of a node that is not marked.
    pub(super) fn set_value(&self, value: u64) {
        self.0.0.value().store(value, Ordering::Release);
    }

    /// Removes the key.
    pub(super) fn mark(&self) {
        debug_assert!(!self.is_marked());
        self.0.0.marked().store(true, Ordering::Release);
    }
}

impl<W: Words> Drop for Interval<'_, W> {
    fn drop(&mut self) {
        // SAFETY: `lock_succ` alone makes one of these, when it has taken the lock, and only this
        // drop gives it back.
        unsafe { self.0.0.succ_lock().unlock() };
    }
}

/// A node whose tree lock the holder owns; dropping it gives the lock back. All changes of the tree
/// go through it.
pub(super) struct Held<'a, W: Words>(&'a Node<W>);

impl<W: Words> std::ops::Deref for Held<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Held<'_, W> {
    /// Sets the child on `side`.
    pub(super) fn set_child(&self, side: Side, child: Option<&Node<W>>) {
        let child = child.map_or(null_mut(), Node::as_ptr);
        self.0.0.children()[side].store(child, Ordering::Release);
    }

    /// Sets the child on `side` and makes this its parent. The one it had is locked.
    pub(super) fn adopt(&self, side: Side, child: Option<&Node<W>>) {
        self.set_child(side, child);
        if let Some(child) = child {
            child.0.parent().store(self.0.as_ptr(), Ordering::Release);
        }
    }
}

impl<W: Words> Held<'_, W> {
    /// Puts a successor in the place of the child on `side`, over that one's children. It comes
    /// from below `above`, unless that is the child itself.
    ///
    /// # Safety
    ///
    /// A guard is held under which `succ` was reached, in the list.
    pub(super) unsafe fn adopt_successor(
        &self,
        side: Side,
        succ: &Self,
        [left, right]: [&Node<W>; 2],
        above: Option<&Self>,
    ) {
        debug_assert!(
            succ.0.0.children()[0].load(Ordering::Relaxed).is_null() || cfg!(feature = "canaries"),
            "a successor has nothing before it"
        );
        if let Some(above) = above {
            // The successor leaves its place before it leads to what is above that: a search could
            // go in circles.
            // SAFETY: I6: the caller holds the guard under which it has reached `succ`.
            let onward = unsafe { succ.child(Side::RIGHT) };
            above.adopt(Side::LEFT, onward);
            succ.adopt(Side::RIGHT, Some(right));
        }
        succ.adopt(Side::LEFT, Some(left));
        self.adopt(side, Some(succ));
    }
}

impl<W: Words> Drop for Held<'_, W> {
    fn drop(&mut self) {
        // SAFETY: `lock_tree` and `try_lock_tree` alone make one of these, when they have taken the
        // lock, and only this drop gives it back.
        unsafe { self.0.0.tree_lock().unlock() };
    }
}

/// Loom checks list, tree and values in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::super::build::Packed;
    use super::*;
    use loom::thread;
    use silvics_sync::atomic::AtomicU64;
    use std::sync::Arc;

    type Node = super::Node<Packed>;

    /// The ends of a list, and two nodes to come between them.
    struct List {
        head: Node,
        first: Node,
        second: Node,
        tail: Node,
    }

    impl List {
        fn new() -> Arc<Self> {
            let node = |key| Node::new(key, 0);
            let list = Self { head: node(0), first: node(1), second: node(2), tail: node(3) };
            list.head.lay(&list.head, &list.tail, &list.head);
            list.tail.lay(&list.head, &list.tail, &list.head);
            Arc::new(list)
        }

        /// As in `attach`.
        fn insert_first(&self) {
            let interval = self.head.lock_succ();
            self.first.lay(&self.head, &self.tail, &self.head);
            let behind = self.first.lock_succ();
            interval.insert(&behind, &self.tail);
        }
    }

    fn leads_to(link: &silvics_sync::atomic::AtomicPtr<Node>, node: &Node) -> bool {
        std::ptr::eq(link.load(Ordering::Acquire), node)
    }

    /// A thread that meets a new node, from before it or from behind, meets one that has its
    /// neighbours, and is in the list for all others.
    fn met_beside(insert: fn(&List)) {
        loom::model(move || {
            let list = List::new();
            let writer = {
                let list = Arc::clone(&list);
                thread::spawn(move || insert(&list))
            };
            let List { head, first, tail, .. } = &*list;
            if leads_to(tail.0.pred(), first) {
                assert!(leads_to(head.0.succ(), first), "found from behind only");
            }
            if leads_to(head.0.succ(), first) {
                let neighbours = leads_to(first.0.pred(), head) && leads_to(first.0.succ(), tail);
                assert!(neighbours, "a node without neighbours");
            }
            writer.join().unwrap();
        });
    }

    #[test]
    fn who_meets_a_new_node_meets_one_in_the_list() {
        met_beside(List::insert_first);
    }

    #[test]
    #[should_panic(expected = "found from behind only")]
    fn a_link_back_that_comes_first_is_caught() {
        met_beside(|list| {
            list.first.lay(&list.head, &list.tail, &list.head);
            list.tail.0.pred().store(list.first.as_ptr(), Ordering::Release);
            list.head.0.succ().store(list.first.as_ptr(), Ordering::Release);
        });
    }

    #[test]
    #[should_panic(expected = "a node without neighbours")]
    fn a_link_by_a_relaxed_store_is_caught() {
        met_beside(|list| {
            list.first.lay(&list.head, &list.tail, &list.head);
            list.head.0.succ().store(list.first.as_ptr(), Ordering::Relaxed);
            list.tail.0.pred().store(list.first.as_ptr(), Ordering::Release);
        });
    }

    /// Another insertion goes behind the new node as soon as it can.
    fn followed_at_once(insert: fn(&List)) {
        loom::model(move || {
            let list = List::new();
            let writer = {
                let list = Arc::clone(&list);
                thread::spawn(move || insert(&list))
            };
            let List { head, first, second, tail } = &*list;
            let there = leads_to(head.0.succ(), first);
            if there {
                let interval = first.lock_succ();
                second.lay(first, tail, head);
                let behind = second.lock_succ();
                interval.insert(&behind, tail);
            }
            writer.join().unwrap();
            let last = if there { second } else { first };
            assert!(leads_to(tail.0.pred(), last), "a link leads back past a node");
            assert!(leads_to(last.0.succ(), tail));
        });
    }

    #[test]
    fn insertions_in_a_row_leave_no_link_behind() {
        followed_at_once(List::insert_first);
    }

    #[test]
    #[should_panic(expected = "a link leads back past a node")]
    fn a_new_node_that_is_not_locked_is_caught() {
        followed_at_once(|list| {
            let _interval = list.head.lock_succ();
            list.first.lay(&list.head, &list.tail, &list.head);
            list.head.0.succ().store(list.first.as_ptr(), Ordering::Release);
            list.tail.0.pred().store(list.first.as_ptr(), Ordering::Release);
        });
    }

    /// An update and a removal are seen in this order, and with a removal what its thread did
    /// before.
    fn seen_in_order(mark: fn(&Interval<'_, Packed>)) {
        const STATES: [Option<u64>; 3] = [Some(1), Some(2), None];
        loom::model(move || {
            let shared = Arc::new((Node::new(5, 1), AtomicU64::new(0)));
            let writer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (node, other) = &*shared;
                    other.store(1, Ordering::Relaxed);
                    let interval = node.lock_succ();
                    interval.set_value(2);
                    mark(&interval);
                })
            };
            let (node, other) = &*shared;
            let seen = [(); 2].map(|()| {
                let state = node.state();
                let before = other.load(Ordering::Relaxed);
                assert!(state.is_some() || before == 1, "a removal without what came before it");
                STATES.iter().position(|s| *s == state).expect("a state that never was")
            });
            assert!(seen[0] <= seen[1], "{:?} after {:?}", STATES[seen[1]], STATES[seen[0]]);
            writer.join().unwrap();
        });
    }

    #[test]
    fn an_update_and_a_removal_are_seen_in_order() {
        #[allow(clippy::redundant_closure_for_method_calls)] // the method is of one lifetime
        seen_in_order(|interval| interval.mark());
    }

    #[test]
    #[should_panic(expected = "a removal without what came before it")]
    fn a_relaxed_mark_is_caught() {
        seen_in_order(|interval| interval.0.0.marked().store(true, Ordering::Relaxed));
    }

    /// 10 over 5 and 30, 20 left of 30, 25 right of 20.
    struct Tree {
        tail: Node,
        node: Node,
        left: Node,
        right: Node,
        succ: Node,
        onward: Node,
    }

    impl Tree {
        fn new() -> Arc<Self> {
            let node = |key| Node::new(key, 0);
            let tree = Arc::new(Self {
                tail: node(u64::MAX),
                node: node(10),
                left: node(5),
                right: node(30),
                succ: node(20),
                onward: node(25),
            });
            let link = |parent: &Node, side, child: &Node| {
                parent.lock_tree().adopt(side, Some(child));
            };
            link(&tree.tail, Side::LEFT, &tree.node);
            link(&tree.node, Side::LEFT, &tree.left);
            link(&tree.node, Side::RIGHT, &tree.right);
            link(&tree.right, Side::LEFT, &tree.succ);
            link(&tree.succ, Side::RIGHT, &tree.onward);
            tree
        }

        /// As `search`, with an end.
        fn search(&self, key: u64) {
            let (mut node, mut side) = (&self.tail, Side::LEFT);
            for _ in 0..8 {
                // SAFETY: nodes live as long as the tree.
                let Some(child) = (unsafe { node.child(side) }) else { return };
                if child.key() == key {
                    return;
                }
                (node, side) = (child, Side::of(key, child.key()));
            }
            panic!("the search for {key} goes in circles");
        }
    }

    /// Searches beside the removal of 10, in which 20 moves.
    fn searched_beside(remove: fn(&Tree)) {
        for key in [7, 20, 22, 25] {
            loom::model(move || {
                let tree = Tree::new();
                let writer = {
                    let tree = Arc::clone(&tree);
                    thread::spawn(move || remove(&tree))
                };
                tree.search(key);
                writer.join().unwrap();
                tree.search(key);
            });
        }
    }

    #[test]
    fn a_search_beside_a_successor_that_moves_comes_to_an_end() {
        searched_beside(|tree| {
            let (node, parent) = (tree.node.lock_tree(), tree.tail.lock_tree());
            let (above, succ) = (tree.right.lock_tree(), tree.succ.lock_tree());
            let children = [&tree.left, &tree.right];
            // SAFETY: no node of this tree is freed before its end.
            unsafe { parent.adopt_successor(Side::LEFT, &succ, children, Some(&above)) };
            drop(node);
        });
    }

    #[test]
    #[should_panic(expected = "goes in circles")]
    fn a_successor_that_leads_up_from_its_old_place_is_caught() {
        searched_beside(|tree| {
            let (above, succ) = (tree.right.lock_tree(), tree.succ.lock_tree());
            succ.adopt(Side::RIGHT, Some(&tree.right));
            above.adopt(Side::LEFT, Some(&tree.onward));
        });
    }
}
