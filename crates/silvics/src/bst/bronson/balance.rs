//! Relaxed balance: repairing heights, rotating, and removing routing nodes.
//!
//! Whoever changes the height of a subtree, or leaves a routing node with fewer than two children,
//! repairs the *damage* before it returns, one node at a time from the bottom up, each under its
//! own short locks; others may pass or damage more meanwhile (paper, section 3.6 and figure 9).
//! Locks are taken from the top down.

use super::BronsonTree;
use super::node::{Held, Node, Side};
use crate::domain::Guard;
use silvics_pool::Placement;

/// What is wrong with a node.
enum Condition {
    Sound,
    /// Its height should be this.
    Height(i32),
    /// Its children's heights differ by more than one.
    Unbalanced,
    /// It routes but has fewer than two children.
    Superfluous,
}

fn height(node: Option<&Node>) -> i32 {
    node.map_or(0, Node::height)
}

/// # Safety
/// `node` was reached under the guard.
unsafe fn children<'g>(node: &Node, _guard: &'g Guard) -> (Option<&'g Node>, Option<&'g Node>) {
    // SAFETY: the caller's promise.
    unsafe { (node.child(Side::LEFT), node.child(Side::RIGHT)) }
}

fn condition(node: &Node, left: Option<&Node>, right: Option<&Node>) -> Condition {
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

/// Nodes to look at again.
struct Damage<'g> {
    /// The lowest.
    first: Option<&'g Node>,
    /// The node above a rotation that leaves damage below: the rotation has changed the height of
    /// what is now its child, and repairing `first` may not climb that far.
    then: Option<&'g Node>,
}

impl<'g> Damage<'g> {
    fn at(node: Option<&'g Node>) -> Self {
        Self { first: node, then: None }
    }
}

/// Children of one node and their heights, as a rotation sees them: `near` is on the heavy side.
struct Rotation<'g> {
    heavy: Side,
    /// The height of the child on the light side.
    far_height: i32,
    near: &'g Node,
}

impl<P: Placement> BronsonTree<P> {
    /// Repairs damage from `damaged` upwards until none is left that this thread must repair.
    pub(super) fn repair<'g>(&'g self, mut damaged: Option<&'g Node>, guard: &'g Guard) {
        while let Some(node) = damaged {
            // SAFETY: nodes in this loop were reached under the guard.
            let Some(parent) = (unsafe { node.parent() }) else { return }; // the holder
            // SAFETY: as above.
            let (left, right) = unsafe { children(node, guard) };
            let condition = condition(node, left, right);
            if matches!(condition, Condition::Sound) || node.version().is_unlinked() {
                return;
            }
            if let Condition::Height(_) = condition {
                damaged = Self::fix_height(&node.lock());
                continue;
            }
            let parent = parent.lock();
            if !parent.version().is_unlinked() && node.is_child_of(&parent) {
                let node = node.lock();
                if node.version().is_unlinked() {
                    return; // its remover has taken the damage over
                }
                let damage = self.rebalance(&parent, &node, guard);
                drop((node, parent));
                if damage.then.is_some() {
                    // Deeper by a level each time: as deep as the tree at most.
                    self.repair(damage.first, guard);
                    damaged = damage.then;
                } else {
                    damaged = damage.first;
                }
            }
        }
    }

    /// Corrects the height of a locked node. Returns the next damaged node: its parent if the
    /// height has changed, the node itself if it needs more than that, none if it is sound.
    pub(super) fn fix_height<'g>(node: &Held<'g>) -> Option<&'g Node> {
        // SAFETY: the node is locked, so it and its neighbours are kept by the caller's guard.
        let (left, right) = unsafe { (node.child(Side::LEFT), node.child(Side::RIGHT)) };
        match condition(node, left, right) {
            Condition::Sound => None,
            Condition::Height(height) => {
                node.set_height(height);
                // SAFETY: as above.
                unsafe { node.parent() }
            }
            Condition::Unbalanced | Condition::Superfluous => Some(node.node()),
        }
    }

    /// Unlinks a node without value that has at most one child. Both are locked.
    pub(super) fn unlink(&self, parent: &Held<'_>, node: &Held<'_>, guard: &Guard) {
        // SAFETY: locked, and reached under the guard.
        let (left, right) = unsafe { children(node, guard) };
        debug_assert!(left.is_none() || right.is_none());
        let child = left.or(right);
        parent.set_child(Self::side_of(parent, node), child);
        parent.adopt(child);
        node.set_unlinked();
        // SAFETY: no link leads to it any more (I1), and `UNLINKED` is set once, under its lock.
        unsafe { self.nodes.retire(node.as_non_null(), guard) };
    }

    /// The side of `parent` that `node` is linked on.
    fn side_of(parent: &Node, node: &Node) -> Side {
        // SAFETY: `parent` is locked and `node` is its child.
        let left = unsafe { parent.child(Side::LEFT) };
        if left.is_some_and(|l| std::ptr::eq(l, node)) { Side::LEFT } else { Side::RIGHT }
    }

    /// Repairs a locked node below its locked parent; returns what to look at again.
    fn rebalance<'g>(&self, parent: &Held<'g>, node: &Held<'g>, guard: &'g Guard) -> Damage<'g> {
        // SAFETY: locked, and reached under the guard.
        let (left, right) = unsafe { children(node, guard) };
        match condition(node, left, right) {
            Condition::Sound => Damage::at(None),
            Condition::Height(height) => {
                node.set_height(height);
                Damage::at(Self::fix_height(parent))
            }
            Condition::Superfluous => {
                self.unlink(parent, node, guard);
                Damage::at(Self::fix_height(parent))
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
    fn lift<'g>(parent: &Held<'g>, node: &Held<'g>, rotation: &Rotation<'g>) -> Damage<'g> {
        let &Rotation { heavy, far_height, near } = rotation;
        let near = near.lock();
        if near.height() - far_height <= 1 {
            return Damage::at(Some(node.node())); // no longer: look again
        }
        // SAFETY: locked, and reached under the guard.
        let (outer, inner) = unsafe { (near.child(heavy), near.child(heavy.other())) };
        let outer_height = height(outer);
        let Some(inner) = inner.filter(|i| i.height() > outer_height) else {
            return Self::rotate(parent, node, &near, rotation, height(inner));
        };
        let inner = inner.lock();
        let inner_height = inner.height();
        if outer_height >= inner_height {
            return Self::rotate(parent, node, &near, rotation, inner_height);
        }
        // SAFETY: as above.
        let given = unsafe { inner.child(heavy) };
        if (outer_height - height(given)).abs() <= 1 {
            return Self::rotate_twice(parent, node, &near, &inner, rotation);
        }
        // Sound children of a sound `near` would not differ by that much.
        let first = if inner_height - outer_height > 1 { &near } else { &inner };
        Damage { first: Some(first.node()), then: Some(node.node()) }
    }

    /// `near` takes the place of `node`, which moves down to the light side.
    fn rotate<'g>(
        parent: &Held<'g>,
        node: &Held<'g>,
        near: &Held<'g>,
        rotation: &Rotation<'g>,
        inner_height: i32,
    ) -> Damage<'g> {
        let &Rotation { heavy, far_height, .. } = rotation;
        // SAFETY: all three are locked.
        let (outer, inner) = unsafe { (near.child(heavy), near.child(heavy.other())) };
        let outer_height = height(outer);
        let place = Self::side_of(parent, node);

        node.begin_shrink();
        node.set_child(heavy, inner);
        node.adopt(inner);
        near.set_child(heavy.other(), Some(node));
        near.adopt(Some(node));
        parent.set_child(place, Some(near));
        parent.adopt(Some(near));
        let node_height = 1 + inner_height.max(far_height);
        node.set_height(node_height);
        near.set_height(1 + outer_height.max(node_height));
        node.end_shrink();

        if (inner_height - far_height).abs() > 1 {
            return Damage { first: Some(node.node()), then: Some(parent.node()) };
        }
        if (inner.is_none() || far_height == 0) && !node.version().is_present() {
            return Damage { first: Some(node.node()), then: Some(parent.node()) };
        }
        if (outer_height - node_height).abs() > 1 {
            return Damage { first: Some(near.node()), then: Some(parent.node()) };
        }
        if outer_height == 0 && !near.version().is_present() {
            return Damage { first: Some(near.node()), then: Some(parent.node()) };
        }
        Damage::at(Self::fix_height(parent))
    }

    /// `inner` takes the place of `node`; `node` and `near` become its children.
    fn rotate_twice<'g>(
        parent: &Held<'g>,
        node: &Held<'g>,
        near: &Held<'g>,
        inner: &Held<'g>,
        rotation: &Rotation<'g>,
    ) -> Damage<'g> {
        let &Rotation { heavy, far_height, .. } = rotation;
        let light = heavy.other();
        // SAFETY: all four are locked.
        let (outer, to_near, to_node) =
            unsafe { (near.child(heavy), inner.child(heavy), inner.child(light)) };
        let (outer_height, to_near_height, to_node_height) =
            (height(outer), height(to_near), height(to_node));
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
        let node_height = 1 + to_node_height.max(far_height);
        let near_height = 1 + outer_height.max(to_near_height);
        node.set_height(node_height);
        near.set_height(near_height);
        inner.set_height(1 + near_height.max(node_height));
        node.end_shrink();
        near.end_shrink();

        if (to_node_height - far_height).abs() > 1 {
            return Damage { first: Some(node.node()), then: Some(parent.node()) };
        }
        if (to_node.is_none() || far_height == 0) && !node.version().is_present() {
            return Damage { first: Some(node.node()), then: Some(parent.node()) };
        }
        if (to_near.is_none() || outer_height == 0) && !near.version().is_present() {
            return Damage { first: Some(near.node()), then: Some(parent.node()) };
        }
        if (near_height - node_height).abs() > 1 {
            return Damage { first: Some(inner.node()), then: Some(parent.node()) };
        }
        Damage::at(Self::fix_height(parent))
    }
}
