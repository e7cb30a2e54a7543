//! Verifies the invariants of a quiescent tree.

use super::super::side::Side;
use super::Citrus;
use super::build::{Build, Words};
use super::node::Node;
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;

/// A node with the bounds of its subtree, exclusive.
struct Open<'a, W> {
    node: &'a Node<W>,
    low: Option<u64>,
    high: Option<u64>,
}

impl<P: Placement, B: Build> Citrus<P, B> {
    /// Walks the tree: order (I4), and no mark left (I2). That no successor is there twice (I3)
    /// follows from the order.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let holder = self.holder();
        see(Placed::new(&B::Words::NODE, self.holder.addr().get()));
        let mut entries = 0;
        let mut open = Vec::new();
        // SAFETY: exclusive access, so nothing is reclaimed.
        let (left, root) = unsafe { holder.children() };
        if left.is_some() || holder.is_marked() {
            return violation("I4", "the holder is marked or has a left child".into());
        }
        open.extend(root.map(|node| Open { node, low: None, high: None }));
        while let Some(Open { node, low, high }) = open.pop() {
            see(Placed::new(&B::Words::NODE, node.as_non_null().addr().get()));
            entries += 1;
            let key = node.key();
            if low.is_some_and(|l| key <= l) || high.is_some_and(|h| key >= h) {
                return violation("I4", format!("node {key} outside ({low:?}, {high:?})"));
            }
            if node.is_marked() {
                return violation("I2", format!("node {key} is linked and marked"));
            }
            // SAFETY: exclusive access, so nothing is reclaimed.
            let (left, right) = unsafe { (node.child(Side::LEFT), node.child(Side::RIGHT)) };
            open.extend(left.map(|node| Open { node, low, high: Some(key) }));
            open.extend(right.map(|node| Open { node, low: Some(key), high }));
        }
        self.frame.counted(entries)
    }
}
