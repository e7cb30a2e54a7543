//! Verifies the invariants of a quiescent tree.

use super::super::side::Side;
use super::Howley;
use super::build::Build;
use super::node::{Link, Node};
use crate::bst::claim::State;
use crate::error::Violation;
use crate::frame::{See, violation};
use silvics_layout::Placed;
use silvics_pool::Placement;
use std::fmt;

impl<P: Placement, B: Build> Howley<P, B> {
    /// Walks the tree and checks the order (I2), the root's empty left side (I3), that no node is
    /// claimed (I4, I6: operations finish what they claim), that null links are no younger than
    /// their node's word (I5), and the count of entries.
    pub(super) fn check_quiescent(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        let root = self.root();
        see(Placed::new(&Node::<B>::NODE, self.root.addr().get()));
        Self::check_node(root, format_args!("the root"))?;
        if !root.children[Side::LEFT].load().is_null() {
            return violation("I3", "the root has a left child".into());
        }
        let mut entries = 0;
        // Links, each with the exclusive bounds of its subtree.
        let mut open: Vec<(Link<B>, Option<u64>, Option<u64>)> =
            vec![(root.children[Side::RIGHT].load(), None, None)];
        while let Some((link, low, high)) = open.pop() {
            // SAFETY: I1; the tree is quiescent, since access is exclusive.
            let Some(node) = (unsafe { link.node() }) else {
                continue;
            };
            entries += 1;
            see(Placed::new(&Node::<B>::NODE, link.node_ptr().addr().get()));
            let key = node.key;
            if low.is_some_and(|l| key <= l) || high.is_some_and(|h| key >= h) {
                return violation("I2", format!("node {key} outside ({low:?}, {high:?})"));
            }
            Self::check_node(node, format_args!("node {key}"))?;
            open.push((node.children[Side::RIGHT].load(), Some(key), high));
            open.push((node.children[Side::LEFT].load(), low, Some(key)));
        }
        self.frame.counted(entries)
    }

    fn check_node(node: &Node<B>, name: fmt::Arguments<'_>) -> Result<(), Violation> {
        let clean = match node.op.load() {
            State::Clean(clean) => clean,
            State::Claimed(claim) => {
                return violation("I4", format!("a quiescent tree has {name} claimed: {claim:?}"));
            }
        };
        for link in node.links() {
            if link.is_null() && link.emptied_at() > clean.count() {
                let detail =
                    format!("{name} at {clean:?} has a link emptied {}", link.emptied_at());
                return violation("I5", detail);
            }
        }
        Ok(())
    }
}
