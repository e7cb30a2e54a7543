//! Relaxed balance: repairing heights, rotating, and removing routing nodes.
//!
//! An operation that changes the height of a subtree, or leaves a routing node with fewer than two
//! children, repairs the *damage* before it returns, one node at a time from the bottom up, each
//! under its own short locks; others may pass or damage more meanwhile (paper, section 3.6 and
//! figure 9). Locks are taken from the top down.

use super::super::side::Side;
use super::Bronson;
use super::build::{Build, Words};
use super::canaries::{has_other_parent, is_damage_elsewhere};
use super::node::{Held, Node};
use crate::domain::Guard;
use silvics_pool::Placement;

/// The damage of a node.
enum Condition {
    Sound,
    /// Its height should be this.
    Height(i32),
    /// Its children's heights differ by more than one.
    Unbalanced,
    /// It routes but has fewer than two children.
    Superfluous,
}

fn height<W: Words>(node: Option<&Node<W>>) -> i32 {
    node.map_or(0, Node::height)
}

/// # Safety
/// `node` was reached under the guard.
unsafe fn children<'g, W: Words>(
    node: &Node<W>,
    _guard: &'g Guard,
) -> (Option<&'g Node<W>>, Option<&'g Node<W>>) {
    // SAFETY: the caller has reached `node` under the guard of `'g`, as `child` demands.
    unsafe { (node.child(Side::LEFT), node.child(Side::RIGHT)) }
}

fn condition<W: Words>(
    node: &Node<W>,
    left: Option<&Node<W>>,
    right: Option<&Node<W>>,
) -> Condition {
    if (left.is_none() || right.is_none()) && !node.version().is_present() {
        return Condition::Superfluous;
    }
    let (left, right) = (height(left), height(right));
    if (left - right).abs() > 1 {
        return Condition::Unbalanced;
    }
    let right_height = 1 + left.max(right);
    if node.height() == right_height { Condition::Sound } else { Condition::Height(right_height) }
}

/// A node to look at, and the child whose change is the reason, if one is.
pub(super) struct Visit<'g, W: Words> {
    pub(super) node: &'g Node<W>,
    pub(super) child: Option<&'g Node<W>>,
}

impl<'g, W: Words> Visit<'g, W> {
    fn of(node: &Held<'g, W>) -> Self {
        Self { node: node.node(), child: None }
    }

    fn above(parent: &Held<'g, W>, child: Option<&'g Node<W>>) -> Self {
        Self { node: parent.node(), child }
    }
}

/// The nodes to look at after a repair, from the bottom up.
type Visits<'g, W> = [Option<Visit<'g, W>>; 4];

fn visits<W: Words, const N: usize>(list: [Visit<'_, W>; N]) -> Visits<'_, W> {
    let mut list = list.into_iter();
    std::array::from_fn(|_| list.next())
}

/// Children of one node and their heights, as a rotation sees them: `near` is on the heavy side.
struct Rotation<'g, W> {
    heavy: Side,
    /// The height of the child on the light side.
    far_height: i32,
    near: &'g Node<W>,
}

impl<P: Placement, B: Build> Bronson<P, B> {
    /// Repairs damage from a node upwards until none is left that this thread must repair.
    ///
    /// A verdict counts only under the node's lock: a thread that changes the height of a child
    /// locks that child's parent after it, so that of two who change two children the later one
    /// sees both. If a rotation has moved the child meanwhile, its new parent is looked at.
    pub(super) fn repair<'g>(&'g self, visit: Visit<'g, B::Words>, guard: &'g Guard) {
        let mut next = Some(visit);
        while let Some(Visit { node, child }) = next {
            let held = node.lock();
            if let Some(child) = child
                && !child.version().is_unlinked()
                && is_damage_elsewhere(child, &held)
            {
                drop(held);
                // SAFETY: I6: `child` was reached under the guard of `'g`, as its lifetime says.
                let parent = unsafe { child.parent() };
                next = parent.map(|node| Visit { node, child: Some(child) });
                continue;
            }
            if held.version().is_unlinked() {
                return; // its remover looks at its parent
            }
            // SAFETY: I6: `node` was reached under the guard of `'g`, as its lifetime says.
            let (left, right) = unsafe { children(node, guard) };
            // SAFETY: I6: `node` was reached under the guard of `'g`, as its lifetime says. The
            // holder alone has no parent, and nothing to repair.
            let Some(parent) = (unsafe { node.parent() }) else { return };
            match condition(node, left, right) {
                Condition::Sound => return,
                Condition::Height(height) => {
                    held.set_height(height);
                    next = Some(Visit { node: parent, child: Some(node) });
                    continue;
                }
                Condition::Unbalanced | Condition::Superfluous => drop(held),
            }
            let parent = parent.lock();
            if parent.version().is_unlinked() || has_other_parent(node, &parent) {
                next = Some(Visit { node, child: None }); // it has moved: look again
                continue;
            }
            let held = node.lock();
            if held.version().is_unlinked() {
                return;
            }
            // SAFETY: both are locked, and neither is unlinked. `node` names `parent`, so it is
            // linked below it (I1).
            let visits = unsafe { self.rebalance(&parent, &held, guard) };
            drop((held, parent));
            next = None;
            for visit in visits.into_iter().flatten() {
                if let Some(lower) = next.replace(visit) {
                    self.repair(lower, guard);
                }
            }
        }
    }

    /// Unlinks a node without value that has at most one child, and returns that child. Both are
    /// locked.
    ///
    /// # Safety
    ///
    /// `node` is linked below `parent`, and was reached under `guard`.
    pub(super) unsafe fn unlink<'g>(
        &self,
        parent: &Held<'_, B::Words>,
        node: &Held<'_, B::Words>,
        guard: &'g Guard,
    ) -> Option<&'g Node<B::Words>> {
        // SAFETY: I6: `node` was reached under `guard`.
        let (left, right) = unsafe { children(node, guard) };
        debug_assert!(left.is_none() || right.is_none());
        let child = left.or(right);
        parent.set_child(Self::side_of(parent, node), child);
        parent.adopt(child);
        node.set_unlinked();
        // SAFETY: the node is of this pool. The link from its parent was the only one in the tree,
        // and its child names another parent now (I1), so new readers do not reach it. It was
        // linked under its lock, and `UNLINKED` stays, so it is retired once.
        unsafe { self.nodes.retire(node.as_non_null(), guard) };
        child
    }

    /// The side of `parent` that `node` is linked on.
    fn side_of(parent: &Node<B::Words>, node: &Node<B::Words>) -> Side {
        // SAFETY: I6: the caller has locked `parent`, which it reached under a guard that it still
        // holds.
        let left = unsafe { parent.child(Side::LEFT) };
        if left.is_some_and(|l| std::ptr::eq(l, node)) { Side::LEFT } else { Side::RIGHT }
    }

    /// Repairs a locked node below its locked parent; returns what to look at again.
    ///
    /// # Safety
    ///
    /// `node` is linked below `parent`.
    unsafe fn rebalance<'g>(
        &self,
        parent: &Held<'g, B::Words>,
        node: &Held<'g, B::Words>,
        guard: &'g Guard,
    ) -> Visits<'g, B::Words> {
        // SAFETY: I6: `node` was reached under the guard of `'g`, as its lifetime says.
        let (left, right) = unsafe { children(node, guard) };
        match condition(node, left, right) {
            Condition::Sound => visits([]),
            Condition::Height(height) => {
                node.set_height(height);
                visits([Visit::above(parent, Some(node.node()))])
            }
            Condition::Superfluous => {
                // SAFETY: the caller has seen `node` below `parent`, and reached it under the guard
                // of `'g`, as its lifetime says.
                let child = unsafe { self.unlink(parent, node, guard) };
                visits([Visit::above(parent, child)])
            }
            Condition::Unbalanced => {
                let (left_height, right_height) = (height(left), height(right));
                let (heavy, near, far_height) = if left_height > right_height {
                    (Side::LEFT, left, right_height)
                } else {
                    (Side::RIGHT, right, left_height)
                };
                let near = near.expect("the higher child exists");
                Self::lift(parent, node, &Rotation { heavy, far_height, near })
            }
        }
    }

    /// Lifts the heavy side of `node` by a single or double rotation; if a double rotation would
    /// leave its lower node unbalanced, has what is wrong below repaired first.
    fn lift<'g>(
        parent: &Held<'g, B::Words>,
        node: &Held<'g, B::Words>,
        rotation: &Rotation<'g, B::Words>,
    ) -> Visits<'g, B::Words> {
        let &Rotation { heavy, far_height, near } = rotation;
        let near = near.lock();
        if near.height() - far_height <= 1 {
            return visits([Visit::of(node)]); // no longer: look again
        }
        // SAFETY: I6: `near` was reached under the guard of `'g`, as its lifetime says.
        let (outer, inner) = unsafe { (near.child(heavy), near.child(heavy.other())) };
        let outer_height = height(outer);
        let Some(inner) = inner.filter(|i| i.height() > outer_height) else {
            return Self::rotate(parent, node, &near, rotation);
        };
        let inner = inner.lock();
        if outer_height >= inner.height() {
            return Self::rotate(parent, node, &near, rotation);
        }
        // SAFETY: I6: `inner` was reached under the guard of `'g`, as its lifetime says.
        let given = unsafe { inner.child(heavy) };
        if (outer_height - height(given)).abs() <= 1 {
            return Self::rotate_twice(parent, node, &near, &inner, rotation);
        }
        // Sound children of a sound `near` would not differ by that much.
        visits([Visit::of(&inner), Visit::of(&near), Visit::of(node)])
    }

    /// `near` takes the place of `node`, which moves down to the light side.
    fn rotate<'g>(
        parent: &Held<'g, B::Words>,
        node: &Held<'g, B::Words>,
        near: &Held<'g, B::Words>,
        rotation: &Rotation<'g, B::Words>,
    ) -> Visits<'g, B::Words> {
        let &Rotation { heavy, far_height, .. } = rotation;
        // SAFETY: I6: `near` was reached under the guard of `'g`, as its lifetime says.
        let (outer, inner) = unsafe { (near.child(heavy), near.child(heavy.other())) };
        let place = Self::side_of(parent, node);

        node.begin_shrink();
        node.set_child(heavy, inner);
        node.adopt(inner);
        near.set_child(heavy.other(), Some(node));
        near.adopt(Some(node));
        parent.set_child(place, Some(near));
        parent.adopt(Some(near));
        let node_height = 1 + height(inner).max(far_height);
        node.set_height(node_height);
        near.set_height(1 + height(outer).max(node_height));
        node.end_shrink();

        // The heights of the subtrees were read without their locks: look at all that moved.
        let top = Some(near.node());
        visits([Visit::of(node), Visit::of(near), Visit::above(parent, top)])
    }

    /// `inner` takes the place of `node`; `node` and `near` become its children.
    fn rotate_twice<'g>(
        parent: &Held<'g, B::Words>,
        node: &Held<'g, B::Words>,
        near: &Held<'g, B::Words>,
        inner: &Held<'g, B::Words>,
        rotation: &Rotation<'g, B::Words>,
    ) -> Visits<'g, B::Words> {
        let &Rotation { heavy, far_height, .. } = rotation;
        let light = heavy.other();
        // SAFETY: I6: `near` and `inner` were reached under the guard of `'g`, as their lifetimes
        // say.
        let (outer, to_near, to_node) =
            unsafe { (near.child(heavy), inner.child(heavy), inner.child(light)) };
        let place = Self::side_of(parent, node);

        node.begin_shrink();
        near.begin_shrink();
        node.set_child(heavy, to_node);
        node.adopt(to_node);
        near.set_child(light, to_near);
        near.adopt(to_near);
        inner.set_child(heavy, Some(near));
        inner.adopt(Some(near));
        inner.set_child(light, Some(node));
        inner.adopt(Some(node));
        parent.set_child(place, Some(inner));
        parent.adopt(Some(inner));
        let node_height = 1 + height(to_node).max(far_height);
        let near_height = 1 + height(outer).max(height(to_near));
        node.set_height(node_height);
        near.set_height(near_height);
        inner.set_height(1 + near_height.max(node_height));
        node.end_shrink();
        near.end_shrink();

        let top = Some(inner.node());
        visits([Visit::of(node), Visit::of(near), Visit::of(inner), Visit::above(parent, top)])
    }
}

/// Loom checks a search beside a rotation, in every execution with at most three preemptions
/// (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::super::build::{Line, Restarting};
    use super::super::node::Version;
    use super::*;
    use loom::thread;
    use silvics_pool::Pooled;
    use std::sync::Arc;

    type Bronson = super::Bronson<Pooled, Restarting>;
    type Node = super::Node<Line>;

    /// Holder, its child 30, below that 20 (right: 25), and below that 10.
    struct Tree {
        holder: Node,
        node: Node,
        near: Node,
        inner: Node,
        outer: Node,
    }

    impl Tree {
        fn new() -> Arc<Self> {
            let node = |key| Node::new(key, Some(key));
            let tree = Arc::new(Self {
                holder: Node::new(0, None),
                node: node(30),
                near: node(20),
                inner: node(25),
                outer: node(10),
            });
            let link = |parent: &Node, side, child: &Node| {
                let parent = parent.lock();
                parent.set_child(side, Some(child));
                parent.adopt(Some(child));
            };
            link(&tree.holder, Side::RIGHT, &tree.node);
            link(&tree.node, Side::LEFT, &tree.near);
            link(&tree.near, Side::RIGHT, &tree.inner);
            link(&tree.near, Side::LEFT, &tree.outer);
            tree
        }

        /// The step of `descend`, as its documentation has it.
        fn finds(&self, key: u64) -> bool {
            'restart: loop {
                let (mut node, mut version, mut side) = (&self.holder, Version::STILL, Side::RIGHT);
                loop {
                    // SAFETY: nodes live as long as the tree.
                    let Some(child) = (unsafe { node.child(side) }) else {
                        if node.has_shrunk_since(version) {
                            continue 'restart;
                        }
                        return false;
                    };
                    if child.key() == key {
                        return true;
                    }
                    let child_version = child.version();
                    // SAFETY: nodes live as long as the tree.
                    let again = unsafe { node.child(side) };
                    if child_version.is_shrinking() {
                        child.wait_while_shrinking();
                    } else if again.is_some_and(|c| std::ptr::eq(c, child)) {
                        if node.has_shrunk_since(version) {
                            continue 'restart;
                        }
                        (node, version, side) = (child, child_version, Side::of(key, child.key()));
                        continue;
                    }
                    if node.has_shrunk_since(version) {
                        continue 'restart;
                    }
                }
            }
        }
    }

    /// A search for each key that a rotation moves others around, beside the rotation.
    fn found_beside(rotate: fn(&Tree), keys: &'static [u64]) {
        for &key in keys {
            let mut model = loom::model::Builder::new();
            model.preemption_bound = Some(3);
            model.check(move || {
                let tree = Tree::new();
                let writer = {
                    let tree = Arc::clone(&tree);
                    thread::spawn(move || rotate(&tree))
                };
                assert!(tree.finds(key), "key {key} is not found");
                writer.join().unwrap();
                assert!(tree.finds(key), "key {key} is gone");
            });
        }
    }

    fn rotate(tree: &Tree) {
        let (holder, node, near) = (tree.holder.lock(), tree.node.lock(), tree.near.lock());
        let rotation = Rotation { heavy: Side::LEFT, far_height: 0, near: &tree.near };
        let visits = Bronson::rotate(&holder, &node, &near, &rotation);
        assert_eq!(visits.into_iter().flatten().count(), 3);
    }

    fn rotate_twice(tree: &Tree) {
        let (holder, node) = (tree.holder.lock(), tree.node.lock());
        let (near, inner) = (tree.near.lock(), tree.inner.lock());
        let rotation = Rotation { heavy: Side::LEFT, far_height: 0, near: &tree.near };
        let visits = Bronson::rotate_twice(&holder, &node, &near, &inner, &rotation);
        assert_eq!(visits.into_iter().flatten().count(), 4);
    }

    #[test]
    fn a_search_beside_a_rotation_finds_every_key() {
        found_beside(rotate, &[10, 20, 25, 30]);
    }

    #[test]
    fn a_search_beside_a_double_rotation_finds_every_key() {
        found_beside(rotate_twice, &[10, 20, 25, 30]);
    }

    /// The links of a rotation, without the versions.
    #[test]
    #[should_panic(expected = "is not found")]
    fn a_rotation_without_versions_is_caught() {
        let rotate = |tree: &Tree| {
            let (holder, node, near) = (tree.holder.lock(), tree.node.lock(), tree.near.lock());
            node.set_child(Side::LEFT, Some(&tree.inner));
            near.set_child(Side::RIGHT, Some(&tree.node));
            holder.set_child(Side::RIGHT, Some(&tree.near));
        };
        found_beside(rotate, &[10, 20]);
    }

    /// The move is counted before the links have moved.
    #[test]
    #[should_panic(expected = "is not found")]
    fn a_move_counted_too_early_is_caught() {
        let rotate = |tree: &Tree| {
            let (holder, node, near) = (tree.holder.lock(), tree.node.lock(), tree.near.lock());
            node.begin_shrink();
            node.end_shrink();
            node.set_child(Side::LEFT, Some(&tree.inner));
            near.set_child(Side::RIGHT, Some(&tree.node));
            holder.set_child(Side::RIGHT, Some(&tree.near));
        };
        found_beside(rotate, &[10, 20]);
    }
}
