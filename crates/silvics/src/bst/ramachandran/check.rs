//! Verifies the invariants of a quiescent tree.

use super::Ramachandran;
use super::build::Build;
use super::node::{Edge, NODE, Node};
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;
use std::ptr::NonNull;

/// A subtree that remains to be checked: the edge to it, and the exclusive bounds of its keys.
struct Open {
    edge: Edge,
    low: Option<u64>,
    high: Option<u64>,
}

impl<P: Placement, B: Build> Ramachandran<P, B> {
    /// Walks the tree and checks the order (I2), that no edge is marked and no node is a draft (I1,
    /// I3: operations finish what they decide), and that every announced copy has come.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let mut entries = 0;
        let mut open = vec![Open { edge: self.root.load(), low: None, high: None }];
        while let Some(Open { edge, low, high }) = open.pop() {
            if edge.is_marked() {
                return violation("I3", format!("a quiescent tree has the marked edge {edge:?}"));
            }
            // SAFETY: I1; the tree is quiescent, since access is exclusive.
            let Some(node) = (unsafe { edge.child() }) else {
                continue;
            };
            see(Placed::new(&NODE, NonNull::from(node).addr().get()));
            entries += 1;
            let key = node.key();
            if low.is_some_and(|low| key <= low) || high.is_some_and(|high| key >= high) {
                return violation("I2", format!("node {key} outside ({low:?}, {high:?})"));
            }
            if node.is_announced() {
                return violation("I3", format!("node {key} waits for a copy"));
            }
            open.push(Open { edge: node.right().load(), low: Some(key), high });
            open.push(Open { edge: node.left().load(), low, high: Some(key) });
        }
        self.frame.counted(entries)
    }

    /// All nodes of the tree, each once. The caller has exclusive access.
    pub(super) fn linked(&self) -> Vec<NonNull<Node>> {
        let mut nodes = Vec::new();
        let mut open = vec![self.root.load()];
        while let Some(edge) = open.pop() {
            // SAFETY: I1; the tree is quiescent, since the caller has exclusive access.
            if let Some(node) = unsafe { edge.child() } {
                open.extend([node.left().load(), node.right().load()]);
                nodes.push(NonNull::from(node));
            }
        }
        nodes
    }
}
