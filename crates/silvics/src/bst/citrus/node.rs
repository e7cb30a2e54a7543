//! The node, and every access to its words.

use super::super::side::Side;
use super::build::Words;
use super::canaries::has_been_emptied;
use silvics_sync::atomic::Ordering;
use silvics_sync::lock::RawLock;
use std::ptr::{NonNull, null_mut};

/// A node: an entry. The build says where its words are. All of them are atomic, so that a
/// reference to it allows what the pointer it was made of allows, the node's retirement included.
#[repr(transparent)]
pub struct Node<W>(W);

/// How often a child had been taken away when somebody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl<W: Words> Node<W> {
    /// A node without children that is not linked yet.
    pub(super) fn new(key: u64, value: u64) -> Self {
        Self(W::new(key, value))
    }

    /// A node that is not linked yet, with children.
    pub(super) fn over(key: u64, value: u64, [left, right]: [&Self; 2]) -> Self {
        let node = Self::new(key, value);
        // Relaxed: private until the Release that publishes the node.
        node.0.children()[0].store(left.as_ptr(), Ordering::Relaxed);
        node.0.children()[1].store(right.as_ptr(), Ordering::Relaxed);
        node
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.0.key().load(Ordering::Relaxed)
    }

    /// The value: see the linearization points of `get`.
    #[inline(always)]
    pub(super) fn value(&self) -> u64 {
        self.0.value().load(Ordering::Acquire) // LP(get, found)
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

    /// Both children.
    ///
    /// # Safety
    /// As for [`Node::child`].
    pub(super) unsafe fn children<'g>(&self) -> (Option<&'g Self>, Option<&'g Self>) {
        // SAFETY: the caller has reached this node as `child` demands.
        unsafe { (self.child(Side::LEFT), self.child(Side::RIGHT)) }
    }

    pub(super) fn has_two_children(&self) -> bool {
        let is_there = |side: Side| !self.0.children()[side].load(Ordering::Relaxed).is_null();
        is_there(Side::LEFT) && is_there(Side::RIGHT)
    }

    /// How often the child on `side` has been taken away. Loads of the child that come after see it
    /// at least as it was then.
    pub(super) fn tag(&self, side: Side) -> Tag {
        Tag(self.0.tags()[side].load(Ordering::Acquire))
    }

    /// Whether the node has left the tree: certain under its lock.
    pub(super) fn is_marked(&self) -> bool {
        self.0.marked().load(Ordering::Relaxed)
    }

    /// Takes the node's lock.
    pub(super) fn lock(&self) -> Held<'_, W> {
        self.0.lock().lock();
        Held(self)
    }
}

/// A node whose lock the holder owns; dropping it gives the lock back. All changes go through it.
pub(super) struct Held<'a, W: Words>(&'a Node<W>);

impl<W: Words> std::ops::Deref for Held<'_, W> {
    type Target = Node<W>;

    fn deref(&self) -> &Node<W> {
        self.0
    }
}

impl<W: Words> Held<'_, W> {
    /// Whether this node is in the tree and `child` is its child on `side` (paper: `validate`).
    pub(super) fn leads_to(&self, side: Side, child: &Node<W>) -> bool {
        let now = self.0.0.children()[side].load(Ordering::Relaxed); // Relaxed: under the lock
        !self.is_marked() && std::ptr::eq(now, child)
    }

    /// Whether this node is in the tree and has had no child on `side` since `tag` was read (paper:
    /// `validate`).
    pub(super) fn is_open(&self, side: Side, tag: Tag) -> bool {
        let now = self.0.0.children()[side].load(Ordering::Relaxed); // Relaxed: under the lock
        let emptied = has_been_emptied(self, side, tag);
        !self.is_marked() && now.is_null() && !emptied
    }

    /// Sets the child on `side`; counts it if that takes a child away (paper: `incrementTag`).
    pub(super) fn set_child(&self, side: Side, child: Option<&Node<W>>) {
        let tag = &self.0.0.tags()[side];
        let count = tag.load(Ordering::Relaxed); // Relaxed: under the lock
        let word = child.map_or(null_mut(), Node::as_ptr);
        self.0.0.children()[side].store(word, Ordering::Release);
        if child.is_none() {
            tag.store(count.wrapping_add(1), Ordering::Release);
        }
    }

    /// Replaces the value of a node in the tree.
    pub(super) fn set_value(&self, value: u64) {
        self.0.0.value().store(value, Ordering::Release);
    }

    /// The node leaves the tree.
    pub(super) fn mark(&self) {
        debug_assert!(!self.is_marked());
        self.0.0.marked().store(true, Ordering::Relaxed); // Relaxed: read under the lock
    }
}

impl<W: Words> Drop for Held<'_, W> {
    fn drop(&mut self) {
        // SAFETY: `lock` alone makes one of these, when it has taken the lock, and only this drop
        // gives it back.
        unsafe { self.0.0.lock().unlock() };
    }
}

/// Loom checks copies in every execution, a tree's few links at a time (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::super::build::Small;
    use super::*;
    use loom::thread;
    use silvics_sync::rcu::RcuDomain;
    use std::sync::Arc;

    type Node = super::Node<Small>;

    /// 1 below the holder, 3 right of it, and room for 2 left of that; and for its copy above.
    struct Tree {
        rcu: RcuDomain,
        holder: Node,
        node: Node,
        above: Node,
        succ: Node,
        copy: Node,
        another: Node,
    }

    impl Tree {
        fn new() -> Arc<Self> {
            let node = |key| Node::new(key, 0);
            let tree = Arc::new(Self {
                rcu: RcuDomain::new(()),
                holder: node(0),
                node: node(1),
                above: node(3),
                succ: node(2),
                copy: node(2),
                another: node(2),
            });
            tree.holder.lock().set_child(Side::RIGHT, Some(&tree.node));
            tree.node.lock().set_child(Side::RIGHT, Some(&tree.above));
            tree
        }

        /// Whether there was room for it.
        fn insert_successor(&self) -> bool {
            let above = self.above.lock();
            // SAFETY: nodes live as long as the tree.
            let is_open = unsafe { above.child(Side::LEFT) }.is_none();
            if is_open {
                above.set_child(Side::LEFT, Some(&self.succ));
            }
            is_open
        }

        /// As in `replace`.
        fn replace(&self, wait: fn(&RcuDomain)) {
            let (prev, curr) = (self.holder.lock(), self.node.lock());
            let (above, succ) = (self.above.lock(), self.succ.lock());
            let copy = self.copy.lock();
            copy.set_child(Side::RIGHT, Some(&self.above));
            curr.mark();
            prev.set_child(Side::RIGHT, Some(&copy));
            wait(&self.rcu);
            succ.mark();
            above.set_child(Side::LEFT, None);
        }

        /// The end of a search for 2: a node with it, or the link left of 3, with its tag.
        fn search(&self) -> Result<&Node, Tag> {
            let mut parent = &self.holder;
            let mut side = Side::RIGHT;
            loop {
                // SAFETY: nodes live as long as the tree.
                if let Some(node) = unsafe { parent.child(side) } {
                    if node.key() == 2 {
                        return Ok(node);
                    }
                    (parent, side) = (node, Side::of(2, node.key()));
                    continue;
                }
                let tag = parent.tag(side);
                // SAFETY: nodes live as long as the tree.
                if unsafe { parent.child(side) }.is_none() {
                    return Err(tag);
                }
            }
        }
    }

    fn explore(test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(test);
    }

    /// A lookup of the successor beside its copier.
    fn found_beside(wait: fn(&RcuDomain)) {
        explore(move || {
            let tree = Tree::new();
            assert!(tree.insert_successor());
            let remover = {
                let tree = Arc::clone(&tree);
                thread::spawn(move || tree.replace(wait))
            };
            let found = {
                let _section = tree.rcu.read();
                tree.search().is_ok()
            };
            assert!(found, "the successor is not found");
            remover.join().unwrap();
        });
    }

    #[test]
    fn a_lookup_beside_a_copy_finds_the_key() {
        found_beside(RcuDomain::synchronize);
    }

    #[test]
    #[should_panic(expected = "the successor is not found")]
    fn a_remover_that_does_not_wait_is_caught() {
        found_beside(|_| ());
    }

    /// An insertion of 2 beside another, whose node is then copied and gone: `search` gives the
    /// tag.
    fn inserted_beside(search: fn(&Tree) -> Result<&Node, Tag>) {
        explore(move || {
            let tree = Tree::new();
            let writer = {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    if tree.insert_successor() {
                        tree.replace(RcuDomain::synchronize);
                    }
                })
            };
            let mut inserted = false;
            if let Err(tag) = search(&tree) {
                let above = tree.above.lock();
                if above.is_open(Side::LEFT, tag) {
                    above.set_child(Side::LEFT, Some(&tree.another));
                    inserted = true;
                }
            }
            let copied = {
                // SAFETY: nodes live as long as the tree.
                let below = unsafe { tree.holder.child(Side::RIGHT) };
                below.is_some_and(|node| node.is(&tree.copy))
            };
            assert!(!(inserted && copied), "the key is there twice");
            writer.join().unwrap();
        });
    }

    /// The search as it is: in a section, tag and all.
    #[test]
    fn an_insert_beside_a_copy_does_not_double_the_key() {
        inserted_beside(|tree| {
            let _section = tree.rcu.read();
            tree.search()
        });
    }

    #[test]
    #[should_panic(expected = "the key is there twice")]
    fn a_tag_read_after_the_section_is_caught() {
        inserted_beside(|tree| {
            let found = {
                let _section = tree.rcu.read();
                tree.search()
            };
            // Not a plain load: of two of those in a row loom knows the last, which is the writer's
            // own.
            found.map_err(|_| Tag(tree.above.0.tags()[0].fetch_add(0, Ordering::Acquire)))
        });
    }

    #[test]
    #[should_panic(expected = "the key is there twice")]
    fn a_search_outside_of_a_section_is_caught() {
        inserted_beside(Tree::search);
    }
}
