//! Verifies the invariants of a quiescent tree.

use super::super::side::Side;
use super::Bronson;
use super::build::{Build, Words};
use super::node::Node;
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;

/// A node with its depth-first state: the bounds of its subtree, exclusive.
struct Open<'a, W> {
    node: &'a Node<W>,
    parent: &'a Node<W>,
    low: Option<u64>,
    high: Option<u64>,
}

impl<P: Placement, B: Build> Bronson<P, B> {
    /// Walks the tree: order (I2), parents (I1), no marks left, heights and balance exact and no
    /// superfluous routing node (I5: all damage is repaired).
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let holder = self.holder();
        see(Placed::new(&B::Words::NODE, self.holder.addr().get()));
        let mut entries = 0;
        let mut open = Vec::new();
        // SAFETY: exclusive access, so nothing is reclaimed.
        if let Some(root) = unsafe { holder.child(Side::RIGHT) } {
            open.push(Open { node: root, parent: holder, low: None, high: None });
        }
        while let Some(Open { node, parent, low, high }) = open.pop() {
            see(Placed::new(&B::Words::NODE, node.as_non_null().addr().get()));
            let key = node.key();
            if low.is_some_and(|l| key <= l) || high.is_some_and(|h| key >= h) {
                return violation("I2", format!("node {key} outside ({low:?}, {high:?})"));
            }
            // SAFETY: exclusive access, so nothing is reclaimed.
            if !unsafe { node.parent() }.is_some_and(|p| std::ptr::eq(p, parent)) {
                return violation("I1", format!("node {key} names another parent"));
            }
            let version = node.version();
            if version.is_unlinked() || version.is_shrinking() {
                return violation("I4", format!("node {key} is linked with {version:?}"));
            }
            // SAFETY: exclusive access, so nothing is reclaimed.
            let (left, right) = unsafe { (node.child(Side::LEFT), node.child(Side::RIGHT)) };
            entries += usize::from(version.is_present());
            if !version.is_present() && (left.is_none() || right.is_none()) {
                return violation("I5", format!("routing node {key} has fewer than two children"));
            }
            let heights = [left, right].map(|c| c.map_or(0, Node::height));
            if node.height() != 1 + heights[0].max(heights[1]) {
                let detail = format!("node {key} of height {} over {heights:?}", node.height());
                return violation("I5", detail);
            }
            if (heights[0] - heights[1]).abs() > 1 {
                return violation("I5", format!("node {key} is unbalanced: {heights:?}"));
            }
            if let Some(left) = left {
                open.push(Open { node: left, parent: node, low, high: Some(key) });
            }
            if let Some(right) = right {
                open.push(Open { node: right, parent: node, low: Some(key), high });
            }
        }
        self.frame.counted(entries)
    }
}
